//! Writes a journal. Every record is written before anything acts on it, so that a killed process
//! loses nothing. A background thread syncs the file to disk moments later, in case the machine
//! loses power.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::{EXTENSION, JournalHeader, RecoveredRun, frame};
use crate::event::{EventLog, RunEventKind};
use crate::outcome::{CaseResult, RunOutcome};
use selftest_models::journaled::{CallSink, FinishedCall};
use selftest_text::disk::{Disk, FileWriter, OpenFile, OpenMode, SystemDisk};

/// Delay in which records are collected before one sync covers them all.
const SYNC_DELAY: Duration = Duration::from_millis(5);

/// A record as it is written; `read` uses the same names.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum JournalRecord<'a> {
    Begun(&'a JournalHeader),
    Call(&'a FinishedCall<'a>),
    Case(&'a CaseResult),
    Resumed { at: Timestamp },
    Ended { at: Timestamp, outcome: RunOutcome },
}

/// When records are synced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalSync {
    /// Moments after they were written, by a thread.
    InBackground,
    /// By [`Journal::sync`] and [`Journal::close`] alone. For simulations, whose seed decides it.
    OnRequest,
}

/// The journal of a run in progress.
pub struct Journal {
    shared: Arc<SharedJournal>,
    sync_thread: Mutex<Option<JoinHandle<()>>>,
}

struct SharedJournal {
    state: Mutex<JournalState>,
    /// Signalled when something was written or the journal is closing.
    changed: Condvar,
    /// Signalled when the journal is closing.
    closing: Condvar,
}

struct JournalState {
    disk: Arc<dyn Disk>,
    file: Arc<dyn OpenFile>,
    path: PathBuf,
    /// Bytes up to the end of the last complete record.
    length: u64,
    /// Bytes that are known to be on disk.
    synced: u64,
    /// True if something was written since the last sync.
    has_unsynced: bool,
    is_closed: bool,
    /// The reason why nothing is written any more.
    fault: Option<String>,
}

impl Journal {
    /// Creates the journal of a run in this folder, which must exist.
    pub fn create(folder: &Path, header: &JournalHeader) -> io::Result<Self> {
        Self::create_on(Arc::new(SystemDisk), folder, header, JournalSync::InBackground)
    }

    /// Like [`Journal::create`], on this disk.
    pub fn create_on(
        disk: Arc<dyn Disk>,
        folder: &Path,
        header: &JournalHeader,
        sync: JournalSync,
    ) -> io::Result<Self> {
        let path = folder.join(format!("{}.{EXTENSION}", header.run_id));
        let file = create_locked(&*disk, &path)?;
        let journal = Self::of(JournalState::new(disk, file, path, 0), sync);
        journal.append(&JournalRecord::Begun(header));
        match journal.fault() {
            None => Ok(journal),
            Some(fault) => {
                journal.discard();
                Err(io::Error::other(fault))
            }
        }
    }

    /// Continues a recovered journal; a torn record at its end is cut off.
    pub fn resume(recovered: RecoveredRun) -> io::Result<Self> {
        Self::resume_with(recovered, JournalSync::InBackground)
    }

    /// Like [`Journal::resume`], synced in this way.
    pub fn resume_with(recovered: RecoveredRun, sync: JournalSync) -> io::Result<Self> {
        let RecoveredRun { file, length, path, disk, .. } = recovered;
        // Cuts off a record that was torn when the process died.
        file.set_len(length)?;
        let journal = Self::of(JournalState::new(disk, file, path, length), sync);
        journal.append(&JournalRecord::Resumed { at: selftest_clock::now() });
        Ok(journal)
    }

    fn of(state: JournalState, sync: JournalSync) -> Self {
        let (state, news, closing) = (Mutex::new(state), Condvar::new(), Condvar::new());
        let shared = Arc::new(SharedJournal { state, changed: news, closing });
        let keeper = (sync == JournalSync::InBackground).then(|| {
            let keeping = Arc::clone(&shared);
            std::thread::spawn(move || keeping.sync_until_closed())
        });
        Self { shared, sync_thread: Mutex::new(keeper) }
    }

