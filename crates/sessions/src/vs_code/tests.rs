//! Chats of VS Code as documents and as changes, written by hand with counted totals.

use super::super::mutation::survives_damage;
use super::super::{Session, SessionCollector, SessionFormat, read};
use super::*;
use crate::event::{EventMark, EventRole, ToolOutcome};

/// 2 human turns, 3 calls: one failed with exit code 1, one was refused, one ended.
const FIXTURE: &str = r#"{"version":3,"responderUsername":"GitHub Copilot","initialLocation":"panel","requests":[
 {"requestId":"r1","timestamp":1777493100000,"modelId":"copilot/gpt-5","message":{"text":"fix the build","parts":[]},
  "response":[{"kind":"mcpServersStarting"},{"value":"I look at "},{"kind":"inlineReference","inlineReference":{"fsPath":"/w/Makefile"}},{"value":"."},
   {"kind":"thinking","value":"hm"},
   {"kind":"toolInvocationSerialized","toolId":"run_in_terminal","toolCallId":"c1","isComplete":true,"isConfirmed":{"type":4},
    "toolSpecificData":{"kind":"terminal","commandLine":{"original":"make"},"terminalCommandState":{"exitCode":1},"terminalCommandOutput":{"text":"no rule"}}},
   {"kind":"toolInvocationSerialized","toolId":"copilot_readFile","toolCallId":"c2","isComplete":true,"invocationMessage":{"value":"Reading a"},"pastTenseMessage":{"value":"Read a"}},
   {"kind":"toolInvocationSerialized","toolId":"run_in_terminal","toolCallId":"c3","isComplete":true,"isConfirmed":{"type":0},"toolSpecificData":{"commandLine":{"original":"rm -r x"}}},
   {"kind":"hologram"},{"value":"It has no rule."}],
  "promptTokens":100,"completionTokens":7,"isCanceled":false},
 {"requestId":"r2","timestamp":1777493160000,"message":"add one","response":[],"isCanceled":true,"result":{"errorDetails":{"message":"Canceled"}}}
],"sessionId":"s-1","creationDate":1777493099000}"#;

fn only(name: &str, text: &str) -> Session {
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::bytes(name, text), &mut collector).unwrap();
    assert_eq!((reading.format, reading.sessions), (SessionFormat::VsCode, 1));
    collector.into_sessions().remove(0)
}

