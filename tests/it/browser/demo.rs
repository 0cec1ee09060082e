//! Sessions, grades and weeks that look like those of a small team. All of it is made up.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use selftest_grading::grade::spending::ModelTokens;
use selftest_grading::grade::{
    AlertSettings, ErrorCause, ErrorClass, ErrorCount, GradeDetails, GradeEvidence, GradeField,
    GradeLevel, GradeOverride, GradePoint, GradeRecord, OutcomeEvidence, OutcomeSign, OutcomeState,
    QualityGrade, ReportRules, ScanCoverage, SessionKind, SuggestionRules, TaskOutcome, TaskType,
    ToolUse, Week, WeeklyReport,
};
use selftest_models::prices::{ModelPrices, PricedTokens};
use serde_json::json;

use super::site::Contents;
use crate::grade::recording::Recording;

/// A session that tries to be a program.
pub(super) const SCRIPT: &str = "<script>alert(1)</script>";
/// Its id, with all that has a meaning in addresses.
pub(super) const SCRIPT_ID: &str = "agent/run 7?x=<b>&y#z";
/// The session whose panel is looked at.
pub(super) const GRADED: &str = "5f0c2a9e-0003-4000-8000-00000000c0de";

const REQUESTS: [(&str, TaskType, &str); 12] = [
    (
        "Fix the flaky login test on CI, it fails every third run",
        TaskType::Debugging,
        "claude-code",
    ),
    ("Add a dark theme to the settings page", TaskType::FeatureImpl, "codex"),
    ("Review the PR that moves sessions into Redis", TaskType::CodeReview, "claude-code"),
    (
        "Fix the parser: empty lines in a CSV file end the import",
        TaskType::Debugging,
        "claude-code",
    ),
    ("Document the retry policy of the HTTP client", TaskType::Documentation, "gemini-cli"),
    (
        "Refactor the invoice module, it has three copies of the rounding",
        TaskType::Refactoring,
        "claude-code",
    ),
    ("Deploy the shop to the staging cluster", TaskType::Deployment, "openhands"),
    ("Write unit tests for the price calculator", TaskType::Testing, "codex"),
    ("Investigate why memory grows overnight in the worker", TaskType::Research, "claude-code"),
    ("Plot the weekly active users from the exported table", TaskType::DataAnalysis, "gemini-cli"),
    ("Build a feature flag for the new checkout", TaskType::FeatureImpl, "codex"),
    ("Fix the time zone of the calendar export", TaskType::Debugging, "openhands"),
];

pub(super) fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn level(level: u64) -> GradeLevel {
    GradeLevel::new(u8::try_from(level).unwrap()).unwrap()
}

/// Numbers that look like chance and are always the same.
fn chance(number: u64, salt: u64, below: u64) -> u64 {
    let mixed = (number * 31 + salt + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 33) % below
}

