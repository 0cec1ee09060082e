//! Gaps in the agent's skills, as detected and as stored.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::grade::TaskType;
use selftest_text::digest;

/// Kind of evidence for a gap.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum GapKind {
    /// Errors of the same class from the same tool in several sessions.
    ToolError,
    /// Calls of a tool that does not exist.
    UnknownTool,
    /// A task type with poor results.
    LowTaskType,
    /// A request that users had to repeat.
    RepeatedRequest,
}

selftest_text::named!(GapKind);

/// State of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum GapStatus {
    /// Nothing has been proposed yet.
    Open,
    /// A proposal is waiting for a decision.
    Proposed,
    /// A proposal was accepted. The gap reopens if later sessions show it again.
    Closed,
    /// Dismissed by the user; not reported again.
    Dismissed,
}

selftest_text::named!(GapStatus);

/// A session that shows a gap, and the place in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GapEvidence {
    /// ID of the session.
    pub session_id: String,
    /// Number of the event; null if the whole session shows the gap.
    pub event: Option<u64>,
    /// Time at which the session counts.
    pub at: Timestamp,
    /// Text on one line, with secrets redacted.
    pub words: String,
}

/// A gap found by one detection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DetectedGap {
    /// Kind of evidence.
    pub kind: GapKind,
    /// Key that identifies the gap across weeks: kind and subject.
    pub key: String,
    /// The tool, task type or request.
    pub subject: String,
    /// Class of the errors, for gaps shown by errors.
    pub detail: Option<String>,
    /// One-sentence description with numbers.
    pub description: String,
    /// Number of errors, repeated requests, or sessions with poor results.
    pub occurrences: u64,
    /// Number of sessions that show the gap.
    pub sessions: u64,
    /// Task types of these sessions.
    pub task_types: Vec<TaskType>,
    /// Some of the sessions, newest first.
    pub evidence: Vec<GapEvidence>,
}

impl DetectedGap {
    /// Returns the ID under which the gap is stored.
    pub fn id(&self) -> String {
        gap_id(&self.key)
    }
}

/// Returns the ID of the gap with a key. It is short enough to type.
pub fn gap_id(key: &str) -> String {
    format!("gap-{}", &digest::sha256_hex(key.as_bytes())[..12])
}

/// A stored gap. It has a single row, no matter how often it is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SkillGap {
    /// Unique ID.
    pub id: String,
    /// Kind of evidence.
    pub kind: GapKind,
    /// Kind and subject.
    pub key: String,
    /// The tool, task type or request.
    pub subject: String,
    /// Class of the errors, for gaps shown by errors.
    pub detail: Option<String>,
    /// One-sentence description with numbers.
    pub description: String,
    /// Current state.
    pub status: GapStatus,
    /// Time of the last change of state.
    pub status_at: Timestamp,
    /// Number of errors, repeated requests or sessions with poor results when last found.
    pub occurrences: u64,
    /// Number of sessions that showed the gap when last found.
    pub sessions: u64,
    /// Number of calendar weeks in which the gap was found.
    pub weeks: u64,
    /// Time when the gap was first found.
    pub first_seen: Timestamp,
    /// Time when the gap was last found.
    pub last_seen: Timestamp,
    /// Number of failed drafts.
    pub attempts: u64,
    /// Reason why the last draft failed.
    pub last_fault: Option<String>,
    /// Task types of its sessions.
    #[schema(value_type = Vec<String>)]
    pub task_types: Vec<TaskType>,
    /// Some of the sessions that show the gap, newest first.
    pub evidence: Vec<GapEvidence>,
}
