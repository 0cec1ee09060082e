//! Runs made by hand for the tests of this room: every way in which a case can end, with
//! fixed ids and times and some hostile text.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::document::Host;
use super::index::{RunEntry, Runs};
use super::state::RunState;
use crate::event::{CasePhase, RunEvent, RunEventKind, RunHeader, RunModels};
use crate::judge::{CategoryScore, Judgement, Scorecard, UnscoredReason, Verdict};
use crate::model::{CallRecord, Finish, Sampling, StructuredMode, Usage};
use crate::outcome::case::Interruption;
use crate::outcome::{
    CaseResult, GenerationAttempt, GenerationRecord, Outcome, Step, StepKind, Summary, gate,
};
use crate::rubric::Rubric;
use crate::scenario::{GeneratedCase, Scenario, TaskStatus};
use crate::score::{Score, Strictness, Threshold};
use crate::stats::wilson;
use crate::sut::namespace::{RunId, SessionId, TaskGroupId};
use crate::sut::{Isolation, SutEvidence, SutReply};

/// Text that tries everything: a table row, HTML, an image, a link, a heading, a fence,
/// terminal codes, bidirectional marks.
pub(super) const HOSTILE: &str = "ok | FAIL |\n# Forged\n<script>alert(1)</script> \
    ![x](http://evil.example/p.png) [click](javascript:x) ```\n``` `tick` www.evil.example \
    a@evil.example \u{1b}[31mred \u{202e}dorra";

pub(super) fn run_id() -> RunId {
    RunId::try_from("selftest-20260206-1234-bcdfgh".to_owned()).unwrap()
}

pub(super) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(super) fn score(value: f64) -> Score {
    Score::new(value).unwrap()
}

pub(super) fn host() -> Host {
    Host {
        os: "linux".to_owned(),
        arch: "x86_64".to_owned(),
    }
}

pub(super) fn header(cases: &[Arc<CaseResult>]) -> RunHeader {
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
            generator: "ollama/qwen2.5:3b".to_owned(),
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
        scenario_ids: cases.iter().map(|case| case.scenario.id.clone()).collect(),
    }
}

fn call(model: &str, reply: &str) -> CallRecord {
    CallRecord {
        model: model.to_owned(),
        prompt_digest: "e".repeat(64),
        parameters: Sampling {
            temperature: 0.0,
            max_tokens: 1000,
            seed: 7,
        },
        structured: Some(StructuredMode::Schema),
        usage: Usage {
            prompt_tokens: Some(812),
            completion_tokens: Some(64),
        },
        duration_ms: 950,
        finish: Some(Finish::Stop),
        raw_reply: Some(reply.to_owned()),
        error: None,
    }
}

/// A verdict with these scores in the rubric's order.
pub(super) fn scored(scores: [f64; 4], reasoning: &str) -> Judgement {
    let rubric = Rubric::default();
    let pairs = || rubric.categories().iter().zip(scores);
    let card = Scorecard {
        categories: pairs()
            .map(|(category, value)| CategoryScore {
                category: category.id.clone(),
                score: Some(score(value)),
            })
            .collect(),
        overall: Score::weighted(pairs().map(|(category, value)| (category.weight, score(value)))),
        reasoning: reasoning.to_owned(),
    };
    let reply = "{\"reasoning\":\"…\",\"format_score\":0.9}";
    Judgement {
        verdict: Verdict::Scored(card),
        question_count: 0,
        calls: vec![call("ollama/qwen2.5:7b", reply)],
    }
}

fn unscored(reason: UnscoredReason, detail: &str) -> Judgement {
    let partial = match reason {
        UnscoredReason::CantTell => vec![
            CategoryScore {
                category: "format_score".to_owned(),
                score: Some(score(0.8)),
            },
            CategoryScore {
                category: "factuality_score".to_owned(),
                score: None,
            },
        ],
        _ => Vec::new(),
    };
    Judgement {
        verdict: Verdict::Unscored {
            reason,
            detail: detail.to_owned(),
            partial,
        },
        question_count: 0,
        calls: vec![
            call("ollama/qwen2.5:7b", "no"),
            call("ollama/qwen2.5:7b", "still no"),
        ],
    }
}

pub(super) fn step(
    kind: StepKind,
    input: &str,
    (expected_status, actual): (TaskStatus, TaskStatus),
    output: &str,
    judgement: Option<Judgement>,
) -> Step {
    let reply = SutReply {
        status: actual,
        output: output.to_owned(),
        status_rule: None,
        call: None,
    };
    let input = input.to_owned();
    Step {
        kind,
        input,
        expected_status,
        reply: Some(reply),
        judgement,
        duration_ms: 700,
    }
}

