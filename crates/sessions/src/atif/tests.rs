//! Fixtures of ATIF, with totals counted by hand.

use crate::mutation::survives_damage;
use crate::{Collector, Format, Outcome, Reading, Session, Source, Usage, read};
use crate::{Origin, Role};

/// 1 system, 1 human, 4 agent steps of which one is copied context and one asked no model.
/// 4 calls: one ok by its JSON, one failed by its text, one failed by the flag, one of two that
/// share a result.
const FIXTURE: &str = r#"{
  "schema_version": "ATIF-v1.7", "session_id": "s-1", "trajectory_id": "t-1",
  "agent": {"name": "terminus-2", "version": "2.0.1", "model_name": "m-1",
            "tool_definitions": [{"type": "function"}]},
  "steps": [
    {"step_id": 1, "source": "system", "message": "rules", "timestamp": "2026-05-01T10:00:00Z"},
    {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "mend it"}]},
    {"step_id": 3, "source": "agent", "message": "old", "is_copied_context": true,
     "metrics": {"prompt_tokens": 9000, "completion_tokens": 900}},
    {"step_id": 4, "source": "agent", "message": "looking", "reasoning_content": "hm",
     "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}],
     "observation": {"results": [{"content": "{\"exit_code\": 0, \"output\": \"a\"}"}]},
     "metrics": {"prompt_tokens": 1000, "completion_tokens": 50, "cached_tokens": 400}},
    {"step_id": 5, "source": "agent", "message": "", "model_name": "m-2",
     "tool_calls": [
       {"tool_call_id": "c2", "function_name": "bash", "arguments": {}},
       {"tool_call_id": "c3", "function_name": "edit", "arguments": {}}],
     "observation": {"results": [
       {"source_call_id": "c3", "content": "fine", "is_error": true},
       {"source_call_id": "c2", "content": "Error: no such file"}]},
     "metrics": {"prompt_tokens": 1100, "completion_tokens": 60, "cached_tokens": 1000}},
    {"step_id": 6, "source": "agent", "message": "done", "llm_call_count": 0,
     "timestamp": "2026-05-01T10:05:00Z",
     "tool_calls": [{"tool_call_id": "c4", "function_name": "finish", "arguments": {}}]}
  ],
  "final_metrics": {"total_prompt_tokens": 2100, "total_completion_tokens": 110,
                    "total_cached_tokens": 1400},
  "subagent_trajectories": [
    {"schema_version": "ATIF-v1.7", "session_id": "s-1", "trajectory_id": "t-2",
     "agent": {"name": "summariser", "version": "1"},
     "steps": [{"step_id": 1, "source": "user", "message": "summarise"},
               {"step_id": 2, "source": "agent", "message": "short"}]}]
}"#;

fn sessions(json: &str) -> (Vec<Session>, Reading) {
    let mut collector = Collector::default();
    let reading = read(&Source::bytes("run.json", json), &mut collector).unwrap();
    assert_eq!(reading.format, Format::Atif);
    (collector.into_sessions(), reading)
}

