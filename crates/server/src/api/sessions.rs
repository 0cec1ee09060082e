//! Recorded sessions with their grades by rules, people and models.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use selftest_grading::grade::quality::combine_grades;
use selftest_grading::grade::{TaskOutcome, TaskType, TokenCost};
use selftest_service::jobs::GradingJob;
use selftest_service::search::{SearchError, SearchRequest, SearchResults, parse_time};
use selftest_store::{SessionQuery, SessionSort};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa::openapi::schema::Schema;

use super::input::{self, PathName, QueryParameters};
use super::types::{GradePage, QueuedGrading, SessionDetail, SessionGrades, SessionPage};
use crate::problem::Problem;
use crate::{App, links};

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SortOrder {
    #[default]
    Desc,
    Asc,
}

fn sorts() -> Schema {
    input::enum_schema(SessionSort::ALL.iter().map(|sort| sort.name()))
}

fn orders() -> Schema {
    input::enum_schema(["desc", "asc"])
}

fn outcomes() -> Schema {
    input::enum_schema(TaskOutcome::ALL.iter().map(|outcome| outcome.name()))
}

fn task_types() -> Schema {
    input::enum_schema(TaskType::ALL.iter().map(|kind| kind.name()))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SessionListQuery {
    /// Sort key; `time` by default. Sessions without a value come last.
    #[param(schema_with = sorts)]
    sort: Option<SessionSort>,
    /// Sort order: descending, `desc`, or ascending, `asc`.
    #[param(schema_with = orders)]
    order: Option<SortOrder>,
    /// Only sessions of this agent.
    #[param(max_length = 200)]
    agent: Option<String>,
    /// Only tasks of this type.
    #[param(schema_with = task_types)]
    task_type: Option<TaskType>,
    /// Only tasks with this outcome.
    #[param(schema_with = outcomes)]
    outcome: Option<TaskOutcome>,
    /// Only tasks that appear completed, or only those that do not.
    completed: Option<bool>,
    /// Minimum average overall score by models.
    #[param(minimum = 0.0, maximum = 1.0)]
    min_quality: Option<f64>,
    /// Only sessions with this text in the task summary or id.
    #[param(max_length = 200)]
    search: Option<String>,
    /// Maximum number of sessions per page.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// `next` of the previous page, which must have the same order.
    cursor: Option<String>,
}

/// List sessions, sorted and filtered
#[utoipa::path(get, path = "/api/sessions", operation_id = "list_sessions", tag = "sessions", params(SessionListQuery),
    responses((status = 200, body = SessionPage)))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    QueryParameters(asked): QueryParameters<SessionListQuery>,
) -> Result<Json<SessionPage>, Problem> {
    let sort = asked.sort.unwrap_or(SessionSort::Time);
    let least =
        asked.min_quality.map(|least| input::checked_range("min_quality", least, 0.0..=1.0));
    let descending = asked.order.unwrap_or_default() == SortOrder::Desc;
    let query = SessionQuery {
        sort,
        descending,
        agent: input::checked_text("agent", asked.agent, 200)?,
        task_type: asked.task_type,
        completed: asked.completed,
        outcome: asked.outcome,
        min_quality: least.transpose()?,
        search: input::checked_text("search", asked.search, 200)?,
        parent: None,
        limit: input::page_limit(asked.limit)?,
        after: input::parse_cursor(asked.cursor.as_deref(), |cursor| {
            sort.fits(descending, cursor)
        })?,
    };
    let page = app.store.sessions(&query).await?;
    let next = page.next.map(|next| next.to_string());
    Ok(Json(SessionPage { items: page.items, next }))
}

/// Get a session with its grade by rules
///
/// A `/` in an id is written `%2F`.
#[utoipa::path(get, path = "/api/sessions/{id}", operation_id = "get_session", tag = "sessions",
    params(("id" = String, Path, description = "The session", max_length = 512)),
    responses((status = 200, body = SessionDetail)))]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    PathName(id): PathName,
) -> Result<Json<SessionDetail>, Problem> {
    let Some(grade) = app.store.grade(&id).await? else {
        return Err(Problem::not_found(
            "there is no session of that id; ids are listed at /api/sessions",
        ));
    };
    let overrides = app.store.session_overrides(&id).await?.items;
    let file = app.store.file(&grade.session_file).await?;
    let cost = TokenCost::of_session(&grade.details, app.transcripts.prices());
    Ok(Json(SessionDetail { grade, overrides, file, cost }))
}

