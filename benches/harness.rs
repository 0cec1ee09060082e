//! The cost of the harness itself: `cargo bench --bench harness`.
//!
//! A model server on this machine answers every call after exactly 50 ms. The ideal run keeps
//! all places busy all the time and takes calls × delay / concurrency; what is above that, and
//! all CPU time and memory of the process, is ours. Ends with an error when a limit is passed.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

mod model;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SELFTEST: &str = env!("CARGO_BIN_EXE_selftest");

const CASES: u32 = 500;
const CALLS_PER_CASE: u32 = 3;
const CONCURRENCY: u32 = 32;
const DELAY: Duration = Duration::from_millis(50);
const RUNS: u32 = 3;

fn main() -> ExitCode {
    let ideal = DELAY * CASES * CALLS_PER_CASE / CONCURRENCY;
    println!(
        "{CASES} cases of {CALLS_PER_CASE} calls of {} ms, {CONCURRENCY} in flight; median of {RUNS} runs",
        DELAY.as_millis()
    );
    let version = median((0..20).map(|_| time_version()).collect());
    let before = children();
    let wall = median((0..RUNS).map(|_| time_run()).collect());
    let after = children();
    let cpu = after.cpu.saturating_sub(before.cpu) / RUNS / CASES;
    let size = std::fs::metadata(SELFTEST).unwrap().len();

    let rows = [
        Row { name: "wall time", value: wall.as_secs_f64(), unit: "s", limit: None },
        Row { name: "ideal wall time", value: ideal.as_secs_f64(), unit: "s", limit: None },
        Row {
            name: "wall time / ideal",
            value: wall.as_secs_f64() / ideal.as_secs_f64(),
            unit: "times",
            limit: Some(1.10),
        },
        Row { name: "CPU per case", value: milliseconds(cpu), unit: "ms", limit: Some(2.0) },
        Row {
            name: "peak memory",
            value: megabytes(after.peak_bytes),
            unit: "MB",
            limit: Some(80.0),
        },
        Row { name: "--version", value: milliseconds(version), unit: "ms", limit: Some(10.0) },
        Row { name: "binary", value: megabytes(size), unit: "MB", limit: Some(40.0) },
    ];
    let mut good = true;
    for Row { name, value, unit, limit } in rows {
        let verdict = match limit {
            Some(limit) if value > limit => {
                good = false;
                format!("TOO MUCH (limit {limit} {unit})")
            }
            Some(limit) => format!("(limit {limit} {unit})"),
            None => String::new(),
        };
        println!("{name:<18}{value:>8.2} {unit:<6}{verdict}");
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Row {
    name: &'static str,
    value: f64,
    unit: &'static str,
    limit: Option<f64>,
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^53")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn time_version() -> Duration {
    let started = Instant::now();
    let status = Command::new(SELFTEST).arg("--version").stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    started.elapsed()
}

/// One run of all cases in a fresh project, from start to end of the process.
fn time_run() -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let address = model::serve(DELAY, reply);
    std::fs::create_dir(folder.path().join("config")).unwrap();
    std::fs::write(folder.path().join("config/selftest.yaml"), config()).unwrap();
    let started = Instant::now();
    let output = command(folder.path(), &address).output().unwrap();
    let wall = started.elapsed();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
    wall
}

fn command(folder: &Path, address: &str) -> Command {
    let mut command = Command::new(SELFTEST);
    command
        .args(["--full", "--seed=1", &format!("--concurrency={CONCURRENCY}")])
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("CI", "1")
        .env("OPENAI_BASE_URL", format!("http://{address}/v1"));
    command
}

fn config() -> String {
    let mut yaml = "version: 1\n\
                    models: { max_retries: 0, restart_seconds: 0 }\n\
                    generator: { model: openai/bench }\n\
                    judge: { model: openai/bench }\n\
                    sut: { chat: { model: openai/bench } }\n\
                    scenarios:\n"
        .to_owned();
    yaml.extend((0..CASES).map(|number| {
        format!(
            "  - {{ id: case-{number}, description: \"Request number {number}\", \
             expected_status: COMPLETE }}\n"
        )
    }));
    yaml
}

/// Which role asks is told by the schema's own words, so that no time goes into parsing.
fn reply(request: &str) -> String {
    if request.contains("\"safety_score\":{") {
        r#"{"explanation":"Fine.","format_score":0.9,"factuality_score":0.9,"instruction_following_score":0.9,"safety_score":0.9}"#.to_owned()
    } else if request.contains("\"hints\":{") {
        format!(r#"{{"prompt":"Explain {} in three lines.","hints":"Three lines."}}"#, words())
    } else {
        r#"{"status":"COMPLETE","output":"One line.\nTwo lines.\nThree lines."}"#.to_owned()
    }
}

/// Eight words that no other prompt has.
fn words() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let first = COUNT.fetch_add(8, Ordering::Relaxed);
    let word = |mut number: usize| -> String {
        std::iter::repeat_with(|| {
            let (consonant, vowel) = (number % 9, number / 9 % 5);
            number /= 45;
            [&"bdgklmnpz"[consonant..=consonant], &"aeiou"[vowel..=vowel]].concat()
        })
        .take(4)
        .collect()
    };
    (first..first + 8).map(word).collect::<Vec<_>>().join(" ")
}

/// The total cost of the processes that this one has waited for.
struct Children {
    cpu: Duration,
    /// Of the largest of them.
    peak_bytes: u64,
}

#[expect(unsafe_code, reason = "the standard library does not tell what a child has cost")]
fn children() -> Children {
    // SAFETY: rusage is plain numbers, for which all zeros is a value, and getrusage writes
    // nothing but the struct that it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage), 0);
        usage
    };
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs())
            + Duration::from_micros(u64::from(u32::try_from(time.tv_usec).unwrap()))
    };
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    Children {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak_bytes: usage.ru_maxrss.unsigned_abs() * unit,
    }
}
