//! Chat models behind one trait: `ollama`, `openai`, `embedded`, `cassette`.
//!
//! A provider's quirks stay in its file. Nothing here knows of judging, scenarios or
//! reports, and nothing here prints.
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

pub mod breaker;
pub mod cassette;
pub mod choice;
pub mod embedded;
mod envelope;
pub mod error;
mod fault;
pub mod fence;
pub mod guarded;
pub mod http;
mod identity;
pub mod journaled;
pub mod locate;
mod log_probabilities;
pub mod model_files;
pub mod model_settings;
pub mod name;
pub mod ollama;
pub mod openai;
pub mod prices;
pub mod prompts;
mod repeated;
pub mod structured;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use error::{ModelError, Phase};

/// A model that answers a conversation. Dropping the future of a call cancels the call.
pub trait ChatModel: Send + Sync {
    /// Full name as in reports, such as `ollama/qwen2.5:7b`.
    fn id(&self) -> &str;

    /// One reply to a conversation.
    fn chat<'a>(&'a self, request: &'a ChatRequest)
    -> BoxFuture<'a, Result<ChatReply, ModelError>>;

    /// Whether the model can answer at all: server reachable, model present, file readable.
    /// Called once, before the first case.
    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>>;

    /// Whether it may be asked while [`ChatModel::check`] goes on: a call tells as clearly as the
    /// check what is wrong.
    fn may_be_asked_unchecked(&self) -> bool {
        false
    }

    /// Whether requests for the first token can be expected to be answered. May ask the server,
    /// once.
    fn tells_probabilities(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { false })
    }

    /// Whether it tells how likely a given text is as its reply. Servers do not.
    fn tells_likelihoods(&self) -> bool {
        false
    }

    /// The identity of this model beside another of the same name: a digest of its weights, where that
    /// can be had.
    fn fingerprint(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { None })
    }

    /// The longest context that the model takes, in tokens; `None` where nobody says.
    fn context_limit(&self) -> BoxFuture<'_, Option<u32>> {
        Box::pin(async { None })
    }

    /// A text without the secrets that this model's user keeps from reports.
    fn redact(&self, text: &Arc<str>) -> Arc<str> {
        Arc::clone(text)
    }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions. What stays the same between calls belongs here: it is the cached prefix.
    System,
    /// The other side.
    User,
    /// The model.
    Assistant,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text. Shared: a run keeps the requests of all its calls, most of which begin alike.
    pub text: Arc<str>,
}

impl Message {
    /// A system message.
    pub fn system(text: impl Into<Arc<str>>) -> Self {
        Self { role: Role::System, text: text.into() }
    }
    /// A user message.
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self { role: Role::User, text: text.into() }
    }
    /// A message that the model itself said earlier.
    pub fn assistant(text: impl Into<Arc<str>>) -> Self {
        Self { role: Role::Assistant, text: text.into() }
    }
}

/// A message as the protocols of OpenAI and Ollama write it.
#[derive(Serialize)]
struct WireMessage<'a> {
    role: Role,
    content: &'a str,
}

impl<'a> From<&'a Message> for WireMessage<'a> {
    fn from(message: &'a Message) -> Self {
        Self { role: message.role, content: &message.text }
    }
}

/// The JSON Schema that a reply must satisfy.
#[derive(Debug, Clone)]
pub struct ReplySchema {
    /// A short name, as OpenAI's `json_schema.name` wants it.
    pub name: &'static str,
    /// The schema: an object with `additionalProperties: false` and all properties required. A
    /// string without `maxLength` goes on until the limit of the call: models ramble. llama.cpp
    /// refuses a `maxLength` over 2000.
    pub schema: Arc<Value>,
}

/// Tokens that a model may think with where nothing else is configured.
pub const DEFAULT_THINK_TOKENS: u32 = 2000;

/// Whether a model that can think does so before it replies. Always said to the server: what it
/// does when it is not told differs, and thoughts would use up the tokens of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Thinking {
    /// It replies at once.
    #[default]
    Off,
    /// It may think first.
    On {
        /// Most tokens of it, beside those of the reply.
        tokens: u32,
    },
}

impl Thinking {
    /// The effective `think` and `think_tokens` of a role.
    pub fn configured(think: Option<bool>, tokens: u32) -> Self {
        if think == Some(true) { Thinking::On { tokens } } else { Thinking::Off }
    }

    /// Whether it thinks.
    pub fn is_on(self) -> bool {
        self != Thinking::Off
    }

    /// Most tokens of thinking.
    pub fn tokens(self) -> u32 {
        match self {
            Thinking::Off => 0,
            Thinking::On { tokens } => tokens,
        }
    }
}

/// How the next token is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampling {
    /// 0.0 is greedy.
    pub temperature: f64,
    /// Most tokens of the reply.
    pub max_tokens: u32,
    /// Seed of the sampler, derived from the run's seed.
    pub seed: u64,
}

