//! Loads a GGUF file and generates replies from it.
//!
//! Prompts are always decoded as prefix and rest, even if the prefix is cached: batch boundaries
//! affect rounding, and a greedy reply must not depend on earlier calls.
//!
//! States of prompt prefixes are cached: in memory for recent ones, so that each is decoded only once,
//! and on disk for judge rubrics, because decoding a rubric takes seconds on a small machine. Only
//! states of this program's own texts are stored on disk, never project text or answers. A truncated,
//! foreign or outdated file is ignored.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use llguidance::Matcher;
use sha2::{Digest as _, Sha256};

use super::conversation::{self, ReplyDraft, SegmentedPrompt, bounds_strings};
use super::llama::{ContextState, LlamaContext, LlamaModel, PredictAfter, Token};
use super::sampler::{GrammarCache, TokenSampler};
use super::worker::{self, CallInterrupt, ComputeLock};
use crate::choice::YesNoAnswer;
use crate::model_files::file_stamp;
use crate::{
    ChatReply, ChatRequest, FinishReason, ModelError, ReplyLikelihood, StructuredMode,
    TokenProbability, TokenUsage,
};
use selftest_text::file::open_regular;

/// Number of tokens per batch; a cancelled call stops within one batch.
const BATCH: u32 = 128;
/// Number of tokens to report with probabilities, in addition to those that mean yes or no.
const TOP_TOKENS: usize = 20;
/// Maximum number of contexts; each has room for a whole prompt.
const MAX_LANES: usize = 2;
/// A text with more bytes per token than this cannot fit and is not tokenised.
const MAX_BYTES_PER_TOKEN: usize = 64;

/// Loads the weights of a file. The error is one line that names the file.
pub(super) fn load(file: &Path) -> Result<LlamaModel, ModelError> {
    let name = file.display();
    let again = || {
        Some("fetch it again with `selftest judge model pull NAME`, or name another file".into())
    };
    let unreadable = |error| ModelError::engine(format!("cannot read {name}: {error}"), again());
    let mut magic = Vec::new();
    let opened = open_regular(file).map_err(unreadable)?;
    let bytes = opened.metadata().map_err(unreadable)?.len();
    opened.take(4).read_to_end(&mut magic).map_err(unreadable)?;
    // Checked here, because llama.cpp's own messages are silenced.
    if magic != b"GGUF" {
        return Err(ModelError::engine(
            format!("{name} is not a GGUF file ({bytes} bytes)"),
            again(),
        ));
    }
    // Before any of llama.cpp's kernels run, which could hit an illegal instruction.
    worker::check()?;
    LlamaModel::load(file).ok_or_else(|| {
        let what = format!(
            "llama.cpp cannot load {name} ({bytes} bytes): it is truncated, or of an \
             architecture that this llama.cpp does not know"
        );
        ModelError::engine(what, again())
    })
}

/// Lifetime of a cached prefix state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StateLifetime {
    /// Memory only: the prefix may contain project text.
    InMemory,
    /// Disk: the prefix contains only text of this program.
    OnDisk,
}

/// A context and its known contents.
struct ContextLane<'model> {
    context: LlamaContext<'model>,
    /// Segments in the context, if it can be truncated to the end of each.
    segments: Vec<Vec<Token>>,
}

/// A loaded model with its contexts and caches.
pub(super) struct InferenceEngine<'model> {
    model: &'model LlamaModel,
    /// The active lane is first. A judge alternates between two conversations with the same long
    /// evidence, and each uses its own context.
    lanes: Vec<ContextLane<'model>>,
    threads: usize,
    /// Maximum number of tokens of prompt and reply together.
    limit: usize,
    compute_lock: ComputeLock,
    prefixes: PrefixCache,
    state_cache: StateCache,
    constraints: Option<GrammarCache>,
    /// Tokens that can mean yes or no, computed once.
    yes_no_tokens: Option<Vec<Token>>,
}

