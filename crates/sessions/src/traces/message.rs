//! Converts messages of traces, which have many forms, to the form that the chat reader accepts.

use std::hash::Hasher as _;

use serde_json::{Map, Value};
use twox_hash::XxHash3_64;

/// Maximum nesting of values that are searched.
const MAX_DEPTH: usize = 6;

/// Maximum bytes of text that identify a repeated message.
const MAX_HASHED: usize = 4096;

/// A message in the form that the chat reader accepts.
#[derive(Debug)]
pub(super) struct TraceMessage {
    pub(super) role: String,
    /// Key that stays the same if the message is repeated with different fields.
    pub(super) key: u64,
    /// Ids of the calls in the message.
    pub(super) calls: Vec<String>,
    /// Ids of the calls that the message answers.
    pub(super) answers: Vec<String>,
    json: String,
    digest: u64,
}

impl TraceMessage {
    pub(super) fn new(message: Map<String, Value>) -> Self {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut found = MessageIdentity::default();
        for (name, value) in &message {
            found.collect(name, value, 0);
        }
        let mut key = XxHash3_64::with_seed(0);
        key.write(role.as_bytes());
        // Copies of a message may differ in white space.
        let words = found.text.split_whitespace().collect::<Vec<_>>().join(" ");
        key.write(&words.as_bytes()[..words.len().min(MAX_HASHED)]);
        found.names.iter().for_each(|name| key.write(name.as_bytes()));
        let answers = found.answers;
        let json = Value::Object(message).to_string();
        let digest = XxHash3_64::oneshot(json.as_bytes());
        Self { role, key: key.finish(), calls: found.calls, answers, json, digest }
    }

    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    pub(super) fn size(&self) -> usize {
        self.json.len()
    }

    /// Returns the message as JSON fields, so that more can be added.
    pub(super) fn fields(&self) -> Map<String, Value> {
        serde_json::from_str(&self.json).unwrap_or_default()
    }
}

/// Identifying parts of a message, collected from its values.
#[derive(Default)]
struct MessageIdentity {
    text: String,
    names: Vec<String>,
    calls: Vec<String>,
    answers: Vec<String>,
}

impl MessageIdentity {
    fn collect(&mut self, name: &str, value: &Value, depth: usize) {
        match value {
            Value::String(text) => match name {
                "content" | "text" | "refusal" | "response" | "result" => {
                    self.text.push_str(text);
                    self.text.push(' ');
                }
                "tool_call_id" | "tool_use_id" | "toolCallId" => self.answers.push(text.clone()),
                _ => {}
            },
            Value::Array(all) => all.iter().for_each(|inner| self.collect(name, inner, depth + 1)),
            Value::Object(fields) if depth < MAX_DEPTH => {
                let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
                let is_call = name == "tool_calls" || matches!(kind, "tool_call" | "tool_use");
                let id = ["id", "tool_call_id"].iter().find_map(|id| fields.get(*id)?.as_str());
                if is_call {
                    self.calls.extend(id.map(str::to_owned));
                    let own = fields.get("name").and_then(Value::as_str);
                    let function = fields.get("function").and_then(|inner| inner.get("name"));
                    let called = own.or_else(|| function?.as_str());
                    self.names.extend(called.map(str::to_owned));
                    return;
                }
                if matches!(kind, "tool_call_response" | "tool_result") {
                    self.answers.extend(id.map(str::to_owned));
                }
                for (name, inner) in fields {
                    self.collect(name, inner, depth + 1);
                }
            }
            _ => {}
        }
    }
}

/// Returns the messages inside a value. Messages without a role get `role`.
pub(super) fn messages(value: &Value, role: &str) -> Vec<Map<String, Value>> {
    let mut found = Vec::new();
    gather(value, role, 0, &mut found);
    found
}

fn gather(value: &Value, role: &str, depth: usize, found: &mut Vec<Map<String, Value>>) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Null => {}
        Value::Object(fields) if fields.is_empty() => {}
        Value::String(text) => match parse_json(text) {
            Some(inner) => gather(&inner, role, depth + 1, found),
            None if text.is_empty() => {}
            None => found.push(plain_message(role, value.clone())),
        },
        // A batch of prompts has one element, except in a few old programs.
        Value::Array(all) if all.first().is_some_and(Value::is_array) => {
            gather(&all[0], role, depth + 1, found);
        }
        Value::Array(all) if all.iter().any(is_block) => {
            found.push(plain_message(role, value.clone()));
        }
        Value::Array(all) => all.iter().for_each(|inner| gather(inner, role, depth + 1, found)),
        Value::Object(fields) => {
            if let Some(message) = message(fields, role) {
                found.push(message);
                return;
            }
            let wrapper = ["messages", "choices", "generations", "message", "input", "output"];
            match wrapper.iter().find_map(|name| fields.get(*name)) {
                Some(inner) => {
                    if let Some(system) = fields.get("system").filter(|_| role == "user") {
                        found.push(plain_message("system", system.clone()));
                    }
                    gather(inner, role, depth + 1, found);
                }
                // Unknown objects are kept as JSON rather than lost.
                None => found.push(plain_message(role, Value::String(value.to_string()))),
            }
        }
        other => found.push(plain_message(role, Value::String(other.to_string()))),
    }
}

