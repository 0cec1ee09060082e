//! Loading a GGUF file, and one reply from it.
//!
//! Prompts are decoded in two steps, prefix and rest, whether the prefix is known or not: batch
//! borders change rounding, and a greedy reply must not depend on what was asked before.

use std::fs::File;
use std::io::Read as _;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::OnceLock;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::{LlamaStateSeqFlags, LogOptions, send_logs_to_tracing};
use llguidance::Matcher;

use super::constraint::Constraints;
use super::conversation;
use super::draft::Draft;
use super::interrupt::Interrupt;
use super::prefixes::Prefixes;
use super::sampler::Sampler;
use super::threads;
use super::turns::Turns;
use crate::{ChatReply, ChatRequest, Finish, ModelError, StructuredMode, Usage};

/// Tokens decoded at once; a call that is given up ends within one such batch.
const BATCH: u32 = 128;
/// llama.cpp's word for no flash attention: its sums depend on the number of threads.
const FLASH_ATTENTION_OFF: i32 = 0;
/// No text of more bytes per token than this is worth tokenising to see that it does not fit.
const MOST_BYTES_PER_TOKEN: usize = 64;

fn backend() -> Result<&'static LlamaBackend, ModelError> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    let backend = BACKEND.get_or_init(|| {
        send_logs_to_tracing(LogOptions::default().with_logs_enabled(false));
        LlamaBackend::init().map_err(|error| error.to_string())
    });
    backend
        .as_ref()
        .map_err(|error| ModelError::engine(format!("llama.cpp does not start: {error}"), None))
}

/// The weights of a file. The error is one line that names the file.
pub(super) fn load(file: &Path) -> Result<LlamaModel, ModelError> {
    let name = file.display();
    let again =
        || Some("fetch it again with `selftest model pull NAME`, or name another file".into());
    let unreadable = |error| ModelError::engine(format!("cannot read {name}: {error}"), again());
    let mut magic = Vec::new();
    let opened = File::open(file).map_err(unreadable)?;
    let bytes = opened.metadata().map_err(unreadable)?.len();
    opened.take(4).read_to_end(&mut magic).map_err(unreadable)?;
    if magic != b"GGUF" {
        return Err(ModelError::engine(
            format!("{name} is not a GGUF file ({bytes} bytes)"),
            again(),
        ));
    }
    LlamaModel::load_from_file(backend()?, file, &LlamaModelParams::default()).map_err(|_| {
        let what = format!(
            "llama.cpp cannot load {name} ({bytes} bytes): it is truncated, or of an \
             architecture that this llama.cpp does not know"
        );
        ModelError::engine(what, again())
    })
}

fn open(
    model: &LlamaModel,
    limit: u32,
    threads: usize,
) -> Result<LlamaContext<'_>, Box<dyn std::error::Error>> {
    let threads = i32::try_from(threads)?;
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(limit))
        .with_n_batch(BATCH)
        .with_n_ubatch(BATCH)
        .with_n_threads(threads)
        .with_n_threads_batch(threads)
        .with_flash_attention_policy(FLASH_ATTENTION_OFF);
    Ok(model.new_context(backend()?, params)?)
}

/// A loaded model with its context and what it remembers between calls.
pub(super) struct Engine<'model> {
    model: &'model LlamaModel,
    context: LlamaContext<'model>,
    threads: usize,
    /// Most tokens of prompt and reply together.
    limit: usize,
    batch: LlamaBatch<'static>,
    turns: Turns,
    prefixes: Prefixes,
    constraints: Option<Constraints>,
}

impl<'model> Engine<'model> {
    /// A context of at most `context_tokens` tokens, and no more than the model was trained with.
    pub(super) fn new(
        model: &'model LlamaModel,
        file: &Path,
        context_tokens: u32,
    ) -> Result<Self, ModelError> {
        let limit = match model.n_ctx_train() {
            0 => context_tokens,
            trained => trained.min(context_tokens),
        };
        let threads = threads::all();
        let context = open(model, limit, threads).map_err(|error| {
            let what = format!("no context of {limit} tokens for {}: {error}", file.display());
            ModelError::engine(
                what,
                Some("lower models.context_tokens, or take a smaller model".to_owned()),
            )
        })?;
        Ok(Self {
            model,
            context,
            threads,
            limit: limit as usize,
            batch: LlamaBatch::new(BATCH as usize, 1),
            turns: Turns::at(file),
            prefixes: Prefixes::default(),
            constraints: None,
        })
    }

    /// Most tokens of prompt and reply together.
    pub(super) fn context_tokens(&self) -> u32 {
        u32::try_from(self.limit).unwrap_or(u32::MAX)
    }

    /// One reply.
    pub(super) fn reply(
        &mut self,
        request: &ChatRequest,
        interrupt: &Interrupt,
    ) -> Result<ChatReply, ModelError> {
        self.reply_with(threads::wanted(self.threads), request, interrupt)
    }

