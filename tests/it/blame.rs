//! The table of `docs/blame.md`: who is at fault for each kind of reply, by adapter and role.

mod chat;

use serde_json::json;

use crate::run::Run;
use crate::task_server::{TaskAnswer, TaskServer};
use crate::workspace::Workspace;

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
        ("a text", "", json("It opens at 9."), "sut_error", 1, "output: \"\" takes plain text"),
        (
            "a failure beside the answer",
            "",
            json(r#"{"output": "It opens at 9.", "status": "failed"}"#),
            "sut_error",
            1,
            "reported ERROR",
        ),
        (
            "an error in place of the answer",
            "",
            json(r#"{"error": {"message": "rate limited"}}"#),
            "sut_error",
            1,
            "the response reports an error: {",
        ),
        (
            "an error beside the answer",
            "",
            json(r#"{"output": "It opens at 9.", "error": {"message": "rate limited"}}"#),
            "sut_error",
            1,
            "the response reports an error: {",
        ),
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

/// Servers that stream send the answer in pieces, as events or as JSON on each line.
#[test]
fn an_answer_in_pieces_is_joined() {
    let kind = |kind: &str| vec![("content-type", kind.to_owned())];
    let (events, lines) = (kind("text/event-stream; charset=utf-8"), kind("application/x-ndjson"));
    let start = r#"{"delta": "It opens "}"#;
    for (name, headers, body, output, status, exit, words) in [
        (
            "events",
            &events,
            format!("data: {start}\n\ndata: {{\"delta\": \"at 9.\"}}\n\ndata: [DONE]\n\n"),
            "/delta",
            "passed",
            0,
            "",
        ),
        (
            "lines",
            &lines,
            format!("{start}\n{{\"delta\": \"at 9.\"}}\n"),
            "/delta",
            "passed",
            0,
            "",
        ),
        ("texts", &events, "data: It opens \n\ndata: at 9.\n\n".to_owned(), "", "passed", 0, ""),
        (
            "a broken end",
            &events,
            format!("data: {start}\n\ndata: {{\"del"),
            "/delta",
            "sut_error",
            1,
            "the stream breaks off",
        ),
        (
            "an error",
            &events,
            format!("data: {start}\n\nevent: error\ndata: {{\"detail\": \"overloaded\"}}\n\n"),
            "/delta",
            "sut_error",
            1,
            "the stream reports an error: {",
        ),
        (
            "another place",
            &events,
            format!("data: {start}\n\n"),
            "/token",
            "sut_error",
            1,
            "nothing at /token in the 1 event of the stream; the reply has: delta",
        ),
    ] {
        let answer = TaskAnswer::Http(200, headers.clone(), body);
        let server = TaskServer::start(vec![answer], vec![TaskAnswer::status(500)]);
        let checks = if status == "passed" { CONTAINS } else { NO_APOLOGY };
        let run = ask(&server, &format!(", output: {output:?}"), checks).run();
        ends(run, name, status, exit, words);
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

/// The files may be all that was asked for.
#[test]
fn a_program_that_writes_files_and_prints_nothing_is_judged_by_its_files() {
    let script = "echo 'opens at 9' > answer.txt";
    for (checks, status, exit, words) in [
        ("[ { file_contains: { path: answer.txt, text: at 9 } } ]", "passed", 0, ""),
        ("[ { file_created: other.txt } ]", "failed", 1, "other.txt"),
        (NO_APOLOGY, "sut_error", 1, "it wrote `answer.txt`"),
    ] {
        ends(program(script, "text", checks, 10).run(), checks, status, exit, words);
    }
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
        (
            "an error",
            "text",
            "echo '{\"error\": \"rate limited\"}'",
            "sut_error",
            1,
            "the program reports an error: {",
        ),
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
