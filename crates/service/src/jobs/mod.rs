//! Background work: the weekly schedule (docs/spec/skills-and-signals.md#schedule) and the queue of
//! sessions for models to grade. Any number of workers share both through the database.
//!
//! A scheduled job runs once per slot, on one worker that holds a lease. The queue is `apalis` 1.0.
//! Other modules do the actual work of the jobs. Prints nothing.

mod lease;
mod queue;
mod schedule;
mod scheduler;
#[cfg(test)]
mod simulation;
mod summary;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::grader::SelfGrader;
use crate::grader::skills::SkillTracker;
use selftest_grading::improve::gap::GapSettings;

pub use queue::{FailedGrading, GradingJob, GradingQueue, GradingState, QueueCounts};
pub use schedule::{CronSchedule, CronScheduleError, JobKind, JobSlot, OFF, due_slots};
pub use scheduler::{FindGenerator, Scheduler};
pub use summary::{
    JobError, JobListing, JobModelError, JobOutcome, JobStatus, JobSummary, LastJobRun,
    ScheduledJob,
};
pub use worker::{DrainOutcome, FindGrader, GradingWorker};

/// Dependencies of the scheduled jobs.
pub struct JobContext {
    /// Rule-based grader with its database.
    pub grader: SelfGrader,
    /// Folder of the weekly reports.
    pub weekly_folder: PathBuf,
    /// Skill tracker on the same database.
    pub skills: SkillTracker,
    /// Thresholds for gap detection.
    pub gaps: GapSettings,
    /// Finds the model that drafts skills.
    pub find_generator: Arc<FindGenerator>,
}

/// Returns a unique name: machine, process id, and a random number because process ids are reused.
fn unique_worker_name() -> String {
    #[cfg(unix)]
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let machine = std::env::var("COMPUTERNAME").unwrap_or_else(|_| "worker".to_owned());
    let machine = selftest_text::one_line(&machine, 100);
    format!("{machine}-{}-{:08x}", std::process::id(), rand::random::<u32>())
}

/// Number of missed heartbeats after which a worker's jobs are given to others.
const MAX_MISSED_HEARTBEATS: u32 = 3;

/// Maximum delay before a retry when a model did not answer.
const MAX_WAIT: Duration = Duration::from_mins(5);

/// The `jobs` section: schedule, heartbeats and attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobSettings {
    /// Schedule of the recurring jobs.
    pub schedule: ScheduleSettings,
    /// Seconds between heartbeats of a worker. After three missed heartbeats its jobs are given to
    /// other workers.
    #[schemars(range(min = 1, max = 3600))]
    pub heartbeat_seconds: u32,
    /// Maximum number of attempts before a job counts as failed.
    #[schemars(range(min = 1, max = 1000))]
    pub max_attempts: u32,
    /// Seconds before a grading is retried when the model did not answer. The delay triples with
    /// each attempt, up to 300 seconds.
    #[schemars(range(min = 0.0, max = 300.0))]
    pub retry_seconds: f64,
    /// Days to keep finished gradings in the queue's tables.
    #[schemars(range(min = 0, max = 3650))]
    pub keep_days: u32,
}

impl Default for JobSettings {
    fn default() -> Self {
        Self {
            schedule: ScheduleSettings::default(),
            heartbeat_seconds: 10,
            max_attempts: 3,
            retry_seconds: 10.0,
            keep_days: 7,
        }
    }
}

impl JobSettings {
    /// Returns the interval between heartbeats.
    fn heartbeat(&self) -> Duration {
        Duration::from_secs(u64::from(self.heartbeat_seconds))
    }

    /// Returns the time without heartbeats after which a worker counts as dead.
    fn dead_after(&self) -> Duration {
        self.heartbeat() * MAX_MISSED_HEARTBEATS
    }

    /// Returns the delay after the attempt with that number, counted from 1.
    fn wait_after(&self, attempt: usize) -> Duration {
        let times =
            3_u32.saturating_pow(u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
        let seconds = (self.retry_seconds * f64::from(times)).clamp(0.0, MAX_WAIT.as_secs_f64());
        Duration::try_from_secs_f64(seconds).unwrap_or(MAX_WAIT)
    }
}

/// The `jobs.schedule` section: a cron expression per job with five fields (minute, hour, day of
/// the month, month, weekday) in UTC, or `off`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleSettings {
    /// Schedule for detecting gaps in the agent's skills.
    #[schemars(length(min = 1, max = 100))]
    pub gap_detection: String,
    /// Schedule for drafting skills for open gaps.
    #[schemars(length(min = 1, max = 100))]
    pub skill_generation: String,
    /// Schedule for writing the weekly report.
    #[schemars(length(min = 1, max = 100))]
    pub weekly_report: String,
    /// Schedule for scoring skills and disabling ineffective ones.
    #[schemars(length(min = 1, max = 100))]
    pub skill_scoring: String,
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        Self {
            gap_detection: "0 3 * * SUN".to_owned(),
            skill_generation: "15 3 * * SUN".to_owned(),
            weekly_report: "30 3 * * SUN".to_owned(),
            skill_scoring: "0 4 * * SUN".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_grows_and_stops_growing() {
        let settings = JobSettings::default();
        let waits = [1, 2, 3, 4, 5, usize::MAX].map(|attempt| settings.wait_after(attempt));
        assert_eq!(waits.map(|wait| wait.as_secs()), [10, 30, 90, 270, 300, 300]);
        let none = JobSettings { retry_seconds: 0.0, ..settings };
        assert_eq!(none.wait_after(usize::MAX), Duration::ZERO);
    }
}
