//! The tables of background work: `job_runs` and `job_leases` of the scheduled jobs, and
//! engine-specific connections to the tables of the job queue, whose library needs these, while
//! grades use sqlx's `Any` connections.
//!
//! On SQLite the queue has its own file beside the grades, because its library names its tables
//! `Jobs` and `Workers` and writes more often than everything else.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, FromRow, SqlitePool};

use super::address::DatabaseAddress;
use super::row::{Columns, Rows, record};
use super::statement::{DatabaseEngine, ToValue as _, params};
use super::transaction::is_reusable;
use super::{Store, StoreError, bound};

#[cfg(feature = "postgres")]
use sqlx::Connection as _;

#[cfg(feature = "postgres")]
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgRow};

#[cfg(not(feature = "postgres"))]
use SqliteRow as PgRow;

/// One run of a scheduled job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRun {
    /// Job name.
    pub job: String,
    /// Time at which it was due or requested.
    pub slot: Timestamp,
    /// Worker that runs or ran it.
    pub worker: String,
    /// Attempt number, starting at 1. It is higher if earlier workers died during the run.
    pub attempt: u32,
    /// Time at which the worker started it.
    pub started_at: Timestamp,
    /// Time at which it finished; `None` while it runs and after its worker died.
    pub ended_at: Option<Timestamp>,
    /// Summary as JSON, not validated.
    pub summary_json: Option<String>,
}

record!(JobRun, "job_runs", {
    job,
    slot,
    worker,
    attempt,
    started_at,
    ended_at,
    summary_json,
});

impl Store {
    /// Records that a worker starts a job's run for a slot, and returns the number of the attempt.
    /// Returns `None` if that run has already finished.
    pub async fn start_job(
        &self,
        job: &str,
        slot: Timestamp,
        worker: &str,
        now: Timestamp,
    ) -> Result<Option<u32>, StoreError> {
        // Only an unfinished run is taken over. A finished one yields no row, hence `None`.
        let query = "INSERT INTO job_runs (job, slot, worker, attempt, started_at) \
                     VALUES ($1, $2, $3, 1, $4) ON CONFLICT (job, slot) DO UPDATE SET \
                     worker = excluded.worker, attempt = job_runs.attempt + 1, \
                     started_at = excluded.started_at WHERE job_runs.ended_at IS NULL \
                     RETURNING attempt";
        let values = params![job, slot, worker, now];
        self.fetch_one("the run of a job", query, values, |row| row.get("attempt")).await
    }

    /// Saves the result of a job run; `status` is the status in the summary.
    pub async fn finish_job(
        &self,
        job: &str,
        slot: Timestamp,
        now: Timestamp,
        status: &str,
        summary_json: &str,
    ) -> Result<(), StoreError> {
        let query = "UPDATE job_runs SET ended_at = $3, status = $4, summary_json = $5 \
                     WHERE job = $1 AND slot = $2";
        // A summary that is too long becomes null, because truncated JSON is invalid.
        let summary_json = bound::whole(Some(summary_json)).to_value(bound::JSON);
        self.execute(query, params![job, slot, now, status, summary_json]).await.map(drop)
    }

    /// Returns the latest finished slot of each job, up to `until`. The limit ignores runs of a
    /// machine whose clock was ahead, until their time has come.
    pub async fn finished_slots(
        &self,
        until: Timestamp,
    ) -> Result<BTreeMap<String, Timestamp>, StoreError> {
        let query = "SELECT job, MAX(slot) AS slot FROM job_runs \
                     WHERE ended_at IS NOT NULL AND slot <= $1 GROUP BY job";
        let read = |row: &Columns<'_>| Ok((row.get("job")?, row.get("slot")?));
        Ok(self.fetch(query, params![until], read).await?.items.into_iter().collect())
    }

    /// Returns the newest run of each job.
    pub async fn last_job_runs(&self) -> Result<Rows<JobRun>, StoreError> {
        let query = "WHERE slot = (SELECT MAX(slot) FROM job_runs AS newest \
                     WHERE newest.job = job_runs.job) ORDER BY job";
        self.find(query, []).await
    }

    /// Acquires or renews the lease of that name. Returns false if another holder sent a heartbeat
    /// within `dead_after`, or did so by a clock that has since been set back.
    pub async fn take_lease(
        &self,
        name: &str,
        holder: &str,
        dead_after: Duration,
    ) -> Result<bool, StoreError> {
        // The database's clock, because the clocks of machines differ.
        let now = self.engine.now_expression();
        let query = format!(
            "INSERT INTO job_leases (name, holder, seen) VALUES ($1, $2, {now}) \
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, seen = excluded.seen \
             WHERE job_leases.holder = excluded.holder OR job_leases.seen < excluded.seen - $3"
        );
        if self.execute(query, params![name, holder, dead_after.as_secs()]).await? > 0 {
            return Ok(true);
        }
        // Another holder has it. If its last heartbeat is still to come, the clock was ahead then:
        // that one counts as sent now. A live holder soon sends the next, a dead one does not.
        let query =
            format!("UPDATE job_leases SET seen = {now} WHERE name = $1 AND seen > {now} + $2");
        self.execute(query, params![name, dead_after.as_secs()]).await?;
        Ok(false)
    }

    /// Sends a heartbeat for a lease. Returns false if another holder has taken it.
    pub async fn renew_lease(&self, name: &str, holder: &str) -> Result<bool, StoreError> {
        let now = self.engine.now_expression();
        let query = format!("UPDATE job_leases SET seen = {now} WHERE name = $1 AND holder = $2");
        Ok(self.execute(query, params![name, holder]).await? > 0)
    }

    /// Releases a lease; does nothing if another holder has it.
    pub async fn release_lease(&self, name: &str, holder: &str) -> Result<(), StoreError> {
        let query = "DELETE FROM job_leases WHERE name = $1 AND holder = $2";
        self.execute(query, params![name, holder]).await.map(drop)
    }

    /// Releases all leases of a holder.
    pub async fn release_leases_of(&self, holder: &str) -> Result<(), StoreError> {
        let query = "DELETE FROM job_leases WHERE holder = $1";
        self.execute(query, params![holder]).await.map(drop)
    }

    /// Returns the holder of a lease if it sent a heartbeat within `dead_after`.
    pub async fn lease_holder(
        &self,
        name: &str,
        dead_after: Duration,
    ) -> Result<Option<String>, StoreError> {
        let now = self.engine.now_expression();
        let query = format!("SELECT holder FROM job_leases WHERE name = $1 AND seen >= {now} - $2");
        let values = params![name, dead_after.as_secs()];
        self.fetch_one("the lease", query, values, |row| row.get("holder")).await
    }
}

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
