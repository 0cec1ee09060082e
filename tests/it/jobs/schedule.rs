//! The week of docs/spec/skills-and-signals.md#schedule: what runs when, once, and in which order.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{QUICK, config};
use crate::databases::on_each_database;
use crate::grade::recording::{Recording, id};
use crate::grade::weekly::five_weeks_in;
use crate::model_server::{ModelServer, Role};
use crate::workspace::{NOBODY, Workspace};

on_each_database! {
    the_specified_sunday_can_be_replayed,
    several_at_once_run_each_job_once,
    a_killed_job_is_begun_again,
}

/// The jobs of that morning, in their order, with the times of
/// docs/spec/skills-and-signals.md#schedule.
const SUNDAY: [(&str, &str); 4] = [
    ("run_gap_detection", "2026-11-22T03:00:00Z"),
    ("run_skill_generation_batch", "2026-11-22T03:15:00Z"),
    ("run_weekly_digest", "2026-11-22T03:30:00Z"),
    ("run_skill_effectiveness_scoring", "2026-11-22T04:00:00Z"),
];

/// All of them are due by then.
const NOW: &str = "--now=2026-11-22T04:00:00Z";

fn ran(json: &Value) -> Vec<&str> {
    let ran = json["ran"].as_array().unwrap();
    ran.iter().map(|one| one["job"].as_str().unwrap()).collect()
}

/// The report's entry in a list.
fn digest<'a>(list: &'a Value, key: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|one| one[key] == "run_weekly_digest").unwrap()
}

fn kept(workspace: &Workspace) -> Vec<Vec<String>> {
    workspace.sql("SELECT job, slot, attempt, status FROM job_runs ORDER BY started_at")
}

fn expected(attempt: &str) -> Vec<[String; 4]> {
    let row = |(job, slot): (&str, &str)| {
        let slot = slot.replace("00Z", "00.000000000Z");
        [job.to_owned(), slot, attempt.to_owned(), "completed".to_owned()]
    };
    SUNDAY.map(row).to_vec()
}

fn the_specified_sunday_can_be_replayed(workspace: Workspace) {
    let server = ModelServer::start();
    let workspace = five_weeks_in(workspace).config(config(QUICK)).server(&server);
    let once = workspace.worker(&["--once", NOW, "--json"]);
    let run = once.run().exit(0);
    let json = run.json();
    assert_eq!(ran(&json), SUNDAY.map(|(job, _)| job));
    assert_eq!(kept(&workspace), expected("1"));
    for (job, slot) in SUNDAY {
        let start = run.stderr.find(&format!("{job} START  slot={slot} attempt=1")).unwrap();
        let done = run.stderr.find(&format!("{job} DONE  ")).unwrap();
        assert!(start < done, "{}", run.stderr);
    }
    let gaps = &json["ran"][0]["summary"];
    assert_eq!((&gaps["sessions_graded"], &gaps["gaps_new"]), (&json!(32), &json!(2)));
    let drafts = json["ran"][1]["summary"].as_object().unwrap();
    let counts = ["gaps_found", "gaps_processed", "proposals_created", "failures"];
    assert_eq!(counts.map(|name| drafts[name].as_u64().unwrap()), [2, 2, 2, 0]);
    assert_eq!(server.calls(Role::Drafter).len(), 2);
    let digest = &digest(&json["ran"], "job")["summary"];
    assert_eq!(digest["status"], "completed");
    assert!(digest["elapsed_ms"].as_f64().unwrap() > 0.0, "{digest}");
    assert_eq!(digest["sessions"], 12, "of the week that ends on that Sunday: {digest}");
    assert_eq!((&digest["week"], &digest["sessions_graded"]), (&json!("2026-W47"), &json!(0)));
    assert!(run.read("docs/reports/weekly/2026-W47.md").contains("0 of 12"));

    // A second call does nothing.
    let again = once.run().exit(0);
    assert_eq!(again.json()["ran"], json!([]));
    assert!(!again.stderr.contains("START"), "{}", again.stderr);
    assert_eq!(kept(&workspace), expected("1"));
}

fn several_at_once_run_each_job_once(workspace: Workspace) {
    let server = ModelServer::start();
    let workspace = five_weeks_in(workspace).config(config(QUICK)).server(&server);
    let once = workspace.worker(&["--once", NOW, "--json"]);
    let running: Vec<_> = (0..4).map(|_| once.spawn()).collect();
    let ran: usize = running.into_iter().map(|one| ran(&one.wait().exit(0).json()).len()).sum();
    assert_eq!(ran, SUNDAY.len());
    assert_eq!(kept(&workspace), expected("1"));
    assert_eq!(server.calls(Role::Drafter).len(), 2);
}

