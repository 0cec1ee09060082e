//! Reads the replies of `/v1/chat/completions` and of Ollama with status 200. Pure.
//!
//! `ReplyValidator` rejects what is no reply: an error field, several different choices, another
//! model than the requested one. The rest accepts odd but usable completions: content in parts, token
//! counts without cached tokens.

use serde_json::Value;

use super::http::ErrorBody;
use super::model_settings::ModelSettings;
use super::{ChatReply, FinishReason, ModelError, StructuredMode, TokenUsage};

/// Parses a chat completion, or returns `None` for other JSON. Ignores `reasoning_content` and
/// similar fields.
pub fn parse_reply(value: &Value, structured: StructuredMode) -> Option<ChatReply> {
    let choice = value.get("choices")?.get(0)?;
    let message = choice.get("message")?;
    if !is_assistant(message) {
        return None;
    }
    let mut only_thinks = false;
    let text = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        // A refusal has no content.
        Some(Value::Null) | None => String::new(),
        Some(part @ Value::Object(_)) => match read_part(part)? {
            MessagePart::Text(text) => text,
            MessagePart::Other => return None,
        },
        Some(Value::Array(parts)) => {
            let parts: Vec<MessagePart> = parts.iter().map(read_part).collect::<Option<_>>()?;
            let is_other = |part: &MessagePart| matches!(part, MessagePart::Other);
            // A reply of thoughts alone stopped before its answer, whatever its reason says.
            only_thinks = !parts.is_empty() && parts.iter().all(is_other);
            let texts = parts.into_iter().filter_map(|part| match part {
                MessagePart::Text(text) => Some(text),
                MessagePart::Other => None,
            });
            texts.collect()
        }
        Some(_) => return None,
    };
    // OpenAI sends `refusal` beside `finish_reason: "stop"`, so that it has to be looked at first.
    let refusal = message.get("refusal").and_then(Value::as_str);
    let reason = match choice.get("finish_reason") {
        // Not every server says it. One that says null has not finished.
        None => Some("stop"),
        Some(reason) => reason.as_str(),
    };
    let finish = match (refusal, reason) {
        (Some(words), _) => FinishReason::Refusal(selftest_text::one_line(words, 200)),
        (None, None) => FinishReason::Other("no finish_reason".to_owned()),
        (None, Some("stop")) if only_thinks => FinishReason::UnfinishedThinking,
        (None, Some("stop")) => FinishReason::Stop,
        (None, Some("length")) => FinishReason::Length,
        // What the filter let through may be half of the answer.
        (None, Some("content_filter")) => {
            FinishReason::Refusal("the provider's content filter".to_owned())
        }
        (None, Some(other)) => FinishReason::Other(selftest_text::one_line(other, 60)),
    };
    Some(ChatReply {
        usage: value.get("usage").map(token_usage).unwrap_or_default(),
        structured,
        ..ChatReply::plain(text, finish)
    })
}

/// Returns true for a message of the model; a missing role is taken for its.
pub(crate) fn is_assistant(message: &Value) -> bool {
    message.get("role").is_none_or(|role| role.as_str() == Some("assistant"))
}

/// Kinds of parts of a message that are no text of the answer.
const OTHER_PARTS: [&str; 8] = [
    "thinking",
    "reasoning",
    "redacted_thinking",
    "tool_use",
    "tool_call",
    "tool_result",
    "image",
    "image_url",
];

/// Returns the texts in content that consists of parts, as `[{"type": "text", "text": "…"}]`, without
/// thinking, images and tool calls. Returns `None` for other JSON, which may be an answer in JSON.
pub fn texts_in_parts(content: &Value) -> Option<Vec<String>> {
    let parts = content.as_array().filter(|parts| !parts.is_empty())?;
    let read = |part: &Value| match read_part(part)? {
        MessagePart::Text(text) => part.get("type").map(|_| Some(text)),
        MessagePart::Other => {
            let kind = part.get("type").and_then(Value::as_str);
            kind.is_some_and(|kind| OTHER_PARTS.contains(&kind)).then_some(None)
        }
    };
    let texts: Vec<Option<String>> = parts.iter().map(read).collect::<Option<_>>()?;
    Some(texts.into_iter().flatten().collect())
}

/// A part of a message.
enum MessagePart {
    Text(String),
    /// Thinking, an image, or anything else that is not the answer.
    Other,
}

