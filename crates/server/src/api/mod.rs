//! The JSON API, one file per resource. Reads the store and the reports of runs.

mod describe;
mod grades;
mod health;
mod idempotency;
mod improvement;
mod input;
mod reflections;
mod reports;
mod runs;
mod search;
mod sessions;
mod skills;
mod types;

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use improvement::MAX_REASON;
pub(super) use reports::read_weekly_report as weekly_report;
pub(super) use skills::{today, weeks_of};

use super::App;
use super::cache::{self, ResponseCache};

/// Returns the routes below `/api`, plus `/healthz` and `/readyz`.
pub(super) fn router(cache: Arc<ResponseCache>, needs_token: bool) -> Router<Arc<App>> {
    let stored = OpenApiRouter::new()
        .routes(routes!(grades::recent))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::one))
        .routes(routes!(search::search))
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
    let health = OpenApiRouter::new().routes(routes!(health::live)).routes(routes!(health::ready));
    let (router, paths) = stored.merge(fresh).merge(health).split_for_parts();
    let described = describe::document(paths, needs_token).to_string();
    let described = get(async move || ([(CONTENT_TYPE, "application/json")], described));
    router.route("/api/openapi.json", described.layer(from_fn(cache::tag_responses)))
}
