//! Sort orders for lists of sessions, and their columns.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::bound;
use super::page::Cursor;
use super::statement::Value;

/// Sort key of a list of sessions. Sessions without a value come last in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SessionSort {
    /// Time under which the session is counted.
    Time,
    /// Average overall score given by models.
    Quality,
    /// Outcome of the task, by name.
    Outcome,
    /// Completion of the task.
    Completed,
    /// Efficiency of tool calls.
    Efficiency,
    /// Quality of responses.
    Response,
    /// Number of errors.
    Errors,
    /// Number of model calls.
    Calls,
    /// Duration of the session.
    Duration,
    /// Agent name.
    Agent,
    /// Task type, by name.
    TaskType,
    /// Worst results: tasks by outcome, contradicted ones highest, then by number of errors.
    /// Sessions that are not tasks come lowest.
    Worst,
}

selftest_text::named!(SessionSort);

/// Type of a column.
#[derive(Clone, Copy)]
pub(super) enum ColumnType {
    Integer,
    Real,
    Text,
}

impl SessionSort {
    /// Returns true if a list in this order can continue after `cursor`. Cursors of other orders do
    /// not fit.
    pub fn fits(self, descending: bool, cursor: &Cursor) -> bool {
        let (_, kind, nullable) = self.column();
        cursor.order.as_deref() == Some(&*self.order(descending))
            && cursor.value.as_ref().map_or(nullable, |value| kind.parse(value).is_some())
    }

    /// Returns the name of the order in cursors.
    pub(super) fn order(self, descending: bool) -> String {
        format!("{self}.{}", if descending { "desc" } else { "asc" })
    }

    /// Returns the column, its type, and whether it may be null.
    pub(super) fn column(self) -> (&'static str, ColumnType, bool) {
        match self {
            SessionSort::Time => ("counts_at", ColumnType::Text, true),
            SessionSort::Quality => ("quality", ColumnType::Real, true),
            SessionSort::Outcome => ("outcome", ColumnType::Text, true),
            SessionSort::Completed => ("task_completed", ColumnType::Integer, false),
            SessionSort::Efficiency => ("tool_calls_efficient", ColumnType::Integer, false),
            SessionSort::Response => ("response_quality", ColumnType::Integer, false),
            SessionSort::Errors => ("total_errors", ColumnType::Integer, false),
            SessionSort::Calls => ("total_api_calls", ColumnType::Integer, false),
            SessionSort::Duration => ("duration_seconds", ColumnType::Real, true),
            SessionSort::Agent => ("agent", ColumnType::Text, true),
            SessionSort::TaskType => ("task_type", ColumnType::Text, true),
            SessionSort::Worst => ("worst", ColumnType::Integer, false),
        }
    }
}

impl ColumnType {
    pub(super) fn parse(self, text: &str) -> Option<Value> {
        Some(match self {
            ColumnType::Integer => Value::Integer(Some(text.parse().ok()?)),
            ColumnType::Real => {
                Value::Real(Some(text.parse().ok().filter(|real: &f64| real.is_finite())?))
            }
            ColumnType::Text => Value::Text(Some(bound::text(text, bound::NAME))),
        })
    }
}