#[test]
fn a_whole_trajectory() {
    let (sessions, reading) = sessions(FIXTURE);
    assert_eq!(sessions.len(), 2);
    assert_eq!(reading.notes.dropped_records, 1);
    let head = &sessions[0].head;
    assert_eq!((head.id.as_str(), head.agent.as_str()), ("s-1", "terminus-2"));
    assert_eq!(head.agent_version.as_deref(), Some("2.0.1"));
    assert_eq!(head.models, ["m-1", "m-2"]);
    assert_eq!(head.start.unwrap().to_string(), "2026-05-01T10:00:00Z");
    assert_eq!(head.end.unwrap().to_string(), "2026-05-01T10:05:00Z");
    assert_eq!(head.usage, Some(Usage { input: 700, output: 110, cached: 1400 }));

    let events = &sessions[0].events;
    let of = |role: Role| events.iter().filter(|event| event.role == role).count();
    // The last tool event is the call without a result.
    assert_eq!(
        (of(Role::System), of(Role::User), of(Role::Assistant), of(Role::Tool)),
        (1, 1, 3, 3)
    );
    let asked = events.iter().filter(|event| event.role == Role::Assistant && !event.continues);
    assert_eq!(asked.count(), 2);
    assert_eq!(events.iter().map(|event| event.calls.len()).sum::<usize>(), 4);
    let mut usage = Usage::default();
    events.iter().filter_map(|event| event.usage).for_each(|one| usage += one);
    assert_eq!(usage, Usage { input: 700, output: 110, cached: 1400 });
    let outcomes: Vec<_> = events
        .iter()
        .flat_map(|event| &event.results)
        .map(|result| (result.call_id.as_str(), result.tool.as_str(), result.outcome))
        .collect();
    assert_eq!(
        outcomes,
        [
            ("c1", "bash", Outcome::Ok),
            ("c3", "edit", Outcome::Failed),
            ("c2", "bash", Outcome::Failed),
            ("c4", "finish", Outcome::Pending),
        ]
    );
}

#[test]
fn a_subagent_is_a_session_of_its_own() {
    let (sessions, _) = sessions(FIXTURE);
    let head = &sessions[1].head;
    assert_eq!((head.id.as_str(), head.parent.as_deref()), ("t-2", Some("s-1")));
    assert_eq!(head.agent, "summariser");
    assert_eq!(sessions[1].events.len(), 2);
    assert!(sessions[1].events.iter().all(|event| event.origin == Origin::Subagent));
}

#[test]
fn results_without_an_id_belong_to_the_calls_of_their_step() {
    let step = |calls: &str, results: &str| {
        let json = format!(
            r#"{{"schema_version":"ATIF-v1.0","session_id":"s","agent":{{"name":"a"}},"steps":[
            {{"source":"agent","message":"x","tool_calls":[{calls}],
              "observation":{{"results":[{results}]}}}}]}}"#
        );
        let (sessions, _) = sessions(&json);
        let events = &sessions[0].events;
        let results = events.iter().flat_map(|event| &event.results);
        results
            .map(|result| (result.call_id.as_str().to_owned(), result.outcome))
            .collect::<Vec<_>>()
    };
    let two =
        r#"{"tool_call_id":"a","function_name":"f"},{"tool_call_id":"b","function_name":"f"}"#;
    let both = [("a".to_owned(), Outcome::Failed), ("b".to_owned(), Outcome::Unknown)];
    assert_eq!(step(two, r#"{"content":"Error: x"}"#), both);
    assert_eq!(step(two, r#"{"content":"Error: x"},{"content":"y"}"#), both);
    assert_eq!(
        step(two, r#"{"source_call_id":"b","content":"y"},{"content":"Error: x"}"#),
        [both[1].clone(), both[0].clone()]
    );
    assert_eq!(step("", r#"{"content":"$ ls"}"#), [(String::new(), Outcome::Unknown)]);
    let code = r#"{"content":"x","extra":{"exit_code":2}}"#;
    assert_eq!(step("", code), [(String::new(), Outcome::Failed)]);
}

#[test]
fn keys_in_any_order_and_a_torn_file() {
    let json = r#"{"schema_version":"ATIF-v1.8","subagent_trajectories":[{"trajectory_id":"in",
        "steps":[{"source":"agent","message":"x"}]}],"steps":[{"source":"user","message":"go"}],
        "session_id":"out","agent":{"name":"a"}}"#;
    let (found, _) = sessions(json);
    assert_eq!(found[0].head.id, "in");
    assert_eq!((found[1].head.id.as_str(), found[1].head.agent.as_str()), ("out", "a"));
    let (found, reading) = sessions(&FIXTURE[..FIXTURE.find("\"step_id\": 5").unwrap()]);
    assert_eq!(found[0].events.len(), 4);
    assert!(reading.notes.torn.is_some());
}

#[test]
fn damage_does_no_harm() {
    survives_damage(Format::Atif, FIXTURE.as_bytes());
}
