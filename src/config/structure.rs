//! Errors of structure: what the JSON Schema refuses, in plain words.

use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::diagnostics::Fault;
use super::document::schema;
use super::{shape, yaml};

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    jsonschema::draft202012::new(schema()).expect("schemars writes valid schemas, as a test shows")
});

/// Everything that the schema refuses in a document.
pub(super) fn check(document: &Value) -> Vec<Fault> {
    VALIDATOR.iter_errors(document).flat_map(|error| faults(&error)).collect()
}

fn faults(error: &ValidationError<'_>) -> Vec<Fault> {
    let pointer = error.instance_path().as_str();
    let node = shape::at(schema(), pointer).unwrap_or(&Value::Null);
    match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            unexpected.iter().map(|key| unknown_key(pointer, key, node)).collect()
        }
        Kind::Required { property } => {
            vec![missing_key(pointer, property.as_str().unwrap_or_default(), node)]
        }
        _ => vec![wrong_value(pointer, error.instance(), node)],
    }
}

fn unknown_key(pointer: &str, key: &str, node: &Value) -> Fault {
    let shown = crate::text::one_line(key, 60);
    let keys = shape::keys(node);
    let suggestion = shape::nearest(key, &keys).map(ToOwned::to_owned).or_else(|| {
        let end = yaml::join("", key);
        let elsewhere = shape::scalars().iter().find(|(pointer, _)| pointer.ends_with(&end))?;
        Some(shape::path(&elsewhere.0))
    });
    let suggestion = suggestion.map_or_else(String::new, |name| format!("did you mean `{name}`? "));
    Fault {
        pointer: yaml::join(pointer, key),
        at_key: true,
        message: match shape::path(pointer).as_str() {
            "" => format!("unknown key `{shown}`"),
            parent => format!("unknown key `{shown}` in `{parent}`"),
        },
        label: "not a key that is known here".to_owned(),
        hint: Some(format!("{suggestion}the keys here are {}", shape::quoted(&keys))),
        first: None,
    }
}

fn missing_key(pointer: &str, key: &str, node: &Value) -> Fault {
    let wanted = &node["properties"][key];
    let about = wanted["description"].as_str().map(|text| crate::text::one_line(text, 200));
    Fault {
        pointer: pointer.to_owned(),
        at_key: false,
        message: match shape::path(pointer).as_str() {
            "" => format!("missing key `{key}`"),
            parent => format!("missing key `{key}` in `{parent}`"),
        },
        label: format!("expected `{key}`: {}", shape::expectation(wanted)),
        hint: about.map(|about| format!("`{key}`: {about}")),
        first: None,
    }
}

fn wrong_value(pointer: &str, found: &Value, node: &Value) -> Fault {
    let name = match shape::path(pointer).as_str() {
        "" => "the configuration".to_owned(),
        path => format!("`{path}`"),
    };
    Fault {
        pointer: pointer.to_owned(),
        at_key: false,
        message: format!("{name} must be {}", shape::expectation(node)),
        label: format!("found {}", shape::description(found)),
        hint: hint(found, node),
        first: None,
    }
}

fn hint(found: &Value, node: &Value) -> Option<String> {
    let kind = shape::kind(node);
    match (kind, found) {
        (_, Value::Null) => {
            Some("remove the key to get its default, or give it a value".to_owned())
        }
        (shape::Kind::Integer | shape::Kind::Number, Value::String(text))
            if text.parse::<f64>().is_ok() =>
        {
            Some("remove the quotes".to_owned())
        }
        (shape::Kind::Boolean, Value::String(_)) => Some("write `true` or `false`".to_owned()),
        (shape::Kind::Text, Value::String(text)) => {
            let near = shape::nearest(text, &shape::words(node))?;
            Some(format!("did you mean `{near}`?"))
        }
        (shape::Kind::Text, Value::Number(_) | Value::Bool(_)) => {
            Some("put it in quotes".to_owned())
        }
        (shape::Kind::List, Value::String(_) | Value::Number(_) | Value::Object(_)) => {
            Some("begin each item with `- `".to_owned())
        }
        _ => None,
    }
}
