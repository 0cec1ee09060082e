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

use crate::event::TokenCounts;
use crate::feed::SessionFeed;
use crate::format::FormatEntry;
use crate::outline::JsonOutline;
use crate::source::{DocumentReader, SessionSource};
use crate::text::Text;
use crate::time::Moment;
use crate::wire::each;
use crate::{SessionReadError, chat};
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
struct MessagePool {
    all: HashMap<u64, Rc<TraceMessage>>,
    /// Maximum of `bytes`.
    most: usize,
    bytes: usize,
    /// Set once a message was left out.
    is_full: bool,
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
        // `take_record` then drops the whole record and notes it.
        if self.bytes.saturating_add(said.size()) > self.most {
            self.is_full = true;
            return None;
        }
        self.bytes += said.size();
        let said = Rc::new(said);
        self.all.insert(said.digest(), said.clone());
        Some(said)
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
        let messages =
            MessagePool { all: HashMap::new(), most: MAX_BYTES, bytes: 0, is_full: false };
        Self { kind, all: Vec::new(), conversations: HashMap::new(), messages }
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
        let is_too_much = self.all.len() > MAX_SPANS || self.messages.is_full;
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
        // Exporters write spans as they end, and several processes write to one file.
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
mod tests {
    use super::{SpanCollector, TraceKind};
    use crate::test_support::survives_damage;
    use crate::{
        Event, EventMark, EventRole, Session, SessionCollector, SessionFormat, SessionSource,
        TokenCounts, ToolOutcome, read,
    };

    #[test]
    fn a_message_beyond_the_limit_is_noted() {
        let run = |text: &str| {
            serde_json::json!({
                "id": "r", "trace_id": "t", "run_type": "llm",
                "inputs": { "messages": [{ "role": "user", "content": text }] },
            })
        };
        let (source, mut collector) =
            (SessionSource::bytes("runs.json", ""), SessionCollector::default());
        let mut feed = SessionFormat::LangSmith.entry().feed(&source, &mut collector);
        let mut spans = SpanCollector::new(TraceKind::LangSmith);
        spans.messages.most = 300;
        spans.take_record(&run("hello"), &mut feed);
        assert_eq!((spans.all.len(), &feed.notes.torn), (1, &None));
        // Far larger than what is left.
        spans.take_record(&run(&"x".repeat(10_000)), &mut feed);
        assert_eq!(spans.all.len(), 1);
        assert!(feed.notes.torn.is_some());
    }

    fn sessions(format: SessionFormat, text: &str) -> Vec<Session> {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("trace.json", text), &mut collector).unwrap();
        assert_eq!((reading.format, reading.notes.describe_losses()), (format, None));
        collector.into_sessions()
    }

    fn said(session: &Session) -> Vec<(EventRole, &str, usize)> {
        let line = |event| {
            let event: &Event<'_> = event;
            (event.role, event.text.as_str(), event.calls.len())
        };
        session.events.iter().map(line).collect()
    }

    fn outcomes(session: &Session) -> Vec<(&str, ToolOutcome, &str)> {
        let results = session.events.iter().flat_map(|event| &event.results);
        results.map(|result| (result.tool.as_str(), result.outcome, result.text.as_str())).collect()
    }

    fn attribute(key: &str, value: &str) -> String {
        let value = serde_json::json!({ "key": key, "value": { "stringValue": value } });
        value.to_string()
    }

    /// A span of OTLP that begins and ends at these seconds of 2026.
    fn span(
        id: &str,
        parent: &str,
        [start, end]: [u64; 2],
        attributes: &[String],
        more: &str,
    ) -> String {
        let nanoseconds = |second: u64| (1_767_225_600 + second) * 1_000_000_000;
        format!(
            r#"{{"traceId":"t1","spanId":"{id}","parentSpanId":"{parent}","name":"{id}","startTimeUnixNano":"{}","endTimeUnixNano":"{}","attributes":[{}]{more}}}"#,
            nanoseconds(start),
            nanoseconds(end),
            attributes.join(",")
        )
    }

