//! A reply during generation: its text, its length and the state of its grammar.

use llguidance::Matcher;
use toktrie::SimpleVob;

use super::llama::{LlamaModel, Token};
use super::repetition::is_repeating;
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
    /// Creates an empty reply of at most `most` tokens, constrained by the grammar if there is one.
    /// With `may_be_endless`, it stops when it repeats itself.
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
