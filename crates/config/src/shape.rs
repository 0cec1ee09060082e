//! Queries the schema at a place of the document: kind of value, keys and allowed words.
//!
//! Supports only the few schema keywords that `document.rs` produces.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

use super::diagnostics::ConfigFault;
use super::document::schema;
use super::{document, shape};
use selftest_schema::{Schema, SchemaError, SchemaErrorKind};

/// Kind of value expected at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Integer,
    Number,
    Boolean,
    Text,
    List,
    Mapping,
    Anything,
}

pub(super) fn kind(node: &Value) -> ValueKind {
    match node["type"].as_str() {
        Some("integer") => ValueKind::Integer,
        Some("number") => ValueKind::Number,
        Some("boolean") => ValueKind::Boolean,
        Some("string") => ValueKind::Text,
        Some("array") => ValueKind::List,
        Some("object") => ValueKind::Mapping,
        // Words that have a description each are constants in `oneOf`, which has no type.
        _ if !words(node).is_empty() => ValueKind::Text,
        _ => ValueKind::Anything,
    }
}

/// Returns the schema at a pointer.
pub(super) fn at<'a>(schema: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(schema, |node, part| {
        // `~1` is decoded before `~0`, otherwise `~01` would become `/`.
        let key = part.replace("~1", "/").replace("~0", "~");
        match kind(node) {
            ValueKind::List => node.get("items"),
            _ => node["properties"].get(&key).or_else(|| {
                node.get("additionalProperties").filter(|additional| additional.is_object())
            }),
        }
    })
}

/// Returns the allowed words at a place; empty if any text is allowed.
pub(super) fn words(node: &Value) -> Vec<&str> {
    let options = node["oneOf"].as_array().into_iter().flatten();
    let words = node["enum"].as_array().into_iter().flatten();
    options.map(|option| &option["const"]).chain(words).filter_map(Value::as_str).collect()
}

/// Returns the keys that a mapping may have.
pub(super) fn keys(node: &Value) -> Vec<&str> {
    node["properties"].as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

/// Returns pointer and schema of each scalar value of the configuration outside lists.
pub(super) fn scalars() -> &'static [(String, &'static Value)] {
    static SCALARS: LazyLock<Vec<(String, &'static Value)>> =
        LazyLock::new(|| scalars_of(schema()));
    &SCALARS
}

/// Returns pointer and schema of each scalar value outside lists.
pub(super) fn scalars_of(schema: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    collect(schema, String::new(), &mut found);
    found
}

fn collect<'a>(node: &'a Value, pointer: String, found: &mut Vec<(String, &'a Value)>) {
    match kind(node) {
        ValueKind::Mapping => {
            for (key, property) in node["properties"].as_object().into_iter().flatten() {
                collect(property, super::join(&pointer, key), found);
            }
        }
        ValueKind::List | ValueKind::Anything => {}
        _ => found.push((pointer, node)),
    }
}

/// Describes the expected value, to follow "must be".
pub(super) fn expectation(node: &Value) -> String {
    let words = words(node);
    if !words.is_empty() {
        return format!("one of {}", quoted(&words));
    }
    let number = |key: &str| node.get(key).and_then(Value::as_f64);
    let range = match (number("minimum"), number("maximum")) {
        // Only one value is allowed, such as the version of the format.
        (Some(min), Some(max)) if min >= max => return format!("{min}"),
        // The minimum weight is this small only because it must be above zero.
        (Some(min), Some(max)) if min > 0.0 && min < 1e-3 => {
            format!(" above 0 and at most {max}")
        }
        (Some(min), Some(max)) => format!(" from {min} to {max}"),
        _ => String::new(),
    };
    match kind(node) {
        ValueKind::Integer => format!("a whole number{range}"),
        ValueKind::Number => format!("a number{range}"),
        ValueKind::Boolean => "true or false".to_owned(),
        ValueKind::Text => match node["pattern"].as_str() {
            Some(pattern) => format!("text of the form `{pattern}`"),
            None if node["minLength"].is_number() => "text that is not empty".to_owned(),
            None => "text".to_owned(),
        },
        ValueKind::List => match (node["minItems"].as_u64(), node["maxItems"].as_u64()) {
            (Some(min), Some(max)) => format!("a list of {min} to {max} items"),
            (Some(_), None) => "a list that is not empty".to_owned(),
            _ => "a list".to_owned(),
        },
        ValueKind::Mapping => "a mapping".to_owned(),
        ValueKind::Anything => "a value".to_owned(),
    }
}

/// Describes a value, to follow "found".
pub(super) fn description(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => format!("`{value}`"),
        Value::Number(value) => format!("the number `{value}`"),
        Value::String(value) if value.is_empty() => "empty text".to_owned(),
        Value::String(value) => format!("the text `{}`", selftest_text::one_line(value, 60)),
        Value::Array(items) => match items.len() {
            0 => "an empty list".to_owned(),
            1 => "a list of 1 item".to_owned(),
            length => format!("a list of {length} items"),
        },
        Value::Object(_) => "a mapping".to_owned(),
    }
}

