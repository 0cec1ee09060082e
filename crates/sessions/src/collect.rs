//! A whole session in memory, for people and for tests. Grading does not need it.

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;

use super::event::{Event, Head};
use super::feed::Sink;
use super::text::Text;

/// Bytes of text after which further events of a session are only counted.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// A session with its events.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Session {
    /// Data about it as a whole.
    #[serde(flatten)]
    pub head: Head,
    /// Its events, in order.
    pub events: Vec<Event<'static>>,
    /// Events that were left out because the session is longer than memory should hold.
    pub left_out: u64,
}

impl Session {
    /// Changes every text in it, to take secrets out before any of it is cut.
    pub fn rewrite(&mut self, change: impl for<'t> Fn(&'t str) -> Cow<'t, str>) {
        let rewrite = |text: &mut Text<'static>| {
            *text = std::mem::take(text).map(|text| match change(text) {
                Cow::Owned(changed) => Some(changed),
                Cow::Borrowed(_) => None,
            });
        };
        for event in &mut self.events {
            rewrite(&mut event.text);
            rewrite(&mut event.reasoning);
            event.calls.iter_mut().for_each(|call| rewrite(&mut call.arguments));
            for result in &mut event.results {
                rewrite(&mut result.text);
                rewrite(&mut result.error);
            }
        }
    }
}

/// Collects the sessions of a source.
#[derive(Debug, Default)]
pub struct Collector {
    sessions: Vec<Session>,
    current: Session,
    bytes: usize,
    wanted: Wanted,
    /// The numbers of the events that are kept, where not all are.
    part: Option<Range<u64>>,
    max_bytes: Option<usize>,
}

/// Which sessions are kept, by id.
#[derive(Debug, Default)]
enum Wanted {
    #[default]
    All,
    Exactly(String),
    Beginning(String),
}

impl Wanted {
    fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// The name under which the session is wanted: its id, or its own name among the runs of that
    /// id. `None` where it is not.
    fn name(&self, head: &Head) -> Option<String> {
        let name = || head.lineage.name(&head.id);
        let found = match self {
            Self::All => return Some(head.id.clone()),
            Self::Exactly(wanted) if head.id == *wanted => return Some(head.id.clone()),
            Self::Beginning(wanted) if head.id.starts_with(wanted) => return Some(head.id.clone()),
            Self::Exactly(wanted) => wanted.starts_with(&head.id) && name() == *wanted,
            Self::Beginning(wanted) => {
                wanted.starts_with(&head.id) && name().starts_with(wanted.as_str())
            }
        };
        found.then(name)
    }
}

impl Collector {
    /// Collects the session of that id and drops all others.
    pub fn only(session_id: &str) -> Self {
        Self { wanted: Wanted::Exactly(session_id.to_owned()), ..Self::default() }
    }

    /// Collects the sessions whose ids begin so.
    pub fn beginning(session_id: &str) -> Self {
        Self { wanted: Wanted::Beginning(session_id.to_owned()), ..Self::default() }
    }

    /// Keeps only the events with these numbers: a part of a session, which may have any length.
    #[must_use]
    pub fn part(self, events: Range<u64>) -> Self {
        Self { part: Some(events), ..self }
    }

    /// Keeps events only until they take so many bytes; further ones are counted.
    #[must_use]
    pub fn at_most(self, bytes: usize) -> Self {
        Self { max_bytes: Some(bytes), ..self }
    }

    /// How many sessions were kept so far.
    pub fn kept(&self) -> usize {
        self.sessions.len()
    }

    /// The sessions in the order of the source.
    pub fn into_sessions(self) -> Vec<Session> {
        self.sessions
    }
}

impl Sink for Collector {
    fn event(&mut self, event: Event<'_>) {
        if self.part.as_ref().is_some_and(|part| !part.contains(&event.number)) {
            return;
        }
        if self.bytes > self.max_bytes.unwrap_or(MAX_BYTES) {
            self.current.left_out += 1;
            return;
        }
        let texts = event.calls.iter().map(|call| call.arguments.len());
        let results = event.results.iter().map(|result| result.text.len());
        self.bytes += size_of::<Event<'_>>() + event.text.len() + event.reasoning.len();
        self.bytes += texts.chain(results).sum::<usize>();
        self.current.events.push(event.into_owned());
    }

    fn end(&mut self, head: Head) {
        let session = std::mem::take(&mut self.current);
        if !self.wanted.is_all() {
            // What is dropped takes no room.
            self.bytes = 0;
        }
        if let Some(id) = self.wanted.name(&head) {
            self.sessions.push(Session { head: Head { id, ..head }, ..session });
        }
    }

    fn restart(&mut self) {
        self.current = Session::default();
        if !self.wanted.is_all() {
            self.bytes = 0;
        }
    }
}
