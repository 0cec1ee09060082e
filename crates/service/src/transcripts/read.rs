//! Reading a session from its file: whole, in part, or in search of a quote.

use std::ops::Range;
use std::path::Path;

use super::kept::{MAX_PART, Part};
use super::quote::Quoted;
use selftest_grading::report::session::Counted;
use selftest_sessions::{Collector, Event, Found, Head, Session, Sink, Source};
use selftest_text::redact::Redactor;

/// Why a session that the store knows cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// Its file is gone, or nobody may look at it.
    #[error("{why}")]
    Gone {
        /// Why; names the file.
        why: String,
    },
    /// The file is there and cannot be read.
    #[error("{why}")]
    Unreadable {
        /// Why; names the file.
        why: String,
    },
    /// The file holds other sessions.
    #[error("{file} does not hold it any more")]
    Moved {
        /// The file.
        file: String,
    },
    /// A fault of ours.
    #[error("reading the session failed: {why}")]
    Failed {
        /// Why.
        why: String,
    },
}

/// A path in a message.
pub(crate) fn in_words(file: &str) -> String {
    selftest_text::one_line(file, 400)
}

/// Where the sessions of a file are read.
pub(crate) fn find_source(file: &str) -> Result<Found, TranscriptError> {
    let mut problem = None;
    let found = selftest_sessions::find(&[Path::new(file).to_owned()], |why| {
        problem = Some(in_words(why));
    });
    let gone = || match problem {
        Some(why) if Path::new(file).exists() => why,
        Some(why) => format!("{why}: it is not there any more"),
        None => format!("{} is not there any more", in_words(file)),
    };
    found.into_iter().next().ok_or_else(|| TranscriptError::Gone { why: gone() })
}

/// The session of that id in a file, whole, its secrets taken out.
pub(crate) fn read_session(
    session_id: &str,
    file: &str,
    redactor: &Redactor,
) -> Result<Session, TranscriptError> {
    let found = find_source(file)?;
    let mut collector = Collector::only(session_id);
    read(&found.source, &mut collector)?;
    let session = collector.into_sessions().into_iter().next();
    let mut session = session.ok_or_else(|| TranscriptError::Moved { file: in_words(file) })?;
    session.rewrite(|text| redactor.apply(text));
    Ok(session)
}

fn read(
    source: &Source,
    sink: &mut dyn Sink,
) -> Result<selftest_sessions::Reading, TranscriptError> {
    selftest_sessions::read(source, sink).map_err(|error| {
        let why = format!("{}: {error}", in_words(&source.path().to_string_lossy()));
        TranscriptError::Unreadable { why }
    })
}

/// The events around those that are wanted, or these alone where there is much in them.
pub(super) fn part(
    source: &Source,
    session_id: &str,
    around: Range<u64>,
    wanted: &Range<u64>,
) -> Result<Part, TranscriptError> {
    let part = read_part(source, session_id, around, Some(MAX_PART))?;
    if part.session.left_out == 0 {
        return Ok(part);
    }
    read_part(source, session_id, wanted.clone(), None)
}

fn read_part(
    source: &Source,
    session_id: &str,
    range: Range<u64>,
    most: Option<usize>,
) -> Result<Part, TranscriptError> {
    let collector = Collector::only(session_id).part(range.clone());
    let collector = most.into_iter().fold(collector, Collector::at_most);
    let mut counted = Counted::new(collector);
    let reading = read(source, &mut counted)?;
    let Some((session, overview)) = counted.into_sessions().next() else {
        let file = in_words(&source.path().to_string_lossy());
        return Err(TranscriptError::Moved { file });
    };
    Ok(Part { range, session, overview, notes: reading.notes })
}

/// The first event of the session that holds the quote.
pub(super) fn find_quote(
    session_id: &str,
    file: &str,
    quoted: &Quoted,
    redactor: &Redactor,
) -> Result<Option<u64>, TranscriptError> {
    let found = find_source(file)?;
    let collector = Collector::only(session_id).part(0..0);
    let mut finder = Finder { collector, quoted, redactor, current: None, found: None };
    read(&found.source, &mut finder)?;
    if finder.collector.kept() == 0 {
        return Err(TranscriptError::Moved { file: in_words(file) });
    }
    Ok(finder.found)
}

/// Looks for a quote in the events of one session.
struct Finder<'q> {
    /// Says which session it is; keeps no event.
    collector: Collector,
    quoted: &'q Quoted,
    redactor: &'q Redactor,
    current: Option<u64>,
    found: Option<u64>,
}

impl Finder<'_> {
    /// Secrets were taken out before a model saw the text.
    fn holds(&self, event: &Event<'_>) -> bool {
        if self.quoted.stands_in(event) {
            return true;
        }
        if !self.quoted.has_redaction() {
            return false;
        }
        let mut session =
            Session { events: vec![event.clone().into_owned()], ..Session::default() };
        session.rewrite(|text| self.redactor.apply(text));
        self.quoted.stands_in(&session.events[0])
    }
}

impl Sink for Finder<'_> {
    fn event(&mut self, event: Event<'_>) {
        if self.current.is_none() && self.holds(&event) {
            self.current = Some(event.number);
        }
        self.collector.event(event);
    }

    fn end(&mut self, head: Head) {
        let current = self.current.take();
        let is_first = self.collector.kept() == 0;
        self.collector.end(head);
        if is_first && self.collector.kept() > 0 {
            self.found = current;
        }
    }

    fn restart(&mut self) {
        self.current = None;
        self.collector.restart();
    }
}