impl<'model> InferenceEngine<'model> {
    /// Creates a context of at most `context_tokens` tokens, limited by the model's training
    /// context.
    pub(super) fn new(
        model: &'model LlamaModel,
        file: &Path,
        cache_folder: &Path,
        context_tokens: u32,
    ) -> Result<Self, ModelError> {
        let limit = match model.trained_context() {
            // A file may leave it out.
            0 => context_tokens,
            trained => trained.min(context_tokens),
        };
        let threads = worker::max_threads();
        let context = LlamaContext::new(model, limit, BATCH, threads).ok_or_else(|| {
            let what = format!("no context of {limit} tokens for {}", file.display());
            ModelError::engine(
                what,
                Some("lower models.context_tokens, or take a smaller model".to_owned()),
            )
        })?;
        Ok(Self {
            model,
            lanes: vec![ContextLane { context, segments: Vec::new() }],
            threads,
            limit: limit as usize,
            compute_lock: ComputeLock::open(file),
            prefixes: PrefixCache::default(),
            state_cache: StateCache::new(file, cache_folder, limit as usize),
            constraints: None,
            yes_no_tokens: None,
        })
    }

    /// Returns the maximum number of tokens of prompt and reply together.
    pub(super) fn context_tokens(&self) -> u32 {
        u32::try_from(self.limit).unwrap_or(u32::MAX)
    }

    /// Generates a reply.
    pub(super) fn reply(
        &mut self,
        request: &ChatRequest,
        interrupt: &CallInterrupt,
    ) -> Result<ChatReply, ModelError> {
        self.reply_with_threads(worker::available_threads(self.threads), request, interrupt)
    }

    /// Generates a reply with this number of threads, which does not affect the result.
    pub(super) fn reply_with_threads(
        &mut self,
        threads: usize,
        request: &ChatRequest,
        interrupt: &CallInterrupt,
    ) -> Result<ChatReply, ModelError> {
        // The call may have been cancelled while it was queued.
        interrupt.check()?;
        self.use_threads(threads);
        let bytes = request.prompt_bytes();
        // Tokenising a text of many megabytes takes long, only to say that it is too long.
        if bytes > self.limit.saturating_mul(MAX_BYTES_PER_TOKEN) {
            return Err(self.prompt_too_long(format!("{bytes} bytes")));
        }
        let prompt = conversation::build_prompt(self.model, request)?;
        let prompt_tokens = prompt.len();
        // At least one token has to be left for the reply.
        if prompt_tokens >= self.limit {
            return Err(self.prompt_too_long(format!("{prompt_tokens} tokens")));
        }
        if let Some(probe) = &request.first_token {
            return match &probe.reply {
                Some(reply) => self.likelihood(prompt, reply, interrupt),
                None => self.first_token(prompt, interrupt),
            };
        }
        // Above 0: the prompt was compared with the limit.
        let most = (self.limit - prompt_tokens).min(request.sampling.max_tokens.max(1) as usize);
        let mut sampler = TokenSampler::new(&request.sampling);
        let is_bounded =
            request.schema.as_ref().is_some_and(|schema| bounds_strings(&schema.schema));
        let mut draft = ReplyDraft::new(self.model, self.matcher(request)?, most, !is_bounded);

        self.load_prefix(&prompt.prefix, StateLifetime::InMemory, interrupt)?;
        let mut undecoded = prompt.rest;
        let finish = loop {
            // The last sampled token is not decoded yet. Together with the forced ones it makes one
            // batch, instead of one pass through the weights for each token.
            undecoded.extend(draft.add_forced()?);
            if let Some(finish) = draft.finish_reason() {
                break finish;
            }
            self.decode(&undecoded, interrupt)?;
            undecoded.clear();
            let mask = draft.mask()?;
            let logits = self.lanes[0].context.logits();
            let Some(token) = logits.and_then(|logits| sampler.pick(logits, mask.as_ref())) else {
                return Err(ModelError::engine(
                    "the model gives no usable next token".to_owned(),
                    None,
                ));
            };
            if self.model.is_end_token(token) {
                break FinishReason::Stop;
            }
            draft.add_token(token)?;
            undecoded.push(token);
        };
        let usage = TokenUsage {
            prompt_tokens: Some(prompt_tokens as u64),
            completion_tokens: Some(draft.tokens() as u64),
        };
        let structured = match request.schema {
            Some(_) => StructuredMode::Schema,
            None => StructuredMode::Prompt,
        };
        let text = draft.into_text();
        Ok(ChatReply { usage, structured, ..ChatReply::plain(text, finish) })
    }

