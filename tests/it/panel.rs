//! A panel: several unlike judges on every answer.

use serde_json::{Value, json};

use crate::cassette::essence;
use crate::model_server::{Call, ModelServer, Reply, Role, Script, verdict};
use crate::report::{Case, Report};
use crate::workspace::{CLEAR, OLLAMA, OPENAI, Workspace, config, scenarios};

const OLLAMA_MODEL: &str = "qwen2.5:7b";

/// A panel of these models.
fn panel(scenarios: &str, models: &[&str]) -> String {
    let plain = format!("judge: {{ model: \"{OPENAI}\" }}");
    let panel = format!("judge: {{ panel: {}, max_reasks: 0 }}", json!(models));
    config(OPENAI, scenarios).replace(&plain, &panel)
}

fn is_ollama(call: &Call) -> bool {
    call.body["model"] == OLLAMA_MODEL
}

/// The one judge scores so, the other one so.
fn judged(openai: f64, ollama: f64) -> Script {
    ModelServer::script()
        .judge(move |call| verdict(call, if is_ollama(call) { ollama } else { openai }))
}

#[test]
fn the_mean_of_unlike_judges_counts_and_their_dispute_is_shown() {
    let server = judged(0.9, 0.7).start();
    let yaml = panel(&scenarios(2), &[OPENAI, OLLAMA]);
    let workspace = Workspace::new().config(yaml).server(&server);
    let run = workspace.run().exit(0);
    let report = run.report();
    assert_eq!(server.calls(Role::Judge).len(), 4, "each judges every answer");
    assert_eq!(report.0["models"]["judge"], format!("{OPENAI} + {OLLAMA}"));
    assert_eq!(report.0["models"]["panel"][1]["model"], OLLAMA);
    for case in report.cases() {
        assert_eq!((case.pass(), case.overall()), (Some(true), Some(0.8)), "{case}");
        assert_eq!(case.0["disputed"], true, "0.7 is below the threshold");
        let votes: Vec<&Value> =
            case.0["votes"].as_array().unwrap().iter().map(|vote| &vote["pass"]).collect();
        assert_eq!(votes, [true, false]);
    }
    let found = &report.0["panel"];
    assert_eq!((&found["cases"], &found["unanimous"]), (&json!(2), &json!(0)));
    assert_eq!(found["disputed"], json!(["case-0", "case-1"]));
    assert_eq!(found["pairs"][0]["agreement"]["same"], 0);
    let page = run.markdown();
    for part in [
        "| case-0 | COMPLETE | 0.80 | PASS (disputed) |",
        "## Panel\n\n- all judges say the same of 0 of 2 cases (0 %)",
        "| case-1 | ollama/qwen2.5:7b | fail | 0.70 |",
        "- Judge ollama/qwen2.5:7b: not measured",
    ] {
        assert!(page.contains(part), "no `{part}` in {page}");
    }
    let _ = run
        .stdout_contains("PASS (disputed)")
        .stdout_contains("panel: all judges say the same of 0 of 2 cases (0 %)")
        .stdout_contains("panel: openai/gpt-4o-mini and ollama/qwen2.5:7b agree on 0 of 2 cases");
    let schema = workspace.clone().args(["config", "schema", "report"]).run().exit(0).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    jsonschema::validate(&schema, &report.0).unwrap_or_else(|error| panic!("{error}: {report}"));

    // A judge who is named on the command line judges alone.
    let alone = ["--judge-model", OPENAI, "--format=json"];
    let report = workspace.args(alone).run().exit(0).stdout_report();
    assert_eq!(report.0["models"]["judge"], OPENAI);
    assert_eq!(report.0.get("panel"), None);
    assert_eq!(report.cases()[0].overall(), Some(0.9));
}

#[test]
fn a_judge_without_a_score_is_no_zero() {
    let script = ModelServer::script().judge(|call| {
        if is_ollama(call) { Reply::from("no verdict") } else { verdict(call, 0.9).into() }
    });
    let server = script.start();
    let workspace = Workspace::new().config(panel(CLEAR, &[OLLAMA, OPENAI])).server(&server);
    let run = workspace.run().exit(0);
    let report = run.report();
    let case = report.case();
    assert_eq!((case.pass(), case.overall()), (Some(true), Some(0.9)));
    assert_eq!(case.0.get("disputed"), None, "silence is no dispute");
    assert_eq!(report.0["panel"]["judges"][0]["unscored"], 1);
    assert_eq!(report.0["panel"]["pairs"][0]["agreement"], Value::Null);
    let _ = run
        .stdout_contains("panel: ollama/qwen2.5:7b: no vote on 1 case, which counts for nothing");
    // Without a score of any judge there is none.
    let silent = ModelServer::script().judge(|_| "no verdict").start();
    let run = workspace.server(&silent).args(["--format=json"]).run().exit(3);
    assert_eq!(run.stdout_report().case().unscored_reason(), Some("malformed"));
}

