//! The `/v1/chat/completions` API of OpenAI and compatible servers: llama.cpp's server, vLLM, LM
//! Studio.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::choice::DecisionProtocol;
use super::completion::{ReplyValidator, parse_reply};
use super::http::{HttpEndpoint, HttpResponse};
use super::model_settings::ModelSettings;
use super::name::{ModelContext, ProviderEntry, ProviderModel, REMOTE_CALLS};
use super::server_address::ServerAddress;
use super::{
    ChatModel, ChatReply, ChatRequest, FinishReason, ModelError, PromptMessage, StructuredMode,
    TokenProbability, TokenUsage, WireMessage, choice,
};
use selftest_text::wording::json_members;

/// OpenAI's own address.
pub const DEFAULT_BASE: &str = "https://api.openai.com/v1";

/// The variable with the address of a server other than OpenAI's.
pub const BASE_URL: &str = "OPENAI_BASE_URL";
/// The variable with the key.
pub const API_KEY: &str = "OPENAI_API_KEY";

/// The entry in the table of providers.
pub(crate) const PROVIDER: ProviderEntry = ProviderEntry {
    example: "gpt-4o-mini",
    address: Some(BASE_URL),
    key: Some(API_KEY),
    concurrency: REMOTE_CALLS,
    ..ProviderEntry::new(|context| Box::pin(async move { build(&context) }))
};

fn build(context: &ModelContext<'_>) -> Result<ProviderModel, ModelError> {
    let base = context.environment.text(BASE_URL).unwrap_or(DEFAULT_BASE);
    let key = context.environment.secret(API_KEY);
    let is_own = |address: ServerAddress| address.base() == DEFAULT_BASE;
    // Local servers seldom want a key. OpenAI's own answers 401 to each call without one.
    if key.is_none() && ServerAddress::parse_api(base).is_ok_and(is_own) {
        return Err(ModelError::Engine {
            what: format!("`{}` needs {API_KEY}, which is not set", context.full_name),
            hint: Some(format!("set it, or {BASE_URL} for a local server")),
        });
    }
    let model = OpenAiModel::new(context.name, base, key, context.settings)?;
    Ok(ProviderModel::new(Arc::new(model), base.to_owned()))
}

/// Features that a server accepts. Initially all are assumed, and a rejected feature is not sent
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that a server may refuse")]
struct ServerFeatures {
    /// Strictest supported form of `response_format`.
    mode: StructuredMode,
    /// True if a schema may bound the length of strings. OpenAI's own server rejects that.
    string_lengths: bool,
    /// True if the limit may be called `max_tokens`. OpenAI's newer models require
    /// `max_completion_tokens`.
    max_tokens: bool,
    temperature: bool,
    /// True if the seed of the sampling is accepted. Mistral and some proxies reject it.
    seed: bool,
    /// True if the chat template switch of llama.cpp's server and vLLM is accepted. OpenAI's own
    /// server rejects unknown keys.
    thinking_switch: bool,
    /// Maximum number of alternatives per token; 0 if log-probabilities are rejected.
    top_logprobs: u8,
}

impl ServerFeatures {
    const fn assumed(is_openai: bool) -> Self {
        Self {
            mode: StructuredMode::Schema,
            string_lengths: !is_openai,
            max_tokens: true,
            temperature: true,
            seed: true,
            thinking_switch: !is_openai,
            top_logprobs: choice::MAX_ALTERNATIVES,
        }
    }

