//! The table of `docs/blame.md`: who is at fault for each kind of reply, by adapter and role.

use serde_json::json;

use crate::model_server::{Call, ModelServer, Reply, Role, generated, verdict};
use crate::run::Run;
use crate::task_server::{TaskAnswer, TaskServer};
use crate::workspace::{CLEAR, OLLAMA, OPENAI, Workspace, config};

/// Three cases that checks decide; `{checks}` is replaced.
const SUITE: &str = r#"version: 1
cases:
  - scenario: { id: one, description: d, expected_status: COMPLETE }
    prompt: "Say when the shop opens"
    checks: {checks}
"#;

const CONTAINS: &str = r#"[ { contains: "opens at 9" } ]"#;

/// A check that every answer without an apology satisfies.
const NO_APOLOGY: &str = "[ { not_contains: sorry }, { characters: { max: 200 } } ]";

/// Limits that keep failing tests short.
const MODELS: &str = "models: { max_retries: 1, restart_seconds: 0, first_byte_seconds: 2 }\n";

fn suite(checks: &str) -> String {
    SUITE.replace("{checks}", checks)
}

#[track_caller]
fn ends(run: Run, name: &str, status: &str, exit: i32, words: &str) {
    let report = run.report();
    let case = report.case();
    assert_eq!(case.status(), status, "{name}: {case}\n{}", run.stderr);
    if status != "passed" {
        assert!(case.reason().contains(words), "{name}: `{words}` is not in: {}", case.reason());
    }
    let _ = run.exit(exit);
}

// The system under test by HTTP.

fn http(server: &TaskServer, settings: &str, checks: &str, seconds: u32) -> Workspace {
    let url = server.url();
    Workspace::new()
        .config(format!(
            "version: 1\ntimeout_seconds: {seconds}\n\
             sut: {{ http: {{ base_url: \"{url}\", poll_seconds: 0.02{settings} }} }}\n"
        ))
        .file("suite.yaml", suite(checks))
        .args(["--suite", "suite.yaml"])
}

