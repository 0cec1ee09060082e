//! What an error message says: its class among the nine of
//! docs/spec/session-grades.md#error-classes, its informative part, which is the exception at the end
//! of a Python traceback or else the whole message, and the pattern shared by similar ones.
//!
//! In a pattern varying parts are masked, and nearly identical patterns are merged, as the Drain
//! algorithm does for log lines. The result is deterministic for the same messages in the same order.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::english;
use crate::english::EnglishPatterns;

/// Class of a tool error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorClass {
    /// A file or path does not exist.
    FileNotFound,
    /// Access was denied.
    PermissionDenied,
    /// A time limit was exceeded.
    Timeout,
    /// An external API failed.
    ApiError,
    /// Code or data could not be parsed.
    SyntaxError,
    /// A command ended with an exit code other than 0.
    CommandFailed,
    /// The connection failed.
    NetworkError,
    /// The tool does not exist.
    ToolNotFound,
    /// Any other error.
    Unknown,
}

selftest_text::named!(ErrorClass);

impl ErrorClass {
    /// Classifies an error by its message and the exit code of its program.
    ///
    /// If the message ends with a known exception, its name decides. Otherwise the first matching
    /// class in the order of the specification's table applies, except that `tool_not_found` and
    /// `network_error` come before the wider classes. `command_failed` is the fallback for an exit
    /// code other than 0.
    pub fn classify(words: &str, exit_code: Option<i64>) -> Self {
        /// Errors are reported at the start or the end; the middle is output.
        const MAX_LOOKED_AT: usize = 1500;
        let head = &words[..words.floor_char_boundary(MAX_LOOKED_AT)];
        let tail = &words[words.ceil_char_boundary(words.len().saturating_sub(MAX_LOOKED_AT))..];
        // A short text is covered by the tail alone.
        let is_long = words.len() > MAX_LOOKED_AT;
        let of_head = || is_long.then(|| exception_class(head)).flatten();
        if let Some(class) = exception_class(tail).or_else(of_head) {
            return class;
        }
        let in_head = PATTERNS.matches(head);
        // The last pattern is `EXIT_CODE`, which has no class of its own.
        let class_of = |at: usize| ORDER.get(at).map(|(class, _)| *class);
        let of_tail = || class_of(is_long.then(|| PATTERNS.first(tail)).flatten()?);
        let first = in_head.as_ref().and_then(|found| class_of(found.iter().next()?));
        let found = first.or_else(of_tail);
        let by_code = || match exit_code {
            // Exit code of `timeout` and of shells that enforce a time limit.
            Some(124) => Some(ErrorClass::Timeout),
            Some(code) if code != 0 => Some(ErrorClass::CommandFailed),
            _ => in_head
                .is_some_and(|found| found.matched(ORDER.len()))
                .then_some(ErrorClass::CommandFailed),
        };
        found.or_else(by_code).unwrap_or(ErrorClass::Unknown)
    }
}

/// Returns the class of the last exception in a text. It must be at the start of a line or after a
/// colon or quote; a name within a line of code does not count.
fn exception_class(text: &str) -> Option<ErrorClass> {
    // Every exception name contains one of these, so this skips most texts cheaply.
    if !text.contains("Error") && !text.contains("TimeoutExpired") {
        return None;
    }
    // Python prints the causes first and what was raised in the end last.
    let name = EXCEPTION.captures_iter(text).last()?.get(1)?.as_str();
    Some(match name {
        "FileNotFoundError" => ErrorClass::FileNotFound,
        "PermissionError" => ErrorClass::PermissionDenied,
        "TimeoutError" | "TimeoutExpired" => ErrorClass::Timeout,
        "SyntaxError" | "IndentationError" | "TabError" | "JSONDecodeError" => {
            ErrorClass::SyntaxError
        }
        _ => ErrorClass::NetworkError,
    })
}

static EXCEPTION: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"(?m)(?:^[ \t]*(?:E[ \t]+)?|: |["'])(?:[A-Za-z0-9_]+\.)*(FileNotFoundError|PermissionError|TimeoutError|TimeoutExpired|SyntaxError|IndentationError|TabError|JSONDecodeError|ConnectionError|ConnectionRefusedError|ConnectionResetError|ConnectionAbortedError)(?:[:("']|[ \t\r]*$)"#;
    english::regex(pattern)
});

