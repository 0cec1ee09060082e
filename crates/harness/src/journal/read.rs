//! Reads a journal back: the finished work, and the file itself, ready for appending.

use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;

use super::{EXTENSION, JournalError, JournalHeader, VERSION, frame};
use crate::outcome::CaseResult;
use crate::sut::namespace::RunId;
use selftest_models::journaled::StoredCall;
use selftest_text::disk::{Disk, OpenFile, OpenMode, SystemDisk};

/// Maximum size of the first record in bytes. It describes the request and contains no cases.
const MAX_FIRST: u64 = 4 * 1024 * 1024;
/// Number of records from which several threads parse them.
const MIN_PARALLEL_RECORDS: usize = 500;

/// A record as it is read back.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecoveredRecord {
    Begun(Box<JournalHeader>),
    Call(StoredCall),
    Case(Box<CaseResult>),
    /// Times of later starts and of the end, for people who read the file.
    Resumed(serde::de::IgnoredAny),
    Ended(serde::de::IgnoredAny),
}

/// The recovered state of an interrupted run.
#[derive(Debug)]
pub struct RecoveredRun {
    /// The first record.
    pub header: JournalHeader,
    /// Finished cases by their position in the plan.
    pub cases: BTreeMap<usize, CaseResult>,
    /// Finished model calls in order.
    pub calls: Vec<StoredCall>,
    /// Bytes of an incomplete last record, which is dropped.
    pub torn: usize,
    /// Path of the journal.
    pub path: PathBuf,
    /// The open journal, locked for this process.
    pub(super) file: Arc<dyn OpenFile>,
    pub(super) disk: Arc<dyn Disk>,
    /// Bytes up to the end of the last complete record.
    pub(super) length: u64,
}

/// Finds the journal of a run in this folder, or the newest one. Returns `None` if the folder has
/// no such journal.
pub fn find_journal(folder: &Path, run: Option<&str>) -> io::Result<Option<PathBuf>> {
    find_journal_on(&SystemDisk, folder, run, selftest_clock::now())
}

/// Like [`find_journal`], on this disk and at this time.
pub fn find_journal_on(
    disk: &dyn Disk,
    folder: &Path,
    run: Option<&str>,
    now: Timestamp,
) -> io::Result<Option<PathBuf>> {
    let paths = match disk.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        paths => paths?,
    };
    let journals = paths.into_iter().filter_map(|path| Some((run_of(&path)?, path)));
    let mut journals: Vec<(RunId, PathBuf)> = match run {
        Some(run) => journals.filter(|(id, _)| id.as_str() == run).collect(),
        None => journals.collect(),
    };
    // A name is precise only to the minute, so the headers decide among the newest.
    journals.sort();
    // A clock that was ahead once would otherwise name the last run until that day.
    let last = journals.iter().rfind(|(id, _)| !id.is_of_the_future(now)).or(journals.last());
    let newest = last.map(|(id, _)| id.minute().to_owned());
    // Only these headers are read, however many journals the folder has.
    let rivals = journals.into_iter().filter(|(id, _)| Some(id.minute()) == newest.as_deref());
    let by_start =
        rivals.map(|(_, path)| (header_on(disk, &path).map(|header| header.started_at), path));
    Ok(by_start.max_by_key(|(started_at, _)| *started_at).map(|(_, path)| path))
}

/// Returns the run whose journal has this file name.
pub(super) fn run_of(path: &Path) -> Option<RunId> {
    let name = path.file_name()?.to_str()?.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    RunId::try_from(name.to_owned()).ok()
}

/// Returns the first record of a journal, if it can be read.
pub fn read_header(path: &Path) -> Option<JournalHeader> {
    header_on(&SystemDisk, path)
}

fn header_on(disk: &dyn Disk, path: &Path) -> Option<JournalHeader> {
    // Opening a named pipe would block until a writer appears.
    if !disk.is_file(path).ok()? {
        return None;
    }
    let file = disk.open(path, OpenMode::Read).ok()?;
    let mut line = Vec::new();
    BufReader::new(file.reader().ok()?).take(MAX_FIRST).read_until(b'\n', &mut line).ok()?;
    match serde_json::from_slice(frame::decode_record(line.strip_suffix(b"\n")?)?).ok()? {
        RecoveredRecord::Begun(header) => Some(*header),
        _ => None,
    }
}

/// Reads a journal and locks it, so that no other process resumes the same run.
pub fn recover(path: &Path) -> Result<RecoveredRun, JournalError> {
    recover_on(Arc::new(SystemDisk), path)
}

