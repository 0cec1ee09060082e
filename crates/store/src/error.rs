//! Errors of the database. Every message names the database.

use sqlx::migrate::MigrateError;

use super::statement::DatabaseEngine;

/// A database error. [`StoreError::hint`] suggests a fix.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address is not valid.
    #[error("cannot use `{address}` as a database: {source}")]
    Address {
        /// The address as given, without anything that may be a password.
        address: String,
        /// Reason the address was rejected.
        source: AddressError,
    },
    /// The folder or file cannot be created or opened.
    #[error("cannot open the database {place}: {why}")]
    Open {
        /// The database.
        place: String,
        /// Error message of the OS.
        why: String,
    },
    /// The database can be read but not written.
    #[error("cannot write to the database {place}: {why}")]
    NotWritable {
        /// The database.
        place: String,
        /// Error message of the engine.
        why: String,
    },
    /// No connection to the server, or the connection was lost.
    #[error("cannot reach the database {place}: {why}")]
    Unreachable {
        /// The database.
        place: String,
        /// Error message of the OS or the server.
        why: String,
    },
    /// The server rejected the login, or the user lacks a required permission.
    #[error("the database {place} refuses: {why}")]
    Refused {
        /// The database.
        place: String,
        /// Error message of the server.
        why: String,
    },
    /// The file is not a SQLite database.
    #[error("{place} is not a database")]
    NotADatabase {
        /// The file.
        place: String,
    },
    /// The database has tables, but none of them are selftest's.
    #[error("{place} is the database of another program")]
    Foreign {
        /// The database.
        place: String,
        /// True if the database is on a server, which programs may share.
        served: bool,
    },
    /// The tables were created by a newer version of selftest.
    #[error(
        "the database {place} was written by a newer version of selftest: it has migration {version}"
    )]
    Newer {
        /// The database.
        place: String,
        /// The migration that this version does not have.
        version: i64,
    },
    /// The tables could not be migrated.
    #[error("cannot prepare the tables of the database {place}: {source}")]
    Migration {
        /// The database.
        place: String,
        /// The underlying error.
        source: MigrateError,
    },
    /// Another process has held the write lock for longer than the time limit.
    #[error("the database {place} is locked by another process")]
    Busy {
        /// The database.
        place: String,
    },
    /// The disk is full or failing. Existing data is unchanged.
    #[error("the disk of the database {place} cannot be written or read: {why}")]
    Disk {
        /// The database.
        place: String,
        /// Error message of the engine.
        why: String,
    },
    /// The content of the file is corrupt.
    #[error("the database {place} is damaged: {why}")]
    Damaged {
        /// The database.
        place: String,
        /// Error message of the engine.
        why: String,
    },
    /// A row requested by id contains values that selftest does not write.
    #[error("cannot read {what} in the database {place}: {source}")]
    Row {
        /// The database.
        place: String,
        /// The row that could not be read.
        what: String,
        /// The column and the problem with its value.
        source: ColumnError,
    },
    /// A value to be stored is larger than any that selftest produces.
    #[error("{what} is too large for the database: {bytes} bytes, at most {limit}")]
    TooLarge {
        /// The value to be stored.
        what: String,
        /// Size in bytes.
        bytes: usize,
        /// Maximum size in bytes.
        limit: usize,
    },
    /// Any other error.
    #[error("the database {place} failed: {source}")]
    Query {
        /// The database.
        place: String,
        /// The underlying error.
        source: sqlx::Error,
    },
}

/// Reasons to reject the address of a database.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// A parameter of a SQLite address other than `mode`.
    #[error("of the parameters only `mode=rwc` is supported")]
    Parameter,
    /// Bytes of a SQLite address that are not UTF-8.
    #[error("its percent-encoding is not UTF-8")]
    PercentEncoding,
    /// A PostgreSQL address in a build without PostgreSQL.
    #[error("this build has no PostgreSQL")]
    NoPostgres,
    /// The address of another database engine.
    #[error("only SQLite and PostgreSQL are supported")]
    Engine,
    /// An empty path, or one with a zero byte.
    #[error("it names no file")]
    NoFile,
    /// A relative path in a folder whose path is not UTF-8.
    #[error("the path of the current folder is not UTF-8")]
    CurrentFolder,
    /// The OS cannot make the path absolute.
    #[error(transparent)]
    Path(#[from] std::io::Error),
    /// A server address with a character that ends the password early.
    #[error(
        "in a user name or password `@`, `/`, `?`, `#` and `%` are written `%40`, `%2F`, `%3F`, \
         `%23` and `%25`"
    )]
    Unescaped,
    /// A server address without a host part.
    #[error("`//` is missing after the colon")]
    NoSlashes,
    /// Another fault, found by the database driver.
    #[error("{}", describe_options(.0))]
    Options(#[source] sqlx::Error),
}

