//! Sessions are found where agents keep them, without a flag.

use serde_json::{Value, json};

use super::recording::{Recording, id};
use crate::workspace::Workspace;

/// The files that Hermes writes of one conversation.
fn hermes() -> String {
    let call = json!({
        "id": "c1",
        "function": { "name": "terminal", "arguments": "{\"command\": \"ls\"}" },
    });
    json!({
        "session_id": "20261117_100000_ab12cd",
        "model": "m-1",
        "platform": "cli",
        "session_start": "2026-11-17T10:00:00",
        "messages": [
            { "role": "user", "content": "List the folder" },
            { "role": "assistant", "content": "", "tool_calls": [call] },
            { "role": "tool", "tool_call_id": "c1", "content": "{\"output\": \"a\", \"exit_code\": 0}" },
            { "role": "assistant", "content": "Done: here is the list, it holds one file." },
        ],
    })
    .to_string()
}

/// The files that Codex writes of one conversation.
fn codex() -> String {
    let said = |role: &str, kind: &str, text: &str| {
        let content = json!([{ "type": kind, "text": text }]);
        ("response_item", json!({ "type": "message", "role": role, "content": content }))
    };
    let call = json!({
        "type": "function_call",
        "name": "shell",
        "arguments": "{\"command\": [\"ls\"]}",
        "call_id": "c1",
    });
    let output = r#"{"output":"cart.rs\n","metadata":{"exit_code":0,"duration_seconds":0.0}}"#;
    let result = json!({ "type": "function_call_output", "call_id": "c1", "output": output });
    let meta = json!({ "id": "019b8d9c-1000-7000-8000-000000000001", "cwd": "/work/shop" });
    let records = [
        ("session_meta", meta),
        said("user", "input_text", "Which files are there?"),
        ("event_msg", json!({ "type": "user_message", "message": "Which files are there?" })),
        ("response_item", call),
        ("response_item", result),
        said("assistant", "output_text", "Done: here is the only file, cart.rs."),
    ];
    let line = |(number, (kind, payload)): (usize, (&str, Value))| {
        let time = format!("2026-11-17T10:00:{number:02}Z");
        format!("{}\n", json!({ "timestamp": time, "type": kind, "payload": payload }))
    };
    records.into_iter().enumerate().map(line).collect()
}

fn agents(workspace: &Workspace) -> Vec<String> {
    let json = workspace.clone().args(["grade", "latest", "--json"]).run().exit(0).json();
    let agent = |grade: &Value| grade["details"]["agent"].as_str().unwrap().to_owned();
    let mut agents: Vec<String> = json["grades"].as_array().unwrap().iter().map(agent).collect();
    agents.sort();
    agents
}

#[test]
fn below_the_home_folder_and_where_variables_say() {
    let recording = Recording::success(&id(1));
    let workspace = Workspace::new()
        .file("../home/.claude/projects/-work-app/one.jsonl", recording.text())
        .file("../hermes/sessions/session_one.json", hermes())
        .file("../home/.codex/sessions/2026/11/17/ignored.jsonl", codex());
    let hermes_home = workspace.path("../hermes");
    let workspace = workspace.env("HERMES_HOME", hermes_home);
    let empty = workspace.path("../nothing");
    let workspace = workspace.env("CODEX_HOME", empty);
    assert_eq!(agents(&workspace), ["claude-code", "hermes"]);
}

#[test]
fn rollouts_of_codex() {
    let workspace = Workspace::new()
        .file("../elsewhere/sessions/2026/11/17/rollout-2026-11-17T10-00-00-019b.jsonl", codex());
    let home = workspace.path("../elsewhere");
    assert_eq!(agents(&workspace.env("CODEX_HOME", home)), ["codex"]);
}