/// Narrower classes first: "connection timed out" is a network error, and "unknown tool" is not a
/// missing file.
const ORDER: [(ErrorClass, &str); 7] = [
    (
        ErrorClass::ToolNotFound,
        r"(?i)\b(unknown tool|no such tool|tool (\S+ )?(does not exist|not found|is not available)|unknown function|invalid tool name)\b",
    ),
    (
        ErrorClass::NetworkError,
        r"(?i)\b(connection (refused|reset|aborted|error|timed out|closed)|could not resolve host|name or service not known|temporary failure in name resolution|network is unreachable|no route to host|ECONNREFUSED|ECONNRESET|ENOTFOUND|ETIMEDOUT|EAI_AGAIN|dns (error|lookup)|getaddrinfo|socket hang up|tls handshake|certificate verify failed)\b",
    ),
    (
        ErrorClass::FileNotFound,
        r"(?i)\b(no such file or directory|file(\s+\S+)? (does not exist|not found)|path (\S+ )?(does not exist|not found)|directory (\S+ )?(does not exist|not found)|cannot find the (file|path)|ENOENT|no files? found|does not exist on disk)\b",
    ),
    (
        ErrorClass::PermissionDenied,
        r"(?i)\b(permission denied|access (is )?denied|(operation|action|access|command|call) (is )?not permitted|not permitted (to|by)|EACCES|EPERM|read-only file system|forbidden|unauthori[sz]ed)\b",
    ),
    (
        ErrorClass::Timeout,
        r"(?i)\b(timed? ?out|timeout (expired|exceeded|reached|after|error)|deadline exceeded|time limit exceeded)\b",
    ),
    (
        ErrorClass::ApiError,
        r"(?i)\b(rate limit(s|ed)?|too many requests|quota exceeded|overloaded(_error)?|api[ _]error|internal server error|bad gateway|service unavailable|(http|status)([ _]?(code|error))?[ :=]+[45]\d\d|[45]\d\d (client|server) error)\b",
    ),
    (
        ErrorClass::SyntaxError,
        r"(?i)\b(syntax ?error|invalid syntax|IndentationError|parse error|parsing error|unexpected (token|eof|end of (file|input|json))|JSONDecodeError|json\.decoder|unterminated string|unmatched|failed to parse)\b",
    ),
];

/// Matches an exit code stated in the message.
const EXIT_CODE: &str = r#"(?i)("exit_code"|exit(ed with)?( code| status)|returncode)\D{0,12}-?[1-9]|\bcommand failed\b|command not found"#;

/// The patterns of [`ORDER`] followed by [`EXIT_CODE`], in a single set.
static PATTERNS: LazyLock<EnglishPatterns> = LazyLock::new(|| {
    EnglishPatterns::new(ORDER.iter().map(|(_, pattern)| *pattern).chain([EXIT_CODE]))
});

/// First line of a traceback. If there are several, the last one is what ended the program.
const BEGINNING: &str = "Traceback (most recent call last)";

/// Built once, since every error is searched.
static BEGINNINGS: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new(BEGINNING));

/// Matches the exception that ends a traceback, at the start of a line.
static RAISED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^[A-Za-z_][A-Za-z0-9_.]*(?::.*|[ \t\r]*)$").expect("the pattern is a constant")
});

/// Matches a parse error, which has no traceback.
static UNPARSED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^(?:SyntaxError|IndentationError|TabError): .*$")
        .expect("the pattern is a constant")
});

/// Returns the exception at the end of a message, with the following line if its own line contains
/// only the name. Returns the whole message if there is no exception.
pub(super) fn informative_part(words: &str) -> &str {
    let raised = match BEGINNINGS.find_iter(words.as_bytes()).last() {
        Some(at) => {
            let from = at + BEGINNING.len();
            RAISED.find(&words[from..]).map(|hit| (from + hit.start(), from + hit.end()))
        }
        None => UNPARSED.find(words).map(|hit| (hit.start(), hit.end())),
    };
    let Some((start, end)) = raised else { return words };
    let line = words[start..end].trim_end();
    if !line.ends_with(':') {
        return line;
    }
    // The line has only the name; the text is on the next one.
    let rest = words[end..].trim_start();
    let next = words.len() - rest.len();
    words[start..next + rest.find('\n').unwrap_or(rest.len())].trim_end()
}

/// Maximum length in bytes of an examined line, and of a template.
const MAX_LINE: usize = 400;
const MAX_TEMPLATE: usize = 160;
/// Maximum number of examined lines of a message.
const MAX_LINES: usize = 400;
/// Minimum share of common words for two templates to be merged.
const MIN_SIMILARITY: f64 = 0.6;
/// Maximum number of templates to compare with a new one.
const MAX_TEMPLATES: usize = 1000;
/// Placeholder for a word that varies.
const ANY: &str = "<*>";

