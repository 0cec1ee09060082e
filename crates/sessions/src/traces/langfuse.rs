//! Reads Langfuse observations and traces, as in its API and exports.

use serde_json::Value;

use super::{SpanCollector, SpanKind, SpanTool, TraceSpan, count, moment, text, value_text};
use crate::event::TokenCounts;

/// Adds an observation, or a trace's own record. Returns false if the value is neither.
pub(super) fn take_observation(value: &Value, spans: &mut SpanCollector) -> bool {
    let trace = text(value, &["traceId", "trace_id"]);
    let kind = text(value, &["type"]).map(|kind| kind.to_uppercase());
    // Exports list traces and observations side by side; only observations have both.
    let (Some(trace), Some(kind)) = (trace, kind) else { return take_trace(value, spans) };
    let null = Value::Null;
    let field = |name: &str| value.get(name).unwrap_or(&null);
    let is_error = text(value, &["level"]).is_some_and(|level| level == "ERROR");
    // The API writes camel case, some exports snake case.
    let message = text(value, &["statusMessage", "status_message"]);
    if let Some(session) = text(value, &["sessionId", "session_id"]) {
        spans.conversations.insert(trace.clone(), session);
    }
    let mut span = TraceSpan {
        trace,
        parent: text(value, &["parentObservationId", "parent_observation_id"]),
        kind: Some(match kind.as_str() {
            "GENERATION" => SpanKind::Model,
            "TOOL" => SpanKind::Tool,
            _ => SpanKind::Other,
        }),
        start: moment(value, &["startTime", "start_time"]),
        end: moment(value, &["endTime", "end_time"]),
        model: text(value, &["model", "providedModelName"]).unwrap_or_default(),
        error: is_error.then(|| message.unwrap_or_else(|| "level ERROR".to_owned())),
        ..TraceSpan::default()
    };
    match span.kind {
        Some(SpanKind::Model) => {
            span.usage = usage(value);
            span.input = spans.messages.intern_all(field("input"), "user");
            span.output = spans.messages.intern_all(field("output"), "assistant");
        }
        Some(SpanKind::Tool) => {
            let about = field("metadata");
            let id = ["tool_call_id", "toolCallId"];
            span.tool = SpanTool {
                name: text(value, &["name"]).unwrap_or_default(),
                call_id: text(about, &id)
                    .or_else(|| text(field("output"), &id))
                    .unwrap_or_default(),
                arguments: value_text(field("input")),
                result: value_text(field("output").get("content").unwrap_or(field("output"))),
            };
        }
        _ => {}
    }
    spans.all.push(span);
    true
}

/// Adds a trace. Its input and output are used if it has no generation.
fn take_trace(value: &Value, spans: &mut SpanCollector) -> bool {
    let Some(id) = text(value, &["id"]) else { return false };
    let is_trace = ["sessionId", "userId", "timestamp", "release"].iter();
    if !is_trace.clone().any(|name| value.get(name).is_some()) {
        return false;
    }
    if let Some(session) = text(value, &["sessionId"]) {
        spans.conversations.insert(id.clone(), session);
    }
    let null = Value::Null;
    let input = spans.messages.intern_all(value.get("input").unwrap_or(&null), "user");
    let output = spans.messages.intern_all(value.get("output").unwrap_or(&null), "assistant");
    spans.all.push(TraceSpan {
        trace: id,
        kind: Some(SpanKind::Other),
        start: moment(value, &["timestamp"]),
        input,
        output,
        ..TraceSpan::default()
    });
    true
}

/// Reads token counts. `usageDetails` lists cached tokens separately if it names them.
fn usage(value: &Value) -> Option<TokenCounts> {
    let of = ["usageDetails", "usage_details", "usage"];
    let of = of.iter().find_map(|name| value.get(name).filter(|found| found.is_object()))?;
    let usage = TokenCounts {
        input: count(of, &["input", "input_tokens", "promptTokens", "prompt_tokens"]),
        output: count(of, &["output", "output_tokens", "completionTokens", "completion_tokens"]),
        cached: count(of, &["input_cached_tokens", "cache_read_input_tokens", "input_cache_read"]),
    };
    (usage != TokenCounts::default()).then_some(usage)
}
