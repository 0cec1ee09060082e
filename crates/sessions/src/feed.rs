//! Passes events from a reader to a sink. The feed numbers events, pairs calls with results by id
//! in any order, and counts what is skipped, with unknown blocks by type, so that no part of a
//! session is dropped silently. It must not collect events, so that memory stays bounded: pairing
//! keeps only open calls.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use selftest_text::wording::plural;
use serde::{Deserialize, Serialize};

use crate::event::{Event, EventOrigin, EventRole, SessionHead, ToolOutcome, ToolResult};
use crate::lineage::LineageTracker;
use crate::naming::SessionNaming;
use crate::time::Moment;
use crate::{Text, time};

/// Receives sessions while they are read.
pub trait SessionSink {
    /// Called for each event of the current session.
    fn event(&mut self, event: Event<'_>);
    /// Called when the current session is complete. The next event starts another one.
    fn end(&mut self, head: SessionHead);
    /// Discards the events of the current session. They are sent again, without those of a branch
    /// that turned out to be abandoned.
    fn restart(&mut self);
    /// Returns true if the sink uses reasoning and the output of successful tools. Otherwise, a
    /// reader may leave out the output (and the note that it was cut) and skip unescaping the
    /// reasoning. They make up most of a session.
    fn wants_outputs(&self) -> bool {
        true
    }
}

/// Counts of what a reader could not use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadNotes {
    /// Lines or elements that could not be parsed and were skipped.
    pub bad_records: u64,
    /// Place where the file breaks off, if it does.
    pub torn: Option<String>,
    /// What of the session stands in another file, which was not read with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// Records of a kind that is not part of the conversation.
    pub ignored_records: u64,
    /// Records of abandoned branches, replays and rolled-back turns.
    pub dropped_records: u64,
    /// Fields that were shortened, including media.
    pub cut_fields: u64,
    /// Records whose text was repaired: invalid UTF-8 or lone surrogates.
    pub repaired_records: u64,
    /// Unknown blocks by type, over all sessions.
    #[serde(skip_serializing_if = "UnknownBlocks::is_empty")]
    pub unknown_blocks: UnknownBlocks,
}

impl ReadNotes {
    /// Describes the missing parts of the conversation for display; `None` if nothing is missing.
    pub fn describe_losses(&self) -> Option<String> {
        let torn = self.torn.iter().map(|tear| format!("broken off at {tear}"));
        let unreadable = (self.bad_records > 0)
            .then(|| format!("{} cannot be parsed", plural(self.bad_records, "record")));
        let unknown = self.unknown_blocks.describe();
        let elsewhere = self.elsewhere.clone();
        let parts: Vec<String> = torn.chain(elsewhere).chain(unreadable).chain(unknown).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Describes why the source has no session, for display.
    pub(super) fn describe_emptiness(&self) -> String {
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
        parts.extend(self.unknown_blocks.describe());
        parts.join(", ")
    }
}

/// The current session of a reader, on its way to the sink.
pub(super) struct SessionFeed<'s> {
    /// Metadata of the current session; readers fill it in as they read.
    pub(super) head: SessionHead,
    /// Notes over all sessions of the source.
    pub(super) notes: ReadNotes,
    sink: &'s mut dyn SessionSink,
    /// Names the current session if the file does not.
    pub(super) naming: SessionNaming,
    pairing: CallPairing,
    lineage: LineageTracker,
    events: u64,
    /// Sessions that were passed to the sink.
    sessions: u64,
    /// Sessions that this pass over the source has finished. This is less than `sessions` while the
    /// source is read again.
    finished: u64,
}

impl<'s> SessionFeed<'s> {
    pub(super) fn new(
        naming: SessionNaming,
        lineage: LineageTracker,
        sink: &'s mut dyn SessionSink,
    ) -> Self {
        Self {
            head: SessionHead::default(),
            notes: ReadNotes::default(),
            sink,
            pairing: CallPairing::default(),
            lineage,
            naming,
            events: 0,
            sessions: 0,
            finished: 0,
        }
    }

    /// Returns the id of the current session as far as it is known.
    pub(super) fn current_id(&self) -> String {
        let own = selftest_text::one_line(&self.head.id, 200);
        if own.is_empty() { self.naming.provisional_id(self.head.start) } else { own }
    }

    /// See [`SessionSink::wants_outputs`].
    pub(super) fn wants_outputs(&self) -> bool {
        self.sink.wants_outputs()
    }

    /// Counts an unknown block.
    pub(super) fn count_unknown(&mut self, kind: &str) {
        self.head.unknown_blocks.count_block(kind);
    }

