//! Formats one item: its label, and its text or arguments without control characters, shortened in
//! the middle if it is too long. Foreign text never starts a line, so it cannot imitate an event.

use std::borrow::Cow;

use selftest_text::one_line;

use super::items::{ItemKind, TranscriptItem, format_arguments};
use crate::{Event, EventMark, EventOrigin, Session, ToolOutcome};

/// Maximum bytes of a tool's name.
const MAX_NAME: usize = 40;

/// Formats a label such as `[13 call bash]`.
pub(super) fn label(session: &Session, item: &TranscriptItem) -> String {
    let event = &session.events[item.event];
    let subagent = if event.origin == EventOrigin::Subagent { "subagent " } else { "" };
    format!("[{} {subagent}{}]", event.number, role(event, item))
}

fn role(event: &Event<'_>, item: &TranscriptItem) -> String {
    match item.kind {
        ItemKind::Prompt => match event.origin {
            EventOrigin::Harness => "harness".to_owned(),
            EventOrigin::Human | EventOrigin::Agent | EventOrigin::Subagent => "user".to_owned(),
        },
        ItemKind::Answer => "assistant".to_owned(),
        ItemKind::Notice => match event.mark {
            Some(EventMark::Interrupted) => "interrupted by the user".to_owned(),
            Some(EventMark::Compacted) => "harness: context summarised".to_owned(),
            Some(EventMark::ApiError) => "harness: the model's provider failed".to_owned(),
            Some(EventMark::FileEdited) => "harness: file changed by other hands".to_owned(),
            Some(EventMark::EditUndone) => "the user undid the change of".to_owned(),
            Some(EventMark::VerifierPassed | EventMark::VerifierFailed) | None => {
                "harness".to_owned()
            }
        },
        ItemKind::Call => {
            let name = event.calls.get(item.part).map_or("", |call| call.name.as_str());
            // Brackets delimit the label and must not come from foreign text.
            let name = one_line(name, MAX_NAME).replace(['[', ']'], "");
            if name.is_empty() { "call".to_owned() } else { format!("call {name}") }
        }
        ItemKind::Result => {
            let Some(result) = event.results.get(item.part) else { return "result".to_owned() };
            let outcome = match result.outcome {
                ToolOutcome::Ok => " ok",
                ToolOutcome::Failed => " failed",
                ToolOutcome::Rejected => " rejected",
                ToolOutcome::Pending => " missing",
                ToolOutcome::Unknown => "",
            };
            let code = result.exit_code.map(|code| format!(" exit {code}")).unwrap_or_default();
            format!("result{outcome}{code}")
        }
    }
}

/// Returns the full text of an item, cleaned.
pub(super) fn item_text(session: &Session, item: &TranscriptItem) -> String {
    clean(&raw_text(session, item))
}

/// Returns `min(length of the text, limit)`, cleaning no more text than needed.
pub(super) fn clipped_length(session: &Session, item: &TranscriptItem, limit: usize) -> usize {
    let words = raw_text(session, item);
    // Cleaning a whole output of megabytes for its first bytes would dominate the time.
    let end = words.floor_char_boundary(8 * limit);
    // If cleaning removes more than this, the estimate is too low, and only leaves others too much
    // room.
    clean(&words[..end]).len().min(limit)
}

fn raw_text<'s>(session: &'s Session, item: &TranscriptItem) -> Cow<'s, str> {
    let event = &session.events[item.event];
    match item.kind {
        ItemKind::Call => event
            .calls
            .get(item.part)
            .map_or(Cow::Borrowed(""), |call| format_arguments(&call.arguments)),
        ItemKind::Result => match event.results.get(item.part) {
            Some(result) if !result.text.is_empty() => Cow::Borrowed(result.text.as_str()),
            Some(result) => Cow::Borrowed(result.error.as_str()),
            None => Cow::Borrowed(event.text.as_str()),
        },
        ItemKind::Prompt | ItemKind::Answer | ItemKind::Notice => {
            Cow::Borrowed(event.text.as_str())
        }
    }
}

/// Removes control characters, terminal sequences, empty lines and trailing white space, and
/// indents all lines but the first.
fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len() + 16);
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                clean.truncate(clean.trim_end().len());
                if !clean.is_empty() {
                    // Indented, so that no line of foreign text looks like a label.
                    clean.push_str("\n  ");
                }
            }
            '\t' => clean.push(' '),
            '\u{1b}' => {
                if chars.next_if_eq(&'[').is_some() {
                    // Parameter bytes, then the letter that ends the sequence.
                    while chars.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
                    chars.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
                }
            }
            c if c.is_control() => {}
            c => clean.push(c),
        }
    }
    clean.truncate(clean.trim_end().len());
    clean
}

/// Shortens a text to `limit` bytes: head, a note about the missing bytes, and tail.
pub(super) fn clip(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let note = |bytes: usize| format!(" … [{bytes} bytes left out] … ");
    let kept = limit.saturating_sub(note(text.len()).len());
    // Trim, because a line break at the cut would let the note start a line.
    let head = |bytes| text[..text.floor_char_boundary(bytes)].trim_end();
    // Too short for a note and two useful ends.
    if kept < 16 {
        let head = head(limit.saturating_sub('…'.len_utf8()));
        return if limit < 4 { Cow::Borrowed("") } else { format!("{head}…").into() };
    }
    let head = head(kept.div_ceil(2));
    let tail = text[text.ceil_char_boundary(text.len() - kept / 2)..].trim_start();
    Cow::Owned(format!("{head}{}{tail}", note(text.len() - head.len() - tail.len())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_clean_and_indented() {
        let wild = "\u{1b}[1;31mred\u{1b}[0m\u{7}  \r\n\n\n[13 user] thanks\u{2028}x\u{0}y\t\n ";
        assert_eq!(clean(wild), "red\n  [13 user] thanks\n  xy");
    }

    #[test]
    fn clipping_keeps_both_ends() {
        let text = format!("begin {} end", "x".repeat(500));
        assert_eq!(clip(&text, 60).len(), 60);
        assert!(clip(&text, 60).starts_with("begin x") && clip(&text, 60).ends_with("x end"));
        assert_eq!(clip(&text, 10), "begin x…");
        assert_eq!(clip(&text, 3), "");
        assert_eq!(clip("short", 5), "short");
    }

    proptest! {
        #[test]
        fn a_clip_is_never_too_long(text in "\\PC{0,400}", limit in 0..300_usize) {
            prop_assert!(clip(&text, limit).len() <= limit);
        }

        #[test]
        fn foreign_text_never_begins_a_line(text in "(\\[1 user\\]|[\n\r\t \u{1b}\u{2028}a-c]|\\PC){0,60}") {
            let clean = clean(&text);
            prop_assert!(clean.lines().skip(1).all(|line| line.starts_with("  ")), "{clean:?}");
            prop_assert!(!clean.chars().any(|c| c.is_control() && c != '\n'));
        }
    }

    #[test]
    fn arguments_read_like_a_command() {
        for (json, shown) in [
            (r#"{"command":"cargo test","description":"run"}"#, "cargo test"),
            (r#"{"command":["bash","-lc","ls"],"workdir":"/x"}"#, "bash -lc ls"),
            (r#"{"cmd":"ls"}"#, "ls"),
            (r#"{"command":"view","path":"a.py"}"#, "command: view, path: a.py"),
            (r#"{"file_path":"a.rs","limit":3}"#, "file_path: a.rs, limit: 3"),
            (r#"{"command": "cut"#, r#"{"command": "cut"#),
            ("print(1)", "print(1)"),
        ] {
            assert_eq!(format_arguments(json), shown);
        }
    }
}
