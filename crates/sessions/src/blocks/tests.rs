//! Every dialect of blocks, with what it comes to counted by hand.

use super::super::event::{EventRole, ToolOutcome};
use super::super::mutation::survives_damage;
use super::super::{Session, SessionCollector, SessionFormat, SessionSource, read};

fn session(format: SessionFormat, json: &str) -> Session {
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes("some.json", json), &mut collector).unwrap();
    assert_eq!(reading.format, format);
    let mut sessions = collector.into_sessions();
    assert_eq!(sessions.len(), 1);
    sessions.remove(0)
}

/// Calls, and how each result ended, in order.
fn calls(session: &Session) -> (Vec<&str>, Vec<(&str, ToolOutcome)>) {
    let calls = session.events.iter().flat_map(|event| &event.calls);
    let results = session.events.iter().flat_map(|event| &event.results);
    (
        calls.map(|call| call.name.as_str()).collect(),
        results.map(|result| (result.tool.as_str(), result.outcome)).collect(),
    )
}

fn said(session: &Session) -> Vec<(EventRole, &str)> {
    let texts = session.events.iter().map(|event| (event.role, event.text.as_str()));
    texts.filter(|(_, text)| !text.is_empty()).collect()
}

const ANTHROPIC: &str = r#"{"model":"claude-x","system":[{"type":"text","text":"be good"}],"messages":[
  {"role":"user","content":[{"type":"text","text":"fix it"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJDQUJD"}}]},
  {"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I look."},
    {"type":"tool_use","id":"t1","name":"bash","input":{"command":"false"}},
    {"type":"tool_use","id":"t2","name":"read","input":{"path":"a"}},
    {"type":"tool_use","id":"t3","name":"edit","input":{"path":"a"}}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"no","is_error":true},
    {"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"fn"}]},
    {"type":"tool_result","tool_use_id":"t3","is_error":true,"content":"The user doesn't want to proceed with this tool use."},
    {"type":"text","text":"go on"}]},
  {"role":"assistant","content":[{"type":"hologram","content":"shiny"},{"type":"text","text":"Done."}]}]}"#;

#[test]
fn anthropic_blocks_outside_of_claude_code() {
    let session = session(SessionFormat::Chat, ANTHROPIC);
    let (called, ended) = calls(&session);
    assert_eq!(called, ["bash", "read", "edit"]);
    assert_eq!(
        ended,
        [("bash", ToolOutcome::Failed), ("read", ToolOutcome::Ok), ("edit", ToolOutcome::Rejected)]
    );
    assert_eq!(
        said(&session),
        [
            (EventRole::System, "be good"),
            (EventRole::User, "fix it\n[image image/png 6 B]"),
            (EventRole::Assistant, "I look."),
            (EventRole::User, "go on"),
            (EventRole::Assistant, "[unknown block \"hologram\"]\nshiny\nDone."),
        ]
    );
    assert_eq!(session.events[2].reasoning.as_str(), "hm");
    assert_eq!(
        session.head.unknown_blocks.describe().unwrap(),
        "1 block not understood (1 hologram)"
    );
    assert_eq!(session.head.models, ["claude-x"]);
}

const RESPONSES: &str = r#"{"model":"gpt-x","instructions":"be brief","input":[
  {"role":"user","content":[{"type":"input_text","text":"list"}]},
  {"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},
  {"type":"function_call","id":"fc_1","call_id":"c1","name":"shell","arguments":"{\"command\":[\"ls\"]}"},
  {"type":"function_call_output","call_id":"c1","output":"{\"output\":\"\",\"exit_code\":2}"},
  {"type":"web_search_call","id":"ws_1","status":"completed","action":{"query":"x"}},
  {"type":"custom_tool_call","call_id":"c2","name":"apply_patch","input":"*** Begin"},
  {"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"ok"}]},
  {"type":"message","role":"assistant","content":[{"type":"output_text","text":"there"}]}]}"#;

#[test]
fn items_of_the_responses_interface() {
    let session = session(SessionFormat::Responses, RESPONSES);
    let (called, ended) = calls(&session);
    assert_eq!(called, ["shell", "web_search", "apply_patch"]);
    assert_eq!(
        ended,
        [
            ("shell", ToolOutcome::Failed),
            ("web_search", ToolOutcome::Ok),
            ("apply_patch", ToolOutcome::Unknown)
        ]
    );
    assert_eq!(
        said(&session),
        [
            (EventRole::System, "be brief"),
            (EventRole::User, "list"),
            (EventRole::Assistant, "there")
        ]
    );
    assert_eq!(session.head.agent, "responses");
}

const VERCEL: &str = r#"[{"id":"m1","role":"user","parts":[{"type":"text","text":"weather?"}]},
  {"id":"m2","role":"assistant","parts":[{"type":"step-start"},
    {"type":"reasoning","text":"hm"},
    {"type":"tool-weather","toolCallId":"c1","state":"output-available","input":{"city":"Rome"},"output":{"degrees":20}},
    {"type":"tool-invocation","toolInvocation":{"toolCallId":"c2","toolName":"map","args":{},"state":"result","result":"here"}},
    {"type":"dynamic-tool","toolName":"radar","toolCallId":"c3","state":"output-error","input":{},"errorText":"no radar"},
    {"type":"dynamic-tool","toolName":"late","toolCallId":"c4","state":"input-available","input":{}},
    {"type":"text","text":"20 degrees."}]}]"#;

