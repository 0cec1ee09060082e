//! `selftest sessions label` and `selftest sessions estimate`: whether tasks truly succeeded, as
//! people and files say, and what follows for sessions without a label.

use std::fmt::Write as _;

use super::recording::{Recording, id};
use crate::databases::on_each_database;
use crate::run::Run;
use crate::workspace::Workspace;

on_each_database! {
    labels_are_given_by_hand_and_by_file,
    enough_labels_make_an_estimate,
}

fn labelling(workspace: &Workspace, words: &[&str]) -> Run {
    workspace.clone().args([&["sessions", "label"], words].concat()).run()
}

fn estimate(workspace: &Workspace, words: &[&str]) -> Run {
    workspace.clone().args([&["sessions", "estimate"], words].concat()).run().exit(0)
}

fn labels_are_given_by_hand_and_by_file(workspace: Workspace) {
    let workspace =
        workspace.session(&Recording::success(&id(1))).session(&Recording::stuck(&id(2)));
    let _ = workspace.clone().grade(&["latest"]).run().exit(0);
    let none = estimate(&workspace, &[]).stdout_contains("no labels; 1 project without one");
    assert!(none.stderr.contains("hint: `selftest sessions label ID"), "{}", none.stderr);

    let run = labelling(&workspace, &["00000001", "--success", "--note", "looked at it"]).exit(0);
    let _ = run.stdout_contains("1 label, 1 of success");
    let lines = format!(
        "{{\"session_id\": \"{}\", \"reward\": 0.4, \"task\": \"deploy\"}}\n\
         {{\"session_id\": \"nobody\", \"success\": true}}\n",
        id(2)
    );
    let workspace = workspace.file("labels.jsonl", lines);
    let run = labelling(&workspace, &["--labels", "labels.jsonl"]).exit(0);
    let run = run.stdout_contains("2 labels, 1 of success");
    assert!(run.stderr.contains("1 of 2 labels are of sessions without a grade"), "{}", run.stderr);
    let rows = "SELECT session_id, success, source, task, note FROM session_labels \
                ORDER BY session_id";
    let by_hand = [&id(1), "1", "person", "", "looked at it"].map(String::from);
    let by_file = [&id(2), "0", "file", "deploy", ""].map(String::from);
    let unknown = ["nobody", "1", "file", "", ""].map(String::from);
    assert_eq!(workspace.sql(rows), [by_hand, by_file, unknown]);
    let _ = estimate(&workspace, &[]).stdout_contains("not enough labels (2 of 40)");

    // The newest word counts, an override's too.
    let words = ["grade", "override", "00000002", "--task-completed=true", "--reason=it works"];
    let _ = workspace.clone().args(words).run().exit(0);
    let json = estimate(&workspace, &["--json"]).json();
    assert_eq!(json[0]["estimate"]["state"], "not_enough_labels");
    assert_eq!(json[0]["estimate"]["successes"], 2);
}

fn enough_labels_make_an_estimate(workspace: Workspace) {
    let mut workspace = workspace;
    let mut labels = String::new();
    for number in 0..44 {
        let id = id(number);
        // Every eleventh goes against the rule, so that no feature separates them perfectly.
        let success = (number % 2 == 0) != (number % 11 == 5);
        let session = if number % 2 == 0 { Recording::success(&id) } else { Recording::stuck(&id) };
        workspace = workspace.session(&session);
        let task = number / 2;
        let _ = writeln!(
            labels,
            r#"{{"session_id": "{id}", "success": {success}, "task": "task {task}"}}"#
        );
    }
    let unlabelled = Recording::stuck(&id(50));
    let workspace = workspace.session(&unlabelled).file("labels.jsonl", labels);
    let _ = workspace.clone().grade(&["latest", "100"]).run().exit(0);
    let _ = labelling(&workspace, &["--labels", "labels.jsonl"]).exit(0);
    let json = estimate(&workspace, &["--json"]).json();
    let (fit, doubtful) = (&json[0]["estimate"], &json[0]["doubtful"]);
    assert_eq!((&fit["state"], &fit["labels"]), (&"fitted".into(), &44.into()), "{fit}");
    assert_eq!(fit["tasks"], 22);
    let low = fit["auc_interval"]["low"].as_f64().unwrap();
    assert!(low > 0.5 && fit["auc"].as_f64().unwrap() < 1.0, "{fit}");
    assert_eq!(doubtful[0]["session_id"], id(50).as_str(), "{doubtful}");
    assert!(doubtful[0]["probability"].as_f64().unwrap() < 0.5, "{doubtful}");
    let project = json[0]["project"].as_str().unwrap();
    let run = estimate(&workspace, &["--project", project]);
    let run = run.stdout_contains("44 labels of 22 tasks").stdout_contains("Brier score");
    let _ = run.stdout_contains("least probable successes without a label");
}

