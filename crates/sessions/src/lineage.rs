//! Fingerprints the start of a session. This distinguishes two runs with the same id and detects a
//! session that continues another.
//!
//! Only user requests and the agent's text and calls are hashed. Tool output is excluded because a
//! sink may not want it, and harness messages because they differ between the stores of one agent.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::event::{Event, EventOrigin, EventRole};

/// Maximum bytes of a text that are hashed.
const MAX_HASHED: usize = 4096;

/// Maximum number of events with a digest of their own.
const MAX_STEPS: usize = 32;

/// Maximum number of later requests before which the digest is stored.
const MAX_TURNS: usize = 96;

/// Digests of a session, from its first request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionLineage {
    /// Id from the file.
    pub id: String,
    /// Digest of the first request, the first answer and, if dated, the start time.
    pub beginning: u64,
    /// Running digests after each of the first events.
    steps: Vec<u64>,
    /// Running digests before each later request.
    turns: Vec<u64>,
    /// Digest of all events.
    whole: u64,
    /// Set if the agent stores a session in several places that differ in details. Runs are then
    /// distinguished by the first request alone.
    by_request: bool,
}

impl SessionLineage {
    /// Returns true if the start of the session is unknown.
    pub fn is_unknown(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns true for the session of a subagent in a file of its own, whose id begins with that of
    /// the session that started it.
    pub fn is_of_subagent(&self) -> bool {
        self.id.contains("/agent-")
    }

    /// Returns true if two sessions with one id are the same run, possibly at different lengths:
    /// they start with the same events. An unknown lineage matches any other.
    pub fn is_same_run(&self, other: &Self) -> bool {
        let compared = self.steps.len().min(other.steps.len());
        // With one or two events in common, leaving out the last would compare hardly anything.
        let is_partly = self.steps.len() != other.steps.len() && compared > 2;
        // The last event of the shorter copy may have been truncated while it was written.
        let compared = if is_partly && compared < MAX_STEPS { compared - 1 } else { compared };
        // The first digest is that of the first request, which all stores of the agent have alike.
        let compared = if self.by_request { compared.min(1) } else { compared };
        self.steps[..compared] == other.steps[..compared]
    }

    /// Returns true if the other session starts with all of this one and then continues.
    pub fn is_prefix_of(&self, other: &Self) -> bool {
        // Later steps have no digest of their own; for them, only the starts of turns can be
        // compared.
        let is_early = || self.steps.len() < other.steps.len() && self.steps.len() < MAX_STEPS;
        !self.is_unknown()
            && self.whole != other.whole
            && (other.turns.contains(&self.whole)
                || (is_early() && other.steps[self.steps.len() - 1] == self.whole))
    }

    /// Returns a name for the session that no other run with this id shares.
    pub fn run_name(&self, id: &str) -> String {
        format!("{id}~{:08x}", self.beginning >> 32)
    }
}

/// A lineage under construction.
#[derive(Debug, Default)]
pub(super) struct LineageTracker {
    lineage: SessionLineage,
    events: usize,
    /// Set once the agent has said or called something.
    has_answered: bool,
}

impl LineageTracker {
    pub(super) fn new(by_request: bool) -> Self {
        Self {
            lineage: SessionLineage { by_request, ..SessionLineage::default() },
            ..Self::default()
        }
    }

