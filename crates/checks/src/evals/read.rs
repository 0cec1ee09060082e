//! Parses the bytes of a case file: the format of its text, its dialect, and where its cases stand.
//! Independent of what a case contains.

use serde::Serialize;
use serde_json::{Map, Value};

use super::case::CaseReader;
use super::importers::{SuiteSource, front_matter, recognise};
use super::source::SourceText;
use super::{EvalsFile, FileLookup, MAX_BYTES, MAX_CASES};
use crate::yaml::YamlSchema;
use selftest_text::one_line;

/// An error that makes a file entirely unreadable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvalsReadError(pub(super) String);

/// Reads a suite. The file name distinguishes JSON, JSON Lines, YAML, TOML and Markdown; the dialect is
/// recognised by the content.
pub fn read(
    name: &str,
    bytes: &[u8],
    lookup: &dyn FileLookup,
) -> Result<EvalsFile, EvalsReadError> {
    if bytes.len() > MAX_BYTES {
        return Err(EvalsReadError(format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    let mut file = EvalsFile {
        dialect: EvalsDialect::Unknown,
        skill: None,
        cases: Vec::new(),
        routing: Vec::new(),
        missing_files: Vec::new(),
        refused: Vec::new(),
        warnings: Vec::new(),
    };
    let text = std::str::from_utf8(bytes).map_err(|_| EvalsReadError("not UTF-8".to_owned()))?;
    // The JSON parser rejects a byte order mark.
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => {
            file.warnings.push("begins with a byte order mark".to_owned());
            rest
        }
        None => text,
    };
    if let Some(why) = lfs_pointer(text) {
        return Err(EvalsReadError(why.to_owned()));
    }
    let parsed = parse(name, text, &mut file)?;
    let is_lines = TextFormat::of(name) == TextFormat::JsonLines;
    let source = SuiteSource { name, whole: text, text: &parsed, is_lines };
    let entry = recognise(&source);
    // What a plain word means depends on the program that the file is for.
    let parsed = match entry.yaml {
        Some(schema) if schema != YamlSchema::V1_2 && TextFormat::of(name) == TextFormat::Yaml => {
            SourceText::yaml("", text, schema, 0)?
        }
        _ => parsed,
    };
    file.dialect = entry.dialect;
    let mut reader = CaseReader::new(&mut file, lookup);
    (entry.read)(&SuiteSource { name, whole: text, text: &parsed, is_lines }, &mut reader);
    reader.warn_about_all();
    file.warnings.extend(parsed.unread_warnings());
    if file.cases.is_empty() && file.routing.is_empty() {
        file.warnings.push("there is nothing to run in it".to_owned());
    }
    Ok(file)
}

/// Returns why a text is no suite, if it only stands for one in Git.
pub(super) fn lfs_pointer(text: &str) -> Option<&'static str> {
    text.starts_with("version https://git-lfs.github.com/spec/")
        .then_some("it is a pointer of Git LFS, `git lfs pull` fetches the file")
}

/// Returns true if a YAML file is a suite of another program.
pub fn is_foreign(name: &str, text: &str) -> bool {
    let Ok(parsed) = SourceText::yaml("", text, YamlSchema::V1_2, 0) else { return false };
    let source = SuiteSource { name, whole: text, text: &parsed, is_lines: false };
    recognise(&source).dialect != EvalsDialect::Evals
}

/// The format of a file, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextFormat {
    Json,
    JsonLines,
    Yaml,
    Toml,
    Markdown,
}

impl TextFormat {
    fn of(name: &str) -> Self {
        let extension = name.rsplit('.').next().unwrap_or_default().to_lowercase();
        match extension.as_str() {
            "jsonl" | "ndjson" => Self::JsonLines,
            "yaml" | "yml" => Self::Yaml,
            "toml" => Self::Toml,
            "md" => Self::Markdown,
            _ => Self::Json,
        }
    }
}

fn parse(name: &str, text: &str, file: &mut EvalsFile) -> Result<SourceText, EvalsReadError> {
    Ok(match TextFormat::of(name) {
        TextFormat::Json => SourceText::parsed("", parse_json(text, file)?, text),
        TextFormat::Yaml => SourceText::yaml("", text, YamlSchema::V1_2, 0)?,
        TextFormat::Markdown => front_matter("", text)?.0,
        TextFormat::Toml => {
            let value = toml::from_str(text).map_err(|error| {
                EvalsReadError(format!("not TOML: {}", one_line(error.message(), 200)))
            })?;
            SourceText::toml(value, text)
        }
        // Lines that are not JSON are refused one by one by the importer.
        TextFormat::JsonLines => {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let values =
                lines.take(MAX_CASES + 1).filter_map(|line| serde_json::from_str(line).ok());
            SourceText::parsed("", Value::Array(values.collect()), "")
        }
    })
}

/// Parses JSON, tolerating comments and trailing commas if necessary.
fn parse_json(text: &str, file: &mut EvalsFile) -> Result<Value, EvalsReadError> {
    match serde_json::from_str(text) {
        Ok(document) => Ok(document),
        Err(error) => {
            let Ok(document) = serde_json::from_str(&without_comments(text)) else {
                return Err(EvalsReadError(format!(
                    "not JSON: {}",
                    one_line(&error.to_string(), 200)
                )));
            };
            file.warnings
                .push("comments or commas too many: not JSON for other programs".to_owned());
            Ok(document)
        }
    }
}

/// Removes `//` and `/* */` comments outside of strings, and trailing commas.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut in_string = false;
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            // An escaped quote does not end the string.
            ('\\', Some(_)) if in_string => {
                kept.push(c);
                kept.extend(rest.next());
            }
            ('"', _) => {
                in_string = !in_string;
                kept.push(c);
            }
            ('/', Some('/')) if !in_string => while rest.next_if(|&c| c != '\n').is_some() {},
            ('/', Some('*')) if !in_string => {
                rest.next();
                let mut last = ' ';
                for c in rest.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
                // A space keeps the tokens around the comment apart.
                kept.push(' ');
            }
            (']' | '}', _) if !in_string => {
                let end = kept.trim_end().len();
                if kept[..end].ends_with(',') {
                    kept.truncate(end - 1);
                }
                kept.push(c);
            }
            _ => kept.push(c),
        }
    }
    kept
}

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
    let has_none = || items.iter().any(|item| item.get("expected").is_some_and(Value::is_null));
    !items.is_empty() && (items.iter().all(is_trigger) || items.iter().all(is_routed) && has_none())
}
