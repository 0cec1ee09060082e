//! A bounded in-memory queue of skill records with a single database writer.
//!
//! Callers never wait. An accepted record is written as soon as the database allows
//! (docs/spec/skills-and-signals.md#next-message). Records are rejected while the queue is full or
//! the database fails, and every rejected or dropped record is counted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use selftest_service::grader::skills::SkillTracker;
use selftest_store::{RequestKey, SkillRecord, SkillRequest, StoreError};

/// Maximum number of queued records.
const MAX_QUEUED: usize = 1000;
/// Maximum number of records per transaction.
const MAX_BATCH: usize = 100;
/// Time limit for writing the remaining records at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Initial delay before retrying a failed write, doubled each time.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// Maximum delay between retries.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Numbers of records of one kind by result.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ResultCounts {
    /// Written.
    pub(super) written: u64,
    /// Rejected because the queue was full.
    pub(super) full: u64,
    /// Rejected because the database was failing.
    pub(super) failing: u64,
    /// Dropped because they refer to an unknown skill, or to a message without a previous
    /// execution.
    pub(super) unknown: u64,
    /// Dropped because the database rejected them.
    pub(super) failed: u64,
}

/// Numbers of all records.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecordCounts {
    pub(super) executions: ResultCounts,
    pub(super) messages: ResultCounts,
}

impl RecordCounts {
    fn for_record(&mut self, record: &SkillRecord) -> &mut ResultCounts {
        match record {
            SkillRecord::Execution { .. } => &mut self.executions,
            SkillRecord::Message { .. } => &mut self.messages,
        }
    }
}

/// Reason why a record is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnqueueError {
    /// The queue is full, or the server is shutting down.
    Full,
    /// Earlier records could not be written yet.
    Failing,
    /// A different record is queued with the same idempotency key.
    KeyConflict,
    /// Keys were written since the lookup, which must be repeated.
    StaleLookup,
}

/// Result of accepting a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnqueueOutcome {
    /// The record was queued.
    New,
    /// The record was already queued with the same idempotency key.
    Duplicate,
}

#[derive(Default)]
struct QueueState {
    counts: RecordCounts,
    /// Number of records accepted but neither written nor dropped.
    queued: usize,
    /// True if the last write failed.
    is_failing: bool,
    /// Digests of queued records with a key, by scope and key.
    keys: HashMap<(String, String), String>,
    /// Number of times that keys were moved from `keys` to the database.
    write_count: u64,
}

impl QueueState {
    /// Removes a finished batch from the state.
    fn remove_batch(&mut self, batch: &[SkillRequest]) {
        self.queued = self.queued.saturating_sub(batch.len());
        let before = self.keys.len();
        for key in batch.iter().filter_map(|request| request.key.as_ref()) {
            self.keys.remove(&scoped_key(key));
        }
        // Only batches with keys count, since no lookup can miss anything else.
        self.write_count += u64::from(self.keys.len() < before);
    }
}

fn scoped_key(key: &RequestKey) -> (String, String) {
    (key.scope.clone(), key.key.clone())
}

#[derive(Default)]
struct SharedState(Mutex<QueueState>);

impl SharedState {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // The counters stay consistent even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A queue with a background writer.
pub struct SkillQueue {
    tracker: SkillTracker,
    sender: mpsc::Sender<SkillRequest>,
    shared: Arc<SharedState>,
    closing: watch::Sender<bool>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl SkillQueue {
    /// Starts a queue. Its writer runs in the current Tokio runtime.
    pub fn start(tracker: SkillTracker) -> Self {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED);
        let (closing, closed) = watch::channel(false);
        let shared = Arc::<SharedState>::default();
        let writer =
            RecordWriter { tracker: tracker.clone(), receiver, shared: Arc::clone(&shared) };
        let writer = Mutex::new(Some(tokio::spawn(writer.run(closed))));
        Self { tracker, sender, shared, closing, writer }
    }

    /// Returns the skill tracker.
    pub(super) fn tracker(&self) -> &SkillTracker {
        &self.tracker
    }

    /// Returns the write count, which must be read before a key is looked up in the database.
    pub(super) fn write_count(&self) -> u64 {
        self.shared.lock().write_count
    }

