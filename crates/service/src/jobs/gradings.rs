//! Processes one queue entry: a model grades a session, once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use apalis::prelude::{AbortError, Attempt, BoxDynError, Data};
use futures_util::future::BoxFuture;

use super::error::{GradingError, JobModelError};
use super::job_settings::JobSettings;
use super::queue::GradingJob;
use crate::grader::quality::QualityGrader;
use selftest_store::Store;
use selftest_text::one_line;

/// Name of this work in the log, in the style of the scheduled jobs.
const NAME: &str = "run_session_grading";

/// Interval between attempts to claim a session that another process is grading.
const CLAIM_INTERVAL: Duration = Duration::from_secs(1);

/// Consecutive gradings without an answer after which the model counts as gone.
pub(super) const MAX_UNANSWERED: u32 = 2;

/// Finds the grader for a model (default: the configured one), or returns the reason that there is
/// none.
pub type FindGrader = dyn Fn(Option<String>) -> BoxFuture<'static, Result<QualityGrader, JobModelError>>
    + Send
    + Sync;

/// Dependencies of a grading.
pub(super) struct GradingRunner {
    pub(super) store: Store,
    pub(super) find: Arc<FindGrader>,
    pub(super) settings: JobSettings,
    /// True if the worker waits for a model that does not answer.
    pub(super) should_wait_for_model: bool,
    /// Number of consecutive gradings without an answer from the model.
    pub(super) unanswered: AtomicU32,
}

impl GradingRunner {
    async fn grade(&self, grading: &GradingJob) -> Result<&'static str, GradingError> {
        let GradingJob { session_id, model, requested_at } = grading;
        let found = self.store.grade(session_id).await?.ok_or(GradingError::NoRuleGrade)?;
        let grader = (self.find)(model.clone()).await?;
        // A backfill may be grading the same session.
        let claim = loop {
            match grader.claim(session_id, self.settings.heartbeat()).await? {
                Some(claim) => break claim,
                None => tokio::time::sleep(CLAIM_INTERVAL).await,
            }
        };
        let known = self.store.session_quality_grades(session_id).await?.items;
        // A worker may have died after saving the grade but before acknowledging it. The model is
        // not asked twice for one request.
        let is_there =
            known.iter().any(|grade| grade.model == grader.model_id() && grade.ts >= *requested_at);
        let result = if is_there {
            Ok("graded before")
        } else {
            let graded = grader.grade(session_id, &found.session_file).await;
            graded.map(|_| "graded").map_err(GradingError::from)
        };
        claim.release().await?;
        result
    }

    async fn run(&self, grading: &GradingJob, attempt: usize) -> Result<(), BoxDynError> {
        let session = one_line(&grading.session_id, 80);
        let most = self.settings.max_attempts as usize;
        tracing::info!("{NAME} START  session={session} attempt={attempt}");
        let started = Instant::now();
        // Crashed workers count as attempts, so the number can exceed the maximum.
        let done = if attempt > most {
            Err(GradingError::WorkerEnded(attempt - 1))
        } else {
            self.grade(grading).await
        };
        let elapsed = started.elapsed().as_millis();
        let fault = match done {
            Ok(how) => {
                self.unanswered.store(0, Ordering::Relaxed);
                tracing::info!("{NAME} DONE  session={session} {how} elapsed={elapsed}ms");
                return Ok(());
            }
            Err(fault) => fault,
        };
        let why = one_line(&fault.to_string(), 400);
        tracing::warn!(
            "{NAME} FAILED  session={session} attempt={attempt} elapsed={elapsed}ms error={why}"
        );
        if fault.is_permanent() {
            self.unanswered.store(0, Ordering::Relaxed);
            return Err(Box::new(AbortError::new(fault)));
        }
        let unanswered = self.unanswered.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.should_wait_for_model && unanswered >= MAX_UNANSWERED {
            // `GradingWorker::drain` notices and drops this future, so the attempt is not counted against
            // the session.
            std::future::pending::<()>().await;
        }
        if self.should_wait_for_model && attempt < most {
            // Wait here and not in the queue: while the model does not answer, the next entry would
            // fail too.
            tokio::time::sleep(self.settings.wait_after(attempt)).await;
        }
        // As text: the queue stores the message, and `selftest worker list` shows it.
        Err(why.into())
    }
}

/// Handler that the queue library calls for each entry.
pub(super) async fn handle(
    work: Vec<u8>,
    attempt: Attempt,
    gradings: Data<Arc<GradingRunner>>,
) -> Result<(), BoxDynError> {
    // With an `AbortError`, apalis gives up at once. An entry that cannot be read now cannot be
    // read later either.
    let grading = GradingJob::read(&work).map_err(GradingError::from).map_err(AbortError::new)?;
    gradings.run(&grading, attempt.current()).await
}
