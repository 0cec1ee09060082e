//! Regular expressions of strangers: searched in linear time, small when compiled.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// Most characters of a pattern.
pub(super) const MAX_PATTERN: usize = 4096;
/// Most bytes of a compiled pattern, and of what its search may remember.
const MAX_COMPILED: usize = 1 << 20;

/// Most patterns that are kept compiled: at most so many megabytes.
const MAX_KEPT: usize = 64;

/// Thousands of cases have the same few patterns, and compiling one takes longer than all else that
/// the harness does for a case.
static COMPILED: LazyLock<Mutex<HashMap<String, Arc<Regex>>>> = LazyLock::new(Mutex::default);

/// A regular expression in the syntax of the crate `regex`: without look-around and
/// back-references, in time linear in the text.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    source: String,
    /// Shared: what a regular expression remembers between searches is not cloned with it.
    compiled: Arc<Regex>,
}

impl Pattern {
    /// Refuses what cannot be compiled within the limits.
    pub fn new(source: &str) -> Result<Self, String> {
        if source.is_empty() {
            return Err("an empty pattern matches everything".to_owned());
        }
        if source.chars().count() > MAX_PATTERN {
            return Err(format!("a pattern may have at most {MAX_PATTERN} characters"));
        }
        let known = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = known().get(source) {
            return Ok(Self { source: source.to_owned(), compiled: Arc::clone(compiled) });
        }
        let compiled = RegexBuilder::new(source)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_COMPILED)
            .nest_limit(100)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => {
                    "the pattern is too big when compiled".to_owned()
                }
                // The last line of the parser's picture says what is wrong.
                other => {
                    let text = other.to_string();
                    let last = text.lines().last().unwrap_or_default();
                    selftest_text::one_line(last.trim_start_matches("error: "), 200)
                }
            })?;
        let compiled = Arc::new(compiled);
        let mut known = known();
        if known.len() < MAX_KEPT {
            known.insert(source.to_owned(), Arc::clone(&compiled));
        }
        Ok(Self { source: source.to_owned(), compiled })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The first match in a text.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.compiled.find(text).map(|found| found.as_str())
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;
    fn try_from(source: String) -> Result<Self, String> {
        Self::new(&source)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.source
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.source)
    }
}
