//! Reads a session from its file: completely, in part, or to find a quote.

use std::ops::Range;
use std::path::Path;

use super::NormalizedQuote;
use super::cache::{CachedPart, MAX_PART};
use selftest_grading::report::session::OverviewCollector;
use selftest_sessions::{
    Event, Session, SessionCollector, SessionFile, SessionHead, SessionSink, SessionSource,
};
use selftest_text::redact::Redactor;

/// Error when reading a session that the store knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// The file is missing or not accessible.
    #[error("{why}")]
    Gone {
        /// Reason; names the file.
        why: String,
    },
    /// The file exists but cannot be read.
    #[error("{why}")]
    Unreadable {
        /// Reason; names the file.
        why: String,
    },
    /// The file no longer contains the session.
    #[error("{file} does not hold it any more")]
    Moved {
        /// File path.
        file: String,
    },
    /// Internal error.
    #[error("reading the session failed: {why}")]
    Failed {
        /// Error message.
        why: String,
    },
}

impl From<tokio::task::JoinError> for TranscriptError {
    fn from(panic: tokio::task::JoinError) -> Self {
        TranscriptError::Failed { why: panic.to_string() }
    }
}

/// Shortens a path for a message.
pub(crate) fn shorten_path(file: &str) -> String {
    selftest_text::one_line(file, 400)
}

/// Finds the source from which the sessions of a file are read.
pub(crate) fn find_source(file: &str) -> Result<SessionFile, TranscriptError> {
    let mut problem = None;
    let found = selftest_sessions::find_session_files(&[Path::new(file).to_owned()], |why| {
        problem = Some(shorten_path(why));
    });
    let gone = || match problem {
        Some(why) if Path::new(file).exists() => why,
        Some(why) => format!("{why}: it is not there any more"),
        None => format!("{} is not there any more", shorten_path(file)),
    };
    found.into_iter().next().ok_or_else(|| TranscriptError::Gone { why: gone() })
}

/// Reads a complete session from a file and redacts its secrets.
pub(crate) fn read_session(
    session_id: &str,
    file: &str,
    redactor: &Redactor,
) -> Result<Session, TranscriptError> {
    let found = find_source(file)?;
    let mut collector = SessionCollector::with_id(session_id);
    read_source(&found.source, &mut collector)?;
    let session = collector.into_sessions().into_iter().next();
    let mut session = session.ok_or_else(|| TranscriptError::Moved { file: shorten_path(file) })?;
    session.rewrite(|text| redactor.apply(text));
    Ok(session)
}

/// Reads a source; the error names its file.
pub(crate) fn read_source(
    source: &SessionSource,
    sink: &mut dyn SessionSink,
) -> Result<selftest_sessions::ReadSummary, TranscriptError> {
    selftest_sessions::read(source, sink).map_err(|error| {
        let why = format!("{}: {error}", shorten_path(&source.path().to_string_lossy()));
        TranscriptError::Unreadable { why }
    })
}

/// Reads the events in `around`, or only those in `wanted` if the larger range exceeds the size
/// limit.
pub(super) fn part(
    source: &SessionSource,
    session_id: &str,
    around: Range<u64>,
    wanted: &Range<u64>,
) -> Result<CachedPart, TranscriptError> {
    let part = read_part(source, session_id, around, Some(MAX_PART))?;
    if part.session.left_out == 0 {
        return Ok(part);
    }
    read_part(source, session_id, wanted.clone(), None)
}

fn read_part(
    source: &SessionSource,
    session_id: &str,
    range: Range<u64>,
    most: Option<usize>,
) -> Result<CachedPart, TranscriptError> {
    let collector = SessionCollector::with_id(session_id).with_events(range.clone());
    let collector = most.into_iter().fold(collector, SessionCollector::with_max_bytes);
    let mut counted = OverviewCollector::new(collector);
    let reading = read_source(source, &mut counted)?;
    let Some((session, overview)) = counted.into_sessions().next() else {
        let file = shorten_path(&source.path().to_string_lossy());
        return Err(TranscriptError::Moved { file });
    };
    Ok(CachedPart { range, session, overview, notes: reading.notes })
}

/// Returns the number of the first event of a session that contains the quote.
pub(super) fn find_quote(
    session_id: &str,
    file: &str,
    quoted: &NormalizedQuote,
    redactor: &Redactor,
) -> Result<Option<u64>, TranscriptError> {
    let found = find_source(file)?;
    let collector = SessionCollector::with_id(session_id).with_events(0..0);
    let mut finder = QuoteFinder { collector, quoted, redactor, current: None, found: None };
    read_source(&found.source, &mut finder)?;
    if finder.collector.session_count() == 0 {
        return Err(TranscriptError::Moved { file: shorten_path(file) });
    }
    Ok(finder.found)
}

/// Searches the events of one session for a quote.
struct QuoteFinder<'q> {
    /// Selects the session; stores no events.
    collector: SessionCollector,
    quoted: &'q NormalizedQuote,
    redactor: &'q Redactor,
    current: Option<u64>,
    found: Option<u64>,
}

impl QuoteFinder<'_> {
    /// Also checks the redacted event, because secrets were redacted before a model saw the text.
    fn contains_quote(&self, event: &Event<'_>) -> bool {
        if self.quoted.occurs_in(event) {
            return true;
        }
        // Redacting an event is expensive, so it is skipped unless the quote was redacted.
        if !self.quoted.has_redaction() {
            return false;
        }
        let mut session =
            Session { events: vec![event.clone().into_owned()], ..Session::default() };
        session.rewrite(|text| self.redactor.apply(text));
        self.quoted.occurs_in(&session.events[0])
    }
}

impl SessionSink for QuoteFinder<'_> {
    fn event(&mut self, event: Event<'_>) {
        if self.current.is_none() && self.contains_quote(&event) {
            self.current = Some(event.number);
        }
        self.collector.event(event);
    }

    fn end(&mut self, head: SessionHead) {
        let current = self.current.take();
        let is_first = self.collector.session_count() == 0;
        self.collector.end(head);
        if is_first && self.collector.session_count() > 0 {
            self.found = current;
        }
    }

    fn restart(&mut self) {
        self.current = None;
        self.collector.restart();
    }
}
