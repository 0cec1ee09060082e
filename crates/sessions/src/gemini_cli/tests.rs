//! Gemini CLI chats in all their shapes, from hand-written files to counted totals.

use crate::mutation::survives_damage;
use crate::{
    EventMark, EventOrigin, EventRole, ReadNotes, Session, SessionCollector, SessionFormat,
    SessionSource, TokenCounts, ToolOutcome, read,
};

/// Counted by hand: 1 human message, 1 of the harness; 3 model calls; 5 tool calls: 1 ok, 2
/// failed (one by its status, one by its exit code), 1 cancelled, 1 pending; 2 notices.
const CHAT: &str = r##"{
  "sessionId": "5f0c-uuid", "projectHash": "abc", "startTime": "2026-03-01T08:00:00.000Z",
  "lastUpdated": "2026-03-01T08:05:00.000Z",
  "messages": [
    {"id":"m0","timestamp":"2026-03-01T08:00:00.000Z","type":"user","content":"<session_context>\nThis is the Gemini CLI.</session_context>"},
    {"id":"m1","timestamp":"2026-03-01T08:00:01.000Z","type":"user","content":[{"text":"what is in @a.md\n--- Content from referenced files ---\nlong"}],"displayContent":[{"text":"what is in @a.md"}]},
    {"id":"m2","timestamp":"2026-03-01T08:00:02.000Z","type":"gemini","content":"","model":"gemini-3-pro",
     "thoughts":[{"subject":"Reading","description":"I look at it.","timestamp":"2026-03-01T08:00:02.000Z"}],
     "tokens":{"input":100,"output":10,"cached":60,"thoughts":5,"tool":1,"total":116},
     "toolCalls":[
      {"id":"t1","name":"read_file","args":{"absolute_path":"/a.md"},"status":"success","result":[{"functionResponse":{"id":"t1","name":"read_file","response":{"output":"# A"}}}],"resultDisplay":""},
      {"id":"t2","name":"list_directory","args":{"path":"."},"status":"error","result":[{"functionResponse":{"id":"t2","name":"list_directory","response":{"error":"Path must be absolute: ."}}}],"resultDisplay":"Path must be absolute: ."}]},
    {"id":"m3","timestamp":"2026-03-01T08:00:03.000Z","type":"gemini","content":"Building.","model":"gemini-3-pro","thoughts":[],
     "tokens":{"input":50,"output":3,"cached":0,"thoughts":0,"tool":0,"total":53},
     "toolCalls":[
      {"id":"t3","name":"run_shell_command","args":{"command":"make"},"status":"success","result":[{"functionResponse":{"id":"t3","name":"run_shell_command","response":{"output":"Command: make\nDirectory: (root)\nOutput: no rule\nExit Code: 2\nSignal: (none)"}}}]},
      {"id":"t4","name":"run_shell_command","args":{"command":"top"},"status":"cancelled","result":[{"functionResponse":{"id":"t4","name":"run_shell_command","response":{"error":"[Operation Cancelled] Reason: User cancelled the operation."}}}]},
      {"id":"t5","name":"write_file","args":{},"status":"awaiting_approval"}]},
    {"id":"m4","timestamp":"2026-03-01T08:00:04.000Z","type":"info","content":"Request cancelled."},
    {"id":"m5","timestamp":"2026-03-01T08:00:05.000Z","type":"error","content":"[API Error: quota]"},
    {"id":"m6","timestamp":"2026-03-01T08:00:06.000Z","type":"gemini","content":"It is a list."}
  ]
}"##;

fn session(name: &str, text: &str) -> (Session, ReadNotes) {
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes(name, text), &mut collector).unwrap();
    assert_eq!(reading.format, SessionFormat::GeminiCli);
    let mut sessions = collector.into_sessions();
    assert_eq!(sessions.len(), 1);
    (sessions.remove(0), reading.notes)
}

fn said(session: &Session, role: EventRole) -> Vec<&str> {
    let events = session.events.iter().filter(|event| event.role == role);
    events.map(|event| event.text.as_str()).collect()
}

fn outcomes(session: &Session) -> Vec<(&str, ToolOutcome, Option<i64>)> {
    let results = session.events.iter().flat_map(|event| &event.results);
    results.map(|result| (result.tool.as_str(), result.outcome, result.exit_code)).collect()
}

fn usage(session: &Session) -> TokenCounts {
    let mut usage = TokenCounts::default();
    session.events.iter().filter_map(|event| event.usage).for_each(|more| usage += more);
    usage
}

