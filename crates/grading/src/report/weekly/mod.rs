//! The weekly report of graded sessions for people: Markdown, an index, pictures, and a summary
//! for terminals.
//!
//! Renderers return text; `files` alone touches the disk. Everything foreign in them (tools,
//! sessions, words of errors) goes through `escape`.

mod errors;
mod files;
mod index;
mod page;
mod paths;
mod summary;
mod texts;
mod trend;
mod words;

pub use errors::render as errors_picture;
pub use files::{WeeklyFilesError, write};
pub use page::render;
pub use paths::WeeklyPaths;
pub use summary::summary_text;
pub use texts::WeeklyTexts;
pub use trend::render as trend_picture;
pub use words::{alert_text, coverage_text};

#[cfg(test)]
mod tests;
