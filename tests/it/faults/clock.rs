//! A clock that jumps while a run goes on.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::leaves_nothing;
use crate::model_server::{ModelServer, Role};
use crate::workspace::{OPENAI, Workspace, config, scenarios};

/// The library that gives a process another clock, where it is installed.
fn faketime() -> Option<PathBuf> {
    let folders =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/lib64"];
    let libraries = folders.map(|folder| PathBuf::from(folder).join("faketime/libfaketime.so.1"));
    libraries.into_iter().find(|path| path.exists())
}

#[test]
fn a_run_never_ends_before_it_began() {
    let Some(library) = faketime() else {
        crate::require::skip("libfaketime is not installed");
        return;
    };
    for jump in ["-3h", "+3h"] {
        let server = ModelServer::script().delay(Duration::from_millis(150)).start();
        let workspace = Workspace::new()
            .config(config(OPENAI, &scenarios(3)))
            .server(&server)
            .file("clock", "+0\n")
            .env("LD_PRELOAD", &library)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .args(["--concurrency=1"]);
        let clock = workspace.path("clock");
        let workspace = workspace.env("FAKETIME_TIMESTAMP_FILE", &clock);
        let running = workspace.spawn();
        let running = running.until("an answer", || !server.calls(Role::Sut).is_empty());
        fs::write(&clock, format!("{jump}\n")).unwrap();
        let run = running.wait().exit(0);
        let report = run.report();
        let time =
            |field: &str| -> jiff::Timestamp { report.0[field].as_str().unwrap().parse().unwrap() };
        assert!(time("ended_at") >= time("timestamp"), "{jump}: {report}");
        for case in report.cases() {
            assert!(case.0["duration_ms"].as_u64().unwrap() < 60_000, "{jump}: {case}");
        }
        leaves_nothing(&run, &workspace);
    }
}

#[test]
fn a_run_of_a_clock_that_was_ahead_is_not_the_last_one() {
    let server = ModelServer::start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(1))).server(&server);
    let ahead = workspace.clone().env("SELFTEST_NOW", "2099-01-01T00:00:00Z").run().exit(0);
    let id = ahead.report().run_id();
    assert!(id.starts_with("selftest-2099"), "{id}");
    let run_id = || {
        let ids: Vec<String> =
            workspace.run().exit(0).reports().iter().map(crate::report::Report::run_id).collect();
        ids.into_iter().find(|other| *other != id).unwrap()
    };
    let last = run_id();
    let accepted = workspace.clone().args(["baseline", "accept"]).run().exit(0);
    let _ = accepted.stderr_contains(&last);
    let resumed = workspace.clone().args(["--resume=latest"]).run();
    assert!(!resumed.stderr.contains("selftest-2099"), "{}", resumed.stderr);
}
