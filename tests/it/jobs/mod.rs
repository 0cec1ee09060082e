//! `selftest worker` and `selftest worker jobs`: the weekly schedule, the queue of gradings, and workers
//! that are killed.

mod gradings;
mod killing;
mod page;
mod schedule;

use serde_json::Value;

use crate::grade::recording::{Recording, id};
use crate::model_server::ModelServer;
use crate::workspace::{CLEAR, OPENAI, Workspace};

/// Where the queue is by default.
const QUEUE: &str = ".selftest/selftest-jobs.db";

/// Heartbeats once a second; a model that does not answer is asked again at once.
const QUICK: &str = "{ heartbeat_seconds: 1, retry_seconds: 0 }";

/// A configuration with this `jobs` section, under which the server's model grades and drafts.
fn config(jobs: &str) -> String {
    format!(
        "version: 1\nmodels: {{ max_retries: 0, restart_seconds: 0 }}\ngenerator: {{ model: \"{OPENAI}\" }}\n\
         grade: {{ quality: {{ model: \"{OPENAI}\", max_reasks: 0 }} }}\n\
         jobs: {jobs}\nscenarios:\n{CLEAR}"
    )
}

/// Sessions with these numbers, graded by rules, none of them by a model.
fn sessions(workspace: Workspace, server: &ModelServer, count: u32) -> Workspace {
    let written = (1..=count).fold(workspace, |workspace, number| {
        let at = format!("2026-11-1{}T10:00:{:02}Z", number % 9, number % 60);
        let recording = Recording::new(&id(number)).at(&at);
        let recording = recording.asks(&format!("Fix the parser of file {number:05}"));
        workspace.session(&recording.says("Done: the change is saved to src/parser.rs."))
    });
    let workspace = written.config(config(QUICK)).server(server);
    let _ = workspace.clone().grade(&["summary", "--days", "36500"]).run().exit(0);
    workspace
}

impl Workspace {
    /// `selftest worker` on the sessions of the project.
    fn worker(&self, words: &[&str]) -> Self {
        self.clone().args([&["worker", "--source", "sessions"], words].concat())
    }

    fn jobs(&self, words: &[&str]) -> Self {
        self.clone().args([&["worker"], words].concat())
    }

    /// Queues every session that has no grade by the model.
    fn enqueue(&self) {
        let words = ["backfill", "--queue", "--no-scan"];
        let _ = self.clone().grade(&words).run().exit(0);
    }

    /// The output of `selftest worker jobs`.
    fn listing(&self) -> Value {
        self.jobs(&["jobs", "--json"]).run().exit(0).json()
    }

    /// Waiting, running, failed, done.
    fn counts(&self) -> [u64; 4] {
        let counts = self.listing();
        ["waiting", "running", "failed", "done"]
            .map(|state| counts["gradings"][state].as_u64().unwrap())
    }
}
