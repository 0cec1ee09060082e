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
pub mod former;
pub mod freeze;
pub mod label_store;
pub mod labelling;
pub mod next_step;
pub mod not_passed;
pub mod observer;
pub mod progress;
pub mod reliability;
pub mod skill_creator;
pub mod skill_test;
pub mod terminal;
pub mod traces;

mod archive;
mod case_texts;
mod case_view;
mod index;
mod markdown;
pub mod merge;
mod recommendations;
mod state;
mod trend;
pub mod wording;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod simulation;

pub use archive::{RunArchive, RunFile, older_than, read_report};
pub use files::{ReportFiles, ReportFilesError, ReportPaths};
pub use index::{RunEntry, RunSeries};
pub use observer::{ReportHandle, ReportObserver};
pub use progress::ProgressObserver;
pub use terminal::TerminalStyle;
pub use trend::render as trend_picture;
