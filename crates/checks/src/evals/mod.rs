//! Importers for the suites of other programs, in the dialects found in public repositories.
//!
//! Reading is pure: it takes bytes and a file lookup, and returns cases and warnings. Untrusted
//! shell lines are recorded and never run here, and nothing in a file is used as a path before it
//! has been validated. Only `folder.rs` accesses the disk.

mod assertion;
mod case;
mod dialect;
pub mod folder;
mod importers;
mod read;
mod source;
mod suite;
#[cfg(test)]
mod tests;
mod wording;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

pub use dialect::{EvalsDialect, EvalsReadError};
pub use importers::{DIALECTS, DialectEntry};
pub use read::{is_foreign, read};
pub use suite::{ImportedSuite, ShellPermission, unique_id};
pub use wording::is_negative;

use crate::check::{self, Check};
use crate::sentence::SentenceContext;
use selftest_text::escape::terminal;

/// Maximum size of a case file, in bytes.
pub const MAX_BYTES: usize = 16 << 20;
/// Maximum number of cases in a file.
pub const MAX_CASES: usize = 10_000;

/// Maximum length of a demand, in characters.
const MAX_DEMAND: usize = 2_000;

/// Finds the files that cases name.
pub trait FileLookup {
    /// Returns the folder in which the relative path exists. The path must not contain `..`.
    fn find(&self, path: &str) -> Option<FileLocation>;

    /// Returns the text of a file. `None` if the file is missing.
    fn text(&self, path: &str, place: FileLocation) -> Option<std::io::Result<String>> {
        let _ = (path, place);
        None
    }

    /// Returns the names in a folder in order, those of folders with `/` at the end. Links are left
    /// out.
    fn list(&self, path: &str, place: FileLocation) -> Vec<String> {
        let _ = (path, place);
        Vec::new()
    }

    /// Returns the path from the root of the repository to a path beside the case file, which may
    /// begin with `..`; `None` if it leaves the repository.
    fn find_in_repository(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }

    /// Returns true if this machine has a program where every program finds it.
    fn has_program(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Returns true if the Python of this version (such as `3.12`; the usual one if `None`) has a
    /// package, in this version if one is given.
    fn has_python_package(&self, python: Option<&str>, name: &str, version: Option<&str>) -> bool {
        let _ = (python, name, version);
        false
    }

    /// Returns the name of the folder of the case file.
    fn folder_name(&self) -> Option<String> {
        None
    }
}

/// The folder that a case's path is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileLocation {
    /// The skill's folder.
    Skill,
    /// The folder of the case file.
    Evals,
    /// The root of the repository.
    Repository,
    /// None: the content is in the case file.
    Inline,
}

/// The contents of a case file.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalsFile {
    /// Dialect of the file.
    pub dialect: EvalsDialect,
    /// Name of the skill, if given.
    pub skill: Option<String>,
    /// The cases, in order.
    pub cases: Vec<EvalCase>,
    /// Prompts that should or should not trigger a skill.
    pub routing: Vec<RoutingCase>,
    /// Files that cases name but that do not exist.
    pub missing_files: Vec<String>,
    /// Unusable parts, one line each, such as a path that leaves the folder.
    pub refused: Vec<String>,
    /// Possibly unintended parts, one line each.
    pub warnings: Vec<String>,
}

/// One case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvalCase {
    /// ID, unique in its file.
    pub id: String,
    /// The ID if it is an integer and not a duplicate.
    pub number: Option<i64>,
    /// Human-readable name.
    pub name: Option<String>,
    /// The first message to the agent.
    pub prompt: String,
    /// The messages after it, step by step.
    pub replies: Vec<String>,
    /// A good answer, or a description of one.
    pub reference: Option<String>,
    /// Input files.
    pub files: Vec<EvalFile>,
    /// Demands on the agent, which never sees them.
    pub demands: Vec<CaseDemand>,
    /// Shell lines, recorded and not run.
    pub shell: Vec<ShellLine>,
    /// Timeout in seconds.
    pub timeout_seconds: Option<f64>,
}

/// An input file of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalFile {
    /// Relative path without `..`, from the folder of the case.
    pub path: String,
    /// Path from the folder of `place`, if it is another.
    pub source: Option<String>,
    /// Location of the file; `None` if it is missing.
    pub place: Option<FileLocation>,
    /// Its content, if the case file contains it.
    pub content: Option<String>,
}

/// The purpose of an untrusted shell line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellUse {
    /// Prepares the case before the prompt is sent.
    SetUp,
    /// Checks what the agent did.
    Check,
    /// Unknown, or nothing depends on it: never run.
    NeverRun,
}

/// An untrusted shell line. It runs only if the user explicitly allows it, and in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellLine {
    /// Its purpose.
    pub purpose: ShellUse,
    /// Its key: `setup`, `cmd`.
    pub key: String,
    /// The program that runs it: `sh` or `bash`.
    pub program: &'static str,
    /// The line.
    pub line: String,
}

