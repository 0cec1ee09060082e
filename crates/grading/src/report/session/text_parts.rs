//! Splits a text of a session into prose, code, diffs and placeholders for images. Diffs of two
//! texts are made here; patches passed to a tool are only parsed, never applied.

use std::borrow::Cow;

use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use selftest_text::escape::{block, terminal};

/// Maximum length in bytes of a name or a line.
const MAX_LINE: usize = 400;

/// Maximum number of edits shown per call.
const MAX_EDITS: usize = 50;

/// Argument names that tools use for the old and new text of an edit.
const EDIT_ARGUMENTS: [(&str, &str); 5] = [
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
    ("old_text", "new_text"),
    ("search", "replace"),
];

/// Arguments that summarize a call, in order of preference.
const SUMMARY_ARGUMENTS: [&str; 14] = [
    "command",
    "cmd",
    "file_path",
    "filePath",
    "filename",
    "notebook_path",
    "pattern",
    "query",
    "path",
    "url",
    "description",
    "name",
    "prompt",
    "text",
];

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPart {
    /// Prose.
    Prose(String),
    /// Preformatted lines.
    Code {
        /// Declared language, or name of the argument that contains the code. May be empty.
        label: String,
        /// The lines.
        text: String,
    },
    /// A change of text.
    Diff(Vec<DiffLine>),
    /// Placeholder for an image with its type and size. The image itself is not stored.
    Image(String),
    /// A short named value.
    Field {
        /// Name of the field.
        name: String,
        /// Value on one line.
        value: String,
    },
}

fn code(label: &str, text: &str, limit: usize) -> TextPart {
    parse_patch(text).map_or_else(
        || TextPart::Code { label: terminal(label, MAX_LINE), text: block(text, limit) },
        |lines| sanitized_diff(lines, limit),
    )
}

/// Sanitizes the lines of a diff and cuts them at the limit.
fn sanitized_diff(lines: Vec<DiffLine>, limit: usize) -> TextPart {
    let mut left = limit;
    let lines = lines.into_iter().map_while(|line| {
        // The diff ends at the first line without room: later ones would look adjacent to it.
        left = left.checked_sub(line.text.len() + 1)?;
        Some(DiffLine { text: block(&line.text, limit), ..line })
    });
    TextPart::Diff(lines.collect())
}

/// Removes the escape sequences that programs use to colour output and control the terminal.
fn strip_ansi(text: &str) -> Cow<'_, str> {
    const BEGINNING: &str = "\u{1b}[";
    if !text.contains(BEGINNING) {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split(BEGINNING);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let parameters = part.find(|c: char| !matches!(c, '0'..='9' | ';' | '?'));
        // Only sequences for styles, modes, erasing and columns are removed; others stay visible.
        let end = parameters.filter(|at| part[*at..].starts_with(['m', 'h', 'l', 'K', 'J', 'G']));
        match end {
            Some(end) => plain.push_str(&part[end + 1..]),
            None => plain.extend([BEGINNING, part]),
        }
    }
    Cow::Owned(plain)
}

/// Splits a message into prose, fenced code blocks and placeholders for images.
pub fn split_message(text: &str, limit: usize) -> Vec<TextPart> {
    let text = block(&strip_ansi(text), limit);
    let mut parts = Vec::new();
    let mut words = String::new();
    let mut fenced: Option<(String, String, String)> = None;
    let end = |words: &mut String, parts: &mut Vec<TextPart>| {
        let said = std::mem::take(words);
        let said = said.trim_matches('\n');
        if !said.trim().is_empty() {
            parts.push(TextPart::Prose(said.to_owned()));
        }
    };
    for line in text.lines() {
        if let Some((fence, label, mut lines)) = fenced.take() {
            // A closing fence may be longer than the opening one, but has no label.
            let is_end = line.trim().starts_with(&fence)
                && line.trim().trim_start_matches(['`', '~']).is_empty();
            if is_end {
                parts.push(code(&label, &lines, limit));
            } else {
                lines.push_str(line);
                lines.push('\n');
                fenced = Some((fence, label, lines));
            }
            continue;
        }
        let trimmed = line.trim();
        let fence: String = trimmed
            .chars()
            .take_while(|c| trimmed.starts_with(*c) && matches!(c, '`' | '~'))
            .collect();
        if fence.len() >= 3 {
            end(&mut words, &mut parts);
            let label = trimmed[fence.len()..].trim().to_owned();
            fenced = Some((fence, label, String::new()));
        } else if is_image(trimmed) {
            end(&mut words, &mut parts);
            parts.push(TextPart::Image(terminal(trimmed, MAX_LINE)));
        } else {
            words.push_str(line);
            words.push('\n');
        }
    }
    // An unclosed fence runs to the end of the text.
    if let Some((_, label, lines)) = fenced {
        parts.push(code(&label, &lines, limit));
    }
    end(&mut words, &mut parts);
    parts
}

