//! Requests for structured replies: calls a model, and asks again if the reply is malformed.
//!
//! Independent of the question and of the meaning of a reply.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    CallRecord, ChatModel, ChatRequest, FinishReason, ModelError, PromptMessage, call_and_record,
};
use selftest_schema::{Schema, SchemaError};
use selftest_text::normal::readable_json;

/// Maximum number of bytes of a malformed reply to show to the model again.
const MAX_SHOWN_AGAIN: usize = 2000;

/// Limits of asking.
#[derive(Debug, Clone, Copy)]
pub struct AskLimits<'a> {
    /// Maximum number of retries after a malformed reply.
    pub max_reasks: u32,
    /// Name of the setting that bounds a reply, such as `judge.max_tokens`, for messages.
    pub max_tokens_key: &'a str,
}

/// A model gave no usable reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskError {
    /// Reason.
    pub reason: UnscoredReason,
    /// Error message on one line.
    pub detail: String,
    /// True if a shorter prompt would help.
    pub prompt_too_long: bool,
    /// True if the server accepted the request but failed (HTTP 500), so that another request may
    /// succeed.
    pub server_failed: bool,
}

/// Reason for a missing score. None of these counts as a pass, a fail or a zero.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum UnscoredReason {
    /// The reply is not a verdict, even after retries.
    Malformed,
    /// A limit cut the reply or the prompt.
    Truncated,
    /// The judge declined.
    Refused,
    /// The judge could not score a category.
    CantTell,
    /// No reply: the server is down or violates the protocol.
    Unavailable,
    /// The server sent something other than, or in addition to, the requested model's reply.
    WrongReply,
    /// The judge does not separate good answers from bad ones well enough.
    JudgeUnfit,
    /// An old report lacks data that a judge needs.
    EvidenceMissing,
}

impl UnscoredReason {
    /// Returns the reason for a failed call.
    pub const fn from_error(error: &ModelError) -> Self {
        match error {
            ModelError::PromptTooLong { .. } => Self::Truncated,
            ModelError::WrongReply { .. } => Self::WrongReply,
            _ => Self::Unavailable,
        }
    }

    /// Describes the reason for people, for any model. `malformed` is the text for an unreadable
    /// reply.
    pub const fn describe_model(self, malformed: &'static str) -> &'static str {
        match self {
            UnscoredReason::Malformed => malformed,
            UnscoredReason::Truncated => "the model's reply or prompt was cut by a limit",
            UnscoredReason::Refused => "the model refused",
            UnscoredReason::CantTell => "the model could not tell",
            UnscoredReason::Unavailable => "the model gave no reply",
            UnscoredReason::WrongReply => "what the server sent is not the model's answer",
            UnscoredReason::JudgeUnfit => "the model is not fit to judge",
            UnscoredReason::EvidenceMissing => "the model could not be shown everything",
        }
    }

    /// Describes the reason for people, for a judge.
    pub const fn describe(self) -> &'static str {
        match self {
            UnscoredReason::Malformed => "the judge's reply is not a valid verdict",
            UnscoredReason::Truncated => "the judge's reply or prompt was cut by a limit",
            UnscoredReason::Refused => "the judge refused",
            UnscoredReason::CantTell => "the judge could not tell",
            UnscoredReason::Unavailable => "the judge gave no reply",
            UnscoredReason::WrongReply => "what the server sent is not the judge's answer",
            UnscoredReason::JudgeUnfit => "the judge cannot tell good answers from bad ones",
            UnscoredReason::EvidenceMissing => "what the judge has to see is not in the report",
        }
    }
}

/// Returns the schema of a score.
pub fn score_schema() -> Value {
    let mut scores: Vec<Value> =
        (0..=20).map(|twentieths| json!(f64::from(twentieths) / 20.0)).collect();
    // `null` means that the model cannot tell.
    scores.push(Value::Null);
    json!({ "enum": scores })
}

