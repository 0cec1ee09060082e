//! The skill tables (docs/spec/skills-and-signals.md#skill-effectiveness). This file reads versions
//! and executions; the submodules handle recording and audit entries.

mod change;
mod recording;

pub use change::NewSkill;
use jiff::Timestamp;
use jiff::civil::Date;
pub use recording::{SkillRecord, SkillRecordCounts, SkillRef};

use super::page::{Cursor, ResultPage};
use super::row::{Columns, Record as _, Rows, read_from, record};
use super::statement::{params, stored_as};
use super::{ColumnError, Store, StoreError, bound};
use selftest_grading::improve::disabling::ChangeReason;
use selftest_grading::improve::effectiveness::ExecutionCounts;
use selftest_grading::improve::skill::{
    AuditAction, AuditEntry, ExecutionStatus, SkillExecution, SkillStatus, SkillVersion,
};

/// All columns except the skill text, which may be long.
const COLUMNS: &str = "id, user_id, skill_name, version, is_active, created_at, promoted_at, \
    disabled_at, effectiveness_score, total_executions, last_scored_at, \
    (SELECT reasons_json FROM skill_audit AS audit \
    WHERE audit.skill_version_id = skill_versions.id \
    AND audit.action IN ('disable', 'auto_disable', 'rollback') \
    ORDER BY audit.made_at DESC, audit.id DESC LIMIT 1) AS reasons_json";

fn read(row: &Columns<'_>) -> Result<SkillVersion, ColumnError> {
    let disabled_at = row.get("disabled_at")?;
    let status = match (row.get("is_active")?, disabled_at) {
        (true, _) => SkillStatus::Active,
        (false, Some(_)) => SkillStatus::Disabled,
        (false, None) => SkillStatus::Superseded,
    };
    let is_disabled = status == SkillStatus::Disabled;
    // A later activation makes the reasons obsolete.
    let reasons = if is_disabled { row.optional("reasons_json") } else { None };
    Ok(SkillVersion {
        id: row.get("id")?,
        user_id: row.get("user_id")?,
        skill_name: row.get("skill_name")?,
        version: row.get("version")?,
        status,
        created_at: row.get("created_at")?,
        promoted_at: row.get("promoted_at")?,
        disabled_at,
        effectiveness_score: row
            .optional("effectiveness_score")
            .filter(|score| (0.0..=1.0).contains(score)),
        total_executions: row.optional("total_executions").unwrap_or_default(),
        last_scored_at: row.get("last_scored_at")?,
        reasons: reasons.unwrap_or_default(),
    })
}

record!(AuditEntry, "skill_audit", {
    time as "made_at",
    skill_version_id,
    action,
    reasons as "reasons_json",
    actor,
});

stored_as! { Text:
    AuditAction => |action, _limit| action.name().to_owned(),
    Vec<ChangeReason> => |reasons, _limit| bound::json(reasons).unwrap_or_else(|| "[]".to_owned()),
}
read_from! { |row, name|
    AuditAction => row.named(name, AuditAction::from_name),
    // Empty if the column contains anything else.
    Vec<ChangeReason> => {
        let json: String = row.get(name)?;
        Ok(serde_json::from_str(&json).unwrap_or_default())
    },
}

impl Store {
    /// Returns a version by its id.
    pub async fn skill(&self, id: &str) -> Result<Option<SkillVersion>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM skill_versions WHERE id = $1");
        self.fetch_one(&format!("the skill {id}"), query, params![id], read).await
    }

    /// Returns all versions of a skill, most recently activated first.
    pub async fn skill_versions(
        &self,
        user_id: &str,
        skill_name: &str,
    ) -> Result<Vec<SkillVersion>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM skill_versions WHERE user_id = $1 AND skill_name = $2 \
             ORDER BY COALESCE(promoted_at, created_at) DESC, id DESC"
        );
        Ok(self.fetch(query, params![user_id, skill_name], read).await?.items)
    }

    /// Returns a page of a user's skill versions, sorted by skill name, then newest first.
    pub async fn skills(
        &self,
        user_id: &str,
        limit: u32,
        after: Option<&Cursor>,
    ) -> Result<ResultPage<SkillVersion>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM skill_versions WHERE user_id = $1 \
             AND (CAST($2 AS TEXT) IS NULL OR skill_name > $2 \
             OR (skill_name = $2 AND (created_at, id) < \
             (SELECT place.created_at, place.id FROM skill_versions AS place WHERE place.id = $3))) \
             ORDER BY skill_name, created_at DESC, id DESC LIMIT $4"
        );
        let (name, id) = cursor_values(after);
        let values = params![user_id, name, id, i64::from(limit) + 1];
        let place = |row: &Columns<'_>| Cursor::of(row, "skill_name", "id");
        self.fetch_page(limit, query, values, place, read).await
    }

    /// Returns the text of a version; `None` if it was only observed in use.
    pub async fn skill_content(&self, id: &str) -> Result<Option<String>, StoreError> {
        let query = "SELECT content FROM skill_versions WHERE id = $1";
        let read = |row: &Columns<'_>| row.get("content");
        let found = self.fetch_one("the text of a skill", query, params![id], read).await?;
        Ok(found.flatten())
    }

    /// Returns the audit entries of a skill's versions, oldest first.
    pub async fn skill_audit(
        &self,
        user_id: &str,
        skill_name: &str,
    ) -> Result<Rows<AuditEntry>, StoreError> {
        let query = "SELECT audit.* FROM skill_audit AS audit JOIN skill_versions AS skill \
                     ON skill.id = audit.skill_version_id \
                     WHERE skill.user_id = $1 AND skill.skill_name = $2 \
                     ORDER BY audit.made_at, audit.id";
        self.fetch(query, params![user_id, skill_name], AuditEntry::read).await
    }
}

