//! The gate on an agent that answers rubbish now and then: which case fails differs from run to
//! run, so that no single case shows it.

use serde_json::{Value, json};

use crate::baseline::{SUITE, answer, suite};
use crate::model_server::{ModelServer, Role, Script};
use crate::workspace::{OPENAI, Workspace, config, scenarios};

const IDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// Returns a number below 100 that looks random.
fn hundredths(run: u64, call: u64) -> u64 {
    let mut state = (run << 32 | call).wrapping_add(0x9E37_79B9_7F4A_7C15);
    state = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ state >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (state ^ state >> 31) % 100
}

/// An agent that answers rubbish so often, other answers in each run.
fn flaky(percent: u64, run: u64) -> Script {
    ModelServer::script().sut(move |call| answer(hundredths(run, call.number as u64) >= percent))
}

/// A project whose agent failed so often when its baseline was accepted.
fn accepted(percent: u64, repeats: u32) -> Workspace {
    accepted_with(&IDS, percent, repeats)
}

fn accepted_with(ids: &[&str], percent: u64, repeats: u32) -> Workspace {
    let server = flaky(percent, 7_000).start();
    let workspace = Workspace::new()
        .config(config(OPENAI, &scenarios(1)))
        .file(SUITE, suite(ids))
        .server(&server);
    let repeats = format!("--repeats={repeats}");
    let args = ["--suite", SUITE, "--exit-zero", "--concurrency=1", &repeats];
    let _ = workspace.clone().args(args).run().exit(0);
    let _ = workspace.clone().args(["baseline", "accept"]).run().exit(0);
    workspace
}

/// Runs the agent so often and returns how many runs are blocked.
fn blocked(workspace: &Workspace, percent: u64, runs: u64) -> u64 {
    (0..runs)
        .filter(|number| {
            let server = flaky(percent, *number).start();
            let args = ["--suite", SUITE, "--gate=no_regression", "--concurrency=1"];
            let run = workspace.clone().server(&server).args(args).run();
            assert!(run.ended_with(0) || run.ended_with(1), "{}{}", run.stdout, run.stderr);
            run.ended_with(1)
        })
        .count() as u64
}

#[test]
fn an_agent_that_answers_rubbish_now_and_then_is_blocked() {
    let workspace = accepted(0, 1);
    assert_eq!(blocked(&workspace, 0, 2), 0, "nothing has changed");
    assert!(blocked(&workspace, 60, 8) >= 8);
    assert!(blocked(&workspace, 40, 10) >= 9);
    assert!(blocked(&workspace, 25, 10) >= 6);
}

#[test]
fn an_agent_that_was_always_flaky_is_not_blocked_for_it() {
    let workspace = accepted(15, 5);
    assert_eq!(blocked(&workspace, 15, 10), 0);
}

#[test]
fn a_single_case_that_fails_every_other_time_is_blocked() {
    let args = ["--suite", SUITE, "--gate=no_regression", "--concurrency=1"];
    // Its retry passes, so that it is flaky and no regression.
    let every_other = || ModelServer::script().sut(|call| answer(call.number % 2 == 1)).start();
    // One trial in the baseline cannot tell that it was not always so.
    let server = every_other();
    let _ = accepted_with(&IDS[..1], 0, 1).server(&server).args(args).run().exit(0);
    assert_eq!(server.calls(Role::Sut).len(), 2, "the case and its retry");
    let workspace = accepted_with(&IDS[..1], 0, 10);
    let server = every_other();
    let run = workspace.clone().server(&server).args(args).run().exit(1);
    let _ = run
        .stdout_contains("5 of 10 trials of 1 case failed in 10 rounds, before 0 of 10")
        .stdout_contains("FLAKY a");
    // One failure in many trials is no reason.
    let server = ModelServer::script().sut(|call| answer(call.number != 0)).start();
    let _ = workspace.server(&server).args(args).run().exit(0);
    assert!(server.calls(Role::Sut).len() <= 10);
}

#[test]
fn the_reason_is_one_sentence_with_the_numbers() {
    let workspace = accepted(0, 1);
    // Some cases fail at first and pass when they are run again; others fail in later rounds.
    let server = ModelServer::script().sut(|call| answer(call.number % 3 != 1)).start();
    let args = ["--suite", SUITE, "--gate=no_regression", "--concurrency=1", "--format=json"];
    let args = args.iter().chain(&["--report=junit=out/junit.xml"]);
    let run = workspace.clone().server(&server).args(args).run().exit(1);
    let junit = run.read("out/junit.xml");
    assert!(junit.contains("all cases together") && junit.contains("failures=\"1\""), "{junit}");
    let report = run.stdout_report();
    let pooled = &report.0["gate"]["pooled"];
    assert_eq!((&pooled["verdict"], &pooled["cases"]), (&json!("worse"), &json!(8)));
    let rounds = pooled["rounds"].as_u64().unwrap();
    assert_eq!(server.calls(Role::Sut).len() as u64, 8 * rounds, "no trial is wasted");
    let page = run.read(&format!("docs/reports/selftest/{}.md", report.run_id()));
    let numbers =
        format!("of {} trials of 8 cases failed in {rounds} rounds, before 0 of 8", 8 * rounds);
    assert!(page.contains("the agent as a whole fails more often than before"), "{page}");
    assert!(page.contains(&numbers), "no `{numbers}` in {page}");
    let schema = workspace.args(["config", "schema", "report"]).run().exit(0).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    jsonschema::validate(&schema, &report.0).unwrap_or_else(|error| panic!("{error}: {report}"));
}

#[test]
fn one_failure_that_passes_again_is_weighed_and_let_through() {
    let workspace = accepted(0, 1);
    let server = ModelServer::script().sut(|call| answer(call.number != 3)).start();
    let args = ["--suite", SUITE, "--gate=no_regression", "--concurrency=1"];
    let run = workspace.clone().server(&server).args(args).run().exit(0);
    assert_eq!(server.calls(Role::Sut).len(), 16, "each case a second time");
    let _ = run
        .stdout_contains("all cases were run again to tell a less reliable agent from chance")
        .stdout_contains("1 of 16 trials of 8 cases failed in 2 rounds");
    // What is accepted later remembers what was seen before.
    let accepted = workspace.clone().args(["baseline", "accept"]).run().exit(0);
    let _ = accepted.stderr_contains("8 trials of the baseline before count as well");
    let server = flaky(0, 1).start();
    let _ = workspace.clone().server(&server).args(args).run().exit(0);
    let _ = workspace.clone().args(["baseline", "accept"]).run().exit(0);
    let text = std::fs::read_to_string(workspace.path("config/selftest-baseline.json")).unwrap();
    let baseline: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(baseline["cases"][3]["first_trials"], json!({ "passed": 2, "failed": 1 }));
    assert_eq!(baseline["cases"][4]["first_trials"], json!({ "passed": 3, "failed": 0 }));
}