    /// Syncs what was written to disk.
    pub fn sync(&self) {
        let mut state = self.shared.lock();
        if state.has_unsynced {
            drop(self.shared.sync_once(state));
        } else {
            state.stay_in_place();
        }
    }

    /// Returns the current path. It changes if the original folder is removed during the run.
    pub fn path(&self) -> PathBuf {
        self.shared.lock().path.clone()
    }

    /// Returns the reason why the journal is incomplete, if it is.
    pub fn fault(&self) -> Option<String> {
        self.shared.lock().fault.clone()
    }

    /// Waits until everything is on disk.
    pub fn close(&self) {
        self.shared.lock().is_closed = true;
        // The thread waits either for records or for the delay to pass, and has to notice both
        // ways.
        self.shared.changed.notify_one();
        self.shared.closing.notify_one();
        let keeper = self.sync_thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        match keeper {
            // Even if the thread panicked, all records are in the file.
            Some(keeper) => drop(keeper.join()),
            None => self.sync(),
        }
    }

    /// Deletes the journal: the run never started.
    pub fn discard(self) {
        let (path, disk) = (self.path(), Arc::clone(&self.shared.lock().disk));
        drop(self);
        // If it cannot be removed, it only states that nothing finished.
        let _ = disk.remove(&path);
    }

    fn append(&self, record: &JournalRecord<'_>) {
        self.shared.append(record);
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}

impl CallSink for Journal {
    fn record(&self, call: &FinishedCall<'_>) {
        self.append(&JournalRecord::Call(call));
    }
}

impl EventLog for Journal {
    fn record(&self, event: &RunEventKind) {
        match event {
            RunEventKind::CaseFinished(case) | RunEventKind::CaseRunAgain(case) => {
                // An unsettled case runs again after a resume.
                if case.is_settled() {
                    self.append(&JournalRecord::Case(case));
                }
            }
            RunEventKind::RunFinished { outcome, at, .. } => {
                self.append(&JournalRecord::Ended { at: *at, outcome: *outcome });
            }
            RunEventKind::RunStarted(_)
            | RunEventKind::CasesRecalled(_)
            | RunEventKind::PhaseStarted { .. }
            | RunEventKind::PromptRejected { .. }
            | RunEventKind::Warning(_) => {}
        }
    }
}

impl JournalState {
    fn new(disk: Arc<dyn Disk>, file: Arc<dyn OpenFile>, path: PathBuf, length: u64) -> Self {
        let (has_unsynced, is_closed) = (false, false);
        // What another process wrote may not be on disk yet.
        Self { disk, file, path, length, synced: 0, has_unsynced, is_closed, fault: None }
    }

    fn write(&mut self, line: &mut [u8]) -> io::Result<()> {
        if self.length > 0 && self.synced == self.length {
            frame::mark_synced(line);
        }
        let written = self.file.append(line);
        if written.is_ok() {
            self.length += line.len() as u64;
        } else {
            // A partial line would make the next record look like damage in the middle.
            self.file.set_len(self.length)?;
        }
        written
    }

    /// Records the first error, after which nothing is written.
    fn record_error(&mut self, result: io::Result<()>) {
        if let Err(cause) = result {
            let fault = write_error(&self.path, &cause);
            self.fault.get_or_insert(fault);
        }
    }

    /// Writes the file again if the user removed it, or its folder, during the run.
    fn stay_in_place(&mut self) {
        // A path that cannot be examined does not mean that the file was removed.
        if !self.file.is_at(&self.path).unwrap_or(true) {
            let moved = self.move_away();
            self.record_error(moved);
        }
    }

    /// Writes the whole file again, at its old path or else in the temporary folder.
    fn move_away(&mut self) -> io::Result<()> {
        // The folder may have been removed with its parents.
        let again = self.path.parent().map_or(Ok(()), |folder| self.disk.create_folder(folder));
        let again = again.and_then(|()| self.copy_to(&self.path));
        // Somewhere is better than nowhere: the message at the end names the place.
        let (file, path) = if let Ok(file) = again {
            (file, self.path.clone())
        } else {
            let path = std::env::temp_dir().join(self.path.file_name().unwrap_or_default());
            (self.copy_to(&path)?, path)
        };
        (self.file, self.path) = (file, path);
        Ok(())
    }

