//! The `acp` adapter against a scripted agent that speaks the protocol over its pipes, for all that a
//! real one cannot be made to do.

use serde_json::{Value, json};

use selftest_checks::scenario::TaskStatus;
use selftest_harness::sut::sut_settings::WorkFolder;
use selftest_harness::sut::{SutError, SutEvidence, SutReply, SystemUnderTest as _};

use super::world::{PATIENCE, World};
use crate::model_server::{ModelServer, Role};
use crate::run::Run;
use crate::workspace::{OPENAI, Workspace, config};

const AGENT: &str = include_str!("../fixtures/acp_agent.py");

fn world(mode: &[&str]) -> World {
    let mut run = vec!["python3", "acp_agent.py"];
    run.extend(mode);
    let world = World::run(&run);
    world.file("acp_agent.py", AGENT);
    world
}

/// One prompt from beginning to end; afterwards nothing is left.
async fn ask(mode: &[&str]) -> (Result<SutReply, SutError>, SutEvidence) {
    let world = world(mode);
    let mut session = world.acp().open(&world.task).await.unwrap();
    let reply = tokio::time::timeout(PATIENCE, session.submit("Go.")).await.unwrap();
    let evidence = tokio::time::timeout(PATIENCE, session.close()).await.unwrap();
    world.assert_gone();
    (reply, evidence)
}

#[tokio::test]
async fn a_question_and_its_reply_are_one_session() {
    let world = world(&["talk"]);
    let sut = world.acp();
    sut.check().await.unwrap();
    assert_eq!(sut.describe(), "acp python3 acp_agent.py talk");
    assert!(sut.isolation().enforced.iter().any(|line| line.contains("permission")));
    let mut session = sut.open(&world.task).await.unwrap();
    let first = session.submit("A and B").await.unwrap();
    assert_eq!(first.output, "READ_INFO: which of A and B?");
    assert_eq!(first.status, TaskStatus::AwaitingResponse);
    assert_eq!(first.status_rule.as_deref(), Some("ends in a question"));
    assert_eq!(first.tool_calls, Some(Vec::new()), "none, and that is known");
    let second = session.reply("ß\n\"both\"").await.unwrap();
    assert_eq!(
        (second.status, second.output.as_str()),
        (TaskStatus::Complete, "you said ß\n\"both\"")
    );
    let evidence = session.close().await;
    assert_eq!((evidence.stderr, evidence.notes), (None, Vec::new()));
    world.assert_gone();
}

#[tokio::test]
async fn files_are_read_and_all_else_is_refused_and_kept() {
    let (reply, evidence) = ask(&["tools"]).await;
    let reply = reply.unwrap();
    let said: Value = serde_json::from_str(&reply.output).unwrap();
    let expected = json!({
        "read": "# A project\n", "hidden": true, "outside": true, "write": true, "terminal": true,
        "permission": { "outcome": "selected", "optionId": "no" }, "exists": false,
    });
    assert_eq!(said, expected, "the last words are the answer");
    let calls = reply.tool_calls.unwrap();
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["read_file", "Write notes.md"]);
    assert!(calls[0].arguments["path"].as_str().unwrap().ends_with("/README.md"));
    assert_eq!(calls[1].arguments["kind"], "edit");
    for words in ["permission to Write notes.md", "to write ", "run.json: ", "/etc/hostname: "] {
        assert!(evidence.notes.iter().any(|note| note.contains(words)), "{words}: {evidence:?}");
    }
}

#[tokio::test]
async fn ends_of_turns_are_statuses() {
    for reason in ["max_tokens", "max_turn_requests", "refusal"] {
        let (reply, _) = ask(&["stop", reason]).await;
        assert_eq!(reply.unwrap().status, TaskStatus::Error, "{reason}");
    }
    for (reason, words) in [("end_turn", "without a word"), ("cancelled", "was cancelled")] {
        let error = ask(&["stop", reason]).await.0.unwrap_err().to_string();
        assert!(error.contains(words), "{reason}: {error}");
    }
}

#[tokio::test]
async fn an_agent_that_fails_is_told_in_its_own_words() {
    for (mode, words) in [
        ("auth", "sut.acp.pass_environment"),
        ("version", "protocol version 7"),
        ("error", "no model today"),
        ("die", "exit code 3; its last words: the cat ate the key"),
        ("flood", "more than 8388608 bytes in one session"),
    ] {
        let error = ask(&[mode]).await.0.unwrap_err().to_string();
        assert!(error.contains(words), "{mode}: {error}");
    }
}

