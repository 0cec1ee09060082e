//! `--changed`: cases of which nothing has changed keep their results; whatever has changed is run.

use serde_json::{Value, json};

use crate::baseline::{SUITE, bad_at, suite};
use crate::model_server::{ModelServer, Role, verdict};
use crate::report::Report;
use crate::run::Run;
use crate::workspace::{NOBODY, OPENAI, Workspace};

const BASELINE: &str = "config/selftest-baseline.json";

/// An agent that says `good` unless its word for bad days is in the prompt, and counts its tasks.
const AGENT: &str = r#"
import json, sys
prompt = json.loads(sys.stdin.readline())["prompt"]
output = "bad" if "Play c." in prompt else "good"
print(json.dumps({"type": "result", "status": "COMPLETE", "output": output}), flush=True)
"#;

/// A project whose agent is a file that is declared.
fn project(identity: &str) -> Workspace {
    let python = std::process::Command::new("sh").args(["-c", "command -v python3"]).output();
    let python = String::from_utf8(python.unwrap().stdout).unwrap();
    let run = format!("[\"{}\", agent.py]", python.trim());
    Workspace::new()
        .config(format!("version: 1\nsut: {{ command: {{ run: {run} }}{identity} }}\n"))
        .file("agent.py", AGENT)
        .file(SUITE, suite(&["a", "b", "c"]))
        .env("OLLAMA_HOST", NOBODY)
}

const DECLARED: &str = ", identity: { files: [agent.py] }";

fn run(workspace: &Workspace, more: &[&str]) -> Run {
    let fixed = ["--suite", SUITE, "--format=json"];
    workspace.clone().args(fixed.iter().chain(more)).run()
}

/// Ids of the cases whose results were taken over.
fn unchanged(report: &Report) -> Vec<&str> {
    let cases = report.0["cases"].as_array().unwrap().iter();
    let kept = cases.filter(|case| case["unchanged_since"].is_string());
    kept.map(|case| case["id"].as_str().unwrap()).collect()
}

#[test]
fn what_has_not_changed_keeps_its_result_in_every_report() {
    let workspace = project(DECLARED);
    let first = run(&workspace, &["--changed"]).exit(1);
    let first = first.stderr_contains("note: 0 of 3 cases unchanged\n").stdout_report();
    assert_eq!(first.0["summary"].get("unchanged"), None);

    let args = ["--changed", "--report=junit=a.xml,html=a.html,md=a.md,ctrf=a.json"];
    let again = run(&workspace, &args).exit(1).stderr_contains("note: 3 of 3 cases unchanged\n");
    let report = again.stdout_report();
    assert_eq!(unchanged(&report), ["a", "b", "c"]);
    assert_eq!(report.counts(), first.counts(), "a failure is a result too");
    assert_eq!(report.0["summary"]["unchanged"], 3);
    let since = first.run_id();
    assert_eq!(report.case_of("c").0["unchanged_since"], since);
    assert_eq!(report.case_of("c").0["session_id"], first.case_of("c").0["session_id"]);
    let schema = workspace.clone().args(["config", "schema", "report"]).run().exit(0).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    jsonschema::validate(&schema, &report.0).unwrap_or_else(|error| panic!("{error}: {report}"));
    for (file, words) in [
        ("a.xml", format!("<property name=\"unchanged_since\" value=\"{since}\"/>")),
        ("a.html", format!("unchanged, from {since}")),
        ("a.html", "; 3 cases unchanged".to_owned()),
        ("a.md", "3 cases unchanged, with the results of an earlier run.".to_owned()),
        ("a.md", format!("c: unchanged, from {since}")),
        ("a.md", "FAIL (unchanged)".to_owned()),
        ("a.json", format!("\"unchangedSince\": \"{since}\"")),
    ] {
        let text = again.read(file);
        assert!(text.contains(&words), "no `{words}` in {text}");
    }
    let human = workspace.clone().args(["--suite", SUITE, "--changed"]).run().exit(1);
    let human = human.stdout_contains("PASS (unchanged)").stdout_contains("; 3 cases unchanged");
    let _ = human.stderr_contains(&format!("unchanged since {since}"));

    // Whoever does not ask for it gets a run.
    assert_eq!(unchanged(&run(&workspace, &[]).exit(1).stdout_report()), [""; 0]);
}

