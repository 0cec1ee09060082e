//! Secrets in JSON values: in strings, and under secret key names. JSON is redacted before
//! serialisation, because escaping makes values look different.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::quoted::may_be_secret;
use super::shapes::{AUTHORIZATION, NAME};
use super::{REDACTED, Redactor};

/// Minimum digits of a number that is redacted because of its key.
const MIN_NUMBER: usize = 6;

impl Redactor {
    /// Redacts all strings of a JSON value, and values under keys such as `password`. Keys are left
    /// unchanged.
    pub fn apply_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.apply(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.apply_json(item)),
            Value::Object(members) => self.apply_object(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Like [`Redactor::apply_json`], for the members of a JSON object.
    pub fn apply_object(&self, members: &mut Map<String, Value>) {
        for (name, member) in members {
            self.apply_json(member);
            if is_secret(name, member) {
                *member = REDACTED.into();
            }
        }
    }
}

fn is_secret(name: &str, value: &Value) -> bool {
    match value {
        Value::String(text) if name.to_ascii_lowercase().ends_with("authorization") => {
            AUTHORIZATION.is_match(text)
        }
        Value::String(text) => NAME.is_match(name) && may_be_secret(text),
        Value::Number(number) => NAME.is_match(name) && number.to_string().len() >= MIN_NUMBER,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}
