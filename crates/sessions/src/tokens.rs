//! Parses token counts of chat APIs, under the names that several providers use.

use serde::Deserialize;

use super::event::Usage;
use super::wire::{Int, Object};

/// A `usage` object: `prompt_tokens` in chat completions, `input_tokens` in the Responses API. Both
/// include cached tokens.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    prompt_tokens: Int,
    completion_tokens: Int,
    input_tokens: Int,
    output_tokens: Int,
    prompt_tokens_details: Object<Details>,
    input_tokens_details: Object<Details>,
    /// As copied from Anthropic by `litellm`.
    cache_read_input_tokens: Int,
    /// As summed by `OpenHands`.
    cache_read_tokens: Int,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Int,
}

impl Counts {
    /// Returns the counts; `None` if all are zero.
    pub(super) fn usage(&self) -> Option<Usage> {
        // A provider sets only one of the names, or repeats the same count.
        let either = |one: Int, other: Int| one.count().max(other.count());
        let details = |object: &Object<Details>| {
            object.0.as_ref().map_or(Int::default(), |details| details.cached_tokens)
        };
        let input = either(self.prompt_tokens, self.input_tokens);
        let cached =
            either(details(&self.prompt_tokens_details), details(&self.input_tokens_details))
                .max(either(self.cache_read_input_tokens, self.cache_read_tokens));
        let output = either(self.completion_tokens, self.output_tokens);
        let usage = Usage { input: input.saturating_sub(cached), output, cached };
        (usage != Usage::default()).then_some(usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_the_same_counts() {
        let expected = Some(Usage { input: 70, output: 20, cached: 30 });
        for json in [
            r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":30}}"#,
            r#"{"prompt_tokens":100,"completion_tokens":20,"cache_read_input_tokens":30,
                "prompt_tokens_details":null}"#,
            r#"{"input_tokens":100,"output_tokens":20,"input_tokens_details":{"cached_tokens":30}}"#,
            r#"{"prompt_tokens":100,"completion_tokens":20,"cache_read_tokens":"30"}"#,
        ] {
            assert_eq!(serde_json::from_str::<Counts>(json).unwrap().usage(), expected, "{json}");
        }
        assert_eq!(serde_json::from_str::<Counts>(r#"{"prompt_tokens":0}"#).unwrap().usage(), None);
    }
}
