//! How many sessions came to which score, counted by the database: what advice needs of a hundred
//! thousand sessions is a few hundred numbers. Computes no score.

use jiff::Timestamp;

use super::row::{Columns, Rows};
use super::statement::params;
use super::{Store, StoreError};
use selftest_grading::grade::{GradeRecord, Level, TaskType};

/// Sessions of one agent and type with the same grades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoreCount {
    /// The type.
    pub task_type: TaskType,
    /// Whether they were completed.
    pub task_completed: bool,
    /// Efficiency of their calls.
    pub efficiency: Level,
    /// Quality of their answers.
    pub quality: Level,
    /// How many of them are from the earlier part of the time.
    pub earlier: u64,
    /// How many are from the later part.
    pub recent: u64,
}

fn read(row: &Columns<'_>) -> Result<ScoreCount, String> {
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
    /// The tasks of `earliest..to` by their grades, those before `from` apart; of one agent, where
    /// one is named. Without those of [`Store::grades_apart`].
    pub async fn score_counts(
        &self,
        [earliest, from, to]: [Timestamp; 3],
        agent: Option<&str>,
    ) -> Result<Rows<ScoreCount>, StoreError> {
        // In the order of their own index, from which alone they are read. Not by the bare column
        // of the time: the index that begins with it would be taken, and all of it sorted.
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

    /// The grades of `from..to` that cannot be counted by their columns: those that people have
    /// corrected, and those of other programs, whose times have many forms.
    pub async fn grades_apart(
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
        let is_in = |grade: &GradeRecord| (from..to).contains(&grade.details.counts_at);
        grades.extend(corrected.into_iter().filter(is_in));
        Ok(grades)
    }

    /// The grades of `from..to` that other programs wrote: their times have many forms, and are
    /// compared when read.
    pub async fn foreign_grades(
        &self,
        from: Timestamp,
        to: Timestamp,
        agent: Option<&str>,
    ) -> Result<Vec<GradeRecord>, StoreError> {
        let foreign = "WHERE counts_at IS NULL AND (CAST($1 AS TEXT) IS NULL OR agent = $1)";
        let mut grades = self.find::<GradeRecord>(foreign, params![agent]).await?.items;
        grades.retain(|grade| (from..to).contains(&grade.details.counts_at));
        Ok(grades)
    }
}