macro_rules! pattern {
    ($name:ident, $pattern:literal) => {
        static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("the pattern is a constant"));
    };
    (english $name:ident, $pattern:literal) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| english::regex($pattern));
    };
}

// Listed in masking order: a path may contain numbers, and a quote may contain a path.
pattern!(english URL, r"https?://[^\s\x22'`)>\]]+");
pattern!(QUOTED, r#""[^"]{1,300}"|'[^'\s][^']{0,300}'|`[^`]{1,300}`|“[^”]{1,300}”"#);
pattern!(
    PATH,
    r"(?:~|\.{1,2})?(?:/[\w.@+-]+)+/?|(?:[\w.@+-]+/)+[\w.@+-]+|[A-Za-z]:\\[\w\\.-]+|[\w-]+\.(?:rs|py|ts|tsx|js|jsx|go|java|rb|c|h|cpp|md|json|toml|ya?ml|txt|sh|html|css|sql)(?-u:\b)"
);
pattern!(english HEX, r"\b(?:0x[0-9a-fA-F]+|[0-9a-f]{8}-[0-9a-f-]{20,}|[0-9a-f]{7,64})\b");
pattern!(english NUMBER, r"[0-9]+(?:[.,:][0-9]+)*");

// Patterns for lines that report or may report an error.
pattern!(
    english REPORTED,
    r"(?i)(?:^|\s)(?:error|fatal|panic(?:ked)?|exception)(?:\[[\w-]+\]|\s+ts\d+)?:|\berror TS\d+|^[A-Z]\w*(?:Error|Exception)\b"
);
pattern!(
    english SUSPECT,
    r"(?i)error|fail|cannot|can't|could not|not found|denied|invalid|unable|refused|missing|not |no such|unknown|exceed"
);

/// Returns the most informative line: the first failed assertion, else the first line that reports
/// an error, else the first that might.
fn most_informative_line(words: &str) -> &str {
    let (mut first, mut suspect, mut reported) = (None, None, None);
    for line in words.lines().take(MAX_LINES).map(clip).filter(|line| !is_preamble(line)) {
        if is_assertion(line) {
            return line.trim();
        }
        first = first.or(Some(line));
        if reported.is_none() {
            if REPORTED.is_match(line) {
                reported = Some(line);
            } else if suspect.is_none() && SUSPECT.is_match(line) {
                suspect = Some(line);
            }
        }
    }
    reported.or(suspect).or(first).unwrap_or_default().trim()
}

/// Returns true for a line that a test runner marks as the failed assertion.
fn is_assertion(line: &str) -> bool {
    // pytest marks the lines of a failed assertion with `E` and spaces.
    let marked = line.strip_prefix('E').is_some_and(|rest| {
        let inner = rest.trim_start();
        rest.len() >= inner.len() + 2 && !inner.is_empty()
    });
    // `FAILED ` is of pytest's summary, `--- FAIL` of Go's tests.
    let begins = ["FAILED ", "--- FAIL"].iter().any(|mark| line.starts_with(mark));
    marked || begins || line.trim_start().starts_with("AssertionError")
}

/// Returns true for a line without information about the error: empty, a separator, an exit code, a
/// tag.
fn is_preamble(line: &str) -> bool {
    let line = line.trim_end();
    let is_rule = line.chars().all(|c| c.is_whitespace() || "=-_~*#".contains(c));
    let code = line.strip_prefix("Exit code ");
    is_rule
        || line == "<tool_use_error>"
        || code
            .is_some_and(|code| !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_digit()))
}

fn clip(line: &str) -> &str {
    &line[..line.floor_char_boundary(MAX_LINE)]
}

/// Masks addresses, quotes, paths, hashes and numbers, so that similar messages get the same
/// template.
pub(super) fn mask_message(words: &str) -> String {
    let line = most_informative_line(words);
    let mut masked = Cow::Borrowed(line);
    for (pattern, mask) in
        [(&URL, "<url>"), (&QUOTED, "<text>"), (&PATH, "<path>"), (&HEX, "<hex>"), (&NUMBER, "<n>")]
    {
        if let Cow::Owned(changed) = pattern.replace_all(&masked, mask) {
            masked = Cow::Owned(changed);
        }
    }
    selftest_text::one_line(&masked, MAX_TEMPLATE)
}

/// A set of templates in which similar ones are merged.
#[derive(Debug, Default)]
pub(super) struct TemplateSet {
    known: Vec<Vec<String>>,
}

