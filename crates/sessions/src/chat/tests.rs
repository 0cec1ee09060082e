//! Chat messages in all their wrappings, with totals counted by hand.

use crate::mutation::survives_damage;
use crate::{
    EventMark, EventOrigin, EventRole, Session, SessionCollector, SessionFormat, SessionSource,
    ToolOutcome, read,
};

fn sessions(json: &str) -> Vec<Session> {
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes("runs.json", json), &mut collector).unwrap();
    assert_eq!(reading.format, SessionFormat::Chat);
    collector.into_sessions()
}

#[test]
fn a_list_of_runs_is_a_list_of_sessions() {
    let run = |task: u32| {
        format!(
            r#"{{"task_id":{task},"reward":1.0,"trial":0,"traj":[
            {{"role":"system","content":"rules"}},
            {{"role":"user","content":"hello"}},
            {{"role":"assistant","content":null,"tool_calls":[
              {{"id":"c1","type":"function","function":{{"name":"find","arguments":"{{\"a\": 1}}"}}}}]}},
            {{"role":"tool","tool_call_id":"c1","name":"find","content":"Error: user not found"}},
            {{"role":"assistant","content":"sorry"}}]}}"#
        )
    };
    let found = sessions(&format!("[{},{}]", run(4), run(5)));
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].head.id, "runs#5.0-b0e0a05c");
    assert_eq!(found[0].events.len(), 6);
    let verdict = &found[0].events[5];
    assert_eq!(
        (verdict.text.as_str(), verdict.mark),
        ("reward: 1.0", Some(EventMark::VerifierPassed))
    );
    assert_eq!(found[0].events[2].calls[0].arguments.as_str(), r#"{"a": 1}"#);
    assert_eq!(found[0].events[3].results[0].outcome, ToolOutcome::Failed);
}