/// A benchmark's file says itself how its runs ended.
#[test]
fn rewards_in_a_file_are_verdicts_and_labels() {
    let run = |task: u32, reward: &str| {
        format!(
            r#"{{"task_id":{task},"reward":{reward},"trial":0,"traj":[
            {{"role":"user","content":"Please move my flight to Monday, number {task}."}},
            {{"role":"assistant","content":null,"tool_calls":[{{"id":"c1","type":"function",
              "function":{{"name":"move_flight","arguments":"{{}}"}}}}]}},
            {{"role":"tool","tool_call_id":"c1","name":"move_flight","content":"moved"}},
            {{"role":"assistant","content":"Done: your flight has been moved to Monday."}}]}}"#
        )
    };
    let runs = [run(1, "1.0"), run(2, "0.0"), run(3, "0.5")].join(",");
    let workspace = Workspace::new().file("runs.json", format!("[{runs}]"));
    let _ = workspace.clone().args(["grade", "file", "runs.json"]).run().exit(0);
    let rows = "SELECT outcome FROM session_grades ORDER BY session_id";
    assert_eq!(workspace.sql(rows), [["checks_passed"], ["contradicted"], ["claimed"]]);
    let run = workspace.clone().args(["grade", "show", "runs#2"]).run().exit(0);
    let _ =
        run.stdout_contains("a verifier found the task not done").stdout_contains("reward: 0.0");
    let words = ["sessions", "show", "runs#1", "--source", "runs.json"];
    let run = workspace.clone().args(words).run().exit(0);
    let _ = run.stdout_contains("[a verifier found it done]");
    let _ = estimate(&workspace, &[]).stdout_contains("not enough labels (2 of 40)");
    // What a person says counts before it.
    let _ = labelling(&workspace, &["runs#1", "--failure"]).exit(0);
    let json = estimate(&workspace, &["--json"]).json();
    assert_eq!(
        (&json[0]["estimate"]["labels"], &json[0]["estimate"]["successes"]),
        (&2.into(), &0.into())
    );
}

#[test]
fn what_cannot_be_a_label_is_said() {
    let workspace = Workspace::new().file("bad.jsonl", "{\"id\": \"a\"}\n");
    let run = labelling(&workspace, &["--labels", "bad.jsonl"]).exit(2);
    let said = "bad.jsonl: line 1: nothing says whether it succeeded: expected one of success";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    let run = labelling(&workspace, &["--labels", "none.jsonl"]).exit(2);
    assert!(run.stderr.contains("cannot read none.jsonl"), "{}", run.stderr);
    let run = labelling(&workspace, &["abc", "--failure"]).exit(2);
    assert!(run.stderr.contains("no grade of a session whose id starts"), "{}", run.stderr);
    let _ = labelling(&workspace, &["abc"]).exit(2);
    let _ = labelling(&workspace, &["abc", "--labels", "bad.jsonl"]).exit(2);
    let words = ["sessions", "estimate", "--project", "/nowhere"];
    let run = workspace.args(words).run().exit(2);
    assert!(run.stderr.contains("no graded session is of the project /nowhere"), "{}", run.stderr);
}

/// Precision, recall and lift of each outcome, by the folder of the runs, beside the last message.
#[test]
fn outcomes_of_labelled_runs_are_compared_with_the_base_rate() {
    let mut workspace = Workspace::new();
    let mut labels = String::new();
    for number in 0..12 {
        let name = id(number);
        let success = number % 3 == 0;
        let session = if number < 6 { Recording::success(&name) } else { Recording::stuck(&name) };
        let folder = if number % 2 == 0 { "even" } else { "odd" };
        workspace = workspace.file(&format!("runs/{folder}/{name}.jsonl"), session.text());
        let _ = writeln!(labels, r#"{{"session_id": "{name}", "success": {success}}}"#);
    }
    let workspace = workspace.file("labels.jsonl", labels);
    let _ = workspace.clone().args(["grade", "latest", "100", "--source", "runs"]).run().exit(0);
    let outcomes =
        |words: &[&str]| workspace.clone().args([&["sessions", "outcomes"], words].concat()).run();
    let run = outcomes(&[]).exit(4);
    assert!(run.stderr.contains("no graded session has a label"), "{}", run.stderr);

    let json = outcomes(&["--labels", "labels.jsonl", "--by", "folder", "--json"]).exit(0).json();
    let sources: Vec<&str> =
        json.as_array().unwrap().iter().map(|one| one["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["even", "odd"]);
    assert_eq!((&json[0]["all"]["count"], &json[0]["all"]["of"]), (&2.into(), &6.into()));
    let named = |name: &str| {
        let rows = json[0]["outcomes"].as_array().unwrap();
        rows.iter().find(|row| row["seen"] == name).unwrap()
    };
    assert_eq!(named("checks_passed")["succeeded"]["of"], 0, "{json:#}");
    assert_eq!(named("checks_passed")["lift"], serde_json::Value::Null);
    assert_eq!(named("claimed")["succeeded"]["of"], 3, "{json:#}");
    assert_eq!(json[0]["baseline"][0]["seen"], "says_done");

    let run = outcomes(&["--labels", "labels.jsonl"]).exit(0);
    let run = run.stdout_contains("not measured").stdout_contains("last words: done");
    assert!(run.stderr.contains("beyond chance"), "{}", run.stderr);
    // Nothing was stored.
    let _ = outcomes(&[]).exit(4);
}

/// Runs of benchmarks have no dates and are labelled by their file.
#[test]
fn an_undated_session_is_labelled_by_its_file() {
    let chat = r#"[{"role":"user","content":"fix it"},{"role":"assistant","content":"Done: it is fixed."}]"#;
    let workspace = Workspace::new()
        .file("runs/django__django-1.json", chat)
        .file("labels.jsonl", "{\"instance_id\": \"django__django-1\", \"resolved\": false}\n");
    let _ = workspace.clone().args(["grade", "latest", "--source", "runs"]).run().exit(0);
    let words = ["sessions", "outcomes", "--labels", "labels.jsonl", "--json"];
    let json = workspace.args(words).run().exit(0).json();
    assert_eq!(json[0]["all"]["of"], 1, "{json:#}");
}
