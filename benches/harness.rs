//! The cost of the harness itself: `cargo bench --bench harness`.
//!
//! A model server on this machine answers every call after exactly 50 ms. The ideal run keeps
//! all places busy all the time and takes calls × delay / concurrency; what is above that, and
//! all CPU time and memory of the process, is ours.
//!
//! The journal is measured by itself: its records of such a run are written once more, and the time
//! that takes is held against the run's. A run of 10,000 cases is played whole, for the time from its
//! last call to the end of the process, in which its reports are written; then it is broken off near
//! its end, for the time that it takes to go on, from the start of the process to the first call.
//! Ends with an error when a limit is passed.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

mod measurements;
mod model;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use measurements::Measurements;

const SELFTEST: &str = env!("CARGO_BIN_EXE_selftest");

const CASES: u32 = 500;
const CALLS_PER_CASE: u32 = 3;
const CONCURRENCY: u32 = 32;
const DELAY: Duration = Duration::from_millis(50);
const RUNS: u32 = 3;
/// Cases of the run that is broken off, and lines of its journal that are then missing.
const MANY: u32 = 10_000;
const LOST_LINES: usize = 200;

fn main() -> ExitCode {
    let ideal = DELAY * CASES * CALLS_PER_CASE / CONCURRENCY;
    println!(
        "{CASES} cases of {CALLS_PER_CASE} calls of {} ms, {CONCURRENCY} in flight; median of {RUNS} runs",
        DELAY.as_millis()
    );
    let version = median((0..20).map(|_| time_version()).collect());
    let before = children();
    let mut folder = None;
    let times = (0..RUNS).map(|_| {
        let run = time_run();
        folder = Some(run.1);
        run.0
    });
    let wall = median(times.collect());
    let after = children();
    let journal = time_journal(folder.as_ref().unwrap().path());
    let journal_share = journal.as_secs_f64() / wall.as_secs_f64() * 100.0;
    let many = time_many();
    let cpu = after.cpu.saturating_sub(before.cpu) / RUNS / CASES;
    let size = std::fs::metadata(SELFTEST).unwrap().len();

    let mut rows = Measurements::of("harness");
    rows.add("wall time", wall.as_secs_f64(), "s", ..);
    rows.add("wall time / ideal", wall.as_secs_f64() / ideal.as_secs_f64(), "×", ..=1.06);
    rows.add("processor time a case", milliseconds(cpu), "ms", ..=0.8);
    rows.add("journal, of the wall time", journal_share, "%", ..=2.0);
    rows.add(
        "`--resume` of 10,000 cases, to the first call",
        many.resumed.as_secs_f64(),
        "s",
        ..=1.0,
    );
    rows.add("reports of 10,000 cases", many.reports.as_secs_f64(), "s", ..=1.0);
    rows.add("peak memory of 500 cases", megabytes(after.peak_bytes), "MB", ..=80.0);
    rows.add("`--version`", milliseconds(version), "ms", ..=10.0);
    rows.add("the binary", megabytes(size), "MB", ..=40.0);
    rows.finish()
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
fn time_run() -> (Duration, tempfile::TempDir) {
    let folder = project(CASES);
    let address = model::serve(DELAY, reply);
    let started = Instant::now();
    let mut command = command(folder.path(), &address);
    command.args(["--full", "--seed=1", &format!("--concurrency={CONCURRENCY}")]);
    let output = command.output().unwrap();
    let wall = started.elapsed();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
    (wall, folder)
}

/// A fresh project with so many scenarios.
fn project(cases: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("config")).unwrap();
    fs::write(folder.path().join("config/selftest.yaml"), config(cases)).unwrap();
    let lines = (0..200).map(|number| {
        format!("Station {number} counts the trains that pass it and sends the sum at noon.\n")
    });
    fs::write(folder.path().join("stations.txt"), lines.collect::<String>()).unwrap();
    folder
}

/// The file with this ending among the JSON reports.
fn report_file(folder: &Path, ending: &str) -> PathBuf {
    let entries = fs::read_dir(folder.join("reports/selftest")).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|found| found == ending)).unwrap()
}

