//! By what lists of sessions are sorted, and the values by which they are.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::bound;
use super::page::Cursor;

/// By what a list of sessions is sorted. Sessions without the value come last in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionSort {
    /// When the session counts.
    Time,
    /// Average overall score of the models.
    Quality,
    /// Whether the task was completed.
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
}

/// What kind of values a column holds.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Integer,
    Real,
    Text,
}

/// A value that is bound to a query.
pub(super) enum Value {
    Integer(i64),
    Real(f64),
    Text(String),
}

impl SessionSort {
    /// Every order.
    pub const ALL: [SessionSort; 10] = [
        SessionSort::Time,
        SessionSort::Quality,
        SessionSort::Completed,
        SessionSort::Efficiency,
        SessionSort::Response,
        SessionSort::Errors,
        SessionSort::Calls,
        SessionSort::Duration,
        SessionSort::Agent,
        SessionSort::TaskType,
    ];

    /// The name in URLs.
    pub fn name(self) -> &'static str {
        match self {
            SessionSort::Time => "time",
            SessionSort::Quality => "quality",
            SessionSort::Completed => "completed",
            SessionSort::Efficiency => "efficiency",
            SessionSort::Response => "response",
            SessionSort::Errors => "errors",
            SessionSort::Calls => "calls",
            SessionSort::Duration => "duration",
            SessionSort::Agent => "agent",
            SessionSort::TaskType => "task_type",
        }
    }

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

    /// Column, what it holds, and whether it may be null.
    pub(super) fn column(self) -> (&'static str, Kind, bool) {
        match self {
            SessionSort::Time => ("counts_at", Kind::Text, true),
            SessionSort::Quality => ("quality", Kind::Real, true),
            SessionSort::Completed => ("task_completed", Kind::Integer, false),
            SessionSort::Efficiency => ("tool_calls_efficient", Kind::Integer, false),
            SessionSort::Response => ("response_quality", Kind::Integer, false),
            SessionSort::Errors => ("total_errors", Kind::Integer, false),
            SessionSort::Calls => ("total_api_calls", Kind::Integer, false),
            SessionSort::Duration => ("duration_seconds", Kind::Real, true),
            SessionSort::Agent => ("agent", Kind::Text, true),
            SessionSort::TaskType => ("task_type", Kind::Text, true),
        }
    }
}

impl fmt::Display for SessionSort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for SessionSort {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|sort| sort.name() == name);
        found.ok_or_else(|| format!("expected one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

impl Kind {
    pub(super) fn parse(self, text: &str) -> Option<Value> {
        match self {
            Kind::Integer => text.parse().ok().map(Value::Integer),
            Kind::Real => text.parse().ok().filter(|real: &f64| real.is_finite()).map(Value::Real),
            Kind::Text => Some(Value::Text(bound::text(text, bound::NAME))),
        }
    }
}
