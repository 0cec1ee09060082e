//! Grades of sessions by rules, people and models.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::problem::Problem;
use super::super::{App, links};
use super::input::{self, PathName, QueryParameters};
use super::types::{GradePage, QueuedGrading, SessionGrades};
use selftest_grading::grade::quality::combine_grades;
use selftest_service::jobs::GradingJob;

/// Get all grades of a session
///
/// Includes the state of the last request for a grade. A `/` in an id is written `%2F`.
#[utoipa::path(get, path = "/api/grades/session/{id}", operation_id = "get_session_grades", tag = "grades",
    params(("id" = String, Path, description = "The session", max_length = 512)),
    responses((status = 200, body = SessionGrades)))]
pub(super) async fn of_session(
    State(app): State<Arc<App>>,
    PathName(id): PathName,
) -> Result<Json<SessionGrades>, Problem> {
    let rules = app.store.grade(&id).await?;
    let models = app.store.session_quality_grades(&id).await?.items;
    if rules.is_none() && models.is_empty() {
        return Err(unknown());
    }
    let overrides = app.store.session_overrides(&id).await?.items;
    let average = combine_grades(&models);
    let request = app.queue.request_state(&id).await?.map(Into::into);
    Ok(Json(SessionGrades { session_id: id, rules, overrides, models, average, request }))
}

fn unknown() -> Problem {
    Problem::not_found("no session of that id has a grade; ids are listed at /api/sessions")
}

/// Request a grade by a model
///
/// Returns immediately; a worker processes the queue. The state of the request is in `request` at
/// the location of the grade.
#[utoipa::path(post, path = "/api/grades/session/{id}", operation_id = "request_session_grade", tag = "grades",
    params(("id" = String, Path, description = "The session", max_length = 512)),
    responses(
        (status = 202, body = QueuedGrading, headers(
            ("Location" = String, description = "Where the grade will be"))),
        (status = 409, description = "The session waits to be graded already")))]
pub(super) async fn queue(
    State(app): State<Arc<App>>,
    PathName(id): PathName,
) -> Result<Response, Problem> {
    if app.store.grade(&id).await?.is_none() {
        return Err(unknown());
    }
    if app.queue.enqueue(&[GradingJob::new(&id, None)]).await? == 0 {
        let detail = "the session waits to be graded already";
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    let location = format!("/api/grades/session/{}", links::encode(&id));
    let queued = QueuedGrading { session_id: id, status: "queued", location: location.clone() };
    Ok((StatusCode::ACCEPTED, [(LOCATION, location)], Json(queued)).into_response())
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RecentGradesQuery {
    /// Minimum overall score.
    #[param(minimum = 0.0, maximum = 1.0)]
    min_overall: Option<f64>,
    /// Maximum number of grades per page.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// List the latest grades by models
#[utoipa::path(get, path = "/api/grades/recent", operation_id = "list_recent_grades", tag = "grades", params(RecentGradesQuery),
    responses((status = 200, body = GradePage)))]
pub(super) async fn recent(
    State(app): State<Arc<App>>,
    QueryParameters(asked): QueryParameters<RecentGradesQuery>,
) -> Result<Json<GradePage>, Problem> {
    let least =
        asked.min_overall.map(|least| input::checked_range("min_overall", least, 0.0..=1.0));
    let limit = input::page_limit(asked.limit)?;
    let after = input::parse_cursor(asked.cursor.as_deref(), |cursor| {
        cursor.order.is_none() && cursor.value.is_some() && cursor.id.parse::<i64>().is_ok()
    })?;
    let page = app.store.recent_quality(least.transpose()?, limit, after.as_ref()).await?;
    let next = page.next.map(|next| next.to_string());
    Ok(Json(GradePage { items: page.items, next }))
}
