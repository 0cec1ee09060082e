//! The line format of journal records: a checksum, a mark, and the JSON text.
//!
//! The mark says whether all before the record was known to be on disk when it was written. Serialised
//! JSON contains no line break, so that a record ends at its line break.
//!
//! [`RecordFile`] keeps the finished parts of a measurement in the same format. Each part is on disk
//! before the next one starts, so that an interrupted measurement resumes where it stopped. Unlike a
//! run's journal the file has no header, and its name identifies what it belongs to.

use std::fs::TryLockError;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use selftest_text::disk::{Disk, OpenFile, OpenMode, SystemDisk};

/// Length of the prefix: the hexadecimal digits of the checksum and a mark.
const CHECKSUM: usize = 9;

/// Mark of a record before which something may not have been synced.
const UNSYNCED: u8 = b' ';

/// Mark of a record before which all was synced. Differs from the other in several bits.
const SYNCED: u8 = b'=';

/// Initial capacity in bytes; holds most records without growing.
const USUAL_LENGTH: usize = 32 * 1024;

/// Encodes a record as a line.
pub(super) fn encode_record(record: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(USUAL_LENGTH);
    line.resize(CHECKSUM, UNSYNCED);
    serde_json::to_writer(&mut line, record)?;
    // Does not cover the mark, which is known only when the encoded record is written.
    let checksum = format!("{:08x}", crc32fast::hash(&line[CHECKSUM..]));
    line[..CHECKSUM - 1].copy_from_slice(checksum.as_bytes());
    line.push(b'\n');
    Ok(line)
}

/// Marks an encoded record: all that the file has before it was synced.
pub(super) fn mark_synced(line: &mut [u8]) {
    if let Some(mark) = line.get_mut(CHECKSUM - 1) {
        *mark = SYNCED;
    }
}

/// Returns true if all before a complete record was synced when it was written.
fn follows_sync(line: &[u8]) -> bool {
    line.get(CHECKSUM - 1) == Some(&SYNCED)
}

/// Returns the text of a record if its line is complete.
pub(super) fn decode_record(line: &[u8]) -> Option<&[u8]> {
    let (checksum, text) = line.split_at_checked(CHECKSUM)?;
    let (mark, checksum) = checksum.split_last()?;
    if ![UNSYNCED, SYNCED].contains(mark) {
        return None;
    }
    // Only the form that the writer produces: `from_str_radix` also accepts `+` and upper case.
    if !checksum.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let stated = u32::from_str_radix(std::str::from_utf8(checksum).ok()?, 16).ok()?;
    (stated == crc32fast::hash(text)).then_some(text)
}

/// The complete records of a file, and the length of an incomplete tail.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JournalFrames<'a> {
    /// Texts of the records in order, each with its line number.
    pub(super) texts: Vec<(usize, &'a [u8])>,
    /// Bytes up to the end of the last complete record.
    pub(super) length: usize,
    /// Bytes of an incomplete record at the end.
    pub(super) torn: usize,
}

/// Splits a file into records. The error is the line number of a damaged record that complete ones
/// follow, which an interrupted write cannot cause.
///
/// A loss of power can leave zeros in the part of a file that was not synced yet, also before parts
/// that reached the disk. No record contains one, so that all from there on counts as torn, unless a
/// later record was written when the zeros were synced already: then they are damage too.
pub(super) fn split_records(bytes: &[u8]) -> Result<JournalFrames<'_>, usize> {
    let mut frames = JournalFrames { texts: Vec::new(), length: 0, torn: 0 };
    let mut position = 0;
    // The first damaged line, and whether it has zeros.
    let mut damaged: Option<(usize, bool)> = None;
    for (line, number) in lines(bytes).zip(1..) {
        position += line.len();
        match (line.strip_suffix(b"\n").and_then(decode_record), damaged) {
            (Some(text), None) => {
                frames.texts.push((number, text));
                frames.length = position;
            }
            // Damage at the end is an interrupted write; it is an error only if a complete record
            // follows.
            (Some(_), Some((first, has_zeros))) if !has_zeros || follows_sync(line) => {
                return Err(first);
            }
            (None, None) => damaged = Some((number, memchr::memchr(0, line).is_some())),
            (_, Some(_)) => {}
        }
    }
    frames.torn = bytes.len() - frames.length;
    Ok(frames)
}

