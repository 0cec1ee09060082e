//! Skills as recorded (docs/spec/skills-and-signals.md#skill-effectiveness): versions, executions,
//! the audit log and weekly usage, with the `skills` section of the configuration.

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use super::effectiveness::{ChangeReason, DisableSettings};

/// The `skills` section: how executions of skills are scored, and when bad skills are disabled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SkillSettings {
    /// Owner of the skills, stored with every version and execution.
    #[schemars(length(min = 1, max = 200))]
    pub user_id: String,
    /// Number of days that a score covers.
    #[schemars(range(min = 1, max = 3650))]
    pub lookback_days: u32,
    /// Rules for disabling a skill automatically.
    pub disable: DisableSettings,
    /// Hooks to run after a skill was promoted, disabled or rolled back.
    pub refresh: RefreshSettings,
}

impl Default for SkillSettings {
    /// The 30 days come from docs/spec/skills-and-signals.md#effectiveness-score; the specification
    /// leaves the user open.
    fn default() -> Self {
        Self {
            user_id: "local".to_owned(),
            lookback_days: 30,
            disable: DisableSettings::default(),
            refresh: RefreshSettings::default(),
        }
    }
}

/// Hooks that announce changes to the active skills.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RefreshSettings {
    /// Program and arguments that receive the change. Absent: no program is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
    /// URL that the change is posted to. Absent: nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub webhook: Option<String>,
}

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

/// Number of weeks in a trend.
pub const WEEKS: i64 = 8;

/// Executions in one week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct WeekCount {
    /// Monday of the week.
    #[schema(value_type = String, format = Date)]
    pub week_start: Date,
    /// Number of executions.
    pub executions: u32,
    /// Number of successful executions.
    pub successes: u32,
}

/// Returns the first day of the trend whose last week contains `today`.
pub fn first_day(today: Date) -> Date {
    // The week of today is one of them.
    monday(today).saturating_sub((7 * (WEEKS - 1)).days())
}

/// Aggregates daily counts of executions and successes into the last [`WEEKS`] weeks, oldest first.
/// Weeks without executions are included.
pub fn weeks(days: impl IntoIterator<Item = (Date, u32, u32)>, today: Date) -> Vec<WeekCount> {
    let first = first_day(today);
    let mut weeks: Vec<WeekCount> = (0..WEEKS)
        .map(|number| WeekCount {
            week_start: first.saturating_add((7 * number).days()),
            executions: 0,
            successes: 0,
        })
        .collect();
    for (day, executions, successes) in days {
        let week = monday(day);
        if let Some(week) = weeks.iter_mut().find(|other| other.week_start == week) {
            week.executions = week.executions.saturating_add(executions);
            week.successes = week.successes.saturating_add(successes);
        }
    }
    weeks
}

fn monday(day: Date) -> Date {
    day.saturating_sub(i64::from(day.weekday().to_monday_zero_offset()).days())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/spec/skills-and-signals.md#effectiveness-score, #disabling: 30 days, 0.3, 10
    /// executions.
    #[test]
    fn the_defaults_are_as_specified() {
        let settings = SkillSettings::default();
        assert_eq!(settings.lookback_days, 30);
        assert_eq!((settings.disable.threshold, settings.disable.min_executions), (0.3, 10));
    }

    fn day(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn days_are_gathered_in_weeks_and_empty_weeks_are_there() {
        let days = [
            ("2026-09-27", 9),
            ("2026-09-28", 1),
            ("2026-11-15", 2),
            ("2026-11-16", 3),
            ("2026-11-22", 4),
            ("2026-11-23", 9),
        ];
        // A Sunday.
        let today = day("2026-11-22");
        let weeks = weeks(days.map(|(date, count)| (day(date), count, count - 1)), today);
        let counts: Vec<_> = weeks.iter().map(|week| (week.executions, week.successes)).collect();
        assert_eq!(counts, [(1, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (2, 1), (7, 5)]);
        assert_eq!(weeks[0].week_start, first_day(today));
        assert_eq!(
            (weeks[0].week_start, weeks[7].week_start),
            (day("2026-09-28"), day("2026-11-16"))
        );
    }

    #[test]
    fn no_day_is_too_early_or_too_late() {
        for today in [Date::MIN, Date::MAX] {
            let all = [(Date::MIN, u32::MAX, 0), (Date::MAX, 1, 1), (today, u32::MAX, 1)];
            assert_eq!(weeks(all, today).len(), 8);
        }
    }
}
