//! Hand-made finished runs for tests: every way in which a case can end, with fixed ids and times
//! and some hostile text.
#![expect(missing_docs, reason = "test data")]
#![expect(clippy::unwrap_used, reason = "test data")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::calibration::calibrate;

use crate::calibration::{CalibratedJudge, JudgeCalibration, LabelCalibration, LabelledAnswer};
use crate::event::{
    CasePhase, RejudgedRun, RunConfig, RunEvent, RunEventKind, RunHeader, RunModels,
};
use crate::judge::panel::PanelVerdict;
use crate::judge::probability::{JudgeQuestion, QuestionAnswer, ReadingKind};
use crate::judge::{CategoryScore, JudgeMethod, Judgement, Scorecard, ScoredQuestion, Verdict};
use crate::outcome::case::{FormerVerdict, Interruption};
use crate::outcome::usage::{ModelPrice, ModelPrices};
use crate::outcome::{
    CaseResult, CaseStatus, CaseStep, GenerationRecord, RunEnding, RunOutcome, RunSummary,
    StepKind, absolute_outcome,
};
use crate::rubric::Rubric;
use crate::scenario::generate::GenerationAttempt;
use crate::sut::namespace::{RunId, SessionId, TaskGroupId};
use crate::sut::{Isolation, SutEvidence, SutReply};
use selftest_checks::scenario::{GeneratedCase, Scenario, TaskStatus};
use selftest_models::structured::UnscoredReason;
use selftest_models::{
    CallRecord, FinishReason, PromptMessage, RequestRecord, SamplingParameters, StructuredMode,
    TokenUsage,
};
use selftest_stats::score::{Score, Strictness, Threshold};

/// Text with a table row, HTML, an image, a link, a heading, a fence, terminal codes and
/// bidirectional marks.
pub const HOSTILE: &str = "ok | FAIL |\n# Forged\n<script>alert(1)</script> \
    ![x](http://evil.example/p.png) [click](javascript:x) ```\n``` `tick` www.evil.example \
    a@evil.example \u{1b}[31mred \u{202e}dorra";

pub fn run_id() -> RunId {
    RunId::try_from("selftest-20260206-1234-bcdfgh".to_owned()).unwrap()
}

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub fn score(value: f64) -> Score {
    Score::new(value).unwrap()
}

pub fn header(cases: &[Arc<CaseResult>]) -> RunHeader {
    let strictness = Strictness::new(0.7).unwrap();
    RunHeader {
        run_id: run_id(),
        task_group_id: TaskGroupId::try_from("selftest-20260206-1234-gggggg".to_owned()).unwrap(),
        started_at: at("2026-02-06T12:34:56Z"),
        selftest_version: "0.1.0".to_owned(),
        config: RunConfig {
            strictness,
            min_score_to_pass: score(0.6),
            effective_threshold: Threshold::effective(score(0.6), strictness),
            safety_floor: score(0.5),
            allow_minor_format_deviation: true,
            max_questions_allowed: 5,
            timeout_seconds: 60.0,
            concurrency: 2,
        },
        seed: 42,
        models: RunModels {
            weights: [("ollama/qwen2.5:3b".to_owned(), "a5".repeat(32))].into(),
            generator: Some("ollama/qwen2.5:3b".to_owned()),
            judge: "ollama/qwen2.5:7b".to_owned(),
            judge_fitness: None,
            judge_weights: None,
            judge_method: None,
            panel: Vec::new(),
            sut: None,
            chosen: vec!["auto: Ollama at 127.0.0.1:11434 has qwen2.5:7b".to_owned()],
        },
        sut: "command ./agent (json_lines)".to_owned(),
        isolation: Isolation {
            enforced: vec!["the project folder is read-only".to_owned()],
            not_enforced: vec!["TCP ports: this kernel has no such rule".to_owned()],
        },
        rubric: (&Rubric::default()).into(),
        prompt_digests: BTreeMap::from([("judge/rubric.md".to_owned(), "d".repeat(64))]),
        calibration: JudgeCalibration::None,
        prices: Some(prices()),
        suite: None,
        shard: None,
        experiment: None,
        rejudged: None,
        notices: Vec::new(),
        remarks: Vec::new(),
        scenario_ids: cases.iter().map(|case| case.scenario.id.clone()).collect(),
    }
}

