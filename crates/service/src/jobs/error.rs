//! Errors of background work. A job's summary stores the message of its error.

use super::queue::UnreadableEntryError;
use crate::grader::quality::QualityError;
use crate::grader::skills::SkillChangeError;
use selftest_grading::report::weekly::WeeklyFilesError;
use selftest_store::StoreError;

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
