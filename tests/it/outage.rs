//! Model servers that die, hang or come back in the middle of a run: infrastructure, and no failure.

use std::net::TcpListener;
use std::time::Duration;

use crate::model_server::{Call, ModelServer, Reply, Role, Script, generated};
use crate::run::Run;
use crate::workspace::{CLEAR, OLLAMA, OPENAI, Workspace, config, scenarios};

/// Every call takes long enough for a test to end the server within it.
const CALL: Duration = Duration::from_millis(150);

/// A run of these cases, one after the other, with these settings of `models`.
fn workspace(model: &str, cases: usize, settings: &str, server: &ModelServer) -> Workspace {
    let yaml = config(model, &scenarios(cases));
    let yaml = yaml.replace("{ max_retries: 0, restart_seconds: 0 }", settings);
    Workspace::new().config(yaml).server(server).args(["--full", "--concurrency=1"])
}

/// Hardly any patience.
const SHORT: &str = "{ max_retries: 1, restart_seconds: 1 }";

/// The status of each case in order.
fn statuses(run: &Run) -> Vec<String> {
    let report = run.report();
    report.cases().iter().map(|case| case.status().to_owned()).collect()
}

/// Properties of every run that lost a server: no failure is spoken of, and the reason once.
#[track_caller]
fn blames_nobody(run: &Run, server: &str) {
    let report = run.report();
    assert_eq!(report.0["outcome"], "model_unavailable");
    assert_eq!(report.0["summary"]["failed"], 0);
    for text in [&run.stdout, &run.markdown()] {
        assert!(!text.contains("0 of 1") && !text.contains("0/1"), "{text}");
        assert!(!text.contains("larger"), "{text}");
        assert!(text.contains(server) && text.contains("not run: "), "{text}");
    }
    let why = run.stdout.lines().filter(|line| line.contains("not run: "));
    assert_eq!(why.count(), 1, "{}", run.stdout);
    let early = run.stderr.lines().filter(|line| line.contains("the run ended early: "));
    assert_eq!(early.count(), 1, "{}", run.stderr);
    assert!(run.elapsed < Duration::from_mins(1), "{:?}", run.elapsed);
}

#[test]
fn killed_before_the_first_case_is_over() {
    for model in [OPENAI, OLLAMA] {
        let server = ModelServer::script().delay(CALL).start();
        let address = server.ollama_host();
        let running = workspace(model, 3, SHORT, &server).spawn();
        // Models have been looked at by then.
        let running = running.until("a case", || !server.calls(Role::Sut).is_empty());
        drop(server);
        let run = running.wait().exit(5);
        assert_eq!(statuses(&run), ["not_run"; 3]);
        blames_nobody(&run, &address);
        run.stdout_contains("no verdict, a model or server was unavailable; 3 cases not run");
    }
}

#[test]
fn killed_in_the_middle_keeps_what_was_answered() {
    let server = ModelServer::script().delay(CALL).start();
    let address = server.ollama_host();
    let running = workspace(OPENAI, 6, SHORT, &server).spawn();
    // The first case is over, the second one asks for its answer.
    let running = running.until("two answers", || server.calls(Role::Sut).len() == 2);
    drop(server);
    let run = running.wait().exit(5);
    let statuses = statuses(&run);
    assert_eq!(statuses[0], "passed");
    assert_eq!(statuses[2..], ["not_run"; 4]);
    blames_nobody(&run, &address);
    let report = run.report();
    assert_eq!(report.summary()["passed"], 1);
    assert_eq!(report.case_of("case-0").0["output"], "One line.\nTwo lines.\nThree lines.");
    run.stdout_contains("1 of 1 passed (100 %), a model or server was unavailable");
}

#[test]
fn a_judge_that_is_lost_leaves_the_answer() {
    let (server, judge) = (ModelServer::start(), ModelServer::script().delay(CALL).start());
    let yaml = config(OPENAI, &scenarios(3))
        .replace(
            &format!("judge: {{ model: \"{OPENAI}\""),
            &format!("judge: {{ model: \"{OLLAMA}\""),
        )
        .replace("{ max_retries: 0, restart_seconds: 0 }", SHORT);
    let workspace = Workspace::new()
        .config(yaml)
        .server(&server)
        .env("OLLAMA_HOST", judge.ollama_host())
        .args(["--full", "--concurrency=1"]);
    let running = workspace.spawn().until("a judgement", || !judge.all_calls().is_empty());
    let address = judge.ollama_host();
    drop(judge);
    let run = running.wait().exit(5);
    assert_eq!(statuses(&run), ["unscored", "not_run", "not_run"]);
    blames_nobody(&run, &address);
    let report = run.report();
    let first = report.case_of("case-0");
    assert_eq!(first.unscored_reason(), Some("unavailable"));
    assert_eq!(first.0["output"], "One line.\nTwo lines.\nThree lines.");
    assert_eq!(server.calls(Role::Sut).len(), 1, "nobody is asked what nobody judges");
}

