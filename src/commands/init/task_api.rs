//! Finds in an `OpenAPI` description the calls that an `http` system under test needs: one that takes
//! a task in words, and one that tells what became of it. Pure; nothing is asked of the server.

use selftest_text::one_line;
use serde_json::{Map, Value};

/// Names of the field that takes the words, the likeliest first.
const PROMPTS: [&str; 8] =
    ["prompt", "message", "query", "question", "input", "text", "instruction", "content"];

const IDS: [&str; 5] = ["task_id", "id", "job_id", "run_id", "taskId"];

const STATUSES: [&str; 2] = ["status", "state"];

const OUTPUTS: [&str; 6] = ["output", "result", "answer", "response", "text", "message"];

/// Most paths of a description that are looked at.
const MAX_PATHS: usize = 2_000;

/// Most bytes of a path or an address.
const MAX_TEXT: usize = 200;

/// Where a server listens whose description names no address of this machine.
const HERE: &str = "http://127.0.0.1:8000";

/// The calls of a task API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskApi {
    /// An address of this machine: tests do not go to a server elsewhere because a file names it.
    pub(super) base_url: String,
    /// The address elsewhere that the description names.
    pub(super) elsewhere: Option<String>,
    pub(super) submit: String,
    pub(super) prompt_field: String,
    /// With `{task_id}` in it.
    pub(super) poll: String,
    /// Whether a DELETE of that path is described: it ends a task.
    pub(super) can_cancel: bool,
    /// Fields of the answers, as far as the description tells.
    pub(super) id_field: String,
    pub(super) status_field: String,
    pub(super) output_field: String,
}

impl TaskApi {
    /// The first pair of calls that fits; none where no call takes words, or nothing tells what
    /// became of a task.
    pub(super) fn of(document: &Value) -> Option<Self> {
        let paths = document.get("paths")?.as_object()?;
        let (base_url, elsewhere) = addresses(document);
        for (path, item) in paths.iter().take(MAX_PATHS) {
            if path.contains('{') || !is_plain(path) {
                continue;
            }
            let Some(post) = item.get("post") else { continue };
            let Some(prompt_field) = prompt_field(document, post) else { continue };
            let Some((poll, item)) = poll_item(paths, path) else { continue };
            let Some(get) = item.get("get") else { continue };
            let (submitted, polled) = (answer(document, post), answer(document, get));
            let first = |schema: Option<&Value>, names: &[&str]| {
                let found = names.iter().find(|name| has_field(document, schema, name));
                found.unwrap_or(&names[0]).to_string()
            };
            return Some(Self {
                base_url,
                elsewhere,
                submit: path.clone(),
                prompt_field,
                poll,
                can_cancel: item.get("delete").is_some(),
                id_field: first(submitted, &IDS),
                status_field: first(polled, &STATUSES),
                output_field: first(polled, &OUTPUTS),
            });
        }
        None
    }
}

/// Where to test, and the address elsewhere that is named instead.
fn addresses(document: &Value) -> (String, Option<String>) {
    let servers = document.get("servers").and_then(Value::as_array);
    let urls = servers.into_iter().flatten().filter_map(|server| server.get("url")?.as_str());
    let mut elsewhere = None;
    for url in urls.take(20) {
        let url = one_line(url, MAX_TEXT);
        let host = url.strip_prefix("http://").unwrap_or_default();
        let host = host.split(['/', ':']).next().unwrap_or_default();
        if host == "localhost" || host == "127.0.0.1" {
            return (url.trim_end_matches('/').to_owned(), None);
        }
        if url.starts_with("http") {
            elsewhere.get_or_insert(url);
        }
    }
    (HERE.to_owned(), elsewhere)
}

fn is_plain(path: &str) -> bool {
    path.starts_with('/')
        && path.len() <= MAX_TEXT
        && path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-{}~".contains(c))
}

