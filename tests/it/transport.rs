//! Retries, time limits and how many calls are open at once.

use std::time::{Duration, Instant};

use crate::model_server::{Call, ModelServer, Reply, Role, Script, generated};
use crate::workspace::{CLEAR, OLLAMA, OPENAI, Workspace, config, scenarios};

/// The generator's first call meets `first`; all others are answered.
fn first(first: Reply) -> Script {
    ModelServer::script().generator(move |call: &Call| {
        if call.number == 0 { first.clone() } else { generated(call).into() }
    })
}

/// One scenario with these settings of `models`.
fn with_models(settings: &str, server: &ModelServer) -> Workspace {
    let yaml = config(OPENAI, CLEAR).replace("{ max_retries: 0, restart_seconds: 0 }", settings);
    Workspace::new().config(yaml).server(server)
}

#[test]
fn what_may_pass_is_tried_again() {
    for reply in [
        Reply::status(408),
        Reply::status(429),
        Reply::status(500),
        Reply::status(503),
        Reply::Close,
        Reply::CloseMidway,
    ] {
        let name = format!("{reply:?}");
        let server = first(reply).start();
        let run = with_models("{ max_retries: 2 }", &server).run();
        assert_eq!(server.calls(Role::Generator).len(), 2, "{name}:\n{}", run.stderr);
        let _ = run.exit(0);
    }
}

#[test]
fn what_cannot_pass_is_not_tried_again() {
    for code in [400, 401, 403, 404, 422] {
        let server = first(Reply::status(code)).start();
        let workspace = with_models("{ max_retries: 5 }", &server);
        let _ = workspace.args(["--exit-zero"]).run();
        // A 400 may be about `response_format`; then the same is asked in another way, once.
        let mut formats: Vec<String> = server
            .calls(Role::Generator)
            .iter()
            .map(|call| call.body["response_format"]["type"].to_string())
            .collect();
        let calls = formats.len();
        formats.dedup();
        assert_eq!(formats.len(), calls, "{code}: {formats:?}");
    }
}

#[test]
fn a_retry_waits_as_long_as_the_server_says() {
    let limited = Reply::Status { code: 429, retry_after: Some("2"), body: "slow down".to_owned() };
    let server = first(limited).start();
    let _ = with_models("{ max_retries: 1 }", &server).run().exit(0);
    let calls = server.calls(Role::Generator);
    let waited = calls[1].at - calls[0].at;
    assert!(waited >= Duration::from_secs(2), "{waited:?}");
    assert!(waited < Duration::from_secs(10), "{waited:?}");
}

#[test]
fn retries_end() {
    let server = ModelServer::script().generator(|_| Reply::status(503)).start();
    let settings = "{ max_retries: 2, restart_seconds: 0 }";
    let report = with_models(settings, &server).run().exit(5).report();
    assert_eq!(report.case().status(), "not_run");
    assert!(report.case().reason().contains("503"), "{report}");
    assert_eq!(server.calls(Role::Generator).len(), 3);
}

#[test]
fn a_reply_that_breaks_the_schema_is_not_a_broken_connection() {
    let server = ModelServer::script().judge(|_| "{}").start();
    let yaml = config(OPENAI, CLEAR)
        .replace("max_retries: 0", "max_retries: 5")
        .replace("judge: {", "judge: { max_reasks: 0,");
    let _ = Workspace::new().config(yaml).server(&server).run().exit(3);
    assert_eq!(server.calls(Role::Judge).len(), 1);
}

#[test]
fn a_server_that_never_starts_to_answer_meets_a_limit() {
    let server = ModelServer::script().generator(|_| Reply::Hang).start();
    let workspace =
        with_models("{ max_retries: 0, restart_seconds: 0, first_byte_seconds: 0.5 }", &server);
    let report = workspace.run().exit(5).report();
    assert_eq!(report.case().status(), "not_run");
    assert!(report.case().reason().contains("first byte"), "{report}");
}

#[test]
fn a_server_that_never_stops_answering_meets_a_limit() {
    let server = ModelServer::script().generator(|_| Reply::Endless).start();
    let workspace =
        with_models("{ max_retries: 0, restart_seconds: 0, total_seconds: 5 }", &server);
    let started = Instant::now();
    let report = workspace.run().exit(3).report();
    assert_eq!(report.case().status(), "generation_failed");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

/// The most calls that were open at once in a run of `cases`.
fn most_in_flight(model: &str, cases: usize, args: &[&str]) -> usize {
    // Long enough that all places are taken even on a busy machine.
    let server = ModelServer::script().delay(Duration::from_millis(150)).start();
    let _ = Workspace::new()
        .config(config(model, &scenarios(cases)))
        .server(&server)
        .args(args)
        .run()
        .exit(0);
    server.most_in_flight()
}

#[test]
fn ollama_gets_one_call_at_a_time() {
    assert_eq!(most_in_flight(OLLAMA, 3, &[]), 1);
}

#[test]
fn others_get_eight() {
    assert_eq!(most_in_flight(OPENAI, 16, &[]), 8);
}

#[test]
fn concurrency_is_a_flag_for_all_of_them() {
    assert_eq!(most_in_flight(OPENAI, 6, &["--concurrency=3"]), 3);
    assert_eq!(most_in_flight(OLLAMA, 6, &["--concurrency=3"]), 3);
    assert_eq!(most_in_flight(OPENAI, 24, &["--concurrency=12"]), 12);
}