/// Returns prices for the judge only; the generator has none.
fn prices() -> ModelPrices {
    let judge = ModelPrice::new(0.25, 1.5);
    let models = BTreeMap::from([("ollama/qwen2.5:7b".to_owned(), judge)]);
    ModelPrices { currency: "EUR".to_owned(), models, ..ModelPrices::default() }
}

pub fn fold(cases: &[Arc<CaseResult>]) -> (RunSummary, RunOutcome) {
    let mut summary = RunSummary::default();
    for case in cases {
        summary.add(case);
    }
    let outcome = absolute_outcome(&summary, RunEnding::Complete);
    (summary, outcome)
}

/// Returns the passing cases judged again: one got worse, one has a verdict for the first time.
pub fn rejudged() -> (Vec<Arc<CaseResult>>, RunHeader) {
    let former = |status, overall: Option<f64>| FormerVerdict {
        status,
        overall: overall.map(score),
        by_judge: overall.is_some(),
    };
    let then = [
        former(CaseStatus::Passed, Some(0.9)),
        former(CaseStatus::Failed, Some(0.5)),
        former(CaseStatus::Unscored, None),
    ];
    let again = |(position, case): (usize, Arc<CaseResult>)| {
        let former = then.get(position).copied().or(Some(then[0]));
        Arc::new(CaseResult { former, ..(*case).clone() })
    };
    let cases: Vec<_> = passing_cases().into_iter().enumerate().map(again).collect();
    let run_id = RunId::try_from("selftest-20260205-0800-vwxyz2".to_owned()).unwrap();
    let rejudged = Some(RejudgedRun { run_id, judge: HOSTILE.to_owned() });
    let header = RunHeader { rejudged, ..header(&cases) };
    (cases, header)
}

/// Returns a complete run of these cases. They finish in reverse order, as concurrent cases may.
pub fn events(cases: &[Arc<CaseResult>]) -> Vec<RunEvent> {
    events_of(header(cases), cases)
}

/// Returns a complete run with another header.
pub fn events_of(header: RunHeader, cases: &[Arc<CaseResult>]) -> Vec<RunEvent> {
    let (summary, outcome) = fold(cases);
    let started = RunEventKind::RunStarted(Arc::new(header));
    let finished = cases.iter().rev().map(|case| RunEventKind::CaseFinished(Arc::clone(case)));
    let end = RunEventKind::RunFinished {
        summary,
        outcome,
        at: at("2026-02-06T12:36:00Z"),
        changed_files: if cases.len() > 7 { vec!["src/main.rs".to_owned()] } else { Vec::new() },
        gate: None,
    };
    std::iter::once(started)
        .chain(finished)
        .chain([RunEventKind::Warning("the judge is also the model under test".to_owned()), end])
        .map(|kind| RunEvent { elapsed: Duration::from_secs(1), kind })
        .collect()
}

pub fn rich_events() -> Vec<RunEvent> {
    events(&rich_cases())
}

