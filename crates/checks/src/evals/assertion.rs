//! Parses one assertion of a case into a check, a sentence for the judge, or something unknown.

use serde_json::{Map, Value, json};

use super::wording::{is_fragment, is_negative, negates_itself};
use super::{CaseDemand, DemandDecider, ShellLine, ShellUse};
use crate::check;
use crate::sentence::{SentenceContext, check_in};
use selftest_text::escape::terminal;

/// Maximum length of a sentence for the judge, in characters.
const MAX_TEXT: usize = 2_000;
/// Words of a sentence that has only a name: fewer may be the value of an option.
const MIN_WORDS: usize = 4;
/// Prefix of a sentence that must not hold.
const NEGATION: &str = "This does not hold: ";

/// Keys of an object that merely wraps a sentence, most likely first.
const SENTENCE_KEYS: [&str; 14] = [
    "text",
    "description",
    "criterion",
    "criteria",
    "expectation",
    "assertion",
    "statement",
    "check",
    "rubric",
    "question",
    "value",
    "expected",
    "name",
    "id",
];

/// Result of parsing an assertion.
#[derive(Debug, Default)]
pub(super) struct ParsedAssertions {
    pub(super) demands: Vec<CaseDemand>,
    /// Shell lines that typed assertions would run.
    pub(super) shell: Vec<ShellLine>,
    pub(super) warnings: Vec<String>,
    /// What the case says around its sentences.
    pub(super) context: SentenceContext,
    /// Place of the value that is being read.
    pub(super) pointer: String,
    /// Places of keys that are not read.
    pub(super) unread: Vec<String>,
    /// True for a list of failures, whose sentences say what went wrong.
    pub(super) is_failure: bool,
}

/// Keys of an assertion that are read, beside those of our own checks.
const READ_KEYS: [&str; 60] = [
    "arguments",
    "args",
    "input",
    "parameters",
    "type",
    "kind",
    "assertion_type",
    "negate",
    "text",
    "description",
    "criterion",
    "criteria",
    "expectation",
    "assertion",
    "statement",
    "check",
    "rubric",
    "question",
    "value",
    "expected",
    "name",
    "id",
    "cmd",
    "command",
    "run",
    "script",
    "expect_exit",
    "exit_code",
    "expected_exit_code",
    "expect_substring",
    "expect_output",
    "contains",
    "timeout_seconds",
    "timeout",
    "pattern",
    "regex",
    "phrase",
    "substring",
    "string",
    "keyword",
    "values",
    "phrases",
    "items",
    "path",
    "file",
    "file_path",
    "filename",
    "target",
    "tool",
    "tool_name",
    "schema",
    "length",
    "min",
    "max",
    "min_length",
    "max_length",
    "count",
    "times",
    "paths",
    "files",
];

/// Parses the value of a demand key: text, an object, or a list of either. `wanted` is false if the
/// demand must not hold.
pub(super) fn read(value: &Value, wanted: bool, found: &mut ParsedAssertions) {
    match value {
        Value::String(text) => sentence(text, wanted, found),
        Value::Array(items) => {
            let around = found.pointer.clone();
            for (at, item) in items.iter().enumerate() {
                found.pointer = format!("{around}/{at}");
                read(item, wanted, found);
            }
            // Demands after the list are again at the place of the list.
            found.pointer = around;
        }
        Value::Object(members) => {
            note_unread(members, found);
            object(members, wanted, found);
        }
        // A key without a value demands nothing.
        Value::Null => {}
        other => unknown(&other.to_string(), "it is neither text nor an object", found),
    }
}

/// Records the keys of an assertion that nothing reads. A mapping of lists has keys of its own.
fn note_unread(members: &Map<String, Value>, found: &mut ParsedAssertions) {
    let is_sentence = |value: &Value| {
        value.as_str().is_some_and(|text| text.split_whitespace().count() >= MIN_WORDS)
    };
    // Their keys are read as names of demands rather than as keys of one.
    if members.values().all(Value::is_array)
        || members.iter().all(|(key, it)| !READ_KEYS.contains(&key.as_str()) && is_sentence(it))
    {
        return;
    }
    let is_read = |key: &str| {
        READ_KEYS.contains(&key)
            || check::CheckKind::NAMES.contains(&key)
            || key.contains("contains")
            || key.contains("matches")
    };
    for key in members.keys().filter(|key| !is_read(key)) {
        // A result that was filled in is not part of the demand.
        if key != "passed" && key != "evidence" {
            found.unread.push(crate::yaml::join(&found.pointer, key));
        }
    }
}

