//! Detects the format of a source from its content. File names are unreliable: a `.json` file may
//! contain JSON lines.

use std::cell::Cell;
use std::io::Read;

use strum::VariantArray as _;

use crate::SessionReadError;
use crate::bounded::BoundedStrings;
use crate::chat::formats::is_message;
use crate::feed::ReadNotes;
use crate::format::{FormatEntry, SessionFormat};
use crate::lines::{JsonLines, is_blank, without_mark};
use crate::outline::JsonOutline;
use crate::repaired::RepairingReader;
use crate::source::SessionSource;
use crate::sqlite::{self, TableColumns, damaged_error};

/// Bytes read first. This covers the first lines of nearly every JSON Lines file.
const FIRST_LOOK: u64 = 32 * 1024;

/// Bytes read if the first ones are not enough.
const MAX_START: u64 = 256 * 1024;

/// Maximum bytes read if these are not enough either, because the decisive part may follow tool
/// schemas or a long message. Limits the time spent on large unrelated files.
const MAX_SEARCHED: u64 = 128 * 1024 * 1024;

/// Maximum number of lines that are examined.
const MAX_LINES: usize = 20;

/// File signatures of content that must be converted first, with advice.
const UNREADABLE: [(&[u8], &str); 8] = [
    (b"PAR1", "it is a Parquet file; export it as JSON lines first"),
    // Files are unpacked, but not bytes in memory.
    (b"\x1f\x8b", "it is compressed; unpack it with gunzip first"),
    (b"\x28\xb5\x2f\xfd", "it is compressed; unpack it with unzstd first"),
    (b"PK\x03\x04", "it is an archive; unpack it with unzip first"),
    (b"\xff\xfe", "it is text in UTF-16; convert it to UTF-8 first"),
    (b"\xfe\xff", "it is text in UTF-16; convert it to UTF-8 first"),
    (b"{\0", "it is text in UTF-16; convert it to UTF-8 first"),
    (b"[\0", "it is text in UTF-16; convert it to UTF-8 first"),
];

/// Detects the format of a source.
pub(super) fn detect(source: &SessionSource) -> Result<SessionFormat, SessionReadError> {
    if let Some(format) = find(&|entry| (entry.source)(source)) {
        return Ok(format);
    }
    let start = source.read_start(FIRST_LOOK)?;
    if start.starts_with(sqlite::MAGIC) && source.is_compressed() {
        let advice = "it is a compressed database; unpack it first";
        return Err(SessionReadError::Unrecognised(advice.to_owned()));
    }
    if start.starts_with(sqlite::MAGIC) {
        return detect_database(source);
    }
    if let Some(format) = find(&|entry| (entry.bytes)(&start, source)) {
        return Ok(format);
    }
    let has_more = start.len() as u64 == FIRST_LOOK;
    // The outlines are discarded: if these bytes are not enough, a later step repeats them.
    if let Some(format) = detect_first_lines(&start, &mut Vec::new()) {
        return Ok(format);
    }
    let start = if has_more { source.read_start(MAX_START)? } else { start };
    let has_more = start.len() as u64 == MAX_START;
    let start = without_mark(&start);
    if start.iter().all(u8::is_ascii_whitespace) {
        return Err(SessionReadError::Empty);
    }
    let unreadable = UNREADABLE.iter().find(|(beginning, _)| start.starts_with(beginning));
    if let Some((_, what)) = unreadable {
        return Err(SessionReadError::Unrecognised((*what).to_owned()));
    }
    let mut seen = Vec::new();
    if let Some(format) = detect_first_lines(start, &mut seen) {
        return Ok(format);
    }
    let mut document = JsonOutline::of_beginning(start);
    if let Some(format) = format_of(&document).or_else(|| detect_messages(&seen)) {
        return Ok(format);
    }
    if has_more {
        seen.clear();
        let format = detect_lines(source.open()?.take(MAX_SEARCHED), &mut seen)?;
        if let Some(format) = format.or_else(|| detect_messages(&seen)) {
            return Ok(format);
        }
        let changes = Cell::new(0);
        // A single bad character must not hide the format of a large file.
        let input = RepairingReader::new(source.open_unmarked()?.take(MAX_SEARCHED), &changes);
        document = JsonOutline::of_stream(BoundedStrings::new(input));
        if let Some(format) = format_of(&document) {
            return Ok(format);
        }
    }
    let shown = seen.first().unwrap_or(&document).describe();
    Err(SessionReadError::Unrecognised(shown))
}

