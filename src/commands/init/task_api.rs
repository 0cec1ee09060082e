//! Finds in an `OpenAPI` description the calls that an `http` system under test needs: one that takes
//! a prompt, and, unless it answers at once, one that polls the task. Pure; no request is
//! sent to the server.

use selftest_text::one_line;
use serde_json::{Map, Value};

/// Names of the field for the prompt, the likeliest first.
const PROMPTS: [&str; 9] =
    ["prompt", "message", "query", "question", "input", "text", "instruction", "content", MESSAGES];

/// The field for all turns of a conversation.
const MESSAGES: &str = "messages";

const IDS: [&str; 5] = ["task_id", "id", "job_id", "run_id", "taskId"];

const STATUSES: [&str; 2] = ["status", "state"];

pub(super) const OUTPUTS: [&str; 8] =
    ["output", "result", "answer", "response", "reply", "text", "message", "content"];

/// Names of the field that continues a conversation.
const SESSIONS: [&str; 6] =
    ["session_id", "conversation_id", "thread_id", "sessionId", "conversationId", "threadId"];

/// Most paths of a description that are looked at.
const MAX_PATHS: usize = 2_000;

/// Most bytes of a path or an address.
const MAX_TEXT: usize = 200;

/// Where a server listens whose description names no address of this machine.
const HERE: &str = "http://127.0.0.1:8000";

/// An API that takes a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentApi {
    /// An address of this machine: tests do not go to a server elsewhere because a file names it.
    pub(super) base_url: String,
    /// The address elsewhere that the description names.
    pub(super) elsewhere: Option<String>,
    /// The path that takes the prompt by POST.
    pub(super) path: String,
    pub(super) prompt_field: String,
    /// What the body of an example holds besides, such as a user.
    pub(super) others: Map<String, Value>,
    /// JSON Pointer to the output in the answer, as far as the description says; empty for the whole
    /// answer.
    pub(super) output: String,
    pub(super) way: ApiWay,
}

/// The way to an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ApiWay {
    /// The response is the answer.
    Ask {
        /// The field that continues a conversation, if there is one.
        session_field: Option<&'static str>,
    },
    /// The response names a task, which is polled.
    Poll {
        /// With `{task_id}` in it.
        path: String,
        /// True if a DELETE of that path is described: it ends a task.
        can_cancel: bool,
        id_field: String,
        status_field: String,
    },
}

impl AgentApi {
    /// Returns the first pair of calls that fits, or else the first call that answers at once.
    /// `None` if no call takes a prompt.
    pub(super) fn of(document: &Value) -> Option<Self> {
        let paths = document.get("paths")?.as_object()?;
        let calls =
            // A path with a parameter belongs to a thing that exists already, such as a task.
            paths.iter().take(MAX_PATHS).filter(|(path, _)| !path.contains('{') && is_plain(path));
        let calls: Vec<PromptCall<'_>> = calls
            .filter_map(|(path, item)| {
                let post = item.get("post")?;
                let (schema, prompt_field) = prompt_field(document, post)?;
                Some(PromptCall { path, post, schema, prompt_field })
            })
            .collect();
        let polled = calls.iter().find_map(|call| call.polled(document, paths));
        // An answer whose form is described is surer than one whose form is open.
        polled
            .or_else(|| calls.iter().find_map(|call| call.asked(document, true)))
            .or_else(|| calls.iter().find_map(|call| call.asked(document, false)))
    }

    /// Reads the call from the first example of a text that sends a request to this machine by
    /// `curl`.
    pub(super) fn of_curl(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let is_call =
            |line: &str| line.trim_start_matches([' ', '\t', '$', '>', '`']).starts_with("curl ");
        let starts = (0..lines.len()).filter(|at| is_call(lines[*at])).take(MAX_CALLS);
        starts.filter_map(|at| command_at(&lines[at..])).find_map(|words| Self::of_call(&words))
    }

    fn of_call(words: &[String]) -> Option<Self> {
        let data = words.windows(2).find(|two| DATA_FLAGS.contains(&two[0].as_str()))?;
        let mut others = serde_json::from_str::<Map<String, Value>>(&data[1]).ok()?;
        let (base_url, path) = words.iter().find_map(|word| address_here(word))?;
        let holds_prompt = |name: &&&str| match others.get(**name) {
            Some(Value::String(_)) => **name != MESSAGES,
            Some(Value::Array(_)) => **name == MESSAGES,
            _ => false,
        };
        let prompt_field = (*PROMPTS.iter().find(holds_prompt)?).to_owned();
        let session_field = SESSIONS.into_iter().find(|name| others.contains_key(*name));
        for name in session_field.iter().copied().chain([prompt_field.as_str()]) {
            others.remove(name);
        }
        let way = ApiWay::Ask { session_field };
        // An example seldom shows the response.
        let output = format!("/{}", OUTPUTS[0]);
        Some(Self { base_url, elsewhere: None, path, prompt_field, others, output, way })
    }