/// Formats words in code quotes, separated by commas.
pub(super) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Formats a pointer as a readable path: `scenarios[1].expected_status`.
pub(super) fn path(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let key = selftest_text::one_line(&part.replace("~1", "/").replace("~0", "~"), 60);
        // The schemas have no mapping whose keys are numbers.
        if !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit()) {
            path = format!("{path}[{key}]");
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path += &key;
        }
    }
    path
}

/// Returns the candidate closest to a misspelled word, if one is close.
pub(super) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    // A word of this length is not a typo, and computing the distance takes quadratic time.
    if word.len() > 100 {
        return None;
    }
    let lower = word.to_lowercase();
    let distance = |candidate: &str| strsim::levenshtein(&lower, &candidate.to_lowercase());
    let distances = candidates.iter().map(|&candidate| (distance(candidate), candidate));
    let (distance, candidate) = distances.min_by_key(|(distance, _)| *distance)?;
    // One typo in three letters; beyond that a suggestion would mislead more often than help.
    (distance <= (word.chars().count() / 3).max(1)).then_some(candidate)
}

/// Validator of one kind of file.
pub(super) struct DocumentValidator {
    schema: &'static Value,
    validator: Schema,
    /// Pointer and schema of each scalar value outside lists.
    scalars: Vec<(String, &'static Value)>,
    /// Name of the whole document in messages.
    whole: &'static str,
}

impl DocumentValidator {
    /// Returns the validator of the configuration.
    pub(super) fn for_config() -> &'static Self {
        static CONFIG: LazyLock<DocumentValidator> =
            LazyLock::new(|| DocumentValidator::new(document::schema(), "the configuration"));
        &CONFIG
    }

    pub(super) fn new(schema: &'static Value, whole: &'static str) -> Self {
        let validator =
            Schema::compile(schema).expect("schemars writes valid schemas, as a test shows");
        Self { schema, validator, scalars: shape::scalars_of(schema), whole }
    }

    /// Returns all schema errors of a document.
    pub(super) fn check(&self, document: &Value) -> Vec<ConfigFault> {
        let faults = self.validator.errors(document);
        // Checks have their own reader, which gives better error messages.
        let has_reader =
            |pointer: &str| pointer.contains("/checks/") || pointer.contains("/expect/");
        let faults = faults.filter(|fault| !has_reader(&fault.pointer));
        faults.flat_map(|fault| self.faults(&fault, document)).collect()
    }

    fn faults(&self, fault: &SchemaError, document: &Value) -> Vec<ConfigFault> {
        let pointer = fault.pointer.as_str();
        let node = shape::at(self.schema, pointer).unwrap_or(&Value::Null);
        match &fault.kind {
            SchemaErrorKind::UnknownKeys(keys) => {
                keys.iter().map(|key| self.unknown_key(pointer, key, node)).collect()
            }
            SchemaErrorKind::MissingKey(key) => vec![missing_key(pointer, key, node)],
            SchemaErrorKind::WrongValue => {
                let found = document.pointer(pointer).unwrap_or(&Value::Null);
                vec![self.wrong_value(pointer, found, node)]
            }
        }
    }

    fn unknown_key(&self, pointer: &str, key: &str, node: &Value) -> ConfigFault {
        let shown = selftest_text::one_line(key, 60);
        let keys = shape::keys(node);
        let suggestion = shape::nearest(key, &keys).map(ToOwned::to_owned).or_else(|| {
            // The key may belong to another section; then its full path is suggested.
            let end = super::join("", key);
            let elsewhere = self.scalars.iter().find(|(pointer, _)| pointer.ends_with(&end))?;
            Some(shape::path(&elsewhere.0))
        });
        let suggestion =
            suggestion.map_or_else(String::new, |name| format!("did you mean `{name}`? "));
        ConfigFault {
            pointer: super::join(pointer, key),
            is_at_key: true,
            message: match shape::path(pointer).as_str() {
                "" => format!("unknown key `{shown}`"),
                parent => format!("unknown key `{shown}` in `{parent}`"),
            },
            label: "not a key that is known here".to_owned(),
            hint: Some(format!("{suggestion}the keys here are {}", shape::quoted(&keys))),
            first: None,
        }
    }

    fn wrong_value(&self, pointer: &str, found: &Value, node: &Value) -> ConfigFault {
        let name = match shape::path(pointer).as_str() {
            "" => self.whole.to_owned(),
            path => format!("`{path}`"),
        };
        ConfigFault {
            pointer: pointer.to_owned(),
            is_at_key: false,
            message: format!("{name} must be {}", shape::expectation(node)),
            label: format!("found {}", shape::description(found)),
            hint: as_words(pointer, found).or_else(|| hint(found, node, self.is_required(pointer))),
            first: None,
        }
    }

    /// Returns true if the enclosing mapping requires this value.
    fn is_required(&self, pointer: &str) -> bool {
        let around = pointer.rsplit_once('/').and_then(|(parent, key)| {
            Some((shape::at(self.schema, parent)?["required"].as_array()?, key))
        });
        around.is_some_and(|(required, key)| required.iter().any(|known| known == key))
    }
}

