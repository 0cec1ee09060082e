//! Untrusted regular expressions: bounded in size when compiled, and in the work of a search. A search
//! that may go back is bounded both in its steps and in its text, since one step of look-around may
//! read the whole text.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::CheckValueError;

/// Maximum length of a pattern, in characters.
pub(super) const MAX_PATTERN: usize = 4096;
/// Maximum size of a compiled pattern, and of its lazy DFA cache, in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// Maximum number of steps of a search that may go back, about a tenth of a second where each step
/// reads little.
const MAX_STEPS: usize = 4_000_000;
/// Maximum length of the text of such a search, in bytes. Only going back counts as a step: what stands
/// in `(?=.*x)` may be searched to the end of the text from every place of it, which takes time
/// quadratic in the text without a single step.
const MAX_STEPWISE_TEXT: usize = 64 << 10;

/// Maximum number of cached compiled patterns, at about a megabyte each.
const MAX_KEPT: usize = 64;

/// Cache of compiled patterns. Thousands of cases share the same few, and compiling one takes
/// longer than everything else the harness does for a case.
static COMPILED: LazyLock<Mutex<HashMap<String, Arc<CompiledPattern>>>> =
    LazyLock::new(Mutex::default);

/// A pattern by the way in which it is searched.
enum CompiledPattern {
    /// In time linear in the text.
    Linear(Regex),
    /// By steps that may go back, for look-around and back-references.
    Stepwise(fancy_regex::Regex),
}

/// A search that was given up: whether the pattern matches is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PatternSearchError {
    /// More steps than allowed.
    #[error("the pattern takes too many steps on this text")]
    Steps,
    /// A longer text than such a pattern may search.
    #[error("the text is longer than 64 KiB, too long for look-around and back-references")]
    LongText,
}

/// A regular expression in the syntax of the `regex` crate, with look-around and back-references as in
/// `fancy-regex`. Searches without these take time linear in the text; with them, a bounded number of
/// steps on a text of bounded length.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CheckPattern {
    source: String,
    /// Shared, because cloning a `Regex` does not clone its search caches.
    compiled: Arc<CompiledPattern>,
}

impl CheckPattern {
    /// Compiles a pattern; fails if it is invalid or exceeds the limits.
    pub fn new(source: &str) -> Result<Self, CheckValueError> {
        if source.is_empty() {
            return Err(CheckValueError::EmptyPattern);
        }
        if source.chars().count() > MAX_PATTERN {
            return Err(CheckValueError::LongPattern);
        }
        let known = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        // A poisoned lock is harmless: an entry is either complete or absent.
        if let Some(compiled) = known().get(source) {
            return Ok(Self { source: source.to_owned(), compiled: Arc::clone(compiled) });
        }
        // Answers are composed too.
        let composed = selftest_text::normal::normalise(source).text;
        // Tried first, because this engine takes linear time on any text.
        let linear = RegexBuilder::new(&composed)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_COMPILED)
            // Bounds the recursion of the pattern parser.
            .nest_limit(100)
            .build();
        let compiled = Arc::new(match linear {
            Ok(linear) => CompiledPattern::Linear(linear),
            Err(error) => stepwise(&composed)
                .map(CompiledPattern::Stepwise)
                .ok_or(CheckValueError::Pattern(error))?,
        });
        // The lock is not held while compiling, so two threads may compile the same pattern.
        let mut known = known();
        // The cache is never evicted: a suite with more patterns just compiles the rest each time.
        if known.len() < MAX_KEPT {
            known.insert(source.to_owned(), Arc::clone(&compiled));
        }
        Ok(Self { source: source.to_owned(), compiled })
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Returns the first match in a text. Fails if the search takes too many steps, or may take too long
    /// on a text of this length.
    pub fn find<'t>(&self, text: &'t str) -> Result<Option<&'t str>, PatternSearchError> {
        match &*self.compiled {
            CompiledPattern::Linear(regex) => Ok(regex.find(text).map(|found| found.as_str())),
            CompiledPattern::Stepwise(_) if text.len() > MAX_STEPWISE_TEXT => {
                Err(PatternSearchError::LongText)
            }
            CompiledPattern::Stepwise(regex) => match regex.find(text) {
                Ok(found) => Ok(found.map(|found| found.as_str())),
                Err(_) => Err(PatternSearchError::Steps),
            },
        }
    }

    /// Returns the first match in the first of these texts that has one. Fails if none is found and a
    /// search was given up.
    pub fn find_in<'t>(
        &self,
        texts: impl IntoIterator<Item = &'t str>,
    ) -> Result<Option<&'t str>, PatternSearchError> {
        let mut searched = Ok(None);
        for text in texts {
            match self.find(text) {
                Ok(None) => {}
                Ok(found) => return Ok(found),
                Err(error) => searched = Err(error),
            }
        }
        searched
    }
}

