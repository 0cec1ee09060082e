//! Background work: the weekly schedule (docs/spec/skills-and-signals.md#schedule) and the queue of
//! sessions for models to grade. Any number of workers share both through the database.
//!
//! A scheduled job runs once per slot, on one worker that holds a lease. The queue is `apalis` 1.0.
//! Other modules do the actual work of the jobs. Prints nothing.

pub mod job_settings;
mod listing;
mod queue;
mod schedule;
mod scheduler;
#[cfg(test)]
mod simulation;
mod summary;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;

pub use job_settings::JobSettings;
pub use listing::{JobListing, LastJobRun, ScheduledJob};
pub use queue::{FailedGrading, GradingJob, GradingQueue, GradingState, QueueCounts};
pub use schedule::{CronSchedule, CronScheduleError, JobKind, JobSlot, OFF, due_slots};
pub use scheduler::{FindGenerator, Scheduler};
pub use summary::{JobError, JobModelError, JobOutcome, JobStatus, JobSummary};
pub use worker::{DrainOutcome, FindGrader, GradingWorker};

use crate::grader::SelfGrader;
use crate::grader::skills::SkillTracker;
use selftest_grading::improve::gap_settings::GapSettings;

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
