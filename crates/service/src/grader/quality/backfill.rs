//! Grading many sessions: as many at once as are allowed, the next one read while the model works.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use super::claim::Claim;
use super::{QualityFault, QualityGrader};
use selftest_grading::grade::QualityGrade;
use selftest_models::structured::AskError;
use selftest_sessions::Condensed;

/// Between two signs that a session is still being graded.
const HEARTBEAT: Duration = Duration::from_secs(20);
/// Sessions in a row without an answer of the model after which its server is asked whether it is
/// there.
const DOUBTED_AFTER: u32 = 2;
/// The same, after which the model counts as gone though its server is there.
const GONE_AFTER: u32 = 3;
/// The same, where the server has failed at the last request: it may be the sessions' fault.
const BROKEN_AFTER: u32 = 10;
/// Sessions without a grade for each one that is wanted, after which a model counts as unfit.
const UNFIT_AFTER: u64 = 10;

/// Is told how a backfill goes on.
pub trait BackfillObserver: Send {
    /// That many sessions are tried, those that have been tried included. Told again when others
    /// are taken in place of those that have no grade.
    fn found(&mut self, sessions: u64);
    /// A session has a grade, which is kept.
    fn graded(&mut self, grade: &QualityGrade);
    /// A session has none, and keeps waiting for one.
    fn skipped(&mut self, session_id: &str, fault: &QualityFault);
    /// Another process grades a session, or has just done so.
    fn left(&mut self);
}

/// The result of a backfill.
#[derive(Debug, Default)]
pub struct Backfill {
    /// Sessions that have a grade now.
    pub graded: u64,
    /// Sessions for which the model gave none, or that could not be read.
    pub skipped: u64,
    /// Sessions that other processes have graded meanwhile, or are grading.
    pub left: u64,
    /// How many of those without a grade for which reason, by [`QualityFault::kind`].
    pub faults: BTreeMap<&'static str, u64>,
    /// Whether it ended because the model gave too few grades for what it was asked.
    pub unfit: bool,
    /// Why it ended before its time.
    pub stopped: Option<QualityFault>,
}

impl Backfill {
    fn note(&mut self, fault: &QualityFault) {
        self.skipped += 1;
        *self.faults.entry(fault.kind()).or_default() += 1;
    }
}

/// A session that was read under a claim; nothing where another process has it.
type Begun = Result<Option<(Claim, Result<Condensed, QualityFault>)>, QualityFault>;

impl QualityGrader {
    /// Grades `limit` of the sessions, `(id, file)` each, for a model that takes `concurrency`
    /// calls at once and lets others wait. Those that get no grade do not count: others are taken
    /// in their place, so that a few of them do not keep the rest waiting for ever; each is tried
    /// once. Every grade is kept as soon as it is there: dropping the future loses only what the
    /// model is at. Ends early when the model is gone, gives hardly any grades, or nothing can be
    /// kept. Sessions that another process is at are left to it, so that several may run at once.
    pub async fn backfill(
        &self,
        sessions: Vec<(String, String)>,
        limit: u64,
        concurrency: usize,
        observer: &mut dyn BackfillObserver,
    ) -> Backfill {
        let mut outcome = Backfill::default();
        let mut waiting = sessions.into_iter();
        // Sessions that the model was asked about in vain, and those of them in a row.
        let (mut vain, mut silent) = (0, 0);
        while outcome.stopped.is_none() && !outcome.unfit {
            let wanted = usize::try_from(limit - outcome.graded).unwrap_or(usize::MAX);
            let taken: Vec<(String, String)> = waiting.by_ref().take(wanted).collect();
            if taken.is_empty() {
                break;
            }
            let tried = outcome.graded + outcome.skipped + outcome.left;
            observer.found(tried + taken.len() as u64);
            let mut asked = pin!(self.ask_all(taken, concurrency));
            while let Some((session_id, result)) = asked.next().await {
                let fault = match result {
                    Ok(None) => {
                        outcome.left += 1;
                        observer.left();
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
                silent = if fault.is_lasting() { silent + 1 } else { 0 };
                vain += u64::from(!matches!(fault, QualityFault::Session { .. }));
                if matches!(fault, QualityFault::Store(_)) || self.is_gone(silent, &fault).await {
                    outcome.stopped = Some(fault);
                    break;
                }
                outcome.unfit = vain >= limit.saturating_mul(UNFIT_AFTER);
                if outcome.unfit {
                    break;
                }
            }
        }
        outcome
    }

    /// The grade of each of them, or why there is none; nothing for one that is left to another
    /// process.
    fn ask_all(
        &self,
        sessions: Vec<(String, String)>,
        concurrency: usize,
    ) -> impl stream::Stream<Item = (String, Result<Option<QualityGrade>, QualityFault>)> {
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
        let ask = move |(session_id, file, begun): (String, String, Begun)| async move {
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
        // While the model works, the next ones are read; one more than it takes is asked, so that
        // it has work while a reply is looked at and kept.
        stream::iter(sessions)
            .map(read)
            .buffered(concurrency)
            .map(ask)
            .buffer_unordered(concurrency + 1)
    }

    /// Takes the right to grade a session; `None` where another process has it, or has used it
    /// since the sessions were listed.
    async fn claim_ungraded(&self, session_id: &str) -> Result<Option<Claim>, QualityFault> {
        let Some(claim) = self.claim(session_id, HEARTBEAT).await? else { return Ok(None) };
        let grades = self.store.quality_of(session_id).await?.items;
        if grades.iter().all(|grade| grade.model != self.model_id()) {
            return Ok(Some(claim));
        }
        claim.release().await?;
        Ok(None)
    }

    /// Whether the model does not answer any more, after so many sessions in a row without an
    /// answer, the last for that reason.
    async fn is_gone(&self, silent: u32, fault: &QualityFault) -> bool {
        let failed = matches!(fault, QualityFault::Unscored(AskError { server_failed: true, .. }));
        let most = if failed { BROKEN_AFTER } else { GONE_AFTER };
        silent >= most || (silent >= DOUBTED_AFTER && self.model.check().await.is_err())
    }
}
