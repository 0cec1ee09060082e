//! `selftest sessions`: what was recorded, listed and printed.

use std::process::Command;

use serde_json::json;

use super::recording::{Recording, id};
use crate::server::site::Site;
use crate::workspace::Workspace;

const AT: &str = "2026-11-17T10:00:00Z";

fn recorded() -> Workspace {
    Workspace::new()
        .old_session(&Recording::on(&id(1), AT, true), 1)
        .old_session(&Recording::on(&id(2), AT, false), 2)
        .file("sessions/chat.json", r#"{"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"Hello!"}]}"#)
        .aged("sessions/chat.json", 3)
        .file("sessions/notes.json", r#"{"shopping": ["milk"]}"#)
}

fn sessions(workspace: &Workspace, words: &[&str]) -> Workspace {
    workspace.clone().args([&["sessions"], words, &["--source", "sessions"]].concat())
}

#[test]
fn the_list_begins_with_the_newest() {
    let workspace = recorded();
    let _ = sessions(&workspace, &["list"]).run().exit(0).snapshot("sessions_list");
    let json = sessions(&workspace, &["list", "--json"]).run().exit(0).json();
    let rows: Vec<(&str, u64, u64)> = json
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let count = |field: &str| row[field].as_u64().unwrap();
            (row["id"].as_str().unwrap(), count("tool_calls"), count("tool_errors"))
        })
        .collect();
    assert_eq!(rows, [(&*id(1), 1, 0), (&*id(2), 3, 3), ("chat-ae82791d", 0, 0)]);
}

#[test]
fn less_of_the_list() {
    let workspace = recorded();
    for (words, count) in [
        (&["--limit=2"][..], 2),
        (&["--limit=0"], 3),
        (&["--agent=chat"], 1),
        // The chat has no date, whenever its file was written.
        (&["--since=2026-11-17"], 2),
        (&["--since=2026-11-17T11:00:00Z"], 0),
        (&["--since=1h"], 0),
    ] {
        let words = [&["list", "--json"], words].concat();
        let run = sessions(&workspace, &words).run().exit(if count == 0 { 4 } else { 0 });
        assert_eq!(run.json().as_array().unwrap().len(), count, "{words:?}");
    }
}

#[test]
fn a_session_by_id_by_its_beginning_and_by_path() {
    let workspace = recorded();
    let run = sessions(&workspace, &["show", "00000002"]).run().exit(0).snapshot("sessions_show");
    let path = format!("sessions/{}.jsonl", id(2));
    for named in [id(2), path] {
        let other = sessions(&workspace, &["show", &named]).run().exit(0);
        assert_eq!(other.stdout, run.stdout);
    }
    let json = sessions(&workspace, &["show", "00000002", "--json"]).run().exit(0).json();
    assert_eq!(json[0]["id"], id(2).as_str(), "{json:#}");
    assert_eq!(json[0]["events"][0]["text"], "Deploy the shop to the test server");
    assert_eq!(json[0]["events"][0]["origin"], "human");
}

#[test]
fn a_part_of_a_session_and_one_event_with_those_around_it() {
    let workspace = recorded();
    let shown = |words: &[&str]| {
        let words = [&["show", "00000002"], words].concat();
        sessions(&workspace, &words).run().exit(0).stdout
    };
    let part = shown(&["--from", "2", "--events", "2"]);
    let numbers = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with('#') || line.starts_with("=> #"));
        lines
            .map(|line| line.split(' ').find(|word| word.starts_with('#')).unwrap().to_owned())
            .collect()
    };
    assert_eq!(numbers(&part), ["#2", "#3"]);
    assert!(part.ends_with("\nevents 2 to 3 of 0 to 7\n"), "{part}");
    let whole = shown(&[]);
    assert!(!whole.contains("events 0 to"), "{whole}");
    let one = shown(&["--event", "4"]);
    assert_eq!(numbers(&one), ["#1", "#2", "#3", "#4", "#5", "#6", "#7"]);
    assert!(one.contains("\n=> #4 tool"), "{one}");
    let words = ["show", "00000002", "--from", "6", "--json"];
    let json = sessions(&workspace, &words).run().exit(0).json();
    assert_eq!(json[0]["events"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&json[0]["events"][0]["number"], &json[0]["events_in_all"]),
        (&json!(6), &json!(8))
    );
    for words in [&["--event", "8"][..], &["--from", "9"]] {
        let words = [&["show", "00000002"], words].concat();
        let run = sessions(&workspace, &words).run().exit(2);
        let _ = run.one_error(&["is not among those of the session, 0 to 7"]);
    }
}

