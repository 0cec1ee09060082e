//! The `acp` adapter against a real agent: Qwen Code of the npm registry, behind a model server that has
//! it write a file. The permission is refused, the file is not written, and the report has both.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::model_server::ModelServer;
use crate::model_server::wire::Connection;
use crate::require::{self, Part};
use crate::workspace::{OPENAI, Workspace, config};

/// The program of the package.
fn installed() -> Option<PathBuf> {
    let folder = std::env::var("SELFTEST_TEST_NODE").map(PathBuf::from);
    let found = folder.map_err(|error| format!("SELFTEST_TEST_NODE: {error}")).and_then(|folder| {
        let program = folder.join("node_modules/.bin/qwen");
        if program.is_file() { Ok(program) } else { Err(format!("no {}", program.display())) }
    });
    require::part(Part::Qwen, found)
}

/// A model that calls a tool to write a file, and after its result says what became of it. It serves
/// until the test ends.
fn writing_model(file: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let file = file.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let file = file.clone();
            std::thread::spawn(move || serve(stream, &file));
        }
    });
    port
}

fn serve(stream: TcpStream, file: &str) {
    let mut connection = Connection::new(stream);
    while let Some(request) = connection.read() {
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            connection.write(404, &[], b"");
            continue;
        };
        let mut messages = body["messages"].as_array().into_iter().flatten();
        let was_called = messages.any(|message| message["role"] == "tool");
        let arguments = json!({ "file_path": file, "content": "x" }).to_string();
        let function = json!({ "name": "write_file", "arguments": arguments });
        let call =
            json!([{ "index": 0, "id": "call_1", "type": "function", "function": function }]);
        let (delta, reason) = if was_called || body["tools"].is_null() {
            (json!({ "role": "assistant", "content": "I may not write the file." }), "stop")
        } else {
            (json!({ "role": "assistant", "tool_calls": call }), "tool_calls")
        };
        let chunk = |delta: Value, reason: Value| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
            let whole = json!({
                "id": "1", "object": "chat.completion.chunk", "created": 1,
                "model": body["model"], "choices": [choice],
                "usage": { "prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10 },
            });
            format!("data: {whole}\n\n")
        };
        let (said, end) = (chunk(delta, Value::Null), chunk(json!({}), reason.into()));
        let events = format!("{said}{end}data: [DONE]\n\n");
        connection.write(200, &[("content-type", "text/event-stream")], events.as_bytes());
    }
}

#[test]
fn a_real_agent_is_refused_what_it_asks_for() {
    let Some(program) = installed() else { return };
    let server = ModelServer::start();
    let suite = "version: 1\ncases:\n  - scenario: { id: write, description: d, expected_status: COMPLETE }\n    \
         prompt: Write notes.md.\n    checks:\n      - { contains: I may not write the file }\n      \
         - { tool_called: Writing to notes.md }\n";
    let workspace = Workspace::new().file("suite.yaml", suite).file("README.md", "# A project\n");
    let notes = workspace.path("notes.md");
    let port = writing_model(&notes.to_string_lossy());
    let run = json!([
        program,
        "--acp",
        "--auth-type",
        "openai",
        "--openai-api-key",
        "made-up-key",
        "--openai-base-url",
        format!("http://127.0.0.1:{port}/v1"),
        "--model",
        "scripted",
    ]);
    let modules = program.parent().unwrap().parent().unwrap();
    let sut = format!(
        "sut: {{ acp: {{ run: {run}, readable: [{}], tcp_ports: [{port}] }} }}",
        json!(modules)
    );
    let yaml = config(OPENAI, "")
        .replace(&format!("sut: {{ chat: {{ model: \"{OPENAI}\" }} }}"), &sut)
        .replace("scenarios:\n", "timeout_seconds: 100\n");
    let path = std::env::var_os("PATH").unwrap();
    let run = workspace
        .config(yaml)
        .server(&server)
        .env("PATH", path)
        .args(["--suite", "suite.yaml"])
        .run();
    let report = run.report();
    // What the agent wrote says the most where this fails.
    assert_eq!(report.case().status(), "passed", "{report}");
    let run = run.exit(0);
    assert!(!notes.exists(), "it must not be written");
    assert!(
        report.to_string().contains("and was refused: permission to "),
        "{}",
        report.to_string()
    );
    assert!(run.markdown().contains("System under test: acp "), "{}", run.markdown());
}
