//! Observations of a finished case, as far as the adapter reports them. Types only, filled in by
//! the code that runs cases.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::CommandCheck;
use crate::task_status::TaskStatus;

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
    /// Results of those commands from [`super::distinct_commands`] that were run.
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
    /// Final state of the files from [`super::needed_paths`]; for a path with `*`, of each file that
    /// matches it.
    #[serde(default)]
    pub after: BTreeMap<String, FileContent>,
    /// The paths with `*` from [`super::needed_paths`] whose files were all looked for.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_in_a_string_are_read() {
        let read = |arguments: Value| {
            let call = json!({"name": "Skill", "arguments": arguments});
            serde_json::from_value::<ObservedToolCall>(call).unwrap().arguments
        };
        assert_eq!(read(json!("{\"skill\": \"ferry\"}")), json!({"skill": "ferry"}));
        assert_eq!(read(json!("{broken")), json!("{broken"));
        assert_eq!(read(json!("ferry")), json!("ferry"));
        assert_eq!(read(json!({"a": 1})), json!({"a": 1}));
    }
}
