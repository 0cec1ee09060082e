//! The `acp` adapter against a real agent: Qwen Code of the npm registry, behind a scripted model. Asked
//! to write a file it is refused, and the report says so. In a test of a skill it has the whole skill in
//! one arm, and in the other neither that nor anything of the operator's own.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use regex::Regex;
use serde_json::{Value, json};

use crate::model_server::ModelServer;
use crate::model_server::wire::Connection;
use crate::require::{self, Part};
use crate::workspace::{NOBODY, OPENAI, Workspace, config};

/// The program of the package.
fn installed() -> Option<PathBuf> {
    let folder = std::env::var("SELFTEST_TEST_NODE").map(PathBuf::from);
    let found = folder.map_err(|error| format!("SELFTEST_TEST_NODE: {error}")).and_then(|folder| {
        let program = folder.join("node_modules/.bin/qwen");
        if program.is_file() { Ok(program) } else { Err(format!("no {}", program.display())) }
    });
    require::part(Part::Qwen, found)
}

/// What the model does next.
enum ModelStep {
    Say(&'static str),
    Call(&'static str, Value),
}

/// Serves a model that answers each request by this function, until the test ends. Returns its port.
fn scripted_model(next: impl Fn(&Value) -> ModelStep + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let next = Arc::new(next);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let next = Arc::clone(&next);
            std::thread::spawn(move || serve(stream, &*next));
        }
    });
    port
}

fn serve(stream: TcpStream, next: &dyn Fn(&Value) -> ModelStep) {
    let mut connection = Connection::new(stream);
    let mut calls = 0;
    while let Some(request) = connection.read() {
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            connection.write(404, &[], b"");
            continue;
        };
        let (delta, reason) = match next(&body) {
            ModelStep::Say(text) => (json!({ "role": "assistant", "content": text }), "stop"),
            ModelStep::Call(name, arguments) => {
                calls += 1;
                let function = json!({ "name": name, "arguments": arguments.to_string() });
                let id =
                    format!("call_{}_{calls}", body["messages"].as_array().map_or(0, Vec::len));
                let call =
                    json!([{ "index": 0, "id": id, "type": "function", "function": function }]);
                (json!({ "role": "assistant", "tool_calls": call }), "tool_calls")
            }
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

/// Returns true if the agent has the result of a tool.
fn has_result(body: &Value) -> bool {
    body["messages"].as_array().into_iter().flatten().any(|message| message["role"] == "tool")
}

/// The command line of the agent with a model on this port.
fn agent(program: &std::path::Path, port: u16) -> Value {
    json!([
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
    ])
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
    let file = notes.to_string_lossy().into_owned();
    let port = scripted_model(move |body| {
        if has_result(body) || body["tools"].is_null() {
            ModelStep::Say("I may not write the file.")
        } else {
            ModelStep::Call("write_file", json!({ "file_path": file, "content": "x" }))
        }
    });
    let run = agent(&program, port);
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

/// Tells the model of the skill.
const DESCRIPTION: &str = "Knows when the Zanzibar boats leave";
/// Is in its SKILL.md, and in no other file.
const BODY: &str = "the times of Zanzibar are in references/times.md";
/// Is in a file beside it.
const TIME: &str = "10:40";
/// Is in files of the operator's own.
const OWN: &str = "of the operator's own";

/// A model that loads the skill if the prompt names one, and then reads the file that it names.
fn step_with_skill(body: &Value, folder: &Regex) -> ModelStep {
    let text = body.to_string();
    if body["tools"].is_null() {
        ModelStep::Say("A title")
    } else if text.contains(TIME) {
        ModelStep::Say("It leaves at 10:40.")
    } else if text.contains("Error reading") {
        ModelStep::Say("I cannot read it.")
    } else if text.contains(BODY) {
        let folder = folder.find(&text).map(|found| found.as_str()).unwrap_or_default();
        let path = format!("{folder}/references/times.md");
        ModelStep::Call("read_file", json!({ "file_path": path }))
    } else if text.contains(DESCRIPTION) && !has_result(body) {
        ModelStep::Call("skill", json!({ "skill": "ferry" }))
    } else {
        ModelStep::Say("I do not know.")
    }
}

#[test]
fn a_real_agent_has_the_whole_skill_in_one_arm_only() {
    let Some(program) = installed() else { return };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let folder = Regex::new(r#"/[^\s"\\]*/skills/ferry"#).unwrap();
    let seen = Arc::clone(&asked);
    let port = scripted_model(move |body| {
        // Without tools it is asked for a title and the like.
        if !body["tools"].is_null() {
            seen.lock().unwrap().push(body.to_string());
        }
        step_with_skill(body, &folder)
    });
    let modules = program.parent().unwrap().parent().unwrap();
    let case = |id: u32| {
        json!({
            "id": id,
            "prompt": format!("When does boat number {id} leave?"),
            "expectations": [format!("The answer contains \"{TIME}\"")],
        })
    };
    let suite = json!({ "skill_name": "ferry", "evals": [case(1), case(2)] });
    let prompts = json!([{ "query": "Tell me when a boat leaves", "should_trigger": true }]);
    let own = format!("---\nname: leak\ndescription: A skill {OWN}\n---\nIt is {OWN}.\n");
    let skill = format!("---\nname: ferry\ndescription: {DESCRIPTION}\n---\nSee: {BODY}\n");
    let workspace = Workspace::new()
        .config(format!(
            "version: 1\ntimeout_seconds: 100\nsut:\n  acp:\n    run: {}\n    work_folder: copy\n    \
             readable: [{}]\n    tcp_ports: [{port}]\n",
            agent(&program, port),
            json!(modules),
        ))
        .file("skills/ferry/SKILL.md", skill)
        .file("skills/ferry/references/times.md", format!("The boat leaves at {TIME}.\n"))
        .file("skills/ferry/evals/evals.json", suite.to_string())
        .file("skills/ferry/evals/trigger-evals.json", prompts.to_string())
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("OLLAMA_HOST", NOBODY);
    let home = workspace.folder().join("own");
    for path in [".qwen/skills/leak/SKILL.md", ".agents/skills/leak/SKILL.md", ".qwen/QWEN.md"] {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &own).unwrap();
    }
    let arguments = ["skills", "test", "--repeats=1", "--json"];
    let run = workspace.env("HOME", home).args(arguments).run().exit(0);

    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let skill = &report["skills"][0];
    let arms = skill["arms"].as_array().unwrap().iter();
    let passed: Vec<(&Value, &Value)> = arms.map(|arm| (&arm["arm"], &arm["passed"])).collect();
    assert_eq!(passed, [(&json!("without"), &json!(0)), (&json!("here"), &json!(2))], "{report:#}");
    let evidence = &skill["evidence"];
    assert_eq!((&evidence["used"], &evidence["loaded"]), (&json!(2), &json!(2)), "{evidence}");
    assert_eq!(skill["arms"][1]["rates"]["recall"]["count"], 1, "{skill:#}");

    let asked = asked.lock().unwrap();
    let (with, without): (Vec<&String>, Vec<&String>) =
        asked.iter().partition(|request| request.contains(DESCRIPTION));
    assert!(without.iter().any(|request| request.contains("boat number 1")));
    for request in without {
        assert!(!request.contains(BODY) && !request.contains(TIME), "{request}");
        assert!(!request.contains("skills/ferry"), "{request}");
    }
    assert!(with.iter().any(|request| request.contains(BODY) && request.contains(TIME)));
    assert!(!asked.iter().any(|request| request.contains(OWN)), "of the operator's own");
}
