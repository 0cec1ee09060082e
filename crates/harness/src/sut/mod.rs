//! Systems under test: one trait, one file per adapter.
//!
//! An adapter sees the prompt and the replies, never hints, rubrics or verdicts. The time
//! limit of a case is kept by the caller, who drops the pending call and then closes the
//! session; `close` must end everything that the session started.

pub mod acp;
pub mod address;
pub mod chat;
pub mod command;
pub mod http;
pub mod identity;
pub mod namespace;
pub mod project;
pub mod skill;
pub mod status;
pub mod stored;
pub mod sut_settings;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use namespace::{SessionId, TaskGroupId};
use selftest_checks::check::{FileReport, ToolCall};
use selftest_checks::scenario::TaskStatus;
use selftest_models::{CallRecord, ModelError};
use selftest_sandbox::{AttemptKind, Attempts};
use skill::Skill;

/// The only type of task that the harness hands out: reading and answering, never changing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskType {
    /// Read information and answer.
    ReadInfo,
}

impl TaskType {
    /// The specified word.
    pub const fn as_str(self) -> &'static str {
        "READ_INFO"
    }
}

/// The namespace of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Session of the case.
    pub session_id: SessionId,
    /// Group of the run.
    pub task_group_id: TaskGroupId,
    /// Always `READ_INFO`.
    pub task_type: TaskType,
    /// Seed for an adapter that samples by itself: another one for each repeat of a case.
    pub seed: u64,
    /// Files for the folder that the system works in.
    pub fixtures: Arc<[Fixture]>,
}

/// A file that a case needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixture {
    /// Where it goes: a relative path that does not climb.
    pub path: String,
    /// Its content.
    pub source: FixtureSource,
}

/// Where a fixture comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixtureSource {
    /// A file or a folder on disk.
    Disk(PathBuf),
    /// This text.
    Text(String),
}

/// The answer of the system under test to a prompt or a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SutReply {
    /// How the task stands.
    pub status: TaskStatus,
    /// Its text.
    pub output: String,
    /// How the status was found, where the system did not state it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_rule: Option<String>,
    /// The model call behind the answer, for the `chat` adapter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallRecord>,
    /// Calls of tools on the way to the answer, in order; absent where the system does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Tokens read and written for the answer, where the system says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

impl SutReply {
    /// An answer of which nothing else is known.
    pub fn new(status: TaskStatus, output: impl Into<String>) -> Self {
        let output = output.into();
        let (status_rule, call, tool_calls, tokens) = (None, None, None, None);
        Self { status, output, status_rule, call, tool_calls, tokens }
    }
}

/// The traces of a session: kept in the report, bounded and redacted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SutEvidence {
    /// The program's stderr, bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// How the program ended, such as `exit code 3` or `killed by signal 9`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
    /// Anything else worth knowing, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
    /// Evidence of its sandbox; absent where it has none of ours.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandbox: Option<SandboxEvidence>,
    /// The call of the built-in assistant's model that brought no answer: raw reply or error.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed_call: Option<Box<CallRecord>>,
}

/// Evidence that the sandbox of one case gathered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxEvidence {
    /// The state of the case, as far as the sandbox can tell.
    pub state: SandboxState,
    /// Refused attempts, the gravest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub attempts: Vec<Attempts>,
    /// Further attempts that are left out.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub left_out: usize,
    /// Reasons to fail the case: rules of the protocol that the program broke, and attempts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub forbidden: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// How a case stood to its sandbox.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// Nothing was attempted that it does not grant.
    Clean,
    /// Something was, and refused.
    BlockedAttempts,
    /// The results of the case cannot be trusted: the project changed, or the protocol was broken.
    Tainted,
    /// There was no sandbox, or not all of it.
    NotEnforced,
}

impl SandboxState {
    /// The word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            SandboxState::Clean => "CLEAN",
            SandboxState::BlockedAttempts => "BLOCKED ATTEMPTS",
            SandboxState::Tainted => "TAINTED",
            SandboxState::NotEnforced => "NOT ENFORCED",
        }
    }
}

impl SandboxEvidence {
    /// Of the notes of a supervisor, behind walls that stand as they should or not.
    pub fn new(attempts: Vec<Attempts>, left_out: usize, is_enforced: bool) -> Self {
        let state = match (is_enforced, attempts.is_empty()) {
            (false, _) => SandboxState::NotEnforced,
            (true, true) => SandboxState::Clean,
            (true, false) => SandboxState::BlockedAttempts,
        };
        Self { state, attempts, left_out, forbidden: Vec::new() }
    }

