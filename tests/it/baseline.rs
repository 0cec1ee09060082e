//! Runs held against a committed baseline: what counts as worse, what is run again, what is not
//! compared.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::model_server::{Call, ModelServer, Reply, Role, Script, verdict};
use crate::report::Report;
use crate::run::Run;
use crate::workspace::{CLEAR, OPENAI, Workspace, config, scenarios};

pub(crate) const SUITE: &str = "config/suites/mine.yaml";
const BASELINE: &str = "config/selftest-baseline.json";

/// A suite of cases that checks alone decide: each answer must be good.
pub(crate) fn suite(ids: &[&str]) -> String {
    let case = |id: &&str| {
        format!(
            "  - scenario: {{ id: {id}, description: d, expected_status: COMPLETE }}\n    \
             prompt: Play {id}.\n    checks: [{{ contains: good }}]\n"
        )
    };
    format!("version: 1\ncases:\n{}", ids.iter().map(case).collect::<String>())
}

fn plays(call: &Call, word: &str) -> bool {
    call.text().contains(&format!("Play {word}."))
}

pub(crate) fn answer(good: bool) -> Value {
    json!({ "status": "COMPLETE", "output": if good { "good" } else { "bad" } })
}

/// A chat model that answers badly where a prompt has one of these words.
pub(crate) fn bad_at(words: &'static [&'static str]) -> Script {
    ModelServer::script().sut(move |call| answer(!words.iter().any(|word| plays(call, word))))
}

/// A project whose suite was run once against this model and accepted.
fn accepted(ids: &[&str], script: Script) -> Workspace {
    let server = script.start();
    let workspace = Workspace::new()
        .config(config(OPENAI, &scenarios(1)))
        .file(SUITE, suite(ids))
        .server(&server);
    let _ = workspace.clone().args(["--suite", SUITE, "--exit-zero"]).run().exit(0);
    let _ = workspace.clone().args(["baseline", "accept"]).run().exit(0);
    workspace
}

fn gated(workspace: &Workspace, script: Script, args: &[&str]) -> (Run, ModelServer) {
    let server = script.start();
    let own_gate = args.iter().any(|arg| arg.starts_with("--gate"));
    let gate = if own_gate { None } else { Some("--gate=no_regression") };
    let fixed = ["--suite", SUITE, "--format=json"].into_iter().chain(gate);
    let run = workspace.clone().server(&server).args(fixed.chain(args.iter().copied())).run();
    (run, server)
}

fn change<'a>(report: &'a Report, id: &str) -> Option<&'a str> {
    let cases = report.0["gate"]["cases"].as_array().unwrap();
    cases.iter().find(|case| case["id"] == id)?["change"].as_str()
}