/// Reads a part of a message, or returns `None` for a text part without text.
fn read_part(part: &Value) -> Option<MessagePart> {
    if let Value::String(text) = part {
        return Some(MessagePart::Text(text.clone()));
    }
    let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
    if !["text", "output_text"].contains(&kind) {
        return Some(MessagePart::Other);
    }
    let text = part.get("text")?;
    // OpenAI's Assistants API puts the text into an object with its value.
    let text = text.as_str().or_else(|| text.get("value")?.as_str())?;
    Some(MessagePart::Text(text.to_owned()))
}

/// Reads token counts. Some servers leave cached tokens out of the prompt's, and some count nothing
/// but their sum with the reply's.
fn token_usage(usage: &Value) -> TokenUsage {
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    let completion_tokens = count("/completion_tokens");
    let cached = ["/prompt_tokens_details/cached_tokens", "/cache_read_input_tokens"];
    let cached = cached.into_iter().find_map(count).unwrap_or(0);
    let created = count("/cache_creation_input_tokens").unwrap_or(0);
    let rest = count("/total_tokens")
        .zip(completion_tokens)
        .map(|(total, completion)| total.saturating_sub(completion));
    let prompt_tokens = count("/prompt_tokens").map(|told| {
        // Where cached tokens are included, there cannot be more of them.
        // Anthropic's numbers, as gateways pass them on, count cached tokens beside the prompt's
        // and not among them. The difference matters: a count below the prompt's length means that
        // the server cut it.
        let beside = told.saturating_add(cached).saturating_add(created);
        let whole = if cached > told { beside } else { told };
        whole.max(rest.unwrap_or(0))
    });
    // A count of 0 is none.
    TokenUsage { prompt_tokens: prompt_tokens.filter(|tokens| *tokens > 0), completion_tokens }
}

/// Maximum number of characters to keep of the served model name.
const MAX_NAME: usize = 100;
/// Alias that matches any name, and a missing one.
const ANY_NAME: &str = "*";

/// Names under which a model may answer.
#[derive(Debug, Clone)]
pub(crate) struct ReplyValidator {
    endpoint: String,
    asked: String,
    aliases: Vec<String>,
}

impl ReplyValidator {
    /// Creates an envelope for a model of this provider at this address. Keys of `models.aliases`
    /// may include the provider.
    pub(crate) fn new(
        provider: &str,
        name: &str,
        endpoint: &str,
        settings: &ModelSettings,
    ) -> Self {
        let full = format!("{provider}/{name}");
        let aliases = [full.as_str(), name].into_iter().filter_map(|key| settings.aliases.get(key));
        Self {
            endpoint: endpoint.to_owned(),
            asked: name.to_owned(),
            aliases: aliases.flatten().cloned().collect(),
        }
    }

    /// Rejects a reply that contains an error.
    pub(crate) fn check_error(&self, reply: &Value) -> Result<(), ModelError> {
        let choices = reply.get("choices").and_then(Value::as_array);
        // Some servers put the error into a choice or its message.
        let choices = choices.into_iter().flatten();
        let messages = choices.clone().filter_map(|choice| choice.get("message"));
        // Ollama's reply has its message at the top and no choices.
        let mut parts =
            std::iter::once(reply).chain(reply.get("message")).chain(choices).chain(messages);
        let Some(part) = parts.find(|part| part.get("error").is_some_and(is_error_value)) else {
            return Ok(());
        };
        let words = ErrorBody::parse(part.to_string().as_bytes()).message;
        Err(self.wrong_reply(format!("status 200 and an error: {words}"), None))
    }

    /// Returns the served model name. Fails if it is not the requested model or if there are
    /// several different choices. `None` if any name is allowed and the server gives none.
    pub(crate) fn check_model(&self, reply: &Value) -> Result<Option<String>, ModelError> {
        let served = reply.get("model").and_then(Value::as_str).unwrap_or_default().trim();
        let is_alias = |alias: &String| alias == ANY_NAME || alias.eq_ignore_ascii_case(served);
        if !self.aliases.iter().any(is_alias) && !is_version_of(&self.asked, served) {
            let (asked, shown) = (&self.asked, selftest_text::one_line(served, MAX_NAME));
            if served.is_empty() {
                let hint = format!(
                    "if this server never names its model: models.aliases: {{\"{asked}\": [\"*\"]}}"
                );
                let what = format!("a reply that names no model, asked for `{asked}`");
                return Err(self.wrong_reply(what, Some(hint)));
            }
            let hint = format!(
                "if that is another name of it: models.aliases: {{\"{asked}\": [\"{shown}\"]}}"
            );
            let what = format!("the words of another model, `{shown}`, asked for `{asked}`");
            return Err(self.wrong_reply(what, Some(hint)));
        }
        self.check_choices(reply)?;
        Ok((!served.is_empty()).then(|| selftest_text::one_line(served, MAX_NAME)))
    }