/// One thing that a case demands, in its author's words.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseDemand {
    /// The sentence or its equivalent; unique in its case.
    pub text: String,
    /// The means of deciding it.
    pub decider: DemandDecider,
}

/// The means by which a demand is decided.
#[derive(Debug, Clone, PartialEq)]
pub enum DemandDecider {
    /// A check that the file states as such.
    Typed(Check),
    /// A check that the sentence unambiguously means.
    Rule(Check),
    /// The judge, as a yes/no question.
    Judge,
    /// None: neither a pass nor a failure.
    Unknown {
        /// The reason.
        why: String,
    },
}

impl CaseDemand {
    /// Returns a demand that the file states as a check. A check that cannot be is undecidable.
    fn typed(text: &str, check: &Value) -> Self {
        let text = shown_text(text);
        match check::read(check) {
            Ok(check) => Self { text, decider: DemandDecider::Typed(check) },
            Err(faults) => {
                let why: Vec<String> = faults.into_iter().map(|fault| fault.message).collect();
                Self::unknown(&text, &why.join("; "))
            }
        }
    }

    /// Returns a demand that cannot be decided. It stays, so that the case cannot pass without it.
    fn unknown(text: &str, why: &str) -> Self {
        let decider = DemandDecider::Unknown { why: terminal(why, 300) };
        Self { text: shown_text(text), decider }
    }

    /// Returns the demand of a sentence about the answer to a prompt.
    fn sentence_of(prompt: &str, text: &str) -> Self {
        Self::sentence_in(text, &SentenceContext::of(prompt, [text], None))
    }

    /// Returns the demand of a sentence in its case: a check where it states one, or else a question for
    /// the judge.
    fn sentence_in(text: &str, context: &SentenceContext) -> Self {
        match crate::sentence::check_in(text, context) {
            Some(check) => Self { text: shown_text(text), decider: DemandDecider::Rule(check) },
            None => Self::judged(text),
        }
    }

    /// Returns a question for the judge.
    fn judged(text: &str) -> Self {
        Self { text: shown_text(text), decider: DemandDecider::Judge }
    }
}

/// Returns the text of a demand, bounded.
fn shown_text(text: &str) -> String {
    text.trim().chars().take(MAX_DEMAND).collect()
}

impl ShellLine {
    /// Creates a line for `sh`.
    fn new(purpose: ShellUse, key: &str, line: &str) -> Self {
        Self { purpose, key: key.to_owned(), program: "sh", line: line.to_owned() }
    }

    /// Returns a warning that the line is not run.
    fn not_run_warning(&self, id: &str) -> String {
        let (id, key) = (terminal(id, 60), terminal(&self.key, 40));
        format!("case {id}: the shell line `{}` of `{key}` is not run", terminal(&self.line, 80))
    }
}

impl DemandDecider {
    /// Returns the check, if there is one.
    pub fn check(&self) -> Option<&Check> {
        match self {
            Self::Typed(check) | Self::Rule(check) => Some(check),
            Self::Judge | Self::Unknown { .. } => None,
        }
    }
}

/// A prompt that should or should not trigger a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingCase {
    /// The prompt.
    pub query: String,
    /// True if a skill should be loaded.
    pub should_trigger: bool,
    /// Skills of which any may be loaded, if they are named.
    pub skills: Vec<String>,
}

/// Number of demands by means of decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DemandCounts {
    /// Checks that the file states as such.
    pub typed: usize,
    /// Sentences that are unambiguously checks.
    pub rule: usize,
    /// Sentences for the judge.
    pub judge: usize,
    /// Undecidable demands.
    pub unknown: usize,
}

impl EvalsFile {
    /// Counts the demands of all cases by means of decision.
    pub fn counts(&self) -> DemandCounts {
        let mut counts = DemandCounts::default();
        for demand in self.cases.iter().flat_map(|case| &case.demands) {
            *match demand.decider {
                DemandDecider::Typed(_) => &mut counts.typed,
                DemandDecider::Rule(_) => &mut counts.rule,
                DemandDecider::Judge => &mut counts.judge,
                DemandDecider::Unknown { .. } => &mut counts.unknown,
            } += 1;
        }
        counts
    }

    /// Returns the number of cases without demands, which can never pass.
    pub fn without_checks(&self) -> usize {
        self.cases.iter().filter(|case| case.demands.is_empty()).count()
    }
}

/// A lookup without any files, for stand-alone texts.
impl FileLookup for () {
    fn find(&self, _: &str) -> Option<FileLocation> {
        None
    }
}

/// A lookup in a list of files.
impl FileLookup for BTreeMap<String, FileLocation> {
    fn find(&self, path: &str) -> Option<FileLocation> {
        self.get(path).copied()
    }
}
