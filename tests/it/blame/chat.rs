//! Replies of chat servers, as system under test, judge and generator.

use serde_json::json;

use super::{CONTAINS, MODELS, NO_APOLOGY, ends, suite};
use crate::model_server::{Call, ModelServer, Reply, Role, generated, verdict};
use crate::run::Run;
use crate::workspace::{CLEAR, OLLAMA, OPENAI, Workspace, config};

fn chat(server: &ModelServer, checks: &str) -> Workspace {
    chat_with(OPENAI, server, checks)
}

fn chat_with(model: &str, server: &ModelServer, checks: &str) -> Workspace {
    let yaml = format!(
        "version: 1\n{MODELS}timeout_seconds: 12\nsut: {{ chat: {{ model: \"{model}\" }} }}\n"
    );
    Workspace::new()
        .config(yaml)
        .server(server)
        .file("suite.yaml", suite(checks))
        .args(["--suite", "suite.yaml"])
}

const ANSWER: &str = r#"{"output": "The shop opens at 9.", "status": "COMPLETE"}"#;

fn body(change: impl FnOnce(&mut serde_json::Value)) -> Reply {
    let mut body = json!({
        "id": "x", "object": "chat.completion", "model": "gpt-4o-mini",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": ANSWER },
            "finish_reason": "stop",
        }],
        "usage": { "prompt_tokens": 4000, "completion_tokens": 7, "total_tokens": 4007 },
    });
    change(&mut body);
    Reply::Body(body.to_string())
}

fn content(content: serde_json::Value) -> Reply {
    body(|body| body["choices"][0]["message"]["content"] = content)
}

fn usage(usage: serde_json::Value) -> Reply {
    body(|body| body["usage"] = usage)
}

/// Replies that are odd, but usable.
fn usable(text: &str) -> Vec<(&'static str, Reply)> {
    let thinking = json!({"type": "thinking", "thinking": [{"type": "text", "text": "Maybe 8."}]});
    let (start, end) = text.split_at(text.len() / 2);
    let parts = json!([thinking, {"type": "text", "text": start}, {"type": "text", "text": end}]);
    vec![
        ("parts", content(parts)),
        ("thinking", content(json!(format!("<think>Maybe 8?</think>\n{text}")))),
        (
            "thinking opened in the template",
            content(json!(format!("Maybe 8?\n</think>\n\n{text}"))),
        ),
        ("reasoning", content(json!(format!("<reasoning>8?</reasoning>{text}")))),
        ("a byte order mark", Reply::Body(format!("\u{feff}{}", raw(text)))),
    ]
}

fn raw(text: &str) -> String {
    let Reply::Body(body) = content(json!(text)) else { unreachable!() };
    body
}

#[test]
fn odd_but_usable_replies_of_a_chat_server_are_read() {
    let mut replies = usable(ANSWER);
    replies.extend([
        ("no tokens", usage(json!({ "prompt_tokens": 0, "completion_tokens": 7 }))),
        ("only new tokens", usage(json!({ "prompt_tokens": 12, "completion_tokens": 7 }))),
        ("no usage", usage(json!(null))),
        ("a code fence", content(json!(format!("```json\n{ANSWER}\n```")))),
    ]);
    for (name, reply) in replies {
        let server = ModelServer::script().sut(move |_| reply.clone()).start();
        ends(chat(&server, CONTAINS).run(), name, "passed", 0, "");
    }
    let thinks = format!("<think>Maybe 8?</think>{ANSWER}");
    let server = ModelServer::script().sut(move |_| thinks.clone()).start();
    let run = chat_with(OLLAMA, &server, CONTAINS).run();
    let notes = run.report().case().notes().join("\n");
    assert!(notes.contains("thinking were taken off"), "{notes}");
    ends(run, "thinking by Ollama", "passed", 0, "");
}

/// The first call meets this reply, and later ones are answered.
fn once(first: &Reply) -> impl Fn(&Call) -> Reply + Send + Sync + 'static {
    let first = first.clone();
    move |call| if call.number == 0 { first.clone() } else { Reply::Text(ANSWER.to_owned()) }
}

