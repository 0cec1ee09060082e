//! `/v1/chat/completions` of OpenAI and of everything that speaks it: llama.cpp's server, vLLM,
//! LM Studio.

use std::sync::atomic::{AtomicU8, Ordering};

use futures_util::future::BoxFuture;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::http::{Answer, Endpoint};
use super::model_settings::ModelSettings;
use super::{ChatModel, ChatReply, ChatRequest, Finish, ModelError, StructuredMode, Usage};

/// OpenAI's own address.
pub const DEFAULT_BASE: &str = "https://api.openai.com/v1";

/// The modes from strict to lax; a server that refuses one is asked with the next.
const MODES: [StructuredMode; 3] =
    [StructuredMode::Schema, StructuredMode::JsonObject, StructuredMode::Prompt];

/// One model behind an OpenAI-compatible address.
pub struct OpenAiModel {
    id: String,
    name: String,
    endpoint: Endpoint,
    /// Index into [`MODES`] of the strictest mode that this server has not refused.
    mode: AtomicU8,
    /// Whether the limit is called `max_tokens` (0) or, as OpenAI's newer models insist,
    /// `max_completion_tokens` (1), and whether the temperature must stay away (2).
    dialect: AtomicU8,
}

impl OpenAiModel {
    /// `base` ends in `/v1` or whatever stands before `/chat/completions`. Opens no connection.
    pub fn new(
        name: &str,
        base: &str,
        key: Option<&SecretString>,
        settings: &ModelSettings,
    ) -> Result<Self, ModelError> {
        let base = base.trim_end_matches('/');
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret()))
                .map_err(|_| ModelError::Engine {
                    what: "OPENAI_API_KEY holds a character that no HTTP header can carry"
                        .to_owned(),
                    hint: Some("copy the key again, without line breaks".to_owned()),
                })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let hint = "is OPENAI_BASE_URL right and the server running?".to_owned();
        Ok(Self {
            id: format!("openai/{name}"),
            name: name.to_owned(),
            endpoint: Endpoint::new(base, headers, settings, hint)?,
            mode: AtomicU8::new(0),
            dialect: AtomicU8::new(0),
        })
    }

    fn body(&self, request: &ChatRequest, mode: StructuredMode, dialect: u8) -> Value {
        let mut body = json!({
            "model": self.name,
            "messages": request.wire_messages(),
            "stream": false,
            // Servers take seeds of at most 63 bits.
            "seed": request.sampling.seed >> 1,
        });
        let limit = if dialect == 0 { "max_tokens" } else { "max_completion_tokens" };
        body[limit] = json!(request.sampling.max_tokens);
        if dialect < 2 {
            body["temperature"] = json!(request.sampling.temperature);
        }
        if let Some(schema) = &request.schema {
            match mode {
                StructuredMode::Schema => {
                    body["response_format"] = json!({
                        "type": "json_schema",
                        "json_schema": {
                            "name": schema.name, "strict": true, "schema": *schema.schema,
                        },
                    });
                }
                StructuredMode::JsonObject => {
                    body["response_format"] = json!({ "type": "json_object" });
                }
                StructuredMode::Prompt => {}
            }
        }
        body
    }

    async fn call(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        loop {
            let level = self.mode.load(Ordering::Relaxed);
            let dialect = self.dialect.load(Ordering::Relaxed);
            let mode = match request.schema {
                Some(_) => MODES[usize::from(level)],
                None => StructuredMode::Prompt,
            };
            let answer =
                self.endpoint.post("/chat/completions", &self.body(request, mode, dialect)).await?;
            if matches!(answer.status, 400 | 422 | 501) {
                match refused(&answer) {
                    // Remembered for all later calls, whichever of several calls finds out first.
                    Some(Refused::ResponseFormat) if mode != StructuredMode::Prompt => {
                        self.mode.fetch_max(level + 1, Ordering::Relaxed);
                        continue;
                    }
                    Some(Refused::MaxTokens) if dialect == 0 => {
                        self.dialect.fetch_max(1, Ordering::Relaxed);
                        continue;
                    }
                    Some(Refused::Temperature) if dialect < 2 => {
                        self.dialect.fetch_max(2, Ordering::Relaxed);
                        continue;
                    }
                    _ => {}
                }
            }
            if answer.status == 404 {
                return Err(self.missing(&answer).await);
            }
            let value = self.endpoint.json(&answer)?;
            return read_reply(&value, mode).ok_or_else(|| {
                self.endpoint.protocol("JSON that is not a chat completion", false)
            });
        }
    }

    async fn models(&self) -> Option<Vec<String>> {
        let answer = self.endpoint.get("/models").await.ok()?;
        let list = self.endpoint.json(&answer).ok()?;
        let names = list.get("data")?.as_array()?.iter();
        Some(names.filter_map(|entry| Some(entry.get("id")?.as_str()?.to_owned())).collect())
    }

    async fn missing(&self, answer: &Answer) -> ModelError {
        match self.models().await {
            Some(available) if !available.contains(&self.name) => ModelError::Missing {
                endpoint: self.endpoint.base().to_owned(),
                model: self.name.clone(),
                available: available.into_iter().take(20).collect(),
                hint: "use one of these names, or another OPENAI_BASE_URL".to_owned(),
            },
            _ => self.endpoint.status(answer),
        }
    }
}

