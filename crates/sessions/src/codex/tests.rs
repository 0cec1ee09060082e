//! Codex rollouts, from hand-written files to counted totals.
use super::read as read_codex;
use crate::test_support::survives_damage;
use crate::{
    EventMark, EventOrigin, EventRole, ReadNotes, Session, SessionCollector, SessionFormat,
    SessionReadError, SessionSource, TokenCounts, ToolOutcome, read,
};

const META: &str = r#"{"timestamp":"2026-01-05T10:00:00.000Z","type":"session_meta","payload":{"id":"019b8d9c-1000-7000-8000-000000000001","timestamp":"2026-01-05T10:00:00.000Z","cwd":"/work/shop","originator":"codex_cli_rs","cli_version":"0.80.0","source":"cli"}}"#;

/// Counted by hand: 2 human messages, 1 of the harness, 1 developer message; 5 model calls in 8
/// assistant events; 6 tool calls: 2 ok, 2 failed, 1 rejected, 1 pending; 1 interruption.
const FIXTURE: &str = r##"{"timestamp":"2026-01-05T10:00:01Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"Sandbox: read-only."}]}}
{"timestamp":"2026-01-05T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n  <cwd>/work/shop</cwd>\n</environment_context>"}]}}
{"timestamp":"2026-01-05T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"# Context from my IDE setup:\n\n## Open tabs:\n- cart.rs\n\n## My request for Codex:\nwhy is the total wrong?\n"}]}}
{"timestamp":"2026-01-05T10:00:01Z","type":"event_msg","payload":{"type":"user_message","message":"# Context from my IDE setup:\n\n## Open tabs:\n- cart.rs\n\n## My request for Codex:\nwhy is the total wrong?\n","kind":"plain"}}
{"timestamp":"2026-01-05T10:00:01Z","type":"turn_context","payload":{"cwd":"/work/shop","model":"gpt-5.5","approval_policy":"on-request"}}
{"timestamp":"2026-01-05T10:00:02Z","type":"event_msg","payload":{"type":"agent_reasoning","text":"**Looking**"}}
{"timestamp":"2026-01-05T10:00:02Z","type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":{}}}
{"timestamp":"2026-01-05T10:00:03Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"**Looking**"}],"content":null,"encrypted_content":"gAAA"}}
{"timestamp":"2026-01-05T10:00:03Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}}
{"timestamp":"2026-01-05T10:00:03Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"cat\",\"x\"]}","call_id":"c2"}}
{"timestamp":"2026-01-05T10:00:04Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c2","output":"{\"output\":\"cat: x: No such file\\n\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.0}}"}}
{"timestamp":"2026-01-05T10:00:04Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"cart.rs\\n\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.0}}"}}
{"timestamp":"2026-01-05T10:00:05Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":100,"cached_input_tokens":60,"output_tokens":10,"reasoning_output_tokens":4,"total_tokens":110},"last_token_usage":{"input_tokens":100}}}}
{"timestamp":"2026-01-05T10:00:06Z","type":"response_item","payload":{"type":"custom_tool_call","status":"completed","call_id":"c3","name":"apply_patch","input":"*** Begin Patch"}}
{"timestamp":"2026-01-05T10:00:07Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c3","output":"patch rejected by user"}}
{"timestamp":"2026-01-05T10:00:08Z","type":"event_msg","payload":{"type":"turn_aborted","reason":"interrupted"}}
{"timestamp":"2026-01-05T10:01:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"just explain"}]}}
{"timestamp":"2026-01-05T10:01:00Z","type":"event_msg","payload":{"type":"user_message","message":"just explain","images":[]}}
{"timestamp":"2026-01-05T10:01:01Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"make\"}","call_id":"c4"}}
{"timestamp":"2026-01-05T10:01:02Z","type":"event_msg","payload":{"type":"exec_command_end","call_id":"c4","exit_code":2,"stdout":"","stderr":"no rule","aggregated_output":"no rule","status":"failed"}}
{"timestamp":"2026-01-05T10:01:02Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c4","output":"no rule"}}
{"timestamp":"2026-01-05T10:01:03Z","type":"response_item","payload":{"type":"function_call","name":"update_plan","arguments":"{}","call_id":"c5"}}
{"timestamp":"2026-01-05T10:01:03Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c5","output":"Plan updated"}}
{"timestamp":"2026-01-05T10:01:04Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"The tax is added twice."}]}}
{"timestamp":"2026-01-05T10:01:04Z","type":"event_msg","payload":{"type":"agent_message","message":"The tax is added twice."}}
{"timestamp":"2026-01-05T10:01:04Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"c6"}}
{"timestamp":"2026-01-05T10:01:05Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":300,"cached_input_tokens":200,"output_tokens":30},"last_token_usage":{"input_tokens":200}}}}
"##;

