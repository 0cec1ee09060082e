//! Shortens huge strings in a JSON stream, so that a document of any size can be parsed while it is
//! read.

use std::io::{self, Read};

/// Maximum bytes of a string that pass through.
const MAX_STRING: usize = 256 * 1024;

/// Maximum bytes of a word that is not cut, because redaction cannot recognise half of a secret.
const MAX_WORD: usize = 2048;

/// Bytes of a string that are scanned at once.
const PIECE: usize = 4096;

/// Returns true if a string of this length, in bytes, may have been shortened.
pub(super) fn may_be_cut(length: usize) -> bool {
    (MAX_STRING..=MAX_STRING + MAX_WORD).contains(&length)
}

/// Passes JSON text through, limiting each string to [`MAX_STRING`] bytes plus one word.
///
/// Cuts happen only between characters and never inside an escape. Malformed text passes unchanged,
/// for the parser to reject.
pub(super) struct BoundedStrings<R> {
    inner: R,
    max_length: usize,
    in_string: bool,
    /// Bytes of the current string read so far.
    length: usize,
    /// Set while the rest of the current string is dropped.
    is_cutting: bool,
    escape: Escape,
    /// Set right after a `\u` escape, which may be the first half of a surrogate pair.
    after_unicode: bool,
}

/// Position inside an escape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Started,
    /// Number of hexadecimal digits still missing.
    Unicode(u8),
}

impl<R: Read> BoundedStrings<R> {
    pub(super) fn new(inner: R) -> Self {
        Self::with_limit(inner, MAX_STRING)
    }

    fn with_limit(inner: R, max_length: usize) -> Self {
        let (in_string, is_cutting, after_unicode) = (false, false, false);
        let escape = Escape::None;
        Self { inner, max_length, in_string, length: 0, is_cutting, escape, after_unicode }
    }

    /// Returns the number of bytes that can be taken at once, as if each had gone through
    /// [`Self::keeps`]. They change only the length of the string and all pass, unless it is being
    /// cut.
    fn plain_run(&mut self, bytes: &[u8]) -> usize {
        if !self.in_string {
            // Structural bytes always pass.
            self.is_cutting = false;
            return memchr::memchr(b'"', bytes).unwrap_or(bytes.len());
        }
        if self.escape != Escape::None {
            return 0;
        }
        let bytes = &bytes[..bytes.len().min(PIECE)];
        // If the cut cannot fall inside this piece, short escapes count as plain bytes.
        let is_far = self.is_cutting || self.length + bytes.len() <= self.max_length;
        let mut run = 0;
        loop {
            let Some(at) = memchr::memchr2(b'"', b'\\', &bytes[run..]) else {
                run = bytes.len();
                break;
            };
            run += at;
            match bytes[run..] {
                // A `\u` escape is longer and may be half of a pair, so it takes the slow path.
                [b'\\', escaped, ..] if is_far && escaped != b'u' => run += 2,
                _ => break,
            }
        }
        if !self.is_cutting {
            // The byte at which a cut may fall goes through `keeps`, which looks for the end of a
            // word.
            run = run.min(self.max_length.saturating_sub(self.length));
        }
        if run > 0 {
            self.length += run;
            self.after_unicode = false;
        }
        run
    }

    /// Returns true if this byte passes.
    fn keeps(&mut self, byte: u8) -> bool {
        if !self.in_string {
            self.in_string = byte == b'"';
            (self.length, self.is_cutting, self.after_unicode) = (0, false, false);
            return true;
        }
        self.length += 1;
        match self.escape {
            Escape::Started if byte == b'u' => self.escape = Escape::Unicode(4),
            Escape::Started | Escape::Unicode(1) => {
                self.after_unicode = self.escape != Escape::Started;
                self.escape = Escape::None;
            }
            // At least 1 is left: the last digit ended the escape above.
            Escape::Unicode(left) => self.escape = Escape::Unicode(left - 1),
            Escape::None if byte == b'"' => {
                self.in_string = false;
                return true;
            }
            Escape::None => {
                // Never cut inside a UTF-8 sequence or between the two halves of a surrogate pair.
                let begins_character = !(0x80..0xc0).contains(&byte);
                let may_cut = begins_character && (byte != b'\\' || !self.after_unicode);
                // A backslash ends a word too, because escapes such as `\n` are white space.
                let ends_word = matches!(byte, b' ' | b'\\');
                let longest = if ends_word { self.max_length } else { self.max_length + MAX_WORD };
                self.is_cutting |= self.length > longest && may_cut;
                if byte == b'\\' {
                    self.escape = Escape::Started;
                } else {
                    self.after_unicode = false;
                }
            }
        }
        !self.is_cutting
    }
}

impl<R: Read> Read for BoundedStrings<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.inner.read(buffer)?;
            if count == 0 {
                return Ok(0);
            }
            let (mut at, mut kept) = (0, 0);
            while at < count {
                let (run, is_kept) = match self.plain_run(&buffer[at..count]) {
                    // The slow path handles the bytes that can change the state.
                    0 => (1, self.keeps(buffer[at])),
                    run => (run, !self.is_cutting),
                };
                if is_kept {
                    // Compacts in place, so no second buffer is needed.
                    buffer.copy_within(at..at + run, kept);
                    kept += run;
                }
                at += run;
            }
            // Returning 0 would signal end of file, so an all-dropped buffer is read again.
            if kept > 0 {
                return Ok(kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filtered(json: &str, longest: usize) -> String {
        let mut text = String::new();
        let mut filter = BoundedStrings::with_limit(json.as_bytes(), longest);
        filter.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn short_strings_pass_and_long_ones_end_early() {
        let json = r#"{"a":"b\"c\\","d":[1,"😀\n"]}"#;
        assert_eq!(filtered(json, 20), json);
        let values: Vec<String> =
            serde_json::from_str(&filtered(r#"["ab\nab\nab","x"]"#, 6)).unwrap();
        assert_eq!(values, ["ab\nab", "x"]);
    }

    proptest! {
        #[test]
        fn whatever_is_filtered_still_parses(
            text in "[a-f0-9é😀\"\\\\\n\u{1}gu]{1,60}",
            longest in 0..40_usize,
        ) {
            let json = serde_json::to_string(&[text.as_str(), "end"]).unwrap();
            // As writers do that escape everything outside of ASCII.
            let ascii = json.replace('é', "\\u00e9").replace('😀', "\\ud83d\\ude00");
            for json in [json, ascii] {
                let values: Vec<String> =
                    serde_json::from_str(&filtered(&json, longest)).unwrap();
                prop_assert!(text.starts_with(&values[0]));
                prop_assert!("end".starts_with(&values[1]));
                prop_assert!(values[0].len() >= text.len().min(longest / 6));
            }
        }

        #[test]
        fn runs_are_taken_as_their_bytes_are(
            json in "[a é😀\"\\\\u0,\\[\\]]{0,200}",
            longest in 0..40_usize,
        ) {
            let mut filter = BoundedStrings::with_limit(io::empty(), longest);
            let kept = json.bytes().filter(|byte| filter.keeps(*byte)).collect();
            prop_assert_eq!(filtered(&json, longest), String::from_utf8(kept).unwrap());
        }
    }
}
