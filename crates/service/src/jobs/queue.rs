//! The queue of sessions to be graded by a model, on the tables of `apalis`. Any number of workers
//! on any number of machines take entries from it, and no session is queued twice.
//!
//! Entries are stored in the database and survive restarts. This module grades nothing itself.

use std::collections::HashSet;

use apalis::prelude::{Task, TaskBuilder};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, Database, Encode, Executor, IntoArguments, Type};

use super::JobSettings;
use selftest_store::{QueueDatabase, QueuePool, StoreError};
use selftest_text::{clip, digest, one_line};

/// Number of sessions added in one transaction.
const BATCH_SIZE: usize = 500;

/// Seconds per day.
const DAY: i64 = 24 * 60 * 60;

/// Maximum bytes of a failure reason.
const MAX_REASON_BYTES: usize = 1000;

/// Condition for a grading that is not retried automatically.
const FAILED: &str = "(status = 'Killed' OR (status = 'Failed' AND attempts >= max_attempts))";

/// Condition for a grading held by a worker. The library sets `Queued` when a worker fetches it.
const RUNNING: &str = "status IN ('Queued', 'Running')";

/// Condition for a grading that waits for a worker.
const WAITING: &str = "(status = 'Pending' OR (status = 'Failed' AND attempts < max_attempts))";

/// The queue. Clones share its connections.
#[derive(Debug, Clone)]
pub struct GradingQueue {
    pub(super) database: QueueDatabase,
    /// Name of the queue in the library's tables.
    pub(super) name: String,
    pub(super) settings: JobSettings,
}

impl GradingQueue {
    /// Opens the queue that belongs to the grades at that address, and creates missing tables.
    pub async fn open(address: &str, settings: &JobSettings) -> Result<Self, StoreError> {
        let database = QueueDatabase::open(address).await?;
        create_tables(&database.pool).await.map_err(|error| database.failed(error))?;
        let schema = database.schema.as_deref().filter(|schema| *schema != "public");
        let name =
            format!("selftest gradings {}", schema.unwrap_or_default()).trim_end().to_owned();
        Ok(Self { database, name, settings: settings.clone() })
    }

    /// Waits for running queries, then closes the connections and removes the files beside the
    /// database.
    pub async fn close(&self) {
        self.database.close().await;
    }

    /// Returns the settings that the queue was opened with.
    pub fn settings(&self) -> &JobSettings {
        &self.settings
    }

    /// Adds sessions, except those already waiting or running. Returns the number added.
    pub async fn enqueue(&self, gradings: &[GradingJob]) -> Result<u64, StoreError> {
        let mut added = 0;
        for batch in gradings.chunks(BATCH_SIZE) {
            added += self.add(batch).await.map_err(|error| self.database.failed(error))?;
        }
        Ok(added as u64)
    }

    async fn add(&self, gradings: &[GradingJob]) -> Result<usize, sqlx::Error> {
        match &self.database.pool {
            QueuePool::Sqlite(pool) => {
                // Locked before the keys are looked up, so that no other process adds the same
                // session in between.
                let mut writing = pool.begin_with("BEGIN IMMEDIATE").await?;
                let tasks = self.new_tasks::<sqlx::Sqlite>(&mut *writing, gradings).await?;
                let pushed =
                    apalis_sqlite::queries::push_tasks(&mut *writing, &self.name, &tasks).await;
                pushed.map_err(|error| match error {
                    apalis_sqlite::Error::Database(error) => error,
                    error => sqlx::Error::Encode(error.into()),
                })?;
                writing.commit().await?;
                Ok(tasks.len())
            }
            #[cfg(feature = "postgres")]
            QueuePool::Postgres(pool) => {
                let mut writing = pool.begin().await?;
                // Serializes writers as on SQLite, so that two transactions cannot add the same
                // session.
                let turn = "SELECT pg_advisory_xact_lock(hashtextextended('selftest queue', 0))";
                writing.execute(turn).await?;
                let tasks = self.new_tasks::<sqlx::Postgres>(&mut *writing, gradings).await?;
                let added = tasks.len();
                let pushed =
                    apalis_postgres::queries::push_tasks(&mut *writing, &self.name, tasks).await;
                pushed.map_err(|error| match error {
                    apalis_postgres::Error::Database(error) => error,
                    error => sqlx::Error::Encode(error.into()),
                })?;
                writing.commit().await?;
                Ok(added)
            }
        }
    }

