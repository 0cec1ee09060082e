//! Reads OpenTelemetry spans: OTLP in JSON, and the flat spans of exporters and Phoenix. Their
//! attributes follow the `GenAI` conventions (several versions), `OpenInference`'s, or those of the
//! Vercel AI SDK.

use serde_json::{Map, Value, json};

use super::message::{elements, parse_json};
use super::{SpanCollector, SpanKind, SpanTool, TraceSpan, count, moment, text, value_text};
use crate::event::TokenCounts;

/// Adds a span, or the spans of a resource. Returns false if the value is neither.
pub(super) fn take(value: &Value, spans: &mut SpanCollector) -> bool {
    let scopes = ["scopeSpans", "scope_spans", "instrumentationLibrarySpans"];
    if let Some(scopes) = scopes.iter().find_map(|name| value.get(name)?.as_array()) {
        let resource = attributes(value.get("resource").unwrap_or(&Value::Null));
        let service = resource.get("service.name").map(value_text);
        for span in scopes.iter().flat_map(|scope| elements(scope.get("spans").unwrap_or(scope))) {
            take_span(&span, service.clone(), spans);
        }
        return true;
    }
    take_span(value, None, spans)
}

fn take_span(value: &Value, service: Option<String>, spans: &mut SpanCollector) -> bool {
    let context = value.get("context").unwrap_or(&Value::Null);
    let trace = text(value, &["traceId", "trace_id", "context.trace_id"])
        .or_else(|| text(context, &["trace_id", "traceId"]));
    let Some(trace) = trace else { return false };
    let attributes = attributes(value);
    let get = |name: &str| attributes.get(name);
    let name = |names: &[&str]| {
        names.iter().find_map(|name| get(name).map(value_text)).unwrap_or_default()
    };
    let parent = text(value, &["parentSpanId", "parent_span_id", "parent_id"]);
    let mut span = TraceSpan {
        trace,
        parent,
        kind: Some(kind(value, &attributes)),
        start: moment(value, &["startTimeUnixNano", "start_time_unix_nano", "start_time"]),
        end: moment(value, &["endTimeUnixNano", "end_time_unix_nano", "end_time"]),
        agent: Some(name(&["gen_ai.agent.name"])).filter(|name| !name.is_empty()),
        service,
        model: name(&[
            "gen_ai.response.model",
            "gen_ai.request.model",
            "llm.model_name",
            "ai.response.model",
            "ai.model.id",
        ]),
        usage: usage(&attributes),
        error: error(value),
        ..TraceSpan::default()
    };
    let conversation =
        name(&["gen_ai.conversation.id", "session.id", "langsmith.trace.session_id"]);
    if !conversation.is_empty() {
        spans.conversations.insert(span.trace.clone(), conversation);
    }
    let nested = nested(&attributes);
    if span.kind == Some(SpanKind::Tool) {
        span.tool = SpanTool {
            name: name(&["gen_ai.tool.name", "tool.name", "ai.toolCall.name"]),
            call_id: name(&["gen_ai.tool.call.id", "tool_call.id", "tool.id", "ai.toolCall.id"]),
            arguments: name(&[
                "gen_ai.tool.call.arguments",
                "tool.parameters",
                "ai.toolCall.args",
                "input.value",
            ]),
            result: name(&["gen_ai.tool.call.result", "ai.toolCall.result", "output.value"]),
        };
        if span.tool.name.is_empty() {
            // Some instrumentations name the span after the tool.
            span.tool.name = text(value, &["name"]).unwrap_or_default();
        }
    } else {
        let events = events(value);
        let find = |names: &[&str]| {
            let own = names.iter().find_map(|name| get(name));
            own.or_else(|| names.iter().find_map(|name| events.get(*name)))
        };
        let pointed =
            |pointer: &str| nested.pointer(pointer).map(elements).filter(|all| !all.is_empty());
        let input = pointed("/llm/input_messages").or_else(|| pointed("/gen_ai/prompt"));
        let output = pointed("/llm/output_messages").or_else(|| pointed("/gen_ai/completion"));
        // Generic input and output of other spans are internal values, not messages.
        let fallback = span.kind == Some(SpanKind::Model) || span.parent.is_none();
        let whole = |names: &[&str], last: &str| {
            find(names).or_else(|| get(last).filter(|_| fallback)).cloned()
        };
        if let Some(system) = find(&["gen_ai.system_instructions"]) {
            span.input = spans.messages.intern_all(&instructions(system), "system");
        }
        let input = input.map(Value::Array).or_else(|| {
            whole(&["gen_ai.input.messages", "ai.prompt.messages", "ai.prompt"], "input.value")
        });
        span.input.extend(spans.messages.intern_all(&input.unwrap_or_default(), "user"));
        let output = output.map(Value::Array).or_else(|| {
            whole(&["gen_ai.output.messages"], "output.value").or_else(|| vercel(&attributes))
        });
        span.output = spans.messages.intern_all(&output.unwrap_or_default(), "assistant");
    }
    spans.all.push(span);
    true
}

