//! Weekly reports: the list, one of them in words and tables, and its pictures.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::{Frame, PageError, html, svg, words};
use crate::App;
use selftest_grading::grade::{Week, WeeklyReport};
use selftest_grading::report::weekly::{errors_picture, format, trend_picture};
use selftest_store::StoredReport;
use selftest_text::wording;

/// Weeks of the list.
const WEEKS: u64 = 200;

#[derive(Template)]
#[template(path = "page/weekly_list.html")]
struct WeeklyList {
    frame: Frame,
    rows: Vec<Row>,
    newest: Option<String>,
    unreadable: usize,
}

struct Row {
    week: String,
    days: String,
    complete: bool,
    sessions: String,
    completed: String,
    efficiency: String,
    quality: String,
    alerts: usize,
    suggestions: u64,
}

#[derive(Template)]
#[template(path = "page/weekly.html")]
struct Weekly {
    frame: Frame,
    week: String,
    days: String,
    made: String,
    complete: bool,
    raised: usize,
    report: WeeklyReport,
}

fn mean(mean: Option<f64>) -> String {
    mean.map_or_else(|| words::ABSENT.to_owned(), |mean| format!("{mean:.1}"))
}

fn days(report: &WeeklyReport) -> String {
    format!("{} to {}", report.week_start, report.week_end)
}

impl From<&WeeklyReport> for Row {
    fn from(report: &WeeklyReport) -> Self {
        let summary = &report.summary;
        let rate = summary.completion_rate.rate;
        Self {
            week: report.week.to_string(),
            days: days(report),
            complete: report.is_complete(),
            sessions: words::count(summary.sessions),
            completed: rate.map_or_else(
                || words::ABSENT.to_owned(),
                |rate| format!("{} %", wording::percent(rate)),
            ),
            efficiency: mean(summary.avg_tool_efficiency),
            quality: mean(summary.avg_response_quality),
            alerts: report.alerts.raised().count(),
            suggestions: report.suggestions.items.len() as u64,
        }
    }
}

fn parsed(stored: &StoredReport) -> Result<WeeklyReport, serde_json::Error> {
    serde_json::from_str(&stored.report_json)
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Result<Response, PageError> {
    let stored = app.store.weekly_reports(WEEKS).await?;
    let rows: Vec<Row> = stored
        .items
        .iter()
        .filter_map(|stored| parsed(stored).ok())
        .map(|report| Row::from(&report))
        .collect();
    html(&WeeklyList {
        frame: Frame::of("weekly"),
        newest: rows.first().map(|row| row.week.clone()),
        unreadable: stored.items.len() - rows.len(),
        rows,
    })
}

async fn report(app: &App, week: &str) -> Result<WeeklyReport, PageError> {
    let missing = || PageError::not_found(format!("there is no report of {:?}", words::line(week)));
    let asked: Week = week.parse().map_err(|_| missing())?;
    let stored = app.store.weekly_report(asked.first_day()).await?.ok_or_else(missing)?;
    parsed(&stored)
        .map_err(|error| PageError::internal("the report of this week cannot be read", &error))
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path(week): Path<String>,
) -> Result<Response, PageError> {
    let report = report(&app, &week).await?;
    html(&Weekly {
        frame: Frame::of("weekly"),
        week: report.week.to_string(),
        days: days(&report),
        made: words::minute(report.generated_at),
        complete: report.is_complete(),
        raised: report.alerts.raised().count(),
        report,
    })
}

pub(super) async fn picture(
    State(app): State<Arc<App>>,
    Path((week, picture)): Path<(String, String)>,
) -> Result<Response, PageError> {
    let report = report(&app, &week).await?;
    match picture.as_str() {
        "trend.svg" => Ok(svg(trend_picture(&report)?)),
        "errors.svg" => Ok(svg(errors_picture(&report)?)),
        _ => Err(PageError::not_found("a weekly report has trend.svg and errors.svg")),
    }
}
