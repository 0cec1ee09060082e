//! A session with counted totals, and each trap of the format on its own.

use crate::test_support::survives_damage;
use crate::{
    EventMark, EventOrigin, EventRole, ReadSummary, Session, SessionCollector, SessionFormat,
    SessionReadError, SessionSource, TokenCounts, ToolOutcome, read,
};

/// One record after the other: a question, an answer on three lines with two parallel calls whose
/// results come in reverse order, a refusal with words, an interruption, a compaction.
const FIXTURE: &str = r#"
{"type":"summary","summary":"Another day","leafUuid":"elsewhere"}
{"type":"file-history-snapshot","messageId":"u1","snapshot":{},"isSnapshotUpdate":false}
{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s-1","cwd":"/work/app","version":"2.1.3","entrypoint":"cli","timestamp":"2026-03-01T10:00:00Z","message":{"role":"user","content":[{"type":"text","text":"<ide_opened_file>The user opened /work/app/a.rs</ide_opened_file>"},{"type":"text","text":"make the test pass"}]}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s-1","timestamp":"2026-03-01T10:00:01Z","message":{"id":"m1","model":"opus","content":[{"type":"thinking","thinking":"look first","signature":"x"}],"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":3}}}
{"type":"assistant","uuid":"a2","parentUuid":"a1","sessionId":"s-1","timestamp":"2026-03-01T10:00:02Z","message":{"id":"m1","model":"opus","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}],"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":3}}}
{"type":"assistant","uuid":"a3","parentUuid":"a2","sessionId":"s-1","timestamp":"2026-03-01T10:00:03Z","message":{"id":"m1","model":"opus","content":[{"type":"tool_use","id":"t2","name":"Read","input":{"file_path":"a.rs"}}],"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":70}}}
{"type":"progress","uuid":"p1","parentUuid":"a2","sessionId":"s-1","data":{"type":"bash_progress"}}
{"type":"user","uuid":"r2","parentUuid":"a3","sessionId":"s-1","timestamp":"2026-03-01T10:00:04Z","toolUseResult":{"file":{"content":"fn main() {}"}},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"fn main() {}\n<system-reminder>not malware</system-reminder>"}]}]}}
{"type":"user","uuid":"r1","parentUuid":"a2","sessionId":"s-1","timestamp":"2026-03-01T10:00:05Z","toolUseResult":"Error: Exit code 101","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"Exit code 101\ntest failed"}]}}
{"type":"assistant","uuid":"a4","parentUuid":"r1","sessionId":"s-1","timestamp":"2026-03-01T10:00:06Z","message":{"id":"m2","model":"opus","content":[{"type":"text","text":"I see."},{"type":"tool_use","id":"t3","name":"Edit","input":{}}],"usage":{"input_tokens":1,"output_tokens":9}}}
{"type":"user","uuid":"r3","parentUuid":"a4","sessionId":"s-1","timestamp":"2026-03-01T10:00:07Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t3","is_error":true,"content":"The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the user said:\nnot that file"}]}}
{"type":"user","uuid":"i1","parentUuid":"r3","sessionId":"s-1","timestamp":"2026-03-01T10:00:08Z","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}
{"type":"attachment","uuid":"q1","parentUuid":"i1","sessionId":"s-1","timestamp":"2026-03-01T10:00:09Z","attachment":{"type":"queued_command","commandMode":"prompt","prompt":"the other one"}}
{"type":"system","subtype":"compact_boundary","uuid":"c1","parentUuid":null,"logicalParentUuid":"q1","sessionId":"s-1","timestamp":"2026-03-01T10:00:10Z","content":"Conversation compacted"}
{"type":"user","uuid":"c2","parentUuid":"c1","isCompactSummary":true,"sessionId":"s-1","timestamp":"2026-03-01T10:00:11Z","message":{"role":"user","content":"This session is being continued from a previous conversation. Summary: tests."}}
{"type":"assistant","uuid":"a5","parentUuid":"c2","sessionId":"s-1","timestamp":"2026-03-01T10:00:12Z","message":{"id":"m3","model":"sonnet","content":[{"type":"tool_use","id":"t4","name":"Bash","input":{}}],"usage":{"input_tokens":2,"output_tokens":4}}}
"#;

fn collect(name: &str, text: &str) -> (Result<ReadSummary, SessionReadError>, Vec<Session>) {
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes(name, text), &mut collector);
    (reading, collector.into_sessions())
}

