//! A scripted model server on 127.0.0.1 that speaks the wire protocols of OpenAI and Ollama.
//!
//! Every call is recorded; the script may answer well or misbehave. Not a model of how a real
//! model behaves: the embedded engine's tests use a real one.

mod call;
mod reply;
mod script;
pub(crate) mod wire;

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};

pub(crate) use call::{Call, Endpoint, Role};
pub(crate) use reply::Reply;
pub(crate) use script::{
    HINT_MARK, Script, answered, drafted, generated, grounded, quality, quotes, verdict, words,
    yes_or_no,
};
use wire::{Connection, HttpRequest};

/// A running server; it ends when dropped.
pub(crate) struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    script: Script,
    calls: Mutex<Vec<Call>>,
    refused: AtomicUsize,
    paths: Mutex<Vec<String>>,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
    stopped: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl ModelServer {
    /// A server under which every case passes.
    pub(crate) fn start() -> Self {
        Script::default().start()
    }

    pub(crate) fn script() -> Script {
        Script::default()
    }

    fn listen(script: Script) -> std::io::Result<Self> {
        let listener = TcpListener::bind(script.address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script,
            calls: Mutex::default(),
            refused: AtomicUsize::new(0),
            paths: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            most_in_flight: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        let listener = std::thread::spawn(move || accept(&listener, &accepting));
        Ok(Self { address, shared, listener: Some(listener) })
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// For `OPENAI_BASE_URL`.
    pub(crate) fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// For `OLLAMA_HOST`.
    pub(crate) fn ollama_host(&self) -> String {
        self.address.to_string()
    }

    /// All answered chat calls in order.
    pub(crate) fn all_calls(&self) -> Vec<Call> {
        self.shared.calls.lock().unwrap().clone()
    }

    /// The answered chat calls of one role in order.
    pub(crate) fn calls(&self, role: Role) -> Vec<Call> {
        self.all_calls().into_iter().filter(|call| call.role == role).collect()
    }

    /// Chat calls that were refused for their `response_format`, `format` or model.
    pub(crate) fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::SeqCst)
    }

    /// Method and path of every request in order.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.shared.paths.lock().unwrap().clone()
    }

    /// The most chat calls that were open at once.
    pub(crate) fn most_in_flight(&self) -> usize {
        self.shared.most_in_flight.load(Ordering::SeqCst)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        for connection in self.shared.connections.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming().map_while(Result::ok) {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        shared.connections.lock().unwrap().push(stream.try_clone().unwrap());
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            let mut connection = Connection::new(stream);
            while let Some(request) = connection.read() {
                shared.serve(&request, &mut connection);
            }
        });
    }
}

impl Shared {
    fn serve(&self, request: &HttpRequest, connection: &mut Connection) {
        self.paths.lock().unwrap().push(format!("{} {}", request.method, request.path));
        let path = request.path.strip_prefix(self.script.prefix).unwrap_or("/nowhere");
        let route = format!("{} {path}", request.method);
        let (code, body) = match route.as_str() {
            "POST /v1/chat/completions" => {
                return self.chat(Call::new(Endpoint::OpenAi, request), connection);
            }
            "POST /api/chat" => {
                return self.chat(Call::new(Endpoint::Ollama, request), connection);
            }
            _ if self.script.catalogue.is_some() => {
                let call = Call {
                    role: Role::Other,
                    number: 0,
                    endpoint: Endpoint::Ollama,
                    headers: request.headers.clone(),
                    body: Value::Null,
                    at: std::time::Instant::now(),
                };
                let reply = self.script.catalogue.clone().unwrap();
                return reply.send(&call, connection, &|| !self.stopped.load(Ordering::SeqCst));
            }
            "POST /v1/systemone" | "POST /v1/decisions" if self.script.decide.is_some() => {
                let body = serde_json::from_slice(&request.body).unwrap_or_default();
                self.script.decide.as_ref().unwrap()(path, &body)
            }
            "GET /v1/models" => (200, self.openai_models()),
            "GET /api/version" => (200, json!({ "version": self.script.ollama_version })),
            "GET /api/tags" => (200, self.ollama_models()),
            "POST /api/show" => self.show(request),
            _ => (404, json!({ "error": format!("no such page: {route}") })),
        };
        connection.write(
            code,
            &[("content-type", "application/json")],
            body.to_string().as_bytes(),
        );
    }

