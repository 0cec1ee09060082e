//! Records of skills (docs/spec/skills-and-signals.md#skill-effectiveness): versions,
//! executions, and what was done with them. Plain data.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use super::disabling::Reason;

/// Whether a version is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SkillStatus {
    /// In use. At most one version of a skill is.
    Active,
    /// Another version took its place.
    Superseded,
    /// Disabled.
    Disabled,
}

selftest_text::named!(SkillStatus);

/// One version of a skill, without its text.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SkillVersion {
    /// Unique.
    pub id: String,
    /// Whose it is.
    pub user_id: String,
    /// The skill.
    pub skill_name: String,
    /// Unique among the versions of the skill.
    pub version: String,
    /// Whether it is in use.
    pub status: SkillStatus,
    /// When it was made known.
    pub created_at: Timestamp,
    /// When it was last put to use.
    pub promoted_at: Option<Timestamp>,
    /// When it was disabled.
    pub disabled_at: Option<Timestamp>,
    /// The latest score, 0 to 1; null before the first one and with too few executions.
    pub effectiveness_score: Option<f64>,
    /// Executions that the latest score looked at.
    pub total_executions: u32,
    /// When it was last scored.
    pub last_scored_at: Option<Timestamp>,
    /// Why it was disabled; empty while it is in use.
    #[schema(value_type = Vec<Object>)]
    pub reasons: Vec<Reason>,
}

/// How well a version in use works (docs/spec/skills-and-signals.md#scoring-all-skills).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkillScore {
    /// The skill.
    pub skill_name: String,
    /// Its version.
    pub version: String,
    /// The score, 0.0 to 1.0; `None` with too few executions.
    pub score: Option<f64>,
    /// Executions that were looked at.
    pub total_executions: u32,
}

/// A version that was disabled by a rule (docs/spec/skills-and-signals.md#disabling).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DisabledSkill {
    /// Its score and executions.
    #[serde(flatten)]
    pub scored: SkillScore,
    /// Why.
    pub reasons: Vec<Reason>,
    /// The error of the hook.
    pub refresh_faults: Vec<String>,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SkillChange {
    /// The change.
    pub action: AuditAction,
    /// The version that it was done with, as it is now.
    pub skill: SkillVersion,
    /// The version of the skill that is in use now.
    pub active: Option<SkillVersion>,
    /// The error of the hook; the change was made all the same.
    pub refresh_faults: Vec<String>,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ExecutionStatus {
    /// It worked.
    Success,
    /// It failed.
    Error,
    /// Its time was up.
    Timeout,
}

selftest_text::named!(ExecutionStatus);

/// One use of a skill: a row of the table `skill_executions`
/// (docs/spec/skills-and-signals.md#skill-tables), and what it has no column for.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SkillExecution {
    /// Unique.
    pub id: String,
    /// The version that was used.
    pub skill_version_id: String,
    /// Who used it.
    pub user_id: String,
    /// The session that it was used in.
    pub session_id: Option<String>,
    /// How it ended.
    pub execution_status: ExecutionStatus,
    /// Whether the user significantly changed the result.
    pub user_edited_output: bool,
    /// Whether the next message was gratitude.
    pub user_sent_thank_you: bool,
    /// Whether the user rephrased the same request.
    pub user_repeated_request: bool,
    /// Whether the next message was frustrated; null before there is one. Not in the score.
    pub user_was_frustrated: Option<bool>,
    /// How many turns the task took.
    pub conversation_turns: Option<u32>,
    /// How long it took, in milliseconds.
    pub execution_time_ms: Option<u32>,
    /// The error; secrets redacted.
    pub error_message: Option<String>,
    /// When.
    pub created_at: Timestamp,
}

/// The verdict on an execution in the user's next message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Reaction {
    /// It is gratitude.
    pub gratitude: bool,
    /// It asks for the same again; unknown without the message before.
    pub repetition: Option<bool>,
    /// It is frustrated. Kept and shown; the score does not know it.
    pub frustration: bool,
    /// The user changed the result, as the caller says.
    pub edited: bool,
}

/// A change of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum AuditAction {
    /// Put to use.
    Promote,
    /// Disabled by a person or a program.
    Disable,
    /// Disabled by a rule.
    AutoDisable,
    /// Disabled in favour of the version before.
    Rollback,
    /// The hook that was to be told of a change failed.
    RefreshFailed,
}

selftest_text::named!(AuditAction);

/// One thing that was done with a version, by whom and why.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct AuditEntry {
    /// When.
    pub time: Timestamp,
    /// The version.
    pub skill_version_id: String,
    /// The kind of change.
    pub action: AuditAction,
    /// Why.
    #[schema(value_type = Vec<Object>)]
    pub reasons: Vec<Reason>,
    /// Who: `cli`, `api`, `schedule`, …
    pub actor: String,
}
