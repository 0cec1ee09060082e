//! The queue of gradings: who fills it, who empties it, and what fails in it.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::{QUEUE, sessions};
use crate::databases::on_each_database;
use crate::grade::recording::id;
use crate::model_server::{ModelServer, Reply, Role, quality};
use crate::server::site::Site;
use crate::workspace::{OPENAI, Workspace};

on_each_database! {
    what_is_queued_is_graded_once,
    a_failure_has_a_reason_and_another_chance,
    what_failed_does_not_keep_others_out_of_the_queue,
    a_killed_worker_loses_nothing,
    a_server_queues_for_workers_elsewhere,
}

const GOOD: [Option<f64>; 4] = [Some(0.9), Some(0.5), Some(0.7), None];

const ONCE: [&str; 2] = ["--once", "--no-schedule"];

fn graded(workspace: &Workspace) -> Vec<Vec<String>> {
    workspace.sql("SELECT session_id FROM session_quality_grades ORDER BY session_id")
}

fn what_is_queued_is_graded_once(workspace: Workspace) {
    let server = ModelServer::start();
    let workspace = sessions(workspace, &server, 12);
    let words = ["backfill", "--queue", "--no-scan"];
    let run = workspace.clone().grade(&words).run().exit(0);
    let _ = run.stdout_contains("openai/gpt-4o-mini: 12 sessions queued, 0 waited already");
    let run = workspace.clone().grade(&words).run().exit(0);
    let _ = run.stdout_contains("0 sessions queued, 12 waited already");
    assert_eq!(workspace.counts(), [12, 0, 0, 0]);

    let run = workspace.worker(&["--once", "--no-schedule", "--concurrency=3"]).run().exit(0);
    assert_eq!(run.stderr.matches("run_session_grading START").count(), 12, "{}", run.stderr);
    assert_eq!(run.stderr.matches("run_session_grading DONE").count(), 12, "{}", run.stderr);
    assert_eq!(workspace.counts(), [0, 0, 0, 12]);
    assert_eq!(graded(&workspace).len(), 12);
    assert_eq!(server.calls(Role::Grader).len(), 12);
    assert!(server.most_in_flight() <= 3);

    let _ = workspace.worker(&ONCE).run().exit(0);
    let run = workspace.clone().grade(&words).run().exit(0);
    let _ = run.stderr_contains("every session has its grade");
    assert_eq!(server.calls(Role::Grader).len(), 12);
}

fn a_failure_has_a_reason_and_another_chance(workspace: Workspace) {
    let bad = |number: usize| number < 2;
    let server = ModelServer::script()
        .grader(move |call| {
            let first = call.text().contains("file 00001") && bad(call.number);
            if first { Reply::from("8 of 10!") } else { quality(call, GOOD).into() }
        })
        .start();
    let workspace = sessions(workspace, &server, 2);
    workspace.enqueue();
    let run = workspace.worker(&ONCE).run().exit(0);
    let _ = run.stderr_contains("run_session_grading FAILED");
    assert_eq!(workspace.counts(), [0, 0, 1, 1]);
    let failed = workspace.listing()["failed"][0].clone();
    assert_eq!((&failed["session_id"], &failed["attempts"]), (&json!(id(1)), &json!(1)));
    assert!(failed["why"].as_str().unwrap().contains("not a valid grade"), "{failed}");
    let list = workspace.jobs(&["jobs"]).run().exit(0);
    let list = list.stdout_contains("1 failed, 1 done").stdout_contains("not a valid grade");
    let _ = list.stdout_contains("selftest worker retry --all");

    let unknown = workspace.jobs(&["retry", "01J00"]).run().exit(2).one_error(&["01J00"]);
    let _ = unknown.stderr_contains("hint: `selftest worker jobs`");
    let _ = workspace.jobs(&["retry"]).run().exit(2);
    let id = failed["id"].as_str().unwrap();
    let run = workspace.jobs(&["retry", id]).run().exit(0);
    let _ = run.stdout_contains("1 grading will be tried again");
    assert_eq!(workspace.counts(), [1, 0, 0, 1]);
    // The third call of all is answered well.
    let _ = workspace.worker(&ONCE).run().exit(0);
    let _ = workspace.jobs(&["retry", "--all"]).run().exit(0).stdout_contains("0 gradings");
    assert_eq!(workspace.counts(), [0, 0, 0, 2]);
    assert_eq!(graded(&workspace).len(), 2);
}

