//! The journal of a run: what finished, appended as it finishes, so that nothing of it is lost
//! whatever becomes of the process. Reports are made of the same events; a run that was broken off
//! goes on from its journal.
//!
//! Knows nothing of models or of systems under test, and renders nothing.

mod error;
mod frame;
mod header;
mod leftovers;
mod read;
mod records;
mod writer;

pub use error::JournalError;
pub use header::{Digests, JournalHeader};
pub use leftovers::sweep;
pub use read::{Recovered, begun, find, opened};
pub use records::Records;
pub use writer::Journal;

/// The ending of a journal's name; what stands before it is the name of the run.
pub const EXTENSION: &str = "journal";
