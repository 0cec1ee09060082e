//! Derives the pattern shared by similar error messages. Varying parts are masked, and nearly
//! identical patterns are merged, as the Drain algorithm does for log lines.
//!
//! The result is deterministic for the same messages in the same order.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::english;

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
            if known.len() != words.len() {
                return false;
            }
            let same = known.iter().zip(&words).filter(|(one, other)| one == *other).count();
            #[expect(clippy::cast_precision_loss, reason = "counts of words in a line")]
            let share = same as f64 / words.len().max(1) as f64;
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
