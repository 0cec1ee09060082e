//! Extracts the informative part of an error message: the exception at the end of a Python
//! traceback, or else the whole message.

use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
