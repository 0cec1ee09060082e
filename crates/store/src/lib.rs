//! The database of grades and of all that is made of them. SQLite by default, or PostgreSQL.
//!
//! One text of each statement for both; `dialect` has the exceptions.
//! One file per table family. Nothing is decided here, no session file is opened, and nothing is
//! redacted: callers have done so, the store only bounds what it is given. Rows that another
//! program wrote are read as far as they make sense; [`Rows::unreadable`] counts the others.

mod address;
mod backup;
mod bound;
mod browse;
mod changes;
mod dialect;
mod error;
mod export;
mod files;
mod gaps;
mod grade_row;
mod grades;
mod jobs;
mod lineage;
mod migrations;
mod overrides;
mod page;
mod pattern_days;
mod proposals;
mod prune;
mod quality;
mod queue_database;
mod reflections;
mod requests;
mod reuse;
mod row;
mod save;
mod scores;
mod search;
mod session_labels;
mod skills;
mod sort;
mod statement;
mod transaction;
mod weekly;

#[cfg(test)]
mod tests;

pub use backup::{Backup, BackupError};
pub use browse::{SessionQuery, SessionRow};
pub use changes::Changes;
pub use error::StoreError;
pub use files::{FileOutcome, FileRecord, FileResult, KnownFile};
pub use jobs::JobRun;
pub use lineage::Renamed;
pub use page::{Cursor, Page};
pub use pattern_days::PatternDay;
pub use proposals::Decision;
pub use prune::{People, Prunable, Pruned};
pub use queue_database::{QueueDatabase, QueuePool};
pub use reflections::{NewReflection, ReflectionQuery};
pub use requests::{RequestKey, SkillRequest};
pub use row::Rows;
pub use save::Lost;
pub use scores::ScoreCount;
pub use search::{
    Facet, FileToIndex, IndexedEvent, IndexedSession, SearchHit, SearchPage, SearchQuery,
    SearchedSession,
};
pub use skills::{DayCount, NewSkill, Recorded, SkillRecord, SkillRef};
pub use sort::SessionSort;
pub use weekly::StoredReport;

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyConnection, AnyPool, ConnectOptions as _, Connection as _, Executor as _};
use tokio::sync::Mutex;

use address::Place;
use dialect::Engine;
use reuse::is_reusable;

use selftest_grading::grade::quality::RUBRIC_VERSION;

/// An open database. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Store {
    pool: AnyPool,
    /// Of a file: never used again, but as long as it is open the files beside the database stay,
    /// so that a full disk, which closes connections, lets new ones be opened.
    anchor: Arc<Mutex<Option<AnyConnection>>>,
    engine: Engine,
    place: String,
    /// Grades by models count when they are by this version of the rubric.
    rubric: u32,
}

impl Store {
    /// Opens a database and brings its tables up to date.
    ///
    /// `address` is a path, or a URL `sqlite:<path>` or `postgres://<user>@<host>/<database>`.
    /// Folders and file of a path are created where they are missing, the file readable by its
    /// owner only. `:memory:` is a database that is gone with the last clone. A database that the
    /// original program (docs/spec/session-grades.md) made is taken over with its rows.
    ///
    /// A server is waited for at most 10 s. When it was started anew, the next call gets a new
    /// connection; what was running fails with [`StoreError::Unreachable`] and has changed
    /// nothing, unless the connection was lost while it was being committed.
    ///
    /// Must be called in a tokio runtime.
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        Self::open_with(address, "").await
    }

    /// The same for a program that runs for days and asks little at a time: its connections keep
    /// little of the database in memory.
    pub async fn open_to_serve(address: &str) -> Result<Self, StoreError> {
        let engine = Place::parse(address)?.engine();
        Self::open_with(address, engine.save_memory()).await
    }

    /// Opens a database; runs the further words on each connection.
    async fn open_with(address: &str, further: &'static str) -> Result<Self, StoreError> {
        let place = Place::parse(address)?;
        place.create()?;
        sqlx::any::install_default_drivers();
        let (engine, name) = (place.engine(), place.name());
        let failed = |error| StoreError::of(engine, &name, error);
        let options: AnyConnectOptions = place.url().parse().map_err(failed)?;
        let options = options.disable_statement_logging();
        // Not the pool first: it tries again and again where the file is no database, and does not
        // say why a server cannot be reached.
        let first = tokio::time::timeout(engine.patience(), options.connect()).await;
        let mut first = first.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(failed)?;
        let begun = Instant::now();
        while let Err(error) = first.execute(engine.setup()).await.map_err(failed) {
            // Of two processes that make the same database SQLite refuses one at once.
            if !matches!(error, StoreError::Busy { .. }) || begun.elapsed() > engine.patience() {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let pool = AnyPoolOptions::new()
            .max_connections(4)
            .acquire_timeout(engine.patience())
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    connection.execute(engine.setup()).await?;
                    if !further.is_empty() {
                        connection.execute(further).await?;
                    }
                    Ok(())
                })
            });
        let pool = if place == Place::Memory {
            // Each connection would be a database of its own, and closing it the end of it.
            pool.max_connections(1).idle_timeout(None).max_lifetime(None)
        } else {
            pool.after_release(|connection, _| Box::pin(is_reusable(connection)))
        };
        let pool = pool.connect_with(options).await.map_err(failed)?;
        let anchor = if matches!(place, Place::File(_)) {
            Some(first)
        } else {
            first.close().await.map_err(failed)?;
            None
        };
        let anchor = Arc::new(Mutex::new(anchor));
        let store = Self { pool, anchor, engine, place: name, rubric: RUBRIC_VERSION };
        if let Err(error) = store.migrate().await {
            // Waits until its locks are given back.
            store.close().await;
            return Err(error);
        }
        Ok(store)
    }

    /// Waits for running queries and tidies up the files beside the database.
    pub async fn close(self) {
        self.pool.close().await;
        if let Some(anchor) = self.anchor.lock().await.take() {
            // Everything is written: closing it only tidies up.
            let _ = anchor.close().await;
        }
    }

    /// Whether the database answers: reads which tables it has.
    pub async fn check(&self) -> Result<(), StoreError> {
        let query = format!("SELECT COUNT(*) AS count FROM {}", migrations::MIGRATIONS_TABLE);
        self.count(query, []).await.map(drop)
    }

    /// Path or address of the database, for messages; without a password.
    pub fn place(&self) -> &str {
        &self.place
    }

    fn failed(&self, error: sqlx::Error) -> StoreError {
        StoreError::of(self.engine, &self.place, error)
    }
}
