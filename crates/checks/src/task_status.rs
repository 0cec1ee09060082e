//! The three states of a task, as named in the specification. All modules about tasks build on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
