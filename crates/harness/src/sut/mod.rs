//! Systems under test: one trait, and one file per adapter.
//!
//! An adapter receives the prompt and the replies, never hints, rubrics or verdicts. The caller
//! enforces the time limit of a case: it drops the pending call and then closes the session.
//! `close` must stop everything that the session started.

pub mod acp;
pub mod address;
pub mod answer;
pub mod chat;
pub mod command;
pub mod example;
pub mod http;
pub mod identity;
pub mod namespace;
pub mod project;
pub mod skill;
pub mod stored;
pub mod sut_settings;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use namespace::{SessionId, TaskGroupId};
use selftest_checks::check::{FileChanges, ObservedToolCall};
use selftest_checks::scenario::TaskStatus;
use selftest_models::{CallRecord, ModelError};
use selftest_sandbox::{AttemptCount, AttemptKind};
use skill::Skill;

/// The only type of task that the harness assigns: reading and answering, never changing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SutTaskType {
    /// Read information and answer.
    ReadInfo,
}

impl SutTaskType {
    /// Returns the specified name.
    pub const fn as_str(self) -> &'static str {
        "READ_INFO"
    }
}

/// The namespace of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SutTask {
    /// Session of the case.
    pub session_id: SessionId,
    /// Group of the run.
    pub task_group_id: TaskGroupId,
    /// Always `READ_INFO`.
    pub task_type: SutTaskType,
    /// Seed for an adapter that samples by itself; differs between repeats of a case.
    pub seed: u64,
    /// Files for the folder that the system works in.
    pub fixtures: Arc<[Fixture]>,
}

/// A file that a case needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixture {
    /// Destination: a relative path without `..`.
    pub path: String,
    /// Its content.
    pub source: FixtureSource,
}

/// The source of a fixture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixtureSource {
    /// A file or a folder on disk.
    Disk(PathBuf),
    /// Inline text.
    Text(String),
}

/// The answer of the system under test to a prompt or a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SutReply {
    /// Status of the task.
    pub status: TaskStatus,
    /// Text of the answer, normalised. Empty if the system answered with nothing; without any
    /// answer there is no reply.
    pub output: String,
    /// The text as the system wrote it, if it was normalised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<String>,
    /// What was changed before the answer was checked and judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The rule that the status was inferred by, if the system did not state it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_rule: Option<String>,
    /// The model call behind the answer, for the `chat` adapter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallRecord>,
    /// Tool calls that led to the answer, in order. Absent if the system does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ObservedToolCall>>,
    /// Input and output tokens of the answer, if the system reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

impl SutReply {
    /// Creates an answer without metadata.
    pub fn new(status: TaskStatus, output: impl Into<String>) -> Self {
        let output = output.into();
        let (raw_output, notes) = (None, Vec::new());
        let (status_rule, call, tool_calls, tokens) = (None, None, None, None);
        Self { status, output, raw_output, notes, status_rule, call, tool_calls, tokens }
    }
}

/// The traces of a session, bounded and redacted for the report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SutEvidence {
    /// The program's stderr, bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// The program's exit, such as `exit code 3` or `killed by signal 9`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
    /// Further remarks, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
    /// One thing that the user can do about a missing answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// Evidence of its sandbox. Absent if it did not run in one of ours.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandbox: Option<SandboxEvidence>,
    /// The failed call of the built-in assistant's model: raw reply or error.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed_call: Option<Box<CallRecord>>,
    /// How the skill under trial reached the system. Absent without a skill.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub skill: Option<SkillDelivery>,
}

/// How a skill reached the system under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillDelivery {
    /// Where it was put: `in .claude/skills/ferry`, `in the prompt`.
    pub offered: String,
    /// True if the system read it. Absent if that cannot be known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub read: Option<bool>,
}

/// Evidence collected by the sandbox of one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxEvidence {
    /// State of the case, as far as the sandbox can determine.
    pub state: SandboxState,
    /// Denied attempts, most severe first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub attempts: Vec<AttemptCount>,
    /// Number of further attempts that are omitted.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub left_out: usize,
    /// Reasons to fail the case: protocol violations of the program, and denied attempts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub forbidden: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Sandbox state of a case.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// Nothing was attempted that the sandbox denies.
    Clean,
    /// At least one attempt was denied.
    BlockedAttempts,
    /// The results cannot be trusted: the project changed, or the protocol was violated.
    Tainted,
    /// There was no sandbox, or only part of it.
    NotEnforced,
}

impl SandboxState {
    /// Returns the label used in reports.
    pub const fn label(self) -> &'static str {
        match self {
            SandboxState::Clean => "CLEAN",
            SandboxState::BlockedAttempts => "BLOCKED ATTEMPTS",
            SandboxState::Tainted => "TAINTED",
            SandboxState::NotEnforced => "NOT ENFORCED",
        }
    }
}

impl SandboxEvidence {
    /// Creates the evidence from a supervisor's record; `is_enforced` is false if the sandbox was
    /// incomplete.
    pub fn new(attempts: Vec<AttemptCount>, left_out: usize, is_enforced: bool) -> Self {
        let state = match (is_enforced, attempts.is_empty()) {
            (false, _) => SandboxState::NotEnforced,
            (true, true) => SandboxState::Clean,
            (true, false) => SandboxState::BlockedAttempts,
        };
        Self { state, attempts, left_out, forbidden: Vec::new() }
    }

