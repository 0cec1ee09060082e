//! Runs the scheduled jobs: each once per slot, in order, on one worker at a time. `schedule`
//! decides which are due.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use tokio::time::sleep;

use super::error::JobError;
use super::job_settings::JobSettings;
use super::lease::ScheduleLease;
use super::schedule::{JobKind, JobSlot, due_slots};
use super::summary::{JobStatus, JobSummary};
use super::{JobContext, gaps, scoring, weekly, worker_name};
use selftest_store::{Store, StoreError};
use selftest_text::one_line;

/// Interval between checks if another worker has released the lease.
const LEASE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Maximum difference between the clocks of workers.
const AHEAD: SignedDuration = SignedDuration::from_hours(1);

/// Runs scheduled jobs.
pub struct Scheduler {
    context: JobContext,
    settings: JobSettings,
    jobs: Vec<JobKind>,
    name: String,
}

impl Scheduler {
    /// Creates a scheduler for these jobs.
    pub fn new(context: JobContext, settings: JobSettings, jobs: Vec<JobKind>) -> Self {
        Self { context, settings, jobs, name: worker_name::unique() }
    }

    fn store(&self) -> &Store {
        self.context.grader.store()
    }

    /// Runs jobs as they become due, forever. After this future is dropped, [`Scheduler::release`]
    /// lets other workers continue at once.
    pub async fn run(&self) {
        loop {
            if let Err(error) = self.run_due(selftest_clock::now()).await {
                tracing::warn!("the schedule cannot be looked at: {error}");
            }
            sleep(self.settings.heartbeat()).await;
        }
    }

    /// Runs all jobs that are due at `now`, in order. Waits while another worker runs scheduled
    /// jobs.
    pub async fn run_due(&self, now: Timestamp) -> Result<Vec<(JobKind, JobSummary)>, StoreError> {
        if self.due(now).await?.is_empty() {
            return Ok(Vec::new());
        }
        let lease = self.lease().await?;
        let mut ran = Vec::new();
        // Check again: another worker may have run them while this one waited for the lease.
        for slot in self.due(now).await? {
            match self.run_slot(&lease, slot).await? {
                Some(summary) => ran.push((slot.job, summary)),
                None => break,
            }
        }
        lease.release().await?;
        Ok(ran)
    }

    /// Runs a job now, even if it is not due. Waits while another worker runs scheduled jobs.
    /// Returns `None` if the lease was lost during the job.
    pub async fn run_now(&self, job: JobKind) -> Result<Option<JobSummary>, StoreError> {
        let lease = self.lease().await?;
        let summary = self.run_slot(&lease, JobSlot { job, at: selftest_clock::now() }).await?;
        lease.release().await?;
        Ok(summary)
    }

    /// Releases the lease of a dropped run.
    pub async fn release(&self) {
        if let Err(error) = ScheduleLease::release_of(self.store(), &self.name).await {
            tracing::warn!("other workers have to wait for a moment: {error}");
        }
    }

    async fn due(&self, now: Timestamp) -> Result<Vec<JobSlot>, StoreError> {
        // Ignores slots recorded by a worker whose clock was far ahead.
        let until = now.checked_add(AHEAD).unwrap_or(now);
        let ended = self.store().finished_slots(until).await?;
        Ok(due_slots(&self.jobs, &self.settings.schedule, &ended, now))
    }

    async fn lease(&self) -> Result<ScheduleLease<'_>, StoreError> {
        let mut told = false;
        loop {
            if let Some(lease) =
                ScheduleLease::acquire(self.store(), &self.name, &self.settings).await?
            {
                return Ok(lease);
            }
            if !told
                && let Some(other) = ScheduleLease::holder(self.store(), &self.settings).await?
            {
                told = true;
                tracing::info!("waiting: worker {} runs scheduled jobs", one_line(&other, 200));
            }
            sleep(LEASE_CHECK_INTERVAL).await;
        }
    }

    /// Runs a job for a slot. Returns `None` if another worker has run it or is running it.
    async fn run_slot(
        &self,
        lease: &ScheduleLease<'_>,
        slot: JobSlot,
    ) -> Result<Option<JobSummary>, StoreError> {
        let (job, store) = (slot.job.name(), self.store());
        let attempt = store.start_job(job, slot.at, &self.name, selftest_clock::now()).await?;
        let Some(attempt) = attempt else {
            return Ok(None);
        };
        tracing::info!("{job} START  slot={} attempt={attempt}", slot.at);
        let started = Instant::now();
        let done = if attempt > self.settings.max_attempts {
            Err(JobError::WorkerEnded(attempt - 1))
        } else {
            // A panic in one job must not end the scheduler.
            match lease.run_while_held(AssertUnwindSafe(self.work(slot)).catch_unwind()).await {
                Some(Ok(done)) => done,
                Some(Err(_)) => Err(JobError::Panicked),
                None => {
                    tracing::warn!("{job} LOST  another worker may have begun it");
                    return Ok(None);
                }
            }
        };
        let summary = JobSummary::new(done, started.elapsed());
        log(job, &summary);
        let json = serde_json::to_string(&summary).unwrap_or_default();
        let status = summary.status.name();
        store.finish_job(job, slot.at, selftest_clock::now(), status, &json).await?;
        Ok(Some(summary))
    }

    async fn work(&self, slot: JobSlot) -> Result<super::JobOutcome, JobError> {
        match slot.job {
            JobKind::GapDetection => gaps::detect(&self.context, slot.at).await,
            JobKind::SkillGeneration => gaps::generate(&self.context).await,
            JobKind::WeeklyReport => weekly::run(&self.context, slot.at).await,
            JobKind::SkillScoring => scoring::run(&self.context, slot.at).await,
        }
    }
}

/// Logs the lines of docs/spec/skills-and-signals.md#job-results, whose format log searches rely
/// on.
fn log(job: &str, summary: &JobSummary) {
    let elapsed = summary.elapsed_ms;
    match summary.status {
        JobStatus::Completed => {
            tracing::info!("{job} DONE  {} elapsed={elapsed:.0}ms", summary.counts_text());
        }
        JobStatus::Skipped => {
            let why = summary.reason.as_deref().unwrap_or_default();
            tracing::info!("{job} SKIPPED  elapsed={elapsed:.0}ms reason={}", one_line(why, 400));
        }
        JobStatus::Failed => {
            let why = summary.error.as_deref().unwrap_or_default();
            tracing::error!("{job} FAILED  elapsed={elapsed:.0}ms error={}", one_line(why, 400));
        }
    }
}
