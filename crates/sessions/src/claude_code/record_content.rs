//! Classifies a record as an answer, a prompt or a notice, regardless of the records around it:
//! determines the author of a `user` record's text, most of which were not typed by a person, and
//! the outcome of a tool call.
//!
//! `is_error` covers failures of the tool, misuse by the model and refusals by users or rules; the
//! text distinguishes them. Some old versions stored only the user's text as the error of a call.
//! This cannot be distinguished, so such a call counts as failed.

use memchr::memmem;

use super::records::{ClaudeAttachment, ClaudeMessage, ClaudeRecord, TextAuthor};
use crate::event::{EventMark, ToolOutcome, ToolResult};
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
    let is_marked = record.is_meta.is_set()
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
                // An error is always parsed, as its text distinguishes failure, misuse and refusal.
                let text = if outputs || is_hermes || block.is_error.is_set() {
                    without_reminders(block.content())
                } else {
                    Text::default()
                };
                // Hermes exports have no error flag, so the text decides.
                user.results.push(if is_hermes && block.is_error.0.is_none() {
                    ToolResult { call_id: block.tool_use_id, ..failure::result_of(text) }
                } else {
                    result_of(block.tool_use_id, text, block.is_error.is_set())
                });
            }
            // Notes are removed only from text that a person may have typed.
            "text" if is_marked => user.text.add(block.text),
            "text" => user.text.add(without_notes(block.text)),
            // A message of nothing but a screenshot was still typed by a person.
            kind @ ("image" | "document") => user.text.add(block.source.note(kind)),
            // The tools found by a tool search are named in its call.
            "tool_reference" | "fallback" => {}
            _ => user.unknown.push(block.kind),
        }
    }
    user.is_human = !is_marked && !user.text.is_empty() && !is_harness(&user.text);
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
    let words = without_notes(attachment.prompt.0);
    let is_human = matches!(attachment.command_mode.as_str(), "" | "prompt")
        && !attachment.is_meta.is_set()
        && is_person(&attachment.origin)
        && !words.is_empty()
        && !is_harness(&words);
    RecordContent::User(UserContent { text: words, is_human, ..UserContent::default() })
}

/// Prefixes of texts that the program writes in the user's place.
const HARNESS: [&str; 18] = [
    "<command-name>",
    "<command-message>",
    "<command-args>",
    "<local-command-",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "<teammate-message",
    "<user-memory-input>",
    "<user-prompt-submit-hook>",
    "<session-start-hook>",
    "Stop hook feedback:",
    "SubagentStop hook feedback:",
    "Caveat: The messages below were generated by the user while running local commands",
    "Base directory for this skill:",
    INTERRUPTED,
    CONTINUED,
];

const INTERRUPTED: &str = "[Request interrupted by user";

const CONTINUED: &str = "This session is being continued from a previous conversation";

/// Elements that the program inserts into user text and tool output.
const NOTES: [(&str, &str); 6] = [
    ("<system-reminder>", "</system-reminder>"),
    ("<ide_opened_file>", "</ide_opened_file>"),
    ("<ide_selection>", "</ide_selection>"),
    ("<ide_diagnostics>", "</ide_diagnostics>"),
    ("<new-diagnostics>", "</new-diagnostics>"),
    ("<post-tool-use-hook>", "</post-tool-use-hook>"),
];

/// Returns true if the program wrote the text.
pub(super) fn is_harness(text: &str) -> bool {
    let text = text.trim_start();
    HARNESS.iter().any(|beginning| text.starts_with(beginning))
}

/// Returns true if the text reports that the user stopped the agent.
pub(super) fn is_interruption(text: &str) -> bool {
    text.trim_start().starts_with(INTERRUPTED)
}

/// Returns true if the text is the summary from which a session continues after a compaction.
pub(super) fn is_continuation(text: &str) -> bool {
    text.trim_start().starts_with(CONTINUED)
}

