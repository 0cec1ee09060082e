//! Deletes what is older than its owner wants to keep. What people have said is kept, unless it is
//! asked for; decisions on skills and gaps are always kept.

use jiff::Timestamp;
use strum::{IntoStaticStr, VariantArray};

use super::statement::params;
use super::transaction::Writing;
use super::{Store, StoreError};

/// Rows of a kind that can grow old, in the order in which they are deleted: what belongs to
/// others comes before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Prunable {
    /// Grades by models of sessions that are deleted.
    ModelGrades,
    /// Corrections by people of sessions that are deleted.
    Overrides,
    /// Labels of sessions that are deleted.
    Labels,
    /// Grades of sessions by rules.
    Sessions,
    /// Scores of reflections that are deleted.
    ReflectionScores,
    /// Reflections of agents.
    Reflections,
    /// Signals of users after executions that are deleted.
    Signals,
    /// Executions of skills.
    Executions,
    /// Weekly reports.
    WeeklyReports,
    /// Runs of scheduled jobs, but the last of each.
    JobRuns,
}

/// Whether what people have said is deleted with the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum People {
    /// Sessions that somebody has corrected or labelled are kept whole.
    Kept,
    /// They are deleted too.
    Deleted,
}

/// How many rows there are of each kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruned {
    /// Rows that are deleted, or would be.
    pub rows: Vec<(Prunable, u64)>,
    /// Old sessions that are kept, because somebody has corrected their grades or labelled them.
    pub kept_sessions: u64,
}

impl Prunable {
    /// As programs read it.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// In words, for people.
    pub fn words(self) -> &'static str {
        match self {
            Prunable::ModelGrades => "grades by models",
            Prunable::Overrides => "corrections by people",
            Prunable::Labels => "labels",
            Prunable::Sessions => "sessions",
            Prunable::ReflectionScores => "scores of reflections",
            Prunable::Reflections => "reflections",
            Prunable::Signals => "signals of users",
            Prunable::Executions => "executions of skills",
            Prunable::WeeklyReports => "weekly reports",
            Prunable::JobRuns => "runs of jobs",
        }
    }

    /// The table and which of its rows; `$1` is the time, of reports the day.
    fn rows(self, people: People) -> String {
        let sessions = old_sessions(people);
        match self {
            Prunable::ModelGrades => format!(
                "session_quality_grades WHERE session_id IN \
                 (SELECT session_id FROM session_grades WHERE {sessions})"
            ),
            Prunable::Overrides => format!(
                "grade_overrides WHERE session_id IN \
                 (SELECT session_id FROM session_grades WHERE {sessions})"
            ),
            Prunable::Labels => format!(
                "session_labels WHERE session_id IN \
                 (SELECT session_id FROM session_grades WHERE {sessions})"
            ),
            Prunable::Sessions => format!("session_grades WHERE {sessions}"),
            Prunable::ReflectionScores => "reflection_scores WHERE reflection IN \
                 (SELECT id FROM reflections WHERE made_at < $1)"
                .to_owned(),
            Prunable::Reflections => "reflections WHERE made_at < $1".to_owned(),
            Prunable::Signals => "skill_signals WHERE execution_id IN \
                 (SELECT id FROM skill_executions WHERE created_at < $1)"
                .to_owned(),
            Prunable::Executions => "skill_executions WHERE created_at < $1".to_owned(),
            Prunable::WeeklyReports => "weekly_reports WHERE week_end < $1".to_owned(),
            // By the last one it is decided what is due.
            Prunable::JobRuns => "job_runs WHERE slot < $1 AND slot < \
                 (SELECT MAX(slot) FROM job_runs AS newest WHERE newest.job = job_runs.job)"
                .to_owned(),
        }
    }
}

/// Which sessions are deleted.
fn old_sessions(people: People) -> String {
    // A session of unknown date is as old as its grade.
    let old = "COALESCE(counts_at, graded_at) < $1";
    match people {
        People::Deleted => old.to_owned(),
        People::Kept => format!("{old} AND NOT {IS_SPOKEN_OF}"),
    }
}

/// Whether somebody has said something of a session.
const IS_SPOKEN_OF: &str = "(EXISTS (SELECT 1 FROM grade_overrides AS made \
                            WHERE made.session_id = session_grades.session_id) \
                            OR EXISTS (SELECT 1 FROM session_labels AS given \
                            WHERE given.session_id = session_grades.session_id))";

impl Store {
    /// Counts what is older than `before`.
    pub async fn count_prunable(
        &self,
        before: Timestamp,
        people: People,
    ) -> Result<Pruned, StoreError> {
        let mut writing = self.begin().await?;
        let pruned = count(&mut writing, before, people).await?;
        writing.roll_back().await?;
        Ok(pruned)
    }

    /// Deletes what is older than `before`, all of it or, on an error, nothing.
    pub async fn prune(&self, before: Timestamp, people: People) -> Result<Pruned, StoreError> {
        let mut writing = self.begin().await?;
        let pruned = count(&mut writing, before, people).await?;
        for (kind, rows) in &pruned.rows {
            if *rows > 0 {
                let query = format!("DELETE FROM {}", kind.rows(people));
                writing.execute(query, values(*kind, before)).await?;
            }
        }
        writing.commit().await?;
        Ok(pruned)
    }
}

/// The values of a kind's placeholders: none may be left over.
fn values(kind: Prunable, before: Timestamp) -> Vec<super::statement::Value> {
    let day = before.strftime("%Y-%m-%d").to_string();
    match kind {
        Prunable::WeeklyReports => params![day].into(),
        _ => params![before].into(),
    }
}

async fn count(
    writing: &mut Writing,
    before: Timestamp,
    people: People,
) -> Result<Pruned, StoreError> {
    let mut rows = Vec::new();
    for kind in Prunable::VARIANTS {
        let query = format!("SELECT COUNT(*) AS count FROM {}", kind.rows(people));
        rows.push((*kind, writing.fetch_count(query, values(*kind, before)).await?));
    }
    let kept_sessions = match people {
        People::Deleted => 0,
        People::Kept => {
            let query = format!(
                "SELECT COUNT(*) AS count FROM session_grades \
                 WHERE COALESCE(counts_at, graded_at) < $1 AND {IS_SPOKEN_OF}"
            );
            writing.fetch_count(query, params![before]).await?
        }
    };
    Ok(Pruned { rows, kept_sessions })
}
