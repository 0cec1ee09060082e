//! The JSON API. Reads the store; renders no page.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use super::App;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/healthz", get(async || "ok\n"))
}