/// Asks a model until its reply can be read.
///
/// `seed` returns the sampling seed of each call, counted from 0. `read` parses a complete reply.
/// Every call is appended to `calls`. Truncated, refused and missing replies are final: asking
/// again would not help, or would cost as much as the provider's own retries.
pub async fn ask<T>(
    model: &dyn ChatModel,
    mut request: ChatRequest,
    what: AskLimits<'_>,
    seed: impl Fn(u32) -> u64,
    read: impl Fn(&str) -> Result<T, ReplyError>,
    calls: &mut Vec<CallRecord>,
) -> Result<T, AskError> {
    let conversation = request.messages.clone();
    let mut ask_number = 0;
    loop {
        // A new seed, so that a model that sampled an unlucky reply does not sample it again.
        request.sampling.seed = seed(ask_number);
        let (record, reply) = call_and_record(model, &request).await;
        calls.push(record);
        let reply = match reply {
            Ok(reply) => reply,
            Err(error @ ModelError::PromptTooLong { .. }) => {
                let error = ask_error(UnscoredReason::from_error(&error), &error.to_string());
                return Err(AskError { prompt_too_long: true, ..error });
            }
            Err(error) => {
                let server_failed = matches!(error, ModelError::Status { status: 500, .. });
                let error = ask_error(UnscoredReason::from_error(&error), &error.to_string());
                return Err(AskError { server_failed, ..error });
            }
        };
        // Before the reply is looked at: a verdict on half of the evidence may be perfectly
        // well-formed.
        if reply.is_prompt_truncated(&request) {
            let detail = "the server counted fewer tokens than the prompt has: it cut the prompt";
            let error = ask_error(UnscoredReason::Truncated, detail);
            return Err(AskError { prompt_too_long: true, ..error });
        }
        let faults = match reply.finish {
            FinishReason::Length => {
                let (key, limit) = (what.max_tokens_key, request.sampling.max_tokens);
                let detail = format!("the reply ended at a limit ({key} is {limit})");
                // The prompt left too little room for the whole reply.
                let prompt_too_long = reply.usage.prompt_tokens.is_some_and(|tokens| {
                    tokens.saturating_add(u64::from(limit)) > u64::from(request.context_tokens)
                });
                let error = ask_error(UnscoredReason::Truncated, &detail);
                return Err(AskError { prompt_too_long, ..error });
            }
            FinishReason::Repeated => {
                let detail = "the reply repeated itself without end";
                return Err(ask_error(UnscoredReason::Truncated, detail));
            }
            FinishReason::UnfinishedThinking => {
                let detail = "the reply ended within its thinking, before the answer";
                return Err(ask_error(UnscoredReason::Truncated, detail));
            }
            FinishReason::Refusal(words) => return Err(ask_error(UnscoredReason::Refused, &words)),
            // An unknown reason may be a cut. The text is not read, but the model may try again.
            FinishReason::Other(word) => vec![format!("the reply ended with `{word}`")],
            FinishReason::Stop => match read(&reply.text) {
                Ok(read) => return Ok(read),
                Err(ReplyError::Refused(words)) => {
                    return Err(ask_error(UnscoredReason::Refused, &words));
                }
                Err(ReplyError::Malformed(faults)) => faults,
            },
        };
        if ask_number >= what.max_reasks {
            return Err(ask_error(UnscoredReason::Malformed, &faults.join("; ")));
        }
        ask_number += 1;
        let name = request.schema.as_ref().map_or("reply", |schema| schema.name);
        // Replaces the previous malformed reply, so that the prompt does not grow.
        request.messages.clone_from(&conversation);
        request
            .messages
            .push(PromptMessage::assistant(selftest_text::clip(&reply.text, MAX_SHOWN_AGAIN)));
        request.messages.push(PromptMessage::user(reask_message(name, &faults)));
    }
}

/// Builds the message about a malformed reply.
fn reask_message(name: &str, faults: &[String]) -> String {
    // More faults than these would take the room of the reply.
    let faults: Vec<String> = faults.iter().take(10).map(|fault| format!("- {fault}")).collect();
    format!(
        "That reply is not a valid {name}:\n{}\nReply again with one JSON object that satisfies the schema, and nothing else.",
        faults.join("\n")
    )
}

fn ask_error(reason: UnscoredReason, detail: &str) -> AskError {
    let detail = selftest_text::one_line(detail, 600);
    AskError { reason, detail, prompt_too_long: false, server_failed: false }
}

/// Maximum size in bytes of a reply.
const MAX_REPLY: usize = 64 * 1024;

