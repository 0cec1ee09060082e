//! Ollama's native API: `/api/chat`, `/api/tags`, `/api/version`.
//!
//! Ollama's OpenAI-compatible endpoint cannot set `num_ctx` and defaults the temperature to 1.0.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};

use super::choice::DecisionProtocol;
use super::completion::{ReplyValidator, is_assistant};
use super::http::{HttpEndpoint, HttpResponse};
use super::model_settings::{ModelEnvironment, ModelSettings};
use super::name::{ModelContext, ProviderEntry, ProviderModel};
use super::openai::decision_reply;
use super::server_address::ServerAddress;
use super::{
    ChatModel, ChatReply, ChatRequest, FinishReason, ModelError, StructuredMode, TokenUsage, choice,
};

/// Ollama's default address.
pub const DEFAULT_BASE: &str = "http://127.0.0.1:11434";

/// The variable with the server's address.
const HOST: &str = "OLLAMA_HOST";

/// The entry in the table of providers.
pub(crate) const PROVIDER: ProviderEntry = ProviderEntry {
    example: "qwen2.5:7b",
    address: Some(HOST),
    ..ProviderEntry::new(|context| Box::pin(async move { build(&context) }))
};

fn build(context: &ModelContext<'_>) -> Result<ProviderModel, ModelError> {
    let base = base_address(context.environment);
    let model = OllamaModel::new(context.name, &base, context.settings)?;
    Ok(ProviderModel::new(Arc::new(model), base))
}

/// Returns the base address of the configured server.
pub fn base_address(environment: &ModelEnvironment) -> String {
    parse_host(environment.text(HOST))
}

/// Parses a value of `OLLAMA_HOST` into a base address. Supports every form that Ollama does:
/// `host`, `host:port`, `[ipv6]:port`, `:port`, a URL with or without a path. `0.0.0.0` and `[::]`
/// mean all addresses to the server; clients use loopback instead.
fn parse_host(host: Option<&str>) -> String {
    let text = host.map(|host| host.trim().trim_matches(['"', '\'', '`']).trim());
    let text = text.unwrap_or_default();
    if text.is_empty() {
        return DEFAULT_BASE.to_owned();
    }
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    // As in Ollama: the port of a bare host is 11434, that of a URL is its scheme's default.
    let default_port = match (text.contains("://"), scheme) {
        (true, "https") => "443",
        (true, _) => "80",
        (false, _) => "11434",
    };
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    // The last sign separates: a password may contain others.
    let (credentials, authority) = match authority.rsplit_once('@') {
        Some((credentials, authority)) => (format!("{credentials}@"), authority),
        None => (String::new(), authority),
    };
    let (host, port) = split_port(authority);
    // As in Ollama, an invalid port is replaced by the default one.
    let valid = |port: &&str| port.parse::<u16>().is_ok();
    let port = port.filter(valid).unwrap_or(default_port);
    let host = match host {
        // A server listens on all addresses under this name; nothing can be connected to it
        // everywhere.
        "" | "0.0.0.0" => "127.0.0.1".to_owned(),
        "[::]" | "::" => "[::1]".to_owned(),
        host if host.contains(':') && !host.starts_with('[') => format!("[{host}]"),
        host => host.to_owned(),
    };
    // The client appends paths of Ollama's own API.
    let ends = ["/api/chat", "/api/generate", "/api/tags", "/api", "/v1/chat/completions", "/v1"];
    let path = path.trim_end_matches('/');
    let path = ends.iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path);
    format!("{scheme}://{credentials}{host}:{port}{path}")
}

/// Returns a base address without credentials, for messages.
pub fn shown_address(base: &str) -> String {
    ServerAddress::parse(base).map_or_else(|error| error.to_string(), |it| it.base().to_owned())
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    if let Some(end) = authority.find(']') {
        let (host, rest) = authority.split_at(end + 1);
        return (host, rest.strip_prefix(':'));
    }
    match authority.rsplit_once(':') {
        // More than one colon without brackets is a bare IPv6 address.
        Some((host, port)) if !host.contains(':') => (host, Some(port)),
        _ => (authority, None),
    }
}

/// An Ollama server.
pub struct OllamaServer {
    endpoint: HttpEndpoint,
}

#[derive(Deserialize)]
struct TagList {
    models: Vec<OllamaTag>,
}

