//! Replies with status 200 that are not, or not only, the answer of the model that was asked: no
//! verdict comes of them, and reports say who answered. And the recorded replies of a real server,
//! which are all right.

use serde_json::{Value, json};

use selftest_models::model_settings::ModelSettings;
use selftest_models::ollama::OllamaModel;
use selftest_models::openai::OpenAiModel;
use selftest_models::{ChatModel, ChatRequest, ModelError, PromptMessage};

use crate::model_server::{ModelServer, Reply, verdict};
use crate::real_sessions;
use crate::workspace::{CLEAR, OLLAMA, OPENAI, Workspace, config};

/// A good reply with other members in its envelope.
fn changed(text: &str, change: &Value) -> Reply {
    Reply::Changed { text: text.to_owned(), change: change.clone() }
}

fn two_choices(texts: [&str; 2]) -> Value {
    let choice = |text: &str| json!({ "message": { "role": "assistant", "content": text }, "finish_reason": "stop" });
    json!({ "choices": texts.map(choice) })
}

/// Faulty replies, and the reason that the report states for each.
fn wrong(model: &str) -> Vec<(Value, &'static str)> {
    let mut wrong = vec![
        (json!({ "error": "no capacity left" }), "status 200 and an error: no capacity left"),
        (json!({ "error": { "message": "no capacity left" } }), "an error: no capacity left"),
        (json!({ "model": "cheap-fallback-model" }), "another model, `cheap-fallback-model`"),
        (json!({ "model": null }), "names no model"),
        (json!({ "model": 7 }), "names no model"),
    ];
    if model == OPENAI {
        let choices = two_choices([r#"{"score":1}"#, r#"{"score":0}"#]);
        wrong.push((choices, "2 choices that disagree"));
        let choices = json!({ "choices": [{ "message": { "content": "x" }, "error": "half" }] });
        wrong.push((choices, "an error: half"));
    }
    wrong
}

#[test]
fn a_verdict_in_a_wrong_envelope_is_no_verdict() {
    for model in [OPENAI, OLLAMA] {
        for (change, words) in wrong(model) {
            let script = ModelServer::script();
            let kept = change.clone();
            let server =
                script.judge(move |call| changed(&verdict(call, 0.9).to_string(), &kept)).start();
            let run = Workspace::new().config(config(model, CLEAR)).server(&server).run();
            let report = run.exit(3).report();
            let case = report.case();
            assert_eq!(case.status(), "unscored", "{model} {change}");
            assert_eq!(case.unscored_reason(), Some("wrong_reply"), "{model} {change}");
            assert!(case.reason().contains(words), "{words}: {}", case.reason());
            assert_eq!(case.judge_calls().len(), 1, "it is not asked again: {change}");
        }
    }
}

#[test]
fn an_answer_in_a_wrong_envelope_is_no_fault_of_the_system_under_test() {
    let other = json!({ "model": "cheap-fallback-model" });
    let said = json!({ "status": "COMPLETE", "output": "Three lines." });
    let server = ModelServer::script().sut(move |_| changed(&said.to_string(), &other)).start();
    let run = Workspace::new().config(config(OPENAI, CLEAR)).server(&server).run();
    let report = run.exit(5).report();
    assert_eq!(report.case().status(), "not_run");
    assert!(report.case().reason().contains("cheap-fallback-model"), "{}", report.case().reason());
}

#[test]
fn a_dated_version_and_an_alias_are_the_model_and_reports_name_them() {
    let aliases = "models: { aliases: { gpt-4o-mini: [\"house/small\"] }, max_retries: 0,";
    let yaml = config(OPENAI, CLEAR).replace("models: { max_retries: 0,", aliases);
    for served in ["gpt-4o-mini-2024-07-18", "House/Small"] {
        let script = ModelServer::script();
        let change = json!({ "model": served });
        let server =
            script.judge(move |call| changed(&verdict(call, 0.9).to_string(), &change)).start();
        let run = Workspace::new().config(&yaml).server(&server).run().exit(0);
        let report = run.report();
        assert_eq!(report.case().judge_calls()[0]["served_model"], served);
        let report: Value = serde_json::from_str(&report.to_string()).unwrap();
        assert_eq!(report["usage"]["judge"]["served_models"], json!([served]));
        assert_eq!(report["usage"]["generator"]["served_models"], json!(["gpt-4o-mini"]));
        let markdown = run.markdown();
        assert!(markdown.contains(&format!("- Served model of judge: {served}\n")), "{markdown}");
        assert!(markdown.contains("- Served model of generator: gpt-4o-mini\n"), "{markdown}");
    }
}

#[test]
fn the_digest_of_a_server_s_weights_is_in_the_reports() {
    let server = ModelServer::start();
    let run = Workspace::new().config(config(OLLAMA, CLEAR)).server(&server).run().exit(0);
    let digest = "845dbda0ea48ed749caafd9e6037047aa19acfcfd82e704d7ca97d631a0b697e";
    let report: Value = serde_json::from_str(&run.report().to_string()).unwrap();
    assert_eq!(report["models"]["weights"], json!({ OLLAMA: digest }));
    assert!(run.markdown().contains(&format!("- Weights of {OLLAMA}: {digest}\n")));
}

#[test]
fn control_tokens_of_any_template_reach_no_judge() {
    const TOKENS: [&str; 12] = [
        "<end_of_turn>",
        "<start_of_turn>",
        "<｜Assistant｜>",
        "<think>",
        "</think>",
        "[gMASK]",
        "<sop>",
        "[TOOL_CALLS]",
        "</s>",
        "<<SYS>>",
        "<|im_end|>",
        "<EOS_TOKEN>",
    ];
    let said = format!("One. {} Two.", TOKENS.concat());
    let answer = json!({ "status": "COMPLETE", "output": said });
    let server = ModelServer::script().sut(move |_| answer.clone()).start();
    let _ = Workspace::new().config(config(OPENAI, CLEAR)).server(&server).run();
    let judged = server.calls(crate::model_server::Role::Judge);
    assert!(!judged.is_empty());
    for token in TOKENS {
        assert!(judged.iter().all(|call| !call.last_message().contains(token)), "{token}");
    }
    assert!(judged[0].last_message().contains("< end_of_turn>"), "{}", judged[0].last_message());
}

/// One call at a server that answers every chat call with this body.
fn ask(model: &str, path: &str, body: &Value) -> Result<Option<String>, ModelError> {
    let script = ModelServer::script().models(&[model, "another:1b"]);
    let server = script.always(Reply::Body(body.to_string())).start();
    let settings = ModelSettings::default();
    let base = format!("http://{}", server.ollama_host());
    let model: Box<dyn ChatModel> = if path.starts_with("/v1") {
        Box::new(OpenAiModel::new(model, &server.openai_url(), None, &settings).unwrap())
    } else {
        Box::new(OllamaModel::new(model, &base, &settings).unwrap())
    };
    let request =
        ChatRequest::first_token(vec![PromptMessage::user("Is it?")], Vec::new(), 7, 4096);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(model.chat(&request)).map(|reply| reply.served_model)
}

#[test]
fn recorded_replies_of_a_real_server_are_answers() {
    let Some(folder) = real_sessions::shared_data("ollama") else { return };
    let text = std::fs::read_to_string(folder.join("0.32.15.jsonl")).unwrap();
    let mut seen = 0;
    for line in text.lines() {
        let exchange: Value = serde_json::from_str(line).unwrap();
        let path = exchange["path"].as_str().unwrap();
        let is_chat = path.ends_with("/chat") || path.ends_with("/completions");
        let reply = &exchange["reply"];
        if !is_chat || exchange["status"] != 200 || !reply.is_object() {
            continue;
        }
        let model = exchange["request"]["model"].as_str().unwrap();
        let name = &exchange["name"];
        let mut reply = reply.clone();
        let served = ask(model, path, &reply).unwrap_or_else(|error| {
            panic!("{name}: {error}");
        });
        assert_eq!(served.as_deref(), Some(model), "{name}");
        reply["model"] = json!("another:1b");
        let error = ask(model, path, &reply).unwrap_err();
        assert!(matches!(error, ModelError::WrongReply { .. }), "{name}: {error}");
        seen += 1;
    }
    assert!(seen >= 12, "{seen}");
}
