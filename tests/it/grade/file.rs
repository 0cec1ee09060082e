//! `selftest grade file PATH…`

use serde_json::json;

use super::recording::{Recording, id};
use crate::workspace::Workspace;

#[test]
fn files_and_folders() {
    let workspace = Workspace::new()
        .file("one.jsonl", Recording::success(&id(1)).text())
        .session(&Recording::stuck(&id(2)))
        .session(&Recording::recovered(&id(3)))
        .args(["grade", "file", "one.jsonl", "sessions", "--json"]);
    let mut ids = workspace.run().exit(0).graded();
    ids.sort();
    assert_eq!(ids, [id(1), id(2), id(3)]);
    // It has its grade already, and shows it; however its path is spelled.
    for path in ["one.jsonl", "sessions/../one.jsonl"] {
        let run = workspace.clone().args(["grade", "file", path]).run().exit(0);
        let run = run.stderr_contains("1 file found, 1 unchanged").stdout_contains(&id(1));
        assert!(!run.stdout.contains(&id(2)), "{}", run.stdout);
    }
}

#[test]
fn the_specified_short_forms() {
    let workspace = Workspace::new()
        .file("one.jsonl", Recording::success(&id(1)).text())
        .session(&Recording::success(&id(2)));
    let source = ["--source", "sessions"];
    for (words, said) in [
        (&["-f", "one.jsonl"][..], &*id(1)),
        (&["-g", "10"], &*id(2)),
        (&["-s"], "in the last 7 days"),
        (&["-s", "-d", "30"], "in the last 30 days"),
        (&["-r"], ".md\n"),
    ] {
        let run = workspace.clone().args([&["grade"], words, &source].concat()).run().exit(0);
        let _ = run.stdout_contains(said);
    }
}

#[test]
fn a_database_that_is_set_to_nothing_is_the_usual_one() {
    let workspace = Workspace::new().session(&Recording::success(&id(1)));
    let workspace = workspace.env("DATABASE_URL", "").args(["grade", "file", "sessions"]);
    let _ = workspace.run().exit(0);
    assert!(workspace.path(".selftest/selftest.db").is_file());
}

#[test]
fn a_path_that_is_not_there_is_named() {
    let workspace = Workspace::new().session(&Recording::success(&id(1)));
    let run = workspace.clone().args(["grade", "file", "sessions", "lost.jsonl"]).run().exit(2);
    let _ = run.one_error(&["lost.jsonl", "No such file"]);
    assert!(
        !workspace.path(".selftest").exists(),
        "nothing is made before the paths are looked at"
    );
    let _ = workspace.args(["grade", "file"]).run().exit(2).stderr_contains("PATH");
}

#[test]
fn what_is_no_session_is_said_to_be_none() {
    for (name, text, words) in [
        (
            "notes.json",
            r#"{"shopping": ["milk"]}"#,
            "no known session format: objects with the keys shopping",
        ),
        ("words.jsonl", "not json at all\n", "no known session format: no JSON object"),
        ("empty.jsonl", "", "the file is empty"),
        ("binary.json", "\u{0}\u{1}\u{2}\u{fffd}", "no known session format"),
    ] {
        let run = Workspace::new().file(name, text).args(["grade", "file", name]).run().exit(4);
        assert_eq!(run.stdout, "", "{name}");
        run.stderr_contains("1 without a session").stderr_contains(name).stderr_contains(words);
    }
    // Not by its content, but by its name.
    let run = Workspace::new().file("notes.txt", "hello").args(["grade", "file", "notes.txt"]);
    let _ = run.run().exit(4).stderr_contains("notes.txt");
}

#[test]
fn too_little_is_no_average_grade() {
    let unanswered = Recording::new(&id(1)).asks("Are you there?");
    let workspace = Workspace::new().session(&unanswered).args(["grade", "file", "sessions"]);
    let run = workspace.run().exit(4).stderr_contains("1 with too little in it");
    run.stderr_contains("no answer of the agent");
    assert_eq!(workspace.sql("SELECT outcome, reason FROM session_files")[0][0], "not_gradable");
    assert_eq!(workspace.sql("SELECT session_id FROM session_grades"), [[""; 0]; 0]);
}