    /// Creates tasks for the gradings that are not queued. Finished tasks with the same key are
    /// removed first because the library keeps them.
    async fn new_tasks<DB>(
        &self,
        writing: &mut DB::Connection,
        gradings: &[GradingJob],
    ) -> Result<Vec<Task<Vec<u8>>>, sqlx::Error>
    where
        DB: Database<Arguments: IntoArguments<DB>>,
        for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
        for<'q> &'q str: Encode<'q, DB> + Type<DB>,
    {
        let with_key = "FROM jobs WHERE job_type = $1 AND idempotency_key = $2";
        let remove = format!("DELETE {with_key} AND (status = 'Done' OR {FAILED})");
        let find = format!("SELECT id {with_key}");
        let (mut tasks, mut keys) = (Vec::new(), HashSet::new());
        for grading in gradings {
            let key = grading.key();
            let query =
                |sql: &str| sqlx::query::<DB>(AssertSqlSafe(sql)).bind(&*self.name).bind(&*key);
            // A finished or failed entry frees its key: asking again grades again.
            query(&remove).execute(&mut *writing).await?;
            let is_there = query(&find).fetch_optional(&mut *writing).await?.is_some();
            // `keys` finds a session that one call names twice, which the tables do not show before
            // the insert.
            if !is_there && keys.insert(key.clone()) {
                // Plain data, so serializing cannot fail.
                let task = TaskBuilder::new(serde_json::to_vec(grading).unwrap_or_default());
                let max_attempts = self.settings.max_attempts as usize;
                tasks.push(task.idempotency_key(key).max_attempts(max_attempts).build());
            }
        }
        Ok(tasks)
    }

    /// Returns the state of the last request to grade a session with the configured model; `None`
    /// if there was none or it has been pruned.
    pub async fn request_state(
        &self,
        session_id: &str,
    ) -> Result<Option<GradingState>, StoreError> {
        let query = format!(
            "SELECT {}, CAST(last_result AS TEXT) FROM jobs \
             WHERE job_type = $1 AND idempotency_key = $2",
            state_expression()
        );
        let key = GradingJob::new(session_id, None).key();
        let found: Vec<(String, Option<String>)> =
            self.database.select(query, &[&self.name, &key]).await?;
        Ok(found.first().map(|(state, result)| match state.as_str() {
            "running" => GradingState::Running,
            "waiting" => GradingState::Waiting,
            "failed" => GradingState::Failed(failure_reason(result.as_deref())),
            _ => GradingState::Done,
        }))
    }

    /// Returns the number of gradings in each state.
    pub async fn counts(&self) -> Result<QueueCounts, StoreError> {
        let query = format!(
            "SELECT {}, COUNT(*) FROM jobs WHERE job_type = $1 GROUP BY 1",
            state_expression()
        );
        let found: Vec<(String, i64)> = self.database.select(query, &[&self.name]).await?;
        let count = |state: &str| {
            found.iter().find(|(name, _)| name == state).map_or(0, |(_, count)| unsigned(*count))
        };
        Ok(QueueCounts {
            waiting: count("waiting"),
            running: count("running"),
            failed: count("failed"),
            done: count("done"),
        })
    }