/// Returns true for the placeholder that session readers leave for an image: `[image image/png 531
/// kB]`.
fn is_image(line: &str) -> bool {
    line.strip_prefix("[image ").is_some_and(|rest| rest.ends_with(']') && rest.len() < 100)
}

/// Returns the parts of a tool's result: an image placeholder or a single block of code.
pub fn result_parts(text: &str, limit: usize) -> Vec<TextPart> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    if is_image(text.trim()) {
        return vec![TextPart::Image(terminal(text.trim(), MAX_LINE))];
    }
    vec![code("", &strip_ansi(text), limit)]
}

/// Returns the arguments of a call as a one-line summary and in parts.
pub fn argument_parts(arguments: &str, limit: usize) -> (String, Vec<TextPart>) {
    let Ok(Value::Object(fields)) = serde_json::from_str(arguments) else {
        let parts = result_parts(arguments, limit);
        return (terminal(arguments, 120), parts);
    };
    let brief = SUMMARY_ARGUMENTS.iter().find_map(|name| fields.get(*name)).map(value_text);
    // The one argument of an unknown tool says what it does; of several none is preferred.
    let brief = brief.unwrap_or_else(|| match fields.values().next() {
        Some(first) if fields.len() == 1 => value_text(first),
        Some(_) => arguments.to_owned(),
        None => String::new(),
    });
    let mut parts = Vec::new();
    let changed = edit_fields(&fields);
    for (name, value) in &fields {
        match changed {
            Some((old, new)) if name == old => {
                let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or("");
                parts.push(sanitized_diff(diff_texts(text(old), text(new)), limit));
            }
            // Already part of the diff with the old text.
            Some((_, new)) if name == new => {}
            _ => parts.extend(field_parts(name, value, limit)),
        }
    }
    (terminal(&brief, 120), parts)
}

/// Returns the argument names of the old and new text if the fields describe an edit.
fn edit_fields(fields: &Map<String, Value>) -> Option<(&'static str, &'static str)> {
    let is_text = |name: &str| fields.get(name).is_some_and(Value::is_string);
    EDIT_ARGUMENTS.into_iter().find(|(old, new)| is_text(old) && is_text(new))
}

fn field_parts(name: &str, value: &Value, limit: usize) -> Vec<TextPart> {
    if let Value::Array(edits) = value
        && edits.iter().any(|edit| edit.as_object().is_some_and(|edit| edit_fields(edit).is_some()))
    {
        let edits = edits.iter().take(MAX_EDITS).filter_map(Value::as_object);
        let diffs = edits.filter_map(|edit| {
            let (old, new) = edit_fields(edit)?;
            let text = |name: &str| edit.get(name).and_then(Value::as_str).unwrap_or("");
            Some(sanitized_diff(diff_texts(text(old), text(new)), limit))
        });
        return diffs.collect();
    }
    let text = value_text(value);
    if text.contains('\n') {
        return vec![code(name, &text, limit)];
    }
    if text.len() > MAX_LINE {
        return vec![TextPart::Code { label: terminal(name, MAX_LINE), text: block(&text, limit) }];
    }
    vec![TextPart::Field { name: terminal(name, MAX_LINE), value: terminal(&text, MAX_LINE) }]
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) if parts.iter().all(Value::is_string) => {
            parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// Maximum number of lines in either text for a comparison. Longer texts are shown as fully removed
/// and fully added.
const MAX_LINES: usize = 400;

/// Kind of a line in a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffLineKind {
    /// The line is in both texts.
    Unchanged,
    /// The line was added.
    Added,
    /// The line was removed.
    Removed,
    /// A header that gives the position of the following lines.
    Header,
}

