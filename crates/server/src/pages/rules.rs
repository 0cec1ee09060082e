//! Display names and values of the fields in a grade by rules that people may override.

use selftest_grading::grade::GradeField;

pub(super) fn name(field: GradeField) -> &'static str {
    match field {
        GradeField::TaskCompleted => "Task completed",
        GradeField::ToolCallsEfficient => "Tool efficiency",
        GradeField::ResponseQuality => "Answer quality",
        GradeField::ErrorsRecovered => "Errors recovered",
    }
}

pub(super) fn value(field: GradeField, value: u8) -> String {
    match (field.is_boolean(), value) {
        (true, 0) => "no".to_owned(),
        (true, _) => "yes".to_owned(),
        (false, value) => format!("{value} of 5"),
    }
}
