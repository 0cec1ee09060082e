//! The entries of the queue, their states and counts. Knows no database.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use selftest_text::clip;
use selftest_text::digest;

/// Bytes of an id or of a model's name.
const MAX_NAME_BYTES: usize = 512;

/// A session that a model is to grade.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grading {
    /// Which session.
    pub session_id: String,
    /// By which model; that of the worker's configuration, where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A grade that is younger than this is the one that was asked for.
    pub requested_at: Timestamp,
}

impl Grading {
    /// Asked for now.
    pub fn new(session_id: &str, model: Option<&str>) -> Self {
        Self {
            session_id: clip(session_id, MAX_NAME_BYTES),
            model: model.map(|name| clip(name, MAX_NAME_BYTES)),
            requested_at: selftest_clock::now(),
        }
    }

    /// Reads an entry as [`super::Queue::enqueue`] has written it.
    pub(in crate::jobs) fn read(work: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(work).map_err(|error| format!("it cannot be read: {error}"))
    }

    /// Stands for an entry that another version or program has written.
    pub(super) fn unreadable() -> Self {
        Self { requested_at: Timestamp::UNIX_EPOCH, ..Self::new("(unreadable)", None) }
    }

    /// Two with the same key are the same work. A digest: ids may be longer than the entries of
    /// an index.
    pub(super) fn key(&self) -> String {
        digest::of_json(serde_json::json!([self.session_id, self.model]))
    }
}

/// The state of a request for a grade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GradingRequest {
    /// It waits for a worker.
    Waiting,
    /// A worker is at it.
    Running,
    /// The grade is there.
    Done,
    /// There is no grade, and why.
    Failed(String),
}

/// How many gradings are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueueCounts {
    /// They wait for a worker.
    pub waiting: u64,
    /// A worker is at them.
    pub running: u64,
    /// Given up; see [`super::Queue::failed`].
    pub failed: u64,
    /// Done, and not yet removed from the tables.
    pub done: u64,
}

/// A grading that is not tried again by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedGrading {
    /// Its id in the queue.
    pub id: String,
    /// The session that was to be graded.
    #[serde(flatten)]
    pub grading: Grading,
    /// How often it was begun.
    pub attempts: u64,
    /// When it failed.
    pub at: Option<Timestamp>,
    /// Why.
    pub why: String,
}
