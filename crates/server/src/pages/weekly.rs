//! The pages of weekly reports: the list, a single report and its charts.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::{filters, links, render_html, svg_response};
use crate::App;
use crate::api::weekly_report;
use crate::problem::Problem;
use selftest_grading::grade::WeeklyReport;
use selftest_grading::report::weekly::{
    errors_picture, finding, format, lead, table, trend_picture,
};

/// Maximum number of weeks in the list.
const MAX_WEEKS: u64 = 200;

#[derive(Template)]
#[template(path = "page/weekly_list.html")]
struct WeeklyListPage {
    section: &'static str,
    reports: Vec<WeeklyReport>,
    unreadable: usize,
}

#[derive(Template)]
#[template(path = "page/weekly.html")]
struct WeeklyReportPage {
    section: &'static str,
    report: WeeklyReport,
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let stored = app.store.weekly_reports(MAX_WEEKS).await?;
    let reports: Vec<WeeklyReport> =
        stored.items.iter().filter_map(|one| serde_json::from_str(&one.report_json).ok()).collect();
    let unreadable = stored.items.len() - reports.len();
    render_html(&WeeklyListPage { section: "weekly", reports, unreadable })
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path(week): Path<String>,
) -> Result<Response, Problem> {
    let report = weekly_report(&app, &week).await?;
    render_html(&WeeklyReportPage { section: "weekly", report })
}

pub(super) async fn picture(
    State(app): State<Arc<App>>,
    Path((week, picture)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let report = weekly_report(&app, &week).await?;
    match picture.as_str() {
        "trend.svg" => Ok(svg_response(trend_picture(&report)?)),
        "errors.svg" => Ok(svg_response(errors_picture(&report)?)),
        _ => Err(Problem::not_found("a weekly report has trend.svg and errors.svg")),
    }
}
