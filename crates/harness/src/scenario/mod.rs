//! Generates cases from scenarios, with or without a generator model.
//!
//! Independent of how a case is executed or judged. Choices are seeded and stable across versions of
//! the program.

pub mod example;
pub mod generate;
pub mod ground;
pub mod rejection;
pub mod settled;
pub mod template;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use ground::SourcePassage;
use selftest_checks::check::{Check, CheckKind, CheckPattern, CountBounds};
use selftest_checks::scenario::{CaseGrounds, Scenario, TaskStatus};
use selftest_models::DEFAULT_THINK_TOKENS;
use selftest_models::name::ModelName;

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
        // Its template would ask for the wrong kind of answer.
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

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// Three lines.
    ThreeLines,
    /// A list with this number of items.
    Bullets(usize),
    /// A table with two columns.
    Table,
    /// A number and nothing else.
    Number,
    /// One sentence.
    Sentence,
    /// Yes or no, with a reason.
    YesNo,
}

impl AnswerForm {
    /// The forms for questions about a text, used by scenarios without a fixed form.
    pub const OPEN: &'static [Self] = &[
        Self::ThreeLines,
        Self::Bullets(2),
        Self::Bullets(3),
        Self::Table,
        Self::Number,
        Self::Sentence,
        Self::YesNo,
    ];

    /// Returns the form as part of a request: `Summarise it in exactly three lines.`
    pub fn phrase(self) -> String {
        match self {
            Self::ThreeLines => "in exactly three lines".to_owned(),
            Self::Bullets(count) => format!("as a bullet list of {count} items"),
            Self::Table => "as a table of two columns".to_owned(),
            Self::Number => "with the number only".to_owned(),
            Self::Sentence => "in one sentence".to_owned(),
            Self::YesNo => "with yes or no and the reason".to_owned(),
        }
    }

    /// Returns the form as a separate sentence.
    pub fn instruction(self) -> String {
        format!("Answer {}.", self.phrase())
    }

    /// Returns the criterion for answers of this form.
    pub fn expectation(self) -> String {
        match self {
            Self::ThreeLines => "The answer has exactly three lines.".to_owned(),
            Self::Bullets(count) => format!("The answer is a bullet list of {count} items."),
            Self::Table => "The answer is a table of two columns.".to_owned(),
            Self::Number => "The answer is a number alone.".to_owned(),
            Self::Sentence => "The answer is one sentence.".to_owned(),
            Self::YesNo => "The answer says yes or no and gives a reason.".to_owned(),
        }
    }

    /// Returns the criterion as a check, if it can be decided by counting. An introductory line
    /// that ends in a colon is allowed before a list or a table.
    pub fn check(self) -> Option<Check> {
        const LEAD: &str = r"\A(?:[^\n]*:\s*\n\s*)?";
        let pattern = |source: String| CheckPattern::new(&source).ok().map(CheckKind::Regex);
        let kind = match self {
            Self::ThreeLines => Some(CheckKind::Lines(CountBounds::exactly(3))),
            Self::Bullets(count) => {
                let item = r"[ \t]*(?:[-*•+]|\d+[.)])[ \t]+\S[^\n]*(?:\n+[ \t]+\S[^\n]*)*";
                pattern(format!(r"{LEAD}{item}(?:\n+{item}){{{}}}\s*\z", count.saturating_sub(1)))
            }
            Self::Table => {
                let row = r"[ \t]*\|[^|\n]+\|[^|\n]+\|[ \t]*";
                let rule = r"[ \t]*\|[ \t:-]+\|[ \t:-]+\|[ \t]*";
                pattern(format!(r"{LEAD}{row}\n{rule}(?:\n{row})+\s*\z"))
            }
            Self::Number => pattern(r"\A\W*\d[\d.,:' ]*[\p{L}%°]{0,12}\W*\z".to_owned()),
            Self::Sentence | Self::YesNo => None,
        };
        kind.map(|kind| Check { name: Some(self.expectation()), ..Check::new(kind) })
    }

    /// Replaces the expectation of this form with a check, if there is one.
    pub fn replace_with_check(self, grounds: &mut CaseGrounds) {
        let words = self.expectation();
        let place = grounds.expectations.iter().position(|expectation| *expectation == words);
        if let (Some(place), Some(check)) = (place, self.check()) {
            grounds.expectations.remove(place);
            grounds.checks.push(check);
        }
    }

    /// Returns true if a request already asks for this form.
    pub fn is_requested_in(self, request: &str) -> bool {
        let request = selftest_text::words::fold(request);
        let says = |signs: &[&str]| signs.iter().any(|sign| request.contains(sign));
        match self {
            Self::ThreeLines => says(&["three lines", "3 lines", "three-line", "3-line"]),
            Self::Bullets(count) => {
                let word = ["zero", "one", "two", "three", "four"].get(count).unwrap_or(&"several");
                says(&["bullet", "list"]) && says(&[&count.to_string(), word])
            }
            Self::Table => says(&["table"]),
            Self::Number => says(&["number only", "a number", "only the number", "only a number"]),
            Self::Sentence => says(&["one sentence", "single sentence", "a sentence"]),
            Self::YesNo => says(&["yes or no", "yes/no"]),
        }
    }

    /// Returns true if the request can be answered in this form.
    pub fn fits(self, request: &str) -> bool {
        let request = selftest_text::words::fold(request);
        let says = |signs: &[&str]| signs.iter().any(|sign| request.contains(sign));
        match self {
            Self::Number => {
                says(&["how many", "how much", "how long", "which number", "number of"])
            }
            Self::YesNo => {
                let first = request.split_whitespace().next().unwrap_or_default();
                let is_question = ["is", "are", "does", "do", "can", "must", "may", "has", "will"]
                    .contains(&first);
                is_question || says(&["yes or no", "whether "])
            }
            Self::ThreeLines | Self::Bullets(_) | Self::Table | Self::Sentence => true,
        }
    }
}

