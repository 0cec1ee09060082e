//! The database: what was graded, when and how. SQLite by default.
//!
//! One file per table family. Nothing is decided here, no session file is opened, and nothing is
//! redacted: callers have done so, the store only bounds what it is given. Rows that another
//! program wrote are read as far as they make sense; [`Rows::unreadable`] counts the others.

mod address;
mod bound;
mod browse;
mod changes;
mod error;
mod files;
mod gaps;
mod grade_row;
mod grades;
mod insert;
mod overrides;
mod page;
mod proposals;
mod quality;
mod row;
mod save;
mod sort;
mod weekly;

#[cfg(test)]
mod tests;

pub use browse::{SessionQuery, SessionRow};
pub use changes::Changes;
pub use error::StoreError;
pub use files::{FileOutcome, FileRecord, KnownFile};
pub use page::{Cursor, Page};
pub use proposals::Decision;
pub use row::Rows;
pub use save::{FileResult, Lost};
pub use sort::SessionSort;
pub use weekly::StoredReport;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{Any, AnyPool, ConnectOptions as _, Connection as _, Executor as _, Row as _};
use sqlx::{SqlSafeStr as _, Transaction};

use address::Place;

/// Of its own, so that a database can hold the tables of other programs beside ours.
const MIGRATIONS_TABLE: &str = "selftest_migrations";

/// The tables as they came to be. A migration that was released is never changed.
const MIGRATIONS: [(&str, &str); 6] = [
    ("grades", include_str!("../../migrations/sqlite/0001_grades.sql")),
    ("files", include_str!("../../migrations/sqlite/0002_files.sql")),
    ("overrides", include_str!("../../migrations/sqlite/0003_overrides.sql")),
    ("quality", include_str!("../../migrations/sqlite/0004_quality.sql")),
    ("browsing", include_str!("../../migrations/sqlite/0005_browsing.sql")),
    ("gaps", include_str!("../../migrations/sqlite/0008_gaps.sql")),
];

/// Several processes may use one database at the same time: readers do not wait, writers take
/// turns. Writing waits at most 10 s for another process.
const PRAGMAS: &str = "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; \
                       PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL;";

/// An open database. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Store {
    pool: AnyPool,
    place: String,
}

impl Store {
    /// Opens a database and brings its tables up to date.
    ///
    /// `address` is a path or a URL `sqlite:<path>`; folders and file are created where they are
    /// missing, the file readable by its owner only. `:memory:` is a database that is gone with
    /// the last clone. A database that the program of seed 000 made is taken over with its rows.
    ///
    /// Must be called in a tokio runtime.
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        let place = Place::parse(address)?;
        place.create()?;
        sqlx::any::install_default_drivers();
        let name = place.name();
        let failed = |error| StoreError::of_sqlite(&name, error);
        let options: AnyConnectOptions = place.url().parse().map_err(failed)?;
        let options = options.disable_statement_logging();
        // Not the pool first: it tries again and again where the file is no database.
        let mut first = options.connect().await.map_err(failed)?;
        first.execute(PRAGMAS).await.map_err(failed)?;
        let mut pool = AnyPoolOptions::new().max_connections(4).after_connect(|connection, _| {
            Box::pin(async move { connection.execute(PRAGMAS).await.map(drop) })
        });
        if place == Place::Memory {
            // Each connection would be a database of its own, and closing it the end of it.
            pool = pool.max_connections(1).idle_timeout(None).max_lifetime(None);
        }
        let pool = pool.connect_with(options).await.map_err(failed)?;
        first.close().await.map_err(failed)?;
        let store = Self { pool, place: name };
        store.migrate().await?;
        Ok(store)
    }

    /// Waits for running queries and tidies up the files beside the database.
    pub async fn close(self) {
        self.pool.close().await;
    }

    /// Path of the database, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// In one transaction that holds the write lock, so that of several processes that open a
    /// fresh database one makes the tables and the others find them.
    async fn migrate(&self) -> Result<(), StoreError> {
        let mut writing = self.begin().await?;
        if self.is_foreign(&mut writing).await? {
            return Err(StoreError::Foreign { place: self.place.clone() });
        }
        let migrations = (1..).zip(MIGRATIONS).map(|(version, (name, sql))| {
            let kind = MigrationType::Simple;
            Migration::new(version, name.into(), kind, sql.into_sql_str(), false)
        });
        let mut migrator = Migrator::with_migrations(migrations.collect());
        migrator.dangerous_set_table_name(MIGRATIONS_TABLE);
        let done = migrator.run_direct(None, &mut *writing, false).await;
        done.map_err(|error| StoreError::of_migration(&self.place, error))?;
        self.commit(writing).await
    }

    /// Whether there are tables, but neither ours nor the seed's: a path given by mistake.
    async fn is_foreign(&self, connection: &mut sqlx::AnyConnection) -> Result<bool, StoreError> {
        let tables = "SELECT name FROM sqlite_master WHERE type = 'table'";
        let tables = sqlx::query(tables).fetch_all(connection).await;
        let tables = tables.map_err(|error| self.failed(error))?;
        let is_ours = |name: &str| matches!(name, MIGRATIONS_TABLE | "session_grades");
        let names = tables.iter().map(|row| row.try_get::<String, _>(0).unwrap_or_default());
        let names: Vec<String> = names.filter(|name| !name.starts_with("sqlite_")).collect();
        Ok(!names.is_empty() && !names.iter().any(|name| is_ours(name)))
    }

    /// A transaction that may write. Begins with the write lock: a lock that is asked for in the
    /// middle of a transaction can fail at once, however long one would wait.
    async fn begin(&self) -> Result<Transaction<'static, Any>, StoreError> {
        self.pool.begin_with("BEGIN IMMEDIATE").await.map_err(|error| self.failed(error))
    }

    async fn commit(&self, transaction: Transaction<'static, Any>) -> Result<(), StoreError> {
        transaction.commit().await.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: sqlx::Error) -> StoreError {
        StoreError::of_sqlite(&self.place, error)
    }
}