#[test]
fn parts_of_the_vercel_sdk_keep_their_order_and_roles() {
    let session = session(SessionFormat::VercelAi, VERCEL);
    let (called, ended) = calls(&session);
    assert_eq!(called, ["weather", "map", "radar", "late"]);
    assert_eq!(
        ended,
        [
            ("weather", ToolOutcome::Ok),
            ("map", ToolOutcome::Ok),
            ("radar", ToolOutcome::Failed),
            ("late", ToolOutcome::Pending),
        ]
    );
    assert_eq!(
        said(&session),
        [(EventRole::User, "weather?"), (EventRole::Assistant, "20 degrees.")]
    );
    assert_eq!(session.head.agent, "vercel-ai");
    let core = r#"[{"role":"user","content":"go"},
      {"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"find","args":{"a":1}}]},
      {"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"find","output":{"type":"error-text","value":"gone"}}]}]"#;
    let session = self::session(SessionFormat::Chat, core);
    assert_eq!(calls(&session), (vec!["find"], vec![("find", ToolOutcome::Failed)]));
}

const CLINE: &str = r#"[{"role":"user","content":[{"type":"text","text":"<task>\nfix it\n</task>"},{"type":"text","text":"<environment_details>\n# Files\n</environment_details>"}],"ts":1767225600000},
  {"role":"assistant","content":[{"type":"text","text":"I look.\n<read_file>\n<path>a.rs</path>\n</read_file>"}],"ts":1767225601000},
  {"role":"user","content":[{"type":"text","text":"[read_file for 'a.rs'] Result:"},{"type":"text","text":"The tool execution failed with the following error:\n<error>\nFile not found\n</error>"},{"type":"text","text":"<environment_details>\nx\n</environment_details>"}]},
  {"role":"assistant","content":"<attempt_completion>\n<result>\nIt cannot be done.\n</result>\n</attempt_completion>"}]"#;

#[test]
fn calls_written_as_xml() {
    let session = session(SessionFormat::Cline, CLINE);
    let (called, ended) = calls(&session);
    assert_eq!(called, ["read_file", "attempt_completion"]);
    assert_eq!(
        ended,
        [("read_file", ToolOutcome::Failed), ("attempt_completion", ToolOutcome::Ok)]
    );
    assert_eq!(
        said(&session),
        [
            (EventRole::User, "fix it"),
            (EventRole::Assistant, "I look."),
            (EventRole::Assistant, "It cannot be done."),
        ]
    );
    assert_eq!(session.head.start.unwrap().to_string(), "2026-01-01T00:00:00Z");
}

const AMP: &str = r#"{"v":12,"id":"T-1","created":1767225600000,"title":"t","env":{"initial":{"trees":[{"uri":"file:///w","displayName":"w"}]}},"messages":[
  {"role":"user","content":[{"type":"text","text":"test it"}],"meta":{"sentAt":1767225601000}},
  {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"tool_use","id":"c1","name":"Bash","input":{"cmd":"cargo test"},"complete":true},
    {"type":"tool_use","id":"c2","name":"Read","input":{}},{"type":"tool_use","id":"c3","name":"Edit","input":{}}],"state":{"type":"complete","stopReason":"tool_use"},
    "usage":{"model":"claude-x","inputTokens":10,"outputTokens":5,"cacheReadInputTokens":100,"cacheCreationInputTokens":7,"timestamp":"2026-01-01T00:00:03Z"}},
  {"role":"user","content":[{"type":"tool_result","toolUseID":"c1","run":{"status":"done","result":{"output":"failed","exitCode":101}}},
    {"type":"tool_result","toolUseID":"c2","run":{"status":"error","error":{"message":"no file"}}},
    {"type":"tool_result","toolUseID":"c3","run":{"status":"rejected-by-user"}}]},
  {"role":"assistant","content":[{"type":"text","text":"It fails."}]}]}"#;

#[test]
fn threads_of_amp() {
    let session = session(SessionFormat::Amp, AMP);
    let (called, ended) = calls(&session);
    assert_eq!(called, ["Bash", "Read", "Edit"]);
    assert_eq!(
        ended,
        [
            ("Bash", ToolOutcome::Failed),
            ("Read", ToolOutcome::Failed),
            ("Edit", ToolOutcome::Rejected)
        ]
    );
    let head = &session.head;
    assert_eq!((head.id.as_str(), head.agent.as_str()), ("T-1", "amp"));
    assert_eq!((head.cwd.as_deref(), head.models[0].as_str()), (Some("/w"), "claude-x"));
    let usage = session.events[1].usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.cached), (17, 5, 100));
    assert_eq!(session.events[2].results[0].exit_code, Some(101));
    assert_eq!(session.events[2].results[1].error.as_str(), "no file");
}

