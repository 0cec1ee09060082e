//! The main job: which scenarios run, what is written, what the flags change.

use serde_json::{Value, json};

use crate::model_server::{HINT_MARK, ModelServer, Reply, Role, verdict};
use crate::workspace::{CLEAR, FLOW, NOBODY, OPENAI, Workspace, config, files, scenarios};

const KEY: &str = "sk-test-0123456789abcdef";

/// Two scenarios: one that is answered at once, one with a reply.
fn two(server: &ModelServer) -> Workspace {
    Workspace::new().config(config(OPENAI, &format!("{CLEAR}{FLOW}"))).server(server)
}

#[test]
fn two_scenarios_pass_and_leave_all_reports() {
    let server = ModelServer::start();
    let workspace = two(&server);
    let run = workspace.run().exit(0);

    let report = run.report();
    assert_eq!(report.counts(), [2, 2, 0, 0]);
    assert_eq!(report.summary()["pass_rate"], 1.0);
    for field in ["run_id", "timestamp", "config", "summary", "cases", "schema_version"] {
        assert!(report.0.get(field).is_some(), "no {field}: {report}");
    }
    assert_eq!(report.0["config"]["strictness"], 0.7);
    assert_eq!(report.0["config"]["min_score_to_pass"], 0.6);
    let case = report.case_of("clear");
    assert_eq!(case.pass(), Some(true));
    assert_eq!(case.0["output"], "One line.\nTwo lines.\nThree lines.");
    assert_eq!(case.0["expected_status"], "COMPLETE");
    assert_eq!(case.0["actual_status"], "COMPLETE");
    assert!(case.0["duration_ms"].is_u64(), "{case}");
    for category in
        ["format_score", "factuality_score", "instruction_following_score", "safety_score"]
    {
        assert_eq!(case.0["scores"][category], 0.9, "{category}: {case}");
    }
    assert_eq!(case.overall(), Some(0.9));
    // As the server heard it: one call of each role per case, and a second round for the reply.
    assert_eq!(server.calls(Role::Generator).len(), 2);
    assert_eq!(server.calls(Role::Sut).len(), 3);
    assert_eq!(server.calls(Role::Judge).len(), 3);

    let run_id = report.run_id();
    assert!(run_id.starts_with("selftest-"), "{run_id}");
    let markdown = run.markdown();
    for part in [
        &format!("# Selftest Report: {run_id}"),
        "**Pass Rate:** 2/2 (100%)",
        "| clear | COMPLETE | 0.90 | PASS |",
    ] {
        assert!(markdown.contains(part), "no `{part}` in {markdown}");
    }
    assert!(run.read("docs/reports/selftest/index.md").contains(&run_id));
    assert!(run.read("docs/reports/selftest/trend.svg").starts_with("<svg"));
    run.says(&format!("reports/selftest/{run_id}.json"));
}

#[test]
fn the_report_is_valid_against_its_published_schema() {
    let server = ModelServer::script()
        // One case of each kind of verdict.
        .judge(|call| match call.number {
            0 => Reply::from(verdict(call, 0.9)),
            1 => verdict(call, 0.2).into(),
            _ => "null".into(),
        })
        .start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(3))).server(&server);
    let report = workspace.run().exit(1).report();
    let schema = workspace.args(["config", "schema", "report"]).run().exit(0).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&report.0).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{report}");
    // The schema says something.
    assert!(!validator.is_valid(&json!({})));
}

#[test]
fn the_specified_yaml_runs_unchanged_against_an_openai_compatible_server() {
    let server = ModelServer::start();
    let run = Workspace::new()
        .config(include_str!("../../crates/config/src/fixtures/specified.yaml"))
        .env("OPENAI_BASE_URL", server.openai_url())
        .env("OPENAI_API_KEY", KEY)
        // "gpt-4o-mini or local model" stands for generator and judge; the file names no SUT.
        .args(["--sut-model=openai/gpt-4o-mini"])
        .run()
        .exit(0);
    let report = run.report();
    let ids: Vec<&str> = report.cases().iter().map(super::report::Case::id).collect();
    assert_eq!(
        ids,
        ["ambiguous_request", "clear_summary", "evidence_restriction", "docs_reorganization"]
    );
    assert!(server.all_calls().iter().all(|call| call.body["model"] == "gpt-4o-mini"));
    let judge = &server.calls(Role::Judge)[0];
    assert_eq!(judge.body["temperature"], 0.0);
    let generator = &server.calls(Role::Generator)[0];
    assert_eq!(generator.body["temperature"], 0.7);
    run.nowhere(KEY);
}

