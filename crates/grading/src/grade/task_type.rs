//! The type of work of a session (docs/spec/session-grades.md#task-types), read from its first
//! request.

use std::sync::LazyLock;

use crate::english;
use regex::RegexSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// The specified task types.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum TaskType {
    /// Reading others' code.
    CodeReview,
    /// Finding and mending faults.
    Debugging,
    /// New behaviour.
    FeatureImpl,
    /// The same behaviour in better shape.
    Refactoring,
    /// Text for people.
    Documentation,
    /// Tests.
    Testing,
    /// Finding out.
    Research,
    /// Bringing it to users.
    Deployment,
    /// Working on data.
    DataAnalysis,
    /// Machines and services.
    Infrastructure,
    /// Anything else.
    General,
}

selftest_text::named!(TaskType);

/// The specified words with their inflections, on word boundaries. `PR` only in capitals: `pr` is
/// part of too many names.
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

static SET: LazyLock<RegexSet> =
    LazyLock::new(|| english::regex_set(PATTERNS.map(|(_, pattern)| pattern)));

impl TaskType {
    /// The type of a request: the first of the specification's table with a word in its first 2000
    /// bytes.
    pub fn of(request: &str) -> Self {
        let beginning = &request[..request.floor_char_boundary(2000)];
        let found = SET.matches(beginning).iter().next();
        found.and_then(|at| PATTERNS.get(at)).map_or(TaskType::General, |(found, _)| *found)
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
            (&["hello", "", "what is the capital of France?"], TaskType::General),
        ] {
            for word in words {
                assert_eq!(TaskType::of(word), expected, "{word}");
            }
        }
    }

    #[test]
    fn words_are_whole_and_the_first_row_counts() {
        for word in ["the latest contest", "prefix the path", "sprint", "rebuilding", "attest"] {
            assert_eq!(TaskType::of(word), TaskType::General, "{word}");
        }
        assert_eq!(TaskType::of("fix the failing test on the server"), TaskType::Debugging);
    }

    #[test]
    fn names_are_those_of_serde() {
        for &task_type in TaskType::ALL {
            assert_eq!(serde_json::to_value(task_type).unwrap(), task_type.name());
            assert_eq!(TaskType::from_name(task_type.name()), Some(task_type));
        }
    }
}
