//! `selftest grade summary`

use serde_json::Value;

use super::recording::{Recording, id};
use crate::clock;
use crate::workspace::Workspace;

fn days_ago(number: u32, days: i64, succeeds: bool) -> Recording {
    Recording::on(&id(number), &clock::hours_ago(24 * days).to_string(), succeeds)
}

/// Two sessions of this week, one of them done, and one of three weeks ago.
fn three() -> Workspace {
    Workspace::new()
        .session(&days_ago(1, 1, true))
        .session(&days_ago(2, 2, false))
        .session(&days_ago(3, 20, true))
}

fn completed(json: &Value) -> (Option<u64>, Option<u64>) {
    let share = &json["summary"]["completion_rate"];
    (share["count"].as_u64(), share["of"].as_u64())
}

#[test]
fn a_week_by_default_or_as_many_days_as_asked_for() {
    let workspace = three();
    let run = workspace.clone().grade(&["summary"]).run().exit(0);
    run.stdout_contains("2 sessions graded in the last 7 days")
        .stdout_contains("50 % (1 of 2)")
        .stderr_contains("3 files found, 0 unchanged, 3 read: 3 sessions graded");
    let run = workspace.clone().grade(&["summary", "--days", "30"]).run().exit(0);
    let run = run.stdout_contains("3 sessions graded in the last 30 days");
    run.stdout_contains("Tools with most errors").stdout_contains("Bash");
    let json = workspace.grade(&["summary", "--days=30", "--json"]).run().exit(0).json();
    assert_eq!(json["days"], 30);
    assert_eq!(completed(&json), (Some(2), Some(3)));
    assert_eq!(json["patterns"]["tools"]["items"][0]["tool"], "Bash", "{json:#}");
}

#[test]
fn without_a_scan_nothing_is_graded() {
    let workspace = three();
    let unscanned = workspace.clone().grade(&["summary", "--no-scan", "--json"]);
    assert_eq!(completed(&unscanned.run().exit(4).json()), (Some(0), Some(0)));
    let _ = workspace.clone().grade(&["latest"]).run().exit(0);
    let _ = workspace.session(&days_ago(4, 3, true));
    assert_eq!(completed(&unscanned.run().exit(0).json()), (Some(1), Some(2)));
}

#[test]
fn one_agent_only() {
    let chat = r#"[{"role":"user","content":"hello"},{"role":"assistant","content":"Hello!"}]"#;
    let workspace = three().file("sessions/chat-2026-11-24.json", chat);
    let _ = workspace.clone().grade(&["latest"]).run().exit(0);
    let json = workspace.grade(&["summary", "--agent=chat", "--json"]).run().exit(0).json();
    assert_eq!(completed(&json).1, Some(1));
}

#[test]
fn a_time_without_sessions_names_the_newest() {
    let workspace = Workspace::new().session(&days_ago(1, 20, true)).grade(&["summary"]);
    let run = workspace.run().exit(4).stdout_contains("0 sessions graded in the last 7 days");
    run.stderr_contains("hint: the newest graded session is of").stderr_contains("--days");
}

#[test]
fn days_that_are_none() {
    for days in ["0", "-1", "soon", "99999999"] {
        let run =
            Workspace::new().args(["grade", "summary", &format!("--days={days}")]).run().exit(2);
        let _ = run.stderr_contains("--days");
    }
}
