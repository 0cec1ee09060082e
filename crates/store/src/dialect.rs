//! SQL that differs between the engines. All other statements are shared: they use numbered
//! placeholders and only features that both engines have.

use std::time::Duration;

/// A database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseEngine {
    Sqlite,
    Postgres,
}

impl DatabaseEngine {
    /// Returns the maximum time to wait for a connection.
    pub(super) fn connect_timeout(self) -> Duration {
        match self {
            // All connections are busy.
            DatabaseEngine::Sqlite => Duration::from_secs(30),
            // Long enough for a restarting server.
            DatabaseEngine::Postgres => Duration::from_secs(10),
        }
    }

    /// Returns the statements to run first on each connection. Several processes may use one
    /// database at the same time: readers do not wait, writers take turns. A write waits at most 10
    /// s for another process.
    pub(super) fn setup_statements(self) -> &'static str {
        match self {
            DatabaseEngine::Sqlite => {
                // `temp_store = MEMORY` keeps statement journals in memory instead of writing a
                // file that is then discarded.
                "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; \
                 PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL; \
                 PRAGMA temp_store = MEMORY;"
            }
            // A client that stops responding within a transaction is disconnected, because others
            // wait for its locks.
            DatabaseEngine::Postgres => {
                "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; \
                 SELECT set_config('application_name', 'selftest', false) \
                 WHERE current_setting('application_name') = ''"
            }
        }
    }

    /// Returns a statement to run after [`DatabaseEngine::setup_statements`] if memory matters more than speed.
    pub(super) fn low_memory_statement(self) -> &'static str {
        match self {
            // The OS caches pages that are read again. Connections borrow unused cache from each
            // other, so the default of 2 MB each reached 6 MB for one connection.
            DatabaseEngine::Sqlite => "PRAGMA cache_size = -512",
            // The cache is in the server's memory.
            DatabaseEngine::Postgres => "",
        }
    }

    /// Returns the statement that starts a transaction for writing.
    pub(super) fn begin_statement(self) -> &'static str {
        match self {
            // Takes the write lock at once: an upgrade within a transaction can fail immediately,
            // regardless of `busy_timeout`.
            DatabaseEngine::Sqlite => "BEGIN IMMEDIATE",
            // Independent of the server's default: stricter levels would use a snapshot from before
            // the wait for the turn.
            DatabaseEngine::Postgres => "BEGIN ISOLATION LEVEL READ COMMITTED",
        }
    }

    /// Returns the statement to run first in a write transaction, which waits until it is the only
    /// one, as `BEGIN IMMEDIATE` does on SQLite. The lock is per schema because each schema may
    /// contain our tables.
    pub(super) fn write_lock_statement(self) -> Option<&'static str> {
        match self {
            DatabaseEngine::Sqlite => None,
            DatabaseEngine::Postgres => Some(
                "SELECT pg_advisory_xact_lock(\
                 hashtextextended('selftest ' || current_schema(), 0))",
            ),
        }
    }

    /// Returns the start of a comparison of a column with a lowercase pattern, ignoring ASCII case.
    pub(super) fn like(self, column: &str) -> String {
        match self {
            // SQLite's `LIKE` already ignores ASCII case, without a copy of each text.
            DatabaseEngine::Sqlite => format!("{column} LIKE "),
            DatabaseEngine::Postgres => format!("LOWER({column}) LIKE "),
        }
    }

    /// Returns an expression for the seconds since 1970 on a clock that all processes share, since
    /// the clocks of machines differ.
    pub(super) fn now_expression(self) -> &'static str {
        match self {
            // All processes are on one machine.
            DatabaseEngine::Sqlite => "CAST(strftime('%s', 'now') AS INTEGER)",
            DatabaseEngine::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS BIGINT)",
        }
    }

    /// Returns a query for the names of user tables in our database or schema.
    pub(super) fn tables_query(self) -> &'static str {
        match self {
            DatabaseEngine::Sqlite => {
                "SELECT name FROM sqlite_master WHERE type = 'table' \
                 AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
            }
            DatabaseEngine::Postgres => {
                "SELECT CAST(relname AS TEXT) FROM pg_class WHERE relkind IN ('r', 'p') \
                 AND relnamespace = CAST(current_schema() AS regnamespace) \
                 AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = pg_class.oid \
                 AND classid = CAST('pg_class' AS regclass) AND deptype = 'e')"
            }
        }
    }

    /// Returns a query for a number that differs after every change of the database by any process.
    pub(super) fn change_counter_query(self) -> &'static str {
        match self {
            DatabaseEngine::Sqlite => "PRAGMA data_version",
            // Every writing transaction changes the snapshot. Transactions in other databases of
            // the server do too, which only causes needless refreshes.
            DatabaseEngine::Postgres => {
                "SELECT hashtextextended(CAST(pg_current_snapshot() AS TEXT), 0)"
            }
        }
    }
}
