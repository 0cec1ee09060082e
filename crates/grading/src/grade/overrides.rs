//! Human overrides of the rules' grades (docs/spec/session-grades.md#human-overrides). Both values
//! are stored, and the human one counts.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::{ElsewhereResult, GradeLevel, GradeRecord, OutcomeState, ResultSource, TaskOutcome};

/// A grade that a person can override.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum GradeField {
    /// `task_completed`
    TaskCompleted,
    /// `tool_calls_efficient`
    ToolCallsEfficient,
    /// `response_quality`
    ResponseQuality,
    /// `errors_recovered`
    ErrorsRecovered,
}

selftest_text::named!(GradeField);

impl GradeField {
    /// Returns true if the values are 0 and 1 rather than 1 to 5.
    pub fn is_boolean(self) -> bool {
        matches!(self, GradeField::TaskCompleted | GradeField::ErrorsRecovered)
    }

    /// Formats a value for display: `true` or `false`, or 1 to 5.
    pub fn words(self, value: u8) -> String {
        if self.is_boolean() { (value != 0).to_string() } else { value.to_string() }
    }

    /// Returns the value in a record as a number: 0 or 1, or 1 to 5.
    pub fn value(self, record: &GradeRecord) -> u8 {
        match self {
            GradeField::TaskCompleted => record.task_completed.into(),
            GradeField::ToolCallsEfficient => record.tool_calls_efficient.get(),
            GradeField::ResponseQuality => record.response_quality.get(),
            GradeField::ErrorsRecovered => record.errors_recovered.into(),
        }
    }

    /// Sets the value. Returns `false` if it is out of range.
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
            GradeField::TaskCompleted => assign(&mut record.task_completed, flag),
            GradeField::ToolCallsEfficient => {
                assign(&mut record.tool_calls_efficient, GradeLevel::new(value))
            }
            GradeField::ResponseQuality => {
                assign(&mut record.response_quality, GradeLevel::new(value))
            }
            GradeField::ErrorsRecovered => assign(&mut record.errors_recovered, flag),
        }
    }
}

/// A person's grade for one field of a session. The newest override of a field counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradeOverride {
    /// ID of the session.
    pub session_id: String,
    /// Field to override.
    pub field: GradeField,
    /// Grade by the rules at that time.
    pub rule_value: u8,
    /// Grade by the person.
    pub human_value: u8,
    /// Reason for the override.
    pub reason: String,
    /// Time of the override.
    pub made_at: Timestamp,
}

/// Applies all overrides of the record's session.
pub fn apply(mut record: GradeRecord, overrides: &[GradeOverride]) -> GradeRecord {
    let mut own: Vec<&GradeOverride> =
        overrides.iter().filter(|one| one.session_id == record.session_id).collect();
    // Oldest first, so that the newest override of a field wins.
    own.sort_by_key(|one| one.made_at);
    for one in own {
        // Only a database written by another program can contain a value out of range.
        let is_set = one.field.set(&mut record, one.human_value);
        // A person's grade also decides the outcome.
        if is_set && one.field == GradeField::TaskCompleted {
            record.outcome = if record.task_completed {
                TaskOutcome::ChecksPassed
            } else {
                TaskOutcome::Contradicted
            };
            let result = if record.task_completed {
                ElsewhereResult::Passed
            } else {
                ElsewhereResult::Failed
            };
            record.details.state =
                OutcomeState::CheckedElsewhere { by: ResultSource::Person, result };
        }
    }
    record
}
