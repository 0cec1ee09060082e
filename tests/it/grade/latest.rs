//! `selftest grade latest`: which files are read, and which are not read again.

use super::recording::{Recording, id};
use super::sqlite::LogWriter;
use crate::clock;
use crate::databases::on_each_database;
use crate::workspace::Workspace;

on_each_database! {
    the_newest_come_first_and_the_next_ones_in_the_next_run,
    a_changed_file_is_graded_again_and_a_touched_one_is_not,
    the_same_session_counts_once,
    a_file_that_was_moved_keeps_its_session,
}

/// Three sessions, the one with the lowest number written last.
fn three(workspace: Workspace) -> Workspace {
    let written = |workspace: Workspace, number: u32| {
        let session = Recording::new(&id(number))
            .at(&clock::hours_ago(i64::from(number) + 1).to_string())
            .done();
        workspace.old_session(&session, u64::from(number))
    };
    (1..=3).fold(workspace, written)
}

fn the_newest_come_first_and_the_next_ones_in_the_next_run(workspace: Workspace) {
    let workspace = three(workspace);
    let two = workspace.clone().grade(&["latest", "2", "--json"]);
    assert_eq!(two.run().exit(0).graded(), [id(1), id(2)]);
    assert_eq!(two.run().exit(0).graded(), [id(3)]);
    let run = two.run().exit(0);
    assert_eq!(run.graded(), [] as [String; 0]);
    assert_eq!(run.json()["unchanged"], 3);
    run.stderr_contains("3 files found, 3 unchanged, 0 read: 0 sessions graded");
    let newer = two.session(&Recording::success(&id(4)));
    assert_eq!(newer.run().exit(0).graded(), [id(4)]);
}

fn a_changed_file_is_graded_again_and_a_touched_one_is_not(workspace: Workspace) {
    let workspace = three(workspace).grade(&["latest", "--json"]);
    assert_eq!(workspace.run().exit(0).graded().len(), 3);
    let file = format!("sessions/{}.jsonl", id(2));
    let workspace = workspace.aged(&file, 9);
    let touched = workspace.run().exit(0).json();
    assert_eq!((&touched["unchanged"], &touched["read"]), (&3.into(), &0.into()));

    let changed = workspace.session(&Recording::stuck(&id(2)));
    let run = changed.run().exit(0);
    assert_eq!(run.graded(), [id(2)]);
    assert_eq!(run.json()["grades"][0]["task_completed"], false);
    let kept = "SELECT task_completed FROM session_grades ORDER BY session_id";
    assert_eq!(changed.sql(kept), [["1"], ["0"], ["1"]]);
}

fn the_same_session_counts_once(workspace: Workspace) {
    let original = Recording::success(&id(1));
    let workspace = workspace
        .session(&original)
        .file("sessions/backup/copy.jsonl", original.text())
        .grade(&["latest", "--json"]);
    let json = workspace.run().exit(0).json();
    assert_eq!((&json["graded"], &json["duplicate"]), (&1.into(), &1.into()), "{json:#}");
    assert!(json["skipped"][0][1].as_str().unwrap().contains("same session"), "{json:#}");
    assert_eq!(workspace.sql("SELECT session_id FROM session_grades"), [[id(1)]]);

    let longer = original.asks("And the lexer?").says("The lexer was fine before.");
    let workspace = workspace.file("sessions/backup/copy.jsonl", longer.text());
    assert_eq!(workspace.run().exit(0).graded(), [id(1)]);
    let kept = workspace.sql("SELECT session_file FROM session_grades");
    assert!(kept[0][0].ends_with("backup/copy.jsonl"), "{kept:?}");
}