/// Returns the driver's message about an address without its prefix.
fn describe_options(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Configuration(why) => why.to_string(),
        error => error.to_string(),
    }
}

/// A value of a row that selftest does not write.
#[derive(Debug, thiserror::Error)]
pub enum ColumnError {
    /// A value out of range, or not one of those of its type.
    #[error("{column} is {value}")]
    Value {
        /// The column.
        column: String,
        /// The value.
        value: String,
    },
    /// A value of another type, or a missing column.
    #[error("{column}: {source}")]
    Type {
        /// The column.
        column: String,
        /// The underlying error.
        source: sqlx::Error,
    },
    /// Text that is not the expected JSON.
    #[error("{column}: {source}")]
    Json {
        /// The column.
        column: String,
        /// The underlying error.
        source: serde_json::Error,
    },
    /// A row that the driver cannot decode.
    #[error(transparent)]
    Row(sqlx::Error),
    /// A row that another process has deleted since it was written.
    #[error("it was deleted meanwhile")]
    Deleted,
}

impl ColumnError {
    pub(super) fn value(column: &str, value: impl std::fmt::Display) -> Self {
        Self::Value { column: column.to_owned(), value: value.to_string() }
    }
}

impl StoreError {
    /// Returns [`StoreError::TooLarge`] if `text` exceeds `limit` bytes.
    pub(super) fn check_size(
        what: impl FnOnce() -> String,
        text: &str,
        limit: usize,
    ) -> Result<(), Self> {
        let bytes = text.len();
        if bytes <= limit {
            return Ok(());
        }
        Err(StoreError::TooLarge { what: what(), bytes, limit })
    }

