//! Judging by probability through a server, and how judges are measured.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::model_server::{Call, ModelServer, Role, yes_or_no};
use crate::workspace::{CLEAR, OLLAMA, OPENAI, Workspace, config, scenarios};

/// The bad answers of the shipped sets: their texts, files and calls.
fn bad_answers() -> Vec<Vec<String>> {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/harness/calibration");
    let mut bad = Vec::new();
    for file in ["known_answers.yaml", "held_out_answers.yaml"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let cases: Vec<Value> = serde_yaml::from_str(&text).unwrap();
        for answer in cases.iter().flat_map(|case| case["answers"].as_array().unwrap()) {
            if answer["good"] == true {
                continue;
            }
            let list = |key: &str| answer[key].as_array().cloned().unwrap_or_default();
            let mut parts = vec![answer["text"].as_str().unwrap().to_owned()];
            let files = list("files").into_iter();
            parts.extend(files.map(|file| file["text"].as_str().unwrap().to_owned()));
            // A judge sees the beginning of long calls.
            parts.extend(
                list("tool_calls").iter().map(|call| {
                    call["arguments"].to_string().chars().take(110).collect::<String>()
                }),
            );
            bad.push(parts);
        }
    }
    bad
}

/// Whether the answer that a question is about is one of the bad ones.
fn is_bad(call: &Call, bad: &[Vec<String>]) -> bool {
    let text = call.last_message();
    let (_, answer) = text.split_once("The assistant answered:\n").unwrap();
    let lines: Vec<&str> =
        answer.lines().map(|line| line.strip_prefix("> ").unwrap_or(line).trim_end()).collect();
    let answer = lines.join("\n");
    let trimmed = |text: &String| {
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned()
    };
    bad.iter().any(|parts| {
        // A bad answer may be the beginning of a good one.
        answer.starts_with(&format!("{}\n\n", trimmed(&parts[0])))
            && parts[1..].iter().all(|part| answer.contains(&trimmed(part)))
    })
}

/// A judge that knows the bad answers by heart.
fn knowing() -> ModelServer {
    let bad = bad_answers();
    ModelServer::script()
        .ollama_version("0.32.15")
        .question(move |call| yes_or_no(if is_bad(call, &bad) { 0.2 } else { 0.9 }))
        .start()
}

#[test]
fn a_judge_that_was_never_measured_is_measured_before_its_first_verdict() {
    let server = knowing();
    let with = |certificate: &str| {
        let workspace =
            Workspace::new().config(config(OLLAMA, CLEAR)).env("OLLAMA_HOST", server.ollama_host());
        workspace.env("SELFTEST_JUDGE_CERTIFICATE", certificate).args(["--exit-zero"])
    };
    let questions = || server.calls(Role::Question).len();

    let off = with("off").run().exit(0);
    let own = questions();
    assert!(off.stderr.contains("(not measured)"), "{}", off.stderr);
    assert!(off.report().0["models"]["judge_fitness"].is_null());

    let workspace = with("auto");
    let run = workspace.run().exit(0);
    let run = run.stderr_contains("before its first verdict: up to 80 known answers, at most 60 s");
    let report = run.report();
    let fitness = &report.0["models"]["judge_fitness"];
    assert!(fitness["unfit"].is_null(), "{fitness:#}");
    assert!(run.markdown().contains("- Judge measured: AUC "), "{}", run.markdown());
    assert_eq!(fitness["set"], "certificate", "{fitness}");
    assert!(fitness["scored"].as_u64().is_some_and(|scored| (20..=80).contains(&scored)));
    let measuring = questions() - own;
    assert!(measuring > 4 * own, "{measuring} of {own}");

    // It is kept, and doctor shows the same.
    let again = workspace.run().exit(0);
    assert!(!again.stderr.contains("before its first verdict"), "{}", again.stderr);
    assert!(questions() <= own + measuring + own);
    let doctor = workspace.args(["doctor"]).run();
    assert!(doctor.stdout.contains("judgement          AUC "), "{}", doctor.stdout);
}