    /// Returns the number of live workers.
    pub async fn workers(&self) -> Result<u64, StoreError> {
        let (silence, dead_after) = (self.dialect().silence, self.dead_after());
        let query = format!(
            "SELECT COUNT(*) FROM workers WHERE worker_type = $1 AND {silence} < {dead_after}"
        );
        let found: Vec<(i64,)> = self.database.select(query, &[&self.name]).await?;
        Ok(found.first().map_or(0, |(count,)| unsigned(*count)))
    }

    /// Returns true if a grading is waiting, or a worker whose name starts with `worker` is
    /// processing one.
    pub(super) async fn is_busy(&self, worker: &str) -> Result<bool, StoreError> {
        let query = format!(
            "SELECT id FROM jobs WHERE job_type = $1 \
             AND ({WAITING} OR ({RUNNING} AND SUBSTR(lock_by, 1, LENGTH($2)) = $2)) LIMIT 1"
        );
        let found: Vec<(String,)> = self.database.select(query, &[&self.name, worker]).await?;
        Ok(!found.is_empty())
    }

    /// Returns up to `limit` gradings that are not retried automatically, newest first.
    pub async fn failed(&self, limit: u32) -> Result<Vec<FailedGrading>, StoreError> {
        type Row = (String, Vec<u8>, i64, Option<i64>, Option<String>);
        let query = format!(
            "SELECT id, job, CAST(attempts AS BIGINT), {}, CAST(last_result AS TEXT) FROM jobs \
             WHERE job_type = $1 AND {FAILED} ORDER BY done_at DESC, id DESC LIMIT {limit}",
            self.dialect().done_at
        );
        let found: Vec<Row> = self.database.select(query, &[&self.name]).await?;
        let failed = found.into_iter().map(|(id, work, attempts, at, result)| FailedGrading {
            id,
            grading: GradingJob::read(&work).unwrap_or_else(|_| GradingJob::unreadable()),
            attempts: unsigned(attempts),
            at: at.and_then(|at| Timestamp::from_second(at).ok()),
            why: failure_reason(result.as_deref()),
        });
        Ok(failed.collect())
    }

    /// Queues failed gradings again: the one with this id, or all. Returns their number.
    pub async fn retry_failed(&self, id: Option<&str>) -> Result<u64, StoreError> {
        let query = format!(
            "UPDATE jobs SET status = 'Pending', attempts = 0, run_at = {}, \
             lock_by = NULL, lock_at = NULL, done_at = NULL \
             WHERE job_type = $1 AND {FAILED}{}",
            self.dialect().now,
            id.map_or("", |_| " AND id = $2")
        );
        // One placeholder more only if an id is given: engines reject values that no placeholder
        // takes.
        let values: Vec<&str> = [self.name.as_str()].into_iter().chain(id).collect();
        self.database.execute(query, &values).await
    }

    /// Returns the gradings of a finished worker to the queue. `worker` is the start of its name.
    pub(super) async fn release_worker(&self, worker: &str) -> Result<(), StoreError> {
        let give_back = format!(
            "UPDATE jobs SET status = 'Pending', lock_by = NULL, lock_at = NULL \
             WHERE job_type = $1 AND {RUNNING} AND SUBSTR(lock_by, 1, LENGTH($2)) = $2"
        );
        // The worker's row stays because its finished gradings refer to it.
        let retire = format!(
            "UPDATE workers SET last_seen = {} WHERE worker_type = $1 AND SUBSTR(id, 1, LENGTH($2)) = $2",
            self.dialect().long_ago
        );
        for query in [give_back, retire] {
            self.database.execute(query, &[&self.name, worker]).await?;
        }
        Ok(())
    }

    /// Requeues the gradings of workers that stopped sending heartbeats; workers do this with each
    /// heartbeat of their own. It counts as an attempt, so a grading that crashes its worker is not
    /// retried forever.
    pub(super) async fn requeue_abandoned(&self) -> Result<u64, StoreError> {
        let (silence, dead_after) = (self.dialect().silence, self.dead_after());
        let query = format!(
            "UPDATE jobs SET status = 'Pending', lock_by = NULL, lock_at = NULL, \
             attempts = attempts + 1 WHERE job_type = $1 AND {RUNNING} \
             AND lock_by IN (SELECT id FROM workers WHERE {silence} >= {dead_after})"
        );
        self.database.execute(query, &[&self.name]).await
    }