fn what_failed_does_not_keep_others_out_of_the_queue(workspace: Workspace) {
    let server = ModelServer::script()
        .grader(|call| match call.number {
            0 => Reply::from("8 of 10!"),
            _ => quality(call, GOOD).into(),
        })
        .start();
    let workspace = sessions(workspace, &server, 2);
    for counts in [[0, 0, 1, 0], [0, 0, 1, 1], [0, 0, 0, 2]] {
        let words = ["backfill", "--queue", "--no-scan", "--limit=1"];
        let run = workspace.clone().grade(&words).run().exit(0);
        let _ = run.stdout_contains("1 session queued, 0 waited already");
        let _ = workspace.worker(&ONCE).run().exit(0);
        assert_eq!(workspace.counts(), counts);
    }
}

fn a_killed_worker_loses_nothing(workspace: Workspace) {
    let server = ModelServer::script()
        .grader(|call| match call.number {
            1 => Reply::Hang,
            _ => quality(call, GOOD).into(),
        })
        .start();
    let workspace = sessions(workspace, &server, 4);
    workspace.enqueue();
    let worker = workspace.worker(&["--no-schedule", "--concurrency=1"]);
    let hangs = || server.calls(Role::Grader).len() == 2;
    let killed = worker.spawn().until("the second call", hangs);
    assert_eq!(workspace.counts()[1], 1);
    let _ = killed.signal(Signal::KILL).wait().killed_by(9);
    let started = Instant::now();
    let done = || server.calls(Role::Grader).len() == 5;
    let running = worker.spawn().until("all were asked for again", done);
    while workspace.counts()[3] < 4 {
        assert!(started.elapsed() < Duration::from_mins(1), "{:?}", workspace.counts());
        std::thread::sleep(Duration::from_millis(50));
    }
    let run = running.signal(Signal::INT).wait().exit(0);
    assert_eq!(run.stderr.matches("attempt=2").count(), 1, "{}", run.stderr);
    assert_eq!(graded(&workspace).len(), 4);
    assert_eq!(server.calls(Role::Grader).len(), 5, "only what was interrupted is done again");
}

fn a_server_queues_for_workers_elsewhere(workspace: Workspace) {
    let server = ModelServer::start();
    let workspace = sessions(workspace, &server, 2);
    let site = Site::with(workspace.clone(), &["--no-worker"]);
    let path = format!("/api/grades/session/{}", id(1));
    site.post(&path).status(202);
    let detail = site.post(&path).problem(409);
    assert!(detail.contains("waits to be graded already"), "{detail}");
    let page = site.get(&format!("/sessions/{}", id(1))).text();
    assert!(page.contains("A grading is queued or running."), "{page}");
    let jobs = site.get("/jobs").text();
    assert!(jobs.contains("No worker is running"), "{jobs}");
    assert_eq!(server.calls(Role::Grader).len(), 0);

    let _ = workspace.worker(&ONCE).run().exit(0);
    assert_eq!(site.get(&path).json()["models"][0]["model"], OPENAI);
    assert!(!site.get(&format!("/sessions/{}", id(1))).text().contains("A grading waits"));
    // It may be asked for once more, and a newer grade is made.
    site.post(&path).status(202);
    let _ = workspace.worker(&ONCE).run().exit(0);
    assert_eq!(server.calls(Role::Grader).len(), 2);
}

