//! Parses error bodies of model servers: unwraps nested messages and detects prompts that are too
//! long.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Maximum number of bytes of a server's message.
const MAX_BYTES: usize = 300;
/// Maximum nesting depth of errors within error messages.
const MAX_DEPTH: usize = 4;

/// Reason for a server's refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    /// Message on one line, clipped.
    pub(crate) message: String,
    /// Token counts, if the prompt is too long.
    pub(crate) too_long: Option<PromptOverflow>,
    /// The account's means, as far as the body speaks of them.
    pub(crate) quota: QuotaState,
}

/// What an error body says of the account's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotaState {
    /// Nothing.
    NotMentioned,
    /// Words that providers use for an exhausted quota, and some for a limit that passes.
    Mentioned,
    /// A code for an exhausted quota.
    Exhausted,
}

/// A prompt that is too long, with the numbers from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PromptOverflow {
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) context_tokens: Option<u64>,
}

/// Messages of Ollama's older runner, OpenAI, vLLM and LM Studio. llama.cpp reports the numbers in
/// separate fields.
static TOO_LONG_MESSAGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)exceeds? (the )?(available |maximum |model'?s? )*context|maximum context length|context length exceeded|greater than the context length|prompt is too long|input is too long",
    )
    .expect("the pattern is a constant that a test uses")
});

/// Codes of OpenAI and others for an account without means.
const QUOTA_CODES: [&str; 5] = [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_credits",
    "insufficient_balance",
];

static QUOTA_MESSAGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)exceeded your current quota|insufficient (quota|credits?|balance|funds)|credit balance is too low|out of credits|payment required",
    )
    .expect("the pattern is a constant that a test uses")
});

impl ErrorBody {
    /// Parses a response body. `error` is either a string or an object with `message`; Ollama puts
    /// the whole JSON response of its runner into the string.
    pub(crate) fn parse(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let (mut words, mut details) = (text.trim().to_owned(), Value::Null);
        for _ in 0..MAX_DEPTH {
            let Ok(value) = serde_json::from_str::<Value>(&words) else { break };
            let inner = value.get("error").unwrap_or(&value);
            let said = inner.as_str().or_else(|| inner.get("message")?.as_str());
            let Some(said) = said.map(str::to_owned) else { break };
            // The innermost object contains the numbers.
            if inner.is_object() {
                details = inner.clone();
            }
            words = said;
        }
        let number = |name: &str| details.get(name).and_then(Value::as_u64);
        let is = |name: &str, wanted: &str| details.get(name).is_some_and(|word| word == wanted);
        let too_long = (is("type", "exceed_context_size_error")
            || is("code", "context_length_exceeded")
            || TOO_LONG_MESSAGE.is_match(&words))
        .then(|| PromptOverflow {
            prompt_tokens: number("n_prompt_tokens"),
            context_tokens: number("n_ctx"),
        });
        let has_code =
            ["code", "type"].iter().any(|name| QUOTA_CODES.iter().any(|code| is(name, code)));
        let quota = match has_code {
            true => QuotaState::Exhausted,
            false if QUOTA_MESSAGE.is_match(&words) => QuotaState::Mentioned,
            false => QuotaState::NotMentioned,
        };
        Self { message: selftest_text::one_line(&words, MAX_BYTES), too_long, quota }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Response of Ollama 0.32.15.
    const CONTEXT: &str = r#"{"error":"{\"error\":{\"code\":400,\"message\":\"request (451 tokens) exceeds the available context size (256 tokens), try increasing it\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":451,\"n_ctx\":256}}"}"#;
    const TEMPLATE: &str = r#"{"error":"{\"error\":{\"code\":400,\"message\":\"Unable to generate parser for this template. Automatic parser generation failed: JSON schema error at #: cannot resolve $ref #/x, x not found\",\"type\":\"invalid_request_error\"}}"}"#;

    #[test]
    fn errors_in_errors_are_unwrapped() {
        let fault = ErrorBody::parse(CONTEXT.as_bytes());
        assert_eq!(
            fault.message,
            "request (451 tokens) exceeds the available context size (256 tokens), try increasing it"
        );
        let numbers = PromptOverflow { prompt_tokens: Some(451), context_tokens: Some(256) };
        assert_eq!(fault.too_long, Some(numbers));
        let fault = ErrorBody::parse(TEMPLATE.as_bytes());
        assert!(fault.message.starts_with("Unable to generate parser"), "{}", fault.message);
        assert_eq!(fault.too_long, None);
    }

    #[test]
    fn every_server_has_its_own_form() {
        for (body, words, too_long) in [
            (r#"{"error":"model 'x' not found"}"#, "model 'x' not found", false),
            (r#"{"error":{"message":"scripted","type":"x"}}"#, "scripted", false),
            (r#"{"message":"top-level","object":"error"}"#, "top-level", false),
            ("plain\nwords", "plain words", false),
            ("", "", false),
            (r#"{"error":{"code":1}}"#, r#"{"error":{"code":1}}"#, false),
            (
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
                "This model's maximum context length is 8192 tokens.",
                true,
            ),
            (
                r#"{"error":"the input length exceeds the context length"}"#,
                "the input length exceeds the context length",
                true,
            ),
        ] {
            let fault = ErrorBody::parse(body.as_bytes());
            assert_eq!((fault.message.as_str(), fault.too_long.is_some()), (words, too_long));
        }
    }

    proptest! {
        #[test]
        fn never_panics(body in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(ErrorBody::parse(&body).message.len() <= MAX_BYTES + 8);
        }
    }
}
