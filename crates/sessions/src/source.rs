//! Opens the bytes of sessions: a file, a folder of event files, or memory.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor as _};

use super::bounded::BoundedStrings;
use super::digest::{DigestingReader, FileDigest};
use super::feed::SessionFeed;
use super::lines::{BYTE_ORDER_MARK, JsonLines, without_mark};
use super::repaired::{RepairingReader, repair};
use super::stream::JsonStream;
use super::wire::{Each, LenientObject, each};
use super::{SessionReadError, compressed, sqlite};
use crate::wire::{AnyJson, AnyJsonSeed};
use selftest_text::file::open_regular;

/// Documents up to this size are parsed in memory, larger ones as a stream.
const MAX_IN_MEMORY: u64 = 32 * 1024 * 1024;

/// Bytes of one or more sessions.
#[derive(Debug, Clone)]
pub enum SessionSource {
    /// One file.
    File(PathBuf),
    /// One file, with a digest computed while it is read.
    DigestedFile(PathBuf, FileDigest),
    /// The files of one session, in order: an `OpenHands` folder with one event per file, or
    /// several `OpenCode` files under the path of the first.
    Folder {
        /// Path that stands for the session.
        path: PathBuf,
        /// Event files, in order.
        files: Vec<PathBuf>,
    },
    /// Bytes in memory.
    Bytes {
        /// Name used in place of a file name.
        name: String,
        /// Content.
        bytes: Vec<u8>,
    },
}

/// Turns the single JSON value of a file into events. Implementations must not collect: events go
/// to the feed while the value is read. Values of types without an implementation are skipped.
pub(super) trait DocumentReader {
    /// Called before reading. If the text needs repair, it is called again for the second pass,
    /// with an empty head.
    fn begin(&mut self, _feed: &mut SessionFeed<'_>) {}

    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        list: A,
        _feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        IgnoredAny.visit_seq(list).map(drop)
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        map: A,
        _feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        IgnoredAny.visit_map(map).map(drop)
    }
}

/// A document, or a part of one, on its way to a feed.
pub(super) struct DocumentSeed<'d, 'f, 's, D> {
    pub(super) document: &'d mut D,
    pub(super) feed: &'f mut SessionFeed<'s>,
}

impl<'de, D: DocumentReader> AnyJson<'de> for DocumentSeed<'_, '_, '_, D> {
    fn list<A: SeqAccess<'de>>(&mut self, list: A) -> Result<(), A::Error> {
        self.document.list(list, self.feed)
    }

    fn object<A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        self.document.object(map, self.feed)
    }
}

impl<'de, D: DocumentReader> DeserializeSeed<'de> for DocumentSeed<'_, '_, '_, D> {
    type Value = ();

    fn deserialize<R: Deserializer<'de>>(mut self, deserializer: R) -> Result<(), R::Error> {
        AnyJsonSeed(&mut self).deserialize(deserializer)
    }
}

/// Sends each object of a list in a document. Elements of other types count as bad records.
pub(super) fn each_record<'de, 's, T: Deserialize<'de>>(
    feed: &mut SessionFeed<'s>,
    mut send: impl FnMut(T, &mut SessionFeed<'s>),
) -> Each<LenientObject<T>, impl FnMut(LenientObject<T>)> {
    each(move |LenientObject(record)| match record {
        Some(record) => send(record, feed),
        // Counted, so that a list of which nothing can be read is not taken for an empty session.
        None => feed.notes.bad_records += 1,
    })
}