/// A model installed on a server.
#[derive(Debug, Clone, Deserialize)]
pub struct OllamaTag {
    /// Name, such as `qwen2.5:7b`.
    pub name: String,
    /// Size on disk in bytes.
    #[serde(default)]
    pub size: u64,
    /// Digest of its weights and parameters.
    #[serde(default)]
    digest: Option<String>,
    #[serde(default)]
    details: TagDetails,
    #[serde(default)]
    capabilities: Option<Vec<String>>,
    /// Host that actually runs the model, if the server only forwards calls.
    #[serde(default)]
    remote_host: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct TagDetails {
    #[serde(default)]
    family: Option<String>,
}

impl OllamaTag {
    /// Returns true if the server forwards calls to the cloud. Newer servers report it, and such
    /// models also have a naming convention.
    pub fn is_cloud(&self) -> bool {
        self.remote_host.as_deref().is_some_and(|host| !host.is_empty()) || is_cloud(&self.name)
    }

    /// Returns true if the model supports chat. Newer servers report it; for older ones, embedding
    /// models are recognised by name.
    pub fn can_chat(&self) -> bool {
        if let Some(capabilities) = &self.capabilities {
            return capabilities.iter().any(|capability| capability == "completion");
        }
        let name = self.name.to_ascii_lowercase();
        let family = self.details.family.as_deref().unwrap_or_default();
        !(family.contains("bert")
            || ["embed", "minilm", "bge-", "gte-", "e5-"].iter().any(|part| name.contains(part)))
    }
}

/// Returns true if a name follows the convention for cloud models: `gpt-oss:120b-cloud`,
/// `glm-4.6:cloud`.
pub fn is_cloud(name: &str) -> bool {
    name.ends_with("-cloud") || name.ends_with(":cloud")
}

impl OllamaServer {
    /// Creates a server without opening a connection.
    pub fn new(base: &str, settings: &ModelSettings) -> Result<Self, ModelError> {
        let hint = "start it with `ollama serve`, set OLLAMA_HOST to where it listens, or use \
                    --model embedded/smollm2-135m, which needs no server"
            .to_owned();
        let address = ServerAddress::parse(base).map_err(|error| ModelError::Engine {
            what: format!("{HOST}: {error}"),
            hint: Some("write it as host:port or http://host:port".to_owned()),
        })?;
        Ok(Self { endpoint: HttpEndpoint::new(address, HeaderMap::new(), settings, hint)? })
    }

    /// Returns the base address.
    pub fn base(&self) -> &str {
        self.endpoint.base()
    }

    /// Returns the server's version, such as `0.12.3`.
    pub async fn version(&self) -> Result<String, ModelError> {
        let answer = self.endpoint.parse_json(&self.endpoint.get("/api/version").await?)?;
        let version = answer.get("version").and_then(Value::as_str);
        version.map(str::to_owned).ok_or_else(|| {
            self.endpoint.protocol_error("a reply without `version`: it may not be Ollama", false)
        })
    }

    /// Returns the installed models in the server's order.
    pub async fn models(&self) -> Result<Vec<OllamaTag>, ModelError> {
        let answer = self.endpoint.parse_json(&self.endpoint.get("/api/tags").await?)?;
        serde_json::from_value::<TagList>(answer)
            .map(|tags| tags.models)
            .map_err(|_| self.endpoint.protocol_error("a model list that is not Ollama's", false))
    }

    /// Finds a model by name; `llama3.2` also matches `llama3.2:latest`.
    pub fn find_tag<'a>(models: &'a [OllamaTag], name: &str) -> Option<&'a OllamaTag> {
        let latest = format!("{name}:latest");
        models.iter().find(|tag| tag.name == name || tag.name == latest)
    }
}

/// One model of an Ollama server.
pub struct OllamaModel {
    id: String,
    name: String,
    server: OllamaServer,
    validator: ReplyValidator,
    keep_alive: String,
    /// True if `format` accepts a schema (0.5 and later); determined once.
    supports_schema: OnceLock<bool>,
    /// Set once the server reports that this model cannot think.
    cannot_think: AtomicBool,
}

impl OllamaModel {
    /// Creates a model without opening a connection.
    pub fn new(name: &str, base: &str, settings: &ModelSettings) -> Result<Self, ModelError> {
        let server = OllamaServer::new(base, settings)?;
        Ok(Self {
            id: format!("ollama/{name}"),
            name: name.to_owned(),
            validator: ReplyValidator::new("ollama", name, server.base(), settings),
            server,
            keep_alive: settings.keep_alive.clone(),
            supports_schema: OnceLock::new(),
            cannot_think: AtomicBool::new(false),
        })
    }

