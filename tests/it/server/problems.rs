//! Errors are `application/problem+json`.

use super::client::send;
use super::site::{Site, graded};
use crate::workspace::Workspace;

#[test]
fn unknown_paths_and_methods() {
    let site = Site::start(Workspace::new());
    for path in ["/api", "/api/", "/api/nothing", "/nothing/at/all", "/api/sessions/"] {
        let detail = site.get(path).problem(404);
        assert!(!detail.is_empty());
    }
    for (method, path, allowed) in [
        ("POST", "/api/sessions", "GET,HEAD"),
        ("DELETE", "/api/grades/session/x", "GET,HEAD,POST"),
        ("PUT", "/api/runs/x", "GET,HEAD"),
        ("OPTIONS", "/api/patterns", "GET,HEAD"),
        ("TRACE", "/healthz", "GET,HEAD"),
        ("PATCH", "/metrics", "GET,HEAD"),
        ("FETCH", "/api/openapi.json", "GET,HEAD"),
    ] {
        let answer = site.ask(method, path, &["Content-Length: 0"]);
        assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
        answer.problem(405);
    }
}

#[test]
fn parameters_that_nobody_knows_are_named() {
    let site = Site::start(Workspace::new());
    for path in [
        "/api/sessions?colour=red",
        "/api/grades/recent?limit=1&colour=red",
        "/api/runs?colour",
        "/api/reports/weekly?colour=",
        "/api/patterns?colour=red&days=1",
    ] {
        let detail = site.get(path).problem(400);
        assert!(detail.contains("colour"), "{path}: {detail}");
    }
    for query in [
        "limit=0",
        "limit=501",
        "limit=x",
        "limit=",
        "limit=1&limit=2",
        "limit=99999999999999999999",
        "sort=size",
        "sort=",
        "order=up",
        "completed=1",
        "task_type=nothing",
        "min_quality=2",
        &format!("search={}", "x".repeat(201)),
        &format!("agent={}", "x".repeat(201)),
    ] {
        let (name, _) = query.split_once('=').unwrap();
        let detail = site.get(&format!("/api/sessions?{query}")).problem(400);
        assert!(detail.contains(name), "{query}: {detail}");
        assert!(detail.len() < 400);
    }
}

#[test]
fn hostile_ids_find_nothing() {
    let site = Site::start(graded());
    let long = "a".repeat(10_000);
    for id in [
        "../../etc/passwd",
        "..%2F..%2Fetc%2Fpasswd",
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "%00",
        "00000001-0000-4000-8000-00000000c0de%00",
        "%27%20OR%201=1--",
        "%F0%9F%A6%80",
        "%",
        "*",
        "%25",
        "%0d%0aSet-Cookie:%20a=b",
        ".",
        "..",
        "....%2F%2F",
        &long,
    ] {
        for path in [
            "/api/sessions/",
            "/api/grades/session/",
            "/api/runs/",
            "/api/reports/weekly/",
            "/api/debug/reflection/grade/",
        ] {
            let answer = site.get(&format!("{path}{id}"));
            assert_eq!(answer.header("set-cookie"), None);
            let detail = answer.problem(404);
            assert!(!detail.contains("root:") && detail.len() < 400, "{detail}");
        }
        site.post(&format!("/api/grades/session/{id}")).problem(404);
    }
    // No UTF-8.
    site.get("/api/sessions/%ff%fe").problem(400);
}

#[test]
fn large_requests_are_refused() {
    let site = Site::start(graded());
    let host = format!("Host: {}", site.address);
    let body = vec![b'x'; 65 * 1024];
    let length = format!("Content-Length: {}", body.len());
    let lines = ["POST /api/grades/session/x HTTP/1.1", &host, &length];
    let detail = send(&site.address, &lines, &body).problem(413);
    assert!(detail.contains("too large"), "{detail}");
    // Nothing of ours answers a head that does not fit.
    let line = format!("GET /api/sessions?search={} HTTP/1.1", "x".repeat(1_000_000));
    let answer = send(&site.address, &[&line, &host], b"");
    assert!(matches!(answer.status, 414 | 431), "{}", answer.status);
    site.get("/healthz").status(200);
}

#[test]
fn a_database_that_fails_is_our_fault_and_says_nothing_of_it() {
    let site = Site::start(graded());
    site.workspace.sql("DROP TABLE session_quality_grades");
    let detail = site.get("/api/grades/recent").problem(500);
    assert!(!detail.contains("session_quality_grades") && !detail.contains('/'), "{detail}");
    site.get("/api/sessions").status(200);
}