/// Returns the first format whose entry satisfies the condition.
fn find(matches: &dyn Fn(&FormatEntry) -> bool) -> Option<SessionFormat> {
    SessionFormat::VARIANTS.iter().copied().find(|format| matches(format.entry()))
}

/// Returns the format of a value: the first that claims it, then the first that might.
fn format_of(value: &JsonOutline) -> Option<SessionFormat> {
    if !value.is_list {
        return find(&|entry| (entry.json)(value))
            .or_else(|| find(&|entry| (entry.weak_json)(value)));
    }
    let from_elements = value.elements.iter().find_map(format_of);
    // Only some formats occur as a list of whole records.
    from_elements
        .filter(|format| format.entry().in_lists)
        .or_else(|| find(&|entry| (entry.json_list)(&value.elements)))
}

/// Detects the format of a database from its tables. An unknown database counts as Hermes', whose
/// reader then reports what is wrong with it.
fn detect_database(source: &SessionSource) -> Result<SessionFormat, SessionReadError> {
    let Ok(path) = sqlite::file(source) else { return Ok(SessionFormat::HermesState) };
    sqlite::block_on(async {
        let mut database = sqlite::open(path, &mut ReadNotes::default()).await?;
        for &format in SessionFormat::VARIANTS {
            // Several agents have a table `messages`, so columns decide.
            let Some((table, needed)) = format.entry().table else { continue };
            let columns = TableColumns::of(&mut database, table).await.map_err(damaged_error)?;
            if needed.iter().all(|name| columns.has(name)) {
                return Ok(format);
            }
        }
        Ok(SessionFormat::HermesState)
    })?
}

/// Detects the format from one of the first lines. The outlines of undecided lines go to `seen`.
fn detect_first_lines(start: &[u8], seen: &mut Vec<JsonOutline>) -> Option<SessionFormat> {
    let lines = start.split(|byte| *byte == b'\n').filter(|line| !is_blank(line));
    lines.take(MAX_LINES).find_map(|line| detect_line(without_mark(line), seen))
}

/// Does the same for a stream, whose lines may be long.
fn detect_lines<'s>(
    input: impl Read + 's,
    seen: &mut Vec<JsonOutline>,
) -> Result<Option<SessionFormat>, SessionReadError> {
    let mut lines = JsonLines::new(Box::new(input));
    for _ in 0..MAX_LINES {
        let Some(line) = lines.next(&mut ReadNotes::default())? else { break };
        if let Some(format) = detect_line(line.bytes, seen) {
            return Ok(Some(format));
        }
    }
    Ok(None)
}

fn detect_line(line: &[u8], seen: &mut Vec<JsonOutline>) -> Option<SessionFormat> {
    // The line must be a complete value. The first line of a pretty-printed document is not.
    let outline = JsonOutline::of_line(line)?;
    let format = format_of(&outline);
    if format.is_none() {
        seen.push(outline);
    }
    format
}

