//! English word patterns for the regex crate.
//!
//! `\b`, `\d`, `\s`, `\w` and `(?i)` are limited to ASCII. With the Unicode versions the engine
//! leaves its fast path at the first non-ASCII character and takes several times as long to
//! compile.

use regex::{Regex, RegexSet, SetMatches};

/// Compiles a constant regular expression.
///
/// # Panics
///
/// If the pattern is malformed.
pub(crate) fn regex(pattern: &str) -> Regex {
    Regex::new(&ascii(pattern)).expect("the pattern is a constant")
}

/// Compiles a set of constant regular expressions.
///
/// # Panics
///
/// If one of the patterns is malformed.
pub(crate) fn regex_set<'p>(patterns: impl IntoIterator<Item = &'p str>) -> RegexSet {
    RegexSet::new(patterns.into_iter().map(ascii)).expect("the patterns are constants")
}

/// A set of patterns that rarely match.
pub(crate) struct EnglishPatterns {
    /// Alternation of all patterns, which is searched in a fraction of the time.
    any: Regex,
    each: RegexSet,
}

impl EnglishPatterns {
    /// Compiles constant patterns.
    ///
    /// # Panics
    ///
    /// If one of the patterns is malformed.
    pub(crate) fn new<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Self {
        let patterns: Vec<&str> = patterns.into_iter().collect();
        let any: Vec<String> = patterns.iter().map(|pattern| format!("(?:{pattern})")).collect();
        Self { any: regex(&any.join("|")), each: regex_set(patterns) }
    }

    /// Returns the patterns that match, or `None` if no pattern does.
    pub(crate) fn matches(&self, text: &str) -> Option<SetMatches> {
        self.any.is_match(text).then(|| self.each.matches(text))
    }

    /// Returns the index of the first pattern in the list that matches anywhere in the text.
    pub(crate) fn first(&self, text: &str) -> Option<usize> {
        self.matches(text)?.iter().next()
    }
}

/// Rewrites a pattern to use ASCII classes. Constructs that may match other characters (a dot or a
/// negated class) still match whole characters.
fn ascii(pattern: &str) -> String {
    let mut ascii = "(?-u)".to_owned();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            // An escaped bracket must not be read as the start of a class.
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' => class_length(rest),
            _ => c.len_utf8(),
        };
        let (part, behind) = rest.split_at(length);
        let others = match part {
            r"\S" => Some(r"[^ \t\r\n\x0b\x0c]"),
            r"\D" => Some("[^0-9]"),
            r"\W" => Some("[^0-9A-Za-z_]"),
            // With `-u`, a dot or negated class could match a single byte of a UTF-8 sequence.
            "." => Some("."),
            class if class.starts_with("[^") || (c == '[' && !class.is_ascii()) => Some(class),
            _ => None,
        };
        match others {
            Some(others) => ascii.extend(["(?u:", others, ")"]),
            None => ascii.push_str(part),
        }
        rest = behind;
    }
    ascii
}

/// Returns the length in bytes of the class at the start of a pattern, including its brackets.
fn class_length(pattern: &str) -> usize {
    let mut chars = pattern.char_indices().skip(1).peekable();
    chars.next_if(|(_, c)| *c == '^');
    // A `]` right after the opening bracket is a literal.
    chars.next_if(|(_, c)| *c == ']');
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            ']' => return at + 1,
            _ => {}
        }
    }
    pattern.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_ascii() {
        for (pattern, expected) in [
            (r"(?i)\bdone\b", r"(?-u)(?i)\bdone\b"),
            (r"a.b\.c", r"(?-u)a(?u:.)b\.c"),
            (r"\S+\d\\D", r"(?-u)(?u:[^ \t\r\n\x0b\x0c])+\d\\D"),
            (r"[\w.-]+[^\]x]?[]a]", r"(?-u)[\w.-]+(?u:[^\]x])?[]a]"),
            ("it['’]s", "(?-u)it(?u:['’])s"),
            ("✗|✕", "(?-u)✗|✕"),
        ] {
            assert_eq!(ascii(pattern), expected);
            regex(pattern);
        }
    }

    #[test]
    fn any_of_several_patterns_is_found() {
        let patterns = EnglishPatterns::new([r"(?i)\berror\b", r"(?m)^b$", "(?i)x|y"]);
        for (text, first, all) in [
            ("", None, 0),
            ("errors B", None, 0),
            ("Y an ERROR\nb", Some(0), 3),
            ("y\nb", Some(1), 2),
        ] {
            assert_eq!(patterns.first(text), first, "{text}");
            assert_eq!(patterns.matches(text).map_or(0, |all| all.iter().count()), all, "{text}");
        }
    }

    #[test]
    fn other_characters_are_matched_whole() {
        let found = |pattern: &str, text: &str| regex(pattern).find(text).map(|hit| hit.range());
        assert_eq!(found("a.c", "aéc"), Some(0..4));
        assert_eq!(found(r"\S+", " né "), Some(1..4));
        assert_eq!(found(r"x[^ ]", "xé"), Some(0..3));
        assert_eq!(found(r"\bdone\b", "édoneé"), Some(2..6));
        assert_eq!(found(r"(?i)ok", "O\u{212a}"), None);
    }
}
