//! Telemetry of skills on its way into the database: a bounded queue in memory with one writer
//! behind it. Callers never wait and never get an error for a record; those that were not written
//! are counted (docs/spec/skills-and-signals.md#next-message).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use selftest_service::grader::skills::SkillTracker;
use selftest_store::SkillRecord;

/// Records that may wait.
const MAX_WAITING: usize = 1000;
/// Records that are written in one transaction.
const MAX_BATCH: usize = 100;
/// How long the end of the server waits for what is in the queue.
const DRAIN: Duration = Duration::from_secs(5);

/// Counts of the records of one kind, by what happened to them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// Kept.
    pub(super) written: u64,
    /// Dropped, because too many were waiting.
    pub(super) full: u64,
    /// Dropped, because what they are about is not known: the skill, or an execution before the
    /// message.
    pub(super) unknown: u64,
    /// Dropped, because the database failed.
    pub(super) failed: u64,
}

/// Counts of all records.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecordCounts {
    pub(super) executions: Counts,
    pub(super) messages: Counts,
}

impl RecordCounts {
    fn of(&mut self, record: &SkillRecord) -> &mut Counts {
        match record {
            SkillRecord::Execution { .. } => &mut self.executions,
            SkillRecord::Message { .. } => &mut self.messages,
        }
    }
}

#[derive(Default)]
struct Shared(Mutex<RecordCounts>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, RecordCounts> {
        // Numbers: whatever a panic elsewhere left is still good.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A queue with a writer behind it.
pub struct SkillQueue {
    tracker: SkillTracker,
    sender: mpsc::Sender<SkillRecord>,
    counts: Arc<Shared>,
    closing: watch::Sender<bool>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl SkillQueue {
    /// Writes in the runtime that this is called in.
    pub fn start(tracker: SkillTracker) -> Self {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let (closing, closed) = watch::channel(false);
        let counts = Arc::<Shared>::default();
        let writer = Writer { tracker: tracker.clone(), receiver, counts: Arc::clone(&counts) };
        let writer = Mutex::new(Some(tokio::spawn(writer.run(closed))));
        Self { tracker, sender, counts, closing, writer }
    }

    /// Who keeps track of the skills.
    pub(super) fn tracker(&self) -> &SkillTracker {
        &self.tracker
    }

    /// Puts a record into the queue. Whether there was room. Returns at once.
    pub(super) fn enqueue(&self, record: SkillRecord) -> bool {
        match self.sender.try_send(record) {
            Ok(()) => true,
            Err(error) => {
                self.counts.lock().of(&error.into_inner()).full += 1;
                false
            }
        }
    }

    /// Counts of the records so far.
    pub(super) fn counts(&self) -> RecordCounts {
        *self.counts.lock()
    }

    /// Takes no more records and waits until those that are there are written, for at most 5 s.
    pub async fn drain(&self) {
        self.closing.send_replace(true);
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut writer) = writer else { return };
        if tokio::time::timeout(DRAIN, &mut writer).await.is_err() {
            writer.abort();
            tracing::warn!(
                "executions of skills were not written within {} s and are lost",
                DRAIN.as_secs()
            );
        }
    }
}

struct Writer {
    tracker: SkillTracker,
    receiver: mpsc::Receiver<SkillRecord>,
    counts: Arc<Shared>,
}

impl Writer {
    async fn run(mut self, mut closed: watch::Receiver<bool>) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        loop {
            tokio::select! {
                biased;
                count = self.receiver.recv_many(&mut batch, MAX_BATCH) => if count == 0 { return },
                _ = closed.wait_for(|closed| *closed), if !self.receiver.is_closed() => {
                    self.receiver.close();
                    continue;
                }
            }
            self.write(&batch).await;
            batch.clear();
        }
    }

    async fn write(&self, batch: &[SkillRecord]) {
        match self.tracker.record(batch).await {
            Ok(recorded) => {
                let mut counts = self.counts.lock();
                counts.executions.written += recorded.executions;
                counts.executions.unknown += recorded.unknown;
                counts.messages.written += recorded.messages;
                counts.messages.unknown += recorded.unrelated;
            }
            Err(error) => {
                tracing::warn!("{} records of skills are lost: {error}", batch.len());
                let mut counts = self.counts.lock();
                for record in batch {
                    counts.of(record).failed += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_grading::improve::skill::ExecutionStatus;
    use selftest_grading::improve::skill_settings::SkillSettings;
    use selftest_service::grader::skills::{NewExecution, NewMessage};
    use selftest_store::{SkillRef, Store};
    use selftest_text::redact::Redactor;

    async fn tracker() -> SkillTracker {
        let store = Store::open(":memory:").await.unwrap();
        SkillTracker::new(store, SkillSettings::default(), Redactor::default())
    }

    fn used(tracker: &SkillTracker, skill: &str) -> SkillRecord {
        tracker.execution(NewExecution {
            skill: SkillRef::Told { skill: skill.to_owned(), version: None },
            session_id: Some("s".to_owned()),
            execution_status: ExecutionStatus::Success,
            user_edited_output: false,
            user_sent_thank_you: false,
            user_repeated_request: false,
            conversation_turns: None,
            execution_time_ms: None,
            error_message: None,
        })
    }

    /// docs/spec/skills-and-signals.md#next-message: on a runtime of one thread the writer cannot
    /// run before the first await, so that the queue fills.
    #[tokio::test]
    async fn what_finds_no_room_is_counted_and_nobody_waits() {
        let tracker = tracker().await;
        let queue = SkillQueue::start(tracker.clone());
        let accepted =
            (0..MAX_WAITING + 7).filter(|_| queue.enqueue(used(&tracker, "nobody"))).count();
        assert_eq!(accepted, MAX_WAITING);
        assert_eq!(queue.counts().executions.full, 7);
        queue.drain().await;
        let Counts { written, unknown, failed, .. } = queue.counts().executions;
        assert_eq!(
            (written, unknown, failed),
            (0, MAX_WAITING as u64, 0),
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
        assert!(queue.enqueue(used(&tracker, "pr")));
        let thanks = |session: &str| {
            let message = NewMessage {
                session_id: session.to_owned(),
                message: "thank you!".to_owned(),
                previous: None,
                user_edited_output: false,
            };
            tracker.message(&message).1
        };
        assert!(
            queue.enqueue(thanks("s")) && queue.enqueue(thanks("s")) && queue.enqueue(thanks("t"))
        );
        queue.drain().await;
        let RecordCounts { executions, messages } = queue.counts();
        assert_eq!((executions.written, messages.written, messages.unknown), (1, 1, 2));
        assert!(!queue.enqueue(used(&tracker, "pr")), "it takes no more");
        let page = tracker.store().skill_executions(&skill.id, 9, None).await.unwrap();
        assert!(page.items[0].user_sent_thank_you, "{page:?}");
    }

    #[tokio::test]
    async fn a_database_that_fails_is_counted() {
        let tracker = tracker().await;
        tracker.store().clone().close().await;
        let queue = SkillQueue::start(tracker.clone());
        assert!(queue.enqueue(used(&tracker, "pr")));
        queue.drain().await;
        assert_eq!(queue.counts().executions.failed, 1);
    }
}
