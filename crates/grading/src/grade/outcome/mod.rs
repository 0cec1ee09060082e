//! Outcome of a task: its checks passed, it was contradicted, the agent claims it, or nothing is
//! known, together with the events that show it.
//!
//! [`OutcomeState`] says what was seen; [`TaskOutcome`] is its summary in a word. `completion.rs`
//! estimates completion by the specification's indicators, which is only an
//! appearance. An outcome here requires a test, a merge, a verifier or a person.

mod command;
mod created;
mod foreign_edit;
mod output;
mod runners;
mod state;
mod tools;
mod track;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

pub use state::{ElsewhereResult, OutcomeState, ResultSource, StateName, TestCounts, TestScope};
pub(super) use tools::{is_editor, is_shell, strip_mcp_server};
pub(super) use track::{EndOfTask, OutcomeTracker};

/// Outcome of a task.
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
    /// After the last file change a whole suite of tests passed, with counts, which the agent did
    /// not write itself; or CI passed, the work was merged, or a verifier found it done.
    #[serde(alias = "verified")]
    ChecksPassed,
    /// Tests failed at the end that had passed before, CI or a verifier found the task not done, or
    /// a person objected and nothing resolved the objection.
    Contradicted,
    /// The agent claims that the task is done, without further evidence.
    Claimed,
    /// There is no evidence of how the task ended.
    #[default]
    Unknown,
}

selftest_text::named!(TaskOutcome);

/// An event that is evidence for a task's outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutcomeEvidence {
    /// Kind of evidence.
    pub sign: OutcomeSign,
    /// Number of the event in the session, from 0.
    pub event: u64,
    /// The command, or the message of the person or agent, on one line with secrets redacted.
    pub words: String,
}

/// A kind of evidence about the outcome of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum OutcomeSign {
    /// The agent's last message claims that the task is done.
    Claims,
    /// The whole suite passed after the last change.
    TestsPassed,
    /// A part of the tests passed after the last change.
    SomeTestsPassed,
    /// The runner ran no test.
    NoTestsRan,
    /// Tests could not run.
    TestsCouldNotRun,
    /// Tests passed, but only ones that the agent wrote in the same session.
    OwnTestsPassed,
    /// A build or type check passed after the last change.
    BuildPassed,
    /// A linter passed after the last change.
    LintPassed,
    /// Continuous integration passed.
    CiPassed,
    /// The work was merged.
    Merged,
    /// Tests failed, and no later run passed.
    TestsFailed,
    /// A build or type check failed, and no later one passed.
    BuildFailed,
    /// A linter failed, and no later run passed.
    LintFailed,
    /// Continuous integration failed.
    CiFailed,
    /// An independent verifier found the task done.
    VerifierPassed,
    /// A verifier found the task not done.
    VerifierFailed,
    /// The person says that it does not work, or is angry.
    UserComplains,
    /// The person says that something else was asked for.
    UserCorrects,
    /// The person has the work reverted.
    UserReverts,
    /// The person repeats the request.
    UserAsksAgain,
    /// The person stopped the agent.
    UserInterrupts,
    /// The person changed what the agent had written. Decides nothing: it may be a formatter, or
    /// the last touch.
    UserEdits,
}

impl OutcomeSign {
    /// Returns the verifier's verdict on the task, if this is one.
    pub fn verdict(self) -> Option<bool> {
        match self {
            OutcomeSign::VerifierPassed => Some(true),
            OutcomeSign::VerifierFailed => Some(false),
            _ => None,
        }
    }

    /// Returns true if the sign speaks against success.
    pub fn is_against(self) -> bool {
        matches!(
            self,
            OutcomeSign::TestsFailed
                | OutcomeSign::BuildFailed
                | OutcomeSign::LintFailed
                | OutcomeSign::CiFailed
                | OutcomeSign::VerifierFailed
                | OutcomeSign::UserComplains
                | OutcomeSign::UserCorrects
                | OutcomeSign::UserReverts
                | OutcomeSign::UserAsksAgain
                | OutcomeSign::UserInterrupts
        )
    }

    /// Returns a readable description.
    pub fn words(self) -> &'static str {
        match self {
            OutcomeSign::Claims => "the agent says that it is done",
            OutcomeSign::TestsPassed => "the tests passed after the last change",
            OutcomeSign::SomeTestsPassed => "a part of the tests passed",
            OutcomeSign::NoTestsRan => "no test ran",
            OutcomeSign::TestsCouldNotRun => "the tests could not run",
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
            OutcomeSign::UserEdits => "the person changed what the agent had written",
        }
    }
}

#[cfg(test)]
mod tests;
