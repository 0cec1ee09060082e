//! Reads traces of programs that call models: `OpenTelemetry` spans with the `GenAI` conventions
//! (OTLP in JSON) or `OpenInference`'s, `LangSmith` runs, and Langfuse observations.
//!
//! Spans come in any order, and every model call repeats the messages before it. All spans of a
//! source are therefore collected, storing each message once, and ordered at the end. The spans of
//! one conversation (or trace) that start with the same message are one session; the others become
//! sessions of their own, with the first as parent.

mod langfuse;
mod langsmith;
mod message;
mod open_telemetry;
mod thread;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use jiff::Timestamp;
use serde::de::{MapAccess, SeqAccess};
use serde_json::{Map, Value};

use super::entry::FormatEntry;
use super::event::TokenCounts;
use super::feed::SessionFeed;
use super::outline::JsonOutline;
use super::source::{DocumentReader, SessionSource};
use super::text::Text;
use super::time::Moment;
use super::wire::each;
use super::{SessionReadError, chat};
use message::TraceMessage;
use thread::SpanThread;

/// Maximum bytes of messages in memory. Further spans are dropped, and a note records it.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Maximum number of spans in memory.
const MAX_SPANS: usize = 200_000;

/// Lists in which exports store their records.
const LISTS: [&str; 9] = [
    "resourceSpans",
    "resource_spans",
    "batches",
    "data",
    "spans",
    "runs",
    "observations",
    "traces",
    "items",
];

/// OpenTelemetry spans.
pub(crate) const OPEN_TELEMETRY: FormatEntry = FormatEntry {
    json: |value| trace_kind(value) == Some(TraceKind::OpenTelemetry),
    in_lists: true,
    ..FormatEntry::new(|source, feed| read(TraceKind::OpenTelemetry, source, feed))
};

/// Runs of `LangSmith`.
pub(crate) const LANGSMITH: FormatEntry = FormatEntry {
    json: |value| trace_kind(value) == Some(TraceKind::LangSmith),
    in_lists: true,
    ..FormatEntry::new(|source, feed| read(TraceKind::LangSmith, source, feed))
};

/// Observations and traces of Langfuse.
pub(crate) const LANGFUSE: FormatEntry = FormatEntry {
    json: |value| trace_kind(value) == Some(TraceKind::Langfuse),
    in_lists: true,
    ..FormatEntry::new(|source, feed| read(TraceKind::Langfuse, source, feed))
};

/// Kind of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TraceKind {
    OpenTelemetry,
    LangSmith,
    Langfuse,
}

impl TraceKind {
    /// Returns the name of the agent if the export names none.
    const fn agent(self) -> &'static str {
        match self {
            Self::OpenTelemetry => "open-telemetry",
            Self::LangSmith => "langsmith",
            Self::Langfuse => "langfuse",
        }
    }
}

/// Detects spans, runs and observations, alone or in the lists of an export.
fn trace_kind(value: &JsonOutline) -> Option<TraceKind> {
    let has = |keys: &[&str]| keys.iter().any(|key| value.has(key));
    if has(&["resourceSpans", "resource_spans", "scopeSpans"]) {
        return Some(TraceKind::OpenTelemetry);
    }
    let is_span = has(&["traceId", "trace_id", "context.trace_id"])
        || value.inner("context").is_some_and(|context| context.has("trace_id"));
    if value.has("run_type") && (value.has("inputs") || value.has("trace_id")) {
        return Some(TraceKind::LangSmith);
    }
    if is_span && has(&["startTime", "parentObservationId"]) && value.has("type") {
        return Some(TraceKind::Langfuse);
    }
    let is_trace = value.has("observations") && has(&["sessionId", "timestamp"]);
    if is_trace && value.has("id") {
        return Some(TraceKind::Langfuse);
    }
    let has_attributes = value.keys.iter().any(|key| key.starts_with("attributes"));
    if is_span && (has_attributes || has(&["spanId", "span_id"])) {
        return Some(TraceKind::OpenTelemetry);
    }
    let lists = ["data", "spans", "runs", "observations", "traces"];
    lists.iter().find_map(|name| value.list(name).iter().find_map(trace_kind))
}

