//! The grade by the rules, with what speaks for and against it and what people said instead.

use super::words;
use selftest_grading::grade::{Field, GradeRecord, Override, Point};

/// Evidence points and overrides that are shown.
const SHOWN: usize = 60;

pub(super) struct Rules {
    pub(super) grades: Vec<RuleGrade>,
    pub(super) marks: Vec<&'static str>,
    pub(super) evidence: Vec<EvidenceView>,
    pub(super) overrides: Vec<OverrideView>,
}

pub(super) struct RuleGrade {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// Of people, where they said something else.
    pub(super) human: Option<String>,
}

pub(super) struct EvidenceView {
    pub(super) worth: String,
    pub(super) class: &'static str,
    pub(super) point: String,
    pub(super) event: Option<u64>,
    pub(super) words: String,
}

pub(super) struct OverrideView {
    pub(super) field: &'static str,
    pub(super) rules: String,
    pub(super) human: String,
    pub(super) reason: String,
    pub(super) at: String,
}

impl Rules {
    pub(super) fn of(grade: &GradeRecord, overrides: &[Override]) -> Self {
        let rule_grade = |field: Field| {
            let last = overrides.iter().rev().find(|made| made.field == field);
            let no_errors = field == Field::ErrorsRecovered && grade.total_errors == 0;
            RuleGrade {
                name: name(field),
                value: if no_errors {
                    "no errors".to_owned()
                } else {
                    value(field, field.value(grade))
                },
                human: last.map(|made| value(field, made.human_value)),
            }
        };
        let marks = [
            (grade.had_repeated_errors, "repeated errors"),
            (grade.had_infinite_loop_risk, "loop risk"),
            (grade.had_user_clarification, "asked back"),
        ];
        Self {
            grades: Field::ALL.iter().copied().map(rule_grade).collect(),
            marks: marks.into_iter().filter_map(|(set, mark)| set.then_some(mark)).collect(),
            evidence: grade
                .details
                .evidence
                .iter()
                .take(SHOWN)
                .map(|evidence| EvidenceView {
                    worth: format!("{:+}", evidence.worth),
                    class: if evidence.worth < 0.0 { "against" } else { "for" },
                    point: point(evidence.point),
                    event: evidence.event,
                    words: words::line(&evidence.words),
                })
                .collect(),
            overrides: overrides
                .iter()
                .rev()
                .take(SHOWN)
                .map(|made| OverrideView {
                    field: name(made.field),
                    rules: value(made.field, made.rule_value),
                    human: value(made.field, made.human_value),
                    reason: words::line(&made.reason),
                    at: words::minute(made.made_at),
                })
                .collect(),
        }
    }
}

fn name(field: Field) -> &'static str {
    match field {
        Field::TaskCompleted => "Task completed",
        Field::ToolCallsEfficient => "Tool efficiency",
        Field::ResponseQuality => "Answer quality",
        Field::ErrorsRecovered => "Errors recovered",
    }
}

fn value(field: Field, value: u8) -> String {
    if field.is_boolean() { words::yes_no(value != 0).to_owned() } else { format!("{value} of 5") }
}

fn point(point: Point) -> String {
    let name = serde_json::to_value(point).unwrap_or_default();
    words::spaced(name.as_str().unwrap_or_default())
}
