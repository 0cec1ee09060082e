//! `--report otlp=URL`: what a collector gets over a real socket, and what one that fails costs.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::ci_reports::workspace;
use crate::model_server::wire::Connection;
use crate::run::Run;
use crate::workspace::{NOBODY, Workspace};

/// A request to the collector.
struct Told {
    path: String,
    headers: Vec<(String, String)>,
    body: Value,
}

/// A collector on a thread that ends with the test program. It answers each path by a code and a body.
struct Collector {
    address: SocketAddr,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Collector {
    fn start(answer: impl Fn(&str, usize) -> Option<(u16, Value)> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let told = Arc::<Mutex<Vec<Told>>>::default();
        let (kept, answer) = (Arc::clone(&told), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let mut connection = Connection::new(stream.unwrap());
                    while let Some(request) = connection.read() {
                        let body = serde_json::from_slice(&request.body).unwrap();
                        let path = request.path.clone();
                        let number = {
                            let mut kept = kept.lock().unwrap();
                            kept.push(Told { path: request.path, headers: request.headers, body });
                            kept.iter().filter(|told| told.path == path).count()
                        };
                        match answer(&path, number) {
                            Some((code, body)) => {
                                connection.write(code, &[], body.to_string().as_bytes());
                            }
                            None => std::thread::sleep(Duration::from_mins(5)),
                        }
                    }
                });
            }
        });
        Self { address, told }
    }

    fn good() -> Self {
        Self::start(|_, _| Some((200, json!({}))))
    }

    fn run(&self, workspace: &Workspace) -> Run {
        run(workspace, &format!("http://{}", self.address))
    }

    fn paths(&self) -> Vec<String> {
        self.told.lock().unwrap().iter().map(|told| told.path.clone()).collect()
    }

    fn body(&self, path: &str) -> Value {
        let told = self.told.lock().unwrap();
        told.iter().rfind(|told| told.path == path).unwrap().body.clone()
    }
}

fn run(workspace: &Workspace, endpoint: &str) -> Run {
    let report = format!("--report=otlp={endpoint}");
    workspace.clone().args(["--suite", "config/suites/ci.yaml", &report]).run()
}

fn attribute<'a>(of: &'a Value, key: &str) -> Option<&'a Value> {
    let found = of["attributes"].as_array().unwrap().iter().find(|it| it["key"] == key)?;
    found["value"].as_object().unwrap().values().next()
}

