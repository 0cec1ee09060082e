//! What a secret looks like: regexes for well-known formats, quoted values, also in JSON nested in
//! JSON, and randomly generated values as opposed to words, paths, version names and times.

use std::ops::Range;
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
    // Schemes with a name and a secret, however short the name is. `://` is that of an address.
    shape_with_digit(
        r#"(?i)(?P<before>\bauthorization(?:\\*["'])?[ \t]*[:=][ \t]*(?:\\*["'])?(?:sso-key|aws|sharedkey(?:lite)?|hmac[a-z0-9-]*)[ \t]+)[A-Za-z0-9._~+/=|-]+:/?[A-Za-z0-9._~+=|-][A-Za-z0-9._~+/=|-]{7,}"#,
    ),
    // Other schemes: `ApiKey`, `SSWS`. Words, addresses and times follow the name in sentences as well,
    // so a colon is only in what follows a value that is long enough without it.
    shape_with_digit(
        r#"(?i)(?P<before>\bauthorization(?:\\*["'])?[ \t]*[:=][ \t]*(?:\\*["'])?[a-z][a-z0-9-]{1,24}[ \t]+)[A-Za-z0-9._~+/=|-]{16,}(?::/?[A-Za-z0-9._~+=|-][A-Za-z0-9._~+/=|-]*)*"#,
    ),
    // The names of cookies say nothing; one value that is long enough for a session is enough.
    shape_with_digit(
        r#"(?i)(?P<before>\bcookie(?:\\*["'])?\s*:\s*(?:\\*["'])?)(?:[a-z0-9_.%-]+=[^\s"'\\;]*;\s*)*[a-z0-9_.%-]+=[^\s"'\\;\[]{16,}(?:;\s*[a-z0-9_.%-]+=[^\s"'\\;]*)*"#,
    ),
    // The private part of a JSON Web Key.
    shape_with_digit(r#"(?P<before>"d\\*"\s*:\s*\\*")[A-Za-z0-9_-]{43,}(?P<after>\\*")"#),
    shape_with_digit(r"(?i)(?P<before>\bbearer\s+)[A-Za-z0-9._~+/=-]{16,}"),
    shape_with_digit(r#"(?i)(?P<before>\bbasic\s+)[a-z0-9+/]{16,}={0,2}(?P<after>[\s"'\\]|\z)"#),
    shape(r"(?P<before>://[^/\s:@]*:)[^/\s:@\[]+(?P<after>@)"),
    // curl -u name:password, --password value
    shape(
        r#"(?P<before>\bcurl(?:\s(?:[^\n"'|]|"[^"\n]*"|'[^'\n]*')*?)?\s(?:-u|--user)[ =]?["']?[^\s:"'$]+:)[^\s"'$\[]{3,}"#,
    ),
    // redis-cli -a value
    shape(
        r#"(?P<before>\bredis-cli\s(?:[^\n"'|;]*?\s)?(?:-a|--pass)[ =]["']?)[^\s"'$\[-][^\s"']{3,}"#,
    ),
    // openssl -passin pass:value
    shape(r#"(?P<before>\s-pass(?:in|out)?\s+["']?pass:)[^\s"'$\[]{4,}"#),
    // A UUID that is a token by its command: snyk auth, and others' login.
    shape(
        r"(?i)(?P<before>\b(?:auth|login)\s+)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
    ),
    // The lines of .pgpass: host, port, database, user, password. Compilers name lines and columns so as
    // well, but no names behind them.
    shape_with_digit(
        r"(?P<before>(?:(?m:^)|\\n)(?:[A-Za-z0-9.-]+|\*):(?:[0-9]{4,5}|\*):(?:[A-Za-z_][A-Za-z0-9_-]*|\*):[A-Za-z_][A-Za-z0-9_.-]*:)[^\s:\[\\]{8,}(?P<after>\s|\\n|\z)",
    ),
    // <password>value</password>
    shape(concat!(
        r"(?i)(?P<before><[a-z0-9_.:-]*",
        secret_word!(),
        r">)[^\s<>$\[{][^\s<>]{3,}(?P<after></)"
    )),
    // sshpass -p value
    shape(r#"(?P<before>\bsshpass\s+-p\s*["']?)[^\s"'$\[]{4,}"#),
    // mysql -pvalue, where mysql is the command: containers are named so too, and their `-p` is a port.
    // Hence no value of ports alone, such as `127.0.0.1:3306:3306`: it starts with another character, has
    // one further on, or has no colon.
    shape_with_digit(
        r#"(?P<before>(?:(?m:^)|[;&|($#>"'`]|\\n|\bsudo[ \t](?:-[^\n;&|]*[ \t])?|\bexec[ \t](?:[^\n;&|]*[ \t])?|[ \t]--[ \t])[ \t]*(?:/[a-z/]*bin/)?mysql[a-z]*\s(?:[^\n"'|;]*?\s)?-p["']?)(?:[^\s"'$\[0-9.:-][^\s"']{5,}|[0-9.:]+[^\s"'0-9.:][^\s"']+|[0-9.][^\s"':]{5,})(?P<after>[\s"']|\z)"#,
    ),
    // the lines of .netrc
    shape(r"(?P<before>\bmachine\s+\S+\s+login\s+\S+\s+password\s+)[^\s\[]\S{3,}"),
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
pub(super) static AUTHORIZATION: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?i)\A(?:(?:bearer|basic|token)\s+[^\s\[]\S{3,}|[a-z][a-z0-9-]{1,24}\s+[^\s\[]\S{15,}\z)",
    )
});

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns are constants, and a test compiles them")
}

/// Minimum number of characters of a value.
const MIN_QUOTED: usize = 4;

/// Returns true if a value may be a secret: long enough, and neither a reference such as `${NAME}`
/// nor a placeholder.
pub(super) fn may_be_secret(value: &str) -> bool {
    !value.starts_with(|c: char| c.is_whitespace() || "$<{[".contains(c))
        && value.chars().nth(MIN_QUOTED - 1).is_some()
}

/// Returns the range of the value that starts at `from`, after an opening quote with its
/// backslashes.
///
/// A double-quoted value without a closing quote extends to the end of the line, since the text was
/// truncated. A single quote without another one is an apostrophe.
pub(super) fn find_value(text: &str, from: usize, opening: &str) -> Option<Range<usize>> {
    let quote = opening.bytes().last()?;
    // Each level of JSON nesting doubles the backslashes and adds one: 0, 1, 3, 7. Single quotes
    // are not escaped.
    let escapes = opening.len() - 1;
    let (mut backslashes, mut escaped) = (0, None);
    for (at, byte) in text.bytes().enumerate().skip(from) {
        if byte == b'\\' {
            backslashes += 1;
            continue;
        }
        // A raw line break is not part of a JSON string; the quote was never closed on its line.
        if byte == b'\n' {
            return unclosed_value(quote, from, at, escaped);
        }
        if byte == quote {
            // Fewer backslashes close an enclosing string.
            let closes = backslashes <= escapes
                || (quote == b'"' && backslashes % (2 * (escapes + 1)) == escapes);
            if closes {
                return Some(from..at - backslashes.min(escapes));
            }
            escaped.get_or_insert(at);
        }
        backslashes = 0;
    }
    unclosed_value(quote, from, text.len(), escaped)
}

fn unclosed_value(
    quote: u8,
    from: usize,
    end: usize,
    escaped: Option<usize>,
) -> Option<Range<usize>> {
    if quote == b'"' { Some(from..end) } else { escaped.map(|at| from..at) }
}

/// Minimum number of characters of a random value.
const MIN_RANDOM: usize = 16;
/// Minimum number of characters of a segment between separators to count as random.
const MIN_MIXED: usize = 10;

/// Returns the Shannon entropy of a text in bits per byte.
pub(super) fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    let bits = |count: u32| {
        let share = f64::from(count) / length;
        -share * share.log2()
    };
    counts.into_iter().filter(|count| *count > 0).map(bits).sum()
}

