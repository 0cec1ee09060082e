//! `selftest grade override`: a person's word beside that of the rules.

use super::recording::{Recording, id};
use crate::clock;
use crate::databases::on_each_database;
use crate::workspace::Workspace;

on_each_database! {
    both_grades_are_kept_and_the_persons_counts,
    it_outlives_a_new_grade,
}

fn graded(workspace: Workspace) -> Workspace {
    let workspace =
        workspace.session(&Recording::success(&id(1))).session(&Recording::stuck(&id(2)));
    let _ = workspace.clone().grade(&["latest"]).run().exit(0);
    workspace
}

fn overriding(workspace: &Workspace, words: &[&str]) -> Workspace {
    workspace.clone().args([&["grade", "override"], words].concat())
}

const TRUE: [&str; 3] =
    ["00000002", "--task-completed=true", "--reason=the server was down for good"];

fn both_grades_are_kept_and_the_persons_counts(workspace: Workspace) {
    let workspace = graded(workspace);
    let run = overriding(&workspace, &TRUE).run().exit(0);
    let _ = run.stdout_contains("task_completed is now true (the rules say false)");
    let last = ["00000002", "--response-quality=4", "--errors-recovered", "true", "--reason", "b"];
    let _ = overriding(&workspace, &last).run().exit(0);

    let show = workspace.clone().args(["grade", "show", "00000002", "--json"]);
    let json = show.run().exit(0).json();
    assert_eq!(json["by_rules"]["task_completed"], false);
    assert_eq!(json["counts"]["task_completed"], true);
    assert_eq!(
        (&json["by_rules"]["response_quality"], &json["counts"]["response_quality"]),
        (&2.into(), &4.into())
    );
    assert_eq!(json["overrides"].as_array().unwrap().len(), 3);
    let card = workspace.clone().args(["grade", "show", "00000002"]).run().exit(0);
    let _ =
        card.stdout_contains("false by the rules, true by a person: the server was down for good");

    let completed = |words: &[&str]| {
        let json = workspace.clone().grade(&[words, &["--json"]].concat()).run().exit(0).json();
        json["summary"]["completion_rate"]["count"].as_u64().unwrap()
    };
    assert_eq!(completed(&["summary"]), 2);
    assert_eq!(completed(&["weekly", "--week", &week()]), 2);
    let rules = workspace.sql("SELECT task_completed FROM session_grades ORDER BY session_id");
    assert_eq!(rules, [["1"], ["0"]]);
}

/// The week of sessions that began an hour ago.
fn week() -> String {
    let date = clock::hours_ago(1).to_zoned(jiff::tz::TimeZone::UTC).date().iso_week_date();
    format!("{:04}-W{:02}", date.year(), date.week())
}

fn it_outlives_a_new_grade(workspace: Workspace) {
    let workspace = graded(workspace);
    let _ = overriding(&workspace, &TRUE).run().exit(0);
    let more =
        Recording::stuck(&id(2)).asks("Try again").says("The deployment failed again, sorry.");
    let workspace = workspace.session(&more);
    assert_eq!(workspace.clone().grade(&["latest", "--json"]).run().exit(0).graded(), [id(2)]);
    let json = workspace.args(["grade", "show", "00000002", "--json"]).run().exit(0).json();
    assert_eq!(json["counts"]["task_completed"], true);
}

#[test]
fn the_newest_word_counts() {
    let workspace = graded(Workspace::new());
    for said in ["2", "5"] {
        let quality = format!("--response-quality={said}");
        let _ = overriding(&workspace, &["00000001", &quality, "--reason=x"]).run().exit(0);
    }
    let json = workspace.args(["grade", "show", "00000001", "--json"]).run().exit(0).json();
    assert_eq!(json["counts"]["response_quality"], 5);
}

#[test]
fn what_cannot_be_said() {
    let workspace = graded(Workspace::new());
    for (words, part) in [
        (&["00000001", "--response-quality=6", "--reason=x"][..], "--response-quality"),
        (&["00000001", "--tool-calls-efficient=0", "--reason=x"], "--tool-calls-efficient"),
        (&["00000001", "--task-completed=maybe", "--reason=x"], "--task-completed"),
        (&["00000001", "--reason=x"], "--task-completed"),
        (&["00000001", "--task-completed=true"], "--reason"),
        (&["00000001", "--task-completed=true", "--reason= "], "--reason"),
        (&["feed", "--task-completed=true", "--reason=x"], "\"feed\""),
        (&["0000", "--task-completed=true", "--reason=x"], "2 session ids"),
    ] {
        let _ = overriding(&workspace, words).run().exit(2).stderr_contains(part);
    }
    assert_eq!(workspace.sql("SELECT id FROM grade_overrides"), [[""; 0]; 0]);
}
