//! Chat models behind one trait: `ollama`, `openai`, `embedded`, `cassette`.
//!
//! Each provider's quirks stay in its file. This crate knows nothing of judging or reports and
//! prints nothing.
//!
//! ```
//! use selftest_models::structured::StrictReader;
//! use serde_json::json;
//!
//! let reader = StrictReader::new(&json!({ "type": "object", "required": ["score"] }));
//! assert!(reader.read(r#"{"score": 0.5}"#).is_ok());
//! // A truncated reply is no reply.
//! assert!(reader.read(r#"{"score": 0.5"#).is_err());
//! ```

pub mod cassette;
pub mod choice;
pub mod completion;
pub mod embedded;
pub mod error;
#[cfg(test)]
mod example;
pub mod fence;
pub mod guarded;
pub mod http;
pub mod journaled;
pub mod locator;
pub mod model_files;
pub mod model_settings;
pub mod name;
pub mod ollama;
pub mod openai;
pub mod prices;
pub mod prompts;
pub mod server_address;
pub mod structured;
pub mod thinking;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use choice::DecisionAnswer;
pub use error::{ModelError, TimeoutPhase};
use thinking::{ReplySource, SeenThinking, see_thinking};

/// A model that answers a conversation. Dropping the future of a call cancels the call.
pub trait ChatModel: Send + Sync {
    /// Returns the full name as in reports, such as `ollama/qwen2.5:7b`.
    fn id(&self) -> &str;

    /// Generates one reply to a conversation.
    fn chat<'a>(&'a self, request: &'a ChatRequest)
    -> BoxFuture<'a, Result<ChatReply, ModelError>>;

    /// Checks that the model can answer: server reachable, model present, file readable. Called
    /// once, before the first case.
    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>>;

    /// Returns true if calls may be made before [`ChatModel::check`] has finished. This is the case
    /// if errors of a call are as clear as those of the check.
    fn supports_lazy_check(&self) -> bool {
        false
    }

    /// Returns true if the model probably supports requests for the first token. May send one
    /// request to the server.
    fn supports_logprobs(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { false })
    }

    /// Returns true if the model is a decision model: it answers the questions of
    /// [`ChatRequest::decisions`] with probabilities, in one request.
    fn supports_decisions(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { false })
    }

    /// Returns true if the model can compute the likelihood of a given reply. Servers cannot.
    fn supports_scoring(&self) -> bool {
        false
    }

    /// Returns a digest of the model's weights, if available, to tell it from another model of the
    /// same name.
    fn fingerprint(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { None })
    }

    /// Returns the model's maximum context length in tokens, or `None` if unknown.
    fn context_limit(&self) -> BoxFuture<'_, Option<u32>> {
        Box::pin(async { None })
    }

    /// Returns the model behind a recorder, for calls that are no part of a recorded run; `None` if
    /// calls are not recorded.
    fn unrecorded(&self) -> Option<Arc<dyn ChatModel>> {
        None
    }

    /// Removes the user's secrets from a text for reports.
    fn redact(&self, text: &Arc<str>) -> Arc<str> {
        Arc::clone(text)
    }
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    /// Instructions. Text that is the same in all calls belongs here, because it forms the cached
    /// prefix.
    System,
    /// The other side.
    User,
    /// The model.
    Assistant,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptMessage {
    /// Author of the message.
    pub role: ChatRole,
    /// Text. Shared, because a run keeps the requests of all its calls, and most start with the
    /// same text.
    pub text: Arc<str>,
}

impl PromptMessage {
    /// Creates a system message.
    pub fn system(text: impl Into<Arc<str>>) -> Self {
        Self { role: ChatRole::System, text: text.into() }
    }
    /// Creates a user message.
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self { role: ChatRole::User, text: text.into() }
    }
    /// Creates a message with an earlier reply of the model.
    pub fn assistant(text: impl Into<Arc<str>>) -> Self {
        Self { role: ChatRole::Assistant, text: text.into() }
    }
}

/// A message in the protocols of OpenAI and Ollama.
#[derive(Serialize)]
struct WireMessage<'a> {
    role: ChatRole,
    content: &'a str,
}

impl<'a> From<&'a PromptMessage> for WireMessage<'a> {
    fn from(message: &'a PromptMessage) -> Self {
        Self { role: message.role, content: &message.text }
    }
}

