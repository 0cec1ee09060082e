//! Reads compressed files as what they hold: gzip and Zstandard, recognised by their first bytes.
//!
//! A small file can expand to any size, so one that expands more than sessions do is refused.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// First bytes of a file in gzip.
const GZIP: &[u8] = b"\x1f\x8b";

/// First bytes of a file in Zstandard.
const ZSTANDARD: &[u8] = b"\x28\xb5\x2f\xfd";

/// Sessions, which repeat themselves, shrink to a tenth or, at best, a fiftieth.
const MAX_RATIO: u64 = 200;

/// Bytes that a file of any size may expand to.
const MIN_LIMIT: u64 = 64 * 1024 * 1024;

/// Returns true if a file with these first bytes is compressed.
pub(super) fn is_compressed(start: &[u8]) -> bool {
    start.starts_with(GZIP) || start.starts_with(ZSTANDARD)
}

/// Returns true if the file is compressed.
pub(super) fn is_compressed_file(file: &mut File) -> io::Result<bool> {
    let start = read_beginning(file)?;
    Ok(is_compressed(&start))
}

fn read_beginning(input: &mut impl Read) -> io::Result<Vec<u8>> {
    // `take` and not `read_exact`: a file may be shorter than a signature.
    let mut start = Vec::with_capacity(ZSTANDARD.len());
    input.take(ZSTANDARD.len() as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// Returns the content of a file of this size: unpacked if it is compressed.
pub(super) fn open<'r>(input: impl Read + 'r, size: u64) -> io::Result<Box<dyn Read + 'r>> {
    unpack(input, size.saturating_mul(MAX_RATIO).max(MIN_LIMIT))
}

fn unpack<'r>(mut input: impl Read + 'r, most: u64) -> io::Result<Box<dyn Read + 'r>> {
    let start = read_beginning(&mut input)?;
    let is_gzip = start.starts_with(GZIP);
    let is_zstandard = start.starts_with(ZSTANDARD);
    // The first bytes are already read and belong to the content.
    let whole = Cursor::new(start).chain(input);
    let unpacked: Box<dyn Read + 'r> = if is_gzip {
        // Files that are appended to have several members, which the plain decoder would stop
        // after.
        Box::new(MultiGzDecoder::new(whole))
    } else if is_zstandard {
        Box::new(ZstandardFrames { input: Some(BufReader::new(Box::new(whole))), decoder: None })
    } else {
        return Ok(Box::new(whole));
    };
    Ok(Box::new(LimitedUnpacking { unpacked, left: most, most }))
}

type FrameInput<'r> = BufReader<Box<dyn Read + 'r>>;

/// The frames of a file in Zstandard, one after the other. Files that are appended to have several.
struct ZstandardFrames<'r> {
    /// Between frames.
    input: Option<FrameInput<'r>>,
    decoder: Option<StreamingDecoder<FrameInput<'r>, ruzstd::decoding::FrameDecoder>>,
}

impl Read for ZstandardFrames<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::io::BufRead as _;
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(decoder) = &mut self.decoder {
                match decoder.read(buffer)? {
                    0 => self.input = self.decoder.take().map(StreamingDecoder::into_inner),
                    count => return Ok(count),
                }
            }
            let Some(mut input) = self.input.take() else { return Ok(0) };
            if input.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let decoder = StreamingDecoder::new(input).map_err(|error| {
                let reason = selftest_text::one_line(&error.to_string(), 200);
                io::Error::new(io::ErrorKind::InvalidData, format!("cannot be unpacked: {reason}"))
            })?;
            self.decoder = Some(decoder);
        }
    }
}

/// Fails where more comes out than sessions expand to.
struct LimitedUnpacking<'r> {
    unpacked: Box<dyn Read + 'r>,
    left: u64,
    most: u64,
}

impl Read for LimitedUnpacking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.unpacked.read(buffer)?;
        // The error is no end of the file: a truncated session would pass for a whole one.
        if let Some(left) = self.left.checked_sub(count as u64) {
            self.left = left;
        } else {
            let most = self.most / (1024 * 1024);
            let reason = format!("it expands to more than {most} MB, which no session does");
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::{SessionCollector, SessionFormat, SessionSource, read};
    use super::*;

    const CHAT: &str = r#"{"role":"user","content":"hello"}
{"role":"assistant","content":"Hello!"}
"#;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn zstandard(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn a_compressed_file_holds_the_same_session() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = CHAT.split_at(CHAT.find('\n').unwrap() + 1);
        let document = format!("[{}]", CHAT.trim().replace('\n', ","));
        for (name, bytes) in [
            ("a.jsonl", CHAT.as_bytes().to_vec()),
            ("b.jsonl.gz", gzip(CHAT.as_bytes())),
            ("c.jsonl.zst", zstandard(CHAT.as_bytes())),
            ("d.jsonl.gz", [gzip(first.as_bytes()), gzip(second.as_bytes())].concat()),
            ("e.jsonl.zst", [zstandard(first.as_bytes()), zstandard(second.as_bytes())].concat()),
            ("f.json.zst", zstandard(document.as_bytes())),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let mut collector = SessionCollector::default();
            let reading = read(&SessionSource::file(path), &mut collector).unwrap();
            assert_eq!((reading.format, reading.sessions), (SessionFormat::Chat, 1), "{name}");
            assert_eq!(reading.notes.torn, None, "{name}");
            assert_eq!(collector.into_sessions()[0].events[1].text.as_str(), "Hello!", "{name}");
        }
    }

    #[test]
    fn a_bomb_is_refused_and_a_torn_file_says_so() {
        let bomb = vec![b' '; 200_000];
        for bytes in [gzip(&bomb), zstandard(&bomb)] {
            let mut content = Vec::new();
            unpack(&bytes[..], 200_000).unwrap().read_to_end(&mut content).unwrap();
            assert_eq!(content, bomb);
            let error = unpack(&bytes[..], 199_999).unwrap().read_to_end(&mut content).unwrap_err();
            assert!(error.to_string().contains("it expands to more than"), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let mut torn = gzip(CHAT.as_bytes());
        torn.truncate(torn.len() - 12);
        let path = folder.path().join("torn.jsonl.gz");
        std::fs::write(&path, torn).unwrap();
        assert!(read(&SessionSource::file(path), &mut SessionCollector::default()).is_err());
    }
}