    /// Returns the probabilities of the likeliest first tokens and of all tokens that can mean yes
    /// or no.
    fn first_token(
        &mut self,
        prompt: SegmentedPrompt,
        interrupt: &CallInterrupt,
    ) -> Result<ChatReply, ModelError> {
        let prompt_tokens = prompt.len();
        self.load_prompt(prompt, interrupt)?;
        let model = self.model;
        // A vocabulary has tens of thousands of tokens, and a judge asks for hundreds of first
        // tokens.
        let answers = self.yes_no_tokens.get_or_insert_with(|| {
            let bears =
                |token: &Token| YesNoAnswer::from_token(&token_text(model, *token)).is_some();
            (0..model.vocabulary_size()).filter(bears).collect()
        });
        let logits = self.lanes[0].context.logits().ok_or_else(|| {
            ModelError::engine("the model gives no usable next token".to_owned(), None)
        })?;
        let chances = probabilities(logits).ok_or_else(|| {
            ModelError::engine("the model's next token has no probability".to_owned(), None)
        })?;
        let mut tokens: Vec<Token> = (0..model.vocabulary_size()).collect();
        let chance = |token: &Token| chances[*token as usize];
        // `select_nth_unstable_by` panics if the index is out of bounds.
        let likeliest = TOP_TOKENS.min(tokens.len().saturating_sub(1));
        tokens.select_nth_unstable_by(likeliest, |a, b| chance(b).total_cmp(&chance(a)));
        tokens.truncate(likeliest);
        // A judge reads yes and no even if neither is among the likeliest.
        tokens.extend(&*answers);
        // Ties are broken by token, so that results repeat.
        tokens.sort_unstable_by(|a, b| chance(b).total_cmp(&chance(a)).then(a.cmp(b)));
        tokens.dedup();
        let read = |token: &Token| TokenProbability {
            text: token_text(model, *token),
            probability: chance(token),
        };
        let first_token: Vec<TokenProbability> = tokens.iter().map(read).collect();
        let text = first_token.first().map(|token| token.text.clone()).unwrap_or_default();
        Ok(ChatReply {
            usage: TokenUsage {
                prompt_tokens: Some(prompt_tokens as u64),
                completion_tokens: Some(1),
            },
            first_token: Some(first_token),
            ..ChatReply::plain(text, FinishReason::Stop)
        })
    }

    /// Returns the likelihood of a text as the reply: the sum of the log-probabilities of its
    /// tokens, each conditioned on those before it.
    fn likelihood(
        &mut self,
        prompt: SegmentedPrompt,
        reply: &str,
        interrupt: &CallInterrupt,
    ) -> Result<ChatReply, ModelError> {
        let prompt_tokens = prompt.len();
        let tokens = self.model.tokenize(reply.as_bytes(), false);
        let Some((first, _)) = tokens.split_first() else {
            return Err(ModelError::engine("an empty reply has no likelihood".to_owned(), None));
        };
        if prompt_tokens + tokens.len() > self.limit {
            return Err(self.prompt_too_long(format!("{} tokens", prompt_tokens + tokens.len())));
        }
        self.load_prompt(prompt, interrupt)?;
        let unusable =
            || ModelError::engine("the model's next token has no probability".to_owned(), None);
        let chance = |logits: Option<&[f32]>, token| {
            logits.and_then(|logits| log_probability(logits, token)).ok_or_else(unusable)
        };
        let mut sum = chance(self.lanes[0].context.logits(), *first)?;
        // Nothing follows the last token, so it is not decoded.
        let mut done = 0;
        for batch in tokens[..tokens.len() - 1].chunks(BATCH as usize) {
            self.decode_batch(batch, PredictAfter::Each, interrupt)?;
            for place in 0..batch.len() {
                sum += chance(self.lanes[0].context.logits_after(place), tokens[done + place + 1])?;
            }
            done += batch.len();
        }
        let count = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let (prompt_tokens, completion_tokens) = (Some(prompt_tokens as u64), Some(count.into()));
        Ok(ChatReply {
            usage: TokenUsage { prompt_tokens, completion_tokens },
            likelihood: Some(ReplyLikelihood { log_probability: sum, tokens: count }),
            ..ChatReply::plain(reply.to_owned(), FinishReason::Stop)
        })
    }