/// Like [`recover`], on this disk.
pub fn recover_on(disk: Arc<dyn Disk>, path: &Path) -> Result<RecoveredRun, JournalError> {
    let path = path.to_owned();
    let unreadable = |cause| JournalError::Unreadable { path: path.clone(), cause };
    if !disk.is_file(&path).map_err(unreadable)? {
        return Err(JournalError::Foreign { path });
    }
    let file = disk.open(&path, OpenMode::ReadWrite).map_err(unreadable)?;
    // The writer holds this lock as long as it lives.
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(JournalError::InUse { path }),
        Err(TryLockError::Error(cause)) => return Err(unreadable(cause)),
    }
    let mut bytes = Vec::new();
    file.reader().and_then(|mut file| file.read_to_end(&mut bytes)).map_err(unreadable)?;
    let damaged = |line| JournalError::Damaged { path: path.clone(), line };
    let found = frame::split_records(&bytes).map_err(damaged)?;
    let Some((_, first)) = found.texts.first() else {
        // A torn first record still starts with the digits of its checksum, or is zeros after a loss
        // of power.
        let begins_well = bytes.iter().take(8).all(|byte| byte.is_ascii_hexdigit() || *byte == 0);
        return Err(if begins_well {
            JournalError::Empty { path }
        } else {
            JournalError::Foreign { path }
        });
    };
    let header = check_header(first, &path)?;
    let (length, torn) = (found.length as u64, found.torn);
    let (mut cases, mut calls) = (BTreeMap::new(), Vec::new());
    for (line, record) in records(&found.texts[1..]) {
        match record.ok_or_else(|| damaged(line))? {
            // The last record of a case counts: the case was run again.
            RecoveredRecord::Case(case) => drop(cases.insert(case.index, *case)),
            // In their order: a case may ask the same several times.
            RecoveredRecord::Call(call) => calls.push(call),
            RecoveredRecord::Resumed(_) | RecoveredRecord::Ended(_) => {}
            // A second header cannot be written by this program.
            RecoveredRecord::Begun(_) => return Err(damaged(line)),
        }
    }
    Ok(RecoveredRun { header, cases, calls, torn, path, file, disk, length })
}

/// Returns the first record if this program can resume from it.
fn check_header(text: &[u8], path: &Path) -> Result<JournalHeader, JournalError> {
    /// The fields that journals of every version share.
    #[derive(Deserialize)]
    struct AnyVersion {
        begun: Versions,
    }
    #[derive(Deserialize)]
    struct Versions {
        version: u64,
        selftest_version: String,
    }
    let path = path.to_owned();
    // Only the versions are parsed at first, so that another format is not reported as damage.
    let Ok(AnyVersion { begun }) = serde_json::from_slice(text) else {
        return Err(JournalError::Foreign { path });
    };
    if begun.version != u64::from(VERSION) {
        let (found, expected) = (begun.version, VERSION);
        return Err(JournalError::OtherVersion { path, found, expected });
    }
    let expected = env!("CARGO_PKG_VERSION");
    if begun.selftest_version != expected {
        let found = selftest_text::one_line(&begun.selftest_version, 60);
        return Err(JournalError::OtherProgram { path, found, expected });
    }
    match serde_json::from_slice(text) {
        Ok(RecoveredRecord::Begun(header)) => Ok(*header),
        _ => Err(JournalError::Damaged { path, line: 1 }),
    }
}

/// Parses records on all processors and returns them in order.
fn records(texts: &[(usize, &[u8])]) -> Vec<(usize, Option<RecoveredRecord>)> {
    let read = |texts: &[(usize, &[u8])]| -> Vec<(usize, Option<RecoveredRecord>)> {
        texts.iter().map(|(line, text)| (*line, serde_json::from_slice(text).ok())).collect()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    if threads == 1 || texts.len() < MIN_PARALLEL_RECORDS {
        return read(texts);
    }
    let shares = texts.chunks(texts.len().div_ceil(threads));
    std::thread::scope(|scope| {
        let readers: Vec<_> =
            shares.map(|share| (share, scope.spawn(move || read(share)))).collect();
        // A thread that panicked returned nothing. Its share is parsed here, where the panic
        // surfaces.
        let joined = readers
            .into_iter()
            .map(|(share, reader)| reader.join().unwrap_or_else(|_| read(share)));
        joined.flatten().collect()
    })
}
