//! Takes gradings from the queue and does them, by the worker of `apalis`.
//!
//! Known of that library (1.0.0), and depended on: it sends heartbeats only while no
//! fetched work waits in its buffer, so that it must fetch one at a time; while it shuts down it
//! sends none, so that it is dropped instead and what it had is given back; it ends at the first
//! error of the database, so that it is started anew under another name.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use apalis::layers::WorkerBuilderExt as _;
use apalis::prelude::{BackendExt as _, Codec, WorkerBuilder, WorkerError};
use tokio::time::sleep;

use super::gradings::{FindGrader, Gradings, MAX_UNANSWERED, handle};
use super::job_settings::MAX_MISSED_HEARTBEATS;
use super::name;
use super::queue::Queue;
use selftest_store::{QueuePool, Store, StoreError};

/// How often a worker looks into an empty queue.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How often a worker that is to end checks whether anything is left.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Before the worker is started again after the database has failed.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// How often old rows are removed.
const PRUNE_INTERVAL: Duration = Duration::from_hours(6);

/// Grades the sessions of a queue.
pub struct Worker {
    store: Store,
    queue: Queue,
    find: Arc<FindGrader>,
    concurrency: usize,
    /// How its names in the database begin.
    name: String,
}

/// How working until nothing was left ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEnd {
    /// Nothing was left.
    Drained,
    /// The model did not answer; what was left still waits.
    ModelGone,
}

/// Passes the payload on undecoded: a payload that the library cannot decode ends its worker, and
/// the next one.
#[derive(Debug, Clone)]
struct Undecoded;

impl Codec<Vec<u8>> for Undecoded {
    type Error = std::convert::Infallible;
    type Compact = Vec<u8>;

    fn encode(&self, payload: &Vec<u8>) -> Result<Vec<u8>, Self::Error> {
        Ok(payload.clone())
    }

    fn decode(&self, payload: &Vec<u8>) -> Result<Vec<u8>, Self::Error> {
        Ok(payload.clone())
    }
}

/// Runs the library's worker on the storage of an engine.
macro_rules! run_worker {
    ($library:ident::$storage:ident, $pool:expr, $worker:expr, $name:expr, $gradings:expr) => {{
        let queue = &$worker.queue;
        let config = $library::Config::default()
            .queue(&queue.name)
            .batch_size(1)
            .lock_tasks(false)
            .heartbeat_interval(queue.settings.heartbeat())
            .missed_heartbeats(MAX_MISSED_HEARTBEATS as usize);
        let storage =
            $library::$storage::<Vec<u8>>::new($pool).with_config(config).with_codec(Undecoded);
        WorkerBuilder::new($name)
            .backend(storage.poll_with_interval(POLL_INTERVAL))
            .concurrency($worker.concurrency)
            .catch_panic()
            .data($gradings)
            .build(handle)
            .run()
            .await
    }};
}

impl Worker {
    /// Grades at most `concurrency` sessions at once.
    pub fn new(store: Store, queue: Queue, find: Arc<FindGrader>, concurrency: usize) -> Self {
        Self { store, queue, find, concurrency: concurrency.max(1), name: name::fresh() }
    }

    /// Works, for ever. After it was dropped, [`Worker::release`] gives back what it had.
    pub async fn run(&self) {
        let prune = async {
            loop {
                if let Err(error) = self.queue.prune().await {
                    tracing::warn!("old rows stay in the queue: {error}");
                }
                sleep(PRUNE_INTERVAL).await;
            }
        };
        let work = async {
            for start in 0_u64.. {
                let ended = self.work(start, self.gradings(true)).await;
                let why = ended.err().map_or_else(String::new, |error| format!(": {error}"));
                tracing::warn!("the queue cannot be read{why}; trying again");
                sleep(RESTART_DELAY).await;
                self.release().await;
            }
        };
        tokio::join!(prune, work);
    }

    /// Works until nothing waits any more, or the model does not answer.
    pub async fn drain(&self) -> Result<WorkerEnd, StoreError> {
        // There may be no time for a heartbeat, with which a worker does this.
        self.queue.recover().await?;
        let gradings = self.gradings(false);
        let end = tokio::select! {
            ended = self.work(0, Arc::clone(&gradings)) => {
                let why = ended.err().map_or_else(|| "its worker ended".into(), Into::into);
                Err(self.queue.database.failed(sqlx::Error::AnyDriverError(why)))
            }
            end = self.until_idle(&gradings) => end,
        };
        self.release().await;
        end
    }

    async fn until_idle(&self, gradings: &Gradings) -> Result<WorkerEnd, StoreError> {
        loop {
            if gradings.unanswered.load(Ordering::Relaxed) >= MAX_UNANSWERED {
                return Ok(WorkerEnd::ModelGone);
            }
            if !self.queue.is_busy(&self.name).await? {
                return Ok(WorkerEnd::Drained);
            }
            sleep(IDLE_CHECK_INTERVAL).await;
        }
    }

    /// Gives back the gradings that a dropped run has not finished.
    pub async fn release(&self) {
        if let Err(error) = self.queue.release(&self.name).await {
            tracing::warn!("what was begun waits for a moment longer: {error}");
        }
    }

    fn gradings(&self, waits_for_model: bool) -> Arc<Gradings> {
        Arc::new(Gradings {
            store: self.store.clone(),
            find: Arc::clone(&self.find),
            settings: self.queue.settings.clone(),
            waits_for_model,
            unanswered: AtomicU32::new(0),
        })
    }

    /// Runs the library's worker until it ends. Each start has a name of its own: the library
    /// refuses one that was in use a moment ago.
    async fn work(&self, start: u64, gradings: Arc<Gradings>) -> Result<(), WorkerError> {
        let name = format!("{}-{start}", self.name);
        match &self.queue.database.pool {
            QueuePool::Sqlite(pool) => {
                run_worker!(apalis_sqlite::SqliteStorage, pool, self, name, gradings)
            }
            #[cfg(feature = "postgres")]
            QueuePool::Postgres(pool) => {
                run_worker!(apalis_postgres::PostgresStorage, pool, self, name, gradings)
            }
        }
    }
}
