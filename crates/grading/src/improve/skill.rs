//! Skill records (docs/spec/skills-and-signals.md#skill-effectiveness): versions, executions and
//! the audit log.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use super::disabling::ChangeReason;

/// Status of a skill version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SkillStatus {
    /// In use. At most one version of a skill is active.
    Active,
    /// Replaced by another version.
    Superseded,
    /// Disabled.
    Disabled,
}

selftest_text::named!(SkillStatus);

/// A version of a skill, without its text.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SkillVersion {
    /// Unique ID.
    pub id: String,
    /// Owner of the skill.
    pub user_id: String,
    /// Name of the skill.
    pub skill_name: String,
    /// Version name, unique within the skill.
    pub version: String,
    /// Current status.
    pub status: SkillStatus,
    /// Time of registration.
    pub created_at: Timestamp,
    /// Time of the last promotion.
    pub promoted_at: Option<Timestamp>,
    /// Time when it was disabled.
    pub disabled_at: Option<Timestamp>,
    /// Latest score, 0 to 1; null before the first scoring and with too few executions.
    pub effectiveness_score: Option<f64>,
    /// Number of executions in the latest score.
    pub total_executions: u32,
    /// Time of the latest scoring.
    pub last_scored_at: Option<Timestamp>,
    /// Reasons why it was disabled; empty while it is in use.
    #[schema(value_type = Vec<Object>)]
    pub reasons: Vec<ChangeReason>,
}

/// Score of an active version (docs/spec/skills-and-signals.md#scoring-all-skills).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkillScore {
    /// Name of the skill.
    pub skill_name: String,
    /// Version name.
    pub version: String,
    /// Score, 0.0 to 1.0; `None` with too few executions.
    pub score: Option<f64>,
    /// Number of executions scored.
    pub total_executions: u32,
}

/// A version disabled by a rule (docs/spec/skills-and-signals.md#disabling).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DisabledSkill {
    /// Score and number of executions.
    #[serde(flatten)]
    pub scored: SkillScore,
    /// Reasons why it was disabled.
    pub reasons: Vec<ChangeReason>,
    /// Errors from the refresh hook.
    pub refresh_faults: Vec<String>,
}

/// A change made to a skill.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SkillChange {
    /// Kind of change.
    pub action: AuditAction,
    /// The changed version, in its new state.
    pub skill: SkillVersion,
    /// The version of the skill that is active now.
    pub active: Option<SkillVersion>,
    /// Errors from the refresh hook. The change was made nevertheless.
    pub refresh_faults: Vec<String>,
}

/// Outcome of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ExecutionStatus {
    /// The execution succeeded.
    Success,
    /// The execution failed.
    Error,
    /// The execution timed out.
    Timeout,
}

selftest_text::named!(ExecutionStatus);

/// One use of a skill: a row of the table `skill_executions`
/// (docs/spec/skills-and-signals.md#skill-tables) plus fields without a column.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SkillExecution {
    /// Unique ID.
    pub id: String,
    /// ID of the version used.
    pub skill_version_id: String,
    /// User of the skill.
    pub user_id: String,
    /// ID of the session in which it was used.
    pub session_id: Option<String>,
    /// Outcome of the execution.
    pub execution_status: ExecutionStatus,
    /// True if the user significantly changed the result.
    pub user_edited_output: bool,
    /// True if the next message expressed gratitude.
    pub user_sent_thank_you: bool,
    /// True if the user rephrased the same request.
    pub user_repeated_request: bool,
    /// True if the next message was frustrated; null before there is one. Not part of the score.
    pub user_was_frustrated: Option<bool>,
    /// Number of turns the task took.
    pub conversation_turns: Option<u32>,
    /// Duration in milliseconds.
    pub execution_time_ms: Option<u32>,
    /// Error message, with secrets redacted.
    pub error_message: Option<String>,
    /// Time of the execution.
    pub created_at: Timestamp,
}

/// Reaction to an execution in the user's next message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct UserReaction {
    /// True if the message expresses gratitude.
    pub gratitude: bool,
    /// True if the message repeats the request; unknown without the previous message.
    pub repetition: Option<bool>,
    /// True if the message is frustrated. Stored and displayed, but not part of the score.
    pub frustration: bool,
    /// True if the caller reports that the user changed the result.
    pub edited: bool,
}

/// Kind of an audited change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum AuditAction {
    /// The version was promoted.
    Promote,
    /// A user or a program disabled the version.
    Disable,
    /// A rule disabled the version.
    AutoDisable,
    /// The version was disabled in favour of the previous one.
    Rollback,
    /// The hook for announcing a change failed.
    RefreshFailed,
}

selftest_text::named!(AuditAction);

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct AuditEntry {
    /// Time of the change.
    pub time: Timestamp,
    /// ID of the version.
    pub skill_version_id: String,
    /// Kind of change.
    pub action: AuditAction,
    /// Reasons for the change.
    #[schema(value_type = Vec<Object>)]
    pub reasons: Vec<ChangeReason>,
    /// Origin of the change: `cli`, `api`, `schedule`, …
    pub actor: String,
}
