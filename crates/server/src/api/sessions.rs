//! Recorded sessions with their grades by rules.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa::openapi::schema::Schema;

use super::super::App;
use super::super::problem::Problem;
use super::input::{self, PathName, QueryParameters};
use super::types::{SessionDetail, SessionPage};
use selftest_grading::grade::{TaskOutcome, TaskType, TokenCost};
use selftest_service::search::{SearchError, SearchRequest, SearchResults, parse_time};
use selftest_store::{SessionQuery, SessionSort};

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
