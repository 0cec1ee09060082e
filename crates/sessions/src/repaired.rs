//! Repairs JSON text that strict parsers reject: invalid UTF-8, lone surrogates and raw control
//! characters in strings. It works chunk by chunk, so that a file of any size can be repaired while
//! it is read.

use std::cell::Cell;
use std::io::{self, Read};

use memchr::memmem;

const CHUNK: usize = 64 * 1024;

/// U+FFFD, the replacement for unreadable characters.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Length of two `\uXXXX` escapes, which must be seen together.
const PAIR: usize = 12;

/// Returns the JSON text with invalid UTF-8 and lone surrogate escapes replaced by U+FFFD. Raw line
/// breaks and tabs in strings become escapes, other control characters spaces. Returns `None` if
/// the text needs no repair.
pub(super) fn repair(bytes: &[u8]) -> Option<String> {
    let mut repaired = Vec::with_capacity(bytes.len());
    let mut repair = RepairState::default();
    repair.push(bytes, true, &mut repaired);
    (repair.changes > 0).then(|| String::from_utf8(repaired).ok()).flatten()
}

/// Returns true if the text may need repair. This is much cheaper than [`repair`].
pub(super) fn may_need_repair(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_err()
        // Includes line breaks between values, which need no repair: a false alarm only costs time.
        || bytes.iter().any(|byte| *byte < b' ')
        // Surrogates are U+D800 to U+DFFF, so that every one starts this way.
        || memmem::find(bytes, br"\ud").is_some()
        || memmem::find(bytes, br"\uD").is_some()
}

/// State of the repair at the current position.
#[derive(Default)]
struct RepairState {
    in_string: bool,
    changes: u64,
}

impl RepairState {
    /// Repairs as much as possible without seeing what follows, or everything if these are the
    /// `last` bytes. Returns the number of bytes used: all but a few.
    fn push(&mut self, bytes: &[u8], last: bool, repaired: &mut Vec<u8>) -> usize {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            // Copying plain ASCII in runs is the fast path.
            let is_plain = |byte: &u8| matches!(byte, b' '..=0x7f) && !matches!(byte, b'"' | b'\\');
            let plain = rest.iter().take_while(|byte| is_plain(byte)).count();
            if plain > 0 {
                repaired.extend_from_slice(&rest[..plain]);
                at += plain;
                continue;
            }
            let done = match rest[0] {
                b'\\' if self.in_string => self.escape(rest, last, repaired),
                byte @ 0x80.. => self.character(byte, rest, last, repaired),
                byte => {
                    self.byte(byte, repaired);
                    Some(1)
                }
            };
            match done {
                Some(done) => at += done,
                None => break,
            }
        }
        at
    }

    fn byte(&mut self, byte: u8, repaired: &mut Vec<u8>) {
        // Quotes after a backslash do not get here: `escape` takes both bytes.
        self.in_string ^= byte == b'"';
        // Between strings, line breaks and tabs are valid white space.
        if !self.in_string || byte >= b' ' {
            repaired.push(byte);
            return;
        }
        self.changes += 1;
        repaired.extend_from_slice(match byte {
            b'\n' => br"\n",
            b'\r' => br"\r",
            b'\t' => br"\t",
            _ => b" ",
        });
    }

    /// Repairs an escape in a string. Returns its length; `None` if more bytes are needed.
    fn escape(&mut self, rest: &[u8], last: bool, repaired: &mut Vec<u8>) -> Option<usize> {
        // A surrogate pair may be split between two chunks.
        if rest.len() < PAIR && !last {
            return None;
        }
        let length = match rest.get(1) {
            Some(b'"' | b'\\') => 2,
            // Take only the backslash; the next byte is handled separately.
            _ => 1,
        };
        let length = match unicode_escape(rest) {
            // A high surrogate is valid only if a low one follows.
            Some(0xd800..0xdc00) => match rest.get(6..).and_then(unicode_escape) {
                Some(0xdc00..0xe000) => PAIR,
                _ => 0,
            },
            // A low surrogate alone; with a high one before it, the pair was taken as a whole.
            Some(0xdc00..0xe000) => 0,
            Some(_) => 6,
            None => length,
        };
        if length == 0 {
            self.changes += 1;
            repaired.extend_from_slice(REPLACEMENT);
            return Some(6);
        }
        repaired.extend_from_slice(&rest[..length]);
        Some(length)
    }

    /// Repairs a non-ASCII character. Returns its length; `None` if more bytes are needed.
    fn character(
        &mut self,
        byte: u8,
        rest: &[u8],
        last: bool,
        repaired: &mut Vec<u8>,
    ) -> Option<usize> {
        // Only lead bytes that occur in valid UTF-8: C0, C1 and F5 to FF never do.
        let width = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        if rest.len() < width && !last {
            return None;
        }
        let bytes = &rest[..width.min(rest.len())];
        let chunk = bytes.utf8_chunks().next()?;
        if chunk.invalid().is_empty() {
            repaired.extend_from_slice(bytes);
            return Some(bytes.len());
        }
        self.changes += 1;
        repaired.extend_from_slice(REPLACEMENT);
        // Only the invalid bytes; the next byte may start a valid character.
        Some(chunk.invalid().len())
    }
}