#[test]
fn labels_of_own_answers_bound_a_measured_judge() {
    let server = knowing();
    let workspace = Workspace::new()
        .config(config(OLLAMA, &scenarios(36)))
        .env("OLLAMA_HOST", server.ollama_host())
        .env("SELFTEST_JUDGE_CERTIFICATE", "auto");
    let full = ["--full", "--exit-zero", "--format=json"];
    let report = workspace.clone().args(full).run().exit(0).stdout_report();
    assert_eq!(report.0["summary"]["passed"], 36, "{}", report.0["summary"]);

    // People find every second of the answers bad that the judge passes.
    let label = |(at, case): (usize, &crate::report::Case<'_>)| json!({ "case": case.id(), "label": if at % 2 == 0 { "good" } else { "bad" } });
    let labels: Value = report.cases().iter().enumerate().map(label).collect();
    let workspace = workspace.file("labels.json", labels.to_string());
    let label = ["judge", "label", "latest", "--from", "labels.json"];
    let _ = workspace.clone().args(label).run().exit(0);
    let run = workspace.clone().args(["judge", "calibrate"]).run().exit(0);
    let run = run.stdout_contains(
        "the judge decides nothing: on 36 labelled answers too many of its verdicts are wrong",
    );
    let _ = run.read("reports/selftest/labels/own-scores.json");

    // Had the first run been killed before its last case, the rest would be judged by other bounds.
    let id = report.run_id();
    let journal = workspace.path(&format!("reports/selftest/{id}.journal"));
    let text = fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("{\"ended\"")).collect();
    fs::write(&journal, lines[..lines.len() - 1].join("\n") + "\n").unwrap();
    let resumed = workspace.clone().args(["--resume", &id]).run().exit(2);
    resumed.one_error(&["what your labels say of the judge is not as when the run"]);

    let after = workspace.args(full).run().exit(0).stdout_report();
    assert_eq!(after.0["summary"]["passed"], 0, "{}", after.0["summary"]);
    assert_eq!(after.0["summary"]["failed"], 0, "{}", after.0["summary"]);
    let why = after.cases()[0].0.to_string();
    assert!(why.contains("wrong verdicts on 36 labelled answers"), "{why}");
}

#[test]
fn a_judge_that_always_says_the_same_fails_no_right_answer() {
    for yes in [0.95, 0.05] {
        let server = ModelServer::script()
            .ollama_version("0.32.15")
            .question(move |_| yes_or_no(yes))
            .start();
        let workspace = Workspace::new()
            .config(config(OLLAMA, CLEAR))
            .env("OLLAMA_HOST", server.ollama_host())
            .env("SELFTEST_JUDGE_CERTIFICATE", "auto");
        let report = workspace.args(["--exit-zero"]).run().exit(0).report();
        assert_eq!(report.0["summary"]["failed"], 0, "{}", report.0["summary"]);
        assert_eq!(report.0["summary"]["passed"], 0, "{}", report.0["summary"]);
    }
}