fn session(lines: &str) -> (Session, ReadNotes) {
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes("rollout.jsonl", lines), &mut collector).unwrap();
    assert_eq!(reading.format, SessionFormat::Codex);
    let mut sessions = collector.into_sessions();
    assert_eq!(sessions.len(), 1);
    (sessions.remove(0), reading.notes)
}

fn of_lines(lines: &[&str]) -> (Session, ReadNotes) {
    session(&[&[META], lines].concat().join("\n"))
}

fn count(session: &Session, role: EventRole, origin: EventOrigin) -> usize {
    session.events.iter().filter(|event| event.role == role && event.origin == origin).count()
}

fn outcomes(session: &Session) -> Vec<(&str, ToolOutcome, Option<i64>)> {
    let results = session.events.iter().flat_map(|event| &event.results);
    results.map(|result| (result.call_id.as_str(), result.outcome, result.exit_code)).collect()
}

fn said(session: &Session, role: EventRole) -> Vec<&str> {
    let events = session.events.iter().filter(|event| event.role == role);
    events.map(|event| event.text.as_str()).filter(|text| !text.is_empty()).collect()
}

fn message(role: &str, text: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-01-05T10:00:01Z","type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

fn typed(text: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-01-05T10:00:01Z","type":"event_msg","payload":{{"type":"user_message","message":"{text}"}}}}"#
    )
}

fn event(payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-01-05T10:00:02Z","type":"event_msg","payload":{payload}}}"#)
}

fn call(id: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-01-05T10:00:02Z","type":"response_item","payload":{{"type":"function_call","name":"shell","arguments":"{{}}","call_id":"{id}"}}}}"#
    )
}

fn output(id: &str, output: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-01-05T10:00:02Z","type":"response_item","payload":{{"type":"function_call_output","call_id":"{id}","output":{output}}}}}"#
    )
}

#[test]
fn the_totals_of_a_session() {
    let (session, notes) = of_lines(&[FIXTURE]);
    assert_eq!(count(&session, EventRole::User, EventOrigin::Human), 2);
    assert_eq!(count(&session, EventRole::User, EventOrigin::Harness), 1);
    assert_eq!(count(&session, EventRole::System, EventOrigin::Harness), 1);
    assert_eq!(count(&session, EventRole::Assistant, EventOrigin::Agent), 8);
    let own = session.events.iter().filter(|e| e.role == EventRole::Assistant && !e.continues);
    assert_eq!(own.count(), 5);
    let calls: usize = session.events.iter().map(|event| event.calls.len()).sum();
    assert_eq!(calls, 6);
    assert_eq!(
        outcomes(&session),
        [
            ("c2", ToolOutcome::Failed, Some(1)),
            ("c1", ToolOutcome::Ok, Some(0)),
            ("c3", ToolOutcome::Rejected, None),
            ("c4", ToolOutcome::Failed, Some(2)),
            ("c5", ToolOutcome::Ok, None),
            ("c6", ToolOutcome::Pending, None),
        ]
    );
    let result = &session.events.iter().find(|event| !event.results.is_empty()).unwrap().results[0];
    assert_eq!((result.tool.as_str(), result.text.as_str()), ("shell", "cat: x: No such file\n"));
    assert!(session.events.iter().any(|event| event.mark == Some(EventMark::Interrupted)));
    assert_eq!(said(&session, EventRole::User)[1..], ["why is the total wrong?", "just explain"]);

    let head = &session.head;
    assert_eq!(head.id, "019b8d9c-1000-7000-8000-000000000001");
    assert_eq!((head.agent.as_str(), head.agent_version.as_deref()), ("codex", Some("0.80.0")));
    assert_eq!((head.platform.as_deref(), head.cwd.as_deref()), (Some("cli"), Some("/work/shop")));
    assert_eq!(head.models, ["gpt-5.5"]);
    assert_eq!(head.usage, Some(TokenCounts { input: 100, output: 30, cached: 200 }));
    assert_eq!(head.end.unwrap().to_string(), "2026-01-05T10:01:04Z");
    assert_eq!((notes.bad_records, notes.dropped_records, notes.torn), (0, 0, None));
}