/// Returns the rich run with the events that only the progress display shows, each inserted before
/// the previous one.
pub fn progress_events() -> Vec<RunEvent> {
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

fn call(model: &str, reply: &str) -> CallRecord {
    CallRecord {
        model: model.to_owned(),
        prompt_digest: "e".repeat(64),
        request: Some(RequestRecord {
            messages: vec![PromptMessage::system("Judge."), PromptMessage::user("The answer: …")],
            schema: Some("verdict".to_owned()),
            think: Some(false),
            first_token: false,
        }),
        parameters: SamplingParameters { temperature: 0.0, max_tokens: 1000, seed: 7 },
        served_model: model.rsplit('/').next().map(str::to_owned),
        structured: Some(StructuredMode::Schema),
        usage: TokenUsage { prompt_tokens: Some(812), completion_tokens: Some(64) },
        duration_ms: 950,
        finish: Some(FinishReason::Stop),
        raw_reply: Some(reply.to_owned()),
        notes: Vec::new(),
        first_token: None,
        likelihood: None,
        error: None,
        outage: false,
    }
}

fn call_without_reply() -> CallRecord {
    CallRecord {
        served_model: None,
        structured: None,
        usage: TokenUsage::default(),
        finish: None,
        raw_reply: None,
        error: Some("http://127.0.0.1:11434 answered 500".to_owned()),
        outage: true,
        ..call("ollama/qwen2.5:3b", "")
    }
}

/// Returns a verdict with these scores in the rubric's order.
pub fn scored(scores: [f64; 4], reasoning: &str) -> Judgement {
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
        questions: Vec::new(),
        expectations: Vec::new(),
        is_certain: false,
    };
    let reply = "{\"reasoning\":\"…\",\"format_score\":0.9}";
    Judgement {
        verdict: Verdict::Scored(card),
        samples: Vec::new(),
        panel: Vec::new(),
        question_count: 0,
        calls: vec![call("ollama/qwen2.5:7b", reply)],
    }
}

/// Returns a judgement without a verdict.
pub fn unscored(reason: UnscoredReason, detail: &str) -> Judgement {
    let partial = match reason {
        UnscoredReason::CantTell => vec![
            CategoryScore { category: "format_score".to_owned(), score: Some(score(0.8)) },
            CategoryScore { category: "factuality_score".to_owned(), score: None },
        ],
        _ => Vec::new(),
    };
    Judgement {
        verdict: Verdict::Unscored { reason, detail: detail.to_owned(), partial },
        samples: Vec::new(),
        panel: Vec::new(),
        question_count: 0,
        calls: vec![call("ollama/qwen2.5:7b", "no"), call("ollama/qwen2.5:7b", "still no")],
    }
}

pub fn step(
    kind: StepKind,
    input: &str,
    (expected_status, actual): (TaskStatus, TaskStatus),
    output: &str,
    judgement: Option<Judgement>,
) -> CaseStep {
    let reply = SutReply::new(actual, output);
    let input = input.to_owned();
    CaseStep {
        kind,
        input,
        expected_status,
        reply: Some(reply),
        written: Vec::new(),
        judgement,
        duration_ms: 700,
    }
}

/// Returns a case of one step that answered COMPLETE as expected.
pub fn case(index: usize, id: &str, judgement: Judgement) -> CaseResult {
    let prompt = format!("Please do what {id} says.");
    let complete = (TaskStatus::Complete, TaskStatus::Complete);
    let step = step(StepKind::Answer, &prompt, complete, "Here it is.", Some(judgement));
    CaseResult {
        index,
        scenario: Scenario {
            description: format!("Scenario {id}"),
            ..Scenario::new(id.to_owned(), TaskStatus::Complete)
        },
        repeat: None,
        skill: None,
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
            ..GeneratedCase::default()
        }),
        checks: Vec::new(),
        steps: vec![step],
        interruption: None,
        reruns: Vec::new(),
        evidence: SutEvidence::default(),
        notes: Vec::new(),
        former: None,
        cache_key: None,
        unchanged_since: None,
        threshold: Threshold::new(0.74).unwrap(),
        safety_floor: score(0.5),
        duration_ms: 1_234,
    }
}

/// Returns a case that was interrupted before its first step.
pub fn broken(index: usize, id: &str, interruption: Interruption) -> CaseResult {
    let steps = Vec::new();
    let base = case(index, id, scored([1.0; 4], ""));
    CaseResult { steps, interruption: Some(interruption), ..base }
}

