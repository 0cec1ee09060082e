//! Where session bytes come from: a file, a folder of event files, or memory.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::de::Deserializer;

use super::ReadError;
use super::bounded::BoundedStrings;
use super::buffer::Buffer;
use super::digest::{Digest, Watched};
use super::feed::Feed;
use super::lines::{Lines, MARK, without_mark};
use super::repaired::{Repaired, may_need_repair};

/// Documents up to this size are parsed in memory, larger ones while they are read.
const IN_MEMORY: u64 = 32 * 1024 * 1024;

/// Bytes of one or more sessions.
#[derive(Debug, Clone)]
pub enum Source {
    /// One file.
    File(PathBuf),
    /// One file, whose digest is taken while it is read.
    Watched(PathBuf, Digest),
    /// A folder with one event per file, as `OpenHands` keeps them; the files in order.
    Folder {
        /// The folder that stands for the session.
        path: PathBuf,
        /// Its event files.
        files: Vec<PathBuf>,
    },
    /// Bytes in memory.
    Bytes {
        /// Stands for the file's name.
        name: String,
        /// The contents.
        bytes: Vec<u8>,
    },
}

/// A format whose file is one JSON value.
pub(super) trait Document {
    /// Reads it, handing events to the feed on the way. Must not collect.
    fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        feed: &mut Feed<'_>,
    ) -> Result<(), D::Error>;
}

/// A [`Document`] whose reader remembers something: what an earlier reading of it found.
pub(super) trait Reader {
    /// As [`Document::read`]. May be called twice for one reading, if the text needs repair.
    fn read<'de, D: Deserializer<'de>>(
        &mut self,
        deserializer: D,
        feed: &mut Feed<'_>,
    ) -> Result<(), D::Error>;
}

/// The reader of a format that remembers nothing.
struct Stateless<T>(PhantomData<T>);

impl<T: Document> Reader for Stateless<T> {
    fn read<'de, D: Deserializer<'de>>(
        &mut self,
        deserializer: D,
        feed: &mut Feed<'_>,
    ) -> Result<(), D::Error> {
        T::read(deserializer, feed)
    }
}

