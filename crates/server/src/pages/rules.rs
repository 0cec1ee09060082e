//! The fields of the grade by rules, which people may override, in words.

use super::session::Session;
use selftest_grading::grade::Field;

impl Session {
    /// The value that the rules gave.
    pub(super) fn by_rules(&self, field: Field) -> String {
        if field == Field::ErrorsRecovered && self.grade.total_errors == 0 {
            return "no errors".to_owned();
        }
        value(field, field.value(&self.grade))
    }

    /// The last value that a person gave instead.
    pub(super) fn by_person(&self, field: Field) -> Option<String> {
        let last = self.overrides.iter().rev().find(|made| made.field == field)?;
        Some(value(field, last.human_value))
    }
}

pub(super) fn name(field: Field) -> &'static str {
    match field {
        Field::TaskCompleted => "Task completed",
        Field::ToolCallsEfficient => "Tool efficiency",
        Field::ResponseQuality => "Answer quality",
        Field::ErrorsRecovered => "Errors recovered",
    }
}

pub(super) fn value(field: Field, value: u8) -> String {
    match (field.is_boolean(), value) {
        (true, 0) => "no".to_owned(),
        (true, _) => "yes".to_owned(),
        (false, value) => format!("{value} of 5"),
    }
}
