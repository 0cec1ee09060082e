//! Skills over the API: telling of their use, reading how well they work, changing what is in use
//! (docs/spec/skills-and-signals.md#skill-effectiveness).

use serde_json::{Value, json};

use super::client::send;
use super::site::{Site, field};
use crate::databases::on_each_database;
use crate::workspace::Workspace;

fn told(site: &Site, what: &str, body: &Value) -> bool {
    let answer = site.post_json(&format!("/api/skills/{what}"), &body.to_string()).status(202);
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.as_object().unwrap().len(), 1);
    answer["accepted"].as_bool().unwrap()
}

/// A number of `/metrics`.
fn metric(site: &Site, name: &str) -> u64 {
    let text = site.get("/metrics").status(200).text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

/// Waits until a number is reached: signals are stored after the response was sent.
fn until(site: &Site, name: &str, expected: u64) {
    let started = std::time::Instant::now();
    while metric(site, name) < expected {
        assert!(started.elapsed().as_secs() < 60, "{name} is {}", metric(site, name));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(metric(site, name), expected);
}

const WRITTEN: &str = "selftest_skill_executions_written_total";
const UNKNOWN: &str = "selftest_skill_executions_dropped_total{reason=\"unknown_skill\"}";

on_each_database! {
    a_request_with_a_key_is_kept_once,
}

/// The same key and body is answered as before and stored once, also by a server that is started
/// anew; the same key with another body is refused.
fn a_request_with_a_key_is_kept_once(workspace: Workspace) {
    let workspace = workspace.promoted("pr", "# PR");
    let told = |site: &Site, path: &str, key: &str, body: &str| {
        let lines = [
            &format!("POST /api/skills/{path} HTTP/1.1"),
            &format!("Host: {}", site.address),
            "Content-Type: application/json",
            &format!("Content-Length: {}", body.len()),
            &format!("Idempotency-Key: {key}"),
        ];
        send(&site.address, &lines, body.as_bytes())
    };
    let used = r#"{"skill": "pr", "execution_status": "success", "session_id": "s"}"#;
    let failed = r#"{"skill": "pr", "execution_status": "error", "session_id": "s"}"#;
    let thanks = r#"{"session_id": "s", "message": "thanks!"}"#;
    let again = "idempotency-replayed";
    let site = Site::start(workspace.clone());
    let first = told(&site, "executions", "a", used).status(202);
    assert_eq!(first.header(again), None);
    let repeated = [(); 5].map(|()| told(&site, "executions", "a", used).status(202));
    assert!(repeated.iter().all(|answer| answer.header(again) == Some("true")));
    assert!(repeated.iter().all(|answer| answer.body == first.body), "answered as before");
    told(&site, "executions", "a", failed).problem(422);
    until(&site, WRITTEN, 1);
    // Written by now, and known from the database.
    assert_eq!(told(&site, "executions", "a", used).status(202).header(again), Some("true"));
    told(&site, "executions", "a", failed).problem(422);
    // A key is known where it was sent to.
    assert_eq!(told(&site, "messages", "a", thanks).status(202).header(again), None);
    assert_eq!(told(&site, "executions", "b", failed).status(202).header(again), None);
    until(&site, WRITTEN, 2);
    for wrong in ["", &"x".repeat(256)] {
        let detail = told(&site, "executions", wrong, used).problem(400);
        assert!(detail.contains("Idempotency-Key"), "{detail}");
    }
    #[cfg(unix)]
    let _ = site.into_running().signal(rustix::process::Signal::TERM).wait().exit(0);
    let site = Site::start(workspace.clone());
    assert_eq!(told(&site, "executions", "a", used).status(202).header(again), Some("true"));
    assert_eq!(workspace.sql("SELECT COUNT(*) FROM skill_executions"), [["2"]]);
    // A day later it is another request.
    let _ = workspace.sql("UPDATE request_keys SET made_at = '2026-01-01T00:00:00.000000000Z'");
    assert_eq!(told(&site, "executions", "a", failed).status(202).header(again), None);
    until(&site, WRITTEN, 1);
    assert_eq!(workspace.sql("SELECT COUNT(*) FROM skill_executions"), [["3"]]);
    assert_eq!(workspace.sql("SELECT COUNT(*) FROM request_keys"), [["1"]], "old keys are gone");
}

/// The id of the version in use.
fn active(site: &Site) -> String {
    let items = site.get("/api/skills").json()["items"].as_array().unwrap().clone();
    let active = items.iter().find(|item| item["status"] == "active").unwrap();
    active["id"].as_str().unwrap().to_owned()
}

/// docs/spec/skills-and-signals.md#recording-executions, #next-message: fire-and-forget.
#[test]
fn executions_are_accepted_at_once_and_written_behind() {
    let site = Site::start(Workspace::new().promoted("pr", "# PR"));
    let id = active(&site);
    assert!(told(
        &site,
        "executions",
        &json!({
            "skill_version_id": id, "execution_status": "success", "session_id": "s",
            "conversation_turns": 2, "execution_time_ms": 900,
        })
    ));
    let named = json!({
        "skill": "pr", "version": "1", "execution_status": "error", "session_id": "s",
        "error_message": "no access with sk-proj-0123456789abcdefghij",
        "user_edited_output": true,
    });
    assert!(told(&site, "executions", &named));
    // No error for the caller, but counted.
    assert!(told(&site, "executions", &json!({ "skill": "x", "execution_status": "timeout" })));
    assert!(told(&site, "messages", &json!({ "session_id": "s", "message": "thanks!" })));
    until(&site, WRITTEN, 2);
    until(&site, UNKNOWN, 1);
    until(&site, "selftest_skill_messages_written_total", 1);
    assert!(told(&site, "messages", &json!({ "session_id": "s", "message": "thanks!" })));
    until(&site, "selftest_skill_messages_dropped_total{reason=\"no_execution\"}", 1);
    assert_eq!(metric(&site, "selftest_skill_executions_dropped_total{reason=\"full\"}"), 0);

    let detail = site.get(&format!("/api/skills/{id}")).json();
    let executions = detail["executions"]["items"].as_array().unwrap();
    assert_eq!(field(executions, "execution_status"), ["error", "success"]);
    assert_eq!(executions[0]["error_message"], "no access with [redacted]");
    let thanked = executions.iter().map(|one| one["user_sent_thank_you"].as_bool().unwrap());
    assert_eq!(thanked.collect::<Vec<_>>(), [true, false], "of the latest one");
    assert_eq!(
        detail["effectiveness"],
        json!({
            "score": null, "reason": "insufficient_data", "total_executions": 2,
        })
    );
    let weeks = detail["weeks"].as_array().unwrap();
    let last = weeks.last().unwrap();
    assert_eq!((weeks.len(), &last["executions"], &last["successes"]), (8, &json!(2), &json!(1)));
    assert_eq!(field(detail["audit"].as_array().unwrap(), "action"), ["promote"]);
}

/// docs/spec/skills-and-signals.md#next-message: nothing that was accepted is lost by an orderly
/// end.
#[test]
fn what_is_in_the_queue_is_written_before_the_end() {
    let site = Site::start(Workspace::new().promoted("pr", "# PR"));
    for _ in 0..50 {
        assert!(told(
            &site,
            "executions",
            &json!({ "skill": "pr", "execution_status": "success" })
        ));
    }
    let workspace = site.workspace.clone();
    #[cfg(unix)]
    let _ = site.into_running().signal(rustix::process::Signal::TERM).wait().exit(0);
    assert_eq!(workspace.sql("SELECT COUNT(*) FROM skill_executions"), [["50"]]);
}

/// docs/spec/skills-and-signals.md#registry-refresh: promotion, disabling and rollback.
#[test]
fn versions_are_promoted_disabled_and_rolled_back() {
    let workspace = Workspace::new().promoted("pr", "# PR").promoted("pr", "# A better PR");
    let site = Site::start(workspace);
    let second = active(&site);
    let act = |id: &str, action: &str| site.post(&format!("/api/skills/{id}/{action}"));
    let changed = act(&second, "rollback").json();
    assert_eq!(
        (&changed["action"], &changed["skill"]["status"]),
        (&json!("rollback"), &json!("disabled"))
    );
    assert_eq!(changed["active"]["version"], "1");
    let first = active(&site);
    assert!(act(&second, "rollback").problem(409).contains("is not in use"));
    assert!(act(&first, "rollback").problem(409).contains("there is no version before"));
    assert!(act(&first, "promote").problem(409).contains("is in use already"));
    let reason = "disable?reason=it%20is%20%3Cold%3E";
    assert_eq!(act(&first, reason).json()["active"], json!(null));
    assert!(act(&first, "disable").problem(409).contains("is not in use"));
    assert_eq!(act(&second, "promote").json()["active"]["version"], "2");
    for action in ["disable", "promote", "rollback"] {
        act("nobody", action).problem(404);
    }
    let listed = site.get("/api/skills").json()["items"].as_array().unwrap().clone();
    assert_eq!(field(&listed, "version"), ["2", "1"]);
    assert_eq!(listed[1]["reasons"], json!([{ "rule": "words", "words": "it is <old>" }]));
    let audit =
        site.get(&format!("/api/skills/{first}")).json()["audit"].as_array().unwrap().clone();
    assert_eq!(field(&audit, "action"), ["promote", "promote", "disable"]);
    assert_eq!(field(&audit, "actor"), ["cli", "api", "api"]);
}

#[test]
fn lists_are_paged() {
    let mut workspace = Workspace::new();
    for name in ["c", "a", "b"] {
        workspace = workspace.promoted(name, "# Text");
    }
    let site = Site::start(workspace.used("a", "success", 5));
    let pages = site.pages("/api/skills?limit=2");
    let names: Vec<_> = pages.iter().map(|page| field(page, "skill_name")).collect();
    assert_eq!(names, [vec!["a", "b"], vec!["c"]]);
    let id = pages[0][0]["id"].as_str().unwrap();
    let mut next = String::new();
    let mut seen = Vec::new();
    loop {
        let page = site.get(&format!("/api/skills/{id}?limit=2{next}")).json();
        seen.extend(field(page["executions"]["items"].as_array().unwrap(), "id"));
        match page["executions"]["next"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((all, seen.len()), (5, 5));
    for path in ["/api/skills?cursor=zz", "/api/skills?cursor=7b7d"] {
        site.get(path).problem(404);
    }
    site.get("/api/skills/nobody").problem(404);
    site.get("/api/skills?limit=0").problem(400);
}

#[test]
fn bodies_that_are_not_described_are_refused() {
    let site = Site::start(Workspace::new());
    let long = format!(r#"{{"skill": "{}", "execution_status": "error"}}"#, "x".repeat(201));
    for (what, body, part) in [
        ("executions", "", "in the body"),
        ("executions", "{", "in the body"),
        ("executions", "[]", "in the body: expected a JSON object"),
        ("executions", r#"["a", null, null, "error"]"#, "in the body: expected a JSON object"),
        ("executions", "nonsense", "in the body: not JSON, expected a JSON object"),
        ("executions", "{}", "skill"),
        ("executions", r#"{"skill": "a"}"#, "execution_status"),
        ("executions", r#"{"skill": "a", "execution_status": "fine"}"#, "fine"),
        ("executions", r#"{"skill": "", "execution_status": "error"}"#, "skill"),
        ("executions", &long, "skill"),
        ("executions", r#"{"skill": "a", "execution_status": "error", "x": 1}"#, "x"),
        (
            "executions",
            r#"{"skill": "a", "execution_status": "error", "execution_time_ms": -1}"#,
            "execution_time_ms",
        ),
        (
            "executions",
            r#"{"skill": "a", "execution_status": "error", "conversation_turns": 2147483648}"#,
            "conversation_turns",
        ),
        ("messages", r#"{"session_id": "s"}"#, "message"),
        ("messages", r#"{"session_id": "", "message": "x"}"#, "session_id"),
    ] {
        let detail = site.post_json(&format!("/api/skills/{what}"), body).problem(400);
        assert!(detail.contains(part) && detail.len() < 400, "{body}: {detail}");
    }
    let body = r#"{"skill": "a", "execution_status": "error"}"#;
    let length = format!("Content-Length: {}", body.len());
    site.ask("POST", "/api/skills/executions", &["Content-Length: 0"]).problem(415);
    let detail = site.post_body("/api/skills/executions", "text/plain", b"{}").problem(415);
    let expected = "the body must be JSON, with the header `Content-Type: application/json`";
    assert_eq!(detail, expected);
    let detail = site.post_json("/api/skills/executions", "{\"skill\": 7}").problem(400);
    assert!(detail.starts_with("in the body: skill: invalid type"), "{detail}");
    let foreign =
        site.ask("POST", "/api/skills/executions", &[&length, "Origin: http://evil.example"]);
    foreign.problem(403);
    let large = format!(r#"{{"skill": "{}"}}"#, "x".repeat(70_000));
    site.post_json("/api/skills/executions", &large).problem(413);
    assert_eq!(metric(&site, WRITTEN), 0);
}

#[test]
fn telling_needs_the_token_too() {
    let workspace = Workspace::new().promoted("pr", "# PR").env("SELFTEST_TOKEN", "open-sesame-01");
    let site = Site::start(workspace);
    let body = r#"{"skill": "pr", "execution_status": "success"}"#;
    site.post_json("/api/skills/executions", body).problem(401);
    site.post("/api/skills/x/disable").problem(401);
}

/// docs/spec/skills-and-signals.md#effectiveness-score: score and rates on the page.
#[test]
fn pages_show_what_the_score_is_made_of() {
    let workspace = Workspace::new().promoted("pr", "# PR");
    let site = Site::start(workspace.used("pr", "success", 6).used("pr", "error", 2));
    let id = active(&site);
    let page = site.get(&format!("/skills/{id}")).status(200).text();
    // 0.4 * 6 / 8 + 0.25 + 0.2.
    for part in [
        "<strong class=\"good\">0.75</strong>",
        "<dt>succeeded</dt><dd>75 %</dd>",
        "<dt>thanked for</dt><dd>0 %</dd>",
        "Succeeded per week, oldest first: 0, 0, 0, 0, 0, 0, 0, 6 of 8",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    let list = site.get("/skills").status(200).text();
    assert!(list.contains("oldest first: 0, 0, 0, 0, 0, 0, 0, 6 of 8"), "{list}");
}
