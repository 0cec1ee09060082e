//! docs/statistics.md: what its examples say is what the program prints. And what a plan, a run
//! against itself and a small suite are told.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use serde_json::json;

use crate::baseline::bad_at;
use crate::model_server::{Call, ModelServer, Script, verdict};
use crate::report::Report;
use crate::workspace::{OPENAI, Workspace, config, scenarios};

const SUITE: &str = "config/suites/mine.yaml";

/// A project whose suite has so many cases.
fn frozen(cases: usize) -> Workspace {
    let server = ModelServer::start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(cases))).server(&server);
    let _ = workspace.run().exit(0);
    let _ = workspace.clone().args(["suite", "freeze", "latest", "--output", SUITE]).run().exit(0);
    workspace
}

fn judged(score: impl Fn(&Call) -> f64 + Send + Sync + 'static) -> Script {
    ModelServer::script().judge(move |call| verdict(call, score(call)))
}

fn run(workspace: &Workspace, script: Script, repeats: u32) -> Report {
    let server = script.start();
    let repeats = format!("--repeats={repeats}");
    let arguments = ["--suite", SUITE, "--format=json", "--exit-zero", &repeats];
    workspace.clone().server(&server).args(arguments).run().exit(0).stdout_report()
}

/// Without the lines that differ from machine to machine.
fn result(stdout: &str) -> String {
    let is_result = |line: &&str| {
        ["score:", "passed:", "on these cases", "B is", "Not enough"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    stdout.lines().filter(is_result).collect::<Vec<_>>().join("\n")
}

/// The fenced blocks of the document by the word behind `text`.
fn examples() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/statistics.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut found = BTreeMap::new();
    let mut blocks = text.split("\n```");
    blocks.next();
    while let Some(block) = blocks.next() {
        let (info, body) = block.split_once('\n').unwrap_or((block, ""));
        if let Some(name) = info.strip_prefix("text ") {
            found.insert(name.to_owned(), body.to_owned());
        }
        blocks.next();
    }
    found
}

#[track_caller]
fn assert_example(name: &str, found: &str) {
    let expected = examples().remove(name).unwrap_or_else(|| panic!("no example `{name}`"));
    assert_eq!(expected.trim(), found.trim(), "the example `{name}` of docs/statistics.md");
}

#[test]
fn five_cases_of_twenty_repeats_conclude() {
    let workspace = frozen(5);
    let [a, b] = [0.2, 0.9].map(|score| run(&workspace, judged(move |_| score), 20).run_id());
    let compared = workspace.clone().args(["compare", &a, &b]).run().exit(0);
    assert_example("five-cases", &result(&compared.stdout));
    let compared = workspace.clone().args(["compare", &a, &b, "--json"]).run().exit(0);
    let found: Value = serde_json::from_str(&compared.stdout).unwrap();
    assert_eq!((&found["conclusion"], &found["scope"]), (&json!("helps"), &json!("these_cases")));
    let _ = workspace.args(["compare", &b, &a, "--fail-if-worse"]).run().exit(1);
}

#[test]
fn twelve_cases_conclude_for_cases_like_these() {
    let workspace = frozen(12);
    let [a, b] = [0.5, 0.9].map(|score| run(&workspace, judged(move |_| score), 1).run_id());
    let compared = workspace.args(["compare", &a, &b]).run().exit(0);
    assert_example("twelve-cases", &result(&compared.stdout));
}

#[test]
fn a_plan_says_what_a_comparison_can_find() {
    let workspace = frozen(8);
    let unsteady = std::sync::atomic::AtomicU32::new(0);
    let server = judged(move |_| {
        let number = unsteady.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if number.is_multiple_of(3) { 0.7 } else { 0.85 }
    })
    .start();
    let arguments =
        ["--suite", SUITE, "--format=json", "--exit-zero", "--repeats=4", "--concurrency=1"];
    let report = workspace.clone().server(&server).args(arguments).run().exit(0).stdout_report();
    let plan = workspace.clone().args(["compare", &report.run_id(), "--power"]).run().exit(0);
    assert_example("plan", &plan.stdout);
    let repeats = &report.0["repeats"];
    assert_eq!(repeats["flaky"], 8, "{repeats:#}");
    let page = plan.read(&format!("docs/reports/selftest/{}.md", report.run_id()));
    assert!(page.contains("FLAKY") && page.contains("8 of 8 cases are flaky"), "{page}");
    assert!(page.contains("pass@4, at least one of 4 trials passes: 100 %"), "{page}");

    let itself = workspace.clone().args(["compare", "--self", &report.run_id()]).run().exit(0);
    let body = itself.stdout.replace(&report.run_id(), "RUN");
    assert_example("aa", &body);
    let aa = ["compare", "--self", "--suite", SUITE, "--repeats=2", "--json"];
    let twice = workspace.clone().server(&judged(|_| 0.9).start()).args(aa).run().exit(0);
    let found: Value = serde_json::from_str(&twice.stdout).unwrap();
    assert_eq!(
        (&found["repeats"], &found["flips"], &found["pairs"]),
        (&2.into(), &0.into(), &16.into())
    );
    let single = run(&workspace, judged(|_| 0.9), 1).run_id();
    let refused = workspace.clone().args(["compare", "--self", &single]).run().exit(2);
    let _ = refused.one_error(&["has no case with two trials"]).stderr_contains("hint:");

    // An experiment is planned by the noise of the latest run, and runs nothing.
    let skill = workspace.file("SKILL.md", "Be brief.\n").server(&ModelServer::start());
    let plan =
        ["improve", "skills", "experiment", "SKILL.md", "--suite", SUITE, "--repeats=3", "--power"];
    let planned = skill.args(plan).run().exit(0).stdout;
    assert!(planned.starts_with("8 cases × 3 trials in each arm:"), "{planned}");
}

#[test]
fn cases_that_always_passed_and_always_fail_are_worse_without_statistics() {
    let workspace = Workspace::new()
        .config(config(OPENAI, &scenarios(1)))
        .file(SUITE, crate::baseline::suite(&["a", "b", "c", "d", "e", "f", "g", "h"]));
    let run =
        |bad: &'static [&'static str], repeats| run(&workspace, bad_at(bad), repeats).run_id();
    let (good, bad) = (run(&[], 2), run(&["b", "d", "g"], 2));
    let compare =
        |a: &str, b: &str| workspace.clone().args(["compare", a, b, "--fail-if-worse"]).run();
    let worse = compare(&good, &bad).exit(1);
    let sentence = "new failures: 3 cases failed in every trial of B and passed in every trial of \
                    A: b, d, g";
    let worse = worse.stdout_contains(sentence).stdout_contains("fails now");
    assert!(worse.stdout.lines().any(|line| line.starts_with("a ") && line.ends_with("same")));
    let better = compare(&bad, &good).exit(0);
    assert!(!better.stdout.contains("new failures"), "{}", better.stdout);
    let _ = compare(&bad, &bad).exit(0);
    // A failure in one of two trials may be chance.
    let played = std::sync::atomic::AtomicUsize::new(0);
    let once = ModelServer::script().sut(move |call| {
        let is_b = call.text().contains("Play b.");
        let first = is_b && played.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        crate::baseline::answer(!first)
    });
    let flaky = self::run(&workspace, once, 2).run_id();
    let _ = compare(&good, &flaky).exit(0).stdout_contains("worse");
}

#[test]
fn a_suite_that_can_never_conclude_is_told() {
    let server = ModelServer::start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(5))).server(&server);
    let _ = workspace.run().exit(0);
    let frozen = workspace.args(["suite", "freeze", "latest"]).run().exit(0);
    let _ = frozen.stderr_contains("5 cases: comparisons of this suite can never conclude");
}
