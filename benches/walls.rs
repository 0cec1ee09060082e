//! Measures what the sandbox adds to a case: `cargo bench --bench walls`.
//!
//! A program under test that answers at once is asked a hundred times, one case after the other, with
//! the sandbox and without. No model is called: checks decide. Ends with an error when the limit is
//! passed, or where this machine has no sandbox.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const CASES: u32 = 100;
const RUNS: usize = 5;
/// Of one case.
const MAX_ADDED: Duration = Duration::from_millis(15);

const AGENT: &str = r#"read -r task
echo '{"type":"result","status":"COMPLETE","output":"hello"}'
"#;

fn main() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    let (with, without) = (project(folder.path(), "enforce"), project(folder.path(), "off"));
    println!("{CASES} cases of a program that answers at once; median of {RUNS} runs");
    // In turns, so that what else the machine does falls on both.
    let times: (Vec<_>, Vec<_>) = (0..RUNS).map(|_| (time(&with), time(&without))).unzip();
    let (with, without) = (median(times.0), median(times.1));
    let added = with.saturating_sub(without);
    let is_too_much = added > MAX_ADDED;
    let mark = if is_too_much { "  TOO MUCH" } else { "" };
    println!("with the sandbox     {:>6.1} ms a case", milliseconds(with));
    println!("without              {:>6.1} ms a case", milliseconds(without));
    println!(
        "added                {:>6.1} ms (limit {} ms){mark}",
        milliseconds(added),
        MAX_ADDED.as_millis()
    );
    if is_too_much { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A project whose program is kept in the sandbox so.
fn project(folder: &Path, sandbox: &str) -> std::path::PathBuf {
    let project = folder.join(sandbox);
    fs::create_dir_all(project.join("config")).unwrap();
    let config = format!(
        "version: 1\nsut: {{ sandbox: {sandbox}, command: {{ run: [/bin/sh, agent.sh] }} }}\n"
    );
    fs::write(project.join("config/selftest.yaml"), config).unwrap();
    fs::write(project.join("agent.sh"), AGENT).unwrap();
    let case = |number| {
        format!(
            "  - scenario: {{ id: case-{number}, description: d, expected_status: COMPLETE }}\n    \
             prompt: Say hello.\n    checks: [{{ contains: hello }}]\n"
        )
    };
    let cases: String = (0..CASES).map(case).collect();
    fs::write(project.join("suite.yaml"), format!("version: 1\ncases:\n{cases}")).unwrap();
    project
}

/// The time of one case in a run of all, the start of the process among it.
fn time(project: &Path) -> Duration {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selftest"));
    command
        .current_dir(project)
        .env_clear()
        .env("HOME", project)
        .env("PATH", "/usr/bin:/bin")
        .env("CI", "1")
        .args(["--suite=suite.yaml", "--concurrency=1", "--quiet"]);
    let started = Instant::now();
    let output = command.output().unwrap();
    let time = started.elapsed();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
    time / CASES
}
