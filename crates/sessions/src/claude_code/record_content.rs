//! Classifies a record as an answer, a prompt or a notice, regardless of the records around it.

use super::origin;
use super::outcome;
use super::records::{ClaudeAttachment, ClaudeMessage, ClaudeRecord, TextAuthor};
use crate::event::{EventMark, ToolResult};
use crate::wire::LenientObject;
use crate::{Text, failure};

/// Value of `version` in Hermes exports in this format. They have no `is_error`.
pub(super) const HERMES: &str = "hermes-agent";

/// Model of messages that the program writes in the model's place. Nearly all are errors.
const SYNTHETIC: &str = "<synthetic>";

/// The only synthetic message that is not an error.
const NO_RESPONSE: &str = "No response requested.";

/// Content of a record.
pub(super) enum RecordContent<'a> {
    /// The model's answer, or one line of it.
    Assistant(ClaudeMessage<'a>),
    /// Text and results for the model.
    User(UserContent<'a>),
    /// A message of the program.
    Notice { text: Text<'a>, mark: Option<EventMark> },
    /// Not part of the conversation.
    None,
}

#[derive(Default)]
pub(super) struct UserContent<'a> {
    /// Text without the program's insertions.
    pub(super) text: Text<'a>,
    /// True if a person typed the text.
    pub(super) is_human: bool,
    /// True if the text is the summary after a compaction.
    pub(super) is_summary: bool,
    pub(super) results: Vec<ToolResult<'a>>,
    /// Types of unknown blocks.
    pub(super) unknown: Vec<Text<'a>>,
}

impl<'a> RecordContent<'a> {
    /// Takes the content out of the record. The output of successful calls is included only if
    /// `outputs` is set.
    pub(super) fn take(record: &mut ClaudeRecord<'a>, outputs: bool) -> Self {
        let message = record.message.0.take();
        match (record.kind.as_str(), message) {
            ("user", Some(message)) => RecordContent::User(user(record, message, outputs)),
            ("assistant", Some(message)) => assistant(record, message),
            ("system", _) => system(record),
            ("attachment", _) => record.attachment.0.take().map_or(RecordContent::None, attached),
            _ => RecordContent::None,
        }
    }
}

fn user<'a>(
    record: &ClaudeRecord<'a>,
    message: ClaudeMessage<'a>,
    outputs: bool,
) -> UserContent<'a> {
    let is_harness = record.is_meta.is_set()
        || record.is_compact_summary.is_set()
        || record.is_visible_in_transcript_only.is_set()
        || !is_person(&record.origin);
    let is_hermes = record.version.as_str() == HERMES;
    let mut user =
        UserContent { is_summary: record.is_compact_summary.is_set(), ..UserContent::default() };
    for block in message.content.0 {
        match block.kind.as_str() {
            "tool_result" => {
                if let Some(result) = block.wrapped() {
                    user.results.push(ToolResult { call_id: block.tool_use_id, ..result });
                    continue;
                }
                // Outcomes of successful calls do not depend on their text, except in Hermes
                // exports.
                let text = if outputs || is_hermes || block.is_error.is_set() {
                    origin::without_reminders(block.content())
                } else {
                    Text::default()
                };
                // Hermes exports have no error flag, so the text decides.
                user.results.push(if is_hermes && block.is_error.0.is_none() {
                    ToolResult { call_id: block.tool_use_id, ..failure::result_of(text) }
                } else {
                    outcome::result_of(block.tool_use_id, text, block.is_error.is_set())
                });
            }
            // Notes are removed only from text that a person may have typed.
            "text" if is_harness => user.text.add(block.text),
            "text" => user.text.add(origin::without_notes(block.text)),
            kind @ ("image" | "document") => user.text.add(block.source.note(kind)),
            // The tools found by a tool search are named in its call.
            "tool_reference" | "fallback" => {}
            _ => user.unknown.push(block.kind),
        }
    }
    user.is_human = !is_harness && !user.text.is_empty() && !origin::is_harness(&user.text);
    user
}

/// Returns true unless the record names another author. Newer versions do: `human`, `peer`,
/// `task-notification`, …
fn is_person(source: &LenientObject<TextAuthor<'_>>) -> bool {
    source.0.as_ref().is_none_or(|source| matches!(source.kind.as_str(), "" | "human"))
}

fn assistant<'a>(record: &ClaudeRecord<'a>, message: ClaudeMessage<'a>) -> RecordContent<'a> {
    if message.model.as_str() != SYNTHETIC && !record.is_api_error_message.is_set() {
        return RecordContent::Assistant(message);
    }
    let mut text = Text::default();
    message.content.0.into_iter().for_each(|block| text.add(block.text));
    let mark = (text.as_str() != NO_RESPONSE).then_some(EventMark::ApiError);
    RecordContent::Notice { text, mark }
}

fn system<'a>(record: &mut ClaudeRecord<'a>) -> RecordContent<'a> {
    let mark = match record.subtype.as_str() {
        "compact_boundary" => EventMark::Compacted,
        "api_error" | "error" => EventMark::ApiError,
        _ => return RecordContent::None,
    };
    let mut text = std::mem::take(&mut record.content);
    if let Some(failure) = record.error.0.take() {
        let said = [failure.formatted, failure.message].into_iter().find(|said| !said.is_empty());
        text.add(said.unwrap_or_default());
        if let Some(status) = failure.status.0
            && text.is_empty()
        {
            text = format!("status {status}").into();
        }
    }
    RecordContent::Notice { text, mark: Some(mark) }
}

/// Returns what only attachments hold: text typed while the agent was working, and the files that
/// were changed by other hands since the agent last touched them.
fn attached(attachment: ClaudeAttachment<'_>) -> RecordContent<'_> {
    match attachment.kind.as_str() {
        "queued_command" => queued_prompt(attachment),
        "edited_text_file" if !attachment.filename.is_empty() => {
            let mark = Some(EventMark::FileEdited);
            RecordContent::Notice { text: attachment.filename, mark }
        }
        _ => RecordContent::None,
    }
}

fn queued_prompt(attachment: ClaudeAttachment<'_>) -> RecordContent<'_> {
    let words = origin::without_notes(attachment.prompt.0);
    let is_human = matches!(attachment.command_mode.as_str(), "" | "prompt")
        && !attachment.is_meta.is_set()
        && is_person(&attachment.origin)
        && !words.is_empty()
        && !origin::is_harness(&words);
    RecordContent::User(UserContent { text: words, is_human, ..UserContent::default() })
}
