//! Copies of the database while it is in use: backups, and JSON rows for other programs.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use futures_util::StreamExt as _;
use serde_json::{Map, Number, Value};
use sqlx::any::{AnyRow, AnyTypeInfoKind};
use sqlx::{AssertSqlSafe, Column as _, Row as _, ValueRef as _};

use super::statement::{DatabaseEngine, params};
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