fn sentence(text: &str, wanted: bool, found: &mut ParsedAssertions) {
    let text = text.trim();
    if text.is_empty() {
        found.warnings.push("an empty assertion".to_owned());
        return;
    }
    if is_fragment(text) {
        let why =
            "it is no sentence: write `contains: …` or `regex: …` if the answer should have it";
        return unknown(text, why, found);
    }
    // "Does not edit the tests" in a list of what must not be is no demand to edit them.
    let wanted = if !wanted && !found.is_failure && negates_itself(text) {
        let words = terminal(text, 60);
        found.warnings.push(format!("\"{words}\" is read as it stands, not as its opposite"));
        true
    } else {
        wanted
    };
    // From explicit to vague: a shorthand check, a sentence with a certain meaning, the judge.
    if let Some(check) = parse_shorthand(text) {
        push_check(text, &check, wanted, DemandDecider::Typed, found);
    } else if let Some(check) = check_in(text, &found.context) {
        let check = if wanted { check } else { check.negated() };
        found
            .demands
            .push(CaseDemand { text: shown(text, wanted), decider: DemandDecider::Rule(check) });
    } else {
        found.demands.push(CaseDemand { text: shown(text, wanted), decider: DemandDecider::Judge });
    }
}

fn shown(text: &str, wanted: bool) -> String {
    let text: String = text.chars().take(MAX_TEXT).collect();
    if wanted { text } else { format!("{NEGATION}{text}") }
}

/// Parses shorthand checks such as `contains: port 80`.
fn parse_shorthand(text: &str) -> Option<Value> {
    let (kind, value) = text.split_once(':')?;
    let value = value.trim();
    // Only known kinds: most sentences with a colon are just sentences.
    let is_kind = ["contains", "not_contains", "regex", "not_regex", "file_exists"].contains(&kind);
    (is_kind && !value.is_empty()).then(|| json!({ kind: value }))
}

/// Adds an explicit check, or records why it is unusable.
fn push_check(
    text: &str,
    value: &Value,
    wanted: bool,
    decider: fn(check::Check) -> DemandDecider,
    found: &mut ParsedAssertions,
) {
    match check::read(value) {
        Ok(check) => {
            let check = if wanted { check } else { check.negated() };
            found.demands.push(CaseDemand { text: shown(text, wanted), decider: decider(check) });
        }
        Err(faults) => {
            let why: Vec<String> = faults.into_iter().map(|fault| fault.message).collect();
            unknown(text, &why.join("; "), found);
        }
    }
}

fn unknown(text: &str, why: &str, found: &mut ParsedAssertions) {
    // It stays a demand, so that the case cannot pass without it.
    let (text, why) = (shown(text, true), terminal(why, 300));
    found.demands.push(CaseDemand { text, decider: DemandDecider::Unknown { why } });
}