enum Refused {
    ResponseFormat,
    MaxTokens,
    Temperature,
}

/// The complaint of a server that answers "bad request", by the words that OpenAI, vLLM,
/// llama.cpp and LM Studio use.
fn refused(answer: &Answer) -> Option<Refused> {
    let words = String::from_utf8_lossy(&answer.body).to_ascii_lowercase();
    let names = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    if names(&["max_completion_tokens"]) {
        Some(Refused::MaxTokens)
    } else if names(&["'temperature'", "\"temperature\""]) && names(&["unsupported", "support"]) {
        Some(Refused::Temperature)
    } else if names(&["response_format", "json_schema", "json_object", "schema", "grammar"]) {
        Some(Refused::ResponseFormat)
    } else {
        None
    }
}

/// Reads a chat completion. `None`: it is something else. `reasoning_content` and the like are
/// left where they are.
pub fn read_reply(value: &Value, structured: StructuredMode) -> Option<ChatReply> {
    let choice = value.get("choices")?.get(0)?;
    let message = choice.get("message")?;
    let text = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(_) => return None,
    };
    let refusal = message.get("refusal").and_then(Value::as_str);
    let finish = match (refusal, choice.get("finish_reason").and_then(Value::as_str)) {
        (Some(words), _) => Finish::Refusal(selftest_text::one_line(words, 200)),
        (None, Some("stop") | None) => Finish::Stop,
        (None, Some("length")) => Finish::Length,
        (None, Some("content_filter")) => {
            Finish::Refusal("the provider's content filter".to_owned())
        }
        (None, Some(other)) => Finish::Other(selftest_text::one_line(other, 60)),
    };
    let count = |name: &str| value.get("usage")?.get(name)?.as_u64();
    Some(ChatReply {
        text,
        finish,
        usage: Usage {
            prompt_tokens: count("prompt_tokens"),
            completion_tokens: count("completion_tokens"),
        },
        structured,
        first_token: None,
    })
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

    /// Asks for the model list: optional in the protocol, so only a missing server, a refused
    /// key and a list without the model are faults.
    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async move {
            let answer = self.endpoint.get("/models").await?;
            match answer.status {
                401 | 403 => Err(self.endpoint.status(&answer)),
                _ => Ok(()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finish_reasons() {
        let finish = |message: Value, reason: &str| {
            let value = json!({"choices": [{"message": message, "finish_reason": reason}]});
            read_reply(&value, StructuredMode::Schema).unwrap().finish
        };
        assert_eq!(finish(json!({"content": "{}"}), "stop"), Finish::Stop);
        assert_eq!(finish(json!({"content": "{}"}), "length"), Finish::Length);
        assert!(matches!(
            finish(json!({"content": null, "refusal": "I can't"}), "stop"),
            Finish::Refusal(_)
        ));
        assert!(matches!(finish(json!({"content": ""}), "content_filter"), Finish::Refusal(_)));
        assert!(matches!(finish(json!({}), "tool_calls"), Finish::Other(_)));
    }

    #[test]
    fn other_json_is_no_completion() {
        for value in [json!({}), json!([]), json!({"choices": []}), json!({"error": "x"})] {
            assert_eq!(read_reply(&value, StructuredMode::Schema), None, "{value}");
        }
        let parts = json!({"choices": [{"message": {"content": [{"type": "text"}]}}]});
        assert_eq!(read_reply(&parts, StructuredMode::Schema), None);
    }
}
