//! The API in words of `OpenAPI` 3.1: what the handlers say of themselves, and what is the same for
//! all of them.

use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

use super::super::problem::{MEDIA_TYPE, Problem};
use selftest_harness::report::document;

/// The name of the token in the document.
const TOKEN: &str = "token";

/// The document at `/api/openapi.json` of a server that asks for a token or not.
pub(super) fn document(paths: OpenApi, needs_token: bool) -> Value {
    // Of our own types, all of which are plain data.
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
                        once there is one, except for `/healthz`, `/favicon.ico` and `/login`.",
    });
    if needs_token {
        api["security"] = json!([{ TOKEN: [] }]);
    }
    let schemas = &mut api["components"]["schemas"];
    let mut report = document::schema();
    if let Some(report) = report.as_object_mut() {
        report.remove("$schema");
    }
    schemas["Case"] = report["properties"]["cases"]["items"].clone();
    schemas["Report"] = report;
    let name = <Problem as utoipa::ToSchema>::name();
    schemas[&*name] = schema_of::<Problem>();
    let problem = json!({
        "description": "What went wrong",
        "content": { MEDIA_TYPE: { "schema": { "$ref": format!("#/components/schemas/{name}") } } },
    });
    let operations = api["paths"].as_object_mut().into_iter().flatten();
    for (_, methods) in operations {
        for (method, operation) in methods.as_object_mut().into_iter().flatten() {
            let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
            for parameter in parameters.into_iter().flatten() {
                // One that is not given is left out: there is no null in a URL.
                if let Some(kind) = parameter.pointer_mut("/schema/type")
                    && let Some(first) = kind.as_array().and_then(|kinds| kinds.first()).cloned()
                {
                    *kind = first;
                }
            }
            let responses = &mut operation["responses"];
            for response in responses.as_object_mut().into_iter().flat_map(Map::values_mut) {
                // The format wants one; what the answer is, its schema says.
                if response.get("description").is_none() {
                    response["description"] = "The answer".into();
                }
            }
            responses["4XX"] = problem.clone();
            responses["5XX"] = problem.clone();
            if method == "get" {
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
