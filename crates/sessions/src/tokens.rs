//! Parses token counts of chat APIs, under the names that several providers use.

use serde::Deserialize;

use super::event::TokenCounts;
use super::wire::{LenientInt, LenientObject};

/// A `usage` object: `prompt_tokens` in chat completions, `input_tokens` in the Responses API. Both
/// include cached tokens.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiUsage {
    prompt_tokens: LenientInt,
    completion_tokens: LenientInt,
    input_tokens: LenientInt,
    output_tokens: LenientInt,
    prompt_tokens_details: LenientObject<ApiUsageDetails>,
    input_tokens_details: LenientObject<ApiUsageDetails>,
    /// As copied from Anthropic by `litellm`.
    cache_read_input_tokens: LenientInt,
    /// As summed by `OpenHands`.
    cache_read_tokens: LenientInt,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ApiUsageDetails {
    cached_tokens: LenientInt,
}

impl ApiUsage {
    /// Returns the counts; `None` if all are zero.
    pub(super) fn usage(&self) -> Option<TokenCounts> {
        // A provider sets only one of the names, or repeats the same count.
        let either = |one: LenientInt, other: LenientInt| one.count().max(other.count());
        let details = |object: &LenientObject<ApiUsageDetails>| {
            object.0.as_ref().map_or(LenientInt::default(), |details| details.cached_tokens)
        };
        let input = either(self.prompt_tokens, self.input_tokens);
        let cached =
            either(details(&self.prompt_tokens_details), details(&self.input_tokens_details))
                .max(either(self.cache_read_input_tokens, self.cache_read_tokens));
        let output = either(self.completion_tokens, self.output_tokens);
        let usage = TokenCounts { input: input.saturating_sub(cached), output, cached };
        (usage != TokenCounts::default()).then_some(usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_the_same_counts() {
        let expected = Some(TokenCounts { input: 70, output: 20, cached: 30 });
        for json in [
            r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":30}}"#,
            r#"{"prompt_tokens":100,"completion_tokens":20,"cache_read_input_tokens":30,
                "prompt_tokens_details":null}"#,
            r#"{"input_tokens":100,"output_tokens":20,"input_tokens_details":{"cached_tokens":30}}"#,
            r#"{"prompt_tokens":100,"completion_tokens":20,"cache_read_tokens":"30"}"#,
        ] {
            assert_eq!(serde_json::from_str::<ApiUsage>(json).unwrap().usage(), expected, "{json}");
        }
        assert_eq!(
            serde_json::from_str::<ApiUsage>(r#"{"prompt_tokens":0}"#).unwrap().usage(),
            None
        );
    }
}
