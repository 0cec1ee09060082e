//! The dialects of suites, and how each is recognised: by its keys, and by where its cases stand.

use serde::Serialize;
use serde_json::{Map, Value};

use super::source::member;

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
pub(super) const PROMPT_KEYS: [&str; 10] = [
    "prompt",
    "input",
    "question",
    "query",
    "user_request",
    "brief",
    "task",
    "request",
    "user_prompt",
    "user_message",
];

/// Keys of demands.
pub(super) const DEMAND_KEYS: [&str; 36] = [
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
    "must_do",
    "must_not_do",
    "must_avoid",
    "forbidden",
    "forbidden_behavior",
    "failure_conditions",
    "failure_modes",
    "banned_behavior",
    "banned_behaviors",
    "prohibited_behaviors",
];
/// Keys of the lists of cases in a document.
pub(super) const LIST_KEYS: [&str; 6] =
    ["evals", "cases", "test_cases", "tests", "iterations", "queries"];
/// Keys of lists of prompts that should load a skill.
pub(super) const LOADING_KEYS: [&str; 5] =
    ["should_trigger", "should_activate", "should", "positive", "positives"];
/// Keys of lists of prompts that should not.
pub(super) const OTHER_KEYS: [&str; 7] = [
    "should_not_trigger",
    "should_not_activate",
    "should_not",
    "negative",
    "negatives",
    "near",
    "near_misses",
];
/// Keys of the skill that a prompt should load: a name, a list of names, or null for none.
pub(super) const SKILL_KEYS: [&str; 5] =
    ["expected_skill", "expected_skills", "expect_selected", "expected", "expect"];
/// Keys of whether a prompt should load the skill.
pub(super) const TRIGGER_KEYS: [&str; 5] =
    ["should_trigger", "should_activate", "positive", "expected_trigger", "trigger"];
/// Keys of the skills that a prompt must not load.
pub(super) const OTHER_SKILL_KEYS: [&str; 5] = [
    "unexpected_skills",
    "expect_not_selected",
    "must_not_invoke",
    "forbidden_skills",
    "skills_not_expected",
];
/// Keys of multi-message conversations.
pub(super) const FLOW_KEYS: [&str; 4] = ["query_flow", "messages", "turns", "conversation"];

/// A case with its JSON Pointer.
type LocatedCase<'a> = (String, &'a Value);

/// Returns true for the name of a file about the loading of skills.
pub(super) fn is_routing_file(name: &str) -> bool {
    matches!(
        name.replace('_', "-").as_str(),
        "trigger-evals.json"
            | "trigger-eval.json"
            | "triggers.json"
            | "routing.json"
            | "routing-evals.json"
    )
}

/// Locates the lists of cases in the document of a file of this name. A value that is not a list counts
/// as empty.
pub(super) fn locate<'v>(name: &str, document: &'v Value) -> (EvalsDialect, Vec<LocatedCase<'v>>) {
    let is_routing = is_routing_file(name);
    match document {
        Value::Array(items) if is_trigger_list(items, is_routing) || is_group_list(items) => {
            (EvalsDialect::Trigger, located("", items))
        }
        Value::Array(items) => (EvalsDialect::Array, located("", items)),
        Value::Object(members) => locate_in_object(document, members, is_routing),
        _ => (EvalsDialect::Unknown, Vec::new()),
    }
}

fn located<'a>(pointer: &str, items: &'a [Value]) -> Vec<LocatedCase<'a>> {
    items.iter().enumerate().map(|(at, item)| (format!("{pointer}/{at}"), item)).collect()
}

