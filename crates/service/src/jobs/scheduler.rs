//! The scheduled jobs: runs each once per slot, in order, on one worker at a time, and does their work
//! (docs/spec/skills-and-signals.md#schedule). `schedule` decides which are due.
//!
//! The worker holds a lease. One that dies loses it when its heartbeats stop.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::json;
use tokio::time::sleep;

use super::lease::ScheduleLease;
use super::schedule::{JobKind, JobSlot, due_slots};
use super::summary::{JobError, JobModelError, JobOutcome, JobStatus, JobSummary};
use super::{JobContext, JobSettings};
use crate::grader::WeeklyOutcome;
use crate::grader::proposals::{BatchSummary, SkillGenerator};
use crate::grader::skills::DeriveOptions;
use selftest_grading::grade::Week;
use selftest_grading::report::weekly::{WeeklyPaths, write};
use selftest_store::{Store, StoreError};
use selftest_text::one_line;

/// Interval between checks if another worker has released the lease.
const LEASE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

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
        Self { context, settings, jobs, name: super::unique_worker_name() }
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
        // Asked without the lease, since the answer is nearly always "nothing": workers would
        // otherwise take turns holding it.
        if self.due(now).await?.is_empty() {
            return Ok(Vec::new());
        }
        let lease = self.lease().await?;
        let mut ran = Vec::new();
        // Check again: another worker may have run them while this one waited for the lease.
        for slot in self.due(now).await? {
            match self.run_slot(&lease, slot).await? {
                Some(summary) => ran.push((slot.job, summary)),
                // The lease is gone, and with it the right to the remaining slots.
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
        let ended = self.store().finished_slots(selftest_clock::latest_elsewhere(now)).await?;
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
            // Said once and not twice a second.
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
        // Recorded before the work, so that an attempt that kills the process counts.
        let attempt = store.start_job(job, slot.at, &self.name, selftest_clock::now()).await?;
        let Some(attempt) = attempt else {
            return Ok(None);
        };
        tracing::info!("{job} START  slot={} attempt={attempt}", slot.at);
        let started = Instant::now();
        // A job that kills its worker would otherwise kill the next one too, for ever.
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
            JobKind::GapDetection => detect_gaps(&self.context, slot.at).await,
            JobKind::SkillGeneration => draft_skills(&self.context).await,
            JobKind::WeeklyReport => write_weekly_report(&self.context, slot.at).await,
            JobKind::SkillScoring => score_skills(&self.context, slot.at).await,
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

/// Grades new sessions by rules, then writes the missing reports of finished weeks and that of the
/// week containing `at`.
pub(super) async fn write_weekly_report(
    context: &JobContext,
    at: Timestamp,
) -> Result<JobOutcome, JobError> {
    let scan = context.grader.grade_new_sessions(&mut ()).await?;
    let week = Week::containing(at);
    // The machine may have been off on Sunday. Reports of later weeks compare with these, so that
    // they are written first.
    let missed = context.grader.missed_weeks(week).await?;
    for &finished in &missed {
        // Alerts about weeks long past are of no use.
        if finished < week.weeks_earlier(1) {
            let report = context.grader.generate_weekly_report(Some(finished)).await?;
            write(&context.weekly_folder, &report, &[])?;
        } else {
            let published = context.grader.publish_weekly_report(Some(finished), None).await?;
            write_files(context, &published)?;
        }
    }
    let outcome = context.grader.publish_weekly_report(Some(week), Some(&scan)).await?;
    let paths = write_files(context, &outcome)?;
    let report = &outcome.report;
    let caught_up: Vec<String> = missed.iter().map(ToString::to_string).collect();
    Ok(JobOutcome::from_counts(&json!({
        "week": report.week,
        "caught_up": caught_up.join(" "),
        "sessions": report.summary.sessions,
        "sessions_graded": scan.sessions,
        "alerts": report.alerts.raised().count(),
        "alerts_delivered": outcome.delivered,
        "report": paths.page.display().to_string(),
    })))
}

/// Writes the files of a report and logs failures to deliver its alerts.
fn write_files(context: &JobContext, outcome: &WeeklyOutcome) -> Result<WeeklyPaths, JobError> {
    for fault in &outcome.faults {
        tracing::warn!("{fault}");
    }
    Ok(write(&context.weekly_folder, &outcome.report, &outcome.others)?)
}

/// Finds the model that drafts skills, or returns the reason why none can be used.
pub type FindGenerator =
    dyn Fn() -> BoxFuture<'static, Result<SkillGenerator, JobModelError>> + Send + Sync;

/// Grades new sessions by rules, then detects gaps in the sessions of the days before `at`.
pub(super) async fn detect_gaps(
    context: &JobContext,
    at: Timestamp,
) -> Result<JobOutcome, JobError> {
    let scan = context.grader.grade_new_sessions(&mut ()).await?;
    let detected = context.grader.detect_gaps(&context.gaps, at).await?;
    for problem in &detected.problems {
        tracing::warn!("{}", one_line(problem, 400));
    }
    Ok(JobOutcome::from_counts(&json!({
        "sessions": detected.sessions,
        "sessions_graded": scan.sessions,
        "repeated_requests": detected.repeated_requests,
        "gaps_found": detected.gaps.len(),
        "gaps_new": detected.new,
        "gaps_reopened": detected.reopened,
    })))
}

/// Drafts, tests and proposes skills for a few open gaps. Without open gaps, no model is loaded.
pub(super) async fn draft_skills(context: &JobContext) -> Result<JobOutcome, JobError> {
    let open = context.grader.store().open_gaps().await?;
    if open.items.is_empty() {
        return Ok(JobOutcome::from_counts(&json!({
            "gaps_found": 0,
            "gaps_processed": 0,
            "proposals_created": 0,
            "failures": 0,
        })));
    }
    // Only now: loading a model for nothing may take minutes.
    let generator = (context.find_generator)().await?;
    let (summary, generated) = generator.run_skill_generation_batch().await;
    for one in &generated {
        if let Some(fault) = &one.fault {
            tracing::warn!("no proposal for {}: {fault}", one.gap_id);
        }
    }
    match summary {
        BatchSummary::Completed {
            gaps_found,
            gaps_processed,
            proposals_created,
            failures,
            elapsed_ms: _,
        } => Ok(JobOutcome::from_counts(&json!({
            "gaps_found": gaps_found,
            "gaps_processed": gaps_processed,
            "proposals_created": proposals_created,
            "failures": failures,
        }))),
        BatchSummary::Failed { error, elapsed_ms: _ } => Err(JobError::Batch(error)),
    }
}

/// Actor recorded in the audit entries of a skill.
const ACTOR: &str = "worker";

/// Records the skill executions found in sessions, scores the active skills by the days before
/// `at`, then disables those that match a rule.
pub(super) async fn score_skills(
    context: &JobContext,
    at: Timestamp,
) -> Result<JobOutcome, JobError> {
    let skills = &context.skills;
    let options = context.grader.options();
    let derived = skills.record_sessions(DeriveOptions {
        sources: options.sources.clone(),
        since: Some(skills.lookback(at)),
        agent: options.agent.clone(),
    });
    // Scores count executions, so that those since the last run have to be recorded before.
    let derived = derived.await?;
    for problem in &derived.problems {
        tracing::warn!("{}", one_line(problem, 400));
    }
    let scores = skills.score_all_skills(at).await?;
    let disabled = skills.auto_disable_underperformers(ACTOR, at).await?;
    for fault in disabled.iter().flat_map(|one| &one.refresh_faults) {
        tracing::warn!("{fault}");
    }
    let names: Vec<&str> = disabled.iter().map(|one| one.scored.skill_name.as_str()).collect();
    Ok(JobOutcome::from_counts(&json!({
        "executions_recorded": derived.executions,
        "skills_scored": scores.len(),
        "skills_disabled": names.len(),
        "disabled_names": names,
    })))
}