    /// True if each call sends all turns of the conversation.
    pub(super) fn sends_turns(&self) -> bool {
        self.prompt_field == MESSAGES
    }

    /// The body of the call, with placeholders.
    pub(super) fn body(&self) -> Map<String, Value> {
        let mut body = self.others.clone();
        let prompt = if self.sends_turns() { "{messages}" } else { "{prompt}" };
        body.insert(self.prompt_field.clone(), Value::from(prompt));
        if let ApiWay::Ask { session_field: Some(field) } = self.way {
            body.insert(field.to_owned(), Value::from("{session_id}"));
        }
        body
    }

    /// Describes the call: `answers by POST /chat`.
    pub(super) fn describe(&self) -> String {
        let what = match self.way {
            ApiWay::Ask { .. } => "answers",
            ApiWay::Poll { .. } => "tasks",
        };
        format!("{what} by POST {}", self.path)
    }
}

/// Flags of `curl` before the body of a request.
const DATA_FLAGS: [&str; 5] = ["-d", "--data", "--data-raw", "--data-binary", "--json"];

/// Most examples of a text that are looked at, and most lines of one.
const MAX_CALLS: usize = 50;
const MAX_CALL_LINES: usize = 30;

/// Returns the words of the command that starts on the first line; a quoted body may end lines
/// below.
fn command_at(lines: &[&str]) -> Option<Vec<String>> {
    let mut command = String::new();
    for line in lines.iter().take(MAX_CALL_LINES) {
        command += line.trim_start_matches(['$', '>', '`']).trim_end_matches('`');
        if let Some(before) = command.strip_suffix('\\') {
            command = format!("{before} ");
            continue;
        }
        if let Some(words) = shlex::split(&command) {
            return Some(words);
        }
        command.push('\n');
    }
    None
}

/// Returns the address and the path of a URL of this machine.
fn address_here(word: &str) -> Option<(String, String)> {
    let rest = word.strip_prefix("http://").unwrap_or(word);
    let (host, path) = rest.split_once('/')?;
    let name = host.split(':').next().unwrap_or_default();
    let is_here = ["localhost", "127.0.0.1", "0.0.0.0"].contains(&name);
    let path = format!("/{path}");
    let is_host = host.chars().all(|c| c.is_ascii_alphanumeric() || ".:".contains(c));
    let host = host.replace("0.0.0.0", "127.0.0.1");
    (is_here && is_host && is_plain(&path) && !path.contains('{'))
        .then(|| (format!("http://{host}"), path))
}

/// A call that takes a prompt.
struct PromptCall<'a> {
    path: &'a str,
    post: &'a Value,
    schema: &'a Value,
    prompt_field: &'static str,
}

impl PromptCall<'_> {
    fn polled(&self, document: &Value, paths: &Map<String, Value>) -> Option<AgentApi> {
        // A task has one prompt.
        let (path, item) = poll_item(paths, self.path).filter(|_| self.prompt_field != MESSAGES)?;
        let (submitted, polled) = (answer(document, self.post), answer(document, item.get("get")?));
        let first = |schema: Option<&Value>, names: &[&'static str]| {
            first_field(document, schema, names).unwrap_or(names[0]).to_owned()
        };
        let way = ApiWay::Poll {
            path,
            can_cancel: item.get("delete").is_some(),
            id_field: first(submitted, &IDS),
            status_field: first(polled, &STATUSES),
        };
        Some(self.api(document, &first(polled, &OUTPUTS), way))
    }

    fn asked(&self, document: &Value, is_described: bool) -> Option<AgentApi> {
        let found = first_field(document, answer(document, self.post), &OUTPUTS);
        if found.is_some() != is_described {
            return None;
        }
        let session_field = first_field(document, Some(self.schema), &SESSIONS);
        let output = found.unwrap_or(OUTPUTS[0]);
        Some(self.api(document, output, ApiWay::Ask { session_field }))
    }

    fn api(&self, document: &Value, output: &str, way: ApiWay) -> AgentApi {
        let (base_url, elsewhere) = addresses(document);
        AgentApi {
            base_url,
            elsewhere,
            path: self.path.to_owned(),
            prompt_field: self.prompt_field.to_owned(),
            others: Map::new(),
            output: format!("/{output}"),
            way,
        }
    }
}

fn first_field(
    document: &Value,
    schema: Option<&Value>,
    names: &[&'static str],
) -> Option<&'static str> {
    names.iter().copied().find(|name| has_field(document, schema, name))
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
        // A relative address names no other server.
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
        // Whatever the description calls the parameter, the configuration has one name for it.
        let poll = || format!("{}/{{task_id}}", submit.trim_end_matches('/'));
        plain.then(|| (poll(), item))
    })
}