    /// One reply, computed by so many threads; their number does not show in it.
    pub(super) fn reply_with(
        &mut self,
        threads: usize,
        request: &ChatRequest,
        interrupt: &Interrupt,
    ) -> Result<ChatReply, ModelError> {
        interrupt.check()?;
        self.use_threads(threads);
        let bytes = request.prompt_bytes();
        if bytes > self.limit.saturating_mul(MOST_BYTES_PER_TOKEN) {
            return Err(self.too_long(format!("{bytes} bytes")));
        }
        let prompt = conversation::prompt(self.model, &request.messages)?;
        let prompt_tokens = prompt.len();
        if prompt_tokens >= self.limit {
            return Err(self.too_long(format!("{prompt_tokens} tokens")));
        }
        let most = (self.limit - prompt_tokens).min(request.sampling.max_tokens.max(1) as usize);
        let mut sampler = Sampler::new(&request.sampling);
        let mut draft = Draft::new(self.model, self.matcher(request)?, most);

        self.enter(&prompt.prefix, interrupt)?;
        let mut position = prompt.prefix.len();
        let mut undecoded = prompt.rest;
        let finish = loop {
            undecoded.extend(draft.add_forced()?);
            if let Some(finish) = draft.finish() {
                break finish;
            }
            self.decode(&undecoded, position, interrupt)?;
            position += undecoded.len();
            undecoded.clear();
            let mask = draft.mask()?;
            let Some(token) = sampler.pick(self.context.get_logits(), mask.as_ref()) else {
                return Err(ModelError::engine(
                    "the model gives no usable next token".to_owned(),
                    None,
                ));
            };
            let token = LlamaToken(token.cast_signed());
            if self.model.vocab().is_eog(token) {
                break Finish::Stop;
            }
            draft.add(token)?;
            undecoded.push(token);
        };
        let usage = Usage {
            prompt_tokens: Some(prompt_tokens as u64),
            completion_tokens: Some(draft.tokens() as u64),
        };
        let structured = match request.schema {
            Some(_) => StructuredMode::Schema,
            None => StructuredMode::Prompt,
        };
        Ok(ChatReply { text: draft.into_text(), finish, usage, structured })
    }

    fn use_threads(&mut self, threads: usize) {
        if threads == self.threads {
            return;
        }
        // Where a second context cannot be had, the first one does.
        let limit = u32::try_from(self.limit).unwrap_or(u32::MAX);
        if let Ok(context) = open(self.model, limit, threads) {
            (self.context, self.threads) = (context, threads);
        }
    }

    fn matcher(&mut self, request: &ChatRequest) -> Result<Option<Matcher>, ModelError> {
        let Some(schema) = &request.schema else {
            return Ok(None);
        };
        let constraints = match self.constraints.take() {
            Some(constraints) => constraints,
            None => Constraints::new(self.model)?,
        };
        self.constraints.insert(constraints).matcher(schema).map(Some)
    }

    /// Brings the context to the state after the prefix, from memory where possible.
    fn enter(&mut self, prefix: &[LlamaToken], interrupt: &Interrupt) -> Result<(), ModelError> {
        self.forget()?;
        if prefix.is_empty() {
            return Ok(());
        }
        if let Some(state) = self.prefixes.get(prefix) {
            if self.context.state_seq_set(state, 0).is_ok() {
                return Ok(());
            }
            self.forget()?;
        }
        self.decode(prefix, 0, interrupt)?;
        // A state that cannot be kept costs time, nothing else.
        if let Ok(state) = self.context.state_seq_get(0, LlamaStateSeqFlags::empty()) {
            self.prefixes.insert(prefix.to_vec(), state);
        }
        Ok(())
    }

    fn forget(&mut self) -> Result<(), ModelError> {
        match self.context.clear_kv_cache_seq(Some(0), None, None) {
            Ok(true) => Ok(()),
            _ => Err(ModelError::engine("the context cannot be cleared".to_owned(), None)),
        }
    }

    /// Decodes tokens from this position on; the logits are those after the last one.
    fn decode(
        &mut self,
        tokens: &[LlamaToken],
        start: usize,
        interrupt: &Interrupt,
    ) -> Result<(), ModelError> {
        let broken =
            |error: &dyn std::fmt::Display| ModelError::engine(format!("decoding: {error}"), None);
        let mut position = i32::try_from(start).map_err(|error| broken(&error))?;
        for (number, chunk) in tokens.chunks(BATCH as usize).enumerate() {
            interrupt.check()?;
            self.batch.clear();
            let done = number * BATCH as usize;
            for (place, token) in chunk.iter().enumerate() {
                let last = done + place + 1 == tokens.len();
                self.batch.add(*token, position, &[0], last).map_err(|error| broken(&error))?;
                position += 1;
            }
            let turn = self.turns.take();
            let decoded = self.context.decode(&mut self.batch);
            drop(turn);
            decoded.map_err(|error| broken(&error))?;
        }
        Ok(())
    }

    fn too_long(&self, length: String) -> ModelError {
        ModelError::PromptTooLong { length, limit: self.limit, most: self.model.n_ctx_train() }
    }
}