fn a_file_that_was_moved_keeps_its_session(workspace: Workspace) {
    let recording = Recording::success(&id(1));
    let workspace = workspace.session(&recording).grade(&["latest", "--json"]);
    assert_eq!(workspace.run().exit(0).graded(), [id(1)]);
    let old = workspace.path(&format!("sessions/{}.jsonl", id(1)));
    std::fs::rename(old, workspace.path("sessions/kept.jsonl")).unwrap();
    assert_eq!(workspace.run().exit(0).graded(), [id(1)]);
    let kept = workspace.sql("SELECT session_file FROM session_grades");
    assert!(kept[0][0].ends_with("sessions/kept.jsonl"), "{kept:?}");
    assert_eq!(workspace.run().exit(0).json()["unchanged"], 1);
}

#[cfg(unix)]
#[test]
fn a_file_that_was_moved_below_a_linked_source_keeps_its_session() {
    let workspace = Workspace::new().session(&Recording::success(&id(1)));
    std::os::unix::fs::symlink(workspace.path("sessions"), workspace.path("linked")).unwrap();
    let workspace = workspace.args(["grade", "latest", "--json", "--source", "linked"]);
    assert_eq!(workspace.run().exit(0).graded(), [id(1)]);
    let old = workspace.path(&format!("sessions/{}.jsonl", id(1)));
    std::fs::rename(old, workspace.path("sessions/kept.jsonl")).unwrap();
    assert_eq!(workspace.run().exit(0).graded(), [id(1)]);
}

#[test]
fn a_session_that_is_only_in_the_log_of_a_database_is_graded() {
    const FILE: &str = "sessions/opencode.db";
    const SESSION: &str = r#"
        INSERT INTO session VALUES ('SESSION', NULL, '/w', '1.0', 1795084800000, 1795084801000);
        INSERT INTO message VALUES
            ('SESSION-1', 'SESSION', 1, '{"role":"user","time":{"created":1795084800000}}'),
            ('SESSION-2', 'SESSION', 2, '{"role":"assistant","time":{"created":1795084801000}}');
        INSERT INTO part VALUES
            ('SESSION-p1', 'SESSION-1', 'SESSION', '{"type":"text","text":"fix the login"}'),
            ('SESSION-p2', 'SESSION-2', 'SESSION', '{"type":"text","text":"Done: it works."}');"#;
    let workspace = Workspace::new().file(FILE, "");
    for table in [
        "session (id TEXT, parent_id TEXT, directory TEXT, version TEXT, time_created INTEGER, \
         time_updated INTEGER)",
        "message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)",
        "part (id TEXT, message_id TEXT, session_id TEXT, data TEXT)",
    ] {
        let _ = workspace.sql_in(FILE, &format!("CREATE TABLE {table}"));
    }
    // Stays open, as in an agent that runs.
    let mut agent = LogWriter::open(&workspace.path(FILE));
    agent.run(&SESSION.replace("SESSION", "first"));
    let workspace = workspace.grade(&["latest", "--json"]);
    assert_eq!(workspace.run().exit(0).graded(), ["first"]);
    assert_eq!(workspace.run().exit(0).json()["unchanged"], 1);
    let bytes = || std::fs::read(workspace.path(FILE)).unwrap();
    let before = bytes();
    agent.run(&SESSION.replace("SESSION", "second"));
    assert!(bytes() == before, "only the log has the second session");
    let mut ids = workspace.run().exit(0).graded();
    ids.sort();
    assert_eq!(ids, ["first", "second"]);
}

#[test]
fn only_what_was_asked_for() {
    let chat = r#"[{"role":"user","content":"hello"},{"role":"assistant","content":"Hello!"}]"#;
    let workspace =
        three(Workspace::new()).file("sessions/chat.json", chat).aged("sessions/chat.json", 40);
    let graded = |words: &[&str]| {
        let arguments = [&["latest", "--json"], words].concat();
        let run = workspace.clone().grade(&arguments).run();
        let ids = run.graded();
        (ids, run)
    };
    for none in [["--since=1h", "--agent=claude-code"], ["--since=1d", "--agent=chat"]] {
        let (ids, run) = graded(&none);
        assert_eq!(ids, [] as [String; 0], "{none:?}");
        let _ = run.exit(4);
    }
    assert_eq!(graded(&["--agent", "chat"]).0, ["chat-ae82791d"]);
    // By when they began; this file was written since then.
    assert_eq!(graded(&["--since", "3h"]).0, [id(1)]);
    assert_eq!(graded(&["--since", "2d"]).0, [id(2), id(3)]);
    let wrong = workspace.grade(&["latest", "--since", "soon"]).run().exit(2);
    let _ = wrong.one_error(&["--since", "soon"]);
}

