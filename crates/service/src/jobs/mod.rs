//! Background work: the weekly schedule (docs/spec/skills-and-signals.md#schedule) and the queue of
//! sessions for models to grade. Any number of workers share both through the database.
//!
//! A scheduled job runs once per slot, on one worker that holds a lease. The queue is `apalis` 1.0.
//! Other modules do the actual work of the jobs. Prints nothing.

pub mod job_settings;

mod error;
mod gaps;
mod gradings;
mod lease;
mod listing;
mod queue;
mod schedule;
mod scheduler;
mod scoring;
#[cfg(test)]
mod simulation;
mod summary;
mod weekly;
mod worker;
mod worker_name;

use std::path::PathBuf;
use std::sync::Arc;

use crate::grader::SelfGrader;
use crate::grader::skills::SkillTracker;
pub use error::{JobError, JobModelError};
pub use gaps::FindGenerator;
pub use gradings::FindGrader;
pub use job_settings::JobSettings;
pub use listing::{JobListing, LastJobRun, ScheduledJob};
pub use queue::{FailedGrading, GradingJob, GradingQueue, GradingState, QueueCounts};
pub use schedule::{CronSchedule, CronScheduleError, JobKind, JobSlot, OFF, due_slots};
pub use scheduler::Scheduler;
use selftest_grading::improve::gap_settings::GapSettings;
pub use summary::{JobOutcome, JobStatus, JobSummary};
pub use worker::{DrainOutcome, GradingWorker};

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
