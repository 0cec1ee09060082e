//! Grades recorded sessions with a model (docs/spec/session-quality.md): claims a session, reads and
//! condenses it, asks the model, saves the grade. An invalid reply is never saved. At most one
//! process holds a claim, across all processes on the database.
//!
//! The prompt and the parsing of replies are in `grade::quality`. Prints nothing.

use std::collections::BTreeMap;
use std::mem::take;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::transcripts::{TranscriptError, read_session};
use selftest_grading::grade::QualityGrade;
use selftest_grading::grade::quality::{
    QualityContext, QualityReader, QualityReading, QualitySettings, render, reply_schema,
    rubric_version,
};
use selftest_models::fence::FenceNonce;
use selftest_models::prompts::{PromptError, PromptLibrary};
use selftest_models::structured::{AskError, AskLimits, UnscoredReason, ask};
use selftest_models::{
    CallRecord, ChatModel, ChatRequest, ReplySchema, SamplingParameters, ThinkingMode,
    estimate_tokens,
};
use selftest_sessions::{SessionTranscript, TokenCalibration, TranscriptBudget, condense};
use selftest_store::{Store, StoreError};
use selftest_text::digest;
use selftest_text::redact::Redactor;

/// Tokens reserved for a malformed reply and its error message when the model is asked again.
const REASK_TOKENS: u32 = 1000;

/// Minimum tokens for a transcript that is worth grading.
const MIN_TOKENS: u32 = 400;

/// Grades sessions with one model. Clones share the token calibration.
#[derive(Clone)]
pub struct QualityGrader {
    store: Store,
    model: Arc<dyn ChatModel>,
    settings: QualitySettings,
    library: Arc<PromptLibrary>,
    redactor: Redactor,
    reader: Arc<QualityReader>,
    schema: ReplySchema,
    /// Context window of every call.
    context_tokens: u32,
    /// Tokens of the context available for the session.
    transcript_tokens: u32,
    calibration: Arc<Mutex<TokenCalibration>>,
    /// Holder name of its claims, shared by clones.
    holder: String,
}

/// Error for a session without a grade. Nothing is saved in that case.
#[derive(Debug, thiserror::Error)]
pub enum QualityError {
    /// The session can no longer be read.
    #[error(transparent)]
    Session(#[from] TranscriptError),
    /// The model did not return a grade.
    #[error("{}: {}", describe(.0.reason), .0.detail)]
    Unscored(AskError),
    /// The prompt cannot be rendered.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QualityError {
    /// Returns true if the next session would fail the same way.
    pub fn is_persistent(&self) -> bool {
        match self {
            QualityError::Unscored(error) => {
                matches!(error.reason, UnscoredReason::Unavailable | UnscoredReason::WrongReply)
            }
            QualityError::Prompt(_) | QualityError::Store(_) => true,
            QualityError::Session(_) => false,
        }
    }

    /// Returns the kind of error, worded the same for all sessions so that errors can be counted.
    pub fn kind(&self) -> &'static str {
        match self {
            QualityError::Session(_) => "the session cannot be read",
            QualityError::Unscored(error) => describe(error.reason),
            QualityError::Prompt(_) => "the prompt cannot be rendered",
            QualityError::Store(_) => "the database failed",
        }
    }
}

/// Error for a model that cannot grade at all.
#[derive(Debug, thiserror::Error)]
pub enum UnfitModelError {
    /// The context window is too small.
    #[error(
        "{model} has a context window of {limit} tokens, expected at least {needed}: rubric, reply \
         and a session of {MIN_TOKENS} tokens"
    )]
    Context {
        /// Full name of the model.
        model: String,
        /// Context window in tokens.
        limit: u32,
        /// Minimum tokens needed for grading.
        needed: u32,
    },
    /// The prompt cannot be read or rendered.
    #[error(transparent)]
    Prompt(#[from] PromptError),
}

impl QualityGrader {
    /// Returns the tokens of a call with these settings, including the session: the context that a
    /// model should have.
    pub fn required_context(
        settings: &QualitySettings,
        library: &PromptLibrary,
    ) -> Result<u32, PromptError> {
        let whole =
            overhead_tokens(settings, library)?.saturating_add(settings.max_transcript_tokens);
        Ok(whole.next_multiple_of(1024))
    }