#[test]
fn the_totals_of_a_chat() {
    let (session, _) = session("session-1.json", CHAT);
    let count = |role, origin| {
        session.events.iter().filter(|event| (event.role, event.origin) == (role, origin)).count()
    };
    assert_eq!(count(EventRole::User, EventOrigin::Human), 1);
    assert_eq!(count(EventRole::User, EventOrigin::Harness), 1);
    assert_eq!(count(EventRole::Assistant, EventOrigin::Agent), 3);
    assert_eq!(count(EventRole::System, EventOrigin::Harness), 2);
    assert_eq!(said(&session, EventRole::User)[1], "what is in @a.md");
    assert_eq!(
        outcomes(&session),
        [
            ("read_file", ToolOutcome::Ok, None),
            ("list_directory", ToolOutcome::Failed, None),
            ("run_shell_command", ToolOutcome::Failed, Some(2)),
            ("run_shell_command", ToolOutcome::Rejected, None),
            ("write_file", ToolOutcome::Pending, None),
        ]
    );
    let results = &session.events[3].results;
    assert_eq!((results[0].text.as_str(), results[1].text.as_str()), ("# A", ""));
    assert_eq!(results[1].error.as_str(), "Path must be absolute: .");
    assert_eq!(session.events[2].reasoning.as_str(), "Reading\nI look at it.");
    assert_eq!(usage(&session), TokenCounts { input: 91, output: 18, cached: 60 });
    let marks: Vec<_> = session.events.iter().filter_map(|event| event.mark).collect();
    assert_eq!(marks, [EventMark::Interrupted, EventMark::ApiError]);

    let head = &session.head;
    assert_eq!((head.id.as_str(), head.agent.as_str()), ("5f0c-uuid", "gemini-cli"));
    assert_eq!(head.models, ["gemini-3-pro"]);
    assert_eq!(head.end.unwrap().to_string(), "2026-03-01T08:05:00Z");
}

#[test]
fn the_same_chat_on_one_line() {
    let one_line: serde_json::Value = serde_json::from_str(CHAT).unwrap();
    let (compact, _) = session("session-1.json", &one_line.to_string());
    assert_eq!(compact, session("session-1.json", CHAT).0);
}

const HEADER: &str = r#"{"sessionId":"l-1","projectHash":"abc","startTime":"2026-03-01T08:00:00Z","lastUpdated":"2026-03-01T08:00:00Z"}"#;

fn message(id: &str, kind: &str, text: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-03-01T08:00:01Z","type":"{kind}","content":"{text}"{more}}}"#
    )
}

#[test]
fn of_json_lines_the_last_write_of_a_message_counts() {
    let tokens = r#","tokens":{"input":5,"output":2,"cached":1}"#;
    let call = r#","tokens":{"input":5,"output":2,"cached":1},"toolCalls":[{"id":"t","name":"f","args":{},"status":"success","result":"done"}]"#;
    let lines = [
        HEADER.to_owned(),
        message("u1", "user", "hello", ""),
        r#"{"$set":{"lastUpdated":"2026-03-01T08:01:00Z"}}"#.to_owned(),
        message("g1", "gemini", "hi", ""),
        message("g1", "gemini", "hi", tokens),
        message("g1", "gemini", "hi", call),
    ];
    for name in ["session-1.jsonl", "session-1.json"] {
        let (session, notes) = session(name, &lines.join("\n"));
        assert_eq!(said(&session, EventRole::User), ["hello"]);
        assert_eq!(said(&session, EventRole::Assistant), ["hi"]);
        assert_eq!(outcomes(&session), [("f", ToolOutcome::Ok, None)]);
        assert_eq!(usage(&session), TokenCounts { input: 4, output: 2, cached: 1 });
        assert_eq!(session.head.id, "l-1");
        assert_eq!(session.head.end.unwrap().to_string(), "2026-03-01T08:01:00Z");
        assert_eq!((notes.dropped_records, notes.bad_records), (0, 0));
    }
}

