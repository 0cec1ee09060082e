//! Reads JSON lines one by one. Lines that cannot be parsed are skipped and counted.

use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::slice;

use serde::Deserialize;

use super::bounded::BoundedStrings;
use super::feed::ReadNotes;
use super::repaired::repair;
use selftest_text::file::open_regular;

/// Maximum bytes of a line. In longer lines, long strings are shortened; lines that still exceed
/// the limit are skipped. Memory must not grow with an untrusted file.
const MAX_LINE: usize = 16 * 1024 * 1024;

const CHUNK: usize = 256 * 1024;

/// The UTF-8 byte order mark.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The lines of a stream, or a list of files with one record each.
pub(super) struct JsonLines<'s> {
    input: LineInput<'s>,
    /// A line that spans several fills of the stream's buffer, or the content of a file.
    line: Vec<u8>,
    /// Bytes of the buffer used by the previous line.
    consumed: usize,
    number: u64,
}

/// Location of a line's bytes.
enum LineLocation {
    /// Number of leading bytes of the stream's buffer, excluding the line break.
    Buffer(usize),
    /// In [`JsonLines::line`].
    Own { unended: bool },
    /// Skipped, because the line is too long or its file is gone.
    Skipped,
}

enum LineInput<'s> {
    Stream(BufReader<Box<dyn Read + 's>>),
    Files(slice::Iter<'s, PathBuf>),
}

/// Strips a byte order mark. Any line may start with one, because files are sometimes concatenated.
pub(super) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// One line without its line break.
pub(super) struct JsonLine<'a> {
    /// Line number, from 1.
    pub(super) number: u64,
    pub(super) bytes: &'a [u8],
    /// Set for a last line without a line break. It is complete or truncated.
    is_unterminated: bool,
}

impl<'s> JsonLines<'s> {
    pub(super) fn new(input: Box<dyn Read + 's>) -> Self {
        let input = LineInput::Stream(BufReader::with_capacity(CHUNK, input));
        Self { input, line: Vec::new(), consumed: 0, number: 0 }
    }

    /// Reads each file as one line, even if it contains line breaks.
    pub(super) fn of_files(files: &'s [PathBuf]) -> Self {
        Self { input: LineInput::Files(files.iter()), line: Vec::new(), consumed: 0, number: 0 }
    }

    /// Returns the next line that is not blank. Lines that are too long and files that no longer
    /// exist are skipped and counted.
    pub(super) fn next(&mut self, notes: &mut ReadNotes) -> io::Result<Option<JsonLine<'_>>> {
        loop {
            let Some(place) = self.find()? else { return Ok(None) };
            // Blank and skipped lines count too, so that numbers agree with those of an editor.
            self.number += 1;
            let (is_blank, unended) = match place {
                LineLocation::Skipped => {
                    notes.bad_records += 1;
                    continue;
                }
                LineLocation::Buffer(length) => (is_blank(&self.buffer()[..length]), false),
                LineLocation::Own { unended } => (is_blank(&self.line), unended),
            };
            if !is_blank {
                let bytes = match place {
                    LineLocation::Buffer(length) => &self.buffer()[..length],
                    _ => &self.line,
                };
                let bytes = without_mark(bytes);
                return Ok(Some(JsonLine { number: self.number, bytes, is_unterminated: unended }));
            }
        }
    }

    fn buffer(&self) -> &[u8] {
        match &self.input {
            LineInput::Stream(input) => input.buffer(),
            LineInput::Files(_) => &[],
        }
    }

    /// Finds the next line. Most lines lie in the buffer completely and are not copied.
    fn find(&mut self) -> io::Result<Option<LineLocation>> {
        let (taken, line) = (std::mem::take(&mut self.consumed), &mut self.line);
        line.clear();
        let input = match &mut self.input {
            LineInput::Stream(input) => input,
            LineInput::Files(files) => {
                let Some(path) = files.next() else { return Ok(None) };
                // A single unreadable file must not end the session.
                let is_whole = read_record(path, line).unwrap_or(false);
                let place = if is_whole {
                    LineLocation::Own { unended: false }
                } else {
                    LineLocation::Skipped
                };
                return Ok(Some(place));
            }
        };
        // The previous line borrowed the buffer, so it can only be consumed now.
        input.consume(taken);
        loop {
            let buffer = match input.fill_buf() {
                // `fill_buf` does not retry by itself.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            let end = memchr::memchr(b'\n', buffer);
            let (part, length) = (&buffer[..end.unwrap_or(buffer.len())], buffer.len());
            // The whole line is in the buffer and can be borrowed.
            if line.is_empty()
                && let Some(end) = end
            {
                self.consumed = end + 1;
                return Ok(Some(LineLocation::Buffer(end)));
            }
            if length == 0 {
                let is_end = line.is_empty();
                return Ok((!is_end).then_some(LineLocation::Own { unended: true }));
            }
            // The line continues in the next fill of the buffer, which overwrites this one.
            line.extend_from_slice(part);
            let read = part.len() + usize::from(end.is_some());
            input.consume(read);
            if line.len() > MAX_LINE {
                // The part that is read already and the rest are one stream, so that shortening
                // sees the line as a whole.
                let mut rest = RestOfLine { input, is_ended: end.is_some() };
                let long = std::mem::take(line);
                let is_whole = read_shortened(long.as_slice().chain(&mut rest), line)?;
                if is_whole {
                    return Ok(Some(LineLocation::Own { unended: !rest.is_ended }));
                }
                // Skip to the next line break.
                io::copy(&mut rest, &mut io::sink())?;
                return Ok(Some(LineLocation::Skipped));
            }
            if end.is_some() {
                return Ok(Some(LineLocation::Own { unended: false }));
            }
        }
    }
}

