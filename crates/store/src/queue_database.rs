//! Engine-specific connections to the tables of the job queue. The queue library needs these, while
//! grades use sqlx's `Any` connections.
//!
//! On SQLite the queue has its own file beside the grades, because its library names its tables
//! `Jobs` and `Workers` and writes more often than everything else.

#[cfg(feature = "postgres")]
use sqlx::Connection as _;
#[cfg(feature = "postgres")]
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgRow};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, FromRow, SqlitePool};

#[cfg(not(feature = "postgres"))]
use SqliteRow as PgRow;

use super::StoreError;
use super::address::DatabaseAddress;
use super::statement::DatabaseEngine;
use super::transaction::is_reusable;

/// A worker fetches and acknowledges over one connection; the other is for everything else.
const MAX_CONNECTIONS: u32 = 2;

/// A connection pool of one engine.
#[derive(Debug, Clone)]
pub enum QueuePool {
    /// SQLite.
    Sqlite(SqlitePool),
    /// PostgreSQL.
    #[cfg(feature = "postgres")]
    Postgres(PgPool),
}

/// The database of the job queue.
#[derive(Debug, Clone)]
pub struct QueueDatabase {
    /// Connection pool.
    pub pool: QueuePool,
    /// Schema of the grades that the queue belongs to. The queue's own tables are in one schema
    /// shared by all of them.
    pub schema: Option<String>,
    engine: DatabaseEngine,
    place: String,
}

impl QueueDatabase {
    /// Opens the queue that belongs to the grades at that address.
    ///
    /// Must be called in a tokio runtime.
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        let place = DatabaseAddress::parse(address)?.with_suffix("-jobs");
        place.create()?;
        let (engine, name) = (place.engine(), place.display_name());
        let opened = match engine {
            DatabaseEngine::Sqlite => open_sqlite(&place).await,
            #[cfg(feature = "postgres")]
            DatabaseEngine::Postgres => open_postgres(&place).await,
            #[cfg(not(feature = "postgres"))]
            DatabaseEngine::Postgres => Err(sqlx::Error::PoolClosed),
        };
        let (pool, schema) = opened.map_err(|error| StoreError::from_sqlx(engine, &name, error))?;
        Ok(Self { pool, schema, engine, place: name })
    }

    /// Waits for running queries, then closes the connections and removes the files beside the
    /// database.
    pub async fn close(&self) {
        match &self.pool {
            QueuePool::Sqlite(pool) => pool.close().await,
            #[cfg(feature = "postgres")]
            QueuePool::Postgres(pool) => pool.close().await,
        }
    }

    /// Returns the rows of a query; `$1` and so on are the values.
    pub async fn select<T>(&self, query: String, values: &[&str]) -> Result<Vec<T>, StoreError>
    where
        T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let query = AssertSqlSafe(query);
        let found = match &self.pool {
            QueuePool::Sqlite(pool) => {
                let query = sqlx::query_as::<sqlx::Sqlite, T>(query);
                values.iter().fold(query, |query, value| query.bind(*value)).fetch_all(pool).await
            }
            #[cfg(feature = "postgres")]
            QueuePool::Postgres(pool) => {
                let query = sqlx::query_as::<sqlx::Postgres, T>(query);
                values.iter().fold(query, |query, value| query.bind(*value)).fetch_all(pool).await
            }
        };
        found.map_err(|error| self.failed(error))
    }

    /// Runs a statement and returns the number of rows changed.
    pub async fn execute(&self, statement: String, values: &[&str]) -> Result<u64, StoreError> {
        let query = AssertSqlSafe(statement);
        let changed = match &self.pool {
            QueuePool::Sqlite(pool) => {
                let query = sqlx::query::<sqlx::Sqlite>(query);
                let query = values.iter().fold(query, |query, value| query.bind(*value));
                query.execute(pool).await.map(|done| done.rows_affected())
            }
            #[cfg(feature = "postgres")]
            QueuePool::Postgres(pool) => {
                let query = sqlx::query::<sqlx::Postgres>(query);
                let query = values.iter().fold(query, |query, value| query.bind(*value));
                query.execute(pool).await.map(|done| done.rows_affected())
            }
        };
        changed.map_err(|error| self.failed(error))
    }

    /// Classifies an error of the engine.
    pub fn failed(&self, error: sqlx::Error) -> StoreError {
        StoreError::from_sqlx(self.engine, &self.place, error)
    }
}

type OpenResult = Result<(QueuePool, Option<String>), sqlx::Error>;

async fn open_sqlite(place: &DatabaseAddress) -> OpenResult {
    let options: SqliteConnectOptions = place.url().parse()?;
    let engine = DatabaseEngine::Sqlite;
    let pool = SqlitePoolOptions::new()
        .max_connections(MAX_CONNECTIONS)
        .acquire_timeout(engine.connect_timeout())
        .after_connect(move |connection, _| {
            Box::pin(async move { connection.execute(engine.setup_statements()).await.map(drop) })
        });
    let pool = if *place == DatabaseAddress::Memory {
        // Each connection would open its own database, and closing it would delete the data.
        pool.max_connections(1).idle_timeout(None).max_lifetime(None)
    } else {
        pool.after_release(|connection, _| Box::pin(is_reusable(connection)))
    };
    let pool = pool.connect_with(options.disable_statement_logging()).await?;
    Ok((QueuePool::Sqlite(pool), None))
}

#[cfg(feature = "postgres")]
async fn open_postgres(place: &DatabaseAddress) -> OpenResult {
    let options: PgConnectOptions = place.url().parse()?;
    let options = options.disable_statement_logging();
    let engine = DatabaseEngine::Postgres;
    // The pool's connections have another search path, so the schema is read before.
    let mut first = options.connect().await?;
    let schema = sqlx::query_scalar("SELECT CAST(current_schema() AS TEXT)");
    let schema: Option<String> = schema.fetch_one(&mut first).await?;
    first.close().await?;
    let pool = PgPoolOptions::new()
        .max_connections(MAX_CONNECTIONS)
        .acquire_timeout(engine.connect_timeout())
        .after_connect(move |connection, _| {
            Box::pin(async move {
                connection.execute(engine.setup_statements()).await?;
                // The library's tables and an extension type that it uses are in `apalis`,
                // whichever schema needed them first. An administrator may have installed the
                // extension in `public`.
                connection.execute("SET search_path = apalis, public").await.map(drop)
            })
        })
        .after_release(|connection, _| Box::pin(is_reusable(connection)));
    Ok((QueuePool::Postgres(pool.connect_with(options).await?), schema))
}
