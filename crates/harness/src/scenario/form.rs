//! The form that a case asks an answer to have. Pure; judges no answer.

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Three lines.
    ThreeLines,
    /// A list of so many items.
    Bullets(usize),
    /// A table of two columns.
    Table,
    /// A number and nothing else.
    Number,
    /// One sentence.
    Sentence,
    /// Yes or no, and why.
    YesNo,
}

impl Form {
    /// The forms of questions about a text, for scenarios that leave the form open.
    pub const OPEN: &'static [Self] = &[
        Self::ThreeLines,
        Self::Bullets(2),
        Self::Bullets(3),
        Self::Table,
        Self::Number,
        Self::Sentence,
        Self::YesNo,
    ];

    /// As part of a request: `Summarise it in exactly three lines.`
    pub fn words(self) -> String {
        match self {
            Self::ThreeLines => "in exactly three lines".to_owned(),
            Self::Bullets(count) => format!("as a bullet list of {count} items"),
            Self::Table => "as a table of two columns".to_owned(),
            Self::Number => "with the number only".to_owned(),
            Self::Sentence => "in one sentence".to_owned(),
            Self::YesNo => "with yes or no and the reason".to_owned(),
        }
    }

    /// As a sentence of its own.
    pub fn instruction(self) -> String {
        format!("Answer {}.", self.words())
    }

    /// The criterion of an answer of this form.
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

    /// Whether a request asks for this form already.
    pub fn is_asked_in(self, request: &str) -> bool {
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

    /// Whether what a request asks can be answered in this form.
    pub fn suits(self, request: &str) -> bool {
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

    #[test]
    fn a_form_knows_its_own_words() {
        for form in Form::OPEN {
            assert!(form.is_asked_in(&form.instruction()), "{form:?}");
            assert!(!form.is_asked_in("What is it for?"), "{form:?}");
            assert!(form.expectation().starts_with("The answer "), "{form:?}");
        }
        assert!(Form::ThreeLines.is_asked_in("Give me a 3-line summary."));
        assert!(!Form::Bullets(3).is_asked_in("Give me a bullet list of two items."));
    }

    #[test]
    fn a_number_answers_questions_for_numbers() {
        assert!(Form::Number.suits("How many lines has it?"));
        assert!(!Form::Number.suits("What is it for?"));
        assert!(Form::YesNo.suits("Does the server listen on port 80?"));
        assert!(!Form::YesNo.suits("Which port is it?"));
        assert!(Form::Sentence.suits("What is it for?"));
    }
}
