//! A person's word against the rules' (docs/spec/session-grades.md#human-overrides). Both are kept;
//! the person's counts.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::{GradeRecord, Level, TaskOutcome};

/// A grade that a person can override.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Field {
    /// `task_completed`
    TaskCompleted,
    /// `tool_calls_efficient`
    ToolCallsEfficient,
    /// `response_quality`
    ResponseQuality,
    /// `errors_recovered`
    ErrorsRecovered,
}

selftest_text::named!(Field);

impl Field {
    /// Whether its values are 0 and 1; else they are 1 to 5.
    pub fn is_boolean(self) -> bool {
        matches!(self, Field::TaskCompleted | Field::ErrorsRecovered)
    }

    /// A value of it for a person: `true` or `false`, or 1 to 5.
    pub fn words(self, value: u8) -> String {
        if self.is_boolean() { (value != 0).to_string() } else { value.to_string() }
    }

    /// The value of a record as a number: 0 or 1, or 1 to 5.
    pub fn value(self, record: &GradeRecord) -> u8 {
        match self {
            Field::TaskCompleted => record.task_completed.into(),
            Field::ToolCallsEfficient => record.tool_calls_efficient.get(),
            Field::ResponseQuality => record.response_quality.get(),
            Field::ErrorsRecovered => record.errors_recovered.into(),
        }
    }

    /// Sets the value; `false` when it is out of range.
    #[must_use]
    pub fn set(self, record: &mut GradeRecord, value: u8) -> bool {
        fn assign<T>(place: &mut T, value: Option<T>) -> bool {
            value.map(|value| *place = value).is_some()
        }
        let flag = match value {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        match self {
            Field::TaskCompleted => assign(&mut record.task_completed, flag),
            Field::ToolCallsEfficient => {
                assign(&mut record.tool_calls_efficient, Level::new(value))
            }
            Field::ResponseQuality => assign(&mut record.response_quality, Level::new(value)),
            Field::ErrorsRecovered => assign(&mut record.errors_recovered, flag),
        }
    }
}

/// One field of one session, as a person sees it. The newest for a field counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// The session.
    pub session_id: String,
    /// The overridden field.
    pub field: Field,
    /// The grade of the rules at that time.
    pub rule_value: u8,
    /// The grade that the person gives.
    pub human_value: u8,
    /// Why.
    pub reason: String,
    /// When.
    pub made_at: Timestamp,
}

/// The record with every override of its session applied.
pub fn apply(mut record: GradeRecord, overrides: &[Override]) -> GradeRecord {
    let mut own: Vec<&Override> =
        overrides.iter().filter(|one| one.session_id == record.session_id).collect();
    own.sort_by_key(|one| one.made_at);
    for one in own {
        // A value out of range can only come from a database that another program wrote to.
        let is_set = one.field.set(&mut record, one.human_value);
        if is_set && one.field == Field::TaskCompleted {
            record.outcome = if record.task_completed {
                TaskOutcome::Verified
            } else {
                TaskOutcome::Contradicted
            };
        }
    }
    record
}
