//! A reply during generation: its text, its length and the state of its grammar.
//!
//! Small models repeat themselves endlessly. This is detected, because such a reply would run for a
//! minute until a limit cuts it.

use llguidance::Matcher;
use serde_json::Value;
use toktrie::SimpleVob;

use super::llama::{LlamaModel, Token};
use crate::{FinishReason, ModelError};

/// The reply generated so far.
pub(super) struct ReplyDraft<'model> {
    model: &'model LlamaModel,
    matcher: Option<Matcher>,
    text: Vec<u8>,
    tokens: Vec<Token>,
    max_tokens: usize,
    stops_on_repetition: bool,
}

impl<'model> ReplyDraft<'model> {
    /// Creates an empty reply of at most `max_tokens` tokens, constrained by the grammar if there
    /// is one. With `stops_on_repetition`, it stops when it repeats itself.
    pub(super) fn new(
        model: &'model LlamaModel,
        matcher: Option<Matcher>,
        max_tokens: usize,
        stops_on_repetition: bool,
    ) -> Self {
        let (text, tokens) = (Vec::new(), Vec::new());
        Self { model, matcher, text, tokens, max_tokens, stops_on_repetition }
    }

    /// Returns the number of tokens generated so far.
    pub(super) fn tokens(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the text. A character split by the limit becomes U+FFFD.
    pub(super) fn into_text(self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }

    /// Returns the reason if the reply is finished: complete by its grammar, cut off, or repeating
    /// itself.
    pub(super) fn finish_reason(&self) -> Option<FinishReason> {
        if self.matcher.as_ref().is_some_and(Matcher::is_stopped) {
            Some(FinishReason::Stop)
        } else if self.tokens.len() >= self.max_tokens {
            Some(FinishReason::Length)
        } else {
            (self.stops_on_repetition && is_repeating(&self.tokens))
                .then_some(FinishReason::Repeated)
        }
    }

    /// Returns the tokens allowed next, or `None` without a grammar.
    pub(super) fn mask(&mut self) -> Result<Option<SimpleVob>, ModelError> {
        self.matcher.as_mut().map(Matcher::compute_mask_or_eos).transpose().map_err(decoding_error)
    }

    /// Appends a token allowed by the mask.
    pub(super) fn add_token(&mut self, token: Token) -> Result<(), ModelError> {
        if let Some(matcher) = &mut self.matcher {
            matcher.consume_token(token).map_err(decoding_error)?;
        }
        self.push(token);
        Ok(())
    }

    /// Appends tokens that the grammar forces, such as the next key, and returns them. Decoding
    /// them as one batch costs little more than decoding one.
    pub(super) fn add_forced(&mut self) -> Result<Vec<Token>, ModelError> {
        let Some(matcher) = &mut self.matcher else {
            return Ok(Vec::new());
        };
        if matcher.is_stopped() {
            return Ok(Vec::new());
        }
        // Forced bytes can end inside a character; such a part is generated token by token.
        let Ok(forced) = String::from_utf8(matcher.compute_ff_bytes()) else {
            return Ok(Vec::new());
        };
        let mut tokens = self.model.tokenize(forced.as_bytes(), false);
        tokens.truncate(self.max_tokens - self.tokens.len());
        // If the vocabulary splits a fragment differently, only the shortcut is lost.
        let taken = matcher.try_consume_tokens(&tokens).map_err(decoding_error)?;
        tokens.truncate(taken);
        for token in &tokens {
            self.push(*token);
        }
        Ok(tokens)
    }

    fn push(&mut self, token: Token) {
        self.text.extend(self.model.token_bytes(token, false));
        self.tokens.push(token);
    }
}

fn decoding_error(error: impl std::fmt::Display) -> ModelError {
    ModelError::engine(format!("constrained decoding failed: {error}"), None)
}

/// Maximum length in tokens of a repeated passage.
const MAX_PASSAGE: usize = 64;
/// Minimum number of consecutive repetitions and of tokens in them. Rows of zeros or dashes that
/// were asked for are shorter.
const MIN_REPETITIONS: usize = 8;
const MIN_TOKENS: usize = 240;

/// Returns true if the last tokens repeat a single passage.
pub(super) fn is_repeating(tokens: &[Token]) -> bool {
    tokens.len() >= MIN_TOKENS
        && (1..=MAX_PASSAGE).any(|passage| {
            let wanted = MIN_TOKENS.max(MIN_REPETITIONS * passage);
            let Some(start) = tokens.len().checked_sub(wanted) else { return false };
            let last = &tokens[start..];
            last[passage..] == last[..wanted - passage]
        })
}

/// Returns true if a schema limits the length of strings, so that a reply always terminates.
pub(super) fn bounds_strings(schema: &Value) -> bool {
    match schema {
        Value::Object(keys) => keys.contains_key("maxLength") || keys.values().any(bounds_strings),
        Value::Array(all) => all.iter().any(bounds_strings),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns distinct tokens followed by a repeated passage.
    fn reply(before: usize, passage: usize, times: usize) -> Vec<Token> {
        let repeated = (0..passage).cycle().take(passage * times);
        let all = (1000..1000 + before).chain(repeated);
        all.map(|token| Token::try_from(token).unwrap()).collect()
    }

    #[test]
    fn a_passage_over_and_over_is_endless() {
        for (passage, times) in [(1, 240), (7, 35), (30, 8), (64, 8)] {
            assert!(is_repeating(&reply(50, passage, times)), "{passage} x {times}");
        }
        // Cut in the middle of the passage.
        let mut cut = reply(0, 7, 40);
        cut.truncate(7 * 40 - 3);
        assert!(is_repeating(&cut));
    }

    #[test]
    fn what_ends_or_changes_is_not() {
        for (passage, times) in [(1, 239), (7, 34), (30, 7), (64, 7), (65, 100)] {
            assert!(!is_repeating(&reply(50, passage, times)), "{passage} x {times}");
        }
        let mut goes_on = reply(50, 7, 100);
        goes_on.push(7);
        assert!(!is_repeating(&goes_on));
        assert!(!is_repeating(&reply(1000, 0, 0)));
        assert!(!is_repeating(&[]));
    }

    #[test]
    fn a_schema_may_bound_texts() {
        let schema = |text: Value| json!({"type": "object", "properties": {"a": text}});
        assert!(bounds_strings(&schema(json!({"type": "string", "maxLength": 60}))));
        assert!(bounds_strings(&schema(json!({"type": "array", "items": [{"maxLength": 9}]}))));
        assert!(!bounds_strings(&schema(json!({"type": "string", "minLength": 1}))));
        assert!(!bounds_strings(&json!(null)));
    }
}