impl Source {
    /// A file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Source::File(path.into())
    }

    /// Bytes in memory, as if they stood in a file of that name.
    pub fn bytes(name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Source::Bytes { name: name.to_owned(), bytes: bytes.into() }
    }

    /// The path, or the name of bytes in memory.
    pub fn path(&self) -> &Path {
        match self {
            Source::File(path) | Source::Watched(path, _) | Source::Folder { path, .. } => path,
            Source::Bytes { name, .. } => Path::new(name),
        }
    }

    /// Name without folders and extensions, for sessions without an id of their own.
    pub fn stem(&self) -> String {
        let name = self.path().file_name().unwrap_or_default().to_string_lossy();
        let stem = name.split_once('.').map_or(&*name, |(stem, _)| stem);
        selftest_text::one_line(if stem.is_empty() { &name } else { stem }, 200)
    }

    /// The bytes from the beginning; of a folder its files, each followed by a line break.
    pub(super) fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match self {
            Source::File(path) => Box::new(File::open(path)?),
            Source::Watched(path, digest) => {
                Box::new(Watched::new(File::open(path)?, digest.clone()))
            }
            Source::Bytes { bytes, .. } => Box::new(bytes.as_slice()),
            Source::Folder { files, .. } => Box::new(Joined { files: files.iter(), current: None }),
        })
    }

    /// The lines from the beginning.
    pub(super) fn lines(&self) -> io::Result<Lines<'_>> {
        Ok(match self {
            Source::Bytes { bytes, .. } => Lines::of_bytes(bytes),
            Source::File(_) | Source::Watched(..) | Source::Folder { .. } => {
                Lines::new(self.open()?)
            }
        })
    }

    /// The first bytes, at most so many.
    pub(super) fn beginning(&self, most: u64) -> io::Result<Cow<'_, [u8]>> {
        if let Source::Bytes { bytes, .. } = self {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            return Ok(Cow::Borrowed(&bytes[..bytes.len().min(most)]));
        }
        let mut start = Vec::new();
        self.open()?.take(most).read_to_end(&mut start)?;
        Ok(Cow::Owned(start))
    }

    fn size(&self) -> io::Result<u64> {
        match self {
            Source::File(path) | Source::Watched(path, _) => Ok(path.metadata()?.len()),
            Source::Bytes { bytes, .. } => Ok(bytes.len() as u64),
            Source::Folder { .. } => Ok(0),
        }
    }

    /// Reads the one JSON value of the source. Where it breaks off or is malformed, what came
    /// before counts, and a note says where.
    pub(super) fn document<T: Document>(&self, feed: &mut Feed<'_>) -> Result<(), ReadError> {
        self.document_by(&mut Stateless::<T>(PhantomData), feed)
    }

    /// As [`Self::document`], by a reader that remembers something.
    pub(super) fn document_by(
        &self,
        reader: &mut impl Reader,
        feed: &mut Feed<'_>,
    ) -> Result<(), ReadError> {
        if self.size()? > IN_MEMORY {
            let bounded = BoundedStrings::new(self.open_unmarked()?);
            return match from_stream(bounded, reader, feed) {
                Ok(()) => Ok(()),
                Err(error) if error.is_syntax() => {
                    let changes = Cell::new(0);
                    let repaired = Repaired::new(self.open_unmarked()?, &changes);
                    again(BoundedStrings::new(repaired), &changes, reader, feed);
                    Ok(())
                }
                Err(error) => {
                    feed.notes.torn = Some(place(&error));
                    Ok(())
                }
            };
        }
        let mut buffer = Buffer::new();
        let bytes = if let Source::Bytes { bytes, .. } = self {
            bytes.as_slice()
        } else {
            buffer.clear();
            self.open()?.read_to_end(&mut buffer)?;
            buffer.as_slice()
        };
        let bytes = without_mark(bytes);
        let result = match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => reader.read(&mut serde_json::Deserializer::from_str(text), feed),
            Err(_) => reader.read(&mut serde_json::Deserializer::from_slice(bytes), feed),
        };
        match result {
            Ok(()) => {}
            Err(error) if error.is_syntax() && may_need_repair(bytes) => {
                let changes = Cell::new(0);
                again(Repaired::new(bytes, &changes), &changes, reader, feed);
            }
            Err(error) => feed.notes.torn = Some(place(&error)),
        }
        Ok(())
    }

    /// As [`Self::open`], without a byte order mark.
    pub(super) fn open_unmarked(&self) -> io::Result<impl Read + '_> {
        let mut input = self.open()?;
        let mut start = Vec::with_capacity(MARK.len());
        input.by_ref().take(MARK.len() as u64).read_to_end(&mut start)?;
        if start == MARK {
            start.clear();
        }
        Ok(io::Cursor::new(start).chain(input))
    }
}

/// Reads a document while it comes.
fn from_stream(
    input: impl Read,
    reader: &mut impl Reader,
    feed: &mut Feed<'_>,
) -> Result<(), serde_json::Error> {
    let input = BufReader::with_capacity(256 * 1024, input);
    reader.read(&mut serde_json::Deserializer::from_reader(input), feed)
}

/// Reads a document a second time, now that it is repaired while it comes. The sessions that were
/// handed on before are not handed on again: up to where it broke, it is the same text.
fn again(input: impl Read, changes: &Cell<u64>, reader: &mut impl Reader, feed: &mut Feed<'_>) {
    feed.restart();
    let result = from_stream(input, reader, feed);
    feed.notes.repaired_records += u64::from(changes.get() > 0);
    feed.notes.torn = result.err().map(|error| place(&error));
}

/// Where a document broke, and why, for a note.
fn place(error: &serde_json::Error) -> String {
    selftest_text::one_line(&error.to_string(), 200)
}

/// Several files as one stream.
struct Joined<'a> {
    files: std::slice::Iter<'a, PathBuf>,
    current: Option<File>,
}

impl Read for Joined<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match &mut self.current {
                Some(file) => match file.read(buffer)? {
                    0 => {
                        self.current = None;
                        buffer[0] = b'\n';
                        return Ok(1);
                    }
                    count => return Ok(count),
                },
                None => match self.files.next() {
                    Some(path) => self.current = Some(File::open(path)?),
                    None => return Ok(0),
                },
            }
        }
    }
}