#[test]
fn a_torn_file_is_graded_up_to_the_tear() {
    let whole = Recording::success(&id(1));
    let workspace = Workspace::new().file("torn.jsonl", whole.torn()).args([
        "grade",
        "file",
        "torn.jsonl",
        "--json",
    ]);
    let run = workspace.run().exit(0);
    assert_eq!(run.graded(), [id(1)]);
    let grade = &run.json()["grades"][0];
    assert_eq!(grade["details"]["tool_calls"], 1);
    assert_eq!(grade["total_api_calls"], 1, "the last message is behind the tear");
    let notes = &workspace.sql("SELECT notes_json FROM session_files")[0][0];
    let notes: serde_json::Value = serde_json::from_str(notes).unwrap();
    assert_eq!(notes["torn"], "line 4", "{notes}");

    let workspace = workspace.file("torn.jsonl", whole.text());
    let healed = workspace.run().exit(0).json();
    assert_eq!(healed["grades"][0]["total_api_calls"], 2);
}

#[test]
fn an_endless_loop_is_seen() {
    let workspace = Workspace::new()
        .session(&Recording::looping(&id(1)))
        .args(["grade", "file", "sessions", "--json"]);
    let json = workspace.run().exit(0).json();
    let grade = &json["grades"][0];
    for (field, value) in [
        ("task_completed", json!(false)),
        ("errors_recovered", json!(false)),
        ("had_repeated_errors", json!(true)),
        ("had_infinite_loop_risk", json!(true)),
        ("total_errors", json!(60)),
        ("total_api_calls", json!(60)),
        ("tool_calls_efficient", json!(1)),
        ("response_quality", json!(1)),
    ] {
        assert_eq!(grade[field], value, "{field} of {grade:#}");
    }
}

#[test]
fn paths_count_from_the_project_folder() {
    let workspace = Workspace::new()
        .file("shop/one.jsonl", Recording::success(&id(1)).text())
        .args(["grade", "file", "one.jsonl", "--json", "-C", "shop"]);
    assert_eq!(workspace.run().exit(0).graded(), [id(1)]);
    assert!(workspace.path("shop/.selftest/selftest.db").is_file());
    assert!(!workspace.path(".selftest").exists());
}

/// A chat as other programs export it, without an id.
fn chat(question: &str, answer: &str) -> String {
    json!({ "messages": [
        { "role": "user", "content": question },
        { "role": "assistant", "content": answer },
        { "role": "user", "content": "Thanks, and now?" },
        { "role": "assistant", "content": "Now it is done: the file is saved." },
    ]})
    .to_string()
}

#[test]
fn chats_without_an_id_are_told_apart_by_how_they_begin() {
    let two = [chat("Say one.", "One."), chat("Say two.", "Two.")].join("\n");
    let workspace = Workspace::new()
        .file("A/chat.json", chat("What is a parser?", "A reader."))
        .file("B/chat.json", chat("What is a lexer?", "A splitter."))
        .file("B/copy/chat.json", chat("What is a lexer?", "A splitter."))
        .file("chats.jsonl", two)
        .args(["grade", "file", "A", "B", "chats.jsonl", "--json"]);
    let run = workspace.run().exit(0);
    let ids = run.graded();
    assert_eq!(ids.len(), 4, "{ids:?}");
    assert_eq!(workspace.sql("SELECT COUNT(DISTINCT session_id) FROM session_grades")[0][0], "4");
    // Only the copy is one, or what it was copied from.
    let copies = workspace.sql("SELECT path FROM session_files WHERE outcome = 'duplicate'");
    assert!(copies.len() == 1 && copies[0][0].contains("/B/"), "{copies:?}");

    // A folder that was moved holds the same sessions.
    let moved = Workspace::new()
        .file("deep/in/chat.json", chat("What is a parser?", "A reader."))
        .args(["grade", "file", "deep", "--json"]);
    let moved = moved.run().exit(0).graded();
    assert!(ids.contains(&moved[0]), "{moved:?} of {ids:?}");
}
