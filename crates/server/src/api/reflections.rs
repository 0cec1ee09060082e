//! Reflections of agents (docs/spec/reflections.md#api): submission, grading and listing.

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
use super::input::{self, JsonObject, PathName, QueryParameters};
use selftest_grading::grade::reflection::{ReflectionScore, ReflectionScores, WeakReflections};
use selftest_service::grader::reflection::ReflectionError;
use selftest_store::Cursor;
use selftest_text::one_line;

/// Maximum number of scores per page.
const MAX_SCORES: u32 = 500;
/// Maximum number of weak reflections per page; each can be up to 64 KB.
const MAX_WEAK: u32 = 100;

/// Grade the last reflection of a project
///
/// Grading again keeps score and time unless the criteria have changed. A `/` in an id is written
/// `%2F`.
#[utoipa::path(get, path = "/api/debug/reflection/grade/{project_id}", operation_id = "grade_last_reflection", tag = "reflections",
    params(("project_id" = String, Path, description = "The project", max_length = 512)),
    responses((status = 200, body = ReflectionScore)))]
pub(super) async fn grade(
    State(app): State<Arc<App>>,
    PathName(project_id): PathName,
) -> Result<Json<ReflectionScore>, Problem> {
    let Some(score) = app.reflections.grade_reflection(&project_id).await? else {
        return Err(Problem::not_found(
            "the project has no reflection; they are submitted to /api/reflections/{project_id}",
        ));
    };
    start_recovery(&app, &score);
    Ok(Json(score))
}

/// Submit a reflection and grade it
///
/// A document that does not match the schema is graded accordingly, not rejected. Submitting the
/// same `reflection_id` again has no effect.
#[utoipa::path(post, path = "/api/reflections/{project_id}", operation_id = "submit_reflection", tag = "reflections",
    params(("project_id" = String, Path, description = "The project", max_length = 512)),
    request_body(content = Object, content_type = "application/json",
        description = "The reflection: goal, summary, confidence, tags, and what else there is"),
    responses(
        (status = 201, body = ReflectionScore, headers(
            ("Location" = String, description = "The scores of the project"))),
        (status = 200, body = ReflectionScore, description = "It was there already"),
        (status = 409, description = "Another reflection has that id"),
        (status = 422, description = "The body is no object, or its id cannot be kept")))]
pub(super) async fn submit(
    State(app): State<Arc<App>>,
    PathName(project_id): PathName,
    JsonObject(document): JsonObject,
) -> Result<Response, Problem> {
    let done = app.reflections.submit(&project_id, document, None).await?;
    start_recovery(&app, &done.score);
    if !done.is_new {
        return Ok(Json(done.score).into_response());
    }
    let scores = format!("/api/reflections/{}/scores", links::encode(&project_id));
    Ok((StatusCode::CREATED, [(LOCATION, scores)], Json(done.score)).into_response())
}

impl From<ReflectionError> for Problem {
    fn from(fault: ReflectionError) -> Self {
        let status = match fault {
            ReflectionError::Store(error) => return error.into(),
            ReflectionError::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            ReflectionError::Id { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            ReflectionError::Taken { .. } => StatusCode::CONFLICT,
        };
        Self::new(status, one_line(&fault.to_string(), 400))
    }
}

/// Logs a weak reflection and runs the recovery hook in the background, because it may be slow.
fn start_recovery(app: &Arc<App>, score: &ReflectionScore) {
    if !score.weak {
        return;
    }
    let (app, score) = (Arc::clone(app), score.clone());
    tokio::spawn(async move {
        let shown = |text: &str| one_line(text, 80);
        let who = shown(score.agent.as_deref().unwrap_or("an agent"));
        let codes: Vec<&str> = score.issues.iter().map(|issue| issue.code.name()).collect();
        tracing::info!(
            "weak reflection of {who} in {}: {}",
            shown(&score.project_id),
            codes.join(", ")
        );
        match app.reflections.notify_recovery_hook(&score).await {
            Ok(faults) => faults.iter().for_each(|why| tracing::warn!("{}", one_line(why, 400))),
            Err(error) => tracing::warn!("the recovery hook was not notified: {error}"),
        }
    });
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ScoresQuery {
    /// Maximum number of scores per page.
    #[param(minimum = 1, maximum = 500, default = 500)]
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// List the scores of a project
///
/// `count` and `average_score` cover all scores, not only the page. A project without reflections
/// has none.
#[utoipa::path(get, path = "/api/reflections/{project_id}/scores", operation_id = "list_reflection_scores", tag = "reflections",
    params(("project_id" = String, Path, description = "The project", max_length = 512),
        ScoresQuery),
    responses((status = 200, body = ReflectionScores)))]
pub(super) async fn scores(
    State(app): State<Arc<App>>,
    PathName(project_id): PathName,
    QueryParameters(asked): QueryParameters<ScoresQuery>,
) -> Result<Json<ReflectionScores>, Problem> {
    let limit = input::checked_range("limit", asked.limit.unwrap_or(MAX_SCORES), 1..=MAX_SCORES)?;
    let after = parse_cursor(asked.cursor.as_deref())?;
    Ok(Json(app.reflections.reflection_scores(&project_id, limit, after).await?))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WeakReflectionsQuery {
    /// Maximum number of reflections per page.
    #[param(minimum = 1, maximum = 100, default = 100)]
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// List the weak reflections of a project
///
/// `count` covers all of them, not only the page.
#[utoipa::path(get, path = "/api/reflections/{project_id}/weak", operation_id = "list_weak_reflections", tag = "reflections",
    params(("project_id" = String, Path, description = "The project", max_length = 512),
        WeakReflectionsQuery),
    responses((status = 200, body = WeakReflections)))]
pub(super) async fn weak(
    State(app): State<Arc<App>>,
    PathName(project_id): PathName,
    QueryParameters(asked): QueryParameters<WeakReflectionsQuery>,
) -> Result<Json<WeakReflections>, Problem> {
    let limit = input::checked_range("limit", asked.limit.unwrap_or(MAX_WEAK), 1..=MAX_WEAK)?;
    let after = parse_cursor(asked.cursor.as_deref())?;
    Ok(Json(app.reflections.weak_reflections(&project_id, limit, after).await?))
}

fn parse_cursor(cursor: Option<&str>) -> Result<Option<Cursor>, Problem> {
    // A cursor of another list has a value, or an id that is no number.
    input::parse_cursor(cursor, |cursor| cursor.value.is_none() && cursor.id.parse::<i64>().is_ok())
}
