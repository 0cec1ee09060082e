//! `grade_session` against a fake grader over an in-memory pipe. The other tools are tested with
//! the real binary.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};

use super::{McpServer, SessionGrading, SessionGradingError};
use selftest_grading::grade::QualityGrade;
use selftest_models::prices::ModelPrices;
use selftest_reports::RunArchive;
use selftest_service::transcripts::TranscriptReader;
use selftest_store::Store;
use selftest_text::redact::Redactor;

/// Replies after a delay that depends on the model's name.
#[derive(Default)]
struct Grader {
    dropped: Arc<AtomicU32>,
}

/// Counts cancelled gradings.
struct Begun(Arc<AtomicU32>);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl SessionGrading for Grader {
    fn grade(
        &self,
        session_id: String,
        model: Option<String>,
    ) -> BoxFuture<'_, Result<QualityGrade, SessionGradingError>> {
        let begun = Begun(Arc::clone(&self.dropped));
        Box::pin(async move {
            let model = model.unwrap_or_else(|| "usual".to_owned());
            match model.as_str() {
                "slow" => tokio::time::sleep(Duration::from_millis(2500)).await,
                "endless" => std::future::pending().await,
                "gone" => {
                    return Err(SessionGradingError::new("no model server\nanswers; start it"));
                }
                _ => {}
            }
            std::mem::forget(begun);
            Ok(grade(&session_id, &model))
        })
    }
}

fn grade(session_id: &str, model: &str) -> QualityGrade {
    QualityGrade {
        session_id: session_id.to_owned(),
        model: model.to_owned(),
        rubric_version: 1,
        ts: jiff::Timestamp::UNIX_EPOCH,
        problem_solved: Some(0.5),
        tests_added: None,
        code_clean: None,
        edge_cases: Some(0.7),
        overall: Some(0.6),
        reasoning: Some("solved".to_owned()),
        details: None,
    }
}

struct Client {
    stdin: DuplexStream,
    stdout: Lines<BufReader<DuplexStream>>,
}

impl Client {
    /// Returns a client after the handshake, with a server that has the session `s-1`.
    async fn of(grading: Option<Arc<dyn SessionGrading>>) -> Self {
        let store = Store::open(":memory:").await.unwrap();
        store.save_quality(&grade("s-1", "earlier")).await.unwrap();
        let transcripts = TranscriptReader::new(Redactor::default(), ModelPrices::default());
        let server = McpServer::new(store, RunArchive::new("nowhere"), transcripts, grading);
        let (stdin, reader) = tokio::io::duplex(1 << 16);
        let (writer, stdout) = tokio::io::duplex(1 << 16);
        tokio::spawn(server.serve(reader, writer, std::future::pending()));
        let mut client = Self { stdin, stdout: BufReader::new(stdout).lines() };
        let about = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
        client.says(&json!({ "id": 0, "method": "initialize", "params": params })).await;
        client.says(&json!({ "method": "notifications/initialized" })).await;
        assert_eq!(client.hears().await["id"], 0);
        client
    }

    async fn says(&mut self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn hears(&mut self) -> Value {
        let line = self.stdout.next_line();
        let line = tokio::time::timeout(Duration::from_secs(20), line).await.unwrap();
        serde_json::from_str(&line.unwrap().unwrap()).unwrap()
    }

    async fn calls(&mut self, id: u32, model: &str, token: Option<&str>) {
        let arguments = json!({ "session_id": "s-1", "model": model });
        let mut params = json!({ "name": "grade_session", "arguments": arguments });
        if let Some(token) = token {
            params["_meta"] = json!({ "progressToken": token });
        }
        self.says(&json!({ "id": id, "method": "tools/call", "params": params })).await;
    }
}

fn text(answer: &Value) -> &str {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn a_model_grades_and_reports_progress_to_whom_asks_for_it() {
    let mut client = Client::of(Some(Arc::new(Grader::default()))).await;
    client.calls(1, "slow", Some("t")).await;
    let mut before = 0.0;
    for _ in 0..2 {
        let progress = client.hears().await;
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(progress["params"]["progressToken"], "t");
        let seconds = progress["params"]["progress"].as_f64().unwrap();
        assert!(seconds > before);
        before = seconds;
    }
    let answer = client.hears().await;
    let graded = &answer["result"]["structuredContent"];
    assert_eq!((answer["id"].as_u64(), &graded["grader_model"]), (Some(1), &json!("slow")));
    assert_eq!(graded["overall"], 0.6);
    assert_eq!(graded["reasoning"]["untrusted_text"], "solved");

    client.calls(2, "slow", None).await;
    assert_eq!(client.hears().await["id"], 2, "no token, no progress");
}

#[tokio::test]
async fn a_cancelled_grading_is_dropped_and_the_server_goes_on() {
    let grader = Grader::default();
    let dropped = Arc::clone(&grader.dropped);
    let mut client = Client::of(Some(Arc::new(grader))).await;
    client.calls(1, "endless", None).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    let params = json!({ "requestId": 1, "reason": "changed my mind" });
    client.says(&json!({ "method": "notifications/cancelled", "params": params })).await;
    client.calls(2, "quick", None).await;
    assert_eq!(client.hears().await["id"], 2, "a cancelled request has no answer");
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_keeps_it_from_grading_is_said() {
    let mut client = Client::of(Some(Arc::new(Grader::default()))).await;
    client.calls(1, "gone", None).await;
    assert_eq!(text(&client.hears().await), "no model server answers; start it");
    for model in ["", &"m".repeat(201)] {
        client.calls(2, model, None).await;
        assert!(text(&client.hears().await).contains("leave it out"));
    }
    let mut client = Client::of(None).await;
    client.calls(1, "quick", None).await;
    assert!(text(&client.hears().await).contains("set grade.quality.model"));
}