/// One call: the whole conversation, since a provider keeps no state for us.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// System first; the last one is of the user.
    pub messages: Vec<Message>,
    /// Absent: free text.
    pub schema: Option<ReplySchema>,
    /// How to sample.
    pub sampling: Sampling,
    /// Context window to ask for where the protocol can, in tokens. The same for all calls of
    /// a run: Ollama reloads the model when it changes.
    pub context_tokens: u32,
    /// Whether a thinking model may think first.
    pub think: Thinking,
    /// Random text in the messages that must not count in the digest.
    pub nonce: Option<String>,
    /// How the next token is read instead of a reply; absent for an ordinary call.
    pub first_token: Option<FirstToken>,
}

/// A call that only wants to know what the model would reply, and how surely.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FirstToken {
    /// Byte offsets into the last message, ascending: up to each of them the text is the same for
    /// several calls, so that an engine may keep its state there.
    pub cuts: Vec<usize>,
    /// A whole reply whose likelihood is asked for instead, of models that
    /// [tell likelihoods](ChatModel::tells_likelihoods).
    pub reply: Option<String>,
}

impl ChatRequest {
    /// A request for a reply of a given form.
    pub fn structured(
        prompt: impl Into<Vec<Message>>,
        schema: &ReplySchema,
        sampling: Sampling,
        context_tokens: u32,
    ) -> Self {
        let (messages, schema) = (prompt.into(), Some(schema.clone()));
        let (think, nonce, first_token) = (Thinking::Off, None, None);
        Self { messages, schema, sampling, context_tokens, think, nonce, first_token }
    }

    /// A request for the probabilities of the first token. It thinks of nothing before.
    pub fn first_token(
        prompt: impl Into<Vec<Message>>,
        cuts: Vec<usize>,
        seed: u64,
        context_tokens: u32,
    ) -> Self {
        Self {
            messages: prompt.into(),
            schema: None,
            sampling: Sampling { temperature: 0.0, max_tokens: 1, seed },
            context_tokens,
            think: Thinking::Off,
            nonce: None,
            first_token: Some(FirstToken { cuts, reply: None }),
        }
    }

    /// A request for how likely this text is as the reply.
    pub fn likelihood(
        prompt: impl Into<Vec<Message>>,
        cuts: Vec<usize>,
        reply: String,
        context_tokens: u32,
    ) -> Self {
        let first_token = Some(FirstToken { cuts, reply: Some(reply) });
        Self { first_token, ..Self::first_token(prompt, Vec::new(), 0, context_tokens) }
    }

    /// The same request, whose messages hold that mark of evidence.
    #[must_use]
    pub fn fenced(self, nonce: &fence::Nonce) -> Self {
        Self { nonce: Some(nonce.as_str().to_owned()), ..self }
    }

    /// The same request, before whose reply the model may think or not.
    #[must_use]
    pub fn thinking(self, think: Thinking) -> Self {
        Self { think, ..self }
    }

    /// Most tokens that a server may write in all: thoughts and reply.
    fn most_tokens(&self) -> u32 {
        match self.first_token {
            Some(_) => 1,
            None => self.sampling.max_tokens.saturating_add(self.think.tokens()),
        }
    }

    fn temperature(&self) -> f64 {
        if self.first_token.is_some() { 0.0 } else { self.sampling.temperature }
    }

    /// Length of all messages in bytes.
    pub fn prompt_bytes(&self) -> usize {
        self.messages.iter().map(|message| message.text.len()).sum()
    }

    /// About how many bytes the request takes in JSON, rather too many than too few.
    fn written_bytes(&self) -> usize {
        self.prompt_bytes() * 9 / 8 + 4096
    }

    /// The messages in the form that OpenAI's and Ollama's protocols share.
    fn wire_messages(&self) -> Vec<WireMessage<'_>> {
        self.messages.iter().map(WireMessage::from).collect()
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It was done.
    Stop,
    /// A limit cut the reply: never complete, even where it parses.
    Length,
    /// It was stopped because it repeated itself without end: never complete, like one that was cut.
    Repeated,
    /// The provider says that the model declined, with its words.
    Refusal(String),
    /// Anything else, with the provider's word.
    Other(String),
}

/// How the schema was put to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StructuredMode {
    /// Decoding was constrained by the schema.
    Schema,
    /// Decoding was constrained to some JSON object.
    JsonObject,
    /// Only the prompt states the schema.
    Prompt,
}

/// Token counts as the provider gives them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens of the reply.
    pub completion_tokens: Option<u64>,
}

/// One reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatReply {
    /// The reply without thinking.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// Token counts.
    pub usage: Usage,
    /// How the schema was enforced.
    pub structured: StructuredMode,
    /// The likeliest first tokens, where they were asked for and the model tells them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<Vec<TokenProbability>>,
    /// How likely the reply is, where that was asked for and the model tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<Likelihood>,
    /// The name under which a server answered, bounded; absent where there is no server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_model: Option<String>,
    /// The digest of its request, where that was needed on the way: to make it takes a while.
    #[serde(skip)]
    pub request_digest: Option<String>,
}

/// How likely a model finds a text as its reply.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Likelihood {
    /// Sum of the natural logarithms of the probabilities of its tokens: 0 or less.
    pub log_probability: f64,
    /// How many tokens it has, at least 1.
    pub tokens: u32,
}

