//! Speed of the statistics: `cargo bench --bench statistics`.
//!
//! Ends with an error when a limit is passed.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

mod measurements;
mod model;

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use measurements::Measurements;
use selftest_checks::check::{CheckObservation, CheckOutcome, ObservedToolCall, decide, read_list};
use selftest_stats::{CaseTrials, MIN_DRAWS, bootstrap_mean, permutation_test};
use serde_json::{Value, json};

const SELFTEST: &str = env!("CARGO_BIN_EXE_selftest");
const RUNS: usize = 5;

fn main() -> ExitCode {
    let rows = [
        ("bootstrap, 10,000 resamples of 1,000 cases", bootstrap(), 100.0),
        ("permutation test, 1,000 cases of 5 trials in each arm", permutation(), 500.0),
        ("10,000 checks of an answer", checks(), 200.0),
        ("`compare` of 10,000 cases, the whole process", compare(), 1_000.0),
    ];
    let mut measurements = Measurements::of("statistics");
    for (name, time, limit) in rows {
        measurements.add(name, time.as_secs_f64() * 1e3, "ms", ..=limit);
    }
    measurements.finish()
}

/// Checks of an answer, of its calls of tools, and of files.
fn checks() -> Duration {
    let kinds = [
        json!({ "contains": "port 80" }),
        json!({ "regex": "p.rt \\d+" }),
        json!({ "lines": { "max": 3 } }),
        json!({ "tool_not_called": "Bash" }),
        json!({ "words": { "min": 2 } }),
    ];
    let checks = read_list(&json!(kinds)).unwrap();
    let calls: Vec<ObservedToolCall> = ["Read", "Grep", "Edit"]
        .map(|name| ObservedToolCall {
            name: name.to_owned(),
            arguments: json!({ "path": "src/a.rs" }),
            failed: false,
        })
        .into();
    let seen = CheckObservation {
        output: "The server listens on port 80.\nIt was port 8080 before.",
        tool_calls: Some(&calls),
        ..CheckObservation::default()
    };
    median(|| {
        let found = (0..10_000).map(|at| decide(&checks[at % checks.len()], &seen));
        assert_eq!(found.filter(|it| it.outcome == CheckOutcome::Held).count(), 10_000);
    })
}

fn median(mut measure: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            measure();
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[RUNS / 2]
}

/// Numbers in 0 to 1 of no pattern.
fn noise(seed: u32) -> f64 {
    f64::from(seed.wrapping_mul(2_654_435_761) >> 8) / f64::from(1_u32 << 24)
}

fn bootstrap() -> Duration {
    let values: Vec<f64> = (0..1_000).map(noise).collect();
    median(|| assert!(bootstrap_mean(&values, 1, 10_000).is_some()))
}

fn permutation() -> Duration {
    let arm =
        |case: u32, arm: u32| (0..5).map(|trial| noise(100 * case + 10 * arm + trial)).collect();
    let cases: Vec<CaseTrials> = (0..1_000)
        .map(|case| CaseTrials { control: arm(case, 0), treatment: arm(case, 1) })
        .collect();
    median(|| assert!(permutation_test(&cases, 1, MIN_DRAWS).is_some()))
}

/// Two reports of 10,000 cases each: those of a run, its one case again and again under other
/// names and with other scores.
fn compare() -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let address = model::serve(Duration::ZERO, reply);
    std::fs::create_dir(folder.path().join("config")).unwrap();
    std::fs::write(folder.path().join("config/selftest.yaml"), CONFIG).unwrap();
    let selftest = |arguments: &[&str]| {
        let mut command = Command::new(SELFTEST);
        command.args(arguments).current_dir(folder.path()).env_clear();
        command.env("HOME", folder.path()).env("CI", "1");
        command.env("OPENAI_BASE_URL", format!("http://{address}/v1"));
        let output = command.stderr(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", output.status);
        output.stdout
    };
    let report: Value = serde_json::from_slice(&selftest(&["--full", "--format=json"])).unwrap();
    for (name, run) in [("a", 0), ("b", 1)] {
        let mut many = report.clone();
        let one = many["cases"][0].clone();
        many["cases"] = (0..10_000).map(|number| case(&one, number, run)).collect();
        std::fs::write(folder.path().join(format!("{name}.json")), many.to_string()).unwrap();
    }
    median(|| drop(selftest(&["compare", "a.json", "b.json"])))
}

fn case(one: &Value, number: u32, run: u32) -> Value {
    let mut case = one.clone();
    let score = (20.0 * noise(2 * number + run)).round() / 20.0;
    case["id"] = json!(format!("case-{number}"));
    case["scenario"]["id"] = case["id"].clone();
    case["prompt"] = json!(format!("Explain number {number} in three lines."));
    case["scores"]["overall_score"] = json!(score);
    case["pass"] = json!(score > 0.5);
    case
}

const CONFIG: &str = "version: 1\n\
    models: { max_retries: 0, restart_seconds: 0 }\n\
    generator: { model: openai/bench }\n\
    judge: { model: openai/bench, min_auc: 0, certificate: \"off\" }\n\
    sut: { chat: { model: openai/bench } }\n\
    scenarios:\n  \
    - { id: one, description: \"A vague request\", expected_status: AWAITING_RESPONSE }\n";

/// The schema of the reply shows which role asks.
fn reply(request: &str) -> String {
    if request.contains("\"safety_score\":{") {
        r#"{"explanation":"Fine.","format_score":0.9,"factuality_score":0.9,"instruction_following_score":0.9,"safety_score":0.9}"#
    } else {
        r#"{"status":"AWAITING_RESPONSE","output":"Which section do you mean?"}"#
    }
    .to_owned()
}