/// Performs one step of `SplitMix64` (Steele, Lea, Flood 2014). Its values never change between
/// versions.
pub(crate) const fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A seeded sequence of choices.
#[derive(Debug, Clone)]
pub struct SeededDraw {
    state: u64,
}

impl SeededDraw {
    /// Creates the sequence for this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: mix(seed) }
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.state = mix(self.state);
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from((self.state >> 11) % bound).unwrap_or(0)
    }

    /// Picks one item, or `None` from an empty slice.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = self.below(of.len());
        of.get(at)
    }

    /// Draws up to `count` items without replacement, in random order.
    pub fn sample<T: Clone>(&mut self, of: &[T], count: usize) -> Vec<T> {
        let mut left = of.to_vec();
        let mut drawn = Vec::new();
        while drawn.len() < count && !left.is_empty() {
            drawn.push(left.remove(self.below(left.len())));
        }
        drawn
    }
}

/// The `generator` section: the model that writes the prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GeneratorSettings {
    /// The model; `auto`, `provider/model`, or a bare name that `auto` resolves.
    #[schemars(length(min = 1), extend("examples" = ModelName::examples()))]
    pub model: String,
    /// Sampling temperature.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: f64,
    /// Maximum number of tokens of a generated prompt with its hints.
    #[schemars(range(min = 16, max = 32768))]
    pub max_tokens: u32,
    /// Maximum number of attempts to get a usable prompt; after that, a template is filled with an
    /// excerpt of the project.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: u32,
    /// Set to let a thinking model think before the prompt. Default: it must not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<bool>,
    /// Maximum number of thinking tokens, in addition to those of the prompt. Only used if `think`
    /// is true.
    #[schemars(range(min = 16, max = 131_072))]
    pub think_tokens: u32,
}

impl Default for GeneratorSettings {
    fn default() -> Self {
        Self {
            model: "auto".to_owned(),
            temperature: 0.7,
            max_tokens: 500,
            max_attempts: 3,
            think: None,
            think_tokens: DEFAULT_THINK_TOKENS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ground::built_in;
    use selftest_checks::check::{self, CheckObservation, CheckOutcome};

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

    #[test]
    fn forms_are_counted() {
        let held = |form: AnswerForm, output: &str| {
            let seen = CheckObservation { output, ..CheckObservation::default() };
            check::decide(&form.check().unwrap(), &seen).outcome == CheckOutcome::Held
        };
        for (form, good, bad) in [
            (AnswerForm::ThreeLines, "a\nb\n\nc\n", "a\nb\nc\nd"),
            (AnswerForm::Bullets(2), "- a\n- b", "- a\n- b\n- c"),
            (AnswerForm::Bullets(2), "Two things:\n\n1. a\n   more\n2. b\n", "a and b"),
            (AnswerForm::Bullets(3), "* a\n* b\n* c", "Here it is.\n* a\n* b\n* c"),
            (AnswerForm::Table, "| A | B |\n|---|:--|\n| 1 | 2 |\n", "| A | B |\n| 1 | 2 |"),
            (AnswerForm::Number, "7,700", "It is 7700 of them"),
            (AnswerForm::Number, "30 s.", "seven"),
        ] {
            assert!(held(form, good), "{form:?} {good:?}");
            assert!(!held(form, bad), "{form:?} {bad:?}");
        }
        assert!(AnswerForm::Sentence.check().is_none());
    }

    #[test]
    fn a_form_knows_its_own_words() {
        for form in AnswerForm::OPEN {
            assert!(form.is_requested_in(&form.instruction()), "{form:?}");
            assert!(!form.is_requested_in("What is it for?"), "{form:?}");
            assert!(form.expectation().starts_with("The answer "), "{form:?}");
        }
        assert!(AnswerForm::ThreeLines.is_requested_in("Give me a 3-line summary."));
        assert!(!AnswerForm::Bullets(3).is_requested_in("Give me a bullet list of two items."));
    }

    #[test]
    fn a_number_answers_questions_for_numbers() {
        assert!(AnswerForm::Number.fits("How many lines has it?"));
        assert!(!AnswerForm::Number.fits("What is it for?"));
        assert!(AnswerForm::YesNo.fits("Does the server listen on port 80?"));
        assert!(!AnswerForm::YesNo.fits("Which port is it?"));
        assert!(AnswerForm::Sentence.fits("What is it for?"));
    }

    #[test]
    fn published_values_of_splitmix64() {
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix(0x9E37_79B9_7F4A_7C15), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn a_seed_decides_everything() {
        let row = |seed| {
            let mut draw = SeededDraw::new(seed);
            (0..20).map(|_| draw.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(row(7), row(7));
        assert_ne!(row(7), row(8));
        assert_eq!(SeededDraw::new(1).below(0), 0);
        assert_eq!(SeededDraw::new(1).pick::<u8>(&[]), None);
        let mut sample = SeededDraw::new(3).sample(&[1, 2, 3], 9);
        sample.sort_unstable();
        assert_eq!(sample, [1, 2, 3]);
    }
}
