//! Proposed skills: drafted by a model for open gaps
//! (docs/spec/skills-and-signals.md#skill-generation), then accepted or rejected by a person.
//!
//! Skills are saved but not activated. An accepted one is written to a new file; existing files are
//! never overwritten.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use std::{fs, io};

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use rand::RngExt as _;
use serde::Serialize;

use super::{GraderOptions, SelfGrader, SignalMessage, scan_signals};
use selftest_grading::improve::detect::{KnownRequest, RepeatedRequest, detect, has_reappeared};
use selftest_grading::improve::draft::{
    DraftReader, SkillDraft, is_skill_name, render_prompt, reply_schema,
};
use selftest_grading::improve::gap::{
    DetectedGap, GapKind, GapSettings, GapStatus, ProposalStatus, SkillGap, SkillProposal,
    SkillTest, proposal_id,
};
use selftest_models::fence::FenceNonce;
use selftest_models::prompts::{PromptError, PromptLibrary};
use selftest_models::structured::{AskError, AskLimits, ask};
use selftest_models::{ChatModel, ChatRequest, ReplySchema, SamplingParameters};
use selftest_store::{ProposalDecision, Store, StoreError};
use selftest_text::file::read_bounded;
use selftest_text::one_line;
use selftest_text::redact::Redactor;

/// Tests a drafted skill before it is proposed.
pub trait SkillTrial: Send + Sync {
    /// Runs cases with and without the skill; returns `NotTested` if that is impossible.
    fn test<'a>(&'a self, draft: &'a SkillDraft) -> BoxFuture<'a, SkillTest>;
}

/// Drafts skills with one model.
pub struct SkillGenerator {
    /// Database with the gaps and the proposals.
    pub store: Store,
    /// Model that drafts.
    pub model: Arc<dyn ChatModel>,
    /// Sampling temperature.
    pub temperature: f64,
    /// Context window of every call.
    pub context_tokens: u32,
    /// Limits for the number of gaps and attempts.
    pub settings: GapSettings,
    /// Prompt library with the draft template loaded.
    pub library: Arc<PromptLibrary>,
    /// Redacts secrets in drafts.
    pub redactor: Redactor,
    /// Tests each draft.
    pub trial: Arc<dyn SkillTrial>,
}

/// Error for a gap without a proposal.
#[derive(Debug, thiserror::Error)]
pub enum GenerationError {
    /// The gap does not exist.
    #[error("there is no gap {id:?}")]
    Unknown {
        /// The id as given.
        id: String,
    },
    /// Another proposal is waiting for a decision.
    #[error("a proposal for {id} waits for a decision already")]
    Proposed {
        /// Gap id.
        id: String,
    },
    /// The model did not return a draft.
    #[error("{}: {}", .0.reason.describe_model("the model's reply is not a valid skill"), .0.detail)]
    NoDraft(AskError),
    /// The prompt cannot be rendered.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Result of a batch, with exactly the keys of docs/spec/skills-and-signals.md#job-results.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum BatchSummary {
    /// The batch finished.
    Completed {
        /// Number of open gaps.
        gaps_found: u64,
        /// Number of gaps for which a draft was attempted.
        gaps_processed: u64,
        /// Number of gaps with a new proposal.
        proposals_created: u64,
        /// Number of gaps without one.
        failures: u64,
        /// Duration in milliseconds, rounded to tenths.
        elapsed_ms: f64,
    },
    /// The open gaps could not be read.
    Failed {
        /// Error message.
        error: String,
        /// Duration in milliseconds, rounded to tenths.
        elapsed_ms: f64,
    },
}

/// Result for one gap of a batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GenerationResult {
    /// Gap id.
    pub gap_id: String,
    /// Description of the gap in one sentence.
    pub gap: String,
    /// The proposal, if one was made.
    pub proposal: Option<SkillProposal>,
    /// Error, if none was made.
    pub fault: Option<String>,
}

