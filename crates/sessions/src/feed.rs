//! The feed between a reader and a sink: numbers events, pairs calls with results, counts what
//! is skipped. Must not collect events.

use super::event::{Event, Head, Origin, Outcome, Role, ToolResult};
use super::lineage::Tracker;
use super::naming::Naming;
use super::pairing::Pairing;
use super::time::Moment;
use super::{Format, Source, Text, Unknown};
use jiff::Timestamp;
use selftest_text::wording::plural;
use serde::{Deserialize, Serialize};

/// Takes sessions while they are read.
pub trait Sink {
    /// Something was said or done in the current session.
    fn event(&mut self, event: Event<'_>);
    /// The current session is complete; the next event begins another one.
    fn end(&mut self, head: Head);
    /// Forget the events of the current session: they come again, without those of a branch that
    /// turned out to be abandoned.
    fn restart(&mut self);
    /// Whether the output of tools that worked, and what the model thought, is looked at. Else a
    /// reader may leave the output out, and with it the note that it is cut, and need not unescape
    /// thoughts; it is most of what a session holds.
    fn wants_outputs(&self) -> bool {
        true
    }
}

/// Counts of what a reader could not use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Notes {
    /// Lines or elements that could not be parsed and were skipped.
    pub bad_records: u64,
    /// Where the file breaks off, if it does.
    pub torn: Option<String>,
    /// Records of a kind that holds nothing of the conversation.
    pub ignored_records: u64,
    /// Records of abandoned branches, replays and rolled back turns.
    pub dropped_records: u64,
    /// Fields that were shortened, media included.
    pub cut_fields: u64,
    /// Records whose text had to be repaired: invalid UTF-8, lone surrogates.
    pub repaired_records: u64,
    /// Blocks that are not understood, by type, over all sessions.
    #[serde(skip_serializing_if = "Unknown::is_empty")]
    pub unknown_blocks: Unknown,
}

impl Notes {
    /// Describes what is lost of the conversation, for a person; `None` where nothing is.
    pub fn lost(&self) -> Option<String> {
        let torn = self.torn.iter().map(|tear| format!("broken off at {tear}"));
        let unreadable = (self.bad_records > 0)
            .then(|| format!("{} cannot be parsed", plural(self.bad_records, "record")));
        let unknown = self.unknown_blocks.words();
        let parts: Vec<String> = torn.chain(unreadable).chain(unknown).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Why there is no session, for a person.
    pub(super) fn emptiness(&self) -> String {
        let mut parts = vec!["nothing was said or done in it".to_owned()];
        for (count, what) in [
            (self.ignored_records, "of other kinds"),
            (self.bad_records, "that cannot be parsed"),
            (self.dropped_records, "of dropped branches"),
        ] {
            if count > 0 {
                parts.push(format!("{} {what}", plural(count, "record")));
            }
        }
        parts.extend(self.torn.iter().map(|tear| format!("broken off at {tear}")));
        parts.extend(self.unknown_blocks.words());
        parts.join(", ")
    }
}

/// The current session of a reader, on its way to the sink.
pub(super) struct Feed<'s> {
    /// Data of the current session; readers fill it while they read.
    pub(super) head: Head,
    /// Skipped and repaired records over all sessions of the source.
    pub(super) notes: Notes,
    sink: &'s mut dyn Sink,
    /// Names the current session, where the file does not.
    pub(super) naming: Naming,
    pairing: Pairing,
    lineage: Tracker,
    events: u64,
    /// Sessions that were handed to the sink.
    sessions: u64,
    /// Sessions that this reading of the source has come to the end of: fewer than `sessions`
    /// while the source is read again.
    ended: u64,
}

impl<'s> Feed<'s> {
    pub(super) fn new(source: &Source, format: Format, sink: &'s mut dyn Sink) -> Self {
        Self {
            head: Head::default(),
            notes: Notes::default(),
            sink,
            pairing: Pairing::default(),
            lineage: Tracker::new(format.has_several_stores()),
            naming: Naming::new(source, format),
            events: 0,
            sessions: 0,
            ended: 0,
        }
    }

    /// The id of the current session as far as it is known.
    pub(super) fn id_so_far(&self) -> String {
        let own = selftest_text::one_line(&self.head.id, 200);
        if own.is_empty() { self.naming.id(self.head.start) } else { own }
    }