/// The JSON Schema that a reply must satisfy.
#[derive(Debug, Clone)]
pub struct ReplySchema {
    /// Short name for OpenAI's `json_schema.name`.
    pub name: &'static str,
    /// An object schema with `additionalProperties: false` and all properties required. A string
    /// without `maxLength` may run until the call's token limit. llama.cpp rejects a `maxLength`
    /// over 2000.
    pub schema: Arc<Value>,
}

/// Default maximum number of thinking tokens.
pub const DEFAULT_THINK_TOKENS: u32 = 2000;

/// Thinking mode of a model that supports it. Always sent to the server, because servers have
/// different defaults, and thinking would use up the tokens of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThinkingMode {
    /// Replies without thinking.
    #[default]
    Off,
    /// May think first.
    On {
        /// Maximum number of thinking tokens, in addition to those of the reply.
        tokens: u32,
    },
}

impl ThinkingMode {
    /// Converts the effective `think` and `think_tokens` settings of a role.
    pub fn from_settings(think: Option<bool>, tokens: u32) -> Self {
        if think == Some(true) { ThinkingMode::On { tokens } } else { ThinkingMode::Off }
    }

    /// Returns true if thinking is enabled.
    pub fn is_on(self) -> bool {
        self != ThinkingMode::Off
    }

    /// Returns the maximum number of thinking tokens.
    pub fn tokens(self) -> u32 {
        match self {
            ThinkingMode::Off => 0,
            ThinkingMode::On { tokens } => tokens,
        }
    }
}

/// Parameters for choosing the next token.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SamplingParameters {
    /// Temperature; 0.0 is greedy.
    pub temperature: f64,
    /// Maximum number of tokens of the reply.
    pub max_tokens: u32,
    /// Seed of the sampler, derived from the run's seed.
    pub seed: u64,
}

/// One call with the whole conversation, since providers keep no state.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// Messages: system first, user last.
    pub messages: Vec<PromptMessage>,
    /// Schema of the reply; `None` for free text.
    pub schema: Option<ReplySchema>,
    /// Sampling parameters.
    pub sampling: SamplingParameters,
    /// Context window in tokens to request, if the protocol supports it. Constant during a run,
    /// because Ollama reloads the model when it changes.
    pub context_tokens: u32,
    /// Thinking mode.
    pub think: ThinkingMode,
    /// Random text in the messages to exclude from the digest.
    pub nonce: Option<String>,
    /// Set to read the next token's probabilities instead of a reply.
    pub first_token: Option<FirstTokenProbe>,
}

/// A request for the model's likeliest replies and their probabilities, instead of a generated
/// reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FirstTokenProbe {
    /// Ascending byte offsets into the last message. Several calls share the text up to each
    /// offset, so an engine can cache its state there.
    pub cuts: Vec<usize>,
    /// A complete reply to compute the likelihood of, for models that [support
    /// it](ChatModel::supports_scoring).
    pub reply: Option<String>,
    /// Yes/no questions about the last message, for models that [decide](ChatModel::supports_decisions)
    /// all of them in one request.
    pub questions: Vec<String>,
}

impl ChatRequest {
    /// Creates a request for a structured reply.
    pub fn structured(
        prompt: impl Into<Vec<PromptMessage>>,
        schema: &ReplySchema,
        sampling: SamplingParameters,
        context_tokens: u32,
    ) -> Self {
        let (messages, schema) = (prompt.into(), Some(schema.clone()));
        let (think, nonce, first_token) = (ThinkingMode::Off, None, None);
        Self { messages, schema, sampling, context_tokens, think, nonce, first_token }
    }

    /// Creates a request for the probabilities of the first token, without thinking.
    pub fn first_token(
        prompt: impl Into<Vec<PromptMessage>>,
        cuts: Vec<usize>,
        seed: u64,
        context_tokens: u32,
    ) -> Self {
        Self {
            messages: prompt.into(),
            schema: None,
            sampling: SamplingParameters { temperature: 0.0, max_tokens: 1, seed },
            context_tokens,
            think: ThinkingMode::Off,
            nonce: None,
            first_token: Some(FirstTokenProbe { cuts, ..FirstTokenProbe::default() }),
        }
    }

