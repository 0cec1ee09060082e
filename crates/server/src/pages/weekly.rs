//! Weekly reports: the list, one of them in words and tables, and its pictures.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::{Frame, filters, html, quoted, svg};
use crate::App;
use crate::problem::Problem;
use selftest_grading::grade::{Week, WeeklyReport};
use selftest_grading::report::weekly::{errors_picture, format, trend_picture};
use selftest_store::StoredReport;

/// Weeks of the list.
const WEEKS: u64 = 200;

#[derive(Template)]
#[template(path = "page/weekly_list.html")]
struct WeeklyList {
    frame: Frame,
    reports: Vec<WeeklyReport>,
    unreadable: usize,
}

#[derive(Template)]
#[template(path = "page/weekly.html")]
struct Weekly {
    frame: Frame,
    report: WeeklyReport,
}

fn parsed(stored: &StoredReport) -> Result<WeeklyReport, serde_json::Error> {
    serde_json::from_str(&stored.report_json)
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let stored = app.store.weekly_reports(WEEKS).await?;
    let reports: Vec<WeeklyReport> =
        stored.items.iter().filter_map(|stored| parsed(stored).ok()).collect();
    let unreadable = stored.items.len() - reports.len();
    html(&WeeklyList { frame: Frame::of("weekly"), reports, unreadable })
}

async fn report(app: &App, week: &str) -> Result<WeeklyReport, Problem> {
    let missing = || Problem::not_found(format!("there is no report of {}", quoted(week)));
    let asked: Week = week.parse().map_err(|_| missing())?;
    let stored = app.store.weekly_report(asked.first_day()).await?.ok_or_else(missing)?;
    parsed(&stored).map_err(|error| {
        Problem::internal(&format!("the report of this week cannot be read: {error}"))
    })
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path(week): Path<String>,
) -> Result<Response, Problem> {
    let report = report(&app, &week).await?;
    html(&Weekly { frame: Frame::of("weekly"), report })
}

pub(super) async fn picture(
    State(app): State<Arc<App>>,
    Path((week, picture)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let report = report(&app, &week).await?;
    match picture.as_str() {
        "trend.svg" => Ok(svg(trend_picture(&report)?)),
        "errors.svg" => Ok(svg(errors_picture(&report)?)),
        _ => Err(Problem::not_found("a weekly report has trend.svg and errors.svg")),
    }
}
