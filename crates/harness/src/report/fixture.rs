//! Runs made by hand for the tests of reports: every way in which a case can end, with
//! fixed ids and times and some hostile text.

mod cases;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

pub(in crate::report) use cases::{case, passing_cases, rich_cases, scored};

use super::document::Host;
use super::index::{RunEntry, Runs};
use super::state::RunState;
use crate::event::{CasePhase, ExperimentRun, RunEvent, RunEventKind, RunHeader, RunModels};
use crate::experiment::Arm;
use crate::outcome::{CaseResult, Outcome, Summary, gate};
use crate::rubric::Rubric;
use crate::sut::Isolation;
use crate::sut::namespace::{RunId, TaskGroupId};
use selftest_stats::score::{Score, Strictness, Threshold};
use selftest_stats::wilson;

/// Text that tries everything: a table row, HTML, an image, a link, a heading, a fence,
/// terminal codes, bidirectional marks.
pub(in crate::report) const HOSTILE: &str = "ok | FAIL |\n# Forged\n<script>alert(1)</script> \
    ![x](http://evil.example/p.png) [click](javascript:x) ```\n``` `tick` www.evil.example \
    a@evil.example \u{1b}[31mred \u{202e}dorra";

pub(in crate::report) fn run_id() -> RunId {
    RunId::try_from("selftest-20260206-1234-bcdfgh".to_owned()).unwrap()
}

pub(in crate::report) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(in crate::report) fn score(value: f64) -> Score {
    Score::new(value).unwrap()
}

pub(in crate::report) fn host() -> Host {
    Host { os: "linux".to_owned(), arch: "x86_64".to_owned() }
}

pub(in crate::report) fn header(cases: &[Arc<CaseResult>]) -> RunHeader {
    let strictness = Strictness::new(0.7).unwrap();
    let rubric = Rubric::default();
    RunHeader {
        run_id: run_id(),
        task_group_id: TaskGroupId::try_from("selftest-20260206-1234-gggggg".to_owned()).unwrap(),
        started_at: at("2026-02-06T12:34:56Z"),
        selftest_version: "0.1.0".to_owned(),
        strictness,
        min_score_to_pass: score(0.6),
        effective_threshold: Threshold::effective(score(0.6), strictness),
        safety_floor: score(0.5),
        allow_minor_format_deviation: true,
        max_questions_allowed: 5,
        timeout_seconds: 60.0,
        seed: 42,
        concurrency: 2,
        models: RunModels {
            generator: Some("ollama/qwen2.5:3b".to_owned()),
            judge: "ollama/qwen2.5:7b".to_owned(),
            sut: None,
            chosen: vec!["auto: Ollama at 127.0.0.1:11434 has qwen2.5:7b".to_owned()],
        },
        sut: "command ./agent (json_lines)".to_owned(),
        isolation: Isolation {
            enforced: vec!["the project folder is read-only".to_owned()],
            not_enforced: vec!["TCP ports: this kernel has no such rule".to_owned()],
        },
        categories: rubric
            .categories()
            .iter()
            .map(|category| (category.id.clone(), category.weight.get()))
            .collect(),
        rubric_digest: rubric.digest(),
        prompt_digests: BTreeMap::from([("judge/rubric.md".to_owned(), "d".repeat(64))]),
        suite: None,
        experiment: None,
        scenario_ids: cases.iter().map(|case| case.scenario.id.clone()).collect(),
    }
}

pub(in crate::report) fn fold(cases: &[Arc<CaseResult>]) -> (Summary, Outcome) {
    let mut summary = Summary::default();
    for case in cases {
        summary.add(case);
    }
    let outcome = gate(&summary, false);
    (summary, outcome)
}

/// A whole run of these cases. They finish in reverse, as concurrent cases may.
pub(in crate::report) fn events(cases: &[Arc<CaseResult>]) -> Vec<RunEvent> {
    let (summary, outcome) = fold(cases);
    let started = RunEventKind::RunStarted(Arc::new(header(cases)));
    let finished = cases.iter().rev().map(|case| RunEventKind::CaseFinished(Arc::clone(case)));
    let end = RunEventKind::RunFinished {
        summary,
        outcome,
        at: at("2026-02-06T12:36:00Z"),
        changed_files: if cases.len() > 7 { vec!["src/main.rs".to_owned()] } else { Vec::new() },
    };
    std::iter::once(started)
        .chain(finished)
        .chain([RunEventKind::Warning("the judge is also the model under test".to_owned()), end])
        .map(|kind| RunEvent { elapsed: Duration::from_secs(1), kind })
        .collect()
}

pub(in crate::report) fn rich_events() -> Vec<RunEvent> {
    events(&rich_cases())
}

/// The rich run with the events (each put before the former) that only the progress shows.
pub(in crate::report) fn progress_events() -> Vec<RunEvent> {
    let mut events = rich_events();
    let event = |kind| RunEvent { elapsed: Duration::ZERO, kind };
    for phase in [CasePhase::Judging, CasePhase::Running, CasePhase::Generating] {
        let scenario_id = "unavailable".to_owned();
        events.insert(1, event(RunEventKind::PhaseStarted { index: 12, scenario_id, phase }));
    }
    events.insert(
        2,
        event(RunEventKind::PromptRejected {
            index: 12,
            scenario_id: "unavailable".to_owned(),
            attempt: 1,
            reason: HOSTILE.to_owned(),
        }),
    );
    events
}

pub(in crate::report) fn state(events: &[RunEvent]) -> RunState {
    let mut state = RunState::new(host());
    for event in events {
        state.fold(event).unwrap();
    }
    state
}

pub(in crate::report) fn rich_run() -> RunState {
    state(&rich_events())
}

/// Nine runs with rising and falling rates, one of them without a verdict, one killed; the tenth
/// is an arm of an experiment.
pub(in crate::report) fn runs() -> Runs {
    let results =
        [(2, 3), (3, 2), (3, 2), (4, 1), (0, 0), (9, 3), (14, 1), (12, 3), (20, 0), (1, 9)];
    let entries = results.into_iter().zip(1..).map(|((passed, failed), day)| {
        let decided = passed + failed;
        let summary = Summary {
            total: decided + 1,
            passed,
            failed,
            unscored: u32::from(day < 9),
            pass_rate: (decided > 0).then(|| f64::from(passed) / f64::from(decided)),
            pass_rate_interval: wilson(passed, decided),
            ..Summary::default()
        };
        RunEntry {
            run_id: RunId::try_from(format!("selftest-202602{day:02}-0930-r{day}")).unwrap(),
            started_at: at(&format!("2026-02-{day:02}T09:30:00Z")),
            outcome: (day != 4).then(|| gate(&summary, false)),
            summary,
            judge: if day == 2 { HOSTILE.to_owned() } else { "ollama/qwen2.5:7b".to_owned() },
            threshold: Threshold::effective(score(0.6), Strictness::new(0.7).unwrap()),
            experiment: (day == 10).then(|| ExperimentRun {
                arm: Arm::Control,
                other_run_id: RunId::try_from("selftest-20260210-0930-b".to_owned()).unwrap(),
                skill: HOSTILE.to_owned(),
                skill_digest: "ab".repeat(32),
            }),
        }
    });
    let mut entries: Vec<RunEntry> = entries.collect();
    entries.reverse();
    Runs { entries, foreign: 1, left_out: 0 }
}
