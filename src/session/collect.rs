//! A whole session in memory, for people and for tests. Grading does not need it.

use serde::Serialize;

use super::event::{Event, Head};
use super::feed::Sink;

/// Bytes of text after which further events of a session are only counted.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// A session with its events.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Session {
    /// What is known of it as a whole.
    #[serde(flatten)]
    pub head: Head,
    /// What was said and done, in order.
    pub events: Vec<Event<'static>>,
    /// Events that were left out because the session is longer than memory should hold.
    pub left_out: u64,
}

/// Collects the sessions of a source.
#[derive(Debug, Default)]
pub struct Collector {
    sessions: Vec<Session>,
    current: Session,
    bytes: usize,
}

impl Collector {
    /// The sessions in the order of the source.
    pub fn into_sessions(self) -> Vec<Session> {
        self.sessions
    }
}

impl Sink for Collector {
    fn event(&mut self, event: Event<'_>) {
        if self.bytes > MOST_BYTES {
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
        self.sessions.push(Session { head, ..session });
    }

    fn restart(&mut self) {
        self.current = Session::default();
    }
}
