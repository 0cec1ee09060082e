//! Classifies tool errors into the nine classes of docs/spec/session-grades.md#error-classes by
//! their message.

use std::sync::LazyLock;

use crate::english::{self, EnglishPatterns};
use regex::Regex;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

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
}
