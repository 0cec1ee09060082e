#![doc = include_str!("../README.md")]
//!
//! # Model
//!
//! A session is a [`SessionHead`] and a list of [`Event`]s. Each event has a [`EventRole`], as in chat
//! protocols, and an [`EventOrigin`]. Most records that agents mark as `user` were not typed by a
//! person, and only the reader of a format can tell the difference.

mod blocks;
mod bounded;
mod collect;
mod compressed;
mod condense;
mod content;
mod detect;
mod digest;
mod event;
#[cfg(test)]
mod example;
mod failure;
mod feed;
mod find;
mod format;
mod lineage;
mod lines;
mod naming;
mod outline;
mod repaired;
mod source;
mod sqlite;
mod stream;
#[cfg(test)]
mod test_support;
mod text;
mod time;
mod wire;

mod aider;
mod antigravity;
mod atif;
mod chat;
mod chat_gpt;
mod claude_code;
mod claude_print;
mod codex;
mod codex_exec;
mod copilot_cli;
mod crush;
mod cursor;
mod cursor_print;
mod cursor_store;
mod factory_stream;
mod gemini_cli;
mod gemini_print;
mod goose;
mod grok;
mod hermes;
mod homes;
mod inspect;
mod kimi;
mod kiro;
mod mini_swe_agent;
mod open_code;
mod open_hands;
mod open_hands_sdk;
mod pi;
mod printed_answer;
mod qwen_code;
mod spec_story;
mod swe_agent;
mod traces;
mod vs_code;
mod zed;

pub use atif::to_atif;
pub use collect::{Session, SessionCollector};
pub use condense::{
    OmissionCounts, SessionTranscript, TokenCalibration, TranscriptBudget, condense,
};
pub use digest::FileDigest;
pub use event::{
    Event, EventMark, EventOrigin, EventRole, SessionHead, TokenCounts, ToolCall, ToolOutcome,
    ToolResult,
};
pub use feed::{ReadNotes, SessionSink, UnknownBlocks};
pub use find::{FileAudit, IgnoredFiles, SessionFile, audit_files, find_session_files};
pub use format::{
    SessionFormat, VerificationBasis, VerifiedVersion, is_newer, newer_than_verified,
    verified_versions,
};
pub use homes::{AgentHome, agent_homes};
pub use lineage::SessionLineage;
pub use source::SessionSource;
pub use text::Text;

/// Result of reading one source.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadSummary {
    /// Detected format.
    pub format: SessionFormat,
    /// Number of sessions passed to the sink.
    pub sessions: u64,
    /// Counts of what was skipped, cut or repaired.
    pub notes: ReadNotes,
}

/// Error for a source without a readable session.
#[derive(Debug, thiserror::Error)]
pub enum SessionReadError {
    /// The source could not be read.
    #[error("cannot read: {0}")]
    Io(#[from] std::io::Error),
    /// The source is empty.
    #[error("the file is empty")]
    Empty,
    /// The format is unknown.
    #[error("no known session format: {0}")]
    Unrecognised(String),
    /// The format is known, but the source has no events.
    #[error("{format}: {reason}")]
    NoSession {
        /// Detected format.
        format: SessionFormat,
        /// Description of the content.
        reason: String,
    },
}

/// Reads every session of a source into `sink`, detecting the format from the content.
///
/// A truncated or damaged source is read as far as possible; [`ReadSummary::notes`] reports the damage.
///
/// ```
/// use selftest_sessions::{SessionCollector, SessionFormat, SessionSource, read};
///
/// let chat = r#"[{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]"#;
/// let mut collector = SessionCollector::default();
/// let reading = read(&SessionSource::bytes("chat.json", chat), &mut collector)?;
/// assert_eq!(reading.format, SessionFormat::Chat);
/// assert_eq!(collector.into_sessions()[0].events[1].text.as_str(), "hi");
/// # Ok::<(), selftest_sessions::SessionReadError>(())
/// ```
pub fn read(
    source: &SessionSource,
    sink: &mut dyn SessionSink,
) -> Result<ReadSummary, SessionReadError> {
    read_as(detect::detect(source)?, source, sink)
}

/// Reads every session of a source as `format`, without detection.
pub fn read_as(
    format: SessionFormat,
    source: &SessionSource,
    sink: &mut dyn SessionSink,
) -> Result<ReadSummary, SessionReadError> {
    let mut feed = format.entry().feed(source, sink);
    (format.entry().read)(source, &mut feed)?;
    let (sessions, notes) = feed.finish();
    if sessions == 0 {
        return Err(SessionReadError::NoSession { format, reason: notes.describe_emptiness() });
    }
    Ok(ReadSummary { format, sessions, notes })
}
