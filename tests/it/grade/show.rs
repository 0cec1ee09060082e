//! `selftest grade show`

use super::recording::{Recording, id};
use crate::workspace::Workspace;

fn graded() -> Workspace {
    let workspace = Workspace::new()
        .session(&Recording::on(&id(1), "2026-11-17T10:00:00Z", false))
        .session(&Recording::success(&id(2)));
    let _ = workspace.clone().grade(&["latest"]).run().exit(0);
    workspace
}

fn show(workspace: &Workspace, words: &[&str]) -> Workspace {
    workspace.clone().args([&["grade", "show"], words].concat())
}

#[test]
fn a_grade_with_its_evidence() {
    let _ = show(&graded(), &[&id(1)]).run().exit(0).snapshot("grade_show");
}

#[test]
fn evidence_names_events_that_sessions_show_numbers() {
    let workspace = graded();
    let json = show(&workspace, &["00000001", "--json"]).run().exit(0).json();
    let evidence = json["by_rules"]["details"]["evidence"].as_array().unwrap();
    let failed = evidence.iter().find(|one| one["point"] == "says_failed").unwrap();
    let transcript = workspace.args(["sessions", "show", "00000001", "--source", "sessions"]);
    let transcript = transcript.run().exit(0).stdout;
    let event = format!("#{} agent", failed["event"]);
    let (_, after) = transcript.split_once(&event).unwrap_or_else(|| panic!("{transcript}"));
    assert!(after.lines().nth(1).unwrap().contains("unable to reach"), "{transcript}");
}

#[test]
fn an_id_that_is_unknown_or_of_several() {
    let workspace = graded();
    let run = show(&workspace, &["feed"]).run().exit(2).one_error(&["\"feed\""]);
    let _ = run.stderr_contains("hint: `selftest grade latest`");
    let run = show(&workspace, &["0000"]).run().exit(2).one_error(&["2 session ids", "\"0000\""]);
    let _ = run.stderr_contains("hint: write more of the id");
    // Nothing in an id is a pattern.
    for id in ["%", "_", "0000000_"] {
        let _ = show(&workspace, &[id]).run().exit(2).one_error(&["no grade of a session"]);
    }
}
