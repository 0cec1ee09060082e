//! Grades of one session, the newest ones, and asking for one.

use std::time::{Duration, Instant};

use serde_json::json;

use super::site::{Site, field, graded, quality};
use crate::grade::recording::id;
use crate::model_server::{ModelServer, quality as grade};
use crate::workspace::{CLEAR, OPENAI};

#[test]
fn everything_that_is_known_of_a_session() {
    let workspace = graded();
    let words = ["grade", "override", &id(1), "--response-quality=2", "--reason", "too long"];
    let _ = workspace.clone().args(words).run().exit(0);
    let site = Site::start(workspace);
    let grades = site.get(&format!("/api/grades/session/{}", id(1))).json();
    assert_eq!(grades["session_id"], id(1));
    assert_eq!(grades["rules"]["task_completed"], true);
    assert_eq!(grades["overrides"][0]["human_value"], 2);
    assert_eq!(grades["overrides"][0]["reason"], "too long");
    assert_eq!(field(grades["models"].as_array().unwrap(), "model"), ["m-1", "m-2"]);
    assert_eq!(grades["models"][1]["overall"], 0.75);
    assert_eq!(grades["models"][1]["code_clean"], json!(null));
    let grades = site.get(&format!("/api/grades/session/{}", id(3))).json();
    assert_eq!(grades["models"], json!([]));
}

#[test]
fn only_the_rubric_of_now_counts_and_a_model_is_enough() {
    let workspace = graded();
    quality(&workspace, "session/agent-x", "m-1", 0.5, "2026-11-20T10:00:00Z");
    workspace.sql(
        "INSERT INTO session_quality_grades (session_id, grader_model, rubric_version, ts, \
         overall) VALUES ('session/agent-x', 'm-2', 2, '2026-11-20T10:00:00Z', 1.0), \
         ('session/agent-x', 'm-0', 0, '2026-11-20T10:00:00Z', 1.0), \
         ('session/agent-0', 'm-0', 0, '2026-11-20T11:00:00Z', 1.0)",
    );
    let site = Site::start(workspace);
    let grades = site.get("/api/grades/session/session%2Fagent-x").json();
    assert_eq!(grades["rules"], json!(null));
    assert_eq!(field(grades["models"].as_array().unwrap(), "model"), ["m-1"]);
    site.get("/api/grades/session/session%2Fagent-0").problem(404);
    let recent = site.get("/api/grades/recent?min_overall=0.9").json();
    assert_eq!(recent["items"], json!([]), "of no other version");
    site.get("/api/grades/session/session/agent-x").problem(404);
    site.get("/api/grades/session/nobody").problem(404);
}

#[test]
fn the_newest_come_first_and_only_good_ones_where_asked() {
    let site = Site::start(graded());
    let all = site.get("/api/grades/recent").json();
    assert_eq!(field(all["items"].as_array().unwrap(), "session_id"), [id(2), id(1), id(1)]);
    assert_eq!(all["next"], json!(null));
    let good = site.get("/api/grades/recent?min_overall=0.75").json();
    let overall: Vec<_> =
        good["items"].as_array().unwrap().iter().map(|it| &it["overall"]).collect();
    assert_eq!(overall, [&json!(0.875), &json!(0.75)]);
    assert_eq!(site.get("/api/grades/recent?min_overall=1").json()["items"], json!([]));
    for query in ["min_overall=1.1", "min_overall=-1", "min_overall=NaN", "min_overall=x"] {
        let detail = site.get(&format!("/api/grades/recent?{query}")).problem(400);
        assert!(detail.contains("min_overall"), "{detail}");
    }
}

#[test]
fn pages_hold_every_grade_once_while_others_arrive() {
    let workspace = graded();
    for number in 0..20 {
        quality(&workspace, &format!("s{number}"), "m", 0.5, "2026-11-20T10:00:00Z");
    }
    let site = Site::start(workspace);
    let path = "/api/grades/recent?limit=4";
    let mut page = site.get(path).json();
    let mut seen = Vec::new();
    for number in 0.. {
        for grade in page["items"].as_array().unwrap() {
            seen.push(format!("{} {}", grade["session_id"], grade["model"]));
        }
        let Some(next) = page["next"].as_str().map(ToOwned::to_owned) else { break };
        // Newer than all of them.
        quality(&site.workspace, &format!("new{number}"), "m", 0.5, "2026-11-21T10:00:00Z");
        page = site.get(&format!("{path}&cursor={next}")).json();
    }
    assert_eq!(seen.len(), 23);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 23);
}

#[test]
fn a_session_is_graded_on_request() {
    let script = ModelServer::script().delay(Duration::from_millis(300));
    let server = script.grader(|call| grade(call, [Some(0.9), Some(0.5), None, None])).start();
    let config =
        format!("version: 1\ngrade: {{ quality: {{ model: \"{OPENAI}\" }} }}\nscenarios:\n{CLEAR}");
    let site = Site::start(graded().config(config).server(&server));
    site.post("/api/grades/session/nobody").problem(404);
    let path = format!("/api/grades/session/{}", id(4));
    let queued = site.post(&path).status(202);
    assert_eq!(queued.header("location"), Some(&*path));
    let detail = site.post(&path).problem(409);
    assert!(detail.contains("waits to be graded already"), "{detail}");
    let request = site.get(&path).json()["request"].clone();
    assert!(["queued", "running"].contains(&request["status"].as_str().unwrap()), "{request}");
    let started = Instant::now();
    let known = loop {
        let known = site.get(&path).json();
        if !known["models"].as_array().unwrap().is_empty() {
            break known;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{known}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(known["models"][0]["model"], OPENAI);
    assert_eq!(known["average"]["problem_solved"]["mean"], 0.9);
    let known = loop {
        let known = site.get(&path).json();
        if known["request"]["status"] == "done" {
            break known;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{known}");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(known["request"]["reason"], json!(null));
    // It may be asked for once more.
    let again = loop {
        let again = site.post(&path);
        if again.status != 409 {
            break again;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    again.status(202);
}

#[test]
fn the_page_says_why_a_request_led_to_no_grade() {
    let server = ModelServer::script().grader(|_| "Great session, 10/10!").start();
    let config = format!(
        "version: 1\ngrade: {{ quality: {{ model: \"{OPENAI}\", max_reasks: 0 }} }}\n\
         scenarios:\n{CLEAR}"
    );
    let site = Site::start(graded().config(config).server(&server));
    let page = format!("/sessions/{}", id(4));
    assert!(!site.get(&page).text().contains("no grade:"));
    site.post(&format!("/api/grades/session/{}", id(4))).status(202);
    let started = Instant::now();
    loop {
        let text = site.get(&page).text();
        if text.contains("The last grading gave no grade: the model&#39;s reply is not a valid") {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{text}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let known = site.get(&format!("/api/grades/session/{}", id(4))).json();
    assert_eq!(known["models"], json!([]));
    assert_eq!(known["request"]["status"], "failed");
    let reason = known["request"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("the model's reply is not a valid grade"), "{reason}");
    let other = site.get(&format!("/api/grades/session/{}", id(3))).json();
    assert_eq!(other["request"], json!(null));
    let metrics = site.get("/metrics").text();
    for (state, jobs) in [("waiting", 0), ("running", 0), ("failed", 1), ("done", 0)] {
        let line = format!("selftest_jobs{{kind=\"session_grading\",state=\"{state}\"}} {jobs}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    assert!(metrics.contains("\nselftest_workers 1\n"), "{metrics}");
}