fn a_killed_job_is_begun_again(workspace: Workspace) {
    // The receiver of the alert hangs the first time.
    let hang = "import os, sys, time; sys.stdin.read()\n\
                if not os.path.exists('begun'): os.close(2); open('begun', 'w'); time.sleep(20)";
    let yaml =
        config(QUICK).replace("grade: {", "grade: { alerts: { command: [python3, hang.py] },");
    let workspace = five_weeks_in(workspace).config(yaml).file("hang.py", hang);
    let begun = workspace.path("begun");
    let once = workspace.worker(&["--once", NOW, "--jobs=run_weekly_digest"]);
    let killed = once.spawn().until("the alert is told", || begun.exists());
    let listing = workspace.listing();
    assert_eq!(digest(&listing["scheduled"], "name")["last"]["state"], "running");
    let _ = killed.signal(Signal::KILL).wait().killed_by(9);

    let started = Instant::now();
    let run = once.run().exit(0);
    assert!(started.elapsed() > Duration::from_secs(1), "it waited for its heartbeat");
    let run = run.stderr_contains("waiting: worker ");
    let _ = run.stderr_contains("run_weekly_digest START  slot=2026-11-22T03:30:00Z attempt=2");
    let row = kept(&workspace).pop().unwrap();
    assert_eq!(row[2..], ["2", "completed"]);
}

/// docs/spec/skills-and-signals.md#schedule: a row for each job, with its time.
#[test]
fn the_runbook_has_the_specified_rows() {
    let runbook = include_str!("../../../docs/operate.md");
    for (job, slot) in SUNDAY {
        let row = format!("| `{job}` | Sunday {} | `", &slot[11..16]);
        assert!(runbook.contains(&row), "{row}");
    }
}

#[cfg(unix)]
#[test]
fn a_job_that_always_ends_its_worker_is_given_up() {
    let workspace = five_weeks_in(Workspace::new()).config(config(QUICK));
    let once = workspace.worker(&["--once", NOW, "--jobs=run_weekly_digest"]);
    let _ = once.run().exit(0);
    let _ = workspace.sql("UPDATE job_runs SET ended_at = NULL, attempt = 3");
    let run = once.run().exit(1);
    let _ = run
        .stderr_contains("run_weekly_digest FAILED")
        .stderr_contains("in the middle of it 3 times");
    let _ = once.run().exit(0).stderr_contains("nothing is due");
}

#[test]
fn a_worker_is_interrupted_and_others_need_not_wait() {
    let hang = "import sys, time; sys.stdin.read(); open('begun', 'w'); time.sleep(20)";
    let yaml = config("{ heartbeat_seconds: 3600 }")
        .replace("grade: {", "grade: { alerts: { command: [python3, hang.py] },");
    let workspace = five_weeks_in(Workspace::new()).config(yaml).file("hang.py", hang);
    let begun = workspace.path("begun");
    let run = workspace.jobs(&["run", "run_weekly_digest", "--source", "sessions"]);
    let _ = workspace.clone().grade(&["weekly", "--week=2026-W46"]).run();
    let once = workspace.worker(&["--once", NOW]);
    let stopped = once.spawn().until("the alert is told", || begun.exists());
    let _ = stopped.signal(Signal::TERM).wait().exit(130);
    let listing = workspace.listing();
    assert_eq!(digest(&listing["scheduled"], "name")["last"]["state"], "interrupted");
    // This week is the current one, in which there are no sessions and no alerts.
    let _ = run.run().exit(0).stdout_contains("run_weekly_digest completed");
}

#[test]
fn a_job_by_hand() {
    let workspace = five_weeks_in(Workspace::new());
    let run = workspace.jobs(&["run", "run_weekly_digest", "--source", "sessions", "--json"]);
    let summary = run.run().exit(0).json();
    assert_eq!(summary["status"], "completed");
    assert_eq!(summary["sessions_graded"], 32);
    // It stands for what was due before.
    let once = workspace.worker(&["--once", "--jobs=run_weekly_digest"]);
    let _ = once.run().exit(0).stderr_contains("nothing is due");
    let run = workspace.jobs(&["run", "tidy_up"]).run().exit(2).one_error(&["tidy_up"]);
    let _ = run.stderr_contains("hint: write ").stderr_contains("run_weekly_digest");
}

