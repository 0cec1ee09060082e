//! Removes secrets from text and JSON values before they are judged, stored or printed.
//!
//! Secrets are found by well-known shapes, by a table of rules and by values that the caller
//! provides. It reads neither the environment nor files. Redaction is best effort: an unrecognised
//! secret stays in the text. JSON is redacted before serialisation, because escaping makes values
//! look different.

#[cfg(test)]
mod kinds;
pub mod known;
mod rules;
mod shapes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use shapes::{
    AUTHORIZATION, KEY_END, NAME, PATTERNS, REST_OF_KEY, SECRET_PATTERNS, SET, SecretPart,
    may_be_secret,
};

/// Replacement for a secret.
pub const REDACTED: &str = "[redacted]";

/// Minimum length of a known value; replacing shorter ones would affect ordinary words.
const MIN_KNOWN_VALUE: usize = 8;

/// Maximum number of passes over a text with secrets. A replacement brings the remaining text
/// closer to other keywords, so another pass can find more.
const MAX_PASSES: usize = 8;

/// Replaces secrets with [`REDACTED`].
#[derive(Clone, Default)]
pub struct Redactor {
    /// Sorted by length, longest first, so that a value that contains another is replaced as a
    /// whole.
    known: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} known values)", self.known.len())
    }
}

impl Redactor {
    /// Creates a redactor that also replaces these values, such as the keys in use. Their forms in
    /// JSON and in JSON nested in JSON are replaced as well. Values shorter than eight bytes are
    /// ignored.
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        let mut known: Vec<String> = known
            .into_iter()
            .map(|value| value.trim().to_owned())
            .filter(|value| value.len() >= MIN_KNOWN_VALUE)
            .flat_map(|value| {
                let once = json_escape(&value);
                let twice = json_escape(&once);
                [value, once, twice]
            })
            .collect();
        // Also ordered by value, so that `dedup` finds equal neighbours.
        known.sort_by(|one, other| (other.len(), other).cmp(&(one.len(), one)));
        known.dedup();
        Self { known }
    }

    /// Returns the text without its secrets, borrowed if it has none. Applying it again changes
    /// nothing.
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for value in &self.known {
            if text.contains(value.as_str()) {
                text = Cow::Owned(text.replace(value.as_str(), REDACTED));
            }
        }
        // One pass finds which patterns match at all; most texts match none.
        for index in SET.matches(&text) {
            let pattern = &PATTERNS[index];
            let replaced = match SECRET_PATTERNS[index].secret {
                SecretPart::Quoted => remove_quoted(pattern, &text),
                SecretPart::Matched => {
                    pattern.replace_all(&text, |found: &Captures<'_>| replacement(found, false))
                }
                SecretPart::WithDigit => {
                    pattern.replace_all(&text, |found: &Captures<'_>| replacement(found, true))
                }
            };
            // A replacement can leave the match unchanged.
            if replaced != text {
                text = Cow::Owned(replaced.into_owned());
            }
        }
        for _ in 0..MAX_PASSES {
            let secrets = rules::find_secrets(&text);
            if secrets.is_empty() {
                break;
            }
            text = Cow::Owned(remove_ranges(&text, &secrets));
        }
        if text.contains(KEY_END)
            && let Cow::Owned(replaced) = REST_OF_KEY.replace_all(&text, REDACTED)
        {
            text = Cow::Owned(replaced);
        }
        text
    }
}

/// Removes these sorted, disjoint ranges from a text.
fn remove_ranges(text: &str, parts: &[Range<usize>]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut kept = 0;
    for part in parts {
        result.push_str(&text[kept..part.start]);
        result.push_str(REDACTED);
        kept = part.end;
    }
    result.push_str(&text[kept..]);
    result
}

/// Escapes a value as in a JSON string.
fn json_escape(value: &str) -> String {
    let json = serde_json::Value::from(value).to_string();
    json[1..json.len() - 1].to_owned()
}

fn replacement(found: &Captures<'_>, needs_digit: bool) -> String {
    let whole = &found[0];
    let before = found.name("before").map_or("", |group| group.as_str());
    let after = found.name("after").map_or("", |group| group.as_str());
    let secret = &whole[before.len()..whole.len() - after.len()];
    if needs_digit && !secret.bytes().any(|byte| byte.is_ascii_digit()) {
        return whole.to_owned();
    }
    format!("{before}{REDACTED}{after}")
}

/// Removes the quoted values that follow matches of the pattern.
fn remove_quoted<'t>(pattern: &Regex, text: &'t str) -> Cow<'t, str> {
    let (mut result, mut kept) = (String::new(), 0);
    let mut at = 0;
    while let Some(found) = pattern.captures_at(text, at) {
        let from = found.get_match().end();
        let opening = found.name("quote").map_or("", |group| group.as_str());
        at = from;
        if let Some(value) = shapes::find_value(text, from, opening)
            && may_be_secret(&text[value.clone()])
        {
            result.push_str(&text[kept..value.start]);
            result.push_str(REDACTED);
            (kept, at) = (value.end, value.end);
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    result.push_str(&text[kept..]);
    Cow::Owned(result)
}

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