/// Reads a file with one record. Returns true if it fits into the limit.
fn read_record(path: &Path, into: &mut Vec<u8>) -> io::Result<bool> {
    let file = open_regular(path)?;
    if file.metadata()?.len() > MAX_LINE as u64 {
        return read_shortened(file, into);
    }
    // The file may have grown since.
    file.take(MAX_LINE as u64 + 1).read_to_end(into)?;
    Ok(into.len() <= MAX_LINE)
}

/// Reads JSON and shortens long strings, such as images. Returns true if the result fits into the
/// limit.
fn read_shortened(json: impl Read, into: &mut Vec<u8>) -> io::Result<bool> {
    BoundedStrings::new(json).take(MAX_LINE as u64 + 1).read_to_end(into)?;
    Ok(into.len() <= MAX_LINE)
}

/// The rest of a line that is partly read.
struct RestOfLine<'i, R> {
    input: &'i mut BufReader<R>,
    /// Set once the line break was read.
    is_ended: bool,
}

impl<R: Read> Read for RestOfLine<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_ended {
            return Ok(0);
        }
        let read = self.input.fill_buf()?;
        let read = &read[..read.len().min(buffer.len())];
        let end = memchr::memchr(b'\n', read);
        let count = end.unwrap_or(read.len());
        buffer[..count].copy_from_slice(&read[..count]);
        self.is_ended = end.is_some();
        self.input.consume(count + usize::from(end.is_some()));
        Ok(count)
    }
}

pub(super) fn is_blank(line: &[u8]) -> bool {
    without_mark(line).iter().all(u8::is_ascii_whitespace)
}

impl<'l> JsonLine<'l> {
    /// Returns true if a line break follows. Otherwise, the line may be truncated.
    pub(super) fn is_terminated(&self) -> bool {
        !self.is_unterminated
    }

    /// Parses the line as a record. Returns `None` if it is skipped, which is noted. `scratch`
    /// stores the repaired text of a damaged line.
    pub(super) fn parse<'a, T: Deserialize<'a>>(
        &self,
        scratch: &'a mut String,
        notes: &mut ReadNotes,
    ) -> Option<T>
    where
        'l: 'a,
    {
        // Validate UTF-8 once for the whole line; the parser would do it string by string.
        if let Ok(text) = simdutf8::basic::from_utf8(self.bytes)
            && let Ok(record) = serde_json::from_str(text)
        {
            return Some(record);
        }
        if let Some(repaired) = repair(self.bytes) {
            *scratch = repaired;
            if let Ok(record) = serde_json::from_str(scratch) {
                notes.repaired_records += 1;
                return Some(record);
            }
        }
        self.note_skipped(notes);
        None
    }