impl DiffLineKind {
    /// Returns the CSS class of the line.
    pub fn class(self) -> &'static str {
        match self {
            DiffLineKind::Unchanged => "kept",
            DiffLineKind::Added => "added",
            DiffLineKind::Removed => "removed",
            DiffLineKind::Header => "place",
        }
    }

    /// Returns the prefix of the line.
    pub fn sign(self) -> &'static str {
        match self {
            DiffLineKind::Unchanged => "  ",
            DiffLineKind::Added => "+ ",
            DiffLineKind::Removed => "- ",
            DiffLineKind::Header => "",
        }
    }
}

/// A line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// Kind of the line.
    pub change: DiffLineKind,
    /// Text without its prefix.
    pub text: String,
}

fn line(change: DiffLineKind, text: &str) -> DiffLine {
    DiffLine { change, text: text.trim_end_matches(['\n', '\r']).to_owned() }
}

/// Returns the line diff between two texts.
pub fn diff_texts(old: &str, new: &str) -> Vec<DiffLine> {
    // The time of a diff grows with the product of both lengths.
    if old.lines().count().max(new.lines().count()) > MAX_LINES {
        let removed = old.lines().map(|text| line(DiffLineKind::Removed, text));
        return removed.chain(new.lines().map(|text| line(DiffLineKind::Added, text))).collect();
    }
    let diff = TextDiff::from_lines(old, new);
    let changes = diff.iter_all_changes().map(|change| {
        let kind = match change.tag() {
            ChangeTag::Equal => DiffLineKind::Unchanged,
            ChangeTag::Insert => DiffLineKind::Added,
            ChangeTag::Delete => DiffLineKind::Removed,
        };
        line(kind, change.value())
    });
    changes.collect()
}

