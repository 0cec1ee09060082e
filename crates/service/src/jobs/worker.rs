//! Takes gradings from the queue and does them, by the worker of `apalis`.
//!
//! What is known of that library (1.0.0), and depended on: it gives signs of life only while no
//! fetched work waits in its buffer, so that it must fetch one at a time; while it shuts down it
//! gives none, so that it is dropped instead and what it had is given back; it ends at the first
//! error of the database, so that it is started anew under another name.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use apalis::layers::WorkerBuilderExt as _;
use apalis::prelude::{BackendExt as _, Codec, WorkerBuilder, WorkerError};
use tokio::time::sleep;

use super::gradings::{FindGrader, GONE_AFTER, Gradings, handle};
use super::name;
use super::queue::Queue;
use super::settings::MISSED_HEARTBEATS;
use selftest_store::{QueuePool, Store, StoreError};

/// Between two looks into an empty queue.
const POLL: Duration = Duration::from_millis(250);

/// Between two looks whether everything is done.
const LOOK: Duration = Duration::from_millis(100);

/// Before the next try after the database has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Between two times of taking old rows out.
const PRUNE: Duration = Duration::from_hours(6);

/// Grades the sessions of a queue.
pub struct Worker {
    store: Store,
    queue: Queue,
    find: Arc<FindGrader>,
    concurrency: usize,
    name: String,
    /// How often it was started.
    starts: AtomicU32,
}

/// How working until nothing was left ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEnd {
    /// Nothing was left.
    Drained,
    /// The model did not answer; what was left still waits.
    ModelGone,
}

/// Hands work on as it is: what the library cannot read ends its worker, and the next one.
#[derive(Debug, Clone)]
struct AsItIs;

impl Codec<Vec<u8>> for AsItIs {
    type Error = std::convert::Infallible;
    type Compact = Vec<u8>;

    fn encode(&self, work: &Vec<u8>) -> Result<Vec<u8>, Self::Error> {
        Ok(work.clone())
    }

    fn decode(&self, work: &Vec<u8>) -> Result<Vec<u8>, Self::Error> {
        Ok(work.clone())
    }
}

/// Runs the library's worker on either engine.
macro_rules! work {
    ($storage:ty, $config:ty, $pool:expr, $worker:expr, $name:expr, $gradings:expr) => {{
        let queue = &$worker.queue;
        let config = <$config>::default()
            .queue(&queue.name)
            .batch_size(1)
            .lock_tasks(false)
            .heartbeat_interval(queue.settings.heartbeat())
            .missed_heartbeats(MISSED_HEARTBEATS as usize);
        let storage = <$storage>::new($pool).with_config(config).with_codec(AsItIs);
        let storage = storage.poll_with_interval(POLL);
        let builder = WorkerBuilder::new($name).backend(storage);
        let builder = builder.concurrency($worker.concurrency).catch_panic().data($gradings);
        builder.build(handle).run().await
    }};
}

impl Worker {
    /// Grades at most `concurrency` sessions at once.
    pub fn new(store: Store, queue: Queue, find: Arc<FindGrader>, concurrency: usize) -> Self {
        let (name, starts) = (name::fresh(), AtomicU32::new(0));
        Self { store, queue, find, concurrency: concurrency.max(1), name, starts }
    }

    /// Works, for ever. After it was dropped, [`Worker::release`] gives back what it had.
    pub async fn run(&self) {
        let prune = async {
            loop {
                if let Err(error) = self.queue.prune().await {
                    tracing::warn!("old rows stay in the queue: {error}");
                }
                sleep(PRUNE).await;
            }
        };
        let work = async {
            loop {
                let ended = self.work(&self.gradings(true)).await;
                let why = ended.err().map_or_else(String::new, |error| format!(": {error}"));
                tracing::warn!("the queue cannot be read{why}; trying again");
                sleep(PAUSE).await;
                self.release().await;
                self.starts.fetch_add(1, Ordering::Relaxed);
            }
        };
        tokio::join!(prune, work);
    }

    /// Works until nothing waits any more, or the model does not answer.
    pub async fn drain(&self) -> Result<WorkerEnd, StoreError> {
        // There may be no time for a sign of life, with which a worker does this.
        self.queue.recover().await?;
        let gradings = self.gradings(false);
        let end = tokio::select! {
            ended = self.work(&gradings) => {
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
            if gradings.silent.load(Ordering::Relaxed) >= GONE_AFTER {
                return Ok(WorkerEnd::ModelGone);
            }
            if !self.queue.is_busy(&self.current_name()).await? {
                return Ok(WorkerEnd::Drained);
            }
            sleep(LOOK).await;
        }
    }

    /// Gives back what a dropped run has not finished.
    pub async fn release(&self) {
        if let Err(error) = self.queue.release(&self.current_name()).await {
            tracing::warn!("what was begun waits for a moment longer: {error}");
        }
    }

    fn gradings(&self, patient: bool) -> Arc<Gradings> {
        Arc::new(Gradings {
            store: self.store.clone(),
            find: Arc::clone(&self.find),
            settings: self.queue.settings.clone(),
            patient,
            silent: AtomicU32::new(0),
        })
    }

    fn current_name(&self) -> String {
        format!("{}-{}", self.name, self.starts.load(Ordering::Relaxed))
    }

    async fn work(&self, gradings: &Arc<Gradings>) -> Result<(), WorkerError> {
        let (name, gradings) = (self.current_name(), Arc::clone(gradings));
        match &self.queue.database.pool {
            QueuePool::Sqlite(pool) => work!(
                apalis_sqlite::SqliteStorage<Vec<u8>>,
                apalis_sqlite::Config,
                pool,
                self,
                name,
                gradings
            ),
            #[cfg(feature = "postgres")]
            QueuePool::Postgres(pool) => work!(
                apalis_postgres::PostgresStorage<Vec<u8>>,
                apalis_postgres::Config,
                pool,
                self,
                name,
                gradings
            ),
        }
    }
}
