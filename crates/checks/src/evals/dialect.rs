//! The dialects of suites, and how each is recognised: by its keys, and by where its cases stand.

use serde::Serialize;
use serde_json::{Map, Value};

/// An error that makes a file entirely unreadable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvalsReadError(pub(super) String);

/// The structure of a case file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum EvalsDialect {
    /// `{"evals": […]}`, as written by skill-creator.
    Evals,
    /// `{"cases": […]}`.
    Cases,
    /// `{"tests": […]}`.
    Tests,
    /// `{"test_cases": […]}`.
    TestCases,
    /// `{"iterations": [{"evals": […]}]}`.
    Iterations,
    /// A list of cases.
    Array,
    /// A single case.
    Case,
    /// Prompts that should or should not trigger the skill.
    Trigger,
    /// A promptfoo configuration.
    Promptfoo,
    /// Inspect samples, one JSON object per line.
    Inspect,
    /// Scenarios of dotnet/skills, or stimuli of Vally.
    Dotnet,
    /// A suite of skill-up, or one of its cases.
    SkillUp,
    /// A case of `claude plugin eval`.
    ClaudePlugin,
    /// A task of `coder_eval`.
    #[strum(serialize = "uipath")]
    #[serde(rename = "uipath")]
    UiPath,
    /// A task of Harbor.
    Harbor,
    /// A scenario of Tessl.
    Tessl,
    /// Samples of OpenAI Evals.
    #[strum(serialize = "openai_evals")]
    #[serde(rename = "openai_evals")]
    OpenAiEvals,
    /// Goldens of `DeepEval`.
    #[strum(serialize = "deepeval")]
    #[serde(rename = "deepeval")]
    DeepEval,
    /// A selftest suite.
    Suite,
    /// Unknown; nothing can be run.
    Unknown,
}

impl EvalsDialect {
    /// Returns the machine-readable name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Keys of a prompt, most frequent first.
pub(super) const PROMPT_KEYS: [&str; 7] =
    ["prompt", "input", "question", "query", "user_request", "brief", "task"];

/// Keys of demands.
pub(super) const DEMAND_KEYS: [&str; 26] = [
    "expectations",
    "assertions",
    "checks",
    "expected_behavior",
    "expected_behaviors",
    "expected_behaviour",
    "scorers",
    "criteria",
    "success_criteria",
    "must_have",
    "must_not_have",
    "anti_expectations",
    "expect",
    "fail",
    "deterministic_assertions",
    "rubric",
    "evaluation_criteria",
    "expected_calls",
    "expected_script",
    "tests",
    "validation",
    "graders",
    "pass_if",
    "fail_if",
    "required_output_sections",
    "forbidden_behaviors",
];
/// Keys of the lists of cases in a document.
pub(super) const LIST_KEYS: [&str; 8] = [
    "evals",
    "cases",
    "test_cases",
    "tests",
    "iterations",
    "queries",
    "should_trigger",
    "should_not_trigger",
];
/// Keys of multi-message conversations.
pub(super) const FLOW_KEYS: [&str; 4] = ["query_flow", "messages", "turns", "conversation"];

/// A case with its JSON Pointer.
type LocatedCase<'a> = (String, &'a Value);

/// Locates the lists of cases in a document. A value that is not a list counts as empty.
pub(super) fn locate(document: &Value) -> (EvalsDialect, Vec<LocatedCase<'_>>) {
    match document {
        Value::Array(items) if is_trigger_list(items) => {
            (EvalsDialect::Trigger, located("", items))
        }
        Value::Array(items) => (EvalsDialect::Array, located("", items)),
        Value::Object(members) => locate_in_object(document, members),
        _ => (EvalsDialect::Unknown, Vec::new()),
    }
}

fn located<'a>(pointer: &str, items: &'a [Value]) -> Vec<LocatedCase<'a>> {
    items.iter().enumerate().map(|(at, item)| (format!("{pointer}/{at}"), item)).collect()
}

fn locate_in_object<'a>(
    document: &'a Value,
    members: &'a Map<String, Value>,
) -> (EvalsDialect, Vec<LocatedCase<'a>>) {
    let keys = [
        ("evals", EvalsDialect::Evals),
        ("cases", EvalsDialect::Cases),
        ("test_cases", EvalsDialect::TestCases),
        ("tests", EvalsDialect::Tests),
    ];
    for (key, dialect) in keys {
        let Some(items) = members.get(key).and_then(Value::as_array) else { continue };
        let dialect = if is_trigger_list(items) { EvalsDialect::Trigger } else { dialect };
        return (dialect, located(&format!("/{key}"), items));
    }
    if let Some(rounds) = members.get("iterations").and_then(Value::as_array) {
        let lists = rounds.iter().enumerate().filter_map(|(at, round)| {
            ["evals", "cases", "tests"].iter().find_map(|key| {
                Some(located(&format!("/iterations/{at}/{key}"), round.get(key)?.as_array()?))
            })
        });
        return (EvalsDialect::Iterations, lists.flatten().collect());
    }
    let is_trigger = ["queries", "should_trigger", "should_not_trigger"]
        .iter()
        .any(|key| members.get(*key).is_some_and(Value::is_array));
    if is_trigger {
        return (EvalsDialect::Trigger, vec![(String::new(), document)]);
    }
    if PROMPT_KEYS.iter().chain(&FLOW_KEYS).any(|key| members.contains_key(*key)) {
        return (EvalsDialect::Case, vec![(String::new(), document)]);
    }
    (EvalsDialect::Unknown, Vec::new())
}

/// Returns true for a configuration of promptfoo, which shares the key `tests` with other formats.
pub(super) fn is_promptfoo(document: &Value) -> bool {
    let has = |key: &str| document.get(key).is_some();
    let Some(tests) = document.get("tests") else { return false };
    let cases = ["evals", "cases", "test_cases"];
    let others = cases.iter().any(|key| document.get(*key).is_some_and(Value::is_array));
    let asserts = |item: &Value| item.get("assert").is_some();
    !others
        && (has("prompts")
            || has("providers")
            || tests.as_array().is_some_and(|all| all.iter().any(asserts)))
}

/// Returns true if each item is a prompt whose only demand is about loading a skill.
fn is_trigger_list(items: &[Value]) -> bool {
    let no_demand = |item: &Value| !DEMAND_KEYS.iter().any(|key| item.get(*key).is_some());
    let is_trigger =
        |item: &Value| item.get("should_trigger").is_some_and(Value::is_boolean) && no_demand(item);
    // `expected` names the skill to which a prompt should be routed, or null.
    let is_name = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '/'))
    };
    let is_routed = |item: &Value| {
        let expected = item.get("expected");
        expected.is_some_and(|it| it.is_null() || it.as_str().is_some_and(is_name))
            && no_demand(item)
    };
    // `expected` is also a key of reference answers, and may be one word. A null makes the
    // difference.
    let has_none = || items.iter().any(|item| item.get("expected").is_some_and(Value::is_null));
    !items.is_empty() && (items.iter().all(is_trigger) || items.iter().all(is_routed) && has_none())
}

/// Returns why a text is no suite, if it only stands for one in Git.
pub(super) fn lfs_pointer(text: &str) -> Option<&'static str> {
    text.starts_with("version https://git-lfs.github.com/spec/")
        .then_some("it is a pointer of Git LFS, `git lfs pull` fetches the file")
}