#[test]
fn rewound_and_replaced_messages_are_dropped() {
    let lines = [
        HEADER.to_owned(),
        message("1", "user", "one", ""),
        message("2", "user", "two", ""),
        message("3", "user", "three", ""),
        r#"{"$rewindTo":"2"}"#.to_owned(),
        message("4", "user", "four", ""),
    ];
    let (rewound, notes) = session("s.jsonl", &lines.join("\n"));
    assert_eq!(said(&rewound, EventRole::User), ["one", "four"]);
    assert_eq!((notes.dropped_records, rewound.head.rewinds), (2, 1));

    let summary = message("s", "user", "summary", "");
    let set = format!(r#"{{"$set":{{"messages":[{summary},{}]}}}}"#, lines[5]);
    let all = [lines.join("\n"), set, message("6", "user", "six", "")];
    let (replaced, notes) = session("s.jsonl", &all.join("\n"));
    assert_eq!(said(&replaced, EventRole::User), ["summary", "four", "six"]);
    assert_eq!(notes.dropped_records, 3);

    let unknown = [lines[..3].join("\n"), r#"{"$rewindTo":"x"}"#.to_owned(), lines[5].clone()];
    let (emptied, _) = session("s.jsonl", &unknown.join("\n"));
    assert_eq!(said(&emptied, EventRole::User), ["four"]);
}

#[test]
fn in_a_subagent_all_is_said_by_the_subagent() {
    let header = HEADER.replace('}', r#","kind":"subagent"}"#);
    let lines = [header, message("1", "user", "look", ""), message("2", "gemini", "seen", "")];
    let (session, _) = session("s.jsonl", &lines.join("\n"));
    assert!(session.events.iter().all(|event| event.origin == EventOrigin::Subagent));
}

#[test]
fn a_checkpoint_is_bare_contents() {
    let contents = r#"[
      {"role":"user","parts":[{"text":"This is the Gemini CLI. We are setting up the context for our chat."}]},
      {"role":"model","parts":[{"text":"Got it. Thanks for the context!"}]},
      {"role":"user","parts":[{"text":"list it"}]},
      {"role":"model","parts":[{"text":"hm","thought":true},{"text":"Yes."},{"functionCall":{"id":"c1","name":"list_directory","args":{"path":"/"}}}]},
      {"role":"user","parts":[{"functionResponse":{"id":"c1","name":"list_directory","response":{"error":"no such folder"}}}]},
      {"role":"model","parts":[{"text":"It is not there."}]}]"#;
    let (bare, _) = session("checkpoint-a.json", contents);
    let wrapped = format!(r#"{{"history":{contents},"authType":"x"}}"#);
    assert_eq!(session("checkpoint-a.json", &wrapped).0, bare);
    assert_eq!(bare.head.id, "checkpoint-a-a7ab7292");
    let human = bare.events.iter().filter(|event| event.origin == EventOrigin::Human);
    assert_eq!(human.map(|event| event.text.as_str()).collect::<Vec<_>>(), ["list it"]);
    assert_eq!(outcomes(&bare), [("list_directory", ToolOutcome::Failed, None)]);
    assert_eq!(bare.events[3].reasoning.as_str(), "hm");
    let own = bare.events.iter().filter(|e| e.role == EventRole::Assistant && !e.continues);
    assert_eq!(own.count(), 2);
}

#[test]
fn damage_does_no_harm() {
    survives_damage(SessionFormat::GeminiCli, CHAT.as_bytes());
    let set = format!(r#"{{"$set":{{"messages":[{}]}}}}"#, message("4", "gemini", "x", ""));
    let lines = [
        HEADER.to_owned(),
        message("1", "user", "one", ""),
        message("2", "gemini", "two", r#","toolCalls":[{"id":"t","name":"f","status":"error"}]"#),
        r#"{"$rewindTo":"2"}"#.to_owned(),
        set,
        message("5", "user", "five", ""),
    ];
    survives_damage(SessionFormat::GeminiCli, lines.join("\n").as_bytes());
}

/// A request to the API beside its response: 1 rule, 1 human turn, 2 answers, 1 call that failed.
#[test]
fn contents_of_the_api() {
    let text = r#"{"systemInstruction":{"parts":[{"text":"rules"}]},"model":"gemini-x","contents":[
      {"role":"user","parts":[{"text":"fix it"}]},
      {"role":"model","parts":[{"functionCall":{"name":"run","args":{"command":"make"}}}]},
      {"role":"user","parts":[{"functionResponse":{"name":"run","response":{"error":"no rule"}}}]}],
      "candidates":[{"content":{"role":"model","parts":[{"text":"It has no rule."}]}}]}"#;
    for text in [text.to_owned(), text.replace('\n', " ")] {
        let (session, _) = session("request.json", &text);
        assert_eq!(session.head.models, ["gemini-x"]);
        let said: Vec<_> = session
            .events
            .iter()
            .map(|event| (event.role, event.text.as_str(), event.calls.len()))
            .collect();
        assert_eq!(
            said,
            [
                (EventRole::System, "rules", 0),
                (EventRole::User, "fix it", 0),
                (EventRole::Assistant, "", 1),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "It has no rule.", 0),
            ]
        );
        assert_eq!(session.events[3].results[0].outcome, ToolOutcome::Failed);
    }
}
