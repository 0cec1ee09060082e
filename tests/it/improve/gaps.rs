//! Finding gaps (docs/spec/skills-and-signals.md#gaps-and-proposals).

use serde_json::Value;

use super::{detect, four_gaps};
use crate::clock;
use crate::databases::on_each_database;
use crate::grade::recording::{Recording, id};
use crate::server::site::field;
use crate::workspace::Workspace;

on_each_database! {
    gaps_are_found_once,
    requests_that_people_had_to_repeat,
    a_closed_gap_stays_closed_until_it_shows_again,
}

fn keys(json: &Value) -> Vec<String> {
    let mut keys = field(json["gaps"].as_array().unwrap(), "key");
    keys.sort();
    keys
}

/// docs/maintain-skills.md#skill-gaps: one row per gap with its evidence, de-duplicated over weeks.
fn gaps_are_found_once(workspace: Workspace) {
    let workspace = four_gaps(workspace);
    let first = detect(&workspace).run().exit(0).json();
    assert_eq!(
        keys(&first),
        [
            "tool_error:file_not_found:Read",
            "tool_error:network_error:Fetch",
            "tool_error:permission_denied:Write",
            "tool_error:timeout:Wait",
        ]
    );
    assert_eq!((&first["new"], &first["sessions"]), (&Value::from(4), &Value::from(3)));
    let gap = &first["gaps"][0];
    assert_eq!((&gap["sessions"], &gap["weeks"]), (&Value::from(3), &Value::from(1)));
    let evidence = gap["evidence"].as_array().unwrap();
    assert_eq!(evidence.len(), 3);
    let event = evidence[0]["event"].as_u64().unwrap();
    assert!(event > 0, "{gap}");

    let again = detect(&workspace).run().exit(0).json();
    assert_eq!((keys(&again), &again["new"]), (keys(&first), &Value::from(0)));
    let _ = workspace.clone().args(["improve", "gaps", "list"]).run().exit(0).snapshot("gaps_list");

    // A month later, as the database has it: another week, the same row.
    workspace.sql("UPDATE skill_gaps SET last_week = '2020-W01'");
    let later = detect(&workspace).run().exit(0).json();
    assert_eq!((&later["new"], &later["gaps"][0]["weeks"]), (&Value::from(0), &Value::from(2)));
}

/// docs/maintain-skills.md#skill-gaps: repeated requests, from what people said in the sessions.
fn requests_that_people_had_to_repeat(workspace: Workspace) {
    let session = |workspace: Workspace, number: u32| {
        let recording = Recording::new(&id(number))
            .asks("Sort the export by date")
            .says("Sorted by name.")
            .asks("no, sort the export by date")
            .says("Sorted by date, the export is done.");
        workspace.session(&recording)
    };
    let workspace = (1..=3).fold(workspace, session);
    let found = detect(&workspace).run().exit(0).json();
    assert_eq!(found["repeated_requests"], 3);
    let gap = &found["gaps"][0];
    assert_eq!(
        (gap["kind"].as_str(), gap["sessions"].as_u64()),
        (Some("repeated_request"), Some(3))
    );
    assert_eq!(gap["subject"], "no, sort the export by date");
    assert_eq!(detect(&workspace).run().exit(0).json()["new"], 0);
}

#[test]
fn nothing_to_look_at() {
    let run = detect(&Workspace::new().file("sessions/notes.txt", "x")).run().exit(4);
    assert_eq!(run.json()["gaps"], Value::Array(Vec::new()));
    let _ =
        Workspace::new().args(["improve", "gaps", "list"]).run().exit(0).stderr_contains("no gaps");
    let _ = Workspace::new()
        .args(["improve", "gaps", "propose"])
        .run()
        .exit(4)
        .stderr_contains("no open gaps");
    let unknown = Workspace::new().args(["improve", "gaps", "propose", "gap-x"]).run().exit(2);
    unknown.one_error(&["gap-x"]).stderr_contains("selftest improve gaps list --all");
}

/// docs/spec/skills-and-signals.md#gaps-and-proposals: a gap that a skill was made for is not open,
/// until it shows again.
fn a_closed_gap_stays_closed_until_it_shows_again(workspace: Workspace) {
    let workspace = four_gaps(workspace);
    let _ = detect(&workspace).run().exit(0);
    let status = || workspace.sql("SELECT DISTINCT status FROM skill_gaps")[0][0].clone();
    let set = |status: &str, hours: i64| {
        let at = clock::hours_ago(hours);
        let set = format!("UPDATE skill_gaps SET status = '{status}', status_at = '{at:.9}'");
        let _ = workspace.sql(&set);
    };
    let reopened = || detect(&workspace).run().exit(0).json()["reopened"].clone();
    set("closed", 0);
    assert_eq!((reopened(), &*status()), (0.into(), "closed"));
    set("closed", 24);
    assert_eq!((reopened(), &*status()), (4.into(), "open"));
    set("dismissed", 24);
    assert_eq!((reopened(), &*status()), (0.into(), "dismissed"));
}
