//! Grading many sessions: as many at once as are allowed, the next one read while the model works.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

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
    /// Grades sessions, `(id, file)` each, at most `concurrency` at once. Every grade is kept as
    /// soon as it is there: dropping the future loses only what the model is at. Ends early when
    /// the model is gone or nothing can be kept.
    pub async fn backfill(
        &self,
        sessions: Vec<(String, String)>,
        concurrency: usize,
        observer: &mut dyn BackfillObserver,
    ) -> Backfill {
        let mut outcome = Backfill::default();
        observer.found(sessions.len() as u64);
        let places = Arc::new(Semaphore::new(concurrency));
        let mut sessions = sessions.into_iter();
        let mut tasks = JoinSet::new();
        let mut silent = 0;
        loop {
            // Twice as many: while the model works, the next ones are read.
            while tasks.len() < 2 * concurrency
                && let Some((session_id, file)) = sessions.next()
            {
                let (grader, places) = (self.clone(), Arc::clone(&places));
                tasks.spawn(async move {
                    let result = grader.grade_in_turn(&session_id, &file, &places).await;
                    (session_id, result)
                });
            }
            let Some(done) = tasks.join_next().await else { return outcome };
            let Ok((session_id, result)) = done else {
                // A panic has said on stderr what it is; its session keeps waiting.
                outcome.skipped += 1;
                continue;
            };
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
                        return outcome;
                    }
                }
            }
        }
    }

    async fn grade_in_turn(
        &self,
        session_id: &str,
        file: &str,
        places: &Semaphore,
    ) -> Result<QualityGrade, QualityFault> {
        let condensed = self.read(session_id, file, self.transcript_tokens).await?;
        let grade = {
            // Never closed: an error cannot be.
            let _place = places.acquire().await;
            self.ask(session_id, file, condensed).await?
        };
        self.store.save_quality(&grade).await?;
        Ok(grade)
    }
}
