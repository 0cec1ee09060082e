//! Errors as programs read them: `application/problem+json` (RFC 9457), whatever went wrong.

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

/// The media type.
pub(super) const MEDIA_TYPE: &str = "application/problem+json";

/// After that time a request is given up.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Headers of an answer that stay when its body becomes a problem.
const KEPT: [HeaderName; 2] = [ALLOW, RETRY_AFTER];

/// The kind of error, by RFC 9457.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Problem {
    /// `about:blank`: the status says what kind of problem it is.
    r#type: &'static str,
    /// The status in words.
    pub(super) title: &'static str,
    /// The HTTP status.
    status: u16,
    /// This occurrence of it.
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

    /// A fault of ours: said in the log, not to the caller.
    pub(super) fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!("{error}");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the request could not be answered; the log of the server says why",
        )
    }

    /// The reports of runs cannot be read.
    pub(super) fn unreadable(error: &std::io::Error) -> Self {
        Self::internal(&format!("the reports of runs: {error}"))
    }

    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }

    /// The caller may try again after so many seconds.
    pub(super) fn retry_after(self, seconds: u16) -> Self {
        self.with(RETRY_AFTER, seconds.into())
    }
}

impl IntoResponse for Problem {
    fn into_response(mut self) -> Response {
        let header = self.header.take().map(|header| *header);
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&self)).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        response.headers_mut().extend(header);
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

/// The answer to a path that nothing is at.
pub(super) async fn unknown_path(uri: Uri) -> Problem {
    Problem::not_found(format!("there is nothing at {}", one_line(uri.path(), 200)))
}

/// The answer to a method that a path does not know. Which ones it does is in `Allow`.
pub(super) async fn wrong_method() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not know the method")
}

/// The answer where a handler panicked. The panic itself is in the log.
pub(super) fn panicked(_: Box<dyn Any + Send>) -> Response {
    Problem::internal(&"a request ended in a panic").into_response()
}

/// Gives up on a request that takes too long. The body of an answer may take its time.
pub(super) async fn time_limit(request: Request, next: Next) -> Response {
    tokio::time::timeout(TIME_LIMIT, next.run(request)).await.unwrap_or_else(|_| {
        let detail = format!("the answer took longer than {} s", TIME_LIMIT.as_secs());
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(1).into_response()
    })
}

/// Turns errors that libraries answer with plain text into problems; leaves pages alone.
pub(super) async fn explain(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    let media = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let explained =
        media.is_some_and(|media| media == MEDIA_TYPE || media.starts_with("text/html"));
    if explained || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let detail = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "the body of the request is too large",
        _ => "the request could not be understood",
    };
    let mut problem = Problem::new(status, detail).into_response();
    for name in KEPT {
        if let Some(value) = response.headers().get(&name) {
            problem.headers_mut().insert(name, value.clone());
        }
    }
    problem
}
