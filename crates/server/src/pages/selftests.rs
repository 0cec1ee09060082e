//! The list of selftest runs and the chart of their pass rates.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::{filters, links, render_html, run_blocking, svg_response};
use crate::App;
use crate::problem::Problem;
use selftest_reports::{RunArchive, RunEntry, older_than, trend_picture, wording};

/// Maximum number of runs per page.
const MAX_ROWS: usize = 50;
/// Maximum number of runs to read for the chart, which shows the latest of each suite.
const MAX_CHARTED: usize = 120;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SelftestsParams {
    before: String,
}

#[derive(Template)]
#[template(path = "page/selftests.html")]
struct SelftestsPage {
    section: &'static str,
    total: usize,
    rows: Vec<RunEntry>,
    /// JSON files on this page that are not reports.
    foreign: usize,
    older: Option<String>,
    newer: bool,
}

fn load_page(runs: &RunArchive, before: &str) -> Result<SelftestsPage, Problem> {
    let mut files = runs.files().map_err(|error| Problem::unreadable_reports(&error))?;
    let total = files.len();
    if !before.is_empty() {
        files = older_than(files, before);
    }
    let more = files.len() > MAX_ROWS;
    files.truncate(MAX_ROWS);
    let older = files.last().filter(|_| more);
    let older = older.map(|file| links::query("/selftests", &[("before", file.run_id.as_str())]));
    let rows: Vec<RunEntry> = files.iter().filter_map(|file| runs.entry(file)).collect();
    Ok(SelftestsPage {
        section: "selftests",
        total,
        foreign: files.len() - rows.len(),
        rows,
        older,
        newer: !before.is_empty(),
    })
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Query(params): Query<SelftestsParams>,
) -> Result<Response, Problem> {
    render_html(&run_blocking(move || load_page(&app.runs, &params.before)).await?)
}

pub(super) async fn trend(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let picture = move || {
        let files = app.runs.files().map_err(|error| Problem::unreadable_reports(&error))?;
        let newest = files.iter().filter_map(|file| app.runs.entry(file));
        let newest = newest.filter(|run| run.series().is_development()).take(MAX_CHARTED);
        Ok(trend_picture(&newest.collect::<Vec<_>>())?)
    };
    run_blocking(picture).await.map(svg_response)
}
