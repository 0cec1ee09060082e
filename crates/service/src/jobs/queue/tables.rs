//! The tables of the queue's library (`apalis` 1.0), in the words of each engine: what it has no
//! calls for, such as counting cheaply, or trying failed work again.

use selftest_store::QueuePool;

/// How the tables and what is in them are named.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tables {
    pub(super) jobs: &'static str,
    pub(super) workers: &'static str,
    /// The result as text.
    pub(super) result: &'static str,
    /// When it ended, in seconds since 1970.
    pub(super) done_at: &'static str,
    /// Now, as in the columns of times.
    pub(super) now: &'static str,
    /// A time long ago, as in the columns of times.
    pub(super) long_ago: &'static str,
    /// Seconds since a worker's last sign of life.
    pub(super) silence: &'static str,
    /// Seconds since it ended.
    pub(super) done_since: &'static str,
    /// Run first in a transaction that adds work: of two that add the same, the second waits.
    pub(super) take_turn: Option<&'static str>,
}

const SQLITE: Tables = Tables {
    jobs: "Jobs",
    workers: "Workers",
    result: "last_result",
    done_at: "done_at",
    now: "CAST(strftime('%s', 'now') AS INTEGER)",
    long_ago: "0",
    silence: "(CAST(strftime('%s', 'now') AS INTEGER) - last_seen)",
    done_since: "(CAST(strftime('%s', 'now') AS INTEGER) - done_at)",
    // A transaction begins with the write lock.
    take_turn: None,
};

#[cfg(feature = "postgres")]
const POSTGRES: Tables = Tables {
    jobs: "apalis.jobs",
    workers: "apalis.workers",
    result: "CAST(last_result AS TEXT)",
    done_at: "CAST(EXTRACT(EPOCH FROM done_at) AS BIGINT)",
    now: "now()",
    long_ago: "to_timestamp(0)",
    silence: "EXTRACT(EPOCH FROM now() - last_seen)",
    done_since: "EXTRACT(EPOCH FROM now() - done_at)",
    take_turn: Some("SELECT pg_advisory_xact_lock(hashtextextended('selftest queue', 0))"),
};

impl Tables {
    pub(super) const fn of(pool: &QueuePool) -> Self {
        match pool {
            QueuePool::Sqlite(_) => SQLITE,
            #[cfg(feature = "postgres")]
            QueuePool::Postgres(_) => POSTGRES,
        }
    }
}

/// Work that is not tried again by itself.
pub(super) const FAILED: &str =
    "(status = 'Killed' OR (status = 'Failed' AND attempts >= max_attempts))";

/// Work that a worker has. The library says `Queued` of what a worker has fetched.
pub(super) const RUNNING: &str = "status IN ('Queued', 'Running')";

/// Work that waits for a worker.
pub(super) const WAITING: &str =
    "(status = 'Pending' OR (status = 'Failed' AND attempts < max_attempts))";

/// In which of the four states work is, as a text.
pub(super) fn state() -> String {
    format!(
        "CASE WHEN {RUNNING} THEN 'running' WHEN {WAITING} THEN 'waiting' \
         WHEN {FAILED} THEN 'failed' ELSE 'done' END"
    )
}
