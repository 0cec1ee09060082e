//! The kinds of scenarios that the harness has special support for. Pure.

use super::draw::SeededDraw;
use super::form::AnswerForm;
use super::ground::SourcePassage;
use selftest_checks::scenario::{Scenario, TaskStatus};

/// The kind of a scenario, as far as the harness recognises it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScenarioKind {
    /// A request that does not say what it is about.
    Ambiguous,
    /// A summary of three lines.
    Summary,
    /// A question that one file answers, and only that file may be used.
    Evidence,
    /// A proposal for a better structure, which depends on the user's preference.
    Reorganization,
    /// Statements of which two contradict each other.
    Contradiction,
    /// Known only by its description and its expected status.
    Other(TaskStatus),
}

impl ScenarioKind {
    /// Determines the kind by the specified ids. A scenario with such an id but a different
    /// expected status is treated as a custom one.
    pub fn of(scenario: &Scenario) -> Self {
        let (kind, status) = match scenario.id.as_str() {
            "ambiguous_request" => (Self::Ambiguous, TaskStatus::AwaitingResponse),
            "clear_summary" => (Self::Summary, TaskStatus::Complete),
            "evidence_restriction" => (Self::Evidence, TaskStatus::Complete),
            "docs_reorganization" => (Self::Reorganization, TaskStatus::AwaitingResponse),
            "contradiction_detect" => (Self::Contradiction, TaskStatus::Complete),
            _ => return Self::Other(scenario.expected_status),
        };
        if scenario.expected_status == status {
            kind
        } else {
            Self::Other(scenario.expected_status)
        }
    }

    /// Returns true if the harness builds the request itself, so that it knows the right answer.
    pub fn is_constructed(self) -> bool {
        matches!(self, Self::Ambiguous | Self::Contradiction)
    }

    /// Returns true if a request must name its file and the form of the answer.
    pub fn must_be_clear(self) -> bool {
        matches!(self, Self::Summary | Self::Evidence | Self::Other(TaskStatus::Complete))
    }

    /// Draws the form of the answer, or `None` if the answer should be a question.
    pub fn form(self, passage: &SourcePassage, draw: &mut SeededDraw) -> Option<AnswerForm> {
        match self {
            Self::Summary => Some(AnswerForm::ThreeLines),
            Self::Evidence | Self::Other(TaskStatus::Complete) => {
                let enough = |form: &AnswerForm| match form {
                    AnswerForm::Bullets(count) => passage.quotes.len() >= *count,
                    AnswerForm::ThreeLines | AnswerForm::Table => passage.quotes.len() >= 3,
                    AnswerForm::Number | AnswerForm::Sentence | AnswerForm::YesNo => true,
                };
                let open: Vec<AnswerForm> =
                    AnswerForm::OPEN.iter().copied().filter(enough).collect();
                draw.pick(&open).copied()
            }
            Self::Ambiguous | Self::Reorganization | Self::Contradiction | Self::Other(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ground::built_in;

    fn scenario(id: &str, status: &str) -> Scenario {
        let scenario =
            serde_json::json!({ "id": id, "description": "d", "expected_status": status });
        serde_json::from_value(scenario).unwrap()
    }

    #[test]
    fn the_specified_ids_have_kinds_of_their_own() {
        for (id, status, kind) in [
            ("ambiguous_request", "AWAITING_RESPONSE", ScenarioKind::Ambiguous),
            ("clear_summary", "COMPLETE", ScenarioKind::Summary),
            ("evidence_restriction", "COMPLETE", ScenarioKind::Evidence),
            ("docs_reorganization", "AWAITING_RESPONSE", ScenarioKind::Reorganization),
            ("contradiction_detect", "COMPLETE", ScenarioKind::Contradiction),
            ("clear_summary", "ERROR", ScenarioKind::Other(TaskStatus::Error)),
            ("mine", "COMPLETE", ScenarioKind::Other(TaskStatus::Complete)),
        ] {
            assert_eq!(ScenarioKind::of(&scenario(id, status)), kind, "{id}");
        }
    }

    #[test]
    fn a_summary_has_three_lines_and_a_question_no_form() {
        for seed in 0..50 {
            let mut draw = SeededDraw::new(seed);
            let passage = built_in(&mut draw);
            assert_eq!(
                ScenarioKind::Summary.form(&passage, &mut draw),
                Some(AnswerForm::ThreeLines)
            );
            assert_eq!(ScenarioKind::Ambiguous.form(&passage, &mut draw), None);
            assert!(ScenarioKind::Evidence.form(&passage, &mut draw).is_some());
        }
    }
}