    /// Queues a record, once per key, without waiting. `written` is the write count from before the
    /// lookup of its key.
    pub(super) fn enqueue(
        &self,
        request: SkillRequest,
        written: u64,
    ) -> Result<EnqueueOutcome, EnqueueError> {
        let mut state = self.shared.lock();
        let key = request.key.as_ref().map(|key| (scoped_key(key), key.digest.clone()));
        if let Some((place, digest)) = &key
            && let Some(waiting) = state.keys.get(place)
        {
            return if waiting == digest {
                Ok(EnqueueOutcome::Duplicate)
            } else {
                Err(EnqueueError::KeyConflict)
            };
        }
        // The lookup of the caller may have missed a key that was written since. A record without a
        // key is new in any case.
        if key.is_some() && state.write_count != written {
            return Err(EnqueueError::StaleLookup);
        }
        // Rejected rather than queued: an accepted record must not be lost, and the caller can
        // repeat this one.
        if state.is_failing {
            state.counts.for_record(&request.record).failing += 1;
            return Err(EnqueueError::Failing);
        }
        // Sent under the lock: otherwise the writer could finish the record before its key is
        // stored, and the key would stay forever.
        match self.sender.try_send(request) {
            Ok(()) => {
                state.queued += 1;
                state.keys.extend(key);
                Ok(EnqueueOutcome::New)
            }
            Err(error) => {
                state.counts.for_record(&error.into_inner().record).full += 1;
                Err(EnqueueError::Full)
            }
        }
    }

    /// Returns true if accepted records currently cannot be written.
    pub(super) fn is_failing(&self) -> bool {
        self.shared.lock().is_failing
    }

    /// Returns the counts of records so far.
    pub(super) fn counts(&self) -> RecordCounts {
        self.shared.lock().counts
    }

    /// Rejects new records and waits at most 5 s until the queued ones are written.
    pub async fn drain(&self) {
        self.closing.send_replace(true);
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut writer) = writer else { return };
        if tokio::time::timeout(DRAIN_TIMEOUT, &mut writer).await.is_err() {
            writer.abort();
            let (lost, seconds) = (self.shared.lock().queued, DRAIN_TIMEOUT.as_secs());
            tracing::error!(
                "{lost} records of skills were not written within {seconds} s and are lost"
            );
        }
    }
}

struct RecordWriter {
    tracker: SkillTracker,
    receiver: mpsc::Receiver<SkillRequest>,
    shared: Arc<SharedState>,
}

