//! Which cases a run has: `--rerun-failed`, `--fail-fast`, `--shard`.

use std::collections::BTreeSet;

use crate::baseline::{SUITE, bad_at, suite};
use crate::model_server::{ModelServer, Reply, Role, generated};
use crate::report::{Case, Report};
use crate::run::Run;
use crate::workspace::{OPENAI, Workspace, config, scenarios};

fn project(ids: &[&str]) -> Workspace {
    Workspace::new().config(config(OPENAI, &scenarios(1))).file(SUITE, suite(ids))
}

fn ids(report: &Report) -> Vec<String> {
    report.cases().iter().map(|case| case.id().to_owned()).collect()
}

fn statuses(report: &Report) -> Vec<&str> {
    report.cases().iter().map(Case::status).collect()
}

fn run_suite(workspace: &Workspace, server: &ModelServer, args: &[&str]) -> Run {
    let fixed = ["--suite", SUITE, "--format=json", "--concurrency=1"];
    workspace.clone().server(server).args(fixed.iter().chain(args)).run()
}

#[test]
fn what_did_not_pass_is_run_again_until_nothing_is_left() {
    let workspace = project(&["a", "b", "c"]);
    let server = bad_at(&["b", "c"]).start();
    let first = run_suite(&workspace, &server, &[]).exit(1).stdout_report();
    assert_eq!(statuses(&first), ["passed", "failed", "failed"]);
    let again = |words: &'static [&'static str]| {
        let server = bad_at(words).start();
        workspace.clone().server(&server).args(["--rerun-failed", "--format=json"]).run()
    };
    let second = again(&["c"]).exit(1).stdout_report();
    assert_eq!(
        (ids(&second), statuses(&second)),
        (vec!["b".into(), "c".into()], vec!["passed", "failed"])
    );
    let third = again(&[]).exit(0).stdout_report();
    assert_eq!(ids(&third), ["c"]);
    let none = again(&[]).exit(4);
    let none = none.stderr_contains("nothing to run: every case of");
    assert_eq!(none.reports().len(), 3, "no run without a case");
}

#[test]
fn a_case_that_was_never_generated_is_generated_when_it_is_run_again() {
    let server = ModelServer::script()
        .generator(|call| if call.number == 0 { generated(call).into() } else { Reply::Close })
        .start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(3))).server(&server);
    let args = ["--concurrency=1", "--format=json"];
    let first = workspace.clone().args(args).run().exit(5).stdout_report();
    assert_eq!(statuses(&first), ["passed", "not_run", "not_run"]);
    let server = ModelServer::start();
    let again = workspace.server(&server).args([&args[..], &["--rerun-failed"]].concat());
    let again = again.run().exit(0).stdout_report();
    assert_eq!(ids(&again), ["case-1", "case-2"]);
    let generated = server.calls(Role::Generator).len();
    assert!(
        (2..=3).contains(&generated),
        "one for each, and one for a repeated prompt: {generated}"
    );
}

#[test]
fn without_a_run_nothing_can_be_run_again() {
    let server = ModelServer::start();
    let run = Workspace::simple(&server).args(["--rerun-failed"]).run().exit(2);
    run.one_error(&["there is no run `latest`"]).stderr_contains("hint:");
    for other in ["--scenarios=1", "--suite=x", "--full"] {
        let run = Workspace::simple(&server).args(["--rerun-failed", other]).run().exit(2);
        let _ = run.one_error(&["--rerun-failed", "cannot be used with"]);
    }
}

#[test]
fn the_first_failure_ends_the_run_and_the_rest_says_why() {
    let workspace = project(&["a", "b", "c", "d"]);
    let server = bad_at(&["b", "d"]).start();
    let run = run_suite(&workspace, &server, &["--fail-fast"]).exit(1);
    let report = run.stdout_report();
    assert_eq!(statuses(&report), ["passed", "failed", "not_run", "not_run"]);
    assert_eq!(report.case_of("c").reason(), "b failed, and --fail-fast ends the run there");
    assert_eq!(report.0["outcome"], "failed");
    assert_eq!(server.calls(Role::Sut).len(), 2, "nothing was begun after it");
    assert!(run.read(&format!("docs/reports/selftest/{}.md", report.run_id())).contains("not run"));
    // What was not begun is run again.
    let server = bad_at(&[]).start();
    let again = workspace.clone().server(&server).args(["--rerun-failed", "--format=json"]);
    assert_eq!(ids(&again.run().exit(0).stdout_report()), ["b", "c", "d"]);
    // A run without a failure is whole.
    let server = bad_at(&[]).start();
    let report = run_suite(&workspace, &server, &["--fail-fast"]).exit(0).stdout_report();
    assert_eq!(report.counts(), [4, 4, 0, 0]);
}

#[test]
fn shards_are_all_cases_each_once() {
    let all = ["a", "b", "c", "d", "e", "f", "g"];
    let workspace = project(&all);
    let server = bad_at(&[]).start();
    let mut seen = Vec::new();
    for number in 1..=3 {
        let shard = format!("--shard={number}/3");
        let report = run_suite(&workspace, &server, &[&shard, "--repeats=2"]).exit(0);
        let report = report.stdout_report();
        let own: BTreeSet<String> = ids(&report).into_iter().collect();
        assert!((2..=3).contains(&own.len()), "{own:?}");
        assert_eq!(report.cases().len(), 2 * own.len(), "all repeats of a case");
        seen.extend(own);
    }
    seen.sort();
    assert_eq!(seen, all);
    let empty = run_suite(&workspace, &server, &["--shard=8/8"]).exit(4);
    let _ = empty.stderr_contains("nothing to run: shard 8/8 has no case");
}

#[test]
fn what_is_no_shard_is_refused() {
    for (shard, why) in [
        ("5/4", "there is no shard 5 of 4"),
        ("0/4", "there is no shard 0 of 4"),
        ("1/0", "expected 1 to 10000 shards"),
        ("x", "expected K/N, such as 1/4"),
    ] {
        let run = Workspace::new().args([format!("--shard={shard}")]).run().exit(2);
        let _ = run.one_error(&[&format!("'{shard}' for '--shard <K/N>'"), why]);
    }
}