fn error(code: u16, headers: &[(&'static str, &str)], message: &str) -> Reply {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Reply::WithHeaders { code, headers, body: message.to_owned() }
}

#[test]
fn chat_faults_that_pass_are_repaired() {
    let seed = r#"{"error":{"message":"Unknown parameter: 'seed'."}}"#;
    let strict = r#"{"detail":[{"loc":["body","seed"],"msg":"Extra inputs are not permitted"}]}"#;
    let limit = r#"{"error":{"message":"'max_tokens' is not supported with this model."}}"#;
    for (name, reply) in [
        ("choices null", body(|body| body["choices"] = json!(null))),
        ("choices empty", body(|body| body["choices"] = json!([]))),
        ("400 for the seed", error(400, &[], seed)),
        ("422 for the seed", error(422, &[], strict)),
        ("400 for max_tokens", error(400, &[], limit)),
        ("a redirect at home", error(308, &[("location", "/v1/chat/completions")], "")),
        ("429 for a moment", error(429, &[("retry-after-ms", "50")], "slow down")),
        ("429 for half a second", error(429, &[("retry-after", "0.5")], "slow down")),
        ("503", Reply::status(503)),
        ("a reset", Reply::Reset),
    ] {
        let server = ModelServer::script().sut(once(&reply)).start();
        let run = chat(&server, CONTAINS).run();
        assert_eq!(server.calls(Role::Sut).len(), 2, "{name}:\n{}", run.stderr);
        if name.contains("seed") {
            assert_eq!(server.calls(Role::Sut)[1].body.get("seed"), None, "{name}");
            let notes = run.report().case().notes().join("\n");
            assert!(notes.contains("asked without `seed`"), "{name}: {notes}");
        }
        ends(run, name, "passed", 0, "");
    }
}

#[test]
fn chat_faults_that_stay_are_blamed_once() {
    let quota =
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
    let away = [("location", "http://192.0.2.1/v1/chat/completions")];
    let filtered = r#"{"error":{"message":"filtered","code":"content_filter"}}"#;
    for (name, reply, status, exit, words) in [
        (
            "choices empty",
            body(|body| body["choices"] = json!([])),
            "not_run",
            5,
            "without choices",
        ),
        (
            "another JSON",
            Reply::Body("{\"ok\":true}".to_owned()),
            "not_run",
            5,
            "the reply has: ok",
        ),
        ("a web page", Reply::Html, "not_run", 5, "HTML"),
        ("an exhausted quota", error(429, &[], quota), "not_run", 5, "quota is exhausted"),
        ("no credit", error(402, &[], ""), "not_run", 5, "quota is exhausted"),
        ("a wrong key", Reply::status(401), "not_run", 5, "401"),
        ("a redirect away", error(302, &away, ""), "not_run", 5, "which is not followed"),
        (
            "a day of waiting",
            error(429, &[("retry-after", "86400")], ""),
            "not_run",
            5,
            "wait 86400 s",
        ),
        (
            "longer than the case",
            error(429, &[("retry-after", "20")], ""),
            "not_run",
            5,
            "wait 20 s",
        ),
        ("too many requests", error(429, &[("retry-after", "0")], "slow"), "not_run", 5, "429"),
        ("503", Reply::status(503), "not_run", 5, "503"),
        (
            "unfinished thinking",
            content(json!("<think>Maybe 8? Let me")),
            "unscored",
            3,
            "thinking",
        ),
        (
            "a null answer",
            content(json!(r#"{"output": null, "status": "COMPLETE"}"#)),
            "sut_error",
            1,
            "null at /output",
        ),
        (
            "no answer",
            content(json!(r#"{"status": "COMPLETE"}"#)),
            "sut_error",
            1,
            "nothing at /output",
        ),
        (
            "an empty answer",
            content(json!(r#"{"output": "", "status": "COMPLETE"}"#)),
            "sut_error",
            1,
            "empty answer",
        ),
        ("a filter", error(400, &[], filtered), "sut_error", 1, "content filter"),
        ("400", Reply::status(400), "sut_error", 1, "400"),
        ("no JSON", Reply::from("At 9."), "sut_error", 1, "not one JSON object {output, status}"),
    ] {
        let server = ModelServer::script().sut(move |_| reply.clone()).start();
        ends(chat(&server, NO_APOLOGY).run(), name, status, exit, words);
    }
}

/// Replies that any server of the wire protocols may send, with the reason that the report states.
fn faults_of_any_server() -> Vec<(&'static str, Reply, &'static str, i32, &'static str)> {
    let away = [("location", "http://192.0.2.1/api/chat")];
    let day = error(429, &[("retry-after", "86400")], "");
    vec![
        ("another JSON", Reply::Body("{\"ok\":true}".to_owned()), "not_run", 5, "reply"),
        ("a web page", Reply::Html, "not_run", 5, "HTML"),
        ("no body", Reply::EmptyBody, "not_run", 5, "empty body"),
        ("no credit", error(402, &[], ""), "not_run", 5, "quota is exhausted"),
        ("a wrong key", Reply::status(401), "not_run", 5, "401"),
        ("forbidden", Reply::status(403), "not_run", 5, "403"),
        ("a redirect away", error(302, &away, ""), "not_run", 5, "which is not followed"),
        ("a day of waiting", day, "not_run", 5, "wait 86400 s"),
        ("too many requests", error(429, &[("retry-after", "0")], "slow"), "not_run", 5, "429"),
        ("503", Reply::status(503), "not_run", 5, "503"),
        ("half an answer", Reply::CloseMidway, "not_run", 5, ""),
        ("400", Reply::status(400), "sut_error", 1, "400"),
        ("no JSON", Reply::from("At 9."), "sut_error", 1, "not one JSON object {output, status}"),
        ("unfinished thinking", Reply::from("<think>Maybe 8?"), "unscored", 3, "thinking"),
        ("a cut reply", Reply::Truncated("{\"output\": \"The".to_owned()), "unscored", 3, "cut"),
        ("a null answer", Reply::Null, "sut_error", 1, ""),
    ]
}

#[test]
fn faults_of_each_server_shape_are_blamed_alike() {
    for model in [OLLAMA, OPENAI] {
        for (name, reply, status, exit, words) in faults_of_any_server() {
            let server = ModelServer::script().sut(move |_| reply.clone()).start();
            let name = format!("{name} by {model}");
            ends(chat_with(model, &server, NO_APOLOGY).run(), &name, status, exit, words);
        }
    }
}

#[test]
fn faults_of_ollama_that_pass_are_repaired() {
    let here = [("location", "/api/chat")];
    for (name, reply) in [
        ("a redirect at home", error(307, &here, "")),
        ("429 for half a second", error(429, &[("retry-after", "0.5")], "slow down")),
        ("503", Reply::status(503)),
        ("a reset", Reply::Reset),
        ("half an answer", Reply::CloseMidway),
    ] {
        let server = ModelServer::script().sut(once(&reply)).start();
        let run = chat_with(OLLAMA, &server, CONTAINS).run();
        assert_eq!(server.calls(Role::Sut).len(), 2, "{name}:\n{}", run.stderr);
        ends(run, name, "passed", 0, "");
    }
    let changed = |change| Reply::Changed { text: ANSWER.to_owned(), change };
    for (name, reply) in [
        ("no tokens", changed(json!({ "prompt_eval_count": 0 }))),
        ("no count of tokens", changed(json!({ "prompt_eval_count": null }))),
        ("only new tokens", changed(json!({ "prompt_eval_count": 12 }))),
    ] {
        let server = ModelServer::script().sut(move |_| reply.clone()).start();
        ends(chat_with(OLLAMA, &server, CONTAINS).run(), name, "passed", 0, "");
    }
}

// The judge and the generator.

/// One generated case with this judge.
fn judged(judge: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> Run {
    let server = ModelServer::script().judge(judge).start();
    let yaml = config(OPENAI, CLEAR)
        .replace("max_retries: 0", "max_retries: 1")
        .replace("judge: {", "judge: { max_reasks: 0,");
    Workspace::new().config(yaml).server(&server).run()
}

#[test]
fn odd_but_usable_verdicts_are_scored() {
    for (at, (name, _)) in usable("{}").into_iter().enumerate() {
        let run = judged(move |call| {
            let text = verdict(call, 1.0).to_string();
            usable(&text).swap_remove(at).1
        });
        ends(run, name, "passed", 0, "");
    }
}

#[test]
fn a_judge_without_a_verdict_fails_nobody() {
    let quota = r#"{"error":{"code":"insufficient_quota","message":"no quota"}}"#;
    for (name, reply, reason) in [
        ("unfinished thinking", content(json!("<think>Is it")), "truncated"),
        ("no choices", body(|body| body["choices"] = json!([])), "unavailable"),
        ("a web page", Reply::Html, "unavailable"),
        ("an exhausted quota", error(429, &[], quota), "unavailable"),
        ("no verdict", Reply::from("It is fine."), "malformed"),
    ] {
        let run = judged(move |_| reply.clone());
        let report = run.report();
        let case = report.case();
        assert_eq!(case.status(), "unscored", "{name}: {case}");
        assert_eq!(case.unscored_reason(), Some(reason), "{name}: {}", case.reason());
        let outage = reason == "unavailable" && run.ended_with(5);
        let is_given_up = name == "an exhausted quota";
        assert!(outage || !is_given_up && run.ended_with(3), "{name}:\n{}", run.stderr);
    }
}

#[test]
fn a_generator_is_read_as_well() {
    for (at, (name, _)) in usable("{}").into_iter().enumerate() {
        let server = ModelServer::script()
            .generator(move |call: &Call| usable(&generated(call).to_string()).swap_remove(at).1)
            .start();
        ends(Workspace::simple(&server).run(), name, "passed", 0, "");
    }
}

#[test]
fn addresses_of_model_servers_are_read_as_people_write_them() {
    let server = ModelServer::script().sut(|_| ANSWER).start();
    let at = server.openai_url();
    let bare = at.trim_start_matches("http://").to_owned();
    let with_credentials = at.replace("http://", "http://ann:s3cret-word@");
    for url in [
        format!("{at}/chat/completions"),
        format!("{at}/models/"),
        format!("\"{at}\""),
        format!(" {at} "),
        bare,
        with_credentials.clone(),
    ] {
        let run = chat(&server, CONTAINS).env("OPENAI_BASE_URL", &url).run();
        if url == with_credentials {
            let sent = server.calls(Role::Sut).pop().unwrap();
            let (_, value) = sent.headers.iter().find(|(name, _)| name == "authorization").unwrap();
            assert_eq!(value, "Basic YW5uOnMzY3JldC13b3Jk");
            let _ = run.nowhere("s3cret-word");
            continue;
        }
        ends(run, &url, "passed", 0, "");
    }
}
