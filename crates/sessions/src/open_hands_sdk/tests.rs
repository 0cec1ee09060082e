//! Fixtures of `OpenHands` SDK, written and counted by hand. Must not hold anything of a real session.

use std::fs;

use crate::mutation::survives_damage;
use crate::{
    EventMark, EventOrigin, EventRole, ReadNotes, Session, SessionCollector, SessionFormat,
    SessionSource, TokenCounts, ToolOutcome, read,
};

/// 1 system prompt, 1 text of a person and 1 pause, 1 hook's feedback; 5 answers of 4 replies, 5
/// calls; results: 1 ok by code, 1 ok without one, 1 failed by code, 1 failed by flag, 1
/// rejected; 1 summary, 1 error of the conversation; 3 records of noise, 2 of them sums.
const EVENTS: &str = r#"{"id":"e0","timestamp":"2026-02-05T11:24:40","source":"agent","system_prompt":{"type":"text","text":"You are OpenHands"},"tools":[{"description":"long"}],"kind":"SystemPromptEvent"}
{"id":"e1","timestamp":"2026-02-05T11:24:45.305360","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"Run pwd"}]},"extended_content":[],"kind":"MessageEvent"}
{"id":"s1","source":"environment","key":"execution_status","value":"running","kind":"ConversationStateUpdateEvent"}
{"id":"s2","source":"environment","key":"stats","value":{"usage_to_metrics":{"default":{"model_name":"m-x","accumulated_token_usage":{"prompt_tokens":50,"completion_tokens":5,"cache_read_tokens":0}}}},"kind":"ConversationStateUpdateEvent"}
{"id":"a1","source":"agent","thought":[{"type":"text","text":"<think>I plan.</think>\n\nI run it."}],"reasoning_content":"I plan.","action":{"command":"pwd","kind":"TerminalAction"},"tool_name":"terminal","tool_call_id":"c1","tool_call":{"id":"c1","name":"terminal","arguments":"{\"command\":\"pwd\",\"security_risk\":\"LOW\"}"},"llm_response_id":"r1","kind":"ActionEvent"}
{"id":"a2","source":"agent","thought":[],"action":{"command":"ls -x","kind":"TerminalAction"},"tool_name":"terminal","tool_call_id":"c2","llm_response_id":"r1","kind":"ActionEvent"}
{"id":"o2","source":"environment","tool_name":"terminal","tool_call_id":"c2","observation":{"content":[{"type":"text","text":"bad option"}],"is_error":false,"exit_code":2,"metadata":{"exit_code":2}},"action_id":"a2","kind":"ObservationEvent"}
{"id":"o1","source":"environment","tool_name":"terminal","tool_call_id":"c1","observation":{"content":[{"type":"text","text":"/w"}],"is_error":false,"exit_code":0,"metadata":{"exit_code":0,"working_dir":"/w"}},"action_id":"a1","kind":"ObservationEvent"}
{"id":"a3","source":"agent","thought":[],"action":null,"tool_name":"nope","tool_call_id":"c3","tool_call":{"id":"c3","name":"nope","arguments":"{\"x\":1}"},"llm_response_id":"r2","kind":"ActionEvent"}
{"id":"o3","source":"agent","tool_name":"nope","tool_call_id":"c3","error":"Tool 'nope' not found","kind":"AgentErrorEvent"}
{"id":"a4","source":"agent","thought":[],"action":{"command":"rm -r /"},"tool_name":"terminal","tool_call_id":"c4","llm_response_id":"r3","kind":"ActionEvent"}
{"id":"o4","source":"environment","tool_name":"terminal","tool_call_id":"c4","rejection_reason":"no","rejection_source":"user","action_id":"a4","kind":"UserRejectObservation"}
{"id":"p1","source":"user","kind":"PauseEvent"}
{"id":"h1","source":"environment","llm_message":{"role":"user","content":[{"type":"text","text":"[Stop hook feedback] go on"}]},"kind":"MessageEvent"}
{"id":"k1","source":"environment","forgotten_event_ids":["e1"],"summary":"so far: pwd","llm_response_id":"rk","kind":"Condensation"}
{"id":"x1","source":"environment","code":"LLMRateLimitError","detail":"slow down","kind":"ConversationErrorEvent"}
{"id":"t1","source":"agent","kind":"TokenEvent","prompt_token_ids":[1,2,3]}
{"id":"a5","source":"agent","thought":[{"type":"text","text":"Done."}],"action":{"message":"It is /w.","kind":"FinishAction"},"tool_name":"finish","tool_call_id":"c5","llm_response_id":"r4","kind":"ActionEvent"}
{"id":"o5","timestamp":"2026-02-05T11:30:00","source":"environment","tool_name":"finish","tool_call_id":"c5","observation":{"content":[{"type":"text","text":"It is /w."}],"is_error":false},"kind":"ObservationEvent"}
{"id":"s3","source":"environment","key":"full_state","value":{"stats":{"usage_to_metrics":{"default":{"model_name":"m-x","accumulated_token_usage":{"prompt_tokens":100,"completion_tokens":9,"cache_read_tokens":60}},"condenser":{"model_name":"m-y","accumulated_token_usage":{"prompt_tokens":10,"completion_tokens":1}}}}},"kind":"ConversationStateUpdateEvent"}
"#;

fn session(source: &SessionSource) -> (Session, ReadNotes) {
    let mut collector = SessionCollector::default();
    let reading = read(source, &mut collector).unwrap();
    assert_eq!(reading.format, SessionFormat::OpenHandsSdk);
    let mut sessions = collector.into_sessions();
    assert_eq!(sessions.len(), 1);
    (sessions.remove(0), reading.notes)
}

fn check(session: &Session, notes: &ReadNotes) {
    let count = |role, origin| {
        session.events.iter().filter(|event| event.role == role && event.origin == origin).count()
    };
    assert_eq!(count(EventRole::System, EventOrigin::Harness), 3);
    assert_eq!(count(EventRole::User, EventOrigin::Human), 2);
    assert_eq!(count(EventRole::User, EventOrigin::Harness), 1);
    assert_eq!(count(EventRole::Assistant, EventOrigin::Agent), 5);
    let own = session.events.iter().filter(|event| event.role == EventRole::Assistant);
    assert_eq!(own.filter(|event| !event.continues).count(), 4);
    let results = session.events.iter().flat_map(|event| &event.results);
    let outcomes: Vec<_> =
        results.map(|result| (result.call_id.as_str(), result.outcome, result.exit_code)).collect();
    assert_eq!(
        outcomes,
        [
            ("c2", ToolOutcome::Failed, Some(2)),
            ("c1", ToolOutcome::Ok, Some(0)),
            ("c3", ToolOutcome::Failed, None),
            ("c4", ToolOutcome::Rejected, None),
            ("c5", ToolOutcome::Ok, None),
        ]
    );
    let marks: Vec<_> = session.events.iter().filter_map(|event| event.mark).collect();
    assert_eq!(marks, [EventMark::Interrupted, EventMark::Compacted, EventMark::ApiError]);
    assert_eq!(session.head.usage, Some(TokenCounts { input: 50, output: 10, cached: 60 }));
    assert_eq!(session.head.models, ["m-x", "m-y"]);
    assert_eq!(session.head.cwd.as_deref(), Some("/w"));
    assert_eq!(notes.ignored_records, 4);
    let call = &session.events[2];
    assert_eq!((call.text.as_str(), call.reasoning.as_str()), ("I run it.", "I plan."));
    let arguments: String = call.calls[0].arguments.split_whitespace().collect();
    assert_eq!(arguments, r#"{"command":"pwd","kind":"TerminalAction"}"#);
    let unknown = session
        .events
        .iter()
        .find(|event| event.calls.first().is_some_and(|call| call.name.as_str() == "nope"));
    assert_eq!(unknown.unwrap().calls[0].arguments.as_str(), r#"{"x":1}"#);
    let finish = &session.events[session.events.len() - 2];
    assert_eq!(finish.text.as_str(), "Done.\nIt is /w.");
}

#[test]
fn as_lines_and_as_a_list() {
    let (whole, notes) = session(&SessionSource::bytes("events.jsonl", EVENTS));
    check(&whole, &notes);
    let list = format!("[{}]", EVENTS.trim().replace('\n', ","));
    let (whole, notes) = session(&SessionSource::bytes("events.json", list));
    check(&whole, &notes);
}

#[test]
fn as_a_folder_of_files_over_several_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for (number, line) in EVENTS.lines().enumerate() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let path = folder.path().join(format!("event-{number:05}-x.json"));
        fs::write(&path, serde_json::to_string_pretty(&event).unwrap()).unwrap();
        files.push(path);
    }
    let source = SessionSource::Folder { path: folder.path().to_owned(), files };
    let (whole, notes) = session(&source);
    check(&whole, &notes);

    let state = r#"{"id":"x","agent":{"llm":{"model":"m-z"}},"workspace":{"working_dir":"/other"},
        "stats":{"usage_to_metrics":{"agent":{"accumulated_token_usage":{"prompt_tokens":7}}}}}"#;
    fs::write(folder.path().join("base_state.json"), state).unwrap();
    let (whole, _) = session(&source);
    assert_eq!(whole.head.models, ["m-x", "m-y", "m-z"]);
    assert_eq!(whole.head.cwd.as_deref(), Some("/w"));
    assert_eq!(whole.head.usage, Some(TokenCounts { input: 7, output: 0, cached: 0 }));
}

