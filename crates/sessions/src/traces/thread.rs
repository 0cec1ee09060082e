//! Groups model calls that continue each other into one session.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::message::TraceMessage;
use super::{SpanKind, SpanTool, TraceKind, TraceSpan};
use crate::chat;
use crate::feed::SessionFeed;

/// Spans of one conversation that start with the same message, by index.
pub(super) struct SpanThread {
    spans: Vec<usize>,
    /// Key of the first message that is not from the system.
    first: Option<u64>,
    is_first: bool,
}

impl SpanThread {
    /// Groups the spans, which are sorted by time.
    pub(super) fn of(spans: &[TraceSpan]) -> Vec<Self> {
        let mut threads = Vec::<Self>::new();
        let has_models = spans.iter().any(|span| span.kind == Some(SpanKind::Model));
        for (place, span) in spans.iter().enumerate() {
            let counts = match span.kind {
                Some(SpanKind::Model) => true,
                Some(SpanKind::Tool) => false,
                // Outer spans count only if there are no model spans.
                _ if has_models => false,
                _ => !span.input.is_empty() || !span.output.is_empty(),
            };
            if !counts {
                continue;
            }
            let is_said = |said: &&std::rc::Rc<TraceMessage>| said.role != "system";
            // The first message identifies a thread: each call repeats its whole conversation, and
            // parallel agents of one trace start with different requests.
            let first = span.input.iter().find(is_said).map(|said| said.key);
            let known = threads.iter_mut().find(|thread| match (thread.first, first) {
                (Some(one), Some(other)) => one == other,
                // A call whose messages were not recorded.
                (_, None) => true,
                (None, Some(_)) => false,
            });
            if let Some(thread) = known {
                thread.spans.push(place);
            } else {
                let is_first = threads.is_empty();
                threads.push(Self { spans: vec![place], first, is_first });
            }
        }
        if threads.is_empty() && spans.iter().any(|span| span.kind == Some(SpanKind::Tool)) {
            threads.push(Self { spans: Vec::new(), first: None, is_first: true });
        }
        threads
    }

    /// Sends the session.
    pub(super) fn send(
        &self,
        kind: TraceKind,
        id: &str,
        spans: &[TraceSpan],
        feed: &mut SessionFeed<'_>,
    ) {
        let agent = spans.iter().find_map(|span| span.agent.clone());
        let agent = agent.or_else(|| spans.iter().find_map(|span| span.service.clone()));
        let agent = agent.unwrap_or_else(|| kind.agent().to_owned());
        let mut sender = ThreadSender {
            agent: &agent,
            sent: HashMap::new(),
            calls: HashSet::new(),
            open: Vec::new(),
            tools: spans.iter().filter(|span| span.kind == Some(SpanKind::Tool)).collect(),
        };
        for &place in &self.spans {
            sender.call(&spans[place], feed);
        }
        if self.spans.is_empty() {
            sender.send_tools(feed);
        }
        sender.end(feed);
        let own = |place: &usize| &spans[*place];
        let all: Vec<&TraceSpan> = if self.is_first {
            spans.iter().collect()
        } else {
            self.spans.iter().map(own).collect()
        };
        for span in all {
            for time in [span.start, span.end].into_iter().flatten() {
                feed.head.record_time(time);
            }
        }
        feed.head.agent = agent;
        if self.is_first {
            id.clone_into(&mut feed.head.id);
        } else {
            feed.head.parent = Some(id.to_owned());
            feed.naming.set_name(id);
        }
        feed.end_session();
    }
}

/// A session while it is sent.
struct ThreadSender<'s> {
    agent: &'s str,
    /// Number of times that each message was sent.
    sent: HashMap<u64, usize>,
    /// Ids of the calls that were sent.
    calls: HashSet<String>,
    /// Calls without a result so far.
    open: Vec<String>,
    tools: Vec<&'s TraceSpan>,
}