    /// Brings the context to the end of a prompt that shares segments with others.
    fn load_prompt(
        &mut self,
        prompt: SegmentedPrompt,
        interrupt: &CallInterrupt,
    ) -> Result<(), ModelError> {
        let SegmentedPrompt { prefix, mut shared, rest } = prompt;
        shared.insert(0, prefix);
        let same = self.activate_lane(&shared);
        let kept: usize = shared[..same].iter().map(Vec::len).sum();
        let lane = self.lane();
        // Cleared until the prompt is decoded: after an error, the contents would be unknown.
        lane.segments.clear();
        // If only the first segment matches, its cached state is restored instead.
        let start = if same > 1 && lane.context.truncate(kept) {
            same
        } else {
            // The first segment, the rubric, is shared by all questions.
            self.load_prefix(&shared[0], StateLifetime::OnDisk, interrupt)?;
            1
        };
        for segment in shared[start..].iter().filter(|segment| !segment.is_empty()) {
            self.decode(segment, interrupt)?;
        }
        self.decode(&rest, interrupt)?;
        self.lane().segments = shared;
        Ok(())
    }

    /// Returns the active lane.
    fn lane(&mut self) -> &mut ContextLane<'model> {
        &mut self.lanes[0]
    }

    /// Activates the lane with the most leading segments in common and returns their number. If no
    /// lane shares more than the first, activates an empty lane or the least recently used one.
    fn activate_lane(&mut self, wanted: &[Vec<Token>]) -> usize {
        let same = |lane: &ContextLane<'_>| {
            wanted.iter().zip(&lane.segments).take_while(|(wanted, held)| wanted == held).count()
        };
        let all: Vec<usize> = self.lanes.iter().map(same).collect();
        let (at, same) = match all.iter().enumerate().max_by_key(|(_, same)| **same) {
            Some((at, same)) if *same > 1 => (at, *same),
            // The rubric alone is no reason to take a lane from another conversation: its state is
            // cached.
            _ => (self.free_lane(), 0),
        };
        // The first lane is the one in use; the others stay in the order of their last use.
        let lane = self.lanes.remove(at);
        self.lanes.insert(0, lane);
        same
    }

    /// Returns the index of a reusable lane, creating one if memory allows.
    fn free_lane(&mut self) -> usize {
        if let Some(empty) = self.lanes.iter().position(|lane| lane.segments.is_empty()) {
            return empty;
        }
        if self.lanes.len() < MAX_LANES {
            let limit = u32::try_from(self.limit).unwrap_or(u32::MAX);
            if let Some(context) = LlamaContext::new(self.model, limit, BATCH, self.threads) {
                self.lanes.push(ContextLane { context, segments: Vec::new() });
            }
        }
        // The last lane is the one that was not used for longest.
        self.lanes.len() - 1
    }

    fn use_threads(&mut self, threads: usize) {
        for lane in &mut self.lanes {
            lane.context.set_threads(threads);
        }
        self.threads = threads;
    }

    fn matcher(&mut self, request: &ChatRequest) -> Result<Option<Matcher>, ModelError> {
        let Some(schema) = &request.schema else {
            return Ok(None);
        };
        let constraints = match self.constraints.take() {
            Some(constraints) => constraints,
            None => GrammarCache::new(self.model)?,
        };
        self.constraints.insert(constraints).matcher(schema).map(Some)
    }

    /// Brings the context to the state after the prefix, from memory or disk if possible.
    fn load_prefix(
        &mut self,
        prefix: &[Token],
        keep: StateLifetime,
        interrupt: &CallInterrupt,
    ) -> Result<(), ModelError> {
        // Before the context changes: after an error, the lane must not claim what it has lost.
        self.lane().segments.clear();
        self.clear_context()?;
        if prefix.is_empty() {
            return Ok(());
        }
        if let Some(state) = self.prefixes.get(prefix) {
            if self.lanes[0].context.restore(state) {
                return Ok(());
            }
            // A failed restore may leave the context partly filled.
            self.clear_context()?;
        }
        let on_disk = match keep {
            StateLifetime::InMemory => None,
            StateLifetime::OnDisk => self.state_cache.load(prefix),
        };
        if let Some(state) = on_disk {
            if self.lanes[0].context.restore(&state) {
                self.prefixes.insert(prefix.to_vec(), state);
                return Ok(());
            }
            self.clear_context()?;
        }
        self.decode(prefix, interrupt)?;
        // Failing to save the state only costs time later.
        if let Some(state) = self.lanes[0].context.state() {
            if keep == StateLifetime::OnDisk {
                self.state_cache.save(prefix, &state);
            }
            self.prefixes.insert(prefix.to_vec(), state);
        }
        Ok(())
    }

    fn clear_context(&mut self) -> Result<(), ModelError> {
        if self.lanes[0].context.clear() {
            Ok(())
        } else {
            Err(ModelError::engine("the context cannot be cleared".to_owned(), None))
        }
    }

    /// Appends tokens to the context. The logits afterwards are those of the last one.
    fn decode(&mut self, tokens: &[Token], interrupt: &CallInterrupt) -> Result<(), ModelError> {
        let mut batches = tokens.chunks(BATCH as usize).peekable();
        while let Some(batch) = batches.next() {
            let last = batches.peek().is_none();
            let predict = if last { PredictAfter::Last } else { PredictAfter::Nothing };
            self.decode_batch(batch, predict, interrupt)?;
        }
        Ok(())
    }

    fn decode_batch(
        &mut self,
        batch: &[Token],
        predict: PredictAfter,
        interrupt: &CallInterrupt,
    ) -> Result<(), ModelError> {
        interrupt.check()?;
        // Held for one batch, so that other models can run in between.
        let turn = self.compute_lock.acquire();
        let decoded = self.lanes[0].context.decode(batch, predict);
        drop(turn);
        decoded
            .map_err(|code| ModelError::engine(format!("decoding: llama.cpp returns {code}"), None))
    }

    fn prompt_too_long(&self, length: String) -> ModelError {
        let most = Some(self.model.trained_context());
        ModelError::PromptTooLong { length: Some(length), limit: Some(self.limit), most }
    }
}

