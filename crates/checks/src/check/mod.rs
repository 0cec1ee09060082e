//! Checks: requirements on an answer, or on the agent's actions, that need no model.
//!
//! Pure. A check is parsed once, compiling every pattern and schema, and then decided on an
//! [`CheckObservation`] supplied by the caller. Nothing here starts a program, opens a file or calls a
//! model. What was not observed is [`CheckOutcome::Undecided`], never a guess.

mod data;
mod decide;
#[cfg(test)]
mod example;
mod kind;
mod parameters;
mod pattern;
pub mod questions;
mod read;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use data::{
    DataFormat, FileDataCheck, FilePatternCheck, JsonCheck, JsonPointerCheck, JsonSchemaCheck,
};
pub use decide::calls::is_skill_tool;
pub use decide::{accepts_empty_answer, decide, decide_all};
pub use kind::CheckKind;
pub use parameters::{
    CallOrder, CheckText, CommandCheck, CommandRunCheck, CountBounds, DurationBounds,
    FileTextCheck, OccurrenceBounds, PathGlobs, SimilarityCheck, ToolCallCheck, ToolNames,
};
pub use pattern::{CheckPattern, PatternSearchError};
pub use read::{CheckParseError, CheckValueError, read, read_list, warnings};
use selftest_stats::score::Score;

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

/// Observations of one case. `None` means that the adapter does not report it; no check may read
/// that as "did not happen".
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckObservation<'a> {
    /// Status of the task after the last answer.
    pub status: Option<TaskStatus>,
    /// The last answer.
    pub output: &'a str,
    /// Every answer in order, including the last.
    pub answers: &'a [&'a str],
    /// Tool calls in order.
    pub tool_calls: Option<&'a [ObservedToolCall]>,
    /// Changes to files.
    pub files: Option<&'a FileChanges>,
    /// Number of answers by the system under test.
    pub turns: Option<u64>,
    /// Number of input and output tokens.
    pub tokens: Option<u64>,
    /// Duration of the case.
    pub duration: Option<Duration>,
    /// Results of those commands from [`distinct_commands`] that were run.
    pub commands: &'a [CommandRun],
}

impl CheckObservation<'_> {
    /// Returns true if the last answer has no visible character.
    pub fn is_answer_empty(&self) -> bool {
        is_blank(self.output)
    }
}

/// Returns true if a text has no visible character.
pub fn is_blank(text: &str) -> bool {
    // White space, control characters, and characters of no width.
    text.chars().all(|c| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}')
    })
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedToolCall {
    /// Name of the tool.
    pub name: String,
    /// Its arguments, usually a mapping. A mapping that is JSON in a string, as the APIs of models
    /// write it, is read as the mapping.
    #[serde(default, deserialize_with = "read_arguments")]
    pub arguments: Value,
    /// True if the system says that the call failed. It was made all the same, but loaded nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

fn read_arguments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let text = value.as_str().filter(|text| text.trim_start().starts_with('{'));
    let inner = text.and_then(|text| serde_json::from_str(text).ok());
    Ok(inner.filter(Value::is_object).unwrap_or(value))
}

/// File changes in the agent's working folder. Paths are relative to its root, with `/`. The three
/// lists are complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChanges {
    /// Files that did not exist before.
    #[serde(default)]
    pub created: BTreeSet<String>,
    /// Files with different content.
    #[serde(default)]
    pub changed: BTreeSet<String>,
    /// Files that no longer exist.
    #[serde(default)]
    pub deleted: BTreeSet<String>,
    /// Final state of the files from [`needed_paths`]; for a path with `*`, of each file that
    /// matches it.
    #[serde(default)]
    pub after: BTreeMap<String, FileContent>,
    /// The paths with `*` from [`needed_paths`] whose files were all looked for.
    #[serde(default)]
    pub listed: BTreeSet<String>,
}

/// The state of a file after the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileContent {
    /// No such file.
    Missing,
    /// Its text.
    Text(String),
    /// The file exists but cannot be read as text, with the reason.
    Unreadable(String),
}

/// A command of a check and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandRun {
    /// The command.
    pub command: CommandCheck,
    /// The result.
    pub end: CommandOutcome,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandOutcome {
    /// It exited by itself.
    Exited {
        /// Exit code.
        code: i32,
        /// Stdout, bounded.
        stdout: String,
    },
    /// It was killed by a signal from elsewhere.
    Killed {
        /// Number of the signal.
        signal: i32,
    },
    /// It was killed because it ran out of time.
    TimedOut,
    /// It was killed because it printed too much.
    TooMuchOutput,
    /// It could not be started, or was not allowed to: the result is unknown.
    NotStarted {
        /// The reason.
        why: String,
    },
}

/// Maximum length of a finding's sentence, in bytes.
const MAX_SENTENCE: usize = 400;

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum CheckOutcome {
    /// The check holds.
    Held,
    /// The check does not hold.
    Failed,
    /// Cannot be decided: neither a pass nor a failure.
    Undecided,
}

impl CheckOutcome {
    /// Returns `Held` or `Failed`.
    pub const fn of(holds: bool) -> Self {
        if holds { Self::Held } else { Self::Failed }
    }

    /// Returns the outcome of the opposite check.
    #[must_use]
    pub const fn negated(self) -> Self {
        match self {
            Self::Held => Self::Failed,
            Self::Failed => Self::Held,
            Self::Undecided => Self::Undecided,
        }
    }

    /// Combines outcomes that must all hold: a failure wins, then an undecided one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
            (Self::Undecided, _) | (_, Self::Undecided) => Self::Undecided,
            (Self::Held, Self::Held) => Self::Held,
        }
    }
}

/// The outcome of a check and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckFinding {
    /// The outcome.
    pub outcome: CheckOutcome,
    /// One line that names what happened, safe to display.
    pub sentence: String,
}

/// The combined result of all checks of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckSummary {
    /// Combined outcome: one failed check fails the case. `None` without any checks, which is never
    /// a pass.
    pub outcome: Option<CheckOutcome>,
    /// Weighted share of the decided checks that hold; `None` if none was decided.
    pub score: Option<Score>,
    /// One finding per check, in order.
    pub findings: Vec<CheckFinding>,
}

/// Status of a task of the system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskStatus {
    /// The agent asks a question back.
    AwaitingResponse,
    /// The task is done.
    Complete,
    /// The task could not be done.
    Error,
}

impl TaskStatus {
    /// Returns the name from the specification.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
