//! `selftest grade session|backfill|recent`: grades by models.

use std::time::Duration;

use serde_json::{Value, json};

use super::recording::{Recording, id};
use crate::databases::on_each_database;
use crate::model_server::{ModelServer, Reply, Role, quality};
use crate::server::site::Site;
use crate::workspace::{CLEAR, NOBODY, OLLAMA, OPENAI, Workspace};

on_each_database! {
    one_session_is_graded_and_kept,
    a_model_that_can_tell_nothing_is_kept_without_a_number,
    a_backfill_goes_on_where_it_stopped,
    parallel_backfills_share_the_sessions,
    a_claim_of_a_process_that_died_is_taken_over,
    several_models_are_averaged_with_their_spread,
    an_edited_prompt_is_a_rubric_of_its_own,
}

const GOOD: [Option<f64>; 4] = [Some(0.9), Some(0.5), Some(0.7), None];

fn settings(model: &str) -> String {
    format!(
        "version: 1\nmodels: {{ max_retries: 0, restart_seconds: 0 }}\n\
         grade: {{ quality: {{ model: \"{model}\" }} }}\nscenarios:\n{CLEAR}"
    )
}

fn three_sessions(server: &ModelServer, model: &str) -> Workspace {
    three_sessions_in(Workspace::new(), server, model)
}

fn three_sessions_in(workspace: Workspace, server: &ModelServer, model: &str) -> Workspace {
    workspace
        .config(settings(model))
        .server(server)
        .session(&Recording::on(&id(1), "2026-11-17T10:00:00Z", false))
        .session(&Recording::on(&id(2), "2026-11-18T10:00:00Z", true))
        .session(&Recording::on(&id(3), "2026-11-19T10:00:00Z", true))
}

fn grades(workspace: &Workspace) -> Vec<Value> {
    let words = ["grade", "recent", "--json"];
    workspace.clone().args(words).run().exit(0).json().as_array().unwrap().clone()
}

/// docs/spec/session-quality.md#tests: a deterministic reply is read and kept.
fn one_session_is_graded_and_kept(workspace: Workspace) {
    let server = ModelServer::start();
    let workspace = three_sessions_in(workspace, &server, OPENAI);
    let run = workspace.clone().grade(&["session", "00000002", "--json"]).run().exit(0);
    let grade = run.json();
    assert_eq!(grade["session_id"], id(2));
    assert_eq!(grade["model"], OPENAI);
    assert_eq!(grade["rubric_version"], 1);
    assert_eq!(grade["problem_solved"], 0.9);
    assert_eq!(grade["edge_cases"], Value::Null);
    // (0.4 · 0.9 + 0.2 · 0.5 + 0.2 · 0.7) / 0.8
    assert_eq!(grade["overall"], 0.75);
    assert_eq!(grades(&workspace), [grade]);

    let prompt = server.calls(Role::Grader).pop().unwrap().text();
    assert!(prompt.contains("Fix the parser, its test is red"), "{prompt}");
    let card = workspace.clone().args(["grade", "show", "00000002"]).run().exit(0).stdout;
    assert!(card.contains("by openai/gpt-4o-mini, rubric 1"), "{card}");
    let columns = "SELECT overall, quality FROM session_grades JOIN session_quality_grades \
                   USING (session_id)";
    assert_eq!(workspace.sql(columns), [["0.75", "0.75"]]);
}

/// docs/spec/session-quality.md#tests: a malformed reply is not kept, is reported, and the others go
/// on.
#[test]
fn a_broken_grade_is_not_kept_and_the_batch_goes_on() {
    for (name, reply) in [
        ("prose", Reply::from("The agent did well, I would say 8 of 10.")),
        ("another form", Reply::from(json!({ "problem_solved": 0.9, "summary": "good" }))),
        ("half of one", Reply::Truncated("{\"problem_solved\":{\"evidence\":\"".into())),
        ("refusal", Reply::Refusal("I cannot grade people.".into())),
        ("nothing", Reply::Null),
    ] {
        let bad = reply.clone();
        let script = ModelServer::script().grader(move |call| {
            if call.text().contains("Deploy the shop") {
                bad.clone()
            } else {
                quality(call, GOOD).into()
            }
        });
        let server = script.start();
        let workspace = three_sessions(&server, OPENAI);
        let run = workspace.clone().grade(&["backfill"]).run().exit(0);
        let told = format!("no grade for {}", id(1));
        assert_eq!(run.stderr.matches(&told).count(), 1, "{name}: {}", run.stderr);
        let kept = grades(&workspace);
        assert_eq!(kept.len(), 2, "{name}: {kept:?}");
        assert!(kept.iter().all(|grade| grade["session_id"] != id(1)), "{name}");
        let run = workspace.grade(&["session", "00000001"]).run().exit(3);
        assert_eq!(run.stdout, "", "{name}");
    }
}