fn object(members: &Map<String, Value>, wanted: bool, found: &mut ParsedAssertions) {
    let given =
        ["type", "kind", "assertion_type"].iter().find_map(|key| members.get(*key)?.as_str());
    // `negate` inside a negative list cancels out.
    let wanted = wanted != is_true(members, "negate");
    if let Some(given) = given {
        let kind = given.trim().to_lowercase().replace(['-', ' '], "_");
        return typed(&kind, given, members, wanted, found);
    }
    if let Some(check) = combined_check(members) {
        return push_check(&label(members, "check"), &check, wanted, DemandDecider::Typed, found);
    }
    // Before our own checks: `command` is the name of one, with a mapping as its value.
    if let Some(line) = text_of(members, &["cmd", "command"]) {
        return add_command(line, members, wanted, found);
    }
    // The object may already be one of our own checks.
    let has_kind = members.keys().any(|key| check::CheckKind::NAMES.contains(&key.as_str()));
    if let Some(check) =
        has_kind.then(|| check::read(&Value::Object(members.clone())).ok()).flatten()
    {
        let text = check.name.clone().unwrap_or_else(|| label_of(&check));
        let check = if wanted { check } else { check.negated() };
        found
            .demands
            .push(CaseDemand { text: shown(&text, wanted), decider: DemandDecider::Typed(check) });
        return;
    }
    // An object of lists: `{"must": […], "must_not": […]}`.
    if !members.is_empty() && members.values().all(Value::is_array) {
        for (key, list) in members {
            let was_failure = found.is_failure;
            found.is_failure |= key.starts_with("fail");
            // A negative key turns around what is wanted, so that two of them cancel out.
            read(list, wanted != is_negative(key), found);
            found.is_failure = was_failure;
        }
        return;
    }
    // `{"spawns": "Five agents are spawned", …}`: sentences by their names.
    let is_named = |(key, value): (&String, &Value)| {
        !READ_KEYS.contains(&key.as_str())
            && value.as_str().is_some_and(|it| it.split_whitespace().count() >= MIN_WORDS)
    };
    if !members.is_empty() && members.iter().all(is_named) {
        found.warnings.push(format!(
            "{} read as demands",
            match members.len() {
                1 => "1 named sentence is".to_owned(),
                several => format!("{several} named sentences are"),
            }
        ));
        for (key, text) in members {
            let text = text.as_str().unwrap_or_default();
            sentence(text, wanted != is_negative(key), found);
        }
        return;
    }
    match wrapped_sentence(members) {
        Some(text) => sentence(text, wanted, found),
        None => unknown(
            &Value::Object(members.clone()).to_string(),
            "it has neither a type nor a sentence",
            found,
        ),
    }
}

fn is_true(members: &Map<String, Value>, key: &str) -> bool {
    members.get(key).and_then(Value::as_bool) == Some(true)
}

/// Returns the wrapped sentence. Text without spaces is usually the name of a neighbouring one.
fn wrapped_sentence(members: &Map<String, Value>) -> Option<&str> {
    let texts = || SENTENCE_KEYS.iter().filter_map(|key| members.get(*key)?.as_str());
    let texts = || texts().map(str::trim).filter(|text| !text.is_empty());
    texts()
        // Some languages, such as Chinese, are written without spaces.
        .find(|text| text.contains(char::is_whitespace) || !text.is_ascii())
        .or_else(|| texts().next())
}

fn text_of<'a>(members: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| members.get(*key)?.as_str()).filter(|text| !text.is_empty())
}

/// Returns readable text for a typed assertion.
fn label(members: &Map<String, Value>, kind: &str) -> String {
    let keys = ["text", "description", "name", "id"];
    let text = keys.iter().find_map(|key| members.get(*key)?.as_str());
    // A single word is an ID rather than a description.
    let text = text.filter(|text| text.contains(' '));
    text.map_or_else(
        || match summarize_values(members) {
            values if values.is_empty() => kind.to_owned(),
            values => format!("{kind}: {values}"),
        },
        ToOwned::to_owned,
    )
}

/// Joins the values of an assertion on one line.
fn summarize_values(members: &Map<String, Value>) -> String {
    let rest = members.iter().filter(|(key, _)| {
        !matches!(
            key.as_str(),
            "type" | "kind" | "id" | "name" | "description" | "text" | "weight" | "passed"
        )
    });
    let rest: Vec<String> = rest
        .map(|(_, value)| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned))
        .collect();
    rest.join(", ")
}

fn label_of(check: &check::Check) -> String {
    let value = check.kind.value();
    let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    format!("{}: {value}", check.kind.name())
}

