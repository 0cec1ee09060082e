//! The outcome of a task: claimed by the agent, verified by something else than its words,
//! contradicted, or unknown; with the events that say it.
//!
//! Whether the task was *completed* by the specification's indicators is `completion.rs`: that is
//! an appearance. What stands here needs a test, a merge, a verifier or a person.

mod command;
mod output;
mod tools;
mod track;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

pub(super) use tools::{is_editor, is_shell, without_server};
pub(super) use track::OutcomeTracker;

/// The outcome of a task.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum TaskOutcome {
    /// Tests or CI passed after the last change to files, the work was merged, or a verifier found
    /// it done.
    Verified,
    /// A check failed after all, a verifier found it not done, or a person objected and nothing
    /// settled it.
    Contradicted,
    /// The agent says that it is done, and nothing else does.
    Claimed,
    /// Nothing says how it ended.
    #[default]
    Unknown,
}

selftest_text::named!(TaskOutcome);

/// An event that says what became of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutcomeEvidence {
    /// The kind of evidence.
    pub sign: OutcomeSign,
    /// Number of the event in the session, from 0.
    pub event: u64,
    /// The command, or the words of the person or the agent; on one line, secrets redacted.
    pub words: String,
}

/// The kind of evidence that an event gives about the outcome of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum OutcomeSign {
    /// The agent says at the end that it is done.
    Claims,
    /// Tests passed after the last change.
    TestsPassed,
    /// Only tests passed that the agent wrote in the same session.
    OwnTestsPassed,
    /// A build or a type check passed after the last change.
    BuildPassed,
    /// A linter passed after the last change.
    LintPassed,
    /// Continuous integration passed.
    CiPassed,
    /// The work was merged.
    Merged,
    /// Tests failed, and no later run passed.
    TestsFailed,
    /// A build or a type check failed, and no later one passed.
    BuildFailed,
    /// A linter failed, and no later run passed.
    LintFailed,
    /// Continuous integration failed.
    CiFailed,
    /// A verifier beside the agent found the task done.
    VerifierPassed,
    /// A verifier found it not done.
    VerifierFailed,
    /// The person says that it does not work, or is angry.
    UserComplains,
    /// The person says that something else was asked for.
    UserCorrects,
    /// The person has the work taken back.
    UserReverts,
    /// The person asks for the same again.
    UserAsksAgain,
    /// The person stopped the agent.
    UserInterrupts,
}

impl OutcomeSign {
    /// Whether the task succeeded, where it is a verifier's word.
    pub fn verdict(self) -> Option<bool> {
        match self {
            OutcomeSign::VerifierPassed => Some(true),
            OutcomeSign::VerifierFailed => Some(false),
            _ => None,
        }
    }

    /// As a sentence for people.
    pub fn words(self) -> &'static str {
        match self {
            OutcomeSign::Claims => "the agent says that it is done",
            OutcomeSign::TestsPassed => "tests passed after the last change",
            OutcomeSign::OwnTestsPassed => "tests that the agent wrote itself passed",
            OutcomeSign::BuildPassed => "a build passed after the last change",
            OutcomeSign::LintPassed => "a linter passed after the last change",
            OutcomeSign::CiPassed => "CI passed",
            OutcomeSign::Merged => "the work was merged",
            OutcomeSign::TestsFailed => "tests failed, and no later run passed",
            OutcomeSign::BuildFailed => "a build failed, and no later one passed",
            OutcomeSign::LintFailed => "a linter failed, and no later run passed",
            OutcomeSign::CiFailed => "CI failed",
            OutcomeSign::VerifierPassed => "a verifier found the task done",
            OutcomeSign::VerifierFailed => "a verifier found the task not done",
            OutcomeSign::UserComplains => "the person complains",
            OutcomeSign::UserCorrects => "the person corrects the agent",
            OutcomeSign::UserReverts => "the person has it taken back",
            OutcomeSign::UserAsksAgain => "the person asks for the same again",
            OutcomeSign::UserInterrupts => "the person stopped the agent",
        }
    }
}

#[cfg(test)]
mod tests;
