//! Reflections over HTTP (docs/spec/reflections.md#api, #integration).

use serde_json::{Value, json};

use super::client::Answer;
use super::site::Site;
use crate::grade::receiver::Receiver;
use crate::reflect::made_up::{bad, good, with};
use crate::workspace::Workspace;

const JSON: &str = "application/json";

fn submit(site: &Site, project: &str, document: &Value) -> Answer {
    let body = document.to_string();
    site.post_body(&format!("/api/reflections/{project}"), JSON, body.as_bytes())
}

fn body(answer: Answer, status: u16) -> Value {
    serde_json::from_slice(&answer.status(status).body).unwrap()
}

/// docs/spec/reflections.md#api: `GET /api/debug/reflection/grade/{project_id}`.
#[test]
fn section_api_endpoints_grade() {
    let site = Site::start(Workspace::new());
    let path = "/api/debug/reflection/grade/demo";
    let detail = site.get(path).problem(404);
    assert!(detail.contains("has no reflection"), "{detail}");
    body(submit(&site, "demo", &good()), 201);
    body(submit(&site, "demo", &with(bad(), "reflection_id", "r2")), 201);
    let graded = site.get(path).json();
    // "Same as the return value of grade_reflection()": score, issues, timestamp, loop,
    // reflection_id, of the last reflection.
    assert_eq!((&graded["score"], &graded["loop"]), (&json!(0.45), &json!(2)));
    assert_eq!(graded["issues"].as_array().unwrap().len(), 4);
    assert_eq!(graded["reflection_id"], "r2");
    let graded_at: jiff::Timestamp = graded["timestamp"].as_str().unwrap().parse().unwrap();
    assert!(graded_at <= crate::clock::now());
    // Looking again changes nothing.
    assert_eq!(site.get(path).json(), graded);
    assert_eq!(site.get("/api/reflections/demo/scores").json()["count"], 2);
    site.get("/api/debug/reflection/grade/other").problem(404);
}

/// docs/spec/reflections.md#integration: the orchestrator.
#[test]
fn section_integration_guide_orchestrator_integration() {
    // "After each agent completes a reflection, call the grading endpoint", then
    // `if response.json().get("score", 1.0) < 0.6`.
    let site = Site::start(Workspace::new());
    let is_weak = |document: &Value| {
        submit(&site, "a%2Fb%20c", document).status(201);
        let graded = site.get("/api/debug/reflection/grade/a%2Fb%20c").json();
        assert_eq!(graded["project_id"], "a/b c");
        graded["score"].as_f64().unwrap() < 0.6
    };
    assert!(!is_weak(&good()));
    assert!(is_weak(&bad()));
}

/// docs/spec/reflections.md#integration: grading in the agent's loop.
#[test]
fn section_integration_guide_automatic_grading() {
    // What is submitted is graded at once, and something is done about weak ones.
    let receiver = Receiver::answering(204);
    let hook = format!("{{ hook: {{ webhook: \"{}\" }} }}", receiver.address);
    let site = Site::start(Workspace::new().reflection_config(&hook));
    let graded = body(submit(&site, "demo", &good()), 201);
    assert_eq!((&graded["score"], &graded["weak"]), (&json!(1.0), &json!(false)));
    let answer = submit(&site, "demo", &with(bad(), "reflection_id", "r2"));
    assert_eq!(answer.header("location"), Some("/api/reflections/demo/scores"));
    assert_eq!(body(answer, 201)["weak"], true);
    for _ in 0..3 {
        site.get("/api/debug/reflection/grade/demo").status(200);
    }
    let told = || receiver.requests.lock().unwrap().len();
    let running = site.into_running().until("the hook", || told() > 0);
    assert_eq!(told(), 1);
    drop(running);
    let requests = receiver.requests.lock().unwrap();
    let told: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!(told["reflection_id"], "r2");
}

