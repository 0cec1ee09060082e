//! Where the engines need different words. All other statements are the same for both: numbered
//! placeholders, and nothing that only one of them knows.

use std::time::Duration;

/// A database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    /// How long a connection is waited for.
    pub(super) fn patience(self) -> Duration {
        match self {
            // All of them are busy.
            Engine::Sqlite => Duration::from_secs(30),
            // Long enough for a server that is started anew.
            Engine::Postgres => Duration::from_secs(10),
        }
    }

    /// Run on each connection before anything else. Several processes may use one database at the
    /// same time: readers do not wait, writers take turns. Writing waits at most 10 s for another
    /// process.
    pub(super) fn setup(self) -> &'static str {
        match self {
            Engine::Sqlite => {
                // What a statement may have to take back is kept in memory, in place of a file that
                // is written in full and thrown away.
                "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; \
                 PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL; \
                 PRAGMA temp_store = MEMORY;"
            }
            // Whoever falls silent in the middle of a transaction loses it: others wait for its
            // locks.
            Engine::Postgres => {
                "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; \
                 SELECT set_config('application_name', 'selftest', false) \
                 WHERE current_setting('application_name') = ''"
            }
        }
    }

    /// Run on each connection after [`Engine::setup`], where memory counts more than speed.
    pub(super) fn save_memory(self) -> &'static str {
        match self {
            // What is read again is in the memory of the system. Connections lend each other what
            // they do not use, so that the default, 2 MB for each, was 6 MB for one of them.
            Engine::Sqlite => "PRAGMA cache_size = -512",
            // It is the server's memory.
            Engine::Postgres => "",
        }
    }

    /// Begins a transaction that may write.
    pub(super) fn begin(self) -> &'static str {
        match self {
            // With the write lock: a lock that is asked for in the middle of a transaction can
            // fail at once, however long one would wait.
            Engine::Sqlite => "BEGIN IMMEDIATE",
            // Whatever the default of the server is: in a stricter level what is seen is from
            // before the turn was waited for.
            Engine::Postgres => "BEGIN ISOLATION LEVEL READ COMMITTED",
        }
    }

    /// Run first in a transaction that may write: waits until it is the only one that does, as
    /// beginning does on SQLite. For each schema, because each may hold tables of ours.
    pub(super) fn take_turn(self) -> Option<&'static str> {
        match self {
            Engine::Sqlite => None,
            Engine::Postgres => Some(
                "SELECT pg_advisory_xact_lock(\
                 hashtextextended('selftest ' || current_schema(), 0))",
            ),
        }
    }

    /// Begins a comparison of a column with a pattern in lower case; the case of ASCII letters does
    /// not count.
    pub(super) fn like(self, column: &str) -> String {
        match self {
            // Its `LIKE` passes over their case by itself, without a copy of each text.
            Engine::Sqlite => format!("{column} LIKE "),
            Engine::Postgres => format!("LOWER({column}) LIKE "),
        }
    }

    /// The time of the clock that all processes share, in seconds since 1970: machines disagree.
    pub(super) fn clock(self) -> &'static str {
        match self {
            // All of them are on one machine.
            Engine::Sqlite => "CAST(strftime('%s', 'now') AS INTEGER)",
            Engine::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS BIGINT)",
        }
    }

    /// The names of the tables that people or programs made where ours are or would be.
    pub(super) fn tables(self) -> &'static str {
        match self {
            Engine::Sqlite => {
                "SELECT name FROM sqlite_master WHERE type = 'table' \
                 AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
            }
            Engine::Postgres => {
                "SELECT CAST(relname AS TEXT) FROM pg_class WHERE relkind IN ('r', 'p') \
                 AND relnamespace = CAST(current_schema() AS regnamespace) \
                 AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = pg_class.oid \
                 AND classid = CAST('pg_class' AS regclass) AND deptype = 'e')"
            }
        }
    }

    /// A number that is another one after every change of the database, whoever made it.
    pub(super) fn version(self) -> &'static str {
        match self {
            Engine::Sqlite => "PRAGMA data_version",
            // Which transactions are seen; every one that writes has a number in it. Those of
            // other databases of the server count too, which does no harm.
            Engine::Postgres => "SELECT hashtextextended(CAST(pg_current_snapshot() AS TEXT), 0)",
        }
    }
}