    /// Returns true if the current session has no event yet.
    pub(super) fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Extends the time span of the current session.
    pub(super) fn record_time(&mut self, Moment(time): Moment) {
        if let Some(time) = time {
            self.head.record_time(time);
        }
    }

    /// Sends a text.
    pub(super) fn send_text(
        &mut self,
        role: EventRole,
        origin: EventOrigin,
        text: Text<'_>,
        time: Option<Timestamp>,
    ) {
        self.send(Event { role, origin, text, time, ..Event::default() });
    }

    /// Sends tool results.
    pub(super) fn send_results(
        &mut self,
        origin: EventOrigin,
        results: Vec<ToolResult<'_>>,
        time: Option<Timestamp>,
    ) {
        self.send(Event { role: EventRole::Tool, origin, results, time, ..Event::default() });
    }

    /// Sends an event. Empty events are dropped.
    pub(super) fn send(&mut self, mut event: Event<'_>) {
        let says_nothing = event.text.is_empty()
            && event.reasoning.is_empty()
            && event.calls.is_empty()
            && event.results.is_empty()
            && event.usage.is_none()
            && event.mark.is_none();
        // A model call without any text still counts as a call.
        if says_nothing && (event.role != EventRole::Assistant || event.continues) {
            return;
        }
        // Events count as well as headers: a file may lack its header, and times are not always in
        // order.
        if let Some(time) = event.time {
            self.head.record_time(time);
        }
        // With a single model so far, the usage can only be its own.
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
        self.deliver(event);
    }

    /// Passes an event to the sink, unless an earlier pass already delivered its session.
    fn deliver(&mut self, event: Event<'_>) {
        // In a second pass, events are counted and paired again, but sent only from the first
        // session that the sink has not received.
        if self.finished == self.sessions {
            self.sink.event(event);
        }
    }

    /// Ends the current session, if it has events, and starts the next one.
    pub(super) fn end_session(&mut self) {
        let mut head = std::mem::take(&mut self.head);
        let open = self.pairing.open_calls();
        // Also for a session without events, whose unknown blocks may be the reason.
        self.notes.unknown_blocks.add(&head.unknown_blocks);
        // A wrapper without events is not a session.
        if self.events == 0 {
            self.naming.end_session();
            return;
        }
        if !open.is_empty() {
            let result = |(id, tool): (String, String)| ToolResult {
                call_id: id.into(),
                tool: tool.into(),
                outcome: ToolOutcome::Pending,
                ..ToolResult::default()
            };
            let results = open.into_iter().map(result).collect();
            let number = self.events;
            // Calls without a result become one last event, so that each call has an outcome.
            self.deliver(Event { number, role: EventRole::Tool, results, ..Event::default() });
        }
        head.id = match selftest_text::one_line(&head.id, 200) {
            id if id.is_empty() => self.naming.final_id(head.start),
            id => id,
        };
        // Both are of the recorded times, so that an id and a copy do not depend on the name or the
        // clock.
        head.lineage = self.lineage.finish(&head.id, head.start);
        time::set_date(&mut head, self.naming.path(), selftest_clock::now());
        self.naming.end_session();
        self.finished += 1;
        self.events = 0;
        if self.finished > self.sessions {
            self.sink.end(head);
            self.sessions += 1;
        }
    }

    /// Takes back the current session because the reader starts over. Sessions that the sink
    /// already received are skipped in the new pass.
    pub(super) fn restart(&mut self) {
        self.sink.restart();
        self.pairing = CallPairing::default();
        // Resets the tracker; the result is not needed.
        self.lineage.finish("", None);
        self.head = SessionHead::default();
        // The new pass counts everything again.
        self.notes = ReadNotes::default();
        self.naming.restart();
        (self.events, self.finished) = (0, 0);
    }

    /// Ends the last session. Returns the number of sessions and the notes.
    pub(super) fn finish(mut self) -> (u64, ReadNotes) {
        self.end_session();
        (self.sessions, self.notes)
    }
}

impl Event<'_> {
    fn cut_fields(&self) -> u64 {
        let cut = |text: &Text<'_>| u64::from(text.cut_bytes() > 0);
        cut(&self.text)
            + cut(&self.reasoning)
            + self.calls.iter().map(|call| cut(&call.arguments)).sum::<u64>()
            + self.results.iter().map(|result| cut(&result.text)).sum::<u64>()
    }
}

/// Maximum number of open calls; more are forgotten, so that an untrusted file cannot exhaust
/// memory.
const MAX_OPEN: usize = 10_000;

