//! A running server with a project behind it.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::{Answer, send};
use crate::grade::recording::{Recording, id};
use crate::run::Running;
use crate::workspace::Workspace;

/// A server that ends with the test.
pub(crate) struct Site {
    running: Running,
    pub(crate) workspace: Workspace,
    /// Host and port.
    pub(crate) address: String,
}

/// Sessions 1 to 4 that are graded by rules; by models 1 and 2, the first by two of them.
pub(crate) fn graded() -> Workspace {
    graded_in(Workspace::new())
}

/// The same in this project.
pub(crate) fn graded_in(workspace: Workspace) -> Workspace {
    let workspace = workspace
        .session(&Recording::on(&id(1), "2026-11-16T10:00:00Z", true))
        .session(&Recording::on(&id(2), "2026-11-17T10:00:00Z", false))
        .session(&Recording::on(&id(3), "2026-11-18T10:00:00Z", true))
        .session(&Recording::on(&id(4), "2026-11-19T10:00:00Z", false));
    let _ = workspace.clone().grade(&["latest", "10"]).run().exit(0);
    quality(&workspace, &id(1), "m-1", 0.25, "2026-11-20T10:00:00Z");
    quality(&workspace, &id(1), "m-2", 0.75, "2026-11-20T11:00:00Z");
    quality(&workspace, &id(2), "m-1", 0.875, "2026-11-20T12:00:00Z");
    workspace
}

/// Keeps a grade by a model, as the program that grades would.
pub(crate) fn quality(workspace: &Workspace, session: &str, model: &str, overall: f64, at: &str) {
    workspace.sql(&format!(
        "INSERT INTO session_quality_grades (session_id, grader_model, rubric_version, ts, \
         problem_solved, tests_added, overall, reasoning, details_json) VALUES \
         ('{session}', '{model}', 1, '{at}', {overall}, {overall}, {overall}, 'because', '{{}}')"
    ));
    workspace.sql(&format!(
        "UPDATE session_grades SET quality_rubric = 1, quality = (SELECT AVG(overall) FROM session_quality_grades AS \
         grade WHERE grade.session_id = '{session}') WHERE session_id = '{session}'"
    ));
}

impl Site {
    /// Starts a server on a free port.
    #[track_caller]
    pub(crate) fn start(workspace: Workspace) -> Self {
        Self::with(workspace, &[])
    }

    /// Starts a server with these flags too.
    #[track_caller]
    pub(crate) fn with(workspace: Workspace, flags: &[&str]) -> Self {
        let words: Vec<OsString> =
            ["serve", "--port", "0"].iter().chain(flags).map(OsString::from).collect();
        let running = workspace.clone().args(words).spawn().until_stdout("\n");
        let said = running.said();
        let address = said.trim().strip_prefix("http://").unwrap().to_owned();
        Self { running, workspace, address }
    }

    /// Sends a request with that method, path and more header lines.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[&str]) -> Answer {
        let (first, host) =
            (format!("{method} {path} HTTP/1.1"), format!("Host: {}", self.address));
        send(&self.address, &[&[&*first, &*host], headers].concat(), b"")
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[])
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str) -> Answer {
        self.ask("POST", path, &["Content-Length: 0"])
    }

    /// Posts a body of that media type.
    #[track_caller]
    pub(crate) fn post_body(&self, path: &str, media: &str, body: &[u8]) -> Answer {
        let lines = [
            &format!("POST {path} HTTP/1.1"),
            &format!("Host: {}", self.address),
            &format!("Content-Type: {media}"),
            &format!("Content-Length: {}", body.len()),
        ];
        send(&self.address, &lines.map(String::as_str), body)
    }

    /// Sends a JSON body.
    #[track_caller]
    pub(crate) fn post_json(&self, path: &str, body: &str) -> Answer {
        self.post_body(path, "application/json", body.as_bytes())
    }

    /// The items of all pages of a list, page by page.
    #[track_caller]
    pub(crate) fn pages(&self, path: &str) -> Vec<Vec<Value>> {
        let mut pages = Vec::new();
        let mut next = String::new();
        loop {
            let page = self.get(&format!("{path}{next}")).json();
            pages.push(page["items"].as_array().unwrap().clone());
            match page["next"].as_str() {
                Some(cursor) => next = format!("&cursor={cursor}"),
                None => return pages,
            }
        }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        self.running.pid()
    }

    /// Its stderr so far.
    pub(crate) fn log(&self) -> String {
        self.running.log()
    }

    /// Waits until the log has this text; returns it. A thread of this process reads the log, and
    /// may be behind a response.
    #[track_caller]
    pub(crate) fn await_log(&self, text: &str) -> String {
        let latest = Instant::now() + Duration::from_secs(20);
        loop {
            let log = self.log();
            if log.contains(text) {
                return log;
            }
            assert!(Instant::now() < latest, "no {text} in {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The process.
    pub(crate) fn into_running(self) -> Running {
        self.running
    }
}

/// One field of all items, as text.
pub(crate) fn field<'a>(items: impl IntoIterator<Item = &'a Value>, name: &str) -> Vec<String> {
    let text = |item: &Value| item[name].as_str().unwrap_or_else(|| panic!("{item}")).to_owned();
    items.into_iter().map(text).collect()
}
