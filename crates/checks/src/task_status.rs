//! The three states of a task, in the specification's words. Everything that speaks of tasks stands
//! above it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a task of the system under test stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskStatus {
    /// It asks something back.
    AwaitingResponse,
    /// It is done.
    Complete,
    /// It could not do the task.
    Error,
}

impl TaskStatus {
    /// The specified word.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
