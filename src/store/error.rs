//! Why the database does not serve, in words that name it.

use sqlx::migrate::MigrateError;

/// What went wrong with the database. Messages name it; [`StoreError::hint`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address names nothing that can be opened.
    #[error("cannot use `{address}` as a database: {why}")]
    Address {
        /// As written; only its scheme where it may hold a password.
        address: String,
        /// What is wrong.
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
        /// What failed.
        source: MigrateError,
    },
    /// Another process has been writing for longer than the time limit.
    #[error("the database {place} is locked by another process")]
    Busy {
        /// The database.
        place: String,
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
        /// What was to be stored.
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
        /// What failed.
        source: sqlx::Error,
    },
}

impl StoreError {
    /// One thing that the reader can do.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            StoreError::Address { .. } => {
                "give the path of a SQLite file, such as .selftest/selftest.db, or sqlite:<path>"
            }
            StoreError::Open { .. } | StoreError::NotWritable { .. } => {
                "choose a database in a folder that you may write to, with --db"
            }
            StoreError::NotADatabase { .. } | StoreError::Foreign { .. } => {
                "choose another file with --db; a new one is created"
            }
            StoreError::Newer { .. } => "update selftest, or choose another database with --db",
            StoreError::Migration { .. } => {
                "move the file away: a new one is made and the sessions are graded again"
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

    /// The error of a SQLite database, told apart by its primary result code
    /// (<https://sqlite.org/rescode.html>).
    pub(super) fn of_sqlite(place: &str, error: sqlx::Error) -> Self {
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
            // SQLITE_PERM, SQLITE_READONLY, SQLITE_FULL
            Some(3 | 8 | 13) => StoreError::NotWritable { why: why(), place },
            // SQLITE_CANTOPEN
            Some(14) => StoreError::Open { why: why(), place },
            // SQLITE_CORRUPT
            Some(11) => StoreError::Damaged { why: why(), place },
            // SQLITE_NOTADB
            Some(26) => StoreError::NotADatabase { place },
            _ => StoreError::Query { place, source: error },
        }
    }

    pub(super) fn of_migration(place: &str, error: MigrateError) -> Self {
        let place = place.to_owned();
        match error {
            MigrateError::VersionMissing(version) => StoreError::Newer { place, version },
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)
                if error.as_database_error().is_some() =>
            {
                Self::of_sqlite(&place, error)
            }
            source => StoreError::Migration { place, source },
        }
    }
}
