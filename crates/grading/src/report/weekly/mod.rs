//! Weekly report of graded sessions: Markdown, an index, pictures, and a summary for terminals.
//!
//! Renderers return text; only `files` touches the disk. Untrusted values (tools, sessions, error
//! messages) are escaped by the templates, or by `escape` for terminals.

mod files;
pub mod finding;
pub mod format;
pub mod lead;
mod pictures;
mod summary;
pub mod table;

pub use files::{WeeklyFilesError, WeeklyPaths, render, write};
pub use format::{alert_text, coverage_text};
pub use pictures::{errors_picture, trend_picture};
pub use summary::summary_text;

#[cfg(test)]
mod tests;
