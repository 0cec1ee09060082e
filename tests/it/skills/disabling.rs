//! Which skills are disabled without being asked: docs/spec/skills-and-signals.md#disabling, and
//! the second reason of #differences-skills.

use serde_json::json;

use crate::clock;
use crate::workspace::Workspace;

fn score(workspace: &Workspace) -> serde_json::Value {
    workspace.skills(&["score", "--auto-disable", "--json"]).run().exit(0).json()
}

/// Sets what users showed after all executions of a skill.
fn marked(workspace: &Workspace, name: &str, flag: &str) {
    workspace.sql(&format!(
        "UPDATE skill_executions SET {flag} = 1 WHERE skill_version_id IN \
         (SELECT id FROM skill_versions WHERE skill_name = '{name}')"
    ));
}

/// docs/spec/skills-and-signals.md#disabling: 0.3, 10 executions, and its audit row.
#[test]
fn a_score_below_the_threshold_over_ten_executions_disables() {
    let workspace = Workspace::new()
        .promoted("bad", "# Bad")
        .promoted("good", "# Good")
        .promoted("young", "# Young")
        .used("bad", "success", 7)
        .used("bad", "error", 3)
        .used("good", "success", 10)
        .used("young", "error", 9);
    for flag in ["user_edited_output", "user_repeated_request"] {
        marked(&workspace, "bad", flag);
    }
    let json = score(&workspace);
    // 0.4 * 0.7, and nothing for edits and repeats: below 0.3.
    let reason = json!({ "rule": "low_score", "score": 0.28, "threshold": 0.3, "executions": 10 });
    assert_eq!(
        json["disabled"],
        json!([{
            "skill_name": "bad", "version": "1", "score": 0.28, "total_executions": 10,
            "reasons": [reason], "refresh_faults": [],
        }])
    );
    assert_eq!(workspace.statuses("bad"), ["1 disabled"]);
    assert_eq!(workspace.statuses("young"), ["1 active"], "nine executions are too few");
    let json = workspace.skills(&["history", "bad", "--json"]).run().exit(0).json();
    let entry = &json["audit"][1];
    assert_eq!((&entry["action"], &entry["reasons"]), (&json!("auto_disable"), &json!([reason])));
    assert_eq!(entry["actor"], "cli");
    let run = workspace.skills(&["list"]).run().exit(0);
    let _ = run.stdout_contains("score 0.28 over 10 executions, below 0.30");
    // A disabled skill is neither scored nor disabled again.
    let json = score(&workspace);
    let names: Vec<_> =
        json["scores"].as_array().unwrap().iter().map(|one| &one["skill_name"]).collect();
    assert_eq!((names, &json["disabled"]), (vec![&json!("good"), &json!("young")], &json!([])));
}

/// docs/spec/skills-and-signals.md#scoring-all-skills: scoring is not disabling.
#[test]
fn scoring_alone_disables_nothing() {
    let workspace = Workspace::new().promoted("bad", "# Bad").used("bad", "error", 30);
    let json = workspace.skills(&["score", "--json"]).run().exit(0).json();
    assert_eq!((&json["scores"][0]["score"], &json["disabled"]), (&json!(0.45), &json!([])));
    assert_eq!(workspace.statuses("bad"), ["1 active"]);
}

/// docs/spec/skills-and-signals.md#differences-skills: the second reason disables.
#[test]
fn a_skill_that_always_fails_is_disabled_though_users_stay_silent() {
    let workspace = Workspace::new().promoted("bad", "# Bad").used("bad", "error", 10);
    let run = workspace.skills(&["score", "--auto-disable"]).run().exit(0);
    let run = run.stdout_contains("disabled: bad, version 1: 0 of 10 executions succeeded");
    let _ = run.stdout_contains("at most 28 % (95 % interval), below 50 %");
    let json = workspace.skills(&["list", "--json"]).run().exit(0).json();
    assert_eq!(json[0]["status"], "disabled");
    assert_eq!(json[0]["effectiveness_score"], 0.45);
    assert_eq!(json[0]["reasons"][0]["rule"], "rare_success");
}

/// docs/spec/skills-and-signals.md#effectiveness-score: the last 30 days.
#[test]
fn executions_before_the_lookback_do_not_count() {
    let workspace = Workspace::new().promoted("bad", "# Bad").used("bad", "error", 10);
    let before = clock::hours_ago(31 * 24);
    workspace.sql(&format!("UPDATE skill_executions SET created_at = '{before:.9}'"));
    let json = score(&workspace);
    assert_eq!(
        json["scores"][0],
        json!({
            "skill_name": "bad", "version": "1", "score": null, "total_executions": 0,
        })
    );
    assert_eq!(json["disabled"], json!([]));
    let workspace = workspace.skills_config("{ lookback_days: 60 }");
    assert_eq!(score(&workspace)["disabled"][0]["skill_name"], "bad");
}

/// docs/spec/skills-and-signals.md#disabling: both numbers are parameters.
#[test]
fn threshold_and_executions_can_be_set() {
    let workspace = Workspace::new().promoted("pr", "# PR").used("pr", "success", 6);
    let section = "{ disable: { threshold: 0.9, min_executions: 6 } }";
    let json = score(&workspace.clone().skills_config(section));
    // Flawless without thanks is 0.85.
    assert_eq!(json["disabled"][0]["reasons"][0]["rule"], "low_score");
    let failing = Workspace::new()
        .promoted("bad", "# Bad")
        .used("bad", "error", 10)
        .skills_config("{ disable: { success_rate: 0.0 } }");
    assert_eq!(score(&failing)["disabled"], json!([]), "the repair is off");
}
