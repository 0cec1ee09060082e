//! Measures what the sandbox adds to a case: `cargo bench --bench walls`.
//!
//! A program under test that answers at once is asked a hundred times, one case after the other, with
//! the sandbox and without. No model is called: checks decide. Then a work copy of 10,000 files is
//! digested through its folder's descriptor, and its files by their paths as a measure. Ends with an
//! error when a limit is passed, or where this machine has no sandbox.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use selftest_harness::sut::project::Workspace;
use selftest_text::digest::sha256_hex;

const CASES: u32 = 100;
const RUNS: usize = 5;
/// Of one case.
const MAX_ADDED: Duration = Duration::from_millis(15);
/// Files of the work copy, in folders of a hundred, of two KiB each.
const FILES: usize = 10_000;
/// Maximum ratio to the time of reading the same files by path.
const MAX_RATIO: f64 = 2.0;

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
    let is_slow = digests(folder.path());
    if is_too_much || is_slow { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Digests a work copy; returns true if that took too long.
fn digests(folder: &Path) -> bool {
    let (project, copy) = (folder.join("large"), folder.join("copy"));
    let paths: Vec<PathBuf> = (0..FILES)
        .map(|number| PathBuf::from(format!("{:02}/file-{number}.txt", number / 100)))
        .collect();
    for (path, number) in paths.iter().zip(0..) {
        let path = project.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{number:08}\n").repeat(228)).unwrap();
    }
    let mut workspace = Workspace::copy(&project, &[], &[], copy.clone()).unwrap();
    let by_path = || {
        let mut files = 0;
        for entry in fs::read_dir(&copy).unwrap() {
            for file in fs::read_dir(entry.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                assert!(path.symlink_metadata().unwrap().is_file());
                files += usize::from(!sha256_hex(&fs::read(path).unwrap()).is_empty());
            }
        }
        assert_eq!(files, FILES);
    };
    let (mut whole, mut again, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        plain.push(took(by_path));
        let started = Instant::now();
        workspace = workspace.with_new_baseline();
        whole.push(started.elapsed());
        again.push(took(|| assert!(workspace.report(&[]).changed.is_empty())));
    }
    let (whole, again, plain) = (median(whole), median(again), median(plain));
    let ratio = whole.as_secs_f64() / plain.as_secs_f64();
    let is_slow = ratio > MAX_RATIO;
    let mark = if is_slow { "  TOO MUCH" } else { "" };
    println!("a work copy of {FILES} files, median of {RUNS}");
    println!("digested             {:>6.1} ms", milliseconds(whole));
    println!("by their paths       {:>6.1} ms", milliseconds(plain));
    println!("ratio                {ratio:>6.2}    (limit {MAX_RATIO}){mark}");
    println!("looked at again      {:>6.1} ms", milliseconds(again));
    is_slow
}

fn took(work: impl Fn()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A project whose program is kept in the sandbox so.
fn project(folder: &Path, sandbox: &str) -> PathBuf {
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