#[test]
fn a_job_that_fails_says_why_everywhere() {
    let workspace = five_weeks_in(Workspace::new()).file("taken", "a file");
    let yaml = config(QUICK).replace("grade: {", "grade: { weekly_folder: taken/weekly,");
    let workspace = workspace.config(yaml);
    let run = workspace.worker(&["--once", NOW, "--jobs=run_weekly_digest"]).run().exit(1);
    let run = run.stderr_contains("run_weekly_digest FAILED  elapsed=");
    let _ = run.stdout_contains("run_weekly_digest failed").stdout_contains("taken/weekly");
    let list = workspace.jobs(&["jobs"]).run().exit(0);
    let _ = list.stdout_contains("failed").stdout_contains("taken/weekly");
    let summary = workspace.jobs(&["run", "run_weekly_digest", "--json"]).run().exit(1).json();
    assert_eq!(summary["status"], "failed");
    assert!(summary["error"].as_str().unwrap().contains("taken/weekly"), "{summary}");
}

/// docs/spec/skills-and-signals.md#job-results: an exception ends the batch as `failed`, and
/// nothing else.
#[test]
fn without_a_model_gaps_wait_and_the_report_is_written() {
    let workspace = five_weeks_in(Workspace::new()).config(config(QUICK));
    let workspace = workspace.env("OPENAI_BASE_URL", format!("http://{NOBODY}/v1"));
    let run = workspace.worker(&["--once", NOW, "--json"]).run().exit(1);
    let states: Vec<Value> = run.json()["ran"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["summary"]["status"].clone())
        .collect();
    assert_eq!(states, ["completed", "failed", "completed", "completed"]);
    let _ = run.stderr_contains("run_skill_generation_batch FAILED  elapsed=");
    let list = workspace.clone().args(["improve", "gaps", "list", "--json"]).run().exit(0).json();
    let states: Vec<&Value> = list.as_array().unwrap().iter().map(|gap| &gap["status"]).collect();
    assert_eq!(states, ["open", "open"]);
}

#[test]
fn a_worker_runs_what_is_due_by_itself_until_it_is_told_to_end() {
    let workspace = five_weeks_in(Workspace::new()).config(config(QUICK));
    // It has never run: what was due last is due now.
    let done = || workspace.path("docs/reports/weekly/index.md").exists();
    let running = workspace.worker(&[]).spawn().until("the report", done);
    let run = running.signal(Signal::TERM).wait().exit(0);
    let _ = run.stderr_contains("run_weekly_digest START");
}

#[test]
fn a_schedule_that_is_off_and_flags_that_leave_nothing() {
    let off = config("{ schedule: { weekly_report: \"off\" } }");
    let workspace = five_weeks_in(Workspace::new()).config(off);
    let once = workspace.worker(&["--once", NOW, "--jobs=run_weekly_digest"]);
    let _ = once.run().exit(0).stderr_contains("nothing is due");
    assert_eq!(digest(&workspace.listing()["scheduled"], "name")["next"], json!(null));
    let words = ["--once", NOW, "--no-schedule", "--jobs=run_weekly_digest"];
    let _ = workspace.worker(&words).run().exit(2).one_error(&["--no-schedule"]);
    let _ = workspace.worker(&["--jobs=x"]).run().exit(2).one_error(&["no job \"x\""]);
    let _ = workspace.worker(&["--once", "--no-schedule", NOW]).run().exit(0);
}

#[test]
fn a_schedule_that_is_none() {
    let yaml = config("{ schedule: { weekly_report: \"3:30 on Sunday\" } }");
    let run = Workspace::new().config(yaml).args(["config", "check"]).run().exit(2);
    let _ = run
        .stderr_contains("`jobs.schedule.weekly_report` is no schedule")
        .snapshot_stderr("jobs_schedule_error");
}

#[test]
fn the_list_before_and_after() {
    let server = ModelServer::start();
    let workspace = five_weeks_in(Workspace::new()).config(config(QUICK)).server(&server);
    let list = workspace.jobs(&["jobs"]);
    let _ = list.run().exit(0).stdout_contains("never").stdout_contains("0 waiting");
    let _ = workspace.worker(&["--once", NOW]).run().exit(0);
    let _ = list.run().exit(0).snapshot("jobs_list");
    let json = workspace.listing();
    let digest = digest(&json["scheduled"], "name");
    assert_eq!(
        (&digest["name"], &digest["schedule"]),
        (&json!("run_weekly_digest"), &json!("30 3 * * SUN"))
    );
    assert_eq!(digest["last"]["summary"]["status"], "completed");
    // A recording of the future is no reason to run twice.
    let workspace = workspace.session(&Recording::success(&id(900)));
    let _ = workspace.worker(&["--once", NOW]).run().exit(0).stderr_contains("nothing is due");
}