/// Returns the schema of what a call takes, and its field for the prompt.
fn prompt_field<'a>(document: &'a Value, call: &'a Value) -> Option<(&'a Value, &'static str)> {
    let body = resolved(document, call.get("requestBody")?)?;
    let schema = json_schema(body)?;
    Some((schema, first_field(document, Some(schema), &PROMPTS)?))
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
        let api = AgentApi::of(&document()).unwrap();
        assert_eq!(api.base_url, "http://localhost:9000");
        let fields = [&api.path, &api.prompt_field, &api.output];
        assert_eq!(fields, ["/v1/runs", "question", "/answer"]);
        let way = ApiWay::Poll {
            path: "/v1/runs/{task_id}".to_owned(),
            can_cancel: false,
            id_field: "run_id".to_owned(),
            status_field: "state".to_owned(),
        };
        assert_eq!(api.way, way);
    }

    /// As `FastAPI` describes a chat endpoint, with and without a model of its response.
    #[test]
    fn a_call_that_answers_at_once_is_found() {
        let mut document = json!({
            "paths": {
                "/echo": {"post": {
                    "requestBody": {"content": {"application/json": {"schema": {"properties": {"text": {}}}}}},
                    "responses": {"200": {"content": {"application/json": {"schema": {}}}}},
                }},
                "/z/chat": {"post": {
                    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Ask"}}}},
                    "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Said"}}}}},
                }},
            },
            "components": {"schemas": {
                "Ask": {"properties": {"message": {"type": "string"}, "conversation_id": {"type": "string"}}},
                "Said": {"properties": {"reply": {"type": "string"}}},
            }},
        });
        let api = AgentApi::of(&document).unwrap();
        let fields = [&api.path, &api.prompt_field, &api.output];
        assert_eq!(fields, ["/z/chat", "message", "/reply"]);
        assert_eq!(api.way, ApiWay::Ask { session_field: Some("conversation_id") });
        document["components"]["schemas"]["Said"] = json!({});
        let api = AgentApi::of(&document).unwrap();
        assert_eq!((&*api.path, &*api.output), ("/echo", "/output"));
        assert_eq!(api.way, ApiWay::Ask { session_field: None });
    }

    #[test]
    fn a_call_is_read_from_an_example() {
        let readme = "Try it:\n\n```sh\n$ curl http://localhost:3000/health\n\
                      curl -s -X POST http://localhost:3000/v1/ask \\\n  \
                      -H 'content-type: application/json' \\\n  \
                      -d '{\n  \"user\": \"demo\", \"question\": \"When?\",\n  \
                      \"thread_id\": \"1\"\n}'\n```\n";
        let api = AgentApi::of_curl(readme).unwrap();
        assert_eq!((&*api.base_url, &*api.path), ("http://localhost:3000", "/v1/ask"));
        let body = json!({"user": "demo", "question": "{prompt}", "thread_id": "{session_id}"});
        assert_eq!(Value::Object(api.body()), body);
        let turns = "`curl 0.0.0.0:80/c --json '{\"messages\": [{\"role\": \"user\"}]}'`";
        let api = AgentApi::of_curl(turns).unwrap();
        assert_eq!(Value::Object(api.body()), json!({"messages": "{messages}"}));
        for other in [
            "curl https://api.example.org/chat -d '{\"message\": \"hi\"}'",
            "curl http://localhost:3000/chat -d 'message=hi'",
            "curl http://localhost:3000/ships -d '{\"name\": \"Ferry\"}'",
            "curl http://localhost:3000/chat -d '{\"message\"",
        ] {
            assert_eq!(AgentApi::of_curl(other), None, "{other}");
        }
    }

    #[test]
    fn a_server_elsewhere_is_not_tested_because_a_file_names_it() {
        let mut document = document();
        document["servers"] = json!([{"url": "https://api.example.org"}]);
        let api = AgentApi::of(&document).unwrap();
        assert_eq!(api.base_url, HERE);
        assert_eq!(api.elsewhere.as_deref(), Some("https://api.example.org"));
    }

    #[test]
    fn a_description_without_words_to_take_is_no_api_for_tests() {
        for (pointer, value) in [
            ("/paths", json!([])),
            ("/components/schemas/New", json!({"$ref": "#/components/schemas/New"})),
            ("/components/schemas/New/properties", json!({"n": 1})),
        ] {
            let mut document = document();
            *document.pointer_mut(pointer).unwrap() = value;
            assert_eq!(AgentApi::of(&document), None, "{pointer}");
        }
        let odd = json!({"paths": {"/a\n- evil": {"post": {}}}, "servers": "x"});
        assert_eq!(AgentApi::of(&odd), None);
    }
}
