//! Computes digests of session files. They only detect changes, so a fast hash is enough: SHA-256
//! would take a seventh of the time of reading and grading.

use std::fmt;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use twox_hash::XxHash3_128;

use selftest_text::file::open_regular;

const CHUNK: usize = 256 * 1024;

/// Digest of one file, computed from the bytes that its reader reads anyway.
#[derive(Debug, Clone, Default)]
pub struct FileDigest(Arc<Mutex<DigestState>>);

#[derive(Default)]
struct DigestState {
    hasher: XxHash3_128,
    /// Number of bytes hashed, from the start of the file.
    bytes: u64,
    /// Set when the reader reached the end of the file right after these bytes.
    is_whole: bool,
}

impl fmt::Debug for DigestState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} after {} bytes", self.text(), self.bytes)
    }
}

impl DigestState {
    /// Hashes the new part of `bytes`, which start at `offset`. A reader may read a range twice.
    fn update(&mut self, offset: u64, bytes: &[u8]) {
        // A gap before `offset` cannot be hashed; `finish` then reads the rest itself.
        let known = self.bytes.checked_sub(offset).and_then(|known| usize::try_from(known).ok());
        if let Some(new) = known.and_then(|known| bytes.get(known..)) {
            self.hasher.write(new);
            self.bytes += new.len() as u64;
            // The file grew after its end was seen.
            self.is_whole &= new.is_empty();
        }
    }

    fn read(&mut self, mut input: impl Read) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        loop {
            match input.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => self.hasher.write(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn text(&self) -> String {
        format!("xxh3:{:032x}", self.hasher.finish_128())
    }
}

impl FileDigest {
    /// Returns the digest of the file once the reader is done, reading any rest itself. If the
    /// reader reached the end, bytes appended later are excluded, because it has not seen them.
    pub fn finish(&self, path: &Path) -> io::Result<String> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.is_whole {
            return Ok(taken.text());
        }
        let mut file = open_regular(path)?;
        // A file that has shrunk keeps the digest of what was read.
        if file.metadata()?.len() > taken.bytes {
            file.seek(SeekFrom::Start(taken.bytes))?;
            taken.read(file)?;
        }
        Ok(taken.text())
    }

    /// Returns the digest of several files, concatenated.
    pub fn of_files<'a>(paths: impl IntoIterator<Item = &'a Path>) -> io::Result<String> {
        let mut taken = DigestState::default();
        paths.into_iter().try_for_each(|path| taken.read(open_regular(path)?))?;
        Ok(taken.text())
    }
}

/// Passes a file through and updates its digest.
pub(super) struct DigestingReader<R> {
    input: R,
    digest: FileDigest,
    offset: u64,
}

impl<R: Read> DigestingReader<R> {
    /// Wraps `input`, which must be at its start.
    pub(super) fn new(input: R, digest: FileDigest) -> Self {
        Self { input, digest, offset: 0 }
    }
}

impl<R: Read> Read for DigestingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        let mut taken = self.digest.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.update(self.offset, &buffer[..count]);
        self.offset += count as u64;
        // A read of 0 bytes into a non-empty buffer means end of file.
        taken.is_whole |= count == 0 && !buffer.is_empty() && self.offset == taken.bytes;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use std::fs::File;

    use super::*;

    #[test]
    fn what_is_written_after_the_reader_came_to_the_end_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        let append = || std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        std::fs::write(&path, "one\n").unwrap();
        let read_by = FileDigest::of_files([path.as_path()]).unwrap();
        let digest = FileDigest::default();
        let read = || {
            let mut file = DigestingReader::new(File::open(&path).unwrap(), digest.clone());
            file.read_to_end(&mut Vec::new()).unwrap();
        };
        read();
        append().write_all(b"two\n").unwrap();
        assert_eq!(digest.finish(&path).unwrap(), read_by);
        // A second reader that sees more knows more.
        read();
        assert_eq!(digest.finish(&path).unwrap(), FileDigest::of_files([path.as_path()]).unwrap());
    }

    #[test]
    fn what_is_read_twice_or_not_at_all_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        let content: Vec<u8> = (0..700_000_u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let whole = FileDigest::of_files([path.as_path()]).unwrap();
        for parts in [vec![], vec![10], vec![10, 300_000, 5], vec![700_000, 700_000]] {
            let digest = FileDigest::default();
            for part in parts {
                let file = DigestingReader::new(File::open(&path).unwrap(), digest.clone());
                file.take(part).read_to_end(&mut Vec::new()).unwrap();
            }
            assert_eq!(digest.finish(&path).unwrap(), whole);
        }
        std::fs::write(&path, &content[1..]).unwrap();
        assert_ne!(FileDigest::of_files([path.as_path()]).unwrap(), whole);
    }
}
