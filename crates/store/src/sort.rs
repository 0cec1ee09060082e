//! The orders of lists of sessions, and the values by which they are sorted.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::bound;
use super::page::Cursor;
use super::statement::Value;

/// The value by which a list of sessions is sorted. Sessions without the value come last in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SessionSort {
    /// When the session counts.
    Time,
    /// Average overall score of the models.
    Quality,
    /// Outcome of the task, by name.
    Outcome,
    /// Whether the task appears to have been completed.
    Completed,
    /// Efficiency of tool calls.
    Efficiency,
    /// Quality of responses.
    Response,
    /// Number of errors.
    Errors,
    /// Number of calls of the model.
    Calls,
    /// How long it took.
    Duration,
    /// Name of the agent.
    Agent,
    /// Type of the task, by name.
    TaskType,
    /// How badly it went: tasks by their outcome, contradicted ones highest, then by their errors;
    /// what is no task lowest.
    Worst,
}

selftest_text::named!(SessionSort);

/// The type of a column.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Integer,
    Real,
    Text,
}

impl SessionSort {
    /// Whether a list in this order can go on behind that place: not with the cursor of a list in
    /// another order.
    pub fn fits(self, descending: bool, cursor: &Cursor) -> bool {
        let (_, kind, nullable) = self.column();
        cursor.order.as_deref() == Some(&*self.order(descending))
            && cursor.value.as_ref().map_or(nullable, |value| kind.parse(value).is_some())
    }

    /// The name of the order in cursors.
    pub(super) fn order(self, descending: bool) -> String {
        format!("{self}.{}", if descending { "desc" } else { "asc" })
    }

    /// The column, its type, and whether it may be null.
    pub(super) fn column(self) -> (&'static str, Kind, bool) {
        match self {
            SessionSort::Time => ("counts_at", Kind::Text, true),
            SessionSort::Quality => ("quality", Kind::Real, true),
            SessionSort::Outcome => ("outcome", Kind::Text, true),
            SessionSort::Completed => ("task_completed", Kind::Integer, false),
            SessionSort::Efficiency => ("tool_calls_efficient", Kind::Integer, false),
            SessionSort::Response => ("response_quality", Kind::Integer, false),
            SessionSort::Errors => ("total_errors", Kind::Integer, false),
            SessionSort::Calls => ("total_api_calls", Kind::Integer, false),
            SessionSort::Duration => ("duration_seconds", Kind::Real, true),
            SessionSort::Agent => ("agent", Kind::Text, true),
            SessionSort::TaskType => ("task_type", Kind::Text, true),
            SessionSort::Worst => ("worst", Kind::Integer, false),
        }
    }
}

impl Kind {
    pub(super) fn parse(self, text: &str) -> Option<Value> {
        Some(match self {
            Kind::Integer => Value::Integer(Some(text.parse().ok()?)),
            Kind::Real => {
                Value::Real(Some(text.parse().ok().filter(|real: &f64| real.is_finite())?))
            }
            Kind::Text => Value::Text(Some(bound::text(text, bound::NAME))),
        })
    }
}
