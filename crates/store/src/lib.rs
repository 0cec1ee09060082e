//! The database of grades and everything derived from them: SQLite by default, or PostgreSQL.
//!
//! Both engines run the same SQL text; the exceptions are in `statement`. There is one file per
//! table family. This crate makes no decisions, opens no session files and redacts nothing: callers
//! do that, and the store only limits the size of its input. Rows written by another program are
//! read as far as they are valid; [`Rows::unreadable`] counts the rest.

mod address;
mod bound;
mod error;
mod gaps;
mod grades;
mod jobs;
mod lineage;
mod maintenance;
mod migrations;
mod page;
mod reflections;
mod row;
mod save;
mod search;
mod skills;
mod statement;
mod summaries;
#[cfg(test)]
mod tests;
mod transaction;

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyConnection, AnyPool, ConnectOptions as _, Connection as _, Executor as _, Row as _};
use tokio::sync::Mutex;

use address::DatabaseAddress;
use row::Columns;
use selftest_grading::grade::quality::RUBRIC_VERSION;
use statement::DatabaseEngine;
use transaction::is_reusable;

pub use crate::save::{FileOutcome, FileRecord, FileResult, KnownFile};
pub use error::{AddressError, ColumnError, StoreError};
pub use gaps::ProposalDecision;
pub use grades::ScoreCount;
pub use jobs::{JobRun, QueueDatabase, QueuePool};
pub use lineage::RenamedSession;
pub use maintenance::{BackupError, BackupOutcome, HumanDataPolicy, PrunableRows, PruneCounts};
pub use page::{Cursor, ResultPage, SessionQuery, SessionRow, SessionSort};
pub use reflections::{NewReflection, ReflectionQuery};
pub use row::Rows;
pub use save::DroppedGrade;
pub use search::{
    Facet, FileToIndex, IndexedEvent, IndexedSession, SearchHit, SearchPage, SearchQuery,
    SearchedSession,
};
pub use skills::{
    NewSkill, RequestKey, SkillDayCount, SkillRecord, SkillRecordCounts, SkillRef, SkillRequest,
};
pub use summaries::{PatternDay, StoredReport};

/// An open database. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Store {
    pool: AnyPool,
    /// For a file database only. This connection is never used, but while it is open SQLite keeps
    /// the `-wal` and `-shm` files, so new connections can be opened after a full disk has closed
    /// the others.
    anchor: Arc<Mutex<Option<AnyConnection>>>,
    engine: DatabaseEngine,
    place: String,
    /// Rubric version of the model grades that count.
    rubric: u32,
}

