//! Outcome of a task: its checks passed, it was contradicted, the agent claims it, or nothing is
//! known, together with the events that show it.
//!
//! [`OutcomeState`] says what was seen: tests with how much of what they ran, a result from
//! elsewhere, an objection, or only a claim. [`TaskOutcome`] is its summary in a word.
//! `rule_scores.rs` estimates completion by the specification's indicators, which is only an
//! appearance. An outcome here requires a test, a merge, a verifier or a person.

mod authorship;
mod command;
mod output;
mod runners;
#[cfg(test)]
mod tests;
mod tools;
mod track;

use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

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

/// Evidence about the end of a task, strongest kind first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum OutcomeState {
    /// A merge, CI, a reward or a verifier decided.
    CheckedElsewhere {
        /// Source of the result.
        by: ResultSource,
        /// The result.
        result: ElsewhereResult,
    },
    /// The person's last word was an objection, or they stopped the agent.
    Objected,
    /// The last tests passed, or none ran.
    TestsPassed {
        /// How much of which tests.
        scope: TestScope,
        /// Counts, if the runner printed them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        counts: Option<TestCounts>,
    },
    /// The last tests failed.
    TestsFailed {
        /// How much of which tests.
        scope: TestScope,
        /// Counts, if the runner printed them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        counts: Option<TestCounts>,
        /// True if an earlier run of the same session had fewer failures.
        is_new: bool,
    },
    /// Tests were started and could not run: a program, a module or a file is missing.
    CouldNotRun,
    /// Only the agent says that the task is done.
    Claimed,
    /// Nothing says how the task ended.
    #[default]
    Unknown,
}

/// Name of a state without its details, by which states are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum StateName {
    /// The whole suite passed, with a count.
    WholeSuitePassed,
    /// The whole suite passed by its exit code, without a count.
    UncountedPassed,
    /// A part of the tests passed.
    PartPassed,
    /// Tests that the agent wrote in this session passed.
    OwnTestsPassed,
    /// The runner ran no test.
    NoneRan,
    /// Tests failed that had passed before in the session.
    NewFailures,
    /// Tests failed, as far as known from the beginning.
    TestsFailed,
    /// Tests could not run.
    CouldNotRun,
    /// A result from elsewhere says done.
    PassedElsewhere,
    /// A result from elsewhere says not done.
    FailedElsewhere,
    /// Results from elsewhere disagree.
    DisagreedElsewhere,
    /// The person objected.
    Objected,
    /// Only a claim.
    Claimed,
    /// Nothing.
    Unknown,
}

selftest_text::named!(StateName);

/// How much of which tests a run covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum TestScope {
    /// The runner found or selected no test.
    NoneRan,
    /// Only tests that the agent wrote in the same session.
    Own,
    /// Selected files, names, packages or groups.
    Part,
    /// The whole suite.
    Whole,
}

/// Source of a result from outside of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ResultSource {
    /// A verifier or the reward of a benchmark.
    Verifier,
    /// Continuous integration.
    Ci,
    /// The work was merged.
    Merge,
    /// A person's override of `task_completed`.
    Person,
}

/// Result from outside of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ElsewhereResult {
    /// Done.
    Passed,
    /// Not done.
    Failed,
    /// Several results disagree.
    Disagreed,
}

/// Counts that a test runner printed. Expected failures count as skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestCounts {
    /// Tests that passed. Packages, where the runner counts only those.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests or files with an error outside of a test.
    pub errors: u64,
    /// Tests that were skipped.
    pub skipped: u64,
    /// Tests that the command did not select.
    pub deselected: u64,
}

impl TestCounts {
    /// Returns the number of failures and errors.
    pub fn failures(&self) -> u64 {
        self.failed.saturating_add(self.errors)
    }

    /// Returns the number of tests that ran.
    pub fn ran(&self) -> u64 {
        self.passed.saturating_add(self.failures())
    }

    /// Returns the number of tests that the runner knows.
    pub fn total(&self) -> u64 {
        self.ran().saturating_add(self.skipped).saturating_add(self.deselected)
    }
}

impl AddAssign for TestCounts {
    fn add_assign(&mut self, other: Self) {
        for (own, more) in [
            (&mut self.passed, other.passed),
            (&mut self.failed, other.failed),
            (&mut self.errors, other.errors),
            (&mut self.skipped, other.skipped),
            (&mut self.deselected, other.deselected),
        ] {
            *own = own.saturating_add(more);
        }
    }
}

