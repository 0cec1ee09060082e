//! Stored weekly reports.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::App;
use super::super::problem::Problem;
use super::input::{self, PathName, QueryParameters};
use super::types::{WeeklyReportEntry, WeeklyReportList};
use selftest_grading::grade::{Week, WeeklyReport};
use selftest_store::StoredReport;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WeeklyReportListQuery {
    /// Maximum number of weeks.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
}

/// List weekly reports
#[utoipa::path(get, path = "/api/reports/weekly", operation_id = "list_weekly_reports", tag = "reports", params(WeeklyReportListQuery),
    responses((status = 200, body = WeeklyReportList)))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    QueryParameters(asked): QueryParameters<WeeklyReportListQuery>,
) -> Result<Json<WeeklyReportList>, Problem> {
    let reports = app.store.weekly_reports(input::page_limit(asked.limit)?.into()).await?;
    let entry = |report: StoredReport| {
        let day = report.week_start.iso_week_date();
        WeeklyReportEntry {
            week: format!("{:04}-W{:02}", day.year(), day.week()),
            week_start: report.week_start,
            week_end: report.week_end,
            generated_at: report.generated_at,
        }
    };
    Ok(Json(WeeklyReportList { items: reports.items.into_iter().map(entry).collect() }))
}

/// Get the report of a week
#[utoipa::path(get, path = "/api/reports/weekly/{week}", operation_id = "get_weekly_report", tag = "reports",
    params(("week" = String, Path, description = "ISO week, such as 2026-W47")),
    responses((status = 200, body = Object)))]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    PathName(week): PathName,
) -> Result<Json<WeeklyReport>, Problem> {
    read_weekly_report(&app, &week).await.map(Json)
}

/// Returns the stored report of a week.
pub(crate) async fn read_weekly_report(app: &App, week: &str) -> Result<WeeklyReport, Problem> {
    let week: Week = week
        .parse()
        .map_err(|error| Problem::not_found(format!("there is no report of that week: {error}")))?;
    let stored = app.store.weekly_report(week.first_day()).await?.ok_or_else(|| {
        Problem::not_found(format!(
            "there is no report of {week}; `selftest grade weekly` makes it"
        ))
    })?;
    serde_json::from_str(&stored.report_json)
        .map_err(|error| Problem::internal(&format!("the report of {week}: {error}")))
}