/// One of a long row of sessions, newest first.
pub(super) fn session(number: u64) -> GradeRecord {
    let (request, task_type, agent) = REQUESTS[usize::try_from(number % 12).unwrap()];
    let start =
        at("2026-11-21T17:40:00Z") - SignedDuration::from_mins(i64::try_from(number * 97).unwrap());
    let errors = if number == 3 {
        4
    } else if chance(number, 1, 3) == 0 {
        1 + chance(number, 2, 9)
    } else {
        0
    };
    let calls = 6 + chance(number, 3, 60);
    let done = number == 3 || errors < 5 && chance(number, 4, 9) > 0;
    let model = ["claude-sonnet-4-5", "gpt-5.1-codex", "gemini-3-pro"];
    GradeRecord {
        session_id: format!("5f0c2a9e-{number:04x}-4000-8000-00000000c0de"),
        session_file: String::new(),
        graded_at: at("2026-11-22T06:00:00Z"),
        task_completed: done,
        tool_calls_efficient: level(5 - errors.min(4)),
        response_quality: level(if number == 3 {
            3
        } else if done {
            3 + chance(number, 5, 3)
        } else {
            1 + chance(number, 6, 3)
        }),
        errors_recovered: done,
        total_api_calls: calls,
        model: Some(model[usize::try_from(chance(number, 7, 3)).unwrap()].to_owned()),
        platform: Some("cli".to_owned()),
        session_start: Some(start),
        duration_seconds: Some(f64::from(u32::try_from(40 + chance(number, 8, 4000)).unwrap())),
        task_summary: Some(request.to_owned()),
        total_errors: errors,
        error_types: Vec::new(),
        tools_with_errors: Vec::new(),
        had_repeated_errors: errors >= 3,
        had_infinite_loop_risk: errors >= 7,
        had_user_clarification: chance(number, 9, 6) == 0,
        outcome: outcome(number, done),
        session_kind: match chance(number, 10, 11) {
            0 => SessionKind::Subagent,
            1 => SessionKind::WarmUp,
            _ => SessionKind::Task,
        },
        parent_session: None,
        details: GradeDetails {
            agent: agent.to_owned(),
            project: Some(format!(
                "/home/ada/{}",
                ["ledger", "parser", "site"][usize::try_from(number % 3).unwrap()]
            )),
            task_type,
            counts_at: Some(start),
            messages: calls * 2,
            tool_calls: calls,
            rejected_calls: 0,
            pending_calls: 0,
            tools: BTreeMap::from([
                ("Bash".to_owned(), ToolUse { calls: calls / 2, errors }),
                ("Read".to_owned(), ToolUse { calls: calls - calls / 2, errors: 0 }),
            ]),
            errors: errors_of(errors, calls),
            longest_error_run: errors.min(4),
            tokens: selftest_sessions::TokenCounts::default(),
            evidence: evidence(done, errors, calls),
            state: OutcomeState::Unknown,
            own_state: None,
            own_outcome: None,
            outcome_evidence: outcome_evidence(outcome(number, done), calls),
            results: Vec::new(),
            corrections: u64::from(!done),
            lineage: selftest_sessions::SessionLineage::default(),
            foreign_edits: 0,
            rewinds: u64::from(chance(number, 12, 9) == 0),
            spent: vec![ModelTokens {
                model: Some("claude-sonnet-4-5".to_owned()),
                tokens: PricedTokens {
                    input: 900 * calls,
                    output: 400 * calls,
                    cache_write: 6000 + 800 * calls,
                    cache_read: 9000 * calls,
                },
                ..ModelTokens::default()
            }],
            copied: Vec::new(),
            copied_from: None,
            stated_cost: None,
        },
    }
}

fn outcome(number: u64, done: bool) -> TaskOutcome {
    match (done, chance(number, 11, 3)) {
        (false, 0) => TaskOutcome::Unknown,
        (false, _) => TaskOutcome::Contradicted,
        (true, 0) => TaskOutcome::Claimed,
        (true, _) => TaskOutcome::ChecksPassed,
    }
}

fn outcome_evidence(outcome: TaskOutcome, calls: u64) -> Vec<OutcomeEvidence> {
    let one =
        |sign, words: &str| OutcomeEvidence { sign, event: calls * 2 - 3, words: words.to_owned() };
    match outcome {
        TaskOutcome::ChecksPassed => {
            vec![one(OutcomeSign::TestsPassed, "cargo test --workspace")]
        }
        TaskOutcome::Contradicted => {
            vec![one(OutcomeSign::UserComplains, "it still fails on empty lines")]
        }
        TaskOutcome::Claimed => vec![one(OutcomeSign::Claims, "All done.")],
        TaskOutcome::Unknown => Vec::new(),
    }
}