impl fmt::Display for TestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} passed", self.passed, self.total())?;
        for (count, name) in [
            (self.failed, "failed"),
            (self.errors, "errors"),
            (self.skipped, "skipped"),
            (self.deselected, "deselected"),
        ] {
            if count > 0 {
                write!(f, ", {count} {name}")?;
            }
        }
        Ok(())
    }
}

impl OutcomeState {
    /// Returns the name under which states are counted.
    pub fn name(self) -> StateName {
        match self {
            OutcomeState::CheckedElsewhere { result, .. } => match result {
                ElsewhereResult::Passed => StateName::PassedElsewhere,
                ElsewhereResult::Failed => StateName::FailedElsewhere,
                ElsewhereResult::Disagreed => StateName::DisagreedElsewhere,
            },
            OutcomeState::Objected => StateName::Objected,
            OutcomeState::TestsPassed { scope, counts } => match scope {
                TestScope::NoneRan => StateName::NoneRan,
                TestScope::Own => StateName::OwnTestsPassed,
                TestScope::Part => StateName::PartPassed,
                TestScope::Whole if counts.is_some() => StateName::WholeSuitePassed,
                TestScope::Whole => StateName::UncountedPassed,
            },
            OutcomeState::TestsFailed { is_new: true, .. } => StateName::NewFailures,
            OutcomeState::TestsFailed { .. } => StateName::TestsFailed,
            OutcomeState::CouldNotRun => StateName::CouldNotRun,
            OutcomeState::Claimed => StateName::Claimed,
            OutcomeState::Unknown => StateName::Unknown,
        }
    }

    /// Returns the headline that the state deserves by itself, if any. Otherwise the agent's claim
    /// decides between [`TaskOutcome::Claimed`] and [`TaskOutcome::Unknown`].
    fn headline(self) -> Option<TaskOutcome> {
        match self.name() {
            StateName::WholeSuitePassed | StateName::PassedElsewhere => {
                Some(TaskOutcome::ChecksPassed)
            }
            StateName::NewFailures
            | StateName::FailedElsewhere
            | StateName::DisagreedElsewhere
            | StateName::Objected => Some(TaskOutcome::Contradicted),
            // Failures may be older than the session's work, and often are.
            StateName::UncountedPassed
            | StateName::PartPassed
            | StateName::OwnTestsPassed
            | StateName::NoneRan
            | StateName::TestsFailed
            | StateName::CouldNotRun
            | StateName::Claimed
            | StateName::Unknown => None,
        }
    }

    /// Describes the state for a reader.
    pub fn words(self) -> String {
        let counted = |words: &str, counts: Option<TestCounts>| match counts {
            Some(counts) => format!("{words}: {counts}"),
            None => format!("{words}, without a count"),
        };
        match self {
            OutcomeState::CheckedElsewhere { by, result } => {
                let by = match by {
                    ResultSource::Verifier => "a verifier",
                    ResultSource::Ci => "CI",
                    ResultSource::Merge => "a merge",
                    ResultSource::Person => "a person",
                };
                match result {
                    ElsewhereResult::Passed => format!("{by} says that it is done"),
                    ElsewhereResult::Failed => format!("{by} says that it is not done"),
                    ElsewhereResult::Disagreed => {
                        format!("several results of {by} disagree")
                    }
                }
            }
            OutcomeState::Objected => "the person objected last".to_owned(),
            OutcomeState::TestsPassed { scope, counts } => match scope {
                TestScope::Whole => counted("the whole suite passed", counts),
                TestScope::Part => counted("a part of the tests passed", counts),
                TestScope::Own => {
                    counted("only tests passed that the agent wrote in this session", counts)
                }
                TestScope::NoneRan => match counts {
                    Some(counts) => format!("no test ran: {counts}"),
                    None => "no test ran".to_owned(),
                },
            },
            OutcomeState::TestsFailed { counts, is_new, .. } => {
                let failed = counted("tests failed", counts);
                let more = if is_new { ", more than before in this session" } else { "" };
                format!("{failed}{more}")
            }
            OutcomeState::CouldNotRun => "tests could not run".to_owned(),
            OutcomeState::Claimed => "only the agent says that it is done".to_owned(),
            OutcomeState::Unknown => "nothing says how it ended".to_owned(),
        }
    }
}
