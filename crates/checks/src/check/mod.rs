//! Checks: demands on an answer, or on what an agent did, that need no model.
//!
//! Pure. A check is read once, with every pattern and schema compiled, and decided on an
//! [`Observation`] that somebody else made: nothing here starts a program, opens a file or asks a
//! model. What was not observed is [`CheckOutcome::Undecided`], never a guess.

mod bounds;
mod decide;
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

pub use bounds::{Bounds, Seconds};
pub use decide::{decide, decide_all};
pub use finding::{CheckOutcome, CheckSummary, Finding};
pub use json::{JsonCheck, JsonSchemaCheck};
pub use kind::CheckKind;
pub use observation::{CommandEnd, CommandRun, FileContent, FileReport, Observation, ToolCall};
pub use parameters::{
    CommandCheck, FileContains, Globs, Occurrences, Similar, Text, ToolCalled, Tools,
};
pub use pattern::Pattern;
pub use read::{CheckFault, read, read_list};
pub use warnings::warnings;

/// Most bytes of a check in reports.
const MAX_DESCRIPTION: usize = 200;

/// Most checks of one case, at every depth together.
pub const MAX_CHECKS: usize = 500;
/// How deep `all`, `any` and `not` may be nested.
pub const MAX_DEPTH: usize = 16;

/// One check of a case: exactly one kind, with an optional name and weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Shown instead of the kind.
    pub name: Option<String>,
    /// Share in the score of the case; 1 where none is given.
    pub weight: CheckWeight,
    /// The demand.
    pub kind: CheckKind,
}

// No number in a check can be NaN: each is of a bounded type.
impl Eq for Check {}

impl Check {
    /// A check without a name, of weight 1.
    pub fn new(kind: CheckKind) -> Self {
        Self { name: None, weight: CheckWeight::ONE, kind }
    }

    /// Its opposite, under the same name.
    #[must_use]
    pub fn negated(self) -> Self {
        let Self { name, weight, kind } = self;
        Self { name, weight, kind: CheckKind::Not(Box::new(Self::new(kind))) }
    }

    /// Its name, or the demand as it is written in a suite, on one line.
    pub fn describe(&self) -> String {
        let demand = || serde_json::to_string(&self.kind).unwrap_or_default();
        let words = self.name.clone().unwrap_or_else(demand);
        selftest_text::one_line(&words, MAX_DESCRIPTION)
    }

    /// The check and all that stand in it, outermost first.
    pub fn walk(&self) -> Vec<&Self> {
        let mut found = vec![self];
        let mut at = 0;
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

/// The different commands in these checks, to be run before deciding.
pub fn commands(checks: &[Check]) -> Vec<&CommandCheck> {
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

/// A path as reports write it.
fn plain(path: &Text) -> &str {
    path.as_str().trim_start_matches("./")
}

/// The files whose state after the run these checks ask for, to be read before deciding.
pub fn paths(checks: &[Check]) -> BTreeSet<&str> {
    checks
        .iter()
        .flat_map(Check::walk)
        .filter_map(|check| match &check.kind {
            CheckKind::FileContains(FileContains { path, .. })
            | CheckKind::FileExists(path)
            | CheckKind::FileUnchanged(path) => Some(plain(path)),
            _ => None,
        })
        .collect()
}

/// The share of one check in the score of its case: above 0, at most 1000.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct CheckWeight(f64);

impl CheckWeight {
    /// The weight of a check that names none.
    pub const ONE: Self = Self(1.0);
    /// The heaviest.
    pub const MAX: f64 = 1000.0;

    /// Refuses NaN, infinities and everything outside the range.
    pub fn new(value: f64) -> Result<Self, String> {
        if value > 0.0 && value <= Self::MAX {
            Ok(Self(value))
        } else {
            Err(format!("a weight must be above 0 and at most 1000, got {value}"))
        }
    }

    /// The plain number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for CheckWeight {
    type Error = String;
    fn try_from(value: f64) -> Result<Self, String> {
        Self::new(value)
    }
}

impl From<CheckWeight> for f64 {
    fn from(weight: CheckWeight) -> f64 {
        weight.0
    }
}