    fn copy_to(&self, path: &Path) -> io::Result<Arc<dyn OpenFile>> {
        let file = create_locked(&*self.disk, path)?;
        // The file was unlinked, but its content is still readable through the open handle.
        let mut written = self.file.reader()?.take(self.length);
        io::copy(&mut written, &mut FileWriter(&*file))?;
        file.sync()?;
        Ok(file)
    }
}

impl SharedJournal {
    fn lock(&self) -> MutexGuard<'_, JournalState> {
        // Every change of the state is either complete or repaired by the next write.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, record: &JournalRecord<'_>) {
        // Encoded before the lock is taken.
        let line = frame::encode_record(record);
        let mut state = self.lock();
        // A journal with a gap must not be resumed: nothing is written after the first fault.
        if state.fault.is_some() {
            return;
        }
        let written = line.map_err(io::Error::other).and_then(|mut line| state.write(&mut line));
        let was_fresh = state.has_unsynced;
        match written {
            Ok(()) => state.has_unsynced = true,
            Err(cause) => state.record_error(Err(cause)),
        }
        drop(state);
        // If the state was fresh already, the sync thread has been notified.
        if !was_fresh {
            self.changed.notify_one();
        }
    }

    /// Syncs written records to disk until the journal is closed. Records that arrive during a sync
    /// are covered by the next one.
    fn sync_until_closed(&self) {
        let mut state = self.lock();
        loop {
            while !state.has_unsynced && !state.is_closed {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if !state.has_unsynced {
                // The final message names the journal's path, so it has to be valid.
                state.stay_in_place();
                return;
            }
            let goes_on = |state: &mut JournalState| !state.is_closed;
            let gathered = self.closing.wait_timeout_while(state, SYNC_DELAY, goes_on);
            state = self.sync_once(gathered.unwrap_or_else(PoisonError::into_inner).0);
        }
    }

    /// Syncs what was written up to now.
    fn sync_once<'a>(
        &'a self,
        mut state: MutexGuard<'a, JournalState>,
    ) -> MutexGuard<'a, JournalState> {
        // Reset before the lock is released: what is appended during the sync needs another one.
        state.has_unsynced = false;
        // The lock is released during the sync, so that appends do not wait for the disk.
        let (file, length) = (Arc::clone(&state.file), state.length);
        drop(state);
        let kept = file.sync();
        let mut state = self.lock();
        match kept {
            Ok(()) => {
                // A file that was written again meanwhile was synced as a whole.
                state.synced = state.synced.max(length);
                state.stay_in_place();
            }
            Err(_) => state.record_error(kept),
        }
        state
    }
}

fn write_error(path: &Path, cause: &io::Error) -> String {
    format!("cannot write the journal {}: {cause}", path.display())
}