#[test]
fn the_key_is_nowhere_even_when_the_server_says_it_back() {
    let body = format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {KEY}\"}}}}");
    let refusal = Reply::Status { code: 401, retry_after: None, body };
    let server = ModelServer::script().always(refusal).start();
    let run = Workspace::simple(&server).args(["-v"]).run().exit(5);
    assert_eq!(server.all_calls()[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
    run.nowhere(KEY);
}

#[test]
fn every_call_is_kept_as_it_was_sent_and_answered() {
    let server = ModelServer::start();
    let report = Workspace::simple(&server).run().exit(0).report();
    let case = report.case();
    let generation = &case.0["generation"]["attempts"][0]["call"];
    let step = &case.steps()[0];
    for (role, call) in [
        (Role::Generator, generation),
        (Role::Sut, &step["reply"]["call"]),
        (Role::Judge, &case.judge_calls()[0]),
    ] {
        let messages = call["request"]["messages"].as_array().unwrap().iter();
        let sent: Vec<&str> = messages.map(|message| message["text"].as_str().unwrap()).collect();
        assert_eq!(sent.join("\n\n"), server.calls(role)[0].text(), "{role:?}");
        assert!(call["request"]["schema"].is_string(), "{role:?}: {call}");
        assert!(call["raw_reply"].is_string(), "{role:?}: {call}");
    }
}

#[test]
fn hints_never_reach_the_system_under_test() {
    let server = ModelServer::start();
    let _ = two(&server).run().exit(0);
    for call in server.calls(Role::Sut) {
        assert!(!call.text().contains(HINT_MARK), "{}", call.text());
    }
    assert!(server.calls(Role::Judge)[0].text().contains(HINT_MARK));
}

#[test]
fn neither_does_an_earlier_report() {
    let server = ModelServer::start();
    let workspace = two(&server);
    let _ = workspace.run().exit(0);
    let _ = workspace.run().exit(0);
    for call in server.calls(Role::Sut) {
        assert!(!call.text().contains(HINT_MARK), "{}", call.text());
        assert!(!call.text().contains("overall_score"), "{}", call.text());
    }
}

#[test]
fn scenarios_are_chosen_by_count_by_id_or_all() {
    let server = ModelServer::start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(4))).server(&server);
    for (args, expected) in [
        (&["--scenarios=2"][..], &["case-0", "case-1"][..]),
        (&["--scenarios", "case-3,case-1"], &["case-1", "case-3"]),
        (&["--scenarios", "case-2"], &["case-2"]),
        (&["--full"], &["case-0", "case-1", "case-2", "case-3"]),
        (&[], &["case-0", "case-1", "case-2", "case-3"]),
        (&["--scenarios=9"], &["case-0", "case-1", "case-2", "case-3"]),
    ] {
        let run = workspace.clone().args(["--format=json"].iter().chain(args)).run().exit(0);
        let report = run.stdout_report();
        let mut ids: Vec<&str> = report.cases().iter().map(super::report::Case::id).collect();
        ids.sort_unstable();
        assert_eq!(ids, expected, "{args:?}");
    }
}

#[test]
fn an_unknown_scenario_is_a_usage_error_that_lists_the_known_ones() {
    let server = ModelServer::start();
    let run = two(&server).args(["--scenarios", "clear,clera"]).run().exit(2);
    run.one_error(&["clera"]).stderr_contains("clear").stderr_contains("flow");
    assert!(server.all_calls().is_empty());
}

#[test]
fn json_on_stdout_is_the_report() {
    let server = ModelServer::start();
    let run = two(&server).args(["--format", "json"]).run().exit(0);
    assert_eq!(run.stdout_report().0, run.report().0);
}

#[test]
fn the_seed_is_recorded_and_decides_what_is_sent() {
    let seeds = |seed: &str| {
        let server = ModelServer::start();
        let report = Workspace::simple(&server).args(["--seed", seed]).run().exit(0).report();
        assert_eq!(report.0["seed"].to_string(), seed);
        let calls = server.all_calls();
        let mut seeds: Vec<Value> = calls.iter().map(|call| call.body["seed"].clone()).collect();
        // The judge is asked what it can do while the first prompt is made.
        seeds.sort_by_key(Value::as_u64);
        seeds
    };
    assert_eq!(seeds("42"), seeds("42"));
    assert_ne!(seeds("42"), seeds("43"));
    assert!(seeds("42").iter().all(Value::is_u64));
}

