//! Ollama's own protocol: what is sent, what is understood, how a model is found.

use serde_json::{Value, json};

use crate::model_server::{Endpoint, ModelServer, Reply, Role, verdict};
use crate::require;
use crate::workspace::{CLEAR, OLLAMA, Workspace, config, scenarios};

/// One scenario with this Ollama server behind it, and nothing else.
fn ollama(host: &str) -> Workspace {
    Workspace::new().config(config(OLLAMA, CLEAR)).env("OLLAMA_HOST", host)
}

#[test]
fn the_request_sets_everything_that_ollama_would_guess() {
    let server = ModelServer::start();
    let _ = ollama(&server.ollama_host()).run().exit(0);
    let judge = &server.calls(Role::Judge)[0];
    assert_eq!(judge.endpoint, Endpoint::Ollama);
    let body = &judge.body;
    assert_eq!(body["model"], "qwen2.5:7b");
    assert_eq!(body["stream"], false);
    assert_eq!(body["truncate"], false, "nothing is to be dropped without a word");
    for call in server.all_calls() {
        assert_eq!(call.body["think"], false, "{:?}: absent means on", call.role);
    }
    assert_eq!(body["keep_alive"], "5m");
    assert_eq!(body["options"]["num_ctx"], 8192);
    assert_eq!(body["options"]["num_predict"], 1000);
    assert_eq!(body["options"]["temperature"], 0.0);
    assert!(body["options"]["seed"].is_u64(), "{body:#}");
    let format = &body["format"];
    assert_eq!(format["additionalProperties"], false);
    let score = &format["properties"]["format_score"]["enum"];
    let grid: Vec<Value> = score.as_array().unwrap().clone();
    assert_eq!(grid.len(), 22, "twenty-one steps and null: {score}");
    assert!(grid.contains(&json!(0.85)) && grid.contains(&Value::Null), "{score}");
    let contexts = server.all_calls().iter().all(|call| call.body["options"]["num_ctx"] == 8192);
    assert!(contexts, "a change of num_ctx makes Ollama load the model again");
    for call in server.all_calls() {
        // Ollama does not show the schema to the model; the prompt must.
        let first =
            call.schema().unwrap()["properties"].as_object().unwrap().keys().next().unwrap();
        assert!(call.text().contains(first.as_str()), "{}", call.text());
    }
}

#[test]
fn a_server_before_schemas_gets_json() {
    let server = ModelServer::script().ollama_version("0.4.7").start();
    let report = ollama(&server.ollama_host()).run().exit(0).report();
    assert!(server.all_calls().iter().all(|call| call.body["format"] == "json"));
    assert!(server.refused() <= 1, "{} calls were refused", server.refused());
    assert_eq!(report.case().judge_calls()[0]["structured"], "json_object");
}

#[test]
fn the_host_is_understood_in_every_form() {
    let server = ModelServer::start();
    let port = server.port();
    for host in [
        format!("127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}/"),
        format!("0.0.0.0:{port}"),
        format!("http://0.0.0.0:{port}"),
        format!("localhost:{port}"),
        format!(":{port}"),
        format!(" \"127.0.0.1:{port}\" "),
    ] {
        let before = server.all_calls().len();
        let run = ollama(&host).run();
        assert_eq!(server.all_calls().len(), before + 3, "OLLAMA_HOST={host}:\n{}", run.stderr);
        let _ = run.exit(0);
    }
}

#[test]
fn the_host_may_have_a_path() {
    let server = ModelServer::script().prefix("/ollama").start();
    let _ = ollama(&format!("http://127.0.0.1:{}/ollama", server.port())).run().exit(0);
    assert!(
        server.paths().iter().all(|path| path.contains(" /ollama/api/")),
        "{:?}",
        server.paths()
    );
}

#[test]
fn the_host_may_be_an_ipv6_address() {
    let Ok(server) = ModelServer::script().address("[::1]:0").try_start() else {
        require::skip("this machine has no IPv6 loopback address");
        return;
    };
    for host in [format!("[::1]:{}", server.port()), format!("http://[::1]:{}", server.port())] {
        let _ = ollama(&host).run().exit(0);
    }
}

#[test]
fn a_host_without_a_port_is_on_11434() {
    let run = ollama("127.0.0.2").run().exit(5);
    run.one_error(&["127.0.0.2:11434"]);
}

#[test]
fn a_missing_model_is_reported_with_those_that_are_there() {
    let server = ModelServer::start();
    let yaml = config("ollama/phi4:14b", CLEAR);
    let run = Workspace::new().config(yaml).server(&server).run().exit(5);
    run.one_error(&["phi4:14b", "qwen2.5:7b", "nomic-embed-text"])
        .stderr_contains("ollama pull phi4:14b");
    assert!(server.all_calls().is_empty(), "found before the first call");
}

#[test]
fn nobody_at_the_host_is_found_before_the_first_case() {
    let run = ollama(crate::workspace::NOBODY).run().exit(5);
    run.one_error(&["127.0.0.1:1"]).stderr_contains("hint:");
}

