//! `evals.json` files of skills, in every dialect that public repositories hold.
//!
//! Reading is pure: bytes and a lookup of files in, cases and warnings out. Shell lines of
//! strangers are recorded and never run here, and nothing that a file says becomes a path before it
//! has been checked. `folder.rs` alone looks at a disk.

mod assertion;
mod case;
mod dialect;
pub mod folder;
mod inspect;
mod promptfoo;
mod read;
pub mod sentence;
mod suite;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

pub use dialect::Dialect;
pub use read::{ReadError, read};
pub use suite::{BY_RULE, ImportedSuite, ShellRule, free_id};

use crate::check::Check;
use selftest_text::escape::terminal;

/// Most bytes of a file of cases.
pub const MAX_BYTES: usize = 16 << 20;
/// Most cases of one file.
pub const MAX_CASES: usize = 10_000;

/// Looks for the files that cases name.
pub trait FileLookup {
    /// Where a relative path, which does not climb, leads to a file.
    fn find(&self, path: &str) -> Option<FilePlace>;
}

/// The folder from which the path of a case counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FilePlace {
    /// The folder of the skill.
    Skill,
    /// The folder of the file of cases.
    Evals,
    /// The root of the repository.
    Repository,
    /// Nowhere: the content stands in the file of cases.
    Inline,
}

/// All that a file of cases says.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalsFile {
    /// How it says it.
    pub dialect: Dialect,
    /// The skill that it names.
    pub skill: Option<String>,
    /// The cases, in order.
    pub cases: Vec<EvalCase>,
    /// Prompts that should or should not make the agent load a skill.
    pub routing: Vec<RoutingCase>,
    /// Files that cases name and that are nowhere.
    pub missing_files: Vec<String>,
    /// Parts that cannot be used, one line each: such as a path that climbs out.
    pub refused: Vec<String>,
    /// Parts that may not be meant, one line each.
    pub warnings: Vec<String>,
}

/// One case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvalCase {
    /// Unique in its file.
    pub id: String,
    /// The id, where it is an integer and the only one of its kind.
    pub number: Option<i64>,
    /// Its name for people.
    pub name: Option<String>,
    /// The first message to the agent.
    pub prompt: String,
    /// The messages after it, step by step.
    pub replies: Vec<String>,
    /// A good answer, or a description of one.
    pub reference: Option<String>,
    /// Files that it needs.
    pub files: Vec<EvalFile>,
    /// Demands on the agent, which never sees them.
    pub demands: Vec<Demand>,
    /// Shell lines, recorded and not run.
    pub shell: Vec<ShellLine>,
    /// Its time limit in seconds.
    pub timeout_seconds: Option<f64>,
}

/// A file that a case needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalFile {
    /// Relative path, which does not climb.
    pub path: String,
    /// Where it is; `None` where it is missing.
    pub place: Option<FilePlace>,
    /// Its content, where the file of cases holds it.
    pub content: Option<String>,
}

/// The purpose of a stranger's shell line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellUse {
    /// It makes ready what the case needs, before the agent is asked.
    SetUp,
    /// It checks what the agent has done.
    Check,
    /// Nobody knows when it should be run, or nothing depends on it: it never is.
    None,
}

/// A shell line of a stranger. It is run only when a person allows it by name, in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellLine {
    /// Its purpose.
    pub purpose: ShellUse,
    /// The key that it stands behind: `setup`, `cmd`.
    pub key: String,
    /// The line.
    pub line: String,
}

/// One thing that a case demands, in the words of its author.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// The sentence, or what stands for one; unique in its case.
    pub text: String,
    /// Who decides it.
    pub decider: Decider,
}

/// Who decides a demand.
#[derive(Debug, Clone, PartialEq)]
pub enum Decider {
    /// A check, which the file states as such.
    Typed(Check),
    /// A check, which the sentence means for certain.
    Rule(Check),
    /// The judge, as a yes/no question.
    Judge,
    /// Nobody: neither a pass nor a fail.
    Unknown {
        /// Why.
        why: String,
    },
}

impl ShellLine {
    /// Says that it is not run.
    fn not_run(&self, id: &str) -> String {
        let (id, key) = (terminal(id, 60), terminal(&self.key, 40));
        format!("case {id}: the shell line `{}` of `{key}` is not run", terminal(&self.line, 80))
    }
}

impl Decider {
    /// The check, where there is one.
    pub fn check(&self) -> Option<&Check> {
        match self {
            Self::Typed(check) | Self::Rule(check) => Some(check),
            Self::Judge | Self::Unknown { .. } => None,
        }
    }
}

/// A prompt, and whether it should make the agent load a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingCase {
    /// The prompt.
    pub query: String,
    /// Whether a skill should be loaded.
    pub should_trigger: bool,
    /// The skills of which any may be loaded, where they are named.
    pub skills: Vec<String>,
}

/// How many demands each decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DemandCounts {
    /// Checks that the file states as such.
    pub typed: usize,
    /// Sentences that are checks for certain.
    pub rule: usize,
    /// Sentences for the judge.
    pub judge: usize,
    /// Demands that nobody can decide.
    pub unknown: usize,
}

impl EvalsFile {
    /// How many demands each decides, over all cases.
    pub fn counts(&self) -> DemandCounts {
        let mut counts = DemandCounts::default();
        for demand in self.cases.iter().flat_map(|case| &case.demands) {
            *match demand.decider {
                Decider::Typed(_) => &mut counts.typed,
                Decider::Rule(_) => &mut counts.rule,
                Decider::Judge => &mut counts.judge,
                Decider::Unknown { .. } => &mut counts.unknown,
            } += 1;
        }
        counts
    }

    /// Cases that demand nothing: they can never pass.
    pub fn without_checks(&self) -> usize {
        self.cases.iter().filter(|case| case.demands.is_empty()).count()
    }
}

/// A lookup without any file, for texts that stand alone.
impl FileLookup for () {
    fn find(&self, _: &str) -> Option<FilePlace> {
        None
    }
}

/// A lookup of listed files.
impl FileLookup for BTreeMap<String, FilePlace> {
    fn find(&self, path: &str) -> Option<FilePlace> {
        self.get(path).copied()
    }
}
