//! Untrusted regular expressions: linear-time search, bounded size when compiled.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use super::CheckValueError;

/// Maximum length of a pattern, in characters.
pub(super) const MAX_PATTERN: usize = 4096;
/// Maximum size of a compiled pattern, and of its lazy DFA cache, in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// Maximum number of cached compiled patterns, at about a megabyte each.
const MAX_KEPT: usize = 64;

/// Cache of compiled patterns. Thousands of cases share the same few, and compiling one takes
/// longer than everything else the harness does for a case.
static COMPILED: LazyLock<Mutex<HashMap<String, Arc<Regex>>>> = LazyLock::new(Mutex::default);

/// A regular expression in the syntax of the `regex` crate, without look-around and
/// back-references. Searches take time linear in the text.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CheckPattern {
    source: String,
    /// Shared, because cloning a `Regex` does not clone its search caches.
    compiled: Arc<Regex>,
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
        let compiled = RegexBuilder::new(&composed)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_COMPILED)
            // Bounds the recursion of the pattern parser.
            .nest_limit(100)
            .build()
            .map_err(CheckValueError::Pattern)?;
        let compiled = Arc::new(compiled);
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

    /// Returns the first match in a text.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.compiled.find(text).map(|found| found.as_str())
    }
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
