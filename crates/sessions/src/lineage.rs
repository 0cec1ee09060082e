//! How a session begins: what tells two runs under one id apart, and what shows that one session
//! goes on where another ended. Knows digests only.
//!
//! Counted is what people asked and what the agent said and called, not what tools answered, which
//! a sink may not want, nor what the program around the model added, which differs between the
//! stores of one agent.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::event::{Event, Origin, Role};

/// Bytes of a text that count.
const MAX_COUNTED: usize = 4096;

/// Events whose digests are kept one by one.
const MAX_STEPS: usize = 32;

/// Later requests before which the digest is kept.
const MAX_TURNS: usize = 96;

/// Digests of a session from its first request on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lineage {
    /// The id that the file gives it.
    pub id: String,
    /// Of the first request, the first answer and, where it has a date, when it began.
    pub beginning: u64,
    /// Of all events up to each of the first ones.
    steps: Vec<u64>,
    /// Of all events before each later request.
    turns: Vec<u64>,
    /// Of all events.
    whole: u64,
    /// Its agent keeps a session in several stores that differ in small things: the first request
    /// alone tells runs apart.
    by_request: bool,
}

impl Lineage {
    /// Whether nothing is known of how it began.
    pub fn is_unknown(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether two sessions of one id are the same run, one perhaps further than the other: they
    /// begin with the same events. What is not known tells nothing apart.
    pub fn is_run_of(&self, other: &Self) -> bool {
        let compared = self.steps.len().min(other.steps.len());
        let is_partly = self.steps.len() != other.steps.len() && compared > 2;
        // The last event of a copy may have been cut while it was written.
        let compared = if is_partly && compared < MAX_STEPS { compared - 1 } else { compared };
        let compared = if self.by_request { compared.min(1) } else { compared };
        self.steps[..compared] == other.steps[..compared]
    }

    /// Whether all of it stands at the beginning of the other, which then goes on.
    pub fn is_beginning_of(&self, other: &Self) -> bool {
        let is_early = || self.steps.len() < other.steps.len() && self.steps.len() < MAX_STEPS;
        !self.is_unknown()
            && self.whole != other.whole
            && (other.turns.contains(&self.whole)
                || (is_early() && other.steps[self.steps.len() - 1] == self.whole))
    }

    /// A name for a session of that id that no other run of it has, however many there are.
    pub fn name(&self, id: &str) -> String {
        format!("{id}~{:08x}", self.beginning >> 32)
    }
}

/// A lineage that is being taken.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    lineage: Lineage,
    events: usize,
    has_asked: bool,
    /// The agent has said or called something.
    has_answered: bool,
}

impl Tracker {
    pub(super) fn new(by_request: bool) -> Self {
        Self { lineage: Lineage { by_request, ..Lineage::default() }, ..Self::default() }
    }

    /// Takes note of an event.
    pub(super) fn observe(&mut self, event: &Event<'_>) {
        let is_request = event.role == Role::User
            && matches!(event.origin, Origin::Human | Origin::Subagent)
            && !event.text.is_empty();
        let is_answer = event.role == Role::Assistant
            && event.origin != Origin::Harness
            && !(event.text.is_empty() && event.calls.is_empty());
        if !is_request && !is_answer {
            return;
        }
        let lineage = &mut self.lineage;
        if is_request && self.events > 0 && lineage.turns.len() < MAX_TURNS {
            lineage.turns.push(lineage.whole);
        }
        let mut mix = |text: &str| {
            let text = text.trim();
            let counted = &text.as_bytes()[..text.len().min(MAX_COUNTED)];
            lineage.whole = XxHash3_64::oneshot_with_seed(lineage.whole, counted);
        };
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
        self.has_asked |= is_request;
        if !self.has_answered {
            lineage.beginning = lineage.whole;
        }
        self.has_answered |= is_answer;
    }

    /// The lineage of the session of that id.
    pub(super) fn end(&mut self, id: &str, start: Option<Timestamp>) -> Lineage {
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
    use super::super::{Collector, Source, read};
    use super::*;

    /// A chat of requests and answers in turn.
    fn of(said: &[&str]) -> Lineage {
        let messages: Vec<String> = said
            .iter()
            .enumerate()
            .map(|(number, text)| {
                let role = if number % 2 == 0 { "user" } else { "assistant" };
                format!(r#"{{"role":"{role}","content":"{text}"}}"#)
            })
            .collect();
        let json = format!(r#"{{"id":"the-same-id","messages":[{}]}}"#, messages.join(","));
        let mut collector = Collector::default();
        read(&Source::bytes("a.json", json), &mut collector).unwrap();
        collector.into_sessions().remove(0).head.lineage
    }

    #[test]
    fn runs_of_one_id_are_told_apart_by_how_they_begin() {
        let first = of(&["go", "ok", "more", "done"]);
        assert!(first.is_run_of(&of(&["go", "ok", "more", "done", "and?", "no"])));
        assert!(first.is_run_of(&of(&["go", "ok"])));
        // The last event of the shorter may have been cut.
        assert!(first.is_run_of(&of(&["go", "ok", "mo"])));
        assert!(!first.is_run_of(&of(&["go", "ko", "more", "done"])));
        assert!(!first.is_run_of(&of(&["come", "ok", "more", "done"])));
        assert!(first.is_run_of(&Lineage::default()));
        assert_eq!(first.name("the-same-id").len(), "the-same-id~00000000".len());
        assert_ne!(first.name("a"), of(&["go", "ko"]).name("a"));
        // The name stays when a session grows.
        assert_eq!(first.name("a"), of(&["go", "ok", "else"]).name("a"));
    }

    #[test]
    fn a_session_that_goes_on_has_the_other_at_its_beginning() {
        let whole = of(&["go", "ok"]);
        assert!(whole.is_beginning_of(&of(&["go", "ok", "more", "done"])));
        assert!(!whole.is_beginning_of(&whole));
        assert!(!of(&["go", "ok", "more", "done"]).is_beginning_of(&whole));
        assert!(!whole.is_beginning_of(&of(&["go", "ko", "more", "done"])));
        let texts: Vec<String> = (0..150).map(|number| number.to_string()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert!(of(&texts[..100]).is_beginning_of(&of(&texts)));
        assert!(!Lineage::default().is_beginning_of(&whole));
    }
}
