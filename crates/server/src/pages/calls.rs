//! A call of a model as the report kept it: what was asked for, and the reply as it came.

use super::words;
use selftest_models::CallRecord;

pub(super) struct CallView {
    /// Who asked.
    pub(super) role: &'static str,
    pub(super) model: String,
    pub(super) duration: String,
    pub(super) tokens: String,
    pub(super) request: String,
    pub(super) reply: Option<String>,
    pub(super) error: Option<String>,
}

impl CallView {
    pub(super) fn of(role: &'static str, call: &CallRecord) -> Self {
        let tokens =
            |tokens: Option<u64>| tokens.map_or_else(|| words::ABSENT.to_owned(), words::count);
        Self {
            role,
            model: words::line(&call.model),
            duration: words::duration(call.duration_ms),
            tokens: format!(
                "{} + {} tokens",
                tokens(call.usage.prompt_tokens),
                tokens(call.usage.completion_tokens)
            ),
            request: format!(
                "SHA-256 {}\n{}",
                words::line(&call.prompt_digest),
                words::block(&serde_json::to_string_pretty(&call.parameters).unwrap_or_default())
            ),
            reply: call.raw_reply.as_deref().map(words::block),
            error: call.error.as_deref().map(words::block),
        }
    }
}
