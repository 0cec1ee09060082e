//! Parses the bytes of a case file.

use serde_json::Value;

use super::case::CaseReader;
use super::dialect::{self, EvalsDialect};
use super::{EvalsFile, FileLookup, MAX_BYTES, MAX_CASES, RoutingCase, inspect, promptfoo};
use crate::yaml_fault::YamlFault;
use selftest_text::{escape::terminal, one_line};

/// An error that makes a file entirely unreadable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvalsReadError(pub(super) String);

/// Reads a case file. The file name distinguishes JSON, JSON Lines and YAML.
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
    let extension = name.rsplit('.').next().unwrap_or_default().to_lowercase();
    match extension.as_str() {
        "jsonl" | "ndjson" => inspect::read(text, &mut file, lookup),
        "yaml" | "yml" => {
            read_document(&parse_yaml(text)?, &mut file, lookup);
        }
        _ => {
            let document = parse(text, &mut file)?;
            read_document(&document, &mut file, lookup);
        }
    }
    if file.cases.is_empty() && file.routing.is_empty() {
        file.warnings.push("there is nothing to run in it".to_owned());
    }
    Ok(file)
}

/// Parses YAML by the core schema of YAML 1.2, as the programs do whose files these are: `NO`, `on`
/// and `Yes` are text, `007` is 7. Whole numbers keep no fraction, as in JavaScript: `1e3` is 1000.
fn parse_yaml(text: &str) -> Result<Value, EvalsReadError> {
    let max_bytes = text.len().max(1_000);
    let options = serde_yaml::options! {
        // Aliases can expand a small file to an enormous one.
        budget: serde_yaml::budget! {
            max_events: 2 * max_bytes,
            max_nodes: max_bytes,
            max_depth: 64,
            flow_nesting_limit: 64,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_total_scalar_bytes: 4 * max_bytes,
        },
        alias_limits: serde_yaml::alias_limits! {
            max_total_replayed_events: 100_000,
        },
        strict_booleans: true,
        with_snippet: false,
    };
    let mut document: Value =
        serde_yaml::from_str_with_options(text, options).map_err(|error| {
            let line = error.location().map(|location| format!("line {}: ", location.line()));
            let YamlFault { message, hint } = YamlFault::new(&error.to_string());
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            EvalsReadError(format!("not YAML: {}{message}{hint}", line.unwrap_or_default()))
        })?;
    drop_zero_fractions(&mut document);
    Ok(document)
}

/// Turns numbers without a fraction into integers. The depth is bounded by the parser.
fn drop_zero_fractions(value: &mut Value) {
    /// Above it not every whole number has a value of its own.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_zero_fractions),
        Value::Object(members) => members.values_mut().for_each(drop_zero_fractions),
        Value::Number(number) => {
            let whole = number
                .as_f64()
                .filter(|real| number.is_f64() && real.fract() == 0.0 && real.abs() < MAX_EXACT);
            if let Some(real) = whole {
                #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
                let integer = real as i64;
                *number = integer.into();
            }
        }
        _ => {}
    }
}

/// Parses JSON, tolerating comments and trailing commas if necessary.
fn parse(text: &str, file: &mut EvalsFile) -> Result<Value, EvalsReadError> {
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

fn read_document(document: &Value, file: &mut EvalsFile, lookup: &dyn FileLookup) {
    let (dialect, items) = dialect::locate(document);
    file.dialect = dialect;
    let skill = ["skill_name", "skill"].iter().find_map(|key| document.get(*key)?.as_str());
    file.skill = skill.map(ToOwned::to_owned);
    if items.len() > MAX_CASES {
        file.refused.push(format!("{} cases: more than {MAX_CASES} are not read", items.len()));
    }
    let items = items.into_iter().take(MAX_CASES);
    match dialect {
        EvalsDialect::Trigger => items.for_each(|item| trigger(item, file)),
        EvalsDialect::Promptfoo => promptfoo::read(document, file, lookup),
        _ => {
            let mut reader = CaseReader::new(file, lookup);
            for (item, position) in items.zip(1..) {
                reader.case(item, position);
            }
            reader.warn_about_ids();
        }
    }
}

/// Adds one item of a trigger set: a prompt, a list of prompts, or two lists.
fn trigger(item: &Value, file: &mut EvalsFile) {
    for (key, should_trigger) in [("should_trigger", true), ("should_not_trigger", false)] {
        for query in item.get(key).and_then(Value::as_array).into_iter().flatten() {
            let text = query.as_str().or_else(|| query_of(query)).unwrap_or_default();
            add_query(text, Some(should_trigger), file);
        }
    }
    if let Some(queries) = item.get("queries").and_then(Value::as_array) {
        for query in queries {
            trigger_query(query, file);
        }
    } else if item.get("should_trigger").is_some_and(Value::is_boolean) {
        trigger_query(item, file);
    }
}

fn trigger_query(query: &Value, file: &mut EvalsFile) {
    let should_trigger = query.get("should_trigger").and_then(Value::as_bool);
    add_query(query_of(query).unwrap_or_default(), should_trigger, file);
}

fn query_of(query: &Value) -> Option<&str> {
    dialect::PROMPT_KEYS.iter().chain(&["text"]).find_map(|key| query.get(*key)?.as_str())
}

fn add_query(query: &str, should_trigger: Option<bool>, file: &mut EvalsFile) {
    match should_trigger {
        Some(should_trigger) if !query.trim().is_empty() => {
            let query = query.to_owned();
            file.routing.push(RoutingCase { query, should_trigger, skills: Vec::new() });
        }
        Some(_) => file.refused.push("a query without words".to_owned()),
        None => {
            let words =
                format!("\"{}\" does not say whether it should trigger", terminal(query, 80));
            file.refused.push(words);
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