fn locate_in_object<'a>(
    document: &'a Value,
    members: &'a Map<String, Value>,
    is_routing: bool,
) -> (EvalsDialect, Vec<LocatedCase<'a>>) {
    let keys = [
        ("evals", EvalsDialect::Evals),
        ("cases", EvalsDialect::Cases),
        ("test_cases", EvalsDialect::TestCases),
        ("tests", EvalsDialect::Tests),
    ];
    for (key, dialect) in keys {
        let Some(items) = members.get(key).and_then(Value::as_array) else { continue };
        let is_trigger = is_trigger_list(items, is_routing) || is_group_list(items);
        let dialect = if is_trigger { EvalsDialect::Trigger } else { dialect };
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
    let is_list = |key: &str| member(members, key).is_some_and(|(_, value)| value.is_array());
    // The other keys are words of many other files.
    let certain = ["queries", "should_trigger", "should_not_trigger", "should_activate"];
    if certain.into_iter().any(is_list) || is_routing && is_group(document) {
        return (EvalsDialect::Trigger, vec![(String::new(), document)]);
    }
    // Groups by the name of the skill, perhaps beside remarks, or below a key of their own.
    let below = members.get("skills").and_then(Value::as_object);
    for (pointer, members) in [("", Some(members)), ("/skills", below)] {
        let groups = || members.into_iter().flatten().filter(|(_, value)| !value.is_string());
        if groups().next().is_some() && groups().all(|(_, value)| is_group(value)) {
            let groups = groups().map(|(name, group)| (crate::yaml::join(pointer, name), group));
            return (EvalsDialect::Trigger, groups.collect());
        }
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

/// Returns true for a mapping of nothing but lists of prompts, of which some should load a skill.
fn is_group(value: &Value) -> bool {
    let Some(members) = value.as_object() else { return false };
    let is_prompts = |value: &Value| {
        let is_prompt =
            |item: &Value| item.is_string() || item.get("prompt").or(item.get("query")).is_some();
        value.as_array().is_some_and(|items| items.iter().all(is_prompt))
    };
    let has = |keys: &[&str]| {
        keys.iter().any(|key| member(members, key).is_some_and(|(_, value)| is_prompts(value)))
    };
    let is_known = |(key, value): (&String, &Value)| {
        let lists = || LOADING_KEYS.iter().chain(&OTHER_KEYS);
        value.is_string() || lists().any(|it| member(members, it).is_some_and(|(k, _)| k == key))
    };
    (has(&LOADING_KEYS) || has(&OTHER_KEYS)) && members.iter().all(is_known)
}

/// Returns true for a word in the place of a skill that stands for no skill.
pub(super) fn is_no_skill(name: &str) -> bool {
    matches!(
        name.to_lowercase().as_str(),
        "none" | "null" | "no_skill" | "no-skill" | "nothing" | "-"
    )
}

/// Returns whether a word in the place of a skill says that one should be loaded.
pub(super) fn loads(value: &Value) -> Option<bool> {
    match value.as_str()?.to_lowercase().replace(['-', ' '], "_").as_str() {
        "trigger" | "triggers" | "should_trigger" | "activate" | "activates" => Some(true),
        "no_trigger" | "not_trigger" | "should_not_trigger" | "no_activate" | "not_activate"
        | "skip" => Some(false),
        _ => None,
    }
}

/// Returns true if each item is a skill with lists of prompts.
fn is_group_list(items: &[Value]) -> bool {
    let has_skill = |item: &Value| item.get("skill").or(item.get("skill_name")).is_some();
    !items.is_empty() && items.iter().all(|item| has_skill(item) && is_group(item))
}

/// Returns true if each item is a prompt whose only demand is about loading a skill. `is_routing` is
/// true if the name of the file says so.
fn is_trigger_list(items: &[Value], is_routing: bool) -> bool {
    let is_name = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '/'))
    };
    let names_skill = |value: &Value| match value {
        Value::Array(names) => names.iter().all(|name| name.as_str().is_some_and(is_name)),
        other => other.is_null() || other.as_str().is_some_and(is_name),
    };
    // True if one of these keys says what is expected, and no other key demands anything.
    let says = |item: &Value, keys: &[&str], fits: &dyn Fn(&Value) -> bool| {
        let Some(members) = item.as_object() else { return false };
        let Some((key, value)) = keys.iter().find_map(|key| member(members, key)) else {
            return false;
        };
        let demands = DEMAND_KEYS.iter().filter_map(|key| member(members, key));
        fits(value) && demands.filter(|(demand, _)| *demand != key).count() == 0
    };
    let is_trigger = |item: &Value| says(item, &["should_trigger"], &Value::is_boolean);
    let is_routed = |item: &Value| says(item, &["expected"], &names_skill);
    let is_word =
        |item: &Value| says(item, &["expected", "expect"], &|value| loads(value).is_some());
    // `expected` is also a key of reference answers, and may be one word. A null makes the
    // difference, or the name of the file.
    let has_none = || items.iter().any(|item| item.get("expected").is_some_and(Value::is_null));
    !items.is_empty()
        && (items.iter().all(is_trigger)
            || items.iter().all(is_word)
            || items.iter().all(is_routed) && (is_routing || has_none())
            || is_routing && items.iter().all(|item| says(item, &SKILL_KEYS, &names_skill))
            || is_routing && items.iter().all(|item| says(item, &TRIGGER_KEYS, &Value::is_boolean)))
}

/// Returns why a text is no suite, if it only stands for one in Git.
pub(super) fn lfs_pointer(text: &str) -> Option<&'static str> {
    text.starts_with("version https://git-lfs.github.com/spec/")
        .then_some("it is a pointer of Git LFS, `git lfs pull` fetches the file")
}