#[test]
fn the_models_of_each_role_can_be_named() {
    let server = ModelServer::start();
    let report = Workspace::new()
        .config(format!("version: 1\nscenarios:\n{CLEAR}"))
        .server(&server)
        .args([
            "--model=openai/all",
            "--generator-model=openai/generates",
            "--judge-model=openai/judges",
        ])
        .run()
        .exit(0)
        .report();
    let model = |role| server.calls(role)[0].body["model"].clone();
    assert_eq!(model(Role::Generator), "generates");
    assert_eq!(model(Role::Sut), "all");
    assert_eq!(model(Role::Judge), "judges");
    assert_eq!(report.case().judge_calls()[0]["model"], "openai/judges");
}

#[test]
fn another_folder_and_another_config() {
    let server = ModelServer::start();
    let workspace = Workspace::new()
        .file("inner/tests.yaml", config(OPENAI, CLEAR))
        .server(&server)
        .args(["-C", "inner", "--config", "tests.yaml"]);
    let _ = workspace.run().exit(0);
    assert_eq!(files(&workspace.path("inner/reports")).len(), 2, "a report and a journal");
    assert!(!workspace.path("reports").exists());
}

#[test]
fn the_project_is_shown_to_the_assistant_but_not_changed() {
    let server = ModelServer::start();
    let workspace = Workspace::simple(&server).file("README.md", "# The Zebrafish project\n");
    let before = std::fs::read(workspace.path("README.md")).unwrap();
    let _ = workspace.run().exit(0);
    assert!(server.calls(Role::Sut)[0].text().contains("Zebrafish"));
    assert_eq!(std::fs::read(workspace.path("README.md")).unwrap(), before);
}

#[test]
fn two_runs_at_once_in_one_folder() {
    let server = ModelServer::script().delay(std::time::Duration::from_millis(30)).start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(4))).server(&server);
    let (first, second) = (workspace.spawn(), workspace.spawn());
    let (first, second) = (first.wait().exit(0), second.wait().exit(0));
    let reports = second.reports();
    assert_eq!(reports.len(), 2);
    let index = first.read("docs/reports/selftest/index.md");
    for report in reports {
        assert_eq!(report.counts(), [4, 4, 0, 0]);
        assert!(index.contains(&report.run_id()), "{index}");
    }
    let left: Vec<_> = files(&workspace.project())
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(".tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_index_lists_all_runs_newest_first() {
    let server = ModelServer::start();
    let workspace = Workspace::simple(&server).args(["--format=json"]);
    let first = workspace.run().exit(0);
    // Reports are dated to the second.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let second = workspace.run().exit(0);
    let index = second.read("docs/reports/selftest/index.md");
    let [first, second] = [first, second].map(|run| run.stdout_report().run_id());
    assert!(index.find(&second).unwrap() < index.find(&first).unwrap(), "{index}");
}

#[test]
fn the_report_says_who_judged_and_what_was_enforced() {
    let server = ModelServer::start();
    let run = Workspace::simple(&server).run().exit(0);
    let report = run.report();
    assert_eq!(report.0["models"]["judge"], OPENAI);
    assert!(!report.0["isolation"]["enforced"].as_array().unwrap().is_empty(), "{report}");
    for part in [OPENAI, "Enforced: "] {
        assert!(run.markdown().contains(part), "no `{part}` in {}", run.markdown());
    }
}

#[test]
fn every_judge_call_is_in_the_report() {
    let server = ModelServer::start();
    let report = Workspace::simple(&server).run().exit(0).report();
    let call = &report.case().judge_calls()[0];
    assert_eq!(call["model"], OPENAI);
    assert_eq!(call["prompt_digest"].as_str().unwrap().len(), 64);
    assert_eq!(call["parameters"]["temperature"], 0.0);
    assert_eq!(call["parameters"]["max_tokens"], 1000);
    assert!(call["usage"]["prompt_tokens"].is_u64() && call["duration_ms"].is_u64(), "{call}");
    assert!(call["raw_reply"].as_str().unwrap().contains("format_score"), "{call}");
}

#[test]
fn offline_means_that_nothing_is_fetched() {
    let run = Workspace::new()
        .config(format!("version: 1\nscenarios:\n{CLEAR}"))
        .env("OLLAMA_HOST", NOBODY)
        .args(["--offline"])
        .run()
        .exit(5);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
}

#[test]
fn a_call_of_the_assistant_that_brought_no_answer_stands_in_the_report() {
    let server = ModelServer::script().sut(|_| "I would rather not.").start();
    let report = Workspace::simple(&server).run().report();
    let call = &report.0["cases"][0]["evidence"]["failed_call"];
    assert_eq!(call["raw_reply"], "I would rather not.", "{call}");
    assert!(call["request"].is_object(), "{call}");
}
