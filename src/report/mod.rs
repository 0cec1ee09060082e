//! What people and programs get to see of a run: observers and renderers.
//!
//! Renderers return text; `files` alone touches the disk, `progress` alone the terminal. Nothing
//! here decides anything: `outcome` has done that.

pub mod comparison;
pub mod document;
pub mod escape;
pub mod files;
pub mod freeze;
pub mod grades;
pub mod improvement;
pub mod observer;
pub mod progress;
pub mod quality;
pub mod reflections;
pub mod skills;
pub mod terminal;
pub mod transcript;
pub mod weekly;

mod archive;
mod index;
mod markdown;
mod plot;
mod reading;
mod recommendations;
mod repeats;
mod state;
mod trend;
pub(crate) mod wording;

#[cfg(test)]
mod fixture;

pub use archive::{RunArchive, RunFile, read_report};
pub use files::{ReportFiles, ReportFilesError, ReportPaths};
pub use index::RunEntry;
pub use observer::{ReportHandle, ReportObserver};
pub use progress::ProgressObserver;
pub use terminal::Style;
pub(crate) use trend::render as trend_picture;
pub use wording::plural;
