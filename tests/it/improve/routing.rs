//! Routing, recommendations and calibration (docs/spec/session-grades.md#routing).

use serde_json::{Value, json};

use crate::databases::on_each_database;
use crate::grade::recording::{Recording, id};
use crate::workspace::Workspace;

on_each_database! {
    what_goes_badly_needs_a_larger_model,
    tiers_and_skills_come_from_the_configuration,
    calibration_says_who_is_apart,
}

/// Six sessions of testing that failed, and six of debugging that went well.
pub(crate) fn two_task_types(workspace: Workspace) -> Workspace {
    let session = |workspace: Workspace, number: u32| {
        workspace
            .session(&Recording::stuck(&id(number)))
            .session(&Recording::success(&id(100 + number)))
    };
    let workspace = (1..=6).fold(workspace, session);
    let _ = workspace.clone().grade(&["latest", "100"]).run().exit(0);
    workspace
}

fn route(workspace: &Workspace, words: &[&str]) -> Workspace {
    workspace.clone().args([&["improve", "route"], words].concat())
}

/// docs/spec/session-grades.md#routing: a task type below 3 goes to a more capable model.
fn what_goes_badly_needs_a_larger_model(workspace: Workspace) {
    let workspace = two_task_types(workspace);
    let _ = route(&workspace, &[]).run().exit(0).snapshot("route");
    let routing = route(&workspace, &["testing", "--json"]).run().exit(0).json();
    let advice = &routing["items"][0];
    assert_eq!((&advice["task_type"], &advice["tier"]), (&json!("testing"), &json!("large")));
    assert!(advice["score"].as_f64().unwrap() < 3.0, "{advice}");
    assert_eq!(advice["sessions"], 6);
    assert_eq!(advice["trend"]["direction"], "unknown");
    assert_eq!(routing["items"].as_array().unwrap().len(), 1);
    let well = route(&workspace, &["debugging", "--json"]).run().exit(0).json();
    assert_ne!(well["items"][0]["tier"], "large");
    assert_eq!(well["recommendations"], json!([]));
}

/// docs/spec/session-grades.md#skill-recommendations, with a table of one's own.
fn tiers_and_skills_come_from_the_configuration(workspace: Workspace) {
    let tables = "version: 1\nrouting:\n  tiers: [{ name: opus, min_score: 1.0 }]\n  \
                  skills: [{ task_type: testing, skill: careful-testing }]\nscenarios:\n  \
                  - { id: a, description: b, expected_status: COMPLETE }\n";
    let workspace = two_task_types(workspace).config(tables);
    let _ =
        workspace.clone().args(["improve", "gaps", "detect", "--source=sessions"]).run().exit(0);
    let routing = route(&workspace, &["testing", "--json"]).run().exit(0).json();
    assert_eq!(routing["items"][0]["tier"], "opus");
    let help = &routing["recommendations"][0];
    assert_eq!(help["skills"], json!(["careful-testing"]));
    let gaps = help["gaps"].as_array().unwrap();
    assert!(gaps.iter().any(|gap| gap["description"].as_str().unwrap().contains("testing")));
    let run = route(&workspace, &["testing"]).run().exit(0);
    let _ = run.stdout_contains("testing is weak").stdout_contains("skill careful-testing");
}

/// docs/spec/session-grades.md#routing: no score is made up.
#[test]
fn types_without_sessions_and_types_that_are_none() {
    let workspace = two_task_types(Workspace::new());
    let routing = route(&workspace, &["deployment", "--json"]).run().exit(4).json();
    assert_eq!(routing["items"][0]["score"], Value::Null);
    let run = route(&workspace, &["cooking"]).run().exit(2);
    let _ = run.stderr_contains("code_review").stderr_contains("cooking");
    let _ = route(&Workspace::new(), &[]).run().exit(4).stderr_contains("no grades");
}

/// docs/spec/session-grades.md#calibration, #human-overrides: rules, models and people, each
/// against each.
fn calibration_says_who_is_apart(workspace: Workspace) {
    let workspace = two_task_types(workspace);
    let _ = workspace
        .clone()
        .args(["grade", "calibration"])
        .run()
        .exit(0)
        .stdout_contains("none of them has a second grade yet");
    workspace.sql(
        "INSERT INTO grade_overrides \
         (session_id, field, rule_value, human_value, reason, made_at) \
         SELECT session_id, 'task_completed', task_completed, 0, 'looked at it', graded_at \
         FROM session_grades",
    );
    workspace.sql(
        "INSERT INTO session_quality_grades (session_id, grader_model, rubric_version, ts, \
         problem_solved, overall, reasoning) \
         SELECT session_id, 'qwen2.5-coder:7b', 1, graded_at, 0.9, 0.5, 'reads well' \
         FROM session_grades",
    );
    let run = workspace.clone().args(["grade", "calibration"]).run().exit(0);
    let _ = run.snapshot("grade_calibration");
    let json = workspace.args(["grade", "calibration", "--json"]).run().exit(0).json();
    let pairs = json["discrepancies"].as_array().unwrap();
    let model = pairs.iter().find(|one| one["rater"] != "rules").unwrap();
    assert_eq!((&model["against"], &model["mean_difference"]), (&json!("people"), &json!(-1.0)));
    assert_eq!(model["exceeds"], true);
}
