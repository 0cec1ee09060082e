//! Reads and grades files on all processors. What has not changed is not read again.
//!
//! Threads, no runtime: results go through a channel to whoever stores them.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use jiff::Timestamp;
use tokio::sync::mpsc;
use twox_hash::XxHash3_128;

use crate::grade::Weights;
use crate::grade::heuristic::{Grading, Heuristic, Occasion};
use crate::redact::Redactor;
use crate::session::{self, Found, ReadError, Source};
use crate::store::{FileOutcome, FileRecord, FileResult, KnownFile};

/// Bytes of a reason.
const REASON: usize = 300;

/// Results that wait to be stored: bounded, so that memory does not grow when the disk is slow.
const WAITING: usize = 256;

/// Files up to this size are read once, for digest and reader together. Larger ones are read
/// piece by piece, so that memory does not grow with the file.
const IN_MEMORY: u64 = 16 * 1024 * 1024;

/// Begins a SQLite database, which has to be read as a file.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// What came of one file.
#[derive(Debug)]
pub(super) enum Examined {
    /// Its content is what it was; only its date changed.
    Touched(String, KnownFile),
    /// It was read.
    Read(Box<FileResult>),
}

/// What all threads share.
pub(super) struct Task {
    pub(super) files: Vec<Found>,
    pub(super) known: HashMap<String, KnownFile>,
    pub(super) weights: Weights,
    pub(super) redactor: Redactor,
    pub(super) now: Timestamp,
    /// Only grades of this agent count; files of others leave no trace.
    pub(super) agent: Option<String>,
}

/// Whether a file is as it was by size and date, so that it need not be opened.
pub(super) fn looks_unchanged(found: &Found, known: &HashMap<String, KnownFile>) -> bool {
    known
        .get(&*found.source.path().to_string_lossy())
        .is_some_and(|known| known.size == found.size && known.modified_ns == found.modified_ns)
}

/// Ends the threads when the receiving side is gone, for instance after an interrupt.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Results of a scan, as they come.
pub(super) struct Results {
    receiver: mpsc::Receiver<Examined>,
    _stop: Stop,
}

impl Results {
    /// The next result; `None` when all files are done.
    pub(super) async fn next(&mut self) -> Option<Examined> {
        self.receiver.recv().await
    }

    /// A result that is there already.
    pub(super) fn ready(&mut self) -> Option<Examined> {
        self.receiver.try_recv().ok()
    }
}

/// Examines every file of the task, in its order.
pub(super) fn start(task: Task) -> Results {
    let (sender, receiver) = mpsc::channel(WAITING);
    let stop = Arc::new(AtomicBool::new(false));
    let (task, next) = (Arc::new(task), Arc::new(AtomicUsize::new(0)));
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    for _ in 0..threads.min(task.files.len()) {
        let (task, next, stop) = (task.clone(), next.clone(), stop.clone());
        let sender = sender.clone();
        // No thread of the runtime: the reader of databases has a runtime of its own.
        std::thread::spawn(move || {
            let mut buffer = Vec::new();
            while let Some(found) = task.files.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                if let Some(examined) = examine(found, &task, &mut buffer)
                    && sender.blocking_send(examined).is_err()
                {
                    return;
                }
            }
        });
    }
    Results { receiver, _stop: Stop(stop) }
}

/// Reads and grades one file; `None` when it is of another agent than the one asked for.
fn examine(found: &Found, task: &Task, buffer: &mut Vec<u8>) -> Option<Examined> {
    let path = found.source.path().to_string_lossy().into_owned();
    let loaded = load(found, &path, buffer);
    let source = loaded.as_ref().unwrap_or(&found.source);
    let examined = examine_source(found, source, path, task);
    if let Some(Source::Bytes { bytes, .. }) = loaded {
        *buffer = bytes;
    }
    examined
}