    fn check_choices(&self, reply: &Value) -> Result<(), ModelError> {
        let choices = reply.get("choices").and_then(Value::as_array);
        let mut contents = choices.into_iter().flatten().map(|choice| {
            let message = choice.get("message");
            let part = |key: &str| message.and_then(|message| message.get(key)).cloned();
            (part("content"), part("refusal"))
        });
        let Some(first) = contents.next() else { return Ok(()) };
        // One was asked for. Several that are the same leave no doubt about the answer.
        let others = contents.filter(|content| *content != first).count();
        if others == 0 {
            return Ok(());
        }
        let what = format!("{} choices that disagree, asked for one", others + 1);
        Err(self.wrong_reply(what, None))
    }

    fn wrong_reply(&self, what: String, hint: Option<String>) -> ModelError {
        ModelError::WrongReply { endpoint: self.endpoint.clone(), what, hint }
    }
}

/// Returns true if an `error` field contains an error; some servers always send the field.
fn is_error_value(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(words) => !words.trim().is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

/// Returns true if a name is that of the requested model, possibly with a date or the default tag.
fn is_version_of(asked: &str, served: &str) -> bool {
    let (asked, served) = (asked.to_ascii_lowercase(), served.to_ascii_lowercase());
    // For Ollama a name without a tag means this one.
    let untagged = |name: &str| name.strip_suffix(":latest").unwrap_or(name).to_owned();
    let (asked, served) = (untagged(asked.trim()), untagged(&served));
    if asked == served {
        return !asked.is_empty();
    }
    // An alias such as `gpt-4o-latest` is served under a dated name.
    let stem = asked.strip_suffix("-latest").unwrap_or(&asked);
    let Some(version) = served.strip_prefix(stem) else { return false };
    // Only a date: `gpt-4o-mini` is another model than `gpt-4o`.
    version.strip_prefix(['-', '@']).is_some_and(is_date)
}

/// Returns true if a version is a date in a provider's format, or Google's `001`.
fn is_date(version: &str) -> bool {
    let (digits, dashes): (Vec<char>, Vec<char>) = version.chars().partition(char::is_ascii_digit);
    if !dashes.iter().all(|c| *c == '-') {
        return false;
    }
    let number = |from: usize, to: usize| {
        digits[from..to].iter().collect::<String>().parse::<u32>().unwrap_or(0)
    };
    let month = |from: usize| (1..=12).contains(&number(from, from + 2));
    let day = |from: usize| (1..=31).contains(&number(from, from + 2));
    let year = |from: usize| (2020..2100).contains(&number(from, from + 4));
    match (digits.len(), dashes.len()) {
        // 2024-08-06, 20240806
        (8, 2) if version.as_bytes()[4] == b'-' && version.as_bytes()[7] == b'-' => {
            year(0) && month(4) && day(6)
        }
        (8, 0) => year(0) && month(4) && day(6),
        // 05-2025
        (6, 1) if version.as_bytes()[2] == b'-' => month(0) && year(2),
        // 240806
        (6, 0) => (20..=99).contains(&number(0, 2)) && month(2) && day(4),
        // 05-06, 0613, 2407
        (4, 1) if version.as_bytes()[2] == b'-' => month(0) && day(2),
        (4, 0) => month(0) && day(2) || number(0, 2) >= 20 && month(2),
        // Such as `-001`, which counts versions.
        (3, 0) => digits[0] == '0',
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{ChatRequest, PromptMessage, ReplySchema, SamplingParameters};

    #[test]
    fn finish_reasons() {
        let finish = |message: Value, reason: &str| {
            let value = json!({"choices": [{"message": message, "finish_reason": reason}]});
            parse_reply(&value, StructuredMode::Schema).unwrap().finish
        };
        assert_eq!(finish(json!({"content": "{}"}), "stop"), FinishReason::Stop);
        assert_eq!(finish(json!({"content": "{}"}), "length"), FinishReason::Length);
        assert!(matches!(
            finish(json!({"content": null, "refusal": "I can't"}), "stop"),
            FinishReason::Refusal(_)
        ));
        assert!(matches!(
            finish(json!({"content": ""}), "content_filter"),
            FinishReason::Refusal(_)
        ));
        assert!(matches!(finish(json!({}), "tool_calls"), FinishReason::Other(_)));
    }

    #[test]
    fn other_json_is_no_completion() {
        for value in [json!({}), json!([]), json!({"choices": []}), json!({"error": "x"})] {
            assert_eq!(parse_reply(&value, StructuredMode::Schema), None, "{value}");
        }
        let parts = json!({"choices": [{"message": {"content": [{"type": "text"}]}}]});
        assert_eq!(parse_reply(&parts, StructuredMode::Schema), None);
    }

    #[test]
    fn text_parts_are_joined_and_others_left_out() {
        let read = |content: Value| {
            let choice = json!({"message": {"content": content}, "finish_reason": "stop"});
            parse_reply(&json!({ "choices": [choice] }), StructuredMode::Schema).unwrap()
        };
        let thinking =
            json!({"type": "thinking", "thinking": [{"type": "text", "text": "Maybe 8."}]});
        let text = |text: &str| json!({"type": "text", "text": text});
        for (content, joined) in [
            (json!([thinking, text("At "), text("9.")]), "At 9."),
            (json!(["At ", "9."]), "At 9."),
            (json!([{"type": "output_text", "text": "At 9."}]), "At 9."),
            (json!([{"type": "text", "text": {"value": "At 9."}}]), "At 9."),
            (json!({"type": "text", "text": "At 9."}), "At 9."),
            (json!([]), ""),
        ] {
            let reply = read(content.clone());
            assert_eq!((reply.text.as_str(), reply.finish), (joined, FinishReason::Stop));
        }
        assert_eq!(read(json!([thinking])).finish, FinishReason::UnfinishedThinking);
    }

    #[test]
    fn parts_are_told_from_an_answer_in_json() {
        let thinking = json!({"type": "thinking", "thinking": "Maybe 8."});
        let text = json!({"type": "text", "text": "At 9."});
        assert_eq!(texts_in_parts(&json!([thinking, text])).unwrap(), ["At 9."]);
        assert_eq!(texts_in_parts(&json!([thinking])).unwrap(), [""; 0]);
        for other in [
            json!([]),
            json!("At 9."),
            json!(["At 9."]),
            text.clone(),
            json!([{"text": "At 9."}]),
            json!([text, {"type": "order", "id": 3}]),
            json!([{"type": "order", "id": 3}]),
        ] {
            assert_eq!(texts_in_parts(&other), None, "{other}");
        }
    }

    #[test]
    fn odd_counts_of_tokens_are_no_cut_prompt() {
        let sampling = SamplingParameters { temperature: 0.0, max_tokens: 9, seed: 1 };
        let schema = ReplySchema { name: "x", schema: std::sync::Arc::new(json!({})) };
        let prompt = vec![PromptMessage::user("x".repeat(8 * 1000))];
        let request = ChatRequest::structured(prompt, &schema, sampling, 4096);
        for (usage, is_cut) in [
            (json!({"prompt_tokens": 1200, "completion_tokens": 7}), false),
            (json!({"prompt_tokens": 600, "completion_tokens": 7}), true),
            (json!({"prompt_tokens": 0, "completion_tokens": 7, "total_tokens": 7}), false),
            (json!({"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19}), false),
            (json!({"prompt_tokens": 600, "prompt_tokens_details": {"cached_tokens": 700}}), false),
            (json!({"prompt_tokens": 600, "completion_tokens": 7, "total_tokens": 1307}), false),
            // No number makes the sum overflow.
            (json!({"prompt_tokens": 600, "cache_read_input_tokens": u64::MAX}), false),
            (json!({"prompt_tokens": null}), false),
            (json!({}), false),
        ] {
            let choice = json!({"message": {"content": "x"}, "finish_reason": "stop"});
            let value = json!({ "choices": [choice], "usage": usage });
            let reply = parse_reply(&value, StructuredMode::Schema).unwrap();
            assert_eq!(reply.is_prompt_truncated(&request), is_cut, "{usage}");
        }
    }

    #[test]
    fn dated_and_tagged_versions_are_the_same_model() {
        for (asked, served) in [
            ("gpt-4o", "gpt-4o"),
            ("gpt-4o", "gpt-4o-2024-08-06"),
            ("gpt-4", "gpt-4-0613"),
            ("qwen3", "qwen3:latest"),
            ("qwen3:latest", "qwen3"),
            ("qwen3:8b", "qwen3:8b"),
            ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
            ("claude-3-5-sonnet", "claude-3-5-sonnet@20240620"),
            ("mistral-large-latest", "mistral-large-2407"),
            ("gemini-2.0-flash", "gemini-2.0-flash-001"),
            ("gemini-2.5-pro-preview", "gemini-2.5-pro-preview-05-06"),
            ("command-a", "command-a-03-2025"),
            ("Qwen/Qwen2.5-7B", "qwen/qwen2.5-7b"),
        ] {
            assert!(is_version_of(asked, served), "{asked} {served}");
        }
    }

    #[test]
    fn other_models_are_others() {
        for (asked, served) in [
            ("gpt-4o", ""),
            ("", ""),
            ("gpt-4o", "gpt-4o-mini"),
            ("gpt-4o", "gpt-4o-mini-2024-07-18"),
            ("gpt-4o", "gpt-4"),
            ("gpt-4o-2024-08-06", "gpt-4o"),
            ("gpt-4o-2024-08-06", "gpt-4o-2024-11-20"),
            ("gpt-4o", "cheap-fallback-model"),
            ("gpt-4", "gpt-4-1106-preview"),
            ("qwen3", "qwen3:8b"),
            ("qwen3:8b", "qwen3:latest"),
            ("llama3-8b", "llama3-8b-8192"),
            ("llama-3", "llama-3-405"),
            ("gpt-4o", "gpt-4o-9999-99-99"),
            ("gpt-4o", "gpt-4o--0-8-0-6"),
            ("gpt-4o", "evil/gpt-4o"),
        ] {
            assert!(!is_version_of(asked, served), "{asked} {served}");
        }
    }

    fn envelope(aliases: &Value) -> ReplyValidator {
        let settings = serde_json::from_value(json!({ "aliases": aliases })).unwrap();
        ReplyValidator::new("openai", "gpt-4o", "http://x/v1", &settings)
    }

    fn reply(model: &str, contents: &[&str]) -> Value {
        let choices: Vec<Value> =
            contents.iter().map(|text| json!({ "message": { "content": text } })).collect();
        json!({ "model": model, "choices": choices })
    }

    #[test]
    fn a_name_that_was_not_asked_for_is_no_answer_unless_it_is_an_alias() {
        let other = reply("cheap-fallback-model", &["yes"]);
        let error = envelope(&json!({})).check_model(&other).unwrap_err();
        assert_eq!(
            error.to_string(),
            "http://x/v1 answered with the words of another model, `cheap-fallback-model`, \
             asked for `gpt-4o`"
        );
        assert!(error.hint().unwrap().contains(r#"{"gpt-4o": ["cheap-fallback-model"]}"#));
        for key in ["gpt-4o", "openai/gpt-4o"] {
            let named = envelope(&json!({ key: ["cheap-fallback-model"] }));
            assert_eq!(named.check_model(&other).unwrap().unwrap(), "cheap-fallback-model");
        }
        assert!(envelope(&json!({ "ollama/gpt-4o": ["*"] })).check_model(&other).is_err());

        let nameless = json!({ "choices": [{ "message": { "content": "yes" } }] });
        let error = envelope(&json!({})).check_model(&nameless).unwrap_err();
        assert!(error.to_string().contains("names no model"), "{error}");
        assert_eq!(envelope(&json!({ "gpt-4o": ["*"] })).check_model(&nameless).unwrap(), None);
    }

    #[test]
    fn several_choices_must_agree() {
        let envelope = envelope(&json!({}));
        assert!(envelope.check_model(&reply("gpt-4o", &["a", "a"])).is_ok());
        let error = envelope.check_model(&reply("gpt-4o", &["a", "b"])).unwrap_err().to_string();
        assert!(error.contains("2 choices that disagree"), "{error}");
    }

    #[test]
    fn an_error_beside_the_answer_counts() {
        let envelope = envelope(&json!({}));
        for error in [json!(null), json!(""), json!({}), json!(false)] {
            let mut good = reply("gpt-4o", &["a"]);
            good["error"] = error;
            assert!(envelope.check_error(&good).is_ok(), "{good}");
        }
        for error in [json!("overloaded"), json!({ "message": "overloaded", "code": 502 })] {
            let mut bad = reply("gpt-4o", &["a"]);
            bad["error"] = error.clone();
            let words = envelope.check_error(&bad).unwrap_err().to_string();
            assert!(words.ends_with("status 200 and an error: overloaded"), "{words}");
            let mut bad = reply("gpt-4o", &["a"]);
            bad["choices"][0]["error"] = error;
            assert!(envelope.check_error(&bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn names_never_panic(asked in "\\PC{0,12}", rest in "[-@:0-9a-z]{0,12}") {
            let _ = is_version_of(&asked, &format!("{asked}{rest}"));
        }
    }
}