impl ThreadSender<'_> {
    fn call(&mut self, span: &TraceSpan, feed: &mut SessionFeed<'_>) {
        let mut met = HashMap::<u64, usize>::new();
        for said in &span.input {
            let times = met.entry(said.key).or_default();
            // Counted instead of remembered as a set: a person may send the same message twice.
            *times += 1;
            let before = self.sent.get(&said.key).copied().unwrap_or_default();
            // A message with known calls is a copy, even if its other fields differ.
            let is_known_call =
                !said.calls.is_empty() && said.calls.iter().all(|id| self.calls.contains(id));
            // Each model call repeats the conversation so far; only new messages are sent.
            if *times > before && !is_known_call {
                self.send(said, span, None, feed);
            }
        }
        // One model call may answer with several messages; its tokens count once.
        let mut usage = Some(Self::about(span));
        for said in &span.output {
            self.send(said, span, usage.take(), feed);
        }
        if let Some(about) = usage.filter(|_| span.kind == Some(SpanKind::Model)) {
            // The answer was not recorded, only the fact that the model was called.
            let mut message = Map::from_iter([("role".to_owned(), json!("assistant"))]);
            message.extend(about);
            self.deliver(message, feed);
        }
        if let Some(error) = span.error.as_deref().filter(|_| span.kind == Some(SpanKind::Model)) {
            feed.send(crate::Event {
                text: crate::Text::new(error.to_owned()),
                mark: Some(crate::EventMark::ApiError),
                time: span.end,
                ..crate::Event::default()
            });
        }
    }

    /// Returns fields of an answer that are stored in its span.
    fn about(span: &TraceSpan) -> Map<String, Value> {
        let mut about = Map::new();
        if !span.model.is_empty() {
            about.insert("model".to_owned(), json!(span.model));
        }
        if let Some(usage) = span.usage {
            let usage = json!({
                "input_tokens": usage.input,
                "output_tokens": usage.output,
                "cache_read_input_tokens": usage.cached,
            });
            about.insert("usage".to_owned(), usage);
        }
        if let Some(end) = span.end {
            about.insert("timestamp".to_owned(), json!(end.to_string()));
        }
        about
    }

    fn send(
        &mut self,
        said: &TraceMessage,
        span: &TraceSpan,
        about: Option<Map<String, Value>>,
        feed: &mut SessionFeed<'_>,
    ) {
        *self.sent.entry(said.key).or_default() += 1;
        let mut message = said.fields();
        if let Some(about) = about {
            message.extend(about);
        } else {
            let start = span.start.map(|time| json!(time.to_string()));
            message.extend(start.map(|time| ("timestamp".to_owned(), time)));
        }
        for id in &said.calls {
            if self.calls.insert(id.clone()) {
                self.open.push(id.clone());
            }
        }
        // A result in the messages is what the model saw, and comes before that of the tool's own
        // span.
        self.open.retain(|open| !said.answers.contains(open));
        self.mark_failures(&mut message);
        self.deliver(message, feed);
    }

    /// Marks results as failed if only the tools' spans record the failure.
    fn mark_failures(&self, message: &mut Map<String, Value>) {
        let failed = |fields: &Map<String, Value>, names: &[&str]| {
            let id = names.iter().find_map(|name| fields.get(*name)?.as_str());
            let of_call = |span: &&TraceSpan| Some(span.tool.call_id.as_str()) == id;
            self.tools.iter().copied().find(of_call).is_some_and(|span| span.error.is_some())
        };
        if failed(message, &["tool_call_id"]) {
            // Messages have no error flag, but the span of the tool has a status.
            message.insert("is_error".to_owned(), json!(true));
        }
        for name in ["parts", "content"] {
            let Some(Value::Array(parts)) = message.get_mut(name) else { continue };
            for part in parts.iter_mut().filter_map(Value::as_object_mut) {
                let kind = part.get("type").and_then(Value::as_str);
                let is_result = matches!(kind, Some("tool_call_response" | "tool_result"));
                if is_result && failed(part, &["id", "tool_use_id"]) {
                    part.insert("is_error".to_owned(), json!(true));
                }
            }
        }
    }

    /// Sends results that appear only in the tools' spans and in no later message.
    fn end(&mut self, feed: &mut SessionFeed<'_>) {
        for id in std::mem::take(&mut self.open) {
            // The last calls of a session have no later model call whose input would repeat their
            // results.
            let found = self.tools.iter().find(|span| span.tool.call_id == id).copied();
            if let Some(span) = found {
                self.deliver(tool_message(&span.tool, span), feed);
            }
        }
    }

    /// Sends tool calls for a source without any model calls.
    fn send_tools(&mut self, feed: &mut SessionFeed<'_>) {
        for (number, span) in std::mem::take(&mut self.tools).into_iter().enumerate() {
            let mut tool = span.tool.clone();
            if tool.call_id.is_empty() {
                // Calls and results are paired by id.
                tool.call_id = format!("call {}", number + 1);
            }
            let function = json!({ "name": tool.name, "arguments": tool.arguments });
            let call = json!({ "id": tool.call_id, "type": "function", "function": function });
            let mut message = Map::from_iter([
                ("role".to_owned(), json!("assistant")),
                ("tool_calls".to_owned(), json!([call])),
            ]);
            message
                .extend(span.start.map(|time| ("timestamp".to_owned(), json!(time.to_string()))));
            self.deliver(message, feed);
            self.deliver(tool_message(&tool, span), feed);
        }
    }

    fn deliver(&self, message: Map<String, Value>, feed: &mut SessionFeed<'_>) {
        let json = Value::Object(message).to_string();
        if chat::read_message(self.agent, &json, feed).is_err() {
            feed.notes.bad_records += 1;
        }
    }
}

/// Builds the message with a tool's answer.
fn tool_message(tool: &SpanTool, span: &TraceSpan) -> Map<String, Value> {
    let mut message = Map::from_iter([
        ("role".to_owned(), json!("tool")),
        ("tool_call_id".to_owned(), json!(tool.call_id)),
        ("name".to_owned(), json!(tool.name)),
        ("content".to_owned(), json!(tool.result)),
        ("is_error".to_owned(), json!(span.error.is_some())),
    ]);
    message.extend(span.error.as_ref().map(|error| ("error".to_owned(), json!(error))));
    message.extend(span.end.map(|time| ("timestamp".to_owned(), json!(time.to_string()))));
    message
}
