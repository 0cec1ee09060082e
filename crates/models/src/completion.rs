//! Reads a chat completion of `/v1/chat/completions`, including odd but usable ones: content in
//! parts, token counts without cached tokens. Pure.

use serde_json::Value;

use super::{ChatReply, FinishReason, StructuredMode, TokenUsage};

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
        let whole = if cached > told { told + cached + created } else { told };
        whole.max(rest.unwrap_or(0))
    });
    // A count of 0 is none.
    TokenUsage { prompt_tokens: prompt_tokens.filter(|tokens| *tokens > 0), completion_tokens }
}

#[cfg(test)]
mod tests {
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
            (json!({"prompt_tokens": null}), false),
            (json!({}), false),
        ] {
            let choice = json!({"message": {"content": "x"}, "finish_reason": "stop"});
            let value = json!({ "choices": [choice], "usage": usage });
            let reply = parse_reply(&value, StructuredMode::Schema).unwrap();
            assert_eq!(reply.is_prompt_truncated(&request), is_cut, "{usage}");
        }
    }
}
