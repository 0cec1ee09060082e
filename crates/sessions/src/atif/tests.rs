//! Fixtures of ATIF, with totals counted by hand.

use crate::mutation::survives_damage;
use crate::{EventOrigin, EventRole};
use crate::{
    ReadSummary, Session, SessionCollector, SessionFormat, SessionSource, TokenCounts, ToolOutcome,
    read,
};

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

fn sessions(json: &str) -> (Vec<Session>, ReadSummary) {
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes("run.json", json), &mut collector).unwrap();
    assert_eq!(reading.format, SessionFormat::Atif);
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
    assert_eq!(head.usage, Some(TokenCounts { input: 700, output: 110, cached: 1400 }));

    let events = &sessions[0].events;
    let of = |role: EventRole| events.iter().filter(|event| event.role == role).count();
    // The last tool event is the call without a result.
    assert_eq!(
        (of(EventRole::System), of(EventRole::User), of(EventRole::Assistant), of(EventRole::Tool)),
        (1, 1, 3, 3)
    );
    let asked =
        events.iter().filter(|event| event.role == EventRole::Assistant && !event.continues);
    assert_eq!(asked.count(), 2);
    assert_eq!(events.iter().map(|event| event.calls.len()).sum::<usize>(), 4);
    let mut usage = TokenCounts::default();
    events.iter().filter_map(|event| event.usage).for_each(|one| usage += one);
    assert_eq!(usage, TokenCounts { input: 700, output: 110, cached: 1400 });
    let outcomes: Vec<_> = events
        .iter()
        .flat_map(|event| &event.results)
        .map(|result| (result.call_id.as_str(), result.tool.as_str(), result.outcome))
        .collect();
    assert_eq!(
        outcomes,
        [
            ("c1", "bash", ToolOutcome::Ok),
            ("c3", "edit", ToolOutcome::Failed),
            ("c2", "bash", ToolOutcome::Failed),
            ("c4", "finish", ToolOutcome::Pending),
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
    assert!(sessions[1].events.iter().all(|event| event.origin == EventOrigin::Subagent));
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
    let both = [("a".to_owned(), ToolOutcome::Failed), ("b".to_owned(), ToolOutcome::Unknown)];
    assert_eq!(step(two, r#"{"content":"Error: x"}"#), both);
    assert_eq!(step(two, r#"{"content":"Error: x"},{"content":"y"}"#), both);
    assert_eq!(
        step(two, r#"{"source_call_id":"b","content":"y"},{"content":"Error: x"}"#),
        [both[1].clone(), both[0].clone()]
    );
    assert_eq!(step("", r#"{"content":"$ ls"}"#), [(String::new(), ToolOutcome::Unknown)]);
    let code = r#"{"content":"x","extra":{"exit_code":2}}"#;
    assert_eq!(step("", code), [(String::new(), ToolOutcome::Failed)]);
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
    survives_damage(SessionFormat::Atif, FIXTURE.as_bytes());
}

/// Counts and texts that must be the same once a session was written and read again.
type Counts =
    (usize, usize, Vec<(EventRole, EventOrigin, String)>, Vec<(String, ToolOutcome)>, TokenCounts);

fn counts(session: &Session) -> Counts {
    let events = || session.events.iter();
    let calls = events().map(|event| event.calls.len()).sum();
    let answers = events().filter(|event| event.role == EventRole::Assistant && !event.continues);
    let mut said: Vec<_> = events()
        .filter(|event| !event.text.is_empty())
        .map(|event| (event.role, event.origin, event.text.as_str().to_owned()))
        .collect();
    said.retain(|(role, ..)| *role != EventRole::Tool);
    let results = events().flat_map(|event| &event.results);
    let mut results: Vec<_> =
        results.map(|result| (result.tool.as_str().to_owned(), result.outcome)).collect();
    results.sort_by_key(|(tool, outcome)| (tool.clone(), format!("{outcome:?}")));
    let mut usage = TokenCounts::default();
    events().filter_map(|event| event.usage).for_each(|own| usage += own);
    (calls, answers.count(), said, results, usage)
}

fn again(session: &Session) -> Session {
    let json = crate::to_atif(session).to_string();
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes("again.json", json), &mut collector).unwrap();
    assert_eq!((reading.format, reading.sessions), (SessionFormat::Atif, 1));
    collector.into_sessions().remove(0)
}

#[test]
fn a_session_that_is_written_is_read_back_the_same() {
    let claude = r#"{"type":"user","sessionId":"s","cwd":"/w","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"go"}}
{"type":"assistant","sessionId":"s","timestamp":"2026-01-01T00:00:01Z","message":{"id":"m1","model":"m-1","role":"assistant","usage":{"input_tokens":7,"output_tokens":3},"content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}},{"type":"tool_use","id":"c2","name":"Read","input":{}},{"type":"tool_use","id":"c3","name":"Edit","input":{}}]}}
{"type":"user","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"gone","is_error":true},{"type":"tool_result","tool_use_id":"c1","content":"a.rs"}]}}
{"type":"user","sessionId":"s","message":{"role":"user","content":"[Request interrupted by user]"}}
"#;
    for text in [FIXTURE, claude] {
        let mut collector = SessionCollector::default();
        read(&SessionSource::bytes("one.json", text), &mut collector).unwrap();
        for session in collector.into_sessions() {
            let back = again(&session);
            assert_eq!(counts(&back), counts(&session));
            let head = |session: &Session| {
                let head = &session.head;
                (head.id.clone(), head.agent.clone(), head.models.clone(), head.cwd.clone())
            };
            assert_eq!(head(&back), head(&session));
            assert_eq!(back.head.usage, session.head.usage);
        }
    }
}

/// Any session that a reader can hand on.
fn any_session() -> impl proptest::strategy::Strategy<Value = Session> {
    use crate::{Event, EventMark, Text, ToolCall, ToolResult};
    use proptest::prelude::*;

    let role = prop::sample::select(vec![EventRole::User, EventRole::System, EventRole::Assistant]);
    let origin =
        prop::sample::select(vec![EventOrigin::Human, EventOrigin::Agent, EventOrigin::Harness]);
    let outcome = prop::sample::select(vec![
        ToolOutcome::Ok,
        ToolOutcome::Failed,
        ToolOutcome::Rejected,
        ToolOutcome::Unknown,
    ]);
    let mark = prop::option::of(Just(EventMark::Interrupted));
    let words = prop::sample::select(vec!["", "a", "Error: <b>\u{1b}[31m", "{\"x\":1}"]);
    let said = (role, origin, words, mark, prop::collection::vec((any::<bool>(), outcome), 0..3));
    prop::collection::vec(said, 1..12).prop_map(|all| {
        let mut events: Vec<Event<'static>> = Vec::new();
        for (role, origin, words, mark, tools) in all {
            let tools = if role == EventRole::Assistant { tools } else { Vec::new() };
            let id = |at: usize| Text::from(format!("c{at}-{}", events.len()));
            let calls = tools.iter().enumerate().map(|(at, _)| ToolCall {
                id: id(at),
                name: "tool".into(),
                arguments: words.into(),
            });
            let results = tools.iter().enumerate().filter(|(_, (is_given, _))| *is_given);
            let results: Vec<_> = results
                .map(|(at, (_, outcome))| ToolResult {
                    call_id: id(at),
                    tool: "tool".into(),
                    text: words.into(),
                    outcome: *outcome,
                    ..ToolResult::default()
                })
                .collect();
            let calls = calls.collect();
            events.push(Event {
                role,
                origin,
                text: words.into(),
                mark,
                calls,
                ..Event::default()
            });
            events.push(Event {
                role: EventRole::Tool,
                origin: EventOrigin::Agent,
                results,
                ..Event::default()
            });
        }
        events.push(Event { role: EventRole::User, text: "end".into(), ..Event::default() });
        let head =
            crate::SessionHead { id: "s".to_owned(), agent: "a".to_owned(), ..Default::default() };
        Session { head, events, left_out: 0 }
    })
}

proptest::proptest! {
    #[test]
    fn any_session_is_read_back_with_the_same_counts(session in any_session()) {
        let (calls, answers, said, mut results, usage) = counts(&again(&session));
        results.retain(|(_, outcome)| *outcome != ToolOutcome::Pending);
        proptest::prop_assert_eq!((calls, answers, said, results, usage), counts(&session));
    }
}
