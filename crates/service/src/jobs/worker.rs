//! Processes gradings from the queue with the worker of `apalis`.
//!
//! This relies on known behavior of that library (1.0.0). It sends heartbeats only while its buffer
//! is empty, so it must fetch one entry at a time. It sends none while it shuts down, so it is
//! dropped instead and its entries are returned to the queue. It stops at the first database error,
//! so it is restarted under another name.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use apalis::layers::WorkerBuilderExt as _;
use apalis::prelude::{
    AbortError, Attempt, BackendExt as _, BoxDynError, Codec, Data, WorkerBuilder, WorkerError,
};
use futures_util::future::BoxFuture;
use tokio::time::sleep;

use super::queue::{GradingJob, GradingQueue};
use super::summary::{GradingError, JobModelError};
use super::{JobSettings, MAX_MISSED_HEARTBEATS};
use crate::grader::quality::QualityGrader;
use selftest_store::{QueuePool, Store, StoreError};
use selftest_text::one_line;

/// Interval between polls of an empty queue.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Interval between checks for remaining work while draining.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Delay before the worker is restarted after a database error.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// Interval between removals of old rows.
const PRUNE_INTERVAL: Duration = Duration::from_hours(6);

/// Grades the sessions of a queue.
pub struct GradingWorker {
    store: Store,
    queue: GradingQueue,
    find: Arc<FindGrader>,
    concurrency: usize,
    /// Prefix of its names in the database.
    name: String,
}

/// Result of draining the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainOutcome {
    /// The queue is empty.
    Drained,
    /// The model did not answer; the remaining gradings still wait.
    ModelGone,
}

/// Passes the payload on undecoded. A payload that the library cannot decode would stop this
/// worker, and then the next one.
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

impl GradingWorker {
    /// Creates a worker that grades up to `concurrency` sessions at once.
    pub fn new(
        store: Store,
        queue: GradingQueue,
        find: Arc<FindGrader>,
        concurrency: usize,
    ) -> Self {
        Self {
            store,
            queue,
            find,
            concurrency: concurrency.max(1),
            name: super::unique_worker_name(),
        }
    }

    /// Works forever. After this future is dropped, [`GradingWorker::release`] returns its unfinished
    /// gradings.
    pub async fn run(&self) {
        let prune = async {
            loop {
                if let Err(error) = self.queue.prune().await {
                    tracing::warn!("old rows stay in the queue: {error}");
                }
                sleep(PRUNE_INTERVAL).await;
            }
        };
        let clock = async {
            loop {
                if let Err(error) = self.queue.forget_future_times().await {
                    tracing::debug!("times of the queue are not looked at: {error}");
                }
                sleep(self.queue.settings.heartbeat()).await;
            }
        };
        let work = async {
            for start in 0_u64.. {
                let ended = self.work(start, self.gradings(true)).await;
                let why = ended.err().map_or_else(String::new, |error| format!(": {error}"));
                tracing::warn!("the queue cannot be read{why}; trying again");
                sleep(RESTART_DELAY).await;
                // Otherwise its gradings would wait until its heartbeats count as missing.
                self.release().await;
            }
        };
        tokio::join!(prune, clock, work);
    }