/// 1 human turn, 2 model calls, 1 call that worked.
const FACTORY: &str = r#"{"type":"session_start","id":"f-1","title":"t","cwd":"/w"}
{"type":"message","id":"1","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":[{"type":"text","text":"look"}]}}
{"type":"message","id":"2","timestamp":"2026-01-01T00:00:01Z","message":{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Execute","input":{"command":"ls"}}]}}
{"type":"message","id":"3","timestamp":"2026-01-01T00:00:02Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a.rs"}]}}
{"type":"message","id":"4","timestamp":"2026-01-01T00:00:03Z","message":{"role":"assistant","content":[{"type":"text","text":"There."}]}}
"#;

/// 1 human turn, 1 model message with a call; results are not kept.
const CURSOR: &str = r#"{"role":"user","message":{"content":[{"type":"text","text":"<user_query>\nlook\n</user_query>"}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"Read","input":{"path":"a"}}]}}
"#;

/// 1 human turn, 1 call that failed.
const CLAUDE_AI: &str = r#"[{"uuid":"cl-1","name":"t","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:01:00Z","chat_messages":[
  {"uuid":"m1","sender":"human","text":"look","created_at":"2026-01-01T00:00:00Z","content":[{"type":"text","text":"look"}]},
  {"uuid":"m2","sender":"assistant","text":"","created_at":"2026-01-01T00:00:05Z","content":[{"type":"tool_use","name":"repl","input":{"code":"1/0"}},{"type":"tool_result","name":"repl","content":[{"type":"text","text":"boom"}],"is_error":true},{"type":"text","text":"It fails."}]}]}]"#;

/// 2 samples, each with 1 call; that of the second failed.
const INSPECT: &str = r#"{"version":2,"status":"success","eval":{"model":"m-1"},"samples":[
  {"id":"a","epoch":1,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":"bash","arguments":{"cmd":"ls"},"type":"function"}]},{"role":"tool","content":"a.rs","tool_call_id":"c1","function":"bash"}]},
  {"id":"b","epoch":1,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":"bash","arguments":{"cmd":"x"}}]},{"role":"tool","content":"","tool_call_id":"c1","error":{"type":"timeout","message":"too slow"}}]}]}"#;

#[test]
fn programs_that_keep_messages_as_they_were_sent() {
    let factory = session(SessionFormat::Factory, FACTORY);
    assert_eq!(calls(&factory), (vec!["Execute"], vec![("Execute", ToolOutcome::Ok)]));
    let head = &factory.head;
    assert_eq!(
        (head.id.as_str(), head.agent.as_str(), head.cwd.as_deref()),
        ("f-1", "factory", Some("/w"))
    );
    let cursor = session(SessionFormat::CursorAgent, CURSOR);
    assert_eq!(calls(&cursor), (vec!["Read"], vec![]));
    assert_eq!(said(&cursor), [(EventRole::User, "look"), (EventRole::Assistant, "I look.")]);
    let claude = session(SessionFormat::ClaudeAi, CLAUDE_AI);
    assert_eq!(calls(&claude), (vec!["repl"], vec![("repl", ToolOutcome::Failed)]));
    assert_eq!(said(&claude), [(EventRole::User, "look"), (EventRole::Assistant, "It fails.")]);
    assert_eq!((claude.head.id.as_str(), claude.head.agent.as_str()), ("cl-1", "claude-ai"));
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes("log.json", INSPECT), &mut collector).unwrap();
    assert_eq!((reading.format, reading.sessions), (SessionFormat::Inspect, 2));
    let sessions = collector.into_sessions();
    assert_eq!(calls(&sessions[0]), (vec!["bash"], vec![("bash", ToolOutcome::Unknown)]));
    assert_eq!(calls(&sessions[1]), (vec!["bash"], vec![("bash", ToolOutcome::Failed)]));
    assert_eq!(sessions[1].head.agent, "inspect");
}

#[test]
fn langchain_names_the_speaker_in_the_type() {
    let json = r#"{"messages":[{"type":"human","role":"user","content":"go"},
      {"type":"ai","content":"","tool_calls":[{"name":"find","args":{"a":1},"id":"c1","type":"tool_call"}]},
      {"type":"tool","content":"gone","tool_call_id":"c1","status":"error"}]}"#;
    let session = session(SessionFormat::Chat, json);
    assert_eq!(calls(&session), (vec!["find"], vec![("find", ToolOutcome::Failed)]));
}

#[test]
fn damage_does_no_harm() {
    for (format, fixture) in [
        (SessionFormat::Chat, ANTHROPIC),
        (SessionFormat::Responses, RESPONSES),
        (SessionFormat::VercelAi, VERCEL),
        (SessionFormat::Cline, CLINE),
        (SessionFormat::Amp, AMP),
        (SessionFormat::Factory, FACTORY),
        (SessionFormat::CursorAgent, CURSOR),
        (SessionFormat::ClaudeAi, CLAUDE_AI),
        (SessionFormat::Inspect, INSPECT),
    ] {
        survives_damage(format, fixture.as_bytes());
    }
}