/// A reply without a verdict; the variant determines if asking again may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyError {
    /// The reply is invalid, with error messages for the judge.
    Malformed(Vec<String>),
    /// The judge declined in prose.
    Refused(String),
}

impl ReplyError {
    /// Creates a malformed error with one message.
    pub fn malformed(fault: impl Into<String>) -> Self {
        ReplyError::Malformed(vec![fault.into()])
    }
}

/// Parses replies according to one schema, compiled once.
pub struct StrictReader(Schema);

impl StrictReader {
    /// Creates a reader for a schema built and tested by the caller.
    pub fn new(schema: &Value) -> Self {
        Self(Schema::compile(schema).expect("schemas of replies are built from constants"))
    }

    /// Parses a complete reply into an object.
    pub fn read(&self, reply: &str) -> Result<Value, ReplyError> {
        let readable = readable_json(reply.trim());
        let trimmed = readable.text.trim();
        if trimmed.is_empty() {
            return Err(ReplyError::malformed("the reply is empty"));
        }
        if trimmed.len() > MAX_REPLY {
            return Err(ReplyError::malformed(format!("the reply is over {MAX_REPLY} bytes")));
        }
        let UniqueObject(object) = serde_json::from_str(trimmed).map_err(|error| {
            // Only prose can be a refusal; anything that looks like JSON is malformed.
            if !trimmed.starts_with(['{', '[', '`', '<', '"']) && REFUSAL.is_match(trimmed) {
                return ReplyError::Refused(selftest_text::one_line(trimmed, 200));
            }
            ReplyError::malformed(format!("not one JSON object: {error}"))
        })?;
        let value = Value::Object(object);
        let faults: Vec<String> =
            self.0.errors(&value).map(|fault| describe_fault(&fault)).collect();
        if faults.is_empty() { Ok(value) } else { Err(ReplyError::Malformed(faults)) }
    }
}

static REFUSAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\W*(i['’]?m (really |very )?sorry|i am sorry|sorry,? (but )?i|i can(no|['’])t|i can ?not|i(['’]m| am) (unable|not able)|i (must|have to) (decline|refuse)|i won['’]t|as an ai\b|unfortunately,? i)",
    )
    .expect("the pattern is a constant that a test uses")
});

/// Formats an error message that a judge can act on.
fn describe_fault(fault: &SchemaError) -> String {
    // Clipped, because long enums and untrusted values make long messages.
    let words = selftest_text::one_line(&fault.message, 300);
    if fault.pointer.is_empty() { words } else { format!("{}: {words}", fault.pointer) }
}

/// A JSON object with unique keys at every depth: `serde_json` would keep the last of two scores.
struct UniqueObject(Map<String, Value>);

impl<'de> Deserialize<'de> for UniqueObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyObject;
        impl<'de> Visitor<'de> for AnyObject {
            type Value = UniqueObject;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<UniqueObject, A::Error> {
                let mut map = Map::new();
                while let Some((key, UniqueValue(value))) =
                    access.next_entry::<String, UniqueValue>()?
                {
                    if map.contains_key(&key) {
                        let key = selftest_text::one_line(&key, 60);
                        return Err(serde::de::Error::custom(format!(
                            "the key `{key}` stands twice"
                        )));
                    }
                    map.insert(key, value);
                }
                Ok(UniqueObject(map))
            }
        }
        deserializer.deserialize_map(AnyObject)
    }
}

/// Any JSON value whose objects are [`UniqueObject`]s.
struct UniqueValue(Value);