    fn chat(&self, mut call: Call, connection: &mut Connection) {
        if let Some((code, body)) = self.refusal(&call) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            let body = body.to_string();
            return connection.write(
                code,
                &[("content-type", "application/json")],
                body.as_bytes(),
            );
        }
        let open = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_in_flight.fetch_max(open, Ordering::SeqCst);
        {
            let mut calls = self.calls.lock().unwrap();
            call.number = calls.iter().filter(|earlier| earlier.role == call.role).count();
            calls.push(call.clone());
        }
        std::thread::sleep(self.script.delay);
        let reply = self.script.answer(&call);
        // Before the answer is written: the client may send its next call at once.
        let late = matches!(reply, Reply::Hang);
        if !late {
            self.in_flight.fetch_sub(1, Ordering::SeqCst);
        }
        reply.send(&call, connection, &|| !self.stopped.load(Ordering::SeqCst));
        if late {
            self.in_flight.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The reply of a real server to a call that it cannot serve.
    fn refusal(&self, call: &Call) -> Option<(u16, Value)> {
        let script = &self.script;
        if call.endpoint == Endpoint::OpenAi {
            if let Some(words) = openai_complaint(script, &call.body) {
                return Some((400, json!({ "error": { "message": words, "code": null } })));
            }
            let format = call.body.pointer("/response_format/type").and_then(Value::as_str)?;
            let refused = (script.refuses_schema && format == "json_schema")
                || (script.refuses_json_object && format == "json_object");
            let error = json!({
                "message": format!("response_format of type {format} is not supported"),
                "type": "invalid_request_error",
                "param": "response_format",
                "code": null,
            });
            return refused.then(|| (400, json!({ "error": error })));
        }
        let model = call.body["model"].as_str().unwrap_or_default();
        if !script.models.iter().any(|installed| same_model(installed, model)) {
            return Some((404, json!({ "error": format!("model '{model}' not found") })));
        }
        if !script.is_ollama_since([0, 5, 0]) && call.schema().is_some() {
            let error = "json: cannot unmarshal object into Go struct field ChatRequest.format of type string";
            return Some((400, json!({ "error": error })));
        }
        if call.body["top_logprobs"].as_u64().is_some_and(|most| most > 20) {
            return Some((400, json!({ "error": "top_logprobs must be between 0 and 20" })));
        }
        if call.body["think"] == true && !script.can_think() {
            let error = format!("\"{model}\" does not support thinking");
            return Some((400, json!({ "error": error })));
        }
        context_exceeded(call)
    }

    fn openai_models(&self) -> Value {
        let mut ids = vec!["gpt-4o-mini"];
        ids.extend(self.script.models.iter().map(String::as_str));
        let data: Vec<Value> = ids
            .iter()
            .map(|id| {
                let capabilities: &[&str] =
                    if self.script.decide.is_some() { &["decision"] } else { &[] };
                json!({ "id": id, "object": "model", "owned_by": "test", "capabilities": capabilities })
            })
            .collect();
        json!({ "object": "list", "data": data })
    }

    fn ollama_models(&self) -> Value {
        let model = |name: &String| {
            let family = if name.contains("embed") { "nomic-bert" } else { "qwen2" };
            // A copy of a cloud model has any name.
            let remote_host = name.contains("cloud").then_some("https://ollama.com:443");
            json!({
                "name": name,
                "model": name,
                "remote_host": remote_host,
                "modified_at": "2026-02-06T12:34:56Z",
                "size": 4_683_087_332_u64,
                "digest": "845dbda0ea48ed749caafd9e6037047aa19acfcfd82e704d7ca97d631a0b697e",
                "details": { "format": "gguf", "family": family, "families": [family] },
            })
        };
        json!({ "models": self.script.models.iter().map(model).collect::<Vec<_>>() })
    }

    fn show(&self, request: &HttpRequest) -> (u16, Value) {
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let name = asked["model"].as_str().or(asked["name"].as_str()).unwrap_or_default();
        if !self.script.models.iter().any(|installed| same_model(installed, name)) {
            return (404, json!({ "error": format!("model '{name}' not found") }));
        }
        let capability = if name.contains("embed") { "embedding" } else { "completion" };
        let thinking = self.script.can_think().then_some("thinking");
        let decision = self.script.decide.as_ref().map(|_| "decision");
        let capabilities: Vec<&str> =
            [capability].into_iter().chain(thinking).chain(decision).collect();
        let answer = json!({
            "details": { "format": "gguf", "family": "qwen2" },
            "model_info": { "general.architecture": "qwen2", "qwen2.context_length": 32768 },
            "capabilities": capabilities,
        });
        (200, answer)
    }
}

/// As Ollama passes an error of its runner on: JSON in a string. One message that does not fit is
/// refused, older messages are dropped unless that is forbidden.
fn context_exceeded(call: &Call) -> Option<(u16, Value)> {
    let (tokens, context) = (call.prompt_tokens(), call.body["options"]["num_ctx"].as_u64()?);
    let may_drop = call.body["truncate"] != false && call.messages().len() > 1;
    if tokens <= context || may_drop {
        return None;
    }
    let message = format!(
        "request ({tokens} tokens) exceeds the available context size ({context} tokens), try increasing it"
    );
    let error = json!({ "error": {
        "code": 400,
        "message": message,
        "type": "exceed_context_size_error",
        "n_prompt_tokens": tokens,
        "n_ctx": context,
    }});
    Some((400, json!({ "error": error.to_string() })))
}

/// The error of a server for keys and numbers that it does not accept.
fn openai_complaint(script: &Script, body: &Value) -> Option<String> {
    if script.refuses_unknown_fields && body.get("chat_template_kwargs").is_some() {
        return Some("Unrecognized request argument supplied: chat_template_kwargs".to_owned());
    }
    let (asked, most) = (body["top_logprobs"].as_u64()?, script.top_logprobs);
    match most {
        0 => Some("logprobs are not supported with this model".to_owned()),
        most => (asked > most).then(|| format!("top_logprobs must be between 0 and {most}")),
    }
}

/// Ollama adds `:latest` to a bare name.
fn same_model(installed: &str, asked: &str) -> bool {
    installed == asked || installed.strip_suffix(":latest") == Some(asked)
}
