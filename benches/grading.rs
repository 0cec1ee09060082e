//! The cost of grading by a model beside the model: `cargo bench --bench grading`.
//!
//! Condenses a session of at least 6,000 messages, and lets a model server that answers every call
//! after exactly 200 ms grade recorded sessions, two at a time. The ideal backfill takes sessions ×
//! delay / 2. Ends with an error when a limit is passed.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

// The generator of recorded sessions has more than is needed here.
#[path = "ingest/claude.rs"]
mod claude;
#[path = "ingest/codex.rs"]
mod codex;
#[expect(dead_code, reason = "of another benchmark, which uses all of it")]
#[path = "ingest/corpus.rs"]
mod corpus;
#[expect(dead_code, reason = "of another benchmark, which uses all of it")]
#[path = "ingest/hermes.rs"]
mod hermes;
mod measurements;
mod model;
#[path = "ingest/words.rs"]
mod words;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use measurements::Measurements;
use selftest_sessions::{Session, SessionCollector, SessionSource, TranscriptBudget};

const SELFTEST: &str = env!("CARGO_BIN_EXE_selftest");

const MESSAGES: usize = 6_000;
/// Bytes of a session with that many.
const LONG: u64 = 60_000_000;
const RUNS: usize = 5;
/// Milliseconds.
const MAX_CONDENSING: f64 = 200.0;

const DELAY: Duration = Duration::from_millis(200);
const CONCURRENCY: u32 = 2;
const SESSIONS: u32 = 100;
/// Bytes of each: a few dozen messages and more.
const SHORT: u64 = 500_000;
/// Of the ideal rate.
const MIN_RATE: f64 = 0.95;

fn main() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = Measurements::of("grading");
    condense(folder.path(), &mut rows);
    backfill(folder.path(), &mut rows);
    rows.finish()
}

fn condense(folder: &Path, rows: &mut Measurements) {
    let folder = folder.join("long");
    corpus::claude(&corpus::Pools::new(), &folder, 1, LONG);
    let file = selftest_sessions::find_session_files(&[folder], |_| {}).into_iter().next().unwrap();
    let session = read(&file.source);
    let messages = session.events.len();
    assert!(messages >= MESSAGES, "only {messages} messages");
    let budget = TranscriptBudget { tokens: 8_000, bytes_per_token: 3.5 };
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            assert!(!selftest_sessions::condense(&session, budget).text.is_empty());
            started.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let name = format!("condense a session of {messages} messages");
    rows.add(&name, times[RUNS / 2], "ms", ..=MAX_CONDENSING);
}

fn read(source: &SessionSource) -> Session {
    let mut collector = SessionCollector::default();
    selftest_sessions::read(source, &mut collector).unwrap();
    collector.into_sessions().into_iter().next().unwrap()
}

fn backfill(folder: &Path, rows: &mut Measurements) {
    let sessions = folder.join("sessions");
    let pools = corpus::Pools::new();
    for number in 0..SESSIONS {
        corpus::claude(&pools, &sessions, number.into(), SHORT);
    }
    std::fs::create_dir(folder.join("config")).unwrap();
    let config = "version: 1\ngrade: { quality: { model: openai/bench } }\n\
                  scenarios: [{ id: none, description: None, expected_status: COMPLETE }]\n";
    std::fs::write(folder.join("config/selftest.yaml"), config).unwrap();
    let address = model::serve(DELAY, reply);
    let run = |words: &[&str]| {
        let mut command = Command::new(SELFTEST);
        command
            .args(words)
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .env("CI", "1")
            .env("OPENAI_BASE_URL", format!("http://{address}/v1"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}\n{said}", output.status);
    };
    run(&["grade", "latest", "1000", "--source", sessions.to_str().unwrap()]);
    let started = Instant::now();
    let concurrency = format!("--concurrency={CONCURRENCY}");
    run(&["grade", "backfill", &concurrency, "--source", sessions.to_str().unwrap()]);
    let wall = started.elapsed().as_secs_f64();
    let ideal = (DELAY * SESSIONS / CONCURRENCY).as_secs_f64();
    rows.add("backfill of 100 sessions, of the ideal rate", ideal / wall, "×", MIN_RATE..);
}

fn reply(_: &str) -> String {
    let names = ["problem_solved", "tests_added", "code_clean", "edge_cases_handled"];
    let dimensions: String = names
        .map(|name| format!(r#""{name}":{{"evidence":"part","reasoning":"Seen.","score":0.5}},"#))
        .concat();
    format!(r#"{{{dimensions}"summary":"It went well."}}"#)
}