fn token_text(model: &LlamaModel, token: Token) -> String {
    String::from_utf8_lossy(&model.token_bytes(token, false)).into_owned()
}

/// Returns the log-probability of a token, or `None` if it is not in the vocabulary or not a
/// number.
fn log_probability(logits: &[f32], token: Token) -> Option<f64> {
    // Subtracting the maximum keeps the exponentials from overflowing.
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - greatest).exp()).sum();
    let chance = f64::from(logits.get(token as usize)? - greatest) - sum.ln();
    chance.is_finite().then_some(chance)
}

/// Returns the softmax of the logits, or `None` if they are not numbers.
fn probabilities(logits: &[f32]) -> Option<Vec<f64>> {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = logits.iter().map(|logit| f64::from(logit - greatest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    (sum.is_finite() && sum > 0.0).then(|| powers.into_iter().map(|power| power / sum).collect())
}

/// Name of the folder in the cache folder.
const STATES_FOLDER: &str = "states";
/// Maximum number of files; the oldest are removed first.
const MAX_FILES: usize = 8;
/// Maximum size in bytes of a stored state.
const MAX_FILE_BYTES: usize = 256 << 20;
/// Header of each file: format and program version.
const MAGIC: &[u8] = concat!("selftest state 1 ", env!("CARGO_PKG_VERSION"), "\n").as_bytes();
const DIGEST_BYTES: usize = 32;

/// Cached states for one weights file.
pub(super) struct StateCache {
    folder: PathBuf,
    /// Identity of weights and context. `None` if it cannot be determined, which disables the
    /// cache.
    weights: Option<String>,
}

impl StateCache {
    /// Creates a cache for these weights and this context size. Performs no I/O except for reading
    /// metadata.
    pub(super) fn new(weights: &Path, cache: &Path, context_tokens: usize) -> Self {
        // The size of the context is part of the key: a state is only restored into a context like
        // the one that it was saved from.
        let weights = file_stamp(weights).map(|stamp| format!("{stamp} {context_tokens}"));
        Self { folder: cache.join(STATES_FOLDER), weights }
    }

    /// Loads the state after exactly this prefix.
    pub(super) fn load(&self, prefix: &[Token]) -> Option<ContextState> {
        let mut bytes = Vec::new();
        open_regular(&self.file(prefix)?).ok()?.read_to_end(&mut bytes).ok()?;
        let rest = bytes.strip_prefix(MAGIC)?;
        let (digest, state) = rest.split_at_checked(DIGEST_BYTES)?;
        // Detects truncated and corrupted files.
        (Sha256::digest(state).as_slice() == digest)
            .then(|| ContextState::from_bytes(state.to_vec()))
    }

    /// Saves a state. On failure, the next run decodes the prefix again.
    pub(super) fn save(&self, prefix: &[Token], state: &ContextState) {
        let Some(file) = self.file(prefix).filter(|_| state.size() <= MAX_FILE_BYTES) else {
            return;
        };
        let content = [MAGIC, &Sha256::digest(state.as_bytes()), state.as_bytes()].concat();
        // Written under a temporary name first, so that readers never see a partial file.
        let part = file.with_extension(format!("{}.part", std::process::id()));
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| fs::write(&part, content))
            .and_then(|()| fs::rename(&part, &file));
        if written.is_err() {
            // If this fails too, pruning removes the file some day.
            let _ = fs::remove_file(part);
        }
        self.prune();
    }

    fn file(&self, prefix: &[Token]) -> Option<PathBuf> {
        let mut key = Sha256::new();
        key.update(self.weights.as_ref()?);
        for token in prefix {
            key.update(token.to_le_bytes());
        }
        Some(self.folder.join(format!("{}.state", selftest_text::digest::hex(&key.finalize()))))
    }

    fn prune(&self) {
        // Any file counts, also the `.part` files of processes that were killed.
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort_unstable();
        for (_, file) in files.iter().rev().skip(MAX_FILES) {
            // Another process may prune the folder at the same time.
            let _ = fs::remove_file(file);
        }
    }
}

/// Maximum number of states: generator, system under test and judge alternate, plus one spare.
const MAX_PREFIXES: usize = 4;
/// Maximum total size in bytes; the newest state is kept regardless of its size.
const MAX_MEMORY_BYTES: usize = 512 << 20;

/// Cached states in order of use, the most recent last.
#[derive(Default)]
pub(super) struct PrefixCache {
    states: Vec<(Vec<Token>, ContextState)>,
}

impl PrefixCache {
    /// Returns the state for exactly this prefix.
    pub(super) fn get(&mut self, prefix: &[Token]) -> Option<&ContextState> {
        let place = self.states.iter().position(|(tokens, _)| tokens == prefix)?;
        let entry = self.states.remove(place);
        self.states.push(entry);
        self.states.last().map(|(_, state)| state)
    }

    /// Inserts a state and evicts the least recently used ones.
    pub(super) fn insert(&mut self, prefix: Vec<Token>, state: ContextState) {
        self.states.retain(|(tokens, _)| *tokens != prefix);
        self.states.push((prefix, state));
        while self.states.len() > MAX_PREFIXES
            || (self.states.len() > 1 && self.bytes() > MAX_MEMORY_BYTES)
        {
            self.states.remove(0);
        }
    }

    fn bytes(&self) -> usize {
        self.states.iter().map(|(_, state)| state.size()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_for_its_own_weights_and_prefix_only() {
        let folder = tempfile::tempdir().unwrap();
        let weights = folder.path().join("x.gguf");
        fs::write(&weights, "weights").unwrap();
        let states = StateCache::new(&weights, folder.path(), 2048);
        states.save(&[1, 2], &ContextState::from_bytes(vec![7; 100]));
        assert_eq!(states.load(&[1, 2]).unwrap().as_bytes(), [7; 100]);
        assert!(states.load(&[1, 3]).is_none());
        assert!(StateCache::new(&weights, folder.path(), 4096).load(&[1, 2]).is_none());
        fs::write(&weights, "other weights").unwrap();
        assert!(StateCache::new(&weights, folder.path(), 2048).load(&[1, 2]).is_none());
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none_and_old_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let weights = folder.path().join("x.gguf");
        fs::write(&weights, "weights").unwrap();
        let states = StateCache::new(&weights, folder.path(), 2048);
        for prefix in 0..20 {
            states.save(&[prefix], &ContextState::from_bytes(vec![7; 100]));
        }
        assert_eq!(fs::read_dir(&states.folder).unwrap().count(), MAX_FILES);
        let file = states.file(&[19]).unwrap();
        let whole = fs::read(&file).unwrap();
        for damaged in [&whole[..whole.len() - 1], &whole[1..], b""] {
            fs::write(&file, damaged).unwrap();
            assert!(states.load(&[19]).is_none());
        }
    }
}
