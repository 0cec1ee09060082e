//! Dialects: the location of the cases in a document. Independent of what a case contains.

use serde::Serialize;
use serde_json::{Map, Value};

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
pub(super) const DEMAND_KEYS: [&str; 21] = [
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
    "expected_calls",
    "expected_script",
    "tests",
    "validation",
    "graders",
];
/// Keys of multi-message conversations.
pub(super) const FLOW_KEYS: [&str; 4] = ["query_flow", "messages", "turns", "conversation"];

/// Locates the lists of cases in a document. A value that is not a list counts as empty.
pub(super) fn locate(document: &Value) -> (EvalsDialect, Vec<&Value>) {
    match document {
        Value::Array(items) if is_trigger_list(items) => {
            (EvalsDialect::Trigger, items.iter().collect())
        }
        Value::Array(items) => (EvalsDialect::Array, items.iter().collect()),
        Value::Object(members) => locate_in_object(document, members),
        _ => (EvalsDialect::Unknown, Vec::new()),
    }
}

fn locate_in_object<'a>(
    document: &'a Value,
    members: &'a Map<String, Value>,
) -> (EvalsDialect, Vec<&'a Value>) {
    let keys = [
        ("evals", EvalsDialect::Evals),
        ("cases", EvalsDialect::Cases),
        ("test_cases", EvalsDialect::TestCases),
        ("tests", EvalsDialect::Tests),
    ];
    // promptfoo shares the key `tests` with other formats, so look at what is next to it.
    let is_promptfoo = members.contains_key("prompts") || members.contains_key("providers");
    for (key, dialect) in keys {
        let Some(items) = members.get(key).and_then(Value::as_array) else { continue };
        let dialect = match dialect {
            EvalsDialect::Tests
                if is_promptfoo || items.iter().any(|item| item.get("assert").is_some()) =>
            {
                EvalsDialect::Promptfoo
            }
            _ if is_trigger_list(items) => EvalsDialect::Trigger,
            dialect => dialect,
        };
        return (dialect, items.iter().collect());
    }
    if is_promptfoo && members.contains_key("tests") {
        return (EvalsDialect::Promptfoo, Vec::new());
    }
    if let Some(rounds) = members.get("iterations").and_then(Value::as_array) {
        let lists = rounds.iter().filter_map(|round| {
            ["evals", "cases", "tests"].iter().find_map(|key| round.get(key)?.as_array())
        });
        return (EvalsDialect::Iterations, lists.flatten().collect());
    }
    let is_trigger = ["queries", "should_trigger", "should_not_trigger"]
        .iter()
        .any(|key| members.get(*key).is_some_and(Value::is_array));
    if is_trigger {
        return (EvalsDialect::Trigger, vec![document]);
    }
    if PROMPT_KEYS.iter().chain(&FLOW_KEYS).any(|key| members.contains_key(*key)) {
        return (EvalsDialect::Case, vec![document]);
    }
    (EvalsDialect::Unknown, Vec::new())
}

/// Returns true if each item is a prompt whose only demand is about triggering the skill.
fn is_trigger_list(items: &[Value]) -> bool {
    let is_trigger = |item: &Value| {
        item.get("should_trigger").is_some_and(Value::is_boolean)
            && !DEMAND_KEYS.iter().any(|key| item.get(*key).is_some())
    };
    !items.is_empty() && items.iter().all(is_trigger)
}
