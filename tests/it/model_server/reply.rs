//! The server's behaviour for a call: answer well in its protocol, or misbehave.

use std::time::Duration;

use serde_json::{Value, json};

use super::call::{Call, Endpoint};
use super::wire::Connection;

/// One answer, good or bad.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A finished reply of the model.
    Text(String),
    /// A finished reply of the model in JSON. Ollama writes the keys sorted by name.
    Json(Value),
    /// The first token of a reply, cut there, with the log-probabilities of the likeliest tokens.
    FirstToken(Vec<(&'static str, Value)>),
    /// Thoughts that took all tokens; the log-probabilities are of their first token.
    OnlyThoughts(String),
    /// A finished reply with raw bytes in its text, valid UTF-8 or not.
    Bytes(Vec<u8>),
    /// A finished reply whose text is null.
    Null,
    /// A finished reply with the model's thinking beside it.
    Thinking { thinking: String, text: String },
    /// A reply that the token limit cut.
    Truncated(String),
    /// A reply that a provider's filter cut.
    Filtered(String),
    /// The provider's own field for a refusal.
    Refusal(String),
    /// A finished reply to a prompt of which the server saw this many tokens only.
    CutPrompt { prompt_tokens: u64, text: String },
    /// A finished reply, of whose envelope some members are others; null takes one out.
    Changed { text: String, change: Value },
    /// This body with status 200.
    Body(String),
    /// An HTTP error.
    Status { code: u16, retry_after: Option<&'static str>, body: String },
    /// This status, headers and body.
    WithHeaders { code: u16, headers: Vec<(&'static str, String)>, body: String },
    /// A web page with status 200.
    Html,
    /// Status 200 and nothing.
    EmptyBody,
    /// Half of a good answer, then the end of the connection.
    CloseMidway,
    /// The end of the connection instead of an answer.
    Close,
    /// No answer at all.
    Hang,
    /// A body without end.
    Endless,
    /// A good answer, a few bytes at a time.
    Drip { bytes: usize, every: Duration, text: String },
    /// The first half of a good answer, then nothing more, on a connection that stays open.
    HalfOpen,
    /// The first half of a good answer, then a reset of the connection.
    Reset,
    /// Too many requests: come back at this date, which counts from the server's own.
    LimitedUntil { until: &'static str, date: Option<&'static str> },
    /// A good answer with this many bytes of white space after it.
    Padded { bytes: usize, text: String },
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Reply::Text(text.to_owned())
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Reply::Text(text)
    }
}

impl From<Value> for Reply {
    fn from(value: Value) -> Self {
        Reply::Json(value)
    }
}

impl Reply {
    /// An HTTP error with a body in the provider's usual form.
    pub(crate) fn status(code: u16) -> Self {
        let body =
            json!({ "error": { "message": format!("scripted {code}"), "type": "scripted" } });
        Reply::Status { code, retry_after: None, body: body.to_string() }
    }

    /// Writes the answer. `go_on` turns false when the test is over.
    pub(super) fn send(self, call: &Call, connection: &mut Connection, go_on: &dyn Fn() -> bool) {
        const JSON: (&str, &str) = ("content-type", "application/json");
        const MARK: &str = "@@raw@@";
        let finished = |text: &str| body(call, &Parts { text: Some(text), ..Parts::default() });
        match self {
            Reply::Text(text) => connection.write(200, &[JSON], finished(&text).as_bytes()),
            Reply::Json(mut value) => {
                if call.endpoint == Endpoint::Ollama && call.schema().is_some() {
                    value.sort_all_objects();
                }
                connection.write(200, &[JSON], finished(&value.to_string()).as_bytes());
            }
            Reply::FirstToken(tokens) => {
                let text = tokens.first().map(|(text, _)| *text);
                let likeliest = Some(tokens.as_slice());
                let parts = Parts { text, likeliest, finish: "length", ..Parts::default() };
                connection.write(200, &[JSON], body(call, &parts).as_bytes());
            }
            Reply::OnlyThoughts(thinking) => {
                let tokens = [("The", json!(-0.1)), ("Yes", json!(-3.0)), ("No", json!(-4.0))];
                let likeliest = (call.body["logprobs"] == true).then_some(&tokens[..]);
                let thinking = Some(thinking.as_str());
                let text = Some("");
                let parts =
                    Parts { text, thinking, likeliest, finish: "length", ..Parts::default() };
                connection.write(200, &[JSON], body(call, &parts).as_bytes());
            }
            Reply::Bytes(bytes) => {
                let body = finished(MARK);
                let (before, after) = body.split_once(MARK).unwrap();
                let whole = [before.as_bytes(), &bytes, after.as_bytes()].concat();
                connection.write(200, &[JSON], &whole);
            }
            Reply::Null => {
                connection.write(200, &[JSON], body(call, &Parts::default()).as_bytes());
            }
            Reply::Thinking { thinking, text } => {
                let thinking = Some(thinking.as_str());
                let parts = Parts { text: Some(&text), thinking, ..Parts::default() };
                connection.write(200, &[JSON], body(call, &parts).as_bytes());
            }
            Reply::Truncated(text) => {
                let parts = Parts { text: Some(&text), finish: "length", ..Parts::default() };
                connection.write(200, &[JSON], body(call, &parts).as_bytes());
            }
            Reply::Filtered(text) => {
                let parts =
                    Parts { text: Some(&text), finish: "content_filter", ..Parts::default() };
                connection.write(200, &[JSON], body(call, &parts).as_bytes());
            }
            Reply::Refusal(words) => {
                let parts = Parts { refusal: Some(&words), ..Parts::default() };
                connection.write(200, &[JSON], body(call, &parts).as_bytes());
            }
            Reply::CutPrompt { prompt_tokens, text } => {
                let prompt_tokens = Some(prompt_tokens);
                let parts = Parts { text: Some(&text), prompt_tokens, ..Parts::default() };
                connection.write(200, &[JSON], body(call, &parts).as_bytes());
            }
            Reply::Changed { text, change } => {
                let mut whole: Value = serde_json::from_str(&finished(&text)).unwrap();
                let members = whole.as_object_mut().unwrap();
                for (key, value) in change.as_object().unwrap() {
                    if value.is_null() {
                        members.remove(key);
                    } else {
                        members.insert(key.clone(), value.clone());
                    }
                }
                connection.write(200, &[JSON], whole.to_string().as_bytes());
            }
            Reply::Body(body) => connection.write(200, &[JSON], body.as_bytes()),
            Reply::Status { code, retry_after, body } => {
                let headers = [Some(JSON), retry_after.map(|value| ("retry-after", value))];
                let headers: Vec<_> = headers.into_iter().flatten().collect();
                connection.write(code, &headers, body.as_bytes());
            }
            Reply::WithHeaders { code, headers, body } => {
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                connection.write(code, &headers, body.as_bytes());
            }
            Reply::Html => {
                let page = "<!doctype html><html><body><h1>It works!</h1></body></html>";
                connection.write(200, &[("content-type", "text/html")], page.as_bytes());
            }
            Reply::EmptyBody => connection.write(200, &[JSON], b""),
            Reply::CloseMidway => connection.write_half(finished("{}").as_bytes()),
            Reply::Close => connection.close(),
            Reply::Hang => {
                while go_on() {
                    std::thread::sleep(Duration::from_millis(20));
                }
                connection.close();
            }
            Reply::Endless => connection.write_endlessly(&vec![b' '; 64 * 1024], go_on),
            Reply::Drip { bytes, every, text } => {
                connection.write_slowly(finished(&text).as_bytes(), bytes, every, go_on);
            }
            Reply::HalfOpen => {
                connection.begin_half(finished("{}").as_bytes());
                while go_on() {
                    std::thread::sleep(Duration::from_millis(20));
                }
                connection.close();
            }
            Reply::Reset => {
                connection.begin_half(finished("{}").as_bytes());
                connection.reset();
            }
            Reply::LimitedUntil { until, date } => {
                let date = date.map(|date| ("date", date));
                let headers: Vec<_> = [("retry-after", until)].into_iter().chain(date).collect();
                connection.write(429, &headers, b"slow down");
            }
            Reply::Padded { bytes, text } => {
                let whole = finished(&text) + " ".repeat(bytes).as_str();
                connection.write(200, &[JSON], whole.as_bytes());
            }
        }
    }
}

struct Parts<'a> {
    text: Option<&'a str>,
    thinking: Option<&'a str>,
    refusal: Option<&'a str>,
    likeliest: Option<&'a [(&'static str, Value)]>,
    finish: &'a str,
    prompt_tokens: Option<u64>,
}

