//! Grading many sessions: as many at once as are allowed, the next one read while the model works.

use std::pin::pin;

use futures_util::{StreamExt as _, stream};

use super::{QualityFault, QualityGrader};
use crate::grade::QualityGrade;

/// Sessions in a row without an answer of the model after which it counts as gone.
const GONE_AFTER: u32 = 2;

/// Is told how a backfill goes on.
pub trait BackfillObserver: Send {
    /// That many sessions are to be graded.
    fn found(&mut self, sessions: u64);
    /// A session has a grade, which is kept.
    fn graded(&mut self, grade: &QualityGrade);
    /// A session has none, and keeps waiting for one.
    fn skipped(&mut self, session_id: &str, fault: &QualityFault);
}

/// What a backfill came to.
#[derive(Debug, Default)]
pub struct Backfill {
    /// Sessions that have a grade now.
    pub graded: u64,
    /// Sessions for which the model gave none, or that could not be read.
    pub skipped: u64,
    /// Why it ended before its time.
    pub stopped: Option<QualityFault>,
}

impl QualityGrader {
    /// Grades sessions, `(id, file)` each, for a model that takes `concurrency` calls at once and
    /// lets others wait. Every grade is kept as soon as it is there: dropping the future loses
    /// only what the model is at. Ends early when the model is gone or nothing can be kept.
    pub async fn backfill(
        &self,
        sessions: Vec<(String, String)>,
        concurrency: usize,
        observer: &mut dyn BackfillObserver,
    ) -> Backfill {
        let mut outcome = Backfill::default();
        observer.found(sessions.len() as u64);
        let read = async |(session_id, file): (String, String)| {
            let condensed = self.read(&session_id, &file, self.transcript_tokens).await;
            (session_id, file, condensed)
        };
        let ask = async |(session_id, file, condensed): (String, String, Result<_, _>)| {
            let result = self.ask_and_keep(&session_id, &file, condensed).await;
            (session_id, result)
        };
        // While the model works, the next ones are read; one more than it takes is asked, so that
        // it has work while a reply is looked at and kept.
        let asked = stream::iter(sessions)
            .map(read)
            .buffered(concurrency)
            .map(ask)
            .buffer_unordered(concurrency + 1);
        let mut asked = pin!(asked);
        let mut silent = 0;
        while let Some((session_id, result)) = asked.next().await {
            match result {
                Ok(grade) => {
                    silent = 0;
                    outcome.graded += 1;
                    observer.graded(&grade);
                }
                Err(fault) => {
                    outcome.skipped += 1;
                    observer.skipped(&session_id, &fault);
                    silent = if fault.is_lasting() { silent + 1 } else { 0 };
                    if silent >= GONE_AFTER || matches!(fault, QualityFault::Store(_)) {
                        outcome.stopped = Some(fault);
                        break;
                    }
                }
            }
        }
        outcome
    }
}