    /// 1 human turn, 2 calls of the model, 1 call of a tool that failed by its span; 90 + 30 tokens in,
    /// 10 from a cache, 5 + 7 out. The spans are out of order, and the second call repeats the first.
    fn gen_ai() -> String {
        let model = |input: &str, output: &str, tokens: [&str; 3]| {
            vec![
                attribute("gen_ai.operation.name", "chat"),
                attribute("gen_ai.conversation.id", "conv-1"),
                attribute("gen_ai.agent.name", "shopper"),
                attribute("gen_ai.request.model", "m-1"),
                attribute("gen_ai.input.messages", input),
                attribute("gen_ai.output.messages", output),
                format!(
                    r#"{{"key":"gen_ai.usage.input_tokens","value":{{"intValue":"{}"}}}}"#,
                    tokens[0]
                ),
                format!(
                    r#"{{"key":"gen_ai.usage.output_tokens","value":{{"intValue":"{}"}}}}"#,
                    tokens[1]
                ),
                format!(
                    r#"{{"key":"gen_ai.usage.cache_read.input_tokens","value":{{"intValue":{}}}}}"#,
                    tokens[2]
                ),
            ]
        };
        let asked = r#"{"role":"user","parts":[{"type":"text","content":"weather?"}]}"#;
        let called = r#"{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"get","arguments":{"city":"Paris"}}]}"#;
        let answered = r#"{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"no such city"}]}"#;
        let done = r#"[{"role":"assistant","parts":[{"type":"text","content":"I cannot say."}],"finish_reason":"stop"}]"#;
        let second = format!("[{asked},{called},{answered}]");
        let tool = [
            attribute("gen_ai.operation.name", "execute_tool"),
            attribute("gen_ai.tool.name", "get"),
            attribute("gen_ai.tool.call.id", "c1"),
        ];
        let spans = [
            span("chat 2", "root", [4, 5], &model(&second, done, ["30", "7", "0"]), ""),
            span("root", "", [0, 6], &[attribute("gen_ai.operation.name", "invoke_agent")], ""),
            span("tool", "root", [2, 3], &tool, r#","status":{"code":2,"message":"404"}"#),
            span(
                "chat 1",
                "root",
                [1, 2],
                &model(&format!("[{asked}]"), &format!("[{called}]"), ["100", "5", "10"]),
                "",
            ),
        ];
        format!(
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{}]}},"scopeSpans":[{{"spans":[{}]}}]}}]}}"#,
            attribute("service.name", "svc"),
            spans.join(",")
        )
    }

    #[test]
    fn spans_of_the_gen_ai_conventions() {
        let found = sessions(SessionFormat::OpenTelemetry, &gen_ai());
        assert_eq!(found.len(), 1);
        let head = &found[0].head;
        assert_eq!((head.id.as_str(), head.agent.as_str()), ("conv-1", "shopper"));
        assert_eq!(head.models, ["m-1"]);
        assert_eq!(head.start.unwrap().to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(head.end.unwrap().to_string(), "2026-01-01T00:00:06Z");
        assert_eq!(
            said(&found[0]),
            [
                (EventRole::User, "weather?", 0),
                (EventRole::Assistant, "", 1),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "I cannot say.", 0),
            ]
        );
        assert_eq!(
            found[0].events[1].usage,
            Some(TokenCounts { input: 90, output: 5, cached: 10 })
        );
        assert_eq!(found[0].events[1].calls[0].arguments.as_str(), r#"{"city":"Paris"}"#);
        assert_eq!(outcomes(&found[0]), [("get", ToolOutcome::Failed, "no such city")]);
    }

    /// 1 human turn, 2 answers, 1 call; a second conversation beside it in the same trace.
    const OPEN_INFERENCE: &str = r#"{"name":"llm 1","context":{"trace_id":"tr","span_id":"1"},"span_kind":"LLM","parent_id":"0","start_time":"2026-01-01T00:00:01Z","end_time":"2026-01-01T00:00:02Z","status_code":"OK","attributes":{"openinference.span.kind":"LLM","llm.model_name":"m-1","llm.token_count.prompt":10,"llm.token_count.completion":5,"llm.input_messages.0.message.role":"user","llm.input_messages.0.message.content":"look","llm.output_messages.0.message.role":"assistant","llm.output_messages.0.message.tool_calls.0.tool_call.id":"c1","llm.output_messages.0.message.tool_calls.0.tool_call.function.name":"ls","llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments":"{}"}}
{"name":"llm 2","context":{"trace_id":"tr","span_id":"2"},"parent_id":"0","start_time":"2026-01-01T00:00:03Z","end_time":"2026-01-01T00:00:04Z","attributes":{"openinference.span.kind":"LLM","llm.input_messages":[{"message.role":"user","message.content":"look"},{"message.role":"assistant","message.tool_calls":[{"tool_call.id":"c1","tool_call.function.name":"ls","tool_call.function.arguments":"{}"}]},{"message.role":"tool","message.content":"a.rs","message.tool_call_id":"c1"}],"llm.output_messages":[{"message.role":"assistant","message.content":"One file."}]}}
{"name":"llm 3","context":{"trace_id":"tr","span_id":"3"},"parent_id":"0","start_time":"2026-01-01T00:00:05Z","end_time":"2026-01-01T00:00:06Z","attributes":{"openinference.span.kind":"LLM","llm.input_messages.0.message.role":"user","llm.input_messages.0.message.content":"sum up","llm.output_messages.0.message.role":"assistant","llm.output_messages.0.message.content":"Files."}}
"#;

    #[test]
    fn spans_of_open_inference() {
        let found = sessions(SessionFormat::OpenTelemetry, OPEN_INFERENCE);
        assert_eq!(found.len(), 2);
        assert_eq!(
            said(&found[0]),
            [
                (EventRole::User, "look", 0),
                (EventRole::Assistant, "", 1),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "One file.", 0),
            ]
        );
        assert_eq!(outcomes(&found[0]), [("ls", ToolOutcome::Unknown, "a.rs")]);
        assert_eq!(
            (found[0].head.id.as_str(), found[1].head.parent.as_deref()),
            ("tr", Some("tr"))
        );
        assert_eq!(
            said(&found[1]),
            [(EventRole::User, "sum up", 0), (EventRole::Assistant, "Files.", 0)]
        );
    }

    /// 1 human turn, 2 answers, 2 calls of which 1 failed; 1 call of the model that failed.
    const LANGSMITH: &str = r#"[
  {"id":"r0","trace_id":"r0","run_type":"chain","name":"agent","start_time":"2026-01-01T00:00:00","end_time":"2026-01-01T00:00:09","inputs":{"messages":[{"role":"user","content":"add"}]},"outputs":{"output":"3"},"extra":{"metadata":{"thread_id":"th-1"}}},
  {"id":"r1","trace_id":"r0","parent_run_id":"r0","run_type":"llm","name":"ChatOpenAI","start_time":"2026-01-01T00:00:01","end_time":"2026-01-01T00:00:02",
   "inputs":{"messages":[[{"lc":1,"type":"constructor","id":["langchain","schema","messages","SystemMessage"],"kwargs":{"content":"be brief"}},{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"add"}}]]},
   "outputs":{"generations":[[{"text":"","message":{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":"","tool_calls":[{"name":"add","args":{"a":1},"id":"c1","type":"tool_call"},{"name":"mul","args":{},"id":"c2","type":"tool_call"}],"usage_metadata":{"input_tokens":20,"output_tokens":4,"input_token_details":{"cache_read":5}}}}}]]},
   "extra":{"metadata":{"ls_model_name":"m-1"}}},
  {"id":"r2","trace_id":"r0","parent_run_id":"r0","run_type":"tool","name":"add","start_time":"2026-01-01T00:00:03","inputs":{"input":"{'a': 1}"},"outputs":{"output":{"content":"3","tool_call_id":"c1"}}},
  {"id":"r3","trace_id":"r0","parent_run_id":"r0","run_type":"tool","name":"mul","start_time":"2026-01-01T00:00:03","inputs":{},"error":"TypeError()","extra":{"tool_call_id":"c2"}},
  {"id":"r4","trace_id":"r0","parent_run_id":"r0","run_type":"llm","name":"ChatOpenAI","start_time":"2026-01-01T00:00:04","end_time":"2026-01-01T00:00:05",
   "inputs":{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"add"},{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":{"name":"add","arguments":"{}"}},{"id":"c2","function":{"name":"mul","arguments":"{}"}}]},{"role":"tool","content":"3","tool_call_id":"c1"},{"role":"tool","content":"TypeError","tool_call_id":"c2"}]},
   "outputs":{"choices":[{"message":{"role":"assistant","content":"3"}}]}},
  {"id":"r5","trace_id":"r0","parent_run_id":"r0","run_type":"llm","name":"ChatOpenAI","start_time":"2026-01-01T00:00:06","inputs":{},"error":"RateLimitError"}]"#;

    #[test]
    fn runs_of_langsmith() {
        let found = sessions(SessionFormat::LangSmith, LANGSMITH);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].head.id.as_str(), found[0].head.agent.as_str()),
            ("th-1", "langsmith")
        );
        assert_eq!(
            said(&found[0]),
            [
                (EventRole::System, "be brief", 0),
                (EventRole::User, "add", 0),
                (EventRole::Assistant, "", 2),
                (EventRole::Tool, "", 0),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "3", 0),
                (EventRole::Assistant, "", 0),
                (EventRole::System, "RateLimitError", 0),
            ]
        );
        assert_eq!(
            outcomes(&found[0]),
            [("add", ToolOutcome::Unknown, "3"), ("mul", ToolOutcome::Failed, "TypeError")]
        );
        assert_eq!(found[0].events[2].usage, Some(TokenCounts { input: 15, output: 4, cached: 5 }));
        assert_eq!(found[0].events[7].mark, Some(EventMark::ApiError));
    }

    /// 1 human turn, 1 answer, 1 call that no message answers but its own observation; it worked.
    const LANGFUSE: &str = r#"{"data":[
  {"id":"o1","traceId":"t1","type":"GENERATION","name":"chat","startTime":"2026-01-01T00:00:01.000Z","endTime":"2026-01-01T00:00:02.000Z","model":"m-1","input":{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"look"}]},"output":{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]},"usageDetails":{"input":12,"output":3},"level":"DEFAULT","parentObservationId":null},
  {"id":"o2","traceId":"t1","type":"TOOL","name":"ls","startTime":"2026-01-01T00:00:03.000Z","input":{},"output":"a.rs","metadata":{"tool_call_id":"c1"},"level":"DEFAULT"}],"meta":{"page":1}}"#;

    #[test]
    fn observations_of_langfuse() {
        let found = sessions(SessionFormat::Langfuse, LANGFUSE);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].head.id, "t1");
        assert_eq!(
            said(&found[0]),
            [
                (EventRole::System, "be brief", 0),
                (EventRole::User, "look", 0),
                (EventRole::Assistant, "I look.", 1),
                (EventRole::Tool, "", 0),
            ]
        );
        assert_eq!(outcomes(&found[0]), [("ls", ToolOutcome::Ok, "a.rs")]);
        assert_eq!(found[0].events[2].usage, Some(TokenCounts { input: 12, output: 3, cached: 0 }));
    }

    #[test]
    fn a_trace_without_generations_tells_what_it_was_asked() {
        let trace = r#"[{"id":"t1","name":"n","timestamp":"2026-01-01T00:00:00Z","sessionId":"s1","input":"hi","output":"hello","observations":[]}]"#;
        let found = sessions(SessionFormat::Langfuse, trace);
        assert_eq!(found[0].head.id, "s1");
        assert_eq!(
            said(&found[0]),
            [(EventRole::User, "hi", 0), (EventRole::Assistant, "hello", 0)]
        );
    }

    /// A trace as the interface gives it: 1 human turn, 1 answer, 1 call that worked, all in one
    /// conversation, from observations inside it, one of which does not name the trace.
    #[test]
    fn a_trace_of_langfuse_with_its_observations() {
        let trace = r#"{"id":"t1","name":"n","timestamp":"2026-01-01T00:00:00Z","sessionId":"s1","input":"look","output":"I look.","observations":[
  {"id":"o1","type":"GENERATION","startTime":"2026-01-01T00:00:01.000Z","model":"m-1","input":[{"role":"user","content":"look"}],"output":{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]}},
  {"id":"o2","traceId":"t1","type":"TOOL","name":"ls","startTime":"2026-01-01T00:00:03.000Z","input":{},"output":"a.rs","metadata":{"tool_call_id":"c1"}}]}"#;
        for text in [trace.to_owned(), format!("[{trace}]"), format!("{{\"data\":[{trace}]}}")] {
            let found = sessions(SessionFormat::Langfuse, &text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].head.id, "s1");
            let expected = [
                (EventRole::User, "look", 0),
                (EventRole::Assistant, "I look.", 1),
                (EventRole::Tool, "", 0),
            ];
            assert_eq!(said(&found[0]), expected);
            assert_eq!(outcomes(&found[0]), [("ls", ToolOutcome::Ok, "a.rs")]);
        }
        let listed = r#"{"data":[{"id":"t1","timestamp":"2026-01-01T00:00:00Z","input":"hi","output":"hello","observations":["o1","o2"]}]}"#;
        let found = sessions(SessionFormat::Langfuse, listed);
        assert_eq!(
            said(&found[0]),
            [(EventRole::User, "hi", 0), (EventRole::Assistant, "hello", 0)]
        );
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::OpenTelemetry, gen_ai().as_bytes());
        survives_damage(SessionFormat::OpenTelemetry, OPEN_INFERENCE.as_bytes());
        survives_damage(SessionFormat::LangSmith, LANGSMITH.as_bytes());
        survives_damage(SessionFormat::Langfuse, LANGFUSE.as_bytes());
    }
}