/// Creates a new file and locks it for this process. The lock is released when the process ends.
fn create_locked(disk: &dyn Disk, path: &Path) -> io::Result<Arc<dyn OpenFile>> {
    // It contains answers, and may end up in a shared temporary folder.
    let file = disk.open(path, OpenMode::CreatePrivate)?;
    file.try_lock().map_err(io::Error::from)?;
    if let Some(folder) = path.parent() {
        // The directory entry has to be durable as well. Not every system can sync a folder.
        let _ = disk.sync_folder(folder);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use super::super::read::{find_journal, read_header, recover};
    use super::*;
    use crate::fixtures::{header as run_header, rich_cases};
    use crate::journal::{JournalError, RunDigests};

    fn header() -> JournalHeader {
        JournalHeader::new(
            &run_header(&rich_cases()),
            RunDigests::new(),
            serde_json::json!({ "seed": 7 }),
        )
    }

    fn begin(folder: &Path) -> Journal {
        Journal::create(folder, &header()).unwrap()
    }

    fn cases() -> Vec<CaseResult> {
        rich_cases().into_iter().map(Arc::unwrap_or_clone).collect()
    }

    fn keep(journal: &Journal, case: &CaseResult) {
        EventLog::record(journal, &RunEventKind::CaseFinished(Arc::new(case.clone())));
    }

    #[test]
    fn what_finished_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let journal = begin(folder.path());
        let (path, cases) = (journal.path(), cases());
        for case in &cases {
            keep(&journal, case);
        }
        assert!(matches!(recover(&path), Err(JournalError::InUse { .. })));
        drop(journal);
        let found = recover(&path).unwrap();
        assert_eq!((&found.header, found.torn), (&header(), 0));
        let settled: Vec<&CaseResult> = cases.iter().filter(|case| case.is_settled()).collect();
        assert!(settled.len() < cases.len(), "what was skipped is not finished");
        assert_eq!(found.cases.values().collect::<Vec<_>>(), settled);
        assert_eq!(read_header(&path), Some(header()));
        assert_eq!(find_journal(folder.path(), None).unwrap(), Some(path));
    }

    #[test]
    fn a_torn_record_is_dropped_and_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let journal = begin(folder.path());
        let (path, cases) = (journal.path(), cases());
        keep(&journal, &cases[0]);
        drop(journal);
        let whole = fs::read(&path).unwrap();
        let record = whole.split_inclusive(|&byte| byte == b'\n').nth(1).unwrap().to_vec();
        fs::write(&path, [&whole[..], &record[..record.len() / 2]].concat()).unwrap();
        let found = recover(&path).unwrap();
        assert_eq!((found.torn, found.cases.len()), (record.len() / 2, 1));
        let journal = Journal::resume(found).unwrap();
        keep(&journal, &cases[1]);
        drop(journal);
        let found = recover(&path).unwrap();
        assert_eq!((found.torn, found.cases.len()), (0, 2));
    }

    #[test]
    fn a_zero_in_what_was_synced_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let (disk, sync) = (Arc::new(SystemDisk), JournalSync::OnRequest);
        let journal = Journal::create_on(disk, folder.path(), &header(), sync).unwrap();
        let (path, cases) = (journal.path(), cases());
        keep(&journal, &cases[0]);
        journal.sync();
        keep(&journal, &cases[1]);
        drop(journal);
        let mut bytes = fs::read(&path).unwrap();
        let first = bytes.iter().position(|&byte| byte == b'\n').unwrap();
        bytes[first + 20] = 0;
        fs::write(&path, &bytes).unwrap();
        assert!(matches!(recover(&path), Err(JournalError::Damaged { line: 2, .. })));
        // Zeros at the end are what was not synced.
        let second = first + 1 + bytes[first + 1..].iter().position(|&it| it == b'\n').unwrap();
        bytes[second + 20..].fill(0);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(recover(&path).unwrap().cases.len(), 0);
    }

    #[test]
    fn a_journal_of_another_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.journal");
        let write = |record: serde_json::Value| {
            fs::write(&path, frame::encode_record(&record).unwrap()).unwrap();
            recover(&path).unwrap_err().to_string()
        };
        let mut begun = serde_json::json!({ "begun": header() });
        begun["begun"]["version"] = 99.into();
        assert!(write(begun.clone()).contains("version 99, expected 2"));
        begun["begun"]["version"] = 2.into();
        begun["begun"]["selftest_version"] = "9.9.9".into();
        assert!(write(begun).contains("is of selftest 9.9.9"));
        assert!(write(serde_json::json!({ "a": 1 })).contains("is not the journal of a run"));
        for (text, words) in [
            ("", "ends before its first record"),
            ("0123abcd {\"begun\"", "ends before its first record"),
            ("hello\n", "is not the journal of a run"),
        ] {
            fs::write(&path, text).unwrap();
            let error = recover(&path).unwrap_err();
            assert!(error.to_string().contains(words), "{text:?}: {error}");
            assert!(!error.hint().is_empty());
        }
    }

    #[test]
    fn a_folder_that_goes_away_is_made_again() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("json");
        fs::create_dir(&folder).unwrap();
        let journal = begin(&folder);
        let (path, cases) = (journal.path(), cases());
        keep(&journal, &cases[0]);
        fs::remove_dir_all(&folder).unwrap();
        keep(&journal, &cases[1]);
        let started = Instant::now();
        while !path.exists() && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        keep(&journal, &cases[2]);
        assert_eq!((journal.path(), journal.fault()), (path.clone(), None));
        drop(journal);
        assert_eq!(recover(&path).unwrap().cases.len(), 3);
    }
}
