//! Writing a journal. A record is in the file before anybody acts on what it tells, so that a process
//! that is killed loses nothing; a thread has the disk keep it a moment later, for a machine that
//! loses power.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::{EXTENSION, JournalHeader, Recovered, frame};
use crate::event::{EventLog, RunEventKind};
use crate::outcome::{CaseResult, RunOutcome};
use selftest_models::journaled::{CallKeeper, FinishedCall};

/// How long records are gathered before the disk is told to keep them all.
const GATHER: Duration = Duration::from_millis(5);

/// A record as it is written; `read` has the same names.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Record<'a> {
    Begun(&'a JournalHeader),
    Call(&'a FinishedCall<'a>),
    Case(&'a CaseResult),
    Resumed { at: Timestamp },
    Ended { at: Timestamp, outcome: RunOutcome },
}

/// The journal of a run that goes on.
pub struct Journal {
    shared: Arc<Shared>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    state: Mutex<State>,
    /// Something was written, or the journal is to end.
    news: Condvar,
    /// The journal is to end.
    closing: Condvar,
}

struct State {
    file: Arc<File>,
    path: PathBuf,
    /// Bytes up to the end of the last whole record.
    length: u64,
    /// Written since the disk was last told to keep it.
    is_fresh: bool,
    is_closed: bool,
    /// Why nothing is written any more.
    fault: Option<String>,
}

impl Journal {
    /// Begins the journal of a run in this folder, which is there.
    pub fn begin(folder: &Path, header: &JournalHeader) -> io::Result<Self> {
        let path = folder.join(format!("{}.{EXTENSION}", header.run_id));
        let file = created(&path)?;
        let journal = Self::of(State::new(file, path, 0));
        journal.append(&Record::Begun(header));
        match journal.fault() {
            None => Ok(journal),
            Some(fault) => {
                journal.discard();
                Err(io::Error::other(fault))
            }
        }
    }

    /// Goes on where a journal ends; a torn record at its end is cut off.
    pub fn go_on(recovered: Recovered) -> io::Result<Self> {
        let Recovered { mut file, length, path, .. } = recovered;
        file.set_len(length)?;
        file.seek(SeekFrom::End(0))?;
        let journal = Self::of(State::new(file, path, length));
        journal.append(&Record::Resumed { at: selftest_clock::now() });
        Ok(journal)
    }

    fn of(state: State) -> Self {
        let (state, news, closing) = (Mutex::new(state), Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { state, news, closing });
        let keeping = Arc::clone(&shared);
        let keeper = std::thread::spawn(move || keeping.keep_on_disk());
        Self { shared, keeper: Mutex::new(Some(keeper)) }
    }

    /// Where it is: elsewhere than it began where its folder went away.
    pub fn path(&self) -> PathBuf {
        self.shared.lock().path.clone()
    }

    /// Why it is not whole.
    pub fn fault(&self) -> Option<String> {
        self.shared.lock().fault.clone()
    }

    /// Waits until the disk keeps all of it.
    pub fn close(&self) {
        self.shared.lock().is_closed = true;
        self.shared.news.notify_one();
        self.shared.closing.notify_one();
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(keeper) = keeper {
            // Whatever became of it, all records are in the file.
            let _ = keeper.join();
        }
    }

    /// Takes it away: the run never began.
    pub fn discard(self) {
        let path = self.path();
        drop(self);
        // Where it cannot be removed it says that nothing finished.
        let _ = fs::remove_file(path);
    }

    fn append(&self, record: &Record<'_>) {
        self.shared.append(record);
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}

impl CallKeeper for Journal {
    fn keep(&self, call: &FinishedCall<'_>) {
        self.append(&Record::Call(call));
    }
}

impl EventLog for Journal {
    fn keep(&self, event: &RunEventKind) {
        match event {
            RunEventKind::CaseFinished(case) | RunEventKind::CaseRunAgain(case) => {
                if case.is_settled() {
                    self.append(&Record::Case(case));
                }
            }
            RunEventKind::RunFinished { outcome, at, .. } => {
                self.append(&Record::Ended { at: *at, outcome: *outcome });
            }
            RunEventKind::RunStarted(_)
            | RunEventKind::CasesRecalled(_)
            | RunEventKind::PhaseStarted { .. }
            | RunEventKind::PromptRejected { .. }
            | RunEventKind::Warning(_) => {}
        }
    }
}

impl State {
    fn new(file: File, path: PathBuf, length: u64) -> Self {
        let file = Arc::new(file);
        Self { file, path, length, is_fresh: false, is_closed: false, fault: None }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let written = (&*self.file).write_all(line);
        if written.is_ok() {
            self.length += line.len() as u64;
        } else {
            // What stands there of it would be damage before the next record.
            self.file.set_len(self.length)?;
            (&*self.file).seek(SeekFrom::End(0))?;
        }
        written
    }

    /// Keeps the first reason for which nothing is written any more.
    fn note(&mut self, result: io::Result<()>) {
        if let Err(cause) = result {
            let fault = unwritten(&self.path, &cause);
            self.fault.get_or_insert(fault);
        }
    }

    /// Whether the file is where it was: somebody may remove the folder while the run goes on.
    fn is_there(&self) -> bool {
        is_same(&self.file, &self.path).unwrap_or(true)
    }

    /// Writes the whole file again: where it was, or else among temporary files.
    fn move_away(&mut self) -> io::Result<()> {
        let again = self.path.parent().map_or(Ok(()), fs::create_dir_all);
        let again = again.and_then(|()| self.copied(&self.path));
        let (file, path) = if let Ok(file) = again {
            (file, self.path.clone())
        } else {
            let path = std::env::temp_dir().join(self.path.file_name().unwrap_or_default());
            (self.copied(&path)?, path)
        };
        (self.file, self.path) = (Arc::new(file), path);
        Ok(())
    }

    fn copied(&self, path: &Path) -> io::Result<File> {
        let mut file = created(path)?;
        // Its name is gone, its content is not.
        (&*self.file).seek(SeekFrom::Start(0))?;
        let copied = io::copy(&mut io::Read::take(&*self.file, self.length), &mut file);
        (&*self.file).seek(SeekFrom::End(0))?;
        copied.and_then(|_| file.sync_all())?;
        Ok(file)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change of the state is whole or is put right by the next write.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, record: &Record<'_>) {
        let line = frame::line(record);
        let mut state = self.lock();
        if state.fault.is_some() {
            return;
        }
        let written = line.map_err(io::Error::other).and_then(|line| state.write(&line));
        let was_fresh = state.is_fresh;
        match written {
            Ok(()) => state.is_fresh = true,
            Err(cause) => state.note(Err(cause)),
        }
        drop(state);
        // Whoever keeps it on disk knows of the others.
        if !was_fresh {
            self.news.notify_one();
        }
    }

    /// Has the disk keep what was written, until the journal is closed. While it does so, more is
    /// written, which it keeps all at once the next time.
    fn keep_on_disk(&self) {
        let mut state = self.lock();
        loop {
            while !state.is_fresh && !state.is_closed {
                state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if !state.is_fresh {
                if !state.is_there() {
                    // What is told at the end of a run is where its journal is.
                    let moved = state.move_away();
                    state.note(moved);
                }
                return;
            }
            let goes_on = |state: &mut State| !state.is_closed;
            let gathered = self.closing.wait_timeout_while(state, GATHER, goes_on);
            state = gathered.unwrap_or_else(PoisonError::into_inner).0;
            state.is_fresh = false;
            let file = Arc::clone(&state.file);
            drop(state);
            let kept = file.sync_data();
            state = self.lock();
            let kept =
                kept.and_then(|()| if state.is_there() { Ok(()) } else { state.move_away() });
            state.note(kept);
        }
    }
}

fn unwritten(path: &Path, cause: &io::Error) -> String {
    format!("cannot write the journal {}: {cause}", path.display())
}

/// A new file for this process alone. A process that ends gives it free.
fn created(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    {
        // It holds answers, and may have to lie among temporary files.
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    file.try_lock().map_err(io::Error::from)?;
    if let Some(folder) = path.parent() {
        // Its name has to last as well. Not every system can keep a folder.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(file)
}

#[cfg(unix)]
fn is_same(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let own = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((own.dev(), own.ino()) == (found.dev(), found.ino())),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn is_same(_file: &File, path: &Path) -> io::Result<bool> {
    path.try_exists()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::read::{begun, find, opened};
    use super::*;
    use crate::fixtures::{header as run_header, rich_cases};
    use crate::journal::{Digests, JournalError};

    fn header() -> JournalHeader {
        JournalHeader::new(
            &run_header(&rich_cases()),
            Digests::new(),
            serde_json::json!({ "seed": 7 }),
        )
    }

    fn begin(folder: &Path) -> Journal {
        Journal::begin(folder, &header()).unwrap()
    }

    fn cases() -> Vec<CaseResult> {
        rich_cases().into_iter().map(Arc::unwrap_or_clone).collect()
    }

    fn keep(journal: &Journal, case: &CaseResult) {
        EventLog::keep(journal, &RunEventKind::CaseFinished(Arc::new(case.clone())));
    }

    #[test]
    fn what_finished_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let journal = begin(folder.path());
        let (path, cases) = (journal.path(), cases());
        for case in &cases {
            keep(&journal, case);
        }
        assert!(matches!(opened(&path), Err(JournalError::InUse { .. })));
        drop(journal);
        let found = opened(&path).unwrap();
        assert_eq!((&found.header, found.torn), (&header(), 0));
        let settled: Vec<&CaseResult> = cases.iter().filter(|case| case.is_settled()).collect();
        assert!(settled.len() < cases.len(), "what was skipped is not finished");
        assert_eq!(found.cases.values().collect::<Vec<_>>(), settled);
        assert_eq!(begun(&path), Some(header()));
        assert_eq!(find(folder.path(), None).unwrap(), Some(path));
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
        let found = opened(&path).unwrap();
        assert_eq!((found.torn, found.cases.len()), (record.len() / 2, 1));
        let journal = Journal::go_on(found).unwrap();
        keep(&journal, &cases[1]);
        drop(journal);
        let found = opened(&path).unwrap();
        assert_eq!((found.torn, found.cases.len()), (0, 2));
    }

    #[test]
    fn a_journal_of_another_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.journal");
        let write = |record: serde_json::Value| {
            fs::write(&path, frame::line(&record).unwrap()).unwrap();
            opened(&path).unwrap_err().to_string()
        };
        let mut begun = serde_json::json!({ "begun": header() });
        begun["begun"]["version"] = 99.into();
        assert!(write(begun.clone()).contains("version 99, expected 1"));
        begun["begun"]["version"] = 1.into();
        begun["begun"]["selftest_version"] = "9.9.9".into();
        assert!(write(begun).contains("is of selftest 9.9.9"));
        assert!(write(serde_json::json!({ "a": 1 })).contains("is not the journal of a run"));
        for (text, words) in [
            ("", "ends before its first record"),
            ("0123abcd {\"begun\"", "ends before its first record"),
            ("hello\n", "is not the journal of a run"),
        ] {
            fs::write(&path, text).unwrap();
            let error = opened(&path).unwrap_err();
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
        assert_eq!(opened(&path).unwrap().cases.len(), 3);
    }
}
