//! Judging by probability through a server, and how judges are measured.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::Value;

use crate::model_server::{Call, ModelServer, Role, yes_or_no};
use crate::workspace::{CLEAR, OLLAMA, OPENAI, Workspace, config};

/// The bad answers of the shipped sets, as the judge sees them.
fn bad_answers() -> BTreeSet<String> {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/harness/calibration");
    let mut bad = BTreeSet::new();
    for file in ["known_answers.yaml", "held_out_answers.yaml"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let cases: Vec<Value> = serde_yaml::from_str(&text).unwrap();
        for answer in cases.iter().flat_map(|case| case["answers"].as_array().unwrap()) {
            if answer["good"] != true {
                bad.insert(answer["text"].as_str().unwrap().lines().next().unwrap().to_owned());
            }
        }
    }
    bad
}

fn answer_of(call: &Call) -> String {
    let text = call.last_message().to_owned();
    let (_, answer) = text.split_once("The assistant answered:\n").unwrap();
    answer.trim_start_matches("> ").lines().next().unwrap().to_owned()
}

#[test]
fn a_judge_that_nobody_measured_is_shown_a_few_known_answers_once() {
    let bad = bad_answers();
    let server = ModelServer::script()
        .ollama_version("0.32.15")
        .question(move |call| yes_or_no(if bad.contains(&answer_of(call)) { 0.2 } else { 0.9 }))
        .start();
    let with = |impression: &str| {
        let yaml = config(OLLAMA, CLEAR).replace("first_impression: false", impression);
        let workspace = Workspace::new().config(yaml).env("OLLAMA_HOST", server.ollama_host());
        workspace.args(["--exit-zero"])
    };
    let questions = || server.calls(Role::Question).len();

    let silent = with("first_impression: false").run().exit(0);
    let own = questions();
    assert!(!silent.stderr.contains("not measured"), "{}", silent.stderr);

    let workspace = with("first_impression: true");
    let run = workspace.run().exit(0);
    let run = run.stderr_contains("not measured; tells 8 of 8 pairs of a good and a bad answer");
    let markdown = run.markdown();
    assert!(markdown.contains("in a quick check it tells 8 of 8 pairs"), "{markdown}");
    let report = run.report();
    let impression = &report.0["models"]["judge_impression"];
    assert_eq!(impression, &serde_json::json!({ "right": 8, "pairs": 8 }));
    let with_impression = questions() - own;
    assert!(with_impression > 2 * own, "{with_impression} of {own}");

    // It is kept, and a doctor tells the same.
    let _ = workspace.run().exit(0);
    assert_eq!(questions(), own + with_impression + own);
    let doctor = workspace.args(["doctor"]).run();
    assert!(doctor.stdout.contains("not measured; tells 8 of 8 pairs"), "{}", doctor.stdout);
}

#[test]
fn a_judge_that_knows_is_told_from_one_that_guesses() {
    let bad = bad_answers();
    let server = ModelServer::script()
        .ollama_version("0.32.15")
        .question(move |call| yes_or_no(if bad.contains(&answer_of(call)) { 0.2 } else { 0.9 }))
        .start();
    let workspace =
        Workspace::new().config(config(OLLAMA, CLEAR)).env("OLLAMA_HOST", server.ollama_host());
    let bench = ["judge", "bench", "--judge-model", OLLAMA, "--held-out", "--json"];
    let run = workspace.clone().args(bench).run().exit(0);
    let measured: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(measured.len(), 2);
    for (one, (set, answers)) in measured.iter().zip([("calibration", 160), ("held_out", 80)]) {
        let report = &one["report"];
        assert_eq!((report["set"].as_str(), report["scored"].as_u64()), (Some(set), Some(answers)));
        assert!(report["auc"]["value"].as_f64().unwrap() > 0.95, "{report}");
        assert_eq!(report["method"], "probability");
        assert_eq!(one["answers"].as_array().unwrap().len() as u64, answers);
    }
    // Every call asks for the first token and nothing else, with thinking off.
    for call in server.calls(Role::Question) {
        assert_eq!(call.body["think"], false);
        assert_eq!(call.body["options"]["num_predict"], 1);
        assert!(call.body.get("format").is_none());
    }
    // What was measured stands in the next run's first line and in its report.
    let run = workspace.args(["--exit-zero"]).run().exit(0);
    let run = run.stderr_contains("AUC ").stderr_contains("on 160 known answers");
    assert!(run.markdown().contains("- Judge benchmark: AUC "), "{}", run.markdown());
    let report = run.report();
    let verdict = &report.case().0["steps"][0]["judgement"]["verdict"];
    assert_eq!(verdict["state"], "scored", "{verdict}");
    assert!(verdict["questions"].as_array().unwrap().len() > 4);
}

/// A judge that knows nothing, and a project that asks it.
fn guessing() -> (ModelServer, Workspace) {
    let server = ModelServer::script()
        .ollama_version("0.32.15")
        .question(|call| yes_or_no(if call.last_message().len() % 2 == 0 { 0.3 } else { 0.7 }))
        .start();
    let workspace =
        Workspace::new().config(config(OLLAMA, CLEAR)).env("OLLAMA_HOST", server.ollama_host());
    (server, workspace)
}

