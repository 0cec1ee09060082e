//! The queue of sessions that wait to be graded by a model, on the tables of `apalis`: any number
//! of workers take from it, on any number of machines, and no session is in it twice.
//!
//! What is in it is in the database: it outlives every process. Grades nothing itself.

mod entry;
mod tables;

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};
use sqlx::{AssertSqlSafe, Row as _};

use super::settings::JobSettings;
pub use entry::{FailedGrading, Grading, GradingRequest, QueueCounts};
use selftest_store::{QueueDatabase, QueuePool, StoreError};
use selftest_text::one_line;
use tables::{FAILED, RUNNING, Tables, WAITING, state};

/// Sessions that are added in one transaction.
const BATCH: usize = 500;

/// Bytes of the words about a failure.
const WORDS: usize = 1000;

/// The queue. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Queue {
    pub(super) database: QueueDatabase,
    tables: Tables,
    /// The name of the queue in its tables.
    pub(super) name: String,
    pub(super) settings: JobSettings,
}

/// The same statement on either engine; `$pool` is its pool there.
macro_rules! on {
    ($queue:expr, $pool:ident => $work:expr) => {{
        let done = match &$queue.database.pool {
            QueuePool::Sqlite($pool) => $work,
            #[cfg(feature = "postgres")]
            QueuePool::Postgres($pool) => $work,
        };
        done.map_err(|error| $queue.database.failed(error))
    }};
}

/// Prepares to add: takes out what has ended, and leaves out what is there.
macro_rules! fresh {
    ($queue:expr, $connection:expr, $gradings:expr) => {{
        let (mut tasks, mut keys) = (Vec::new(), HashSet::new());
        if let Some(take_turn) = $queue.tables.take_turn {
            sqlx::query(take_turn).execute(&mut *$connection).await?;
        }
        let remove = format!(
            "DELETE FROM {} WHERE job_type = $1 AND idempotency_key = $2 \
             AND (status = 'Done' OR {FAILED})",
            $queue.tables.jobs
        );
        let find = format!(
            "SELECT id FROM {} WHERE job_type = $1 AND idempotency_key = $2",
            $queue.tables.jobs
        );
        for grading in $gradings {
            let key = grading.key();
            let remove = sqlx::query(AssertSqlSafe(remove.as_str()));
            let remove = remove.bind($queue.name.as_str()).bind(key.as_str());
            remove.execute(&mut *$connection).await?;
            let find = sqlx::query(AssertSqlSafe(find.as_str()));
            let find = find.bind($queue.name.as_str()).bind(key.as_str());
            let is_there = find.fetch_optional(&mut *$connection).await?.is_some();
            if keys.insert(key) && !is_there {
                tasks.push($queue.task(grading));
            }
        }
        tasks
    }};
}

impl Queue {
    /// Opens the queue that belongs to the grades at that address, and makes its tables where
    /// they are missing.
    pub async fn open(address: &str, settings: &JobSettings) -> Result<Self, StoreError> {
        let database = QueueDatabase::open(address).await?;
        let tables = Tables::of(&database.pool);
        let failed = |error: sqlx::Error| database.failed(error);
        match &database.pool {
            QueuePool::Sqlite(pool) => {
                // In one transaction that holds the write lock, so that of several processes that
                // open a fresh database one makes the tables and the others find them.
                let mut writing = pool.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
                let migrator = apalis_sqlite::SqliteStorage::migrations();
                let done = migrator.run_direct(None, &mut *writing, false).await;
                done.map_err(|error| failed(error.into()))?;
                writing.commit().await.map_err(failed)?;
            }
            #[cfg(feature = "postgres")]
            QueuePool::Postgres(pool) => {
                let done = apalis_postgres::PostgresStorage::migrations().run(pool).await;
                done.map_err(|error| failed(error.into()))?;
            }
        }
        let schema = database.schema.as_deref().filter(|schema| *schema != "public");
        let name =
            format!("selftest gradings {}", schema.unwrap_or_default()).trim_end().to_owned();
        Ok(Self { database, tables, name, settings: settings.clone() })
    }

    /// Waits for running queries and tidies up the files beside the database.
    pub async fn close(&self) {
        self.database.close().await;
    }

    /// Adds sessions; those that wait or are being graded already are left out. How many were
    /// added.
    pub async fn enqueue(&self, gradings: &[Grading]) -> Result<u64, StoreError> {
        let mut added = 0;
        for batch in gradings.chunks(BATCH) {
            let tasks = self.add(batch).await;
            added += tasks.map_err(|error| self.database.failed(error))?;
        }
        Ok(added)
    }