#[test]
fn an_invented_quote_is_no_evidence() {
    let script = ModelServer::script().grader(|call| {
        let mut grade = quality(call, [Some(1.0); 4]);
        grade["code_clean"]["evidence"] = json!("every function has a docstring");
        grade
    });
    let server = script.start();
    let run = three_sessions(&server, OPENAI).grade(&["session", "00000002", "--json"]).run();
    let grade = run.exit(0).json();
    assert_eq!(grade["code_clean"], Value::Null);
    assert_eq!(grade["overall"], 1.0);
    assert!(grade["details"].to_string().contains("\"unsupported\":true"), "{grade}");
}

fn a_model_that_can_tell_nothing_is_kept_without_a_number(workspace: Workspace) {
    let script = ModelServer::script().grader(|call| quality(call, [None, Some(0.5), None, None]));
    let server = script.start();
    let workspace = three_sessions_in(workspace, &server, OPENAI);
    let grade = workspace.clone().grade(&["session", "00000002", "--json"]).run().exit(0).json();
    assert_eq!((&grade["tests_added"], &grade["overall"]), (&json!(0.5), &Value::Null));
    let quality =
        "SELECT quality, quality_rubric FROM session_grades WHERE session_id LIKE '00000002%'";
    assert_eq!(workspace.sql(quality), [["", "1"]]);
}

/// docs/spec/session-quality.md#tests: grading again replaces; a backfill asks only for what is
/// missing.
fn a_backfill_goes_on_where_it_stopped(workspace: Workspace) {
    let server = ModelServer::start();
    let workspace = three_sessions_in(workspace, &server, OPENAI);
    let run = workspace.clone().grade(&["backfill", "--limit", "2"]).run().exit(0);
    let run = run.stderr_contains("2 sessions graded, 0 without a grade");
    // The newest first.
    assert!(!run.stdout.contains(&id(1)) && run.stdout.contains(&id(3)), "{}", run.stdout);
    let _ = workspace.clone().grade(&["backfill"]).run().exit(0).stdout_contains(&id(1));
    assert_eq!(server.calls(Role::Grader).len(), 3);
    let run = workspace.clone().grade(&["backfill"]).run().exit(0);
    let _ = run.stderr_contains("every session has its grade");
    let _ = workspace.clone().grade(&["session", "00000003"]).run().exit(0);
    assert_eq!(server.calls(Role::Grader).len(), 4);
    assert_eq!(workspace.sql("SELECT COUNT(*) FROM session_quality_grades"), [["3"]]);
    let _ = workspace.sql("UPDATE session_quality_grades SET rubric_version = 0");
    let _ = workspace.clone().grade(&["backfill"]).run().exit(0);
    assert_eq!(server.calls(Role::Grader).len(), 7, "a new version of the rubric asks again");
    assert_eq!(grades(&workspace).len(), 3, "and only its grades are read");
}

/// Issue I: three of them graded 206 sessions 412 times.
fn parallel_backfills_share_the_sessions(workspace: Workspace) {
    const SESSIONS: u32 = 24;
    let server = ModelServer::script().delay(Duration::from_millis(100)).start();
    let workspace = workspace.config(settings(OPENAI)).server(&server);
    let workspace = (1..=SESSIONS).fold(workspace, |workspace, number| {
        let asks = format!("Fix the parser of file {number:05}");
        workspace.session(&Recording::success(&id(number)).asks(&asks))
    });
    let _ = workspace.clone().grade(&["summary", "--days", "36500"]).run().exit(0);
    let words = ["backfill", "--no-scan", "--concurrency=2"];
    let running = [(); 3].map(|()| workspace.clone().grade(&words).spawn());
    let runs = running.map(|running| running.wait().exit(0));
    let asked = server.calls(Role::Grader).len();
    let told: Vec<&str> = runs.iter().map(|run| run.stderr.as_str()).collect();
    assert_eq!(asked, SESSIONS as usize, "{told:?}");
    let lines = runs.iter().map(|run| run.stdout.matches("00000000c0de").count());
    assert_eq!(lines.sum::<usize>(), SESSIONS as usize, "{told:?}");
    assert!(told.iter().any(|told| told.contains("left to other processes")), "{told:?}");
    let kept = workspace.sql("SELECT COUNT(*) FROM session_quality_grades");
    assert_eq!(kept, [[SESSIONS.to_string()]]);
    let leases = "SELECT COUNT(*) FROM job_leases WHERE name LIKE 'grading %'";
    assert_eq!(workspace.sql(leases), [["0"]], "every claim is given back");
}