    /// Adds an event.
    pub(super) fn observe(&mut self, event: &Event<'_>) {
        let is_request = event.role == EventRole::User
            && matches!(event.origin, EventOrigin::Human | EventOrigin::Subagent)
            && !event.text.is_empty();
        let is_answer = event.role == EventRole::Assistant
            && event.origin != EventOrigin::Harness
            && !(event.text.is_empty() && event.calls.is_empty());
        // Results cannot count: readers leave them out if the sink does not want them.
        if !is_request && !is_answer {
            return;
        }
        let lineage = &mut self.lineage;
        if is_request && self.events > 0 && lineage.turns.len() < MAX_TURNS {
            // In a continued session, one of these equals the whole digest of the earlier session.
            lineage.turns.push(lineage.whole);
        }
        let mut mix = |text: &str| {
            let text = text.trim();
            let counted = &text.as_bytes()[..text.len().min(MAX_HASHED)];
            lineage.whole = XxHash3_64::oneshot_with_seed(lineage.whole, counted);
        };
        // Each event starts with its kind, so that equal text of user and agent differs.
        mix(if is_request { "asked" } else { "answered" });
        mix(&event.text);
        for call in &event.calls {
            mix(&call.name);
            mix(&call.arguments);
        }
        self.events += 1;
        if lineage.steps.len() < MAX_STEPS {
            lineage.steps.push(lineage.whole);
        }
        // The start covers everything up to the first answer and stays fixed after that.
        if !self.has_answered {
            lineage.beginning = lineage.whole;
        }
        self.has_answered |= is_answer;
    }

    /// Returns the lineage of the session with this id and starts over.
    pub(super) fn finish(&mut self, id: &str, start: Option<Timestamp>) -> SessionLineage {
        let by_request = self.lineage.by_request;
        let mut lineage = std::mem::replace(self, Self::new(by_request)).lineage;
        id.clone_into(&mut lineage.id);
        if let Some(start) = start.filter(|_| !lineage.is_unknown()) {
            let start = start.as_nanosecond().to_le_bytes();
            lineage.beginning = XxHash3_64::oneshot_with_seed(lineage.beginning, &start);
        }
        lineage
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SessionCollector, SessionSource, read};
    use super::*;

    /// A chat of requests and answers in turn.
    fn of(said: &[&str]) -> SessionLineage {
        let messages: Vec<String> = said
            .iter()
            .enumerate()
            .map(|(number, text)| {
                let role = if number % 2 == 0 { "user" } else { "assistant" };
                format!(r#"{{"role":"{role}","content":"{text}"}}"#)
            })
            .collect();
        let json = format!(r#"{{"id":"the-same-id","messages":[{}]}}"#, messages.join(","));
        let mut collector = SessionCollector::default();
        read(&SessionSource::bytes("a.json", json), &mut collector).unwrap();
        collector.into_sessions().remove(0).head.lineage
    }

    #[test]
    fn runs_of_one_id_are_told_apart_by_how_they_begin() {
        let first = of(&["go", "ok", "more", "done"]);
        assert!(first.is_same_run(&of(&["go", "ok", "more", "done", "and?", "no"])));
        assert!(first.is_same_run(&of(&["go", "ok"])));
        // The last event of the shorter may have been cut.
        assert!(first.is_same_run(&of(&["go", "ok", "mo"])));
        assert!(!first.is_same_run(&of(&["go", "ko", "more", "done"])));
        assert!(!first.is_same_run(&of(&["come", "ok", "more", "done"])));
        assert!(first.is_same_run(&SessionLineage::default()));
        assert_eq!(first.run_name("the-same-id").len(), "the-same-id~00000000".len());
        assert_ne!(first.run_name("a"), of(&["go", "ko"]).run_name("a"));
        // The name stays when a session grows.
        assert_eq!(first.run_name("a"), of(&["go", "ok", "else"]).run_name("a"));
    }

    #[test]
    fn a_session_that_goes_on_has_the_other_at_its_beginning() {
        let whole = of(&["go", "ok"]);
        assert!(whole.is_prefix_of(&of(&["go", "ok", "more", "done"])));
        assert!(!whole.is_prefix_of(&whole));
        assert!(!of(&["go", "ok", "more", "done"]).is_prefix_of(&whole));
        assert!(!whole.is_prefix_of(&of(&["go", "ko", "more", "done"])));
        let texts: Vec<String> = (0..150).map(|number| number.to_string()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert!(of(&texts[..100]).is_prefix_of(&of(&texts)));
        assert!(!SessionLineage::default().is_prefix_of(&whole));
    }
}
