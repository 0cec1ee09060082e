//! Results of background work, and an overview of it for display: the summary of a job, its errors,
//! scheduled jobs with their last runs, the queue, and its failures. Read-only.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::JobSettings;
use super::lease::ScheduleLease;
use super::queue::{FailedGrading, GradingQueue, QueueCounts, UnreadableEntryError};
use super::schedule::{CronSchedule, JobKind};
use crate::grader::quality::QualityError;
use crate::grader::skills::SkillChangeError;
use selftest_grading::report::weekly::WeeklyFilesError;
use selftest_store::{JobRun, Store, StoreError};
use selftest_text::escape::terminal;
use selftest_text::wording::{date_time, plural};

/// Final status of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// The job finished its work.
    Completed,
    /// The job failed.
    Failed,
    /// The job had nothing to do.
    Skipped,
}

impl JobStatus {
    /// Returns the name used in the summary.
    pub const fn name(self) -> &'static str {
        match self {
            JobStatus::Completed => "completed",
            JobStatus::Failed => "failed",
            JobStatus::Skipped => "skipped",
        }
    }
}

/// Result of a job (docs/spec/skills-and-signals.md#job-results): status, counts, reason for
/// failing or skipping, and duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSummary {
    /// Final status.
    pub status: JobStatus,
    /// Reason for skipping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Error message of a failed job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Counts and names, in the order given by the job.
    #[serde(flatten)]
    pub counts: Map<String, Value>,
    /// Duration in milliseconds.
    pub elapsed_ms: f64,
}

/// Successful outcome of a job: its counts, or the reason that it had nothing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum JobOutcome {
    /// Counts of the completed work.
    Completed(Map<String, Value>),
    /// Reason that there was nothing to do.
    Skipped(String),
}

impl JobOutcome {
    /// Completed with these counts, which must be a JSON object.
    pub fn from_counts(counts: &Value) -> Self {
        JobOutcome::Completed(counts.as_object().cloned().unwrap_or_default())
    }
}

impl JobSummary {
    /// Builds the summary of work that took `elapsed`.
    pub fn new(done: Result<JobOutcome, JobError>, elapsed: Duration) -> Self {
        // The specification rounds to tenths of a millisecond.
        let elapsed_ms = (elapsed.as_secs_f64() * 10_000.0).round() / 10.0;
        let empty = Self {
            status: JobStatus::Completed,
            reason: None,
            error: None,
            counts: Map::new(),
            elapsed_ms,
        };
        match done {
            Ok(JobOutcome::Completed(counts)) => Self { counts, ..empty },
            Ok(JobOutcome::Skipped(why)) => {
                Self { status: JobStatus::Skipped, reason: Some(why), ..empty }
            }
            Err(error) => {
                Self { status: JobStatus::Failed, error: Some(error.to_string()), ..empty }
            }
        }
    }

    /// Formats the counts as `name=value` for a log line; lists of names are left out.
    pub fn counts_text(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.counts.iter().filter(|(_, value)| value.is_number()) {
            let separator = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{separator}{name}={value}");
        }
        text
    }
}

/// A model that a job needs cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct JobModelError(pub String);

/// A scheduled job failed.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The files of a weekly report cannot be written.
    #[error(transparent)]
    WeeklyFiles(#[from] WeeklyFilesError),
    /// Skills cannot be disabled.
    #[error(transparent)]
    Skills(#[from] SkillChangeError),
    /// There is no model to draft skills.
    #[error(transparent)]
    Model(#[from] JobModelError),
    /// A batch of drafts failed, with the message of its summary.
    #[error("{0}")]
    Batch(String),
    /// No worker survived it.
    #[error("its worker ended in the middle of it {0} times")]
    WorkerEnded(u32),
    /// It panicked.
    #[error("it panicked; the log says where")]
    Panicked,
}

/// A queued session has no grade.
#[derive(Debug, thiserror::Error)]
pub(super) enum GradingError {
    /// The entry was written by another version or program.
    #[error(transparent)]
    Entry(#[from] UnreadableEntryError),
    /// The session was removed from the database after the request.
    #[error("it has no grade by rules any more")]
    NoRuleGrade,
    /// No worker survived it.
    #[error("its worker ended in the middle of it {0} times")]
    WorkerEnded(usize),
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] JobModelError),
    /// The model gave no grade.
    #[error(transparent)]
    Quality(#[from] QualityError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl GradingError {
    /// Returns true if a retry would fail the same way. The model and the database may answer
    /// later.
    pub(super) fn is_permanent(&self) -> bool {
        match self {
            GradingError::Entry(_) | GradingError::NoRuleGrade | GradingError::WorkerEnded(_) => {
                true
            }
            // What fails the same way for the next session is no fault of this one.
            GradingError::Quality(error) => !error.is_persistent(),
            GradingError::Model(_) | GradingError::Store(_) => false,
        }
    }
}

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
            // There is one run per job, so that the order of the others does not matter.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counts() -> Map<String, Value> {
        let counts = json!({ "skills_scored": 3, "skills_disabled": 1, "disabled_names": ["fix"] });
        counts.as_object().unwrap().clone()
    }

    /// docs/spec/skills-and-signals.md#job-results: the objects that a job returns.
    #[test]
    fn a_job_returns_the_specified_objects() {
        let elapsed = Duration::from_micros(12_340);
        let of = |done| serde_json::to_string(&JobSummary::new(done, elapsed)).unwrap();
        assert_eq!(
            of(Ok(JobOutcome::Completed(counts()))),
            r#"{"status":"completed","skills_scored":3,"skills_disabled":1,"disabled_names":["fix"],"elapsed_ms":12.3}"#
        );
        assert_eq!(
            of(Ok(JobOutcome::Skipped("no DEFAULT_USER_ID".to_owned()))),
            r#"{"status":"skipped","reason":"no DEFAULT_USER_ID","elapsed_ms":12.3}"#
        );
        assert_eq!(
            of(Err(JobError::Batch("boom".to_owned()))),
            r#"{"status":"failed","error":"boom","elapsed_ms":12.3}"#
        );
    }

    #[test]
    fn read_back_as_written() {
        for done in [Ok(JobOutcome::Completed(counts())), Ok(JobOutcome::Skipped("x".to_owned()))] {
            let summary = JobSummary::new(done, Duration::from_millis(7));
            let text = serde_json::to_string(&summary).unwrap();
            assert_eq!(serde_json::from_str::<JobSummary>(&text).unwrap(), summary);
        }
    }

    #[test]
    fn a_log_line_has_the_numbers() {
        let summary = JobSummary::new(Ok(JobOutcome::Completed(counts())), Duration::ZERO);
        assert_eq!(summary.counts_text(), "skills_scored=3 skills_disabled=1");
    }
}
