//! The web pages. All assets are embedded, and no page loads anything from another host.
//!
//! Pages are rendered on the server and readable without JavaScript. Templates escape all text of
//! sessions and models, after characters that hide or reorder text were made visible.

mod filters;
mod gaps;
mod jobs;
mod label;
mod reflections;
mod run;
mod session;
mod sessions;
mod skills;
mod transcript;
mod weekly;

use std::sync::{Arc, LazyLock};

use askama::Template;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};

use super::problem::Problem;
use super::{App, links, run_blocking};
use selftest_store::Cursor;

pub(super) use run::{CaseRow, RunProgress, shared_causes};

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(sessions::list))
        .route("/sessions", get(sessions::list))
        .route("/sessions/{id}", get(session::page))
        .route("/sessions/{id}/panel", get(session::panel))
        .route("/sessions/{id}/transcript", get(transcript::page))
        .route("/sessions/{id}/events", get(transcript::find_event))
        .route("/sessions/{id}/events/{number}", get(transcript::event))
        .route("/search", get(sessions::search_page))
        .route("/selftests", get(run::list))
        .route("/selftests/trend.svg", get(run::trend))
        .route("/selftests/{run_id}", get(run::page))
        .route("/selftests/{run_id}/{scenario}", get(run::case_page))
        .route("/label/{run_id}", get(label::page).post(label::submit_label))
        .route("/weekly", get(weekly::list))
        .route("/weekly/{week}", get(weekly::page))
        .route("/weekly/{week}/{picture}", get(weekly::picture))
        .route("/reflections", get(reflections::list))
        .route("/reflections/trend.svg", get(reflections::trend))
        .route("/skills", get(skills::list))
        .route("/skills/{id}", get(skills::page))
        .route("/jobs", get(jobs::page))
        .route("/gaps", get(gaps::list))
        .route("/proposals/{id}", get(gaps::proposal))
        .route("/proposals/{id}/accept", post(gaps::accept_form))
        .route("/proposals/{id}/reject", post(gaps::reject_form))
        .route("/assets/{digest}/{name}", get(file))
        .route("/favicon.ico", get(favicon))
}

#[derive(Template)]
#[template(path = "page/error.html")]
struct ErrorPage {
    section: &'static str,
    problem: Problem,
}

/// Middleware that renders problems as HTML pages for browsers. Programs receive JSON.
pub(super) async fn show_problems(request: Request, next: Next) -> Response {
    let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let is_browser = accept.is_some_and(wants_page);
    let mut response = next.run(request).await;
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    if is_browser && let Ok(text) = (ErrorPage { section: "", problem }).render() {
        *response.body_mut() = Body::from(text);
        // These describe the replaced body, which may have been compressed.
        for name in [header::CONTENT_LENGTH, header::CONTENT_ENCODING] {
            response.headers_mut().remove(name);
        }
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, html);
    }
    // The body depends on `Accept`.
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// Returns true if a client prefers HTML to JSON.
fn wants_page(accept: &str) -> bool {
    accept.contains("text/html") && !accept.contains("json")
}

impl From<askama::Error> for Problem {
    fn from(error: askama::Error) -> Self {
        Self::internal(&error)
    }
}

fn render_html(template: &impl Template) -> Result<Response, Problem> {
    Ok(([(header::CACHE_CONTROL, "no-cache")], Html(template.render()?)).into_response())
}

fn svg_response(text: String) -> Response {
    let headers = [(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, "no-cache")];
    (headers, text).into_response()
}

/// Quotes untrusted text for a message.
fn quote(text: &str) -> String {
    format!("{:?}", filters::one_line(text))
}

/// Parses a pagination cursor; an empty text means the first page.
fn parse_cursor(text: &str, fits: impl FnOnce(&Cursor) -> bool) -> Result<Option<Cursor>, Problem> {
    if text.is_empty() {
        return Ok(None);
    }
    let cursor = text.parse().ok().filter(fits);
    cursor
        .map(Some)
        .ok_or_else(|| Problem::bad_request("after is not of this list: begin at its first page"))
}

struct StaticAsset {
    name: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
    path: LazyLock<String>,
}

static STYLE: StaticAsset = StaticAsset {
    name: "style.css",
    media_type: "text/css; charset=utf-8",
    bytes: include_bytes!("../../assets/style.css"),
    path: LazyLock::new(|| STYLE.address()),
};

static SCRIPT: StaticAsset = StaticAsset {
    name: "app.js",
    media_type: "text/javascript; charset=utf-8",
    bytes: include_bytes!("../../assets/app.js"),
    path: LazyLock::new(|| SCRIPT.address()),
};

static ICON: StaticAsset = StaticAsset {
    name: "favicon.svg",
    media_type: "image/svg+xml",
    bytes: include_bytes!("../../assets/favicon.svg"),
    path: LazyLock::new(|| ICON.address()),
};

impl StaticAsset {
    fn address(&self) -> String {
        let digest = selftest_text::digest::sha256_hex(self.bytes);
        format!("/assets/{}/{}", &digest[..12], self.name)
    }

    /// Returns the URL path of the asset.
    fn path(&'static self) -> &'static str {
        &self.path
    }

    fn response(&self, caching: &'static str) -> Response {
        let headers = [(header::CONTENT_TYPE, self.media_type), (header::CACHE_CONTROL, caching)];
        (headers, self.bytes).into_response()
    }
}

async fn file(Path((digest, name)): Path<(String, String)>) -> Response {
    let wanted = format!("/assets/{digest}/{name}");
    match [&STYLE, &SCRIPT, &ICON].into_iter().find(|asset| asset.path() == wanted) {
        // The digest is part of the address: another version has another one.
        Some(asset) => asset.response("public, max-age=31536000, immutable"),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Serves the icon at its default path, which browsers always request.
async fn favicon() -> Response {
    ICON.response("no-cache")
}
