//! Display names and values of the fields in a grade by rules that people may override.

use selftest_grading::grade::Field;

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