/// Treats lines with messages as a chat. This comes last, because other formats have messages in
/// their lists too.
fn detect_messages(seen: &[JsonOutline]) -> Option<SessionFormat> {
    seen.iter().any(is_message).then_some(SessionFormat::Chat)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(text: impl Into<Vec<u8>>) -> Result<SessionFormat, SessionReadError> {
        detect(&SessionSource::bytes("some.json", text))
    }

    /// More than is looked at first.
    fn bulk() -> String {
        "lorem ipsum ".repeat(30_000)
    }

    #[test]
    fn what_tells_the_format_may_stand_behind_the_bulk() {
        let bulk = bulk();
        let tools = format!(r#"[{{"type":"function","function":{{"description":"{bulk}"}}}}]"#);
        let messages = r#"[{"role":"user","content":"hello"}]"#;
        for (text, expected) in [
            (
                format!(
                    r#"{{"session_id":"s","session_start":"2026-01-01","tools":{tools},"messages":{messages}}}"#
                ),
                SessionFormat::HermesSnapshot,
            ),
            (format!(r#"{{"tools":{tools},"messages":{messages}}}"#), SessionFormat::Chat),
            (
                format!(
                    r#"[{{"content":"{bulk}","role":"system"}},{{"role":"user","content":"a"}}]"#
                ),
                SessionFormat::Chat,
            ),
            (
                format!(
                    "{{\"content\":\"{bulk}\",\"role\":\"user\"}}\n{{\"role\":\"assistant\"}}\n"
                ),
                SessionFormat::Chat,
            ),
            (
                format!(r#"{{"steps":[{{"message":"{bulk}"}}],"schema_version":"ATIF-v1.5"}}"#),
                SessionFormat::Atif,
            ),
            (
                format!("{{\"message\":{{\"content\":\"{bulk}\"}},\"type\":\"user\"}}\n"),
                SessionFormat::ClaudeCode,
            ),
            (
                format!("{{\"tools\":{tools},\"role\":\"session_meta\"}}\n"),
                SessionFormat::HermesGateway,
            ),
            (
                format!(
                    r#"[{{"id":1,"args":{{"content":"{bulk}"}},"source":"user","action":"message"}}]"#
                ),
                SessionFormat::OpenHands,
            ),
            (
                format!(r#"{{"environment":"{bulk}","trajectory":[],"history":[]}}"#),
                SessionFormat::SweAgent,
            ),
        ] {
            let shown = &text[..40];
            assert_eq!(format(text.clone()).unwrap(), expected, "{shown}");
            // One value over many lines, and half a character in the middle of it.
            let text = text.replacen("lorem", r"\ud83d", 1).replace(",\"", ",\n\"");
            if !matches!(expected, SessionFormat::ClaudeCode | SessionFormat::HermesGateway)
                && !text.ends_with('\n')
            {
                assert_eq!(format(text).unwrap(), expected, "{shown}");
            }
        }
    }

    #[test]
    fn what_is_broken_in_the_first_line_hides_no_format() {
        for broken in [&br"\ud83d"[..], b"\xff", b"\0"] {
            let line = [
                &br#"{"type":"user","message":{"role":"user","content":""#[..],
                broken,
                br#""},"sessionId":"s"}"#,
            ];
            assert_eq!(format(line.concat()).unwrap(), SessionFormat::ClaudeCode);
        }
    }

    #[test]
    fn what_is_no_session_is_described_in_few_words() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for (text, words) in [
            (&b"{}"[..], "an empty object"),
            (b"[]", "a list without objects"),
            (b"[1, 2]", "a list without objects"),
            (b"[{}]", "a list of an empty object"),
            (nested(100).as_bytes(), "lists inside of a list"),
            (nested(100_000).as_bytes(), "lists inside of a list"),
            (b"just words", "no JSON object was found in it"),
            (b"{\"shopping\": [\"milk\"]}", "objects with the keys shopping"),
            (b"\x1f\x8b\x08\x00", "gunzip"),
            (b"\xff\xfe{\x00\"\x00", "UTF-16"),
            (b"{\x00\"\x00", "UTF-16"),
        ] {
            let error = format(text).unwrap_err().to_string();
            assert!(error.contains(words) && error.len() < 120, "{error}");
        }
    }

    #[test]
    fn a_large_file_of_something_else_is_none() {
        let bulk = bulk();
        let error =
            format(format!(r#"{{"words":"{bulk}","more":"{bulk}"}}"#)).unwrap_err().to_string();
        assert!(error.contains("objects with the keys words, more"), "{error}");
    }
}
