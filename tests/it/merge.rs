//! `selftest report merge`: shards that ran on their own are one run again.

use serde_json::Value;

use crate::baseline::{SUITE, bad_at, suite};
use crate::model_server::{ModelServer, Script};
use crate::report::Report;
use crate::run::Run;
use crate::workspace::{OPENAI, Workspace, config, scenarios};

const IDS: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];

/// A project with a suite and a baseline in which all cases pass.
fn accepted() -> Workspace {
    let server = bad_at(&[]).start();
    let workspace = Workspace::new()
        .config(config(OPENAI, &scenarios(1)))
        .file(SUITE, suite(&IDS))
        .server(&server);
    let _ = workspace.clone().args(["--suite", SUITE]).run().exit(0);
    let _ = workspace.clone().args(["baseline", "accept"]).run().exit(0);
    workspace
}

fn run(workspace: &Workspace, script: Script, more: &[&str]) -> Report {
    let server = script.start();
    let own_gate = more.iter().any(|word| word.starts_with("--gate"));
    let gate = if own_gate { None } else { Some("--gate=no_regression") };
    let fixed = ["--suite", SUITE, "--format=json", "--exit-zero"].into_iter().chain(gate);
    let run = workspace.clone().server(&server).args(fixed.chain(more.iter().copied())).run();
    run.exit(0).stdout_report()
}

/// Runs all four shards against this model and returns the ids of their runs.
fn shards(workspace: &Workspace, script: fn() -> Script, more: &[&str]) -> Vec<String> {
    (1..=4)
        .map(|number| {
            let shard = format!("--shard={number}/4");
            let more: Vec<&str> = more.iter().copied().chain([shard.as_str()]).collect();
            run(workspace, script(), &more).run_id()
        })
        .collect()
}

fn merged(workspace: &Workspace, shards: &[String], more: &[&str]) -> Run {
    let words = ["report", "merge"].into_iter().chain(shards.iter().map(String::as_str));
    workspace.clone().args(words.chain(more.iter().copied())).run()
}

/// What is the same however often a run is repeated.
fn essence(report: &Report) -> Value {
    let mut value = report.0.clone();
    let head = value.as_object_mut().unwrap();
    let varying =
        ["run_id", "timestamp", "ended_at", "task_group_id", "usage", "warnings", "cases", "seed"];
    for key in varying {
        head.remove(key);
    }
    let fields = ["id", "repeat", "status", "pass", "reason", "prompt", "output"];
    let cases = report.cases();
    let cases = cases.iter().map(|case| fields.map(|field| case.0[field].clone()).to_vec().into());
    let cases: Vec<Value> = cases.collect();
    head.insert("cases".to_owned(), cases.into());
    value
}

#[test]
fn four_shards_are_the_whole_run_again() {
    let workspace = accepted();
    let script = || bad_at(&["c", "h"]);
    let whole = run(&workspace, script(), &["--repeats=2"]);
    let shards = shards(&workspace, script, &["--repeats=2"]);
    // In any order, by id or by file.
    let mut named = shards.clone();
    named.reverse();
    named[0] = format!("reports/selftest/{}.json", named[0]);
    let run = merged(&workspace, &named, &["--format=json"]).exit(1);
    let report = run.stdout_report();
    assert_eq!(report.counts(), [18, 14, 4, 0]);
    assert_eq!(essence(&report), essence(&whole));
    assert!(!shards.contains(&report.run_id()) && report.0.get("shard").is_none());
    let page = run.read(&format!("docs/reports/selftest/{}.md", report.run_id()));
    assert!(page.contains("REGRESSION c and h: passed before, fails now"), "{page}");
    // One run, and one comment on it.
    let comment = workspace.clone().args(["report", "comment", "latest", "--dry-run"]).run();
    let _ = comment.exit(0).stdout_contains("**14 of 18 passed (78 %)**, 2 regressions");
    // The terminal and other reports show it like any run.
    let junit = workspace.path("out/junit.xml");
    let asked = ["--report=junit=out/junit.xml", "--exit-zero"];
    let run = merged(&workspace, &shards, &asked).exit(0);
    let _ = run.stdout_contains("14 of 18 passed");
    assert!(std::fs::read_to_string(junit).unwrap().contains("tests=\"18\""));
}

#[test]
fn shards_that_pass_pass_together_and_without_a_baseline_too() {
    let workspace = accepted();
    let passing = shards(&workspace, || bad_at(&[]), &[]);
    let _ = merged(&workspace, &passing, &[]).exit(0);
    let absolute = shards(&workspace, || bad_at(&["e"]), &["--gate=absolute"]);
    let report = merged(&workspace, &absolute, &["--format=json"]).exit(1).stdout_report();
    assert_eq!((report.counts(), report.0.get("gate")), ([9, 8, 1, 0], None));
}

#[test]
fn failures_of_single_shards_are_too_many_together() {
    let workspace = accepted();
    // Every case fails once and passes when it is run again: flaky in its shard, and together a
    // less reliable agent.
    let script = || {
        let seen = std::sync::Mutex::new(std::collections::BTreeSet::new());
        ModelServer::script().sut(move |call| {
            crate::baseline::answer(!seen.lock().unwrap().insert(call.last_message().to_owned()))
        })
    };
    let shards = shards(&workspace, script, &[]);
    let report = merged(&workspace, &shards, &["--format=json"]).exit(1).stdout_report();
    assert_eq!(report.0["gate"]["pooled"]["verdict"], "worse", "{}", report.0["gate"]);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let workspace = accepted();
    let script: fn() -> Script = || bad_at(&[]);
    let shards = shards(&workspace, script, &["--seed=7"]);
    let refused = |shards: &[String], parts: &[&str]| {
        merged(&workspace, shards, &[]).exit(2).one_error(parts);
    };
    refused(&shards[..3], &["shard 4/4 is missing"]);
    let twice = [&shards[..], &shards[..1]].concat();
    refused(&twice, &["it is shard 1/4, as is", &shards[0]]);
    let with = |other: &Report| [&shards[..3], &[other.run_id()]].concat();
    let seed = run(&workspace, script(), &["--shard=4/4", "--seed=8"]);
    refused(&with(&seed), &[&seed.run_id(), "the seed is 8, and 7 in", &shards[0]]);
    let count = run(&workspace, script(), &["--shard=4/5", "--seed=7"]);
    refused(&with(&count), &["the number of shards is 5, and 4 in"]);
    let whole = run(&workspace, script(), &["--seed=7"]);
    refused(&with(&whole), &[&whole.run_id(), "it is no shard, but a run of all cases"]);
    let gate = run(&workspace, script(), &["--shard=4/4", "--seed=7", "--gate=absolute"]);
    refused(&with(&gate), &["the gate is absolute, and no_regression by the baseline of"]);
    let changed = workspace.clone().file(SUITE, suite(&IDS).replace("Play a.", "Play a!"));
    let other = run(&changed, script(), &["--shard=4/4", "--seed=7"]);
    refused(&with(&other), &[&other.run_id(), "the suite is"]);
}