#[test]
fn what_cannot_be_shown() {
    let workspace = recorded();
    let run = sessions(&workspace, &["show", "feed"]).run().exit(2).one_error(&["\"feed\""]);
    let _ = run.stderr_contains("hint: `selftest sessions list`");
    let run = sessions(&workspace, &["show", "sessions/notes.json"]).run().exit(2);
    let _ = run.one_error(&["sessions/notes.json", "no known session format"]);
    let run = sessions(&workspace, &["show", "0000000"]).run().exit(2);
    let _ = run.one_error(&["2 session ids", "start with \"0000000\"", &id(1), &id(2)]);
    let run = sessions(&workspace, &["show", "sessions"]).run().exit(2);
    let _ = run.one_error(&["sessions: 4 files in it may hold sessions"]);
    let _ = sessions(&workspace, &["show", ""]).run().exit(2).one_error(&["has the id \"\""]);
    let pipe = workspace.path("pipe.jsonl");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let run = sessions(&workspace, &["show", "pipe.jsonl"]).run().exit(2);
    let _ = run.one_error(&["pipe.jsonl: neither a file nor a folder"]);
}

#[test]
fn an_id_is_preferred_to_one_that_begins_with_it() {
    let workspace = Workspace::new()
        .session(&Recording::success("run1x"))
        .session(&Recording::success("run1"))
        .session(&Recording::success("run10"));
    let json = sessions(&workspace, &["show", "run1", "--json"]).run().exit(0).json();
    assert_eq!(json.as_array().unwrap().len(), 1, "{json:#}");
    assert_eq!(json[0]["id"], "run1");
}

#[test]
fn what_is_lost_of_a_file_is_said() {
    let recording = Recording::success(&id(1));
    let workspace = Workspace::new().file("sessions/torn.jsonl", recording.torn());
    let lost = "torn.jsonl: broken off at line 4";
    for words in [&["list"][..], &["show", "0000"]] {
        let run = sessions(&workspace, words).run().exit(0);
        let run = run.stderr_contains("warning: ").stderr_contains("broken off at line 4");
        let json = sessions(&workspace, &[words, &["--json"]].concat()).run().exit(0).json();
        assert_eq!(json[0]["notes"]["torn"], "line 4", "{}", run.stdout);
    }
    let _ = workspace.clone().grade(&["latest"]).run().exit(0).stderr_contains(lost);
    let run = workspace.clone().grade(&["latest", "--json", "--db", "other.db"]).run().exit(0);
    assert_eq!(run.json()["damaged"][0][1], "broken off at line 4");
    let _ = workspace
        .clone()
        .grade(&["show", "0000"])
        .run()
        .exit(0)
        .stdout_contains("broken off at line 4");
    let page = Site::start(workspace).get(&format!("/sessions/{}", id(1))).text();
    assert!(page.contains("broken off at line 4"), "{page}");
}

#[test]
fn the_request_is_a_persons() {
    let harness = "<command-message>init is running</command-message>";
    let workspace = Workspace::new()
        .session(&Recording::new(&id(1)).asks(harness).asks("Fix it").says("Done."));
    let _ = sessions(&workspace, &["list"]).run().exit(0).stdout_contains("  Fix it\n");
}

#[test]
fn long_texts_are_cut_unless_asked_for() {
    let words = "word ".repeat(400) + "end-of-it";
    let workspace = Workspace::new().session(&Recording::new(&id(1)).asks(&words).says("Done."));
    let short = sessions(&workspace, &["show", "0000"]).run().exit(0);
    assert!(!short.stdout.contains("end-of-it"), "{}", short.stdout);
    let _ = sessions(&workspace, &["show", "0000", "--full"])
        .run()
        .exit(0)
        .stdout_contains("end-of-it");
}

