//! `selftest improve reflect scores|weak|trend`: what is known of reflections.

use serde_json::json;

use super::made_up::{bad, good, with};
use crate::workspace::Workspace;

/// Two projects, `shop` with two of three weak, on days that do not change.
fn graded() -> Workspace {
    let on = |document, project: &str, id: &str, day: &str| {
        let document = with(document, "project_id", project);
        with(with(document, "reflection_id", id), "timestamp", format!("{day}T10:00:00Z"))
    };
    let workspace = Workspace::new().reflections(&[
        on(good(), "shop", "r1", "2026-11-02"),
        on(bad(), "shop", "r2", "2026-11-03"),
        on(good(), "docs", "r1", "2026-11-18"),
        on(with(bad(), "tags", json!("loop:1")), "shop", "r3", "2026-11-17"),
    ]);
    let _ = workspace.reflect(&["grade", "reflections.jsonl"]).exit(1);
    workspace
}

/// docs/spec/reflections.md#functions, `get_reflection_scores`; #tests.
#[test]
fn section_module_functions_get_reflection_scores() {
    let workspace = graded();
    let json = workspace.reflect(&["scores", "shop", "--json"]).exit(0).json();
    // "project_id, reflection_scores, count, average_score"
    assert_eq!((&json["project_id"], &json["count"]), (&json!("shop"), &json!(3)));
    // 1.0, 0.45 and 0.25
    assert_eq!(json["average_score"], 0.566_667);
    let scores = json["reflection_scores"].as_array().unwrap();
    let named: Vec<_> =
        scores.iter().map(|score| (&score["reflection_id"], &score["score"])).collect();
    let expected =
        [(&json!("r3"), &json!(0.25)), (&json!("r2"), &json!(0.45)), (&json!("r1"), &json!(1.0))];
    assert_eq!(named, expected);
    let _ = workspace.reflect(&["scores", "shop"]).exit(0).snapshot("reflect_scores");
    let _ = workspace.reflect(&["scores"]).exit(0).snapshot("reflect_projects");
    let nothing = workspace.reflect(&["scores", "nobody", "--json"]).exit(0).json();
    assert_eq!((&nothing["count"], &nothing["average_score"]), (&json!(0), &json!(null)));
}

/// docs/spec/reflections.md#functions, `get_weak_reflections`; #tests.
#[test]
fn section_module_functions_get_weak_reflections() {
    let workspace = graded();
    let json = workspace.reflect(&["weak", "shop", "--json"]).exit(0).json();
    // "project_id, weak_reflections, count"
    assert_eq!((&json["project_id"], &json["count"]), (&json!("shop"), &json!(2)));
    let weak = json["weak_reflections"].as_array().unwrap();
    assert_eq!(
        (&weak[0]["reflection_id"], &weak[1]["reflection_id"]),
        (&json!("r3"), &json!("r2"))
    );
    assert_eq!(weak[1]["reflection"]["summary"], "Did stuff");
    assert_eq!(workspace.reflect(&["weak", "docs", "--json"]).exit(0).json()["count"], 0);
    let _ = workspace.reflect(&["weak"]).exit(0).snapshot("reflect_weak");
    let all = workspace.reflect(&["weak", "--json", "--limit", "1"]).exit(0).json();
    assert_eq!(all.as_array().unwrap().len(), 1);
    let _ = workspace.reflect(&["weak", "docs"]).exit(0).stderr_contains("no weak reflection");
}

/// docs/spec/reflections.md#trends.
#[test]
fn section_future_enhancements_trend_analysis() {
    let workspace = graded();
    let json = workspace.reflect(&["trend", "shop", "--json"]).exit(0).json();
    let weeks = json["weeks"].as_array().unwrap();
    let named: Vec<_> = weeks.iter().map(|week| (&week["week"], &week["count"])).collect();
    let expected =
        [("2026-W45", 2), ("2026-W46", 0), ("2026-W47", 1)].map(|(w, n)| (json!(w), json!(n)));
    assert_eq!(named, expected.iter().map(|(week, count)| (week, count)).collect::<Vec<_>>());
    assert_eq!((&weeks[0]["mean"], &weeks[1]["mean"]), (&json!(0.725), &json!(null)));
    assert_eq!(weeks[0]["interval"], json!({ "low": 0.0, "high": 1.0 }));
    assert_eq!(json["proposal"], json!(null));
    let _ = workspace.reflect(&["trend", "shop"]).exit(0).snapshot("reflect_trend");
    let all = workspace.reflect(&["trend", "--json"]).exit(0).json();
    assert_eq!(all["weeks"][2]["count"], 2);
}

#[test]
fn nothing_is_said_to_be_nothing() {
    let workspace = Workspace::new();
    for words in [&["scores"][..], &["scores", "shop"], &["trend"]] {
        let run = workspace.reflect(words).exit(0).stderr_contains("no reflections yet");
        assert_eq!(run.stdout, "");
    }
    assert_eq!(workspace.reflect(&["scores", "--json"]).exit(0).json(), json!([]));
}
