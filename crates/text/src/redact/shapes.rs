//! Regexes for well-known secret formats.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

/// One secret format. Text in the groups `before` and `after` is kept.
pub(super) struct SecretPattern {
    pattern: &'static str,
    pub(super) secret: SecretPart,
}

/// Part of a match that is the secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretPart {
    /// Everything except `before` and `after`.
    Matched,
    /// The same, but only if it contains a digit, which is rare in ordinary words and identifiers.
    WithDigit,
    /// The quoted text that follows the match, up to the closing quote.
    Quoted,
}

const fn shape(pattern: &'static str) -> SecretPattern {
    SecretPattern { pattern, secret: SecretPart::Matched }
}

const fn shape_with_digit(pattern: &'static str) -> SecretPattern {
    SecretPattern { pattern, secret: SecretPart::WithDigit }
}

/// Endings of setting names that hold a secret.
macro_rules! secret_word {
    () => {
        "(?:password|passwd|passphrase|secret|(?:secret|private|access|api)[_-]?key|(?:access|auth|refresh|bearer|id|api)[_-]?token)"
    };
}

/// Full names with these endings: `DB_PASSWORD`, `"api_key"`, `x-api-key`. Also matches
/// `\"api_key\"`, because agents often write JSON nested in JSON.
macro_rules! secret_name {
    () => {
        concat!(r"(?i)(?P<before>\b[a-z0-9_.-]*", secret_word!(), r#"(?:\\*["'])?"#)
    };
}

/// A character of an unquoted value. An escaped line break ends the value.
macro_rules! bare {
    () => {
        r#"(?:[^\s"'`&(){}<>\[\]$,;\\]|\\(?-i:[^\s"'`&(){}<>\[\]$,;\\nrt]))"#
    };
}

pub(super) const SECRET_PATTERNS: &[SecretPattern] = &[
    shape_with_digit(r"\bsk-[A-Za-z0-9_-]{16,}"),
    shape(r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    shape(r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    shape(r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
    shape(r"\bglpat-[A-Za-z0-9_-]{16,}"),
    shape(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    shape(r"\bxox[a-eoprs]-[A-Za-z0-9-]{10,}"),
    shape(r"\bAIza[A-Za-z0-9_-]{30,}"),
    shape(r"\bhf_[A-Za-z0-9]{30,}"),
    shape(r"\bnpm_[A-Za-z0-9]{30,}"),
    // The signature may be empty.
    shape(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    // If the end is missing, the key was truncated: the remainder is still secret, up to the end of
    // the string that contains it.
    shape(
        r#"(?s)----[- ]BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?[- ]----(?:.*?----[- ]END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?[- ]----|(?:[^"\\]|\\+[nrt/])*)"#,
    ),
    shape(
        r#"(?i)(?P<before>\bauthorization(?:\\*["'])?\s*[:=]\s*(?:\\*["'])?(?:bearer|basic|token)\s+)[A-Za-z0-9._~+/=-]{4,}"#,
    ),
    shape_with_digit(r"(?i)(?P<before>\bbearer\s+)[A-Za-z0-9._~+/=-]{16,}"),
    shape_with_digit(r#"(?i)(?P<before>\bbasic\s+)[a-z0-9+/]{16,}={0,2}(?P<after>[\s"'\\]|\z)"#),
    shape(r"(?P<before>://[^/\s:@]*:)[^/\s:@\[]+(?P<after>@)"),
    // curl -u name:password, --password value
    shape(
        r#"(?P<before>\bcurl\s(?:[^\n"'|]|"[^"\n]*"|'[^'\n]*')*?\s(?:-u|--user)[ =]?["']?[^\s:"'$]+:)[^\s"'$\[]{3,}"#,
    ),
    shape_with_digit(
        r#"(?i)(?P<before>\s--?[a-z-]*(?:password|passwd|token|secret|api-?key)(?:\s+|=)["']?)[^\s"'$<\[{(-][^\s"']{5,}"#,
    ),
    shape_with_digit(
        r#"(?i)(?P<before>\bpwd["']?\s*[:=]\s*["']?)[^\s"'`/~$.;,&<>(){}\[\]\\][^\s"'`;,&<>(){}\[\]$\\/]{5,}"#,
    ),
    // name: "value", name='value'
    SecretPattern {
        pattern: concat!(secret_name!(), r#"\s*[:=]\s*(?P<quote>\\*["']))"#),
        secret: SecretPart::Quoted,
    },
    // NAME=value, on its own, quoted or in a query string
    shape(concat!(secret_name!(), "=)", bare!(), r#"{4,}(?P<after>[\s&"'`\\]|\z)"#)),
    // name: value
    shape_with_digit(concat!(secret_name!(), r"\s*[:=]\s*)", bare!(), "{6,}")),
];

/// Replaces Unicode word boundaries by ASCII ones: with Unicode boundaries, the regex engine leaves
/// its fast path at the first non-ASCII character. ASCII boundaries match in more places, so
/// nothing is missed.
fn ascii_boundaries(shape: &SecretPattern) -> String {
    shape.pattern.replace(r"\b", r"(?-u:\b)")
}

pub(super) static SET: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(SECRET_PATTERNS.iter().map(ascii_boundaries))
        .expect("the patterns are constants, and a test compiles them")
});

pub(super) static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    SECRET_PATTERNS.iter().map(|shape| compile(&ascii_boundaries(shape))).collect()
});

/// Marker at the end of a private key.
pub(super) const KEY_END: &str = "-----END ";

/// Rest of a private key whose start was cut off. Kept apart from [`SECRET_PATTERNS`], because it can start
/// with any word and would slow down every text.
pub(super) static REST_OF_KEY: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?:[A-Za-z0-9+/=]{40,}(?:\\+[nr]|\s)+)+(?:[A-Za-z0-9+/=]+(?:\\+[nr]|\s)+)?-----END [A-Z ]*PRIVATE KEY-----",
    )
});

/// A setting name that suggests a secret.
pub(super) static NAME: LazyLock<Regex> =
    LazyLock::new(|| compile(concat!("(?i)", secret_word!(), r"\z")));

/// Value of an `Authorization` header.
pub(super) static AUTHORIZATION: LazyLock<Regex> =
    LazyLock::new(|| compile(r"(?i)\A(?:bearer|basic|token)\s+[^\s\[]\S{3,}"));

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns are constants, and a test compiles them")
}
