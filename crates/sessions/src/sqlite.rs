//! Opens SQLite databases of other programs: read-only, unchanged and never locked for long.
//! Columns vary by version, so only existing ones are queried.

use std::borrow::Cow;
use std::fs::Metadata;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};
use tokio::runtime::RuntimeFlavor;

use super::SessionReadError;
use super::feed::{ReadNotes, SessionFeed};
use super::source::SessionSource;
use selftest_text::file::open_regular;

/// Longer fields lose their middle before they leave the database.
const MAX_FIELD: usize = 2 * 1024 * 1024;

/// Longer JSON fields are cut.
const MAX_JSON: usize = 16 * 1024 * 1024;

/// Bytes kept of each end of a long field.
const KEPT_END: usize = 128 * 1024;

/// Columns of a table; empty if the table does not exist.
pub(super) struct TableColumns {
    names: Vec<String>,
}

impl TableColumns {
    /// Looks up the columns. Views and virtual tables count as missing, because a query on them may
    /// never finish.
    pub(super) async fn of(
        database: &mut SqliteConnection,
        table: &str,
    ) -> Result<Self, sqlx::Error> {
        // A view may be a recursive query without end, and a virtual table runs code of an
        // extension; `rootpage` is above 0 only for a table that is stored in the file.
        let query = "SELECT info.name FROM sqlite_master AS master \
                     JOIN pragma_table_info(master.name) AS info \
                     WHERE master.type = 'table' AND master.rootpage > 0 AND master.name = ?";
        let rows = sqlx::query(query).bind(table).fetch_all(database).await?;
        let names = rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
        Ok(Self { names })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the column list of a `SELECT`: each column as text of bounded length, NULL for
    /// missing columns.
    pub(super) fn list(&self, wanted: &[&str]) -> String {
        self.list_up_to(wanted, MAX_FIELD)
    }

    /// Does the same for columns with JSON, which is unusable once cut and therefore gets a higher
    /// limit.
    pub(super) fn list_of_json(&self, wanted: &[&str]) -> String {
        self.list_up_to(wanted, MAX_JSON)
    }

    fn list_up_to(&self, wanted: &[&str], most: usize) -> String {
        let column = |name: &&str| {
            if !self.has(name) {
                return "NULL".to_owned();
            }
            // Compare the length in bytes: SQLite's text length ends at the first NUL.
            format!(
                "CASE WHEN length(CAST(\"{name}\" AS BLOB)) <= {most} THEN CAST(\"{name}\" AS \
                 TEXT) ELSE substr(CAST(\"{name}\" AS BLOB), 1, {KEPT_END}) || \
                 substr(CAST(\"{name}\" AS BLOB), -{KEPT_END}) END"
            )
        };
        wanted.iter().map(column).collect::<Vec<_>>().join(", ")
    }
}

/// Returns a field as text, empty for NULL. All fields are selected as text or bytes.
pub(super) fn text(row: &SqliteRow, at: usize) -> Cow<'_, str> {
    // Unchecked, because SQLite does not enforce the declared type of a column, and a checked read
    // fails for text in an INTEGER column.
    let bytes = row.try_get_unchecked::<Option<&[u8]>, _>(at).ok().flatten();
    String::from_utf8_lossy(bytes.unwrap_or_default())
}

/// Returns the file of a source, because SQLite needs one.
pub(super) fn file(source: &SessionSource) -> Result<&Path, SessionReadError> {
    match source {
        SessionSource::File(path) | SessionSource::DigestedFile(path, _) => Ok(path),
        SessionSource::Folder { .. } | SessionSource::Bytes { .. } => {
            Err(unrecognised_error("a SQLite database can only be read from a file".to_owned()))
        }
    }
}

/// Runs a query to completion. On a thread of a runtime with several threads, the other tasks of
/// that thread move to another one meanwhile.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, SessionReadError> {
    let run = || -> io::Result<T> {
        Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
    };
    match tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Err(_) => Ok(run()?),
        // Tokio panics if a runtime blocks inside another one, unless that knows of it.
        Ok(RuntimeFlavor::MultiThread) => Ok(tokio::task::block_in_place(run)?),
        Ok(_) => Err(io::Error::other(
            "a database cannot be read on the only thread of an async runtime",
        )
        .into()),
    }
}

/// Calls `take` for each row of a query with one parameter.
pub(super) async fn each_row(
    database: &mut SqliteConnection,
    query: String,
    parameter: &str,
    mut take: impl FnMut(&SqliteRow),
) -> Result<(), sqlx::Error> {
    let mut rows = sqlx::query(AssertSqlSafe(query)).bind(parameter.to_owned()).fetch(database);
    while let Some(row) = rows.try_next().await? {
        take(&row);
    }
    Ok(())
}

/// Notes that a database could not be read to the end.
pub(super) fn note_error(result: Result<(), sqlx::Error>, feed: &mut SessionFeed<'_>) {
    if let Err(error) = result {
        feed.notes.torn = Some(selftest_text::one_line(&error.to_string(), 200));
    }
}

