//! Validates a document against the JSON Schema and explains the errors.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

use super::diagnostics::ConfigFault;
use super::{document, shape, yaml};
use selftest_schema::{Schema, SchemaError, SchemaErrorKind};

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
            let end = yaml::join("", key);
            let elsewhere = self.scalars.iter().find(|(pointer, _)| pointer.ends_with(&end))?;
            Some(shape::path(&elsewhere.0))
        });
        let suggestion =
            suggestion.map_or_else(String::new, |name| format!("did you mean `{name}`? "));
        ConfigFault {
            pointer: yaml::join(pointer, key),
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
            members.retain(|key, _| !unwanted.contains(&*yaml::join(pointer, key)));
            for (key, member) in members {
                remove(member, &yaml::join(pointer, key), unwanted);
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