#[test]
fn several_sources() {
    let workspace = Workspace::new()
        .file("left/a.jsonl", Recording::success(&id(1)).text())
        .file("right/deep/b.jsonl", Recording::success(&id(2)).text())
        .file("elsewhere/c.jsonl", Recording::success(&id(3)).text())
        .args(["grade", "latest", "--json", "--source", "left", "--source", "right/deep/b.jsonl"]);
    let mut ids = workspace.run().exit(0).graded();
    ids.sort();
    assert_eq!(ids, [id(1), id(2)]);
    let missing = workspace.args(["grade", "latest", "--source", "lost"]).run().exit(2);
    let _ = missing.one_error(&["--source lost", "No such file"]);
}

#[test]
fn sources_of_the_configuration() {
    let workspace = Workspace::new()
        .grade_config("{ sources: [recorded] }")
        .file("recorded/a.jsonl", Recording::success(&id(1)).text())
        .args(["grade", "latest", "--json"]);
    assert_eq!(workspace.run().exit(0).graded(), [id(1)]);
}

#[test]
fn json_is_stable() {
    let at = "2026-11-17T10:00:00Z";
    let recording = Recording::on(&id(1), at, false);
    let run = Workspace::new().session(&recording).grade(&["latest", "--json"]).run().exit(0);
    let _ = run.snapshot("grade_latest_json");
}

#[test]
fn every_outcome_in_the_table() {
    // The last one is the newest.
    let run = Workspace::new()
        .old_session(&Recording::new(&id(6)).asks("Are you there?"), 8)
        .file("sessions/notes.json", r#"{"shopping": ["milk"]}"#)
        .aged("sessions/notes.json", 7)
        .file("sessions/empty.jsonl", "")
        .aged("sessions/empty.jsonl", 6)
        .file("sessions/torn.jsonl", Recording::success(&id(5)).torn())
        .aged("sessions/torn.jsonl", 5)
        .old_session(&Recording::looping(&id(4)), 4)
        .old_session(&Recording::stuck(&id(3)), 3)
        .old_session(&Recording::recovered(&id(2)), 2)
        .old_session(&Recording::success(&id(1)), 1)
        .grade(&["latest", "20"])
        .run()
        .exit(0);
    let _ = run.snapshot("grade_latest").snapshot_stderr("grade_latest_coverage");
}

#[test]
fn columns_stay_aligned_whatever_the_ids() {
    let long = format!("session-{}", "x".repeat(80));
    let hostile = "a\u{1b}[31m\u{202e}b";
    let workspace = Workspace::new()
        .file("sessions/a.jsonl", Recording::success(&long).text())
        .file("sessions/b.jsonl", Recording::success(hostile).text())
        .file("sessions/c.jsonl", Recording::success("short").text())
        .grade(&["latest"]);
    let run = workspace.run().exit(0);
    let column = |line: &str| line[..line.find("Fix the parser").unwrap()].chars().count();
    let columns: Vec<usize> = run.stdout.lines().skip(1).map(column).collect();
    assert!(columns.iter().all(|column| *column == columns[0]), "{}", run.stdout);
    assert!(!run.stdout.contains(['\u{1b}', '\u{202e}']), "{:?}", run.stdout);
    let shown = run.stdout.split_whitespace().find(|word| word.starts_with("session-x")).unwrap();
    assert_eq!(shown.len(), 36);
    let _ = workspace.args(["grade", "show", shown]).run().exit(0).stdout_contains(&long);
}
