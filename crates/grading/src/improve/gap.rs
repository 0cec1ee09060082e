//! A gap in the agent's skills as it is found and as it is kept. Plain data.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::grade::TaskType;
use selftest_text::digest;

/// The evidence of a gap.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum GapKind {
    /// The same class of errors at the same tool, in several sessions.
    ToolError,
    /// Calls of a tool that does not exist.
    UnknownTool,
    /// A task type that goes badly.
    LowTaskType,
    /// A request that people had to make again.
    RepeatedRequest,
}

selftest_text::named!(GapKind);

/// The state of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum GapStatus {
    /// Nothing was proposed yet.
    Open,
    /// A proposal waits for a decision.
    Proposed,
    /// A proposal was accepted. Opens again when the gap shows in sessions after that.
    Closed,
    /// Nobody wants to hear of it again.
    Dismissed,
}

selftest_text::named!(GapStatus);

/// One session that shows a gap, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GapEvidence {
    /// The session.
    pub session_id: String,
    /// Number of the event; null where the whole session shows it.
    pub event: Option<u64>,
    /// When the session counts.
    pub at: Timestamp,
    /// The words, on one line, secrets redacted.
    pub words: String,
}

/// A gap as one look at the grades shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundGap {
    /// The evidence.
    pub kind: GapKind,
    /// The key by which it is the same gap next week: kind and subject.
    pub key: String,
    /// The tool, the task type or the request.
    pub subject: String,
    /// The class of errors, where errors show it.
    pub detail: Option<String>,
    /// The gap in one sentence with its numbers.
    pub description: String,
    /// Errors, repeated requests, or sessions that went badly.
    pub occurrences: u64,
    /// Sessions that show it.
    pub sessions: u64,
    /// Types of their tasks.
    pub task_types: Vec<TaskType>,
    /// Some of the sessions, the newest first.
    pub evidence: Vec<GapEvidence>,
}

impl FoundGap {
    /// The id under which it is kept.
    pub fn id(&self) -> String {
        gap_id(&self.key)
    }
}

/// The id of the gap with that key: short enough to be typed.
pub fn gap_id(key: &str) -> String {
    format!("gap-{}", &digest::of_bytes(key.as_bytes())[..12])
}

/// A gap as it is kept: one row, however often it is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Gap {
    /// Unique.
    pub id: String,
    /// The evidence.
    pub kind: GapKind,
    /// Kind and what it speaks of.
    pub key: String,
    /// The tool, the task type or the request.
    pub subject: String,
    /// The class of errors, where errors show it.
    pub detail: Option<String>,
    /// The gap in one sentence with its numbers.
    pub description: String,
    /// Its state.
    pub status: GapStatus,
    /// When it came to that.
    pub status_at: Timestamp,
    /// Errors, repeated requests or bad sessions when it was last found.
    pub occurrences: u64,
    /// Sessions that showed it when it was last found.
    pub sessions: u64,
    /// Calendar weeks in which it was found.
    pub weeks: u64,
    /// When it was found first.
    pub first_seen: Timestamp,
    /// When it was found last.
    pub last_seen: Timestamp,
    /// Drafts that failed.
    pub attempts: u64,
    /// Why the last draft failed.
    pub last_fault: Option<String>,
    /// Types of the tasks of its sessions.
    #[schema(value_type = Vec<String>)]
    pub task_types: Vec<TaskType>,
    /// Some of the sessions that show it, the newest first.
    pub evidence: Vec<GapEvidence>,
}