/// Compiles a pattern with look-around or back-references. Returns `None` for any other, since what else
/// the other engine understands means something different elsewhere.
fn stepwise(pattern: &str) -> Option<fancy_regex::Regex> {
    const LOOKS: [&str; 4] = ["(?=", "(?!", "(?<=", "(?<!"];
    let goes_back = || {
        pattern.as_bytes().windows(2).any(|pair| pair[0] == b'\\' && matches!(pair[1], b'1'..=b'9'))
    };
    // In Python, it is the end of the text; in Oniguruma, a line may end after it.
    let is_known = !pattern.contains("\\Z");
    if !is_known || !LOOKS.iter().any(|look| pattern.contains(look)) && !goes_back() {
        return None;
    }
    fancy_regex::RegexBuilder::new(pattern)
        .backtrack_limit(MAX_STEPS)
        .delegate_size_limit(MAX_COMPILED)
        .delegate_dfa_size_limit(MAX_COMPILED)
        .build()
        .ok()
}

impl TryFrom<String> for CheckPattern {
    type Error = CheckValueError;
    fn try_from(source: String) -> Result<Self, CheckValueError> {
        Self::new(&source)
    }
}

impl From<CheckPattern> for String {
    fn from(pattern: CheckPattern) -> String {
        pattern.source
    }
}

impl PartialEq for CheckPattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for CheckPattern {}

impl fmt::Debug for CheckPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(pattern: &str, text: &str) -> Result<bool, PatternSearchError> {
        CheckPattern::new(pattern).unwrap().find(text).map(|found| found.is_some())
    }

    #[test]
    fn look_around_and_back_references_are_searched() {
        for (pattern, text, wanted) in [
            (r"run(?=.*--json)", "run a --json", true),
            (r"run(?=.*--json)", "--json run a", false),
            (r"(?i)(?<!not )done", "it is DONE", true),
            (r"(?i)(?<!not )done", "it is not done", false),
            (r"^(?!.*TODO)", "a TODO", false),
            (r"(['x])a\1", "'a'", true),
            (r"(['x])a\1", "'ax", false),
            // As some public tasks have it: options of one command, not of the next.
            (
                r"tool\s+analyze(?=(?:(?!\n|&&|;).)*--format\s+sarif)",
                "tool analyze . --format sarif",
                true,
            ),
            (
                r"tool\s+analyze(?=(?:(?!\n|&&|;).)*--format\s+sarif)",
                "tool analyze; x --format sarif",
                false,
            ),
        ] {
            assert_eq!(finds(pattern, text), Ok(wanted), "{pattern}: {text}");
        }
    }

    #[test]
    fn a_long_text_is_searched_only_in_linear_time() {
        let long = "run ".repeat(MAX_STEPWISE_TEXT / 4);
        assert_eq!(long.len(), MAX_STEPWISE_TEXT);
        assert_eq!(finds(r"(?<=a)b", &long), Ok(false));
        assert_eq!(finds(r"(?<=r)u", &long), Ok(true));
        let longer = format!("{long}.");
        // Even if it would be found at once: the length alone decides, so that reports are steady.
        assert_eq!(finds(r"(?<=r)u", &longer), Err(PatternSearchError::LongText));
        // Each `run` would read all of the text that follows.
        let longest = "run ".repeat(1 << 18);
        assert_eq!(finds(r"run(?=.*--json)", &longest), Err(PatternSearchError::LongText));
        assert_eq!(finds(r"run.*--json", &longest), Ok(false));
        let pattern = CheckPattern::new(r"(?<=a)b").unwrap();
        assert_eq!(pattern.find_in([longer.as_str(), "ab"]), Ok(Some("b")));
        assert_eq!(pattern.find_in([longer.as_str(), "b"]), Err(PatternSearchError::LongText));
    }

    #[test]
    fn a_search_without_end_is_given_up() {
        let text = format!("{}!", "a".repeat(60));
        let pattern = CheckPattern::new(r"^(?:(a+)(?!x))+$").unwrap();
        assert_eq!(pattern.find(&text), Err(PatternSearchError::Steps));
        assert_eq!(pattern.find_in([text.as_str(), "aa"]), Ok(Some("aa")));
        assert_eq!(pattern.find_in([text.as_str(), "c"]), Err(PatternSearchError::Steps));
    }

    #[test]
    fn what_means_something_else_elsewhere_is_refused() {
        for pattern in [r"a\Z", r"(?=a)\Z", r"(?>a)", r"(?(1)a|b)", r"\k<a>", r"(?=a"] {
            assert!(CheckPattern::new(pattern).is_err(), "{pattern}");
        }
        let deep = format!("(?=a){}{}", "(".repeat(1_500), ")".repeat(1_500));
        assert!(CheckPattern::new(&deep).is_err());
        assert!(CheckPattern::new("(?=a)((a{100}){100}){100}").is_err());
    }
}