/// docs/spec/reflections.md#functions: `get_reflection_scores` and `get_weak_reflections` over
/// HTTP.
#[test]
fn section_module_functions_scores_and_weak_reflections() {
    let site = Site::start(Workspace::new());
    for (number, document) in [good(), bad(), good(), bad(), bad()].into_iter().enumerate() {
        submit(&site, "demo", &with(document, "reflection_id", number)).status(201);
    }
    submit(&site, "other", &bad()).status(201);
    let scores = site.get("/api/reflections/demo/scores").json();
    assert_eq!((&scores["project_id"], &scores["count"]), (&json!("demo"), &json!(5)));
    // Two of 1.0 and three of 0.45.
    assert_eq!(scores["average_score"], 0.67);
    assert_eq!(scores["reflection_scores"].as_array().unwrap().len(), 5);
    let weak = site.get("/api/reflections/demo/weak").json();
    assert_eq!((&weak["project_id"], &weak["count"]), (&json!("demo"), &json!(3)));
    assert_eq!(weak["weak_reflections"][0]["reflection"]["summary"], "Did stuff");
    let nothing = site.get("/api/reflections/nobody/scores").json();
    assert_eq!((&nothing["count"], &nothing["average_score"]), (&json!(0), &json!(null)));
    assert_eq!(site.get("/api/reflections/nobody/weak").json()["weak_reflections"], json!([]));

    // Pages hold each of them once, and the numbers over all.
    for (path, list, expected) in [
        ("scores", "reflection_scores", &["4", "3", "2", "1", "0"][..]),
        ("weak", "weak_reflections", &["4", "3", "1"]),
    ] {
        let first = format!("/api/reflections/demo/{path}?limit=2");
        let (mut seen, mut next) = (Vec::new(), String::new());
        loop {
            let page = site.get(&format!("{first}{next}")).json();
            assert_eq!(page["count"], expected.len());
            let items = page[list].as_array().unwrap();
            seen.extend(items.iter().map(|it| it["reflection_id"].as_str().unwrap().to_owned()));
            let Some(cursor) = page["next"].as_str() else { break };
            next = format!("&cursor={cursor}");
        }
        assert_eq!(seen, expected);
    }
    for query in ["limit=0", "limit=501", "limit=x", "colour=red", "cursor=00"] {
        let answer = site.get(&format!("/api/reflections/demo/scores?{query}"));
        let status = if query.starts_with("cursor") { 404 } else { 400 };
        answer.problem(status);
    }
    site.get("/api/reflections/demo/weak?limit=101").problem(400);
}

#[test]
fn a_reflection_with_an_id_can_be_sent_again() {
    let site = Site::start(Workspace::new());
    let named = with(bad(), "reflection_id", "r1");
    let first = body(submit(&site, "demo", &named), 201);
    assert_eq!(body(submit(&site, "demo", &named), 200), first);
    let detail = submit(&site, "demo", &with(named, "summary", "Did more")).problem(409);
    assert!(detail.contains("another reflection with the id \"r1\""), "{detail}");
    // Without one it is another reflection: an agent that repeats itself is counted each time.
    submit(&site, "demo", &bad()).status(201);
    submit(&site, "demo", &bad()).status(201);
    assert_eq!(site.get("/api/reflections/demo/scores").json()["count"], 3);
}

#[test]
fn bodies_that_are_no_reflection() {
    let site = Site::start(Workspace::new());
    let path = "/api/reflections/demo";
    for (media, text, status, part) in [
        (JSON, &b"[]"[..], 422, "a JSON object"),
        (JSON, b"\"text\"", 422, "a JSON object"),
        (JSON, b"{", 400, "not JSON"),
        (JSON, b"", 400, "not JSON"),
        (JSON, b"{\"a\": \"\xff\"}", 400, "not JSON"),
        ("text/plain", b"{}", 415, "application/json"),
        (JSON, &[b'['; 10_000], 400, "not JSON"),
    ] {
        let detail = site.post_body(path, media, text).problem(status);
        assert!(detail.contains(part), "{detail}");
    }
    let long = json!({ "log": "x".repeat(65 * 1024) }).to_string();
    let detail = site.post_body(path, JSON, long.as_bytes()).problem(413);
    assert!(detail.contains("too large"), "{detail}");
    let detail = submit(&site, "demo", &json!({ "id": "x".repeat(600) })).problem(422);
    assert!(detail.contains("the id of the reflection"), "{detail}");
    for project in ["%00", &"x".repeat(600), "a/b"] {
        submit(&site, project, &good()).problem(404);
    }
    assert_eq!(site.get("/api/reflections/demo/scores").json()["count"], 0);
    // An empty object is a reflection too, without an agent or a task.
    let empty = body(submit(&site, "demo", &json!({})), 201);
    assert_eq!((&empty["score"], &empty["weak"]), (&json!(0.5), &json!(true)));
}

#[test]
fn pages_of_other_sites_submit_nothing() {
    let site = Site::start(Workspace::new());
    let headers = ["Origin: https://evil.example", "Content-Length: 0"];
    site.ask("POST", "/api/reflections/demo", &headers).problem(403);
}

/// docs/spec/reflections.md#dashboard: the page, with texts that try to be more.
#[test]
fn what_is_shown_of_hostile_reflections_is_text() {
    let site = Site::start(Workspace::new());
    let hostile = with(bad(), "agent", "<script>alert(1)</script>\u{202e}");
    let hostile = with(hostile, "tags", "\"><img src=x onerror=alert(1)>");
    submit(&site, "%3Cb%3E%22%27", &hostile).status(201);
    for path in ["/reflections", "/reflections?project=%3Cb%3E%22%27"] {
        let page = site.get(path).status(200).text();
        for part in ["<script>alert", "<img src=x", "<b>\"", "\u{202e}"] {
            assert!(!page.contains(part), "{part} in {path}");
        }
        assert!(page.contains("&#60;script&#62;") || page.contains("&lt;script&gt;"), "{page}");
    }
    let picture = site.get("/reflections/trend.svg?project=%3Cb%3E%22%27").status(200);
    assert_eq!(picture.header("content-type"), Some("image/svg+xml"));
}