/// Determines the kind of a span from its attributes, fields and name.
fn kind(value: &Value, attributes: &Map<String, Value>) -> SpanKind {
    let of = |name: &str| attributes.get(name).map(value_text).unwrap_or_default();
    let kind = text(value, &["span_kind"]).unwrap_or_default();
    let inference = of("openinference.span.kind");
    match (of("gen_ai.operation.name").as_str(), inference.as_str(), kind.as_str()) {
        ("chat" | "text_completion" | "generate_content" | "completion", ..)
        | (_, "LLM", _)
        | (_, _, "LLM") => return SpanKind::Model,
        ("execute_tool", ..) | (_, "TOOL", _) | (_, _, "TOOL") => return SpanKind::Tool,
        // Undecided so far; the name and attributes follow.
        ("" | "ai.generateText" | "ai.streamText", "", _) => {}
        _ => return SpanKind::Other,
    }
    let name = text(value, &["name"]).unwrap_or_default();
    let has = |start: &str| attributes.keys().any(|key| key.starts_with(start));
    if name.ends_with(".doGenerate") || name.ends_with(".doStream") {
        SpanKind::Model
    } else if name.starts_with("ai.") && !name.starts_with("ai.toolCall") {
        // The outer call around the provider's calls.
        SpanKind::Other
    } else if has("gen_ai.tool.name") || has("ai.toolCall.") {
        SpanKind::Tool
    } else if has("gen_ai.prompt.") || has("gen_ai.input.messages") || has("gen_ai.request.model") {
        SpanKind::Model
    } else {
        SpanKind::Other
    }
}

/// Reads token counts. The input includes cached tokens.
fn usage(attributes: &Map<String, Value>) -> Option<TokenCounts> {
    let all = Value::Object(attributes.clone());
    let of = |names: &[&str]| count(&all, names);
    let cached = of(&[
        "gen_ai.usage.cache_read.input_tokens",
        "llm.token_count.prompt_details.cache_read",
        "ai.usage.cachedInputTokens",
    ]);
    let input = of(&[
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "ai.usage.promptTokens",
    ]);
    let output = of(&[
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "ai.usage.completionTokens",
    ]);
    let usage = TokenCounts { input: input.saturating_sub(cached), output, cached };
    (usage != TokenCounts::default()).then_some(usage)
}

/// Returns the error of a failed span: `{"code": 2, "message": …}`, or the code by name.
fn error(value: &Value) -> Option<String> {
    let status = value.get("status").unwrap_or(value);
    let code = text(status, &["code", "status_code"])?;
    let is_error = matches!(code.as_str(), "2" | "ERROR" | "STATUS_CODE_ERROR");
    let message = text(status, &["message", "status_message", "description"]);
    is_error.then(|| message.unwrap_or_else(|| "the span has the status of an error".to_owned()))
}

/// Returns attributes by name, from a list of keys and typed values, an object, or fields of the
/// span that start with `attributes.`.
fn attributes(value: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    match value.get("attributes") {
        Some(Value::Array(all)) => {
            for one in all {
                if let (Some(key), Some(value)) = (text(one, &["key"]), one.get("value")) {
                    found.insert(key, typed(value, 0));
                }
            }
        }
        Some(Value::Object(all)) => found.clone_from(all),
        _ => {}
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        if let Some(key) = key.strip_prefix("attributes.") {
            found.insert(key.to_owned(), value.clone());
        }
    }
    found
}

/// Parses an OTLP value, such as `{"stringValue": …}`.
fn typed(value: &Value, depth: usize) -> Value {
    // Bounds the recursion.
    const MAX_DEPTH: usize = 16;
    let Some((kind, inner)) = value.as_object().and_then(|fields| fields.iter().next()) else {
        return value.clone();
    };
    let values = || elements(inner.get("values").unwrap_or(inner));
    match kind.as_str() {
        "arrayValue" | "array_value" if depth < MAX_DEPTH => {
            values().iter().map(|value| typed(value, depth + 1)).collect()
        }
        "kvlistValue" | "kvlist_value" if depth < MAX_DEPTH => {
            let pair =
                |pair: Value| Some((text(&pair, &["key"])?, typed(pair.get("value")?, depth + 1)));
            Value::Object(values().into_iter().filter_map(pair).collect())
        }
        _ => inner.clone(),
    }
}

