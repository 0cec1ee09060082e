//! Workers that are killed while they work, and a database that is started anew: each session is
//! graded once, nothing is lost, and nothing that was done is done again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::sessions;
use crate::model_server::{ModelServer, Role};
use crate::run::Running;
use crate::workspace::Workspace;

/// Workers at once.
const WORKERS: usize = 4;
/// Gradings at once in each of them.
const CONCURRENCY: usize = 4;
/// Past this something is stuck.
const MAX_TIME: Duration = Duration::from_secs(110);

/// The events while the workers work.
struct Chaos<'a> {
    sessions: u32,
    /// Between two kills.
    every: Duration,
    /// Done once, when so many gradings are done.
    halfway: Option<Box<dyn FnOnce() + 'a>>,
}

fn start(workspace: &Workspace) -> Running {
    let concurrency = format!("--concurrency={CONCURRENCY}");
    workspace.worker(&["--no-schedule", &concurrency]).spawn()
}

/// Number of calls for each session, identified by what was asked in it.
fn calls(server: &ModelServer) -> HashMap<String, usize> {
    let mut calls = HashMap::new();
    for call in server.calls(Role::Grader) {
        let text = call.text();
        let (_, rest) = text.split_once("Fix the parser of file ").unwrap();
        *calls.entry(rest[..5].to_owned()).or_default() += 1;
    }
    calls
}

impl Chaos<'_> {
    /// Kills one worker after the other, starts another in its place, until all is done.
    fn unleash(mut self, workspace: &Workspace, server: &ModelServer) {
        workspace.enqueue();
        let count = usize::try_from(self.sessions).unwrap();
        let mut workers: Vec<Running> = (0..WORKERS).map(|_| start(workspace)).collect();
        let (started, mut kills) = (Instant::now(), 0);
        loop {
            std::thread::sleep(self.every);
            let so_far = usize::try_from(workspace.counts()[3]).unwrap();
            if so_far == count {
                break;
            }
            assert!(started.elapsed() < MAX_TIME, "{so_far} of {count} after {kills} kills");
            if so_far > count / 2
                && let Some(halfway) = self.halfway.take()
            {
                halfway();
            }
            let killed = workers.remove(0);
            let _ = killed.signal(Signal::KILL).wait().killed_by(9);
            kills += 1;
            workers.push(start(workspace));
        }
        assert_eq!(workspace.counts(), [0, 0, 0, u64::from(self.sessions)]);
        for worker in workers {
            let run = worker.signal(Signal::TERM).wait().exit(0);
            assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        }
        assert!(kills > 0, "all was done within {:?}", started.elapsed());

        let recent = ["grade", "recent", "--limit=10000", "--json"];
        let grades = workspace.clone().args(recent).run().exit(0).json();
        assert_eq!(grades.as_array().unwrap().len(), count, "one grade for each session");
        let calls = calls(server);
        assert_eq!(calls.len(), count, "each session was asked about");
        let again: usize = calls.values().map(|calls| calls - 1).sum();
        // A kill, and the database's end, interrupt at most what the workers are at.
        let interrupted = (kills + WORKERS) * CONCURRENCY;
        assert!(again <= interrupted, "{again} calls too many after {kills} kills");
    }
}

/// A retry may meet the next kill: nothing is given up in this test.
const JOBS: &str = "{ heartbeat_seconds: 1, retry_seconds: 0, max_attempts: 50 }";

fn patient(workspace: Workspace) -> Workspace {
    workspace.config(super::config(JOBS))
}

#[test]
fn on_sqlite() {
    let server = ModelServer::script().delay(Duration::from_millis(10)).start();
    let workspace = patient(sessions(Workspace::new(), &server, 300));
    let chaos = Chaos { sessions: 300, every: Duration::from_millis(700), halfway: None };
    chaos.unleash(&workspace, &server);
}

#[cfg(feature = "postgres")]
#[test]
fn on_postgres_while_the_database_is_started_anew() {
    use crate::databases::Server;

    let Some(database) = Server::new() else { return };
    let server = ModelServer::start();
    let workspace = Workspace::new().env("DATABASE_URL", &database.address);
    let workspace = patient(sessions(workspace, &server, 2000));
    let restart = Box::new(|| {
        database.stop();
        std::thread::sleep(Duration::from_secs(1));
        database.start_again();
    });
    let every = Duration::from_secs(1);
    let chaos = Chaos { sessions: 2000, every, halfway: Some(restart) };
    chaos.unleash(&workspace, &server);
}
