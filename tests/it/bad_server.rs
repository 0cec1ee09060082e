//! Servers that misbehave from the first byte: one line that says which, and no hang.

use std::time::Duration;

use crate::model_server::{ModelServer, Reply};
use crate::run::Run;
use crate::workspace::{CLEAR, OLLAMA, OPENAI, Workspace, config};

fn misbehaviours() -> Vec<Reply> {
    let page = "<html>".repeat(200_000);
    vec![
        Reply::Html,
        Reply::EmptyBody,
        Reply::CloseMidway,
        Reply::Close,
        Reply::Null,
        Reply::status(404),
        Reply::status(500),
        Reply::Status { code: 502, retry_after: None, body: page },
        Reply::Status { code: 204, retry_after: None, body: String::new() },
        Reply::Hang,
        Reply::Endless,
        Reply::Padded { bytes: 100_000_000, text: "{}".to_owned() },
        Reply::Bytes(vec![0xff; 10]),
        Reply::from("\u{0}\u{1b}[2J\u{202e}"),
    ]
}

fn workspace(model: &str, server: &ModelServer) -> Workspace {
    let limits = "{ max_retries: 0, restart_seconds: 0, connect_seconds: 2, first_byte_seconds: 1, total_seconds: 3 }";
    let yaml = config(model, CLEAR).replace("{ max_retries: 0, restart_seconds: 0 }", limits);
    Workspace::new().config(yaml).server(server).args(["--timeout=5"])
}

#[track_caller]
fn is_orderly(run: &Run, name: &str) {
    assert!(!run.stderr.contains("panicked"), "{name}:\n{}", run.stderr);
    assert!(run.elapsed < Duration::from_secs(30), "{name}: {:?}", run.elapsed);
    let longest = run.stderr.lines().map(str::len).max().unwrap_or(0);
    assert!(longest < 2_000, "{name}: a line of {longest} bytes");
    assert!(!run.stderr.contains('\u{0}') && !run.stderr.contains("\u{1b}[2J"), "{name}");
}

#[test]
fn a_server_that_lists_models_but_cannot_chat_fails_nobody() {
    for model in [OPENAI, OLLAMA] {
        for reply in misbehaviours() {
            let name = format!("{model}, {reply:.80?}");
            let server = ModelServer::script().always(reply).start();
            let run = workspace(model, &server).run();
            is_orderly(&run, &name);
            let report = run.report();
            let case = report.case();
            // A server at fault, or a generator whose reply is of no use.
            let expected = match case.status() {
                "not_run" => 5,
                "generation_failed" => 3,
                // A reply in good form that says nothing: the assistant's own fault.
                "sut_error" if ["Null", "Text("].iter().any(|kind| name.contains(kind)) => 1,
                other => panic!("{name}: {other}"),
            };
            assert_eq!(case.pass(), (expected == 1).then_some(false), "{name}");
            let _ = run.exit(expected);
            assert!(!case.reason().is_empty(), "{name}");
        }
    }
}

#[test]
fn a_server_that_is_no_ollama_is_found_before_the_first_case() {
    for reply in misbehaviours() {
        let name = format!("{reply:.80?}");
        let server = ModelServer::script().catalogue(reply).start();
        let run = workspace(OLLAMA, &server).run();
        is_orderly(&run, &name);
        let host = server.ollama_host();
        run.exit(5).one_error(&[&host]);
        assert!(server.all_calls().is_empty(), "{name}");
    }
}

#[test]
fn a_model_that_breaks_is_no_error_of_the_system_under_test_but_a_bad_reply_is() {
    for (reply, code, status) in [
        (Reply::Html, 5, "not_run"),
        (Reply::CloseMidway, 5, "not_run"),
        (Reply::status(500), 5, "not_run"),
        (Reply::status(400), 1, "sut_error"),
        ("not JSON".into(), 1, "sut_error"),
    ] {
        let name = format!("{reply:.80?}");
        let server = ModelServer::script().sut(move |_| reply.clone()).start();
        let run = workspace(OPENAI, &server).run();
        is_orderly(&run, &name);
        let report = run.exit(code).report();
        assert_eq!(report.case().status(), status, "{name}");
    }
}
