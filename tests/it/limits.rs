//! `--max-duration`, `--max-tokens`, `--max-cost`: a run that reaches one ends in order.

use std::time::Duration;

use crate::model_server::{ModelServer, Reply, Role, answered};
use crate::report::Report;
use crate::workspace::{OPENAI, Workspace, config, scenarios};

const PRICES: &str = "prices: { models: { \"openai/*\": { input: 10, output: 10 } } }\n";

fn workspace(server: &ModelServer) -> Workspace {
    let yaml = format!("{PRICES}{}", config(OPENAI, &scenarios(6)));
    Workspace::new().config(yaml).server(server)
}

#[track_caller]
fn ends_short(report: &Report, flag: &str) {
    let not_run: Vec<_> = report
        .cases()
        .into_iter()
        .filter(|case| case.status() == "not_run")
        .map(|case| {
            assert!(case.reason().contains(flag), "{case}");
            case.id().to_owned()
        })
        .collect();
    assert!(!not_run.is_empty() && not_run.len() < 6, "{not_run:?}");
    assert_eq!(report.0["outcome"], "inconclusive");
    assert_eq!(report.0["complete"], true);
    assert_eq!(report.cases().len(), 6);
}

#[test]
fn a_limit_of_tokens_or_money_begins_no_further_case() {
    for (flag, name) in [("--max-tokens=1500", "--max-tokens"), ("--max-cost=0.01", "--max-cost")] {
        let server = ModelServer::start();
        let run = workspace(&server).args(["--concurrency=1", flag]).run().exit(3);
        let run = run.stderr_contains("the run ended early: --max-");
        let report = run.report();
        ends_short(&report, name);
        let asked = server.calls(Role::Sut).len() as u64;
        assert_eq!(report.summary()["passed"], asked, "what was begun is finished");
        let markdown = run.markdown();
        assert!(markdown.contains(name), "{markdown}");
        // With more of it the rest is run, and nothing else.
        let run = workspace_of(&run, &server);
        assert_eq!(run.report().counts(), [6, 6, 0, 0]);
        assert_eq!(server.calls(Role::Sut).len(), 6);
    }
}

/// The same project, whose run goes on without a limit.
fn workspace_of(run: &crate::run::Run, server: &ModelServer) -> crate::run::Run {
    run.workspace().clone().server(server).args(["--resume=latest"]).run().exit(0)
}

#[test]
fn a_limit_of_time_closes_what_is_in_flight() {
    let server = ModelServer::script()
        .sut(|call| match call.number {
            0 => answered(call).into(),
            _ => Reply::Hang,
        })
        .start();
    let run = workspace(&server).args(["--concurrency=1", "--max-duration=3s"]).run().exit(3);
    assert!(run.elapsed < Duration::from_secs(40), "{:?}", run.elapsed);
    let report = run.report();
    ends_short(&report, "--max-duration 3 s was reached");
    assert_eq!(report.case_of("case-0").pass(), Some(true));
    assert!(report.case_of("case-1").0["prompt"].is_string(), "what is known of it is kept");
    assert_eq!(server.calls(Role::Sut).len(), 2);
}

#[test]
fn a_failure_counts_more_than_a_limit() {
    let server =
        ModelServer::script().judge(|call| crate::model_server::verdict(call, 0.1)).start();
    let run = workspace(&server).args(["--concurrency=1", "--max-tokens=1"]).run().exit(1);
    let report = run.report();
    assert_eq!(report.0["outcome"], "failed");
    assert_eq!(report.counts(), [6, 0, 1, 5]);
}

#[test]
fn limits_that_mean_nothing_are_refused() {
    let server = ModelServer::start();
    let yaml = config(OPENAI, &scenarios(2));
    let plain = Workspace::new().config(yaml).server(&server);
    let run = plain.clone().args(["--max-cost=1"]).run().exit(2);
    run.stderr_contains("prices.models").one_error(&["--max-cost needs prices"]);
    for flag in [
        "--max-duration=0",
        "--max-duration=soon",
        "--max-duration=-3s",
        "--max-cost=0",
        "--max-cost=nan",
    ] {
        let run = plain.clone().args([flag]).run().exit(2);
        let _ = run.stderr_contains("expected");
    }
    assert!(server.all_calls().is_empty());
    for time in ["90", "1h30m", "2 minutes"] {
        let _ = plain.clone().args([format!("--max-duration={time}")]).run().exit(0);
    }
}
