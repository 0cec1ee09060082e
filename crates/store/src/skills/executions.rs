//! Counts and lists skill executions.

use jiff::Timestamp;
use jiff::civil::Date;

use super::{COLUMNS, cursor_values, read};
use crate::page::{Cursor, ResultPage};
use crate::row::{Columns, Record as _, record};
use crate::statement::params;
use crate::{ColumnError, Store, StoreError};
use selftest_grading::improve::effectiveness::ExecutionCounts;
use selftest_grading::improve::skill::{ExecutionStatus, SkillExecution, SkillVersion};

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

/// Sums over the joined executions, 0 if there are none.
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