fn session(name: &str, text: &str) -> Session {
    let (reading, mut sessions) = collect(name, text);
    assert_eq!(reading.unwrap().format, SessionFormat::ClaudeCode);
    assert_eq!(sessions.len(), 1);
    sessions.remove(0)
}

/// A user record with that text.
fn user(uuid: &str, parent: &str, text: &str) -> String {
    let content = serde_json::to_string(text).unwrap();
    format!(
        r#"{{"type":"user","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"s-1","message":{{"content":{content}}}}}"#
    ) + "\n"
}

/// An assistant record of that API message.
fn assistant(uuid: &str, parent: &str, message: &str, block: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"s-1","message":{{"id":"{message}","model":"opus","content":[{block}]}}}}"#
    ) + "\n"
}

/// The texts of a speaker.
fn texts(session: &Session, role: EventRole, origin: EventOrigin) -> Vec<&str> {
    let said = session.events.iter().filter(|event| event.role == role && event.origin == origin);
    said.map(|event| event.text.as_str()).collect()
}

#[test]
fn the_fixture_has_its_counted_totals() {
    let session = session("s-1.jsonl", FIXTURE);
    let head = &session.head;
    assert_eq!((head.id.as_str(), head.agent.as_str()), ("s-1", "claude-code"));
    assert_eq!(head.agent_version.as_deref(), Some("2.1.3"));
    assert_eq!((head.cwd.as_deref(), head.platform.as_deref()), (Some("/work/app"), Some("cli")));
    assert_eq!(head.models, ["opus", "sonnet"]);
    assert_eq!(head.parent, None);
    assert_eq!(head.start.unwrap().to_string(), "2026-03-01T10:00:00Z");
    assert_eq!(head.end.unwrap().to_string(), "2026-03-01T10:00:12Z");

    let human = ["make the test pass", "not that file", "the other one"];
    assert_eq!(texts(&session, EventRole::User, EventOrigin::Human), human);
    let harness = texts(&session, EventRole::User, EventOrigin::Harness);
    assert_eq!(harness.len(), 2, "{harness:?}");
    let assistants: Vec<_> =
        session.events.iter().filter(|event| event.role == EventRole::Assistant).collect();
    assert_eq!(assistants.len(), 5);
    assert_eq!(assistants.iter().filter(|event| !event.continues).count(), 3, "model calls");
    assert_eq!(assistants[0].reasoning.as_str(), "look first");
    let mut usage = TokenCounts::default();
    assistants.iter().filter_map(|event| event.usage).for_each(|more| usage += more);
    assert_eq!(usage, TokenCounts { input: 15 + 1 + 2, output: 70 + 9 + 4, cached: 100 });

    let results: Vec<_> = session.events.iter().flat_map(|event| &event.results).collect();
    let found: Vec<_> = results
        .iter()
        .map(|result| (result.call_id.as_str(), result.tool.as_str(), result.outcome))
        .collect();
    assert_eq!(
        found,
        [
            ("t2", "Read", ToolOutcome::Ok),
            ("t1", "Bash", ToolOutcome::Failed),
            ("t3", "Edit", ToolOutcome::Rejected),
            ("t4", "Bash", ToolOutcome::Pending),
        ]
    );
    assert_eq!(results[0].text.as_str(), "fn main() {}");
    assert_eq!(results[1].exit_code, Some(101));
    let marks: Vec<_> = session.events.iter().filter_map(|event| event.mark).collect();
    assert_eq!(marks, [EventMark::Interrupted, EventMark::Compacted]);
}

#[test]
fn what_is_no_conversation_is_counted() {
    let (reading, _) = collect("s-1.jsonl", FIXTURE);
    let notes = reading.unwrap().notes;
    assert_eq!((notes.ignored_records, notes.dropped_records, notes.bad_records), (3, 0, 0));
}