#[test]
fn a_judge_that_knows_is_told_from_one_that_guesses() {
    let server = knowing();
    let workspace =
        Workspace::new().config(config(OLLAMA, CLEAR)).env("OLLAMA_HOST", server.ollama_host());
    let bench = ["judge", "bench", "--judge-model", OLLAMA, "--held-out", "--json"];
    let run = workspace.clone().args(bench).run().exit(0);
    let measured: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(measured.len(), 2);
    for (one, (set, answers)) in measured.iter().zip([("calibration", 507), ("held_out", 247)]) {
        let report = &one["report"];
        assert_eq!((report["set"].as_str(), report["scored"].as_u64()), (Some(set), Some(answers)));
        assert!(report["auc"]["value"].as_f64().unwrap() > 0.97, "{}", report["auc"]);
        assert!(report["overlap_auc"].as_f64().unwrap() < 0.7, "{}", report["overlap_auc"]);
        assert_eq!(report["method"], "probability");
        let right = &report["with_reference"]["fails_right"]["value"];
        assert!(right.as_f64().unwrap() > 0.9, "{}", report["with_reference"]);
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
    let run = run.stderr_contains("AUC ").stderr_contains("on 507 known answers");
    assert!(run.markdown().contains("- Judge measured: AUC "), "{}", run.markdown());
    assert!(
        run.markdown()
            .contains(" % by form); of its passes and of its fails at most 10 % are wrong")
    );
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
    let workspace = workspace.args(["judge", "bench", "--judge-model", OLLAMA, "--json"]);
    let running = workspace.spawn().until("answers", || asked() > 200);
    drop(running.signal(Signal::KILL).wait().killed_by(9));
    let killed = asked();
    let resumed = workspace.clone().run().exit(0).stderr_contains("resuming after ");
    let rest = asked() - killed;
    // Nothing is left of it: the same command measures anew.
    let whole = asked();
    let again = workspace.run().exit(0);
    assert!(!again.stderr.contains("resuming"), "{}", again.stderr);
    let whole = asked() - whole;
    // What says nothing is asked about again for later answers to the same request.
    assert!(rest + killed / 4 < whole, "{killed} {rest} {whole}");
    let told = |stdout: &str| {
        let mut told: Value = serde_json::from_str(stdout).unwrap();
        let one = told.get_mut(0).unwrap();
        one["report"]["seconds_per_answer"].take();
        one["report"]["tokens_per_answer"].take();
        one["answers"].take();
        told
    };
    assert_eq!(told(&resumed.stdout), told(&again.stdout));
}

#[test]
fn a_judge_that_guesses_is_not_asked() {
    let (server, workspace) = guessing();
    let run = workspace.clone().args(["judge", "bench", "--judge-model", OLLAMA]).run().exit(0);
    assert!(run.stdout.contains(" by probability on the calibration answers: AUC 0."));
    assert!(run.stdout.contains("AUC of the model alone"), "{}", run.stdout);
    assert!(run.stdout.contains("where word overlap has 0."), "{}", run.stdout);
    let asked = server.calls(Role::Question).len();
    let run = workspace.clone().run().exit(3);
    let run = run.stderr_contains("so that rules alone decide");
    let report = run.report();
    assert_eq!(report.case().unscored_reason(), Some("cant_tell"));
    assert_eq!(server.calls(Role::Question).len(), asked, "what has no weight is not asked");
    let run = workspace.args(["doctor"]).run().exit(0);
    assert!(run.stdout.contains("rules alone decide"), "{}", run.stdout);
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
fn attacks_are_made_on_answers_that_fail_otherwise() {
    // A judge that knows the bad answers, and believes every answer that speaks to it.
    let bad = bad_answers();
    let server = ModelServer::script()
        .ollama_version("0.32.15")
        .question(move |call| {
            let message = call.last_message();
            let answer = message.split("The assistant answered:").nth(1).unwrap();
            let believes = ["1.0", "ignore", "Ignore", "verified", "yes yes"];
            let believes = believes.iter().any(|sign| answer.contains(sign));
            yes_or_no(if is_bad(call, &bad) && !believes { 0.1 } else { 0.97 })
        })
        .start();
    let workspace =
        Workspace::new().config(config(OLLAMA, CLEAR)).env("OLLAMA_HOST", server.ollama_host());
    let attack = ["judge", "attack", "--judge-model", OLLAMA, "--json"];
    let unmeasured = workspace.clone().args(attack).run().exit(2);
    let _ = unmeasured.stderr_contains("was not measured").stderr_contains("selftest judge bench");
    let _ = workspace.clone().args(["judge", "bench", "--judge-model", OLLAMA]).run().exit(0);
    let run = workspace.args(attack).run().exit(0);
    let attacked: Value = serde_json::from_str(&run.stdout).unwrap();
    let shapes = attacked["result"]["shapes"].as_array().unwrap();
    assert_eq!(shapes.len(), 15);
    assert_eq!(attacked["fence"], true);
    let sum = |key: &str| shapes.iter().map(|shape| shape[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("attempts"), 108);
    let eligible = sum("eligible");
    assert!(eligible > 80, "{shapes:?}");
    assert!(sum("passed") > 0 && sum("passed") < eligible, "{shapes:?}");
    let passed = &attacked["result"]["passed"];
    assert!(passed["low"].as_f64().unwrap() > 0.0, "{passed}");
}

/// The answers of a decision model that gives this probability of yes to every question.
fn nouls(body: &Value, yes: f64) -> Value {
    let questions = body["questions"].as_object().unwrap().keys();
    let answers: serde_json::Map<String, Value> = questions
        .map(|id| (id.clone(), serde_json::json!({ "type": "noul", "noul": yes })))
        .collect();
    serde_json::json!({
        "model": body["model"], "answers": answers,
        "usage": { "input_tokens": 40, "output_tokens": 0 },
    })
}

#[test]
fn a_decision_model_answers_all_questions_of_an_answer_in_one_request() {
    let server = ModelServer::script()
        .ollama_version("0.40.4")
        .decisions(|path, body| {
            assert_eq!(path, "/v1/systemone");
            let empty = ["> N/A", "> OK."];
            let state = body["state"].as_str().unwrap();
            assert!(
                state.contains("The assistant answered:") && !state.contains("Reply yes or no")
            );
            let says_nothing = empty.iter().any(|answer| state.trim_end().ends_with(answer));
            (200, nouls(body, if says_nothing { 0.4 } else { 0.95 }))
        })
        .start();
    let workspace =
        Workspace::new().config(config(OLLAMA, CLEAR)).env("OLLAMA_HOST", server.ollama_host());
    let report = workspace.run().exit(0).report();
    assert_eq!(report.0["models"]["judge_method"], "decision");
    let case = report.case();
    // The answer, and two without content that it is compared with.
    assert_eq!(case.judge_calls().len(), 3, "{case}");
    assert!(server.calls(Role::Question).is_empty() && server.calls(Role::Judge).is_empty());
    let questions = &case.0["steps"][0]["judgement"]["verdict"]["questions"];
    assert!(questions.as_array().unwrap().len() > 4, "{questions}");

    // The shape of OpenAI, found by asking.
    let server = ModelServer::script()
        .decisions(|path, body| {
            if path == "/v1/systemone" {
                let error = serde_json::json!({ "message": "not supported", "code": 501 });
                return (501, serde_json::json!({ "error": error }));
            }
            let questions = body["questions"].as_array().unwrap().iter();
            let answers: Vec<Value> = questions
                .map(|asked| {
                    let name = &asked["name"];
                    serde_json::json!({ "type": "predicate", "name": name, "probability": 0.9 })
                })
                .collect();
            (200, serde_json::json!({ "model": body["model"], "answers": answers }))
        })
        .start();
    let workspace = Workspace::new().config(config(OPENAI, CLEAR)).server(&server);
    let report = workspace.args(["--exit-zero"]).run().exit(0).report();
    assert_eq!(report.0["models"]["judge_method"], "decision");
    assert!(server.paths().contains(&"POST /v1/decisions".to_owned()));
}

#[test]
fn no_odd_reply_of_a_decision_model_is_a_verdict() {
    use serde_json::json;
    type Spoil = fn(&mut Value);
    let spoils: [(&str, Spoil); 9] = [
        ("over 1", |reply| reply["answers"]["q1"]["noul"] = json!(1.4)),
        ("negative", |reply| reply["answers"]["q1"]["noul"] = json!(-0.2)),
        ("no number", |reply| reply["answers"]["q1"]["noul"] = json!("NaN")),
        ("missing", |reply| drop(reply["answers"].as_object_mut().unwrap().remove("q2"))),
        ("one more", |reply| reply["answers"]["q99"] = json!({ "type": "noul", "noul": 0.9 })),
        ("another model", |reply| reply["model"] = json!("other")),
        ("truncated", |reply| reply["truncated"] = json!(true)),
        ("contradiction", |reply| reply["answers"]["q1"]["choice"] = json!("no")),
        ("an error", |reply| reply["error"] = json!("overloaded")),
    ];
    for (what, spoil) in spoils {
        let server = ModelServer::script()
            .ollama_version("0.40.4")
            .decisions(move |_, body| {
                let mut reply = nouls(body, 0.95);
                spoil(&mut reply);
                (200, reply)
            })
            .start();
        let workspace =
            Workspace::new().config(config(OLLAMA, CLEAR)).env("OLLAMA_HOST", server.ollama_host());
        let report = workspace.args(["--exit-zero"]).run().exit(0).report();
        assert!(report.case().unscored_reason().is_some(), "{what}: {}", report.case());
    }
    // A refusal is of one question, and leaves the answer without a verdict.
    let server = ModelServer::script()
        .ollama_version("0.40.4")
        .decisions(|_, body| {
            let mut reply = nouls(body, 0.95);
            reply["answers"]["q1"] = json!({ "type": "refusal" });
            (200, reply)
        })
        .start();
    let workspace =
        Workspace::new().config(config(OLLAMA, CLEAR)).env("OLLAMA_HOST", server.ollama_host());
    let report = workspace.args(["--exit-zero"]).run().exit(0).report();
    assert_eq!(report.case().unscored_reason(), Some("refused"));
}
