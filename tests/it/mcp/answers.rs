//! The answers of the tools.

use serde_json::{Value, json};

use super::conversation::Conversation;
use super::world::{
    GRADED, INJECTION, OTHER_TWIN, TWIN, graded, keep, quality, run_once, sessions,
};
use crate::model_server::ModelServer;
use crate::workspace::Workspace;

const VERSION: &str = "2025-11-25";

fn begin(workspace: Workspace) -> Conversation {
    Conversation::begin(workspace, VERSION)
}

/// Every text in which the session wants to be obeyed stands in `untrusted_text`.
fn all_marked(value: &Value, key: &str) -> bool {
    match value {
        Value::String(text) => !text.contains(INJECTION) || key == "untrusted_text",
        Value::Array(items) => items.iter().all(|item| all_marked(item, key)),
        Value::Object(fields) => fields.iter().all(|(key, value)| all_marked(value, key)),
        _ => true,
    }
}

#[test]
fn everything_known_of_a_session() {
    let heard = begin(graded())
        .calls("get_session_grade", &json!({ "session_id": GRADED }))
        .calls("get_session_grade", &json!({ "session_id": "aaaa" }))
        .heard();
    let grade = heard.answered(1);
    assert_eq!(grade, heard.answered(2), "the beginning of the id is enough");
    assert_eq!(grade["session_id"], GRADED);
    assert_eq!(grade["session"]["agent"], "claude-code");
    assert_eq!(grade["session"]["task_type"], "debugging");
    assert_eq!(grade["by_rules"]["task_completed"], false);
    assert_eq!(grade["by_rules"]["error_kinds"][0]["class"], "command_failed");
    let found: Vec<&str> = grade["by_rules"]["evidence"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["found"].as_str().unwrap())
        .collect();
    assert!(found.contains(&"task_completed: the final message says that it is done"), "{found:?}");
    assert_eq!(grade["overrides"][0]["by_person"], 1);
    assert_eq!(grade["with_overrides"]["task_completed"], true);
    assert_eq!(grade["by_models"].as_array().unwrap().len(), 2);
    let overall = &grade["average"]["overall"];
    assert_eq!(*overall, json!({ "mean": 0.7, "spread": 0.2, "models": 2 }));
    assert_eq!(grade["average"]["tests_added"], Value::Null);
    let text = grade.to_string();
    assert!(text.contains(INJECTION) && all_marked(grade, ""), "{grade:#}");
    assert!(!text.contains("sk-live") && !text.contains('\u{202e}'), "{grade:#}");
}

#[test]
fn a_session_that_is_not_found_or_not_the_only_one() {
    let heard = begin(graded())
        .calls("get_session_grade", &json!({ "session_id": "bbbb" }))
        .calls("get_session_grade", &json!({ "session_id": "feed\u{1b}[31m" }))
        .calls("get_session_grade", &json!({ "session_id": "" }))
        .calls("get_session_grade", &json!({ "session": GRADED }))
        .calls("get_session_grade", &json!({}))
        .heard();
    let several = heard.refused(1);
    assert!(several.contains(TWIN) && several.contains(OTHER_TWIN), "{several}");
    assert!(several.contains("more of the id"), "{several}");
    let unknown = heard.refused(2);
    assert!(unknown.contains("selftest grade latest") && unknown.contains(GRADED), "{unknown}");
    assert!(!unknown.contains('\u{1b}'), "{unknown}");
    assert!(heard.refused(3).contains("empty"));
    assert!(heard.refused(4).contains("unknown field `session`"), "{}", heard.refused(4));
    assert!(heard.refused(5).contains("missing field `session_id`"), "{}", heard.refused(5));
}

#[test]
fn recent_grades_page_by_page() {
    let heard = begin(graded())
        .calls("list_recent_grades", &json!({}))
        .calls("list_recent_grades", &json!({ "limit": 2 }))
        .calls("list_recent_grades", &json!({ "min_overall": 0.7 }))
        .calls("list_recent_grades", &json!({ "min_overall": 0.95 }))
        .calls("list_recent_grades", &json!({ "limit": 0 }))
        .calls("list_recent_grades", &json!({ "min_overall": 7 }))
        .calls("list_recent_grades", &json!({ "cursor": "x" }))
        .heard();
    let models = |id: u32| -> Vec<String> {
        let grades = heard.answered(id)["grades"].as_array().unwrap();
        let shown = |grade: &Value| {
            let (model, session) = (&grade["grader_model"], &grade["session_id"]);
            format!("{} {}", model.as_str().unwrap(), &session.as_str().unwrap()[..4])
        };
        grades.iter().map(shown).collect()
    };
    assert_eq!(models(1), ["ollama/qwen bbbb", "ollama/llama aaaa", "ollama/qwen aaaa"]);
    assert!(all_marked(heard.answered(1), ""));
    assert_eq!(heard.answered(1)["next_cursor"], Value::Null);
    assert_eq!(models(2), models(1)[..2]);
    assert_eq!(models(3), ["ollama/qwen aaaa"]);
    let none = heard.answered(4)["remarks"][0].as_str().unwrap();
    assert!(none.contains("0.95") && none.contains("lower min_overall"), "{none}");
    assert_eq!(heard.refused(5), "limit is 0, expected 1 to 50");
    assert_eq!(heard.refused(6), "min_overall is 7, expected 0 to 1");
    assert!(heard.refused(7).contains("next_cursor"), "{}", heard.refused(7));
    let cursor = heard.answered(2)["next_cursor"].clone();
    let arguments = json!({ "limit": 2, "cursor": cursor });
    let rest = begin(graded()).calls("list_recent_grades", &arguments).heard();
    assert_eq!(rest.answered(1)["grades"].as_array().unwrap().len(), 1);
}

