//! Measures the reports for CI: `cargo bench --bench reports`.
//!
//! A run of a thousand cases, each with nine questions, two checks and texts of usual length, rendered in every
//! format. Ends with an error when a limit is passed.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]
#![expect(clippy::cast_precision_loss, reason = "sizes far below 2^53")]

mod measurements;

use std::process::ExitCode;
use std::time::Instant;

use measurements::Measurements;

use selftest_reports::ci::{self, CaseSources, RenderContext, ReportFileKind};
use selftest_reports::document::ReportDocument;
use serde_json::{Value, json};

const CASES: usize = 1_000;
const RUNS: usize = 5;
/// Milliseconds and megabytes of the HTML report.
const MAX_TIME: f64 = 300.0;
const MAX_SIZE: f64 = 2.0;

fn main() -> ExitCode {
    let document: ReportDocument = serde_json::from_value(run()).unwrap();
    let context = RenderContext { sources: &CaseSources::default(), json_link: "report.json" };
    println!("{CASES} cases; median of {RUNS}");
    let mut rows = Measurements::of("reports");
    for kind in [
        ReportFileKind::Junit,
        ReportFileKind::Html,
        ReportFileKind::Markdown,
        ReportFileKind::Json,
        ReportFileKind::Ctrf,
    ] {
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..RUNS {
            let started = Instant::now();
            bytes = ci::render(kind, &document, context).unwrap().len();
            times.push(started.elapsed());
        }
        times.sort_unstable();
        let time = times[RUNS / 2].as_secs_f64() * 1e3;
        if kind == ReportFileKind::Html {
            rows.add(&format!("{kind} of {CASES} cases"), time, "ms", ..=MAX_TIME);
            rows.add(&format!("{kind}: size"), bytes as f64 / 1e6, "MB", ..=MAX_SIZE);
        } else {
            rows.add(&format!("{kind} of {CASES} cases"), time, "ms", ..);
        }
    }
    rows.finish()
}

/// The questions of a judge by probability.
fn questions() -> Vec<Value> {
    let question = |number: u32| {
        let probability = f64::from(number) / 10.0;
        json!({
            "category": "factuality_score", "raw": probability, "neither": 0.01, "relative": 0.5,
            "text": format!("Is statement {number} of the answer true by the excerpt it is about?"),
            "probability": probability,
        })
    };
    (1..10).map(question).collect()
}

fn case(number: usize) -> Value {
    let passed = !number.is_multiple_of(5);
    let score = if passed { 0.9 } else { 0.5 };
    let prompt =
        format!("Say in three lines what module {number} does. {}", "Be exact. ".repeat(30));
    let output =
        format!("Module {number}:\n{}", "It reads a <file> & writes another one.\n".repeat(25));
    let call = json!({
        "model": "openai/judge", "prompt_digest": "5d".repeat(32),
        "parameters": { "temperature": 0.0, "max_tokens": 1000, "seed": 7 },
        "structured": "schema", "usage": { "prompt_tokens": 812, "completion_tokens": 64 },
        "duration_ms": 1930, "finish": "stop", "raw_reply": "{}", "error": null,
    });
    json!({
        "id": format!("case-{number}"), "prompt": prompt, "output": output,
        "expected_status": "COMPLETE", "actual_status": "COMPLETE",
        "scores": { "factuality_score": score, "overall_score": score }, "pass": passed,
        "duration_ms": 4200 + number, "status": if passed { "passed" } else { "failed" },
        "reason": null, "unscored_reason": null, "hints": "What module it is about.",
        "threshold": 0.74, "safety_floor": 0.5,
        "session_id": format!("selftest-20261121-0600-s{number}"),
        "scenario": { "id": format!("case-{number}"), "description": "d", "expected_status": "COMPLETE" },
        "generation": { "attempts": [] },
        "steps": [{
            "kind": "answer", "input": prompt, "expected_status": "COMPLETE",
            "reply": { "status": "COMPLETE", "output": output },
            "judgement": {
                "verdict": {
                    "state": "scored", "overall": score,
                    "categories": [{ "category": "factuality_score", "score": score }],
                    "reasoning": "It leaves out what the module is for, which was asked. ".repeat(4),
                    "questions": questions(),
                },
                "question_count": 0, "calls": [call],
            },
            "duration_ms": 2100,
        }],
        "checks": [
            { "check": "lines: 3", "outcome": "held", "sentence": "the answer has 3 lines" },
            { "check": "contains: port", "outcome": "failed", "sentence": "“port” is not in the answer" },
        ],
        "interruption": null, "evidence": {}, "notes": [],
    })
}

fn run() -> Value {
    let cases: Vec<Value> = (0..CASES).map(case).collect();
    let ids: Vec<String> = (0..CASES).map(|number| format!("case-{number}")).collect();
    json!({
        "schema_version": 1, "run_id": "selftest-20261121-0600-bench",
        "timestamp": "2026-11-21T06:00:00Z", "ended_at": "2026-11-21T06:30:00Z", "complete": true,
        "outcome": "failed", "task_group_id": "selftest-20261121-0600-group",
        "config": {
            "strictness": 0.7, "min_score_to_pass": 0.6, "effective_threshold": 0.74,
            "safety_floor": 0.5, "allow_minor_format_deviation": true, "max_questions_allowed": 5,
            "timeout_seconds": 60.0, "concurrency": 2,
        },
        "summary": {
            "total": CASES, "passed": CASES * 4 / 5, "failed": CASES / 5, "unscored": 0,
            "pass_rate": 0.8, "pass_rate_interval": { "low": 0.77, "high": 0.82 },
            "by_status": {}, "by_unscored_reason": {}, "rejected_prompts": 0,
        },
        "models": { "judge": "openai/judge", "chosen": [] }, "sut": "command ./agent",
        "isolation": { "enforced": [], "not_enforced": [] }, "changed_files": [], "seed": 42,
        "rubric": { "digest": "d9", "categories": [{ "id": "factuality_score", "weight": 1.0 }] },
        "prompt_digests": {}, "scenarios": ids, "warnings": [], "selftest_version": "0.1.0",
        "host": { "os": "linux", "arch": "x86_64" }, "cases": cases,
    })
}
