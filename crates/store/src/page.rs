//! Pages of long lists, and their order. A cursor holds the last row instead of an offset, so rows
//! added in between cause no duplicates or gaps.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::bound;
use super::statement::Value;

/// Maximum length of a cursor's text form in bytes.
const MAX_LENGTH: usize = 4096;

/// One page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultPage<T> {
    /// Rows of the page.
    pub items: Vec<T>,
    /// Start of the next page; `None` on the last one.
    pub next: Option<Cursor>,
}

/// A position in a sorted list, after the row with this value and id. Its text form is opaque:
/// clients pass it back unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cursor {
    /// Sort value as text; `None` for null.
    pub value: Option<String>,
    /// Id that distinguishes rows with the same value.
    pub id: String,
    /// Sort order, if the list has several: a cursor of one order is invalid in another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_vec(self).map_err(|_| fmt::Error)?;
        json.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl FromStr for Cursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected the `next` of the page before";
        // Cursors come from clients. The ASCII check makes the byte slicing below safe.
        if text.len() > MAX_LENGTH || !text.is_ascii() || !text.len().is_multiple_of(2) {
            return Err(EXPECTED);
        }
        let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).ok();
        let json: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
        json.and_then(|json| serde_json::from_slice(&json).ok()).ok_or(EXPECTED)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text_form_and_nothing_else_is_one() {
        for cursor in [
            Cursor {
                value: Some("2026-11-20T10:00:00Z".into()),
                id: "é\"/?&".into(),
                order: Some("time.desc".into()),
            },
            Cursor { value: None, id: String::new(), order: None },
        ] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in ["", "x", "7b", "é0", "+1+1", &"00".repeat(MAX_LENGTH)] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
