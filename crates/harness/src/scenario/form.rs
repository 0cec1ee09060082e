//! The form that a case requires of an answer. Pure.

use selftest_checks::check::{Check, CheckKind, CheckPattern, CountBounds};
use selftest_checks::scenario::CaseGrounds;

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

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_checks::check::{self, CheckObservation, CheckOutcome};

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
}