/// Reads every conversation of a source.
fn read(
    kind: TraceKind,
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
) -> Result<(), SessionReadError> {
    let mut spans = SpanCollector::new(kind);
    if chat::is_lines(source)? {
        let mut lines = source.lines()?;
        let mut scratch = String::new();
        while let Some(line) = lines.next(&mut feed.notes)? {
            if let Some(value) = line.parse::<Value>(&mut scratch, &mut feed.notes) {
                spans.take(&value, feed);
            }
        }
    } else {
        source.read_document(&mut spans, feed)?;
    }
    spans.send(feed);
    Ok(())
}

/// Kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpanKind {
    /// A model call.
    Model,
    /// A tool call.
    Tool,
    /// Any span around them.
    Other,
}

/// One span, independent of the program that wrote it.
#[derive(Debug, Default)]
struct TraceSpan {
    trace: String,
    parent: Option<String>,
    kind: Option<SpanKind>,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    agent: Option<String>,
    /// Program that the span belongs to.
    service: Option<String>,
    model: String,
    usage: Option<TokenCounts>,
    input: Vec<Rc<TraceMessage>>,
    output: Vec<Rc<TraceMessage>>,
    /// For a tool span.
    tool: SpanTool,
    /// Error message, if the span failed.
    error: Option<String>,
}

/// A tool call as recorded in its own span.
#[derive(Debug, Default, Clone)]
struct SpanTool {
    name: String,
    call_id: String,
    arguments: String,
    result: String,
}

/// The spans of a source.
struct SpanCollector {
    kind: TraceKind,
    all: Vec<TraceSpan>,
    /// Maps each trace to its conversation.
    conversations: HashMap<String, String>,
    messages: MessagePool,
}

/// Messages, each stored once.
#[derive(Default)]
struct MessagePool {
    all: HashMap<u64, Rc<TraceMessage>>,
    bytes: usize,
}

impl MessagePool {
    /// Returns the messages inside a value, with `role` for those without one. Messages that would
    /// exceed the limit are left out.
    fn intern_all(&mut self, value: &Value, role: &str) -> Vec<Rc<TraceMessage>> {
        let all = message::messages(value, role);
        all.into_iter().filter_map(|message| self.intern(message)).collect()
    }

    fn intern(&mut self, message: Map<String, Value>) -> Option<Rc<TraceMessage>> {
        let said = TraceMessage::new(message);
        // Each model call repeats the conversation, so most messages are known.
        if let Some(known) = self.all.get(&said.digest()) {
            return Some(known.clone());
        }
        if self.bytes.saturating_add(said.size()) > MAX_BYTES {
            return None;
        }
        self.bytes += said.size();
        let said = Rc::new(said);
        self.all.insert(said.digest(), said.clone());
        Some(said)
    }

    fn is_full(&self) -> bool {
        self.bytes.saturating_add(1024 * 1024) > MAX_BYTES
    }
}

impl DocumentReader for SpanCollector {
    fn begin(&mut self, _: &mut SessionFeed<'_>) {
        // A second pass after a repair starts over.
        *self = Self::new(self.kind);
    }

    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        while let Some(value) = list.next_element::<Value>()? {
            self.take(&value, feed);
        }
        Ok(())
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut rest = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            // Read element by element, because these lists may be huge.
            if self.kind == TraceKind::Langfuse && key == "observations" {
                let trace = rest.get("id").cloned();
                map.next_value_seed(each(|part| self.take_part(&part, trace.as_ref(), feed)))?;
            } else if LISTS.contains(&key.as_str()) {
                map.next_value_seed(each(|value: Value| self.take(&value, feed)))?;
            } else {
                rest.insert(key, map.next_value()?);
            }
        }
        self.take_record(&Value::Object(rest), feed);
        Ok(())
    }
}