fn check(session: &Session) {
    let head = &session.head;
    assert_eq!((head.id.as_str(), head.agent.as_str()), ("s-1", "vscode-copilot"));
    assert_eq!(head.models, ["gpt-5"]);
    assert_eq!(head.start.unwrap().to_string(), "2026-04-29T20:04:59Z");
    let said: Vec<_> = session
        .events
        .iter()
        .filter(|event| !event.text.is_empty())
        .map(|event| (event.role, event.text.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (EventRole::User, "fix the build"),
            (EventRole::Assistant, "I look at `Makefile`."),
            (EventRole::Assistant, "It has no rule."),
            (EventRole::User, "add one"),
            (EventRole::System, "Canceled"),
        ]
    );
    assert_eq!(session.events.last().unwrap().mark, Some(EventMark::Interrupted));
    let results: Vec<_> = session
        .events
        .iter()
        .flat_map(|event| &event.results)
        .map(|result| (result.tool.as_str(), result.outcome, result.exit_code))
        .collect();
    assert_eq!(
        results,
        [
            ("run_in_terminal", ToolOutcome::Failed, Some(1)),
            ("copilot_readFile", ToolOutcome::Unknown, None),
            ("run_in_terminal", ToolOutcome::Rejected, None),
        ]
    );
    let call = session.events.iter().flat_map(|event| &event.calls).next().unwrap();
    assert_eq!(call.arguments.as_str(), r#"{"command":"make"}"#);
    assert_eq!(head.unknown_blocks.total(), 1);
    let usage: Vec<_> = session.events.iter().filter_map(|event| event.usage).collect();
    assert_eq!((usage.len(), usage[0].input, usage[0].output), (1, 100, 7));
}

#[test]
fn a_document_has_its_counted_totals() {
    check(&only("s-1.json", FIXTURE));
}

/// The same session as it grows: parts are appended, a request is taken back, values are set.
#[test]
fn changes_add_up_to_the_same_document() {
    let whole: serde_json::Value = serde_json::from_str(FIXTURE).unwrap();
    let requests = &whole["requests"];
    let mut first = requests[0].clone();
    first["response"] = serde_json::json!([]);
    let parts = requests[0]["response"].as_array().unwrap();
    let lines = [
        serde_json::json!({"kind": 0, "v": {"version": 3, "creationDate": whole["creationDate"], "sessionId": "s-1", "requests": []}}),
        serde_json::json!({"kind": 2, "k": ["requests"], "v": [first]}),
        serde_json::json!({"kind": 2, "k": ["requests", 0, "response"], "v": parts[..3]}),
        serde_json::json!({"kind": 2, "k": ["requests"], "v": [{"message": {"text": "taken back"}}]}),
        serde_json::json!({"kind": 2, "k": ["requests", 0, "response"], "v": parts[3..], "i": 3}),
        serde_json::json!({"kind": 2, "k": ["requests"], "v": [{"message": "add one", "timestamp": 1_777_493_160_000_i64}], "i": 1}),
        serde_json::json!({"kind": 1, "k": ["requests", 1, "isCanceled"], "v": true}),
        serde_json::json!({"kind": 1, "k": ["requests", 1, "result"], "v": {"errorDetails": {"message": "Canceled"}}}),
        serde_json::json!({"kind": 3, "k": ["customTitle"]}),
        serde_json::json!({"kind": 1, "k": ["requests", 999_999_999, "x"], "v": 1}),
    ];
    let text = lines.map(|line| line.to_string()).join("\n");
    check(&only("s-1.jsonl", &text));
    survives_damage(SessionFormat::VsCode, text.as_bytes());
}

/// The arguments and the output that the model saw come from the rounds, the exit code from what
/// was shown.
#[test]
fn rounds_of_calls_say_more_than_what_was_shown() {
    let text = r#"{"responderUsername":"GitHub Copilot","requests":[{"message":{"text":"test it"},"timestamp":1777493100000,
     "response":[{"value":"I run them."},{"kind":"toolInvocationSerialized","toolId":"run_in_terminal","toolCallId":"toolu_1__vscode-9","isComplete":true,
       "toolSpecificData":{"commandLine":{"original":"npm test"},"terminalCommandState":{"exitCode":2}}},{"value":"Two fail."}],
     "result":{"metadata":{"resolvedModel":"claude-x","promptTokens":9,"outputTokens":3,
       "toolCallRounds":[{"response":"I run them.","toolCalls":[{"name":"run_in_terminal","arguments":"{\"command\":\"npm test\",\"explanation\":\"e\"}","id":"toolu_1"}]},
         {"response":"Two fail.","toolCalls":[]}],
       "toolCallResults":{"toolu_1":{"content":[{"value":"2 failed"}]}}}}}]}"#;
    let session = only("export.json", text);
    assert_eq!(session.head.models, ["claude-x"]);
    let said: Vec<_> = session.events.iter().map(|event| event.text.as_str()).collect();
    assert_eq!(said, ["test it", "I run them.", "", "Two fail."]);
    let result = &session.events[2].results[0];
    assert_eq!((result.text.as_str(), result.exit_code), ("2 failed", Some(2)));
    assert_eq!(result.outcome, ToolOutcome::Failed);
    assert!(session.events[1].calls[0].arguments.contains("explanation"));
}

#[test]
fn the_folder_is_that_of_the_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let chats = folder.path().join("chatSessions");
    std::fs::create_dir(&chats).unwrap();
    std::fs::write(folder.path().join("workspace.json"), r#"{"folder":"file:///w/my%20app"}"#)
        .unwrap();
    assert_eq!(workspace_folder(&chats.join("a.json")).as_deref(), Some("/w/my app"));
    assert_eq!(workspace_folder(Path::new("a.json")), None);
    assert_eq!(without_escapes("100%"), "100%");
}

#[test]
fn damage_does_no_harm() {
    survives_damage(SessionFormat::VsCode, FIXTURE.as_bytes());
}

#[test]
fn what_became_of_the_changes_is_said_before_the_next_request() {
    let text = r#"{"version":3,"responderUsername":"GitHub Copilot","initialLocation":"panel","sessionId":"s-1","creationDate":1777493099000,"requests":[
 {"timestamp":1777493100000,"message":{"text":"fix it"},"response":[{"value":"Done."}]},
 {"timestamp":1777493160000,"message":{"text":"and the other"},"response":[],
  "editedFileEvents":[{"uri":{"path":"/w/a.ts"},"eventKind":1},{"uri":{"path":"/w/b.ts"},"eventKind":2},
   {"uri":{"path":"/w/c.ts"},"eventKind":3},{"eventKind":"x"}]}]}"#;
    let session = only("s-1.json", text);
    let said: Vec<_> =
        session.events.iter().map(|event| (event.mark, event.text.as_str())).collect();
    assert_eq!(
        said,
        [
            (None, "fix it"),
            (None, "Done."),
            (Some(EventMark::EditUndone), "/w/b.ts"),
            (Some(EventMark::FileEdited), "/w/c.ts"),
            (None, "and the other"),
        ]
    );
}