#[test]
fn a_generator_that_is_lost_ends_the_run_and_what_was_begun_is_judged() {
    let (server, generator) = (ModelServer::start(), ModelServer::script().delay(CALL).start());
    let yaml = config(OPENAI, &scenarios(5))
        .replace(
            &format!("generator: {{ model: \"{OPENAI}\""),
            &format!("generator: {{ model: \"{OLLAMA}\""),
        )
        .replace("{ max_retries: 0, restart_seconds: 0 }", SHORT);
    let workspace = Workspace::new()
        .config(yaml)
        .server(&server)
        .env("OLLAMA_HOST", generator.ollama_host())
        .args(["--full", "--concurrency=2"]);
    let judged = || !server.calls(Role::Judge).is_empty();
    let running = workspace.spawn().until("a judgement", judged);
    let address = generator.ollama_host();
    drop(generator);
    let run = running.wait().exit(5);
    blames_nobody(&run, &address);
    let report = run.report();
    for case in report.cases() {
        let expected = if case.0["prompt"].is_string() { "passed" } else { "not_run" };
        assert_eq!(case.status(), expected, "{case}");
    }
    let [total, passed, failed, unscored] = report.counts();
    assert_eq!((total, failed, passed + unscored), (5, 0, 5));
    assert_eq!(server.calls(Role::Judge).len() as u64, passed, "what was begun is judged");
}

#[test]
fn a_server_that_falls_silent_is_given_up_in_bounded_time() {
    let server = ModelServer::script().delay(CALL).start();
    let address = server.ollama_host();
    let settings = "{ max_retries: 1, restart_seconds: 1, first_byte_seconds: 1 }";
    let running = workspace(OPENAI, 4, settings, &server).spawn();
    let running = running.until("a verdict", || server.calls(Role::Judge).len() == 1);
    drop(server);
    // The system accepts connections, and no process answers.
    let _silent = TcpListener::bind(&address).unwrap();
    let run = running.wait().exit(5);
    assert_eq!(statuses(&run)[1..], ["not_run"; 3]);
    blames_nobody(&run, &address);
}

#[test]
fn a_server_that_comes_back_in_time_loses_nothing() {
    let server = ModelServer::script().delay(CALL).start();
    let address = server.ollama_host();
    let settings = "{ max_retries: 0, restart_seconds: 30 }";
    let running = workspace(OPENAI, 4, settings, &server).spawn();
    let running = running.until("two answers", || server.calls(Role::Sut).len() == 2);
    drop(server);
    std::thread::sleep(Duration::from_secs(1));
    // Its prompts must not be those of the first one.
    let other = |call: &Call| generated(&Call { number: call.number + 100, ..call.clone() });
    let script: Script = ModelServer::script().generator(other);
    let _again = script.address(Box::leak(address.into_boxed_str())).start();
    let run = running.wait().exit(0);
    assert_eq!(run.report().counts(), [4, 4, 0, 0]);
}

#[test]
fn errors_about_one_prompt_do_not_end_the_run() {
    for (reply, status, code) in
        [(Reply::status(500), "not_run", 5), (Reply::status(400), "sut_error", 1)]
    {
        let answers = move |call: &Call| {
            if call.number == 1 {
                reply.clone()
            } else {
                crate::model_server::answered(call).into()
            }
        };
        let server = ModelServer::script().sut(answers).start();
        let settings = "{ max_retries: 0, restart_seconds: 0 }";
        let run = workspace(OLLAMA, 4, settings, &server).run().exit(code);
        assert_eq!(statuses(&run), ["passed", status, "passed", "passed"]);
        assert!(!run.stderr.contains("ended early"), "{}", run.stderr);
    }
}

#[test]
fn a_server_that_is_there_and_only_answers_errors_is_given_up() {
    let server = ModelServer::script().always(Reply::status(500)).start();
    let run = workspace(OLLAMA, 6, "{ max_retries: 1, restart_seconds: 0 }", &server).run().exit(5);
    assert_eq!(statuses(&run), ["not_run"; 6]);
    // Five calls with a retry each; after that no call is made.
    assert_eq!(server.all_calls().len(), 10);
    let report = run.report();
    assert!(report.case_of("case-5").reason().contains("5 calls in a row"), "{report}");
}

#[test]
fn a_timeout_of_the_assistant_is_not_its_own_where_its_server_is_gone() {
    let server = ModelServer::script().sut(|_| Reply::Hang).start();
    let address = server.ollama_host();
    let yaml = config(OPENAI, CLEAR);
    let yaml = yaml.replace("{ max_retries: 0, restart_seconds: 0 }", "{ restart_seconds: 60 }");
    let workspace = Workspace::new().config(yaml).server(&server).args(["--timeout=3"]);
    let running = workspace.spawn().until("a question", || !server.calls(Role::Sut).is_empty());
    drop(server);
    let run = running.wait().exit(5);
    let report = run.report();
    assert_eq!(report.case().status(), "not_run");
    assert!(report.case().reason().contains(&address), "{report}");
}