    /// Removes the feature that the server rejected, according to the error messages of OpenAI,
    /// vLLM, llama.cpp and LM Studio. Returns `None` if nothing can be removed.
    fn without_rejected(self, answer: &HttpResponse, request: &ChatRequest) -> Option<Self> {
        let names = |parts: &[&str]| parts.iter().any(|part| answer.mentions(part));
        if request.first_token.is_some() && matches!(answer.status, 400..=499 | 501) {
            let refused = self.top_logprobs > 0 && names(&["logprobs"]);
            if refused {
                let top_logprobs = allowed_alternatives(&answer.error_message(), self.top_logprobs);
                return Some(Self { top_logprobs, ..self });
            }
        }
        if !matches!(answer.status, 400 | 422 | 501) {
            return None;
        }
        // Each refusal takes away one key, so that the loop in `call` ends.
        if self.seed && (names_parameter(answer, "seed")) {
            return Some(Self { seed: false, ..self });
        }
        // Servers report an unknown key in different ways.
        let unknown = ["unknown field", "unrecognized", "not permitted", "additional properties"];
        // Tried before the parameters below: it is the only key outside of OpenAI's protocol, so
        // that a message about some unknown key means this one first.
        if self.thinking_switch && (names(&["chat_template_kwargs"]) || names(&unknown)) {
            return Some(Self { thinking_switch: false, ..self });
        }
        // OpenAI's message names the parameter to use instead. A limit that is too high is named as
        // well.
        let is_unsupported = || {
            names_parameter(answer, "max_tokens")
                && names(&["unsupported", "not supported", "extra_forbidden", "not permitted"])
        };
        if names(&["max_completion_tokens"]) || self.max_tokens && is_unsupported() {
            return self.max_tokens.then_some(Self { max_tokens: false, ..self });
        }
        if names(&["'temperature'", "\"temperature\""])
            && names(&["unsupported", "support", "extra_forbidden", "not permitted"])
        {
            return self.temperature.then_some(Self { temperature: false, ..self });
        }
        // What follows is about the schema. Without one, the request had none of these keys.
        request.schema.as_ref()?;
        if self.string_lengths && names(&["maxlength", "minlength"]) {
            return Some(Self { string_lengths: false, ..self });
        }
        let format = ["response_format", "json_schema", "json_object", "schema", "grammar"];
        // One step down at a time. The prompt always states the schema as well, and replies are
        // validated in each mode, so that a looser mode costs retries and never correctness.
        let mode = match self.mode {
            StructuredMode::Schema => StructuredMode::JsonObject,
            StructuredMode::JsonObject => StructuredMode::Prompt,
            StructuredMode::Prompt => return None,
        };
        names(&format).then_some(Self { mode, ..self })
    }

    /// Describes what is not asked for although the request has it.
    fn notes(self) -> Vec<String> {
        let refused = |is_sent: bool, name: &str, loss: &str| {
            (!is_sent).then(|| format!("asked without `{name}`, which the server refuses: {loss}"))
        };
        let seed = refused(self.seed, "seed", "a repeat may give another answer");
        let temperature = refused(self.temperature, "temperature", "the server's own applies");
        seed.into_iter().chain(temperature).collect()
    }

    /// Intersects two dialects, since concurrent calls may discover different limits.
    fn intersection(self, other: Self) -> Self {
        let laxer = |mode| match mode {
            StructuredMode::Schema => 0,
            StructuredMode::JsonObject => 1,
            StructuredMode::Prompt => 2,
        };
        Self {
            mode: if laxer(self.mode) < laxer(other.mode) { other.mode } else { self.mode },
            string_lengths: self.string_lengths && other.string_lengths,
            max_tokens: self.max_tokens && other.max_tokens,
            temperature: self.temperature && other.temperature,
            seed: self.seed && other.seed,
            thinking_switch: self.thinking_switch && other.thinking_switch,
            top_logprobs: self.top_logprobs.min(other.top_logprobs),
        }
    }
}

/// Returns true if an error names this parameter as a word of its own.
fn names_parameter(answer: &HttpResponse, name: &str) -> bool {
    let text = String::from_utf8_lossy(&answer.body).to_lowercase();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
    })
}

/// Parses the number of allowed alternatives from an error message: the largest number below the
/// requested one. Returns 0 if the message has none, which disables log-probabilities.
fn allowed_alternatives(words: &str, asked: u8) -> u8 {
    let numbers = words.split_whitespace().filter_map(|word| {
        word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-').parse::<u8>().ok()
    });
    // A single alternative says nothing about the others.
    // Such as `must be between 0 and 5`: the largest number below the one that was asked for.
    numbers.filter(|number| (2..asked).contains(number)).max().unwrap_or(0)
}