/// Removes the program's notes from a user's text.
fn without_notes(text: Text<'_>) -> Text<'_> {
    text.map(|text| {
        let mut rest = None;
        // Text that a user typed may contain several kinds of notes.
        for (open, close) in NOTES {
            rest = cut_elements(rest.as_deref().unwrap_or(text), open, close).or(rest);
        }
        rest.map(|rest| rest.trim().to_owned())
    })
}

/// Removes appended reminders from a tool's output.
fn without_reminders(text: Text<'_>) -> Text<'_> {
    let (open, close) = NOTES[0];
    text.map(|text| cut_elements(text, open, close).map(|rest| rest.trim_end().to_owned()))
}

/// Removes every `open…close` element; `None` without one. An unclosed element stays, because
/// the text may be about the tag itself.
fn cut_elements(text: &str, open: &str, close: &str) -> Option<String> {
    // Most texts have no such element, and this search is fast.
    memmem::find(text.as_bytes(), open.as_bytes())?;
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once(open) {
        let Some((_, after)) = from.split_once(close) else { break };
        kept.push_str(before);
        rest = after;
    }
    // Only an unclosed element: nothing was removed.
    if rest.len() == text.len() {
        return None;
    }
    kept.push_str(rest);
    Some(kept)
}

/// Prefixes of results whose call was refused before or while the tool ran.
///
/// The last three are cancellations, caused not by the tool but by another call of the same
/// message. They count as rejected, not unknown, because it is certain that the tool did not run
/// and that a rule of the program is the reason.
const REFUSED: [&str; 16] = [
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "The agent proposed a plan that was rejected by the user",
    "User rejected",
    "User declined",
    "[Request interrupted by user",
    "This command requires approval",
    "This Bash command contains multiple operations",
    "Claude requested permissions to",
    "Permission to use",
    "Permission for this",
    "PreToolUse:",
    "Hook PreToolUse",
    "Sibling tool call errored",
    "Cancelled: parallel tool call",
    "Streaming fallback",
];

/// Follows such a prefix if a path is out of bounds.
const OUT_OF_BOUNDS: &str = "was blocked. For security, Claude Code";

/// Ends the output of a program that was stopped from outside.
const ABORTED: &str = "<error>Command was aborted before completion</error>";

/// Precedes the text that the user typed when refusing a call.
const FEEDBACK: [&str; 2] = [
    "The user provided the following reason for the rejection:",
    "To tell you how to proceed, the user said:",
];

/// A note for the model that may follow the user's text.
const AFTER_FEEDBACK: &str = "\n\nNote: The user's next message may contain";

/// Written by the program in the user's place when questions are sent back.
const CLARIFY: &str = "The user wants to clarify these questions";

/// Builds the result of a call from its text and error flag. The flag is missing on success.
pub(super) fn result_of<'a>(call_id: Text<'a>, text: Text<'a>, is_error: bool) -> ToolResult<'a> {
    let mut result = ToolResult { call_id, outcome: ToolOutcome::Ok, ..ToolResult::default() };
    if is_error {
        let said = text.trim_start();
        // The tag marks a call that was wrong in itself, such as an edit of a file not read before.
        let (inner, misused) = match said.strip_prefix("<tool_use_error>") {
            Some(inner) => (inner.trim_end().trim_end_matches("</tool_use_error>"), true),
            None => (said, false),
        };
        let refused = is_refusal(inner.strip_prefix("Error: ").unwrap_or(inner));
        result.outcome = if refused { ToolOutcome::Rejected } else { ToolOutcome::Failed };
        if misused {
            result.error = Text::new(inner.to_owned());
        }
        result.exit_code = exit_code(said);
    }
    result.text = text;
    result
}

fn is_refusal(text: &str) -> bool {
    // Only both ends, because an output in between may quote these messages.
    let start = &text[..text.floor_char_boundary(400)];
    let end = &text[text.ceil_char_boundary(text.len().saturating_sub(200))..];
    REFUSED.iter().any(|beginning| text.starts_with(beginning))
        || start.contains(OUT_OF_BOUNDS)
        // Also written on a timeout, which is a failure.
        || (end.contains(ABORTED) && !end.contains("timed out"))
}

/// Parses `Exit code N` at the start.
fn exit_code(text: &str) -> Option<i64> {
    let rest = text.strip_prefix("Exit code ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

/// Returns the text that the user typed when refusing a call.
pub(super) fn feedback(result: &ToolResult<'_>) -> Option<Text<'static>> {
    if result.outcome != ToolOutcome::Rejected {
        return None;
    }
    let said = FEEDBACK.iter().find_map(|words| {
        let at = memmem::find(result.text.as_bytes(), words.as_bytes())?;
        Some(&result.text[at + words.len()..])
    })?;
    // Claude Code appends this note for the model, which is not part of what the user typed.
    let said = said.split_once(AFTER_FEEDBACK).map_or(said, |(said, _)| said).trim();
    let typed = !said.is_empty() && !said.starts_with(CLARIFY);
    typed.then(|| Text::new(said.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_cut_and_the_rest_is_what_was_typed() {
        let cut = |text: &'static str| without_notes(Text::new(text)).as_str().to_owned();
        let typed = "<ide_opened_file>The user opened a.rs</ide_opened_file>\nfix <b> please\n\
            <system-reminder>be brief</system-reminder>";
        assert_eq!(cut(typed), "fix <b> please");
        assert_eq!(cut("<ide_selection>x</ide_selection>"), "");
        assert_eq!(cut("what does <system-reminder> mean?"), "what does <system-reminder> mean?");
        assert_eq!(cut("  plain "), "  plain ");
    }

    #[test]
    fn reminders_leave_the_output_of_a_tool() {
        let text = "1\tfn main() {}\n\n<system-reminder>\nnot malware\n</system-reminder>\n";
        assert_eq!(without_reminders(Text::new(text)).as_str(), "1\tfn main() {}");
        let ide = "<ide_selection>shown in a file</ide_selection>";
        assert_eq!(without_reminders(Text::new(ide)).as_str(), ide);
    }

    #[test]
    fn what_the_program_wrote_is_known_by_its_beginning() {
        for text in [
            "<command-name>/clear</command-name>",
            "<local-command-stdout></local-command-stdout>",
            "<task-notification> <task-id>b1</task-id>",
            "\n<teammate-message teammate_id=\"lead\">go on</teammate-message>",
            "Stop hook feedback: run the tests",
            "[Request interrupted by user for tool use]",
            "This session is being continued from a previous conversation that ran out of context.",
        ] {
            assert!(is_harness(text), "{text}");
        }
        for text in ["fix the <command-name> parser", "Caveat: it is slow", "", "stop"] {
            assert!(!is_harness(text), "{text}");
        }
    }

    fn of(text: &'static str, is_error: bool) -> ToolResult<'static> {
        result_of(Text::from("c"), Text::new(text), is_error)
    }

    #[test]
    fn the_flag_and_the_text_together_tell_the_outcome() {
        for (text, is_error, outcome, code) in [
            ("ok", false, ToolOutcome::Ok, None),
            ("Error: as the file says", false, ToolOutcome::Ok, None),
            ("Exit code 127\nbash: pytest: not found", true, ToolOutcome::Failed, Some(127)),
            ("Exit codes are fun", true, ToolOutcome::Failed, None),
            ("EISDIR: illegal operation on a directory, read", true, ToolOutcome::Failed, None),
            (
                "<tool_use_error>File has not been read yet.</tool_use_error>",
                true,
                ToolOutcome::Failed,
                None,
            ),
            ("This command requires approval", true, ToolOutcome::Rejected, None),
            (
                "ls in '/etc' was blocked. For security, Claude Code may only list files in …",
                true,
                ToolOutcome::Rejected,
                None,
            ),
            (
                "<tool_use_error>Sibling tool call errored</tool_use_error>",
                true,
                ToolOutcome::Rejected,
                None,
            ),
            (
                "<tool_use_error>Cancelled: parallel tool call Bash(ls) errored</tool_use_error>",
                true,
                ToolOutcome::Rejected,
                None,
            ),
            (
                "half\n<error>Command was aborted before completion</error>",
                true,
                ToolOutcome::Rejected,
                None,
            ),
            (
                "Command timed out after 2m 0s\n<error>Command was aborted before completion</error>",
                true,
                ToolOutcome::Failed,
                None,
            ),
            ("", true, ToolOutcome::Failed, None),
        ] {
            let result = of(text, is_error);
            assert_eq!((result.outcome, result.exit_code), (outcome, code), "{text}");
        }
        let misuse = of("<tool_use_error>No such tool: Fly</tool_use_error>", true);
        assert_eq!(misuse.error.as_str(), "No such tool: Fly");
    }

    #[test]
    fn words_typed_at_a_refusal_are_found() {
        let refusal = "The user doesn't want to proceed with this tool use. The tool use was \
            rejected (eg. if it was a file edit, the new_string was NOT written to the file). ";
        let said = |rest: &str| {
            let text = Text::new(format!("{refusal}{rest}"));
            feedback(&result_of(Text::default(), text, true)).map(|text| text.to_string())
        };
        let reason = "The user provided the following reason for the rejection:  use pnpm";
        assert_eq!(said(reason).as_deref(), Some("use pnpm"));
        let newer = "To tell you how to proceed, the user said:\nno, ask first\n\nNote: The user's \
            next message may contain a correction or preference.";
        assert_eq!(said(newer).as_deref(), Some("no, ask first"));
        assert_eq!(said("STOP what you are doing and wait."), None);
        let clarify = "To tell you how to proceed, the user said:\nThe user wants to clarify these \
            questions.\n    Questions asked:";
        assert_eq!(said(clarify), None);
        let quoted = "grep: To tell you how to proceed, the user said: x";
        assert_eq!(feedback(&of(quoted, true)), None);
    }
}
