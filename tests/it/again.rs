//! `rejudge` and `replay`: the answers of a run judged again, and its cases played again.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::model_server::{Call, HINT_MARK, ModelServer, Reply, Role, Script, verdict};
use crate::report::{Case, Report};
use crate::run::Run;
use crate::workspace::{CLEAR, FLOW, OPENAI, Workspace, config, scenarios};

/// A judge to whom the answer to a case with one of these hints is bad.
fn dislikes(hints: Vec<String>) -> Script {
    let dislikes = move |call: &Call| hints.iter().any(|hint| call.text().contains(hint));
    ModelServer::script().judge(move |call| verdict(call, if dislikes(call) { 0.3 } else { 0.9 }))
}

/// A project with a run whose judge dislikes the second case that was generated.
fn judged_once(scenarios: &str) -> (Workspace, Report) {
    let server = dislikes(vec![format!("{HINT_MARK} 1")]).start();
    let workspace = Workspace::new().config(config(OPENAI, scenarios)).server(&server);
    let first = workspace.clone().args(["--format=json", "--exit-zero"]).run().exit(0);
    (workspace, first.stdout_report())
}

fn field(report: &Report, name: &str) -> Vec<Value> {
    report.cases().iter().map(|case| case.0[name].clone()).collect()
}

fn replies(report: &Report) -> Vec<Value> {
    let cases = report.cases();
    cases.iter().flat_map(Case::steps).map(|step| step["reply"].clone()).collect()
}

fn assert_valid(workspace: &Workspace, report: &Report) {
    let schema = workspace.clone().args(["config", "schema", "report"]).run().exit(0).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    jsonschema::validate(&schema, &report.0).unwrap_or_else(|error| panic!("{error}: {report}"));
}