#[test]
fn auto_takes_the_largest_chat_model_and_says_so() {
    let server = ModelServer::script()
        .models(&[
            "gpt-oss:120b-cloud",
            "copied-from-cloud:latest",
            "nomic-embed-text:latest",
            "llama3.2:3b",
            "qwen2.5:7b",
        ])
        .start();
    let run = Workspace::new()
        .config(format!("version: 1\nscenarios:\n{CLEAR}"))
        .env("OLLAMA_HOST", server.ollama_host())
        .run()
        .exit(0);
    assert!(server.all_calls().iter().all(|call| call.body["model"] == "llama3.2:3b"));
    let lines: Vec<&str> = run.stderr.lines().filter(|line| line.contains("auto")).collect();
    assert_eq!(lines.len(), 1, "{}", run.stderr);
    assert!(lines[0].contains("llama3.2:3b") && lines[0].contains("largest chat model"));
}

#[test]
fn auto_never_goes_to_a_cloud_that_was_not_named() {
    let server = ModelServer::start();
    let run = Workspace::new()
        .config(format!("version: 1\nscenarios:\n{CLEAR}"))
        .env("OPENAI_BASE_URL", server.openai_url())
        .env("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        .args(["--offline"])
        .run();
    assert!(server.paths().is_empty(), "{:?}\n{}", server.paths(), run.stderr);
}

#[test]
fn a_bare_name_that_ollama_has_is_served_by_it() {
    let server = ModelServer::script().models(&["gpt-4o-mini:latest"]).start();
    let yaml = config("gpt-4o-mini", CLEAR);
    let _ = Workspace::new().config(yaml).env("OLLAMA_HOST", server.ollama_host()).run().exit(0);
    assert!(server.all_calls().iter().all(|call| call.endpoint == Endpoint::Ollama));
}

#[test]
fn thinking_is_never_taken_for_the_verdict() {
    let server = ModelServer::script()
        .judge(|call| Reply::Thinking {
            thinking: verdict(call, 0.0).to_string(),
            text: verdict(call, 0.9).to_string(),
        })
        .start();
    let report = ollama(&server.ollama_host()).run().exit(0).report();
    assert_eq!(report.case().overall(), Some(0.9));
    assert!(!report.to_string().contains("\"format_score\": 0.0"), "{report}");
}

#[test]
fn a_model_that_thinks_unless_told_not_to_answers_every_role() {
    let thoughts = "Let me see. ".repeat(2000);
    let server = ModelServer::script().thinks(&thoughts).start();
    let report = ollama(&server.ollama_host()).run().exit(0).report();
    assert_eq!(report.case().pass(), Some(true));
}

#[test]
fn thinking_that_is_wanted_has_tokens_of_its_own() {
    let server = ModelServer::script().thinks("Let me see.").start();
    let yaml = config(OLLAMA, CLEAR)
        .replace("judge: {", "judge: { think: true, think_tokens: 500,")
        .replace("generator: {", "generator: { think: true,");
    let run = Workspace::new().config(yaml).env("OLLAMA_HOST", server.ollama_host()).run().exit(0);
    let asked = |role| {
        let body = &server.calls(role)[0].body;
        (body["think"].clone(), body["options"]["num_predict"].clone())
    };
    assert_eq!(asked(Role::Judge), (json!(true), json!(1500)));
    assert_eq!(asked(Role::Generator), (json!(true), json!(2500)));
    assert_eq!(asked(Role::Sut), (json!(false), json!(2000)));
    assert_eq!(run.report().case().judge_calls()[0]["parameters"]["max_tokens"], 1000);
}

#[test]
fn a_model_that_cannot_think_is_asked_to_once() {
    let server = ModelServer::start();
    let yaml = config(OLLAMA, &scenarios(3)).replace("judge: {", "judge: { think: true,");
    let _ = Workspace::new().config(yaml).env("OLLAMA_HOST", server.ollama_host()).run().exit(0);
    assert_eq!(server.refused(), 1);
    assert!(server.calls(Role::Judge).iter().all(|call| call.body["think"] == false));
}

#[test]
fn a_prompt_that_does_not_fit_is_said_in_plain_words() {
    let server = ModelServer::start();
    let long = "word ".repeat(9000);
    let small = "{ max_retries: 0, restart_seconds: 0, context_tokens: 512 }";
    let run = Workspace::new()
        .config(config(OLLAMA, CLEAR).replace("{ max_retries: 0, restart_seconds: 0 }", small))
        .file("notes.md", &long)
        .env("OLLAMA_HOST", server.ollama_host())
        .run();
    let report = run.report();
    let case = report.case();
    assert!(case.reason().contains("does not fit a context of 512 tokens"), "{}", case.reason());
    assert_eq!(case.pass(), None, "nobody answered");
}

#[test]
fn a_cut_answer_is_no_failure_of_the_system() {
    let server = ModelServer::script()
        .sut(|_| Reply::Truncated("{\"output\": \"One, two, w".to_owned()))
        .start();
    let report = ollama(&server.ollama_host()).run().exit(3).report();
    let case = report.case();
    assert_eq!(case.status(), "unscored");
    assert_eq!(case.unscored_reason(), Some("truncated"));
    assert!(case.reason().contains("sut.chat.max_tokens (2000)"), "{}", case.reason());
    assert!(report.to_string().contains("One, two, w"), "what there is of it is kept");
    assert!(server.calls(Role::Judge).is_empty(), "there is nothing to judge");
}

#[test]
fn the_assistant_answers_before_it_says_how_it_stands() {
    let server = ModelServer::start();
    let _ = ollama(&server.ollama_host()).run().exit(0);
    let schema = server.calls(Role::Sut)[0].schema().unwrap().clone();
    let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    // Ollama sorts them by name; that must not change the order.
    assert_eq!(fields, ["output", "status"]);
    assert_eq!(schema["properties"]["output"].get("maxLength"), None);
}