/// Parses the code unit of a `\uXXXX` at the start.
fn unicode_escape(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.get(..6)?.strip_prefix(br"\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Repairs JSON while it is read.
pub(super) struct RepairingReader<'c, R> {
    input: R,
    at_end: bool,
    repair: RepairState,
    /// Bytes that were read but not repaired yet.
    unread: Vec<u8>,
    ready: Vec<u8>,
    /// Number of bytes of `ready` already returned.
    returned: usize,
    changes: &'c Cell<u64>,
}

impl<'c, R: Read> RepairingReader<'c, R> {
    /// Wraps `input`, which must be at its start; `changes` counts the repairs.
    pub(super) fn new(input: R, changes: &'c Cell<u64>) -> Self {
        let (repair, unread, ready) = (RepairState::default(), Vec::new(), Vec::new());
        Self { input, at_end: false, repair, unread, ready, returned: 0, changes }
    }

    fn fill(&mut self) -> io::Result<()> {
        let kept = self.unread.len();
        self.unread.resize(kept + CHUNK, 0);
        // The error is returned only after the buffer is truncated again, so that no zeros remain.
        let count = self.input.read(&mut self.unread[kept..]);
        self.unread.truncate(kept + count.as_ref().map_or(0, |count| *count));
        self.at_end = count? == 0;
        self.ready.clear();
        self.returned = 0;
        let done = self.repair.push(&self.unread, self.at_end, &mut self.ready);
        self.unread.drain(..done);
        self.changes.set(self.repair.changes);
        Ok(())
    }
}

impl<R: Read> Read for RepairingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.returned == self.ready.len() {
            if self.at_end {
                return Ok(0);
            }
            self.fill()?;
        }
        let rest = &self.ready[self.returned..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.returned += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lone_surrogates_and_broken_utf8_are_repaired() {
        let parsed =
            |bytes: &[u8]| -> String { serde_json::from_str(&repair(bytes).unwrap()).unwrap() };
        assert_eq!(parsed(br#""a\ud83d b""#), "a\u{fffd} b");
        assert_eq!(parsed(br#""\udc00\ud83d\ude00\\ud83d""#), "\u{fffd}\u{1f600}\\ud83d");
        assert_eq!(parsed(b"\"\xff\""), "\u{fffd}");
        assert_eq!(parsed(b"\"\xe2\x82\""), "\u{fffd}");
        assert_eq!(parsed(b"\"\xe2\x82\xac\xe2\""), "€\u{fffd}");
        assert_eq!(repair(br#""\ud83d\ude00\\""#), None);
        assert_eq!(repair(br#""\"#), None);
    }

    #[test]
    fn raw_control_characters_in_strings_are_repaired() {
        let parsed = |bytes: &[u8]| -> Vec<String> {
            serde_json::from_str(&repair(bytes).unwrap()).unwrap()
        };
        assert_eq!(parsed(b"[\n\t\"a\0b\\\"\x01\",\r\n\"c\td\ne\rf\"]"), ["a b\" ", "c\td\ne\rf"]);
        assert_eq!(repair(b"{\r\n\t\"a\": 1\r\n}"), None);
    }

    proptest! {
        #[test]
        fn however_it_comes_in_pieces_it_is_repaired_the_same(
            bytes in prop::collection::vec(prop::sample::select(
                &b"\"\"\\\\ud83dude00\xe2\x82\xac\xf0\x9f\xff\0\n a"[..]), 0..60),
            sizes in prop::collection::vec(1..7_usize, 1..9),
        ) {
            /// Hands on a few bytes at a time.
            struct Pieces<'a>(&'a [u8], std::iter::Cycle<std::vec::IntoIter<usize>>);

            impl Read for Pieces<'_> {
                fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                    let count = self.1.next().unwrap_or(1).min(buffer.len());
                    self.0.read(&mut buffer[..count])
                }
            }

            let whole = repair(&bytes);
            if whole.is_some() {
                prop_assert!(may_need_repair(&bytes));
            }
            let changes = Cell::new(0);
            let pieces = Pieces(&bytes, sizes.into_iter().cycle());
            let mut repaired = Vec::new();
            RepairingReader::new(pieces, &changes).read_to_end(&mut repaired).unwrap();
            prop_assert_eq!(changes.get() > 0, whole.is_some());
            prop_assert_eq!(&repaired[..], whole.as_ref().map_or(&bytes[..], String::as_bytes));
            prop_assert!(std::str::from_utf8(&repaired).is_ok());
        }
    }
}
