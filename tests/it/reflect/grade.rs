//! `selftest improve reflect grade`: from a file or a pipe to scores in the database; and files that
//! hold no reflections, or some that cannot be kept.

use serde_json::{Value, json};

use super::made_up::{bad, good, lines, with};
use crate::workspace::Workspace;

const GRADE: [&str; 2] = ["grade", "reflections.jsonl"];

/// Project, loop, score and whether it is weak, of each.
fn kept(workspace: &Workspace) -> Vec<String> {
    let rows = workspace.sql(
        "SELECT project_id, loop_count, score, weak FROM reflections JOIN reflection_scores \
         ON reflection = id ORDER BY id",
    );
    rows.iter().map(|row| row.join(" ")).collect()
}

/// docs/spec/reflections.md#tests: grading good reflections.
#[test]
fn section_testing_1_good_reflections() {
    let workspace = Workspace::new().reflections(&[good()]);
    let run = workspace.reflect(&GRADE).exit(0).stderr_contains("1 reflection graded, 0 weak");
    assert!(run.stdout.contains(" 1.00 "), "{}", run.stdout);
    assert_eq!(kept(&workspace), ["default 2 1.0 0"]);
}

/// docs/spec/reflections.md#tests: grading bad reflections.
#[test]
fn section_testing_2_bad_reflections() {
    let dated = |document, id: &str| {
        with(with(document, "reflection_id", id), "timestamp", "2026-11-20T10:00:00Z")
    };
    let unsure = with(dated(good(), "r3"), "confidence", "high");
    let workspace =
        Workspace::new().reflections(&[dated(good(), "r1"), dated(bad(), "r2"), unsure]);
    let run = workspace.reflect(&GRADE).exit(1).stderr_contains("3 reflections graded, 1 weak");
    let _ = run.snapshot("reflect_grade");
    let _ = workspace.reflect(&["grade", "reflections.jsonl", "--exit-zero"]).exit(0);
}