#[test]
fn nothing_in_a_session_steers_the_terminal() {
    let evil = "x\u{1b}[2J\u{1b}]8;;http://evil.example\u{7}\u{9b}31m\u{202e}\u{200b}\r\u{8}y";
    let recording = Recording::new(&format!("0000{evil}"))
        .asks(evil)
        .calls(evil, &json!({ evil: evil }), Err(evil))
        .calls(evil, &json!({ evil: evil }), Ok(evil))
        .says(evil);
    let workspace = Workspace::new().file("sessions/evil.jsonl", recording.text());
    for words in [
        &["sessions", "list"][..],
        &["sessions", "list", "--json"],
        &["sessions", "show", "0000"],
        &["sessions", "show", "0000", "--full"],
        &["sessions", "show", "0000", "--json"],
        &["grade", "latest"],
        &["grade", "show", "0000"],
        &["grade", "summary"],
    ] {
        let source = ["--source", "sessions"];
        let run = workspace.clone().args([words, &source].concat()).run().exit(0);
        for text in [&run.stdout, &run.stderr] {
            if words.contains(&"--json") {
                assert!(!text.contains(['\u{1b}', '\u{7}', '\r']), "{words:?}: {text:?}");
                continue;
            }
            let obeyed =
                |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{200b}');
            assert!(!text.contains(obeyed), "{words:?}: {text:?}");
        }
    }
}

#[test]
fn the_doctor_says_what_was_found_read_and_refused() {
    let workspace = recorded().file("sessions/torn.jsonl", Recording::success(&id(3)).torn());
    let run = sessions(&workspace, &["doctor"]).run().exit(0);
    let _ = run.snapshot("sessions_doctor");
    for words in [&["doctor", "--format=json"][..], &["doctor", "--json"]] {
        let json = sessions(&workspace, words).run().exit(0).json();
        let place = &json[0];
        let counts = ["found", "read", "sessions", "damaged"].map(|name| place[name].as_u64());
        assert_eq!(counts, [Some(5), Some(4), Some(4), Some(1)], "{json:#}");
        assert_eq!(place["formats"], json!({ "claude-code": 3, "chat": 1 }));
        let refused = &place["refused"][0];
        assert_eq!(refused["count"], 1);
        assert!(refused["reason"].as_str().unwrap().contains("no known session format"));
        assert!(refused["files"][0].as_str().unwrap().ends_with("notes.json"));
    }
    // At home there may be nothing at all.
    let run = Workspace::new().args(["sessions", "doctor"]).run().exit(0);
    let _ = run.stdout_contains("no sessions found of: amp, antigravity, claude-code");
}

#[test]
fn an_export_is_read_again() {
    let workspace = recorded();
    for (named, calls, errors) in [(id(1), 1, 0), (id(2), 3, 3)] {
        let run = sessions(&workspace, &["export", &named]).run().exit(0);
        let json = run.json();
        assert_eq!(json["schema_version"], "ATIF-v1.7");
        let workspace = workspace.clone().file("exported/one.json", &*run.stdout);
        let words = ["sessions", "list", "--json", "--source", "exported"];
        let rows = workspace.args(words).run().exit(0).json();
        let count = |field: &str| rows[0][field].as_u64().unwrap();
        assert_eq!(rows[0]["id"], named.as_str());
        assert_eq!((count("tool_calls"), count("tool_errors")), (calls, errors));
    }
    let lines = sessions(&workspace, &["export", &id(2), "--format=jsonl"]).run().exit(0).stdout;
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["session"]["id"], id(2).as_str());
    assert!(lines.lines().count() > 4);
}

#[test]
fn several_sessions_are_exported_into_a_folder() {
    let workspace = recorded();
    let (one, two) = (id(1), id(2));
    let run = sessions(&workspace, &["export", &one, &two]).run().exit(2);
    let run = run.one_error(&["2 sessions do not fit into one json"]);
    let _ = run.stderr_contains("hint: --output DIR");
    for (format, beginning) in
        [("html", "<!doctype html>"), ("markdown", "# Deploy"), ("atif", "{")]
    {
        let format = format!("--format={format}");
        let words = ["export", &one, "chat-ae82791d", &two, &*format, "--output=out"];
        let run = sessions(&workspace, &words).run().exit(0);
        let files: Vec<&str> =
            run.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(files.len(), 3, "{}", run.stdout);
        let text = std::fs::read_to_string(files[2]).unwrap();
        assert!(text.starts_with(beginning), "{}", &text[..80]);
    }
    let run = sessions(&workspace, &["export", "feed"]).run().exit(2);
    let _ = run.one_error(&["\"feed\""]);
}