/// Opens a connection that cannot write. If the database uses a write-ahead log but has none right
/// now, it is opened as immutable. Otherwise SQLite would create files beside it, or fail in a
/// read-only folder. If a log exists but cannot be opened, the database is read without it, and a
/// note says so.
pub(super) async fn open(
    path: &Path,
    notes: &mut ReadNotes,
) -> Result<SqliteConnection, SessionReadError> {
    // Absolute, because SQLite treats names that start with `file:` as URIs.
    let path = path.canonicalize()?;
    let mut header = [0; 20];
    open_regular(&path)?
        .read_exact(&mut header)
        .map_err(|_| unrecognised_error("it is cut off".to_owned()))?;
    // Byte 18 of the header is the file format write version; 2 means WAL.
    let is_logged = header[18] == 2;
    let is_at_rest = is_logged && !log_path(&path).exists();
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .read_only(true)
        // Wait for writers, which lock the database only briefly.
        .busy_timeout(Duration::from_secs(5))
        // A foreign schema must not call functions with side effects.
        .pragma("trusted_schema", "OFF")
        .disable_statement_logging();
    match connect(&options.clone().immutable(is_at_rest)).await {
        // A locked database is in use and must not be opened as immutable.
        Err(error) if is_logged && !is_at_rest && !is_locked(&error) => {
            let database = connect(&options.immutable(true)).await.map_err(damaged_error)?;
            notes.torn = Some("its write-ahead log, which cannot be opened".to_owned());
            Ok(database)
        }
        other => other.map_err(damaged_error),
    }
}

fn log_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    path.into()
}

/// Returns the metadata of the write-ahead log of a database; `None` without one. New rows are only
/// in the log until SQLite moves them into the database.
pub(super) fn log_metadata(database: &Path) -> Option<Metadata> {
    log_path(database).metadata().ok().filter(Metadata::is_file)
}

/// Connects and runs a first query, because SQLite opens the file only then.
async fn connect(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    let mut database = SqliteConnection::connect_with(options).await?;
    sqlx::query("SELECT count(*) FROM sqlite_master").fetch_one(&mut database).await?;
    Ok(database)
}

/// Returns true if another program has the database locked.
fn is_locked(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    // SQLITE_BUSY and SQLITE_LOCKED.
    matches!(code.as_deref(), Some("5" | "6"))
}

/// Builds the error for a database without known sessions.
pub(super) fn unrecognised_error(reason: String) -> SessionReadError {
    SessionReadError::Unrecognised(reason)
}

/// Builds the error for a database that cannot be read. Takes the error by value for `map_err`.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn damaged_error(error: sqlx::Error) -> SessionReadError {
    if is_locked(&error) {
        return unrecognised_error(
            "a SQLite database that another program keeps locked".to_owned(),
        );
    }
    let reason = selftest_text::one_line(&error.to_string(), 200);
    unrecognised_error(format!("a SQLite database that cannot be read: {reason}"))
}

/// Returns true if the source is an SQLite database.
pub(super) fn is_database(source: &SessionSource) -> Result<bool, SessionReadError> {
    Ok(source.read_start(MAGIC.len() as u64)?.starts_with(MAGIC))
}

/// First bytes of every database.
pub(super) const MAGIC: &[u8] = b"SQLite format 3\0";

#[cfg(test)]
pub(super) mod tests {
    use super::super::{SessionCollector, read};
    use super::*;

    /// Runs statements on a database, which is made where there is none.
    pub(crate) fn database(path: &Path, statements: &[impl AsRef<str>]) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        runtime.block_on(async {
            let mut database = SqliteConnection::connect_with(&options).await.unwrap();
            for statement in statements {
                let statement = statement.as_ref().to_owned();
                sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut database).await.unwrap();
            }
            database.close().await.unwrap();
        });
    }

    const CRUSH: &str = "CREATE TABLE sessions (id TEXT);
        CREATE TABLE messages (session_id TEXT, role TEXT, parts TEXT);
        INSERT INTO sessions VALUES ('s1');
        INSERT INTO messages VALUES ('s1', 'user', '[{\"type\":\"text\",\"data\":{\"text\":\"hello\"}}]');";

    fn opened(path: &Path) -> Result<(usize, Option<String>), SessionReadError> {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::file(path), &mut collector)?;
        Ok((collector.into_sessions()[0].events.len(), reading.notes.torn))
    }

    #[test]
    fn one_that_is_locked_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crush.db");
        database(&path, &[CRUSH]);
        let before = std::fs::read(&path).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let options = SqliteConnectOptions::new().filename(&path);
        let mut writer = runtime.block_on(SqliteConnection::connect_with(&options)).unwrap();
        runtime.block_on(sqlx::raw_sql("BEGIN EXCLUSIVE").execute(&mut writer)).unwrap();
        let reason = opened(&path).unwrap_err().to_string();
        assert!(reason.contains("another program keeps locked"), "{reason}");
        runtime.block_on(sqlx::raw_sql("ROLLBACK").execute(&mut writer)).unwrap();
        assert_eq!(opened(&path).unwrap(), (1, None));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn without_a_right_to_the_log_what_is_in_the_database_counts_and_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crush.db");
        database(&path, &["PRAGMA journal_mode = WAL", CRUSH]);
        assert_eq!(opened(&path).unwrap(), (1, None));
        let files = || folder.path().read_dir().unwrap().count();
        assert_eq!(files(), 1, "reading must leave nothing behind");
        // Root may do anything, but not open a folder as a file.
        std::fs::create_dir(folder.path().join("crush.db-wal")).unwrap();
        let (events, torn) = opened(&path).unwrap();
        assert_eq!(events, 1);
        assert!(torn.unwrap().contains("write-ahead log"));
    }

    #[test]
    fn one_of_a_later_version_is_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        for (name, schema) in [
            ("no-messages.db", "CREATE TABLE sessions (id TEXT); CREATE TABLE turns (data BLOB);"),
            ("no-sessions.db", "CREATE TABLE messages (session_id TEXT, role TEXT, parts TEXT);"),
            ("other-parts.db", "CREATE TABLE part (message_id TEXT, data BLOB);"),
            (
                "other-goose.db",
                "CREATE TABLE messages (session_id TEXT, role TEXT, content_json TEXT);",
            ),
        ] {
            let path = folder.path().join(name);
            database(&path, &[schema]);
            let reason = opened(&path).unwrap_err().to_string();
            assert!(reason.contains("SQLite") || reason.contains("no such table"), "{reason}");
        }
    }
}