/// Nests message attributes whose names are paths, such as `llm.input_messages.0.message.role`.
fn nested(attributes: &Map<String, Value>) -> Value {
    let mut root = json!({});
    for (key, value) in attributes {
        let is_path =
            ["llm.input_messages", "llm.output_messages", "gen_ai.prompt.", "gen_ai.completion."];
        if is_path.iter().any(|start| key.starts_with(start)) {
            put(&mut root, key, value);
        }
    }
    root
}

fn put(root: &mut Value, path: &str, value: &Value) {
    // Bounds the nesting that a hostile attribute name can cause.
    const MAX_PARTS: usize = 16;
    let mut at = root;
    // `llm.input_messages.0.message.content`: indices are keys here, and `elements` orders them
    // later.
    for part in path.split('.').take(MAX_PARTS) {
        if !at.is_object() {
            *at = json!({});
        }
        let Value::Object(fields) = at else { return };
        at = fields.entry(part).or_insert(Value::Null);
    }
    // Phoenix writes lists of objects whose keys are paths too.
    *at = match value {
        Value::Array(all) => all.iter().map(unfolded).collect(),
        Value::String(text) if path.ends_with("_messages") => parse_json(text)
            .map_or_else(|| value.clone(), |all| elements(&all).iter().map(unfolded).collect()),
        other => other.clone(),
    };
}

/// Nests an object whose keys are paths.
fn unfolded(value: &Value) -> Value {
    match value {
        Value::Object(fields) if fields.keys().any(|key| key.contains('.')) => {
            let mut root = json!({});
            fields.iter().for_each(|(key, value)| put(&mut root, key, value));
            root
        }
        other => other.clone(),
    }
}

/// Converts instructions, which are parts without a speaker, to a message.
fn instructions(value: &Value) -> Value {
    let parts = match value {
        Value::String(text) => parse_json(text).unwrap_or_else(|| value.clone()),
        other => other.clone(),
    };
    match parts {
        Value::Array(_) => json!([{ "role": "system", "parts": parts }]),
        other => other,
    }
}

/// Returns messages from a span's events, for spans without message attributes. One event contains
/// all messages, or each event contains one.
fn events(value: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    let (mut input, mut output) = (Vec::new(), Vec::new());
    for event in value.get("events").map(elements).unwrap_or_default() {
        let attributes = attributes(&event);
        let name = text(&event, &["name"]).unwrap_or_default();
        let role = match name.as_str() {
            "gen_ai.system.message" => "system",
            "gen_ai.user.message" => "user",
            "gen_ai.assistant.message" => "assistant",
            "gen_ai.tool.message" => "tool",
            "gen_ai.choice" => "choice",
            _ => {
                for name in ["gen_ai.input.messages", "gen_ai.output.messages"] {
                    let value = attributes.get(name);
                    found.extend(value.map(|value| (name.to_owned(), value.clone())));
                }
                continue;
            }
        };
        let mut message = attributes;
        if let Some(Value::Object(inner)) = message.get("message").map(json_of) {
            message.extend(inner);
        }
        let (role, to) =
            if role == "choice" { ("assistant", &mut output) } else { (role, &mut input) };
        message.insert("role".to_owned(), json!(role));
        if let Some(id) = message.get("id").filter(|_| role == "tool").cloned() {
            // In events of older conventions, the id of a tool's message is that of the call.
            message.insert("tool_call_id".to_owned(), id);
        }
        message.entry("content").or_insert(Value::Null);
        to.push(Value::Object(message));
    }
    if !input.is_empty() {
        found.insert("gen_ai.input.messages".to_owned(), Value::Array(input));
    }
    if !output.is_empty() {
        found.insert("gen_ai.output.messages".to_owned(), Value::Array(output));
    }
    found
}

fn json_of(value: &Value) -> Value {
    match value {
        Value::String(text) => parse_json(text).unwrap_or_default(),
        other => other.clone(),
    }
}

/// Builds the answer of the Vercel AI SDK from its text and its JSON calls.
fn vercel(attributes: &Map<String, Value>) -> Option<Value> {
    let words = attributes.get("ai.response.text");
    let calls = attributes.get("ai.response.toolCalls").map(json_of);
    let call = |call: Value| {
        let arguments = call.get("args").or_else(|| call.get("input")).map(value_text);
        json!({ "id": call.get("toolCallId"), "type": "function",
                "function": { "name": call.get("toolName"), "arguments": arguments } })
    };
    let calls: Vec<Value> =
        calls.map(|all| elements(&all)).unwrap_or_default().into_iter().map(call).collect();
    (words.is_some() || !calls.is_empty())
        .then(|| json!([{ "role": "assistant", "content": words, "tool_calls": calls }]))
}
