//! Full-text search in recorded sessions.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::App;
use super::super::problem::Problem;
use super::input::{self, QueryParameters};
use selftest_service::search::{SearchError, SearchRequest, SearchResults, parse_time};

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
