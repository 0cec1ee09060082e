//! Connections that do what no protocol says.

use std::time::{Duration, Instant};

use super::leaves_nothing;
use crate::model_server::{Call, ModelServer, Reply, Role, Script, generated};
use crate::workspace::{CLEAR, OLLAMA, OPENAI, Workspace, config};

/// The generator's first call meets `first`; all others are answered.
fn first(first: Reply) -> Script {
    ModelServer::script().generator(move |call: &Call| match call.number {
        0 => first.clone(),
        _ => generated(call).into(),
    })
}

fn workspace(model: &str, settings: &str, server: &ModelServer) -> Workspace {
    let yaml = config(model, CLEAR).replace("{ max_retries: 0, restart_seconds: 0 }", settings);
    Workspace::new().config(yaml).server(server)
}

#[test]
fn a_connection_that_breaks_inside_an_answer_is_tried_again() {
    for model in [OPENAI, OLLAMA] {
        let server = first(Reply::Reset).start();
        let workspace = workspace(model, "{ max_retries: 2 }", &server);
        let run = workspace.run().exit(0);
        assert_eq!(server.calls(Role::Generator).len(), 2, "{model}");
        leaves_nothing(&run, &workspace);
    }
}

#[test]
fn a_server_whose_answers_always_break_off_fails_nobody() {
    for reply in [Reply::Reset, Reply::HalfOpen] {
        let name = format!("{reply:?}");
        let server = ModelServer::script().always(reply).start();
        let settings =
            "{ max_retries: 1, restart_seconds: 0, first_byte_seconds: 1, total_seconds: 2 }";
        let workspace = workspace(OPENAI, settings, &server);
        let run = workspace.run().exit(5);
        assert_eq!(run.report().case().status(), "not_run", "{name}");
        assert!(run.elapsed < Duration::from_secs(30), "{name}: {:?}", run.elapsed);
        leaves_nothing(&run, &workspace);
    }
}

#[test]
fn an_answer_that_drips_is_read_as_long_as_there_is_time() {
    let reply = |call: &Call| generated(call).to_string();
    let dripping = |every| {
        ModelServer::script().generator(move |call: &Call| Reply::Drip {
            bytes: 64,
            every: Duration::from_millis(every),
            text: reply(call),
        })
    };
    let server = dripping(20).start();
    let settings =
        "{ max_retries: 0, restart_seconds: 0, first_byte_seconds: 1, total_seconds: 60 }";
    let slow = workspace(OPENAI, settings, &server);
    leaves_nothing(&slow.run().exit(0), &slow);
    let server = dripping(2_000).start();
    let settings =
        "{ max_retries: 0, restart_seconds: 0, first_byte_seconds: 1, total_seconds: 2 }";
    let run = workspace(OPENAI, settings, &server).run().exit(5);
    let report = run.report();
    assert_eq!(report.case().status(), "not_run");
    assert!(report.case().reason().contains("2 s"), "{report}");
}

#[test]
fn a_date_to_come_back_at_is_kept_by_the_clock_of_the_server() {
    let until = "Sun, 06 Nov 1994 08:49:39 GMT";
    let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
    let server = first(Reply::LimitedUntil { until, date }).start();
    let started = Instant::now();
    let _ = workspace(OPENAI, "{ max_retries: 2 }", &server).run().exit(0);
    let calls = server.calls(Role::Generator);
    let waited = calls[1].at.duration_since(calls[0].at);
    assert!(waited >= Duration::from_secs(2), "waited {waited:?}");
    assert!(started.elapsed() < Duration::from_mins(1));
    // Without the server's clock the date says nothing, and the usual wait is kept.
    let server = first(Reply::LimitedUntil { until, date: None }).start();
    let _ = workspace(OPENAI, "{ max_retries: 2 }", &server).run().exit(0);
    assert_eq!(server.calls(Role::Generator).len(), 2);
}