#[test]
fn summaries_alone_are_no_session() {
    let only = r#"{"type":"summary","summary":"Another day","leafUuid":"elsewhere"}"#;
    let (reading, sessions) = collect("x.jsonl", &format!("{only}\n{only}\n"));
    let error = reading.unwrap_err();
    assert!(
        matches!(error, SessionReadError::NoSession { format: SessionFormat::ClaudeCode, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("2 records of other kinds"), "{error}");
    assert!(sessions.is_empty());
}

#[test]
fn an_abandoned_branch_is_left_out() {
    let text = r#"{"type":"text","text":"answer"}"#;
    let call = r#"{"type":"tool_use","id":"t1","name":"Bash","input":{}}"#;
    let lines = [
        user("u1", "", "first"),
        assistant("a1", "u1", "m1", text),
        user("u2", "a1", "a wrong turn"),
        assistant("a2", "u2", "m2", call),
        user("u3", "a1", "the right turn"),
        assistant("a3", "u3", "m3", text),
    ];
    let (reading, sessions) = collect("s-1.jsonl", &lines.concat());
    assert_eq!(
        texts(&sessions[0], EventRole::User, EventOrigin::Human),
        ["first", "the right turn"]
    );
    assert!(sessions[0].events.iter().all(|event| event.calls.is_empty()));
    assert_eq!(reading.unwrap().notes.dropped_records, 2);
}

#[test]
fn copies_of_an_older_session_are_left_out_and_name_the_parent() {
    let older = [user("o1", "", "long ago"), user("o2", "o1", "and then")].concat();
    let newer = user("u1", "o2", "go on").replace("s-1", "s-2");
    let both = format!("{older}{newer}");
    let resumed = session("s-2.jsonl", &both);
    assert_eq!((resumed.head.id.as_str(), resumed.head.parent.as_deref()), ("s-2", Some("s-1")));
    assert_eq!(texts(&resumed, EventRole::User, EventOrigin::Human), ["go on"]);
    // Not named after either session: nothing says that the older part is elsewhere.
    let joined = session("joined.jsonl", &both);
    assert_eq!(texts(&joined, EventRole::User, EventOrigin::Human).len(), 3);

    let copied = user("o1", "", "long ago").replace(
        r#""sessionId":"s-1""#,
        r#""sessionId":"s-2","forkedFrom":{"sessionId":"s-1","messageUuid":"o1"}"#,
    );
    let branched = session("s-2.jsonl", &format!("{copied}{newer}"));
    assert_eq!(texts(&branched, EventRole::User, EventOrigin::Human), ["go on"]);
    assert_eq!(branched.head.parent.as_deref(), Some("s-1"));
}

#[test]
fn a_subagent_inside_the_file_is_labelled() {
    let inside = |line: String| line.replace(r#""sessionId""#, r#""isSidechain":true,"sessionId""#);
    let text = r#"{"type":"text","text":"answer"}"#;
    let lines = [
        user("u1", "", "delegate it"),
        assistant("a1", "u1", "m1", r#"{"type":"tool_use","id":"t1","name":"Task","input":{}}"#),
        inside(user("x1", "", "you are a subagent")),
        inside(assistant("x2", "x1", "m2", text)),
        user("u2", "a1", "thanks"),
    ];
    let session = session("s-1.jsonl", &lines.concat());
    assert_eq!(texts(&session, EventRole::User, EventOrigin::Human), ["delegate it", "thanks"]);
    assert_eq!(texts(&session, EventRole::User, EventOrigin::Subagent), ["you are a subagent"]);
    assert_eq!(texts(&session, EventRole::Assistant, EventOrigin::Subagent), ["answer"]);
}

#[test]
fn a_subagents_own_file_is_a_session_with_a_parent() {
    let own = |line: String| {
        line.replace(r#""sessionId""#, r#""isSidechain":true,"agentId":"ab12","sessionId""#)
    };
    let text = r#"{"type":"text","text":"answer"}"#;
    let lines = [own(user("x1", "", "find it")), own(assistant("x2", "x1", "m2", text))].concat();
    let session = session("agent-ab12.jsonl", &lines);
    assert_eq!(session.head.id, "s-1/agent-ab12");
    assert_eq!(session.head.parent.as_deref(), Some("s-1"));
    assert_eq!(texts(&session, EventRole::User, EventOrigin::Subagent), ["find it"]);
    assert_eq!(texts(&session, EventRole::Assistant, EventOrigin::Agent), ["answer"]);
}

#[test]
fn errors_of_the_provider_are_no_model_calls() {
    let synthetic = |text: &str| {
        assistant("e", "u1", "x", &format!(r#"{{"type":"text","text":"{text}"}}"#))
            .replace("opus", "<synthetic>")
    };
    let system = r#"{"type":"system","subtype":"api_error","uuid":"e2","parentUuid":"u1","sessionId":"s-1","error":{"status":529,"error":{"type":"overloaded"}}}"#;
    let lines = [
        user("u1", "", "hello"),
        synthetic("API Error: 500"),
        synthetic("No response requested."),
        format!("{system}\n"),
    ];
    let session = session("s-1.jsonl", &lines.concat());
    let said: Vec<_> = session.events[1..]
        .iter()
        .map(|event| (event.role, event.origin, event.text.as_str(), event.mark))
        .collect();
    let notice = |text, mark| (EventRole::System, EventOrigin::Harness, text, mark);
    assert_eq!(
        said,
        [
            notice("API Error: 500", Some(EventMark::ApiError)),
            notice("No response requested.", None),
            notice("status 529", Some(EventMark::ApiError)),
        ]
    );
    assert!(session.head.models.is_empty());
}

#[test]
fn a_compaction_without_a_boundary_is_marked_by_its_summary() {
    let summary = "This session is being continued from a previous conversation that ran out.";
    let session = session("s-1.jsonl", &[user("u1", "", summary), user("u2", "u1", "on")].concat());
    assert_eq!(session.events[0].mark, Some(EventMark::Compacted));
    assert_eq!(session.events[0].origin, EventOrigin::Harness);
    assert_eq!(texts(&session, EventRole::User, EventOrigin::Human), ["on"]);
}

#[test]
fn media_are_named_and_not_kept() {
    let data = "QUJD".repeat(1000);
    let image = format!(
        r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}"#
    );
    let document =
        image.replace("\"image\"", "\"document\"").replace("image/png", "application/pdf");
    let line = user("u1", "", "@").replace(
        r#""@""#,
        &format!(r#"[{image},{document},{{"type":"text","text":"what is this?"}},{{"type":"tool_result","tool_use_id":"t1","content":[{image}]}}]"#),
    );
    let session = session("s-1.jsonl", &line);
    assert_eq!(session.events[0].results[0].text.as_str(), "[image image/png 3 kB]");
    assert_eq!(
        session.events[1].text.as_str(),
        "[image image/png 3 kB]\n[document application/pdf 3 kB]\nwhat is this?"
    );
    assert_eq!(session.events[1].origin, EventOrigin::Human);
}

#[test]
fn an_export_of_hermes_is_not_taken_for_claude_code() {
    let hermes =
        |line: String| line.replace(r#""sessionId""#, r#""version":"hermes-agent","sessionId""#);
    let call = r#"{"type":"tool_use","id":"t1","name":"terminal","input":{}}"#;
    let result = user("r1", "a1", "@").replace(
        r#""@""#,
        r#"[{"type":"tool_result","tool_use_id":"t1","content":"{\"output\":\"\",\"exit_code\":2,\"error\":null}"}]"#,
    );
    let lines = [user("u1", "", "run it"), assistant("a1", "u1", "", call), result].map(hermes);
    let session = session("s-1.jsonl", &lines.concat());
    assert_eq!(session.head.agent, "hermes");
    assert_eq!(session.head.agent_version, None);
    let result = &session.events[2].results[0];
    assert_eq!((result.outcome, result.exit_code), (ToolOutcome::Failed, Some(2)));
}

#[test]
fn fields_of_another_type_lose_no_record() {
    let odd = r#"{"type":"user","uuid":7,"parentUuid":[],"sessionId":{"a":1},"isMeta":"no","timestamp":true,"origin":"x","message":{"content":{"type":"text","text":"hello"},"usage":3}}
{"type":"assistant","sessionId":"s-1","message":{"id":null,"model":5,"content":["plain",null,4,{"type":"tool_use","input":"text"}],"usage":[1]}}
7
{"type":"new-thing","sessionId":"s-1"}
"#;
    let (reading, sessions) = collect("odd.jsonl", odd);
    assert_eq!(texts(&sessions[0], EventRole::User, EventOrigin::Human), ["hello"]);
    assert_eq!(texts(&sessions[0], EventRole::Assistant, EventOrigin::Agent), ["plain"]);
    assert_eq!(sessions[0].events[1].calls[0].arguments.as_str(), r#""text""#);
    assert_eq!(reading.unwrap().notes.ignored_records, 2);
}

#[test]
fn damage_does_no_harm() {
    survives_damage(SessionFormat::ClaudeCode, FIXTURE.as_bytes());
}

#[test]
fn one_message_id_in_three_turns_is_three_calls() {
    let answer = |uuid: &str, parent: &str, rest: &str| {
        let line = assistant(uuid, parent, "m1", r#"{"type":"text","text":"Answer."}"#);
        line.replace(
            r#""model":"opus""#,
            r#""model":"opus","usage":{"input_tokens":1000,"output_tokens":100}"#,
        )
        .replacen('{', &format!("{{{rest}"), 1)
    };
    let turns = |request: [&str; 3]| {
        let lines = [
            user("u1", "", "What is a lexer?"),
            answer("a1", "u1", request[0]),
            // A further line of the same message.
            answer("a2", "a1", request[0]),
            user("u2", "a2", "What is a parser?"),
            answer("a3", "u2", request[1]),
            user("u3", "a3", "What is a tree?"),
            answer("a4", "u3", request[2]),
        ];
        session("s-1.jsonl", &lines.concat())
    };
    let requests = ["1", "2", "3"].map(|number| format!(r#""requestId":"req_{number}","#));
    let with_requests = [&*requests[0], &*requests[1], &*requests[2]];
    for session in [turns(["", "", ""]), turns(with_requests)] {
        let calls: Vec<u64> =
            session.events.iter().filter_map(|event| Some(event.usage?.input)).collect();
        assert_eq!(calls, [1000, 1000, 1000]);
    }
}

/// 1 human turn, 2 model calls, 2 calls of which 1 failed.
#[test]
fn results_of_iflow_are_those_of_gemini_cli() {
    let text = r#"{"uuid":"u1","parentUuid":null,"sessionId":"session-1","timestamp":"2026-11-17T10:00:00Z","type":"user","message":{"role":"user","content":"fix it"},"cwd":"/w","version":"0.5.3"}
{"uuid":"a1","parentUuid":"u1","sessionId":"session-1","timestamp":"2026-11-17T10:00:01Z","type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"c1","name":"run_shell_command","input":{"command":"make"}},{"type":"tool_use","id":"c2","name":"read_file","input":{"path":"a"}}],"model":"glm"}}
{"uuid":"u2","parentUuid":"a1","sessionId":"session-1","timestamp":"2026-11-17T10:00:02Z","type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":{"callId":"c1","responseParts":{"functionResponse":{"id":"c1","name":"run_shell_command","response":{"output":"Command: make\nExit Code: 2"}}},"resultDisplay":"x"}},{"type":"tool_result","tool_use_id":"c2","content":{"functionResponse":{"id":"c2","name":"read_file","response":{"output":"all:"}}}}]},"toolUseResult":{"status":"success"}}
{"uuid":"a2","parentUuid":"u2","sessionId":"session-1","timestamp":"2026-11-17T10:00:03Z","type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"Fixed."}],"model":"glm"}}
"#;
    let mut collector = SessionCollector::default();
    read(&SessionSource::bytes("session-1.jsonl", text), &mut collector).unwrap();
    let session = collector.into_sessions().remove(0);
    assert_eq!((session.head.agent.as_str(), session.head.id.as_str()), ("iflow", "session-1"));
    let results: Vec<_> = session
        .events
        .iter()
        .flat_map(|event| &event.results)
        .map(|result| (result.tool.as_str(), result.outcome, result.exit_code))
        .collect();
    assert_eq!(
        results,
        [("run_shell_command", ToolOutcome::Failed, Some(2)), ("read_file", ToolOutcome::Ok, None),]
    );
}

#[test]
fn a_file_changed_by_other_hands_is_an_event() {
    let text = concat!(
        r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s-1","message":{"role":"user","content":"fix it"}}"#,
        "\n",
        r#"{"type":"attachment","uuid":"q1","parentUuid":"u1","sessionId":"s-1","attachment":{"type":"edited_text_file","filename":"/w/a.rs","snippet":"1 x"}}"#,
        "\n",
        r#"{"type":"attachment","uuid":"q2","parentUuid":"q1","sessionId":"s-1","attachment":{"type":"edited_text_file"}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"a1","parentUuid":"q2","sessionId":"s-1","message":{"id":"m1","model":"x","content":[{"type":"text","text":"Done."}]}}"#,
        "\n",
    );
    let session = session("s-1.jsonl", text);
    let marked: Vec<_> = session
        .events
        .iter()
        .filter_map(|event| Some((event.mark?, event.text.as_str())))
        .collect();
    assert_eq!(marked, [(EventMark::FileEdited, "/w/a.rs")]);
}
