//! Removes secrets from text before it is judged, stored or printed.
//!
//! Works by well-known shapes, by a table of rules and by values that the caller knows. It reads no environment and
//! no file; what it cannot recognise it leaves as it is, so it is a net and not a wall.

use std::borrow::Cow;
use std::ops::Range;

use regex::{Captures, Regex};

mod json;
pub mod known;
mod quoted;
mod random;
mod rules;
mod shapes;
#[cfg(test)]
mod tests;

use shapes::{KEY_END, PATTERNS, REST_OF_KEY, SET, SHAPES, Secret};

/// Replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// Known values shorter than this are not replaced: they would take ordinary words with them.
const MIN_KNOWN_VALUE: usize = 8;

/// Most passes over a text with secrets: what is left of one stands nearer to other words than before.
const MAX_PASSES: usize = 8;

/// Replaces secrets by [`REDACTED`].
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a value that contains another goes whole.
    known: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} known values)", self.known.len())
    }
}

impl Redactor {
    /// A redactor that also knows these values, such as the keys in use, also as they stand in
    /// JSON and in JSON inside of JSON. Values of fewer than eight bytes are ignored.
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        let mut known: Vec<String> = known
            .into_iter()
            .map(|value| value.trim().to_owned())
            .filter(|value| value.len() >= MIN_KNOWN_VALUE)
            .flat_map(|value| {
                let once = escaped(&value);
                let twice = escaped(&once);
                [value, once, twice]
            })
            .collect();
        known.sort_by(|one, other| (other.len(), other).cmp(&(one.len(), one)));
        known.dedup();
        Self { known }
    }

    /// The text without its secrets; borrowed when there are none. Applying it twice changes
    /// nothing more.
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for value in &self.known {
            if text.contains(value.as_str()) {
                text = Cow::Owned(text.replace(value.as_str(), REDACTED));
            }
        }
        for index in SET.matches(&text) {
            let pattern = &PATTERNS[index];
            let replaced = match SHAPES[index].secret {
                Secret::Quoted => without_quoted(pattern, &text),
                Secret::Matched => {
                    pattern.replace_all(&text, |found: &Captures<'_>| replacement(found, false))
                }
                Secret::WithDigit => {
                    pattern.replace_all(&text, |found: &Captures<'_>| replacement(found, true))
                }
            };
            // Something may match and yet stay.
            if replaced != text {
                text = Cow::Owned(replaced.into_owned());
            }
        }
        for _ in 0..MAX_PASSES {
            let secrets = rules::secrets(&text);
            if secrets.is_empty() {
                break;
            }
            text = Cow::Owned(without(&text, &secrets));
        }
        if text.contains(KEY_END)
            && let Cow::Owned(replaced) = REST_OF_KEY.replace_all(&text, REDACTED)
        {
            text = Cow::Owned(replaced);
        }
        text
    }
}

/// The text without these parts, which are in order.
fn without(text: &str, parts: &[Range<usize>]) -> String {
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

/// The value as it stands in a JSON string.
fn escaped(value: &str) -> String {
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

/// The text without the quoted values behind what the pattern matches.
fn without_quoted<'t>(pattern: &Regex, text: &'t str) -> Cow<'t, str> {
    let (mut result, mut kept) = (String::new(), 0);
    let mut at = 0;
    while let Some(found) = pattern.captures_at(text, at) {
        let from = found.get_match().end();
        let opening = found.name("quote").map_or("", |group| group.as_str());
        at = from;
        if let Some(value) = quoted::value(text, from, opening)
            && quoted::may_be_secret(&text[value.clone()])
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