/// The content of a file that is not too large, in `buffer`, under its path; `None` where it has
/// to be read from the file.
fn load(found: &Found, path: &str, buffer: &mut Vec<u8>) -> Option<Source> {
    let Source::File(file) = &found.source else { return None };
    if found.size > IN_MEMORY {
        return None;
    }
    buffer.clear();
    // It may have grown.
    let count = File::open(file).ok()?.take(IN_MEMORY + 1).read_to_end(buffer).ok()?;
    let whole = count as u64 <= IN_MEMORY && !buffer.starts_with(SQLITE);
    whole.then(|| Source::bytes(path, std::mem::take(buffer)))
}

fn examine_source(found: &Found, source: &Source, path: String, task: &Task) -> Option<Examined> {
    let digest = digest(source);
    let known = task.known.get(&path);
    if let (Some(known), Ok(digest)) = (known, &digest)
        && known.digest == *digest
    {
        let (size, modified_ns) = (found.size, found.modified_ns);
        return Some(Examined::Touched(
            path,
            KnownFile { size, modified_ns, digest: digest.clone() },
        ));
    }
    let modified = Timestamp::from_nanosecond(found.modified_ns.into()).unwrap_or(task.now);
    let occasion = Occasion { session_file: &path, modified, graded_at: task.now };
    let mut heuristic = Heuristic::new(occasion, task.weights, &task.redactor);
    let reading = session::read(source, &mut heuristic);
    let gradings = heuristic.into_gradings();
    let sessions = gradings.len() as u64;

    let mut grades = Vec::new();
    let mut reason = None;
    for grading in gradings {
        match grading {
            Grading::Graded(record) => grades.push(*record),
            Grading::NotGradable { reason: why, .. } => reason = Some(why.to_owned()),
        }
    }
    if let Some(agent) = &task.agent {
        grades.retain(|grade| grade.details.agent == *agent);
        if grades.is_empty() {
            return None;
        }
    }
    let (outcome, reason, format, notes) = match reading {
        Ok(reading) if grades.is_empty() => {
            (FileOutcome::NotGradable, reason, Some(reading.format), Some(reading.notes))
        }
        Ok(reading) => (FileOutcome::Graded, None, Some(reading.format), Some(reading.notes)),
        Err(error) => {
            let outcome = match error {
                ReadError::Io(_) => FileOutcome::Unreadable,
                ReadError::Empty | ReadError::Unrecognised(_) | ReadError::NoSession { .. } => {
                    FileOutcome::NoSession
                }
            };
            (outcome, Some(error.to_string()), None, None)
        }
    };
    let file = FileRecord {
        path,
        size: found.size,
        modified_ns: found.modified_ns,
        digest: digest.unwrap_or_default(),
        scanned_at: task.now,
        outcome,
        reason: reason.map(|why| crate::text::one_line(&task.redactor.apply(&why), REASON)),
        format,
        sessions,
        graded: grades.len() as u64,
        notes_json: notes.and_then(|notes| serde_json::to_string(&notes).ok()),
    };
    Some(Examined::Read(Box::new(FileResult { file, grades })))
}

/// XXH3 of the content, 128 bits in hexadecimal; of a folder that of its files, one after the
/// other. It only tells whether a file has changed, and takes a tenth of the time of SHA-256,
/// which would be a seventh of all time.
fn digest(source: &Source) -> std::io::Result<String> {
    let mut hasher = XxHash3_128::new();
    let mut buffer = Vec::new();
    let mut add = |path: &Path| -> std::io::Result<()> {
        let mut file = File::open(path)?;
        buffer.resize(256 * 1024, 0);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                count => hasher.write(&buffer[..count]),
            }
        }
    };
    match source {
        Source::File(path) => add(path)?,
        Source::Folder { files, .. } => files.iter().try_for_each(|path| add(path))?,
        Source::Bytes { bytes, .. } => hasher.write(bytes),
    }
    Ok(format!("xxh3:{:032x}", hasher.finish_128()))
}