#[test]
fn results_whose_end_is_told_in_other_ways() {
    let event = |observation: &str| {
        format!(
            r#"{{"id":"o","source":"environment","tool_call_id":"c","observation":{observation},"kind":"ObservationEvent"}}"#
        )
    };
    for (observation, outcome, error) in [
        (
            r#"{"content":[{"type":"text","text":"x"}],"is_error":true,"exit_code":null,"metadata":{"exit_code":-1}}"#,
            ToolOutcome::Failed,
            "",
        ),
        (
            r#"{"content":[],"is_error":false,"metadata":{"exit_code":-1}}"#,
            ToolOutcome::Unknown,
            "",
        ),
        (r#"{"output":"x","error":"no such tool"}"#, ToolOutcome::Failed, "no such tool"),
        (r#"{"output":"x","error":true}"#, ToolOutcome::Failed, ""),
        (r#"{"output":"x","error":false}"#, ToolOutcome::Ok, ""),
        (r#""odd""#, ToolOutcome::Ok, ""),
    ] {
        let (session, _) = session(&SessionSource::bytes("events.jsonl", event(observation)));
        let result = &session.events[0].results[0];
        assert_eq!((result.outcome, result.error.as_str()), (outcome, error), "{observation}");
        assert_eq!(result.exit_code, None);
    }
}

#[test]
fn calls_of_an_agent_driven_from_outside_count_when_they_end() {
    let lines = r#"{"id":"1","source":"agent","tool_call_id":"c1","title":"Read a","status":"in_progress","kind":"ACPToolCallEvent"}
{"id":"2","source":"agent","tool_call_id":"c1","title":"Read a","tool_kind":"read","status":"completed","raw_input":{"path":"a"},"raw_output":"text","kind":"ACPToolCallEvent"}
{"id":"3","source":"agent","tool_call_id":"c2","title":"Run","status":"failed","parent_tool_call_id":"c0","kind":"ACPToolCallEvent"}
"#;
    let (session, notes) = session(&SessionSource::bytes("events.jsonl", lines));
    assert_eq!(notes.ignored_records, 1);
    assert_eq!(session.events.len(), 4);
    assert_eq!(session.events[0].calls[0].arguments.as_str(), r#"{"path":"a"}"#);
    assert_eq!(session.events[1].results[0].outcome, ToolOutcome::Ok);
    assert_eq!(session.events[2].origin, EventOrigin::Subagent);
    assert_eq!(session.events[3].results[0].outcome, ToolOutcome::Failed);
}

#[test]
fn damage_does_no_harm() {
    survives_damage(SessionFormat::OpenHandsSdk, EVENTS.as_bytes());
}

#[test]
fn the_exit_code_of_a_command_with_and_without_metadata() {
    for (observation, outcome, code) in [
        (r#"{"content":[],"is_error":false,"exit_code":2}"#, ToolOutcome::Failed, 2),
        (
            r#"{"content":[],"is_error":false,"exit_code":2,"metadata":null}"#,
            ToolOutcome::Failed,
            2,
        ),
        (r#"{"content":[],"exit_code":0,"metadata":{"working_dir":"/w"}}"#, ToolOutcome::Ok, 0),
        (r#"{"content":[],"exit_code":null,"metadata":{"exit_code":1}}"#, ToolOutcome::Failed, 1),
    ] {
        let event = format!(
            r#"{{"source":"environment","tool_call_id":"c","observation":{observation},"kind":"ObservationEvent"}}"#
        );
        let (session, _) = session(&SessionSource::bytes("events.jsonl", event));
        let result = &session.events[0].results[0];
        assert_eq!((result.outcome, result.exit_code), (outcome, Some(code)), "{observation}");
    }
}