impl Likelihood {
    /// Mean log-probability of a token, in nats.
    pub fn per_token(self) -> f64 {
        self.log_probability / f64::from(self.tokens.max(1))
    }
}

/// How probable a token is as the first of a reply, before any sampling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TokenProbability {
    /// Its text, with white space.
    pub text: String,
    /// 0.0 to 1.0, over the whole vocabulary.
    pub probability: f64,
}

impl ChatReply {
    /// A reply of which nothing but its text and its end is known.
    pub fn plain(text: String, finish: Finish) -> Self {
        let (usage, structured) = (Usage::default(), StructuredMode::Prompt);
        let (first_token, likelihood, served_model, request_digest) = (None, None, None, None);
        Self {
            text,
            finish,
            usage,
            structured,
            first_token,
            likelihood,
            served_model,
            request_digest,
        }
    }

    /// Whether the server's own count shows that it saw less than was sent. No tokenizer makes
    /// tokens of more than eight bytes on average, so fewer means a cut prompt.
    pub fn prompt_was_cut(&self, request: &ChatRequest) -> bool {
        self.usage
            .prompt_tokens
            .is_some_and(|tokens| tokens.saturating_mul(8) < request.prompt_bytes() as u64)
    }
}

/// A lower-bound-free estimate of how many tokens a text takes: one for every 3.5 bytes.
pub fn estimate_tokens(text: &str) -> u32 {
    u32::try_from(text.len() * 2 / 7 + 1).unwrap_or(u32::MAX)
}

/// One call as the report keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallRecord {
    /// Full name of the model.
    pub model: String,
    /// SHA-256 of the request without its nonce.
    pub prompt_digest: String,
    /// The request; absent in reports of versions that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestRecord>,
    /// Parameters of the call.
    pub parameters: Sampling,
    /// The name under which the server answered; absent where there is no server or no reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_model: Option<String>,
    /// How the schema was enforced; absent when there was no reply.
    pub structured: Option<StructuredMode>,
    /// Token counts.
    pub usage: Usage,
    /// Wall time, waiting for a free place included.
    pub duration_ms: u64,
    /// Why the reply ended; absent when there was none.
    pub finish: Option<Finish>,
    /// The reply as it came, bounded.
    pub raw_reply: Option<String>,
    /// The likeliest first tokens, where the call asked for them, bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<Vec<TokenProbability>>,
    /// How likely the reply is, where the call asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<Likelihood>,
    /// Why there was no reply.
    pub error: Option<String>,
    /// Whether the missing reply is the fault of the server or its connection.
    #[serde(default, skip_serializing_if = "is_false")]
    pub outage: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A request to a model, as the report keeps it: without secrets, bounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestRecord {
    /// The whole conversation, marks of evidence included.
    pub messages: Vec<Message>,
    /// Name of the schema that the reply must satisfy; absent for free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Whether a thinking model may think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<bool>,
    /// Whether only the probabilities of the first token were asked for.
    #[serde(default, skip_serializing_if = "is_false")]
    pub first_token: bool,
}

impl RequestRecord {
    fn new(model: &dyn ChatModel, request: &ChatRequest) -> Self {
        let mut room = MAX_RAW;
        let message = |message: &Message| {
            let text = model.redact(&message.text);
            let text =
                if text.len() <= room { text } else { selftest_text::clip(&text, room).into() };
            room = room.saturating_sub(message.text.len());
            Message { role: message.role, text }
        };
        Self {
            messages: request.messages.iter().map(message).collect(),
            schema: request.schema.as_ref().map(|schema| schema.name.to_owned()),
            think: Some(request.think.is_on()),
            first_token: request.first_token.is_some(),
        }
    }
}

/// Most bytes of a request, and of a reply, that a report keeps.
const MAX_RAW: usize = 64 * 1024;
/// Most first tokens that a report keeps of a call.
const MAX_FIRST_TOKENS: usize = 20;

/// Calls the model and keeps the record of it.
pub async fn call(
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
        raw_reply: reply.map(|reply| selftest_text::clip(&reply.text, MAX_RAW)),
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

    /// Gives no reply, and keeps the word `hunter2` to itself.
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
            Message::system("Judge. The password is hunter2."),
            Message::user("x".repeat(MAX_RAW)),
            Message::user("one more"),
        ];
        let request = ChatRequest::first_token(messages, Vec::new(), 7, 4096);
        let (record, _) = call(&Gone, &request).await;
        assert!(record.outage && record.error.is_some());
        let sent = record.request.unwrap();
        assert_eq!((sent.schema, sent.think, sent.first_token), (None, Some(false), true));
        let texts: Vec<&str> = sent.messages.iter().map(|message| &*message.text).collect();
        assert_eq!(texts[0], "Judge. The password is [REDACTED].");
        assert!(texts[1].ends_with("… [31 bytes left out]"), "{}", &texts[1][MAX_RAW - 99..]);
        assert_eq!(texts[2], "… [8 bytes left out]");
    }
}
