//! `selftest grade agreement`: the rules against people and models, and weights that are proposed.

use super::recording::{Recording, id};
use crate::workspace::{CLEAR, Workspace};

/// So many sessions that say "done", and as many that gave up.
fn graded(pairs: u32) -> Workspace {
    let written = |workspace: Workspace, number: u32| {
        workspace
            .session(&Recording::success(&id(number)))
            .session(&Recording::stuck(&id(100 + number)))
    };
    let workspace = (0..pairs).fold(Workspace::new(), written);
    let _ = workspace.clone().grade(&["latest", "1000"]).run().exit(0);
    workspace
}

fn agreement(workspace: &Workspace) -> Workspace {
    workspace.clone().args(["grade", "agreement"])
}

/// A person says of every session that nothing was completed.
fn nothing_was_completed(workspace: &Workspace) {
    let _ = workspace.sql(
        "INSERT INTO grade_overrides \
         (session_id, field, rule_value, human_value, reason, made_at) \
         SELECT session_id, 'task_completed', task_completed, 0, 'looked at it', graded_at \
         FROM session_grades",
    );
}

#[test]
fn nobody_else_has_graded() {
    let _ = agreement(&graded(2)).run().exit(0).snapshot("grade_agreement_none");
    let _ = agreement(&Workspace::new()).run().exit(0).stdout_contains("0 sessions have a grade");
}

#[test]
fn people_and_models_are_compared_with_the_rules() {
    let workspace = graded(2);
    nothing_was_completed(&workspace);
    let _ = workspace.sql(
        "INSERT INTO session_quality_grades (session_id, grader_model, rubric_version, ts, \
         problem_solved, overall, reasoning) \
         SELECT session_id, 'qwen2.5-coder:7b', 1, graded_at, 0.9, 0.5, 'reads well' \
         FROM session_grades",
    );
    let run = agreement(&workspace).run().exit(0).snapshot("grade_agreement");
    let _ = run.stdout_contains("no weights are proposed");
    let json = workspace.args(["grade", "agreement", "--json"]).run().exit(0).json();
    assert_eq!(json["sessions"], 4);
    let agreeing: Vec<(&str, &str, u64, u64)> = json["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let share = &one["agreeing"];
            let text = |field: &str| one[field].as_str().unwrap();
            let count = |field: &str| share[field].as_u64().unwrap();
            (text("against"), text("field"), count("count"), count("of"))
        })
        .collect();
    let model = "qwen2.5-coder:7b";
    assert_eq!(
        agreeing,
        [
            ("people", "task_completed", 2, 4),
            (model, "task_completed", 2, 4),
            (model, "response_quality", 2, 4),
        ]
    );
}

#[test]
fn proposed_weights_can_be_pasted_into_the_configuration() {
    let workspace = graded(12);
    nothing_was_completed(&workspace);
    let configuration = format!("version: 1\nscenarios:\n{CLEAR}");
    let workspace = workspace.config(&configuration);
    let run = agreement(&workspace).run().exit(0);
    let run = run.stdout_contains("completion weights, 24 judged sessions: mean loss 0.500 now");
    assert_eq!(run.read("config/selftest.yaml"), configuration, "nothing is changed by itself");

    let (_, yaml) = run.stdout.split_once("nothing is changed by itself:\n\n").unwrap();
    assert!(yaml.starts_with("grade:\n  weights:\n    completion:\n      "), "{yaml}");
    let workspace = workspace.config(configuration + yaml);
    let _ = workspace.clone().args(["config", "check"]).run().exit(0);

    // Graded by the new weights, the rules say what the person said. Files that have not changed
    // are read again because the weights have.
    let json = workspace.clone().grade(&["latest", "100", "--json"]).run().exit(0).json();
    let grades = json["grades"].as_array().unwrap();
    assert_eq!(grades.len(), 24);
    assert!(grades.iter().all(|grade| grade["task_completed"] == false), "{json:#}");
    let _ = workspace.grade(&["latest"]).run().exit(0).stderr_contains("24 unchanged, 0 read");
}
