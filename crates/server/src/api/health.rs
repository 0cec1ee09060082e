//! Liveness and readiness checks for monitoring. They need no token and reveal nothing else.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;

use super::super::App;
use super::super::problem::Problem;

/// Time limit for the database to respond.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// Check that the process is alive
///
/// Does not access the database; see `/readyz`.
#[utoipa::path(get, path = "/healthz", operation_id = "get_health", tag = "health",
    responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn live() -> &'static str {
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