    /// Creates a request for the likelihood of this text as the reply.
    pub fn likelihood(
        prompt: impl Into<Vec<PromptMessage>>,
        cuts: Vec<usize>,
        reply: String,
        context_tokens: u32,
    ) -> Self {
        let first_token =
            Some(FirstTokenProbe { cuts, reply: Some(reply), ..FirstTokenProbe::default() });
        Self { first_token, ..Self::first_token(prompt, Vec::new(), 0, context_tokens) }
    }

    /// Creates a request for decisions about a state.
    pub fn decisions(state: String, questions: Vec<String>, context_tokens: u32) -> Self {
        let first_token = Some(FirstTokenProbe { questions, ..FirstTokenProbe::default() });
        let state = [PromptMessage::user(state)];
        Self { first_token, ..Self::first_token(state, Vec::new(), 0, context_tokens) }
    }

    /// Returns the questions to decide, if that is what is asked for.
    pub fn questions(&self) -> &[String] {
        self.first_token.as_ref().map_or(&[], |probe| &probe.questions)
    }

    /// Sets the nonce of the evidence fences in the messages.
    #[must_use]
    pub fn with_nonce(self, nonce: &fence::FenceNonce) -> Self {
        Self { nonce: Some(nonce.as_str().to_owned()), ..self }
    }

    /// Sets the thinking mode.
    #[must_use]
    pub fn with_thinking(self, think: ThinkingMode) -> Self {
        Self { think, ..self }
    }

    /// Returns the maximum number of tokens to generate, including thinking.
    fn max_output_tokens(&self) -> u32 {
        match self.first_token {
            Some(_) => 1,
            None => self.sampling.max_tokens.saturating_add(self.think.tokens()),
        }
    }

    fn temperature(&self) -> f64 {
        if self.first_token.is_some() { 0.0 } else { self.sampling.temperature }
    }

    /// Returns the total length of all messages in bytes.
    pub fn prompt_bytes(&self) -> usize {
        self.messages.iter().map(|message| message.text.len()).sum()
    }

    /// Estimates the size of the request in JSON, rounded up.
    fn estimated_json_bytes(&self) -> usize {
        self.prompt_bytes() * 9 / 8 + 4096
    }

    /// Converts the messages to the form shared by OpenAI's and Ollama's protocols.
    fn wire_messages(&self) -> Vec<WireMessage<'_>> {
        self.messages.iter().map(WireMessage::from).collect()
    }
}

/// Reason why a reply ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model finished.
    Stop,
    /// A limit cut the reply. Never complete, even if it parses.
    Length,
    /// Generation was stopped because the reply repeated itself. Never complete, like a truncated
    /// reply.
    Repeated,
    /// The model declined, with the provider's message.
    Refusal(String),
    /// The reply ended within its thinking, so that there is no answer.
    UnfinishedThinking,
    /// Any other reason reported by the provider.
    Other(String),
}

/// Method by which the schema was enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StructuredMode {
    /// Decoding was constrained by the schema.
    Schema,
    /// Decoding was constrained to JSON objects.
    JsonObject,
    /// The schema was only stated in the prompt.
    Prompt,
}

/// Token counts reported by the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenUsage {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens of the reply.
    pub completion_tokens: Option<u64>,
}

/// One reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatReply {
    /// Text without thinking.
    pub text: String,
    /// The text as the server sent it, if thinking was taken off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_text: Option<String>,
    /// What was repaired: thinking that was taken off, parameters that the server refuses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Reason why the reply ended.
    pub finish: FinishReason,
    /// Token counts.
    pub usage: TokenUsage,
    /// Method by which the schema was enforced.
    pub structured: StructuredMode,
    /// Likeliest first tokens, if requested and supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<Vec<TokenProbability>>,
    /// Likelihood of the reply, if requested and supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<ReplyLikelihood>,
    /// Answers to yes/no questions, if requested and supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Vec<DecisionAnswer>>,
    /// Model name reported by the server, clipped; absent for models without a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_model: Option<String>,
    /// Digest of the request if it was already computed, because computing it is slow.
    #[serde(skip)]
    pub request_digest: Option<String>,
}

impl ChatReply {
    /// Returns true if the reply holds probabilities, which are the same each time, and no sample.
    pub const fn is_reading(&self) -> bool {
        self.first_token.is_some() || self.likelihood.is_some() || self.decisions.is_some()
    }
}

/// Likelihood of a text as a model's reply.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyLikelihood {
    /// Sum of the natural logarithms of its tokens' probabilities; at most 0.
    pub log_probability: f64,
    /// Number of tokens, at least 1.
    pub tokens: u32,
}

