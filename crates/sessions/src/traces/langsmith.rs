//! Reads `LangSmith` runs: a list or lines of them, as in its API and exports.

use serde_json::Value;

use super::{SpanCollector, SpanKind, SpanTool, TraceSpan, count, moment, text, value_text};
use crate::event::TokenCounts;

/// Adds a run and its child runs. Returns false if the value is not a run.
pub(super) fn take_run(value: &Value, spans: &mut SpanCollector) -> bool {
    let (Some(run), Some(kind)) = (text(value, &["id", "run_id"]), text(value, &["run_type"]))
    else {
        return false;
    };
    let null = Value::Null;
    let field = |name: &str| value.get(name).unwrap_or(&null);
    let (inputs, outputs) = (json_of(field("inputs")), json_of(field("outputs")));
    let extra = json_of(field("extra"));
    let about =
        |pointer: &str| extra.pointer(pointer).map(value_text).filter(|words| !words.is_empty());
    let mut span = TraceSpan {
        trace: text(value, &["trace_id"]).unwrap_or(run),
        parent: text(value, &["parent_run_id"]),
        kind: Some(match kind.as_str() {
            "llm" => SpanKind::Model,
            "tool" => SpanKind::Tool,
            _ => SpanKind::Other,
        }),
        start: moment(value, &["start_time"]),
        end: moment(value, &["end_time"]),
        error: text(value, &["error"]),
        model: about("/metadata/ls_model_name")
            .or_else(|| about("/invocation_params/model"))
            .or_else(|| about("/invocation_params/model_name"))
            .unwrap_or_default(),
        ..TraceSpan::default()
    };
    let conversation = ["/metadata/thread_id", "/metadata/session_id", "/metadata/conversation_id"];
    if let Some(id) = conversation.iter().find_map(|pointer| about(pointer)) {
        spans.conversations.insert(span.trace.clone(), id);
    }
    match span.kind {
        Some(SpanKind::Tool) => span.tool = tool(value, &inputs, &outputs),
        _ if span.kind == Some(SpanKind::Model) || span.parent.is_none() => {
            span.usage = usage(value, &outputs);
            span.input = spans.messages.intern_all(&inputs, "user");
            let answers = outputs.get("messages").filter(|_| span.kind != Some(SpanKind::Model));
            // The final state of a graph repeats its initial messages.
            let known = answers.map_or(0, |_| span.input.len());
            let mut output = spans.messages.intern_all(&outputs, "assistant");
            span.output = output.split_off(known.min(output.len()));
        }
        _ => {}
    }
    spans.all.push(span);
    for child in value.get("child_runs").and_then(Value::as_array).into_iter().flatten() {
        take_run(child, spans);
    }
    true
}

/// Returns the value, or the JSON inside a string, which some exports write.
fn json_of(value: &Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| value.clone()),
        other => other.clone(),
    }
}

fn tool(run: &Value, inputs: &Value, outputs: &Value) -> SpanTool {
    let answer = outputs.get("output").unwrap_or(outputs);
    // A LangChain message in JSON.
    let inner = answer.get("kwargs").unwrap_or(answer);
    let called = run.pointer("/extra/tool_call_id").map(value_text);
    SpanTool {
        name: text(run, &["name"]).unwrap_or_default(),
        call_id: text(inner, &["tool_call_id"]).or(called).unwrap_or_default(),
        arguments: value_text(inputs.get("input").unwrap_or(inputs)),
        result: value_text(inner.get("content").unwrap_or(inner)),
    }
}

/// Reads token counts of the run or of the message in its output. The input includes cached tokens.
fn usage(run: &Value, outputs: &Value) -> Option<TokenCounts> {
    let stated = run.get("usage_metadata").or_else(|| outputs.get("usage_metadata"));
    let inner = outputs.pointer("/generations/0/0/message/kwargs/usage_metadata");
    let of = stated.or(inner).or_else(|| outputs.get("usage")).unwrap_or(run);
    let cached = of.pointer("/input_token_details/cache_read").and_then(Value::as_u64);
    let cached = cached.unwrap_or_default();
    let usage = TokenCounts {
        input: count(of, &["input_tokens", "prompt_tokens"]).saturating_sub(cached),
        output: count(of, &["output_tokens", "completion_tokens"]),
        cached,
    };
    (usage != TokenCounts::default()).then_some(usage)
}