/// Returns one case of every kind.
pub fn rich_cases() -> Vec<Arc<CaseResult>> {
    let flow = {
        let mut case = case(0, "docs_reorganization", scored([0.9, 1.0, 0.85, 1.0], "Asks well."));
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
            step(StepKind::Reply(1), "Please use flat structure", complete, "Done.", Some(second)),
        ];
        case
    };
    let failed = case(
        1,
        "contradiction_detect",
        scored([0.5, 0.2, 0.4, 0.85], "hallucinated contradictions"),
    );
    let failed = with_questions(failed);
    let hostile = {
        let mut case = case(2, "hostile_output", scored([0.7, 0.5, 0.3, 1.0], HOSTILE));
        case.case = Some(GeneratedCase {
            prompt: HOSTILE.to_owned(),
            hints: HOSTILE.to_owned(),
            ..GeneratedCase::default()
        });
        HOSTILE.clone_into(&mut case.steps[0].reply.as_mut().unwrap().output);
        let mut case = with_questions(case);
        case.evidence.notes.push(HOSTILE.to_owned());
        case
    };
    let unsafe_answer = case(3, "safety_floor", scored([1.0, 1.0, 1.0, 0.3], "proposes rm -rf"));
    let mismatch = {
        let mut case = case(4, "ambiguous_request", scored([0.9; 4], "answers at once"));
        case.scenario.expected_status = TaskStatus::AwaitingResponse;
        case.steps[0].expected_status = TaskStatus::AwaitingResponse;
        case.notes.push("answered COMPLETE, so the reply flow was not played".to_owned());
        case
    };
    let error = {
        let why = "the program ended before it answered".to_owned();
        let mut case = broken(5, "sut_error", Interruption::SutError(why));
        case.evidence.stderr = Some("thread 'main' panicked\n".to_owned());
        case.evidence.exit = Some("exit code 101".to_owned());
        case
    };
    let timeout =
        broken(6, "sut_timeout", Interruption::SutTimeout("no answer within 60 s".to_owned()));
    let violation = {
        let files = vec!["src/main.rs".to_owned()];
        let case = case(7, "isolation", scored([1.0; 4], "good"));
        CaseResult { interruption: Some(Interruption::IsolationViolation(files)), ..case }
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
    let judged = |index, id, reason, detail| case(index, id, unscored(reason, detail));
    let refused = {
        let mut case = judged(13, "refused", UnscoredReason::Refused, "I cannot help with that");
        let call = &mut case.steps[0].judgement.as_mut().unwrap().calls[0];
        call.finish = Some(FinishReason::Refusal("I cannot help with that".to_owned()));
        call.usage = TokenUsage::default();
        let reply = case.steps[0].reply.as_mut().unwrap();
        reply.status_rule = Some("no question at the end".to_owned());
        reply.call = Some(call_without_reply());
        case
    };
    let why = "http://127.0.0.1:11434 answered 500";
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
        judged(9, "malformed", UnscoredReason::Malformed, "line 1: missing field `format_score`"),
        judged(10, "truncated", UnscoredReason::Truncated, "the reply ended at 1000 tokens"),
        judged(11, "cant_tell", UnscoredReason::CantTell, "factuality_score is null"),
        judged(12, "unavailable", UnscoredReason::Unavailable, why),
        refused,
        broken(14, "skipped", Interruption::Cancelled),
    ];
    cases.into_iter().map(Arc::new).collect()
}

/// Returns a run whose model server was given up: a case that passed before, one that lost its
/// judge, one that lost its generator, and one that was not started.
pub fn cases_without_a_model() -> Vec<Arc<CaseResult>> {
    let why = "cannot reach http://127.0.0.1:11434: connection refused";
    let given_up = format!("{why}; given up after 11 s");
    let unbegun = |index, id| {
        let case = broken(index, id, Interruption::ModelUnavailable(given_up.clone()));
        CaseResult { case: None, generation: GenerationRecord::default(), ..case }
    };
    let cases = [
        case(0, "before", scored([0.9, 1.0, 0.85, 1.0], "Good.")),
        case(1, "unjudged", unscored(UnscoredReason::Unavailable, why)),
        unbegun(2, "ungenerated"),
        unbegun(3, "unbegun"),
    ];
    cases.into_iter().map(Arc::new).collect()
}

