//! Files that hold no reflections, or some that cannot be kept.

use super::made_up::{bad, good, lines, with};
use crate::workspace::Workspace;

#[test]
fn files_that_are_none() {
    for (text, code, parts) in [
        (String::new(), 4, &["file.json holds no reflection"][..]),
        ("[]".to_owned(), 4, &["holds no reflection"]),
        ("I reflect".to_owned(), 2, &["file.json, line 1: not JSON", "hint: a reflection is"]),
        (lines(&[good()]) + "7\n", 2, &["file.json, line 2: expected a JSON object"]),
        ("{\"goal\": \"x\"".to_owned(), 2, &["file.json, line 1: not JSON"]),
    ] {
        let workspace = Workspace::new().file("file.json", &text);
        let run = workspace.reflect(&["grade", "file.json"]).exit(code);
        for part in parts {
            assert!(run.stderr.contains(part), "no `{part}`:\n{}", run.stderr);
        }
        assert_eq!(workspace.sql("SELECT id FROM reflections"), [[""; 0]; 0]);
    }
    let workspace = Workspace::new();
    let run = workspace.reflect(&["grade", "none.json"]).exit(2);
    let _ = run.one_error(&["cannot read none.json"]);
    let _ = workspace.file("bytes", b"\xff\xfe").reflect(&["grade", "bytes"]).exit(2);
}

#[test]
fn a_reflection_that_is_too_long_is_named() {
    let long = with(good(), "log", "x".repeat(65 * 1024));
    let workspace = Workspace::new().reflections(&[good(), long]);
    let run = workspace.reflect(&["grade", "reflections.jsonl"]).exit(2);
    let _ = run.one_error(&["reflections.jsonl, reflection 2 of 2", "expected at most 65536"]);
    assert_eq!(workspace.sql("SELECT id FROM reflections").len(), 1, "the first one is kept");
}

#[test]
fn an_id_belongs_to_one_reflection() {
    let named = |document| with(document, "reflection_id", "r1");
    let workspace = Workspace::new().reflections(&[named(good()), named(bad())]);
    let run = workspace.reflect(&["grade", "reflections.jsonl"]).exit(2);
    let run = run.one_error(&["another reflection with the id \"r1\""]);
    let _ = run.stderr_contains("hint: give each reflection");
    // In one project.
    let other = with(named(bad()), "project_id", "other");
    let _ = workspace.reflections(&[other]).reflect(&["grade", "reflections.jsonl"]).exit(1);
}

#[test]
fn projects_have_names() {
    let workspace = Workspace::new().reflections(&[good()]);
    for name in ["", &"x".repeat(513)] {
        let run = workspace.reflect(&["grade", "reflections.jsonl", "--project", name]).exit(2);
        let _ = run.one_error(&["the id of the project"]);
    }
}