/// A killed process leaves its claim behind: it counts for a minute.
fn a_claim_of_a_process_that_died_is_taken_over(workspace: Workspace) {
    let server = ModelServer::script().grader(|_| Reply::HalfOpen).start();
    let hanging = three_sessions_in(workspace, &server, OPENAI);
    let words = ["backfill", "--concurrency=1"];
    let running = hanging.clone().grade(&words).spawn();
    let running = running.until("a call", || !server.calls(Role::Grader).is_empty());
    let claims = || hanging.sql("SELECT COUNT(*) FROM job_leases WHERE name LIKE 'grading %'");
    assert_ne!(claims(), [["0"]]);
    #[cfg(unix)]
    drop(running.signal(rustix::process::Signal::KILL).wait().killed_by(9));
    let other = ModelServer::start();
    let workspace = hanging.clone().server(&other);
    let run = workspace.clone().grade(&["backfill", "--no-scan"]).run().exit(0);
    let run = run.stderr_contains("left to other processes");
    assert!(run.stderr.contains("1 session graded") || run.stderr.contains("2 sessions graded"));
    let _ = workspace.sql("UPDATE job_leases SET seen = seen - 100");
    let _ = workspace.clone().grade(&["backfill", "--no-scan"]).run().exit(0);
    assert_eq!(workspace.sql("SELECT COUNT(*) FROM session_quality_grades"), [["3"]]);
}

fn several_models_are_averaged_with_their_spread(workspace: Workspace) {
    let script = ModelServer::script().grader(|call| {
        let solved = if call.body["model"] == "qwen2.5:7b" { 0.4 } else { 0.8 };
        quality(call, [Some(solved), Some(solved), None, None])
    });
    let server = script.start();
    let workspace = three_sessions_in(workspace, &server, OPENAI);
    let models = format!("{OPENAI},{OLLAMA}");
    let _ = workspace.clone().grade(&["backfill", "--model", &models]).run().exit(0);
    let shown = workspace.clone().args(["grade", "show", "00000002", "--json"]).run().exit(0);
    let json = shown.json();
    assert_eq!(json["by_models"].as_array().unwrap().len(), 2);
    let average = json["average_of_models"]["overall"].clone();
    assert_eq!(average, json!({ "mean": 0.6, "spread": 0.4, "models": 2 }), "{json}");
    let text = workspace.args(["grade", "show", "00000002"]).run().exit(0).stdout;
    assert!(text.contains("average of 2 models"), "{text}");
}

#[test]
fn recent_lists_the_newest_and_the_good_ones() {
    let script = ModelServer::script().grader(|call| {
        let score = if call.text().contains("Deploy") { 0.2 } else { 0.9 };
        quality(call, [Some(score), Some(score), None, None])
    });
    let server = script.start();
    let workspace = three_sessions(&server, OPENAI);
    let run = workspace.clone().args(["grade", "recent"]).run().exit(0);
    let _ = run.stderr_contains("selftest grade backfill");
    let _ = workspace.clone().grade(&["backfill", "--concurrency", "1"]).run().exit(0);
    assert_eq!(grades(&workspace).len(), 3);
    let good = ["grade", "recent", "--min-overall", "0.7"];
    let run = workspace.clone().args(good).run().exit(0).snapshot("grade_recent");
    assert!(!run.stdout.contains(&id(1)));
    let _ = workspace.args(["grade", "recent", "--min-overall", "7"]).run().exit(2);
}

#[test]
fn a_model_that_is_gone_ends_the_batch_and_says_so() {
    let script = ModelServer::script().grader(|call| {
        if call.number == 0 { quality(call, GOOD).into() } else { Reply::status(503) }
    });
    let server = script.start();
    let mut workspace = three_sessions(&server, OPENAI);
    for number in 4..20 {
        workspace = workspace.session(&Recording::success(&id(number)));
    }
    let run = workspace.clone().grade(&["backfill", "--concurrency", "1"]).run().exit(5);
    let run = run.stderr_contains("finished grades are kept; the same command continues");
    assert!(run.stderr.contains("error: "), "{}", run.stderr);
    assert!(server.calls(Role::Grader).len() < 10, "it does not try all of them");
    assert_eq!(grades(&workspace).len(), 1);

    let nobody = Workspace::new()
        .config(settings(OLLAMA))
        .env("OLLAMA_HOST", NOBODY)
        .session(&Recording::success(&id(1)));
    let run = nobody.grade(&["backfill"]).run().exit(5);
    assert!(run.stderr.contains("error: "), "{}", run.stderr);
}

