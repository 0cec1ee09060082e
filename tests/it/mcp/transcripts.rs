//! Reading, searching and ranking sessions: short answers, page by page.

use serde_json::{Value, json};

use super::conversation::Conversation;
use super::world::{GRADED, INJECTION, graded};
use crate::grade::recording::{Recording, id};
use crate::workspace::Workspace;

/// About 2000 tokens.
const MAX_BYTES: usize = 7000;

fn begin(workspace: Workspace) -> Conversation {
    Conversation::begin(workspace, "2025-11-25")
}

fn short(answer: &Value) -> &Value {
    let bytes = answer.to_string().len();
    assert!(bytes <= MAX_BYTES, "{bytes} bytes");
    answer
}

#[test]
fn a_session_is_read_from_any_event_on() {
    let heard = begin(graded())
        .calls("read_session", &json!({ "session_id": "aaaa" }))
        .calls("read_session", &json!({ "session_id": GRADED, "from": 2, "events": 1 }))
        .calls("read_session", &json!({ "session_id": GRADED, "from": 9 }))
        .calls("read_session", &json!({ "session_id": GRADED, "events": 0 }))
        .calls("read_session", &json!({ "session_id": "feed" }))
        .heard();
    let whole = short(heard.answered(1));
    assert_eq!((&whole["session_id"], &whole["events_in_all"]), (&json!(GRADED), &json!(4)));
    assert_eq!(whole["next_from"], Value::Null);
    let events = whole["events"].as_array().unwrap();
    assert_eq!(events.len(), 4);
    assert_eq!(events[1]["calls"][0]["tool"], "Bash");
    assert_eq!(events[2]["results"][0]["outcome"], "failed");
    let output = events[2]["results"][0]["output"]["untrusted_text"].as_str().unwrap();
    assert!(output.contains(INJECTION) && !output.contains("sk-live"), "{output}");
    let one = heard.answered(2);
    assert_eq!(one["events"].as_array().unwrap().len(), 1);
    assert_eq!((&one["events"][0]["event"], &one["next_from"]), (&json!(2), &json!(3)));
    assert!(heard.refused(3).contains("4 events"));
    assert!(heard.refused(4).contains("expected 1 to 50"));
    assert!(heard.refused(5).contains("\"feed\""));
}

#[test]
fn long_sessions_are_cut_into_short_answers_that_lose_no_event() {
    let words = "a long line of words ".repeat(200);
    let begun = Recording::new(&id(1)).asks(&words);
    let long = (0..60).fold(begun, |recording, _| recording.says(&words));
    let workspace = Workspace::new().session(&long);
    let _ = workspace.clone().grade(&["latest"]).run().exit(0);
    let (mut from, mut seen) = (0, Vec::new());
    loop {
        let heard = begin(workspace.clone())
            .calls("read_session", &json!({ "session_id": id(1), "from": from, "events": 50 }))
            .heard();
        let answer = short(heard.answered(1));
        let events = answer["events"].as_array().unwrap();
        seen.extend(events.iter().map(|event| event["event"].as_u64().unwrap()));
        match answer["next_from"].as_u64() {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(seen, (0..61).collect::<Vec<u64>>());
}

#[test]
fn words_are_found_and_the_worst_come_first() {
    let workspace = Workspace::new()
        .session(&Recording::on(&id(1), "2026-11-16T10:00:00Z", true))
        .session(&Recording::on(&id(2), "2026-11-17T10:00:00Z", false));
    let search = ["sessions", "search", "parser", "--source", "sessions"];
    let _ = workspace.clone().args(search).run().exit(0);
    let heard = begin(workspace)
        .calls("search_sessions", &json!({ "words": "\"connection refused\"", "errors": true }))
        .calls("search_sessions", &json!({ "words": "the", "limit": 1 }))
        .calls("search_sessions", &json!({ "words": "absent" }))
        .calls("search_sessions", &json!({ "words": "\"\"" }))
        .calls("search_sessions", &json!({ "words": "x", "since": "soon" }))
        .calls("list_worst_sessions", &json!({ "limit": 1 }))
        .calls("list_worst_sessions", &json!({}))
        .calls("list_worst_sessions", &json!({ "cursor": "7b" }))
        .heard();
    let found = short(heard.answered(1));
    let [session] = &found["sessions"].as_array().unwrap()[..] else { panic!("{found}") };
    assert_eq!(session["session_id"], id(2));
    assert_eq!(session["hits"][0]["event"], 2);
    let snippet = session["hits"][0]["snippet"]["untrusted_text"].as_str().unwrap();
    assert!(snippet.contains("«connection refused»"), "{snippet}");
    let first = heard.answered(2);
    assert_eq!(first["sessions"][0]["session_id"], id(2));
    let cursor = first["next_cursor"].as_str().unwrap();
    assert!(!cursor.is_empty());
    assert!(heard.answered(3)["remarks"][0].as_str().unwrap().contains("nothing was found"));
    assert!(heard.refused(4).contains("no word"));
    assert!(heard.refused(5).contains("since"));
    let worst = short(heard.answered(6));
    assert_eq!(worst["sessions"][0]["session_id"], id(2), "it gave up");
    assert!(worst["next_cursor"].is_string());
    let all = heard.answered(7)["sessions"].as_array().unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(all[1]["session_id"], id(1));
    assert!(heard.refused(8).contains("cursor"));
}