/// Checks the text and the mark of the last event of a run with that field.
#[track_caller]
fn verdict(run: &str, said: &str, mark: Option<EventMark>) {
    let file = format!(r#"[{{"traj":[{{"role":"user","content":"go"}}],{run}}}]"#);
    let found = sessions(&file);
    let last = found[0].events.last().unwrap();
    assert_eq!((last.text.as_str(), last.mark), (said, mark), "{run}");
}

#[test]
fn only_a_whole_reward_is_a_verdict() {
    verdict(r#""reward":1.0"#, "reward: 1.0", Some(EventMark::VerifierPassed));
    verdict(r#""reward":0"#, "reward: 0", Some(EventMark::VerifierFailed));
    verdict(r#""reward":false"#, "reward: false", Some(EventMark::VerifierFailed));
    verdict(r#""reward":0.4"#, "reward: 0.4", None);
    verdict(r#""reward":7"#, "reward: 7", None);
    for nothing in ["null", r#""good""#, "[1]", r#"{"value":1}"#] {
        verdict(&format!(r#""reward":{nothing}"#), "go", None);
    }
    // Before the messages, and of a run without any.
    let early = r#"[{"reward":1,"traj":[{"role":"user","content":"go"}]}]"#;
    assert_eq!(sessions(early)[0].events[1].mark, Some(EventMark::VerifierPassed));
    let without =
        r#"[{"reward":1,"traj":[]},{"reward":0,"traj":[{"role":"user","content":"go"}]}]"#;
    let found = sessions(without);
    assert_eq!((found.len(), found[0].events.len()), (1, 2));
}

#[test]
fn damage_does_no_harm() {
    let fixture = r#"{"messages":[{"role":"user","content":"hello"},{"role":"assistant",
        "content":[{"type":"text","text":"hi"}],"tool_calls":[{"id":"c","function":
        {"name":"f","arguments":{}}}]},{"role":"tool","tool_call_id":"c","content":"{\"error\":1}"}]}"#;
    survives_damage(SessionFormat::Chat, fixture.as_bytes());
}

#[test]
fn a_bare_list_and_a_torn_one() {
    let whole = r#"[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"}]"#;
    assert_eq!(sessions(whole)[0].events.len(), 2);
    let mut collector = SessionCollector::default();
    let torn = SessionSource::bytes("torn.json", &whole[..whole.len() - 10]);
    let reading = read(&torn, &mut collector).unwrap();
    assert!(reading.notes.torn.unwrap().contains("EOF"));
    assert_eq!(collector.into_sessions()[0].events.len(), 1);
}

fn roles(session: &Session) -> Vec<(EventRole, EventOrigin)> {
    session.events.iter().map(|event| (event.role, event.origin)).collect()
}

#[test]
fn in_a_group_of_agents_only_the_first_message_is_the_humans() {
    let found = sessions(
        r#"{"question":"how many?","question_ID":"q-1","history":[
        {"content":"You are given a task.","role":"assistant","name":"Excel_Expert"},
        {"content":"There is no code to execute.","role":"user","name":"Computer_terminal"},
        {"content":"I count them.","role":"assistant","name":"Excel_Expert"},
        {"content":"exitcode: 1 (execution failed)\nCode output: x","role":"user","name":"Computer_terminal"},
        {"content":"exitcode: 0 (execution succeeded)\nCode output: 4","role":"user","name":"Computer_terminal"},
        {"content":"TERMINATE","role":"user","name":"Checker"}]}"#,
    );
    assert_eq!(found[0].head.id, "q-1");
    assert_eq!(
        roles(&found[0]),
        [
            (EventRole::User, EventOrigin::Human),
            (EventRole::User, EventOrigin::Harness),
            (EventRole::Assistant, EventOrigin::Agent),
            (EventRole::Tool, EventOrigin::Agent),
            (EventRole::Tool, EventOrigin::Agent),
            (EventRole::Assistant, EventOrigin::Agent),
        ]
    );
    let results: Vec<_> = found[0].events.iter().flat_map(|event| &event.results).collect();
    assert_eq!((results[0].outcome, results[0].exit_code), (ToolOutcome::Failed, Some(1)));
    assert_eq!((results[1].outcome, results[1].exit_code), (ToolOutcome::Ok, Some(0)));
    let named_by_role = r#"{"history":[{"role":"human","content":"go"},
        {"role":"Orchestrator (-> WebSurfer)","content":"look"}]}"#;
    let expected =
        [(EventRole::User, EventOrigin::Human), (EventRole::Assistant, EventOrigin::Agent)];
    assert_eq!(roles(&sessions(named_by_role)[0]), expected);
}

#[test]
fn old_functions_other_roles_and_parts() {
    let found = sessions(
        r#"[{"role":"developer","content":"rules"},
        {"role":"user","name":"ada","content":[{"type":"text","text":"see"},
          {"type":"image_url","image_url":{"url":"data:image/png;base64,QUJDQUJD"}}]},
        {"role":"assistant","content":null,"function_call":{"name":"find","arguments":"{}"}},
        {"role":"function","name":"find","content":"Error: none"},
        {"role":"assistant","content":null,"refusal":"I will not.","reasoning":"no",
         "reasoning_content":"no","model":"m-1"},
        {"role":"cheerleader","content":"hurrah"}]"#,
    );
    let session = &found[0];
    assert_eq!(
        roles(session),
        [
            (EventRole::System, EventOrigin::Harness),
            (EventRole::User, EventOrigin::Human),
            (EventRole::Assistant, EventOrigin::Agent),
            (EventRole::Tool, EventOrigin::Agent),
            (EventRole::Assistant, EventOrigin::Agent),
        ]
    );
    assert_eq!(session.events[1].text.as_str(), "see\n[image image/png 21 B]");
    let result = &session.events[3].results[0];
    assert_eq!((result.tool.as_str(), result.outcome), ("find", ToolOutcome::Failed));
    assert_eq!(session.events[4].text.as_str(), "I will not.");
    assert_eq!(session.events[4].reasoning.as_str(), "no");
    assert_eq!(session.head.models, ["m-1"]);
}

const SHARE_GPT: &str = r#"{"conversations":[{"from":"system","value":"<tools>[]</tools>"},{"from":"human","value":"list"},{"from":"gpt","value":"<think>\nhm\n</think>\nSure.\n<tool_call>\n{\"name\": \"terminal\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"memory\", \"arguments\": {}}\n</tool_call>"},{"from":"tool","value":"<tool_response>\n{\"tool_call_id\": \"c1\", \"name\": \"terminal\", \"content\": {\"exit_code\": 2, \"output\": \"\"}}\n</tool_response>\n<tool_response>\nplain\n</tool_response>"},{"from":"gpt","value":"<think>\n</think>\ndone"}],"timestamp":"2026-04-29T20:05:00.5","model":"m-1","completed":false}"#;