impl SpanCollector {
    fn new(kind: TraceKind) -> Self {
        let (all, conversations) = (Vec::new(), HashMap::new());
        Self { kind, all, conversations, messages: MessagePool::default() }
    }

    /// Adds a record and the records inside it.
    fn take(&mut self, value: &Value, feed: &mut SessionFeed<'_>) {
        let Value::Object(fields) = value else {
            feed.notes.bad_records += 1;
            return;
        };
        for (name, list) in
            LISTS.iter().filter_map(|name| Some((name, fields.get(*name)?.as_array()?)))
        {
            for inner in list {
                match (self.kind, *name) {
                    (TraceKind::Langfuse, "observations") => {
                        self.take_part(inner, fields.get("id"), feed);
                    }
                    _ => self.take(inner, feed),
                }
            }
        }
        self.take_record(value, feed);
    }

    /// Takes an observation inside a trace of Langfuse, which may not repeat the trace's id. Lists
    /// of traces name only the ids of observations.
    fn take_part(&mut self, part: &Value, trace: Option<&Value>, feed: &mut SessionFeed<'_>) {
        match (part, trace) {
            (Value::String(_), _) => feed.notes.ignored_records += 1,
            (Value::Object(fields), Some(trace)) if !fields.contains_key("traceId") => {
                let mut fields = fields.clone();
                fields.insert("traceId".to_owned(), trace.clone());
                self.take(&Value::Object(fields), feed);
            }
            _ => self.take(part, feed),
        }
    }

    fn take_record(&mut self, value: &Value, feed: &mut SessionFeed<'_>) {
        let count = self.all.len();
        let is_known = match self.kind {
            TraceKind::LangSmith => langsmith::take_run(value, self),
            TraceKind::Langfuse => langfuse::take_observation(value, self),
            TraceKind::OpenTelemetry => open_telemetry::take(value, self),
        };
        let is_too_much = self.all.len() > MAX_SPANS || self.messages.is_full();
        if is_too_much && self.all.len() > count {
            // Drop the whole record that exceeded the limit.
            self.all.truncate(count);
            feed.notes.torn = Some("more spans than are held at once".to_owned());
        }
        feed.notes.ignored_records += u64::from(!is_known);
    }

    /// Sends every conversation.
    fn send(self, feed: &mut SessionFeed<'_>) {
        let mut groups = BTreeMap::<String, Vec<TraceSpan>>::new();
        for span in self.all {
            // A conversation may consist of many traces.
            let group = self.conversations.get(&span.trace).unwrap_or(&span.trace);
            groups.entry(group.clone()).or_default().push(span);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        let start = |spans: &[TraceSpan]| spans.iter().filter_map(|span| span.start).min();
        groups.sort_by_cached_key(|(_, spans)| start(spans));
        for (id, mut spans) in groups {
            spans.sort_by_key(|span| span.start);
            for thread in SpanThread::of(&spans) {
                thread.send(self.kind, &id, &spans, feed);
            }
        }
    }
}

/// Returns the non-empty text under the first name that has one.
fn text(value: &Value, names: &[&str]) -> Option<String> {
    let found = names.iter().find_map(|name| match value.get(name)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    // Bounds the length.
    found.map(|text| Text::new(text).as_str().to_owned())
}

/// Parses a time: a text, or a number of seconds, milliseconds or nanoseconds.
fn moment(value: &Value, names: &[&str]) -> Option<Timestamp> {
    let found = text(value, names)?;
    match found.parse::<i128>() {
        // Nanoseconds since 1970, as in OTLP.
        Ok(number) if number > 100_000_000_000_000 => Timestamp::from_nanosecond(number).ok(),
        _ => Moment::parse(&found).0,
    }
}

/// Returns the text of a value; other types are formatted as JSON.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Returns the token count under the first name that has one.
fn count(value: &Value, names: &[&str]) -> u64 {
    let found = names.iter().find_map(|name| match value.get(name)? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    });
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests;