    async fn supports_schema(&self) -> Result<bool, ModelError> {
        if let Some(&known) = self.supports_schema.get() {
            return Ok(known);
        }
        // Only an answer is kept, so that a server that was down is asked again.
        let takes = version_supports_schema(&self.server.version().await?);
        Ok(*self.supports_schema.get_or_init(|| takes))
    }

    fn request_body(&self, request: &ChatRequest, takes_schema: bool) -> Value {
        let mut body = json!({
            "model": self.name,
            "messages": request.wire_messages(),
            "stream": false,
            // Otherwise the server silently truncates the prompt.
            "truncate": false,
            // If missing, models that can think do so.
            "think": request.think.is_on() && !self.cannot_think.load(Ordering::Relaxed),
            "keep_alive": self.keep_alive,
            "options": {
                "num_ctx": request.context_tokens,
                "num_predict": request.max_output_tokens(),
                "temperature": request.temperature(),
                // Ollama's seed is a signed 32-bit number in some runners.
                "seed": request.sampling.seed % (1 << 31),
            },
        });
        if request.first_token.is_some() {
            body["logprobs"] = json!(true);
            body["top_logprobs"] = json!(choice::MAX_ALTERNATIVES);
        } else if let Some(schema) = &request.schema {
            // Servers before 0.5 only accept `json`.
            body["format"] = if takes_schema { (*schema.schema).clone() } else { json!("json") };
        }
        body
    }

    /// Returns what the server says of the model.
    async fn shown(&self) -> Option<Value> {
        let endpoint = &self.server.endpoint;
        let answer = endpoint.post("/api/show", &json!({ "model": self.name }), 256).await.ok()?;
        endpoint.parse_json(&answer).ok()
    }

    async fn not_found_error(&self) -> ModelError {
        let available = self.server.models().await.unwrap_or_default();
        ModelError::ModelNotFound {
            endpoint: self.server.base().to_owned(),
            model: self.name.clone(),
            available: available.into_iter().map(|tag| tag.name).collect(),
            hint: format!("fetch it with `ollama pull {}`", self.name),
        }
    }

    /// Sends a call. Retries without any key that this server or model rejects.
    async fn send(
        &self,
        request: &ChatRequest,
        takes_schema: bool,
    ) -> Result<HttpResponse, ModelError> {
        let mut body = self.request_body(request, takes_schema);
        loop {
            let bytes = request.estimated_json_bytes();
            let answer = self.server.endpoint.post("/api/chat", &body, bytes).await?;
            // Each turn of the loop removes or changes one key, so that it ends.
            let Some(keys) = body.as_object_mut().filter(|_| answer.status == 400) else {
                return Ok(answer);
            };
            // Models without thinking reject `think: true`.
            if answer.mentions("think") && keys.get("think") == Some(&Value::Bool(true)) {
                self.cannot_think.store(true, Ordering::Relaxed);
                keys.insert("think".to_owned(), json!(false));
            } else if answer.mentions("logprobs") && keys.remove("logprobs").is_some() {
                keys.remove("top_logprobs");
            } else if !answer.mentions("think") || keys.remove("think").is_none() {
                return Ok(answer);
            }
        }
    }

    /// Asks a decision model, in one request.
    async fn decide(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let protocol = DecisionProtocol::SystemOne;
        let state = request.messages.last().map(|message| &*message.text);
        let questions = request.questions();
        let body = protocol.body(&self.name, state.unwrap_or_default(), questions);
        let endpoint = &self.server.endpoint;
        let path = format!("/v1{}", protocol.path());
        let answer = endpoint.post(&path, &body, request.estimated_json_bytes()).await?;
        decision_reply(endpoint, &self.validator, protocol, &answer, questions.len())
    }