impl ReplyLikelihood {
    /// Returns the mean log-probability per token, in nats.
    pub fn per_token(self) -> f64 {
        self.log_probability / f64::from(self.tokens.max(1))
    }
}

/// Probability of a token as the first of a reply, before sampling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TokenProbability {
    /// Text of the token, including white space.
    pub text: String,
    /// Probability over the whole vocabulary, 0.0 to 1.0.
    pub probability: f64,
}

impl ChatReply {
    /// Creates a reply with only a text and a finish reason.
    pub fn plain(text: String, finish: FinishReason) -> Self {
        let (usage, structured) = (TokenUsage::default(), StructuredMode::Prompt);
        let (first_token, likelihood, decisions) = (None, None, None);
        let (served_model, request_digest) = (None, None);
        Self {
            text,
            raw_text: None,
            notes: Vec::new(),
            finish,
            usage,
            structured,
            first_token,
            likelihood,
            decisions,
            served_model,
            request_digest,
        }
    }

    /// Returns true if the reported token count shows that the server truncated the prompt.
    /// Tokenizers average at most eight bytes per token, so a lower count means truncation. A server
    /// cuts to the size of its context, so a count below that of any context means something else:
    /// some servers report 0, or only the tokens that were not in their cache.
    pub fn is_prompt_truncated(&self, request: &ChatRequest) -> bool {
        self.usage.prompt_tokens.is_some_and(|tokens| {
            tokens >= MIN_CONTEXT_TOKENS && tokens.saturating_mul(8) < request.prompt_bytes() as u64
        })
    }

    /// Takes thinking off that the server left in the text, and keeps the text as it was.
    fn take_thinking_off(&mut self) {
        let answer = match see_thinking(&self.text, ReplySource::Model) {
            SeenThinking::None => return,
            SeenThinking::TakenOff { answer } => {
                let taken = self.text.len() - answer.len();
                self.notes.push(format!("{taken} bytes of thinking were taken off the content"));
                answer.to_owned()
            }
            SeenThinking::Unfinished => {
                self.notes.push("the content ended within its thinking".to_owned());
                // A limit stays the reason, because its message names the setting to raise.
                if self.finish == FinishReason::Stop {
                    self.finish = FinishReason::UnfinishedThinking;
                }
                String::new()
            }
        };
        self.raw_text = Some(std::mem::replace(&mut self.text, answer));
    }
}

/// Fewest tokens that a server's context leaves of a prompt that it cut. No smaller context is in use.
const MIN_CONTEXT_TOKENS: u64 = 256;

/// Estimates the number of tokens of a text: one for every 3.5 bytes. The true number can be lower
/// or higher.
pub fn estimate_tokens(text: &str) -> u32 {
    u32::try_from(text.len() * 2 / 7 + 1).unwrap_or(u32::MAX)
}

/// One call, as stored in the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallRecord {
    /// Full name of the model.
    pub model: String,
    /// SHA-256 of the request without its nonce.
    pub prompt_digest: String,
    /// The request; absent in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestRecord>,
    /// Sampling parameters.
    pub parameters: SamplingParameters,
    /// Model name reported by the server; absent without a server or a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_model: Option<String>,
    /// Method by which the schema was enforced; absent without a reply.
    pub structured: Option<StructuredMode>,
    /// Token counts.
    pub usage: TokenUsage,
    /// Wall time, including time in the queue.
    pub duration_ms: u64,
    /// Reason why the reply ended; absent without a reply.
    pub finish: Option<FinishReason>,
    /// Unmodified reply, clipped.
    pub raw_reply: Option<String>,
    /// What was repaired: thinking that was taken off, parameters that the server refuses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Likeliest first tokens, if requested, clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<Vec<TokenProbability>>,
    /// Likelihood of the reply, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<ReplyLikelihood>,
    /// Error message if there was no reply.
    pub error: Option<String>,
    /// True if the server or its connection caused the missing reply.
    #[serde(default, skip_serializing_if = "is_false")]
    pub outage: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A request to a model, as stored in the report: redacted and clipped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestRecord {
    /// The whole conversation, including evidence fences.
    pub messages: Vec<PromptMessage>,
    /// Name of the reply's schema; absent for free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// True if a thinking model may think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<bool>,
    /// True if only the probabilities of the first token were requested.
    #[serde(default, skip_serializing_if = "is_false")]
    pub first_token: bool,
}