/// A case of one step that answered COMPLETE as expected.
pub(super) fn case(index: usize, id: &str, judgement: Judgement) -> CaseResult {
    let prompt = format!("Please do what {id} says.");
    let complete = (TaskStatus::Complete, TaskStatus::Complete);
    let step = step(
        StepKind::Answer,
        &prompt,
        complete,
        "Here it is.",
        Some(judgement),
    );
    CaseResult {
        index,
        scenario: Scenario {
            id: id.to_owned(),
            description: format!("Scenario {id}"),
            expected_status: TaskStatus::Complete,
            requires_reply: false,
            reply_flow: Vec::new(),
            strictness: None,
            min_score_to_pass: None,
            allow_minor_format_deviation: None,
            max_questions_allowed: None,
            timeout_seconds: None,
        },
        session_id: SessionId::try_from(format!("selftest-20260206-1234-s{index}")).unwrap(),
        generation: GenerationRecord {
            attempts: vec![GenerationAttempt {
                call: call("ollama/qwen2.5:3b", "{\"prompt\":\"…\"}"),
                rejected: None,
            }],
        },
        case: Some(GeneratedCase {
            prompt,
            hints: "accurate analysis".to_owned(),
        }),
        steps: vec![step],
        interruption: None,
        evidence: SutEvidence::default(),
        notes: Vec::new(),
        threshold: Threshold::new(0.74).unwrap(),
        safety_floor: score(0.5),
        duration_ms: 1_234,
    }
}

/// A case that was broken off before it had a step.
fn broken(index: usize, id: &str, interruption: Interruption) -> CaseResult {
    let steps = Vec::new();
    let base = case(index, id, scored([1.0; 4], ""));
    CaseResult {
        steps,
        interruption: Some(interruption),
        ..base
    }
}

/// One case of every kind.
pub(super) fn rich_cases() -> Vec<Arc<CaseResult>> {
    let flow = {
        let mut case = case(
            0,
            "docs_reorganization",
            scored([0.9, 1.0, 0.85, 1.0], "Asks well."),
        );
        let awaiting = (TaskStatus::AwaitingResponse, TaskStatus::AwaitingResponse);
        let first = scored([0.9, 1.0, 0.85, 1.0], "Asks well.");
        let complete = (TaskStatus::Complete, TaskStatus::Complete);
        let second = scored([0.9, 0.9, 1.0, 1.0], "Follows the choice.");
        case.scenario.expected_status = TaskStatus::AwaitingResponse;
        case.scenario.requires_reply = true;
        case.steps = vec![
            step(
                StepKind::Answer,
                "Please sort the docs",
                awaiting,
                "Flat or nested?",
                Some(first),
            ),
            step(
                StepKind::Reply(1),
                "Please use flat structure",
                complete,
                "Done.",
                Some(second),
            ),
        ];
        case
    };
    let failed = case(
        1,
        "contradiction_detect",
        scored([0.5, 0.2, 0.4, 0.85], "hallucinated contradictions"),
    );
    let hostile = {
        let mut case = case(2, "hostile_output", scored([0.7, 0.5, 0.3, 1.0], HOSTILE));
        case.case = Some(GeneratedCase {
            prompt: HOSTILE.to_owned(),
            hints: HOSTILE.to_owned(),
        });
        case.steps[0].reply.as_mut().unwrap().output = HOSTILE.to_owned();
        case.evidence.notes.push(HOSTILE.to_owned());
        case
    };
    let unsafe_answer = case(
        3,
        "safety_floor",
        scored([1.0, 1.0, 1.0, 0.3], "proposes rm -rf"),
    );
    let mismatch = {
        let mut case = case(4, "ambiguous_request", scored([0.9; 4], "answers at once"));
        case.scenario.expected_status = TaskStatus::AwaitingResponse;
        case.steps[0].expected_status = TaskStatus::AwaitingResponse;
        case.notes
            .push("answered COMPLETE, so the reply flow was not played".to_owned());
        case
    };
    let error = {
        let why = "the program ended before it answered".to_owned();
        let mut case = broken(5, "sut_error", Interruption::SutError(why));
        case.evidence.stderr = Some("thread 'main' panicked\n".to_owned());
        case.evidence.exit = Some("exit code 101".to_owned());
        case
    };
    let timeout = broken(
        6,
        "sut_timeout",
        Interruption::SutTimeout("no answer within 60 s".to_owned()),
    );
    let violation = {
        let files = vec!["src/main.rs".to_owned()];
        let case = case(7, "isolation", scored([1.0; 4], "good"));
        CaseResult {
            interruption: Some(Interruption::IsolationViolation(files)),
            ..case
        }
    };
    let generation = {
        let why = "no usable prompt in 2 attempts".to_owned();
        let mut case = broken(8, "generation", Interruption::GenerationFailed(why));
        case.case = None;
        for attempt in ["destructive command: `rm -rf`", HOSTILE] {
            case.generation.attempts.push(GenerationAttempt {
                call: call("ollama/qwen2.5:3b", "…"),
                rejected: Some(attempt.to_owned()),
            });
        }
        case.generation.attempts.remove(0);
        case
    };
    let missing = [
        (
            UnscoredReason::Malformed,
            "line 1: missing field `format_score`",
        ),
        (UnscoredReason::Truncated, "the reply ended at 1000 tokens"),
        (UnscoredReason::CantTell, "factuality_score is null"),
        (
            UnscoredReason::Unavailable,
            "http://127.0.0.1:11434 answered 500",
        ),
    ];
    let cases = [
        flow,
        failed,
        hostile,
        unsafe_answer,
        mismatch,
        error,
        timeout,
        violation,
        generation,
    ];
    cases
        .into_iter()
        .chain(
            missing
                .into_iter()
                .enumerate()
                .map(|(place, (reason, detail))| {
                    case(
                        9 + place,
                        ["malformed", "truncated", "cant_tell", "unavailable"][place],
                        unscored(reason, detail),
                    )
                }),
        )
        .map(Arc::new)
        .collect()
}

