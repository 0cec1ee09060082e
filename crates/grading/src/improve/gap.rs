//! Gaps in the agent's skills, as detected and as stored, the proposed skills with the results of
//! their tests, and the `gaps` section of the configuration.

use std::path::PathBuf;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::grade::TaskType;
use selftest_text::digest;

/// The `gaps` section: what counts as a gap in the agent's skills, and how proposals are drafted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GapSettings {
    /// Number of days that detection looks back.
    #[schemars(range(min = 1, max = 3650))]
    pub lookback_days: u32,
    /// Minimum number of sessions with errors of the same class from the same tool.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub error_sessions: u64,
    /// Minimum number of sessions that called the same nonexistent tool.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub unknown_tool_sessions: u64,
    /// Minimum number of sessions of a task type before it can count as low.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub task_sessions: u64,
    /// A task type is low if the upper end of the 95 % interval of its completion rate is below
    /// this …
    #[schemars(range(min = 0.0, max = 1.0))]
    pub completion_rate: f64,
    /// … or if its mean score, 1 to 5, is below this.
    #[schemars(range(min = 1.0, max = 5.0))]
    pub task_score: f64,
    /// Minimum number of sessions in which users had to repeat a similar request.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub repeated_sessions: u64,
    /// Maximum number of open gaps to draft skills for per run.
    #[schemars(range(min = 1, max = 100))]
    pub proposals_per_run: u32,
    /// Maximum number of tokens of a drafted skill. From 3428 tokens on, the instructions may have
    /// 3000 characters; with fewer tokens, they are shorter.
    #[schemars(range(min = 64, max = 32768))]
    pub max_tokens: u32,
    /// Number of times to ask again after a malformed draft.
    #[schemars(range(min = 0, max = 20))]
    pub max_reasks: u32,
    /// Suite file, as written by `selftest freeze`, whose cases test each drafted skill. Without
    /// one, skills are proposed untested.
    #[schemars(length(min = 1))]
    pub suite: Option<PathBuf>,
    /// Number of times to run each of its cases with the skill, and as often without.
    #[schemars(range(min = 1, max = 1000))]
    pub repeats: u32,
    /// Folder for accepted skills, each written to <name>/SKILL.md.
    #[schemars(length(min = 1))]
    pub skills_folder: PathBuf,
}

impl Default for GapSettings {
    /// The 3 gaps per run come from docs/spec/skills-and-signals.md#skill-generation, the score of
    /// 3 from docs/spec/session-grades.md#skill-recommendations. The other defaults are ours.
    fn default() -> Self {
        Self {
            lookback_days: 28,
            error_sessions: 3,
            unknown_tool_sessions: 2,
            task_sessions: 5,
            completion_rate: 0.7,
            task_score: 3.0,
            repeated_sessions: 3,
            proposals_per_run: 3,
            max_tokens: 3500,
            max_reasks: 2,
            suite: None,
            repeats: 5,
            skills_folder: PathBuf::from(".selftest/skills"),
        }
    }
}

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
    // 48 bits: no collision is to be expected among thousands of gaps.
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

/// Decision on a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ProposalStatus {
    /// Waiting for a decision.
    Proposed,
    /// Its SKILL.md was written to a file. The user still has to install it.
    Accepted,
    /// Declined.
    Rejected,
}

selftest_text::named!(ProposalStatus);

/// Result of an experiment with a drafted skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SkillTest {
    /// Cases were run with and without the skill.
    Tested {
        /// One-sentence result with numbers.
        conclusion: String,
        /// Full numbers.
        details: Value,
    },
    /// The skill was not tested.
    NotTested {
        /// Reason why it was not tested.
        reason: String,
    },
}

impl SkillTest {
    /// Describes the result, or why the skill was not tested. May contain untrusted text.
    pub fn describe(&self) -> String {
        match self {
            SkillTest::Tested { conclusion, .. } => conclusion.clone(),
            SkillTest::NotTested { reason } => format!("not tested: {reason}"),
        }
    }
}

/// A proposed skill.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SkillProposal {
    /// Unique ID.
    pub id: String,
    /// ID of the gap that the skill should close.
    pub gap_id: String,
    /// Name of the skill.
    pub skill_name: String,
    /// Description of when an agent should use it.
    pub description: String,
    /// Content of the whole file. Untrusted text.
    pub skill_md: String,
    /// Decision on the proposal.
    pub status: ProposalStatus,
    /// Model that drafted it.
    pub model: String,
    /// SHA-256 of the request that produced the draft.
    pub prompt_digest: String,
    /// Result of its test; null if the row does not record one.
    pub experiment: Option<SkillTest>,
    /// Time of the draft.
    pub created_at: Timestamp,
    /// Time of the decision.
    pub decided_at: Option<Timestamp>,
    /// Reason for the decision.
    pub reason: Option<String>,
    /// Path that the accepted skill was written to.
    pub file: Option<String>,
}

/// Returns the ID of a proposal drafted for a gap at the given time.
pub fn proposal_id(gap_id: &str, created_at: Timestamp) -> String {
    // With the time, so that a second draft for the same gap is a proposal of its own.
    let text = format!("{gap_id}\0{}", created_at.as_nanosecond());
    format!("proposal-{}", &selftest_text::digest::sha256_hex(text.as_bytes())[..12])
}