impl SessionSource {
    /// Creates a source from a file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        SessionSource::File(path.into())
    }

    /// Creates a source from bytes in memory, as if read from a file of this name.
    pub fn bytes(name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        SessionSource::Bytes { name: name.to_owned(), bytes: bytes.into() }
    }

    /// Returns the path, or the name of bytes in memory.
    pub fn path(&self) -> &Path {
        match self {
            SessionSource::File(path)
            | SessionSource::DigestedFile(path, _)
            | SessionSource::Folder { path, .. } => path,
            SessionSource::Bytes { name, .. } => Path::new(name),
        }
    }

    /// Returns true if the source is beside a write-ahead log with rows of a database, which its own
    /// bytes do not show.
    pub fn has_logged_rows(&self) -> bool {
        match self {
            SessionSource::File(path) | SessionSource::DigestedFile(path, _) => {
                sqlite::log_metadata(path).is_some_and(|log| log.len() > 0)
            }
            SessionSource::Folder { .. } | SessionSource::Bytes { .. } => false,
        }
    }

    /// Returns the name without folders and extensions, for sessions without an id.
    pub fn stem(&self) -> String {
        let name = self.path().file_name().unwrap_or_default().to_string_lossy();
        // Up to the first dot, because some names have two extensions, as in `.traj.json`.
        let stem = name.split_once('.').map_or(&*name, |(stem, _)| stem);
        selftest_text::one_line(if stem.is_empty() { &name } else { stem }, 200)
    }

    /// Opens the source from its start. A folder is the concatenation of its files, each followed
    /// by a line break.
    pub(super) fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match self {
            SessionSource::File(path) => {
                let file = open_regular(path)?;
                let size = file.metadata()?.len();
                compressed::open(file, size)?
            }
            SessionSource::DigestedFile(path, digest) => {
                let file = open_regular(path)?;
                let size = file.metadata()?.len();
                compressed::open(DigestingReader::new(file, digest.clone()), size)?
            }
            SessionSource::Bytes { bytes, .. } => Box::new(bytes.as_slice()),
            SessionSource::Folder { files, .. } => {
                Box::new(JoinedFiles { files: files.iter(), current: None })
            }
        })
    }

    /// Returns the lines from the start; for a folder, one per file.
    pub(super) fn lines(&self) -> io::Result<JsonLines<'_>> {
        Ok(match self {
            SessionSource::Folder { files, .. } => JsonLines::of_files(files),
            _ => JsonLines::new(self.open()?),
        })
    }

    /// Returns up to this many of the first bytes.
    pub(super) fn read_start(&self, most: u64) -> io::Result<Cow<'_, [u8]>> {
        if let SessionSource::Bytes { bytes, .. } = self {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            return Ok(Cow::Borrowed(&bytes[..bytes.len().min(most)]));
        }
        let mut start = Vec::new();
        self.open()?.take(most).read_to_end(&mut start)?;
        Ok(Cow::Owned(start))
    }

    /// Returns true if the source is a compressed file, from which only a stream can be read.
    pub(super) fn is_compressed(&self) -> bool {
        let (SessionSource::File(path) | SessionSource::DigestedFile(path, _)) = self else {
            return false;
        };
        let found =
            open_regular(path).and_then(|mut file| compressed::is_compressed_file(&mut file));
        found.unwrap_or_default()
    }

    fn size(&self) -> io::Result<u64> {
        match self {
            SessionSource::File(path) | SessionSource::DigestedFile(path, _) => {
                // What a compressed file holds may have any size.
                let mut file = open_regular(path)?;
                let is_compressed = compressed::is_compressed_file(&mut file)?;
                Ok(if is_compressed { u64::MAX } else { file.metadata()?.len() })
            }
            SessionSource::Bytes { bytes, .. } => Ok(bytes.len() as u64),
            // Folders are usually read line by line. As documents, they are parsed in memory.
            SessionSource::Folder { .. } => Ok(0),
        }
    }

    /// Reads the single JSON value of the source. If it is truncated or malformed, everything
    /// before that counts, and a note records the position.
    pub(super) fn read_document(
        &self,
        document: &mut impl DocumentReader,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), SessionReadError> {
        let size = self.size()?;
        if size > MAX_IN_MEMORY {
            return self.read_large_document(document, feed);
        }
        let mut buffer = Vec::new();
        let bytes = if let SessionSource::Bytes { bytes, .. } = self {
            bytes.as_slice()
        } else {
            // The size is bounded above by `MAX_IN_MEMORY`, so that a huge sparse file reserves
            // nothing here.
            buffer.reserve(usize::try_from(size).unwrap_or_default());
            self.open()?.read_to_end(&mut buffer)?;
            buffer.as_slice()
        };
        let bytes = without_mark(bytes);
        // Parsing from text borrows strings without checking UTF-8 for each of them.
        // The first pass sends events at once instead of checking the text first: nearly all
        // documents are sound, and a repair takes the events back.
        let first = simdutf8::basic::from_utf8(bytes).map(|text| parse_text(text, document, feed));
        let torn = match first {
            Ok(Ok(())) => return Ok(()),
            // A truncated file is no syntax error and gains nothing from repair.
            Ok(Err(error)) if !error.is_syntax() => Some(describe_error(&error)),
            unreadable => match repair(bytes) {
                Some(text) => {
                    feed.restart();
                    feed.notes.repaired_records += 1;
                    parse_text(&text, document, feed).err().map(|error| describe_error(&error))
                }
                // Malformed in a way that no repair mends; what came before the damage is sent
                // already.
                None => unreadable.ok().and_then(Result::err).map(|error| describe_error(&error)),
            },
        };
        feed.notes.torn = torn;
        Ok(())
    }

    /// Does the same as a stream. A malformed document is read a second time and repaired on the
    /// way.
    fn read_large_document(
        &self,
        document: &mut impl DocumentReader,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), SessionReadError> {
        // Boxed, so that both passes share one instantiation of the parser.
        let input: Box<dyn Read> = Box::new(BoundedStrings::new(self.open_unmarked()?));
        match parse(&mut JsonStream::new(input), document, feed) {
            Ok(()) => return Ok(()),
            Err(error) if !error.is_syntax() => {
                feed.notes.torn = Some(describe_error(&error));
                return Ok(());
            }
            Err(_) => {}
        }
        let changes = Cell::new(0);
        let repaired = RepairingReader::new(self.open_unmarked()?, &changes);
        let input: Box<dyn Read> = Box::new(BoundedStrings::new(repaired));
        let mut stream = JsonStream::new(input);
        // Sessions already sent are not sent again: up to the damage, the text is the same.
        feed.restart();
        let result = parse(&mut stream, document, feed);
        feed.notes.torn = result.err().map(|error| {
            if error.is_syntax() {
                format!("malformed JSON at line {}", stream.line_of(&error))
            } else {
                describe_error(&error)
            }
        });
        // A document counts as one record, however many characters were replaced.
        feed.notes.repaired_records += u64::from(changes.get() > 0);
        Ok(())
    }

    /// Opens the source like [`Self::open`], without a byte order mark.
    pub(super) fn open_unmarked(&self) -> io::Result<impl Read + '_> {
        let mut input = self.open()?;
        let mut start = Vec::with_capacity(BYTE_ORDER_MARK.len());
        input.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut start)?;
        if start == BYTE_ORDER_MARK {
            start.clear();
        }
        // Bytes that are not a mark belong to the content.
        Ok(io::Cursor::new(start).chain(input))
    }
}

