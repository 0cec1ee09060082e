//! A judge that is asked several times about each answer.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model_server::{ModelServer, Reply, Role, verdict, yes_or_no};
use crate::workspace::{CLEAR, OPENAI, Workspace, config, scenarios};

/// A judge with these settings.
fn settings(scenarios: &str, judge: &str) -> String {
    let plain = format!("judge: {{ model: \"{OPENAI}\" }}");
    config(OPENAI, scenarios).replace(&plain, &plain.replace(" }", &format!(", {judge} }}")))
}

const THRICE: &str = "samples: 3, temperature: 0.7, method: verdict, max_reasks: 0";

#[test]
fn the_mean_counts_and_a_sample_without_a_score_is_no_zero() {
    let script = ModelServer::script().judge(|call| match call.number {
        0 => Reply::from(verdict(call, 0.9)),
        1 => "no verdict".into(),
        _ => verdict(call, 0.5).into(),
    });
    let server = script.start();
    let workspace = Workspace::new().config(settings(CLEAR, THRICE)).server(&server);
    let run = workspace.run().exit(1);
    let report = run.report();
    let case = report.case();
    assert_eq!(case.overall(), Some(0.7));
    assert!(case.reason().contains("overall 0.70 is below threshold 0.74"), "{}", case.reason());
    let judgement = &case.steps()[0]["judgement"];
    let states: Vec<&Value> =
        judgement["samples"].as_array().unwrap().iter().map(|sample| &sample["state"]).collect();
    assert_eq!(states, ["scored", "unscored", "scored"]);
    assert_eq!(case.judge_calls().len(), 3);
    let seeds: BTreeSet<u64> =
        server.calls(Role::Judge).iter().map(|call| call.body["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds.len(), 3, "each sample has a seed of its own");
    let samples = &report.0["judge_samples"];
    let counts = ["answers", "samples", "unscored", "split"].map(|name| samples[name].as_u64());
    assert_eq!(counts, [Some(1), Some(3), Some(1), Some(1)]);
    assert!((samples["variance"].as_f64().unwrap() - 0.08).abs() < 1e-9, "{samples}");
    let words = "3 verdicts on 1 answer, standard deviation on one answer 0.28, 1 answer passes by \
                 some of them only, 1 verdict without a score";
    let page = run.markdown();
    assert!(page.contains(&format!("- Judge samples: {words}")), "{page}");
    let _ = run.stdout_contains(&format!("judge samples: {words}"));
    let schema = workspace.args(["config", "schema", "report"]).run().exit(0).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    jsonschema::validate(&schema, &report.0).unwrap_or_else(|error| panic!("{error}: {report}"));
}

#[test]
fn what_the_judge_adds_is_told_apart_from_what_trials_add() {
    // Every answer gets 0.8 and 1.0, so that trials do not differ and verdicts do.
    let script = ModelServer::script()
        .judge(|call| verdict(call, if call.number.is_multiple_of(2) { 0.8 } else { 1.0 }));
    let server = script.start();
    let judge = "samples: 2, temperature: 0.7, method: verdict";
    let workspace = Workspace::new().config(settings(&scenarios(2), judge)).server(&server);
    let suite = "config/suites/mine.yaml";
    let once = ["--concurrency=1"];
    let _ = workspace.clone().args(once).run().exit(0);
    let _ = workspace.clone().args(["suite", "freeze", "latest", "--output", suite]).run().exit(0);
    let arguments = ["--suite", suite, "--repeats=3", "--concurrency=1", "--format=json"];
    let run = workspace.args(arguments).run().exit(0);
    let report = run.stdout_report();
    let variance = &report.0["repeats"]["variance"];
    assert!((variance["judge"].as_f64().unwrap() - 0.02).abs() < 1e-9, "{variance}");
    assert_eq!(variance["repeats"], 0.0, "{variance}");
    let page = run.read(&format!("docs/reports/selftest/{}.md", report.run_id()));
    assert!(page.contains("trials of a case 0.00, samples of the judge 0.14"), "{page}");
}

#[test]
fn probabilities_are_the_same_each_time_and_asked_for_once() {
    let server = ModelServer::script().question(|_| yes_or_no(0.95)).start();
    let judge = "samples: 5, temperature: 0.7, explain: false";
    let workspace = Workspace::new().config(settings(CLEAR, judge)).server(&server);
    let run = workspace.run();
    let run = run.stderr_contains("judge.samples is 5").stderr_contains("it is asked once");
    let report = run.report();
    assert_eq!(report.0.get("judge_samples"), None);
    let judgement = &report.case().steps()[0]["judgement"];
    assert!(judgement.get("samples").is_none(), "{judgement}");
}

#[test]
fn asking_the_same_again_is_a_mistake_in_the_configuration() {
    let workspace = Workspace::new();
    for (judge, why) in [
        ("samples: 3", "`judge.temperature: 0.0`"),
        ("samples: 3, temperature: 0.7, method: probability", "`judge.method: probability`"),
    ] {
        let workspace = workspace.clone().config(settings(CLEAR, judge));
        let run = workspace.args(["config", "check"]).run().exit(2);
        let _ = run.stderr_contains("`judge.samples` is 3").stderr_contains(why);
    }
    let workspace = workspace.config(settings(CLEAR, "samples: 10"));
    let _ = workspace.args(["config", "check"]).run().exit(2).stderr_contains("judge.samples");
}