fn errors_of(errors: u64, calls: u64) -> Vec<ErrorCount> {
    let kinds = [
        (ErrorClass::FileNotFound, "Bash", "cat: src/csv/reder.rs: No such file or directory"),
        (ErrorClass::Timeout, "Bash", "command timed out after 120 s: cargo test --workspace"),
        (ErrorClass::SyntaxError, "Edit", "SyntaxError: unexpected token '}' in line 48"),
    ];
    let shares = [errors.div_ceil(2), errors / 3, errors - errors.div_ceil(2) - errors / 3];
    let of = |(position, (class, tool, example)): (usize, (ErrorClass, &str, &str))| ErrorCount {
        class,
        cause: ErrorCause::from_name(class.name()).unwrap_or_default(),
        template: example.to_owned(),
        tool: tool.to_owned(),
        count: shares[position],
        first_event: 3 + (position as u64 * calls * 2) / 3,
        example: example.to_owned(),
    };
    let all = kinds.into_iter().enumerate().map(of);
    all.filter(|error| error.count > 0).collect()
}

fn evidence(done: bool, errors: u64, calls: u64) -> Vec<GradeEvidence> {
    let point = |point, worth, event, words: &str| GradeEvidence {
        point,
        worth,
        event,
        words: words.to_owned(),
    };
    let last = Some(calls * 2 - 1);
    let mut evidence = if done {
        vec![
            point(GradePoint::SaysDone, 1.0, last, "Done: the importer skips empty lines now"),
            point(GradePoint::NamesOutput, 1.0, last, "src/csv/reader.rs"),
        ]
    } else {
        vec![point(GradePoint::SaysFailed, -1.0, last, "I was unable to finish this")]
    };
    let share = format!("{errors} errors in {calls} calls");
    evidence.push(match errors {
        0..3 => point(GradePoint::FewErrors, 1.0, None, &share),
        _ => point(GradePoint::ManyErrors, -1.0, None, &share),
    });
    evidence
}

fn quality(session: &GradeRecord, model: &str, number: u64) -> QualityGrade {
    let base = if session.task_completed { 70 } else { 20 };
    let score = |salt| {
        let percent = u32::try_from(base + chance(number, salt, 30)).unwrap();
        Some((f64::from(percent) / 5.0).round() / 20.0)
    };
    let unsupported = number % 2 == 1;
    let tests = (number < 6 || chance(number, 14, 3) > 0).then(|| score(11)).flatten();
    let scores = [score(10), tests, score(12), score(13)];
    let given: Vec<f64> = scores.iter().copied().flatten().collect();
    let overall = given.iter().sum::<f64>() / f64::from(u32::try_from(given.len()).unwrap());
    let note = |evidence: &str, reasoning: &str| json!({ "evidence": evidence, "reasoning": reasoning, "unsupported": false });
    QualityGrade {
        session_id: session.session_id.clone(),
        model: model.to_owned(),
        rubric_version: 1,
        ts: at("2026-11-22T05:30:00Z"),
        problem_solved: scores[0],
        tests_added: scores[1],
        code_clean: scores[2],
        edge_cases: if unsupported { None } else { scores[3] },
        overall: Some((overall * 1000.0).round() / 1000.0),
        reasoning: Some("The cause was found and removed; a test holds it.".to_owned()),
        details: Some(json!({
            "weights": {
                "problem_solved": 0.4,
                "tests_added": 0.2,
                "code_clean": 0.2,
                "edge_cases_handled": 0.2,
            },
            "dimensions": {
                "problem_solved": note(
                    "test import_skips_empty_lines ... ok",
                    "The failing test passes after the change, and the whole suite is green.",
                ),
                "tests_added": note(
                    "+    fn import_skips_empty_lines() {",
                    "One test for the reported case.",
                ),
                "code_clean": note(
                    "let line = line.trim_end();",
                    "A small change in one place, named well.",
                ),
                "edge_cases_handled": {
                    "evidence": "handles CRLF as well",
                    "reasoning": "Carriage returns are said to be handled.",
                    "unsupported": unsupported,
                },
            },
        })),
    }
}

fn week(name: &str, grades: &[GradeRecord]) -> WeeklyReport {
    let coverage = ScanCoverage {
        scanned: true,
        found: 212,
        read: 38,
        graded: 38,
        unchanged: 174,
        stored: 400,
        ..ScanCoverage::default()
    };
    let rules = ReportRules {
        suggestions: &SuggestionRules::default(),
        alerts: &AlertSettings::default(),
        prices: &ModelPrices::default(),
    };
    let week: Week = name.parse().unwrap();
    WeeklyReport::build(week, grades, coverage, rules, at("2026-11-22T06:00:00Z"))
}

