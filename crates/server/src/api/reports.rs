//! Stored weekly reports, and patterns: errors that recur across sessions.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::super::App;
use super::super::problem::Problem;
use super::input::{self, PathName, QueryParameters};
use super::types::{WeeklyReportEntry, WeeklyReportList};
use selftest_grading::grade::{GradePatterns, Week, WeeklyReport};
use selftest_service::grader;
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

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PatternsQuery {
    /// Number of days to look back.
    #[param(minimum = 1, maximum = 3650, default = 30)]
    days: Option<u32>,
}

#[derive(Serialize)]
pub(super) struct PatternsAnswer {
    #[serde(flatten)]
    patterns: GradePatterns,
    /// Graded sessions without a date, which are in no period.
    undated: u64,
}

/// Get patterns of recent sessions
#[utoipa::path(get, path = "/api/patterns", operation_id = "get_patterns", tag = "patterns", params(PatternsQuery),
    responses((status = 200, body = Object)))]
pub(super) async fn patterns(
    State(app): State<Arc<App>>,
    QueryParameters(asked): QueryParameters<PatternsQuery>,
) -> Result<Json<PatternsAnswer>, Problem> {
    let days = input::checked_range("days", asked.days.unwrap_or(30), 1..=3650)?;
    let day = SignedDuration::from_hours(24);
    let now = selftest_clock::now();
    let from = now.checked_sub(day * days.cast_signed()).unwrap_or(Timestamp::MIN);
    // Includes sessions from machines whose clock is slightly ahead.
    let to = now.checked_add(day).unwrap_or(Timestamp::MAX);
    let patterns = grader::patterns(&app.store, from, to).await?;
    Ok(Json(PatternsAnswer { patterns, undated: app.store.undated_sessions().await? }))
}