/// Parses `check: {contains_any, contains_all, not_contains, …}`, all of which must hold.
fn combined_check(members: &Map<String, Value>) -> Option<Value> {
    let parts = match members.get("check") {
        Some(Value::Object(parts)) => parts,
        _ if members
            .keys()
            .any(|key| matches!(key.as_str(), "contains_any" | "contains_all" | "matches_any")) =>
        {
            members
        }
        _ => return None,
    };
    let mut checks = Vec::new();
    for (key, value) in parts {
        let each = |kind: &str| -> Vec<Value> {
            list(value).into_iter().map(|item| json!({ kind: item })).collect()
        };
        match key.as_str() {
            // Every key of the mapping is demanded, each in its own way.
            "contains_any" => checks.push(json!({"any": each("contains")})),
            "contains_all" | "contains" => checks.extend(each("contains")),
            "not_contains" => checks.extend(each("not_contains")),
            "matches_any" => checks.push(json!({"any": each("regex")})),
            "matches_all" | "matches" => checks.extend(each("regex")),
            "not_matches" => checks.extend(each("not_regex")),
            "files_exist" => checks.extend(each("file_exists")),
            "file_contains" => checks.extend(list(value).into_iter().map(
                |item| json!({"file_contains": {"path": item["path"], "text": item["contains"]}}),
            )),
            // Metadata of the assertion.
            "description" | "name" | "id" | "text" | "weight" | "passed" => {}
            // Pass it on as a kind, so that an unknown one is named in the error.
            other => checks.push(json!({ other: value })),
        }
    }
    Some(json!({ "all": checks }))
}

/// Returns the items of a list, or a single value as a list.
fn list(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        other => vec![other],
    }
}

/// Returns true for types that specify nothing; the accompanying sentence is what is meant.
fn is_vague_type(kind: &str) -> bool {
    kind.ends_with("_check")
        || kind.contains("llm")
        || kind.contains("judge")
        || matches!(
            kind,
            "qualitative"
                | "boolean"
                | "output"
                | "rubric"
                | "semantic"
                | "behavior"
                | "behaviour"
                | "behavioral"
                | "manual"
                | "quality"
                | "expectation"
                | "assertion"
                | "text"
                | "custom"
                | "model_graded"
        )
}

fn typed(
    kind: &str,
    given: &str,
    members: &Map<String, Value>,
    wanted: bool,
    found: &mut ParsedAssertions,
) {
    if is_vague_type(kind) {
        return match wrapped_sentence(members) {
            Some(text) => sentence(text, wanted, found),
            None => unknown(given, "it has no sentence", found),
        };
    }
    match check_value(kind, members) {
        AssertionMeaning::Check(value) => {
            let text = label(members, given);
            // The existence of a file proves nothing about, say, tests that pass.
            if kind == "file_exists" && text.contains(' ') && is_about_other_topic(&text, &value) {
                let shown = terminal(&text, 100);
                found
                    .warnings
                    .push(format!("`file_exists` is described as \"{shown}\": left to the judge"));
                return sentence(&text, wanted, found);
            }
            push_check(&text, &value, wanted, DemandDecider::Typed, found);
        }
        AssertionMeaning::Sentence => match wrapped_sentence(members) {
            Some(text) => sentence(text, wanted, found),
            None => unknown(given, "it has neither a value nor a sentence", found),
        },
        AssertionMeaning::Command(line) => add_command(line, members, wanted, found),
        AssertionMeaning::Unknown => {
            let why = format!("the type `{}` is not known", terminal(given, 60));
            unknown(&label(members, given), &why, found);
        }
    }
}

/// Returns true if the sentence next to `file_exists` is about something other than the file.
fn is_about_other_topic(text: &str, value: &Value) -> bool {
    let path = value["file_exists"].as_str().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let lower = text.to_lowercase();
    !text.contains(name)
        && !["exist", "creat", "file", "writ", "saved"].iter().any(|word| lower.contains(word))
}

/// Keys of the arguments of a tool.
const ARGUMENT_KEYS: [&str; 4] = ["arguments", "args", "input", "parameters"];

/// Keys of how often a tool is called.
const LIMIT_KEYS: [&str; 4] = ["count", "times", "min", "max"];

