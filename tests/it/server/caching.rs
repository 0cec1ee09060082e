//! Tags, compression, and answers from memory that are never old.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::site::{Site, graded, graded_in, quality};
use crate::databases::on_each_database;
use crate::grade::recording::id;
use crate::workspace::Workspace;

on_each_database! {
    what_another_program_writes_is_seen,
}

#[test]
fn a_tag_spares_the_body_of_what_has_not_changed() {
    let site = Site::start(graded());
    for path in [
        "/api/sessions",
        "/api/grades/recent?limit=2",
        "/api/patterns?days=9",
        "/api/runs",
        "/api/reports/weekly",
        "/api/openapi.json",
        &format!("/api/sessions/{}", id(1)),
    ] {
        let first = site.get(path).status(200);
        let tag = first.header("etag").unwrap_or_else(|| panic!("{path}")).to_owned();
        for known in [&*tag, "*", &format!("\"x\", {tag}"), tag.trim_start_matches("W/")] {
            let again = site.ask("GET", path, &[&format!("If-None-Match: {known}")]).status(304);
            assert_eq!((again.header("etag"), again.body.len()), (Some(&*tag), 0), "{path}");
        }
        let other = site.ask("GET", path, &["If-None-Match: W/\"0\""]).status(200);
        assert_eq!(other.body, first.body);
        let head = site.ask("HEAD", path, &[]).status(200);
        assert_eq!((head.header("etag"), head.body.len()), (Some(&*tag), 0), "{path}");
    }
}

fn what_another_program_writes_is_seen(workspace: Workspace) {
    let site = Site::start(graded_in(workspace));
    let path = "/api/grades/recent";
    let before = site.get(path).status(200);
    for number in 0..5 {
        quality(&site.workspace, &format!("new{number}"), "m", 0.5, "2026-11-21T10:00:00Z");
        let started = Instant::now();
        let new = format!("new{number}");
        while !site.get(path).text().contains(&new) {
            assert!(started.elapsed() < Duration::from_secs(2), "{new} is not there");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    assert_ne!(site.get(path).header("etag"), before.header("etag"));
}

#[test]
fn answers_are_compressed_for_those_who_ask() {
    let site = Site::start(graded());
    for path in ["/api/openapi.json", "/api/sessions"] {
        let plain = site.get(path).status(200);
        assert_eq!(plain.header("content-encoding"), None);
        let packed = site.ask("GET", path, &["Accept-Encoding: gzip"]).status(200);
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
        assert!(packed.header("vary").is_some_and(|vary| vary.contains("accept-encoding")));
        assert!(packed.body.len() < plain.body.len());
        let mut gzip = Command::new("gzip")
            .arg("-dc")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = gzip.stdin.take().unwrap();
        let body = packed.body.clone();
        let writer = std::thread::spawn(move || stdin.write_all(&body).unwrap());
        let output = gzip.wait_with_output().unwrap();
        writer.join().unwrap();
        assert_eq!(output.stdout, plain.body, "{path}");
    }
}