/// What a replay of a panel must repeat of its cases and of the panel itself, whose judges have the
/// name of the cassette before their own.
fn votes(report: &Report) -> Vec<Value> {
    let name = |judge: &Value| {
        let name = judge["model"].as_str().unwrap().rsplit('#').next().unwrap().to_owned();
        (name, judge["pass"].clone(), judge["unscored"].clone())
    };
    let all = |judges: &Value| judges.as_array().into_iter().flatten().map(name).collect();
    let cases = report.cases();
    let judges = [&report.0["panel"]["judges"], &report.0["models"]["panel"]].into_iter();
    let lists: Vec<Vec<_>> =
        judges.chain(cases.iter().map(|case| &case.0["votes"])).map(all).collect();
    let panel = &report.0["panel"];
    vec![json!(lists), panel["unanimous"].clone(), panel["disputed"].clone()]
}

#[test]
fn a_recorded_panel_is_replayed_judge_by_judge() {
    // The same is asked of both; one of them fails to answer for the second case.
    let script = ModelServer::script().judge(|call| match (is_ollama(call), call.number) {
        (true, _) => Reply::from(verdict(call, 0.6)),
        (false, 0..2) => verdict(call, 0.9).into(),
        (false, _) => "no verdict".into(),
    });
    let server = script.start();
    let yaml = panel(&scenarios(2), &[OPENAI, OLLAMA]);
    let workspace = Workspace::new().config(yaml);
    let format = "--format=json";
    let record = ["--record", "cassettes/panel", "--concurrency=1", format, "--exit-zero"];
    let recorded = workspace.clone().server(&server).args(record).run();
    let recorded = recorded.exit(0).stdout_report();
    for replay in ["--model=cassette/cassettes/panel", "--judge-model=cassette/cassettes/panel"] {
        let others = "--generator-model=cassette/cassettes/panel";
        let sut = "--sut-model=cassette/cassettes/panel";
        let args = [replay, others, sut, "--concurrency=4", format, "--exit-zero"];
        let report = workspace.clone().args(args).run().exit(0).stdout_report();
        assert_eq!(essence(&report), essence(&recorded));
        assert_eq!(votes(&report), votes(&recorded));
        let judge = "cassette/cassettes/panel#openai/gpt-4o-mini + \
                     cassette/cassettes/panel#ollama/qwen2.5:7b";
        assert_eq!(report.0["models"]["judge"], judge);
    }
    // One of them can judge alone.
    let one = "--judge-model=cassette/cassettes/panel#ollama/qwen2.5:7b";
    let all = "--model=cassette/cassettes/panel";
    let report = workspace.clone().args([all, one, format, "--exit-zero"]).run().exit(0);
    let report = report.stdout_report();
    assert_eq!(report.cases().iter().map(Case::overall).collect::<Vec<_>>(), [Some(0.6); 2]);
    let stranger = "--judge-model=cassette/cassettes/panel#openai/gpt-5";
    let run = workspace.args([all, stranger]).run().exit(5);
    let _ = run.one_error(&["no reply of openai/gpt-5"]).stderr_contains("it has those of");
}

#[test]
fn like_judges_are_refused() {
    let workspace = Workspace::new();
    for (models, why) in [
        (&[OPENAI, OLLAMA, OPENAI][..], "has `openai/gpt-4o-mini` twice"),
        (&[OPENAI], "has one model only"),
    ] {
        let workspace = workspace.clone().config(panel(CLEAR, models));
        let run = workspace.args(["config", "check"]).run().exit(2);
        let _ = run.stderr_contains("`judge.panel`").stderr_contains(why);
    }
    // Only a look at the server shows that these are one.
    let server = ModelServer::start();
    let workspace = workspace.config(panel(CLEAR, &[OLLAMA, "auto"])).server(&server);
    let run = workspace.run().exit(2);
    let _ = run.stderr_contains("one and the same model twice").stderr_contains("unlike models");
    assert!(server.calls(Role::Judge).is_empty());
}
