//! The pages for people. Everything is embedded; no page asks another machine for anything.

use std::sync::Arc;

use axum::Router;

use super::App;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
}
