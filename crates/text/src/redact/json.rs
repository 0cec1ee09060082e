//! Secrets in JSON: in its texts, and by the names they stand under. Serialised JSON is not to be
//! redacted as text: what is escaped looks like something else.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::quoted::may_be_secret;
use super::shapes::{AUTHORIZATION, NAME};
use super::{REDACTED, Redactor};

/// Digits of the shortest number that is a secret by its name.
const MIN_NUMBER: usize = 6;

impl Redactor {
    /// Takes the secrets out of every text of a JSON value, and what stands under a name such as
    /// `password`. Names stay as they are.
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

    /// The same for the members of a JSON object.
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