    /// Creates a grader with that model. The grader's template must be loaded in `library`.
    pub async fn new(
        store: Store,
        model: Arc<dyn ChatModel>,
        settings: QualitySettings,
        library: Arc<PromptLibrary>,
        redactor: Redactor,
    ) -> Result<Self, UnfitModelError> {
        let wanted = Self::required_context(&settings, &library)?;
        // A model that states no limit is trusted: if the prompt is too long for it, `ask` learns
        // that from the error and condenses further.
        let limit = model.context_limit().await.unwrap_or(wanted);
        let context_tokens = wanted.min(limit);
        let overhead = overhead_tokens(&settings, &library)?;
        let transcript_tokens =
            context_tokens.saturating_sub(overhead).min(settings.max_transcript_tokens);
        if transcript_tokens < MIN_TOKENS {
            let (model, needed) = (model.id().to_owned(), overhead.saturating_add(MIN_TOKENS));
            return Err(UnfitModelError::Context { model, limit, needed });
        }
        let schema = ReplySchema { name: "quality_grade", schema: Arc::new(reply_schema()) };
        Ok(Self {
            store,
            model,
            settings,
            library,
            redactor,
            reader: Arc::new(QualityReader::new()),
            schema,
            context_tokens,
            transcript_tokens,
            calibration: Arc::default(),
            holder: unique_holder(),
        })
    }

    /// Returns the full name of the model, which is stored with its grades.
    pub fn model_id(&self) -> &str {
        self.model.id()
    }

    /// Grades one session from that file and saves the grade.
    pub async fn grade(&self, session_id: &str, file: &str) -> Result<QualityGrade, QualityError> {
        let condensed = self.read(session_id, file, self.transcript_tokens).await;
        self.ask_and_keep(session_id, file, condensed).await
    }

    async fn ask_and_keep(
        &self,
        session_id: &str,
        file: &str,
        condensed: Result<SessionTranscript, QualityError>,
    ) -> Result<QualityGrade, QualityError> {
        let grade = self.ask(session_id, file, condensed?).await?;
        self.store.save_quality(&grade).await?;
        Ok(grade)
    }

    /// Reads a session and condenses it to about `tokens` tokens.
    async fn read(
        &self,
        session_id: &str,
        file: &str,
        tokens: u32,
    ) -> Result<SessionTranscript, QualityError> {
        let bytes_per_token = lock(&self.calibration).bytes_per_token();
        let budget = TranscriptBudget { tokens, bytes_per_token };
        let (id, file) = (session_id.to_owned(), file.to_owned());
        let redactor = self.redactor.clone();
        let read = move || {
            let session = read_session(&id, &file, &redactor)?;
            Ok(condense(&session, budget))
        };
        let read = tokio::task::spawn_blocking(read).await;
        Ok(read.unwrap_or_else(|panic| Err(TranscriptError::from(panic)))?)
    }