/// Returns the arguments that a call states, as they are written. Many files fill the key of a call
/// without arguments with an empty value.
pub(super) fn stated_arguments(members: &Map<String, Value>) -> Option<&Value> {
    ARGUMENT_KEYS.iter().filter_map(|key| members.get(*key)).find(|value| match value {
        Value::Null => false,
        Value::String(text) => !matches!(text.trim(), "" | "null" | "[]" | "{}"),
        Value::Array(items) => !items.is_empty(),
        Value::Object(items) => !items.is_empty(),
        _ => true,
    })
}

/// Returns the arguments of a tool, which may be stated as JSON text.
pub(super) fn arguments_of(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(arguments) => Some(arguments.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

/// Returns the call of a tool that an assertion states, with its arguments and how often. `None` if the
/// arguments cannot be read.
fn tool_call(tool: &str, members: &Map<String, Value>) -> Option<Value> {
    let mut call = json!({ "name": tool });
    if let Some(arguments) = stated_arguments(members) {
        let arguments = arguments_of(arguments)?;
        if !arguments.is_empty() {
            call["arguments"] = Value::Object(arguments);
        }
    }
    let exactly = ["count", "times"].iter().find_map(|key| members.get(*key)?.as_u64());
    for key in ["min", "max"] {
        if let Some(limit) = exactly.or_else(|| members.get(key)?.as_u64()) {
            call[key] = json!(limit);
        }
    }
    Some(if call.as_object().is_some_and(|call| call.len() == 1) { json!(tool) } else { call })
}

/// Returns true if the limits of a call allow none: `count: 0`, or at most 0 and no minimum above it.
fn excludes_calls(members: &Map<String, Value>) -> bool {
    let limit = |key: &str| members.get(key).and_then(Value::as_u64);
    match limit("count").or_else(|| limit("times")) {
        Some(count) => count == 0,
        None => limit("max") == Some(0) && limit("min").unwrap_or(0) == 0,
    }
}

/// Returns the check that a call does not happen. Limits of 0 say the same once more: taken as limits of
/// the call, they would be inverted with it.
fn excluded_call(tool: &str, members: &Map<String, Value>) -> Option<Value> {
    let mut members = members.clone();
    members.retain(|key, value| !LIMIT_KEYS.contains(&key.as_str()) || value.as_u64() != Some(0));
    let call = tool_call(tool, &members)?;
    Some(if call.is_string() {
        json!({ "tool_not_called": call })
    } else {
        // Another call of the tool is not forbidden.
        json!({"not": { "tool_called": call }})
    })
}

/// The meaning of a typed assertion.
enum AssertionMeaning<'a> {
    Check(Value),
    /// The accompanying sentence says more than the type.
    Sentence,
    Command(&'a str),
    Unknown,
}

fn check_value<'a>(kind: &str, members: &'a Map<String, Value>) -> AssertionMeaning<'a> {
    const LITERAL: [&str; 7] =
        ["value", "phrase", "substring", "expected", "contains", "string", "keyword"];
    const PATTERN: [&str; 4] = ["pattern", "regex", "value", "expected"];
    let literal = || text_of(members, &LITERAL);
    let pattern = || text_of(members, &PATTERN);
    let values =
        || ["values", "value", "phrases", "items"].iter().find_map(|key| members.get(*key));
    let number = |keys: &[&str]| keys.iter().find_map(|key| members.get(*key)?.as_u64());
    let path = || text_of(members, &["path", "file", "file_path", "filename", "value", "target"]);
    let tool = || text_of(members, &["tool", "tool_name", "value", "name"]);
    let of = |kind: &str, value: Option<&str>| match value {
        Some(value) => AssertionMeaning::Check(json!({ kind: value })),
        None => AssertionMeaning::Sentence,
    };
    let each = |kind: &str, combined: &str| match values() {
        Some(values) => {
            let checks: Vec<Value> =
                list(values).into_iter().map(|one| json!({ kind: one })).collect();
            AssertionMeaning::Check(json!({ combined: checks }))
        }
        None => AssertionMeaning::Sentence,
    };
    let bounds = |kind: &str, bound: &str, count: Option<u64>| match count {
        Some(count) => AssertionMeaning::Check(json!({ kind: { bound: count } })),
        None => AssertionMeaning::Sentence,
    };
    match kind {
        "contains" | "content_contains" | "contains_phrase" | "output_contains" | "includes"
        | "contains_text" | "string_contains" | "contains_string" => {
            match (literal(), text_of(members, &["pattern", "regex"])) {
                (Some(text), _) => of("contains", Some(text)),
                // Some authors put a pattern into an assertion named for literal text.
                (None, Some(pattern)) => of("regex", Some(pattern)),
                (None, None) if values().is_some() => each("contains", "all"),
                (None, None) => AssertionMeaning::Sentence,
            }
        }
        "not_contains"
        | "content_not_contains"
        | "output_not_contains"
        | "excludes"
        | "not_contains_phrase"
        | "does_not_contain" => match (literal(), text_of(members, &["pattern", "regex"])) {
            (Some(text), _) => of("not_contains", Some(text)),
            (None, Some(pattern)) => of("not_regex", Some(pattern)),
            (None, None) if values().is_some() => each("not_contains", "all"),
            (None, None) => AssertionMeaning::Sentence,
        },
        // Our own checks have no option to ignore case, so this becomes a pattern.
        "icontains" | "contains_ignore_case" => match literal() {
            Some(text) => {
                AssertionMeaning::Check(json!({"regex": format!("(?i){}", regex::escape(text))}))
            }
            None => AssertionMeaning::Sentence,
        },
        "contains_any" => each("contains", "any"),
        "contains_all" => each("contains", "all"),
        "matches_any" | "regex_any" => each("regex", "any"),
        "regex" | "content_regex" | "contains_pattern" | "output_regex" | "matches"
        | "regex_match" | "pattern" | "output_matches" | "matches_regex" => of("regex", pattern()),
        "not_regex" | "not_contains_pattern" | "content_not_regex" | "not_matches" => {
            of("not_regex", pattern())
        }
        "transcript_regex" | "transcript_matches" => of("transcript_regex", pattern()),
        "transcript_contains" => match literal() {
            Some(text) => AssertionMeaning::Check(json!({"transcript_regex": regex::escape(text)})),
            None => AssertionMeaning::Sentence,
        },
        "transcript_not_regex" | "not_transcript_regex" => match pattern() {
            Some(pattern) => AssertionMeaning::Check(json!({"not": {"transcript_regex": pattern}})),
            None => AssertionMeaning::Sentence,
        },
        "equals" | "exact" | "exact_match" => {
            match members.get("value").or_else(|| members.get("expected")) {
                Some(Value::String(text)) => AssertionMeaning::Check(json!({"equals": text})),
                _ => AssertionMeaning::Sentence,
            }
        }
        "starts_with" => match literal() {
            Some(text) => {
                // Leading whitespace is ignored, as it is by `equals`.
                AssertionMeaning::Check(json!({"regex": format!("\\A\\s*{}", regex::escape(text))}))
            }
            None => AssertionMeaning::Sentence,
        },
        "ends_with" => match literal() {
            Some(text) => {
                AssertionMeaning::Check(json!({"regex": format!("{}\\s*\\z", regex::escape(text))}))
            }
            None => AssertionMeaning::Sentence,
        },
        "is_json" | "valid_json" | "json_valid" => AssertionMeaning::Check(json!({"json": {}})),
        "json_schema" => match members.get("schema").or_else(|| members.get("value")) {
            Some(schema) => AssertionMeaning::Check(json!({"json": {"schema": schema}})),
            None => AssertionMeaning::Sentence,
        },
        "min_length" => {
            bounds("characters", "min", number(&["value", "length", "min", "min_length", "count"]))
        }
        "max_length" => {
            bounds("characters", "max", number(&["value", "length", "max", "max_length", "count"]))
        }
        "min_words" => bounds("words", "min", number(&["value", "min", "count"])),
        "max_words" => bounds("words", "max", number(&["value", "max", "count"])),
        "min_occurrences" | "max_occurrences" => {
            let bound = if kind.starts_with("min") { "min" } else { "max" };
            let text = text_of(members, &["value", "phrase", "text", "substring"]);
            match (text, number(&["count", bound, "times"])) {
                (Some(text), Some(count)) => {
                    AssertionMeaning::Check(json!({"occurrences": {"of": text, bound: count}}))
                }
                _ => AssertionMeaning::Sentence,
            }
        }
        "file_exists" | "files_exist" | "artifact_exists" => {
            match members.get("paths").or_else(|| members.get("files")) {
                Some(paths) => {
                    let checks: Vec<Value> =
                        list(paths).into_iter().map(|one| json!({"file_exists": one})).collect();
                    AssertionMeaning::Check(json!({ "all": checks }))
                }
                None => of("file_exists", path()),
            }
        }
        "file_created" => of("file_created", path()),
        "file_deleted" => of("file_deleted", path()),
        "file_modified" | "file_changed" => of("file_changed", path()),
        "file_unchanged" | "file_not_modified" => of("file_unchanged", path()),
        "file_not_exists" | "file_absent" | "not_file_exists" => match path() {
            Some(path) => AssertionMeaning::Check(json!({"not": {"file_exists": path}})),
            None => AssertionMeaning::Sentence,
        },
        "file_contains" | "file_not_contains" => {
            let path = text_of(members, &["path", "file", "file_path", "filename"]);
            let text = text_of(members, &["contains", "value", "phrase", "substring"]);
            match (path, text) {
                (Some(path), Some(text)) => {
                    let check = json!({"file_contains": {"path": path, "text": text}});
                    AssertionMeaning::Check(if kind == "file_contains" {
                        check
                    } else {
                        json!({ "not": check })
                    })
                }
                _ => AssertionMeaning::Sentence,
            }
        }
        "tool_called" | "tool_used" | "tool_call" | "uses_tool" | "calls_tool" => {
            let check = tool().and_then(|tool| {
                if excludes_calls(members) {
                    excluded_call(tool, members)
                } else {
                    Some(json!({ "tool_called": tool_call(tool, members)? }))
                }
            });
            check.map_or(AssertionMeaning::Sentence, AssertionMeaning::Check)
        }
        "tool_not_called" | "tool_not_used" | "not_tool_called" => {
            let check = tool().and_then(|tool| excluded_call(tool, members));
            check.map_or(AssertionMeaning::Sentence, AssertionMeaning::Check)
        }
        "cmd" | "command" | "shell" | "script" | "bash" | "exec" => {
            match text_of(members, &["cmd", "command", "run", "script", "value"]) {
                Some(line) => AssertionMeaning::Command(line),
                None => AssertionMeaning::Sentence,
            }
        }
        _ => AssertionMeaning::Unknown,
    }
}

