//! Removes secrets from text before it is judged, stored or printed.
//!
//! Works by well-known shapes and by values that the caller knows. It reads no environment and
//! no file; what it cannot recognise it leaves as it is, so it is a net and not a wall.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex, RegexSet};
use serde_json::{Map, Value};

/// What a secret is replaced by.
pub const REDACTED: &str = "[redacted]";

/// Known values shorter than this are not replaced: they would take ordinary words with them.
const SHORTEST_KNOWN_VALUE: usize = 8;

/// One shape. Text in the groups `before` and `after` is kept.
struct Shape {
    pattern: &'static str,
    /// Whether the secret must hold a digit, which ordinary words and identifiers rarely do.
    needs_digit: bool,
}

const fn shape(pattern: &'static str) -> Shape {
    Shape { pattern, needs_digit: false }
}

const fn shape_with_digit(pattern: &'static str) -> Shape {
    Shape { pattern, needs_digit: true }
}

/// Names of settings that hold a secret, with what may stand around them: `DB_PASSWORD`,
/// `"api_key"`, `x-api-key`.
macro_rules! secret_name {
    () => {
        r#"(?i)(?P<before>\b[a-z0-9_.-]*(?:password|passwd|passphrase|secret|(?:secret|private|access|api)[_-]?key|(?:access|auth|refresh|bearer|id|api)[_-]?token)["']?"#
    };
}