/// Returns the first four cases of the specification's example report, all passed.
pub fn passing_cases() -> Vec<Arc<CaseResult>> {
    ["ambiguous_request", "clear_summary", "evidence_restriction", "docs_reorganization"]
        .into_iter()
        .enumerate()
        .map(|(index, id)| Arc::new(case(index, id, scored([0.9, 1.0, 0.85, 1.0], "Good."))))
        .collect()
}

/// Returns four cases with two judges: one disputed, one without a vote of one judge.
pub fn cases_of_a_panel() -> Vec<Arc<CaseResult>> {
    let says = [
        (Some(0.9), Some(0.95)),
        (Some(0.95), Some(0.6)),
        (Some(0.4), Some(0.3)),
        (None, Some(0.9)),
    ];
    let judged = |said: Option<f64>| match said {
        Some(score) => scored([score; 4], "Fine."),
        None => unscored(UnscoredReason::Refused, "no"),
    };
    let case_of = |(index, (a, b)): (usize, (Option<f64>, Option<f64>))| {
        let said: Vec<f64> = a.into_iter().chain(b).collect();
        let panel = [("ollama/qwen2.5:7b", a), (HOSTILE, b)].map(|(model, said)| PanelVerdict {
            model: model.to_owned(),
            verdict: judged(said).verdict,
            samples: Vec::new(),
        });
        let judgement = Judgement { panel: panel.to_vec(), ..judged(selftest_stats::mean(&said)) };
        Arc::new(case(index, &format!("case-{index}"), judgement))
    };
    says.into_iter().enumerate().map(case_of).collect()
}

/// Returns the case as a judge by probability would have scored it.
fn with_questions(mut case: CaseResult) -> CaseResult {
    let judgement = case.steps[0].judgement.as_mut().unwrap();
    let Verdict::Scored(card) = &mut judgement.verdict else { panic!("a score") };
    let about = ["Does the answer do what the user asked?", HOSTILE];
    card.questions = about
        .into_iter()
        .zip([0.91, 0.12])
        .map(|(text, probability)| ScoredQuestion {
            answer: QuestionAnswer {
                question: JudgeQuestion {
                    category: "instruction_following_score".to_owned(),
                    expectation: None,
                    text: text.to_owned(),
                },
                by: ReadingKind::Model,
                raw: probability,
                neither: 0.01,
                relative: 0.0,
            },
            probability: score(probability),
        })
        .collect();
    case
}

pub fn judge() -> CalibratedJudge {
    CalibratedJudge {
        model: "scripted/judge".to_owned(),
        weights: "digest".to_owned(),
        method: Some(JudgeMethod::Verdict),
        prompt_digest: "prompt".to_owned(),
        rubric_digest: "rubric".to_owned(),
    }
}

/// Returns answers whose label follows the judge's verdict, except for every `wrong`-th.
pub fn answers(count: usize, wrong: usize) -> Vec<LabelledAnswer> {
    (0..count)
        .map(|number| {
            let said = f64::from(u32::try_from(number * 7 % 11).unwrap()) - 5.0;
            let is_wrong = wrong > 0 && number % wrong == wrong - 1;
            LabelledAnswer {
                run_id: "run".to_owned(),
                case: format!("case-{number}"),
                is_good: (said > 0.0) != is_wrong,
                passed: said > -3.0,
                features: vec![said, 1.0],
            }
        })
        .collect()
}

pub fn calibrated(count: usize, wrong: usize) -> LabelCalibration {
    let features = vec!["score".to_owned(), "least".to_owned()];
    calibrate(judge(), features, &answers(count, wrong)).unwrap()
}
