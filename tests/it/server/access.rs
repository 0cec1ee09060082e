//! Names of the server, and pages of other sites.

use super::client::send;
use super::site::{Site, graded};

#[test]
fn only_its_own_names_are_answered() {
    let site = Site::with(graded(), &["--host", "box.example"]);
    let port = site.address.rsplit_once(':').unwrap().1.to_owned();
    let ask = |lines: &[&str]| send(&site.address, lines, b"");
    for host in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "box.example"] {
        ask(&["GET /api/sessions HTTP/1.1", &format!("Host: {host}:{port}")]).status(200);
    }
    ask(&["GET /api/sessions HTTP/1.1", "Host: box.example"]).status(200);
    for path in ["/api/sessions", "/healthz", "/metrics", "/login", "/", "/nothing"] {
        let first = format!("GET {path} HTTP/1.1");
        for host in [
            format!("evil.example:{port}"),
            "evil.example".to_owned(),
            "localhost".to_owned(),
            "localhost:1".to_owned(),
            format!("localhost.evil.example:{port}"),
            format!("evil.example@127.0.0.1:{port}"),
            format!("10.1.2.3:{port}"),
            String::new(),
        ] {
            ask(&[&first, &format!("Host: {host}")]).problem(421);
        }
        let own = format!("Host: 127.0.0.1:{port}");
        ask(&[&first, &own, "Host: evil.example"]).problem(421);
        ask(&[&format!("GET http://evil.example:{port}{path} HTTP/1.1"), &own]).problem(421);
        ask(&[&format!("GET {path} HTTP/1.0")]).problem(421);
    }
}

#[test]
fn pages_of_other_sites_cannot_post() {
    let site = Site::start(graded());
    let path = "/api/grades/session/nobody";
    let post = |line: &str| site.ask("POST", path, &["Content-Length: 0", line]);
    for line in [
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://127.0.0.1:1",
        "Origin: ",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ] {
        post(line).problem(403);
    }
    for line in [&*format!("Origin: http://{}", site.address), "Sec-Fetch-Site: same-origin"] {
        post(line).problem(404);
    }
    // Reading is harmless: no other site sees the answer.
    site.ask("GET", "/api/sessions", &["Origin: http://evil.example"]).status(200);
}