#[cfg(unix)]
#[test]
fn an_interrupted_backfill_keeps_what_it_has() {
    let script = ModelServer::script()
        .grader(|call| if call.number < 2 { quality(call, GOOD).into() } else { Reply::Hang });
    let server = script.start();
    let workspace = three_sessions(&server, OPENAI);
    let running = workspace.clone().grade(&["backfill", "--concurrency", "1"]).spawn();
    let running = running.until("the third call and two grades", || {
        server.calls(Role::Grader).len() == 3
            && workspace.sql("SELECT COUNT(*) FROM session_quality_grades") == [["2"]]
    });
    let run = running.signal(rustix::process::Signal::INT).wait().exit(130);
    let _ = run.stderr_contains("interrupted; 2 grades kept. The same command continues");
    assert_eq!(grades(&workspace).len(), 2);
}

#[test]
fn as_many_at_once_as_are_allowed() {
    let server = ModelServer::script().delay(Duration::from_millis(150)).start();
    let mut workspace = three_sessions(&server, OPENAI);
    for number in 4..9 {
        workspace = workspace.session(&Recording::success(&id(number)));
    }
    let _ = workspace.clone().grade(&["backfill"]).run().exit(0);
    assert_eq!(server.most_in_flight(), 2);
    assert_eq!(grades(&workspace).len(), 8);
}

#[test]
fn secrets_reach_neither_model_nor_database() {
    let secret = "sk-proj-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4";
    let server = ModelServer::start();
    let recording = Recording::new(&id(1))
        .asks(&format!("Fix the login, the key is {secret}"))
        .calls("Bash", &json!({ "command": format!("curl -H {secret}") }), Ok(secret))
        .says("Done, the login works.");
    let workspace = Workspace::new().config(settings(OPENAI)).server(&server).session(&recording);
    let run = workspace.grade(&["session", "00000001"]).run().exit(0);
    let prompt = server.calls(Role::Grader).pop().unwrap().text();
    assert!(prompt.contains("Fix the login") && !prompt.contains(secret), "{prompt}");
    let _ = run;
}

#[test]
fn a_file_that_is_gone_is_told_and_nothing_else_is_lost() {
    let server = ModelServer::start();
    let workspace = three_sessions(&server, OPENAI);
    let _ = workspace.clone().grade(&["latest"]).run().exit(0);
    std::fs::remove_file(workspace.path(&format!("sessions/{}.jsonl", id(1)))).unwrap();
    let run = workspace.clone().grade(&["backfill", "--no-scan"]).run().exit(0);
    let _ = run.stderr_contains("No such file");
    assert_eq!(grades(&workspace).len(), 2);
}

/// docs/spec/session-quality.md#surface: a batch over recent ungraded sessions, however many of
/// them have no grade.
#[test]
fn sessions_without_a_grade_do_not_keep_others_waiting() {
    for (name, bad, told) in [
        ("unreadable", false, "the session cannot be read (1)"),
        ("malformed", true, "the model's reply is not a valid grade (1)"),
    ] {
        let script = ModelServer::script().grader(move |call| {
            let newest = bad && call.text().contains("Deploy the shop");
            if newest { Reply::from("8 of 10") } else { quality(call, GOOD).into() }
        });
        let server = script.start();
        let workspace = Workspace::new()
            .config(settings(OPENAI))
            .server(&server)
            .session(&Recording::on(&id(1), "2026-11-17T10:00:00Z", true))
            .session(&Recording::on(&id(2), "2026-11-18T10:00:00Z", true))
            .session(&Recording::on(&id(3), "2026-11-19T10:00:00Z", false));
        let _ = workspace.clone().grade(&["latest"]).run().exit(0);
        if !bad {
            std::fs::remove_file(workspace.path(&format!("sessions/{}.jsonl", id(3)))).unwrap();
        }
        for (round, graded) in [1, 2, 2].into_iter().enumerate() {
            let run = workspace.clone().grade(&["backfill", "--no-scan", "--limit=1"]).run();
            let run = run.exit(if round < 2 { 0 } else { 3 });
            let _ = run.stderr_contains(&format!("1 without a grade: {told}"));
            assert_eq!(grades(&workspace).len(), graded, "{name}");
        }
    }
}