    /// See [`Sink::wants_outputs`].
    pub(super) fn wants_outputs(&self) -> bool {
        self.sink.wants_outputs()
    }

    /// Counts a block that is not understood.
    pub(super) fn unknown(&mut self, kind: &str) {
        self.head.unknown_blocks.note(kind);
    }

    /// Whether the current session has no event yet.
    pub(super) fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Notes a moment of the current session.
    pub(super) fn saw(&mut self, Moment(time): Moment) {
        if let Some(time) = time {
            self.head.saw(time);
        }
    }

    /// Hands on a text.
    pub(super) fn say(
        &mut self,
        role: Role,
        origin: Origin,
        text: Text<'_>,
        time: Option<Timestamp>,
    ) {
        self.event(Event { role, origin, text, time, ..Event::default() });
    }

    /// Hands on results of tools.
    pub(super) fn results(
        &mut self,
        origin: Origin,
        results: Vec<ToolResult<'_>>,
        time: Option<Timestamp>,
    ) {
        self.event(Event { role: Role::Tool, origin, results, time, ..Event::default() });
    }

    /// Hands an event on. An event that says nothing is dropped.
    pub(super) fn event(&mut self, mut event: Event<'_>) {
        let says_nothing = event.text.is_empty()
            && event.reasoning.is_empty()
            && event.calls.is_empty()
            && event.results.is_empty()
            && event.usage.is_none()
            && event.mark.is_none();
        // A model call without a word is still a call.
        if says_nothing && (event.role != Role::Assistant || event.continues) {
            return;
        }
        if let Some(time) = event.time {
            self.head.saw(time);
        }
        if event.usage.is_some()
            && event.model.is_empty()
            && let [only] = self.head.models.as_slice()
        {
            event.model = only.clone().into();
        }
        self.notes.cut_fields += event.cut_fields();
        self.pairing.pair(&mut event);
        self.naming.observe(&event);
        self.lineage.observe(&event);
        event.number = self.events;
        self.events += 1;
        self.hand_on(event);
    }

    /// Gives an event to the sink, unless the sink has its whole session already.
    fn hand_on(&mut self, event: Event<'_>) {
        if self.ended == self.sessions {
            self.sink.event(event);
        }
    }

    /// Ends the current session, if it has events, and begins the next one.
    pub(super) fn end(&mut self) {
        let mut head = std::mem::take(&mut self.head);
        let open = self.pairing.open_calls();
        self.notes.unknown_blocks.add(&head.unknown_blocks);
        if self.events == 0 {
            self.naming.end();
            return;
        }
        if !open.is_empty() {
            let result = |(id, tool): (String, String)| ToolResult {
                call_id: id.into(),
                tool: tool.into(),
                outcome: Outcome::Pending,
                ..ToolResult::default()
            };
            let results = open.into_iter().map(result).collect();
            let number = self.events;
            self.hand_on(Event { number, role: Role::Tool, results, ..Event::default() });
        }
        head.id = match selftest_text::one_line(&head.id, 200) {
            id if id.is_empty() => self.naming.last_id(head.start),
            id => id,
        };
        head.lineage = self.lineage.end(&head.id, head.start);
        self.naming.end();
        self.ended += 1;
        self.events = 0;
        if self.ended > self.sessions {
            self.sink.end(head);
            self.sessions += 1;
        }
    }

    /// Takes back the events of the current session: the reader reads the source again, from its
    /// beginning. Sessions that were handed on before are passed over when they come again.
    pub(super) fn restart(&mut self) {
        self.sink.restart();
        self.pairing = Pairing::default();
        self.lineage.end("", None);
        self.head = Head::default();
        self.notes = Notes::default();
        self.naming.restart();
        (self.events, self.ended) = (0, 0);
    }

    /// Ends the last session: how many there were, and the notes.
    pub(super) fn finish(mut self) -> (u64, Notes) {
        self.end();
        (self.sessions, self.notes)
    }
}

impl Event<'_> {
    fn cut_fields(&self) -> u64 {
        let cut = |text: &Text<'_>| u64::from(text.cut() > 0);
        cut(&self.text)
            + cut(&self.reasoning)
            + self.calls.iter().map(|call| cut(&call.arguments)).sum::<u64>()
            + self.results.iter().map(|result| cut(&result.text)).sum::<u64>()
    }
}