impl Store {
    /// Opens a database and migrates its tables.
    ///
    /// `address` is a path, or a URL `sqlite:<path>` or `postgres://<user>@<host>/<database>`.
    /// Missing folders and the file of a path are created, and the file is readable only by its
    /// owner. `:memory:` is a database that disappears with the last clone. A database created by
    /// the original program (docs/spec/session-grades.md) is migrated with its rows.
    ///
    /// Waits at most 10 s for a server. If the server restarts, the next call gets a new
    /// connection. A statement running at that moment fails with [`StoreError::Unreachable`] and
    /// has changed nothing, unless the connection was lost during the commit.
    ///
    /// Must be called in a tokio runtime.
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        Self::open_with(address, "").await
    }

    /// Opens a database for a long-running program with few queries: its connections use a small
    /// page cache.
    pub async fn open_low_memory(address: &str) -> Result<Self, StoreError> {
        let engine = DatabaseAddress::parse(address)?.engine();
        Self::open_with(address, engine.low_memory_statement()).await
    }

    /// Opens a database and runs `further` on each connection after the setup statements.
    async fn open_with(address: &str, further: &'static str) -> Result<Self, StoreError> {
        let place = DatabaseAddress::parse(address)?;
        place.create()?;
        sqlx::any::install_default_drivers();
        let (engine, name) = (place.engine(), place.display_name());
        let failed = |error| StoreError::from_sqlx(engine, &name, error);
        let options: AnyConnectOptions = place.url().parse().map_err(failed)?;
        let options = options.disable_statement_logging();
        // Connect once before creating the pool. The pool retries for a long time if the file is
        // not a database, and does not report why a server is unreachable.
        let first = tokio::time::timeout(engine.connect_timeout(), options.connect()).await;
        let mut first = first.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(failed)?;
        let begun = Instant::now();
        while let Err(error) = first.execute(engine.setup_statements()).await.map_err(failed) {
            // When two processes create the same database, SQLite fails one of them immediately
            // instead of waiting for `busy_timeout`.
            if !matches!(error, StoreError::Busy { .. })
                || begun.elapsed() > engine.connect_timeout()
            {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let pool = AnyPoolOptions::new()
            // SQLite has one writer whatever the pool's size; four readers are what the pages and
            // the API use at once.
            .max_connections(4)
            .acquire_timeout(engine.connect_timeout())
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    connection.execute(engine.setup_statements()).await?;
                    if !further.is_empty() {
                        connection.execute(further).await?;
                    }
                    Ok(())
                })
            });
        let pool = if place == DatabaseAddress::Memory {
            // Each connection would open its own database, and closing it would delete the data.
            pool.max_connections(1).idle_timeout(None).max_lifetime(None)
        } else {
            pool.after_release(|connection, _| Box::pin(is_reusable(connection)))
        };
        let pool = pool.connect_with(options).await.map_err(failed)?;
        let anchor = if matches!(place, DatabaseAddress::File(_)) {
            Some(first)
        } else {
            first.close().await.map_err(failed)?;
            None
        };
        let anchor = Arc::new(Mutex::new(anchor));
        let store = Self { pool, anchor, engine, place: name, rubric: RUBRIC_VERSION };
        if let Err(error) = store.migrate().await {
            // Closing waits until the pool has released its locks.
            store.close().await;
            return Err(error);
        }
        Ok(store)
    }

    /// Waits for running queries, then closes all connections and removes the files beside the
    /// database.
    pub async fn close(self) {
        self.pool.close().await;
        if let Some(anchor) = self.anchor.lock().await.take() {
            // Everything is already committed; closing only cleans up.
            let _ = anchor.close().await;
        }
    }

    /// Checks that the database answers, by querying the migrations table.
    pub async fn check(&self) -> Result<(), StoreError> {
        let query = format!("SELECT COUNT(*) AS count FROM {}", migrations::MIGRATIONS_TABLE);
        self.count(query, []).await.map(drop)
    }

    /// Returns the path or address of the database for messages, without a password.
    pub fn location(&self) -> &str {
        &self.place
    }

    fn to_store_error(&self, error: sqlx::Error) -> StoreError {
        StoreError::from_sqlx(self.engine, &self.place, error)
    }
}

/// Watches a database over its own connection.
pub struct ChangeWatcher {
    connection: AnyConnection,
    engine: DatabaseEngine,
    place: String,
}

impl ChangeWatcher {
    /// Returns a number that differs after every change, by this process or another. Its value has
    /// no meaning of its own.
    pub async fn version(&mut self) -> Result<i64, StoreError> {
        let row =
            sqlx::query(self.engine.change_counter_query()).fetch_one(&mut self.connection).await;
        let version = row.and_then(|row| row.try_get(0));
        version.map_err(|error| StoreError::from_sqlx(self.engine, &self.place, error))
    }

    /// Closes the connection.
    pub async fn close(self) {
        // Nothing was written over this connection, so an error loses nothing.
        let _ = self.connection.close().await;
    }
}

impl Store {
    /// Starts watching for changes. Returns `None` for a database in memory, which has only one
    /// connection.
    pub async fn watch_changes(&self) -> Result<Option<ChangeWatcher>, StoreError> {
        // A pool with one connection is a database in memory.
        if self.pool.options().get_max_connections() == 1 {
            return Ok(None);
        }
        let options = self.pool.connect_options();
        // SQLite's `data_version` can only be compared with values read on the same connection.
        let connection = options.connect().await.map_err(|error| self.to_store_error(error))?;
        Ok(Some(ChangeWatcher { connection, engine: self.engine, place: self.place.clone() }))
    }

    /// Returns the number of grades made by each model, sorted by model name.
    pub async fn grades_by_model(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let query = "SELECT grader_model, COUNT(*) AS grades FROM session_quality_grades \
                     GROUP BY grader_model ORDER BY grader_model";
        let read = |row: &Columns<'_>| Ok((row.get("grader_model")?, row.get("grades")?));
        Ok(self.fetch(query, [], read).await?.items)
    }
}