/// The path below this one with one parameter at its end, and what can be done with it.
fn poll_item<'a>(paths: &'a Map<String, Value>, submit: &str) -> Option<(String, &'a Value)> {
    paths.iter().take(MAX_PATHS).find_map(|(path, item)| {
        let rest = path.strip_prefix(submit.trim_end_matches('/'))?.strip_prefix("/{")?;
        let name = rest.strip_suffix('}')?;
        let plain = !name.contains(['/', '{', '}']) && is_plain(path);
        let poll = || format!("{}/{{task_id}}", submit.trim_end_matches('/'));
        plain.then(|| (poll(), item))
    })
}

fn prompt_field(document: &Value, call: &Value) -> Option<String> {
    let body = resolved(document, call.get("requestBody")?)?;
    let schema = json_schema(body)?;
    let found = PROMPTS.iter().find(|name| has_field(document, Some(schema), name))?;
    Some((*found).to_owned())
}

/// The schema of the JSON that a call answers with, where all goes well.
fn answer<'a>(document: &'a Value, call: &'a Value) -> Option<&'a Value> {
    let answers = call.get("responses")?.as_object()?;
    let good = answers.iter().find(|(code, _)| code.starts_with('2'))?;
    json_schema(resolved(document, good.1)?)
}

fn json_schema(body: &Value) -> Option<&Value> {
    let content = body.get("content")?.as_object()?;
    let json = content.iter().find(|(kind, _)| kind.contains("json"))?;
    json.1.get("schema")
}

fn has_field(document: &Value, schema: Option<&Value>, name: &str) -> bool {
    let schema = schema.and_then(|schema| resolved(document, schema));
    schema.and_then(|schema| schema.get("properties")?.get(name)).is_some()
}

/// Resolves a reference within the document; one step, so that none can lead in a circle.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> Option<&'a Value> {
    match value.get("$ref") {
        None => Some(value),
        Some(Value::String(reference)) => document.pointer(reference.strip_prefix('#')?),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document() -> Value {
        json!({
            "openapi": "3.1.0",
            "servers": [{"url": "https://api.example.org"}, {"url": "http://localhost:9000/"}],
            "paths": {
                "/health": {"get": {}},
                "/v1/runs": {"post": {
                    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/New"}}}},
                    "responses": {"202": {"content": {"application/json": {"schema":
                        {"properties": {"run_id": {}}}}}}},
                }},
                "/v1/runs/{id}": {"get": {"responses": {"200": {"content": {"application/json": {"schema":
                    {"properties": {"state": {}, "answer": {}}}}}}}}},
            },
            "components": {"schemas": {"New": {"properties": {"question": {"type": "string"}}}}},
        })
    }

    #[test]
    fn a_pair_of_calls_is_found() {
        let api = TaskApi::of(&document()).unwrap();
        assert_eq!(api.base_url, "http://localhost:9000");
        assert_eq!((api.submit.as_str(), api.poll.as_str()), ("/v1/runs", "/v1/runs/{task_id}"));
        let fields = [&api.prompt_field, &api.id_field, &api.status_field, &api.output_field];
        assert!(!api.can_cancel);
        assert_eq!(fields, ["question", "run_id", "state", "answer"]);
    }

    #[test]
    fn a_server_elsewhere_is_not_tested_because_a_file_names_it() {
        let mut document = document();
        document["servers"] = json!([{"url": "https://api.example.org"}]);
        let api = TaskApi::of(&document).unwrap();
        assert_eq!(api.base_url, HERE);
        assert_eq!(api.elsewhere.as_deref(), Some("https://api.example.org"));
    }

    #[test]
    fn what_does_not_fit_is_no_task_api() {
        for (pointer, value) in [
            ("/paths", json!([])),
            ("/paths/~1v1~1runs~1{id}", json!({})),
            ("/components/schemas/New", json!({"$ref": "#/components/schemas/New"})),
            ("/components/schemas/New/properties", json!({"n": 1})),
        ] {
            let mut document = document();
            *document.pointer_mut(pointer).unwrap() = value;
            assert_eq!(TaskApi::of(&document), None, "{pointer}");
        }
        let odd = json!({"paths": {"/a\n- evil": {"post": {}}}, "servers": "x"});
        assert_eq!(TaskApi::of(&odd), None);
    }
}
