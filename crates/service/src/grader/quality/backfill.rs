//! Grades many sessions concurrently, and reads the next ones while the model works.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use super::{GradingClaim, QualityError, QualityGrader};
use selftest_grading::grade::QualityGrade;
use selftest_models::structured::AskError;
use selftest_sessions::SessionTranscript;

/// Interval between heartbeats while a session is being graded.
const HEARTBEAT: Duration = Duration::from_secs(20);
/// Consecutive sessions without an answer after which the server of the model is checked.
const CHECK_SERVER_AFTER: u32 = 2;
/// Consecutive sessions without an answer after which the model counts as gone even if its server
/// responds.
const GONE_AFTER: u32 = 3;
/// The same limit if the server failed at the last request, since the sessions may be the cause.
const BROKEN_AFTER: u32 = 10;
/// Failed sessions per requested grade after which a model counts as unfit.
const UNFIT_AFTER: u64 = 10;

/// Receives the progress of a backfill.
pub trait BackfillObserver: Send {
    /// Reports the number of sessions to try, including those already tried. Called again when
    /// others replace sessions without a grade.
    fn found(&mut self, sessions: u64);
    /// Reports a session that was graded; the grade is saved.
    fn graded(&mut self, grade: &QualityGrade);
    /// Reports a session without a grade, which remains ungraded.
    fn skipped(&mut self, session_id: &str, fault: &QualityError);
    /// Reports a session that another process is grading or has just graded.
    fn left_to_others(&mut self);
}

/// Result of a backfill.
#[derive(Debug, Default)]
pub struct BackfillResult {
    /// Number of sessions graded.
    pub graded: u64,
    /// Number of sessions that the model could not grade or that could not be read.
    pub skipped: u64,
    /// Number of sessions that other processes have graded meanwhile or are grading.
    pub left_to_others: u64,
    /// Number of sessions without a grade per reason, by [`QualityError::kind`].
    pub faults: BTreeMap<&'static str, u64>,
    /// True if it stopped because the model produced too few grades.
    pub is_unfit: bool,
    /// Error that stopped it early.
    pub stopped: Option<QualityError>,
}

impl BackfillResult {
    fn note(&mut self, fault: &QualityError) {
        self.skipped += 1;
        *self.faults.entry(fault.kind()).or_default() += 1;
    }
}

/// A claimed session with its condensed text; `None` if another process has it.
type ClaimedSession =
    Result<Option<(GradingClaim, Result<SessionTranscript, QualityError>)>, QualityError>;

impl QualityGrader {
    /// Grades `limit` of the sessions, given as `(id, file)`, with a model that serves
    /// `concurrency` calls at once and queues the rest.
    ///
    /// Sessions that get no grade do not count: others replace them, so that a few failures do not
    /// block the rest forever. Each session is tried once. Every grade is saved immediately, so
    /// dropping the future loses only the calls in progress. Stops early if the model is gone,
    /// produces hardly any grades, or nothing can be saved. Sessions that another process is
    /// grading are skipped, so several backfills may run at once.
    pub async fn backfill(
        &self,
        sessions: Vec<(String, String)>,
        limit: u64,
        concurrency: usize,
        observer: &mut dyn BackfillObserver,
    ) -> BackfillResult {
        let mut outcome = BackfillResult::default();
        let mut waiting = sessions.into_iter();
        // Number of failed requests to the model, and the number of consecutive ones without an
        // answer.
        let (mut vain, mut silent) = (0, 0);
        while outcome.stopped.is_none() && !outcome.is_unfit {
            let wanted = usize::try_from(limit - outcome.graded).unwrap_or(usize::MAX);
            let taken: Vec<(String, String)> = waiting.by_ref().take(wanted).collect();
            if taken.is_empty() {
                break;
            }
            let tried = outcome.graded + outcome.skipped + outcome.left_to_others;
            observer.found(tried + taken.len() as u64);
            let mut asked = pin!(self.ask_all(taken, concurrency));
            while let Some((session_id, result)) = asked.next().await {
                let fault = match result {
                    Ok(None) => {
                        outcome.left_to_others += 1;
                        observer.left_to_others();
                        continue;
                    }
                    Ok(Some(grade)) => {
                        silent = 0;
                        outcome.graded += 1;
                        observer.graded(&grade);
                        continue;
                    }
                    Err(fault) => fault,
                };
                outcome.note(&fault);
                observer.skipped(&session_id, &fault);
                silent = if fault.is_persistent() { silent + 1 } else { 0 };
                // An unreadable session is not the model's failure.
                vain += u64::from(!matches!(fault, QualityError::Session(_)));
                if matches!(fault, QualityError::Store(_)) || self.is_gone(silent, &fault).await {
                    outcome.stopped = Some(fault);
                    break;
                }
                outcome.is_unfit = vain >= limit.saturating_mul(UNFIT_AFTER);
                if outcome.is_unfit {
                    break;
                }
            }
        }
        outcome
    }

    /// Returns the grade of each session or the error; `None` for one that another process has.
    fn ask_all(
        &self,
        sessions: Vec<(String, String)>,
        concurrency: usize,
    ) -> impl stream::Stream<Item = (String, Result<Option<QualityGrade>, QualityError>)> {
        let read = move |(session_id, file): (String, String)| async move {
            let begun = match self.claim_ungraded(&session_id).await {
                Ok(Some(claim)) => {
                    let condensed = self.read(&session_id, &file, self.transcript_tokens).await;
                    Ok(Some((claim, condensed)))
                }
                Ok(None) => Ok(None),
                Err(fault) => Err(fault),
            };
            (session_id, file, begun)
        };
        let ask = move |(session_id, file, begun): (String, String, ClaimedSession)| async move {
            let (claim, condensed) = match begun {
                Ok(Some(begun)) => begun,
                Ok(None) => return (session_id, Ok(None)),
                Err(fault) => return (session_id, Err(fault)),
            };
            let result = self.ask_and_keep(&session_id, &file, condensed).await;
            if let Err(error) = claim.release().await {
                tracing::warn!("a session counts as being graded for a minute more: {error}");
            }
            (session_id, result.map(Some))
        };
        // The next sessions are read while the model works. One request more than its concurrency
        // is sent, so that it stays busy while a reply is validated and saved.
        stream::iter(sessions)
            .map(read)
            .buffered(concurrency)
            .map(ask)
            .buffer_unordered(concurrency + 1)
    }

    /// Claims a session; returns `None` if another process has it, or has graded it since the
    /// sessions were listed.
    async fn claim_ungraded(&self, session_id: &str) -> Result<Option<GradingClaim>, QualityError> {
        let Some(claim) = self.claim(session_id, HEARTBEAT).await? else { return Ok(None) };
        let grades = self.store.session_quality_grades(session_id).await?.items;
        if grades.iter().all(|grade| grade.model != self.model_id()) {
            return Ok(Some(claim));
        }
        claim.release().await?;
        Ok(None)
    }

    /// Returns true if the model counts as gone after `silent` consecutive sessions without an
    /// answer, the last because of `fault`.
    async fn is_gone(&self, silent: u32, fault: &QualityError) -> bool {
        let failed = matches!(fault, QualityError::Unscored(AskError { server_failed: true, .. }));
        let most = if failed { BROKEN_AFTER } else { GONE_AFTER };
        silent >= most || (silent >= CHECK_SERVER_AFTER && self.model.check().await.is_err())
    }
}