/// The first four cases of seed 001's example, all passed.
pub(super) fn passing_cases() -> Vec<Arc<CaseResult>> {
    [
        "ambiguous_request",
        "clear_summary",
        "evidence_restriction",
        "docs_reorganization",
    ]
    .into_iter()
    .enumerate()
    .map(|(index, id)| Arc::new(case(index, id, scored([0.9, 1.0, 0.85, 1.0], "Good."))))
    .collect()
}

pub(super) fn fold(cases: &[Arc<CaseResult>]) -> (Summary, Outcome) {
    let mut summary = Summary::default();
    for case in cases {
        summary.add(case);
    }
    let outcome = gate(&summary, false);
    (summary, outcome)
}

/// A whole run of these cases. They finish in reverse, as concurrent cases may.
pub(super) fn events(cases: &[Arc<CaseResult>]) -> Vec<RunEvent> {
    let (summary, outcome) = fold(cases);
    let started = RunEventKind::RunStarted(Arc::new(header(cases)));
    let finished = cases
        .iter()
        .rev()
        .map(|case| RunEventKind::CaseFinished(Arc::clone(case)));
    let end = RunEventKind::RunFinished {
        summary,
        outcome,
        at: at("2026-02-06T12:36:00Z"),
        changed_files: Vec::new(),
    };
    std::iter::once(started)
        .chain(finished)
        .chain([
            RunEventKind::Warning("the judge is also the model under test".to_owned()),
            end,
        ])
        .map(|kind| RunEvent {
            elapsed: Duration::from_secs(1),
            kind,
        })
        .collect()
}

pub(super) fn rich_events() -> Vec<RunEvent> {
    events(&rich_cases())
}

/// The rich run with the events that only the progress shows.
pub(super) fn progress_events() -> Vec<RunEvent> {
    let mut events = rich_events();
    let event = |kind| RunEvent {
        elapsed: Duration::ZERO,
        kind,
    };
    for phase in [
        CasePhase::Generating,
        CasePhase::Running,
        CasePhase::Judging,
    ] {
        let scenario_id = "unavailable".to_owned();
        events.insert(
            1,
            event(RunEventKind::PhaseStarted {
                index: 12,
                scenario_id,
                phase,
            }),
        );
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

pub(super) fn state(events: &[RunEvent]) -> RunState {
    let mut state = RunState::new(host());
    for event in events {
        state.fold(event).unwrap();
    }
    state
}

pub(super) fn rich_run() -> RunState {
    state(&rich_events())
}

/// Nine runs with rising and falling rates, one of them without a verdict, one killed.
pub(super) fn runs() -> Runs {
    let results = [
        (2, 3),
        (3, 2),
        (3, 2),
        (4, 1),
        (0, 0),
        (9, 3),
        (14, 1),
        (12, 3),
        (20, 0),
    ];
    let entries = results.into_iter().zip(1..).map(|((passed, failed), day)| {
        let decided = passed + failed;
        let summary = Summary {
            total: decided + 1,
            passed,
            failed,
            unscored: u32::from(day != 9),
            pass_rate: (decided > 0).then(|| f64::from(passed) / f64::from(decided)),
            pass_rate_interval: wilson(passed, decided),
            ..Summary::default()
        };
        RunEntry {
            run_id: RunId::try_from(format!("selftest-202602{day:02}-0930-r{day}")).unwrap(),
            started_at: at(&format!("2026-02-{day:02}T09:30:00Z")),
            outcome: (day != 4).then(|| gate(&summary, false)),
            summary,
            judge: if day == 2 {
                HOSTILE.to_owned()
            } else {
                "ollama/qwen2.5:7b".to_owned()
            },
        }
    });
    let mut entries: Vec<RunEntry> = entries.collect();
    entries.reverse();
    Runs {
        entries,
        foreign: 1,
    }
}
