//! Observations of a case that was run, as far as the adapter reports it. Types only; whoever runs
//! a case fills them in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::CommandCheck;
use crate::task_status::TaskStatus;

/// Observations of one case. `None` is "the adapter does not report it", which no check may take
/// for "it did not happen".
#[derive(Debug, Clone, Copy, Default)]
pub struct Observation<'a> {
    /// How the task stands after the last answer.
    pub status: Option<TaskStatus>,
    /// The last answer.
    pub output: &'a str,
    /// Every answer in order, the last one included.
    pub answers: &'a [&'a str],
    /// Calls of tools in order.
    pub tool_calls: Option<&'a [ToolCall]>,
    /// Changes of files.
    pub files: Option<&'a FileReport>,
    /// How often the system under test answered.
    pub turns: Option<u64>,
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// The time of the case.
    pub duration: Option<Duration>,
    /// Ends of the commands that [`super::commands`] named and that were run.
    pub commands: &'a [CommandRun],
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// Its arguments, usually a mapping.
    #[serde(default)]
    pub arguments: Value,
}

/// Changes of the files of the folder that the agent worked in. Paths are from its root, with `/`.
/// The three lists are complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReport {
    /// Files that were not there before.
    #[serde(default)]
    pub created: BTreeSet<String>,
    /// Files whose content is another one.
    #[serde(default)]
    pub changed: BTreeSet<String>,
    /// Files that are gone.
    #[serde(default)]
    pub deleted: BTreeSet<String>,
    /// The files that [`super::paths`] named, after the run.
    #[serde(default)]
    pub after: BTreeMap<String, FileContent>,
}

/// A file after the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileContent {
    /// There is none.
    Missing,
    /// Its text.
    Text(String),
    /// It is there and cannot be read as text, for this reason.
    Unreadable(String),
}

/// A command of a check, and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandRun {
    /// The command.
    pub command: CommandCheck,
    /// Its end.
    pub end: CommandEnd,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEnd {
    /// By itself.
    Exited {
        /// Its exit code.
        code: i32,
        /// Its stdout, bounded.
        stdout: String,
    },
    /// By a signal that we did not send.
    Killed {
        /// The signal.
        signal: i32,
    },
    /// By us: it ran out of time.
    TimedOut,
    /// By us: it printed more than it may.
    TooMuchOutput,
    /// It could not be started, or was not allowed to: nothing is known.
    NotStarted {
        /// Why.
        why: String,
    },
}
