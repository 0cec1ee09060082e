//! Error responses as `application/problem+json` (RFC 9457), regardless of what failed.

use std::any::Any;
use std::time::Duration;

use axum::Json;
use axum::extract::Request;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use selftest_store::StoreError;
use selftest_text::one_line;

/// Media type of error responses.
pub(super) const MEDIA_TYPE: &str = "application/problem+json";

/// Time limit of a request.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Headers to keep when a response body is replaced by a problem.
const KEPT_HEADERS: [HeaderName; 2] = [ALLOW, RETRY_AFTER];

/// An error response as defined by RFC 9457.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Problem {
    /// `about:blank`: the status determines the kind of problem.
    r#type: &'static str,
    /// Reason phrase of the status.
    pub(super) title: &'static str,
    /// HTTP status.
    status: u16,
    /// Description of this occurrence.
    pub(super) detail: String,
    #[serde(skip)]
    #[schema(ignore)]
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self {
            r#type: "about:blank",
            title,
            status: status.as_u16(),
            detail: detail.into(),
            header: None,
        }
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Creates an internal error. Details are logged and not sent to the client.
    pub(super) fn internal(error: &dyn std::fmt::Display) -> Self {
        // Only the log gets the cause: it may contain paths or SQL, which are none of a client's
        // business.
        tracing::error!("{error}");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the request could not be answered; the log of the server says why",
        )
    }

    /// Creates an error for unreadable reports of runs.
    pub(super) fn unreadable_reports(error: &std::io::Error) -> Self {
        Self::internal(&format!("the reports of runs: {error}"))
    }

    pub(super) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }

    /// Sets the `Retry-After` header.
    pub(super) fn retry_after(self, seconds: u16) -> Self {
        self.with_header(RETRY_AFTER, seconds.into())
    }
}

impl IntoResponse for Problem {
    fn into_response(mut self) -> Response {
        let header = self.header.take().map(|header| *header);
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&self)).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        response.headers_mut().extend(header);
        // Read by `pages::show_problems`, which replaces the body.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy { .. } => {
                let detail = "the database is locked by another process";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(1)
            }
            StoreError::Unreachable { .. } => {
                tracing::warn!("{error}");
                let detail = "the database cannot be reached";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(5)
            }
            StoreError::Disk { .. } => {
                tracing::warn!("{error}");
                let detail = "the disk of the database is full, or fails";
                Self::new(StatusCode::INSUFFICIENT_STORAGE, detail).retry_after(30)
            }
            error => Self::internal(&error),
        }
    }
}

/// Handles unknown paths.
pub(super) async fn unknown_path(uri: Uri) -> Problem {
    Problem::not_found(format!("there is nothing at {}", one_line(uri.path(), 200)))
}

/// Handles methods that a path does not support. Axum lists the supported ones in `Allow`.
pub(super) async fn wrong_method() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not know the method")
}

/// Handles panics, which are logged separately.
pub(super) fn handle_panic(_: Box<dyn Any + Send>) -> Response {
    Problem::internal(&"a request ended in a panic").into_response()
}

/// Middleware that limits the time of a request. Sending the body is not limited.
pub(super) async fn time_limit(request: Request, next: Next) -> Response {
    tokio::time::timeout(TIME_LIMIT, next.run(request)).await.unwrap_or_else(|_| {
        let detail = format!("the answer took longer than {} s", TIME_LIMIT.as_secs());
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(1).into_response()
    })
}

/// Middleware that converts plain-text errors of libraries to problems. HTML pages are unchanged.
pub(super) async fn convert_plain_errors(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    let media = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let explained =
        media.is_some_and(|media| media == MEDIA_TYPE || media.starts_with("text/html"));
    if explained || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    // Such errors come from the framework's own extractors and limits, before any handler ran.
    let detail = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "the body of the request is too large",
        _ => "the request could not be understood",
    };
    let mut problem = Problem::new(status, detail).into_response();
    // Without `Allow`, a 405 is incomplete (RFC 9110, section 15.5.6).
    for name in KEPT_HEADERS {
        if let Some(value) = response.headers().get(&name) {
            problem.headers_mut().insert(name, value.clone());
        }
    }
    problem
}