    /// The state and what was attempted, in one line.
    pub fn line(&self) -> String {
        let mut line = self.state.word().to_owned();
        for (number, Attempts { attempt, times }) in self.attempts.iter().enumerate() {
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

    /// Adds the attempts that fail a case: to read the answer key always, others where `all` do.
    pub(crate) fn forbid(&mut self, all: bool) {
        let fails = |it: &&Attempts| all || it.attempt.kind == AttemptKind::AnswerKey;
        let failing = self.attempts.iter().filter(fails);
        self.forbidden.extend(failing.map(|it| it.attempt.to_string()));
    }
}

/// The protections against harm by the system under test, as far as this system can enforce it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Isolation {
    /// The enforced ones, one line each.
    pub enforced: Vec<String>,
    /// The ones that could not be enforced here, one line each: said, not assumed.
    pub not_enforced: Vec<String>,
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SutError {
    /// It could not be started: exit code 5 when found before the first case.
    #[error("{what}")]
    NotStarted {
        /// The failure, naming the program, file or address.
        what: String,
        /// A remedy.
        hint: Option<String>,
    },
    /// The model behind the built-in assistant gives no answer: nothing is known of the assistant.
    #[error("{what}")]
    Unavailable {
        /// The failure, naming the server.
        what: String,
    },
    /// It died, printed garbage, answered an error, or broke the protocol.
    #[error("{what}")]
    Failed {
        /// The failure.
        what: String,
    },
    /// A limit of ours cut its answer or its prompt: it says nothing about the system.
    #[error("{what}")]
    Cut {
        /// The cut, naming the setting.
        what: String,
    },
}

impl SutError {
    /// A failure with these words.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::Failed { what: what.into() }
    }

    /// The error of the model behind the built-in assistant.
    pub fn of_model(error: &ModelError) -> Self {
        let what = error.to_string();
        if error.is_outage() { Self::Unavailable { what } } else { Self::Failed { what } }
    }

    /// One thing that the reader can do.
    pub fn hint(&self) -> Option<&str> {
        match self {
            SutError::NotStarted { hint, .. } => hint.as_deref(),
            SutError::Unavailable { .. } | SutError::Failed { .. } | SutError::Cut { .. } => None,
        }
    }
}

/// Something that answers tasks.
pub trait SystemUnderTest: Send + Sync {
    /// A short description for the report: `command ./agent (json_lines)`.
    fn describe(&self) -> String;

    /// The measures that keep it from doing harm.
    fn isolation(&self) -> Isolation;

    /// Whether it could write to the project folder if it tried; then the folder is compared
    /// after each case.
    fn can_reach_project(&self) -> bool;

    /// Whether it can be started at all. Called once, before the first model call.
    fn check(&self) -> BoxFuture<'_, Result<(), SutError>>;

    /// Whether the model server behind it still answers. Called after a timeout, which a server
    /// that is gone must not turn into a failure of the system.
    fn has_model(&self) -> BoxFuture<'_, Result<(), SutError>> {
        Box::pin(async { Ok(()) })
    }

    /// Whether each case has a folder of its own, into which files can be put.
    fn takes_fixtures(&self) -> bool {
        false
    }

    /// The same system with this skill at hand, and without any other difference.
    fn with_skill(&self, skill: Arc<Skill>) -> Result<Arc<dyn SystemUnderTest>, SutError>;

    /// Opens a session in the namespace of the task.
    fn open<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<Box<dyn SutSession>, SutError>>;
}

/// One open session. Dropping a pending call is allowed; `close` follows.
pub trait SutSession: Send {
    /// Hands in the prompt and waits for a terminal status.
    fn submit<'a>(&'a mut self, prompt: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>>;

    /// Answers a question of the system under test and waits again.
    fn reply<'a>(&'a mut self, reply: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>>;

    /// The files that were created, changed and deleted so far, and the content of the named ones;
    /// `None` where nobody can tell. Called after the last answer.
    fn files<'a>(&'a mut self, _named: &'a [String]) -> BoxFuture<'a, Option<FileReport>> {
        Box::pin(async { None })
    }

    /// Takes the present content of its folder as the state before the run.
    fn settle(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// The folder of its own that the system works in, if it has one.
    fn workspace(&self) -> Option<&std::path::Path> {
        None
    }

    /// Ends the session with everything that it started; never fails, never hangs.
    fn close(self: Box<Self>) -> BoxFuture<'static, SutEvidence>;
}