const SHAPES: &[Shape] = &[
    shape_with_digit(r"\bsk-[A-Za-z0-9_-]{16,}"),
    shape(r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    shape(r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    shape(r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
    shape(r"\bglpat-[A-Za-z0-9_-]{16,}"),
    shape(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    shape(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    shape(r"\bAIza[A-Za-z0-9_-]{30,}"),
    shape(r"\bhf_[A-Za-z0-9]{30,}"),
    shape(r"\bnpm_[A-Za-z0-9]{30,}"),
    shape(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    // An end that is missing was cut off: what is left is still the key.
    shape(r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)"),
    shape(
        r#"(?i)(?P<before>\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+)[A-Za-z0-9._~+/=-]{4,}"#,
    ),
    shape_with_digit(r"(?i)(?P<before>\bbearer\s+)[A-Za-z0-9._~+/=-]{16,}"),
    shape(r"(?P<before>://[^/\s:@]+:)[^/\s:@\[]+(?P<after>@)"),
    // name: "value", name='value'
    shape(concat!(secret_name!(), r#"\s*[:=]\s*")[^"\s$<{\[][^"\n]{3,}(?P<after>")"#)),
    shape(concat!(secret_name!(), r"\s*[:=]\s*')[^'\s$<{\[][^'\n]{3,}(?P<after>')")),
    // NAME=value, alone or in a query string
    shape(concat!(secret_name!(), r#"=)[^\s"'`&(){}<>\[\]$,;]{4,}(?P<after>[\s&]|\z)"#)),
    // name: value
    shape_with_digit(concat!(secret_name!(), r#"\s*[:=]\s*)[^\s"'`&(){}<>\[\]$,;]{6,}"#)),
];

/// The pattern with word boundaries of ASCII: with those of Unicode the regex engine leaves its
/// fast path at the first character that is not ASCII. They stand in more places, so that nothing
/// less is replaced.
fn ascii_boundaries(shape: &Shape) -> String {
    shape.pattern.replace(r"\b", r"(?-u:\b)")
}

static SET: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(SHAPES.iter().map(ascii_boundaries))
        .expect("the patterns are constants, and a test compiles them")
});

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let compile = |shape: &Shape| {
        Regex::new(&ascii_boundaries(shape))
            .expect("the patterns are constants, and a test compiles them")
    };
    SHAPES.iter().map(compile).collect()
});

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
    /// A redactor that also knows these values, such as the keys in use. Values of fewer than
    /// eight bytes are ignored.
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        let mut known: Vec<String> = known
            .into_iter()
            .map(|value| value.trim().to_owned())
            .filter(|value| value.len() >= SHORTEST_KNOWN_VALUE)
            .collect();
        known.sort_by_key(|value| std::cmp::Reverse(value.len()));
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
            let replaced = PATTERNS[index].replace_all(&text, |found: &Captures<'_>| {
                replacement(found, SHAPES[index].needs_digit)
            });
            // Something may match and yet stay.
            if replaced != text {
                text = Cow::Owned(replaced.into_owned());
            }
        }
        text
    }
}

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
            let is_named = |text: &str| {
                let line = format!("\"{name}\": \"{text}\"");
                text != REDACTED && matches!(self.apply(&line), Cow::Owned(_))
            };
            if member.as_str().is_some_and(is_named) {
                *member = REDACTED.into();
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go() {
        let redactor = Redactor::new(["hunter2-the-value".to_owned(), "short".to_owned()]);
        for (text, expected) in [
            ("key sk-proj-abcDEF0123456789xyz.", "key [redacted]."),
            ("sk-ant-api03-AbCdEf_0123456789-xyz", "[redacted]"),
            ("ghp_0123456789abcdefghij0123456789abcdef", "[redacted]"),
            ("gho_0123456789abcdefghij0123456789abcdef", "[redacted]"),
            ("github_pat_11ABCDEFG0abcdefghijkl_mnop", "[redacted]"),
            ("id AKIAIOSFODNN7EXAMPLE here", "id [redacted] here"),
            ("xoxb-123456789012-abcdefghij", "[redacted]"),
            ("AIzaSyA-0123456789abcdefghijklmnopqrstu", "[redacted]"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLXBhcnQ", "[redacted]"),
            ("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]"),
            (r#""authorization": "Basic dXNlcjpwdw==""#, r#""authorization": "Basic [redacted]""#),
            ("password=letmein", "password=[redacted]"),
            ("DB_PASSWORD=letmein\nUSER=me", "DB_PASSWORD=[redacted]\nUSER=me"),
            ("?api_key=abcdef&user=me", "?api_key=[redacted]&user=me"),
            (r#"{"api_key": "abcdefg"}"#, r#"{"api_key": "[redacted]"}"#),
            ("api-key: a1b2c3d4", "api-key: [redacted]"),
            ("client_secret = 'open sesame'", "client_secret = '[redacted]'"),
            ("postgres://me:pa55word@db/x", "postgres://me:[redacted]@db/x"),
            ("it is hunter2-the-value!", "it is [redacted]!"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nafter",
                "[redacted]\nafter",
            ),
            ("-----BEGIN PRIVATE KEY-----\nMIIE", "[redacted]"),
        ] {
            let once = redactor.apply(text);
            assert_eq!(once, expected, "{text}");
            assert_eq!(redactor.apply(&once), expected, "twice: {text}");
        }
    }

    #[test]
    fn ordinary_text_stays() {
        let redactor = Redactor::new(["short".to_owned()]);
        for text in [
            "A short text about passwords: they are stored as hashes.",
            "The password: it is never written to the log.",
            "sha256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "commit f5a1b71, tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            "a risk-assessment-of-the-whole-system and task-2026-11-21-with-a-long-name",
            "sk-learn-is-not-a-key-at-all",
            "max_tokens: 500, token count 1234567",
            "let password = read_password();",
            "connect(user=user, password=password)",
            "password: ${DB_PASSWORD}",
            "api_key = os.environ[\"OPENAI_API_KEY\"]",
            "set OPENAI_API_KEY and run it",
            "the bearer of this letter",
            "selftest-20260206-1234-bcdfgh",
            "http://127.0.0.1:5678/api/tasks and user@example.org",
        ] {
            assert!(matches!(redactor.apply(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn json_keeps_its_form() {
        let redactor = Redactor::new(["hunter2-the-value".to_owned()]);
        let mut value = serde_json::json!({
            "summary": "used hunter2-the-value and \"sk-proj-abcDEF0123456789xyz\"",
            "env": [{ "DB_PASSWORD": "open \"sesame\"", "user": "me" }, 7, null],
            "password": "", "confidence": 0.5,
        });
        redactor.apply_json(&mut value);
        let expected = serde_json::json!({
            "summary": "used [redacted] and \"[redacted]\"",
            "env": [{ "DB_PASSWORD": "[redacted]", "user": "me" }, 7, null],
            "password": "", "confidence": 0.5,
        });
        assert_eq!(value, expected);
        redactor.apply_json(&mut value);
        assert_eq!(value, expected, "twice");
    }

    #[test]
    fn debug_shows_no_value() {
        let redactor = Redactor::new(["hunter2-the-value".to_owned()]);
        assert_eq!(format!("{redactor:?}"), "Redactor(1 known values)");
    }

    #[test]
    fn a_megabyte_of_clean_text_takes_no_time() {
        let redactor = Redactor::new(["hunter2-the-value".to_owned()]);
        let text = "The quick brown fox jumps over the lazy dog. ".repeat(23_000);
        assert!(matches!(redactor.apply(&text), Cow::Borrowed(_)));
    }
}