#[test]
fn trajectories_in_json_lines() {
    let found = sessions(&format!("{SHARE_GPT}\n{SHARE_GPT}\n"));
    assert_eq!(found.len(), 2);
    let session = &found[1];
    assert_eq!(session.head.models, ["m-1"]);
    assert_eq!(session.head.start.unwrap().to_string(), "2026-04-29T20:05:00.5Z");
    assert_eq!(
        roles(session),
        [
            (EventRole::System, EventOrigin::Harness),
            (EventRole::User, EventOrigin::Human),
            (EventRole::Assistant, EventOrigin::Agent),
            (EventRole::Tool, EventOrigin::Agent),
            (EventRole::Assistant, EventOrigin::Agent),
        ]
    );
    let answer = &session.events[2];
    assert_eq!((answer.text.as_str(), answer.reasoning.as_str()), ("Sure.", "hm"));
    assert_eq!(answer.calls.len(), 2);
    assert_eq!(answer.calls[0].arguments.as_str(), r#"{"command": "ls"}"#);
    let results = &session.events[3].results;
    assert_eq!((results[0].tool.as_str(), results[0].outcome), ("terminal", ToolOutcome::Failed));
    assert_eq!((results[1].text.as_str(), results[1].outcome), ("plain", ToolOutcome::Unknown));
    assert_eq!(session.events[4].text.as_str(), "done");
    assert_eq!(sessions(SHARE_GPT).len(), 1);
}

#[test]
fn json_lines_of_messages_are_one_session() {
    let lines = "{\"role\":\"user\",\"content\":\"a\"}\nbroken\n\
                 {\"role\":\"assistant\",\"content\":\"b \\ud83d\"}\n{\"role\":\"us";
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes("runs.jsonl", lines), &mut collector).unwrap();
    assert_eq!((reading.sessions, reading.notes.bad_records), (1, 1));
    assert_eq!(reading.notes.repaired_records, 1);
    assert_eq!(reading.notes.torn.as_deref(), Some("line 4"));
    assert_eq!(collector.into_sessions()[0].events.len(), 2);
}

#[test]
fn a_repaired_wrapper_in_a_line_counts_once() {
    let line = |text: &str| {
        format!(
            r#"{{"id":"x","messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":"{text}"}}]}}"#
        )
    };
    let found = sessions(&format!("{}\n{}\n", line("b"), line(r"\ud83d")));
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].events.len(), 2);
}

#[test]
fn damaged_lines_do_no_harm() {
    survives_damage(SessionFormat::Chat, format!("{SHARE_GPT}\n{SHARE_GPT}\n").as_bytes());
}

/// A chat of two messages.
fn short(question: &str) -> String {
    format!(
        r#"{{"messages":[{{"role":"user","content":"{question}"}},{{"role":"assistant","content":"yes"}}]}}"#
    )
}

fn questions(source: &SessionSource) -> (Vec<String>, crate::ReadNotes) {
    let mut collector = SessionCollector::default();
    let reading = read(source, &mut collector).unwrap();
    let sessions = collector.into_sessions();
    assert_eq!(reading.sessions, sessions.len() as u64);
    assert!(sessions.iter().all(|session| session.events.len() == 2));
    (
        sessions.iter().map(|session| session.events[0].text.as_str().to_owned()).collect(),
        reading.notes,
    )
}

/// Half a character, a broken byte and a raw control character lose nothing.
const BROKEN: [(&[u8], &str); 3] = [(br"\ud83d", "\u{fffd}"), (b"\xff", "\u{fffd}"), (b"\0", " ")];

#[test]
fn what_is_broken_in_one_session_loses_no_other_and_hands_on_none_twice() {
    for (broken, read) in BROKEN {
        for (begin, between, end) in [("[", ",", "]"), ("", "\n", ""), ("[", ",", "]\n[]\n")] {
            let runs: Vec<_> = ["a", "b", "c@", "d", "e@"].map(short).into();
            let text = format!("{begin}{}{end}", runs.join(between));
            let bytes = text.split('@').map(str::as_bytes).collect::<Vec<_>>().join(broken);
            let (found, notes) = questions(&SessionSource::bytes("runs.json", bytes));
            let expected = ["a", "b", "c@", "d", "e@"].map(|text| text.replace('@', read));
            assert_eq!(found, expected, "{text}");
            assert!(notes.repaired_records > 0, "{notes:?}");
            assert_eq!((notes.bad_records, notes.torn), (0, None));
        }
    }
}

#[test]
fn a_document_too_large_for_memory_is_repaired_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.json");
    let padding = format!(r#"{{"padding":"{}"}}"#, "x".repeat(33 * 1024 * 1024));
    let runs = [short("a"), short(r"b\udc00"), padding, short("c@"), short("d")];
    let text = format!("\u{feff}[{}]", runs.join(","));
    let bytes = text.split('@').map(str::as_bytes).collect::<Vec<_>>().join(&b"\xff"[..]);
    std::fs::write(&path, bytes).unwrap();
    let (found, notes) = questions(&SessionSource::file(path));
    assert_eq!(found, ["a", "b\u{fffd}", "c\u{fffd}", "d"]);
    assert_eq!((notes.repaired_records, notes.torn), (1, None));
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_document() {
    for text in [short("a"), format!("[{}]", short("a")), format!("{}\n{}", short("a"), short("b"))]
    {
        let (found, notes) =
            questions(&SessionSource::bytes("marked.json", format!("\u{feff}{text}")));
        assert_eq!((found[0].as_str(), notes), ("a", crate::ReadNotes::default()), "{text}");
    }
}