#[test]
fn every_shape_of_an_output() {
    let sandbox = "failed in sandbox X with execution error: denied, exit code: 2, stdout: , s";
    for (json, outcome, exit_code, text) in [
        (
            r#""{\"output\":\"a\",\"metadata\":{\"exit_code\":0}}""#.to_owned(),
            ToolOutcome::Ok,
            Some(0),
            "a",
        ),
        (r#""Success. Updated a.rs""#.to_owned(), ToolOutcome::Ok, None, "Success. Updated a.rs"),
        (r#""some words""#.to_owned(), ToolOutcome::Unknown, None, "some words"),
        (format!("{sandbox:?}"), ToolOutcome::Failed, Some(2), sandbox),
        (
            r#""Exit code: 1\nWall time: 0.1\nOutput:\nExit code: 0""#.to_owned(),
            ToolOutcome::Failed,
            Some(1),
            "Exit code: 1\nWall time: 0.1\nOutput:\nExit code: 0",
        ),
        (
            r#""Wall time: 1\nProcess exited with code 0\nOutput:\nx""#.to_owned(),
            ToolOutcome::Ok,
            Some(0),
            "Wall time: 1\nProcess exited with code 0\nOutput:\nx",
        ),
        (
            r#"[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]"#.to_owned(),
            ToolOutcome::Unknown,
            None,
            "a\nb",
        ),
        (r#"{"type":"input_text","text":"a"}"#.to_owned(), ToolOutcome::Unknown, None, "a"),
        (
            r#""exec command rejected by user""#.to_owned(),
            ToolOutcome::Rejected,
            None,
            "exec command rejected by user",
        ),
        (
            r#""aborted by user after 3.1s""#.to_owned(),
            ToolOutcome::Rejected,
            None,
            "aborted by user after 3.1s",
        ),
    ] {
        let (session, _) = of_lines(&[&call("c"), &output("c", &json)]);
        let result = &session.events.last().unwrap().results[0];
        assert_eq!((result.outcome, result.exit_code), (outcome, exit_code), "{json}");
        assert_eq!(result.text.as_str(), text, "{json}");
    }
}

#[test]
fn the_exit_code_behind_a_long_output_is_found() {
    let inner =
        format!(r#"{{"output":{:?},"metadata":{{"exit_code":3}}}}"#, "line\n".repeat(20_000));
    let json = serde_json::to_string(&inner).unwrap();
    let (session, notes) = of_lines(&[&call("c"), &output("c", &json)]);
    assert_eq!(outcomes(&session), [("c", ToolOutcome::Failed, Some(3))]);
    assert_eq!(notes.cut_fields, 1);
}

#[test]
fn events_tell_how_tools_ended_before_and_after_the_output_and_without_one() {
    let end = |id: &str, rest: &str| event(&format!(r#"{{"call_id":"{id}",{rest}}}"#));
    let (session, _) = of_lines(&[
        &call("mcp"),
        &end("mcp", r#""type":"mcp_tool_call_end","result":{"Ok":{"content":[],"isError":true}}"#),
        &output("mcp", r#""text""#),
        &call("patch"),
        &output("patch", r#""text""#),
        &end("patch", r#""type":"patch_apply_end","success":true"#),
        &call("declined"),
        &end("declined", r#""type":"exec_command_end","exit_code":-1,"status":"declined""#),
        &call("err"),
        &end("err", r#""type":"mcp_tool_call_end","result":{"Err":"no server"}"#),
    ]);
    assert_eq!(
        outcomes(&session),
        [
            ("mcp", ToolOutcome::Failed, None),
            ("patch", ToolOutcome::Ok, None),
            ("declined", ToolOutcome::Rejected, None),
            ("err", ToolOutcome::Failed, None),
        ]
    );
}

#[test]
fn an_id_that_is_used_twice_loses_nothing() {
    let end = |success: bool| {
        event(&format!(r#"{{"type":"patch_apply_end","call_id":"c","success":{success}}}"#))
    };
    let text = output("c", "\"text\"");
    let (session, _) =
        of_lines(&[&call("c"), &text, &end(true), &call("c"), &text, &end(false), &text]);
    assert_eq!(outcomes(&session).len(), 3);
}

#[test]
fn without_events_the_items_show_what_the_human_typed() {
    let (session, _) = of_lines(&[
        &message("user", "# AGENTS.md instructions for /work\\n<INSTRUCTIONS>x</INSTRUCTIONS>"),
        &message("user", "<user_instructions>be brief</user_instructions>"),
        &message("user", "hello"),
        &message("assistant", "hi"),
        &message("user", "bye"),
    ]);
    assert_eq!(count(&session, EventRole::User, EventOrigin::Human), 2);
    assert_eq!(count(&session, EventRole::User, EventOrigin::Harness), 2);
    assert_eq!(said(&session, EventRole::User)[2..], ["hello", "bye"]);
}

#[test]
fn with_events_other_items_are_of_the_harness_whenever_that_shows() {
    let (session, _) = of_lines(&[
        &message("user", "injected"),
        &message("assistant", "hm"),
        &typed("hello"),
        &message("user", "hello"),
        &message("assistant", "hi"),
    ]);
    assert_eq!(said(&session, EventRole::User), ["injected", "hello"]);
    assert_eq!(count(&session, EventRole::User, EventOrigin::Human), 1);
}

#[test]
fn rolled_back_turns_are_dropped_but_their_tokens_count() {
    let tokens = r#"{"type":"token_count","info":{"total_token_usage":{"input_tokens":9,"output_tokens":1}}}"#;
    let started = event(r#"{"type":"task_started"}"#);
    let (session, notes) = of_lines(&[
        &started,
        &message("user", "one"),
        &typed("one"),
        &message("assistant", "1"),
        &started,
        &message("user", "two"),
        &typed("two"),
        &message("assistant", "2"),
        &started,
        &message("user", "three"),
        &typed("three"),
        &message("assistant", "3"),
        &event(tokens),
        &event(r#"{"type":"thread_rolled_back","num_turns":1}"#),
        &event(r#"{"type":"thread_rolled_back","num_turns":1}"#),
        &message("user", "four"),
        &typed("four"),
        &message("assistant", "4"),
    ]);
    assert_eq!(said(&session, EventRole::User), ["one", "four"]);
    assert_eq!(said(&session, EventRole::Assistant), ["1", "4"]);
    assert_eq!(session.head.usage, Some(TokenCounts { input: 9, output: 1, cached: 0 }));
    assert_eq!(notes.dropped_records, 10);
}

#[test]
fn the_history_of_the_parent_is_dropped() {
    // The child was made at 0x019b8d9c1000; the parent's turn is older, the child's own younger.
    let parent = META.replace("1000-7000-8000-000000000001", "0000-7000-8000-00000000000f");
    let turn = |time: &str| {
        let id = format!("019b8d9c-{time}-7000-8000-000000000001");
        event(&format!(r#"{{"type":"task_started","turn_id":"{id}"}}"#))
    };
    let tokens = |input: u32| {
        event(&format!(
            r#"{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{input}}}}}}}"#
        ))
    };
    let (child, notes) = of_lines(&[
        &parent,
        &turn("0100"),
        &typed("old"),
        &message("assistant", "done"),
        &tokens(40),
        &turn("1001"),
        &typed("new"),
        &message("assistant", "yes"),
        &tokens(100),
    ]);
    assert_eq!(child.head.id, "019b8d9c-1000-7000-8000-000000000001");
    assert_eq!(child.head.parent.as_deref(), Some("019b8d9c-0000-7000-8000-00000000000f"));
    assert_eq!(said(&child, EventRole::User), ["new"]);
    assert_eq!(child.head.usage.unwrap().input, 60);
    assert_eq!(notes.dropped_records, 5);

    // Without turn ids a pause ends the copy.
    let forked = META.replace(r#""source":"cli""#, r#""forked_from_id":"p""#);
    let late = typed("new").replace("10:00:01Z", "10:00:30Z");
    let lines = [&forked, &typed("old"), &message("assistant", "done"), &late];
    let (forked, _) = session(&lines.map(String::as_str).join("\n"));
    assert_eq!(said(&forked, EventRole::User), ["new"]);
    assert_eq!(forked.head.parent.as_deref(), Some("p"));
}

#[test]
fn in_a_subagent_all_is_said_by_the_subagent() {
    let source = r#""source":{"subagent":{"thread_spawn":{"parent_thread_id":"p-1","depth":1}}}"#;
    let meta = META.replace(r#""source":"cli""#, source);
    let lines = [meta, typed("find it"), message("assistant", "found")].join("\n");
    let (session, _) = session(&lines);
    assert!(session.events.iter().all(|event| event.origin == EventOrigin::Subagent));
    assert_eq!(session.head.parent.as_deref(), Some("p-1"));
    assert_eq!(session.head.platform.as_deref(), Some("codex_cli_rs"));
}

#[test]
fn a_compaction_is_one_mark_and_totals_that_begin_anew_add_up() {
    let compacted = r#"{"timestamp":"2026-01-05T10:00:03Z","type":"compacted","payload":{"message":"so far","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"again"}]}]}}"#;
    let tokens = |input: u32| {
        event(&format!(
            r#"{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{input}}}}}}}"#
        ))
    };
    let (session, _) = of_lines(&[
        &typed("go"),
        &tokens(50),
        compacted,
        &event(r#"{"type":"context_compacted"}"#),
        &tokens(20),
        &event(r#"{"type":"error","message":"stream disconnected"}"#),
    ]);
    let marks: Vec<_> = session.events.iter().filter_map(|event| event.mark).collect();
    assert_eq!(marks, [EventMark::Compacted, EventMark::ApiError]);
    assert_eq!(said(&session, EventRole::User), ["go"]);
    assert_eq!(session.head.usage.unwrap().input, 70);
}

#[test]
fn the_oldest_layout_has_no_payloads() {
    let (session, _) = session(
        r#"{"id":"old-1","timestamp":"2025-06-01T10:00:00Z","instructions":null,"git":{}}
{"record_type":"state"}
{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"hello"}]}
{"type":"function_call","id":"x","name":"shell","arguments":"{}","call_id":"c"}
{"type":"function_call_output","call_id":"c","output":"{\"output\":\"\",\"metadata\":{\"exit_code\":0}}"}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}"#,
    );
    assert_eq!(session.head.id, "old-1");
    assert_eq!(said(&session, EventRole::User), ["hello"]);
    assert_eq!(outcomes(&session), [("c", ToolOutcome::Ok, Some(0))]);
    assert_eq!(session.events.len(), 4);
}

#[test]
fn a_rollout_without_conversation_is_no_session() {
    let source = SessionSource::bytes("rollout.jsonl", META);
    let error = read(&source, &mut SessionCollector::default()).unwrap_err();
    assert!(matches!(error, SessionReadError::NoSession { format: SessionFormat::Codex, .. }));
    let mut collector = SessionCollector::default();
    let mut feed = SessionFormat::Codex.entry().feed(&source, &mut collector);
    read_codex(&source, &mut feed).unwrap();
    assert!(feed.is_empty());
}

#[test]
fn damage_does_no_harm() {
    let rolled_back = event(r#"{"type":"thread_rolled_back","num_turns":1}"#);
    survives_damage(SessionFormat::Codex, format!("{META}\n{FIXTURE}{rolled_back}").as_bytes());
}

#[test]
fn the_beginning_of_a_paginated_history_is_missed() {
    let text = r#"{"timestamp":"2026-07-20T14:00:00Z","ordinal":5,"type":"session_meta","payload":{"id":"t-2","history_mode":"paginated","history_base":{"thread_id":"t-1","end_ordinal_exclusive":5,"end_byte_offset":1024}}}
{"timestamp":"2026-07-20T14:00:01Z","ordinal":6,"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go on"}]}}
{"timestamp":"2026-07-20T14:00:01Z","ordinal":7,"type":"event_msg","payload":{"type":"user_message","message":"go on"}}
{"timestamp":"2026-07-20T14:00:02Z","ordinal":8,"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}
"#;
    let mut collector = SessionCollector::default();
    let notes = read(&SessionSource::bytes("rollout.jsonl", text), &mut collector).unwrap().notes;
    let losses = notes.describe_losses().unwrap();
    assert_eq!(losses, "its beginning (5 records) is in the rollout of t-1");
    let session = collector.into_sessions().remove(0);
    assert_eq!(session.head.parent.as_deref(), Some("t-1"));
    let whole = text.replace("\"end_ordinal_exclusive\":5", "\"end_ordinal_exclusive\":0");
    let source = SessionSource::bytes("rollout.jsonl", whole);
    assert_eq!(
        read(&source, &mut SessionCollector::default()).unwrap().notes.describe_losses(),
        None
    );
}