fn parse_text(
    text: &str,
    document: &mut impl DocumentReader,
    feed: &mut SessionFeed<'_>,
) -> serde_json::Result<()> {
    parse(&mut serde_json::Deserializer::from_str(text), document, feed)
}

fn parse<'de, D: Deserializer<'de>>(
    deserializer: D,
    document: &mut impl DocumentReader,
    feed: &mut SessionFeed<'_>,
) -> Result<(), D::Error> {
    document.begin(feed);
    DocumentSeed { document, feed }.deserialize(deserializer)
}

/// Formats the position and cause of a parse error for a note.
fn describe_error(error: &serde_json::Error) -> String {
    selftest_text::one_line(&error.to_string(), 200)
}

/// Several files as one stream.
struct JoinedFiles<'a> {
    files: std::slice::Iter<'a, PathBuf>,
    current: Option<File>,
}

impl Read for JoinedFiles<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match &mut self.current {
                Some(file) => match file.read(buffer)? {
                    0 => {
                        self.current = None;
                        // Keeps records apart if a file does not end with a line break.
                        // There is room: an empty buffer has returned above.
                        buffer[0] = b'\n';
                        return Ok(1);
                    }
                    count => return Ok(count),
                },
                None => match self.files.next() {
                    Some(path) => self.current = Some(open_regular(path)?),
                    None => return Ok(0),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SessionCollector, SessionFormat};

    #[test]
    fn a_malformed_document_says_at_which_line_however_it_is_read() {
        struct Anything;
        impl DocumentReader for Anything {}
        let source = SessionSource::bytes("a.json", "[\n1,\n{\"a\":\n]\n}]");
        let mut collector = SessionCollector::default();
        let mut torn = |read: fn(
            &SessionSource,
            &mut Anything,
            &mut SessionFeed<'_>,
        ) -> Result<(), SessionReadError>| {
            let mut feed = SessionFormat::Chat.entry().feed(&source, &mut collector);
            read(&source, &mut Anything, &mut feed).unwrap();
            feed.notes.torn.take().unwrap()
        };
        assert_eq!(torn(SessionSource::read_document), "expected value at line 4 column 1");
        assert_eq!(torn(SessionSource::read_large_document), "malformed JSON at line 4");
    }
}
