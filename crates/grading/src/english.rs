//! Patterns over English words, for the regex crate: `\b`, `\d`, `\s` and `\w` are those of ASCII,
//! and so is the case that `(?i)` ignores. With those of Unicode the engine leaves its fast path at
//! the first character that is not ASCII, and needs several times as long to get ready. Pure.

use regex::{Regex, RegexSet, SetMatches};

/// A regular expression from a constant.
///
/// # Panics
///
/// If the pattern is malformed.
pub(crate) fn regex(pattern: &str) -> Regex {
    Regex::new(&ascii(pattern)).expect("the pattern is a constant")
}

/// A set of them.
///
/// # Panics
///
/// If one of the patterns is malformed.
pub(crate) fn regex_set<'p>(patterns: impl IntoIterator<Item = &'p str>) -> RegexSet {
    RegexSet::new(patterns.into_iter().map(ascii)).expect("the patterns are constants")
}

/// Patterns of which a text rarely has any.
pub(crate) struct Patterns {
    /// All of them as one, which is searched in a fraction of the time.
    any: Regex,
    each: RegexSet,
}

impl Patterns {
    /// From constants.
    ///
    /// # Panics
    ///
    /// If one of the patterns is malformed.
    pub(crate) fn new<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Self {
        let patterns: Vec<&str> = patterns.into_iter().collect();
        let any: Vec<String> = patterns.iter().map(|pattern| format!("(?:{pattern})")).collect();
        Self { any: regex(&any.join("|")), each: regex_set(patterns) }
    }

    /// Those that the text has; `None` where it has none.
    pub(crate) fn matches(&self, text: &str) -> Option<SetMatches> {
        self.any.is_match(text).then(|| self.each.matches(text))
    }

    /// The first of them that the text has, wherever it stands.
    pub(crate) fn first(&self, text: &str) -> Option<usize> {
        self.matches(text)?.iter().next()
    }
}

/// The pattern with classes of ASCII. What may match other characters, a dot or a negated class,
/// still matches them whole.
fn ascii(pattern: &str) -> String {
    let mut ascii = "(?-u)".to_owned();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' => class_length(rest),
            _ => c.len_utf8(),
        };
        let (part, behind) = rest.split_at(length);
        let others = match part {
            r"\S" => Some(r"[^ \t\r\n\x0b\x0c]"),
            r"\D" => Some("[^0-9]"),
            r"\W" => Some("[^0-9A-Za-z_]"),
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

/// Bytes of the class at the beginning of a pattern, with its brackets.
fn class_length(pattern: &str) -> usize {
    let mut chars = pattern.char_indices().skip(1).peekable();
    chars.next_if(|(_, c)| *c == '^');
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
        let patterns = Patterns::new([r"(?i)\berror\b", r"(?m)^b$", "(?i)x|y"]);
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
