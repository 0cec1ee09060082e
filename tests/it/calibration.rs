//! `label` and `calibrate`: what people say of answers, and what it makes of a judge.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::model_server::{ModelServer, Script, verdict};
use crate::real_sessions::shared_data;
use crate::report::Report;
use crate::workspace::{CLEAR, OPENAI, Workspace, config, scenarios};

const SUITE: &str = "config/suites/mine.yaml";

/// The human's winner, and the judge's with the answers in both orders.
type Winners = (u8, Option<u8>, Option<u8>);

/// Which answer a text is about; each one has a number.
fn number(text: &str) -> usize {
    let digits = text.split("answer number ").nth(1).unwrap();
    digits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// Two answers of three please the judge.
fn script() -> Script {
    let count = AtomicUsize::new(0);
    ModelServer::script()
        .sut(move |_| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            json!({ "status": "COMPLETE", "output": format!("answer number {number}") })
        })
        .judge(|call| {
            let score = if number(&call.text()).is_multiple_of(3) { 0.3 } else { 0.9 };
            verdict(call, score)
        })
}

/// A project with a run of so many cases.
fn project(cases: usize, server: &ModelServer) -> (Workspace, Report) {
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(cases))).server(server);
    let _ = workspace.clone().args(["--full", "--exit-zero"]).run().exit(0);
    let _ = workspace.clone().args(["suite", "freeze", "latest", "--output", SUITE]).run().exit(0);
    let workspace = workspace.judged_only(SUITE);
    let run = workspace.clone().args(["--suite", SUITE, "--format=json", "--exit-zero"]);
    let run = run.run().exit(0);
    let report = run.stdout_report();
    (workspace, report)
}

/// Labels that agree with the judge, but for one answer of ten.
fn labels(report: &Report) -> Value {
    let label = |case: &crate::report::Case<'_>| {
        let number = number(case.0["output"].as_str().unwrap());
        let is_good = number.is_multiple_of(3) == (number % 10 == 1);
        json!({ "case": case.id(), "label": if is_good { "good" } else { "bad" } })
    };
    report.cases().iter().map(label).collect()
}

#[test]
fn a_judge_is_calibrated_on_labels_and_later_runs_are_corrected() {
    let server = script().start();
    let (workspace, report) = project(90, &server);
    let workspace = workspace.file("labels.json", labels(&report).to_string());
    let id = report.run_id();
    let label = ["judge", "label", "latest", "--from", "labels.json"];
    let _ = workspace.clone().args(label).run().exit(0).stderr_contains("90 of 90 answers");
    // A second time changes nothing.
    let _ = workspace.clone().args(label).run().exit(0).stderr_contains("0 labels new");

    let run = workspace.clone().args(["judge", "calibrate"]).run().exit(0);
    let run = run
        .stdout_contains("90 labels of answers that openai/gpt-4o-mini judged")
        .stdout_contains("a constant prediction has")
        .stdout_contains(&format!("{id}: pass rate corrected by 90 labels"));
    let picture = run.read("docs/reports/selftest/calibration.svg");
    assert!(picture.starts_with("<svg") && picture.contains("whisker"), "{picture}");
    let found: Value =
        serde_json::from_str(&run.read("reports/selftest/labels/calibration.json")).unwrap();
    assert!(found["brier"].as_f64() < found["constant_brier"].as_f64(), "{found:#}");
    assert_eq!(found["judge"]["method"], "verdict");
    for digest in ["prompt_digest", "rubric_digest"] {
        assert_eq!(found["judge"][digest].as_str().unwrap().len(), 64, "{digest}");
    }

    // The next run gives both rates. Of the judge's 60 of 90 some were wrong.
    let again =
        workspace.clone().args(["--suite", SUITE, "--format=json", "--exit-zero"]).run().exit(0);
    let again = again.stdout_report();
    let corrected = &again.0["calibration"];
    assert_eq!((&corrected["state"], &corrected["own_labels"]), (&json!("calibrated"), &json!(0)));
    let (rate, low) = (&corrected["pass_rate"], &corrected["pass_rate_interval"]["low"]);
    assert!(rate.as_f64().unwrap() < 0.72 && low.as_f64().unwrap() > 0.4, "{corrected:#}");

    // Another prompt makes it another judge.
    let rubric = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("prompts/judge/rubric.md"),
    );
    let changed = workspace.file("prompts/judge/rubric.md", rubric.unwrap() + "\nBe fair.\n");
    let run = changed.args(["--suite", SUITE, "--format=json", "--exit-zero"]).run().exit(0);
    let run = run.stderr_contains("the judge has another prompt than when it was labelled");
    assert_eq!(run.stdout_report().0["calibration"]["state"], "uncalibrated");
}

