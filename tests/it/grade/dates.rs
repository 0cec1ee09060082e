//! Every command goes by one date of a session, and leaves out the same ones where it has none.

use serde_json::Value;

use super::recording::{Recording, id};
use crate::clock;
use crate::server::site::Site;
use crate::workspace::Workspace;

/// One with times, one with a date in its name, one without any, and one of a clock in 2099.
fn four() -> Workspace {
    let chat = r#"[{"role":"user","content":"hello"},{"role":"assistant","content":"Hello!"}]"#;
    let yesterday = clock::hours_ago(24).strftime("%Y-%m-%d").to_string();
    Workspace::new()
        .session(&Recording::on(&id(1), &clock::hours_ago(48).to_string(), true))
        .session(&Recording::on(&id(2), "2099-01-01T08:00:00Z", true))
        .file(&format!("sessions/chat_{yesterday}.json"), chat)
        .file("sessions/undated.json", chat)
}

fn ids(rows: &Value) -> Vec<String> {
    let rows = rows.as_array().unwrap_or_else(|| panic!("{rows:#}"));
    let id = |row: &Value| {
        let id = row.get("session_id").unwrap_or(&row["id"]).as_str().unwrap();
        id.split(['_', '-']).next().unwrap().to_owned()
    };
    rows.iter().map(id).collect()
}

#[test]
fn the_same_in_every_command() {
    let workspace = four();
    let sessions = |words: &[&str]| {
        let words = [&["sessions"], words, &["--source", "sessions"]].concat();
        workspace.clone().args(words).run().exit(0)
    };
    // Undated ones come last, however new their files are.
    let run = sessions(&["list", "--json"]);
    let listed = ids(&run.json());
    assert_eq!(listed[..2], ["chat", "00000001"]);
    assert_eq!(listed.len(), 4);
    assert_eq!(ids(&sessions(&["list", "--json", "--limit=2"]).json()), ["chat", "00000001"]);
    assert_eq!(ids(&sessions(&["list", "--json", "--since=7d"]).json()), ["chat", "00000001"]);
    sessions(&["list"]).stderr_contains("2 sessions without a date, listed last");

    let run = workspace.clone().grade(&["latest", "--json"]).run().exit(0);
    assert_eq!(ids(&run.json()["grades"])[..2], ["chat", "00000001"]);
    let run = workspace.clone().grade(&["summary", "--days=7"]).run().exit(0);
    run.stdout_contains("2 sessions graded in the last 7 days")
        .stdout_contains("2 sessions without a date not counted");
    let json = workspace.clone().grade(&["summary", "--days=7", "--json"]).run().exit(0).json();
    assert_eq!((&json["undated"], &json["patterns"]["sessions"]), (&2.into(), &2.into()));
    for week in ["2026-W48", "2099-W01"] {
        let run = workspace.clone().grade(&["weekly", "--no-scan", "--json", "--week", week]).run();
        let json = run.json();
        let counted = if week == "2026-W48" { 2 } else { 0 };
        assert_eq!(json["summary"]["sessions"], counted, "{json:#}");
        assert_eq!(json["coverage"]["undated"], 2, "{json:#}");
    }
    let run = workspace
        .clone()
        .args(["improve", "gaps", "detect", "--source", "sessions", "--json"])
        .run();
    let json = run.json();
    assert_eq!((&json["sessions"], &json["undated"]), (&2.into(), &2.into()), "{json:#}");

    let site = Site::start(workspace);
    let listed = site.get("/api/sessions").json();
    assert_eq!(ids(&listed["items"])[..2], ["chat", "00000001"]);
    assert!(listed["items"][3]["counts_at"].is_null(), "{listed:#}");
    let patterns = site.get("/api/patterns?days=7").json();
    assert_eq!((&patterns["sessions"], &patterns["undated"]), (&2.into(), &2.into()));
}