    async fn call(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        if !request.questions().is_empty() {
            return self.decide(request).await;
        }
        let wants_schema = request.schema.is_some() && request.first_token.is_none();
        // The version costs a request, which is spared where it does not matter.
        let takes_schema = wants_schema && self.supports_schema().await?;
        let endpoint = &self.server.endpoint;
        let answer = self.send(request, takes_schema).await?;
        if answer.status == 404 {
            return Err(self.not_found_error().await);
        }
        let value = match endpoint.parse_json(&answer) {
            Err(ModelError::PromptTooLong { length, limit, .. }) => {
                // Without a reported limit, the requested context size applies.
                let limit = limit.or(usize::try_from(request.context_tokens).ok());
                let most = self.context_limit().await;
                return Err(ModelError::PromptTooLong { length, limit, most });
            }
            other => other?,
        };
        self.validator.check_error(&value)?;
        let mut reply =
            parse_reply(&value, reply_mode(request, takes_schema)).ok_or_else(|| {
                let what = "JSON that is not an Ollama chat reply".to_owned();
                ModelError::NotJson { endpoint: endpoint.base().to_owned(), what }
            })?;
        reply.served_model = self.validator.check_model(&value)?;
        if request.first_token.is_some() {
            reply.first_token = first_token(&value);
        }
        Ok(reply)
    }
}

/// Returns the likeliest first tokens of a reply. `None` before 0.12.11, or if the model thought
/// anyway, since the list does not separate thoughts from the reply.
fn first_token(value: &Value) -> Option<Vec<super::TokenProbability>> {
    let thought = value.get("message").is_none_or(choice::has_thinking);
    if thought { None } else { choice::parse_first_token(value.get("logprobs")) }
}

const fn reply_mode(request: &ChatRequest, takes_schema: bool) -> StructuredMode {
    match (&request.schema, takes_schema) {
        (None, _) => StructuredMode::Prompt,
        (Some(_), true) => StructuredMode::Schema,
        (Some(_), false) => StructuredMode::JsonObject,
    }
}

fn version_supports_schema(version: &str) -> bool {
    is_at_least(version, [0, 5, 0])
}

/// First version with `/v1/systemone`.
const FIRST_WITH_DECISIONS: [u32; 3] = [0, 35, 0];

/// `logprobs` was added in 0.12.11.
fn version_supports_logprobs(version: &str) -> bool {
    is_at_least(version, [0, 12, 11])
}

fn is_at_least(version: &str, least: [u32; 3]) -> bool {
    let mut parts = version.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let version = [(); 3].map(|()| parts.next().unwrap_or(0));
    // Development builds have version 0.0.0 and are recent.
    version == [0; 3] || version >= least
}

/// Parses a non-streamed reply of `/api/chat`, or returns `None` for other JSON. Thinking is in a
/// separate field (`message.thinking`) and is ignored.
pub fn parse_reply(value: &Value, structured: StructuredMode) -> Option<ChatReply> {
    let message = value.get("message").filter(|message| is_assistant(message))?;
    let text = message.get("content")?.as_str()?;
    let finish = match value.get("done_reason").and_then(Value::as_str) {
        // With `stream: false` the server sends one object with `done: true`. False means that
        // generation was interrupted.
        _ if value.get("done") == Some(&Value::Bool(false)) => FinishReason::Length,
        Some("stop") | None => FinishReason::Stop,
        Some("length") => FinishReason::Length,
        Some(other) => FinishReason::Other(selftest_text::one_line(other, 60)),
    };
    Some(ChatReply {
        usage: TokenUsage {
            prompt_tokens: value.get("prompt_eval_count").and_then(Value::as_u64),
            completion_tokens: value.get("eval_count").and_then(Value::as_u64),
        },
        structured,
        ..ChatReply::plain(text.to_owned(), finish)
    })
}