/// Returns true if a value looks random. Under a bare `key`, digests and UUIDs are excluded,
/// because the value may be an entry's key.
pub(super) fn is_random(value: &str, least_entropy: f64, is_bare_key: bool) -> bool {
    let value = value.trim_end_matches(['.', '!', '%', '@', '-']);
    if value.len() < MIN_RANDOM || value.starts_with(['/', '.', '@', '%', '-']) {
        return false;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    if digits < 2 || letters < 2 || entropy(value) < least_entropy {
        return false;
    }
    let is_path = value.bytes().filter(|byte| *byte == b'/').count() > 1 && value.contains('.');
    if is_path || is_identifier(value) || (is_bare_key && (is_digest(value) || is_uuid(value))) {
        return false;
    }
    let is_mixed = |part: &str| {
        let is = |test: fn(&u8) -> bool| part.as_bytes().iter().any(test);
        part.len() >= MIN_MIXED && is(u8::is_ascii_digit) && is(u8::is_ascii_alphabetic)
    };
    is_uuid(value) || value.split(['.', '/', '_', '-', ':', '%', '@', '!']).any(is_mixed)
}

/// Returns true if a value consists of words with numbers between them: `utf8Decoder2`,
/// `sessionToken1234`. Random values change case more often than words do.
fn is_identifier(value: &str) -> bool {
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let runs = value.split(|c: char| !c.is_ascii_alphabetic());
    let in_words: usize =
        runs.flat_map(split_humps).filter(|word| is_word(word)).map(str::len).sum();
    in_words * 10 >= letters * 7
}

/// Splits a name at its camel-case humps.
fn split_humps(run: &str) -> Vec<&str> {
    let bytes = run.as_bytes();
    let mut words = Vec::new();
    let mut start = 0;
    for at in 1..bytes.len() {
        if bytes[at - 1].is_ascii_lowercase() && bytes[at].is_ascii_uppercase() {
            words.push(&run[start..at]);
            start = at;
        }
    }
    words.push(&run[start..]);
    words
}

/// Returns true if letters look pronounceable: some vowels, and capitals only at the start or
/// throughout.
fn is_word(word: &str) -> bool {
    let vowels = word.bytes().filter(|byte| b"aeiouyAEIOUY".contains(byte)).count();
    let rest = word.as_bytes().get(1..).unwrap_or_default();
    let is_even = rest.iter().all(u8::is_ascii_lowercase)
        || word.bytes().all(|byte| byte.is_ascii_uppercase());
    word.len() >= 3 && is_even && vowels * 5 >= word.len() && vowels * 5 <= word.len() * 4
}

/// Returns true for hexadecimal values with the length of a common digest.
fn is_digest(value: &str) -> bool {
    matches!(value.len(), 32 | 40 | 56 | 64 | 96 | 128)
        && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_uuid(value: &str) -> bool {
    let lengths: Vec<usize> = value.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropies() {
        assert!(entropy("aaaa").abs() < 1e-9);
        assert!((entropy("abcd") - 2.0).abs() < 1e-9);
        assert!(entropy("9f86d081884c7d659a2feaa0c55ad015") > 3.3);
    }

    #[test]
    fn references_and_short_values_are_no_secrets() {
        for value in ["abc", "", " abcd", "$NAME", "<token>", "{name}", "[redacted]"] {
            assert!(!may_be_secret(value), "{value}");
        }
        assert!(may_be_secret("abcd") && may_be_secret("äöüß") && may_be_secret("a bcd"));
    }

    #[test]
    fn values_end_at_their_own_quote() {
        let value = |text: &str, from: usize, opening: &str| {
            find_value(text, from, opening).map(|range| text[range].to_owned())
        };
        for (text, from, opening, expected) in [
            (r#""abc" d"#, 1, "\"", Some("abc")),
            (r#""a\"bc" d"#, 1, "\"", Some(r#"a\"bc"#)),
            (r#""abc\\" d"#, 1, "\"", Some(r"abc\\")),
            (r#"\"abc\" d"#, 2, "\\\"", Some("abc")),
            (r#"\"a\\\"bc\" d"#, 2, "\\\"", Some(r#"a\\\"bc"#)),
            // The string around it ends first.
            (r#"\"abc" d"#, 2, "\\\"", Some("abc")),
            ("\"abc", 1, "\"", Some("abc")),
            ("\"abc\nd\"", 1, "\"", Some("abc")),
            ("'abc' d", 1, "'", Some("abc")),
            (r"'a\'bc' d", 1, "'", Some(r"a\'bc")),
            (r"'a\'bc", 1, "'", Some(r"a\")),
            ("'abc", 1, "'", None),
            ("'abc\n'", 1, "'", None),
            ("abc", 0, "", None),
        ] {
            assert_eq!(value(text, from, opening).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_least_that_is_random() {
        let is = |value: &str| is_random(value, 3.0, false);
        // Sixteen characters, two digits, two letters, ten of them without a separator.
        assert!(is("k3Jd82mQpL0xZt7R") && !is("k3Jd82mQpL0xZt7"));
        assert!(is("kXJdqWmQpLbxZt75") && !is("kXJdqWmQpLbxZtr5"));
        assert!(is("82930175648291kx") && !is("829301756482910x"));
        assert!(is("k3Jd82mQpL-xZt7R") && !is("k3Jd82mQp-L0xZt7R"));
        // What is at the end of a sentence or of an address is no part of it.
        assert!(is("k3Jd82mQpL0xZt7R...") && !is("k3Jd82mQpL0xZt...."));
        for start in ["/", ".", "@", "%", "-"] {
            assert!(!is(&format!("{start}k3Jd82mQpL0xZt7R")), "{start}");
        }
        assert!(!is_random("k3Jd82mQpL0xZt7R", 4.5, false), "too even");
        assert!(is_random("k3Jd82mQpL0xZt7R", 4.0, false), "sixteen characters once each");
        assert!(!is("src/k3Jd82mQpL0xZt7R/a.rs") && is("src/k3Jd82mQpL0xZt7R"));
        for value in ["k3Jd82mQpL0xZt7R.x1", "src/k3Jd82mQpL0xZt7R.x1", "a/b/k3Jd82mQpL0xZt7R"] {
            assert!(is(value), "{value}");
        }
        // Digests and UUIDs are secrets where a name says so.
        for value in ["9f86d081884c7d659a2feaa0c55ad015", "3f2c9a7e-1b4d-4c8e-9f0a-6d5b2e8c7a41"] {
            assert!(is(value) && !is_random(value, 3.0, true), "{value}");
        }
        assert!(is("3f2c9a7e-1b4d-4c8e-9f0a-652528677841"), "without a letter at its end");
        assert!(is_random("9f86d081884c7d659a2feaa0c55ad01", 3.0, true), "no digest has 31");
        assert!(is_random("3f2c9a7e-1b4d-4c8e-9f0a-6d5b2e8c7a412", 3.0, true));
    }

    #[test]
    fn words_and_identifiers() {
        for word in ["token", "Token", "TOKEN", "abc", "Key"] {
            assert!(is_word(word), "{word}");
        }
        // Too short, odd capitals, no vowel, nothing but vowels.
        for word in ["ab", "toKen", "tokEN", "xzqkw", "aeiou", "rhthmsk"] {
            assert!(!is_word(word), "{word}");
        }
        assert!(is_word("aeiob") && is_word("abcdf") && !is_word("abcdfg"));
        assert_eq!(split_humps("getUserToken"), ["get", "User", "Token"]);
        assert_eq!(split_humps("URLOf"), ["URLOf"]);
        assert_eq!(split_humps(""), [""]);
        // Seven of its ten letters belong to words.
        assert!(is_identifier("token12xz") && !is_identifier("key12xzqw"));
        assert!(is_identifier("monitor1xzq") && !is_identifier("monito1xzq"));
    }

    #[test]
    fn keys_are_random_and_names_are_not() {
        for value in [
            "k3Jd82mQpL0xZt7Rw5Yv",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "dGhpc2lzYTMydGVzdGtleTEyMzQ1Njc4OQ==",
            "3f2c9a7e-1b4d-4c8e-9f0a-6d5b2e8c7a41",
        ] {
            assert!(is_random(value, 3.3, false), "{value}");
        }
        for value in [
            "claude-3-5-sonnet-20241022",
            "src/command/setup.rs:120",
            "getUserTokenById2024_11",
            "2026-11-21T20-11-59Z",
            "aaaaaaaaaaaaaaaa1111",
            "short1a2b",
            "internationalization22",
        ] {
            assert!(!is_random(value, 3.3, false), "{value}");
        }
        assert!(!is_random("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", 3.3, true), "a digest");
    }
}