/// Returns the lines of a file, each with its line break.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let (line, behind) = rest.split_at(end);
        rest = behind;
        (!line.is_empty()).then_some(line)
    })
}

/// A file of finished parts.
pub struct RecordFile<T> {
    disk: Arc<dyn Disk>,
    file: Arc<dyn OpenFile>,
    path: PathBuf,
    /// Bytes up to the end of the last complete record.
    length: u64,
    kind: PhantomData<T>,
}

impl<T: Serialize + DeserializeOwned> RecordFile<T> {
    /// Opens the file and reads its records. A torn record at the end is cut off. A file that is
    /// damaged otherwise, or that another version wrote, starts over. A file that another process has
    /// open is refused.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<T>)> {
        Self::open_on(Arc::new(SystemDisk), path)
    }

    /// Like [`RecordFile::open`], on this disk.
    pub fn open_on(disk: Arc<dyn Disk>, path: &Path) -> io::Result<(Self, Vec<T>)> {
        if let Some(folder) = path.parent() {
            disk.create_folder(folder)?;
        }
        let file = disk.open(path, OpenMode::Create)?;
        // Two writers would cut and write over each other's records.
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = format!("another process is writing {}", path.display());
                return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut bytes = Vec::new();
        file.reader()?.read_to_end(&mut bytes)?;
        // One unreadable record invalidates the file: another version wrote it.
        let read = split_records(&bytes).ok().and_then(|frames| {
            let records = frames.texts.iter().map(|(_, text)| serde_json::from_slice(text).ok());
            Some((frames.length, records.collect::<Option<Vec<T>>>()?))
        });
        let (length, records) = read.unwrap_or_default();
        // Removes a torn or invalid tail before the next append.
        let length = length as u64;
        file.set_len(length)?;
        Ok((Self { disk, file, path: path.to_owned(), length, kind: PhantomData }, records))
    }

    /// Appends a record and flushes it to disk.
    pub fn append(&mut self, record: &T) -> io::Result<()> {
        let line = encode_record(record)?;
        if let Err(error) = self.file.append(&line) {
            // A partial line would make the next record look like damage in the middle, for which the
            // whole file starts over.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += line.len() as u64;
        self.file.sync()
    }

    /// Deletes the file: the measurement is complete and stored elsewhere.
    pub fn finish(self) -> io::Result<()> {
        self.disk.remove(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    fn file(records: &[&str]) -> Vec<u8> {
        records.iter().flat_map(|record| encode_record(record).unwrap()).collect()
    }

    #[test]
    fn records_come_back() {
        let file = file(&["one", "line\nbreak", ""]);
        let found = split_records(&file).unwrap();
        let texts: Vec<&[u8]> = found.texts.iter().map(|(_, text)| *text).collect();
        assert_eq!(texts, [&b"\"one\""[..], b"\"line\\nbreak\"", b"\"\""]);
        assert_eq!((found.length, found.torn), (file.len(), 0));
        assert_eq!(file.split_inclusive(|&byte| byte == b'\n').count(), 3);
    }

    #[test]
    fn zeros_are_what_was_not_synced() {
        let whole = file(&["one", "two", "three"]);
        let second = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        for zeros in [second..second + 3, second + 4..whole.len(), second - 1..second + 1] {
            let mut lost = whole.clone();
            lost[zeros.clone()].fill(0);
            let found = split_records(&lost).unwrap();
            assert_eq!(found.texts.len(), usize::from(zeros.start >= second), "{zeros:?}");
            assert_eq!(found.length + found.torn, whole.len());
        }
    }

    #[test]
    fn zeros_in_what_was_synced_are_damage() {
        let mut file = file(&["one", "two", "three", "four"]);
        let breaks = file.iter().zip(1..).filter(|(byte, _)| **byte == b'\n');
        let ends: Vec<usize> = breaks.map(|(_, end)| end).collect();
        let (second, third) = (ends[0], ends[1]);
        let before = split_records(&file).unwrap().texts.len();
        mark_synced(&mut file[second..]);
        assert_eq!(split_records(&file).unwrap().texts.len(), before);
        // One zero in the second record: the others do not say that it was synced.
        file[second + CHECKSUM + 1] = 0;
        assert_eq!(split_records(&file).unwrap().texts.len(), 1);
        mark_synced(&mut file[third..]);
        assert_eq!(split_records(&file), Err(2));
        // Any later record says so for all before it.
        file[third + CHECKSUM + 1] = 0;
        assert_eq!(split_records(&file).unwrap().texts.len(), 1);
        mark_synced(&mut file[ends[2]..]);
        assert_eq!(split_records(&file), Err(2));
    }

    #[test]
    fn a_damaged_line_before_a_whole_one_is_named() {
        let mut file = file(&["one", "two", "three"]);
        let second = file.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        file[second + CHECKSUM + 1] ^= 1;
        assert_eq!(split_records(&file), Err(2));
    }

    proptest! {
        #[test]
        fn a_file_that_is_cut_anywhere_has_the_records_before_the_cut(cut in 0_usize..90) {
            let whole = file(&["the first", "the second", "the third"]);
            let cut = cut.min(whole.len());
            let found = split_records(&whole[..cut]).unwrap();
            let lines = whole[..cut].split_inclusive(|&byte| byte == b'\n');
            let complete = lines.filter(|line| line.ends_with(b"\n")).count();
            prop_assert_eq!(found.texts.len(), complete);
            prop_assert_eq!(found.length + found.torn, cut);
        }

        #[test]
        fn no_single_damage_is_taken_for_a_record(at in 0_usize..60, bit in 0_u8..8) {
            let whole = file(&["the first", "the second"]);
            let mut damaged = whole.clone();
            let at = at.min(whole.len() - 1);
            damaged[at] ^= 1 << bit;
            if let Ok(found) = split_records(&damaged) {
                let before = split_records(&whole).unwrap().texts;
                prop_assert!(found.texts.len() < before.len());
                prop_assert!(found.texts.iter().all(|text| before.contains(text)));
            }
        }
    }

    #[test]
    fn what_was_kept_is_there_again() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("new").join("records");
        let (mut records, none) = RecordFile::<String>::open(&path).unwrap();
        assert!(none.is_empty());
        records.append(&"one".to_owned()).unwrap();
        records.append(&"two".to_owned()).unwrap();
        drop(records);

        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 2]).unwrap();
        let (mut records, read) = RecordFile::<String>::open(&path).unwrap();
        assert_eq!(read, ["one"], "the second one is torn");
        records.append(&"three".to_owned()).unwrap();
        drop(records);
        assert_eq!(RecordFile::<String>::open(&path).unwrap().1, ["one", "three"]);

        // Another version kept something else, or the disk is damaged.
        assert_eq!(RecordFile::<u32>::open(&path).unwrap().1, [0_u32; 0]);
        assert_eq!(fs::read(&path).unwrap(), b"");
        RecordFile::<u32>::open(&path).unwrap().0.finish().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_file_has_one_writer() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("records");
        let (mut records, _) = RecordFile::<String>::open(&path).unwrap();
        records.append(&"one".to_owned()).unwrap();
        let refused = RecordFile::<String>::open(&path).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        assert!(refused.to_string().contains(&path.display().to_string()), "{refused}");
        records.append(&"two".to_owned()).unwrap();
        drop(records);
        assert_eq!(RecordFile::<String>::open(&path).unwrap().1, ["one", "two"]);
    }
}