impl TemplateSet {
    /// Adds a template and returns the index of its group. A template belongs to the first group
    /// with the same number of words and enough words in common.
    pub(super) fn add(&mut self, template: &str) -> usize {
        let words: Vec<&str> = template.split_whitespace().collect();
        let alike = |known: &Vec<String>| {
            // A mask stands for exactly one word, so templates are compared word by word.
            if known.len() != words.len() {
                return false;
            }
            let same = known.iter().zip(&words).filter(|(one, other)| one == *other).count();
            #[expect(clippy::cast_precision_loss, reason = "counts of words in a line")]
            let share = same as f64 / words.len().max(1) as f64;
            // Two empty templates are the same, although no word of theirs can be.
            share >= MIN_SIMILARITY || words.is_empty()
        };
        if let Some(at) = self.known.iter().position(alike) {
            for (known, word) in self.known[at].iter_mut().zip(&words) {
                if known != word {
                    ANY.clone_into(known);
                }
            }
            return at;
        }
        // Each new template is compared with all known ones, so their number bounds the time.
        if self.known.len() >= MAX_TEMPLATES {
            return MAX_TEMPLATES - 1;
        }
        self.known.push(words.into_iter().map(str::to_owned).collect());
        self.known.len() - 1
    }

    /// Returns the text of a template.
    pub(super) fn text(&self, number: usize) -> String {
        self.known.get(number).map(|words| words.join(" ")).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specified_examples() {
        for (words, class) in [
            ("No such file or directory", ErrorClass::FileNotFound),
            ("Permission denied", ErrorClass::PermissionDenied),
            ("Request timed out", ErrorClass::Timeout),
            ("Rate limit exceeded", ErrorClass::ApiError),
            ("Invalid syntax", ErrorClass::SyntaxError),
            (r#""exit_code": 1"#, ErrorClass::CommandFailed),
            ("Connection refused", ErrorClass::NetworkError),
            ("Unknown tool", ErrorClass::ToolNotFound),
            ("something else", ErrorClass::Unknown),
        ] {
            assert_eq!(ErrorClass::classify(words, None), class, "{words}");
        }
    }

    #[test]
    fn words_go_before_exit_codes_and_narrow_before_wide() {
        for (words, code, class) in [
            ("cat: x: No such file or directory", Some(1), ErrorClass::FileNotFound),
            ("3 tests failed", Some(101), ErrorClass::CommandFailed),
            ("", Some(124), ErrorClass::Timeout),
            ("curl: (7) connection timed out", Some(7), ErrorClass::NetworkError),
            ("HTTP 503", None, ErrorClass::ApiError),
            ("bash: foo: command not found", None, ErrorClass::CommandFailed),
            (
                "<tool_use_error>File does not exist.</tool_use_error>",
                None,
                ErrorClass::FileNotFound,
            ),
            ("exit code: 0", None, ErrorClass::Unknown),
            ("I found 404 apples", None, ErrorClass::Unknown),
        ] {
            assert_eq!(ErrorClass::classify(words, code), class, "{words}");
        }
        let long = format!("{}\nPermission denied", "line\n".repeat(3000));
        assert_eq!(ErrorClass::classify(&long, Some(1)), ErrorClass::PermissionDenied);
    }

    #[test]
    fn a_raised_exception_decides_and_a_mentioned_one_does_not() {
        for (words, class) in [
            (
                "exitcode: 1 (execution failed)\nCode output:   File \"/a/b.py\", line 1\n    \
                 n = 737,015\n        ^\nSyntaxError: leading zeros in decimal integer literals \
                 are not permitted; use an 0o prefix for octal integers",
                ErrorClass::SyntaxError,
            ),
            (
                "error[call-non-callable]: Object of type `X` is not callable\n427 |   except \
                 PermissionError:\n428 |       # If we get permission errors, skip\nFound 1 \
                 diagnostic",
                ErrorClass::Unknown,
            ),
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 2\nFileNotFoundError: \
                 [Errno 2] 'x'\n\nDuring handling of the above exception, another exception \
                 occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", line 4\n\
                 requests.exceptions.ConnectionError: timed out",
                ErrorClass::NetworkError,
            ),
            ("E   json.decoder.JSONDecodeError: Extra data: line 1", ErrorClass::SyntaxError),
            ("{\"error\": \"TimeoutError\"}", ErrorClass::Timeout),
            ("asyncio.exceptions.TimeoutError", ErrorClass::Timeout),
            ("PermissionError: [Errno 13] 'x'", ErrorClass::PermissionDenied),
            ("rm: cannot remove 'x': Operation not permitted", ErrorClass::PermissionDenied),
            ("You are not permitted to push to main", ErrorClass::PermissionDenied),
            ("except (PermissionError, TimeoutError, FileNotFoundError):", ErrorClass::Unknown),
        ] {
            assert_eq!(ErrorClass::classify(words, None), class, "{words}");
        }
    }

    #[test]
    fn names_are_those_of_serde() {
        for &class in ErrorClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.name());
            assert_eq!(ErrorClass::from_name(class.name()), Some(class));
        }
    }

    #[test]
    fn the_exception_of_a_traceback() {
        let head = "exitcode: 1\nCode output: Traceback (most recent call last):\n  File \"a.py\", \
                    line 5, in f\n    return a/b\n           ~^~\n";
        for (end, told) in [
            ("ZeroDivisionError: division by zero", "ZeroDivisionError: division by zero"),
            (
                "requests.exceptions.SSLError: x\n\nmore output: y",
                "requests.exceptions.SSLError: x",
            ),
            ("KeyboardInterrupt\r\n", "KeyboardInterrupt"),
            ("ValueError:\n\n  expected a number\nbye", "ValueError:\n\n  expected a number"),
            ("ValueError:", "ValueError:"),
        ] {
            assert_eq!(informative_part(&format!("{head}{end}")), told);
            let chained = format!("{head}KeyError: 'id'\n\nDuring handling …:\n\n{head}{end}");
            assert_eq!(informative_part(&chained), told);
        }
        let notebook = "----\nZeroDivisionError     Traceback (most recent call last)\n\
                        Cell In[3], line 1\n----> 1 f()\n\nZeroDivisionError: division by zero";
        assert_eq!(informative_part(notebook), "ZeroDivisionError: division by zero");
        let unparsed = "Code output:   File \"/a.py\", line 1\n    n = 7,015\n        ^\n\
                        SyntaxError: leading zeros\n";
        assert_eq!(informative_part(unparsed), "SyntaxError: leading zeros");
    }

    #[test]
    fn other_words_are_left_as_they_are() {
        for words in [
            "",
            "Error: payment method not found",
            "Traceback (most recent call last):",
            "Traceback (most recent call last):\n  File \"a.py\", line 5\n    torn",
            "File \"a.py\", line 3\ndone: nothing",
        ] {
            assert_eq!(informative_part(words), words);
        }
    }

    #[test]
    fn what_differs_is_masked() {
        for (words, template) in [
            (
                "String to replace not found in file.\nString: def main():",
                "String to replace not found in file.",
            ),
            ("Request failed with status code 404", "Request failed with status code <n>"),
            (
                "Exit code 2\ncat: src/mian.rs: No such file or directory",
                "cat: <path>: No such file or directory",
            ),
            (
                "src/agent/a.ts(217,9): error TS2322: Type '\"press\"' is not assignable to 'x'.",
                "<path>(<n>): error TS<n>: Type <text> is not assignable to <text>.",
            ),
            (
                "fetching https://example.org/a?b=1 failed after 30 s",
                "fetching <url> failed after <n> s",
            ),
            ("Shell dce0af12 is not running", "Shell <hex> is not running"),
            (
                "=== test session starts ===\ncollected 3 items\n\nE   AssertionError: assert 1 == 2",
                "E AssertionError: assert <n> == <n>",
            ),
            ("", ""),
        ] {
            assert_eq!(mask_message(words), template, "{words}");
        }
    }

    #[test]
    fn templates_that_are_alike_become_one() {
        let mut templates = TemplateSet::default();
        let first = templates.add("cannot find module alpha in scope");
        assert_eq!(templates.add("cannot find module beta in scope"), first);
        assert_eq!(templates.text(first), "cannot find module <*> in scope");
        assert_ne!(templates.add("permission denied"), first);
        assert_ne!(templates.add("cannot find it"), first);
        assert_eq!(templates.add("cannot find module gamma in scope"), first);
        for number in 0..3000 {
            templates.add(&format!("w{number} x{number} y{number}"));
        }
        assert!(templates.known.len() <= MAX_TEMPLATES);
    }

    #[test]
    fn any_text_has_a_template() {
        for text in ["é".repeat(5000), "'".repeat(999), "/".repeat(999), "\u{1b}[31m x".into()] {
            assert!(mask_message(&text).len() <= MAX_TEMPLATE + 3, "{text}");
        }
    }
}
