//! Translates errors of the YAML parser for the author of the file: the parser's own messages advise
//! programmers which function to call. Pure.

use selftest_text::one_line;

/// Maximum length of the message, in bytes.
const MAX_MESSAGE: usize = 200;

/// What is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlFault {
    /// The fault in one line, without its place.
    pub message: String,
    /// Advice.
    pub hint: Option<&'static str>,
}

/// Signs of a fault in the parser's words, with our message (the parser's if empty) and a hint.
const FAULTS: &[(&str, &str, &str)] = &[
    (
        "multiple YAML documents",
        "expected one YAML document, found several",
        "remove the lines `---` and `...`",
    ),
    ("tabs disallowed", "a tab in the indentation", "indent by spaces"),
    (
        "mapping values are not allowed",
        "a second `: ` in one line",
        "put a text that holds `: ` in quotes",
    ),
    ("unexpected character", "", "put a text that begins with a special character in quotes"),
    ("unknown anchor", "", "put a text that begins with `*` in quotes"),
    ("unsupported tag", "", "put a text that begins with `!` in quotes"),
    ("non-finite float", "a number that is not finite", "write a number such as 0.7"),
    ("unclosed bracket", "", "close it, or write one item in each line with `- `"),
    ("multiline quoted scalar", "a quotation mark that is not closed", "close it in the same line"),
    (
        "did not find expected '-'",
        "an indentation that fits no list or mapping above",
        "let all keys of a mapping, and all items of a list, begin in the same column",
    ),
    (
        "did not find expected key",
        "an indentation that fits no list or mapping above",
        "let all keys of a mapping, and all items of a list, begin in the same column",
    ),
];

impl YamlFault {
    /// Translates an error message of the parser.
    pub fn new(words: &str) -> Self {
        let words = words.lines().next().unwrap_or_default();
        let words = words.strip_prefix("error: ").unwrap_or(words);
        // Callers show the place themselves.
        let words = match words.split_once(": ") {
            Some((place, rest)) if place.starts_with("line ") && place.contains("column") => rest,
            _ => words,
        };
        let words = words.split(" at line ").next().unwrap_or_default();
        if let Some(key) = words.strip_prefix("duplicate mapping key: ") {
            let key = key.split(", set ").next().unwrap_or_default();
            let message = format!("the key `{}` is there twice", one_line(key, 60));
            return Self { message, hint: Some("remove one of the two") };
        }
        let known = FAULTS.iter().find(|(sign, _, _)| words.contains(sign));
        let message = match known {
            Some((_, ours, _)) if !ours.is_empty() => (*ours).to_owned(),
            _ => one_line(words, MAX_MESSAGE),
        };
        Self { message, hint: known.map(|(_, _, hint)| *hint) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_advice_for_programmers_is_left() {
        for (words, message) in [
            (
                "error: line 7 column 1: multiple YAML documents detected; use from_str_multiple or \
                 from_str_multiple_with_options\n --> <input>:7:1",
                "expected one YAML document, found several",
            ),
            (
                "line 4 column 5: duplicate mapping key: prompt, set DuplicateKeyPolicy in Options if \
                 acceptable",
                "the key `prompt` is there twice",
            ),
            (
                "non-finite float `.nan` rejected by the configured policy",
                "a number that is not finite",
            ),
            ("unexpected character: `@'", "unexpected character: `@'"),
            ("something new at line 3", "something new"),
        ] {
            assert_eq!(YamlFault::new(words).message, message);
        }
        assert!(YamlFault::new("unexpected character: `@'").hint.is_some());
        assert_eq!(YamlFault::new("").message, "");
    }
}