/// Removes string length bounds from a schema.
fn without_lengths(schema: &Value) -> Value {
    match schema {
        Value::Object(keys) => {
            let is_bound = |key: &str, value: &Value| {
                matches!(key, "maxLength" | "minLength") && value.is_number()
            };
            let kept = keys.iter().filter(|(key, value)| !is_bound(key, value));
            kept.map(|(key, value)| (key.clone(), without_lengths(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_lengths).collect(),
        other => other.clone(),
    }
}

/// One model of an OpenAI-compatible server.
pub struct OpenAiModel {
    id: String,
    name: String,
    endpoint: HttpEndpoint,
    validator: ReplyValidator,
    features: Mutex<ServerFeatures>,
    /// True if first tokens come with probabilities; determined once.
    supports_logprobs: OnceCell<bool>,
    /// The protocol of decision models that the server speaks, if any.
    decides_by: OnceCell<Option<DecisionProtocol>>,
}

/// Time limit for the request that tests support for probabilities.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// Request body. `None` values are not sent.
#[derive(Serialize)]
struct CompletionRequest<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<TemplateArguments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
}

#[derive(Serialize)]
struct TemplateArguments {
    enable_thinking: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonSchema { json_schema: SchemaFormat<'a> },
    JsonObject,
}

#[derive(Serialize)]
struct SchemaFormat<'a> {
    name: &'a str,
    strict: bool,
    schema: Cow<'a, Value>,
}

impl OpenAiModel {
    /// Creates a model. `base` is the part of the URL before `/chat/completions`, usually ending in
    /// `/v1`, in any form that [`ServerAddress::parse_api`] reads. Opens no connection.
    pub fn new(
        name: &str,
        base: &str,
        key: Option<&SecretString>,
        settings: &ModelSettings,
    ) -> Result<Self, ModelError> {
        let address = ServerAddress::parse_api(base).map_err(|error| ModelError::Engine {
            what: format!("{BASE_URL}: {error}"),
            hint: Some("write it as http://host:port/v1".to_owned()),
        })?;
        let base = address.base().to_owned();
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret()))
                .map_err(|_| ModelError::Engine {
                    what: format!("{API_KEY} holds a character that no HTTP header can carry"),
                    hint: Some("copy the key again, without line breaks".to_owned()),
                })?;
            // Keeps the key out of debug output.
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let hint = format!("is {BASE_URL} right and the server running?");
        let is_openai = Url::parse(&base)
            .is_ok_and(|address| address.host_str().is_some_and(|host| host == "api.openai.com"));
        Ok(Self {
            id: format!("openai/{name}"),
            name: name.to_owned(),
            endpoint: HttpEndpoint::new(address, headers, settings, hint)?.with_key(API_KEY),
            validator: ReplyValidator::new("openai", name, &base, settings),
            features: Mutex::new(ServerFeatures::assumed(is_openai)),
            supports_logprobs: OnceCell::new(),
            decides_by: OnceCell::new(),
        })
    }

    fn request_body<'a>(
        &'a self,
        request: &'a ChatRequest,
        dialect: ServerFeatures,
    ) -> CompletionRequest<'a> {
        let limit = Some(request.max_output_tokens());
        let (max_tokens, max_completion_tokens) =
            if dialect.max_tokens { (limit, None) } else { (None, limit) };
        let tells = request.first_token.is_some();
        // A schema would settle the first token, and just that one is asked for.
        let schema = request.schema.as_ref().filter(|_| !tells);
        let response_format = schema.and_then(|schema| match dialect.mode {
            StructuredMode::Schema => Some(ResponseFormat::JsonSchema {
                json_schema: SchemaFormat {
                    name: schema.name,
                    strict: true,
                    schema: if dialect.string_lengths {
                        Cow::Borrowed(&*schema.schema)
                    } else {
                        Cow::Owned(without_lengths(&schema.schema))
                    },
                },
            }),
            StructuredMode::JsonObject => Some(ResponseFormat::JsonObject),
            StructuredMode::Prompt => None,
        });
        CompletionRequest {
            model: &self.name,
            messages: request.wire_messages(),
            stream: false,
            // Servers accept seeds of at most 63 bits.
            seed: dialect.seed.then_some(request.sampling.seed >> 1),
            max_tokens,
            max_completion_tokens,
            temperature: dialect.temperature.then(|| request.temperature()),
            chat_template_kwargs: dialect
                .thinking_switch
                .then(|| TemplateArguments { enable_thinking: request.think.is_on() }),
            logprobs: tells.then_some(true),
            top_logprobs: tells.then_some(dialect.top_logprobs),
            response_format,
        }
    }

    /// Asks a decision model, by the first protocol that its server speaks for this model.
    async fn decide(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let protocol = self.decides_by.get_or_init(async || self.find_protocol().await).await;
        match protocol {
            Some(protocol) => self.decide_by(*protocol, request).await,
            None => Err(self.endpoint.protocol_error("no decision model", false)),
        }
    }

    async fn find_protocol(&self) -> Option<DecisionProtocol> {
        let questions = vec!["Is 2 even?".to_owned()];
        let probe = ChatRequest::decisions("2 is even.".to_owned(), questions, 2048);
        // A server does not say which of the two it speaks. A wrong path costs one refused request,
        // once.
        for protocol in [DecisionProtocol::SystemOne, DecisionProtocol::Decisions] {
            let asked = tokio::time::timeout(PROBE_TIMEOUT, self.decide_by(protocol, &probe)).await;
            if matches!(asked, Ok(Ok(_))) {
                return Some(protocol);
            }
        }
        None
    }

    async fn decide_by(
        &self,
        protocol: DecisionProtocol,
        request: &ChatRequest,
    ) -> Result<ChatReply, ModelError> {
        let state = request.messages.last().map(|message| &*message.text);
        let questions = request.questions();
        let body = protocol.body(&self.name, state.unwrap_or_default(), questions);
        let bytes = request.estimated_json_bytes();
        let answer = self.endpoint.post(protocol.path(), &body, bytes).await?;
        decision_reply(&self.endpoint, &self.validator, protocol, &answer, questions.len())
    }

    async fn call(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        if !request.questions().is_empty() {
            return self.decide(request).await;
        }
        loop {
            let dialect = *self.features.lock().unwrap_or_else(PoisonError::into_inner);
            // Known from an earlier refusal; the question would be paid for and not answered.
            if request.first_token.is_some() && dialect.top_logprobs == 0 {
                return Ok(unsupported_reply());
            }
            let body = self.request_body(request, dialect);
            let answer = self
                .endpoint
                .post("/chat/completions", &body, request.estimated_json_bytes())
                .await?;
            if let Some(known) = dialect.without_rejected(&answer, request) {
                // The lock is not held during the request, so that another call may have learned of
                // another limit in the meantime: neither result may overwrite the other.
                let mut dialect = self.features.lock().unwrap_or_else(PoisonError::into_inner);
                *dialect = dialect.intersection(known);
                continue;
            }
            if answer.status == 404 {
                return Err(self.not_found_error(&answer).await);
            }
            let mode = match request.schema {
                Some(_) => dialect.mode,
                None => StructuredMode::Prompt,
            };
            // Azure refuses by a status rather than by a reason to finish.
            if is_filtered(&answer) {
                let filter = FinishReason::Refusal("the provider's content filter".to_owned());
                return Ok(ChatReply::plain(String::new(), filter));
            }
            let value = self.endpoint.parse_json(&answer)?;
            self.validator.check_error(&value)?;
            let mut reply = parse_reply(&value, mode).ok_or_else(|| self.no_completion(&value))?;
            reply.notes.extend(dialect.notes());
            reply.served_model = self.validator.check_model(&value)?;
            if request.first_token.is_some() {
                reply.first_token = first_token(&value);
            }
            return Ok(reply);
        }
    }

    async fn models(&self) -> Option<Vec<String>> {
        let answer = self.endpoint.get("/models").await.ok()?;
        let list = self.endpoint.parse_json(&answer).ok()?;
        let names = list.get("data")?.as_array()?.iter();
        Some(names.filter_map(|entry| Some(entry.get("id")?.as_str()?.to_owned())).collect())
    }

    /// Returns the error for JSON without a completion.
    fn no_completion(&self, value: &Value) -> ModelError {
        let is_empty = |choices: &Value| choices.as_array().is_none_or(Vec::is_empty);
        match value.get("choices") {
            // Gateways answer so when the model behind them failed, so asking again may help.
            Some(choices) if is_empty(choices) => {
                self.endpoint.protocol_error("a chat completion without choices", true)
            }
            _ => {
                let what = format!("JSON that is not a chat completion; {}", json_members(value));
                ModelError::NotJson { endpoint: self.endpoint.base().to_owned(), what }
            }
        }
    }

    async fn not_found_error(&self, answer: &HttpResponse) -> ModelError {
        match self.models().await {
            // 404 may also mean a wrong path, of which the list of models says nothing.
            Some(available) if !available.contains(&self.name) => ModelError::ModelNotFound {
                endpoint: self.endpoint.base().to_owned(),
                model: self.name.clone(),
                available: available.into_iter().take(20).collect(),
                hint: format!("use one of these names, or another {BASE_URL}"),
            },
            _ => self.endpoint.status_error(answer),
        }
    }
}