#[test]
fn a_model_that_gives_no_grades_is_not_asked_for_ever() {
    let server = ModelServer::script().grader(|_| "8 of 10").start();
    let config = settings(OPENAI).replace("{ model:", "{ max_reasks: 0, model:");
    let mut workspace = Workspace::new().config(config).server(&server);
    for number in 0..14 {
        workspace = workspace.session(&Recording::success(&id(number)));
    }
    let run = workspace.clone().grade(&["backfill", "--limit=1"]).run().exit(3);
    let _ = run.stderr_contains("10 without a grade").stderr_contains("take a larger model");
    // One that was begun beside the tenth may have been asked about.
    assert!(server.calls(Role::Grader).len() < 14);
}

#[test]
fn a_server_that_fails_at_some_sessions_is_not_gone() {
    let script = ModelServer::script().grader(|call| {
        let fails = (1..5).contains(&call.number);
        if fails { Reply::status(500) } else { quality(call, GOOD).into() }
    });
    let server = script.start();
    let mut workspace = three_sessions(&server, OPENAI);
    for number in 4..8 {
        workspace = workspace.session(&Recording::success(&id(number)));
    }
    let run = workspace.clone().grade(&["backfill", "--concurrency=1"]).run().exit(0);
    let _ =
        run.stderr_contains("3 sessions graded, 4 without a grade: the model gave no reply (4)");
    assert_eq!(grades(&workspace).len(), 3);
}

fn an_edited_prompt_is_a_rubric_of_its_own(workspace: Workspace) {
    let server = ModelServer::start();
    let workspace = three_sessions_in(workspace, &server, OPENAI);
    let all = ["backfill", "--model", OPENAI];
    let run = workspace.clone().grade(&all).run().exit(0);
    assert!(!run.stderr.contains("own rubric"), "{}", run.stderr);
    let built_in = include_str!("../../../prompts/grade/session_v1.md");
    let edited = built_in.replacen("<!-- case -->", "Be strict.\n\n<!-- case -->", 1);
    let workspace = workspace.file("prompts/grade/session_v1.md", &edited);
    let run = workspace.clone().args(["grade", "recent"]).run().exit(0);
    let _ = run.stderr_contains("no grades by models yet");
    let run = workspace.clone().grade(&["backfill", "--limit=1", "--model", OLLAMA]).run().exit(0);
    let run = run.stderr_contains("prompts/grade/session_v1.md is the project's own rubric ");
    let _ = run.stderr_contains("1 session graded");
    let shown =
        workspace.clone().args(["grade", "show", "00000003", "--json"]).run().exit(0).json();
    let [by_own] = &shown["by_models"].as_array().unwrap()[..] else { panic!("{shown}") };
    assert_eq!(by_own["details"]["prompt_edited"], true);
    assert!(by_own["rubric_version"].as_u64().unwrap() >= 1 << 30);
    assert_eq!(shown["average_of_models"]["models"], 1);
    let card = workspace.clone().args(["grade", "show", "00000003"]).run().exit(0).stdout;
    assert!(card.contains("qwen2.5:7b, the project's own rubric "), "{card}");
    let waits = workspace.clone().grade(&["backfill", "--queue"]).run().exit(0);
    let _ = waits.stdout_contains("3 sessions queued");
    let site = Site::with(workspace.clone(), &["--no-worker"]);
    let page = site.get(&format!("/sessions/{}", id(3))).text();
    assert!(page.contains("By the project&#39;s own rubric "), "{page}");
    let rows = site.get("/api/sessions").json()["items"].clone();
    let known = |number: usize| rows[number]["quality_graded"].clone();
    assert_eq!([known(0), known(1), known(2)], [true, false, false]);
    drop(site);
    // Back to the built-in text: what was graded by it is there again.
    let workspace = workspace.file("prompts/grade/session_v1.md", built_in);
    assert_eq!(grades(&workspace).len(), 3);
    assert_eq!(
        workspace.sql("SELECT COUNT(*) FROM session_grades WHERE quality_rubric = 1"),
        [["3"]]
    );
}

#[test]
fn a_limit_of_none_is_refused() {
    let run = Workspace::new().config(settings(OPENAI)).grade(&["backfill", "--limit=0"]).run();
    let run = run.exit(2).stderr_contains("'0' for '--limit <N>'");
    assert!(!run.stderr.contains("every session has its grade"), "{}", run.stderr);
}