/// Calls that wait for their result, in call order.
#[derive(Default)]
pub(super) struct CallPairing {
    open: HashMap<String, (u64, String)>,
    calls: u64,
}

impl CallPairing {
    /// Records the calls of an event and fills in the tool names of its results.
    pub(super) fn pair(&mut self, event: &mut Event<'_>) {
        for call in &event.calls {
            self.calls += 1;
            // A call without an id cannot be paired; its result stands alone.
            if !call.id.is_empty() && self.open.len() < MAX_OPEN {
                let name = call.name.as_str().to_owned();
                self.open.insert(call.id.as_str().to_owned(), (self.calls, name));
            }
        }
        for result in &mut event.results {
            match self.open.remove(result.call_id.as_str()) {
                Some((_, name)) if result.tool.is_empty() => result.tool = name.into(),
                Some(_) => {}
                // Cline's calls have ids, and its results only name the tool.
                None => {
                    if let Some(id) = self.take_named(&result.tool) {
                        result.call_id = id.into();
                    }
                }
            }
        }
    }

    /// Takes the oldest call of a tool, and returns its id.
    fn take_named(&mut self, tool: &str) -> Option<String> {
        if tool.is_empty() {
            return None;
        }
        let named = self.open.iter().filter(|(_, (_, name))| name == tool);
        let (id, _) = named.min_by_key(|(_, (order, _))| *order)?;
        let id = id.clone();
        self.open.remove(&id);
        Some(id)
    }

    /// Returns id and tool of the calls without a result, in call order.
    fn open_calls(&mut self) -> Vec<(String, String)> {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_unstable_by_key(|(_, (order, _))| *order);
        open.into_iter().map(|(id, (_, name))| (id, name)).collect()
    }
}

/// Maximum number of distinct types, because an untrusted file may make up any number of them.
const MAX_TYPES: usize = 20;

/// Maximum bytes of a type's name.
const MAX_NAME: usize = 60;

/// Name for all types beyond [`MAX_TYPES`].
const OTHERS: &str = "others";

/// Maximum number of types listed for display.
const MAX_NAMED: usize = 5;

/// Number of unknown blocks by type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnknownBlocks(BTreeMap<String, u64>);

impl UnknownBlocks {
    /// Counts a block. The type comes from the file and is shortened.
    pub fn count_block(&mut self, kind: &str) {
        self.add_count(&selftest_text::one_line(kind, MAX_NAME), 1);
    }

    /// Adds the counts of another session.
    pub fn add(&mut self, other: &Self) {
        for (kind, count) in &other.0 {
            self.add_count(kind, *count);
        }
    }

    fn add_count(&mut self, kind: &str, count: u64) {
        let kind = if kind.is_empty() { "without a type" } else { kind };
        // Types that are already counted stay distinct when the map is full.
        let is_full = self.0.len() >= MAX_TYPES && !self.0.contains_key(kind);
        let counted = self.0.entry(if is_full { OTHERS } else { kind }.to_owned()).or_default();
        *counted = counted.saturating_add(count);
    }

    /// Returns true if there are no unknown blocks.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the total number of blocks.
    pub fn total(&self) -> u64 {
        self.0.values().fold(0, |total, count| total.saturating_add(*count))
    }

    /// Iterates over types and counts, sorted by type.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(kind, count)| (kind.as_str(), *count))
    }

    /// Describes the counts for display; `None` if all are zero.
    pub fn describe(&self) -> Option<String> {
        let mut counts: Vec<_> = self.counts().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut named: Vec<String> =
            counts.iter().take(MAX_NAMED).map(|(kind, count)| format!("{count} {kind}")).collect();
        if counts.len() > MAX_NAMED {
            named.push("…".to_owned());
        }
        let blocks =
            if self.total() == 1 { "1 block" } else { &format!("{} blocks", self.total()) };
        (!named.is_empty()).then(|| format!("{blocks} not understood ({})", named.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_cannot_make_up_more_types_than_are_told_apart() {
        let mut unknown = UnknownBlocks::default();
        assert_eq!(unknown.describe(), None);
        for number in 0..100 {
            unknown.count_block(&format!("type {}", number % 50));
        }
        unknown.count_block("");
        assert_eq!((unknown.total(), unknown.counts().count()), (101, MAX_TYPES + 1));
        let mut two = UnknownBlocks::default();
        two.count_block("hologram\n");
        two.add(&two.clone());
        assert_eq!(two.describe().unwrap(), "2 blocks not understood (2 hologram)");
    }
}