    /// Works until the queue is empty or the model does not answer.
    pub async fn drain(&self) -> Result<DrainOutcome, StoreError> {
        // A worker does this with each heartbeat, but draining may end before the first one.
        self.queue.forget_future_times().await?;
        self.queue.requeue_abandoned().await?;
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

    async fn until_idle(&self, gradings: &GradingRunner) -> Result<DrainOutcome, StoreError> {
        loop {
            if gradings.unanswered.load(Ordering::Relaxed) >= MAX_UNANSWERED {
                return Ok(DrainOutcome::ModelGone);
            }
            if !self.queue.is_busy(&self.name).await? {
                return Ok(DrainOutcome::Drained);
            }
            sleep(IDLE_CHECK_INTERVAL).await;
        }
    }

    /// Returns the gradings that a dropped run has not finished to the queue.
    pub async fn release(&self) {
        if let Err(error) = self.queue.release_worker(&self.name).await {
            tracing::warn!("what was begun waits for a moment longer: {error}");
        }
    }

    fn gradings(&self, waits_for_model: bool) -> Arc<GradingRunner> {
        Arc::new(GradingRunner {
            store: self.store.clone(),
            find: Arc::clone(&self.find),
            settings: self.queue.settings.clone(),
            should_wait_for_model: waits_for_model,
            unanswered: AtomicU32::new(0),
        })
    }

    /// Runs the library's worker until it stops. Every start uses a new name because the library
    /// rejects one that was in use a moment ago.
    async fn work(&self, start: u64, gradings: Arc<GradingRunner>) -> Result<(), WorkerError> {
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

/// Name of this work in the log, in the style of the scheduled jobs.
const NAME: &str = "run_session_grading";

/// Interval between attempts to claim a session that another process is grading.
const CLAIM_INTERVAL: Duration = Duration::from_secs(1);

/// Consecutive gradings without an answer after which the model counts as gone.
pub(super) const MAX_UNANSWERED: u32 = 2;

/// Finds the grader for a model (default: the configured one), or returns the reason that there is
/// none.
pub type FindGrader = dyn Fn(Option<String>) -> BoxFuture<'static, Result<QualityGrader, JobModelError>>
    + Send
    + Sync;

/// Dependencies of a grading.
pub(super) struct GradingRunner {
    pub(super) store: Store,
    pub(super) find: Arc<FindGrader>,
    pub(super) settings: JobSettings,
    /// True if the worker waits for a model that does not answer.
    pub(super) should_wait_for_model: bool,
    /// Number of consecutive gradings without an answer from the model.
    pub(super) unanswered: AtomicU32,
}

impl GradingRunner {
    async fn grade(&self, grading: &GradingJob) -> Result<&'static str, GradingError> {
        let GradingJob { session_id, model, requested_at } = grading;
        let found = self.store.grade(session_id).await?.ok_or(GradingError::NoRuleGrade)?;
        let grader = (self.find)(model.clone()).await?;
        // A backfill may be grading the same session.
        let claim = loop {
            match grader.claim(session_id, self.settings.heartbeat()).await? {
                Some(claim) => break claim,
                None => tokio::time::sleep(CLAIM_INTERVAL).await,
            }
        };
        let known = self.store.session_quality_grades(session_id).await?.items;
        // A worker may have died after saving the grade but before acknowledging it. The model is
        // not asked twice for one request.
        // A grade of a day that is still to come was made while the clock was ahead, and says nothing
        // about this request.
        let latest = selftest_clock::latest_elsewhere(selftest_clock::now());
        let is_there = known.iter().any(|grade| {
            let answers = *requested_at..=latest;
            grade.model == grader.model_id() && answers.contains(&grade.ts)
        });
        let result = if is_there {
            Ok("graded before")
        } else {
            // No `?` here: a failed grading has to release its claim, too.
            let graded = grader.grade(session_id, &found.session_file).await;
            graded.map(|_| "graded").map_err(GradingError::from)
        };
        claim.release().await?;
        result
    }

    async fn run(&self, grading: &GradingJob, attempt: usize) -> Result<(), BoxDynError> {
        let session = one_line(&grading.session_id, 80);
        let most = self.settings.max_attempts as usize;
        tracing::info!("{NAME} START  session={session} attempt={attempt}");
        let started = Instant::now();
        // Crashed workers count as attempts, so the number can exceed the maximum.
        let done = if attempt > most {
            Err(GradingError::WorkerEnded(attempt - 1))
        } else {
            self.grade(grading).await
        };
        let elapsed = started.elapsed().as_millis();
        let fault = match done {
            Ok(how) => {
                // Only failures in a row mean that the model is gone.
                self.unanswered.store(0, Ordering::Relaxed);
                tracing::info!("{NAME} DONE  session={session} {how} elapsed={elapsed}ms");
                return Ok(());
            }
            Err(fault) => fault,
        };
        let why = one_line(&fault.to_string(), 400);
        tracing::warn!(
            "{NAME} FAILED  session={session} attempt={attempt} elapsed={elapsed}ms error={why}"
        );
        if fault.is_permanent() {
            self.unanswered.store(0, Ordering::Relaxed);
            return Err(Box::new(AbortError::new(fault)));
        }
        let unanswered = self.unanswered.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.should_wait_for_model && unanswered >= MAX_UNANSWERED {
            // `GradingWorker::drain` notices and drops this future, so the attempt is not counted
            // against the session.
            std::future::pending::<()>().await;
        }
        if self.should_wait_for_model && attempt < most {
            // Wait here and not in the queue: while the model does not answer, the next entry would
            // fail too.
            tokio::time::sleep(self.settings.wait_after(attempt)).await;
        }
        // As text: the queue stores the message, and `selftest worker list` shows it.
        Err(why.into())
    }
}

/// Handler that the queue library calls for each entry.
pub(super) async fn handle(
    work: Vec<u8>,
    attempt: Attempt,
    gradings: Data<Arc<GradingRunner>>,
) -> Result<(), BoxDynError> {
    // With an `AbortError`, apalis gives up at once. An entry that cannot be read now cannot be
    // read later either.
    let grading = GradingJob::read(&work).map_err(GradingError::from).map_err(AbortError::new)?;
    gradings.run(&grading, attempt.current()).await
}
