//! Collects sessions, or part of each, while counting all of their events.

use super::SessionOverview;
use selftest_sessions::{Event, Session, SessionCollector, SessionHead, SessionSink};

/// A sink that passes events to a collector and builds an [`SessionOverview`] of each collected session.
#[derive(Debug, Default)]
pub struct OverviewCollector {
    collector: SessionCollector,
    current: SessionOverview,
    overviews: Vec<SessionOverview>,
}

impl OverviewCollector {
    /// Wraps a collector.
    pub fn new(collector: SessionCollector) -> Self {
        Self { collector, ..Self::default() }
    }

    /// Returns the sessions with their overviews, in the order of the source.
    pub fn into_sessions(self) -> impl Iterator<Item = (Session, SessionOverview)> {
        self.collector.into_sessions().into_iter().zip(self.overviews)
    }
}

impl SessionSink for OverviewCollector {
    fn event(&mut self, event: Event<'_>) {
        self.current.add(&event);
        self.collector.event(event);
    }

    fn end(&mut self, head: SessionHead) {
        let overview = std::mem::take(&mut self.current);
        let before = self.collector.session_count();
        self.collector.end(head);
        // The collector may discard a session; its overview is discarded too.
        if self.collector.session_count() > before {
            self.overviews.push(overview);
        }
    }

    fn restart(&mut self) {
        self.current = SessionOverview::default();
        self.collector.restart();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::{SessionSource, read};

    #[test]
    fn a_part_is_kept_and_all_of_it_is_counted() {
        let messages: Vec<String> = (0..10)
            .map(|at| {
                format!(r#"{{"role":"{}","content":"words {at}"}}"#, ["user", "assistant"][at % 2])
            })
            .collect();
        let text = format!("[{}]", messages.join(","));
        let mut counted = OverviewCollector::new(SessionCollector::default().with_events(4..7));
        read(&SessionSource::bytes("demo.json", text), &mut counted).unwrap();
        let (session, overview) = counted.into_sessions().next().unwrap();
        let numbers: Vec<u64> = session.events.iter().map(|event| event.number).collect();
        assert_eq!(numbers, [4, 5, 6]);
        assert_eq!((overview.events, session.left_out), (10, 0));
        assert_eq!(overview.request, "words 0");
    }
}
