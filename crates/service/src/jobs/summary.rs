//! Results of background work: the summary of a job, and its errors, whose messages the summary stores.

use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::queue::UnreadableEntryError;
use crate::grader::quality::QualityError;
use crate::grader::skills::SkillChangeError;
use selftest_grading::report::weekly::WeeklyFilesError;
use selftest_store::StoreError;

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
