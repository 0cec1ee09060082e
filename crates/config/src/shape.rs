//! Queries the schema at a place of the document: kind of value, keys and allowed words.
//!
//! Supports only the few schema keywords that `document.rs` produces.

use std::sync::LazyLock;

use serde_json::Value;

use super::document::schema;
use super::yaml;

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
                collect(property, yaml::join(&pointer, key), found);
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
    (distance <= (word.chars().count() / 3).max(1)).then_some(candidate)
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