    /// Brings times that are still to come back to now: they were written while a clock was ahead.
    /// Otherwise a grading queued then would wait until that day, and the worker that died then
    /// would count as alive until that day.
    pub(super) async fn forget_future_times(&self) -> Result<(), StoreError> {
        let TimeExpressions { now, silence, .. } = self.dialect();
        // Of those that are begun as well: their worker may have died.
        let due = format!("UPDATE jobs SET run_at = {now} WHERE job_type = $1 AND run_at > {now}");
        let seen = format!(
            "UPDATE workers SET last_seen = {now} WHERE worker_type = $1 AND {silence} < 0"
        );
        for query in [due, seen] {
            self.database.execute(query, &[&self.name]).await?;
        }
        Ok(())
    }

    /// Deletes gradings that finished long ago, and workers that nothing refers to.
    pub(super) async fn prune(&self) -> Result<(), StoreError> {
        let TimeExpressions { done_at, silence, .. } = self.dialect();
        let keep_since =
            selftest_clock::now().as_second() - DAY * i64::from(self.settings.keep_days);
        let long = DAY.unsigned_abs() + self.dead_after();
        let old = format!(
            "DELETE FROM jobs WHERE job_type = $1 AND status = 'Done' AND {done_at} < {keep_since}"
        );
        let gone = format!(
            "DELETE FROM workers WHERE worker_type = $1 AND {silence} > {long} \
             AND NOT EXISTS (SELECT 1 FROM jobs WHERE lock_by = workers.id)"
        );
        for query in [old, gone] {
            self.database.execute(query, &[&self.name]).await?;
        }
        Ok(())
    }

    fn dead_after(&self) -> u64 {
        self.settings.dead_after().as_secs()
    }

    fn dialect(&self) -> TimeExpressions {
        match self.database.pool {
            QueuePool::Sqlite(_) => SQLITE,
            #[cfg(feature = "postgres")]
            QueuePool::Postgres(_) => POSTGRES,
        }
    }
}

/// SQL expressions for the time columns of the library's tables.
#[derive(Debug, Clone, Copy)]
struct TimeExpressions {
    /// Current time, in the type of the time columns.
    now: &'static str,
    /// A time far in the past, in the type of the time columns.
    long_ago: &'static str,
    /// End of a grading in seconds since 1970.
    done_at: &'static str,
    /// Seconds since a worker's last heartbeat.
    silence: &'static str,
}

const SQLITE: TimeExpressions = TimeExpressions {
    now: "CAST(strftime('%s', 'now') AS INTEGER)",
    long_ago: "0",
    done_at: "done_at",
    silence: "(CAST(strftime('%s', 'now') AS INTEGER) - last_seen)",
};

#[cfg(feature = "postgres")]
const POSTGRES: TimeExpressions = TimeExpressions {
    now: "now()",
    long_ago: "to_timestamp(0)",
    done_at: "CAST(EXTRACT(EPOCH FROM done_at) AS BIGINT)",
    silence: "EXTRACT(EPOCH FROM now() - last_seen)",
};

/// Returns the SQL expression for the state of a grading, named as in [`QueueCounts`].
fn state_expression() -> String {
    format!(
        "CASE WHEN {RUNNING} THEN 'running' WHEN {WAITING} THEN 'waiting' \
         WHEN {FAILED} THEN 'failed' ELSE 'done' END"
    )
}

