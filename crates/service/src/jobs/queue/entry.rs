//! Entries of the queue with their states and counts, independent of the database.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use selftest_text::clip;
use selftest_text::digest;

/// Maximum bytes of an id or model name.
const MAX_NAME_BYTES: usize = 512;

/// A request to grade a session with a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GradingJob {
    /// Session id.
    pub session_id: String,
    /// Model name; defaults to the model of the worker's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Time of the request. A newer grade fulfils it.
    pub requested_at: Timestamp,
}

/// An entry of the queue was written by another version or program.
#[derive(Debug, thiserror::Error)]
#[error("it cannot be read: {source}")]
pub(in crate::jobs) struct UnreadableEntryError {
    #[from]
    source: serde_json::Error,
}

impl GradingJob {
    /// Creates a request with the current time.
    pub fn new(session_id: &str, model: Option<&str>) -> Self {
        Self {
            session_id: clip(session_id, MAX_NAME_BYTES),
            model: model.map(|name| clip(name, MAX_NAME_BYTES)),
            requested_at: selftest_clock::now(),
        }
    }

    /// Parses an entry written by [`super::GradingQueue::enqueue`].
    pub(in crate::jobs) fn read(work: &[u8]) -> Result<Self, UnreadableEntryError> {
        Ok(serde_json::from_slice(work)?)
    }

    /// Returns a placeholder for an entry written by another version or program.
    pub(super) fn unreadable() -> Self {
        Self { requested_at: Timestamp::UNIX_EPOCH, ..Self::new("(unreadable)", None) }
    }

    /// Returns the key by which duplicates are recognized. It is a digest because ids may be longer
    /// than an index entry.
    pub(super) fn key(&self) -> String {
        digest::json_sha256_hex(serde_json::json!([self.session_id, self.model]))
    }
}

/// State of a request for a grade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GradingState {
    /// Waiting for a worker.
    Waiting,
    /// Being processed by a worker.
    Running,
    /// The session has been graded.
    Done,
    /// Grading failed, with the reason.
    Failed(String),
}

/// Number of gradings in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueueCounts {
    /// Waiting for a worker.
    pub waiting: u64,
    /// Being processed by a worker.
    pub running: u64,
    /// Given up; see [`super::GradingQueue::failed`].
    pub failed: u64,
    /// Done, but not yet removed from the tables.
    pub done: u64,
}

/// A grading that is not retried automatically.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedGrading {
    /// Id in the queue.
    pub id: String,
    /// The grading.
    #[serde(flatten)]
    pub grading: GradingJob,
    /// Number of attempts.
    pub attempts: u64,
    /// Time of the failure.
    pub at: Option<Timestamp>,
    /// Reason for the failure.
    pub why: String,
}
