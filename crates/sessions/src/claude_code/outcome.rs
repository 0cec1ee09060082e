//! Determines the outcome of a tool call. `is_error` covers failures of the tool, misuse by the
//! model and refusals by users or rules; the text distinguishes them. Some old versions stored only
//! the user's text as the error of a call. This cannot be distinguished, so such a call counts as
//! failed.

use memchr::memmem;

use crate::Text;
use crate::event::{ToolOutcome, ToolResult};

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
    let said = said.split_once(AFTER_FEEDBACK).map_or(said, |(said, _)| said).trim();
    let typed = !said.is_empty() && !said.starts_with(CLARIFY);
    typed.then(|| Text::new(said.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