impl SkillGenerator {
    /// Drafts, tests and proposes skills for open gaps, up to the configured maximum
    /// (docs/spec/skills-and-signals.md#skill-generation: 3). A failure does not stop the remaining
    /// gaps.
    pub async fn run_skill_generation_batch(&self) -> (BatchSummary, Vec<GenerationResult>) {
        let start = Instant::now();
        let elapsed_ms = || (start.elapsed().as_secs_f64() * 10_000.0).round() / 10.0;
        let open = match self.store.open_gaps().await {
            Ok(open) => open.items,
            Err(error) => {
                let (error, elapsed_ms) = (error.to_string(), elapsed_ms());
                return (BatchSummary::Failed { error, elapsed_ms }, Vec::new());
            }
        };
        let gaps_found = open.len() as u64;
        let mut done = Vec::new();
        for gap in open.iter().take(self.settings.proposals_per_run as usize) {
            done.push(self.generate(gap).await);
        }
        let proposals_created = done.iter().filter(|one| one.proposal.is_some()).count() as u64;
        let gaps_processed = done.len() as u64;
        let summary = BatchSummary::Completed {
            gaps_found,
            gaps_processed,
            proposals_created,
            failures: gaps_processed - proposals_created,
            elapsed_ms: elapsed_ms(),
        };
        (summary, done)
    }

    async fn generate(&self, gap: &SkillGap) -> GenerationResult {
        let made = self.generate_and_test_skill(&gap.id).await;
        let (proposal, fault) = match made {
            Ok(proposal) => (Some(proposal), None),
            Err(fault) => (None, Some(one_line(&fault.to_string(), 600))),
        };
        GenerationResult {
            gap_id: gap.id.clone(),
            gap: one_line(&gap.description, 400),
            proposal,
            fault,
        }
    }

    /// Drafts a skill for one gap, even if it is closed or dismissed, tests it and saves it as
    /// proposed. A failed draft is recorded with the gap.
    pub async fn generate_and_test_skill(
        &self,
        id: &str,
    ) -> Result<SkillProposal, GenerationError> {
        let unknown = || GenerationError::Unknown { id: one_line(id, 80) };
        let gap = self.store.gap(id).await?.ok_or_else(unknown)?;
        if gap.status == GapStatus::Proposed {
            return Err(GenerationError::Proposed { id: gap.id });
        }
        let made = self.draft(&gap).await;
        if let Err(fault) = &made {
            let words = fault.to_string();
            let words = one_line(&self.redactor.apply(&words), 600);
            // Counted, so that a gap whose drafts always fail comes last in the next run.
            self.store.record_gap_failure(&gap.id, &words).await?;
        }
        let (draft, prompt_digest) = made?;
        // A proposal without a test is kept as well: a person decides about it.
        let experiment = match self.trial.test(&draft).await {
            SkillTest::NotTested { reason } => {
                SkillTest::NotTested { reason: self.redactor.apply(&reason).into_owned() }
            }
            tested @ SkillTest::Tested { .. } => tested,
        };
        let created_at = selftest_clock::now();
        let proposal = SkillProposal {
            id: proposal_id(&gap.id, created_at),
            gap_id: gap.id.clone(),
            skill_md: draft.render(),
            skill_name: draft.name,
            description: draft.description,
            status: ProposalStatus::Proposed,
            model: self.model.id().to_owned(),
            prompt_digest,
            experiment: Some(experiment),
            created_at,
            decided_at: None,
            reason: None,
            file: None,
        };
        // Another process may have proposed a skill while the model was writing.
        if self.store.add_proposal(&proposal).await? {
            Ok(proposal)
        } else {
            Err(GenerationError::Proposed { id: gap.id })
        }
    }

    /// Returns a redacted draft, and the digest of the request to the model.
    async fn draft(&self, gap: &SkillGap) -> Result<(SkillDraft, String), GenerationError> {
        let nonce = FenceNonce::random();
        let GapSettings { max_tokens, max_reasks, .. } = self.settings;
        let schema = Arc::new(reply_schema(max_tokens));
        let rendered = render_prompt(&self.library, gap, &schema, &nonce)?;
        let schema = ReplySchema { name: "skill_draft", schema };
        // A new seed each time, so that another attempt yields another draft.
        // Of 53 bits, because readers of JSON round larger integers.
        let seed = rand::rng().random::<u64>() >> 11;
        let sampling = SamplingParameters { temperature: self.temperature, max_tokens, seed };
        let request = ChatRequest::structured(rendered, &schema, sampling, self.context_tokens)
            .with_nonce(&nonce);
        let digest = request.digest();
        let limits = AskLimits { max_reasks, max_tokens_key: "gaps.max_tokens" };
        let reader = DraftReader::new();
        let read = |reply: &str| reader.read(reply);
        let asked = ask(&*self.model, request, limits, u64::from, read, &mut Vec::new()).await;
        let draft = asked.map_err(GenerationError::NoDraft)?;
        let draft = SkillDraft {
            name: draft.name,
            description: one_line(&self.redactor.apply(&draft.description), 4096),
            // The prompt quotes sessions, so a draft may repeat a secret of one.
            body: self.redactor.apply(&draft.body).into_owned(),
        };
        Ok((draft, digest))
    }
}

