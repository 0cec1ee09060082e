//! Tests over hand-made traces whose totals were counted by hand.

use crate::mutation::survives_damage;
use crate::{
    Event, EventMark, EventRole, Session, SessionCollector, SessionFormat, SessionSource,
    TokenCounts, ToolOutcome, read,
};

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
    assert_eq!(found[0].events[1].usage, Some(TokenCounts { input: 90, output: 5, cached: 10 }));
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
    assert_eq!((found[0].head.id.as_str(), found[1].head.parent.as_deref()), ("tr", Some("tr")));
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
    assert_eq!((found[0].head.id.as_str(), found[0].head.agent.as_str()), ("th-1", "langsmith"));
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
    assert_eq!(said(&found[0]), [(EventRole::User, "hi", 0), (EventRole::Assistant, "hello", 0)]);
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
    assert_eq!(said(&found[0]), [(EventRole::User, "hi", 0), (EventRole::Assistant, "hello", 0)]);
}

#[test]
fn damage_does_no_harm() {
    survives_damage(SessionFormat::OpenTelemetry, gen_ai().as_bytes());
    survives_damage(SessionFormat::OpenTelemetry, OPEN_INFERENCE.as_bytes());
    survives_damage(SessionFormat::LangSmith, LANGSMITH.as_bytes());
    survives_damage(SessionFormat::Langfuse, LANGFUSE.as_bytes());
}