impl RecordWriter {
    async fn run(mut self, mut closed: watch::Receiver<bool>) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        loop {
            tokio::select! {
                // Queued records are written before the queue is closed.
                biased;
                count = self.receiver.recv_many(&mut batch, MAX_BATCH) => if count == 0 { return },
                _ = closed.wait_for(|closed| *closed), if !self.receiver.is_closed() => {
                    self.receiver.close();
                    continue;
                }
            }
            let mut pause = MIN_PAUSE;
            // Retried until it succeeds or can never succeed, because the records were accepted.
            while let Err(error) = self.write_batch(&batch).await {
                self.log_outage(&error);
                sleep(pause).await;
                pause = (2 * pause).min(MAX_PAUSE);
            }
            batch.clear();
        }
    }

    /// Logs that records are waiting for the database, only once per outage.
    fn log_outage(&self, error: &StoreError) {
        let mut state = self.shared.lock();
        if !std::mem::replace(&mut state.is_failing, true) {
            let waiting = state.queued;
            tracing::error!("{waiting} records of skills wait, and no more are taken: {error}");
        }
    }

    /// Writes the records, or drops them if the database permanently rejects them. Returns an error
    /// if a retry may succeed.
    async fn write_batch(&self, batch: &[SkillRequest]) -> Result<(), StoreError> {
        let written = match self.tracker.record_requests(batch).await {
            Err(error) if error.is_transient() => return Err(error),
            // An error that no repetition mends: the batch is given up, or it would block all later
            // ones.
            written => written,
        };
        let mut state = self.shared.lock();
        state.remove_batch(batch);
        if std::mem::take(&mut state.is_failing) {
            tracing::info!("records of skills are written again");
        }
        match written {
            Ok(recorded) => {
                let counts = &mut state.counts;
                counts.executions.written += recorded.executions;
                counts.executions.unknown += recorded.unknown;
                counts.messages.written += recorded.messages;
                counts.messages.unknown += recorded.unrelated;
            }
            Err(error) => {
                tracing::error!("{} records of skills are lost: {error}", batch.len());
                for request in batch {
                    state.counts.for_record(&request.record).failed += 1;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_grading::improve::skill::{ExecutionStatus, SkillSettings};
    use selftest_service::grader::skills::{NewExecution, NewMessage};
    use selftest_store::{SkillRef, Store};
    use selftest_text::redact::Redactor;

    async fn tracker() -> SkillTracker {
        let store = Store::open(":memory:").await.unwrap();
        SkillTracker::new(store, SkillSettings::default(), Redactor::default())
    }

    fn used(tracker: &SkillTracker, skill: &str) -> SkillRequest {
        plain(tracker.execution_record(NewExecution {
            skill: SkillRef::Named { skill: skill.to_owned(), version: None },
            session_id: Some("s".to_owned()),
            execution_status: ExecutionStatus::Success,
            user_edited_output: false,
            user_sent_thank_you: false,
            user_repeated_request: false,
            conversation_turns: None,
            execution_time_ms: None,
            error_message: None,
        }))
    }

    fn plain(record: SkillRecord) -> SkillRequest {
        SkillRequest { record, key: None }
    }

    /// docs/spec/skills-and-signals.md#next-message: on a single-threaded runtime the writer cannot
    /// run before the first await, so the queue fills up.
    #[tokio::test]
    async fn what_finds_no_room_is_counted_and_nobody_waits() {
        let tracker = tracker().await;
        let queue = SkillQueue::start(tracker.clone());
        let accepted = (0..MAX_QUEUED + 7)
            .filter(|_| queue.enqueue(used(&tracker, "nobody"), 0).is_ok())
            .count();
        assert_eq!(accepted, MAX_QUEUED);
        assert_eq!(queue.counts().executions.full, 7);
        queue.drain().await;
        let ResultCounts { written, unknown, failed, .. } = queue.counts().executions;
        assert_eq!(
            (written, unknown, failed),
            (0, MAX_QUEUED as u64, 0),
            "unknown skills are no error"
        );
    }

    /// docs/spec/skills-and-signals.md#next-message: the next message updates the execution, in the
    /// order of the queue.
    #[tokio::test]
    async fn the_end_waits_for_what_is_in_the_queue() {
        let tracker = tracker().await;
        let skill = tracker.promote_new("pr", None, "# PR", "test").await.unwrap().skill;
        let queue = SkillQueue::start(tracker.clone());
        queue.enqueue(used(&tracker, "pr"), 0).unwrap();
        let thanks = |session: &str| {
            let message = NewMessage {
                session_id: session.to_owned(),
                message: "thank you!".to_owned(),
                previous: None,
                user_edited_output: false,
            };
            plain(tracker.message_record(&message).1)
        };
        for session in ["s", "s", "t"] {
            queue.enqueue(thanks(session), 0).unwrap();
        }
        queue.drain().await;
        let RecordCounts { executions, messages } = queue.counts();
        assert_eq!((executions.written, messages.written, messages.unknown), (1, 1, 2));
        assert_eq!(
            queue.enqueue(used(&tracker, "pr"), 0),
            Err(EnqueueError::Full),
            "it takes no more"
        );
        let page = tracker.store().skill_executions(&skill.id, 9, None).await.unwrap();
        assert!(page.items[0].user_sent_thank_you, "{page:?}");
    }

    #[tokio::test]
    async fn a_database_that_fails_is_counted() {
        let tracker = tracker().await;
        tracker.store().clone().close().await;
        let queue = SkillQueue::start(tracker.clone());
        queue.enqueue(used(&tracker, "pr"), 0).unwrap();
        queue.drain().await;
        assert_eq!(queue.counts().executions.failed, 1);
    }

    /// A repeated key with the same body is accepted again but written once, whether the record is
    /// still queued or already written.
    #[tokio::test]
    async fn a_key_is_written_once() {
        let tracker = tracker().await;
        let skill = tracker.promote_new("pr", None, "# PR", "test").await.unwrap().skill;
        let queue = SkillQueue::start(tracker.clone());
        let keyed = |digest: &str| {
            let (scope, key) = ("/api/skills/executions".to_owned(), "k".to_owned());
            let key =
                RequestKey { scope, key, digest: digest.to_owned(), at: selftest_clock::now() };
            SkillRequest { key: Some(key), ..used(&tracker, "pr") }
        };
        assert_eq!(queue.enqueue(keyed("a"), 0), Ok(EnqueueOutcome::New));
        assert_eq!(queue.enqueue(keyed("a"), 0), Ok(EnqueueOutcome::Duplicate));
        assert_eq!(queue.enqueue(keyed("b"), 0), Err(EnqueueError::KeyConflict));
        // Another server on the same database may have accepted it as well.
        let other = SkillQueue::start(tracker.clone());
        assert_eq!(other.enqueue(keyed("a"), 0), Ok(EnqueueOutcome::New));
        queue.drain().await;
        other.drain().await;
        let page = tracker.store().skill_executions(&skill.id, 9, None).await.unwrap();
        assert_eq!(page.items.len(), 1);
        assert!(queue.shared.lock().keys.is_empty());
        // A caller that looked up the key before it was written must repeat the lookup.
        assert_eq!(queue.enqueue(keyed("b"), 0), Err(EnqueueError::StaleLookup));
    }
}