#[test]
fn a_collector_is_told_of_every_case() {
    let collector = Collector::good();
    let workspace = workspace("")
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20collector-key-1,x-team=a");
    let ran = collector.run(&workspace).exit(1);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let report = ran.report();
    assert_eq!(collector.paths(), ["/v1/traces", "/v1/logs"]);
    for told in &*collector.told.lock().unwrap() {
        let header = |name: &str| {
            told.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        assert_eq!(header("authorization").unwrap(), "Bearer collector-key-1");
        assert_eq!(header("x-team").unwrap(), "a");
        assert_eq!(header("content-type").unwrap(), "application/json");
    }
    let traces = collector.body("/v1/traces");
    let resource = &traces["resourceSpans"][0];
    assert_eq!(attribute(&resource["resource"], "service.name"), Some(&json!("selftest")));
    let spans = resource["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 5);
    assert_eq!((&spans[0]["name"], spans[0].get("parentSpanId")), (&json!("selftest.run"), None));
    assert_eq!(attribute(&spans[0], "selftest.run.id"), Some(&json!(report.run_id())));
    let logs = collector.body("/v1/logs");
    let events = logs["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap();
    let labels: Vec<Option<&str>> = events
        .iter()
        .map(|event| attribute(event, "gen_ai.evaluation.score.label").and_then(Value::as_str))
        .collect();
    assert_eq!(labels, [Some("pass"), Some("fail"), None, Some("pass")]);
    for (event, span) in events.iter().zip(&spans[1..]) {
        assert_eq!(event["eventName"], "gen_ai.evaluation.result");
        assert_eq!((&event["spanId"], &event["traceId"]), (&span["spanId"], &span["traceId"]));
        assert_eq!(span["parentSpanId"], spans[0]["spanId"]);
        let session = attribute(event, "gen_ai.conversation.id").unwrap();
        assert!(session.as_str().unwrap().starts_with("selftest-"), "{session}");
    }
    let why = attribute(&events[1], "gen_ai.evaluation.explanation").unwrap().as_str().unwrap();
    assert!(why.starts_with("check “"), "{why}");
    assert_eq!(attribute(&events[2], "error.type"), Some(&json!("cant_tell")));
    let text = format!("{traces}{logs}");
    assert!(!text.contains("Say three lines"), "a prompt: {text}");
    let _ = ran.nowhere("collector-key-1");

    // An earlier run is exported with the same ids.
    let otlp = format!("--report=otlp=http://{}", collector.address);
    let _ = workspace.clone().args(["report", "write", "latest", &otlp]).run().exit(0);
    assert_eq!(collector.paths().len(), 4);
    assert_eq!(collector.body("/v1/traces"), traces);
}

#[test]
fn nobody_is_told_unless_that_is_configured() {
    let collector = Collector::good();
    let address = format!("http://{}", collector.address);
    let suite = ["--suite", "config/suites/ci.yaml"];
    let plain = workspace("").env("OTEL_EXPORTER_OTLP_ENDPOINT", &address);
    let _ = plain.args(suite).run().exit(1);
    assert_eq!(collector.paths(), [""; 0]);
    let configured =
        workspace(&format!("reports: {{ otlp: {{ endpoint: \"{address}/otlp/\" }} }}\n"));
    let _ = configured.args(suite).run().exit(1);
    assert_eq!(collector.paths(), ["/otlp/v1/traces", "/otlp/v1/logs"]);
}

#[test]
fn a_collector_that_fails_costs_a_warning_and_no_verdict() {
    let workspace = workspace("");
    let down = run(&workspace, &format!("http://{NOBODY}")).exit(1);
    let down = down
        .stderr_contains("warning: OpenTelemetry: http://127.0.0.1:1/ did not receive everything");
    assert!(down.stdout.contains("2 of 3 passed"), "{}", down.stdout);

    let refuses =
        Collector::start(|_, _| Some((401, json!({ "message": "who\u{1b}[31m are you" }))));
    let run = refuses.run(&workspace).exit(1).stderr_contains("/v1/traces: HTTP 401: who");
    assert!(!run.stderr.contains('\u{1b}'), "{}", run.stderr);
    assert_eq!(refuses.paths(), ["/v1/traces", "/v1/logs"], "neither is tried again");

    let no_logs = Collector::start(|path, _| {
        Some(if path == "/v1/logs" { (404, json!({})) } else { (200, json!({})) })
    });
    let _ = no_logs
        .run(&workspace)
        .exit(1)
        .stderr_contains("did not receive everything: /v1/logs: HTTP 404");

    let part = json!({ "partialSuccess": { "rejectedSpans": "2", "errorMessage": "too old" } });
    let partial = Collector::start(move |_, _| Some((200, part.clone())));
    let _ = partial.run(&workspace).exit(1).stderr_contains("/v1/traces: 2 refused: too old");

    let busy = Collector::start(|_, number| {
        Some(if number == 1 { (503, json!({})) } else { (200, json!({})) })
    });
    let run = busy.run(&workspace).exit(1);
    assert!(!run.stderr.contains("warning: OpenTelemetry"), "{}", run.stderr);
    assert_eq!(busy.paths().len(), 4, "each was sent again");
}

#[test]
fn a_silent_collector_is_waited_for_so_long_and_no_longer() {
    let silent = Collector::start(|_, _| None);
    let run = silent.run(&workspace("")).exit(1);
    let _ = run.stderr_contains("did not receive everything: no answer within 5 s");
}

#[test]
fn what_is_no_address_is_said_before_the_run() {
    for (endpoint, words) in
        [("localhost:4318", "`otlp` needs an address"), ("http://", "empty host")]
    {
        let run = run(&workspace(""), endpoint).exit(2);
        assert!(run.stderr.contains(words), "{endpoint}: {}", run.stderr);
        assert!(!run.stderr.contains("started"), "{}", run.stderr);
    }
    let bad = workspace("").env("OTEL_EXPORTER_OTLP_HEADERS", "no pairs");
    let _ = run(&bad, "http://127.0.0.1:1").exit(2).one_error(&["OTEL_EXPORTER_OTLP_HEADERS: "]);
}
