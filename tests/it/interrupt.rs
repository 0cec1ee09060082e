//! A run that is stopped leaves a valid report of what finished.

use rustix::process::Signal;

use crate::model_server::{ModelServer, Reply, Role, answered};
use crate::report::Report;
use crate::run::Running;
use crate::workspace::{OPENAI, Workspace, config, files, scenarios};

/// Starts three cases, one at a time; the first passes, the second never ends. Returns when the
/// report of the first is on disk and the second hangs.
fn stuck(server: &ModelServer) -> (Workspace, Running) {
    let workspace = Workspace::new()
        .config(config(OPENAI, &scenarios(3)))
        .server(server)
        .args(["--concurrency=1"]);
    let running = workspace
        .spawn()
        .until("the second case", || server.calls(Role::Sut).len() == 2)
        .until("the report of the first case", || {
            let paths = files(&workspace.path("reports/selftest"));
            let report = paths.iter().find(|path| path.extension().is_some_and(|e| e == "json"));
            report.is_some_and(|path| {
                let report = Report::parse(&std::fs::read_to_string(path).unwrap());
                report.cases().iter().any(|case| case.id() == "case-0")
            })
        });
    (workspace, running)
}

fn hangs_in_the_second_case() -> ModelServer {
    ModelServer::script()
        .sut(|call| if call.number == 0 { answered(call).into() } else { Reply::Hang })
        .start()
}

fn validate(workspace: Workspace, report: &Report) {
    let schema = workspace.args(["config", "schema", "report"]).run().exit(0).stdout;
    let schema = serde_json::from_str(&schema).unwrap();
    jsonschema::validate(&schema, &report.0).unwrap_or_else(|error| panic!("{error}: {report}"));
    assert_eq!(report.case_of("case-0").pass(), Some(true));
}

#[test]
fn ctrl_c_ends_with_130_and_a_report() {
    let server = hangs_in_the_second_case();
    let (workspace, running) = stuck(&server);
    let run = running.signal(Signal::INT).wait().exit(130);
    let report = run.report();
    validate(workspace, &report);
    assert!(report.cases().iter().all(|case| case.id() == "case-0" || case.pass().is_none()));
    assert!(run.read("docs/reports/selftest/index.md").contains(&report.run_id()));
}

#[test]
fn exit_zero_does_not_hide_an_interruption() {
    let server = hangs_in_the_second_case();
    let (workspace, running) = stuck(&server);
    drop(running.signal(Signal::KILL).wait());
    let running = workspace
        .args(["--concurrency=1", "--exit-zero"])
        .spawn()
        .until("a hanging case", || server.calls(Role::Sut).len() == 3);
    let _ = running.signal(Signal::INT).wait().exit(130);
}

#[test]
fn a_killed_run_leaves_a_valid_report() {
    let server = hangs_in_the_second_case();
    let (workspace, running) = stuck(&server);
    let run = running.signal(Signal::KILL).wait().killed_by(9);
    validate(workspace, &run.report());
}

#[test]
fn a_terminated_run_is_interrupted_too() {
    let server = hangs_in_the_second_case();
    let (workspace, running) = stuck(&server);
    let run = running.signal(Signal::TERM).wait().exit(130);
    validate(workspace, &run.report());
}
