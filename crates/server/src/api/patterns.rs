//! Patterns: errors that recur across sessions.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::super::App;
use super::super::problem::Problem;
use super::input::{self, QueryParameters};
use selftest_grading::grade::GradePatterns;
use selftest_service::grader;

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