impl<'de> Deserialize<'de> for UniqueValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;
        impl<'de> Visitor<'de> for AnyValue {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
                let mut values = Vec::new();
                while let Some(UniqueValue(value)) = list.next_element()? {
                    values.push(value);
                }
                Ok(values.into())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                UniqueObject::deserialize(map).map(|UniqueObject(map)| Value::Object(map))
            }
        }
        deserializer.deserialize_any(AnyValue).map(UniqueValue)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::future::BoxFuture;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{ChatReply, ModelError, SamplingParameters, ThinkingMode};

    /// Gives scripted replies and records the requests.
    struct Script {
        replies: Mutex<Vec<(&'static str, FinishReason)>>,
        asked: Mutex<Vec<ChatRequest>>,
    }

    impl ChatModel for Script {
        fn id(&self) -> &'static str {
            "script"
        }

        fn chat<'a>(
            &'a self,
            request: &'a ChatRequest,
        ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
            self.asked.lock().unwrap().push(request.clone());
            let (text, finish) = self.replies.lock().unwrap().remove(0);
            let reply = ChatReply::plain(text.into(), finish);
            Box::pin(async move { Ok(reply) })
        }

        fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
            Box::pin(async { Ok(()) })
        }
    }

    async fn asked(
        replies: Vec<(&'static str, FinishReason)>,
    ) -> (Result<u32, AskError>, Vec<ChatRequest>) {
        let script = Script { replies: Mutex::new(replies), asked: Mutex::default() };
        let request = ChatRequest {
            messages: vec![PromptMessage::user("How many?")],
            schema: None,
            sampling: SamplingParameters { temperature: 0.0, max_tokens: 7, seed: 0 },
            context_tokens: 100,
            think: ThinkingMode::Off,
            nonce: None,
            first_token: None,
        };
        let limits = AskLimits { max_reasks: 1, max_tokens_key: "some.max_tokens" };
        let read = |reply: &str| {
            reply.parse().map_err(|_| ReplyError::malformed(format!("`{reply}` is no number")))
        };
        let mut calls = Vec::new();
        let seed = |number| 40 + u64::from(number);
        let answer = ask(&script, request, limits, seed, read, &mut calls).await;
        let requests = script.asked.into_inner().unwrap();
        assert_eq!(calls.len(), requests.len());
        (answer, requests)
    }

    #[tokio::test]
    async fn a_malformed_reply_is_asked_for_again_with_its_faults() {
        let replies = vec![("two", FinishReason::Stop), ("2", FinishReason::Stop)];
        let (answer, requests) = asked(replies).await;
        assert_eq!(answer, Ok(2));
        let seeds: Vec<u64> = requests.iter().map(|request| request.sampling.seed).collect();
        assert_eq!(seeds, [40, 41]);
        let texts: Vec<&str> = requests[1].messages.iter().map(|m| &*m.text).collect();
        assert_eq!(texts[..2], ["How many?", "two"]);
        assert!(texts[2].starts_with("That reply is not a valid reply:\n- `two` is no number\n"));
    }

    #[tokio::test]
    async fn asking_ends() {
        for (replies, calls, reason, detail) in [
            (
                vec![("a", FinishReason::Stop), ("b", FinishReason::Other("tool".into()))],
                2,
                UnscoredReason::Malformed,
                "the reply ended with `tool`",
            ),
            (
                vec![("2", FinishReason::Length)],
                1,
                UnscoredReason::Truncated,
                "the reply ended at a limit (some.max_tokens is 7)",
            ),
            (vec![("", FinishReason::Refusal("no".into()))], 1, UnscoredReason::Refused, "no"),
        ] {
            let (answer, requests) = asked(replies).await;
            assert_eq!(answer, Err(ask_error(reason, detail)));
            assert_eq!(requests.len(), calls);
        }
    }

    fn read(reply: &str) -> Result<Value, ReplyError> {
        StrictReader::new(&json!({ "type": "object" })).read(reply)
    }

    #[test]
    fn keys_are_unique_at_every_depth() {
        for twice in [
            r#"{"a": 1, "a": 1}"#,
            r#"{"x": {"a": 1, "a": 2}}"#,
            r#"{"x": [1, {"y": {"a": null, "b": 0, "a": null}}]}"#,
        ] {
            let Err(ReplyError::Malformed(faults)) = read(twice) else { panic!("{twice}") };
            assert!(faults[0].contains("the key `a` stands twice"), "{faults:?}");
        }
        assert!(read(r#"{"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]}"#).is_ok());
    }

    proptest! {
        #[test]
        fn values_are_read_as_serde_json_does(
            text in "[a-zé\\\\\"\n]{0,8}",
            number in any::<f64>(),
            whole in any::<i64>(),
            flag in any::<bool>(),
        ) {
            let value = json!({ "t": text, "n": [number, whole, flag, null], "o": { "p": {} } });
            prop_assert_eq!(read(&value.to_string()), Ok(value));
        }
    }
}
