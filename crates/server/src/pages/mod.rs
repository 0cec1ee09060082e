//! The pages for people. Everything is embedded; no page asks another machine for anything.
//!
//! Rendered on the server and readable without JavaScript. All text of sessions and models is
//! escaped by the templates, after characters that hide or reorder text were made visible.

mod assets;
mod calls;
mod case;
mod experiment;
mod gaps;
mod jobs;
mod link;
mod proposal;
mod quality;
mod reflections;
mod rules;
mod run;
mod selftests;
mod session;
mod sessions;
mod skill;
mod skills;
mod timeline;
mod weekly;
mod words;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};

pub(super) use run::{CaseRow, Progress};

use super::App;
use selftest_store::StoreError;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(sessions::list))
        .route("/sessions", get(sessions::list))
        .route("/sessions/{id}", get(session::page))
        .route("/sessions/{id}/panel", get(session::panel))
        .route("/selftests", get(selftests::list))
        .route("/selftests/trend.svg", get(selftests::trend))
        .route("/selftests/{run_id}", get(run::page))
        .route("/selftests/{run_id}/{scenario}", get(case::page))
        .route("/weekly", get(weekly::list))
        .route("/weekly/{week}", get(weekly::page))
        .route("/weekly/{week}/{picture}", get(weekly::picture))
        .route("/reflections", get(reflections::list))
        .route("/reflections/trend.svg", get(reflections::trend))
        .route("/skills", get(skills::list))
        .route("/skills/{id}", get(skill::page))
        .route("/jobs", get(jobs::page))
        .route("/gaps", get(gaps::list))
        .route("/proposals/{id}", get(proposal::page))
        .route("/proposals/{id}/accept", post(proposal::accepted))
        .route("/proposals/{id}/reject", post(proposal::rejected))
        .route("/assets/{digest}/{name}", get(assets::file))
        .route("/favicon.ico", get(assets::favicon))
}

/// What surrounds every page.
struct Frame {
    section: &'static str,
    style: &'static str,
    script: &'static str,
    icon: &'static str,
}

impl Frame {
    fn of(section: &'static str) -> Self {
        Self {
            section,
            style: assets::STYLE.path(),
            script: assets::SCRIPT.path(),
            icon: assets::ICON.path(),
        }
    }
}

/// Why there is no page, in words for the visitor.
#[derive(Debug)]
pub(super) struct PageError {
    status: StatusCode,
    message: String,
}

impl PageError {
    fn not_found(message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, message: message.into() }
    }

    fn bad_request(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message: message.into() }
    }

    /// The cause goes to the log: it may name paths.
    fn internal(what: &str, cause: &dyn std::fmt::Display) -> Self {
        tracing::error!("{what}: {cause}");
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self { status, message: format!("{what}; the log says more") }
    }
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        let page = Self::internal("the database cannot be read", &error);
        match error {
            StoreError::Busy { .. } | StoreError::Unreachable { .. } => {
                Self { status: StatusCode::SERVICE_UNAVAILABLE, ..page }
            }
            _ => page,
        }
    }
}

impl From<askama::Error> for PageError {
    fn from(error: askama::Error) -> Self {
        Self::internal("the page cannot be rendered", &error)
    }
}

#[derive(Template)]
#[template(path = "page/error.html")]
struct ErrorPage {
    frame: Frame,
    title: &'static str,
    message: String,
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let page = ErrorPage { frame: Frame::of(""), title, message: self.message };
        match page.render() {
            Ok(text) => (self.status, Html(text)).into_response(),
            Err(_) => (self.status, title).into_response(),
        }
    }
}

fn html(template: &impl Template) -> Result<Response, PageError> {
    Ok(([(header::CACHE_CONTROL, "no-cache")], Html(template.render()?)).into_response())
}

fn svg(text: String) -> Response {
    let headers = [(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, "no-cache")];
    (headers, text).into_response()
}

/// What reads files, away from the threads that answer others.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PageError> + Send + 'static,
) -> Result<T, PageError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(PageError::internal("the page could not be made", &error)))
}
