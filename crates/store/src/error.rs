//! Why the database does not serve, in words that name it.

use sqlx::migrate::MigrateError;

use super::dialect::Engine;

/// A failure of the database. Messages name it; [`StoreError::hint`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address names nothing that can be opened.
    #[error("cannot use `{address}` as a database: {why}")]
    Address {
        /// As written; without what may be a password.
        address: String,
        /// The fault.
        why: String,
    },
    /// The folder or file cannot be made or opened.
    #[error("cannot open the database {place}: {why}")]
    Open {
        /// The database.
        place: String,
        /// The system's words.
        why: String,
    },
    /// The database can be read but not written.
    #[error("cannot write to the database {place}: {why}")]
    NotWritable {
        /// The database.
        place: String,
        /// The engine's words.
        why: String,
    },
    /// No connection to the server, or none any more.
    #[error("cannot reach the database {place}: {why}")]
    Unreachable {
        /// The database.
        place: String,
        /// The system's or the server's words.
        why: String,
    },
    /// The server does not let us in, or not do what is needed.
    #[error("the database {place} refuses: {why}")]
    Refused {
        /// The database.
        place: String,
        /// The server's words.
        why: String,
    },
    /// The file is something else.
    #[error("{place} is not a database")]
    NotADatabase {
        /// The file.
        place: String,
    },
    /// A database that holds tables, but none of selftest.
    #[error("{place} is the database of another program")]
    Foreign {
        /// The database.
        place: String,
        /// Whether it is on a server, where programs may share one.
        served: bool,
    },
    /// Its tables come from a later version of selftest.
    #[error(
        "the database {place} was written by a newer version of selftest: it has migration {version}"
    )]
    Newer {
        /// The database.
        place: String,
        /// The migration that this version does not know.
        version: i64,
    },
    /// Its tables could not be brought up to date.
    #[error("cannot prepare the tables of the database {place}: {source}")]
    Migration {
        /// The database.
        place: String,
        /// The failure.
        source: MigrateError,
    },
    /// Another process has been writing for longer than the time limit.
    #[error("the database {place} is locked by another process")]
    Busy {
        /// The database.
        place: String,
    },
    /// The disk is full, or it fails. What is there stays as it was.
    #[error("the disk of the database {place} cannot be written or read: {why}")]
    Disk {
        /// The database.
        place: String,
        /// The engine's words.
        why: String,
    },
    /// The content of the file is broken.
    #[error("the database {place} is damaged: {why}")]
    Damaged {
        /// The database.
        place: String,
        /// The engine's words.
        why: String,
    },
    /// A row that was asked for by its id holds values that selftest does not write.
    #[error("cannot read {what} in the database {place}: {why}")]
    Row {
        /// The database.
        place: String,
        /// Which row.
        what: String,
        /// The column and what is wrong with it.
        why: String,
    },
    /// Something that is to be stored is larger than any that selftest makes.
    #[error("{what} is too large for the database: {bytes} bytes, at most {limit}")]
    TooLarge {
        /// The thing that was to be stored.
        what: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Anything else.
    #[error("the database {place} failed: {source}")]
    Query {
        /// The database.
        place: String,
        /// The failure.
        source: sqlx::Error,
    },
}

impl StoreError {
    /// Refuses a text that is longer than any that selftest makes.
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

    /// One thing that the reader can do.
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

    /// Whether the same may succeed later with nothing changed in the program: the disk has room
    /// again, the server is back, another process has ended.
    pub fn may_pass(&self) -> bool {
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
    pub(super) fn of(engine: Engine, place: &str, error: sqlx::Error) -> Self {
        match engine {
            Engine::Sqlite => Self::of_sqlite(place, error),
            Engine::Postgres => Self::of_postgres(place, error),
        }
    }

    /// Told apart by the primary result code (<https://sqlite.org/rescode.html>).
    fn of_sqlite(place: &str, error: sqlx::Error) -> Self {
        let place = place.to_owned();
        if matches!(error, sqlx::Error::PoolTimedOut) {
            return StoreError::Busy { place };
        }
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
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

    /// Told apart by SQLSTATE (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
    fn of_postgres(place: &str, error: sqlx::Error) -> Self {
        let place = place.to_owned();
        let unreachable = match &error {
            sqlx::Error::Io(error) => Some(error.to_string()),
            sqlx::Error::Tls(error) => Some(format!("TLS failed: {error}")),
            sqlx::Error::PoolTimedOut => Some("no connection within 10 s".to_owned()),
            sqlx::Error::Configuration(error) => {
                return StoreError::Address { address: place, why: error.to_string() };
            }
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
            // connection exceptions, too many connections, shutting down and starting up
            code if code.starts_with("08") => StoreError::Unreachable { place, why },
            "53300" | "57P01" | "57P02" | "57P03" => StoreError::Unreachable { place, why },
            // no such user, wrong password, no such database or schema, missing rights, read-only
            code if code.starts_with("28") => StoreError::Refused { place, why },
            "3D000" | "3F000" | "42501" | "25006" => StoreError::Refused { place, why },
            // lock not available, deadlock, serialization failure
            "55P03" | "40P01" | "40001" => StoreError::Busy { place },
            // disk full, error of input or output
            "53100" | "58030" => StoreError::Disk { place, why },
            "XX001" | "XX002" => StoreError::Damaged { place, why },
            _ => StoreError::Query { place, source: error },
        }
    }

    pub(super) fn of_migration(engine: Engine, place: &str, error: MigrateError) -> Self {
        let place = place.to_owned();
        match error {
            MigrateError::VersionMissing(version) => StoreError::Newer { place, version },
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)
                if error.as_database_error().is_some() =>
            {
                Self::of(engine, &place, error)
            }
            source => StoreError::Migration { place, source },
        }
    }
}
