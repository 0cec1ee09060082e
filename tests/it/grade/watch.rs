//! `selftest grade watch`

use super::recording::{Recording, id};
use crate::workspace::Workspace;

#[test]
fn one_look() {
    let workspace = Workspace::new()
        .old_session(&Recording::success(&id(1)), 2)
        .session(&Recording::stuck(&id(2)));
    let once = |quiet: &str| workspace.clone().grade(&["watch", "--once", "--quiet", quiet]);
    let run = once("3600").run().exit(0).stdout_contains(&id(1));
    assert!(!run.stdout.contains(&id(2)), "still being written: {}", run.stdout);
    let run = once("0").run().exit(0).stdout_contains(&id(2));
    assert!(!run.stdout.contains(&id(1)), "graded before: {}", run.stdout);
    assert_eq!(once("0").run().exit(0).stdout, "");
}

#[test]
fn one_line_of_json_for_each_grade() {
    let workspace =
        Workspace::new().session(&Recording::success(&id(1))).session(&Recording::stuck(&id(2)));
    let run = workspace.grade(&["watch", "--once", "--quiet=0", "--json"]).run().exit(0);
    let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let lines: Vec<_> = run.stdout.lines().map(parse).collect();
    let mut ids: Vec<_> = lines.iter().map(|grade| grade["session_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [id(1), id(2)]);
}

#[test]
fn spans_that_are_none() {
    for (flag, words) in [
        ("--quiet=-1", "0 to 86400 seconds"),
        ("--quiet=1e9", "0 to 86400 seconds"),
        ("--interval=nan", "expected a time above 0"),
    ] {
        let run = Workspace::new().grade(&["watch", "--once", flag]);
        let _ = run.file("sessions/a.jsonl", "").run().exit(2).stderr_contains(words);
    }
}

#[cfg(unix)]
#[test]
fn a_session_that_ends_is_graded_and_ctrl_c_is_a_good_end() {
    let workspace = Workspace::new().session(&Recording::success(&id(1))).grade(&[
        "watch",
        "--quiet",
        "0",
        "--interval",
        "0.1",
    ]);
    let running = workspace.spawn().until_stdout(&id(1));
    let _ = workspace.clone().session(&Recording::stuck(&id(2)));
    let running = running.until_stdout(&id(2));
    let run = running.signal(rustix::process::Signal::INT).wait().exit(0);
    let run = run.stdout_contains(&id(1)).stderr_contains("Ctrl-C ends it");
    assert_eq!(run.stdout.matches("COMPLETED").count(), 1, "one heading:\n{}", run.stdout);
}