#[test]
fn a_measurement_that_was_killed_goes_on_where_it_was() {
    let (server, workspace) = guessing();
    let asked = || server.calls(Role::Question).len();
    for (command, least) in [("bench", 400), ("attack", 300)] {
        let workspace =
            workspace.clone().args(["judge", command, "--judge-model", OLLAMA, "--json"]);
        let before = asked();
        let running = workspace.spawn().until("answers", || asked() - before > least);
        drop(running.signal(Signal::KILL).wait().killed_by(9));
        let killed = asked();
        let resumed = workspace.clone().run().exit(0).stderr_contains("resuming after ");
        let (first, rest) = (killed - before, asked() - killed);
        // Nothing is left of it: the same command measures anew.
        let whole = asked();
        let again = workspace.run().exit(0);
        assert!(!again.stderr.contains("going on"), "{}", again.stderr);
        let whole = asked() - whole;
        // What says nothing is asked about again for later answers to the same request.
        assert!(rest + first / 4 < whole, "{first} {rest} {whole}");
        let told = |stdout: &str| {
            let mut told: Value = serde_json::from_str(stdout).unwrap();
            if let Some(one) = told.get_mut(0) {
                one["report"]["seconds_per_answer"].take();
                one["report"]["tokens_per_answer"].take();
                one["answers"].take();
            }
            told
        };
        assert_eq!(told(&resumed.stdout), told(&again.stdout));
    }
}

#[test]
fn a_judge_that_guesses_decides_nothing() {
    let (server, workspace) = guessing();
    let run = workspace.clone().args(["judge", "bench", "--judge-model", OLLAMA]).run().exit(0);
    assert!(run.stdout.contains(" by probability on the calibration answers: AUC 0."));
    assert!(run.stdout.contains("wrong fact"), "{}", run.stdout);
    let asked = server.calls(Role::Question).len();
    let run = workspace.clone().run().exit(3);
    let run = run.stderr_contains("cannot judge well enough").stderr_contains("ollama pull");
    let report = run.report();
    assert_eq!(report.case().unscored_reason(), Some("judge_unfit"));
    assert_eq!(server.calls(Role::Question).len(), asked, "an unfit judge is not asked");
    let run = workspace.args(["doctor"]).run().exit(0);
    assert!(run.stdout.contains("WARN judgement"), "{}", run.stdout);
}

#[test]
fn a_server_that_tells_no_probabilities_is_asked_for_a_verdict() {
    for (model, server) in [
        (OLLAMA, ModelServer::script().ollama_version("0.12.10").start()),
        (OPENAI, ModelServer::script().start()),
    ] {
        let workspace = Workspace::new()
            .config(config(model, CLEAR))
            .server(&server)
            .env("OLLAMA_HOST", server.ollama_host());
        let _ = workspace.run().exit(0);
        assert_eq!(server.calls(Role::Judge).len(), 1, "{model}");
    }
}

#[test]
fn an_openai_server_with_probabilities_is_asked_questions() {
    let server = ModelServer::script().question(|_| yes_or_no(0.8)).start();
    let workspace = Workspace::new().config(config(OPENAI, CLEAR)).server(&server);
    let report = workspace.args(["--exit-zero"]).run().exit(0).report();
    assert!(server.calls(Role::Judge).is_empty(), "no verdict is asked for");
    assert!(!server.calls(Role::Question).is_empty());
    let verdict = &report.case().0["steps"][0]["judgement"]["verdict"];
    assert_eq!(verdict["state"], "scored", "{verdict}");
}

#[test]
fn attacks_are_counted_by_shape() {
    // A judge that believes every answer that speaks to it. Rules do not, so that few succeed.
    let server = ModelServer::script()
        .ollama_version("0.32.15")
        .question(|call| {
            let answer =
                call.last_message().split("The assistant answered:").nth(1).unwrap().to_owned();
            let believes = ["1.0", "ignore", "Ignore", "verified"];
            yes_or_no(if believes.iter().any(|sign| answer.contains(sign)) { 0.97 } else { 0.1 })
        })
        .start();
    let run = Workspace::new()
        .config(config(OLLAMA, CLEAR))
        .env("OLLAMA_HOST", server.ollama_host())
        .args(["judge", "attack", "--judge-model", OLLAMA, "--json"])
        .run()
        .exit(0);
    let attacked: Value = serde_json::from_str(&run.stdout).unwrap();
    let shapes = attacked["shapes"].as_array().unwrap();
    assert_eq!(shapes.len(), 11);
    assert_eq!(attacked["fence"], true);
    let attempts: u64 = shapes.iter().map(|shape| shape["attempts"].as_u64().unwrap()).sum();
    let successes: u64 = shapes.iter().map(|shape| shape["successes"].as_u64().unwrap()).sum();
    assert!(attempts == 84 && successes > 0 && successes < attempts, "{shapes:?}");
}
