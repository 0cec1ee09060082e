//! Criteria from the configuration: thresholds, agents, schemas, and the adaptive threshold.

use serde_json::{Value, json};

use super::made_up::{bad, good, with};
use crate::workspace::Workspace;

/// The score of one reflection, and the threshold that was in force.
fn scored(workspace: &Workspace, document: &Value) -> (f64, f64) {
    let run = workspace.reflect_piped(
        &document.to_string(),
        &["grade", "-", "--json", "--exit-zero", "--dry-run"],
    );
    let score = run.exit(0).json()[0].clone();
    (score["score"].as_f64().unwrap(), score["threshold"].as_f64().unwrap())
}

/// docs/spec/reflections.md#agent-specific-grading.
#[test]
fn section_future_enhancements_agent_specific_grading() {
    let workspace = Workspace::new().reflection_config(
        "{ weak_threshold: 0.7, criteria: { min_confidence: 0.5 }, agents: { \
         HAL: { min_confidence: 0.9 }, Orchestrator: { summary_min_chars: 500 } } }",
    );
    assert_eq!(scored(&workspace, &good()), (0.8, 0.7));
    for (agent, score) in [("hal", 0.8), ("Orchestrator", 0.9), ("SAGE", 1.0)] {
        assert_eq!(scored(&workspace, &with(good(), "agent", agent)).0, score, "{agent}");
    }
}

/// docs/spec/reflections.md#criteria: the expected schema is a setting.
#[test]
fn the_schema_may_stand_in_a_file() {
    let schema = json!({ "required": ["mood"] }).to_string();
    let workspace = Workspace::new()
        .file("schemas/mood.json", schema)
        .reflection_config("{ criteria: { schema_file: schemas/mood.json } }");
    assert_eq!(scored(&workspace, &good()).0, 0.7);
    assert_eq!(scored(&workspace, &with(good(), "mood", "calm")).0, 1.0);
}

#[test]
fn criteria_that_cannot_be_used_are_errors_of_the_file() {
    for (section, parts) in [
        ("{ criteria: { tag_pattern: '(' } }", &["grade.reflection.criteria.tag_pattern"][..]),
        (
            "{ agents: { HAL: { schema: { type: elephant } } } }",
            &["agents.HAL.schema", "JSON Schema"],
        ),
        ("{ criteria: { summary_min_chars: 2000 } }", &["summary_min_chars", "1000"]),
        ("{ criteria: { schema: {}, schema_file: x } }", &["schema_file", "excludes `schema`"]),
        ("{ weak_threshold: 2 }", &["weak_threshold", "from 0 to 1"]),
        ("{ adaptive: always }", &["adaptive", "`propose`, `apply`"]),
        ("{ agents: { HAL: { min_confidense: 0.5 } } }", &["min_confidense", "min_confidence"]),
    ] {
        let workspace = Workspace::new().reflection_config(section);
        let run = workspace.args(["config", "check"]).run().exit(2);
        let run = run.stderr_contains("selftest.yaml:3");
        for part in parts {
            assert!(run.stderr.contains(part), "no `{part}`:\n{}", run.stderr);
        }
    }
}

#[test]
fn a_schema_file_that_cannot_be_read_is_named() {
    let workspace = Workspace::new()
        .file("broken.json", "{")
        .reflections(&[good()])
        .file("deep.json", "{\"$ref\": \"file:///etc/passwd\"}");
    for (file, part) in
        [("none.json", "cannot be read"), ("broken.json", "not JSON"), ("deep.json", "JSON Schema")]
    {
        let section = format!("{{ agents: {{ HAL: {{ schema_file: {file} }} }} }}");
        let workspace = workspace.clone().reflection_config(&section);
        let run = workspace.reflect(&["grade", "reflections.jsonl"]).exit(2);
        let _ = run.one_error(&["grade.reflection.agents.HAL.schema_file", part]);
    }
}

/// docs/spec/reflections.md#adaptive-thresholds.
#[test]
fn section_future_enhancements_adaptive_thresholds() {
    // 40 good reflections and then one that is a little worse.
    let history: Vec<Value> = (0..40).map(|number| with(good(), "n", number)).collect();
    let worse = with(with(good(), "project_id", "shop"), "confidence", 0.5);
    let of = |section: &str| {
        let workspace = Workspace::new().reflection_config(section).reflections(&history);
        let _ = workspace.reflect(&["grade", "reflections.jsonl", "--project=shop"]).exit(0);
        workspace
    };
    let proposing = of("{}");
    assert_eq!(scored(&proposing, &worse), (0.8, 0.6));
    let run = proposing.reflect(&["trend", "shop"]).exit(0);
    let _ = run
        .stdout_contains("Proposed threshold: 1.00, 95 % interval 1.00 to 1.00")
        .stdout_contains("In force is 0.60");
    let applying = of("{ adaptive: apply }");
    assert_eq!(scored(&applying, &worse), (0.8, 1.0));
    let _ = applying.reflect(&["trend", "shop"]).exit(0).stdout_contains("It is in force.");
    // Another project has a history of its own.
    assert_eq!(scored(&applying, &bad()), (0.45, 0.6));
}

#[test]
fn what_was_graded_by_other_criteria_is_graded_anew_and_only_then() {
    let workspace = Workspace::new().reflections(&[good()]);
    let _ = workspace.reflect(&["grade", "reflections.jsonl"]).exit(0);
    let workspace = workspace.reflection_config("{ criteria: { min_confidence: 0.9 } }");
    let _ = workspace.reflect(&["grade", "reflections.jsonl"]).exit(0);
    assert_eq!(workspace.sql("SELECT score FROM reflection_scores"), [["0.8"]]);
}