/// Parses JSON inside a text.
pub(super) fn parse_json(text: &str) -> Option<Value> {
    let start = text.trim_start();
    // A plain number or quoted word is valid JSON too, but is meant as text.
    let may_be = start.starts_with('{') || start.starts_with('[');
    may_be.then(|| serde_json::from_str(text).ok()).flatten()
}

fn plain_message(role: &str, content: Value) -> Map<String, Value> {
    Map::from_iter([
        ("role".to_owned(), Value::String(role.to_owned())),
        ("content".to_owned(), content),
    ])
}

/// Returns true if the value is a content block and not a message.
fn is_block(value: &Value) -> bool {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    value.get("role").is_none()
        && matches!(kind, "text" | "tool_use" | "tool_result" | "thinking" | "image" | "image_url")
}

/// Normalises a message; `None` if the object is not one.
fn message(fields: &Map<String, Value>, role: &str) -> Option<Map<String, Value>> {
    // LangChain: `{"lc": 1, "id": […, "HumanMessage"], "kwargs": {…}}`, or
    // `{"type": …, "data": …}`.
    if let Some(Value::Object(inner)) = fields.get("kwargs").or_else(|| fields.get("data")) {
        let class = fields.get("id").and_then(Value::as_array).and_then(|path| path.last());
        let kind =
            fields.get("type").and_then(Value::as_str).filter(|kind| role_of(kind).is_some());
        let named = kind.or_else(|| class?.as_str()).and_then(role_of).unwrap_or(role);
        return message(inner, named)
            .or_else(|| inner.get("content").map(|it| plain_message(named, it.clone())));
    }
    // OpenInference: `{"message": {"role": …}}`, and choices of a response.
    if let Some(Value::Object(inner)) = fields.get("message") {
        return message(inner, role);
    }
    let said = fields.get("role").or_else(|| fields.get("type")).and_then(Value::as_str);
    let named = said.and_then(role_of);
    let holds = ["content", "contents", "parts", "tool_calls"];
    let is_message = named.is_some() && holds.iter().any(|name| fields.contains_key(*name));
    let is_untyped = fields.contains_key("content") && !fields.contains_key("type");
    if !(is_message || is_untyped) {
        // A LangChain generation without a message.
        let text = fields.get("text").filter(|_| fields.contains_key("generation_info"))?;
        return Some(plain_message(role, text.clone()));
    }
    let mut message = plain_message(named.unwrap_or(role), Value::Null);
    for (name, value) in fields {
        match name.as_str() {
            "content" if value.as_str().is_none_or(|text| !text.is_empty()) => {
                message.insert("content".to_owned(), value.clone());
            }
            "parts" | "tool_call_id" | "name" | "reasoning_content" | "refusal" | "status"
            | "is_error" | "function_call" => {
                message.insert(name.clone(), value.clone());
            }
            "contents" => {
                let all = elements(value).into_iter().map(|one| unwrapped(&one, "message_content"));
                message.insert("content".to_owned(), Value::Array(all.collect()));
            }
            "tool_calls" => {
                let all = match value {
                    Value::String(text) => parse_json(text).unwrap_or_default(),
                    other => other.clone(),
                };
                let calls = elements(&all).into_iter().map(|call| unwrapped(&call, "tool_call"));
                message.insert("tool_calls".to_owned(), Value::Array(calls.collect()));
            }
            // LangChain stores the provider's verbatim reply there.
            "additional_kwargs" => {
                let calls = value.get("tool_calls").filter(|_| {
                    fields.get("tool_calls").and_then(Value::as_array).is_none_or(Vec::is_empty)
                });
                if let Some(calls) = calls {
                    message.insert("tool_calls".to_owned(), calls.clone());
                }
            }
            _ => {}
        }
    }
    Some(message)
}

/// Maps a role, type or class name to a speaker.
fn role_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "user" | "human" | "HumanMessage" | "HumanMessageChunk" => "user",
        "assistant" | "ai" | "model" | "AIMessage" | "AIMessageChunk" => "assistant",
        "tool" | "function" | "ToolMessage" | "FunctionMessage" => "tool",
        "system" | "developer" | "SystemMessage" => "system",
        _ => return None,
    })
}

/// Returns the elements of a list, or of an object with numeric keys.
pub(super) fn elements(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(all) => all.clone(),
        Value::Object(fields) => {
            let mut all: Vec<_> = fields
                .iter()
                .filter_map(|(key, inner)| Some((key.parse::<u32>().ok()?, inner.clone())))
                .collect();
            all.sort_by_key(|(number, _)| *number);
            all.into_iter().map(|(_, inner)| inner).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the object under a name, or the value itself.
fn unwrapped(value: &Value, name: &str) -> Value {
    value.get(name).unwrap_or(value).clone()
}