    async fn add(&self, gradings: &[Grading]) -> Result<u64, sqlx::Error> {
        match &self.database.pool {
            QueuePool::Sqlite(pool) => {
                let mut writing = pool.begin_with("BEGIN IMMEDIATE").await?;
                let tasks = fresh!(self, writing, gradings);
                let pushed =
                    apalis_sqlite::queries::push_tasks(&mut *writing, &self.name, &tasks).await;
                match pushed {
                    Ok(()) => {}
                    Err(apalis_sqlite::Error::Database(error)) => return Err(error),
                    Err(error) => return Err(sqlx::Error::Encode(Box::new(error))),
                }
                writing.commit().await?;
                Ok(tasks.len() as u64)
            }
            #[cfg(feature = "postgres")]
            QueuePool::Postgres(pool) => {
                let mut writing = pool.begin().await?;
                let tasks = fresh!(self, writing, gradings);
                let added = tasks.len() as u64;
                match apalis_postgres::queries::push_tasks(&mut *writing, &self.name, tasks).await {
                    Ok(()) => {}
                    Err(apalis_postgres::Error::Database(error)) => return Err(error),
                    Err(error) => return Err(sqlx::Error::Encode(Box::new(error))),
                }
                writing.commit().await?;
                Ok(added)
            }
        }
    }

    fn task(&self, grading: &Grading) -> apalis::prelude::Task<Vec<u8>> {
        // The structure is plain data: writing it cannot fail.
        let work = serde_json::to_vec(grading).unwrap_or_default();
        apalis::prelude::TaskBuilder::new(work)
            .idempotency_key(grading.key())
            .max_attempts(self.settings.max_attempts as usize)
            .build()
    }

    /// What became of the last request for a grade of a session by the configured model; `None`
    /// where there was none, or where it was done so long ago that it was taken out.
    pub async fn request(&self, session_id: &str) -> Result<Option<GradingRequest>, StoreError> {
        let Tables { jobs, result, .. } = self.tables;
        let query = format!(
            "SELECT {} AS state, {result} AS result FROM {jobs} \
             WHERE job_type = $1 AND idempotency_key = $2",
            state()
        );
        let key = Grading::new(session_id, None).key();
        on!(self, pool => {
            let query = sqlx::query(AssertSqlSafe(query)).bind(&self.name).bind(key);
            query.fetch_optional(pool).await.and_then(|row| {
                let Some(row) = row else { return Ok(None) };
                Ok(Some(match row.try_get("state")? {
                    "running" => GradingRequest::Running,
                    "waiting" => GradingRequest::Waiting,
                    "failed" => {
                        let result: Option<String> = row.try_get("result")?;
                        GradingRequest::Failed(why(result.as_deref()))
                    }
                    _ => GradingRequest::Done,
                }))
            })
        })
    }

    /// How many gradings are in which state.
    pub async fn counts(&self) -> Result<QueueCounts, StoreError> {
        let query = format!(
            "SELECT {} AS state, COUNT(*) AS number FROM {} WHERE job_type = $1 GROUP BY 1",
            state(),
            self.tables.jobs
        );
        on!(self, pool => {
            let query = sqlx::query(AssertSqlSafe(query)).bind(&self.name);
            query.fetch_all(pool).await.and_then(|rows| {
                let mut counts = QueueCounts::default();
                for row in rows {
                    let number = unsigned(row.try_get("number")?);
                    match row.try_get("state")? {
                        "running" => counts.running = number,
                        "waiting" => counts.waiting = number,
                        "failed" => counts.failed = number,
                        _ => counts.done = number,
                    }
                }
                Ok(counts)
            })
        })
    }

    /// Workers that have given a sign of life.
    pub async fn workers(&self) -> Result<u64, StoreError> {
        let Tables { workers, silence, .. } = self.tables;
        let query =
            format!("SELECT COUNT(*) FROM {workers} WHERE worker_type = $1 AND {silence} < $2");
        on!(self, pool => {
            let query = sqlx::query_scalar(AssertSqlSafe(query)).bind(&self.name);
            query.bind(self.dead_after()).fetch_one(pool).await.map(unsigned)
        })
    }

    /// What the queue was opened with.
    pub fn settings(&self) -> &JobSettings {
        &self.settings
    }

    /// Whether something waits, or one of these workers is at something.
    pub(super) async fn is_busy(&self, worker: &str) -> Result<bool, StoreError> {
        let query = format!(
            "SELECT id FROM {} WHERE job_type = $1 \
             AND ({WAITING} OR ({RUNNING} AND lock_by = $2)) LIMIT 1",
            self.tables.jobs
        );
        on!(self, pool => {
            let query = sqlx::query(AssertSqlSafe(query)).bind(&self.name).bind(worker);
            query.fetch_optional(pool).await.map(|row| row.is_some())
        })
    }