/// Returns the value and id of a cursor, or nulls.
fn cursor_values(after: Option<&Cursor>) -> (Option<&str>, Option<&str>) {
    (after.and_then(|cursor| cursor.value.as_deref()), after.map(|cursor| cursor.id.as_str()))
}

/// Executions of a version on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillDayCount {
    /// Skill version id.
    pub skill_version_id: String,
    /// Day in UTC.
    pub day: Date,
    /// Number of executions.
    pub executions: u32,
    /// Number of successful executions.
    pub successes: u32,
}

/// Sums over the joined executions, 0 without any.
const SUMS: &str = "COUNT(execution.id) AS executions, \
    COALESCE(SUM(CASE WHEN execution.execution_status = 'success' THEN 1 ELSE 0 END), 0) \
    AS successes, \
    COALESCE(SUM(CASE WHEN execution.user_edited_output <> 0 THEN 1 ELSE 0 END), 0) AS edited, \
    COALESCE(SUM(CASE WHEN execution.user_repeated_request <> 0 THEN 1 ELSE 0 END), 0) AS repeated, \
    COALESCE(SUM(CASE WHEN execution.user_sent_thank_you <> 0 THEN 1 ELSE 0 END), 0) AS thanked";

record!(ExecutionCounts, "skill_executions", { executions, successes, edited, repeated, thanked });
record!(SkillDayCount, "skill_executions", { skill_version_id, day, executions, successes });

fn read_execution(row: &Columns<'_>) -> Result<SkillExecution, ColumnError> {
    Ok(SkillExecution {
        id: row.get("id")?,
        skill_version_id: row.get("skill_version_id")?,
        user_id: row.get("user_id")?,
        session_id: row.get("session_id")?,
        execution_status: row.named("execution_status", ExecutionStatus::from_name)?,
        user_edited_output: row.optional("user_edited_output").unwrap_or_default(),
        user_sent_thank_you: row.optional("user_sent_thank_you").unwrap_or_default(),
        user_repeated_request: row.optional("user_repeated_request").unwrap_or_default(),
        user_was_frustrated: row.get("frustration")?,
        conversation_turns: row.get("conversation_turns")?,
        execution_time_ms: row.get("execution_time_ms")?,
        error_message: row.get("error_message")?,
        created_at: row.get("created_at")?,
    })
}

impl Store {
    /// Counts the executions of a version since a time.
    pub async fn skill_counts(
        &self,
        skill_version_id: &str,
        since: Timestamp,
    ) -> Result<ExecutionCounts, StoreError> {
        let query = format!(
            "SELECT {SUMS} FROM skill_executions AS execution \
             WHERE skill_version_id = $1 AND created_at >= $2"
        );
        let values = params![skill_version_id, since];
        let what = "the counts of a skill";
        let found = self.fetch_one(what, query, values, ExecutionCounts::read).await?;
        Ok(found.unwrap_or_default())
    }

    /// Returns all active versions, sorted by name, with their execution counts since a time.
    pub async fn active_skills(
        &self,
        user_id: &str,
        since: Timestamp,
    ) -> Result<Vec<(SkillVersion, ExecutionCounts)>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS}, executions, successes, edited, repeated, thanked \
             FROM skill_versions JOIN (SELECT skill.id AS skill_id, {SUMS} \
             FROM skill_versions AS skill LEFT JOIN skill_executions AS execution \
             ON execution.skill_version_id = skill.id AND execution.created_at >= $2 \
             WHERE skill.user_id = $1 AND skill.is_active <> 0 GROUP BY skill.id) AS sums \
             ON sums.skill_id = skill_versions.id ORDER BY skill_name"
        );
        let read = |row: &Columns<'_>| Ok((read(row)?, ExecutionCounts::read(row)?));
        Ok(self.fetch(query, params![user_id, since], read).await?.items)
    }

    /// Returns a page of the executions of a version, newest first.
    pub async fn skill_executions(
        &self,
        skill_version_id: &str,
        limit: u32,
        after: Option<&Cursor>,
    ) -> Result<ResultPage<SkillExecution>, StoreError> {
        let query = "SELECT skill_executions.*, frustration FROM skill_executions \
                     LEFT JOIN skill_signals ON execution_id = id WHERE skill_version_id = $1 \
                     AND (CAST($2 AS TEXT) IS NULL OR created_at < $2 \
                     OR (created_at = $2 AND id < $3)) \
                     ORDER BY created_at DESC, id DESC LIMIT $4";
        let (made_at, id) = cursor_values(after);
        let values = params![skill_version_id, made_at, id, i64::from(limit) + 1];
        let place = |row: &Columns<'_>| Cursor::of(row, "created_at", "id");
        self.fetch_page(limit, query, values, place, read_execution).await
    }

    /// Counts the executions of a user's skills by version and day, since a time.
    pub async fn skill_days(
        &self,
        user_id: &str,
        since: Timestamp,
    ) -> Result<Vec<SkillDayCount>, StoreError> {
        let query = "SELECT skill_version_id, substr(created_at, 1, 10) AS day, \
                     COUNT(*) AS executions, \
                     SUM(CASE WHEN execution_status = 'success' THEN 1 ELSE 0 END) AS successes \
                     FROM skill_executions WHERE user_id = $1 AND created_at >= $2 \
                     GROUP BY skill_version_id, substr(created_at, 1, 10) ORDER BY day";
        Ok(self.fetch(query, params![user_id, since], SkillDayCount::read).await?.items)
    }
}
