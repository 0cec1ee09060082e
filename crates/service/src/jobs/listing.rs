//! Overview of all jobs for display: scheduled jobs with their last runs, the queue, and its
//! failures. Read-only.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;

use super::job_settings::JobSettings;
use super::queue::{FailedGrading, GradingQueue, QueueCounts};
use super::schedule::{CronSchedule, JobKind};
use super::scheduler::ScheduleLease;
use super::summary::JobSummary;
use selftest_store::{JobRun, Store, StoreError};
use selftest_text::escape::terminal;
use selftest_text::wording::{date_time, plural};

/// Maximum number of failed gradings in the list.
const MAX_FAILURES: u32 = 100;

/// Maximum bytes of a failure reason in the list.
const MAX_REASON_BYTES: usize = 200;

/// State of all jobs at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobListing {
    /// Scheduled jobs.
    pub scheduled: Vec<ScheduledJob>,
    /// Counts of the queue.
    pub gradings: QueueCounts,
    /// Number of live workers.
    pub workers: u64,
    /// Failed gradings, newest first; at most 100.
    pub failed: Vec<FailedGrading>,
}

/// A scheduled job and its last run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScheduledJob {
    /// The job.
    pub name: JobKind,
    /// One-line description.
    pub about: &'static str,
    /// Cron expression in UTC, or `off`.
    pub schedule: String,
    /// Next scheduled time.
    pub next: Option<Timestamp>,
    /// Last run.
    pub last: Option<LastJobRun>,
}

/// A run of a scheduled job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LastJobRun {
    /// Time at which it was due or requested.
    pub slot: Timestamp,
    /// `running`, `interrupted`, or the status of its summary.
    pub state: &'static str,
    /// Worker that ran it.
    pub worker: String,
    /// Attempt number; greater than 1 if earlier workers died during the run.
    pub attempt: u32,
    /// Start time.
    pub started_at: Timestamp,
    /// End time.
    pub ended_at: Option<Timestamp>,
    /// Result of the run.
    pub summary: Option<JobSummary>,
}

impl LastJobRun {
    fn of(run: JobRun, holder: Option<&str>) -> Self {
        let summary: Option<JobSummary> =
            run.summary_json.as_deref().and_then(|json| serde_json::from_str(json).ok());
        let state = match &summary {
            Some(summary) => summary.status.name(),
            None if run.ended_at.is_none() && holder == Some(&run.worker) => "running",
            None => "interrupted",
        };
        Self {
            slot: run.slot,
            state,
            worker: run.worker,
            attempt: run.attempt,
            started_at: run.started_at,
            ended_at: run.ended_at,
            summary,
        }
    }
}

impl JobListing {
    /// Collects the state of all jobs at `now`.
    pub async fn collect(
        store: &Store,
        queue: &GradingQueue,
        settings: &JobSettings,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        // An unfinished run counts as running only while its worker holds the lease.
        let holder = ScheduleLease::holder(store, settings).await?;
        let mut runs = store.last_job_runs().await?.items;
        let scheduled = JobKind::ALL.into_iter().map(|job| {
            let schedule = job.schedule(&settings.schedule).to_owned();
            let next =
                CronSchedule::parse(&schedule).ok().flatten().and_then(|cron| cron.next(now));
            let last = runs.iter().position(|run| run.job == job.name());
            let last = last.map(|last| LastJobRun::of(runs.swap_remove(last), holder.as_deref()));
            ScheduledJob { name: job, about: job.description(), schedule, next, last }
        });
        let scheduled = scheduled.collect();
        let (gradings, failed) = (queue.counts().await?, queue.failed(MAX_FAILURES).await?);
        Ok(Self { scheduled, gradings, workers: queue.workers().await?, failed })
    }

    /// Formats the list for a terminal.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{:<34} {:<16} {:<20} {:<12} {}\n",
            "JOB", "SCHEDULE (UTC)", "LAST RUN", "STATE", "NEXT RUN"
        );
        for job in &self.scheduled {
            let (last, state) = match &job.last {
                Some(last) => (date_time(last.started_at), last.state),
                None => ("never".to_owned(), "-"),
            };
            let next = job.next.map_or_else(|| "-".to_owned(), date_time);
            let schedule = terminal(&job.schedule, 40);
            let _ = writeln!(
                text,
                "{:<34} {schedule:<16} {last:<20} {state:<12} {next}",
                job.name.name()
            );
            let summary = job.last.as_ref().and_then(|last| last.summary.as_ref());
            let error = summary.and_then(|summary| summary.error.as_deref());
            if let Some(error) = error {
                let _ = writeln!(text, "  {}", terminal(error, MAX_REASON_BYTES));
            }
        }
        let QueueCounts { waiting, running, failed, done } = self.gradings;
        let _ = writeln!(
            text,
            "\ngradings: {waiting} waiting, {running} running, {failed} failed, {done} done; {}",
            plural(self.workers, "worker")
        );
        for one in &self.failed {
            let at = one.at.map_or_else(|| "-".to_owned(), date_time);
            let (session, why) =
                (terminal(&one.grading.session_id, 80), terminal(&one.why, MAX_REASON_BYTES));
            let _ = writeln!(text, "  {} {at} {session}: {why}", one.id);
        }
        if failed > 0 {
            text.push_str("`selftest worker retry --all` tries failed gradings again\n");
        }
        text
    }
}