/// Reads the reply of a decision model.
pub(crate) fn decision_reply(
    endpoint: &HttpEndpoint,
    validator: &ReplyValidator,
    protocol: DecisionProtocol,
    answer: &HttpResponse,
    count: usize,
) -> Result<ChatReply, ModelError> {
    // A model that is no decision model is answered with 501 or 400.
    if !(200..300).contains(&answer.status) {
        return Err(endpoint.status_error(answer));
    }
    let value = endpoint.parse_json(answer)?;
    validator.check_error(&value)?;
    let decisions = protocol
        .read(&value, count)
        .map_err(|why| endpoint.protocol_error(&format!("no usable decisions: {why}"), false))?;
    let tokens = |name: &str| value.get("usage")?.get(name)?.as_u64();
    Ok(ChatReply {
        usage: TokenUsage {
            prompt_tokens: tokens("input_tokens"),
            completion_tokens: tokens("output_tokens"),
        },
        decisions: Some(decisions),
        served_model: validator.check_model(&value)?,
        ..ChatReply::plain(String::new(), FinishReason::Stop)
    })
}

/// Creates the reply for a server known to return no probabilities, without a request.
fn unsupported_reply() -> ChatReply {
    ChatReply::plain(String::new(), FinishReason::Other("no log-probabilities".to_owned()))
}

