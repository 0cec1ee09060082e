//! Work that nobody waits for: the weekly schedule (docs/spec/skills-and-signals.md#schedule), and
//! the queue of sessions that models are to grade. Any number of workers share both through the
//! database.
//!
//! A scheduled job runs under a lease, once for each of its times, on one worker; the queue is
//! `apalis` 1.0. The work of the jobs is other rooms' business. Prints nothing.

pub mod job_settings;

mod gaps;
mod gradings;
mod lease;
mod listing;
mod name;
mod queue;
mod schedule;
mod scheduler;
mod scoring;
mod summary;
mod weekly;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;

use crate::grader::SelfGrader;
use crate::grader::skills::SkillTracker;
pub use gaps::FindGenerator;
pub use gradings::FindGrader;
pub use job_settings::JobSettings;
pub use listing::{LastRun, Listing, ScheduledJob};
pub use queue::{FailedGrading, Grading, GradingRequest, Queue, QueueCounts};
pub use schedule::{Cron, Job, OFF, Slot, due};
pub use scheduler::Scheduler;
use selftest_grading::improve::gap_settings::GapSettings;
pub use summary::{Done, Status, Summary};
pub use worker::{Worker, WorkerEnd};

/// Everything that the scheduled jobs work with.
pub struct JobContext {
    /// Grades by rules, and the database.
    pub grader: SelfGrader,
    /// Folder of the weekly reports.
    pub weekly_folder: PathBuf,
    /// Keeps track of skills, in the same database.
    pub skills: SkillTracker,
    /// The thresholds of gap detection.
    pub gaps: GapSettings,
    /// Finds the model that drafts skills.
    pub find_generator: Arc<FindGenerator>,
}