/// Parses `cmd` with `expect_exit` and `expect_substring`: an untrusted shell line.
fn add_command(
    line: &str,
    members: &Map<String, Value>,
    wanted: bool,
    found: &mut ParsedAssertions,
) {
    let exit = ["expect_exit", "exit_code", "expected_exit_code"]
        .iter()
        .find_map(|key| members.get(*key).filter(|code| !code.is_null()));
    // `non-zero` must not become the default, its opposite.
    let Some(exit) = exit.map_or(Some(0), Value::as_u64) else {
        return unknown(&label(members, "cmd"), "its exit code is not a number", found);
    };
    // Only recorded here. Whether it may run is decided when the file becomes a suite.
    let mut check = json!({"run": ["sh", "-c", line], "exit_code": exit});
    if let Some(text) = text_of(members, &["expect_substring", "expect_output", "contains"]) {
        check["prints"] = json!(text);
    }
    if let Some(seconds) =
        ["timeout_seconds", "timeout"].iter().find_map(|key| members.get(*key)?.as_f64())
    {
        check["timeout_seconds"] = json!(seconds);
    }
    found.shell.push(ShellLine::new(ShellUse::Check, "cmd", line));
    push_check(
        &label(members, "cmd"),
        &json!({ "command": check }),
        wanted,
        DemandDecider::Typed,
        found,
    );
}
