//! Reports of a run for people and programs: observers and renderers.
//!
//! Renderers return text. Only `files`, `case_texts` and `ci/files` access the disk, and only
//! `progress` the terminal. Results are decided in `outcome`, never here.

pub mod accept;
pub mod against;
pub mod causes;
pub mod ci;
pub mod comment;
pub mod comparison;
pub mod contrast;
pub mod document;
pub mod files;
pub mod label_store;
pub mod labelling;
pub mod observer;
pub mod progress;
pub mod recommendations;
pub mod reliability;
pub mod rerun;
pub mod skill_creator;
pub mod skill_test;
pub mod terminal;
pub mod traces;

mod archive;
mod case_view;
mod index;
mod markdown;
pub mod merge;
mod state;
pub mod wording;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod simulation;

pub use archive::{ReusedResults, RunArchive, RunFile, older_than, read_report};
pub use files::{ReportFiles, ReportFilesError, ReportPaths};
pub use index::{RunEntry, RunSeries, trend_picture};
pub use observer::{ReportHandle, ReportObserver};
pub use progress::ProgressObserver;
pub use terminal::TerminalStyle;