    /// Asks for a grade. The exact number of tokens is only known when the model counts them, so a
    /// text that is too long is condensed further.
    async fn ask(
        &self,
        session_id: &str,
        file: &str,
        mut condensed: SessionTranscript,
    ) -> Result<QualityGrade, QualityError> {
        let mut tokens = self.transcript_tokens;
        loop {
            match self.ask_once(&condensed).await {
                Ok(reading) => {
                    let about = QualityContext {
                        session_id,
                        model: self.model.id(),
                        ts: selftest_clock::now(),
                        left_out: &condensed.left_out,
                        transcript_tokens: condensed.tokens,
                        rubric_version: rubric_version(&self.library),
                    };
                    return Ok(reading.into_grade(about, &self.settings.weights));
                }
                Err(QualityError::Unscored(error))
                    // By a third each time: most transcripts fit at the second try, and five tries
                    // take a session of 8,000 tokens down to 1,000.
                    if error.prompt_too_long && tokens / 3 * 2 >= MIN_TOKENS =>
                {
                    tokens = tokens / 3 * 2;
                    condensed = self.read(session_id, file, tokens).await?;
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    async fn ask_once(
        &self,
        condensed: &SessionTranscript,
    ) -> Result<QualityReading, QualityError> {
        let nonce = FenceNonce::random();
        let rendered = render(&self.library, &condensed.text, &nonce)?;
        let QualitySettings { temperature, max_tokens, max_reasks, .. } = self.settings;
        // A fixed seed, so that grading a session again gives the same grade as far as the server
        // allows.
        let sampling = SamplingParameters { temperature, max_tokens, seed: 0 };
        let request =
            ChatRequest::structured(rendered, &self.schema, sampling, self.context_tokens)
                .with_nonce(&nonce)
                .with_thinking(thinking(&self.settings));
        let bytes = request.prompt_bytes();
        let limits = AskLimits { max_reasks, max_tokens_key: "grade.quality.max_tokens" };
        let read = |reply: &str| self.reader.read(reply, &condensed.text);
        let mut calls: Vec<CallRecord> = Vec::new();
        let answer = ask(&*self.model, request, limits, u64::from, read, &mut calls).await;
        // Only the first call has exactly this prompt; repeated ones are longer.
        if let Some(tokens) = calls.first().and_then(|call| call.usage.prompt_tokens) {
            lock(&self.calibration).observe(bytes, tokens);
        }
        answer.map_err(QualityError::Unscored)
    }
}

/// Describes the reason for a missing grade.
fn describe(reason: UnscoredReason) -> &'static str {
    reason.describe_model("the model's reply is not a valid grade")
}

/// Returns the tokens of a call without the session.
fn overhead_tokens(
    settings: &QualitySettings,
    library: &PromptLibrary,
) -> Result<u32, PromptError> {
    let empty = render(library, "", &FenceNonce::random())?;
    let prompt = estimate_tokens(&empty.system).saturating_add(estimate_tokens(&empty.user));
    let reply = settings.max_tokens.saturating_add(thinking(settings).tokens());
    Ok(prompt.saturating_add(reply).saturating_add(REASK_TOKENS))
}

fn thinking(settings: &QualitySettings) -> ThinkingMode {
    ThinkingMode::from_settings(settings.think, settings.think_tokens)
}

fn lock(calibration: &Mutex<TokenCalibration>) -> std::sync::MutexGuard<'_, TokenCalibration> {
    // The calibration is two numbers, which are usable whatever a panic left.
    calibration.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of missed heartbeats after which a process counts as dead and others may grade the
/// session.
const MAX_MISSED: u32 = 3;

/// A held claim. Release it with [`GradingClaim::release`]. A dropped claim is released shortly after, and
/// one of a killed process expires when its heartbeats stop.
#[derive(Debug)]
pub(crate) struct GradingClaim {
    store: Store,
    name: String,
    holder: String,
    heart: JoinHandle<()>,
    is_held: bool,
}

/// Returns a unique holder name; process ids alone are reused.
fn unique_holder() -> String {
    format!("grader-{}-{:016x}", std::process::id(), rand::random::<u64>())
}

impl QualityGrader {
    /// Claims a session; returns `None` while another process has it.
    pub(crate) async fn claim(
        &self,
        session_id: &str,
        heartbeat: Duration,
    ) -> Result<Option<GradingClaim>, StoreError> {
        let rubric = selftest_grading::grade::quality::rubric_version(&self.library);
        let about = format!("{}\0{rubric}\0{session_id}", self.model.id());
        // A digest has a fixed length, however long the ids are.
        let name = format!("grading {}", digest::sha256_hex(about.as_bytes()));
        if !self.store.take_lease(&name, &self.holder, MAX_MISSED * heartbeat).await? {
            return Ok(None);
        }
        let (store, holder) = (self.store.clone(), self.holder.clone());
        let heart =
            tokio::spawn(send_heartbeats(store.clone(), name.clone(), holder.clone(), heartbeat));
        Ok(Some(GradingClaim { store, name, holder, heart, is_held: true }))
    }

    /// Releases all claims of this grader after gradings were cancelled.
    pub async fn release_claims(&self) -> Result<(), StoreError> {
        self.store.release_leases_of(&self.holder).await
    }
}

impl GradingClaim {
    pub(crate) async fn release(mut self) -> Result<(), StoreError> {
        self.is_held = false;
        self.store.release_lease(&self.name, &self.holder).await
    }
}

impl Drop for GradingClaim {
    fn drop(&mut self) {
        self.heart.abort();
        // Without a runtime nothing can be sent; the claim then expires with its missing
        // heartbeats.
        if self.is_held
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (store, name, holder) =
                (self.store.clone(), take(&mut self.name), take(&mut self.holder));
            runtime.spawn(async move { store.release_lease(&name, &holder).await });
        }
    }
}

/// Sends heartbeats. If the database fails for longer than the timeout, the claim is lost; at worst
/// the session is graded twice and the second grade replaces the first.
async fn send_heartbeats(store: Store, name: String, holder: String, heartbeat: Duration) {
    loop {
        sleep(heartbeat).await;
        if let Err(error) = store.renew_lease(&name, &holder).await {
            tracing::warn!("no heartbeat could be sent: {error}");
        }
    }
}

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
            // Sessions that were skipped do not count for the limit, so more are taken in their
            // place.
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
                // A reply that is no grade shows that the model still answers.
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
        // Claimed first and looked up afterwards: another process may store its grade in between.
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
        // A server that answers with an error may recover, and one that is gone will not.
        let most = if failed { BROKEN_AFTER } else { GONE_AFTER };
        silent >= most || (silent >= CHECK_SERVER_AFTER && self.model.check().await.is_err())
    }
}
