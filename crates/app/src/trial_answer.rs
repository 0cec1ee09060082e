//! Asks the system under test one harmless question outside of a run, and describes what was seen.

use std::sync::Arc;
use std::time::{Duration, Instant};

use selftest_harness::sut::namespace::{SessionId, TaskGroupId};
use selftest_harness::sut::{
    SutError, SutEvidence, SutReply, SutTask, SutTaskType, SystemUnderTest,
};
use selftest_models::guarded;
use selftest_text::one_line;

/// The question.
pub(crate) const HELLO: &str = "Hello! Please answer in one short sentence.";

/// Maximum length of the quoted answer, in bytes.
const MAX_QUOTE: usize = 120;

/// What was seen of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TrialAnswer {
    /// It answered. The description quotes the answer.
    Answered(String),
    /// It answered with nothing.
    Empty,
    /// No answer was seen, for this reason; and what the user can do.
    Missing {
        /// The reason.
        why: String,
        /// A remedy.
        hint: Option<String>,
    },
}

impl TrialAnswer {
    /// Asks, within a time limit, and closes the session.
    pub(crate) async fn ask(sut: &dyn SystemUnderTest, limit: Duration) -> Self {
        let now = selftest_clock::now();
        let task = SutTask {
            session_id: SessionId::fresh(now),
            task_group_id: TaskGroupId::fresh(now),
            task_type: SutTaskType::ReadInfo,
            seed: 0,
            fixtures: Arc::new([]),
        };
        let started = Instant::now();
        let mut session = match sut.open(&task).await {
            Ok(session) => session,
            Err(error) => return Self::failed(&error, None),
        };
        let asked = guarded::within_deadline(limit, session.submit(HELLO));
        let reply = tokio::time::timeout(limit, asked).await;
        let took = started.elapsed();
        let evidence = session.close().await;
        match reply {
            Ok(Ok(reply)) => Self::seen(&reply, &evidence, took),
            Ok(Err(error)) => Self::failed(&error, evidence.hint),
            Err(_) => Self::Missing {
                why: format!("no answer within {} s", limit.as_secs_f64()),
                hint: evidence.hint,
            },
        }
    }

    fn failed(error: &SutError, hint: Option<String>) -> Self {
        let hint = error.hint().map(str::to_owned).or(hint);
        Self::Missing { why: error.to_string(), hint }
    }

    fn seen(reply: &SutReply, evidence: &SutEvidence, took: Duration) -> Self {
        if reply.output.trim().is_empty() {
            return Self::Empty;
        }
        let (said, status) = (one_line(&reply.output, MAX_QUOTE), reply.status);
        let mut words = format!("answered “{said}” ({status}) in {:.1} s", took.as_secs_f64());
        for note in reply.notes.iter().chain(&evidence.notes) {
            words += &format!("; {note}");
        }
        Self::Answered(words)
    }
}