impl RequestRecord {
    fn new(model: &dyn ChatModel, request: &ChatRequest) -> Self {
        let mut room = MAX_RECORDED_BYTES;
        let message = |message: &PromptMessage| {
            // Redacted before clipping, so that no part of a secret remains at the cut.
            let text = model.redact(&message.text);
            let text =
                if text.len() <= room { text } else { selftest_text::clip(&text, room).into() };
            room = room.saturating_sub(message.text.len());
            PromptMessage { role: message.role, text }
        };
        Self {
            messages: request.messages.iter().map(message).collect(),
            schema: request.schema.as_ref().map(|schema| schema.name.to_owned()),
            think: Some(request.think.is_on()),
            first_token: request.first_token.is_some(),
        }
    }
}

/// Maximum size in bytes of a stored request or reply.
const MAX_RECORDED_BYTES: usize = 64 * 1024;
/// Maximum number of stored first tokens per call.
const MAX_FIRST_TOKENS: usize = 20;

/// Calls the model and records the call.
pub async fn call_and_record(
    model: &dyn ChatModel,
    request: &ChatRequest,
) -> (CallRecord, Result<ChatReply, ModelError>) {
    let started = std::time::Instant::now();
    let result = model.chat(request).await;
    let reply = result.as_ref().ok();
    let record = CallRecord {
        model: model.id().to_owned(),
        prompt_digest: reply
            .and_then(|reply| reply.request_digest.clone())
            .unwrap_or_else(|| request.digest()),
        request: Some(RequestRecord::new(model, request)),
        parameters: request.sampling,
        served_model: reply.and_then(|reply| reply.served_model.clone()),
        structured: reply.map(|reply| reply.structured),
        usage: reply.map(|reply| reply.usage).unwrap_or_default(),
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        finish: reply.map(|reply| reply.finish.clone()),
        raw_reply: reply.map(|reply| {
            let raw = reply.raw_text.as_ref().unwrap_or(&reply.text);
            selftest_text::clip(raw, MAX_RECORDED_BYTES)
        }),
        notes: reply.map(|reply| reply.notes.clone()).unwrap_or_default(),
        first_token: reply
            .and_then(|reply| reply.first_token.as_ref())
            .map(|tokens| tokens.iter().take(MAX_FIRST_TOKENS).cloned().collect()),
        likelihood: reply.and_then(|reply| reply.likelihood),
        error: result.as_ref().err().map(ToString::to_string),
        outage: result.as_ref().is_err_and(ModelError::is_outage),
    };
    (record, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives no reply and redacts the word `hunter2`.
    struct Gone;

    impl ChatModel for Gone {
        fn id(&self) -> &'static str {
            "gone"
        }
        fn chat<'a>(&'a self, _: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
            let endpoint = "http://127.0.0.1:1".to_owned();
            let error = ModelError::Protocol { endpoint, what: "nothing".to_owned(), broken: true };
            Box::pin(async { Err(error) })
        }
        fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
            Box::pin(async { Ok(()) })
        }
        fn redact(&self, text: &Arc<str>) -> Arc<str> {
            text.replace("hunter2", "[REDACTED]").into()
        }
    }

    #[tokio::test]
    async fn a_record_has_what_was_sent_without_secrets_and_bounded() {
        let messages = vec![
            PromptMessage::system("Judge. The password is hunter2."),
            PromptMessage::user("x".repeat(MAX_RECORDED_BYTES)),
            PromptMessage::user("one more"),
        ];
        let request = ChatRequest::first_token(messages, Vec::new(), 7, 4096);
        let (record, _) = call_and_record(&Gone, &request).await;
        assert!(record.outage && record.error.is_some());
        let sent = record.request.unwrap();
        assert_eq!((sent.schema, sent.think, sent.first_token), (None, Some(false), true));
        let texts: Vec<&str> = sent.messages.iter().map(|message| &*message.text).collect();
        assert_eq!(texts[0], "Judge. The password is [REDACTED].");
        assert!(
            texts[1].ends_with("… [31 bytes left out]"),
            "{}",
            &texts[1][MAX_RECORDED_BYTES - 99..]
        );
        assert_eq!(texts[2], "… [8 bytes left out]");
    }
}
