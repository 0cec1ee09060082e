//! The journal of a run: an append-only file of finished work, so that nothing is lost if the
//! process dies. Reports are built from the same events; an interrupted run resumes from its
//! journal, if the journal's first record says that it is the same run.
//!
//! The journal depends neither on models nor on systems under test, and renders nothing.

mod frame;
mod read;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::RunHeader;
use crate::sut::namespace::{RunId, TaskGroupId};
pub use frame::RecordFile;
pub use read::{RecoveredRun, find_journal, find_journal_on, read_header, recover, recover_on};
use selftest_text::disk::{Disk, OpenMode, SystemDisk};
pub use writer::{Journal, JournalSync};

/// File extension of a journal; the stem is the run id.
pub const EXTENSION: &str = "journal";

/// Version of the journal format. Incremented with every change; journals live only as long as
/// their run.
const VERSION: u32 = 2;

/// SHA-256 of the inputs that decide a run's results, keyed by their names in messages. If one
/// differs, the finished cases do not fit the resumed run.
pub type RunDigests = BTreeMap<String, String>;

/// The description of a run, written before its first case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalHeader {
    /// Version of the journal format.
    pub version: u32,
    /// Version of the program.
    pub selftest_version: String,
    /// Id of the run.
    pub run_id: RunId,
    /// Group of all its tasks.
    pub task_group_id: TaskGroupId,
    /// Time when it started.
    pub started_at: Timestamp,
    /// Seed of all sampling.
    pub seed: u64,
    /// Number of planned cases.
    pub cases: usize,
    /// Digests that have to be equal for the run to be resumed.
    pub digests: RunDigests,
    /// The command that started the run, interpreted by the command line.
    pub request: Value,
}

impl JournalHeader {
    /// Creates the header of a new run. `request` is what the command line needs to start it again.
    pub fn new(header: &RunHeader, digests: RunDigests, request: Value) -> Self {
        Self {
            version: VERSION,
            selftest_version: header.selftest_version.clone(),
            run_id: header.run_id.clone(),
            task_group_id: header.task_group_id.clone(),
            started_at: header.started_at,
            seed: header.seed,
            cases: header.scenario_ids.len(),
            digests,
            request,
        }
    }

    /// Returns the names of the parts that changed.
    pub fn differences(&self, now: &RunDigests) -> Vec<String> {
        let names = self.digests.keys().chain(now.keys());
        let mut differ: Vec<String> =
            names.filter(|name| self.digests.get(*name) != now.get(*name)).cloned().collect();
        // Both lists are chained above, so that most names occur twice.
        differ.sort();
        differ.dedup();
        differ
    }
}

/// The journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The OS denied access to the file.
    #[error("cannot read the journal {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The OS error.
        cause: std::io::Error,
    },
    /// The file does not start like a journal.
    #[error("{} is not the journal of a run", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file ends within its first record.
    #[error("the journal {} ends before its first record: the run had not begun", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The format version differs.
    #[error("the journal {} has version {found}, expected {expected}", path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The version in the journal.
        found: u64,
        /// The version that this program writes.
        expected: u32,
    },
    /// Another version of this program wrote it.
    #[error(
        "the journal {} is of selftest {found}, and this is selftest {expected}", path.display()
    )]
    OtherProgram {
        /// The file.
        path: PathBuf,
        /// The version in the journal.
        found: String,
        /// The version of this program.
        expected: &'static str,
    },
    /// A record in the middle is corrupt.
    #[error("the journal {} is damaged in line {line}, and whole records follow", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line number of the record.
        line: usize,
    },
    /// The run is still in progress.
    #[error("the run of the journal {} is still in progress", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The configuration, the cases or the models differ from those of the journal.
    #[error("{what} not as when the run of the journal {} began", path.display())]
    OtherRun {
        /// The file.
        path: PathBuf,
        /// The parts that differ, followed by `is` or `are`.
        what: String,
    },
}

impl JournalError {
    /// Returns one thing that the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            JournalError::Unreadable { .. } => {
                "make the file readable, or start a new run without --resume"
            }
            JournalError::Foreign { .. } => {
                "name a run, its journal (reports/selftest/<run id>.journal), or `latest`"
            }
            JournalError::Empty { .. } => "start a new run without --resume: nothing is lost",
            JournalError::OtherVersion { .. } | JournalError::OtherProgram { .. } => {
                "resume it with the version that began it, or start a new run without --resume"
            }
            JournalError::Damaged { .. } => {
                "cut the file before that line (`head -n`), which keeps what finished before, or \
                 start a new run without --resume"
            }
            JournalError::InUse { .. } => "wait for its end, or interrupt it first",
            JournalError::OtherRun { .. } => {
                "put back what was changed, or start a new run without --resume"
            }
        }
    }
}

/// Removes temporary files of dead runs from the report folders. Files that cannot be removed stay.
pub fn remove_leftovers(json_folder: &Path, markdown_folder: &Path) {
    remove_leftovers_on(&SystemDisk, json_folder, markdown_folder);
}

/// Like [`remove_leftovers`], on this disk.
pub fn remove_leftovers_on(disk: &dyn Disk, json_folder: &Path, markdown_folder: &Path) {
    // One look at each run, however many files it left.
    let mut alive = BTreeMap::<RunId, bool>::new();
    for folder in [json_folder, markdown_folder] {
        for path in disk.list(folder).unwrap_or_default() {
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(run) = name.and_then(owner_of) else { continue };
            let is_alive =
                *alive.entry(run.clone()).or_insert_with(|| is_alive(disk, json_folder, &run));
            if !is_alive {
                let _ = disk.remove(&path);
            }
        }
    }
}

/// Returns the run that a temporary file belongs to: `.<name>.<run id>.tmp` or `.<run id>.probe`.
fn owner_of(name: &str) -> Option<RunId> {
    let inner = name.strip_prefix('.')?;
    let run = match inner.strip_suffix(".tmp") {
        Some(inner) => inner.rsplit_once('.')?.1,
        None => inner.strip_suffix(".probe")?,
    };
    RunId::try_from(run.to_owned()).ok()
}

/// Returns true if a process holds the lock on the run's journal. A run without a journal may be
/// about to start, so it counts as alive.
fn is_alive(disk: &dyn Disk, folder: &Path, run: &RunId) -> bool {
    let journal = folder.join(format!("{run}.{EXTENSION}"));
    disk.open(&journal, OpenMode::Read).map_or(true, |file| file.try_lock_shared().is_err())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn only_files_of_dead_runs_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (dead, alive) = ("selftest-20260206-1234-dddddd", "selftest-20260206-1234-bbbbbb");
        let new = "selftest-20260206-1234-nnnnnn";
        for run in [dead, alive, new] {
            fs::write(path(&format!(".{run}.json.{run}.tmp")), "half").unwrap();
        }
        fs::write(path(&format!(".{dead}.probe")), "").unwrap();
        fs::write(path(".index.md.mine.tmp"), "").unwrap();
        fs::write(path(&format!("{dead}.journal")), "").unwrap();
        let held = File::create(path(&format!("{alive}.journal"))).unwrap();
        held.lock().unwrap();
        remove_leftovers(folder.path(), folder.path());
        let left: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with('.'))
            .collect();
        assert_eq!(left.len(), 3, "{left:?}");
        assert!(left.iter().all(|name| !name.contains(dead)), "{left:?}");
    }
}
