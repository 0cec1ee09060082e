//! One selftest run: what it amounts to, and its cases. The parts that change while a run goes
//! on are templates of their own, which live events send again.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::selftests::{class, interval, rate, unreadable};
use super::{Frame, PageError, blocking, html, link, words};
use crate::App;
use selftest_harness::outcome::CaseStatus;
use selftest_harness::report::document::{CaseDocument, ReportDocument};
use selftest_harness::report::{RunFile, wording};

/// A run writes after each case; hardly any takes longer.
const LONGEST_CASE: Duration = Duration::from_mins(30);

/// What a run amounts to so far.
#[derive(Template)]
#[template(path = "page/run_progress.html")]
pub(crate) struct Progress {
    outcome: &'static str,
    class: &'static str,
    passed: u32,
    failed: u32,
    unscored: u32,
    rate: String,
    interval: String,
    finished: usize,
    planned: usize,
    percent: String,
}

/// A row of the table of cases.
#[derive(Template)]
#[template(path = "page/case_row.html")]
pub(crate) struct CaseRow {
    href: String,
    /// Position in the plan, by which rows are kept in order.
    order: usize,
    id: String,
    status: &'static str,
    class: &'static str,
    score: String,
    percent: String,
    duration: String,
    reason: String,
}

#[derive(Template)]
#[template(path = "page/run.html")]
struct RunPage {
    frame: Frame,
    id: String,
    complete: bool,
    live: String,
    said: String,
    progress: Progress,
    facts: Vec<(&'static str, String)>,
    enforced: Vec<String>,
    not_enforced: Vec<String>,
    changed_files: Vec<String>,
    warnings: Vec<String>,
    rows: Vec<CaseRow>,
}

impl Progress {
    /// Of a run, whether it has ended or not.
    #[expect(clippy::cast_precision_loss, reason = "a share of cases in whole per cent")]
    pub(crate) fn of(report: &ReportDocument) -> Self {
        let summary = &report.summary;
        let (finished, planned) = (report.cases.len(), report.scenarios.len());
        Self {
            outcome: wording::outcome(report.outcome),
            class: class(report.outcome),
            passed: summary.passed,
            failed: summary.failed,
            unscored: summary.unscored,
            rate: rate(summary.pass_rate),
            interval: interval(summary),
            finished,
            planned,
            percent: words::percent(Some(finished as f64 / planned.max(1) as f64)),
        }
    }

    /// The same in a sentence, for those who do not see the page.
    pub(crate) fn sentence(&self) -> String {
        format!(
            "{}: {} of {} cases finished, {} passed, {} failed, {} without verdict",
            self.outcome, self.finished, self.planned, self.passed, self.failed, self.unscored
        )
    }
}

impl CaseRow {
    /// Of a finished case.
    pub(crate) fn of(report: &ReportDocument, case: &CaseDocument) -> Self {
        let overall = case.scores.overall.map(selftest_stats::score::Score::get);
        let planned = report.scenarios.iter().enumerate().filter(|(_, id)| **id == case.id);
        let before = case.repeat.unwrap_or(1).saturating_sub(1);
        let order = planned.map(|(order, _)| order).nth(before as usize);
        let name = case.name();
        Self {
            href: link::case(report.run_id.as_str(), &name),
            order: order.unwrap_or(report.scenarios.len()),
            id: words::line(&name),
            status: case.status.label(),
            class: status_class(case.status),
            score: words::score(overall),
            percent: words::percent(overall),
            duration: words::duration(case.duration_ms),
            reason: words::line(case.reason.as_deref().unwrap_or_default()),
        }
    }
}

/// The class of a status's badge.
pub(super) fn status_class(status: CaseStatus) -> &'static str {
    match status.pass() {
        Some(true) => "good",
        Some(false) => "poor",
        None => "fair",
    }
}

/// The report of a run.
pub(super) fn read(app: &App, run_id: &str) -> Result<ReportDocument, PageError> {
    read_file(app, run_id).map(|(report, _)| report)
}

fn read_file(app: &App, run_id: &str) -> Result<(ReportDocument, RunFile), PageError> {
    let found = app.runs.find(run_id).map_err(|error| unreadable(&error))?;
    let file = found.ok_or_else(|| {
        PageError::not_found(format!("there is no report of a run {:?}", words::line(run_id)))
    })?;
    let report = app.runs.read(&file);
    report
        .map(|report| (report, file))
        .map_err(|error| PageError::internal("the report of this run cannot be read", &error))
}

/// Said of a run that has written nothing for so long that it was probably killed.
fn silence(report: &ReportDocument, file: &RunFile) -> Option<String> {
    let silent = file.modified.elapsed().unwrap_or_default();
    (!report.complete && silent > LONGEST_CASE).then(|| {
        let silent = words::rough(Some(silent.as_secs_f64()));
        format!("Nothing was written for {silent}: the run was probably ended from outside.")
    })
}

fn facts(report: &ReportDocument) -> Vec<(&'static str, String)> {
    let config = &report.config;
    let ended = report.ended_at.map_or_else(|| words::ABSENT.to_owned(), words::date_time);
    let mut facts = vec![
        ("Started (UTC)", words::date_time(report.timestamp)),
        ("Ended (UTC)", ended),
        ("System under test", words::line(&report.sut)),
        ("Judge", words::line(&report.models.judge)),
        (
            "Threshold",
            format!(
                "{} ({} at strictness {})",
                config.effective_threshold, config.min_score_to_pass, config.strictness
            ),
        ),
        ("Safety floor", config.safety_floor.to_string()),
        ("Seed", report.seed.to_string()),
    ];
    let generator = report.models.generator.as_ref();
    facts.extend(generator.map(|model| ("Generator", words::line(model))));
    facts.extend(report.models.sut.as_ref().map(|model| ("Its model", words::line(model))));
    let experiment = report.experiment.as_ref();
    facts.extend(experiment.map(|arm| ("Arm", words::line(&wording::experiment(arm)))));
    facts.extend(report.suite.as_ref().map(|suite| ("Suite", words::line(&wording::suite(suite)))));
    facts
}

impl RunPage {
    fn of(report: &ReportDocument, file: &RunFile) -> Self {
        let id = report.run_id.as_str();
        let lines = |texts: &[String]| -> Vec<String> {
            texts.iter().take(100).map(|text| words::line(text)).collect()
        };
        let progress = Progress::of(report);
        Self {
            frame: Frame::of("selftests"),
            id: id.to_owned(),
            complete: report.complete,
            live: format!("/live/runs/{}", link::encoded(id)),
            said: progress.sentence(),
            progress,
            facts: facts(report),
            enforced: lines(&report.isolation.enforced),
            not_enforced: lines(&report.isolation.not_enforced),
            changed_files: lines(&report.changed_files),
            warnings: silence(report, file).into_iter().chain(lines(&report.warnings)).collect(),
            rows: report.cases.iter().map(|case| CaseRow::of(report, case)).collect(),
        }
    }
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path(run_id): Path<String>,
) -> Result<Response, PageError> {
    let page = move || read_file(&app, &run_id).map(|(report, file)| RunPage::of(&report, &file));
    html(&blocking(page).await?)
}