/// Error while deciding on a proposal.
#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    /// The proposal does not exist.
    #[error("there is no proposal {0:?}")]
    Unknown(String),
    /// The proposal was already decided.
    #[error("{id} is {status} already")]
    Decided {
        /// Proposal id.
        id: String,
        /// Its current status.
        status: ProposalStatus,
    },
    /// The skill name is invalid, for example because another program changed the row.
    #[error("{0:?} is no name of a skill")]
    Name(String),
    /// The file contains another skill.
    #[error("{0} is there already and says something else")]
    Exists(String),
    /// The file cannot be written.
    #[error("cannot write {file}: {why}")]
    Write {
        /// File path.
        file: String,
        /// Error message of the OS.
        why: String,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Destination of an accepted skill.
#[derive(Debug, Clone, Copy)]
pub enum SkillDestination<'a> {
    /// Exactly this file.
    File(&'a Path),
    /// `<name>/SKILL.md` in this folder.
    Folder(&'a Path),
}

/// Accepts a proposal: writes its SKILL.md and closes the gap. Activates nothing, and never
/// overwrites another file.
pub async fn accept(
    store: &Store,
    id: &str,
    place: SkillDestination<'_>,
    reason: Option<&str>,
) -> Result<SkillProposal, DecisionError> {
    let proposal = pending_proposal(store, id).await?;
    let file = match place {
        SkillDestination::File(file) => file.to_owned(),
        SkillDestination::Folder(folder) => {
            // The name becomes part of a path, and another program may have changed the row.
            if !is_skill_name(&proposal.skill_name) {
                return Err(DecisionError::Name(one_line(&proposal.skill_name, 80)));
            }
            folder.join(&proposal.skill_name).join("SKILL.md")
        }
    };
    let text = proposal.skill_md.clone();
    // The file goes first. If the decision cannot be stored afterwards, accepting again finds the
    // same text and succeeds.
    let written = tokio::task::spawn_blocking({
        let file = file.clone();
        move || write_new(&file, &text)
    });
    let shown = file.to_string_lossy().into_owned();
    let failed = |why: String| DecisionError::Write { file: shown.clone(), why };
    let is_there = written.await.map_err(|panic| failed(panic.to_string()))?;
    if !is_there.map_err(|error| failed(error.to_string()))? {
        return Err(DecisionError::Exists(shown));
    }
    let decision = ProposalDecision {
        status: ProposalStatus::Accepted,
        gap: GapStatus::Closed,
        reason: reason.map(str::to_owned),
        file: Some(shown),
        at: selftest_clock::now(),
    };
    decide(store, id, &decision).await
}

/// Rejects a proposal. The gap is dismissed, or opened again if another draft is wanted.
pub async fn reject(
    store: &Store,
    id: &str,
    reason: &str,
    again: bool,
) -> Result<SkillProposal, DecisionError> {
    pending_proposal(store, id).await?;
    let decision = ProposalDecision {
        status: ProposalStatus::Rejected,
        gap: if again { GapStatus::Open } else { GapStatus::Dismissed },
        reason: Some(reason.to_owned()),
        file: None,
        at: selftest_clock::now(),
    };
    decide(store, id, &decision).await
}

async fn find_proposal(store: &Store, id: &str) -> Result<SkillProposal, DecisionError> {
    let proposal = store.proposal(id).await?;
    proposal.ok_or_else(|| DecisionError::Unknown(one_line(id, 80)))
}

async fn pending_proposal(store: &Store, id: &str) -> Result<SkillProposal, DecisionError> {
    let proposal = find_proposal(store, id).await?;
    match proposal.status {
        ProposalStatus::Proposed => Ok(proposal),
        status => Err(DecisionError::Decided { id: proposal.id, status }),
    }
}

async fn decide(
    store: &Store,
    id: &str,
    made: &ProposalDecision,
) -> Result<SkillProposal, DecisionError> {
    let decided = store.decide_proposal(id, made).await?;
    let proposal = find_proposal(store, id).await?;
    if decided {
        Ok(proposal)
    } else {
        Err(DecisionError::Decided { id: proposal.id, status: proposal.status })
    }
}

/// Writes a new file; returns false if it exists with other content.
fn write_new(file: &Path, text: &str) -> io::Result<bool> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    // `create_new` never overwrites a file, even one created at the same moment.
    match OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(mut new) => {
            let written = new.write_all(text.as_bytes());
            if written.is_err() {
                // An incomplete file would block the next attempt.
                let _ = fs::remove_file(file);
            }
            written.map(|()| true)
        }
        // The same text may be left from an earlier attempt.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Ok(read_bounded(file, text.len() as u64).is_ok_and(|found| found == text.as_bytes()))
        }
        Err(error) => Err(error),
    }
}