    /// Suggests one thing that the user can do.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            StoreError::Address { .. } if cfg!(feature = "postgres") => {
                "give the path of a SQLite file, such as .selftest/selftest.db, or \
                 postgres://user:password@host/database"
            }
            StoreError::Address { .. } => {
                "give the path of a SQLite file, such as .selftest/selftest.db; PostgreSQL needs \
                 a build with the feature `postgres`"
            }
            StoreError::Open { .. } | StoreError::NotWritable { .. } => {
                "choose a database in a folder that you may write to, with --db"
            }
            StoreError::Unreachable { .. } => {
                "check that the server runs, and host, port and sslmode in the address"
            }
            StoreError::Refused { .. } => {
                "check user, password and name of the database; docs/operate.md says which \
                 rights are needed"
            }
            StoreError::Foreign { served: true, .. } => {
                "create a database for selftest, or a schema and name it in the address: \
                 ?options=-csearch_path%3Dselftest"
            }
            StoreError::NotADatabase { .. } | StoreError::Foreign { .. } => {
                "choose another file with --db; a new one is created"
            }
            StoreError::Newer { .. } => "update selftest, or choose another database with --db",
            StoreError::Migration { .. } => {
                "choose another database with --db: a new one is made and the sessions are \
                 graded again"
            }
            StoreError::Disk { .. } => {
                "make room on the disk, or raise the limit for the size of files"
            }
            StoreError::Busy { .. } => "wait until the other selftest has ended, then try again",
            StoreError::Damaged { .. } => {
                "restore it from a copy, or move it away and grade the sessions again"
            }
            StoreError::Row { .. } | StoreError::TooLarge { .. } | StoreError::Query { .. } => {
                return None;
            }
        })
    }

    /// Returns true if the same call may succeed later without changes to the program: the disk has
    /// space again, the server is back, or another process has finished.
    pub fn is_transient(&self) -> bool {
        match self {
            StoreError::Busy { .. }
            | StoreError::Disk { .. }
            | StoreError::Open { .. }
            | StoreError::NotWritable { .. }
            | StoreError::Unreachable { .. }
            | StoreError::Refused { .. } => true,
            StoreError::Query { source, .. } => matches!(source, sqlx::Error::WorkerCrashed),
            StoreError::Address { .. }
            | StoreError::NotADatabase { .. }
            | StoreError::Foreign { .. }
            | StoreError::Newer { .. }
            | StoreError::Migration { .. }
            | StoreError::Damaged { .. }
            | StoreError::Row { .. }
            | StoreError::TooLarge { .. } => false,
        }
    }

    /// Classifies an error of the engine.
    pub(super) fn from_sqlx(engine: DatabaseEngine, place: &str, error: sqlx::Error) -> Self {
        match engine {
            DatabaseEngine::Sqlite => Self::of_sqlite(place, error),
            DatabaseEngine::Postgres => Self::of_postgres(place, error),
        }
    }

    /// Classifies by the primary result code (<https://sqlite.org/rescode.html>).
    fn of_sqlite(place: &str, error: sqlx::Error) -> Self {
        let place = place.to_owned();
        if matches!(error, sqlx::Error::PoolTimedOut) {
            return StoreError::Busy { place };
        }
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
        // Extended result codes carry the primary code in their low byte.
        let code = code.and_then(|code| code.parse::<u32>().ok()).map(|code| code & 0xff);
        let why = || error.as_database_error().map(ToString::to_string).unwrap_or_default();
        match code {
            // SQLITE_BUSY, SQLITE_LOCKED
            Some(5 | 6) => StoreError::Busy { place },
            // SQLITE_PERM, SQLITE_READONLY
            Some(3 | 8) => StoreError::NotWritable { why: why(), place },
            // SQLITE_IOERR, SQLITE_FULL
            Some(10 | 13) => StoreError::Disk { why: why(), place },
            // SQLITE_CANTOPEN
            Some(14) => StoreError::Open { why: why(), place },
            // SQLITE_CORRUPT
            Some(11) => StoreError::Damaged { why: why(), place },
            // SQLITE_NOTADB
            Some(26) => StoreError::NotADatabase { place },
            _ => StoreError::Query { place, source: error },
        }
    }

    /// Classifies by SQLSTATE (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
    fn of_postgres(place: &str, error: sqlx::Error) -> Self {
        let place = place.to_owned();
        if matches!(error, sqlx::Error::Configuration(_)) {
            return StoreError::Address { address: place, source: AddressError::Options(error) };
        }
        let unreachable = match &error {
            sqlx::Error::Io(error) => Some(error.to_string()),
            sqlx::Error::Tls(error) => Some(format!("TLS failed: {error}")),
            sqlx::Error::PoolTimedOut => Some("no connection within 10 s".to_owned()),
            _ => None,
        };
        if let Some(why) = unreachable {
            return StoreError::Unreachable { place, why };
        }
        let Some(told) = error.as_database_error() else {
            return StoreError::Query { place, source: error };
        };
        let (code, why) = (told.code().unwrap_or_default(), told.to_string());
        match &*code {
            // connection exceptions, too many connections, shutdown and startup
            code if code.starts_with("08") => StoreError::Unreachable { place, why },
            // A server that restarts answers 57P01 to old connections and 57P03 to new ones, so
            // that a worker waits for it instead of ending.
            "53300" | "57P01" | "57P02" | "57P03" => StoreError::Unreachable { place, why },
            // unknown user, wrong password, missing database or schema, missing rights, read-only
            code if code.starts_with("28") => StoreError::Refused { place, why },
            "3D000" | "3F000" | "42501" | "25006" => StoreError::Refused { place, why },
            // lock not available, deadlock, serialization failure
            "55P03" | "40P01" | "40001" => StoreError::Busy { place },
            // disk full, I/O error
            "53100" | "58030" => StoreError::Disk { place, why },
            "XX001" | "XX002" => StoreError::Damaged { place, why },
            _ => StoreError::Query { place, source: error },
        }
    }

    pub(super) fn of_migration(engine: DatabaseEngine, place: &str, error: MigrateError) -> Self {
        let place = place.to_owned();
        match error {
            MigrateError::VersionMissing(version) => StoreError::Newer { place, version },
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)
                if error.as_database_error().is_some() =>
            {
                Self::from_sqlx(engine, &place, error)
            }
            source => StoreError::Migration { place, source },
        }
    }
}
