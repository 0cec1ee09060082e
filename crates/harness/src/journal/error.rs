//! Errors that prevent a run from resuming from its journal, with hints.

use std::path::PathBuf;

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