#[test]
fn whatever_has_changed_is_run() {
    let workspace = project(DECLARED);
    let _ = run(&workspace, &[]).exit(1);
    let changed = |workspace: Workspace, more: &[&str]| {
        let report = run(&workspace, &[&["--changed"], more].concat()).stdout_report();
        unchanged(&report).join(" ")
    };
    // One case, and a new one.
    let other = suite(&["a", "b", "c", "d"]).replace("Play b.", "Play b. Loudly.");
    assert_eq!(changed(workspace.clone().file(SUITE, other), &[]), "a c");
    let workspace = workspace.file(SUITE, suite(&["a", "b", "c"]));
    assert_eq!(changed(workspace.clone(), &["--scenarios=c"]), "c");
    // The bar, the time and the number of trials.
    assert_eq!(changed(workspace.clone(), &["--strictness=0.9"]), "");
    assert_eq!(changed(workspace.clone(), &["--timeout=30"]), "");
    assert_eq!(changed(workspace.clone(), &["--repeats=2"]), "");
    assert_eq!(changed(workspace.clone(), &["--repeats=2"]), "a b c a b c");
    // The agent, its settings, and its version.
    let edited = workspace.clone().file("agent.py", AGENT.replace("bad\" if", "worse\" if"));
    assert_eq!(changed(edited, &[]), "");
    let workspace = workspace.file("agent.py", AGENT);
    assert_eq!(changed(workspace.clone(), &[]), "a b c");
    let version = workspace.env("SELFTEST_SUT_IDENTITY_VERSION", "8f3c");
    assert_eq!(changed(version.clone(), &[]), "");
    assert_eq!(changed(version, &[]), "a b c");
}

#[test]
fn without_a_declaration_nothing_is_skipped_and_the_key_is_named() {
    for identity in ["", ", identity: {}"] {
        let workspace = project(identity);
        for _ in 0..2 {
            let run = run(&workspace, &["--changed"]).exit(1);
            let run =
                run.stderr_contains("note: --changed skips nothing: it is unknown whether the");
            let run = run.stderr_contains("hint: name what it is made of in `sut.identity.files`");
            assert_eq!(run.stdout_report().0["cases"][0].get("cache_key"), None);
        }
    }
    let gone = project(", identity: { files: [gone] }");
    let gone = run(&gone, &[]).exit(2).one_error(&["sut.identity.files: `gone`: "]);
    let _ = gone.stderr_contains("hint: ");
    let workspace = project(DECLARED);
    let run = workspace.clone().args(["--changed"]).run().exit(2);
    assert!(run.stderr.contains("--suite"), "{}", run.stderr);
    // Generated cases have nothing to do with it, and other keys of the section stay what they were.
    let config = "version: 1\nsut: { chat: {}, identity: { version: \"1\" } }\n";
    let shown = workspace.config(config).args(["config", "show"]).run().exit(0).stdout;
    assert!(shown.contains("chat:") && shown.contains("identity:"), "{shown}");
}

#[test]
fn what_broke_off_and_what_runs_commands_is_run_again() {
    let hanging =
        AGENT.replace("output =", "import time; time.sleep(30 if 'b.' in prompt else 0)\noutput =");
    let workspace = project(DECLARED).file("agent.py", hanging);
    let _ = run(&workspace, &["--timeout=1"]).exit(1);
    let report = run(&workspace, &["--timeout=1", "--changed"]).exit(1).stdout_report();
    assert_eq!(report.case_of("b").status(), "sut_timeout");
    assert_eq!(unchanged(&report), ["a", "c"], "a timeout is no result that stands");

    let command = "{ command: { run: [\"true\"] } }";
    let with_command = suite(&["a", "b"]).replacen("{ contains: good }", command, 1);
    let workspace = project(DECLARED).file(SUITE, with_command);
    let _ = run(&workspace, &[]);
    let again = run(&workspace, &["--changed"]);
    let again = again.stderr_contains("1 of 2 cases unchanged; 1 case with commands, which may");
    assert_eq!(unchanged(&again.stdout_report()), ["b"]);
}

