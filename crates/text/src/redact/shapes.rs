//! The shapes of secrets, as patterns. Decides nothing.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

/// One shape. Text in the groups `before` and `after` is kept.
pub(super) struct Shape {
    pattern: &'static str,
    pub(super) secret: Secret,
}

/// The part of a match that is the secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Secret {
    /// All but `before` and `after`.
    Matched,
    /// The same, if it holds a digit, which ordinary words and identifiers rarely do.
    WithDigit,
    /// The text that follows, as far as the quotes go that the match ends with.
    Quoted,
}

const fn shape(pattern: &'static str) -> Shape {
    Shape { pattern, secret: Secret::Matched }
}

const fn shape_with_digit(pattern: &'static str) -> Shape {
    Shape { pattern, secret: Secret::WithDigit }
}

/// The ends of names of settings that hold a secret.
macro_rules! secret_word {
    () => {
        "(?:password|passwd|passphrase|secret|(?:secret|private|access|api)[_-]?key|(?:access|auth|refresh|bearer|id|api)[_-]?token)"
    };
}

/// Such names with what may stand around them: `DB_PASSWORD`, `"api_key"`, `x-api-key`; and
/// `\"api_key\"`, because what an agent writes is often JSON inside of JSON.
macro_rules! secret_name {
    () => {
        concat!(r"(?i)(?P<before>\b[a-z0-9_.-]*", secret_word!(), r#"(?:\\*["'])?"#)
    };
}

/// A character of a value without quotes. An escaped line break is the end of one.
macro_rules! bare {
    () => {
        r#"(?:[^\s"'`&(){}<>\[\]$,;\\]|\\(?-i:[^\s"'`&(){}<>\[\]$,;\\nrt]))"#
    };
}

pub(super) const SHAPES: &[Shape] = &[
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
    // An end that is missing was cut off: what is left is still the key, as far as the string
    // goes that it may stand in.
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
    Shape {
        pattern: concat!(secret_name!(), r#"\s*[:=]\s*(?P<quote>\\*["']))"#),
        secret: Secret::Quoted,
    },
    // NAME=value, alone, in quotes or in a query string
    shape(concat!(secret_name!(), "=)", bare!(), r#"{4,}(?P<after>[\s&"'`\\]|\z)"#)),
    // name: value
    shape_with_digit(concat!(secret_name!(), r"\s*[:=]\s*)", bare!(), "{6,}")),
];

/// The pattern with word boundaries of ASCII: with those of Unicode the regex engine leaves its
/// fast path at the first character that is not ASCII. They stand in more places, so that nothing
/// less is replaced.
fn ascii_boundaries(shape: &Shape) -> String {
    shape.pattern.replace(r"\b", r"(?-u:\b)")
}

pub(super) static SET: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(SHAPES.iter().map(ascii_boundaries))
        .expect("the patterns are constants, and a test compiles them")
});

pub(super) static PATTERNS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| SHAPES.iter().map(|shape| compile(&ascii_boundaries(shape))).collect());

/// The end of a private key.
pub(super) const KEY_END: &str = "-----END ";

/// The rest of a private key whose beginning was cut off. Not among the others: it begins like
/// any word, which would cost time in every text.
pub(super) static REST_OF_KEY: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?:[A-Za-z0-9+/=]{40,}(?:\\+[nr]|\s)+)+(?:[A-Za-z0-9+/=]+(?:\\+[nr]|\s)+)?-----END [A-Z ]*PRIVATE KEY-----",
    )
});

/// A name under which a secret stands.
pub(super) static NAME: LazyLock<Regex> =
    LazyLock::new(|| compile(concat!("(?i)", secret_word!(), r"\z")));

/// The value of a header `Authorization`.
pub(super) static AUTHORIZATION: LazyLock<Regex> =
    LazyLock::new(|| compile(r"(?i)\A(?:bearer|basic|token)\s+[^\s\[]\S{3,}"));

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns are constants, and a test compiles them")
}
