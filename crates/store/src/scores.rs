//! Counts sessions by score in the database: advice about a hundred thousand sessions needs only a
//! few hundred numbers. No score is computed here.

use jiff::Timestamp;

use super::row::{Columns, Rows};
use super::statement::params;
use super::{ColumnError, Store, StoreError};
use selftest_grading::grade::{GradeLevel, GradeRecord, TaskType};

/// Sessions of one agent and task type with the same grades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoreCount {
    /// Task type.
    pub task_type: TaskType,
    /// True if they were completed.
    pub task_completed: bool,
    /// Efficiency of tool calls.
    pub efficiency: GradeLevel,
    /// Quality of answers.
    pub quality: GradeLevel,
    /// Number of sessions from the earlier part of the period.
    pub earlier: u64,
    /// Number of sessions from the later part.
    pub recent: u64,
}

fn read(row: &Columns<'_>) -> Result<ScoreCount, ColumnError> {
    let (sessions, recent): (u64, u64) = (row.get("sessions")?, row.get("recent")?);
    Ok(ScoreCount {
        task_type: row.get("task_type")?,
        task_completed: row.get("task_completed")?,
        efficiency: row.get("tool_calls_efficient")?,
        quality: row.get("response_quality")?,
        earlier: sessions.saturating_sub(recent),
        recent,
    })
}

impl Store {
    /// Counts the tasks in `earliest..to` by their grades, with those before `from` counted
    /// separately, optionally for one agent. Excludes the grades of [`Store::uncountable_grades`].
    pub async fn score_counts(
        &self,
        [earliest, from, to]: [Timestamp; 3],
        agent: Option<&str>,
    ) -> Result<Rows<ScoreCount>, StoreError> {
        // Grouped in the order of an index that covers the query. `COALESCE` hides the time column:
        // otherwise the planner would choose the index that starts with it and sort all of it.
        let query = "SELECT task_type, task_completed, tool_calls_efficient, response_quality, \
                     COUNT(*) AS sessions, \
                     SUM(CASE WHEN counts_at >= $2 THEN 1 ELSE 0 END) AS recent \
                     FROM session_grades \
                     WHERE COALESCE(counts_at, '') >= $1 AND COALESCE(counts_at, '') < $3 \
                     AND (CAST($4 AS TEXT) IS NULL OR agent = $4) \
                     AND COALESCE(session_kind, 'task') = 'task' \
                     AND session_id NOT IN (SELECT session_id FROM grade_overrides) \
                     GROUP BY agent, task_type, task_completed, tool_calls_efficient, \
                     response_quality";
        self.fetch(query, params![earliest, from, to, agent], read).await
    }

    /// Returns the grades in `from..to` that cannot be counted by their columns: human-corrected
    /// ones, and those of other programs, whose times come in many formats.
    pub async fn uncountable_grades(
        &self,
        from: Timestamp,
        to: Timestamp,
        agent: Option<&str>,
    ) -> Result<Vec<GradeRecord>, StoreError> {
        let corrected = "WHERE counts_at IS NOT NULL \
                         AND (CAST($1 AS TEXT) IS NULL OR agent = $1) \
                         AND session_id IN (SELECT session_id FROM grade_overrides)";
        let mut grades = self.foreign_grades(from, to, agent).await?;
        let corrected = self.find::<GradeRecord>(corrected, params![agent]).await?.items;
        grades.extend(corrected.into_iter().filter(|grade| grade.is_in(&(from..to))));
        Ok(grades)
    }

    /// Returns the grades in `from..to` written by other programs. Their times come in many formats
    /// and are compared after parsing.
    pub async fn foreign_grades(
        &self,
        from: Timestamp,
        to: Timestamp,
        agent: Option<&str>,
    ) -> Result<Vec<GradeRecord>, StoreError> {
        let foreign = "WHERE counts_at IS NULL AND (CAST($1 AS TEXT) IS NULL OR agent = $1)";
        let mut grades = self.find::<GradeRecord>(foreign, params![agent]).await?.items;
        grades.retain(|grade| grade.is_in(&(from..to)));
        Ok(grades)
    }
}