#[test]
fn a_report_that_cannot_be_read_is_passed_over() {
    let workspace = project(DECLARED);
    let _ = run(&workspace, &[]).exit(1);
    let workspace =
        workspace.file("reports/selftest/selftest-20991231-2359-broken.json", "{\"cases\": [");
    let again = run(&workspace, &["--changed"]).exit(1);
    let again = again.stderr_contains("note: --changed skips reports/selftest/selftest-2099");
    assert_eq!(unchanged(&again.stdout_report()), ["a", "b", "c"]);
}

#[test]
fn the_gate_uses_the_former_result_and_still_confirms_a_miss() {
    let workspace = project(DECLARED);
    let good = AGENT.replace("Play c.", "Play nothing.");
    let workspace = workspace.file("agent.py", good.as_str());
    let _ = run(&workspace, &[]).exit(0);
    let _ = workspace.clone().args(["baseline", "accept"]).run().exit(0);
    assert!(workspace.path(BASELINE).is_file());
    let gated = ["--changed", "--gate=no_regression"];
    let same = run(&workspace, &gated).exit(0).stdout_report();
    assert_eq!((unchanged(&same).len(), &same.0["gate"]["compared"]), (3, &json!(3)));

    let workspace = workspace.file("agent.py", AGENT);
    let plain = run(&workspace, &["--changed"]).exit(1).stdout_report();
    assert_eq!(unchanged(&plain), [""; 0], "another agent");
    // The former miss was never confirmed: it is run again, and its trials stay with it.
    for _ in 0..2 {
        let report = run(&workspace, &gated).exit(1).stdout_report();
        assert_eq!(unchanged(&report), ["a", "b", "c"]);
        assert_eq!(report.0["gate"]["cases"][0]["change"], "regression");
        assert_eq!(report.case_of("c").0["reruns"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn another_judge_judges_again_and_nothing_is_paid_twice() {
    let judged = "version: 1\ncases:\n  - scenario: { id: a, description: d, expected_status: COMPLETE }\n    \
                  prompt: Play a.\n    hints: It is good.\n";
    let config = |judge: &str| {
        format!(
            "version: 1\nmodels: {{ max_retries: 0 }}\n\
             judge: {{ model: \"{judge}\" }}\n\
             sut: {{ chat: {{ model: \"{OPENAI}\" }}, identity: {{ version: \"1\" }} }}\n\
             prices: {{ models: {{ \"openai/*\": {{ input: 1, output: 1 }} }} }}\n"
        )
    };
    let server = bad_at(&[]).judge(|call| verdict(call, 0.9)).start();
    let workspace = Workspace::new().config(config(OPENAI)).file(SUITE, judged).server(&server);
    let first = run(&workspace, &[]).exit(0).stdout_report();
    assert!(first.0["usage"]["total"]["cost"].as_f64() > Some(0.0), "{first}");
    let calls =
        |server: &ModelServer| [Role::Sut, Role::Judge].map(|role| server.calls(role).len());
    assert_eq!(calls(&server), [1, 1]);
    let again = run(&workspace, &["--changed"]).exit(0).stdout_report();
    assert_eq!(calls(&server), [1, 1], "nobody was asked");
    assert_eq!(again.0.get("usage"), None, "and nothing was used");
    let other = workspace.clone().config(config("openai/gpt-4o"));
    assert_eq!(unchanged(&run(&other, &["--changed"]).exit(0).stdout_report()), [""; 0]);
    assert_eq!(calls(&server), [2, 2]);
}
