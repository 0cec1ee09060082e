//! The JSON API, one file per resource. Reads the store and the reports of runs.

mod describe;
mod grades;
mod improvement;
mod input;
mod reflections;
mod reports;
mod runs;
mod sessions;
mod skills;
mod types;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::cache::ResponseCache;
use super::problem::Problem;
use super::{App, cache};

pub(super) use improvement::MAX_REASON;
pub(super) use reports::read_weekly_report as weekly_report;
pub(super) use skills::{today, weeks_of};

/// Returns the routes below `/api`, plus `/healthz` and `/readyz`.
pub(super) fn router(cache: Arc<ResponseCache>, needs_token: bool) -> Router<Arc<App>> {
    let stored = OpenApiRouter::new()
        .routes(routes!(grades::recent))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::one))
        .routes(routes!(sessions::search))
        .routes(routes!(reports::list))
        .routes(routes!(reports::one))
        .routes(routes!(reports::patterns))
        .routes(routes!(improvement::gaps))
        .routes(routes!(improvement::proposals))
        .routes(routes!(improvement::proposal))
        .routes(routes!(improvement::accept_proposal))
        .routes(routes!(improvement::reject_proposal))
        .routes(routes!(improvement::advise))
        .layer(from_fn_with_state(cache, cache::cache_responses));
    // Not cached. Changes of files and of the queue are not detected, and clients that change
    // skills or reflections read them back immediately.
    let fresh = OpenApiRouter::new()
        .routes(routes!(grades::of_session, grades::queue))
        .routes(routes!(runs::list))
        .routes(routes!(runs::one))
        .routes(routes!(runs::cases))
        .routes(routes!(runs::case))
        .routes(routes!(skills::list))
        .routes(routes!(skills::one))
        .routes(routes!(skills::execution))
        .routes(routes!(skills::message))
        .routes(routes!(skills::disable))
        .routes(routes!(skills::promote))
        .routes(routes!(skills::rollback))
        .routes(routes!(reflections::grade))
        .routes(routes!(reflections::submit))
        .routes(routes!(reflections::scores))
        .routes(routes!(reflections::weak))
        .layer(from_fn(cache::tag_responses));
    let health = OpenApiRouter::new().routes(routes!(live)).routes(routes!(ready));
    let (router, paths) = stored.merge(fresh).merge(health).split_for_parts();
    let described = describe::document(paths, needs_token).to_string();
    let described = get(async move || ([(CONTENT_TYPE, "application/json")], described));
    router.route("/api/openapi.json", described.layer(from_fn(cache::tag_responses)))
}

/// Time limit for the database to respond.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// Check that the process is alive
///
/// Does not access the database; see `/readyz`.
#[utoipa::path(get, path = "/healthz", operation_id = "get_health", tag = "health",
    responses((status = 200, body = String, content_type = "text/plain")))]
async fn live() -> &'static str {
    "ok\n"
}

/// Check that the server is ready
///
/// Reads from the database, which has 2 s to respond. Also returns 503 while records of skills
/// cannot be written.
#[utoipa::path(get, path = "/readyz", operation_id = "get_readiness", tag = "health",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 503, description = "The database fails, or is too slow")))]
async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    let not = |detail| Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(5);
    match tokio::time::timeout(READY_WITHIN, app.store.check()).await {
        Err(_) => Err(not("the database did not answer within 2 s")),
        Ok(Err(error)) => {
            tracing::warn!("not ready: {error}");
            Err(not("the database fails; the log of the server says why"))
        }
        Ok(Ok(())) if app.skills.is_failing() => Err(not("the database takes no records")),
        Ok(Ok(())) => Ok("ready\n"),
    }
}