impl Default for Parts<'_> {
    fn default() -> Self {
        Self {
            text: None,
            thinking: None,
            refusal: None,
            likeliest: None,
            finish: "stop",
            prompt_tokens: None,
        }
    }
}

fn body(call: &Call, parts: &Parts<'_>) -> String {
    let seen = parts.prompt_tokens.unwrap_or(call.prompt_tokens());
    let made = parts.text.map_or(0, |text| text.len() as u64 / 4 + 1);
    let value = match call.endpoint {
        Endpoint::OpenAi => json!({
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_770_000_000,
            "model": call.body["model"],
            "choices": [{
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": parts.text,
                    "reasoning_content": parts.thinking,
                    "refusal": parts.refusal,
                },
                "logprobs": parts.likeliest.map(|tokens| json!({ "content": told(call, tokens) })),
                "finish_reason": parts.finish,
            }],
            "usage": {
                "prompt_tokens": seen,
                "completion_tokens": made,
                "total_tokens": seen + made,
            },
        }),
        Endpoint::Ollama => {
            let words = parts.text.or(parts.refusal).unwrap_or("");
            let mut message = json!({ "role": "assistant", "content": words });
            if let Some(thinking) = parts.thinking {
                message["thinking"] = thinking.into();
            }
            let mut answer = json!({
                "model": call.body["model"],
                "created_at": "2026-02-06T12:34:56Z",
                "message": message,
                "done": true,
                // Ollama has no filter of its own.
                "done_reason": if parts.finish == "length" { "length" } else { "stop" },
                "total_duration": 1_000_000,
                "prompt_eval_count": seen,
                "eval_count": made,
            });
            if let Some(tokens) = parts.likeliest {
                answer["logprobs"] = told(call, tokens);
            }
            answer
        }
    };
    value.to_string()
}

/// The first token with its alternatives, as many as were asked for; both protocols write it so.
fn told(call: &Call, tokens: &[(&'static str, Value)]) -> Value {
    let token = |(text, logprob): &(&'static str, Value)| json!({ "token": text, "logprob": logprob, "bytes": text.as_bytes() });
    let most = usize::try_from(call.body["top_logprobs"].as_u64().unwrap_or(0)).unwrap();
    let mut first = tokens.first().map_or(json!({}), token);
    first["top_logprobs"] = tokens.iter().take(most).map(token).collect();
    json!([first])
}
