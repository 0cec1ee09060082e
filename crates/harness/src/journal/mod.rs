//! The journal of a run: an append-only file of finished work, so that nothing is lost if the
//! process dies. Reports are built from the same events; an interrupted run resumes from its
//! journal.
//!
//! The journal depends neither on models nor on systems under test, and renders nothing.

mod error;
mod frame;
mod header;
mod leftovers;
mod read;
mod records;
mod writer;

pub use error::JournalError;
pub use header::{JournalHeader, RunDigests};
pub use leftovers::{remove_leftovers, remove_leftovers_on};
pub use read::{RecoveredRun, find_journal, find_journal_on, read_header, recover, recover_on};
pub use records::RecordFile;
pub use writer::{Journal, JournalSync};

/// File extension of a journal; the stem is the run id.
pub const EXTENSION: &str = "journal";
