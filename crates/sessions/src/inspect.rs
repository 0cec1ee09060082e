//! Reads Inspect logs: JSON, or `.eval` archives with one file per sample. Each sample is a session
//! and is read as chat.

use std::io::{Cursor, Read, Seek};

use ruzstd::decoding::StreamingDecoder;
use zip::{CompressionMethod, ZipArchive};

use super::feed::SessionFeed;
use super::source::SessionSource;
use super::wire::JsonValue;
use super::{SessionReadError, chat};
use crate::format::FormatEntry;
use selftest_text::file::open_regular;

/// First bytes of an archive.
pub(super) const MAGIC: &[u8] = b"PK\x03\x04";

/// Entries with metadata of all samples: the first in finished logs, the second in unfinished ones.
const METADATA_ENTRIES: [&str; 2] = ["header.json", "_journal/start.json"];

/// What a log names if the task chooses its models itself.
const NO_MODEL: &str = "none/none";

/// Maximum bytes read from one archive entry; the rest is dropped.
const MAX_ENTRY: u64 = 512 * 1024 * 1024;

trait ArchiveInput: Read + Seek {}

impl<T: Read + Seek> ArchiveInput for T {}

type EvalArchive<'s> = ZipArchive<Box<dyn ArchiveInput + 's>>;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.has("samples") && value.has("eval"),
    // Other zip archives get the advice to unpack them.
    bytes: |start, source| start.starts_with(MAGIC) && is_log(source),
    ..FormatEntry::new(read)
};

/// Reads every sample.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    if !source.read_start(MAGIC.len() as u64)?.starts_with(MAGIC) {
        return chat::read(chat::INSPECT, source, feed);
    }
    let mut archive = open(source)?;
    let names = entry_names(&archive);
    let about =
        METADATA_ENTRIES.iter().find_map(|about| names.iter().find(|(_, name)| name == about));
    // Samples are readable without metadata; only the model would be missing.
    let about =
        about.and_then(|(place, _)| read_entry(&mut archive, *place).ok()).unwrap_or_default();
    let about = JsonValue::parse(&String::from_utf8_lossy(&about));
    let (model, created) = (about.text("/eval/model"), about.part("/eval/created"));
    for (place, name) in names {
        let is_sample = std::path::Path::new(&name).extension().is_some_and(|end| end == "json");
        if !is_sample || !name.starts_with("samples/") {
            continue;
        }
        let Ok(bytes) = read_entry(&mut archive, place) else {
            feed.notes.bad_records += 1;
            continue;
        };
        if model.as_str() != NO_MODEL {
            feed.head.add_model(&model);
        }
        // Samples have times only in their events, which are not read.
        feed.record_time(created);
        // A damaged sample must not affect the next one, so its session ends here.
        if chat::read_embedded(chat::INSPECT, &String::from_utf8_lossy(&bytes), feed).is_err() {
            feed.notes.bad_records += 1;
            feed.end_session();
        }
    }
    Ok(())
}

/// Returns true if the archive is an Inspect log.
fn is_log(source: &SessionSource) -> bool {
    let Ok(archive) = open(source) else { return false };
    entry_names(&archive).iter().any(|(_, name)| METADATA_ENTRIES.contains(&name.as_str()))
}

fn open(source: &SessionSource) -> Result<EvalArchive<'_>, SessionReadError> {
    let input: Box<dyn ArchiveInput + '_> = match source {
        SessionSource::File(path) | SessionSource::DigestedFile(path, _) => {
            Box::new(open_regular(path)?)
        }
        SessionSource::Bytes { bytes, .. } => Box::new(Cursor::new(bytes.as_slice())),
        SessionSource::Folder { .. } => {
            return Err(SessionReadError::Unrecognised("a folder is no archive".to_owned()));
        }
    };
    ZipArchive::new(input).map_err(|error| {
        let reason = selftest_text::one_line(&error.to_string(), 200);
        SessionReadError::Unrecognised(format!("an archive that cannot be read: {reason}"))
    })
}

/// Returns the index and name of each entry, sorted by name.
fn entry_names(archive: &EvalArchive<'_>) -> Vec<(usize, String)> {
    let all = archive.file_names().enumerate();
    let mut names: Vec<_> =
        all.filter_map(|(place, name)| Some((place, name.ok()?.into_owned()))).collect();
    // Sorted, so that the result does not depend on the order in the archive.
    names.sort_by(|(_, one), (_, other)| one.cmp(other));
    names
}