impl ChatModel for OllamaModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(self.call(request))
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async move {
            let models = self.server.models().await?;
            match OllamaServer::find_tag(&models, &self.name) {
                Some(_) => Ok(()),
                None => Err(self.not_found_error().await),
            }
        })
    }

    fn supports_logprobs(&self) -> BoxFuture<'_, bool> {
        Box::pin(async {
            self.server.version().await.is_ok_and(|version| version_supports_logprobs(&version))
        })
    }

    fn supports_decisions(&self) -> BoxFuture<'_, bool> {
        Box::pin(async {
            let version = self.server.version().await;
            version.is_ok_and(|version| is_at_least(&version, FIRST_WITH_DECISIONS))
                && self.shown().await.is_some_and(|shown| {
                    let capabilities = shown.get("capabilities").and_then(Value::as_array);
                    capabilities.into_iter().flatten().any(|one| one.as_str() == Some("decision"))
                })
        })
    }

    fn fingerprint(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            let models = self.server.models().await.ok()?;
            OllamaServer::find_tag(&models, &self.name)?.digest.clone()
        })
    }

    fn context_limit(&self) -> BoxFuture<'_, Option<u32>> {
        Box::pin(async move {
            let shown = self.shown().await?;
            let info = shown.get("model_info")?.as_object()?;
            // The key starts with the architecture: `llama.context_length`.
            let limit = info.iter().find(|(key, _)| key.ends_with(".context_length"))?.1;
            u32::try_from(limit.as_u64()?).ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_ollama_host() {
        for (host, base) in [
            (None, "http://127.0.0.1:11434"),
            (Some(""), "http://127.0.0.1:11434"),
            (Some("gpu-box"), "http://gpu-box:11434"),
            (Some("gpu-box:1234"), "http://gpu-box:1234"),
            (Some(":1234"), "http://127.0.0.1:1234"),
            (Some("0.0.0.0"), "http://127.0.0.1:11434"),
            (Some("0.0.0.0:8080"), "http://127.0.0.1:8080"),
            (Some("http://0.0.0.0:11434"), "http://127.0.0.1:11434"),
            (Some("[::]:11434"), "http://[::1]:11434"),
            (Some("[::1]"), "http://[::1]:11434"),
            (Some("::1"), "http://[::1]:11434"),
            (Some("http://gpu-box"), "http://gpu-box:80"),
            (Some("https://gpu-box"), "https://gpu-box:443"),
            (Some("https://gpu-box:99/ollama/"), "https://gpu-box:99/ollama"),
            (Some(" 'gpu-box:99999' "), "http://gpu-box:11434"),
            (Some("ann:secret@gpu-box"), "http://ann:secret@gpu-box:11434"),
            (Some("http://gpu-box:11434/api/chat"), "http://gpu-box:11434"),
            (Some("gpu-box:11434/v1"), "http://gpu-box:11434"),
        ] {
            assert_eq!(parse_host(host), base, "{host:?}");
        }
    }

    #[test]
    fn versions() {
        for (version, takes) in [
            ("0.4.7", false),
            ("0.5.0", true),
            ("0.12.3-rc1", true),
            ("0.0.0", true),
            ("1.0", true),
        ] {
            assert_eq!(version_supports_schema(version), takes, "{version}");
        }
    }

    #[test]
    fn embedding_models_do_not_chat() {
        let tag = |json: Value| serde_json::from_value::<OllamaTag>(json).unwrap();
        assert!(!tag(json!({"name": "nomic-embed-text:latest"})).can_chat());
        assert!(!tag(json!({"name": "x", "details": {"family": "bert"}})).can_chat());
        assert!(!tag(json!({"name": "x", "capabilities": ["embedding"]})).can_chat());
        assert!(tag(json!({"name": "qwen2.5:7b", "capabilities": ["completion"]})).can_chat());
        assert!(tag(json!({"name": "llama3.2:latest"})).can_chat());
    }

    #[test]
    fn thinking_is_not_the_reply() {
        let value = json!({
            "message": {"role": "assistant", "thinking": "{\"format_score\": 1.0}", "content": ""},
            "done": true, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3,
        });
        let reply = parse_reply(&value, StructuredMode::Schema).unwrap();
        assert_eq!(reply.text, "");
        assert_eq!(reply.usage.prompt_tokens, Some(7));
    }

    #[test]
    fn the_first_token_of_a_thought_is_none_of_the_reply() {
        let token = |text: &str| json!({ "token": text, "logprob": -0.7 });
        let first = json!([{ "token": "Yes", "top_logprobs": [token("Yes"), token("No")] }]);
        let mut value = json!({ "message": { "content": "Yes" }, "logprobs": first });
        assert_eq!(first_token(&value).unwrap().len(), 2);
        value["message"]["thinking"] = json!("Yes, but");
        assert_eq!(first_token(&value), None);
        value["message"]["thinking"] = json!("");
        assert!(first_token(&value).is_some());
        value.as_object_mut().unwrap().remove("logprobs");
        assert_eq!(first_token(&value), None);
    }

    #[test]
    fn a_limit_is_seen() {
        let value = json!({"message": {"content": "{}"}, "done": true, "done_reason": "length"});
        assert_eq!(
            parse_reply(&value, StructuredMode::Schema).unwrap().finish,
            FinishReason::Length
        );
    }
}