#[test]
fn a_request_that_waited_while_the_server_was_down_is_not_lost() {
    let server = ModelServer::start();
    let workspace = sessions(Workspace::new(), &server, 1);
    let path = format!("/api/grades/session/{}", id(1));
    let site = Site::with(workspace.clone(), &["--no-worker"]);
    site.post(&path).status(202);
    let _ = site.into_running().signal(Signal::TERM).wait().exit(0);
    let site = Site::start(workspace);
    let started = Instant::now();
    while site.get(&path).json()["models"] == json!([]) {
        assert!(started.elapsed() < Duration::from_mins(1));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_model_that_is_gone_ends_a_single_round_and_costs_nothing() {
    let server = ModelServer::script().grader(|_| Reply::status(503)).start();
    let workspace = sessions(Workspace::new(), &server, 5);
    workspace.enqueue();
    let run = workspace.worker(&ONCE).run().exit(5).one_error(&["the model does not answer"]);
    let _ = run.stderr_contains("hint: `selftest doctor`");
    let [waiting, running, _, done] = workspace.counts();
    assert_eq!((running, done), (0, 0));
    assert!(waiting >= 4, "{waiting} wait");
    drop(server);
    let server = ModelServer::start();
    let workspace = workspace.server(&server);
    let _ = workspace.jobs(&["retry", "--all"]).run().exit(0);
    let _ = workspace.worker(&ONCE).run().exit(0);
    assert_eq!(workspace.counts(), [0, 0, 0, 5]);
}

#[test]
fn a_grade_that_was_kept_before_the_worker_died_is_not_asked_for_again() {
    let server = ModelServer::start();
    let workspace = sessions(Workspace::new(), &server, 1);
    workspace.enqueue();
    // As a worker leaves it that dies between keeping the grade and saying so.
    let _ = workspace.clone().grade(&["session", &id(1)]).run().exit(0);
    let run = workspace.worker(&ONCE).run().exit(0).stderr_contains("graded before");
    drop(run);
    assert_eq!(server.calls(Role::Grader).len(), 1);
    assert_eq!(workspace.counts(), [0, 0, 0, 1]);
}

/// As a worker leaves the database that was killed while its clock was thirty years ahead.
#[test]
fn a_clock_that_was_ahead_holds_nothing() {
    let server = ModelServer::script()
        .grader(|call| match call.number {
            0 => Reply::Hang,
            _ => quality(call, GOOD).into(),
        })
        .start();
    let workspace = sessions(Workspace::new(), &server, 3);
    workspace.enqueue();
    let worker = workspace.worker(&["--no-schedule", "--concurrency=1"]);
    let hangs = || server.calls(Role::Grader).len() == 1;
    let _ = worker.spawn().until("a call", hangs).signal(Signal::KILL).wait().killed_by(9);
    let _ = workspace.sql_in(QUEUE, "UPDATE Jobs SET run_at = run_at + 1000000000");
    let _ = workspace.sql_in(QUEUE, "UPDATE Workers SET last_seen = last_seen + 1000000000");
    let _ = workspace.sql("UPDATE job_leases SET seen = seen + 1000000000");
    // What waits is graded at once, what was begun as soon as its worker counts as dead.
    let _ = workspace.worker(&ONCE).run().exit(0);
    assert!(workspace.counts()[3] >= 2, "{:?}", workspace.counts());
    let started = Instant::now();
    while workspace.counts()[3] < 3 {
        assert!(started.elapsed() < Duration::from_mins(1), "{:?}", workspace.counts());
        std::thread::sleep(Duration::from_secs(1));
        let _ = workspace.worker(&ONCE).run().exit(0);
    }
    assert_eq!(graded(&workspace).len(), 3);
    assert_eq!(server.calls(Role::Grader).len(), 4, "only what was interrupted is done again");
}

#[test]
fn work_that_ends_its_worker_is_given_up() {
    let server = ModelServer::start();
    let workspace = sessions(Workspace::new(), &server, 1);
    workspace.enqueue();
    let _ = workspace.sql_in(QUEUE, "UPDATE Jobs SET attempts = 3");
    let _ = workspace.worker(&ONCE).run().exit(0);
    let why = workspace.listing()["failed"][0]["why"].as_str().unwrap().to_owned();
    assert_eq!(why, "its worker ended in the middle of it 3 times");
    assert_eq!(server.calls(Role::Grader).len(), 0);
}

#[test]
fn work_that_nobody_can_read_does_not_stop_the_queue() {
    let server = ModelServer::start();
    let workspace = sessions(Workspace::new(), &server, 2);
    workspace.enqueue();
    let _ = workspace
        .sql_in(QUEUE, "UPDATE Jobs SET job = '{\"of\": \"a later version\"}' WHERE rowid = 1");
    let _ = workspace.worker(&ONCE).run().exit(0);
    let [waiting, running, failed, done] = workspace.counts();
    assert_eq!((waiting, running, failed, done), (0, 0, 1, 1));
}