#[test]
fn few_labels_are_uncalibrated() {
    let server = script().start();
    let (workspace, report) = project(30, &server);
    let workspace = workspace.file("labels.json", labels(&report).to_string());
    let none = workspace.clone().args(["judge", "calibrate"]).run().exit(4);
    let _ = none.stderr_contains("no run has labels");
    let _ =
        workspace.clone().args(["judge", "label", "latest", "--from", "labels.json"]).run().exit(0);
    let run = workspace.clone().args(["judge", "calibrate"]).run().exit(0);
    let _ = run.stdout_contains("pass rate uncalibrated: 30 labels");
    let run = workspace.clone().args(["--full", "--exit-zero"]).run().exit(0);
    let _ = run.stdout_contains("pass rate uncalibrated: 30 labels");
    let run =
        workspace.clone().args(["--suite", SUITE, "--format=json", "--exit-zero"]).run().exit(0);
    let page = run.read(&format!("docs/reports/selftest/{}.md", run.stdout_report().run_id()));
    assert!(page.contains("pass rate uncalibrated: 30 labels"), "{page}");
    // Unlike judges are not mixed.
    let rubric = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("prompts/judge/rubric.md"),
    );
    let changed = workspace.file("prompts/judge/rubric.md", rubric.unwrap() + "\nBe fair.\n");
    let run =
        changed.clone().args(["--suite", SUITE, "--format=json", "--exit-zero"]).run().exit(0);
    let other = labels(&run.stdout_report());
    let changed = changed.file("labels.json", other.to_string());
    let latest = run.stdout_report().run_id();
    let _ =
        changed.clone().args(["judge", "label", &latest, "--from", "labels.json"]).run().exit(0);
    let run = changed.args(["judge", "calibrate"]).run().exit(2);
    let _ = run.one_error(&["was judged with another prompt than"]).stderr_contains("hint:");
}

#[test]
fn labels_that_do_not_fit_are_refused() {
    let server = script().start();
    let (workspace, report) = project(25, &server);
    let run_id = report.run_id();
    let from = |labels: Value| {
        let workspace = workspace.clone().file("labels.json", labels.to_string());
        workspace.args(["judge", "label", &run_id, "--from", "labels.json"]).run()
    };
    let one = |case: &str, label: &str| json!({ "case": case, "label": label });
    for (labels, error) in [
        (json!([one("nobody", "good")]), "the label of `nobody` is of no answer of this run"),
        (
            json!([one("case-1", "good"), one("case-1", "bad")]),
            "the labels of `case-1` contradict each other",
        ),
        (
            json!({ "run_id": "selftest-20260101-0000-aaaaaa", "labels": [] }),
            "the labels are of selftest-20260101-0000-aaaaaa",
        ),
        (
            json!([{ "case": "case-1", "case_digest": "0", "label": "bad" }]),
            "the label of `case-1` is of another case of that name",
        ),
        (json!([one("case-1", "fine")]), "unknown variant `fine`"),
        (json!(3), "expected labels as JSON"),
    ] {
        let run = from(labels).exit(2).one_error(&["labels.json", error]);
        let _ = run.stderr_contains("hint:");
    }
    let all = |word: &str| (0..25).map(|case| one(&format!("case-{case}"), word)).collect();
    let _ = from(all("good")).exit(0);
    let _ = from(json!([one("case-3", "bad")])).exit(2).one_error(&["contradict"]);
    let run = workspace.clone().args(["judge", "calibrate"]).run().exit(2);
    let _ = run.one_error(&["all 25 labels are good"]);
    // Without a terminal no key can be pressed.
    let other = Workspace::simple(&server);
    let _ = other.run().exit(0);
    let run = other.args(["judge", "label", "latest"]).run().exit(2);
    let _ = run.one_error(&["labelling takes a terminal"]).stderr_contains("--from FILE");
}

#[test]
fn a_separable_set_is_calibrated_with_a_note() {
    let server = script().start();
    let (workspace, report) = project(25, &server);
    let label = |case: &crate::report::Case<'_>| {
        let is_good = !number(case.0["output"].as_str().unwrap()).is_multiple_of(3);
        json!({ "case": case.id(), "label": if is_good { "good" } else { "bad" } })
    };
    let labels: Value = report.cases().iter().map(label).collect();
    let workspace = workspace.file("labels.json", labels.to_string());
    let _ =
        workspace.clone().args(["judge", "label", "latest", "--from", "labels.json"]).run().exit(0);
    let run = workspace.args(["judge", "calibrate"]).run().exit(0);
    let _ = run.stdout_contains("tell all labels apart");
}

