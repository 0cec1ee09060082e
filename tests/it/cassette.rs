//! `--record` and `cassette/<dir>`: a recorded run, replayed without any server.

use serde_json::Value;

use crate::model_server::{ModelServer, verdict};
use crate::report::Report;
use crate::workspace::{CLEAR, FLOW, OPENAI, Workspace, config};

/// The part that a replay must repeat: everything but ids, times and durations.
pub(crate) fn essence(report: &Report) -> Vec<Value> {
    let fields = ["id", "prompt", "output", "expected_status", "actual_status", "scores", "pass"];
    let cases = report.cases();
    cases
        .iter()
        .map(|case| fields.map(|field| case.0[field].clone()).into_iter().collect())
        .collect()
}

/// Records a run with one passed and one failed case.
fn recorded() -> (Workspace, Report) {
    let server = ModelServer::script()
        .judge(|call| verdict(call, if call.number == 0 { 0.9 } else { 0.5 }))
        .start();
    let workspace = Workspace::new().config(config(OPENAI, &format!("{CLEAR}{FLOW}")));
    let run = workspace
        .clone()
        .server(&server)
        .args(["--record", "cassettes/smoke", "--concurrency=1", "--format=json", "--seed=7"])
        .run()
        .exit(1);
    (workspace, run.stdout_report())
}

#[test]
fn a_replay_gives_the_same_verdicts() {
    let (workspace, report) = recorded();
    let replay = workspace
        .args(["--model=cassette/cassettes/smoke", "--concurrency=1", "--format=json", "--seed=7"])
        .run()
        .exit(1)
        .stdout_report();
    assert_eq!(essence(&replay), essence(&report));
}

#[test]
fn a_replay_needs_no_seed() {
    let server = ModelServer::script()
        .judge(|call| verdict(call, if call.number == 0 { 0.9 } else { 0.5 }))
        .start();
    let workspace = Workspace::new().config(config(OPENAI, &format!("{CLEAR}{FLOW}")));
    // What an earlier run asked is not asked again, in other runs.
    let _ = workspace.clone().server(&server).args(["--exit-zero"]).run().exit(0);
    let record = ["--record", "cassettes/smoke", "--concurrency=1", "--format=json"];
    let recorded = workspace.clone().server(&server).args(record).run().exit(1).stdout_report();
    for _ in 0..2 {
        let replay = ["--model=cassette/cassettes/smoke", "--concurrency=1", "--format=json"];
        let replay = workspace.clone().args(replay).run().exit(1).stdout_report();
        assert_eq!(replay.0["seed"], recorded.0["seed"]);
        assert_eq!(essence(&replay), essence(&recorded));
    }
    // A given seed is another run.
    let other = ["--model=cassette/cassettes/smoke", "--seed=1", "--format=json", "--exit-zero"];
    let other = workspace.clone().args(other).run().exit(0).stdout_report();
    assert_eq!(other.0["seed"], 1);
    let broken = workspace.file("cassettes/smoke/cassette.json", "{}");
    let run = broken.args(["--model=cassette/cassettes/smoke"]).run().exit(5);
    run.one_error(&["cassette.json", "no manifest"]);
}

#[test]
fn a_replay_is_repeatable_at_any_concurrency() {
    let (workspace, report) = recorded();
    let replay = workspace
        .args(["--model=cassette/cassettes/smoke", "--concurrency=4", "--format=json", "--seed=7"])
        .run()
        .exit(1)
        .stdout_report();
    assert_eq!(essence(&replay), essence(&report));
}

#[test]
fn a_missing_recording_says_what_differs() {
    let (workspace, _) = recorded();
    // The seed decides what a generator is shown.
    let changed = CLEAR.replace("3-line", "4-line");
    let run = workspace
        .config(config(OPENAI, &changed))
        .args(["--model=cassette/cassettes/smoke", "--format=json", "--seed=7"])
        .run()
        .exit(3);
    let report = run.stdout_report();
    let case = report.case();
    let reason = case.reason();
    assert!(reason.contains("no recording"), "{reason}");
    assert!(reason.contains("4-line") || reason.contains("3-line"), "{reason}");
}

#[test]
fn a_cassette_that_is_not_there_is_found_before_the_first_case() {
    let run = Workspace::new()
        .config(config(OPENAI, CLEAR))
        .args(["--model=cassette/nowhere"])
        .run()
        .exit(5);
    run.one_error(&["nowhere"]);
}