/// Creates the library's tables if they are missing.
async fn create_tables(pool: &QueuePool) -> Result<(), sqlx::Error> {
    match pool {
        QueuePool::Sqlite(pool) => {
            // One transaction with the write lock: if several processes open a new database, one
            // creates the tables and the others find them.
            let mut writing = pool.begin_with("BEGIN IMMEDIATE").await?;
            let migrations = apalis_sqlite::SqliteStorage::migrations();
            migrations.run_direct(None, &mut *writing, false).await?;
            writing.commit().await
        }
        #[cfg(feature = "postgres")]
        QueuePool::Postgres(pool) => {
            Ok(apalis_postgres::PostgresStorage::migrations().run(pool).await?)
        }
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Extracts the reason of a failure from the result stored by the library: `{"Err": "…"}`.
fn failure_reason(result: Option<&str>) -> String {
    let result: Option<serde_json::Value> =
        result.and_then(|result| serde_json::from_str(result).ok());
    let reason = result.as_ref().and_then(|result| result["Err"].as_str()).unwrap_or("no reason");
    one_line(reason.strip_prefix("AbortError: ").unwrap_or(reason), MAX_REASON_BYTES)
}

/// Maximum bytes of an id or model name.
const MAX_NAME_BYTES: usize = 512;

/// A request to grade a session with a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GradingJob {
    /// Session id.
    pub session_id: String,
    /// Model name; defaults to the model of the worker's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Time of the request. A newer grade fulfils it.
    pub requested_at: Timestamp,
}

/// An entry of the queue was written by another version or program.
#[derive(Debug, thiserror::Error)]
#[error("it cannot be read: {source}")]
pub(in crate::jobs) struct UnreadableEntryError {
    #[from]
    source: serde_json::Error,
}

impl GradingJob {
    /// Creates a request with the current time.
    pub fn new(session_id: &str, model: Option<&str>) -> Self {
        Self {
            session_id: clip(session_id, MAX_NAME_BYTES),
            model: model.map(|name| clip(name, MAX_NAME_BYTES)),
            requested_at: selftest_clock::now(),
        }
    }

    /// Parses an entry written by [`GradingQueue::enqueue`].
    pub(in crate::jobs) fn read(work: &[u8]) -> Result<Self, UnreadableEntryError> {
        Ok(serde_json::from_slice(work)?)
    }

    /// Returns a placeholder for an entry written by another version or program.
    fn unreadable() -> Self {
        Self { requested_at: Timestamp::UNIX_EPOCH, ..Self::new("(unreadable)", None) }
    }

    /// Returns the key by which duplicates are recognized. It is a digest because ids may be longer
    /// than an index entry.
    fn key(&self) -> String {
        digest::json_sha256_hex(serde_json::json!([self.session_id, self.model]))
    }
}

/// State of a request for a grade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GradingState {
    /// Waiting for a worker.
    Waiting,
    /// Being processed by a worker.
    Running,
    /// The session has been graded.
    Done,
    /// Grading failed, with the reason.
    Failed(String),
}

/// Number of gradings in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueueCounts {
    /// Waiting for a worker.
    pub waiting: u64,
    /// Being processed by a worker.
    pub running: u64,
    /// Given up; see [`GradingQueue::failed`].
    pub failed: u64,
    /// Done, but not yet removed from the tables.
    pub done: u64,
}

