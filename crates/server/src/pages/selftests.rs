//! The list of selftest runs and the picture of their pass rates.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::{Frame, PageError, blocking, html, link, svg, words};
use crate::App;
use selftest_harness::outcome::RunOutcome;
use selftest_harness::report::{RunArchive, RunEntry, trend_picture, wording};

/// Runs of a page.
const ROWS: usize = 50;
/// Runs whose heads are read for the picture, which shows the latest of them.
const PICTURED: usize = 40;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    before: String,
}

#[derive(Template)]
#[template(path = "page/selftests.html")]
struct Selftests {
    frame: Frame,
    total: String,
    rows: Vec<Row>,
    /// JSON files of the page that are no reports.
    foreign: usize,
    older: Option<String>,
    newer: bool,
}

struct Row {
    href: String,
    id: String,
    /// Of an experiment; else empty.
    arm: String,
    at: String,
    time: String,
    outcome: &'static str,
    class: &'static str,
    passed: u32,
    failed: u32,
    unscored: u32,
    rate: String,
    interval: String,
    threshold: String,
    judge: String,
}

impl From<RunEntry> for Row {
    fn from(run: RunEntry) -> Self {
        let summary = &run.summary;
        Self {
            href: link::run(run.run_id.as_str()),
            id: run.run_id.to_string(),
            arm: run
                .experiment
                .as_ref()
                .map(|one| words::line(&wording::arm(one)))
                .unwrap_or_default(),
            at: run.started_at.to_string(),
            time: words::minute(run.started_at),
            outcome: wording::outcome(run.outcome),
            class: class(run.outcome),
            passed: summary.passed,
            failed: summary.failed,
            unscored: summary.unscored,
            rate: rate(summary.pass_rate),
            interval: interval(summary),
            threshold: run.threshold.to_string(),
            judge: words::line(&run.judge),
        }
    }
}

/// `80 %`.
pub(super) fn rate(rate: Option<f64>) -> String {
    rate.map_or_else(
        || words::ABSENT.to_owned(),
        |rate| format!("{} %", selftest_text::wording::percent(rate)),
    )
}

/// `38 to 96 %`.
pub(super) fn interval(summary: &selftest_harness::outcome::Summary) -> String {
    summary.pass_rate_interval.map_or_else(
        || words::ABSENT.to_owned(),
        |interval| format!("{:.0} to {:.0} %", 100.0 * interval.low, 100.0 * interval.high),
    )
}

/// The class of an outcome's badge.
pub(super) fn class(outcome: Option<RunOutcome>) -> &'static str {
    match outcome {
        Some(RunOutcome::Passed) => "good",
        Some(RunOutcome::Failed) => "poor",
        Some(RunOutcome::Inconclusive | RunOutcome::NothingRan | RunOutcome::Interrupted) => "fair",
        None => "none",
    }
}

pub(super) fn unreadable(error: &std::io::Error) -> PageError {
    PageError::internal("the reports cannot be read", error)
}

fn page_of(runs: &RunArchive, before: &str) -> Result<Selftests, PageError> {
    let mut files = runs.files().map_err(|error| unreadable(&error))?;
    let total = words::plural(files.len() as u64, "run");
    if !before.is_empty() {
        files.retain(|file| file.run_id.as_str() < before);
    }
    let more = files.len() > ROWS;
    files.truncate(ROWS);
    let older = files.last().filter(|_| more);
    let older = older.map(|file| link::query("/selftests", &[("before", file.run_id.as_str())]));
    let rows: Vec<Row> = files.iter().filter_map(|file| runs.entry(file)).map(Row::from).collect();
    Ok(Selftests {
        frame: Frame::of("selftests"),
        total,
        foreign: files.len() - rows.len(),
        rows,
        older,
        newer: !before.is_empty(),
    })
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Query(params): Query<Params>,
) -> Result<Response, PageError> {
    html(&blocking(move || page_of(&app.runs, &params.before)).await?)
}

pub(super) async fn trend(State(app): State<Arc<App>>) -> Result<Response, PageError> {
    let picture = move || {
        let files = app.runs.files().map_err(|error| unreadable(&error))?;
        let newest = files.iter().filter_map(|file| app.runs.entry(file));
        let newest = newest.filter(|run| run.experiment.is_none()).take(PICTURED);
        Ok(trend_picture(&newest.collect::<Vec<_>>())?)
    };
    blocking(picture).await.map(svg)
}
