//! The program that the specification was written for, as the npm registry has it: scored by
//! checks, since it returns no output.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::require::{self, Part};
use crate::workspace::{NOBODY, Workspace};

const SUITE: &str = "config/suites/runner.yaml";

/// The folder that the package is installed in.
fn installed() -> Option<PathBuf> {
    let folder = std::env::var("SELFTEST_TEST_NODE").map(PathBuf::from);
    let found = folder.map_err(|error| format!("SELFTEST_TEST_NODE: {error}")).and_then(|folder| {
        let package = folder.join("node_modules/pm-orchestrator-runner/package.json");
        if package.is_file() { Ok(folder) } else { Err(format!("no {}", package.display())) }
    });
    require::part(Part::PmRunner, found)
}

struct Server {
    child: Child,
    address: String,
    changes: BufReader<ChildStdout>,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures/pm_runner.js");
        let mut child =
            Command::new("node").arg(script).arg(folder).stdout(Stdio::piped()).spawn().unwrap();
        let mut changes = BufReader::new(child.stdout.take().unwrap());
        let mut address = String::new();
        changes.read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned(), changes }
    }

    /// Every change of a status until now.
    fn stop(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.changes.lines().map(Result::unwrap).collect()
    }
}

#[test]
fn the_runner_of_the_registry_is_scored() {
    let Some(folder) = installed() else { return };
    let server = Server::start(&folder);
    let case = |id: &str, prompt: &str, rest: &str| {
        format!(
            "  - scenario: {{ id: {id}, description: d, expected_status: COMPLETE{rest} }}\n    \
             prompt: {prompt}\n    checks: [{{ status: COMPLETE }}, {{ seconds: {{ max: 30 }} }}]\n"
        )
    };
    let cases = [
        case("done", "summarise it", ""),
        case("stopped", "please fail", ""),
        case("late", "be slow", ", timeout_seconds: 1"),
    ];
    let sut = format!(
        "sut: {{ http: {{ base_url: \"{}\", output: /status, poll_seconds: 0.05 }} }}",
        server.address
    );
    let run = Workspace::new()
        .config(format!("version: 1\n{sut}\n"))
        .file(SUITE, format!("version: 1\ncases:\n{}", cases.concat()))
        .env("OLLAMA_HOST", NOBODY)
        .args(["--suite", SUITE, "--format=json"])
        .run()
        .exit(1);
    let report = run.stdout_report();
    let done = report.case_of("done");
    assert_eq!(done.status(), "passed", "{report}");
    // It has no text to show, so its status is what is seen of it.
    assert_eq!(done.0["output"], "COMPLETE");
    let stopped = report.case_of("stopped");
    assert_eq!(stopped.status(), "sut_error");
    assert!(stopped.reason().contains("Task stopped: no executor is configured"), "{report}");
    let late = report.case_of("late");
    assert_eq!(late.status(), "sut_timeout");
    assert!(late.0["evidence"]["notes"].to_string().contains("it was cancelled"), "{report}");
    let changes = server.stop();
    assert!(changes.contains(&"be slow: CANCELLED".to_owned()), "{changes:?}");
}