/// Maximum length of a query in characters.
const MAX_WORDS: usize = 500;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SearchParameters {
    /// Words that must occur in one event, `"phrases"`, and `prefixes*`. There is no other syntax.
    #[param(max_length = 500)]
    q: String,
    /// Only sessions of this agent.
    #[param(max_length = 200)]
    agent: Option<String>,
    /// Only sessions in this folder; its last component is enough.
    #[param(max_length = 2000)]
    project: Option<String>,
    /// Only sessions in which this model replied.
    #[param(max_length = 200)]
    model: Option<String>,
    /// Only events of this tool.
    #[param(max_length = 200)]
    tool: Option<String>,
    /// Only events with a failed tool call.
    errors: Option<bool>,
    /// Only sessions at or after this time or UTC day.
    #[param(max_length = 40)]
    since: Option<String>,
    /// Only sessions before this time or UTC day.
    #[param(max_length = 40)]
    until: Option<String>,
    /// Maximum number of sessions per page.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// `next` of the previous page.
    #[param(max_length = 40)]
    cursor: Option<String>,
}

fn time(name: &str, text: Option<String>) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = text else { return Ok(None) };
    parse_time(&text).map(Some).ok_or_else(|| {
        Problem::bad_request(format!("in the query: {name}: expected a time or a day, 2026-11-01"))
    })
}

/// Search sessions, newest first
///
/// The web page shows an event at `/sessions/{id}/events/{event}`.
#[utoipa::path(get, path = "/api/search", operation_id = "search_sessions", tag = "sessions", params(SearchParameters),
    responses((status = 200, body = SearchResults)))]
pub(super) async fn search(
    State(app): State<Arc<App>>,
    QueryParameters(asked): QueryParameters<SearchParameters>,
) -> Result<Json<SearchResults>, Problem> {
    let request = SearchRequest {
        words: input::checked_text("q", Some(asked.q), MAX_WORDS)?.unwrap_or_default(),
        agent: input::checked_text("agent", asked.agent, 200)?,
        project: input::checked_text("project", asked.project, 2000)?,
        model: input::checked_text("model", asked.model, 200)?,
        tool: input::checked_text("tool", asked.tool, 200)?,
        errors: asked.errors.unwrap_or_default(),
        since: time("since", asked.since)?,
        until: time("until", asked.until)?,
        limit: input::page_limit(asked.limit)?,
        cursor: asked.cursor,
    };
    match request.run(&app.store).await {
        Ok(found) => Ok(Json(found)),
        Err(SearchError::Store(error)) => Err(error.into()),
        Err(fault @ SearchError::NoWords) => {
            Err(Problem::bad_request(format!("in the query: q: {fault}")))
        }
        Err(fault @ SearchError::Cursor) => Err(Problem::not_found(fault.to_string())),
    }
}

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
    // A session can have grades of either kind alone.
    if rules.is_none() && models.is_empty() {
        return Err(unknown_session());
    }
    let overrides = app.store.session_overrides(&id).await?.items;
    let average = combine_grades(&models);
    let request = app.queue.request_state(&id).await?.map(Into::into);
    Ok(Json(SessionGrades { session_id: id, rules, overrides, models, average, request }))
}

fn unknown_session() -> Problem {
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
        return Err(unknown_session());
    }
    // The queue holds a session once, whatever asked for it: this request, the schedule or a
    // person.
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
        // A cursor of another list would be accepted by the database and start at an arbitrary row.
        cursor.order.is_none() && cursor.value.is_some() && cursor.id.parse::<i64>().is_ok()
    })?;
    let page = app.store.recent_quality(least.transpose()?, limit, after.as_ref()).await?;
    let next = page.next.map(|next| next.to_string());
    Ok(Json(GradePage { items: page.items, next }))
}