#[test]
fn where_no_agent_lives_there_is_nothing_to_grade() {
    for words in [&["grade", "latest"][..], &["grade", "latest", "--json"], &["sessions", "list"]] {
        let run = Workspace::new().args(words).run().exit(4);
        run.stderr_contains("none of the known agents keeps sessions here")
            .stderr_contains("hint: name a file or folder with --source");
    }
    let workspace = Workspace::new().file("empty/readme.txt", "no session");
    let run = workspace.args(["grade", "latest", "--source", "empty"]).run().exit(4);
    run.stderr_contains("no recorded session was found in").stderr_contains("/project/empty");
}

#[test]
fn a_subagent_that_repeats_a_session_and_goes_on_does_not_replace_it() {
    let record = |uuid: &str, parent: &str, is_subagent: bool, message: &str| {
        let agent = if is_subagent { r#""agentId":"aside-b1","# } else { "" };
        let minute = uuid.trim_start_matches(char::is_alphabetic);
        format!(
            r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"s-4",{agent}"isSidechain":{is_subagent},"timestamp":"2026-11-24T10:0{minute}:00Z","message":{message}}}"#,
            kind = if message.contains("assistant") { "assistant" } else { "user" },
        ) + "\n"
    };
    let ask = |text: &str| format!(r#"{{"role":"user","content":"{text}"}}"#);
    let say = |text: &str| {
        format!(
            r#"{{"id":"m-{text}","role":"assistant","model":"opus","content":[{{"type":"text","text":"{text}"}}]}}"#
        )
    };
    let both = |is_subagent| {
        let asked = record("u0", "", is_subagent, &ask("Fix the rounding in cart.py"));
        [asked, record("a1", "u0", is_subagent, &say("Fixed."))].concat()
    };
    let more = [
        record("u2", "a1", true, &ask("What is a cart?")),
        record("a3", "u2", true, &say("It holds goods.")),
    ]
    .concat();
    let workspace = Workspace::new()
        .file("in/-w-shop/s-4.jsonl", both(false))
        .file("in/-w-shop/s-4/subagents/agent-aside-b1.jsonl", format!("{}{more}", both(true)));
    let graded = workspace.args(["grade", "latest", "--source", "in", "--json"]).run().exit(0);
    let grades = graded.json();
    let ids: Vec<&str> = grades["grades"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["session_id"].as_str())
        .collect();
    assert!(ids.contains(&"s-4") && ids.contains(&"s-4/agent-aside-b1"), "{grades:#}");
}

#[test]
fn the_database_of_hermes() {
    let workspace = Workspace::new().file("../home/.hermes/state.db", "");
    let state = "../home/.hermes/state.db";
    for statement in [
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, started_at REAL)",
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, \
         tool_calls TEXT, active INTEGER DEFAULT 1)",
        "INSERT INTO sessions VALUES ('s1', 'cli', 'm-1', 1777493100.0)",
        "INSERT INTO messages (session_id, role, content) VALUES ('s1', 'user', 'List the folder'), \
         ('s1', 'assistant', 'Done: here is the list, it holds one file.')",
    ] {
        workspace.sql_in(state, statement);
    }
    assert_eq!(agents(&workspace), ["hermes"]);

    // Every command that reads sessions reads those of a database.
    let run = |words: &[&str]| workspace.clone().args(words).run().exit(0);
    let list = run(&["sessions", "list", "--json"]).stdout;
    assert!(list.contains("\"s1\""), "{list}");
    let shown = run(&["sessions", "show", "s1"]).stdout;
    assert!(shown.contains("it holds one file"), "{shown}");
    let found = run(&["sessions", "search", "folder"]).stdout;
    assert!(found.contains("s1"), "{found}");
    let doctor = run(&["sessions", "doctor"]).stdout;
    assert!(!doctor.contains("refused:"), "{doctor}");
    for format in ["atif", "markdown", "html", "jsonl"] {
        let text = run(&["sessions", "export", "s1", "--format", format]).stdout;
        assert!(text.contains("it holds one file"), "{format}: {text}");
    }
}
