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

/// A browser gets a page to read, a program JSON, whatever went wrong and wherever.
#[test]
fn browsers_get_pages_and_programs_json() {
    const BROWSER: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let site = Site::start(graded());
    site.workspace.sql("DROP TABLE session_quality_grades");
    let shown = |method: &str, path: &str, headers: &[&str], status: u16| {
        let headers = [&["Content-Length: 0"], headers].concat();
        let page = site
            .ask(method, path, &[&headers[..], &[BROWSER, "Accept-Encoding: gzip"]].concat())
            .status(status);
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert_eq!(page.header("content-encoding"), None, "{path}");
        let text = page.text();
        assert!(text.starts_with("<!doctype html>") && text.contains("<h1>"), "{path}: {text}");
        assert!(text.contains("<nav aria-label=\"Pages\">"), "one gets on from there");
        let detail = site.ask(method, path, &headers).problem(status);
        let start = detail.split(['<', '\'', '"', '&']).next().unwrap();
        assert!(text.contains(start), "{path}: {detail} is not in {text}");
        page
    };
    for path in ["/nothing", "/nothing/at/all", "/api/nothing", "/sessions/x", "/selftests/x"] {
        shown("GET", path, &[], 404);
    }
    shown("GET", "/skills/x", &[], 404);
    shown("GET", "/api/grades/recent", &[], 500);
    let wrong = shown("DELETE", "/api/sessions", &[], 405);
    assert_eq!(wrong.header("allow"), Some("GET,HEAD"));
    shown("POST", "/proposals/x/accept", &["Origin: http://evil.example"], 403);
    shown("GET", "/sessions?sort=size", &[], 400);
    let hostile = site.ask("GET", "/%3Cscript%3Ealert(1)%3C/script%3E", &[BROWSER]).status(404);
    assert!(!hostile.text().contains("<script>alert"), "{}", hostile.text());
    // A program that takes both gets JSON.
    site.ask("GET", "/nothing", &["Accept: application/json, text/html"]).problem(404);
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