/// A grading that is not retried automatically.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedGrading {
    /// Id in the queue.
    pub id: String,
    /// The grading.
    #[serde(flatten)]
    pub grading: GradingJob,
    /// Number of attempts.
    pub attempts: u64,
    /// Time of the failure.
    pub at: Option<Timestamp>,
    /// Reason for the failure.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    struct World {
        queue: GradingQueue,
        folder: TempDir,
    }

    async fn open(folder: &TempDir) -> Result<GradingQueue, StoreError> {
        let address = folder.path().join("grades.db");
        GradingQueue::open(&address.to_string_lossy(), &JobSettings::default()).await
    }

    async fn world() -> World {
        let folder = tempfile::tempdir().unwrap();
        World { queue: open(&folder).await.unwrap(), folder }
    }

    fn gradings(ids: &[&str]) -> Vec<GradingJob> {
        ids.iter().map(|id| GradingJob::new(id, None)).collect()
    }

    impl World {
        async fn sql(&self, statement: &'static str) {
            let QueuePool::Sqlite(pool) = &self.queue.database.pool else { unreachable!() };
            sqlx::query(statement).execute(pool).await.unwrap();
        }

        async fn counts(&self) -> [u64; 4] {
            let counts = self.queue.counts().await.unwrap();
            [counts.waiting, counts.running, counts.failed, counts.done]
        }
    }

    #[tokio::test]
    async fn a_session_waits_once_for_each_model() {
        let world = world().await;
        let queue = &world.queue;
        assert_eq!(queue.enqueue(&gradings(&["a", "b", "a"])).await.unwrap(), 2);
        assert_eq!(queue.enqueue(&gradings(&["b", "c"])).await.unwrap(), 1);
        assert_eq!(queue.enqueue(&[GradingJob::new("a", Some("ollama/x"))]).await.unwrap(), 1);
        assert_eq!(world.counts().await, [4, 0, 0, 0]);
        assert_eq!(queue.request_state("a").await.unwrap(), Some(GradingState::Waiting));
        assert_eq!(queue.request_state("z").await.unwrap(), None);
        for (state, request) in [
            ("'Queued'", GradingState::Running),
            ("'Running'", GradingState::Running),
            ("'Done'", GradingState::Done),
        ] {
            let statement = format!("UPDATE Jobs SET status = {state}");
            world.sql(Box::leak(statement.into_boxed_str())).await;
            assert_eq!(queue.request_state("a").await.unwrap(), Some(request), "{state}");
        }
        assert!(world.folder.path().join("grades-jobs.db").is_file());
    }

    #[tokio::test]
    async fn what_has_ended_may_be_asked_for_again() {
        let world = world().await;
        for state in ["'Done'", "'Killed'", "'Failed', attempts = max_attempts"] {
            world.sql("DELETE FROM Jobs").await;
            assert_eq!(world.queue.enqueue(&gradings(&["a"])).await.unwrap(), 1);
            let statement = format!("UPDATE Jobs SET status = {state}, done_at = 1");
            world.sql(Box::leak(statement.into_boxed_str())).await;
            assert_eq!(world.counts().await[0], 0, "{state}");
            assert_eq!(world.queue.enqueue(&gradings(&["a"])).await.unwrap(), 1, "{state}");
            assert_eq!(world.counts().await, [1, 0, 0, 0], "{state}");
        }
        // A first failed attempt is not final.
        world.sql("UPDATE Jobs SET status = 'Failed', attempts = 1").await;
        assert_eq!(world.queue.enqueue(&gradings(&["a"])).await.unwrap(), 0);
        assert_eq!(world.queue.request_state("a").await.unwrap(), Some(GradingState::Waiting));
    }

    #[tokio::test]
    async fn failures_are_listed_with_their_reason_and_tried_again() {
        let world = world().await;
        let queue = &world.queue;
        let hostile = "id\u{1b}[31m\"'\n%";
        queue.enqueue(&gradings(&["a", hostile])).await.unwrap();
        world
            .sql(
                "UPDATE Jobs SET status = 'Killed', attempts = 2, done_at = 1795000000, \
             last_result = '{\"Err\":\"AbortError: the file\\nis gone\"}'",
            )
            .await;
        let failed = queue.failed(10).await.unwrap();
        assert_eq!(failed.len(), 2);
        assert!(failed.iter().any(|one| one.grading.session_id == hostile));
        assert_eq!((failed[0].attempts, failed[0].why.as_str()), (2, "the file is gone"));
        assert_eq!(failed[0].at.unwrap().as_second(), 1_795_000_000);
        assert_eq!(queue.failed(1).await.unwrap().len(), 1);
        let request = GradingState::Failed("the file is gone".to_owned());
        assert_eq!(queue.request_state(hostile).await.unwrap(), Some(request));

        assert_eq!(queue.retry_failed(Some("01J0000000000000000000000")).await.unwrap(), 0);
        assert_eq!(queue.retry_failed(Some(&failed[0].id)).await.unwrap(), 1);
        assert_eq!(world.counts().await, [1, 0, 1, 0]);
        assert_eq!(queue.retry_failed(None).await.unwrap(), 1);
        assert_eq!(world.counts().await, [2, 0, 0, 0]);
    }

    #[test]
    fn reasons_that_are_none() {
        for result in [None, Some(""), Some("{\"Ok\":null}"), Some("[1"), Some("{\"Err\":7}")] {
            assert_eq!(failure_reason(result), "no reason");
        }
    }

    #[tokio::test]
    async fn work_of_the_dead_and_of_those_that_stop() {
        let world = world().await;
        let queue = &world.queue;
        queue.enqueue(&gradings(&["a", "b", "c"])).await.unwrap();
        world
            .sql(
                "INSERT INTO Workers (id, worker_type, storage_name, last_seen) VALUES \
             ('dead', 'selftest gradings', 's', strftime('%s', 'now') - 31), \
             ('alive', 'selftest gradings', 's', strftime('%s', 'now') - 5), \
             ('old', 'selftest gradings', 's', strftime('%s', 'now') - 100000)",
            )
            .await;
        world
            .sql(
                "UPDATE Jobs SET status = 'Queued', attempts = 1, lock_at = 1, lock_by = \
             CASE WHEN CAST(job AS TEXT) LIKE '%\"a\"%' THEN 'dead' ELSE 'alive' END",
            )
            .await;
        assert_eq!((queue.workers().await.unwrap(), world.counts().await), (1, [0, 3, 0, 0]));
        assert!(!queue.is_busy("dead-2").await.unwrap());
        assert!(queue.is_busy("alive").await.unwrap());
        // A worker that died counts as an attempt, one that was stopped does not.
        assert_eq!(queue.requeue_abandoned().await.unwrap(), 1);
        assert_eq!(world.counts().await, [1, 2, 0, 0]);
        world.sql("UPDATE Jobs SET attempts = 7 WHERE status = 'Pending' AND attempts = 2").await;
        queue.release_worker("alive").await.unwrap();
        assert_eq!((queue.workers().await.unwrap(), world.counts().await), (0, [3, 0, 0, 0]));
        world
            .sql(
                "UPDATE Jobs SET status = 'Done', done_at = 1, lock_by = 'dead' WHERE attempts = 7",
            )
            .await;
        queue.prune().await.unwrap();
        assert_eq!(world.counts().await, [2, 0, 0, 0], "what was done long ago is gone");
        let QueuePool::Sqlite(pool) = &queue.database.pool else { unreachable!() };
        let left: Vec<String> =
            sqlx::query_scalar("SELECT id FROM Workers ORDER BY id").fetch_all(pool).await.unwrap();
        assert_eq!(left, ["dead"], "what refers to it is still there");
    }

    #[tokio::test]
    async fn many_at_once_and_by_many() {
        let folder = tempfile::tempdir().unwrap();
        let ids: Vec<String> = (0..1200).map(|number| number.to_string()).collect();
        let opened = futures_util::future::join_all((0..4).map(|_| open(&folder))).await;
        let queues: Vec<GradingQueue> = opened.into_iter().map(Result::unwrap).collect();
        let all: Vec<GradingJob> = ids.iter().map(|id| GradingJob::new(id, None)).collect();
        let added = queues.iter().map(|queue| queue.enqueue(&all));
        let added = futures_util::future::join_all(added).await;
        assert_eq!(added.into_iter().map(Result::unwrap).sum::<u64>(), 1200);
        assert_eq!(queues[0].counts().await.unwrap().waiting, 1200);
    }
}