/// Everything that the pages can show.
pub(super) fn contents() -> Contents {
    let mut grades: Vec<GradeRecord> = (0..400).map(session).collect();
    let mut all: Vec<QualityGrade> = Vec::new();
    for (number, grade) in (0..60).zip(&grades) {
        if chance(number, 20, 5) > 0 || grade.session_id == GRADED {
            all.push(quality(grade, "qwen2.5-coder:7b", number));
        }
        if chance(number, 21, 2) == 0 || grade.session_id == GRADED {
            all.push(quality(grade, "gpt-oss:20b", number + 1));
        }
    }
    let weeks = ["2026-W47", "2026-W46", "2026-W45", "2026-W44"];
    let weeks = weeks.map(|name| week(name, &grades)).into();
    let mut hostile = session(3);
    SCRIPT_ID.clone_into(&mut hostile.session_id);
    hostile.task_summary = Some(SCRIPT.to_owned());
    hostile.details.counts_at = Some(at("2026-08-01T08:00:00Z"));
    grades.push(hostile);
    let made = GradeOverride {
        session_id: GRADED.to_owned(),
        field: GradeField::ResponseQuality,
        rule_value: 3,
        human_value: 5,
        reason: "short, but it says all that matters".to_owned(),
        made_at: at("2026-11-22T07:15:00Z"),
    };
    Contents {
        grades,
        quality: all,
        overrides: vec![made],
        weeks,
        runs: super::runs::history(),
        reflections: super::reflections::some(),
        skills: Some(crate::clock::now()),
        improvement: true,
        recorded: vec![(GRADED, recorded().text())],
        token: None,
    }
}

/// The recording of the session that is looked at.
fn recorded() -> Recording {
    let test =
        json!({ "command": "cargo test csv", "description": "Run the tests of the importer" });
    let failed = "running 4 tests\ntest csv::empty_lines ... FAILED\n\nassertion `left == right` failed\n  left: 3\n right: 5";
    let edit = json!({
        "file_path": "/home/ada/ledger/src/csv.rs",
        "old_string": "    for line in text.lines() {\n        if line.is_empty() {\n            break;\n        }",
        "new_string": "    for line in text.lines() {\n        if line.trim().is_empty() {\n            continue;\n        }",
    });
    let search = json!({ "pattern": "is_empty", "path": "src" });
    Recording::new(GRADED)
        .at("2026-11-21T12:49:00Z")
        .asks("Fix the parser: empty lines in a CSV file end the import")
        .thinks(
            "The import stops at the first empty line, so some loop ends there. The test of the \
             importer should show it.",
            "I look at how the importer reads lines, and run its tests first.",
        )
        .calls("Bash", &test, Err(failed))
        .calls("Grep", &search, Ok("src/csv.rs:41:        if line.is_empty() {"))
        .says(
            "The loop ends at an empty line:\n\n```rust\nif line.is_empty() {\n    break;\n}\n```\n\n\
             It should go on with the next one.",
        )
        .calls("Edit", &edit, Ok("The file /home/ada/ledger/src/csv.rs has been updated."))
        .shows("That is the file that I try to import:")
        .calls("Bash", &test, Ok("running 4 tests\ntest result: ok. 4 passed; 0 failed"))
        .says("Done: empty lines are passed over now, and the tests of the importer pass.")
}

/// A few of them, for pages that are compared as a whole.
pub(super) fn few() -> Contents {
    let mut few = contents();
    few.grades.retain(|grade| {
        few.quality.iter().take(6).any(|graded| graded.session_id == grade.session_id)
            || grade.session_id == SCRIPT_ID
    });
    few.runs.truncate(2);
    // Whole pages are compared, and so long ago nothing depends on the day of the test.
    few.skills = Some(at("2025-11-22T12:00:00Z"));
    few.weeks.truncate(1);
    few
}