    /// Records that the line cannot be used. An unterminated last line counts as truncation.
    pub(super) fn note_skipped(&self, notes: &mut ReadNotes) {
        // Agents append a line and its break in one write, so that a line without a break is one
        // that was interrupted.
        if self.is_unterminated {
            notes.torn = Some(format!("line {}", self.number));
        } else {
            notes.bad_records += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> (Vec<String>, ReadNotes) {
        let mut notes = ReadNotes::default();
        let mut lines = JsonLines::new(Box::new(bytes));
        let mut found = Vec::new();
        while let Some(line) = lines.next(&mut notes).unwrap() {
            found.push(format!("{}:{}", line.number, String::from_utf8_lossy(line.bytes)));
        }
        (found, notes)
    }

    #[test]
    fn lines_are_split_and_blank_ones_skipped() {
        assert_eq!(all(b"a\n\n b\r\nc").0, ["1:a", "3: b\r", "4:c"]);
        assert_eq!(all(b"a\n").0, ["1:a"]);
        assert!(all(b"").0.is_empty());
        assert_eq!(all(b"\xef\xbb\xbfa\n\xef\xbb\xbf\nb").0, ["1:a", "3:b"]);
    }

    #[test]
    fn of_a_line_over_the_limit_the_long_strings_are_shortened() {
        let image = "x".repeat(MAX_LINE);
        for (json, is_kept) in [
            (format!(r#"{{"image":"{image}","said":"it is a cat"}}"#), true),
            (format!(r#"{{"said":"it is a cat","image":"{image}"}}"#), true),
            (format!(r#"{{"numbers":[{}1]}}"#, "1,".repeat(MAX_LINE / 2)), false),
        ] {
            for ending in ["", "\n", "\n{\"next\":1}\n"] {
                let (lines, notes) = all(format!("{{}}\n{json}{ending}").as_bytes());
                assert_eq!(lines.len(), 1 + usize::from(is_kept) + usize::from(ending.len() > 1));
                assert_eq!(notes.bad_records, u64::from(!is_kept));
                if is_kept {
                    let record = lines[1].strip_prefix("2:").unwrap();
                    let record: serde_json::Value = serde_json::from_str(record).unwrap();
                    assert_eq!(record["said"], "it is a cat");
                    assert!(record["image"].as_str().unwrap().len() < 1_000_000);
                }
            }
        }
    }

    #[test]
    fn a_line_longer_than_a_chunk_is_whole_and_one_over_the_limit_is_skipped() {
        let long = "x".repeat(3 * CHUNK);
        let (lines, notes) = all(format!("a\n{long}\nb").as_bytes());
        assert_eq!(lines[1].len(), 3 * CHUNK + 2);
        assert_eq!(notes, ReadNotes::default());

        let huge = "x".repeat(MAX_LINE + 2 * CHUNK);
        let (lines, notes) = all(format!("a\n{huge}\nb\n{huge}").as_bytes());
        assert_eq!(lines, ["1:a", "3:b"]);
        assert_eq!(notes.bad_records, 2);
    }

    #[test]
    fn a_bad_last_line_is_a_tear_and_any_other_is_counted() {
        let mut notes = ReadNotes::default();
        let mut lines = JsonLines::new(Box::new(&b"{\"a\":\n1\n{\"a\": 1"[..]));
        let mut values = Vec::new();
        while let Some(line) = lines.next(&mut notes.clone()).unwrap() {
            values.extend(line.parse::<u64>(&mut String::new(), &mut notes));
        }
        assert_eq!(values, [1]);
        assert_eq!(notes.bad_records, 1);
        assert_eq!(notes.torn.as_deref(), Some("line 3"));
    }
}