/// Parses a patch, either a unified diff or input for `apply_patch`. Returns `None` if the text is
/// not a patch.
pub fn parse_patch(text: &str) -> Option<Vec<DiffLine>> {
    let begins_line = |start: &str| text.starts_with(start) || text.contains(&format!("\n{start}"));
    // All three, because a Markdown list or a YAML document also has lines with `---` or `-`.
    let is_unified = begins_line("--- ") && begins_line("+++ ") && begins_line("@@ ");
    if !is_unified && !begins_line("*** Begin Patch") {
        return None;
    }
    let lines = text.lines().map(|text| match text.as_bytes().first() {
        _ if ["+++ ", "--- ", "@@", "*** ", "diff ", "index "]
            .iter()
            .any(|start| text.starts_with(start)) =>
        {
            line(DiffLineKind::Header, text)
        }
        // The signs are ASCII, so byte 1 is a character boundary.
        Some(b'+') => line(DiffLineKind::Added, &text[1..]),
        Some(b'-') => line(DiffLineKind::Removed, &text[1..]),
        Some(b' ') => line(DiffLineKind::Unchanged, &text[1..]),
        _ => line(DiffLineKind::Unchanged, text),
    });
    Some(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::{DiffLineKind, *};

    #[test]
    fn words_code_and_images_are_told_apart() {
        let text = "Look:\n\n```rust\nfn main() {}\n```\n[image image/png 531 kB]\ndone";
        let parts = split_message(text, 10_000);
        assert_eq!(
            parts,
            [
                TextPart::Prose("Look:".to_owned()),
                TextPart::Code { label: "rust".to_owned(), text: "fn main() {}\n".to_owned() },
                TextPart::Image("[image image/png 531 kB]".to_owned()),
                TextPart::Prose("done".to_owned()),
            ]
        );
        let torn = split_message("~~~~\n```\nx", 10_000);
        assert_eq!(torn, [TextPart::Code { label: String::new(), text: "```\nx\n".to_owned() }]);
    }

    #[test]
    fn an_edit_is_a_diff_and_a_command_is_told_in_short() {
        let (brief, parts) = argument_parts(
            r#"{"file_path":"a.rs","old_string":"a\nb","new_string":"a\nc","replace_all":false}"#,
            10_000,
        );
        assert_eq!(brief, "a.rs");
        let [TextPart::Field { name, .. }, TextPart::Diff(lines), TextPart::Field { value, .. }] =
            &parts[..]
        else {
            panic!("{parts:?}");
        };
        assert_eq!((name.as_str(), value.as_str()), ("file_path", "false"));
        let kinds: Vec<DiffLineKind> = lines.iter().map(|line| line.change).collect();
        assert_eq!(kinds, [DiffLineKind::Unchanged, DiffLineKind::Removed, DiffLineKind::Added]);
        let (brief, parts) = argument_parts(r#"{"command":"ls\n-l","timeout":3}"#, 10_000);
        assert_eq!(brief, "ls -l");
        assert!(
            matches!(&parts[0], TextPart::Code { label, .. } if label == "command"),
            "{parts:?}"
        );
        let (brief, parts) = argument_parts(
            r#"{"edits":[{"oldText":"a","newText":"b"},{"oldText":"c","newText":"d"}]}"#,
            10_000,
        );
        assert!(brief.contains("oldText"), "{brief}");
        assert!(parts.iter().all(|part| matches!(part, TextPart::Diff(_))) && parts.len() == 2);
        let (brief, parts) = argument_parts("print(1)", 10_000);
        assert_eq!((brief.as_str(), parts.len()), ("print(1)", 1));
    }

    #[test]
    fn nothing_foreign_hides_and_nothing_is_unbounded() {
        let parts = split_message("\u{202e}x\u{1b}]0;title\u{7}", 10_000);
        assert_eq!(parts, [TextPart::Prose("⟨U+202E⟩x⟨U+001B⟩]0;title⟨U+0007⟩".to_owned())]);
        let coloured = "\u{1b}[?2026h\u{1b}[1;38;2;1;2;3mred\u{1b}[0m \u{1b}[5né\u{1b}[";
        let parts = split_message(coloured, 10_000);
        assert_eq!(parts, [TextPart::Prose("red ⟨U+001B⟩[5né⟨U+001B⟩[".to_owned())]);
        let long = format!("--- a\n+++ b\n@@ -1 +1 @@\n{}", "+line\n".repeat(10_000));
        let [TextPart::Diff(lines)] = &result_parts(&long, 1000)[..] else { panic!() };
        assert!(lines.len() < 300, "{}", lines.len());
    }

    fn shown(lines: &[DiffLine]) -> Vec<String> {
        lines.iter().map(|line| format!("{}{}", line.change.sign(), line.text)).collect()
    }

    #[test]
    fn two_texts_are_compared_line_by_line() {
        let lines = diff_texts("a\nb\nc\n", "a\nB\nc\nd");
        assert_eq!(shown(&lines), ["  a", "- b", "+ B", "  c", "+ d"]);
        let long = "x\n".repeat(MAX_LINES + 1);
        let lines = diff_texts(&long, "y");
        assert_eq!(lines.len(), MAX_LINES + 2);
        assert_eq!(lines.last().unwrap().change, DiffLineKind::Added);
    }

    #[test]
    fn patches_are_known_and_other_text_is_none() {
        let unified = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n same";
        let lines = parse_patch(unified).unwrap();
        assert_eq!(shown(&lines[3..]), ["- old", "+ new", "  same"]);
        assert!(lines[..3].iter().all(|line| line.change == DiffLineKind::Header));
        let codex = "*** Begin Patch\n*** Update File: x\n@@\n-old\n+new\n*** End Patch";
        assert_eq!(shown(&parse_patch(codex).unwrap())[3..5], ["- old", "+ new"]);
        for text in ["", "- a list\n- of points", "--- a rule\n+++ alone"] {
            assert_eq!(parse_patch(text), None, "{text}");
        }
    }
}
