//! Whether the server lives, and whether it can do its work. For whoever watches it: no token is
//! needed, and nothing is said beyond that.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;

use super::super::App;
use super::super::problem::Problem;

/// How long the database may take to answer.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// Whether the process lives
///
/// Asks nothing of the database: see `/readyz`.
#[utoipa::path(get, path = "/healthz", operation_id = "get_health", tag = "health",
    responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Whether the server can do its work
///
/// Reads from the database, which has 2 s to answer. 503 also while records of skills cannot be
/// written.
#[utoipa::path(get, path = "/readyz", operation_id = "get_readiness", tag = "health",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 503, description = "The database fails, or is too slow")))]
pub(super) async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
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
