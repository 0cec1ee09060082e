//! Executions of skills as they are counted and listed.

use jiff::Timestamp;
use jiff::civil::Date;

use super::{COLUMNS, read};
use crate::page::{Cursor, Page};
use crate::row::{Columns, time};
use crate::{Store, StoreError, bound};
use selftest_grading::improve::effectiveness::ExecutionCounts;
use selftest_grading::improve::skill::{ExecutionStatus, SkillExecution, SkillVersion};

/// Executions of one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayCount {
    /// The version.
    pub skill_version_id: String,
    /// The day, in UTC.
    pub day: Date,
    /// All executions.
    pub executions: u32,
    /// Those that ended well.
    pub successes: u32,
}

/// Sums over executions that may be none.
const SUMS: &str = "COUNT(execution.id) AS executions, \
    COALESCE(SUM(CASE WHEN execution.execution_status = 'success' THEN 1 ELSE 0 END), 0) \
    AS successes, \
    COALESCE(SUM(CASE WHEN execution.user_edited_output <> 0 THEN 1 ELSE 0 END), 0) AS edited, \
    COALESCE(SUM(CASE WHEN execution.user_repeated_request <> 0 THEN 1 ELSE 0 END), 0) AS repeated, \
    COALESCE(SUM(CASE WHEN execution.user_sent_thank_you <> 0 THEN 1 ELSE 0 END), 0) AS thanked";

fn counts(row: &Columns<'_>) -> Result<ExecutionCounts, String> {
    Ok(ExecutionCounts {
        executions: row.number("executions")?,
        successes: row.number("successes")?,
        edited: row.number("edited")?,
        repeated: row.number("repeated")?,
        thanked: row.number("thanked")?,
    })
}

fn read_execution(row: &Columns<'_>) -> Result<SkillExecution, String> {
    let status = row.text("execution_status")?;
    Ok(SkillExecution {
        id: row.text("id")?,
        skill_version_id: row.text("skill_version_id")?,
        user_id: row.text("user_id")?,
        session_id: row.optional_text("session_id"),
        execution_status: ExecutionStatus::from_name(&status)
            .ok_or_else(|| format!("execution_status is {status:?}"))?,
        user_edited_output: row.optional_flag("user_edited_output").unwrap_or_default(),
        user_sent_thank_you: row.optional_flag("user_sent_thank_you").unwrap_or_default(),
        user_repeated_request: row.optional_flag("user_repeated_request").unwrap_or_default(),
        user_was_frustrated: row.optional_flag("frustration"),
        conversation_turns: row.optional_number("conversation_turns"),
        execution_time_ms: row.optional_number("execution_time_ms"),
        error_message: row.optional_text("error_message"),
        created_at: row.time("created_at")?,
    })
}

impl Store {
    /// Counts over the executions of a version since a moment.
    pub async fn skill_counts(
        &self,
        skill_version_id: &str,
        since: Timestamp,
    ) -> Result<ExecutionCounts, StoreError> {
        let query = format!(
            "SELECT {SUMS} FROM skill_executions AS execution \
             WHERE skill_version_id = $1 AND created_at >= $2"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(bound::text(skill_version_id, bound::NAME))
            .bind(time(since));
        let what = || "the counts of a skill".to_owned();
        Ok(self.fetch_one(query, what, counts).await?.unwrap_or_default())
    }

    /// Every version in use, with counts over its executions since a moment. By name.
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
        let query = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(bound::text(user_id, bound::NAME))
            .bind(time(since));
        Ok(self.fetch(query, |row| Ok((read(row)?, counts(row)?))).await?.items)
    }

    /// A page of the executions of a version, newest first.
    pub async fn skill_executions(
        &self,
        skill_version_id: &str,
        limit: u32,
        after: Option<&Cursor>,
    ) -> Result<Page<SkillExecution>, StoreError> {
        let query = "SELECT skill_executions.*, frustration FROM skill_executions \
                     LEFT JOIN skill_signals ON execution_id = id WHERE skill_version_id = $1 \
                     AND (CAST($2 AS TEXT) IS NULL OR created_at < $2 \
                     OR (created_at = $2 AND id < $3)) \
                     ORDER BY created_at DESC, id DESC LIMIT $4";
        let query = sqlx::query(query)
            .bind(bound::text(skill_version_id, bound::NAME))
            .bind(after.and_then(|cursor| bound::optional(cursor.value.as_deref(), bound::NAME)))
            .bind(after.map(|cursor| bound::text(&cursor.id, bound::NAME)))
            .bind(i64::from(limit) + 1);
        // What is left out as unreadable is still a row that the next page begins behind.
        let rows = self.fetch(query, |row| {
            let (value, id) = (row.optional_text("created_at"), row.text("id")?);
            let place = Cursor { value, id, order: None };
            Ok((place, read_execution(row).ok()))
        });
        let page = Page::of(rows.await?.items, limit, |(place, _)| place.clone());
        let items = page.items.into_iter().filter_map(|(_, execution)| execution).collect();
        Ok(Page { items, next: page.next })
    }

    /// Executions of a user's skills by version and day, since a moment.
    pub async fn skill_days(
        &self,
        user_id: &str,
        since: Timestamp,
    ) -> Result<Vec<DayCount>, StoreError> {
        let query = "SELECT skill_version_id, substr(created_at, 1, 10) AS day, \
                     COUNT(*) AS executions, \
                     SUM(CASE WHEN execution_status = 'success' THEN 1 ELSE 0 END) AS successes \
                     FROM skill_executions WHERE user_id = $1 AND created_at >= $2 \
                     GROUP BY skill_version_id, substr(created_at, 1, 10) ORDER BY day";
        let query = sqlx::query(query).bind(bound::text(user_id, bound::NAME)).bind(time(since));
        let rows = self.fetch(query, |row| {
            Ok(DayCount {
                skill_version_id: row.text("skill_version_id")?,
                day: row.date("day")?,
                executions: row.number("executions")?,
                successes: row.number("successes")?,
            })
        });
        Ok(rows.await?.items)
    }
}