    /// Returns the state and the attempts in one line.
    pub fn summary(&self) -> String {
        let mut line = self.state.label().to_owned();
        for (number, AttemptCount { attempt, times }) in self.attempts.iter().enumerate() {
            line += if number == 0 { ": " } else { "; " };
            line += &attempt.to_string();
            if *times > 1 {
                line += &format!(" ({times} times)");
            }
        }
        if self.left_out > 0 {
            line += &format!("; and {} more", self.left_out);
        }
        line
    }

    /// Adds the attempts that fail the case: reading the answer key always does, others only if
    /// `all` is set.
    pub(crate) fn add_forbidden(&mut self, all: bool) {
        let fails = |it: &&AttemptCount| all || it.attempt.kind == AttemptKind::AnswerKey;
        let failing = self.attempts.iter().filter(fails);
        self.forbidden.extend(failing.map(|it| it.attempt.to_string()));
    }
}

/// Protections against harm by the system under test, as far as the OS can enforce them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Isolation {
    /// Enforced protections, one line each.
    pub enforced: Vec<String>,
    /// Protections that could not be enforced on this system, one line each.
    pub not_enforced: Vec<String>,
}

/// The system under test gave no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SutError {
    /// It could not be started, which no other case can either: exit code 5.
    #[error("{what}")]
    NotStarted {
        /// The failure, naming the program, file or address.
        what: String,
        /// A remedy.
        hint: Option<String>,
    },
    /// The model behind the built-in assistant, or what stands between the harness and the system,
    /// gives no answer, which says nothing about the system.
    #[error("{what}")]
    Unavailable {
        /// The failure, naming the server.
        what: String,
    },
    /// The same, and other cases would get no answer either.
    #[error("{what}")]
    Lost {
        /// The failure, naming the server.
        what: String,
    },
    /// It died, printed garbage, answered an error, or violated the protocol.
    #[error("{what}")]
    Failed {
        /// The failure.
        what: String,
    },
    /// A limit of the harness cut its answer or its prompt, which says nothing about the system.
    #[error("{what}")]
    Cut {
        /// The cut, naming the setting.
        what: String,
    },
}

impl SutError {
    /// Creates a failure with this message.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::Failed { what: what.into() }
    }

    /// Returns the message with its hint, on one line.
    pub fn message(&self) -> String {
        let hint = self.hint().map(|hint| format!("; hint: {hint}"));
        format!("{self}{}", hint.unwrap_or_default())
    }

    /// Converts an error of the model behind the built-in assistant.
    pub fn of_model(error: &ModelError) -> Self {
        let what = error.to_string();
        if error.is_outage() { Self::Unavailable { what } } else { Self::Failed { what } }
    }

    /// Returns one thing that the user can do.
    pub fn hint(&self) -> Option<&str> {
        match self {
            SutError::NotStarted { hint, .. } => hint.as_deref(),
            SutError::Unavailable { .. }
            | SutError::Lost { .. }
            | SutError::Failed { .. }
            | SutError::Cut { .. } => None,
        }
    }
}

/// A system that answers tasks.
pub trait SystemUnderTest: Send + Sync {
    /// Returns a short description for the report: `command ./agent (json_lines)`.
    fn describe(&self) -> String;

    /// Returns the isolation measures.
    fn isolation(&self) -> Isolation;

    /// Returns true if the system could write to the project folder. The folder is then compared
    /// after each case.
    fn can_reach_project(&self) -> bool;

    /// Checks that it can be started. Called once, before the first model call.
    fn check(&self) -> BoxFuture<'_, Result<(), SutError>>;

    /// Checks that the model server behind it still answers. Called after a timeout, so that a dead
    /// server is not reported as a failure of the system.
    fn check_model(&self) -> BoxFuture<'_, Result<(), SutError>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns true if each case has its own folder that fixtures can be copied to.
    fn supports_fixtures(&self) -> bool {
        false
    }

    /// Returns the same system with this skill and no other difference.
    fn with_skill(&self, skill: Arc<Skill>) -> Result<Arc<dyn SystemUnderTest>, SutError>;

    /// Opens a session in the namespace of the task.
    fn open<'a>(
        &'a self,
        task: &'a SutTask,
    ) -> BoxFuture<'a, Result<Box<dyn SutSession>, SutError>>;
}

/// An open session. A pending call may be dropped; `close` follows.
pub trait SutSession: Send {
    /// Sends the prompt and waits for a terminal status.
    fn submit<'a>(&'a mut self, prompt: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>>;

    /// Answers a question of the system under test and waits again.
    fn reply<'a>(&'a mut self, reply: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>>;

    /// Returns the files created, changed and deleted so far, with the content of the named ones,
    /// or `None` if unknown. Called after the last answer.
    fn files<'a>(&'a mut self, _named: &'a [String]) -> BoxFuture<'a, Option<FileChanges>> {
        Box::pin(async { None })
    }

    /// Takes the current content of its folder as the state before the run.
    fn take_baseline(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Returns the session's own folder, if it has one.
    fn workspace(&self) -> Option<&std::path::Path> {
        None
    }

    /// Stops the session and everything that it started. Never fails and never hangs.
    fn close(self: Box<Self>) -> BoxFuture<'static, SutEvidence>;
}
