//! Checks: requirements on an answer, or on the agent's actions, that need no model.
//!
//! Pure. A check is parsed once, compiling every pattern and schema, and then decided on an
//! [`CheckObservation`] supplied by the caller. Nothing here starts a program, opens a file or calls a
//! model. What was not observed is [`CheckOutcome::Undecided`], never a guess.

mod bounds;
mod data;
mod decide;
mod error;
#[cfg(test)]
mod example;
mod finding;
mod json;
mod kind;
mod observation;
mod parameters;
mod pattern;
pub mod questions;
mod read;
mod schema;
#[cfg(test)]
mod tests;
mod warnings;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use bounds::{CountBounds, DurationBounds};
pub use data::{DataFormat, FileDataCheck, FilePatternCheck};
pub use decide::skill::is_skill_tool;
pub use decide::{accepts_empty_answer, decide, decide_all};
pub use error::CheckValueError;
pub use finding::{CheckFinding, CheckOutcome, CheckSummary};
pub use json::{JsonCheck, JsonPointerCheck, JsonSchemaCheck};
pub use kind::CheckKind;
pub use observation::{
    CheckObservation, CommandOutcome, CommandRun, FileChanges, FileContent, ObservedToolCall,
    is_blank,
};
pub use parameters::{
    CheckText, CommandCheck, CommandRunCheck, FileTextCheck, OccurrenceBounds, PathGlobs,
    SimilarityCheck, ToolCallCheck, ToolNames,
};
pub use pattern::{CheckPattern, PatternSearchError};
pub use read::{CheckParseError, read, read_list};
pub use warnings::warnings;

/// Maximum length of a check's description in reports, in bytes.
const MAX_DESCRIPTION: usize = 200;

/// Maximum number of checks of one case, including nested ones.
pub const MAX_CHECKS: usize = 500;
/// Maximum nesting depth of `all`, `any` and `not`.
pub const MAX_DEPTH: usize = 16;

/// One check of a case: exactly one kind, with an optional name and weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Name displayed instead of the kind.
    pub name: Option<String>,
    /// Weight in the score of the case; 1 by default.
    pub weight: CheckWeight,
    /// The requirement.
    pub kind: CheckKind,
}

// No number in a check can be NaN: each has a bounded type.
impl Eq for Check {}

impl Check {
    /// Creates an unnamed check of weight 1.
    pub fn new(kind: CheckKind) -> Self {
        Self { name: None, weight: CheckWeight::ONE, kind }
    }

    /// Returns the opposite check with the same name and weight.
    #[must_use]
    pub fn negated(self) -> Self {
        let Self { name, weight, kind } = self;
        Self { name, weight, kind: CheckKind::Not(Box::new(Self::new(kind))) }
    }

    /// Returns the name, or else the requirement as written in a suite, on one line.
    pub fn describe(&self) -> String {
        let demand = || match serde_json::to_value(&self.kind) {
            // Without the outer braces, as the line stands in a suite.
            Ok(Value::Object(entries)) => flow_entries(&entries),
            Ok(value) => flow(&value),
            Err(_) => String::new(),
        };
        let words = self.name.clone().unwrap_or_else(demand);
        selftest_text::one_line(&words, MAX_DESCRIPTION)
    }

    /// Returns the check and all nested checks, outermost first.
    pub fn walk(&self) -> Vec<&Self> {
        let mut found = vec![self];
        let mut at = 0;
        // Breadth-first with the result as the queue, without recursion.
        while let Some(check) = found.get(at) {
            match &check.kind {
                CheckKind::All(inner) | CheckKind::Any(inner) => found.extend(inner),
                CheckKind::Not(inner) => found.push(inner),
                _ => {}
            }
            at += 1;
        }
        found
    }
}

/// Writes a value as YAML in flow style, as a person would.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(entries) => format!("{{{}}}", flow_entries(entries)),
        other => other.to_string(),
    }
}

fn flow_entries(entries: &serde_json::Map<String, Value>) -> String {
    let entries: Vec<String> =
        entries.iter().map(|(key, value)| format!("{key}: {}", flow(value))).collect();
    entries.join(", ")
}

/// Words that some readers of YAML take for another value than a text.
const RESERVED: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// Returns true if a text needs no quotes: YAML reads it as the same text, within a list too.
fn is_plain(text: &str) -> bool {
    // `14` and `1e3` would be numbers, `14 days` is not.
    let is_number_like = text.chars().all(|c| c.is_ascii_digit() || "+-._eExob".contains(c));
    text.starts_with(|c: char| c.is_alphanumeric() || "/._".contains(c))
        && !text.ends_with(|c: char| c.is_whitespace() || c == ':')
        && !text.contains(|c: char| c.is_control() || ",[]{}#\"".contains(c))
        && !text.contains(": ")
        && !is_number_like
        && !RESERVED.contains(&text.to_ascii_lowercase().as_str())
}

/// Returns the distinct commands in these checks, which must run before deciding.
pub fn distinct_commands(checks: &[Check]) -> Vec<&CommandCheck> {
    let mut found: Vec<&CommandCheck> = Vec::new();
    for check in checks.iter().flat_map(Check::walk) {
        if let CheckKind::Command(command) = &check.kind
            && !found.contains(&command)
        {
            found.push(command);
        }
    }
    found
}

/// Normalises a path to the form used in reports.
fn normalize_path(path: &CheckText) -> &str {
    path.as_str().trim_start_matches("./")
}

/// Returns true for a path that stands for several files.
pub fn is_glob(path: &str) -> bool {
    path.contains('*')
}

/// Returns the files whose final state these checks need; read them before deciding. A path with `*`
/// stands for all files that match it.
pub fn needed_paths(checks: &[Check]) -> BTreeSet<&str> {
    checks
        .iter()
        .flat_map(Check::walk)
        .filter_map(|check| match &check.kind {
            CheckKind::FileContains(FileTextCheck { path, .. })
            | CheckKind::FileMatches(FilePatternCheck { path, .. })
            | CheckKind::FileData(FileDataCheck { path, .. })
            | CheckKind::FileExists(path)
            | CheckKind::FileUnchanged(path) => Some(normalize_path(path)),
            _ => None,
        })
        .collect()
}

/// The weight of a check in the score of its case: above 0, at most 1000.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct CheckWeight(f64);

impl CheckWeight {
    /// The default weight.
    pub const ONE: Self = Self(1.0);
    /// The maximum weight.
    pub const MAX: f64 = 1000.0;

    /// Creates a weight; fails for NaN, infinities and values out of range.
    pub fn new(value: f64) -> Result<Self, CheckValueError> {
        if value > 0.0 && value <= Self::MAX {
            Ok(Self(value))
        } else {
            Err(CheckValueError::Weight(value))
        }
    }

    /// Returns the plain number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for CheckWeight {
    type Error = CheckValueError;
    fn try_from(value: f64) -> Result<Self, CheckValueError> {
        Self::new(value)
    }
}

impl From<CheckWeight> for f64 {
    fn from(weight: CheckWeight) -> f64 {
        weight.0
    }
}