/// The time that a run's threads spend on its journal: every record checked, turned into text and
/// written. What the disk does meanwhile takes no processor time.
fn time_journal(folder: &Path) -> Duration {
    let text = fs::read_to_string(report_file(folder, "journal")).unwrap();
    let records: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(&line[9..]).unwrap()).collect();
    let mut file = tempfile::tempfile().unwrap();
    let started = Instant::now();
    for record in &records {
        let line = serde_json::to_vec(record).unwrap();
        file.write_all(format!("{:08x} ", crc32fast::hash(&line)).as_bytes()).unwrap();
        file.write_all(&line).unwrap();
    }
    started.elapsed()
}

/// A run of many cases, and how it goes on.
struct ManyCases {
    /// From the last call of a model to the end of the process.
    reports: Duration,
    /// From the start of the process that goes on to its first call of a model.
    resumed: Duration,
}

fn time_many() -> ManyCases {
    let folder = project(MANY);
    let address = model::serve(Duration::ZERO, reply);
    let run = |arguments: &[&str]| {
        *CALLS.lock().unwrap() = None;
        let mut command = command(folder.path(), &address);
        let started = Instant::now();
        let output = command.args(arguments).output().unwrap();
        let ended = Instant::now();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}\n{said}", output.status);
        let (first, last) = CALLS.lock().unwrap().unwrap();
        (first.duration_since(started), ended.duration_since(last))
    };
    let (_, reports) = run(&["--full", "--seed=1", &format!("--concurrency={CONCURRENCY}")]);
    let journal = report_file(folder.path(), "journal");
    let text = fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs::write(&journal, lines[..lines.len() - LOST_LINES].join("\n") + "\n").unwrap();
    let (resumed, _) = run(&["--resume=latest"]);
    ManyCases { reports, resumed }
}

fn command(folder: &Path, address: &str) -> Command {
    let mut command = Command::new(SELFTEST);
    command
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("CI", "1")
        .env("OPENAI_BASE_URL", format!("http://{address}/v1"));
    command
}

fn config(cases: u32) -> String {
    let mut yaml = "version: 1\n\
                    models: { max_retries: 0, restart_seconds: 0 }\n\
                    generator: { model: openai/bench }\n\
                    judge: { model: openai/bench, min_auc: 0, certificate: \"off\" }\n\
                    sut: { chat: { model: openai/bench } }\n\
                    scenarios:\n"
        .to_owned();
    yaml.extend((0..cases).map(|number| {
        format!(
            "  - {{ id: case-{number}, description: \"Request number {number}\", \
             expected_status: COMPLETE }}\n"
        )
    }));
    yaml
}

/// When a model was asked first and last.
static CALLS: Mutex<Option<(Instant, Instant)>> = Mutex::new(None);

/// The forms that a scenario may ask for, and an answer of each.
const FORMS: [(&str, &str); 7] = [
    ("in exactly three lines", "One line.\nTwo lines.\nThree lines."),
    ("as a bullet list of 2 items", "- One.\n- Two."),
    ("as a bullet list of 3 items", "- One.\n- Two.\n- Three."),
    ("as a table of two columns", "| a | b |\n|---|---|\n| 1 | 2 |"),
    ("with the number only", "7"),
    ("in one sentence", "It is one sentence."),
    ("with yes or no and the reason", "Yes, because it says so."),
];

/// The form that a request asks for: the last one in it, since examples stand before.
fn form(request: &str) -> (&'static str, &'static str) {
    FORMS.into_iter().max_by_key(|(words, _)| request.rfind(words)).unwrap()
}

/// The schema of the reply shows which role asks, so that no time goes into parsing.
fn reply(request: &str) -> String {
    // Not the list of models, which is asked for without a body.
    if !request.is_empty() {
        let now = Instant::now();
        CALLS.lock().unwrap().get_or_insert((now, now)).1 = now;
    }
    if request.contains("\"safety_score\":{") {
        r#"{"explanation":"Fine.","format_score":0.9,"factuality_score":0.9,"instruction_following_score":0.9,"safety_score":0.9}"#.to_owned()
    } else if request.contains("\"hints\":{") {
        let (_, excerpt) = request.rsplit_once("File `").unwrap();
        let fact = excerpt.split("\\n").nth(1).unwrap();
        let (words, form) = (words(), form(request).0);
        format!(
            r#"{{"facts":["{fact}"],"hints":"It says so.","prompt":"Explain {words} {form}.","requirements":["The answer is about {words}."]}}"#
        )
    } else {
        let output = serde_json::Value::from(form(request).1);
        format!(r#"{{"output":{output},"status":"COMPLETE"}}"#)
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
