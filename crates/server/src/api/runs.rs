//! Selftest runs and their cases, from the JSON reports.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::problem::Problem;
use super::super::{App, run_blocking};
use super::input::{self, PathName, PathNames, QueryParameters};
use super::types::{CaseList, CaseSchema, ReportSchema, RunItem, RunPage};
use selftest_reports::document::{CaseDocument, ReportDocument};
use selftest_reports::older_than;
use selftest_store::Cursor;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RunListQuery {
    /// Maximum number of runs per page.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// List selftest runs, newest first
#[utoipa::path(get, path = "/api/runs", operation_id = "list_runs", tag = "runs", params(RunListQuery),
    responses((status = 200, body = RunPage)))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    QueryParameters(asked): QueryParameters<RunListQuery>,
) -> Result<Json<RunPage>, Problem> {
    let limit = input::page_limit(asked.limit)? as usize;
    let after = input::parse_cursor(asked.cursor.as_deref(), |cursor| cursor.value.is_none())?;
    run_blocking(move || {
        let runs = &app.runs;
        let mut files = runs.files().map_err(|error| Problem::unreadable_reports(&error))?;
        if let Some(after) = &after {
            files = older_than(files, &after.id);
        }
        let mut entries = files.into_iter().filter_map(|file| runs.entry(&file));
        let items: Vec<RunItem> = entries.by_ref().take(limit).map(RunItem::from).collect();
        // One more entry shows if there is another page.
        let more = entries.next().is_some();
        let next = items
            .last()
            .filter(|_| more)
            .map(|entry| Cursor { value: None, id: entry.run_id.clone(), order: None }.to_string());
        Ok(Json(RunPage { items, next }))
    })
    .await
}

/// Get the full report of a run
#[utoipa::path(get, path = "/api/runs/{run_id}", operation_id = "get_run", tag = "runs",
    params(("run_id" = String, Path, description = "The run")),
    responses((status = 200, body = ReportSchema)))]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    PathName(run_id): PathName,
) -> Result<Json<ReportDocument>, Problem> {
    read(app, run_id).await.map(Json)
}

/// List the cases of a run
#[utoipa::path(get, path = "/api/runs/{run_id}/cases", operation_id = "list_cases", tag = "runs",
    params(("run_id" = String, Path, description = "The run")),
    responses((status = 200, body = CaseList)))]
pub(super) async fn cases(
    State(app): State<Arc<App>>,
    PathName(run_id): PathName,
) -> Result<Json<CaseList>, Problem> {
    let report = read(app, run_id).await?;
    Ok(Json(CaseList { items: report.cases.into_iter().map(Into::into).collect() }))
}

/// Get a case with prompt, hints, transcript, verdict and raw replies
#[utoipa::path(get, path = "/api/runs/{run_id}/cases/{scenario}", operation_id = "get_case", tag = "runs",
    params(
        ("run_id" = String, Path, description = "The run"),
        ("scenario" = String, Path,
            description = "Id of the scenario; of a repeated case with its number, as in `id #2`"),
    ),
    responses((status = 200, body = CaseSchema)))]
pub(super) async fn case(
    State(app): State<Arc<App>>,
    PathNames(run_id, scenario): PathNames,
) -> Result<Json<CaseDocument>, Problem> {
    let report = read(app, run_id).await?;
    let found = report.cases.into_iter().find(|case| case.name() == scenario);
    found
        .map(Json)
        .ok_or_else(|| Problem::not_found("the run has no finished case of that scenario"))
}

async fn read(app: Arc<App>, run_id: String) -> Result<ReportDocument, Problem> {
    let found = run_blocking(move || app.read_run(&run_id)).await?;
    found.map(|(report, _)| report).ok_or_else(|| {
        Problem::not_found("there is no run of that id; ids are listed at /api/runs")
    })
}
