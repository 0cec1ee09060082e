//! Converts messages to prompt tokens using the model's chat template.
//!
//! The template is rendered with placeholders, and texts are tokenised separately. Texts therefore
//! cannot inject special tokens: `<|im_end|>` in a message is nine plain characters.

use std::ffi::{CStr, CString};

use super::llama::{LlamaModel, Token, render_chat};
use crate::{ChatRequest, ChatRole, ModelError, PromptMessage};

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

#[cfg(test)]
mod tests {
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
}
