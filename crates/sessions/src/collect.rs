//! Collects whole sessions in memory, for display and tests. Grading does not need it.

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;

use super::event::{Event, SessionHead};
use super::feed::SessionSink;
use super::text::Text;

/// Maximum bytes of text; further events of a session are only counted.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// A session with its events.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Session {
    /// Metadata of the session.
    #[serde(flatten)]
    pub head: SessionHead,
    /// Events, in order.
    pub events: Vec<Event<'static>>,
    /// Number of events left out because the session exceeds the memory limit.
    pub left_out: u64,
}

impl Session {
    /// Rewrites every text of the session. Use it to redact secrets before any text is cut, because
    /// half of a secret is not recognised.
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

/// A sink that collects the sessions of a source.
#[derive(Debug, Default)]
pub struct SessionCollector {
    sessions: Vec<Session>,
    current: Session,
    /// Bytes of the current session. Separate from `kept`, because a session that is read again
    /// starts over.
    bytes: usize,
    /// Bytes of the sessions before it.
    kept: usize,
    filter: SessionFilter,
    /// Range of event numbers to keep; `None` keeps all.
    event_range: Option<Range<u64>>,
    max_bytes: Option<usize>,
}

/// Selects sessions by id.
#[derive(Debug, Default)]
enum SessionFilter {
    #[default]
    All,
    Exact(String),
    Prefix(String),
}

impl SessionFilter {
    fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Returns the name that the selection matches: the session's id, or the name of this run among
    /// several with that id. Returns `None` if the session is not selected.
    fn matching_name(&self, head: &SessionHead) -> Option<String> {
        let name = || head.lineage.run_name(&head.id);
        let found = match self {
            Self::All => return Some(head.id.clone()),
            Self::Exact(wanted) if head.id == *wanted => return Some(head.id.clone()),
            Self::Prefix(wanted) if head.id.starts_with(wanted) => return Some(head.id.clone()),
            // The prefix check avoids computing the run name for most sessions.
            Self::Exact(wanted) => wanted.starts_with(&head.id) && name() == *wanted,
            Self::Prefix(wanted) => {
                wanted.starts_with(&head.id) && name().starts_with(wanted.as_str())
            }
        };
        found.then(name)
    }
}

impl SessionCollector {
    /// Collects only the session with this id.
    pub fn with_id(session_id: &str) -> Self {
        Self { filter: SessionFilter::Exact(session_id.to_owned()), ..Self::default() }
    }

    /// Collects only sessions whose ids start with this prefix.
    pub fn with_id_prefix(session_id: &str) -> Self {
        Self { filter: SessionFilter::Prefix(session_id.to_owned()), ..Self::default() }
    }

    /// Keeps only the events with these numbers. The session itself may have any length.
    #[must_use]
    pub fn with_events(self, events: Range<u64>) -> Self {
        Self { event_range: Some(events), ..self }
    }

    /// Limits the kept events to this many bytes; further events are counted.
    #[must_use]
    pub fn with_max_bytes(self, bytes: usize) -> Self {
        Self { max_bytes: Some(bytes), ..self }
    }

    /// Returns the number of sessions kept so far.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the sessions in the order of the source.
    pub fn into_sessions(self) -> Vec<Session> {
        self.sessions
    }
}

impl SessionSink for SessionCollector {
    fn event(&mut self, event: Event<'_>) {
        // Before the size check, so that a range late in a long session is still collected.
        if self.event_range.as_ref().is_some_and(|part| !part.contains(&event.number)) {
            return;
        }
        if self.kept + self.bytes > self.max_bytes.unwrap_or(MAX_BYTES) {
            self.current.left_out += 1;
            return;
        }
        let texts = event.calls.iter().map(|call| call.arguments.len());
        let results = event.results.iter().map(|result| result.text.len() + result.error.len());
        // Events without text need memory as well.
        self.bytes += size_of::<Event<'_>>() + event.text.len() + event.reasoning.len();
        self.bytes += texts.chain(results).sum::<usize>();
        self.current.events.push(event.into_owned());
    }

    fn end(&mut self, head: SessionHead) {
        let session = std::mem::take(&mut self.current);
        let bytes = std::mem::take(&mut self.bytes);
        // Dropped sessions do not count towards the limit.
        if self.filter.is_all() {
            self.kept += bytes;
        }
        if let Some(id) = self.filter.matching_name(&head) {
            self.sessions.push(Session { head: SessionHead { id, ..head }, ..session });
        }
    }

    fn restart(&mut self) {
        self.current = Session::default();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_read_again_counts_once() {
        let event = || Event { text: "x".repeat(2000).into(), ..Event::default() };
        let most = 3 * (size_of::<Event<'_>>() + 2000) - 1;
        let mut collector = SessionCollector::default().with_max_bytes(most);
        for _ in 0..2 {
            collector.restart();
            (0..3).for_each(|_| collector.event(event()));
        }
        collector.end(SessionHead::default());
        // A second session is beyond the limit.
        collector.event(event());
        collector.event(event());
        collector.end(SessionHead::default());
        let sessions = collector.into_sessions();
        let counts = |session: &Session| (session.events.len(), session.left_out);
        assert_eq!(sessions.iter().map(counts).collect::<Vec<_>>(), [(3, 0), (0, 2)]);
    }
}
