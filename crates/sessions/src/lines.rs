//! JSON lines: split on line breaks, parsed one by one, a bad one skipped and counted.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;

use memchr::memchr;
use serde::Deserialize;

use super::buffer::Buffer;
use super::feed::Notes;
use super::repaired::repair;

/// A longer line is skipped: memory must not grow with a foreign file.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

const CHUNK: usize = 256 * 1024;

/// The byte order mark of UTF-8.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// The lines of a stream.
pub(super) struct Lines<'s> {
    input: Box<dyn Read + 's>,
    buffer: Bytes<'s>,
    /// The unread part of the buffer.
    start: usize,
    end: usize,
    number: u64,
    at_end: bool,
}

/// Without a byte order mark, which every file may begin with, and every line of files that were
/// put together.
pub(super) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK).unwrap_or(bytes)
}

/// One line without its line break.
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: u64,
    pub(super) bytes: &'a [u8],
    /// The last one, without a line break: complete, or torn.
    unended: bool,
}

impl<'s> Lines<'s> {
    pub(super) fn new(input: Box<dyn Read + 's>) -> Self {
        let buffer = Bytes::Own(Buffer::new());
        Self { input, buffer, start: 0, end: 0, number: 0, at_end: false }
    }

    /// The lines of bytes in memory, which are not copied.
    pub(super) fn of_bytes(bytes: &'s [u8]) -> Self {
        let (input, buffer, end) = (Box::new(io::empty()), Bytes::Given(bytes), bytes.len());
        Self { input, buffer, start: 0, end, number: 0, at_end: true }
    }

    /// The next line that is not blank. One that is too long is skipped and counted.
    pub(super) fn next(&mut self, notes: &mut Notes) -> io::Result<Option<Line<'_>>> {
        loop {
            let Some((from, to, unended)) = self.next_range(notes)? else {
                return Ok(None);
            };
            let from = to - without_mark(&self.buffer[from..to]).len();
            if !self.buffer[from..to].iter().all(u8::is_ascii_whitespace) {
                let bytes = &self.buffer[from..to];
                return Ok(Some(Line { number: self.number, bytes, unended }));
            }
        }
    }

    fn next_range(&mut self, notes: &mut Notes) -> io::Result<Option<(usize, usize, bool)>> {
        let mut searched = self.start;
        let mut skipping = false;
        loop {
            if let Some(length) = memchr(b'\n', &self.buffer[searched..self.end]) {
                let (from, to) = (self.start, searched + length);
                self.start = to + 1;
                self.number += 1;
                if skipping || to - from > LONGEST_LINE {
                    skipping = false;
                    notes.bad_records += 1;
                    searched = self.start;
                    continue;
                }
                return Ok(Some((from, to, false)));
            }
            if self.at_end {
                let (from, to) = (self.start, self.end);
                self.start = self.end;
                if skipping || to - from > LONGEST_LINE {
                    notes.bad_records += 1;
                    return Ok(None);
                }
                self.number += u64::from(from < to);
                return Ok((from < to).then_some((from, to, true)));
            }
            if skipping || self.end - self.start > LONGEST_LINE {
                skipping = true;
                self.start = self.end;
            }
            searched = self.end - self.start;
            self.fill()?;
        }
    }

    /// Moves the unread part to the front and reads more behind it.
    fn fill(&mut self) -> io::Result<()> {
        let Bytes::Own(buffer) = &mut self.buffer else {
            self.at_end = true;
            return Ok(());
        };
        buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let room = self.end..self.end + CHUNK;
        if room.end > buffer.len() {
            buffer.resize(room.end.next_power_of_two(), 0);
        }
        let count = loop {
            match self.input.read(&mut buffer[room.clone()]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += count;
        self.at_end = count == 0;
        Ok(())
    }
}

/// Bytes of lines.
enum Bytes<'s> {
    Own(Buffer),
    Given(&'s [u8]),
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Own(buffer) => buffer,
            Bytes::Given(bytes) => bytes,
        }
    }
}

impl<'l> Line<'l> {
    /// A file that holds one record and no more. One that is too long, or gone by now, is skipped
    /// and counted.
    pub(super) fn of_file(
        path: &Path,
        number: u64,
        buffer: &'l mut Vec<u8>,
        notes: &mut Notes,
    ) -> Option<Self> {
        buffer.clear();
        let read = File::open(path)
            .and_then(|file| file.take(LONGEST_LINE as u64 + 1).read_to_end(buffer));
        if read.is_err() || buffer.len() > LONGEST_LINE {
            notes.bad_records += 1;
            return None;
        }
        Some(Self { number, bytes: without_mark(buffer), unended: false })
    }

    /// The line as a record; `None` when it is skipped, which is noted. `scratch` holds the
    /// repaired text of a line that needs it.
    pub(super) fn parse<'a, T: Deserialize<'a>>(
        &self,
        scratch: &'a mut Vec<u8>,
        notes: &mut Notes,
    ) -> Option<T>
    where
        'l: 'a,
    {
        // Checked once and as a whole: the parser would check each string by itself.
        if let Ok(text) = simdutf8::basic::from_utf8(self.bytes)
            && let Ok(record) = serde_json::from_str(text)
        {
            return Some(record);
        }
        if let Some(repaired) = repair(self.bytes) {
            *scratch = repaired;
            if let Ok(record) = serde_json::from_slice(scratch) {
                notes.repaired_records += 1;
                return Some(record);
            }
        }
        self.skip(notes);
        None
    }

    /// Notes that the line cannot be used: the last one is a tear.
    pub(super) fn skip(&self, notes: &mut Notes) {
        if self.unended {
            notes.torn = Some(format!("line {}", self.number));
        } else {
            notes.bad_records += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> (Vec<String>, Notes) {
        let mut notes = Notes::default();
        let mut lines = Lines::new(Box::new(bytes));
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
    fn a_line_longer_than_a_chunk_is_whole_and_one_over_the_limit_is_skipped() {
        let long = "x".repeat(3 * CHUNK);
        let (lines, notes) = all(format!("a\n{long}\nb").as_bytes());
        assert_eq!(lines[1].len(), 3 * CHUNK + 2);
        assert_eq!(notes, Notes::default());

        let huge = "x".repeat(LONGEST_LINE + 2 * CHUNK);
        let (lines, notes) = all(format!("a\n{huge}\nb\n{huge}").as_bytes());
        assert_eq!(lines, ["1:a", "3:b"]);
        assert_eq!(notes.bad_records, 2);
    }

    #[test]
    fn a_bad_last_line_is_a_tear_and_any_other_is_counted() {
        let mut notes = Notes::default();
        let mut lines = Lines::new(Box::new(&b"{\"a\":\n1\n{\"a\": 1"[..]));
        let mut values = Vec::new();
        while let Some(line) = lines.next(&mut notes.clone()).unwrap() {
            values.extend(line.parse::<u64>(&mut Vec::new(), &mut notes));
        }
        assert_eq!(values, [1]);
        assert_eq!(notes.bad_records, 1);
        assert_eq!(notes.torn.as_deref(), Some("line 3"));
    }
}