fn accepted() -> TaskAnswer {
    TaskAnswer::json(r#"{"task_id":"t1"}"#)
}

fn complete(output: &serde_json::Value) -> TaskAnswer {
    TaskAnswer::json(&json!({ "status": "COMPLETE", "output": output }).to_string())
}

fn opens() -> TaskAnswer {
    complete(&json!("The shop opens at 9."))
}

#[test]
fn http_requests_that_may_pass_are_sent_again() {
    let status = TaskAnswer::status;
    let early = TaskAnswer::retry_after;
    let redirect =
        TaskAnswer::Http(307, vec![("location", "/api/tasks".to_owned())], String::new());
    for (name, submit, poll, requests) in [
        (
            "every passing fault",
            vec![early(429, "0.1"), status(503), accepted()],
            vec![status(404), early(429, "0"), status(502), status(502), opens()],
            8,
        ),
        ("a reset", vec![accepted()], vec![TaskAnswer::Close, opens()], 3),
        ("504", vec![accepted()], vec![status(504), opens()], 3),
        ("a redirect at home", vec![redirect, accepted()], vec![opens()], 3),
    ] {
        let server = TaskServer::start(submit, poll);
        let run = http(&server, "", CONTAINS, 30).run();
        assert_eq!(server.requests().len(), requests, "{name}: {:?}", server.requests());
        ends(run, name, "passed", 0, "");
    }
}

#[test]
fn http_faults_that_stay_are_blamed_once() {
    let status = TaskAnswer::status;
    let page = || TaskAnswer::Http(200, Vec::new(), "<!doctype html><h1>Log in</h1>".to_owned());
    let away = || {
        let to = vec![("location", "http://192.0.2.1/api/tasks".to_owned())];
        TaskAnswer::Http(302, to, String::new())
    };
    for (name, submit, poll, case, exit, words) in [
        ("503 for ever", vec![status(503)], vec![opens()], "not_run", 5, "503"),
        ("502 on polls", vec![accepted()], vec![status(502)], "not_run", 5, "502"),
        ("404 for the call", vec![status(404)], vec![opens()], "not_run", 5, "sut.http.base_url"),
        ("502 on a submit", vec![status(502)], vec![opens()], "not_run", 5, "502"),
        ("401", vec![status(401)], vec![opens()], "not_run", 5, "token_variable"),
        ("402", vec![status(402)], vec![opens()], "not_run", 5, "402 Payment Required"),
        ("405", vec![status(405)], vec![opens()], "not_run", 5, "correct the method of the call"),
        ("501", vec![status(501)], vec![opens()], "not_run", 5, "correct the method of the call"),
        ("529", vec![status(529)], vec![opens()], "not_run", 5, "answered 529"),
        (
            "an error with its message",
            vec![accepted()],
            vec![TaskAnswer::json(r#"{"status":"ERROR","error":{"message":"no model"}}"#)],
            "sut_error",
            1,
            "ERROR: no model",
        ),
        (
            "an error without one",
            vec![accepted()],
            vec![TaskAnswer::json(r#"{"status":"ERROR"}"#)],
            "sut_error",
            1,
            "ERROR without a message; the reply has: status",
        ),
        ("a web page", vec![page()], vec![opens()], "not_run", 5, "HTML"),
        ("a redirect away", vec![away()], vec![opens()], "not_run", 5, "which is not followed"),
        (
            "a day of waiting",
            vec![TaskAnswer::retry_after(429, "86400")],
            vec![opens()],
            "not_run",
            5,
            "asks to wait 86400 s",
        ),
        ("400", vec![status(400)], vec![opens()], "sut_error", 1, "400"),
        ("500", vec![status(500)], vec![opens()], "sut_error", 1, "500"),
        ("no JSON", vec![TaskAnswer::json("hi")], vec![opens()], "sut_error", 1, "no JSON"),
        (
            "an unknown status",
            vec![accepted()],
            vec![TaskAnswer::json(r#"{"status":"DONE","output":"x"}"#)],
            "sut_error",
            1,
            "unknown status",
        ),
    ] {
        let server = TaskServer::start(submit, poll);
        ends(http(&server, "", CONTAINS, 3).run(), name, case, exit, words);
    }
}

#[test]
fn http_answers_that_are_not_there_pass_nothing() {
    let nowhere = ", output: /answer/text";
    let missing = TaskAnswer::json(r#"{"status":"COMPLETE"}"#);
    for (name, settings, answer, case, words) in [
        (
            "a pointer to nowhere",
            nowhere,
            opens(),
            "sut_error",
            "nothing at /answer/text; the reply has: status, output",
        ),
        ("null", "", complete(&json!(null)), "sut_error", "null at /output"),
        ("no member", "", missing, "sut_error", "nothing at /output"),
        ("an empty text", "", complete(&json!("")), "sut_error", "an empty answer"),
        (
            "unfinished thinking",
            "",
            complete(&json!("<think>At 9? Or")),
            "sut_error",
            "no answer seen: the text ends within its thinking: <think>At 9? Or",
        ),
        (
            "thinking alone",
            "",
            complete(&json!([{ "type": "thinking", "thinking": "At 9." }])),
            "sut_error",
            "no text in the parts at /output",
        ),
    ] {
        let server = TaskServer::start(vec![accepted()], vec![answer]);
        ends(http(&server, settings, NO_APOLOGY, 10).run(), name, case, 1, words);
    }
    for checks in [r#"[ { equals: "" } ]"#, r#"[ { regex: "^$" } ]"#] {
        let server = TaskServer::start(vec![accepted()], vec![complete(&json!(""))]);
        ends(http(&server, "", checks, 10).run(), checks, "passed", 0, "");
    }
}

#[test]
fn http_texts_are_normalised_before_checks() {
    let line = r#"[ { regex: "(?m)at 9\\.$" } ]"#;
    let café = "[ { contains: café } ]";
    for (name, body, checks) in [
        ("CRLF", json!({"status":"COMPLETE","output":"At 9.\r\nAt 5.\r\n"}).to_string(), line),
        (
            "colours",
            json!({"status":"COMPLETE","output":"at \u{1b}[1m9.\u{1b}[0m"}).to_string(),
            line,
        ),
        ("a surrogate", r#"{"status":"COMPLETE","output":"\ud83d at 9."}"#.to_owned(), line),
        (
            "a mark",
            "\u{feff}{\"status\":\"COMPLETE\",\"output\":\"\u{feff}at 9.\"}".to_owned(),
            line,
        ),
        ("NFD", json!({"status":"COMPLETE","output":"cafe\u{301}"}).to_string(), café),
        (
            "thinking",
            json!({"status":"COMPLETE","output":"<think>8?</think>at 9."}).to_string(),
            r#"[ { regex: "^at 9\\.$" } ]"#,
        ),
        (
            "parts",
            json!({"status":"COMPLETE","output":[{"type":"text","text":"at 9."}]}).to_string(),
            r#"[ { regex: "^at 9\\.$" } ]"#,
        ),
    ] {
        let body = body.replace("At 9", "at 9");
        let server = TaskServer::start(vec![accepted()], vec![TaskAnswer::json(&body)]);
        let run = http(&server, "", checks, 10).run();
        let report = run.report();
        let notes = report.case().notes().join("\n");
        assert!(notes.contains("normalised before it was checked"), "{name}: {notes}");
        ends(run, name, "passed", 0, "");
    }
}

/// A system under test that answers each turn in one call.
fn ask(server: &TaskServer, settings: &str, checks: &str) -> Workspace {
    let ask = ", ask: { method: POST, path: /chat, body: { message: \"{prompt}\" } }";
    http(server, &format!("{ask}{settings}"), checks, 4)
}

#[test]
fn an_answer_in_one_call_is_read() {
    let json = |body: &str| vec![TaskAnswer::json(body)];
    for (name, settings, answers, status, exit, words) in [
        ("a field", ", output: /a/0", json(r#"{"a": ["It opens at 9."]}"#), "passed", 0, ""),
        ("a text", ", output: \"\"", json("It opens at 9."), "passed", 0, ""),
        ("null", "", json(r#"{"output": null}"#), "sut_error", 1, "null at /output"),
        (
            "elsewhere",
            "",
            json(r#"{"answer": "It opens at 9."}"#),
            "sut_error",
            1,
            "nothing at /output; the reply has: answer; hint: correct sut.http.output",
        ),
        ("empty", "", json(r#"{"output": " "}"#), "sut_error", 1, "an empty answer"),
        ("no JSON", "", json("It opens at 9."), "sut_error", 1, "no JSON"),
        ("a web page", "", json("<html></html>"), "not_run", 5, "HTML"),
        ("a wrong path", "", vec![TaskAnswer::status(404)], "not_run", 5, "404"),
        ("a wrong key", "", vec![TaskAnswer::status(401)], "not_run", 5, "token_variable"),
        ("a crash", "", vec![TaskAnswer::status(500)], "sut_error", 1, "500"),
        ("a reset", "", vec![TaskAnswer::Close], "not_run", 5, ""),
        (
            "busy at first",
            ", output: /text",
            vec![
                TaskAnswer::retry_after(429, "0"),
                TaskAnswer::json(r#"{"text": "It opens at 9."}"#),
            ],
            "passed",
            0,
            "",
        ),
    ] {
        let server = TaskServer::start(answers, vec![TaskAnswer::status(500)]);
        let checks = if status == "passed" { CONTAINS } else { NO_APOLOGY };
        ends(ask(&server, settings, checks).run(), name, status, exit, words);
    }
}

/// The second turn gets what it needs to continue: an id, or the turns so far.
#[test]
fn a_conversation_by_one_call_is_continued() {
    let suite = r#"version: 1
cases:
  - scenario: { id: one, description: d, expected_status: COMPLETE, follow_ups: ["The shop"] }
    prompt: "Say when it opens"
    checks: [ { contains: "opens at 9" } ]
"#;
    for (body, sent) in [
        (r#"{ message: "{prompt}", id: "{session_id}" }"#, Some("\"message\":\"The shop\"")),
        (
            r#"{ turns: "{messages}" }"#,
            Some(r#"{"role":"assistant","content":"Which one do you mean?"}"#),
        ),
        (r#"{ message: "{prompt}" }"#, None),
    ] {
        let answers = ["Which one do you mean?", "The shop opens at 9."]
            .map(|text| TaskAnswer::json(&json!({ "output": text }).to_string()));
        let server = TaskServer::start(answers.to_vec(), vec![TaskAnswer::status(500)]);
        let settings = format!(", ask: {{ method: POST, path: /chat, body: {body} }}");
        let run = http(&server, &settings, CONTAINS, 8).file("suite.yaml", suite).run();
        match sent {
            Some(part) => {
                let bodies = server.bodies();
                assert!(bodies[1].contains(part), "{bodies:?}");
                ends(run, body, "passed", 0, "");
            }
            None => ends(run, body, "not_run", 5, "a reply would begin a new conversation"),
        }
    }
}

#[test]
fn a_server_under_test_that_is_not_there_ends_the_run_once() {
    let server = TaskServer::start(vec![accepted()], vec![opens()]);
    let workspace = http(&server, "", CONTAINS, 10);
    drop(server);
    let _ = workspace.run().exit(5).one_error(&["refused"]);
}

// The system under test by a chat model.

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

// The system under test as a program.

fn program(script: &str, protocol: &str, checks: &str, seconds: u32) -> Workspace {
    Workspace::new()
        .config(format!(
            "version: 1\ntimeout_seconds: {seconds}\n\
             sut: {{ command: {{ run: [sh, agent.sh], protocol: {protocol}, work_folder: copy }} }}\n"
        ))
        .file("agent.sh", script)
        .file("suite.yaml", suite(checks))
        .args(["--suite", "suite.yaml"])
}

#[test]
fn programs_without_an_answer_say_what_to_do() {
    for (name, protocol, script, status, exit, words) in [
        (
            "no output",
            "json_lines",
            r#"echo '{"type":"result","status":"COMPLETE"}'"#,
            "sut_error",
            1,
            "nothing at /output; the reply has: type, status",
        ),
        (
            "null",
            "json_lines",
            r#"echo '{"type":"result","status":"COMPLETE","output":null}'"#,
            "sut_error",
            1,
            "null at /output",
        ),
        (
            "an empty answer",
            "json_lines",
            r#"echo '{"type":"result","status":"COMPLETE","output":""}'"#,
            "sut_error",
            1,
            "an empty answer",
        ),
        ("plain text", "json_lines", "echo Hello; cat", "sut_error", 1, "protocol: text"),
        ("nothing", "text", "exit 0", "sut_error", 1, "printed no answer"),
        ("a blank line", "text", "echo", "sut_error", 1, "an empty answer"),
        (
            "a terminal",
            "text",
            "echo 'stdin is not a terminal' >&2; exit 1",
            "sut_error",
            1,
            "wants a terminal",
        ),
        ("a prompt", "text", "printf 'You: '; sleep 60", "sut_timeout", 1, "waits for more input"),
        (
            "a file",
            "text",
            "echo 'opens at 9' > answer.txt",
            "sut_error",
            1,
            "it wrote `answer.txt`",
        ),
        ("a death", "text", "echo 'opens at 9'; exit 3", "sut_error", 1, "exit code is not 0"),
        ("stderr", "text", "echo 'opens at 9' >&2", "sut_error", 1, "wrote to stderr alone"),
        ("usage", "text", "echo 'usage: a PROMPT' >&2; exit 2", "sut_error", 1, "wants arguments"),
        (
            "unfinished thinking",
            "text",
            "echo '<think>At 9? Or'",
            "sut_error",
            1,
            "ends within its thinking",
        ),
        (
            "no type",
            "json_lines",
            r#"echo '{"status":"COMPLETE","output":"At 9."}'"#,
            "sut_error",
            1,
            r#"print {"type": "result""#,
        ),
        (
            "a wrong status",
            "json_lines",
            r#"echo '{"type":"result","status":"DONE","output":"At 9."}'"#,
            "sut_error",
            1,
            r#"print {"type": "result""#,
        ),
        (
            "JSON on two lines",
            "json_lines",
            "echo '{'; echo '}'",
            "sut_error",
            1,
            "not on one line",
        ),
        ("no such command", "text", "exec no-such-agent", "not_run", 5, "exit code 127"),
    ] {
        let run = program(script, protocol, NO_APOLOGY, 3).run();
        let report = run.report();
        let said = report.case().reason().contains("printed nothing");
        assert!(!said || !script.contains("echo '{"), "{name}: {}", report.case().reason());
        ends(run, name, status, exit, words);
    }
}

#[test]
fn odd_but_usable_answers_of_programs_are_read() {
    let result =
        |members: &str| format!(r#"echo '{{"type":"result","status":"COMPLETE",{members}}}'"#);
    let opens = r#""output":"The shop opens at 9.""#;
    for (name, protocol, script, note) in [
        (
            "tokens in words",
            "json_lines",
            result(&format!(r#"{opens},"tokens":"many""#)),
            "`tokens` of the result is no whole number",
        ),
        (
            "thinking",
            "json_lines",
            result(r#""output":"<think>sorry, 8?</think>It opens at 9.""#),
            "thinking before the answer taken off",
        ),
        (
            "parts",
            "json_lines",
            result(
                r#""output":[{"type":"thinking","thinking":"sorry"},{"type":"text","text":"It opens at 9."}]"#,
            ),
            "text parts joined",
        ),
        (
            "thinking in plain text",
            "text",
            "printf 'sorry, 8?</think>\\nIt opens at 9.'".to_owned(),
            "thinking before the answer taken off",
        ),
        ("a JSON line", "text", result(opens), "set sut.command.protocol: json_lines"),
    ] {
        let checks = r#"[ { contains: "opens at 9" }, { not_contains: sorry } ]"#;
        let run = program(&script, protocol, checks, 10).run();
        let report = run.report();
        let notes = report.case().notes().join("\n");
        assert!(notes.contains(note), "{name}: {notes}");
        ends(run, name, "passed", 0, "");
    }
}

#[test]
fn an_answer_before_a_death_is_kept_and_noted() {
    let script =
        r#"echo '{"type":"result","status":"COMPLETE","output":"It opens at 9."}'; exit 3"#;
    let run = program(script, "json_lines", CONTAINS, 10).run();
    let report = run.report();
    let notes = report.case().evidence_notes().join("\n");
    assert!(notes.contains("ended after its answer, which was kept: exit code 3"), "{notes}");
    ends(run, "a late death", "passed", 0, "");
}

#[test]
fn a_script_that_is_not_there_ends_the_run_once() {
    let workspace = program("", "text", CONTAINS, 10);
    std::fs::remove_file(workspace.path("agent.sh")).unwrap();
    let _ =
        workspace.clone().run().exit(5).one_error(&["agent.sh"]).stderr_contains("sut.command.run");
    let _ = workspace.args(["doctor", "--offline"]).run().exit(5).stdout_contains("agent.sh");
    let yaml = "version: 1\nsut: { acp: { run: [python3, agent.py, --acp] } }\n";
    let workspace = Workspace::new()
        .config(yaml)
        .file("suite.yaml", suite(CONTAINS))
        .args(["--suite", "suite.yaml"]);
    let _ = workspace.run().exit(5).one_error(&["agent.py"]).stderr_contains("sut.acp.run");
}

/// An agent of the Agent Client Protocol that behaves like this mode of the fixture.
fn acp(mode: &str, checks: &str, seconds: u32) -> Workspace {
    Workspace::new()
        .config(format!(
            "version: 1\ntimeout_seconds: {seconds}\n\
             sut: {{ acp: {{ run: [python3, acp_agent.py, {mode}] }} }}\n"
        ))
        .file("acp_agent.py", include_str!("fixtures/acp_agent.py"))
        .file("suite.yaml", suite(checks))
        .args(["--suite", "suite.yaml"])
}

#[test]
fn agents_of_the_client_protocol_without_an_answer_are_blamed_with_the_reason() {
    for (mode, status, exit, words) in [
        ("silent", "sut_error", 1, "ended its turn without a word"),
        ("blank", "sut_error", 1, "ended its turn without a word"),
        ("die", "sut_error", 1, "the cat ate the key"),
        ("half", "sut_error", 1, "exit code 3"),
        ("error", "sut_error", 1, "no model today"),
        ("version", "sut_error", 1, "version"),
        ("auth", "sut_error", 1, "Authentication required"),
        ("stop refusal", "sut_error", 1, "refus"),
        ("hang", "sut_timeout", 1, "timeout"),
    ] {
        let mode_list = mode.replace(' ', ", ");
        ends(acp(&mode_list, NO_APOLOGY, 4).run(), mode, status, exit, words);
    }
    ends(acp("garbage", "[ { contains: Done } ]", 10).run(), "garbage", "passed", 0, "");
    let run = acp("late_death", CONTAINS, 10).run();
    let notes = run.report().case().evidence_notes().join("\n");
    assert!(notes.contains("ended after its answer, which was kept: exit code 3"), "{notes}");
    ends(run, "a late death", "passed", 0, "");
}

#[test]
fn doctor_says_what_it_saw() {
    let says = "cat >/dev/null; echo 'The shop opens at 9.'";
    let run = program(says, "text", CONTAINS, 10).args(["doctor", "--offline"]).run();
    run.stdout_contains("answered “The shop opens at 9.” (COMPLETE)")
        .stdout_contains("ok   answer");
    let server = TaskServer::start(vec![accepted()], vec![opens()]);
    let nowhere =
        http(&server, ", output: /answer/text", CONTAINS, 10).args(["doctor", "--offline"]).run();
    nowhere.exit(5).stdout_contains("nothing at /answer/text; the reply has: status, output");
}

// Addresses.

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
