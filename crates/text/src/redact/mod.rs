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
                // Tool arguments are JSON in a string of JSON, in which a value is escaped twice.
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
        // Last, so that a whole key is already gone and only a cut one is left to find.
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
            // Before the name is looked at: a member with a secret name may be an object with other
            // secrets.
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

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::Redactor;

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
            ("HRKU-0f3c9d1e-77aa-4b52-9c1d-2f6e8a0b4c5d", "[redacted]"),
            ("use HRKU-AAHu7VzpUpRT2-3etRmU7ihCxsXbdCSqKVTv9Xbm9amQ.", "use [redacted]."),
            (
                "POST https://api.telegram.org/bot7123456789:AAF0kQ9zX3vB7nM1pL5sD8gH2jK6wE4rT0y/getMe",
                "POST https://api.telegram.org/[redacted]/getMe",
            ),
            ("say 612345678:AAF0kQ9zX3vB7nM1pL5sD8gH2jK6wE4rT0y", "say [redacted]"),
            (
                "run MTE4NTQ3OTIxMDk5OTA3MDc3MA.GxYz12.q8Kd0_aB3cD4eF5gH6iJ7kL8mN9oP0qR1sT2uV now",
                "run [redacted] now",
            ),
            ("xapp-1-A012B3CDE4F-1234567890123-0a1b2c3d4e5f", "[redacted]"),
            ("xoxb-123456789012-abcdefghij", "[redacted]"),
            ("AIzaSyA-0123456789abcdefghijklmnopqrstu", "[redacted]"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLXBhcnQ", "[redacted]"),
            ("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]"),
            (r#""authorization": "Basic dXNlcjpwdw==""#, r#""authorization": "Basic [redacted]""#),
            ("Authorization: ApiKey a1b2c3d4e5f6g7h8", "Authorization: ApiKey [redacted]"),
            ("Authorization: ApiKey a1b2c3d4e5f6g7h8:i9j0", "Authorization: ApiKey [redacted]"),
            ("Authorization: sso-key shop:a1b2c3d4e5", "Authorization: sso-key [redacted]"),
            ("Authorization: hmac shop:/a1b2c3d4e5", "Authorization: hmac [redacted]"),
            ("mysql -u root -pS3cretPw shop", "mysql -u root -p[redacted] shop"),
            ("cd a && mysqldump -p12345678", "cd a && mysqldump -p[redacted]"),
            ("sudo mysql -p12:34:abcd x", "sudo mysql -p[redacted] x"),
            ("docker exec -i db mysql -p'S3cretPw' x", "docker exec -i db mysql -p'[redacted]' x"),
            ("bash -c \"/usr/bin/mysql -pS3cretPw\"", "bash -c \"/usr/bin/mysql -p[redacted]\""),
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
            (
                "\"DB_PASSWORD=letmein\" -e 'API_KEY=abcdef'",
                "\"DB_PASSWORD=[redacted]\" -e 'API_KEY=[redacted]'",
            ),
            ("password: \"never closed\nand on", "password: \"[redacted]\nand on"),
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
            "Authorization: see https://example.org/v2/auth",
            "Authorization: sso-key https://example.org/v2/auth",
            "Authorization: expires 2026-11-28T02:34:52Z",
            "Authorization: needed\nsee-chapter-12-of-the-handbook",
            "Authorization:\nsee section-12-of-the-handbook",
            "docker run --name mysql -p3306:3306 mysql:8",
            "docker run --name mysql -p127.0.0.1:3306:3306 mysql:8",
            "docker run --name mysql -pdb.example.org:3306:3306 mysql:8",
            "mysql -p3306:3306 x",
            "mysql -p127.0.0.1:3306:3306",
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
    fn the_shortest_values_that_are_taken() {
        let redactor = Redactor::new([" 1234567 ".to_owned(), " abcdefgh ".to_owned()]);
        assert_eq!(redactor.apply("1234567 abcdefgh"), "1234567 [redacted]");
        let mut value = serde_json::json!({
            "api_token": 123_456, "access_token": 12_345, "count": 1_234_567,
            "password": "abcd", "db_secret": "abc", "name": "abcdef",
            "Proxy-Authorization": "ApiKey a1b2c3d4e5f6g7h8",
            "authorization": "ApiKey a1b2c3d4e5f6g7h",
        });
        redactor.apply_json(&mut value);
        let expected = serde_json::json!({
            "api_token": "[redacted]", "access_token": 12_345, "count": 1_234_567,
            "password": "[redacted]", "db_secret": "abc", "name": "abcdef",
            "Proxy-Authorization": "[redacted]",
            "authorization": "ApiKey a1b2c3d4e5f6g7h",
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn a_value_that_contains_another_goes_as_a_whole() {
        let redactor = Redactor::new(["abcdefgh".to_owned(), "abcdefgh-and-more".to_owned()]);
        assert_eq!(redactor.apply("x abcdefgh-and-more y abcdefgh"), "x [redacted] y [redacted]");
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "the range is what is cut out")]
    fn ranges_are_cut_out_in_order() {
        assert_eq!(super::remove_ranges("a1b22c", &[1..2, 3..5]), "a[redacted]b[redacted]c");
        assert_eq!(super::remove_ranges("abc", &[0..3]), "[redacted]");
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

    #[test]
    fn secrets_in_json_inside_of_json_go_and_nothing_else() {
        let redactor = Redactor::new([r#"a"b\c-12345-zzz"#.to_owned()]);
        for (text, expected) in [
            (r#"it is a"b\c-12345-zzz"#, "it is [redacted]"),
            (r#"curl -H 'Authorization: Bearer abc.def-123' -d '{"api_key":"arg\"secret"}'"#, ""),
            (r#"{"password": "open \"sesame\"", "user": "me"}"#, ""),
            (r#"{"password": "ends in \\", "user": "me"}"#, ""),
            ("{\"output\": \"export DB_PASSWORD=letmein\\nAPI_TOKEN=abcdef12\\nfoo\"}", ""),
            ("DB_PASSWORD=letmein\nthen go on", ""),
            ("{'client_secret': 'it\\'s open', 'user': 'me'}", ""),
            ("{\"key\": \"-----BEGIN PRIVATE KEY-----\\nMIIE\\r\\nabc\", \"user\": \"me\"}", ""),
        ] {
            // The nesting depth of JSON in a call whose arguments describe another agent's call.
            let mut text = text.to_owned();
            let mut expected = match expected {
                "" => redactor.apply(&text).into_owned(),
                expected => expected.to_owned(),
            };
            for depth in 0..3 {
                let redacted = redactor.apply(&text);
                assert_eq!(redacted, expected, "{depth}: {text}");
                for secret in
                    ["12345", "abc", "secret\\", "sesame", "ends", "letmein", "'s", "MIIE"]
                {
                    assert!(!redacted.contains(secret), "{depth}: {redacted}");
                }
                assert_eq!(redactor.apply(&redacted), expected, "twice: {text}");
                text = serde_json::json!({ "x": text }).to_string();
                expected = serde_json::json!({ "x": expected }).to_string();
            }
        }
    }

    #[test]
    fn what_is_left_of_a_key_without_its_beginning_goes() {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7".to_owned();
        let text = format!("cut here\n{line}\n{line}\nabc=\n-----END PRIVATE KEY-----\nafter");
        assert_eq!(Redactor::default().apply(&text), "cut here\n[redacted]\nafter");
        let words = "a line such as -----END PRIVATE KEY----- is the last one";
        assert_eq!(Redactor::default().apply(words), words);
    }

    #[test]
    fn what_a_name_says_of_a_json_value() {
        let mut value = serde_json::json!({
            "password": "two\nlines \"and quotes\"", "api_token": 1_234_567, "max_tokens": 1_234_567,
            "secret": "${NAME}", "Authorization": "Basic dXNlcjpwdw==", "secrets": ["a", "b"],
            "authorization": "granted by the owner",
        });
        Redactor::default().apply_json(&mut value);
        let expected = serde_json::json!({
            "password": "[redacted]", "api_token": "[redacted]", "max_tokens": 1_234_567,
            "secret": "${NAME}", "Authorization": "[redacted]", "secrets": ["a", "b"],
            "authorization": "granted by the owner",
        });
        assert_eq!(value, expected);
    }
}
