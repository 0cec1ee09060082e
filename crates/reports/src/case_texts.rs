//! The texts of finished cases, from which the JSON report is assembled. During a run they are
//! appended to an unlinked file, so that a report of ten thousand cases is neither kept in memory
//! nor regenerated each time. Independent of what the texts contain.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use super::state::SEPARATOR;

/// Maximum number of bytes buffered before they are written in plan order, which keeps cases that
/// finish around the same time contiguous.
const MAX_HELD: usize = 1 << 20;

/// The texts of cases by position.
#[derive(Debug, Default)]
pub(super) struct CaseTexts {
    places: BTreeMap<usize, TextLocation>,
    /// Size of the texts in memory, in bytes.
    held: usize,
    file: Option<File>,
    /// Length of the file, in bytes.
    length: u64,
    /// Set when the file cannot be written to any more.
    has_failed: bool,
}

/// Location of a text.
#[derive(Debug)]
enum TextLocation {
    InMemory(String),
    /// In the file, after its separator.
    InFile {
        at: u64,
        length: u64,
    },
}

impl CaseTexts {
    /// Stores a text, replacing an earlier one of the same case. `file` opens the file, at most
    /// once and only if needed; if it fails, all texts stay in memory.
    pub(super) fn store(
        &mut self,
        position: usize,
        text: String,
        file: impl FnOnce() -> io::Result<File>,
    ) {
        self.held += text.len();
        if let Some(TextLocation::InMemory(former)) =
            self.places.insert(position, TextLocation::InMemory(text))
        {
            self.held -= former.len();
        }
        if self.held >= MAX_HELD && !self.has_failed {
            self.has_failed = self.append(file).is_err();
        }
    }

    /// Appends the texts in memory to the file. On failure they stay in memory.
    fn append(&mut self, open: impl FnOnce() -> io::Result<File>) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open()?),
        };
        let mut bytes = Vec::with_capacity(self.held + self.held / 8);
        for place in self.places.values() {
            if let TextLocation::InMemory(text) = place {
                bytes.extend_from_slice(SEPARATOR.as_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
        }
        // `copy` moves the position of the same file.
        file.seek(SeekFrom::Start(self.length))?;
        file.write_all(&bytes)?;
        for place in self.places.values_mut() {
            if let TextLocation::InMemory(text) = place {
                let length = (SEPARATOR.len() + text.len()) as u64;
                *place = TextLocation::InFile { at: self.length, length };
                self.length += length;
            }
        }
        self.held = 0;
        Ok(())
    }

    /// Writes all texts in order, with separators.
    pub(super) fn write_to(&self, out: &mut dyn io::Write) -> io::Result<()> {
        // The first text has no comma before it.
        let mut left_out = 1;
        // Contiguous ranges of the file are copied as one.
        let mut piece = 0..0;
        for place in self.places.values() {
            match place {
                TextLocation::InFile { at, length } if *at == piece.end && left_out == 0 => {
                    piece.end += length;
                }
                TextLocation::InFile { at, length } => {
                    self.copy(piece, out)?;
                    // Skip the comma before the first text.
                    piece = at + left_out..at + length;
                }
                TextLocation::InMemory(text) => {
                    self.copy(std::mem::take(&mut piece), out)?;
                    let separator = if left_out > 0 { &SEPARATOR[1..] } else { SEPARATOR };
                    out.write_all(&[separator.as_bytes(), text.as_bytes()].concat())?;
                }
            }
            left_out = 0;
        }
        self.copy(piece, out)
    }

    /// Copies a range of the file.
    fn copy(&self, piece: std::ops::Range<u64>, out: &mut dyn io::Write) -> io::Result<()> {
        let (Some(mut file), length) = (self.file.as_ref(), piece.end - piece.start) else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(piece.start))?;
        let copied = io::copy(&mut file.take(length), out)?;
        // A short copy would otherwise leave an invalid report unnoticed.
        if copied == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(texts: &CaseTexts) -> String {
        let mut out = tempfile::tempfile().unwrap();
        texts.write_to(&mut out).unwrap();
        let mut text = String::new();
        out.rewind().unwrap();
        out.read_to_string(&mut text).unwrap();
        text
    }

    fn expected(texts: &BTreeMap<usize, String>) -> String {
        let joined = texts.values().map(String::as_str).collect::<Vec<_>>().join(SEPARATOR);
        if texts.is_empty() { String::new() } else { format!("{}{joined}", &SEPARATOR[1..]) }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn texts_come_in_the_order_of_the_plan_whatever_was_kept_when(
            kept in proptest::collection::vec((0_usize..12, 0_usize..MAX_HELD / 2), 0..24),
        ) {
            let (mut texts, mut all) = (CaseTexts::default(), BTreeMap::new());
            for (number, (position, length)) in kept.into_iter().enumerate() {
                // A retried case has a different text.
                let text = format!("{number} {}", "x".repeat(length));
                texts.store(position, text.clone(), tempfile::tempfile);
                all.insert(position, text);
            }
            prop_assert!(texts.held < MAX_HELD);
            prop_assert!(written(&texts) == expected(&all));
        }
    }

    #[test]
    fn without_a_file_nothing_is_lost() {
        let (mut texts, mut all) = (CaseTexts::default(), BTreeMap::new());
        for position in [2, 0, 1] {
            let text = position.to_string().repeat(MAX_HELD);
            texts.store(position, text.clone(), || Err(io::ErrorKind::StorageFull.into()));
            all.insert(position, text);
        }
        assert!(written(&texts) == expected(&all));
    }
}