/// Presses keys on a terminal of its own whenever it is asked for one, then prints what was shown.
#[cfg(unix)]
const TYPIST: &str = r#"
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
shown, keys = b"", sys.argv[1].split(",")
for asked, key in enumerate(keys, 1):
    while shown.count(b"q quit: ") < asked:
        shown += os.read(terminal, 4096)
    os.write(terminal, key.encode())
try:
    while more := os.read(terminal, 4096):
        shown += more
except OSError:
    pass
sys.stdout.write(shown.decode().replace("\r", ""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

#[cfg(unix)]
#[test]
fn one_key_labels_an_answer_and_labelling_goes_on_where_it_stopped() {
    let server = script().start();
    let (workspace, report) = project(6, &server);
    let press = |keys: &str| {
        let typist = ["python3", "-c", TYPIST, keys];
        workspace.clone().within(typist).args(["judge", "label", "latest"]).run().exit(0)
    };
    let first = press("g,xb,s,q");
    let first = first.stdout_contains("--- 1 of 6: case-").stdout_contains("--- 4 of 6: case-");
    for hidden in ["PASS", "FAIL", "0.90", "0.30", "overall", "threshold"] {
        assert!(!first.stdout.contains(hidden), "{hidden} in {}", first.stdout);
    }
    let _ = first.stdout_contains("2 labels new, 2 of 6 answers labelled");
    let second = press("b,b,b,b");
    let _ = second.stdout_contains("--- 3 of 6: case-").stdout_contains("6 of 6 answers labelled");
    let id = report.run_id();
    let kept = workspace.clone().args(["judge", "label", &id, "--json", "--from", "-"]).run();
    // Nothing on stdin is no labels.
    let _ = kept.exit(2).stderr_contains("expected labels as JSON");
    let file = workspace.path(&format!("reports/selftest/labels/{id}.json"));
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let words: Vec<&str> = kept["labels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["label"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["good", "bad", "bad", "bad", "bad", "bad"]);
}

#[test]
fn a_run_without_an_answer_has_nothing_to_label() {
    let server = ModelServer::script().generator(|_| "no JSON").start();
    let workspace = Workspace::new().config(config(OPENAI, CLEAR)).server(&server);
    let run = workspace.clone().args(["--exit-zero"]).run();
    let report = run.report();
    if report.case().0["output"].is_null() {
        let run = workspace.args(["judge", "label", "latest"]).run().exit(4);
        let _ = run.stderr_contains("nothing to label");
    }
}

/// Recorded judgements of public instances, against the figures published with them, and the
/// kappa that their own script gets wrong.
#[test]
fn published_figures_of_judges_are_reproduced() {
    let Some(folder) = shared_data("judge") else { return };
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let instances: Vec<Value> = read("llmbar_natural.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let published: Value =
        serde_json::from_str(&read("llmbar_natural_published_statistics.json")).unwrap();
    let judges = published["judges"].as_object().unwrap();
    assert!(judges.len() == 8 && instances.len() == 100);
    let winner = |value: &Value| value.as_str().and_then(|text| text.parse::<u8>().ok());
    for (name, figures) in judges {
        let said: Vec<Winners> = instances
            .iter()
            .map(|instance| {
                let of = &instance["judges"][name];
                let human = u8::try_from(instance["human_winner"].as_u64().unwrap()).unwrap();
                (human, winner(&of["winner"]), winner(&of["winner_swapped"]))
            })
            .collect();
        let count = |holds: &dyn Fn(&Winners) -> bool| said.iter().filter(|one| holds(one)).count();
        for (figure, found) in [
            ("accuracy", count(&|(human, first, _)| *first == Some(*human))),
            ("accuracy_swapped", count(&|(human, _, swapped)| *swapped == Some(*human))),
            (
                "accuracy_both_orders",
                count(&|(human, first, swapped)| first == swapped && *first == Some(*human)),
            ),
            ("same_in_both_orders", count(&|(_, first, swapped)| first == swapped)),
        ] {
            assert_eq!(figures[figure], found, "{figure} of {name}");
        }
        if name == "GPT-4/Vanilla" {
            let pairs: Vec<(u8, u8)> =
                said.iter().map(|(human, first, _)| (*human, first.unwrap())).collect();
            let found = selftest_stats::cohen_kappa(&pairs).unwrap();
            assert!((found.kappa - 0.8977).abs() < 5e-5, "{found:?}");
        }
    }
}
