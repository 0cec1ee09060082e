//! One case of a run: prompt, hints, what was said, the verdict, and the raw replies of models.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::calls::CallView;
use super::run::{read, status_class};
use super::{Frame, PageError, blocking, html, link, words};
use crate::App;
use selftest_harness::judge::{CategoryScore, Judgement, Verdict};
use selftest_harness::outcome::Step;
use selftest_harness::report::document::{CaseDocument, ReportDocument};

/// Steps and tries that are shown.
const SHOWN: usize = 100;

#[derive(Template)]
#[template(path = "page/case.html")]
struct CasePage {
    frame: Frame,
    run_id: String,
    run: String,
    id: String,
    description: String,
    status: &'static str,
    class: &'static str,
    reason: Option<String>,
    facts: Vec<(&'static str, String)>,
    prompt: Option<String>,
    hints: Option<String>,
    steps: Vec<StepView>,
    generation: Vec<Try>,
    stderr: Option<String>,
    notes: Vec<String>,
    before: Option<Neighbour>,
    after: Option<Neighbour>,
}

struct Neighbour {
    href: String,
    id: String,
}

/// A try of the generator.
struct Try {
    rejected: Option<String>,
    call: CallView,
}

struct StepView {
    name: String,
    input: String,
    expected: &'static str,
    reply: Option<ReplyView>,
    verdict: Option<VerdictView>,
    duration: String,
    calls: Vec<CallView>,
}

struct ReplyView {
    status: &'static str,
    as_expected: bool,
    output: String,
    rule: Option<String>,
}

struct VerdictView {
    overall: String,
    grade: &'static str,
    reasoning: Option<String>,
    unscored: Option<String>,
    questions: u32,
    scores: Vec<ScoreView>,
}

struct ScoreView {
    name: String,
    score: String,
    percent: String,
    grade: &'static str,
}

impl From<&CategoryScore> for ScoreView {
    fn from(entry: &CategoryScore) -> Self {
        let score = entry.score.map(selftest_stats::score::Score::get);
        let name = entry.category.strip_suffix("_score").unwrap_or(&entry.category);
        Self {
            name: words::line(&words::spaced(name)),
            score: words::score(score),
            percent: words::percent(score),
            grade: words::grade(score),
        }
    }
}

impl From<&Judgement> for VerdictView {
    fn from(judgement: &Judgement) -> Self {
        let scores = |entries: &[CategoryScore]| entries.iter().map(ScoreView::from).collect();
        let questions = judgement.question_count;
        match &judgement.verdict {
            Verdict::Scored(card) => Self {
                overall: words::score(Some(card.overall.get())),
                grade: words::grade(Some(card.overall.get())),
                reasoning: Some(words::block(&card.reasoning)),
                unscored: None,
                questions,
                scores: scores(&card.categories),
            },
            Verdict::Unscored { reason, detail, partial } => Self {
                overall: words::ABSENT.to_owned(),
                grade: "none",
                reasoning: None,
                unscored: Some(format!("{}: {}", reason.describe(), words::line(detail))),
                questions,
                scores: scores(partial),
            },
        }
    }
}

impl From<&Step> for StepView {
    fn from(step: &Step) -> Self {
        let reply = step.reply.as_ref();
        let answered = reply.and_then(|reply| reply.call.as_ref());
        let judged = step.judgement.iter().flat_map(|judgement| &judgement.calls);
        let calls = answered.map(|call| CallView::of("system under test", call));
        Self {
            name: step.name(),
            input: words::block(&step.input),
            expected: step.expected_status.as_str(),
            reply: reply.map(|reply| ReplyView {
                status: reply.status.as_str(),
                as_expected: reply.status == step.expected_status,
                output: words::block(&reply.output),
                rule: reply.status_rule.as_deref().map(words::line),
            }),
            verdict: step.judgement.as_ref().map(VerdictView::from),
            duration: words::duration(step.duration_ms),
            calls: calls
                .into_iter()
                .chain(judged.map(|call| CallView::of("judge", call)))
                .take(SHOWN)
                .collect(),
        }
    }
}

impl CasePage {
    fn of(report: &ReportDocument, scenario: &str) -> Result<Self, PageError> {
        let position = report.cases.iter().position(|case| case.name() == scenario);
        let position = position.ok_or_else(|| {
            PageError::not_found(format!(
                "run {} has no finished case {:?}",
                report.run_id,
                words::line(scenario)
            ))
        })?;
        let run_id = report.run_id.as_str();
        let neighbour = |at: Option<usize>| {
            let case = report.cases.get(at?)?;
            let name = case.name();
            Some(Neighbour { href: link::case(run_id, &name), id: words::line(&name) })
        };
        let case = &report.cases[position];
        Ok(Self {
            frame: Frame::of("selftests"),
            run_id: run_id.to_owned(),
            run: link::run(run_id),
            id: words::line(&case.name()),
            description: words::line(&case.scenario.description),
            status: case.status.label(),
            class: status_class(case.status),
            reason: case.reason.as_deref().map(words::line),
            facts: facts(case),
            prompt: case.prompt.as_deref().map(words::block),
            hints: case.hints.as_deref().map(words::block),
            steps: case.steps.iter().take(SHOWN).map(StepView::from).collect(),
            generation: case
                .generation
                .attempts
                .iter()
                .take(SHOWN)
                .map(|attempt| Try {
                    rejected: attempt.rejected.as_deref().map(words::line),
                    call: CallView::of("generator", &attempt.call),
                })
                .collect(),
            stderr: case.evidence.stderr.as_deref().map(words::block),
            notes: case
                .notes
                .iter()
                .chain(&case.evidence.notes)
                .take(SHOWN)
                .map(|note| words::line(note))
                .collect(),
            before: neighbour(position.checked_sub(1)),
            after: neighbour(Some(position + 1)),
        })
    }
}

fn facts(case: &CaseDocument) -> Vec<(&'static str, String)> {
    let overall = case.scores.overall.map(selftest_stats::score::Score::get);
    let mut facts = vec![
        ("Overall score", words::score(overall)),
        ("Threshold", case.threshold.to_string()),
        ("Safety floor", case.safety_floor.to_string()),
        ("Expected status", case.expected_status.as_str().to_owned()),
        ("Duration", words::duration(case.duration_ms)),
        ("Session", words::line(case.session_id.as_str())),
    ];
    facts.extend(case.evidence.exit.as_ref().map(|exit| ("Program", words::line(exit))));
    facts
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path((run_id, scenario)): Path<(String, String)>,
) -> Result<Response, PageError> {
    html(&blocking(move || CasePage::of(&read(&app, &run_id)?, &scenario)).await?)
}