/// Reads one entry. Newer versions of Inspect compress with Zstandard.
fn read_entry(archive: &mut EvalArchive<'_>, place: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let raw = archive.by_index_raw(place)?;
    // The zip crate is built without its C decoder for Zstandard.
    if raw.compression() == CompressionMethod::ZSTD {
        let decoder = StreamingDecoder::new(raw).map_err(std::io::Error::other)?;
        // Limits the decompressed size: the archive may be a zip bomb.
        decoder.take(MAX_ENTRY).read_to_end(&mut bytes)?;
    } else {
        drop(raw);
        archive.by_index(place)?.take(MAX_ENTRY).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::super::event::{Event, EventMark, ToolOutcome};
    use super::super::test_support::survives_damage;
    use super::super::{SessionCollector, SessionFormat, read};
    use super::*;

    const HEADER: &str = r#"{"version":2,"status":"success","eval":{"model":"m-1","task":"t"}}"#;

    /// 1 human turn, 1 call that failed; 70 tokens in, 30 from a cache, 20 out.
    const SAMPLE: &str = r#"{"id":ID,"epoch":1,"input":"go","messages":[
      {"role":"user","content":"go"},
      {"role":"assistant","content":"","tool_calls":[{"id":"c1","function":"bash","arguments":{"cmd":"x"}}]},
      {"role":"tool","content":"","tool_call_id":"c1","error":{"type":"timeout","message":"too slow"}}],
      "model_usage":{"m-1":{"input_tokens":70,"output_tokens":20,"total_tokens":120,"input_tokens_cache_read":30}}}"#;

    fn archive(method: CompressionMethod) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(method);
        let one = SAMPLE.replace("ID", "1");
        let two = SAMPLE.replace("ID", "\"two\"");
        for (name, text) in [
            ("_journal/start.json", HEADER),
            ("samples/1_epoch_1.json", &one),
            ("samples/two_epoch_1.json", &two),
            ("header.json", HEADER),
        ] {
            writer.start_file(name, options).unwrap();
            if method == CompressionMethod::Stored {
                let level = ruzstd::encoding::CompressionLevel::Fastest;
                let packed = ruzstd::encoding::compress_to_vec(text.as_bytes(), level);
                writer.write_all(&packed).unwrap();
            } else {
                writer.write_all(text.as_bytes()).unwrap();
            }
        }
        writer.finish().unwrap().into_inner()
    }

    /// Words decide, and a number where it is the only score; without one there is no result.
    #[test]
    fn scores_are_verdicts() {
        let marks = |scores: &str| {
            let sample = SAMPLE.replace("ID", "1");
            let sample = sample.replacen('{', &format!("{{\"scores\":{scores},"), 1);
            let log = format!(r#"{{"version":2,"eval":{{"model":"m"}},"samples":[{sample}]}}"#);
            let mut collector = SessionCollector::default();
            read(&SessionSource::bytes("run.json", log), &mut collector).unwrap();
            let events = collector.into_sessions().remove(0).events;
            let said = |event: Event<'_>| (event.text.as_str().to_owned(), event.mark);
            events.into_iter().skip(3).map(said).collect::<Vec<_>>()
        };
        let mut both = marks(
            r#"{"match":{"value":"C","answer":"42","explanation":"42 is right"},"turns":{"value":0}}"#,
        );
        both.sort_by(|(one, _), (other, _)| one.cmp(other));
        let passed = Some(EventMark::VerifierPassed);
        assert_eq!(both, [("match: C".to_owned(), passed), ("turns: 0".to_owned(), None)]);
        // The second one says whether the agent also did what it should not do.
        let side = r#"{"main_task":{"value":0.8},"side_task":{"value":"C"}}"#;
        assert!(marks(side).iter().all(|(_, mark)| mark.is_none()));
        let failed = Some(EventMark::VerifierFailed);
        assert_eq!(marks(r#"{"tests":{"value":0.0}}"#), [("tests: 0.0".to_owned(), failed)]);
        assert_eq!(marks(r#"{"tests":{"value":"P"}}"#), [("tests: P".to_owned(), None)]);
        assert_eq!(marks(r#""none""#), []);
        assert_eq!(marks("{}"), []);
    }

    fn check(bytes: Vec<u8>) {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("run.eval", bytes), &mut collector).unwrap();
        assert_eq!((reading.format, reading.sessions), (SessionFormat::Inspect, 2));
        let sessions = collector.into_sessions();
        assert!(sessions[0].head.id.starts_with("run#1.1-"), "{}", sessions[0].head.id);
        assert!(sessions[1].head.id.starts_with("run#two.1-"), "{}", sessions[1].head.id);
        assert_eq!(sessions[1].head.models, ["m-1"]);
        let usage = sessions[1].head.usage.unwrap();
        assert_eq!((usage.input, usage.output, usage.cached), (70, 20, 30));
        assert_eq!(sessions[1].events[2].results[0].outcome, ToolOutcome::Failed);
    }

    #[test]
    fn archives_of_both_kinds() {
        check(archive(CompressionMethod::Deflated));
        // Marked as what they are: the library writes no Zstandard of its own.
        let mut bytes = archive(CompressionMethod::Stored);
        for (start, at) in [(b"PK\x03\x04", 8), (b"PK\x01\x02", 10)] {
            for found in 0..bytes.len().saturating_sub(4) {
                if bytes[found..].starts_with(start) {
                    bytes[found + at] = 93;
                }
            }
        }
        check(bytes);
    }

    #[test]
    fn other_archives_are_refused() {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.start_file("a.txt", SimpleFileOptions::default()).unwrap();
        let bytes = writer.finish().unwrap().into_inner();
        let error = read(&SessionSource::bytes("a.zip", bytes), &mut SessionCollector::default())
            .unwrap_err();
        assert!(error.to_string().contains("unzip"), "{error}");
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::Inspect, &archive(CompressionMethod::Deflated));
    }
}