    /// The gradings that are not tried again by themselves, the newest first, at most `limit`.
    pub async fn failed(&self, limit: u32) -> Result<Vec<FailedGrading>, StoreError> {
        let Tables { jobs, result, done_at, .. } = self.tables;
        let query = format!(
            "SELECT id, job, {result} AS result, {done_at} AS at, \
             CAST(attempts AS BIGINT) AS attempts FROM {jobs} \
             WHERE job_type = $1 AND {FAILED} ORDER BY done_at DESC, id DESC LIMIT $2"
        );
        on!(self, pool => {
            let query = sqlx::query(AssertSqlSafe(query)).bind(&self.name).bind(i64::from(limit));
            query.fetch_all(pool).await.and_then(|rows| {
                let mut failed = Vec::new();
                for row in rows {
                    let work: Vec<u8> = row.try_get("job")?;
                    let at: Option<i64> = row.try_get("at")?;
                    let result: Option<String> = row.try_get("result")?;
                    failed.push(FailedGrading {
                        id: row.try_get("id")?,
                        grading: Grading::read(&work).unwrap_or_else(|_| Grading::unreadable()),
                        attempts: unsigned(row.try_get("attempts")?),
                        at: at.and_then(|at| Timestamp::from_second(at).ok()),
                        why: why(result.as_deref()),
                    });
                }
                Ok(failed)
            })
        })
    }

    /// Tries failed gradings again: that with the id, or all of them. How many there were.
    pub async fn retry(&self, id: Option<&str>) -> Result<u64, StoreError> {
        let Tables { jobs, now, .. } = self.tables;
        let query = format!(
            "UPDATE {jobs} SET status = 'Pending', attempts = 0, run_at = {now}, \
             lock_by = NULL, lock_at = NULL, done_at = NULL \
             WHERE job_type = $1 AND {FAILED} AND (CAST($2 AS TEXT) IS NULL OR id = $2)"
        );
        on!(self, pool => {
            let query = sqlx::query(AssertSqlSafe(query)).bind(&self.name).bind(id);
            query.execute(pool).await.map(|done| done.rows_affected())
        })
    }

    /// Gives back what a worker has that has ended.
    pub(super) async fn release(&self, worker: &str) -> Result<(), StoreError> {
        let Tables { jobs, workers, long_ago, .. } = self.tables;
        let release = format!(
            "UPDATE {jobs} SET status = 'Pending', lock_by = NULL, lock_at = NULL \
             WHERE job_type = $1 AND {RUNNING} AND lock_by = $2"
        );
        // What it has done still refers to it.
        let retire = format!(
            "UPDATE {workers} SET last_seen = {long_ago} WHERE worker_type = $1 AND id = $2"
        );
        for query in [release, retire] {
            on!(self, pool => {
                let query = sqlx::query(AssertSqlSafe(query)).bind(&self.name).bind(worker);
                query.execute(pool).await.map(drop)
            })?;
        }
        Ok(())
    }

    /// Takes the work from workers that are silent, as a worker does at each sign of life. Each
    /// of these counts as an attempt: work that ends its worker must not be tried for ever.
    pub(super) async fn recover(&self) -> Result<u64, StoreError> {
        let Tables { jobs, workers, silence, .. } = self.tables;
        let query = format!(
            "UPDATE {jobs} SET status = 'Pending', lock_by = NULL, lock_at = NULL, \
             attempts = attempts + 1 WHERE job_type = $1 AND {RUNNING} AND lock_by IN \
             (SELECT id FROM {workers} WHERE {silence} >= $2)"
        );
        on!(self, pool => {
            let query = sqlx::query(AssertSqlSafe(query)).bind(&self.name).bind(self.dead_after());
            query.execute(pool).await.map(|done| done.rows_affected())
        })
    }

    /// Takes out what was done long ago, and workers that nothing refers to any more.
    pub(super) async fn prune(&self) -> Result<(), StoreError> {
        let Tables { jobs, workers, silence, done_since, .. } = self.tables;
        let old = format!(
            "DELETE FROM {jobs} WHERE job_type = $1 AND status = 'Done' AND {done_since} > $2"
        );
        let gone = format!(
            "DELETE FROM {workers} WHERE worker_type = $1 AND {silence} > $2 \
             AND NOT EXISTS (SELECT 1 FROM {jobs} WHERE lock_by = {workers}.id)"
        );
        let keep = SignedDuration::from_hours(24 * i64::from(self.settings.keep_days)).as_secs();
        let long = 24 * 60 * 60 + self.dead_after();
        on!(self, pool => {
            let old = sqlx::query(AssertSqlSafe(old)).bind(&self.name).bind(keep);
            old.execute(pool).await.map(drop)
        })?;
        on!(self, pool => {
            let gone = sqlx::query(AssertSqlSafe(gone)).bind(&self.name).bind(long);
            gone.execute(pool).await.map(drop)
        })
    }

    fn dead_after(&self) -> i64 {
        i64::try_from(self.settings.dead_after().as_secs()).unwrap_or(i64::MAX)
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Why work failed, from what the library keeps as its result: `{"Err": "…"}`.
fn why(result: Option<&str>) -> String {
    let result: Option<serde_json::Value> =
        result.and_then(|result| serde_json::from_str(result).ok());
    let words = result.as_ref().and_then(|result| result["Err"].as_str()).unwrap_or("no reason");
    one_line(words.strip_prefix("AbortError: ").unwrap_or(words), WORDS)
}

#[cfg(test)]
mod tests;
