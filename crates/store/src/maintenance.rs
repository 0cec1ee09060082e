//! Maintenance of the database while it is in use: backups, JSON rows for other programs, and deletion
//! of data older than the retention time. Human corrections and labels are kept unless the caller asks
//! otherwise; decisions on skills and gaps are always kept.

use std::fs::OpenOptions;
use std::path::Path;
use std::{fs, io};

use futures_util::StreamExt as _;
use jiff::Timestamp;
use serde_json::{Map, Number, Value};
use sqlx::any::{AnyRow, AnyTypeInfoKind};
use sqlx::{AssertSqlSafe, Column as _, Row as _, ValueRef as _};
use strum::{IntoStaticStr, VariantArray};

use super::statement::{DatabaseEngine, params};
use super::transaction::WriteTransaction;
use super::{Store, StoreError};

/// Result of a backup request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupOutcome {
    /// The database was copied; the value is the size of the copy in bytes.
    Copied(u64),
    /// The server has its own backup program.
    ByServer {
        /// Address without a password.
        address: String,
        /// Schema that contains the tables.
        schema: String,
    },
}

/// Error while making a backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file exists, or cannot be created. Existing files are never overwritten.
    #[error("cannot write {file}: {error}")]
    File {
        /// Path of the backup file.
        file: String,
        /// Error of the OS.
        error: io::Error,
    },
    /// Error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Copies the database into a new file, readable only by its owner. The copy is a consistent
    /// snapshot even if other processes write meanwhile, without the space of deleted rows.
    pub async fn backup(&self, file: &Path) -> Result<BackupOutcome, BackupError> {
        if self.engine == DatabaseEngine::Postgres {
            let query = "SELECT CAST(current_schema() AS TEXT) AS name";
            let schema = self.fetch_one("the schema", query, [], |row| row.get("name")).await?;
            let (address, schema) = (self.place.clone(), schema.unwrap_or_default());
            return Ok(BackupOutcome::ByServer { address, schema });
        }
        let shown = || file.display().to_string();
        let of_file = |error| BackupError::File { file: shown(), error };
        // SQLite accepts an empty target file. `create_new` keeps two backups from writing to the
        // same file.
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        drop(options.open(file).map_err(of_file)?);
        let name = file.to_str().ok_or_else(|| {
            of_file(io::Error::new(io::ErrorKind::InvalidFilename, "expected a name in UTF-8"))
        });
        // `VACUUM INTO` reads one snapshot and writes a compact copy.
        let copied = match name {
            Ok(name) => self.execute("VACUUM INTO $1", params![name]).await.map_err(Into::into),
            Err(error) => Err(error),
        };
        if let Err(error) = copied {
            // An incomplete copy is worse than none.
            let _ = fs::remove_file(file);
            return Err(error);
        }
        Ok(BackupOutcome::Copied(fs::metadata(file).map_err(of_file)?.len()))
    }
}

/// Exported tables with their sort columns. Tables that only contain the state of running programs
/// are left out.
const TABLES: [(&str, &str); 14] = [
    ("session_grades", "session_id"),
    ("session_quality_grades", "id"),
    ("grade_overrides", "id"),
    ("session_labels", "session_id"),
    ("session_files", "path"),
    ("reflections", "id"),
    ("reflection_scores", "reflection"),
    ("skill_versions", "id"),
    ("skill_executions", "id"),
    ("skill_signals", "execution_id"),
    ("skill_audit", "id"),
    ("skill_gaps", "id"),
    ("skill_proposals", "id"),
    ("weekly_reports", "week_start"),
];

/// Suffix of columns whose text is JSON.
const JSON: &str = "_json";

impl Store {
    /// Passes all rows to `each`, table by table, from one consistent snapshot. Stops early if
    /// `each` returns an error. Returns the number of rows.
    pub async fn export<E>(
        &self,
        mut each: impl FnMut(&'static str, Map<String, Value>) -> Result<(), E>,
    ) -> Result<Result<u64, E>, StoreError> {
        // All reads in such a transaction see the same snapshot.
        let begin = match self.engine {
            DatabaseEngine::Sqlite => "BEGIN",
            DatabaseEngine::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        let begun = self.pool.begin_with(begin).await;
        let mut reading = begun.map_err(|error| self.to_store_error(error))?;
        let mut count = 0;
        for (table, order) in TABLES {
            // Sorted by key, so that two exports of the same data can be compared line by line.
            let query = format!("SELECT * FROM {table} ORDER BY {order}");
            let query = sqlx::query(AssertSqlSafe(query));
            let mut rows = query.fetch(&mut *reading);
            while let Some(row) = rows.next().await {
                let row = row.map_err(|error| self.to_store_error(error))?;
                if let Err(error) = each(table, object(&row)) {
                    return Ok(Err(error));
                }
                count += 1;
            }
        }
        reading.rollback().await.map_err(|error| self.to_store_error(error))?;
        Ok(Ok(count))
    }
}

/// Converts a row to an object keyed by column name.
fn object(row: &AnyRow) -> Map<String, Value> {
    let columns = row.columns().iter();
    columns.map(|column| (column.name().to_owned(), value(row, column.name()))).collect()
}

/// Converts a value to JSON; null if JSON cannot represent it.
fn value(row: &AnyRow, name: &str) -> Value {
    // SQLite types values and not columns: the same column may hold an integer in one row and text
    // in the next.
    let kind = row.try_get_raw(name).ok().filter(|value| !value.is_null());
    match kind.map(|value| value.type_info().kind()) {
        Some(AnyTypeInfoKind::SmallInt | AnyTypeInfoKind::Integer | AnyTypeInfoKind::BigInt) => {
            row.try_get::<i64, _>(name).map_or(Value::Null, Value::from)
        }
        Some(AnyTypeInfoKind::Real | AnyTypeInfoKind::Double) => {
            let number = row.try_get::<f64, _>(name).ok().and_then(Number::from_f64);
            number.map_or(Value::Null, Value::Number)
        }
        Some(AnyTypeInfoKind::Bool) => {
            row.try_get::<bool, _>(name).map_or(Value::Null, Value::from)
        }
        Some(AnyTypeInfoKind::Text) => {
            let text: String = row.try_get(name).unwrap_or_default();
            let json = name.ends_with(JSON).then(|| serde_json::from_str(&text).ok()).flatten();
            json.unwrap_or(Value::String(text))
        }
        Some(AnyTypeInfoKind::Null | AnyTypeInfoKind::Blob) | None => Value::Null,
    }
}

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