#[test]
fn a_case_that_passed_and_fails_now_blocks_after_it_was_run_again() {
    let workspace = accepted(&["a", "b", "c"], bad_at(&["c"]));
    // What does nothing is not blocked, though one case fails as it did before.
    let (run, server) = gated(&workspace, bad_at(&["c"]), &[]);
    let report = run.exit(0).stdout_report();
    assert_eq!(report.counts(), [3, 2, 1, 0]);
    assert_eq!(report.0["outcome"], "passed");
    assert_eq!(change(&report, "c"), Some("still_failing"));
    assert_eq!(server.calls(Role::Sut).len(), 3, "nothing had to be run again");

    let (run, server) = gated(&workspace, bad_at(&["b"]), &[]);
    let run = run.exit(1);
    let report = run.stdout_report();
    assert_eq!(report.0["outcome"], "failed");
    assert_eq!((change(&report, "b"), change(&report, "c")), (Some("regression"), Some("fixed")));
    assert_eq!(change(&report, "a"), None, "it is what it was");
    assert_eq!(server.calls(Role::Sut).len(), 5, "b three times, a and c once");
    let reruns = report.case_of("b").0["reruns"].as_array().unwrap();
    assert_eq!(reruns.len(), 2);
    assert!(reruns.iter().all(|rerun| rerun["status"] == "failed" && rerun["steps"].is_array()));
    let seeds: std::collections::BTreeSet<u64> =
        server.calls(Role::Sut).iter().map(|call| call.body["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds.len(), 5, "each trial samples anew");
    let page = run.read(&format!("docs/reports/selftest/{}.md", report.run_id()));
    for part in ["## Gate", "REGRESSION b: passed before, fails now", "- Retry: FAIL"] {
        assert!(page.contains(part), "no `{part}` in {page}");
    }
    let schema = workspace.args(["config", "schema", "report"]).run().exit(0).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    jsonschema::validate(&schema, &report.0).unwrap_or_else(|error| panic!("{error}: {report}"));
}

/// Fails at `b` so many times, and then no more.
fn shaky(times: usize) -> Script {
    let played = AtomicUsize::new(0);
    ModelServer::script().sut(move |call| {
        answer(!plays(call, "b") || played.fetch_add(1, Ordering::SeqCst) >= times)
    })
}

#[test]
fn a_miss_that_then_passes_is_flaky_and_does_not_block() {
    let workspace = accepted(&["a", "b"], bad_at(&[]));
    for (times, calls) in [(1, 3), (2, 4)] {
        let (run, server) = gated(&workspace, shaky(times), &[]);
        let run = run.exit(0);
        let report = run.stdout_report();
        let case = report.case_of("b");
        assert_eq!(case.status(), "flaky");
        assert!(case.reason().starts_with("failed at first, passed 1 of "), "{case}");
        assert_eq!(case.pass(), Some(false), "the rate counts the first trial");
        assert_eq!(report.counts(), [2, 1, 1, 0]);
        assert_eq!(change(&report, "b"), Some("flaky"));
        assert_eq!(server.calls(Role::Sut).len(), calls);
        let page = run.read(&format!("docs/reports/selftest/{}.md", report.run_id()));
        assert!(page.contains("| b | COMPLETE | - | FLAKY |"), "{page}");
    }
    // The terminal says it too.
    let server = shaky(1).start();
    let human = workspace.clone().server(&server).args(["--suite", SUITE, "--gate=no_regression"]);
    let _ = human
        .run()
        .exit(0)
        .stdout_contains("FLAKY b: passed before, 1 of 2 trials now")
        .stdout_contains("1 of 2 passed (50 %), gate passed; 1 case flaky, counted as failed");
    // Without further trials the first one counts.
    let (run, server) = gated(&workspace, shaky(1), &["--confirm=0"]);
    assert_eq!(change(&run.exit(1).stdout_report(), "b"), Some("regression"));
    assert_eq!(server.calls(Role::Sut).len(), 2);
}

#[test]
fn where_nearly_all_fail_nothing_is_run_again() {
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let workspace = accepted(&ids, bad_at(&[]));
    let (run, server) = gated(&workspace, bad_at(&["a", "b", "c", "d", "e", "f"]), &[]);
    let report = run.exit(1).stdout_report();
    assert_eq!(server.calls(Role::Sut).len(), 10);
    assert_eq!(report.0["gate"]["beyond_chance"], true);
    assert_eq!(change(&report, "f"), Some("regression"));
}

#[test]
fn the_absolute_gate_stays_what_it_was() {
    let workspace = accepted(&["a", "c"], bad_at(&["c"]));
    let (run, _) = gated(&workspace, bad_at(&["c"]), &["--gate=absolute"]);
    let report = run.exit(1).stdout_report();
    assert_eq!(report.0.get("gate"), None);
    // Both: what failed before is no excuse, and what passed before may be flaky.
    let (run, _) = gated(&workspace, bad_at(&["c"]), &["--gate=both"]);
    let _ = run.exit(1);
    let workspace = accepted(&["a", "b"], bad_at(&[]));
    let (run, _) = gated(&workspace, shaky(1), &["--gate=both"]);
    assert_eq!(run.exit(0).stdout_report().case_of("b").status(), "flaky");
}

#[test]
fn new_removed_and_changed_cases_are_named() {
    let workspace = accepted(&["a", "b", "gone"], bad_at(&[]));
    let changed = suite(&["a", "b", "new"]).replace("Play b.", "Play b. Loudly.");
    let workspace = workspace.file(SUITE, changed);
    let (run, _) = gated(&workspace, bad_at(&["b", "new"]), &[]);
    let report = run.exit(0).stdout_report();
    assert_eq!(change(&report, "new"), Some("new"));
    assert_eq!(change(&report, "b"), Some("not_compared"), "it is another case now");
    assert_eq!(report.0["gate"]["removed"], json!(["gone"]));
    assert_eq!(report.0["gate"]["compared"], 1);
    // What is only not run today is not gone.
    let (run, _) = gated(&workspace, bad_at(&[]), &["--scenarios=a"]);
    assert_eq!(run.exit(0).stdout_report().0["gate"]["removed"], json!(["gone"]));
    // With nothing to compare the outcome is inconclusive.
    let (run, _) = gated(&workspace, bad_at(&[]), &["--scenarios=new"]);
    assert_eq!(run.exit(3).stdout_report().0["outcome"], "inconclusive");
}

#[test]
fn the_first_confirmed_miss_ends_a_run_that_fails_fast() {
    let workspace = accepted(&["a", "b", "c", "d"], bad_at(&["a"]));
    let args = ["--fail-fast", "--concurrency=1"];
    // A known failure and a flaky case do not end it.
    let script = {
        let played = AtomicUsize::new(0);
        ModelServer::script().sut(move |call| {
            let b = plays(call, "b") && played.fetch_add(1, Ordering::SeqCst) == 0;
            answer(!plays(call, "a") && !b)
        })
    };
    let (run, _) = gated(&workspace, script, &args);
    let report = run.exit(0).stdout_report();
    assert_eq!(report.case_of("b").status(), "flaky");
    assert_eq!(report.case_of("d").status(), "passed");
    let (run, _) = gated(&workspace, bad_at(&["b"]), &args);
    let report = run.exit(1).stdout_report();
    assert_eq!(report.case_of("c").status(), "not_run");
}

#[test]
fn a_lost_server_is_no_regression() {
    let workspace = accepted(&["a", "b"], bad_at(&[]));
    let script = ModelServer::script()
        .sut(|call| if plays(call, "b") { Reply::Close } else { answer(true).into() });
    let (run, _) = gated(&workspace, script, &["--concurrency=1"]);
    let report = run.exit(5).stdout_report();
    assert_eq!(report.case_of("b").status(), "not_run");
    assert_eq!(change(&report, "b"), Some("undecided"));
    // The server goes while a miss is run again: the miss stays open.
    let played = AtomicUsize::new(0);
    let script = ModelServer::script().sut(move |call| {
        let again = plays(call, "b") && played.fetch_add(1, Ordering::SeqCst) > 0;
        if again { Reply::Close } else { answer(!plays(call, "b")).into() }
    });
    let (run, _) = gated(&workspace, script, &["--concurrency=1"]);
    let report = run.exit(3).stdout_report();
    assert_eq!(change(&report, "b"), Some("unconfirmed"));
}

/// A suite of judged cases, run and accepted under a judge who likes everything.
fn judged() -> Workspace {
    let server = ModelServer::start();
    let workspace = Workspace::new().config(config(OPENAI, CLEAR)).server(&server);
    let _ = workspace.run().exit(0);
    let _ = workspace.clone().args(["suite", "freeze", "latest", "--output", SUITE]).run().exit(0);
    let workspace = workspace.judged_only(SUITE);
    let _ = workspace.clone().args(["--suite", SUITE]).run().exit(0);
    let _ = workspace.clone().args(["baseline", "accept"]).run().exit(0);
    workspace
}

#[test]
fn a_baseline_of_another_judge_is_said_and_not_compared() {
    let workspace = judged();
    let strict = || ModelServer::script().judge(|call| verdict(call, 0.2));
    let (run, _) = gated(&workspace, strict(), &[]);
    // Under the same name it decides the baseline's own answers differently: it is named, and the
    // agent is not blamed.
    let run = run.exit(3);
    let report = run.stdout_report();
    let gate = &report.0["gate"];
    let case = &gate["cases"][0];
    assert_eq!((&case["score_before"], &case["score"]), (&json!(0.9), &json!(0.2)));
    assert_eq!(change(&report, "clear"), Some("judge_moved"));
    assert_eq!(gate["attribution"]["judge_moved"], true);
    assert!((gate["attribution"]["judge"]["mean"].as_f64().unwrap() + 0.7).abs() < 1e-9);
    let page = run.read(&format!("docs/reports/selftest/{}.md", report.run_id()));
    assert!(page.contains("the judge moved: -0.70 on 1 anchor"), "{page}");

    let (run, _) = gated(&workspace, strict(), &["--judge-model=openai/other"]);
    let run = run.exit(3).stderr_contains("another model judges: openai/other now");
    let report = run.stdout_report();
    assert_eq!(change(&report, "clear"), Some("not_compared"));
    assert!(report.0["gate"]["judge_difference"].as_str().unwrap().contains("openai/other"));
    // Another bar makes another thing of the same score.
    let (run, _) = gated(&workspace, ModelServer::script(), &["--min-score=0.8"]);
    let report = run.exit(3).stdout_report();
    let why = report.0["gate"]["cases"][0]["reason"].as_str().unwrap().to_owned();
    assert!(why.contains("passes at 0.94") && why.contains("0.74"), "{why}");
    // So does another rubric.
    let rubric = "rubric: [{ id: tone, weight: 1, description: Tone, anchors: [] }]\n";
    let other = workspace.config(config(OPENAI, CLEAR) + rubric);
    let judge = ModelServer::script()
        .judge(|_| json!({ "explanation": "x", "score_tone": 1.0, "tone": 1.0 }));
    let (run, _) = gated(&other, judge, &[]);
    let _ = run.stderr_contains("the rubric has changed");
}

#[test]
fn an_agent_that_got_worse_is_blamed_and_not_its_judge() {
    let workspace = judged();
    let script = ModelServer::script()
        .sut(|_| json!({ "status": "COMPLETE", "output": "rubbish" }))
        .judge(|call| verdict(call, if call.text().contains("rubbish") { 0.2 } else { 0.9 }));
    let (run, server) = gated(&workspace, script, &[]);
    let report = run.exit(1).stdout_report();
    assert_eq!(change(&report, "clear"), Some("regression"));
    let attribution = &report.0["gate"]["attribution"];
    let found = (&attribution["judge_moved"], &attribution["anchors"], &attribution["flipped"]);
    assert_eq!(found, (&json!(false), &json!(1), &json!(0)));
    assert!((attribution["agent"]["mean"].as_f64().unwrap() + 0.7).abs() < 1e-9, "{attribution}");
    let anchors =
        server.calls(Role::Judge).iter().filter(|call| !call.text().contains("rubbish")).count();
    assert_eq!(anchors, 1, "the answer of the baseline is judged once more");
    // Two runs are split the same way: their answers differ, and the judge is the same one.
    let found = workspace.clone().args(["compare", "latest", &report.run_id(), "--json"]).run();
    let found: Value = serde_json::from_str(&found.exit(0).stdout).unwrap();
    assert_eq!(found["attribution"]["agent"]["mean"], 0.0, "a run against itself");
    assert_eq!(found["attribution"]["anchors"], 1);
}

#[test]
fn anchors_belong_to_their_baseline() {
    let workspace = judged();
    let path = "config/selftest-anchors.json";
    let text = std::fs::read_to_string(workspace.path(path)).unwrap();
    let run_id =
        serde_json::from_str::<Value>(&text).unwrap()["run_id"].as_str().unwrap().to_owned();
    let other =
        workspace.clone().file(path, text.replace(&run_id, "selftest-20260101-0000-other1"));
    let (run, _) = gated(&other, ModelServer::script(), &[]);
    let run = run.exit(0).stderr_contains("belongs to another baseline");
    assert!(run.stdout_report().0["gate"]["attribution"]["judge"].is_null());
    for (text, why) in [("{}", "schema_version"), ("{\"schema_version\": 9}", "version 9")] {
        let (run, server) = gated(&workspace.clone().file(path, text), ModelServer::script(), &[]);
        let _ = run.exit(2).one_error(&["config/selftest-anchors.json", why]);
        assert!(server.all_calls().is_empty());
    }
    // Checks alone leave nothing for a judge to judge again.
    let checked = accepted(&["a"], bad_at(&[]));
    assert!(!checked.path(path).exists());
}

#[test]
fn a_baseline_that_cannot_be_read_ends_the_run_before_it_begins() {
    let workspace = accepted(&["a"], bad_at(&[]));
    let text = std::fs::read_to_string(workspace.path(BASELINE)).unwrap();
    let newer = text.replace("\"schema_version\": 1", "\"schema_version\": 7");
    for (text, why) in [
        (newer.as_str(), "it has the schema version 7, and this selftest knows 1 only"),
        ("<<<<<<< HEAD\n", "it is no baseline: expected value at line 1"),
        ("{}", "missing field"),
    ] {
        let workspace = workspace.clone().file(BASELINE, text);
        let (run, server) = gated(&workspace, bad_at(&[]), &[]);
        let run = run.exit(2).one_error(&["config/selftest-baseline.json", why]);
        let _ = run.stderr_contains("hint: accept a new one");
        assert!(server.all_calls().is_empty());
        let _ = workspace.args(["baseline", "show"]).run().exit(2).one_error(&[why]);
    }
    let (run, _) = gated(&workspace, bad_at(&[]), &["--baseline=other.json"]);
    let run = run.exit(2).one_error(&["gate no_regression needs a baseline", "other.json"]);
    let _ = run.stderr_contains("hint: `selftest baseline accept` writes one");
    let (run, _) = gated(&workspace, bad_at(&[]), &["--gate=lax"]);
    let _ = run.exit(2).one_error(&["lax"]);
}

#[test]
fn a_baseline_is_written_shown_and_replaced() {
    let workspace = accepted(&["a", "b", "c"], bad_at(&["c"]));
    let run = workspace.clone().args(["baseline", "show"]).run().exit(0);
    for part in ["judge: none", "cases: 2 pass, 1 fail", "c     FAIL         0/1      -"] {
        assert!(run.stdout.contains(part), "no `{part}` in {}", run.stdout);
    }
    let text = run.read(BASELINE);
    assert!(!text.contains("Play a"), "nothing that was said: {text}");
    let schema = workspace.clone().args(["config", "schema", "baseline"]).run().exit(0).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    jsonschema::validate(&schema, &serde_json::from_str(&text).unwrap()).unwrap();
    // A run of fewer cases says what it drops; a file that is no baseline is not replaced.
    let server = bad_at(&[]).start();
    let workspace = workspace.server(&server);
    let _ = workspace.clone().args(["--suite", SUITE, "--scenarios=a"]).run().exit(0);
    let run = workspace.clone().args(["baseline", "accept"]).run().exit(0);
    let _ = run.stderr_contains("1 case of selftest-").stderr_contains("no longer in it: b, c");
    let other = workspace.clone().file("notes.json", "{\"mine\": true}");
    let run = other.args(["baseline", "accept", "latest", "--baseline", "notes.json"]).run();
    assert_eq!(run.exit(2).read("notes.json"), "{\"mine\": true}");
    let run = workspace.args(["baseline", "accept", "absent"]).run().exit(2);
    let _ = run.one_error(&["there is no run `absent`"]);
}

#[test]
fn a_run_that_was_killed_is_no_baseline() {
    let workspace = accepted(&["a"], bad_at(&[]));
    let reports = std::fs::read_dir(workspace.path("reports/selftest")).unwrap();
    let mut reports = reports.map(|entry| entry.unwrap().path());
    let path = reports.find(|path| path.extension().is_some_and(|kind| kind == "json")).unwrap();
    let mut report: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    report["complete"] = json!(false);
    let workspace = workspace.file("half.json", report.to_string());
    let run = workspace.args(["baseline", "accept", "half.json"]).run().exit(2);
    run.one_error(&["cannot be a baseline: it did not finish"]).stderr_contains("hint:");
}