#[test]
fn without_a_grade_by_a_model_it_says_how_to_get_one() {
    for (workspace, words) in [(sessions(), "no model has graded"), (Workspace::new(), "first;")] {
        let heard =
            begin(workspace).calls("list_recent_grades", &json!({ "min_overall": 0.7 })).heard();
        let remark = heard.answered(1)["remarks"][0].as_str().unwrap();
        assert!(remark.contains(words) && remark.contains("backfill"), "{remark}");
    }
}

#[test]
fn no_agent_sends_a_session_to_a_cloud() {
    let server = ModelServer::script().models(&["copied-from-cloud:latest"]).start();
    let workspace = graded().env("OLLAMA_HOST", server.ollama_host());
    let named = ["ollama/copied-from-cloud", "ollama/gpt-oss:120b-cloud", "openai/gpt-4o"];
    let ask = |conversation: Conversation, model: &&str| {
        conversation.calls("grade_session", &json!({ "session_id": GRADED, "model": model }))
    };
    let heard = named.iter().fold(begin(workspace), ask).heard();
    for id in 1..=3 {
        assert!(heard.refused(id).contains("may choose a local model"), "{}", heard.refused(id));
    }
    assert!(server.all_calls().is_empty());
}

#[test]
fn answers_are_bounded_and_cursors_stand_behind_what_is_shown() {
    let workspace = sessions();
    let long = |number: i64| {
        let id = format!("{number:04}{}", "\"".repeat(500));
        let mut grade = quality(&id, &"m".repeat(500), 0.0, number);
        grade.reasoning = Some("\\\"".repeat(1500));
        grade
    };
    keep(&workspace, &(0..60).map(long).collect::<Vec<_>>());
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..20 {
        let mut arguments = json!({ "limit": 50 });
        if !cursor.is_null() {
            arguments["cursor"] = cursor.clone();
        }
        let heard = begin(workspace.clone()).calls("list_recent_grades", &arguments).heard();
        let answer = heard.answered(1);
        assert!(answer.to_string().len() <= 60_000);
        let grades = answer["grades"].as_array().unwrap();
        seen.extend(grades.iter().map(|one| one["session_id"].as_str().unwrap()[..4].to_owned()));
        cursor = answer["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let expected: Vec<String> = (0..60).rev().map(|number| format!("{number:04}")).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_run_of_the_self_test() {
    let (workspace, run_id) = run_once(Workspace::new(), 3);
    let heard = begin(workspace)
        .calls("get_selftest_report", &json!({}))
        .calls("get_selftest_report", &json!({ "run_id": run_id }))
        .calls("get_selftest_report", &json!({ "run_id": "../../etc/passwd" }))
        .heard();
    let report = heard.answered(1);
    assert_eq!(report, heard.answered(2));
    assert_eq!(report["run_id"], run_id.as_str());
    assert_eq!((&report["outcome"], &report["complete"]), (&json!("failed"), &json!(true)));
    assert_eq!((&report["cases_total"], &report["passed"]), (&json!(3), &json!(2)));
    assert_eq!(report["threshold"], 0.74);
    let cases = report["cases"].as_array().unwrap();
    let statuses: Vec<&Value> = cases.iter().map(|case| &case["status"]).collect();
    assert_eq!(statuses, ["failed", "passed", "passed"]);
    let reason = cases[0]["reason"]["untrusted_text"].as_str().unwrap();
    assert!(reason.contains("below threshold"), "{reason}");
    let unknown = heard.refused(3);
    assert!(unknown.contains(&run_id) && unknown.contains("leave run_id out"), "{unknown}");
}

#[test]
fn an_arm_of_an_experiment_is_said_to_be_one() {
    let (workspace, run_id) = run_once(Workspace::new(), 2);
    let path = workspace.path(&format!("reports/selftest/{run_id}.json"));
    let mut report: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let other = "selftest-20260206-1234-abc123";
    report["experiment"] = json!({
        "arm": "treatment", "other_run_id": other, "skill": "brevity", "skill_digest": "00",
    });
    std::fs::write(&path, report.to_string()).unwrap();
    let heard = begin(workspace).calls("get_selftest_report", &json!({})).heard();
    let experiment = heard.answered(1)["experiment"].clone();
    let skill = json!({ "untrusted_text": "brevity" });
    assert_eq!(experiment, json!({ "arm": "treatment", "other_run_id": other, "skill": skill }));
}

#[test]
fn a_long_run_is_shortened_and_says_so() {
    let (workspace, run_id) = run_once(Workspace::new(), 2);
    let path = workspace.path(&format!("reports/selftest/{run_id}.json"));
    let mut report: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let cases = report["cases"].as_array_mut().unwrap();
    let mut passed = cases[1].clone();
    passed["reason"] = "\\\"\u{200b}".repeat(5000).into();
    for _ in 0..1000 {
        cases.insert(0, passed.clone());
    }
    std::fs::write(&path, report.to_string()).unwrap();
    let heard = begin(workspace).calls("get_selftest_report", &json!({})).heard();
    let report = heard.answered(1);
    assert!(report.to_string().len() <= 60_000);
    let shown = report["cases"].as_array().unwrap();
    assert_eq!(shown[0]["status"], "failed", "those that did not pass come first");
    let remark = report["remarks"][0].as_str().unwrap();
    assert_eq!(remark, format!("{} of 1002 cases are not shown", 1002 - shown.len()));
}

#[test]
fn without_a_run_it_says_how_to_get_one() {
    let heard = begin(Workspace::new()).calls("get_selftest_report", &json!({})).heard();
    assert!(heard.refused(1).contains("run `selftest` in the project"), "{}", heard.refused(1));
}