#[tokio::test]
async fn what_is_no_message_is_read_over() {
    let (reply, evidence) = ask(&["garbage"]).await;
    assert_eq!(reply.unwrap().output, "Done.");
    assert_eq!(evidence.notes, ["1 lines that are no messages were read over"]);
}

#[tokio::test]
async fn what_real_agents_do_beside_the_protocol_is_borne() {
    let (reply, evidence) = ask(&["odd"]).await;
    let reply = reply.unwrap();
    assert_eq!(reply.output, "Mode default; -32002: Resource not found.");
    // A missing file is no refusal.
    let mode = "the agent began in its mode `auto`, and was put into `default`";
    assert_eq!(evidence.notes, [mode]);
    // In a copy of the project it may write, and is left in its mode.
    let world = world(&["odd"]).set(|settings| settings.work_folder = WorkFolder::Copy);
    let mut session = world.acp().open(&world.task).await.unwrap();
    let reply = session.submit("Go.").await.unwrap();
    assert!(reply.output.starts_with("Mode auto;"), "{}", reply.output);
    assert!(session.close().await.notes.is_empty());
}

#[tokio::test]
async fn an_agent_that_hangs_is_ended_with_all_that_it_started() {
    let world = world(&["hang"]);
    let mut session = world.acp().open(&world.task).await.unwrap();
    let waited =
        tokio::time::timeout(std::time::Duration::from_secs(2), session.submit("Go.")).await;
    assert!(waited.is_err());
    let evidence = tokio::time::timeout(PATIENCE, session.close()).await.unwrap();
    assert_eq!(evidence.exit.as_deref(), Some("ended by the harness"));
    world.assert_gone();
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named_with_its_own_key() {
    let world = World::run(&["no-such-agent", "--acp"]);
    let error = world.acp().check().await.unwrap_err();
    assert!(error.to_string().contains("no-such-agent"), "{error}");
    assert_eq!(error.hint(), Some("correct sut.acp.run in the config"));
}

/// One case with these lines in it against the agent that calls tools, through the whole program.
fn run_with_tools(server: &ModelServer, lines: &str) -> Run {
    let suite = format!(
        "version: 1\ncases:\n  - scenario: {{ id: tools, description: d, expected_status: COMPLETE }}\n    \
         prompt: Look at the project.\n{lines}"
    );
    let yaml = config(OPENAI, "").replace(
        &format!("sut: {{ chat: {{ model: \"{OPENAI}\" }} }}"),
        "sut: { acp: { run: [python3, acp_agent.py, tools] } }",
    );
    Workspace::new()
        .config(yaml.replace("scenarios:\n", ""))
        .file("acp_agent.py", AGENT)
        .file("README.md", "# A project\n")
        .file("suite.yaml", suite)
        .server(server)
        .env("PATH", std::env::var_os("PATH").unwrap())
        .args(["--suite", "suite.yaml"])
        .run()
        .exit(0)
}

#[test]
fn checks_see_the_calls_of_an_agent() {
    let checks = "    checks:\n      - { tool_called: read_file }\n      - { not: { tool_called: run_shell } }\n";
    let run = run_with_tools(&ModelServer::start(), checks);
    let report = run.report();
    assert_eq!(report.case().status(), "passed");
    assert!(report.to_string().contains("permission to Write notes.md"), "in the report's notes");
    let markdown = run.markdown();
    let line = "System under test: acp python3 acp_agent.py tools";
    assert!(markdown.contains(line), "{markdown}");
}

#[test]
fn the_judge_sees_the_calls_of_an_agent_fenced_and_without_secrets() {
    let server = ModelServer::start();
    let _ = run_with_tools(&server, "    hints: It should read the README.\n");
    let call = &server.calls(Role::Judge)[0];
    let prompt = call.last_message();
    let (_, shown) = prompt.split_once("[BEGIN TOOL CALLS ").unwrap_or_else(|| panic!("{prompt}"));
    let shown = shown.split_once("\n[END ").unwrap().0;
    assert!(shown.contains("\nread_file {\"path\":\"") && shown.contains("/README.md"), "{shown}");
    assert!(shown.contains("[redacted]") && !prompt.contains("sk-abcdefgh"), "{shown}");
    assert!(shown.contains("\nWrite notes.md {"), "{shown}");
    assert!(prompt.find("[BEGIN SYSTEM OUTPUT ") < prompt.find("[BEGIN TOOL CALLS "), "{prompt}");
}
