//! How many sessions came to which score, counted by the database: what advice needs of a hundred
//! thousand sessions is a few hundred numbers. Computes no score.

use jiff::Timestamp;

use super::row::{Columns, Rows};
use super::statement::params;
use super::{Store, StoreError};
use selftest_grading::grade::{GradeRecord, Level, TaskType};

/// Sessions of one type with the same grades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoreCount {
    /// The type.
    pub task_type: TaskType,
    /// Whether they are from the later part of the time.
    pub is_recent: bool,
    /// Whether they were completed.
    pub task_completed: bool,
    /// Efficiency of their calls.
    pub efficiency: Level,
    /// Quality of their answers.
    pub quality: Level,
    /// How many there are.
    pub sessions: u64,
}

fn read(row: &Columns<'_>) -> Result<ScoreCount, String> {
    Ok(ScoreCount {
        task_type: row.get("task_type")?,
        is_recent: row.get("is_recent")?,
        task_completed: row.get("task_completed")?,
        efficiency: row.get("tool_calls_efficient")?,
        quality: row.get("response_quality")?,
        sessions: row.get("sessions")?,
    })
}

impl Store {
    /// The tasks of `earliest..to` by their grades, those since `from` apart; of one agent, where
    /// one is named. Without those of [`Store::grades_apart`].
    pub async fn score_counts(
        &self,
        [earliest, from, to]: [Timestamp; 3],
        agent: Option<&str>,
    ) -> Result<Rows<ScoreCount>, StoreError> {
        // Only columns of the index of lists: no row is read.
        let query = "SELECT task_type, CASE WHEN counts_at >= $2 THEN 1 ELSE 0 END AS is_recent, \
                     task_completed, tool_calls_efficient, response_quality, \
                     COUNT(*) AS sessions FROM session_grades \
                     WHERE counts_at >= $1 AND counts_at < $3 \
                     AND (CAST($4 AS TEXT) IS NULL OR agent = $4) \
                     AND COALESCE(session_kind, 'task') = 'task' \
                     AND session_id NOT IN (SELECT session_id FROM grade_overrides) \
                     GROUP BY 1, 2, 3, 4, 5";
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
        let foreign = "WHERE counts_at IS NULL AND (CAST($1 AS TEXT) IS NULL OR agent = $1)";
        let corrected = "WHERE counts_at IS NOT NULL \
                         AND (CAST($1 AS TEXT) IS NULL OR agent = $1) \
                         AND session_id IN (SELECT session_id FROM grade_overrides)";
        let mut grades = self.find::<GradeRecord>(foreign, params![agent]).await?.items;
        grades.extend(self.find::<GradeRecord>(corrected, params![agent]).await?.items);
        grades.retain(|grade| (from..to).contains(&grade.details.counts_at));
        Ok(grades)
    }
}
