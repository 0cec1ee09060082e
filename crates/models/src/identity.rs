//! The identity of a call, used to look up recordings and finished calls.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};

use super::{ChatRequest, ChatRole, PromptMessage};
use selftest_text::digest;

impl ChatRequest {
    /// Returns the identity of the call for a cassette: messages without the nonce, schema,
    /// temperature and token limit. The sampling seed is excluded, so that a recording works for
    /// any run.
    pub fn identity(&self) -> Value {
        let messages: Vec<Value> = self
            .messages
            .iter()
            // The nonce is random per call. With it, no recording would ever be found again.
            .map(|message| json!({ "role": message.role, "text": self.without_nonce(message) }))
            .collect();
        let mut identity = json!({
            "messages": messages,
            "schema": self.schema.as_ref().map(|schema| &*schema.schema),
            "temperature": self.sampling.temperature,
            "max_tokens": self.sampling.max_tokens,
        });
        if let Some(probe) = &self.first_token {
            identity["first_token"] = json!(true);
            if let Some(reply) = &probe.reply {
                identity["likelihood_of"] = json!(reply);
            }
            if !probe.questions.is_empty() {
                identity["questions"] = json!(probe.questions);
            }
        }
        identity
    }

    /// Returns the SHA-256 of [`ChatRequest::identity`] in canonical form. Serialises directly
    /// without building a JSON value, because every call needs it twice and its texts are long.
    pub fn digest(&self) -> String {
        // Fields in alphabetical order: recordings are found by this digest, so that reordering
        // them makes all cassettes and journals unusable.
        let identity = CanonicalRequest {
            first_token: self.first_token.as_ref().map(|_| true),
            likelihood_of: self.first_token.as_ref().and_then(|probe| probe.reply.as_deref()),
            max_tokens: self.sampling.max_tokens,
            messages: self
                .messages
                .iter()
                .map(|message| CanonicalMessage {
                    role: message.role,
                    text: self.without_nonce(message),
                })
                .collect(),
            questions: self.questions(),
            schema: self.schema.as_ref().map(|schema| SortedJson(&schema.schema)),
            temperature: self.sampling.temperature,
        };
        let mut text = Vec::with_capacity(self.estimated_json_bytes());
        // Serialising strings, numbers and JSON values cannot fail.
        let _ = serde_json::to_writer(&mut text, &identity);
        digest::sha256_hex(&text)
    }

    fn without_nonce<'a>(&self, message: &'a PromptMessage) -> Cow<'a, str> {
        match &self.nonce {
            Some(nonce) if message.text.contains(nonce.as_str()) => {
                message.text.replace(nonce.as_str(), "<nonce>").into()
            }
            _ => Cow::Borrowed(&message.text),
        }
    }
}

/// Members of an identity in canonical (alphabetical) order.
#[derive(serde::Serialize)]
struct CanonicalRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    first_token: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    likelihood_of: Option<&'a str>,
    max_tokens: u32,
    messages: Vec<CanonicalMessage<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    questions: &'a [String],
    schema: Option<SortedJson<'a>>,
    temperature: f64,
}

#[derive(serde::Serialize)]
struct CanonicalMessage<'a> {
    role: ChatRole,
    text: Cow<'a, str>,
}

/// A JSON value serialised with sorted object keys.
struct SortedJson<'a>(&'a Value);

impl Serialize for SortedJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) => {
                let mut members: Vec<(&String, &Value)> = members.iter().collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, &SortedJson(value))?;
                }
                map.end()
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(SortedJson)),
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::{FirstTokenProbe, ReplySchema, SamplingParameters, ThinkingMode};

    fn request(text: &str, schema: Option<Value>) -> ChatRequest {
        ChatRequest {
            messages: vec![PromptMessage::system("Judge <7f> \"it\"."), PromptMessage::user(text)],
            schema: schema.map(|schema| ReplySchema { name: "x", schema: Arc::new(schema) }),
            sampling: SamplingParameters { temperature: 0.2, max_tokens: 9, seed: 4 },
            context_tokens: 1024,
            think: ThinkingMode::Off,
            nonce: None,
            first_token: None,
        }
    }

    proptest! {
        #[test]
        fn the_digest_is_that_of_the_identity(
            text in ".{0,40}",
            name in "[a-zé\"]{1,4}",
            number in any::<f64>(),
            temperature in any::<f64>(),
            first in any::<bool>(),
            reply in proptest::option::of(".{0,9}"),
            has_nonce in any::<bool>(),
        ) {
            let schema = json!({ "z": [{ "b": null, "a": number }], name: { "y": 1, "x": true } });
            for schema in [None, Some(schema)] {
                let mut request = request(&text, schema);
                request.sampling.temperature = temperature;
                let reply = reply.clone();
                request.first_token = first.then(|| FirstTokenProbe { reply, ..FirstTokenProbe::default() });
                request.nonce = has_nonce.then(|| "7f".to_owned());
                prop_assert_eq!(request.digest(), digest::json_sha256_hex(request.identity()));
            }
        }
    }

    #[test]
    fn a_nonce_does_not_count_and_a_word_does() {
        let with = |nonce: &str| ChatRequest {
            nonce: Some(nonce.to_owned()),
            ..request(&format!("[BEGIN {nonce}]"), None)
        };
        assert_eq!(with("0a0b0c0d").digest(), with("01020304").digest());
        assert_ne!(request("a", None).digest(), request("b", None).digest());
    }
}
