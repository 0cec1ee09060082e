//! Type of work in a session (docs/spec/session-grades.md#task-types), inferred from its first
//! request, or from the work done if the request is not informative.

mod words;
mod work;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use words::RequestHint;
pub use work::TaskWork;

/// The specified task types.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum TaskType {
    /// Reviewing others' code.
    CodeReview,
    /// Finding and fixing bugs.
    Debugging,
    /// Adding new behaviour.
    FeatureImpl,
    /// Restructuring code without changing its behaviour.
    Refactoring,
    /// Writing documentation.
    Documentation,
    /// Writing or running tests.
    Testing,
    /// Finding information.
    Research,
    /// Releasing and deploying.
    Deployment,
    /// Processing data.
    DataAnalysis,
    /// Setting up machines and services.
    Infrastructure,
    /// Anything else.
    General,
}

selftest_text::named!(TaskType);

/// The specified words with their inflections, on word boundaries. `PR` must be in capitals, since
/// `pr` is part of too many names.
const PATTERNS: [(TaskType, &str); 10] = [
    (TaskType::CodeReview, r"(?i:\breview(s|ed|ing|ers?)?\b)|\bPRs?\b"),
    (TaskType::Debugging, r"(?i)\b(debug(s|ged|ging|ger)?|fix(es|ed|ing)?|troubleshoot(s|ing)?)\b"),
    (
        TaskType::FeatureImpl,
        r"(?i)\b(implement(s|ed|ing|ation)?|add(s|ed|ing)?( \w+){0,3} features?|build(s|ing)?|built)\b",
    ),
    (
        TaskType::Refactoring,
        r"(?i)\b(refactor(s|ed|ing)?|clean(s|ed|ing)?[ -]?up|reorgani[sz](e[sd]?|ing))\b",
    ),
    (TaskType::Documentation, r"(?i)\b(document(s|ed|ing|ation)?|readme|docstrings?)\b"),
    (TaskType::Testing, r"(?i)\b(tests?|tested|testing|pytest|unit[ -]tests?)\b"),
    (
        TaskType::Research,
        r"(?i)\b(research(es|ed|ing)?|investigat(e[sd]?|ing|ion)|look(s|ed|ing)? up)\b",
    ),
    (
        TaskType::Deployment,
        r"(?i)\b(deploy(s|ed|ing|ments?)?|releas(e[sd]?|ing)|publish(es|ed|ing)?)\b",
    ),
    (
        TaskType::DataAnalysis,
        r"(?i)\b(analy[sz](e[sd]?|ing)( \w+){0,3} data|data analysis|process(es|ed|ing)?( \w+){0,2} files?|pars(e[sd]?|ing))\b",
    ),
    (TaskType::Infrastructure, r"(?i)\b(servers?|docker|kubernetes)\b"),
];

impl TaskType {
    /// Infers the type from a request alone.
    pub fn from_request(request: &str) -> Self {
        Self::from_task(request, &TaskWork::default())
    }

    /// Infers the type of a task.
    ///
    /// The words of the request decide. The work done decides if they are not informative, and
    /// corrects the type if they match only cues outside the specification's table.
    pub fn from_task(request: &str, work: &TaskWork) -> Self {
        match words::classify_request(request) {
            RequestHint::TableWord(task_type) => task_type,
            // The cues are about software development, so they say nothing about other work.
            RequestHint::Cues(_) if work.is_non_developer() => TaskType::General,
            RequestHint::Cues(task_type) => work.correct_type(task_type),
            RequestHint::Unclear => work.task_type(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_specified_word() {
        for (words, expected) in [
            (&["review this", "a code review please", "look at my PR"][..], TaskType::CodeReview),
            (&["debug it", "fix the bug", "Troubleshoot this"], TaskType::Debugging),
            (&["implement X", "add feature Y", "build a page"], TaskType::FeatureImpl),
            (&["refactor it", "clean up the code", "reorganize files"], TaskType::Refactoring),
            (&["document it", "write a README", "a docstring"], TaskType::Documentation),
            (&["test it", "run pytest", "one unit test"], TaskType::Testing),
            (&["research this", "Investigate why", "look up the name"], TaskType::Research),
            (&["deploy it", "make a release", "publish it"], TaskType::Deployment),
            (&["analyze data", "process file x", "parse this"], TaskType::DataAnalysis),
            (&["the server", "use docker", "kubernetes"], TaskType::Infrastructure),
            (&["hello", "", "thank you"], TaskType::General),
        ] {
            for word in words {
                assert_eq!(TaskType::from_request(word), expected, "{word}");
            }
        }
    }

    #[test]
    fn words_are_whole_and_cues_weigh_rows() {
        for word in ["the latest contest", "prefix the path", "sprint", "rebuilding", "attest"] {
            assert_eq!(TaskType::from_request(word), TaskType::General, "{word}");
        }
        for (request, expected) in [
            ("fix the failing test on the server", TaskType::Debugging),
            ("what is the capital of France?", TaskType::Research),
            ("it still doesn't work", TaskType::Debugging),
            ("please add margin below the details", TaskType::FeatureImpl),
            ("commit the work, push the pr", TaskType::Deployment),
            ("/w/review/test.py @docs/fix.md `pytest`", TaskType::General),
            ("# Problem Statement\nWe can license this under MIT", TaskType::Documentation),
            ("```\nfix the bug\n``` rename it", TaskType::Refactoring),
        ] {
            assert_eq!(TaskType::from_request(request), expected, "{request}");
        }
        let long = format!("{} fix it", "word ".repeat(1000));
        assert_eq!(TaskType::from_request(&long), TaskType::General);
    }

    #[test]
    fn names_are_those_of_serde() {
        for &task_type in TaskType::ALL {
            assert_eq!(serde_json::to_value(task_type).unwrap(), task_type.name());
            assert_eq!(TaskType::from_name(task_type.name()), Some(task_type));
        }
    }
}
