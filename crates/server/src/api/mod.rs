//! The JSON API, one file per resource, and its `OpenAPI` 3.1 document, which is generated from the
//! handlers' annotations. Reads the store and the reports of runs.

mod improvement;
mod input;
mod reflections;
mod reports;
mod runs;
mod sessions;
mod skills;
mod types;

pub(super) use improvement::MAX_REASON;
pub(super) use reports::read_weekly_report as weekly_report;
pub(super) use skills::{today, weeks_of};

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use selftest_reports::document;
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::cache::ResponseCache;
use crate::problem::{MEDIA_TYPE, Problem};
use crate::{App, cache};

/// Returns the routes below `/api`, plus `/healthz` and `/readyz`.
pub(super) fn router(cache: Arc<ResponseCache>, needs_token: bool) -> Router<Arc<App>> {
    let stored = OpenApiRouter::new()
        .routes(routes!(sessions::recent))
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
        .routes(routes!(sessions::of_session, sessions::queue))
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
    let described = document(paths, needs_token).to_string();
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

/// Name of the token's security scheme in the document.
const TOKEN: &str = "token";

/// An error common to many operations. Errors specific to one operation are declared at its
/// handler.
struct CommonError {
    status: &'static str,
    description: &'static str,
    operations: OperationFilter,
}

/// A subset of the operations.
enum OperationFilter {
    All,
    /// Operations below `/api`, which require the token, if there is one, and read the database.
    Api,
    /// Operations with a name in the path, or with a cursor.
    Named,
    /// Operations that change something.
    Changes,
    /// Operations with a request body.
    WithBody,
}

impl OperationFilter {
    fn matches(&self, path: &str, method: &str, operation: &Value) -> bool {
        match self {
            OperationFilter::All => true,
            OperationFilter::Api => path.starts_with("/api/"),
            OperationFilter::Named => {
                let parameters = operation["parameters"].as_array();
                let mut names = parameters.into_iter().flatten().map(|it| &it["name"]);
                path.contains('{') || names.any(|name| name == "cursor")
            }
            OperationFilter::Changes => method != "get",
            OperationFilter::WithBody => operation.get("requestBody").is_some(),
        }
    }
}

const COMMON_ERRORS: &[CommonError] = &[
    error("400", "The path, the query or the body is not as it is described", OperationFilter::All),
    error(
        "401",
        "The token is missing or wrong, where the server asks for one",
        OperationFilter::Api,
    ),
    error("403", "A page of another site makes the request", OperationFilter::Changes),
    error(
        "404",
        "There is nothing of that name, or no page at that cursor",
        OperationFilter::Named,
    ),
    error("413", "The body is too large: at most 64 KiB", OperationFilter::WithBody),
    error("415", "The body is not JSON, or does not say so", OperationFilter::WithBody),
    error("421", "The server does not answer to that host name", OperationFilter::All),
    error("429", "Too many wrong tokens have come from that address", OperationFilter::Api),
    error("500", "A fault of the server, which its log describes", OperationFilter::Api),
    error(
        "503",
        "The database is busy or cannot be reached; try again later",
        OperationFilter::Api,
    ),
    error("507", "The disk of the database is full, or fails", OperationFilter::Api),
];

const fn error(
    status: &'static str,
    description: &'static str,
    of: OperationFilter,
) -> CommonError {
    CommonError { status, description, operations: of }
}

/// Returns the document at `/api/openapi.json`.
fn document(paths: OpenApi, needs_token: bool) -> Value {
    // Serialising our own plain data types cannot fail.
    let mut api = serde_json::to_value(paths).unwrap_or_default();
    api["info"] = json!({
        "title": "selftest",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Grades of recorded agent sessions, selftest runs, weekly reports and skills. \
                        Where the server asks for a token, it is sent as `Authorization: Bearer`. \
                        Lists are paged: `next` of one page is the `cursor` of the following one.",
        "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
    });
    api["components"]["securitySchemes"][TOKEN] = json!({
        "type": "http",
        "scheme": "bearer",
        "description": "The token that the server was started with. It is needed for every path \
                        once there is one, except for `/healthz`, `/readyz`, `/favicon.ico` and `/login`.",
    });
    if needs_token {
        api["security"] = json!([{ TOKEN: [] }]);
    }
    let schemas = &mut api["components"]["schemas"];
    let mut report = document::schema();
    // A schema names its dialect at its root only, and here it is a part of another document.
    if let Some(report) = report.as_object_mut() {
        report.remove("$schema");
    }
    schemas["Case"] = report["properties"]["cases"]["items"].clone();
    schemas["Report"] = report;
    let name = <Problem as utoipa::ToSchema>::name();
    schemas[&*name] = schema_of::<Problem>();
    let problem = json!({
        MEDIA_TYPE: { "schema": { "$ref": format!("#/components/schemas/{name}") } },
    });
    let operations = api["paths"].as_object_mut().into_iter().flatten();
    for (path, methods) in operations {
        for (method, operation) in methods.as_object_mut().into_iter().flatten() {
            let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
            for parameter in parameters.into_iter().flatten() {
                // Optional parameters are omitted: a URL cannot contain null.
                if let Some(kind) = parameter.pointer_mut("/schema/type")
                    && let Some(first) = kind.as_array().and_then(|kinds| kinds.first()).cloned()
                {
                    *kind = first;
                }
            }
            let errors: Vec<_> = COMMON_ERRORS
                .iter()
                .filter(|error| error.operations.matches(path, method, operation))
                .collect();
            let responses = &mut operation["responses"];
            for CommonError { status, description, .. } in errors {
                if responses.get(*status).is_none() {
                    responses[*status] = json!({ "description": description });
                }
            }
            for (status, response) in responses.as_object_mut().into_iter().flatten() {
                if status.starts_with(['4', '5']) {
                    response["content"] = problem.clone();
                }
            }
            for response in responses.as_object_mut().into_iter().flat_map(Map::values_mut) {
                // The format requires a description; the schema already describes the response.
                if response.get("description").is_none() {
                    response["description"] = "The answer".into();
                }
            }
            if method == "get" && path.starts_with("/api/") {
                responses["200"]["headers"]["ETag"] = json!({
                    "description": "Of this answer; send it back as If-None-Match",
                    "schema": { "type": "string" },
                });
                responses["304"] = json!({ "description": "The answer is as it was" });
            }
        }
    }
    api
}

fn schema_of<T: utoipa::PartialSchema>() -> Value {
    serde_json::to_value(T::schema()).unwrap_or_default()
}
