//! The probabilities of a reply's first token: what is asked of each kind of server, and what is
//! made of its answers. Never an error: a model without probabilities has none.

use serde_json::{Value, json};

use selftest_models::choice::YesNoProbability;
use selftest_models::model_settings::ModelSettings;
use selftest_models::ollama::OllamaModel;
use selftest_models::openai::OpenAiModel;
use selftest_models::{ChatModel, ChatReply, ChatRequest, ModelError, PromptMessage};

use crate::model_server::{ModelServer, Reply, Role, Script, yes_or_no};

fn question() -> ChatRequest {
    let rules = PromptMessage::system("Answer with yes or no.");
    let asked = PromptMessage::user("Is Paris the capital of France?");
    ChatRequest::first_token(vec![rules, asked], Vec::new(), 7, 4096)
}

/// The replies to so many questions.
fn ask(model: &dyn ChatModel, questions: usize) -> Vec<Result<ChatReply, ModelError>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let request = question();
    (0..questions).map(|_| runtime.block_on(model.chat(&request))).collect()
}

fn ollama(server: &ModelServer) -> OllamaModel {
    let base = format!("http://{}", server.ollama_host());
    OllamaModel::new("qwen2.5:7b", &base, &ModelSettings::default()).unwrap()
}

fn openai(server: &ModelServer) -> OpenAiModel {
    OpenAiModel::new("local", &server.openai_url(), None, &ModelSettings::default()).unwrap()
}

/// The share of yes that an Ollama server of this script returns, if any.
fn ollama_says(script: Script) -> Option<f64> {
    let server = script.start();
    let reply = ask(&ollama(&server), 1).remove(0).unwrap();
    Some(YesNoProbability::from_tokens(&reply.first_token?)?.share())
}

fn new_ollama() -> Script {
    ModelServer::script().ollama_version("0.32.15")
}

fn close_to(found: Option<f64>, wanted: f64) {
    assert!(found.is_some_and(|found| (found - wanted).abs() < 1e-9), "{found:?}, not {wanted}");
}

#[test]
fn ollama_is_asked_for_one_token_and_twenty_alternatives() {
    let server = new_ollama().question(|_| yes_or_no(0.61)).start();
    let reply = ask(&ollama(&server), 1).remove(0).unwrap();
    assert_eq!(reply.text, "Yes");
    close_to(
        YesNoProbability::from_tokens(&reply.first_token.unwrap()).map(YesNoProbability::share),
        0.61,
    );
    let body = &server.calls(Role::Question)[0].body;
    assert_eq!(body["logprobs"], true);
    assert_eq!(body["top_logprobs"], 20);
    assert_eq!(body["think"], false);
    assert_eq!(body["truncate"], false);
    assert_eq!(body["options"]["num_predict"], 1);
    assert_eq!(body["options"]["temperature"], 0.0);
    assert_eq!(body.get("format"), None);
}

#[test]
fn an_ollama_that_tells_nothing_usable_is_no_error() {
    let told = |tokens: Vec<(&'static str, Value)>| {
        new_ollama().question(move |_| Reply::FirstToken(tokens.clone()))
    };
    let (yes, no) = (("Yes", json!(-0.1)), ("No", json!(-2.4)));
    for (name, script) in [
        ("before 0.12.11", ModelServer::script().question(|_| yes_or_no(0.6))),
        ("no list", new_ollama()),
        ("the chosen token only", told(vec![yes.clone()])),
        ("not a number", told(vec![yes.clone(), ("No", json!("NaN"))])),
        ("null", told(vec![yes.clone(), ("No", Value::Null)])),
        ("positive", told(vec![("Yes", json!(3.5)), no.clone()])),
        ("other tokens", told(vec![("The", json!(-0.1)), ("A", json!(-3.0))])),
        ("thoughts", new_ollama().question(|_| yes_or_no(0.6)).always_thinks("Paris is big.")),
        ("thoughts in the reply", told(vec![("<think>", json!(-0.1)), yes, no])),
    ] {
        assert_eq!(ollama_says(script), None, "{name}");
    }
}

#[test]
fn an_ollama_model_that_thinks_unless_told_not_to_is_told() {
    let script = new_ollama().question(|_| yes_or_no(0.8)).thinks("Paris is in France.");
    close_to(ollama_says(script), 0.8);
}

#[test]
fn an_openai_server_is_asked_the_same_way() {
    let server = ModelServer::script().question(|_| yes_or_no(0.3)).start();
    let reply = ask(&openai(&server), 1).remove(0).unwrap();
    close_to(
        YesNoProbability::from_tokens(&reply.first_token.unwrap()).map(YesNoProbability::share),
        0.3,
    );
    let body = &server.calls(Role::Question)[0].body;
    assert_eq!(body["logprobs"], true);
    assert_eq!(body["top_logprobs"], 20);
    assert_eq!(body["max_tokens"], 1);
    assert_eq!(body["temperature"], 0.0);
    assert_eq!(body["chat_template_kwargs"]["enable_thinking"], false);
    assert_eq!(body.get("response_format"), None);
}

#[test]
fn what_an_openai_server_refuses_is_not_sent_again() {
    let server = ModelServer::script()
        .question(|_| yes_or_no(0.7))
        .top_logprobs(3)
        .refuse_unknown_fields()
        .start();
    for reply in ask(&openai(&server), 3) {
        let tokens = reply.unwrap().first_token.unwrap();
        assert_eq!(tokens.len(), 3, "{tokens:?}");
    }
    assert_eq!(server.refused(), 2, "once for each thing that it refuses");
    let bodies: Vec<Value> =
        server.calls(Role::Question).into_iter().map(|call| call.body).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|body| body.get("chat_template_kwargs").is_none()));
    assert!(bodies.iter().all(|body| body["top_logprobs"] == 3));
}

#[test]
fn an_openai_model_without_log_probabilities_is_asked_for_them_once() {
    let server = ModelServer::script().top_logprobs(0).start();
    for reply in ask(&openai(&server), 3) {
        assert_eq!(reply.unwrap().first_token, None);
    }
    assert_eq!(server.refused(), 1);
    assert!(server.calls(Role::Question).is_empty());
}

#[test]
fn a_silent_or_thinking_openai_server_is_no_error() {
    for script in [
        ModelServer::script(),
        ModelServer::script().question(|_| yes_or_no(0.6)).always_thinks("Paris is big."),
    ] {
        let server = script.start();
        assert_eq!(ask(&openai(&server), 1).remove(0).unwrap().first_token, None);
    }
}
