//! Deletes data older than the retention time. Human corrections and labels are kept unless the
//! caller asks otherwise; decisions on skills and gaps are always kept.

use jiff::Timestamp;
use strum::{IntoStaticStr, VariantArray};

use super::statement::params;
use super::transaction::WriteTransaction;
use super::{Store, StoreError};

/// Kinds of rows that can expire, in the order of deletion: dependent rows come before the rows
/// they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum PrunableRows {
    /// Model grades of deleted sessions.
    ModelGrades,
    /// Human corrections of deleted sessions.
    Overrides,
    /// Labels of deleted sessions.
    Labels,
    /// Rule-based grades of sessions.
    Sessions,
    /// Scores of deleted reflections.
    ReflectionScores,
    /// Reflections of agents.
    Reflections,
    /// User signals after deleted executions.
    Signals,
    /// Skill executions.
    Executions,
    /// Weekly reports.
    WeeklyReports,
    /// Runs of scheduled jobs, except the last of each.
    JobRuns,
}

/// Policy for human corrections and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HumanDataPolicy {
    /// Sessions with corrections or labels are kept completely.
    Keep,
    /// Corrections and labels are deleted too.
    Delete,
}

/// Number of rows of each kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneCounts {
    /// Rows that are deleted, or would be.
    pub rows: Vec<(PrunableRows, u64)>,
    /// Old sessions kept because they have corrections or labels.
    pub kept_sessions: u64,
}

impl PrunableRows {
    /// Returns the machine-readable name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the name for display.
    pub fn description(self) -> &'static str {
        match self {
            PrunableRows::ModelGrades => "grades by models",
            PrunableRows::Overrides => "corrections by people",
            PrunableRows::Labels => "labels",
            PrunableRows::Sessions => "sessions",
            PrunableRows::ReflectionScores => "scores of reflections",
            PrunableRows::Reflections => "reflections",
            PrunableRows::Signals => "signals of users",
            PrunableRows::Executions => "executions of skills",
            PrunableRows::WeeklyReports => "weekly reports",
            PrunableRows::JobRuns => "runs of jobs",
        }
    }

    /// Returns the table and the condition for its rows; `$1` is the time, or the day for reports.
    fn rows(self, people: HumanDataPolicy) -> String {
        let sessions = old_sessions(people);
        match self {
            PrunableRows::ModelGrades => format!(
                "session_quality_grades WHERE session_id IN \
                 (SELECT session_id FROM session_grades WHERE {sessions})"
            ),
            PrunableRows::Overrides => format!(
                "grade_overrides WHERE session_id IN \
                 (SELECT session_id FROM session_grades WHERE {sessions})"
            ),
            PrunableRows::Labels => format!(
                "session_labels WHERE session_id IN \
                 (SELECT session_id FROM session_grades WHERE {sessions})"
            ),
            PrunableRows::Sessions => format!("session_grades WHERE {sessions}"),
            PrunableRows::ReflectionScores => "reflection_scores WHERE reflection IN \
                 (SELECT id FROM reflections WHERE made_at < $1)"
                .to_owned(),
            PrunableRows::Reflections => "reflections WHERE made_at < $1".to_owned(),
            PrunableRows::Signals => "skill_signals WHERE execution_id IN \
                 (SELECT id FROM skill_executions WHERE created_at < $1)"
                .to_owned(),
            PrunableRows::Executions => "skill_executions WHERE created_at < $1".to_owned(),
            PrunableRows::WeeklyReports => "weekly_reports WHERE week_end < $1".to_owned(),
            // The scheduler uses the last run to decide which jobs are due.
            PrunableRows::JobRuns => "job_runs WHERE slot < $1 AND slot < \
                 (SELECT MAX(slot) FROM job_runs AS newest WHERE newest.job = job_runs.job)"
                .to_owned(),
        }
    }
}

/// Returns the condition for sessions to delete.
fn old_sessions(people: HumanDataPolicy) -> String {
    // A session without a date is as old as its grade.
    let old = "COALESCE(counts_at, graded_at) < $1";
    match people {
        HumanDataPolicy::Delete => old.to_owned(),
        HumanDataPolicy::Keep => format!("{old} AND NOT {HAS_HUMAN_DATA}"),
    }
}

/// Condition: the session has a correction or a label.
const HAS_HUMAN_DATA: &str = "(EXISTS (SELECT 1 FROM grade_overrides AS made \
                            WHERE made.session_id = session_grades.session_id) \
                            OR EXISTS (SELECT 1 FROM session_labels AS given \
                            WHERE given.session_id = session_grades.session_id))";

impl Store {
    /// Counts the rows older than `before`.
    pub async fn count_prunable(
        &self,
        before: Timestamp,
        people: HumanDataPolicy,
    ) -> Result<PruneCounts, StoreError> {
        let mut writing = self.begin_write().await?;
        // A write transaction although nothing is written, so that all counts are of one state.
        let pruned = count(&mut writing, before, people).await?;
        writing.roll_back().await?;
        Ok(pruned)
    }

    /// Deletes the rows older than `before` in one transaction.
    pub async fn prune(
        &self,
        before: Timestamp,
        people: HumanDataPolicy,
    ) -> Result<PruneCounts, StoreError> {
        let mut writing = self.begin_write().await?;
        // Counted before anything is deleted: the conditions of dependent rows refer to rows that
        // are deleted as well.
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

/// Returns the values for the placeholders of a kind: engines reject unused ones.
fn values(kind: PrunableRows, before: Timestamp) -> Vec<super::statement::Value> {
    let day = before.strftime("%Y-%m-%d").to_string();
    match kind {
        PrunableRows::WeeklyReports => params![day].into(),
        _ => params![before].into(),
    }
}

async fn count(
    writing: &mut WriteTransaction,
    before: Timestamp,
    people: HumanDataPolicy,
) -> Result<PruneCounts, StoreError> {
    let mut rows = Vec::new();
    for kind in PrunableRows::VARIANTS {
        let query = format!("SELECT COUNT(*) AS count FROM {}", kind.rows(people));
        rows.push((*kind, writing.fetch_count(query, values(*kind, before)).await?));
    }
    let kept_sessions = match people {
        HumanDataPolicy::Delete => 0,
        HumanDataPolicy::Keep => {
            let query = format!(
                "SELECT COUNT(*) AS count FROM session_grades \
                 WHERE COALESCE(counts_at, graded_at) < $1 AND {HAS_HUMAN_DATA}"
            );
            writing.fetch_count(query, params![before]).await?
        }
    };
    Ok(PruneCounts { rows, kept_sessions })
}