fn missing_key(pointer: &str, key: &str, node: &Value) -> ConfigFault {
    let wanted = &node["properties"][key];
    let about = wanted["description"].as_str().map(|text| selftest_text::one_line(text, 200));
    ConfigFault {
        pointer: pointer.to_owned(),
        is_at_key: false,
        message: match shape::path(pointer).as_str() {
            "" => format!("missing key `{key}`"),
            parent => format!("missing key `{key}` in `{parent}`"),
        },
        label: format!("expected `{key}`: {}", shape::expectation(wanted)),
        hint: about.map(|about| format!("`{key}`: {about}")),
        first: None,
    }
}

fn hint(found: &Value, node: &Value, required: bool) -> Option<String> {
    let kind = shape::kind(node);
    match (kind, found) {
        (_, Value::Null) if required => Some("give it a value".to_owned()),
        (_, Value::Null) => {
            Some("remove the key to get its default, or give it a value".to_owned())
        }
        (shape::ValueKind::Integer | shape::ValueKind::Number, Value::String(text))
            if text.parse::<f64>().is_ok() =>
        {
            Some("remove the quotes".to_owned())
        }
        (shape::ValueKind::Integer | shape::ValueKind::Number, Value::String(text))
            if number_with_unit(text).is_some() =>
        {
            number_with_unit(text).map(|number| format!("write the number alone: {number}"))
        }
        (shape::ValueKind::Boolean, Value::String(_)) => Some("write `true` or `false`".to_owned()),
        (shape::ValueKind::Text, Value::String(text)) => {
            let near = shape::nearest(text, &shape::words(node))?;
            Some(format!("did you mean `{near}`?"))
        }
        (shape::ValueKind::Text, Value::Number(_) | Value::Bool(_)) => {
            Some("put it in quotes".to_owned())
        }
        (shape::ValueKind::List, Value::String(_) | Value::Number(_) | Value::Object(_)) => {
            Some("begin each item with `- `".to_owned())
        }
        _ => None,
    }
}

/// Returns the number in a text such as `30s`.
fn number_with_unit(text: &str) -> Option<&str> {
    let number = text.trim_end_matches(|c: char| c.is_alphabetic() || c == '%' || c == ' ');
    (!number.is_empty() && number.parse::<f64>().is_ok()).then_some(number)
}

/// Returns the list of words that a command line was written instead of.
fn as_words(pointer: &str, found: &Value) -> Option<String> {
    // Commands are lists because they start without a shell, and a text is the usual mistake.
    let text = found.as_str().filter(|_| pointer.ends_with("/run"))?;
    let words: Vec<&str> = text.split_whitespace().take(20).collect();
    Some(format!("write the program and its arguments as a list: {}", serde_json::json!(words)))
}

/// Returns the document without the unknown keys in `faults`, so that the rest can be deserialized.
pub(super) fn without_unknown_keys(document: &Value, faults: &[ConfigFault]) -> Value {
    let unknown: BTreeSet<&str> =
        faults.iter().filter(|fault| fault.is_at_key).map(|fault| fault.pointer.as_str()).collect();
    let mut known = document.clone();
    if !unknown.is_empty() {
        remove(&mut known, "", &unknown);
    }
    known
}

/// Removes members by their pointers.
fn remove(value: &mut Value, pointer: &str, unwanted: &BTreeSet<&str>) {
    match value {
        Value::Object(members) => {
            members.retain(|key, _| !unwanted.contains(&*super::join(pointer, key)));
            for (key, member) in members {
                remove(member, &super::join(pointer, key), unwanted);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                remove(item, &format!("{pointer}/{index}"), unwanted);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_their_schema() {
        let words_of = |pointer| words(at(schema(), pointer).unwrap());
        let statuses = ["AWAITING_RESPONSE", "COMPLETE", "ERROR"];
        assert_eq!(words_of("/scenarios/7/expected_status"), statuses);
        assert_eq!(kind(at(schema(), "/sut/command/environment/HOME").unwrap()), ValueKind::Text);
        assert_eq!(at(schema(), "/judge/colour"), None);
        assert_eq!(expectation(at(schema(), "/version").unwrap()), "1");
        let weight = at(schema(), "/rubric/0/weight").unwrap();
        assert_eq!(expectation(weight), "a number above 0 and at most 1");
    }

    #[test]
    fn near_words_are_found() {
        assert_eq!(nearest("strictnes", &["judge", "strictness"]), Some("strictness"));
        assert_eq!(nearest("Complete", &["ERROR", "COMPLETE"]), Some("COMPLETE"));
        assert_eq!(nearest("colour", &["judge", "version"]), None);
        assert_eq!(nearest("sittingroom", &["kittingroom", "sitting"]), Some("kittingroom"));
        assert_eq!(nearest("", &["abc"]), None);
    }

    #[test]
    fn pointers_become_paths() {
        assert_eq!(path("/scenarios/1/expected_status"), "scenarios[1].expected_status");
        assert_eq!(path("/a~1b/~0c"), "a/b.~c");
    }
}
