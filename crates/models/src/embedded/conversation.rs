//! Both ends of a conversation with the engine: messages become prompt tokens, tokens become a reply.
//!
//! The model's chat template is rendered with placeholders, and texts are tokenised separately. Texts
//! therefore cannot inject special tokens: `<|im_end|>` in a message is nine plain characters.
//!
//! A reply grows as a draft with its text, its length and the state of its grammar. Small models
//! repeat themselves endlessly. The draft detects that, because such a reply would run for a minute
//! until a limit cuts it.

use std::ffi::{CStr, CString};

use llguidance::Matcher;
use serde_json::Value;
use toktrie::SimpleVob;

use super::llama::{LlamaModel, Token, render_chat};
use crate::{ChatRequest, ChatRole, FinishReason, ModelError, PromptMessage};

/// A prompt, split into segments at fixed positions.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SegmentedPrompt {
    /// Everything before the text of the first user message; identical for all calls of one kind.
    pub(super) prefix: Vec<Token>,
    /// Segments that several calls may share, one per cut of the request. If only the first token
    /// or a likelihood is requested, there is also a segment for each message except the last.
    pub(super) shared: Vec<Vec<Token>>,
    /// The remaining tokens; never empty.
    pub(super) rest: Vec<Token>,
}

impl SegmentedPrompt {
    /// Returns the total number of tokens.
    pub(super) fn len(&self) -> usize {
        let shared: usize = self.shared.iter().map(Vec::len).sum();
        self.prefix.len() + shared + self.rest.len()
    }
}

/// Builds the prompt of a conversation. Falls back to `ChatML` if the file has no template or one
/// that llama.cpp does not support.
pub(super) fn build_prompt(
    model: &LlamaModel,
    request: &ChatRequest,
) -> Result<SegmentedPrompt, ModelError> {
    let messages = &request.messages[..];
    let mut parts = model
        .chat_template()
        .and_then(|template| render_frame(template, messages))
        .or_else(|| render_frame(c"chatml", messages))
        .ok_or_else(|| {
            ModelError::engine("the chat template cannot be rendered".to_owned(), None)
        })?;
    let thinks = model.chat_template().is_some_and(|template| {
        template.to_bytes().windows(THINKING_SWITCH.len()).any(|part| part == THINKING_SWITCH)
    });
    // Templates of such models write this block when thinking is disabled. A reply under a schema
    // has no place for thoughts.
    if thinks
        && (!request.think.is_on() || request.schema.is_some())
        && let Some(end) = parts.last_mut()
    {
        end.push_str("<think>\n\n</think>\n\n");
    }
    let cuts = request.first_token.as_ref().map(|first| &first.cuts[..]);
    Ok(assemble(model, &parts, messages, cuts))
}

/// Setting in the templates of models that think by default.
const THINKING_SWITCH: &[u8] = b"enable_thinking";

/// Returns the text that the template puts before, between and after the messages.
fn render_frame(template: &CStr, messages: &[PromptMessage]) -> Option<Vec<String>> {
    // Random, so that no message can contain a placeholder.
    let marks: Vec<String> =
        messages.iter().map(|_| format!("{:032x}", rand::random::<u128>())).collect();
    let chat = messages
        .iter()
        .zip(&marks)
        .map(|(message, mark)| {
            let role = match message.role {
                ChatRole::System => c"system",
                ChatRole::User => c"user",
                ChatRole::Assistant => c"assistant",
            };
            Some((role, CString::new(mark.as_str()).ok()?))
        })
        .collect::<Option<Vec<_>>>()?;
    split(&render_chat(template, &chat)?, &marks)
}

/// Splits text at the marks. Returns `None` unless each mark occurs exactly once and in order,
/// since a template may omit a message.
fn split(text: &str, marks: &[String]) -> Option<Vec<String>> {
    let mut parts = Vec::with_capacity(marks.len() + 1);
    let mut rest = text;
    for mark in marks {
        let (before, after) = rest.split_once(mark.as_str())?;
        parts.push(before.to_owned());
        rest = after;
    }
    parts.push(rest.to_owned());
    let twice = parts.iter().any(|part| marks.iter().any(|mark| part.contains(mark.as_str())));
    (!twice).then_some(parts)
}

fn assemble(
    model: &LlamaModel,
    parts: &[String],
    messages: &[PromptMessage],
    cuts: Option<&[usize]>,
) -> SegmentedPrompt {
    let first_user = messages.iter().position(|message| message.role == ChatRole::User);
    let (mut prefix, mut shared, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
    for (place, part) in parts.iter().enumerate() {
        // Only the template's own text may contain control tokens.
        tokens.extend(model.tokenize(part.as_bytes(), true));
        // Some templates already contain this token, and it must not be doubled.
        if place == 0
            && let Some(beginning) = model.bos_token()
            && tokens.first() != Some(&beginning)
        {
            tokens.insert(0, beginning);
        }
        if first_user == Some(place) {
            prefix = std::mem::take(&mut tokens);
        }
        let Some(message) = messages.get(place) else { continue };
        let mut text = &*message.text;
        if place + 1 == messages.len() {
            let mut done = 0;
            for &cut in cuts.unwrap_or_default() {
                // Cuts are offsets into the whole text, and `text` is the rest of it.
                let Some((before, after)) = text.split_at_checked(cut.saturating_sub(done)) else {
                    break;
                };
                tokens.extend(model.tokenize(before.as_bytes(), false));
                shared.push(std::mem::take(&mut tokens));
                (text, done) = (after, cut);
            }
        }
        // Without special tokens: `<|im_end|>` in a message stays plain text.
        tokens.extend(model.tokenize(text.as_bytes(), false));
        if cuts.is_some()
            && first_user.is_some_and(|first| first <= place)
            && place + 1 < messages.len()
        {
            shared.push(std::mem::take(&mut tokens));
        }
    }
    // Decoding `rest` yields the first logits, so it must not be empty.
    if tokens.is_empty() {
        tokens = shared.pop().unwrap_or_else(|| std::mem::take(&mut prefix));
    }
    SegmentedPrompt { prefix, shared, rest: tokens }
}

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

    #[test]
    fn a_template_that_drops_or_doubles_a_message_is_refused() {
        let marks = ["AA".to_owned(), "BB".to_owned()];
        let parts = split("<s>AA</s><u>BB</u><a>", &marks).unwrap();
        assert_eq!(parts, ["<s>", "</s><u>", "</u><a>"]);
        assert_eq!(split("<u>BB</u>", &marks), None);
        assert_eq!(split("BB then AA", &marks), None);
        assert_eq!(split("AA BB AA", &marks), None);
    }

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