/// The report of the run that started last.
fn latest(run: &Run) -> Report {
    let started = |report: &Report| {
        report.0["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap()
    };
    run.reports().into_iter().max_by_key(started).unwrap()
}

/// The report of the run with one thing changed, as a file of the project.
fn edited(workspace: Workspace, report: &Report, edit: impl FnOnce(&mut Value)) -> Workspace {
    let mut text = report.0.clone();
    edit(&mut text);
    workspace.file("old.json", text.to_string())
}

#[test]
fn answers_are_judged_again_and_nobody_is_asked_for_new_ones() {
    let (workspace, first) = judged_once(&format!("{}{FLOW}", scenarios(3)));
    assert_eq!(first.counts(), [4, 3, 1, 0]);
    let passed = first.cases().into_iter().find(|case| case.pass() == Some(true)).unwrap();
    let server = dislikes(vec![passed.0["hints"].as_str().unwrap().to_owned()]).start();
    // What held in the run holds again, whatever is configured now.
    let strict = config(OPENAI, CLEAR) + "strictness: 1.0\n";
    let workspace = workspace.config(strict).server(&server);
    let run = workspace.clone().args(["judge", "rejudge", "latest", "--format=json"]).run().exit(1);
    let report = run.stdout_report();

    assert!(server.calls(Role::Generator).is_empty() && server.calls(Role::Sut).is_empty());
    assert_eq!(server.calls(Role::Judge).len(), 5, "three answers, and two in the flow");
    assert_eq!(replies(&report), replies(&first));
    for name in ["id", "prompt", "hints", "grounds", "output", "threshold", "session_id"] {
        assert_eq!(field(&report, name), field(&first, name), "{name}");
    }
    assert_ne!(report.run_id(), first.run_id());
    assert_eq!(report.0["seed"], first.0["seed"]);
    assert_eq!(report.counts(), [4, 3, 1, 0]);
    let rejudged = &report.0["rejudged"];
    assert_eq!(rejudged["run_id"], first.run_id().as_str());
    let changes = &rejudged["changes"];
    assert_eq!((&changes["pass_to_fail"], &changes["fail_to_pass"]), (&json!(1), &json!(1)));
    assert_eq!(changes["agreement"]["same"], 2);
    let former =
        report.cases().iter().filter(|case| case.0["former"]["status"] == "failed").count();
    assert_eq!(former, 1);
    let line = "verdicts changed: 2 of 4 cases (1 pass to fail, 1 fail to pass); both judges agree \
                on 2 of 4 cases (50 %), kappa -0.33";
    let run = run.stderr_contains(line);
    assert_valid(&workspace, &report);
    let page = run.read(&format!("docs/reports/selftest/{}.md", report.run_id()));
    let again = format!("selftest judge rejudge {} --seed {}", first.run_id(), first.0["seed"]);
    for part in ["## Rejudged", "1 pass to fail, 1 fail to pass", "| FAIL | PASS |", &again] {
        assert!(page.contains(part), "no `{part}` in {page}");
    }
}

#[test]
fn another_judge_is_named_and_the_last_line_says_what_changed() {
    let (workspace, first) = judged_once(&scenarios(2));
    let server = ModelServer::start();
    let path = format!("reports/selftest/{}.json", first.run_id());
    let arguments = ["judge", "rejudge", &path, "--judge-model", "ollama/qwen2.5:7b"];
    let run = workspace.server(&server).args(arguments).run().exit(0);
    let report = latest(&run);
    assert_eq!(report.0["models"]["judge"], "ollama/qwen2.5:7b");
    assert_eq!(report.0["models"]["sut"], first.0["models"]["sut"]);
    assert_eq!(report.0["rejudged"]["judge"], OPENAI);
    let last = run.stdout.trim_end().lines().last().unwrap().to_owned();
    let expected = "verdicts changed: 1 of 2 cases (0 pass to fail, 1 fail to pass); both judges \
                    agree on 1 of 2 cases (50 %), kappa 0.00";
    assert!(last.starts_with(expected), "{last}");
    let words = format!("answers of {}, judged before by {OPENAI}", first.run_id());
    let _ = run.stdout_contains(&words);
}

#[test]
fn what_an_old_report_does_not_hold_is_unscored_and_checks_are_decided_again() {
    let (workspace, first) = judged_once(&scenarios(3));
    let workspace = edited(workspace, &first, |report| {
        report["cases"][0]["scenario"]["files"] = json!(["README.md"]);
        let grounds = report["cases"][0]["grounds"].as_object_mut();
        let _ = grounds.map(|grounds| grounds.remove("excerpts"));
        report["cases"][1]["grounds"] = json!({ "checks": [{ "contains": "no such words" }] });
    });
    let server = ModelServer::start();
    let workspace = workspace.server(&server);
    let run =
        workspace.clone().args(["judge", "rejudge", "old.json", "--format=json"]).run().exit(1);
    let report = run.stdout_report();
    let [missing, checked, judged] =
        [0, 1, 2].map(|number| report.case_of(&format!("case-{number}")));
    assert_eq!(missing.unscored_reason(), Some("evidence_missing"), "{missing}");
    assert!(missing.reason().contains("excerpts"), "{}", missing.reason());
    assert_eq!((checked.pass(), checked.status()), (Some(false), "failed"));
    assert!(checked.reason().contains("no such words"), "{}", checked.reason());
    assert_eq!(judged.pass(), Some(true));
    assert_eq!(server.calls(Role::Judge).len(), 1, "nothing else is left to say");
    assert_valid(&workspace, &report);
}

#[test]
fn a_run_without_answers_has_nothing_to_judge() {
    let server = ModelServer::script().generator(|_| Reply::status(500)).start();
    let workspace = Workspace::simple(&server);
    let _ = workspace.run().exit(5);
    let run = workspace.clone().args(["judge", "rejudge", "latest"]).run().exit(4);
    let _ = run.stderr_contains("nothing to judge");
    let run = workspace.clone().args(["compare", "--replay", "latest"]).run().exit(4);
    let _ = run.stderr_contains("nothing to replay");
    for command in [["judge", "rejudge"], ["compare", "--replay"]] {
        let run = workspace.clone().args([&command[..], &["absent.json"]].concat()).run().exit(2);
        run.one_error(&["there is no run", "absent.json"]);
    }
}

fn replayed(workspace: &Workspace, server: &ModelServer, arguments: &[&str]) -> Run {
    let arguments = ["compare", "--replay", "latest"].iter().chain(arguments);
    workspace.clone().server(server).args(arguments).run()
}

#[test]
fn a_run_is_played_again_with_its_seed_and_compared() {
    let server = ModelServer::start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(8))).server(&server);
    let first = workspace.clone().args(["--format=json"]).run().exit(0).stdout_report();
    let seeds = |server: &ModelServer| -> BTreeSet<u64> {
        let calls = server.calls(Role::Sut);
        calls.iter().map(|call| call.body["seed"].as_u64().unwrap()).collect()
    };
    let then = seeds(&server);
    let server = ModelServer::start();
    let run = replayed(&workspace, &server, &["--fail-if-worse"]).exit(0);
    let run = run.stdout_contains("Not enough evidence: none of 8 cases differs.");
    assert!(server.calls(Role::Generator).is_empty());
    assert_eq!(seeds(&server), then, "the same seed");
    let report = latest(&run);
    for name in ["id", "prompt", "hints", "grounds"] {
        assert_eq!(field(&report, name), field(&first, name), "{name}");
    }
    assert_eq!(report.0["suite"]["replayed"], true);
    assert_eq!(report.0["suite"]["run_id"], first.run_id().as_str());
    assert_valid(&workspace, &report);
    let page = run.read(&format!("docs/reports/selftest/{}.md", report.run_id()));
    let again = format!("selftest compare --replay {} --seed {}", first.run_id(), first.0["seed"]);
    assert!(page.contains(&again), "{page}");

    let worse = ModelServer::script().judge(|call| verdict(call, 0.4)).start();
    let run = replayed(&workspace, &worse, &["--fail-if-worse", "--json"]).exit(1);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(found["conclusion"], "harms");
    assert_eq!(found["b"]["suite"]["replayed"], true);
}

#[test]
fn repeats_are_played_as_often_as_before() {
    let (workspace, first) = judged_once(&scenarios(2));
    let suite = "config/suites/mine.yaml";
    let _ = workspace.clone().args(["suite", "freeze", "latest", "--output", suite]).run().exit(0);
    let server = ModelServer::start();
    let workspace = workspace.server(&server);
    let _ = workspace.clone().args(["--suite", suite, "--repeats=3"]).run().exit(0);
    let run = replayed(&workspace, &server, &[]).exit(0);
    assert_eq!(latest(&run).counts(), [6, 6, 0, 0]);
    let run = replayed(&workspace, &server, &["--repeats=1", "--scenarios=case-1"]).exit(0);
    let report = latest(&run);
    assert_eq!(report.case().id(), "case-1");
    assert_eq!(report.case().prompt(), first.case_of("case-1").prompt());
}

#[test]
fn an_arm_of_an_experiment_is_not_played_alone() {
    let (workspace, first) = judged_once(CLEAR);
    let workspace = edited(workspace, &first, |report| {
        report["experiment"] = json!({
            "arm": "treatment",
            "other_run_id": "selftest-20260206-1234-bcdfgh",
            "skill": "tidy",
            "skill_digest": "ab",
        });
    });
    let run = workspace.args(["compare", "--replay", "old.json"]).run().exit(2);
    run.one_error(&["is an arm of an experiment with the skill tidy"])
        .stderr_contains("selftest improve skills experiment");
}