/// docs/spec/reflections.md#functions, `grade_reflection`: the keys that it returns.
#[test]
fn section_module_functions_grade_reflection() {
    let workspace = Workspace::new().reflections(&[with(bad(), "reflection_id", "r-1")]);
    let json = workspace.reflect(&["grade", "reflections.jsonl", "--json"]).exit(1).json();
    let score = &json[0];
    // "Dictionary containing: score, issues, timestamp, loop, reflection_id"
    assert_eq!((&score["score"], &score["loop"]), (&json!(0.45), &json!(1)));
    assert_eq!(score["reflection_id"], "r-1");
    assert!(score["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    let issues: Vec<(&str, f64)> = score["issues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| (issue["code"].as_str().unwrap(), issue["deduction"].as_f64().unwrap()))
        .collect();
    let expected = [
        ("low_confidence", 0.2),
        ("loop_tag_missing", 0.1),
        ("goal_misaligned", 0.15),
        ("summary_too_brief", 0.1),
    ];
    assert_eq!(issues, expected);
}

/// docs/spec/reflections.md#tests: handling multiple reflections.
#[test]
fn section_testing_5_multiple_reflections_in_any_form() {
    let [first, second] = [good(), bad()];
    for (name, text) in [
        ("list.json", format!("[{first:#}, {second:#}]")),
        ("lines.jsonl", lines(&[first.clone(), second.clone()])),
        ("after_each_other.json", format!("{first:#}\n{second:#}")),
    ] {
        let workspace = Workspace::new().file(name, text);
        let _ = workspace.reflect(&["grade", name]).exit(1);
        assert_eq!(kept(&workspace), ["default 2 1.0 0", "default 2 0.45 1"], "{name}");
    }
}

#[test]
fn the_project_is_that_of_the_flag_else_of_the_reflection() {
    let documents = [with(good(), "project_id", "shop"), good()];
    let workspace = Workspace::new().reflections(&documents);
    let _ = workspace.reflect(&GRADE).exit(0);
    assert_eq!(kept(&workspace), ["shop 2 1.0 0", "default 2 1.0 0"]);
    let workspace = Workspace::new().reflections(&documents);
    let _ = workspace.reflect(&["grade", "reflections.jsonl", "--project", "a/b"]).exit(0);
    assert_eq!(kept(&workspace), ["a/b 2 1.0 0", "a/b 2 1.0 0"]);
}

/// docs/spec/reflections.md#functions, `grade_reflection`: `loop`, the current loop count.
#[test]
fn the_loop_is_stated_or_tagged_or_counted() {
    let untagged = |number: u64| with(with(good(), "tags", json!([])), "n", number);
    let documents = [
        untagged(1),
        with(good(), "loop", 40),
        with(good(), "tags", json!(["loop_7"])),
        untagged(2),
    ];
    let workspace = Workspace::new().reflections(&documents);
    let _ = workspace.reflect(&GRADE).exit(0);
    let rows = workspace.sql("SELECT loop_count FROM reflections ORDER BY id");
    assert_eq!(rows, [["1"], ["40"], ["7"], ["4"]]);
}

#[test]
fn a_file_that_is_graded_twice_counts_once_and_a_pipe_twice() {
    // The same words in two places of the file are two reflections.
    let workspace = Workspace::new().reflections(&[bad(), bad()]);
    let _ = workspace.reflect(&GRADE).exit(1);
    let before = workspace.sql("SELECT * FROM reflection_scores");
    let _ = workspace.reflect(&GRADE).exit(1);
    assert_eq!(workspace.sql("SELECT * FROM reflection_scores"), before);
    assert_eq!(before.len(), 2);
    for _ in 0..2 {
        let _ = workspace.reflect_piped(&bad().to_string(), &["grade", "-"]).exit(1);
    }
    assert_eq!(kept(&workspace).len(), 4);
}

#[test]
fn a_dry_run_keeps_nothing() {
    let workspace = Workspace::new().reflections(&[good()]);
    let _ = workspace.reflect(&GRADE).exit(0);
    let workspace = workspace.reflections(&[with(bad(), "reflection_id", "r-1"), bad()]);
    let run = workspace.reflect(&["grade", "reflections.jsonl", "--dry-run", "--json"]).exit(1);
    let json: Value = run.json();
    assert_eq!((&json[0]["score"], &json[0]["loop"]), (&json!(0.45), &json!(2)));
    assert_eq!(
        (&json[0]["reflection_id"], &json[1]["reflection_id"]),
        (&json!("r-1"), &json!("-"))
    );
    assert_eq!(kept(&workspace).len(), 1);
}

#[test]
fn the_time_of_the_reflection_counts_unless_it_lies_ahead() {
    let documents = [
        with(good(), "timestamp", "2026-01-05T10:00:00+02:00"),
        with(good(), "timestamp", "2999-01-05T10:00:00Z"),
        with(good(), "timestamp", "yesterday"),
    ];
    let workspace = Workspace::new().reflections(&documents);
    let _ = workspace.reflect(&GRADE).exit(0);
    let rows = workspace.sql("SELECT made_at FROM reflections ORDER BY id");
    assert_eq!(rows[0], ["2026-01-05T08:00:00.000000000Z"]);
    assert!(&*rows[1][0] < "2999" && &*rows[2][0] > "2026-01-06", "{rows:?}");
}

#[test]
fn secrets_are_kept_nowhere() {
    let secret = "sk-proj-abcDEF0123456789xyz";
    let document = with(
        with(
            good(),
            "summary",
            format!("The test project builds with {secret} as its key, at last"),
        ),
        "details",
        json!({ "password": "open sesame", "list": [secret] }),
    );
    let workspace = Workspace::new().env("SHOP_TOKEN", "a-known-value-123");
    let document = with(document, "tags", json!(["loop:1", "a-known-value-123"]));
    let run = workspace.reflect_piped(&document.to_string(), &["grade", "-", "--json"]).exit(0);
    let _ = std::fs::remove_file(workspace.path("input"));
    let run = run.nowhere(secret).nowhere("open sesame").nowhere("a-known-value-123");
    drop(run);
    let kept = workspace.sql("SELECT document_json FROM reflections");
    assert_eq!(kept[0][0].matches("[redacted]").count(), 4, "{}", kept[0][0]);
}

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