/// Maximum number of known gaps considered.
const MAX_GAPS: u64 = 10_000;

/// Result of gap detection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GapDetection {
    /// Number of graded sessions considered.
    pub sessions: u64,
    /// Number of graded sessions without a date, which are in no period and so not considered.
    pub undated: u64,
    /// Number of messages in which users repeated a request.
    pub repeated_requests: u64,
    /// Number of new gaps.
    pub new: u64,
    /// Number of closed gaps that were found again.
    pub reopened: u64,
    /// All gaps found, as they are stored now; those with the most sessions first.
    pub gaps: Vec<SkillGap>,
    /// Files and folders that could not be read, with the reason.
    pub problems: Vec<String>,
}

impl SelfGrader {
    /// Detects gaps in the sessions of the days before `now`, from their grades and their user
    /// messages, and saves them: one row per gap, however often it is found. Reads the session
    /// files again, so it may take long.
    pub async fn detect_gaps(
        &self,
        settings: &GapSettings,
        now: Timestamp,
    ) -> Result<GapDetection, StoreError> {
        let days = SignedDuration::from_hours(24 * i64::from(settings.lookback_days));
        let from = now.checked_sub(days).unwrap_or(Timestamp::MIN);
        // Tolerate sessions from a machine whose clock is slightly ahead.
        let to = now.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX);
        let records = self.grades_between(from, to).await?;
        let (requests, problems) = self.repeated_requests(from, to).await;
        let known = self.store.gaps(None, MAX_GAPS).await?.items;
        let known_requests: Vec<KnownRequest> = known
            .iter()
            .filter(|gap| gap.kind == GapKind::RepeatedRequest)
            .map(|gap| KnownRequest { key: gap.key.clone(), text: gap.subject.clone() })
            .collect();
        let found = detect(&records, &requests, &known_requests, settings);
        let known: BTreeMap<&str, &SkillGap> =
            known.iter().map(|gap| (gap.id.as_str(), gap)).collect();
        let reopened: Vec<String> = found
            .iter()
            .filter(|gap| {
                known.get(gap.id().as_str()).is_some_and(|known| {
                    known.status == GapStatus::Closed
                        && has_reappeared(gap, known.status_at, settings)
                })
            })
            .map(DetectedGap::id)
            .collect();
        let ids: BTreeSet<String> = found.iter().map(DetectedGap::id).collect();
        let new = ids.iter().filter(|id| !known.contains_key(id.as_str())).count() as u64;
        self.store.save_gaps(&found, &reopened, now).await?;
        let mut gaps = self.store.gaps(None, MAX_GAPS).await?.items;
        // Read back from the store, which adds the status and the weeks of earlier runs.
        gaps.retain(|gap| ids.contains(&gap.id));
        Ok(GapDetection {
            sessions: records.len() as u64,
            undated: self.store.undated_sessions().await?,
            repeated_requests: requests.len() as u64,
            new,
            reopened: reopened.len() as u64,
            gaps,
            problems,
        })
    }

    /// Returns the messages in that period that repeat a request, and the read errors.
    async fn repeated_requests(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> (Vec<RepeatedRequest>, Vec<String>) {
        let since = self.options.since.map_or(from, |since| since.max(from));
        let options = GraderOptions { since: Some(since), ..self.options.clone() };
        let scan = tokio::task::spawn_blocking(move || scan_signals(&options)).await;
        let scan = match scan {
            Ok(scan) => scan,
            Err(panic) => return (Vec::new(), vec![format!("looking for signals: {panic}")]),
        };
        let repeated = scan.found.into_iter().filter(|one| one.signals.repetition == Some(true));
        let requests = repeated
            .filter_map(|one| {
                // A request without any date cannot be said to be recent.
                let at = one.time.or(one.session_date)?;
                let SignalMessage { session_id, event, text, .. } = one;
                Some(RepeatedRequest { session_id, event, at, text })
            })
            .filter(|one| since <= one.at && one.at < to);
        (requests.collect(), scan.problems)
    }
}