/// Returns the likeliest first tokens of a reply, or `None` if the model thought anyway.
fn first_token(value: &Value) -> Option<Vec<TokenProbability>> {
    let choice = value.get("choices")?.get(0)?;
    let thought = choice.get("message").is_none_or(choice::has_thinking);
    let tokens = choice.get("logprobs").and_then(|told| told.get("content"));
    if thought { None } else { choice::parse_first_token(tokens) }
}

/// Returns true if the server refused the prompt by its content filter.
fn is_filtered(answer: &HttpResponse) -> bool {
    matches!(answer.status, 400 | 403)
        && ["content_filter", "content_policy_violation"].iter().any(|code| answer.mentions(code))
}

impl ChatModel for OpenAiModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(self.call(request))
    }

    /// Sends one small request, since servers do not state their support.
    fn supports_logprobs(&self) -> BoxFuture<'_, bool> {
        let probe = async || {
            let prompt = [
                PromptMessage::system("Reply with one word: yes or no."),
                PromptMessage::user("Is 2 even?"),
            ];
            let request = ChatRequest::first_token(prompt, Vec::new(), 0, 2048);
            let reply = tokio::time::timeout(PROBE_TIMEOUT, self.call(&request)).await;
            reply.is_ok_and(|reply| reply.is_ok_and(|reply| reply.first_token.is_some()))
        };
        Box::pin(async move { *self.supports_logprobs.get_or_init(probe).await })
    }

    /// Believes the list of models; a small request then finds the protocol.
    fn supports_decisions(&self) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let Ok(answer) = self.endpoint.get("/models").await else { return false };
            let Ok(list) = self.endpoint.parse_json(&answer) else { return false };
            let entries = list.get("data").and_then(Value::as_array).into_iter().flatten();
            let mut own = entries.filter(|entry| {
                entry.get("id").and_then(Value::as_str) == Some(self.name.as_str())
            });
            let decides = own.any(|entry| {
                let capabilities = entry.get("capabilities").and_then(Value::as_array);
                capabilities.into_iter().flatten().any(|one| one.as_str() == Some("decision"))
            });
            if !decides {
                return false;
            }
            self.decides_by.get_or_init(async || self.find_protocol().await).await.is_some()
        })
    }

    fn supports_lazy_check(&self) -> bool {
        true
    }

    /// Requests the model list. The endpoint is optional in the protocol, so only an unreachable
    /// server, a rejected key or a list without the model is an error.
    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async move {
            let answer = self.endpoint.get("/models").await?;
            match answer.status {
                401 | 403 => Err(self.endpoint.status_error(&answer)),
                _ => Ok(()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{PromptMessage, ReplySchema, SamplingParameters, ThinkingMode};

    fn answer(status: u16, message: &str) -> HttpResponse {
        HttpResponse::new(
            status,
            json!({ "error": { "message": message } }).to_string().into_bytes(),
        )
    }

    /// Returns the remaining features after this error message.
    fn after(
        dialect: ServerFeatures,
        request: &ChatRequest,
        words: &str,
    ) -> Option<ServerFeatures> {
        dialect.without_rejected(&answer(400, words), request)
    }

    fn question() -> ChatRequest {
        ChatRequest::first_token(vec![PromptMessage::user("Is it?")], Vec::new(), 1, 4096)
    }

    #[test]
    fn limits_of_alternatives_are_read_from_the_words() {
        let request = question();
        let assumed = ServerFeatures::assumed(true);
        for (words, allowed) in [
            ("top_logprobs must be between 0 and 5", 5),
            ("Requested sample logprobs of 20, which is greater than max allowed: 8", 8),
            ("Invalid 'top_logprobs': integer above maximum value. Expected <= 5, got 20.", 5),
            ("logprobs are not supported with gpt-5 o3 models", 0),
            ("top_logprobs must be at most 1", 0),
        ] {
            let left = after(assumed, &request, words).unwrap();
            assert_eq!(left, ServerFeatures { top_logprobs: allowed, ..assumed }, "{words}");
        }
        let refused = answer(403, "You are not allowed to request logprobs from this model");
        assert_eq!(assumed.without_rejected(&refused, &request).unwrap().top_logprobs, 0);
        let none = ServerFeatures { top_logprobs: 0, ..assumed };
        assert_eq!(after(none, &request, "no logprobs"), None);
    }

    #[test]
    fn each_refusal_costs_one_thing() {
        let schema = ReplySchema { name: "x", schema: std::sync::Arc::new(json!({})) };
        let sampling = SamplingParameters { temperature: 0.0, max_tokens: 9, seed: 1 };
        let request =
            ChatRequest::structured(vec![PromptMessage::user("x")], &schema, sampling, 4096);
        let all = ServerFeatures::assumed(false);
        for (words, left) in [
            (
                "Unsupported parameter: use 'max_completion_tokens' instead",
                ServerFeatures { max_tokens: false, ..all },
            ),
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model.",
                ServerFeatures { max_tokens: false, ..all },
            ),
            ("'temperature' is not supported", ServerFeatures { temperature: false, ..all }),
            ("Unknown parameter: 'seed'.", ServerFeatures { seed: false, ..all }),
            (
                "[{\"loc\":[\"body\",\"seed\"],\"msg\":\"Extra inputs are not permitted\"}]",
                ServerFeatures { seed: false, ..all },
            ),
            (
                "body.chat_template_kwargs: Extra inputs",
                ServerFeatures { thinking_switch: false, ..all },
            ),
            ("Unknown field in the request", ServerFeatures { thinking_switch: false, ..all }),
            (
                "Invalid schema: 'maxLength' is not permitted here",
                ServerFeatures { thinking_switch: false, ..all },
            ),
            (
                "response_format is not supported",
                ServerFeatures { mode: StructuredMode::JsonObject, ..all },
            ),
        ] {
            assert_eq!(after(all, &request, words), Some(left), "{words}");
            assert_eq!(all.intersection(left), left);
        }
        let openai = ServerFeatures::assumed(true);
        let lengths = "Invalid schema: 'maxLength' is not permitted";
        let strict = ServerFeatures { mode: StructuredMode::JsonObject, ..openai };
        assert_eq!(after(openai, &request, lengths), Some(strict), "it was not sent");
        let plain = ServerFeatures { thinking_switch: false, ..all };
        assert_eq!(
            after(plain, &request, lengths),
            Some(ServerFeatures { string_lengths: false, ..plain })
        );
        assert_eq!(after(all, &request, "the prompt is empty"), None);
        assert_eq!(after(all, &request, "max_tokens is too large: 9000"), None);
        assert_eq!(all.without_rejected(&answer(500, "response_format"), &request), None);
    }

    #[test]
    fn openai_itself_gets_no_key_that_it_does_not_know() {
        let open =
            |base: &str| OpenAiModel::new("m", base, None, &ModelSettings::default()).unwrap();
        let schema = json!({
            "type": "object",
            "properties": { "maxLength": { "type": "string", "maxLength": 9, "enum": ["a"] } },
        });
        let schema = ReplySchema { name: "x", schema: std::sync::Arc::new(schema) };
        let sampling = SamplingParameters { temperature: 0.5, max_tokens: 9, seed: 1 };
        let request =
            ChatRequest::structured(vec![PromptMessage::user("x")], &schema, sampling, 4096)
                .with_thinking(ThinkingMode::On { tokens: 100 });
        let body = |base: &str| {
            let model = open(base);
            let dialect = *model.features.lock().unwrap();
            serde_json::to_value(model.request_body(&request, dialect)).unwrap()
        };
        let length = "/response_format/json_schema/schema/properties/maxLength/maxLength";
        let own = body(DEFAULT_BASE);
        assert!(own.get("chat_template_kwargs").is_none());
        assert_eq!(own.pointer(length), None);
        assert_eq!(own["max_tokens"], 109);
        let other = body("http://127.0.0.1:8080/v1");
        assert_eq!(other["chat_template_kwargs"]["enable_thinking"], true);
        assert_eq!(other.pointer(length), Some(&json!(9)));
    }

    #[test]
    fn first_tokens_of_thinking_models_are_none() {
        let token = |text: &str| json!({ "token": text, "logprob": -0.7 });
        let told =
            json!({ "content": [{ "token": "Yes", "top_logprobs": [token("Yes"), token("No")] }] });
        let mut value =
            json!({ "choices": [{ "message": { "content": "Yes" }, "logprobs": told }] });
        assert_eq!(first_token(&value).unwrap().len(), 2);
        value["choices"][0]["message"]["reasoning_content"] = json!("Hm");
        assert_eq!(first_token(&value), None);
        assert_eq!(first_token(&json!({ "choices": [{ "message": {}, "logprobs": null }] })), None);
    }
}
