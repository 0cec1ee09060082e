//! Who may use the server: addresses, tokens, login.

use std::time::{Duration, Instant};

use super::client::send;
use super::site::{Site, graded};
use crate::workspace::Workspace;

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

const TOKEN: &str = "open-sesame-0123456789";

fn login(site: &Site, token: &str) -> super::client::Answer {
    let body = format!("token={token}");
    let lines = [
        "POST /login HTTP/1.1",
        &format!("Host: {}", site.address),
        "Content-Type: application/x-www-form-urlencoded",
        &format!("Content-Length: {}", body.len()),
    ];
    send(&site.address, &lines, body.as_bytes())
}

#[test]
fn nothing_is_shown_without_it() {
    let workspace = graded().env("SELFTEST_TOKEN", TOKEN);
    let site = Site::start(workspace);
    let paths = ["/api/sessions", "/api/openapi.json", "/metrics", "/", "/nothing", "/api/runs/x"];
    for (number, path) in paths.into_iter().enumerate() {
        let answer = site.get(path);
        assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"selftest\""));
        answer.problem(401);
        for wrong in [
            "Authorization: Bearer wrong",
            "Authorization: Bearer ",
            &format!("Authorization: Bearer {TOKEN}x"),
            &format!("Authorization: Basic {TOKEN}"),
            &format!("Authorization: {TOKEN}"),
            &format!("Cookie: selftest={TOKEN}"),
        ] {
            // Each wrong token of a client is answered later than the one before.
            if number == 0 || !wrong.contains("Bearer") {
                site.ask("GET", path, &[wrong]).problem(401);
            }
        }
        let page = site.ask("GET", path, &["Accept: text/html,*/*"]).status(303);
        assert_eq!(page.header("location"), Some("/login"));
    }
    site.post("/api/grades/session/x").problem(401);
    let right = format!("Authorization: Bearer {TOKEN}");
    let api = site.ask("GET", "/api/openapi.json", &[&right]).json();
    let [security] = &api["security"].as_array().unwrap()[..] else { panic!("{api}") };
    let [name] = &security.as_object().unwrap().keys().collect::<Vec<_>>()[..] else {
        panic!("{security}")
    };
    let scheme = &api["components"]["securitySchemes"][name.as_str()];
    assert_eq!((&scheme["type"], &scheme["scheme"]), (&"http".into(), &"bearer".into()));
    site.get("/healthz").status(200);
    site.get("/readyz").status(200);
    for scheme in ["Bearer", "bearer"] {
        let right = format!("Authorization: {scheme} {TOKEN}");
        site.ask("GET", "/api/sessions", &[&right]).json();
        site.ask("GET", "/nothing", &[&right]).problem(404);
    }
}

#[test]
fn a_person_gives_it_once() {
    let workspace = graded().file("token", format!("  {TOKEN}\n"));
    let site = Site::with(workspace, &["--token-file", "token"]);
    let form = site.get("/login").status(200);
    assert!(form.text().contains("<form method=\"post\">"));
    for token in ["wrong", &"x".repeat(1000)] {
        let refused = login(&site, token).status(401);
        assert_eq!(refused.header("set-cookie"), None);
        assert!(refused.text().contains("not the token"));
    }
    let entered = login(&site, TOKEN).status(200);
    let cookie = entered.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(TOKEN) && !entered.text().contains(TOKEN));
    let (pair, _) = cookie.split_once(';').unwrap();
    site.ask("GET", "/api/sessions", &[&format!("Cookie: other=1; {pair}")]).json();
    site.ask("GET", "/api/sessions", &[&format!("Cookie: {pair}0")]).problem(401);
    let run = site.into_running();
    assert!(!run.said().contains(TOKEN) && !run.log().contains(TOKEN));
}

#[test]
fn wrong_tokens_are_slowed_and_logged_without_the_token() {
    const GUESS: &str = "guess-0123456789";
    let site = Site::start(graded().env("SELFTEST_TOKEN", TOKEN));
    let wrong = || {
        let started = Instant::now();
        let header = format!("Authorization: Bearer {GUESS}");
        let detail = site.ask("GET", "/api/sessions", &[&header]).problem(401);
        assert!(detail.contains("not the token"), "{detail}");
        started.elapsed()
    };
    let times = [(); 4].map(|()| wrong());
    assert!(times[3] >= Duration::from_millis(800), "{times:?}");
    assert!(times[3] > times[0], "{times:?}");
    // A request without a token does not count as a guess, and one with the right token does not wait.
    let started = Instant::now();
    site.get("/api/sessions").problem(401);
    site.ask("GET", "/api/sessions", &[&format!("Authorization: Bearer {TOKEN}")]).json();
    assert!(started.elapsed() < Duration::from_millis(800), "{:?}", started.elapsed());
    // Many at once are not looked at.
    let statuses = std::thread::scope(|scope| {
        let ask = || login(&site, GUESS).status;
        let threads = [(); 12].map(|()| scope.spawn(ask));
        threads.map(|thread| thread.join().unwrap())
    });
    assert!(statuses.iter().all(|status| [401, 429].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&401) && statuses.contains(&429), "{statuses:?}");
    let log = site.await_log("a wrong token from 127.0.0.1, number 4 in a row");
    assert!(!log.contains(GUESS) && !log.contains(TOKEN), "{log}");
}

#[test]
fn a_token_in_an_address_is_refused() {
    let site = Site::start(graded().env("SELFTEST_TOKEN", TOKEN));
    for path in ["/login", "/api/sessions", "/", "/nothing"] {
        for name in ["token", "access_token", "API_KEY"] {
            let answer = site.get(&format!("{path}?a=b&{name}={TOKEN}"));
            assert_eq!(answer.header("set-cookie"), None);
            let detail = answer.problem(400);
            assert!(
                detail.contains("Authorization: Bearer") && !detail.contains(TOKEN),
                "{detail}"
            );
        }
    }
}

#[test]
fn a_server_for_other_machines_needs_one() {
    for address in ["0.0.0.0", "::", "192.0.2.1"] {
        let run = Workspace::new().args(["serve", "--port=0", "--addr", address]).run().exit(2);
        run.one_error(&["can be reached from other machines and no token is set"])
            .stderr_contains("hint: set --token-file or SELFTEST_TOKEN");
    }
}

#[test]
fn a_token_that_is_none_is_refused() {
    let workspace = Workspace::new().file("empty", " \n");
    for (words, said) in [
        (&["--token", ""][..], "the token of --token is empty"),
        (&["--token", " "], "the token of --token is empty"),
        (&["--token-file", "empty"], "the token of empty is empty"),
        (&["--token-file", "nothing"], "cannot read nothing"),
    ] {
        let words = [&["serve", "--port", "0"], words].concat();
        let _ = workspace.clone().args(words).run().exit(2).one_error(&[said]);
    }
}
