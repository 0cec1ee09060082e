//! A reply during generation: its text, its length and the state of its grammar.

use llguidance::Matcher;
use toktrie::SimpleVob;

use super::endless::is_endless;
use super::llama::{Model, Token};
use crate::{Finish, ModelError};

/// The reply generated so far.
pub(super) struct Draft<'model> {
    model: &'model Model,
    matcher: Option<Matcher>,
    text: Vec<u8>,
    tokens: Vec<Token>,
    most: usize,
    may_be_endless: bool,
}

impl<'model> Draft<'model> {
    /// Creates an empty reply of at most `most` tokens, constrained by the grammar if there is one.
    /// With `may_be_endless`, it stops when it repeats itself.
    pub(super) fn new(
        model: &'model Model,
        matcher: Option<Matcher>,
        most: usize,
        may_be_endless: bool,
    ) -> Self {
        let (text, tokens) = (Vec::new(), Vec::new());
        Self { model, matcher, text, tokens, most, may_be_endless }
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
    pub(super) fn finish(&self) -> Option<Finish> {
        if self.matcher.as_ref().is_some_and(Matcher::is_stopped) {
            Some(Finish::Stop)
        } else if self.tokens.len() >= self.most {
            Some(Finish::Length)
        } else {
            (self.may_be_endless && is_endless(&self.tokens)).then_some(Finish::Repeated)
        }
    }

    /// Returns the tokens allowed next, or `None` without a grammar.
    pub(super) fn mask(&mut self) -> Result<Option<SimpleVob>, ModelError> {
        self.matcher.as_mut().map(Matcher::compute_mask_or_eos).transpose().map_err(broken)
    }

    /// Appends a token allowed by the mask.
    pub(super) fn add(&mut self, token: Token) -> Result<(), ModelError> {
        if let Some(matcher) = &mut self.matcher {
            matcher.consume_token(token).map_err(broken)?;
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
        tokens.truncate(self.most - self.tokens.len());
        // If the vocabulary splits a fragment differently, only the shortcut is lost.
        let taken = matcher.try_consume_tokens(&tokens).map_err(broken)?;
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

fn broken(error: impl std::fmt::Display) -> ModelError {
    ModelError::engine(format!("constrained decoding failed: {error}"), None)
}
