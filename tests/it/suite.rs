//! Frozen cases: `freeze`, `--suite`, `--repeats` and `compare`.

use serde_json::Value;

use crate::model_server::{HINT_MARK, ModelServer, Reply, Role, Script, grounded, verdict};
use crate::report::Report;
use crate::run::Run;
use crate::workspace::{CLEAR, FLOW, NOBODY, OPENAI, Workspace, config, scenarios};

const SUITE: &str = "config/suites/mine.yaml";

/// A project in which these scenarios have been run once and frozen.
struct Frozen {
    workspace: Workspace,
    run_id: String,
    first: Report,
}

impl Frozen {
    fn new(scenarios: &str) -> Self {
        let server = ModelServer::start();
        let workspace = Workspace::new().config(config(OPENAI, scenarios)).server(&server);
        let first = workspace.clone().args(["--format=json"]).run().exit(0).stdout_report();
        let run_id = first.run_id();
        let _ =
            workspace.clone().args(["suite", "freeze", &run_id, "--output", SUITE]).run().exit(0);
        Self { workspace, run_id, first }
    }

    /// Runs the suite with a judge that scores so, and other arguments.
    fn run(&self, script: Script, arguments: &[&str]) -> (Run, ModelServer) {
        let server = script.start();
        let arguments = ["--suite", SUITE, "--format=json", "--exit-zero"].iter().chain(arguments);
        let run = self.workspace.clone().server(&server).args(arguments).run().exit(0);
        (run, server)
    }

    fn compare(&self, a: &str, b: &str, arguments: &[&str]) -> Run {
        self.workspace.clone().args(["compare", a, b].iter().chain(arguments)).run()
    }
}

fn judged(score: f64) -> Script {
    ModelServer::script().judge(move |call| verdict(call, score))
}

fn prompts(report: &Report) -> Vec<(String, String, String)> {
    let of_case = |case: &crate::report::Case<'_>| {
        let text = |field: &str| case.0[field].as_str().unwrap().to_owned();
        (text("id"), text("prompt"), text("hints"))
    };
    report.cases().iter().map(of_case).collect()
}

#[test]
fn a_suite_runs_the_same_cases_and_asks_no_generator() {
    let frozen = Frozen::new(&format!("{CLEAR}{FLOW}"));
    // A generator that is not there is not missed.
    let yaml = config(OPENAI, &format!("{CLEAR}{FLOW}"));
    let yaml = yaml.replace(
        &format!("generator: {{ model: \"{OPENAI}\" }}"),
        "generator: { model: \"ollama/absent\" }",
    );
    let server = ModelServer::start();
    let workspace = frozen.workspace.clone().config(yaml).server(&server);
    let run = workspace
        .env("OLLAMA_HOST", NOBODY)
        .args(["--suite", SUITE, "--format=json"])
        .run()
        .exit(0);
    let report = run.stdout_report();
    assert_eq!(prompts(&report), prompts(&frozen.first));
    assert!(server.calls(Role::Generator).is_empty());
    assert_eq!(report.case_of("flow").steps().len(), 2, "replies are played");
    let suite = &report.0["suite"];
    assert_eq!(suite["path"], SUITE);
    assert_eq!(suite["run_id"], frozen.run_id.as_str());
    assert_eq!(report.0["models"].get("generator"), None);
    let digest = suite["digest"].as_str().unwrap();
    let page = run.read(&format!("docs/reports/selftest/{}.md", report.run_id()));
    for part in [SUITE, &digest[..12], &frozen.run_id, "--suite config/suites/mine.yaml"] {
        assert!(page.contains(part), "no `{part}` in {page}");
    }
    let schema = frozen.workspace.clone().args(["config", "schema", "report"]).run().exit(0).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    jsonschema::validate(&schema, &report.0).unwrap_or_else(|error| panic!("{error}: {report}"));
}

#[test]
fn scenarios_are_chosen_from_the_suite() {
    let frozen = Frozen::new(&scenarios(3));
    let (run, _) = frozen.run(judged(0.9), &["--scenarios=case-2"]);
    assert_eq!(run.stdout_report().case().id(), "case-2");
    let arguments = ["--suite", SUITE, "--scenarios=flow"];
    let run = frozen.workspace.clone().args(arguments).run().exit(2);
    run.one_error(&["`flow`", "which the suite does not have", "case-0, case-1, case-2"]);
}

#[test]
fn what_held_in_the_run_holds_again_unless_a_flag_says_otherwise() {
    let frozen = Frozen::new(CLEAR);
    let strict = config(OPENAI, CLEAR) + "strictness: 1.0\n";
    let frozen = Frozen { workspace: frozen.workspace.clone().config(strict), ..frozen };
    let (run, _) = frozen.run(judged(0.75), &[]);
    assert_eq!(run.stdout_report().case().pass(), Some(true), "0.74 held in the run");
    let (run, _) = frozen.run(judged(0.75), &["--strictness=1"]);
    assert_eq!(run.stdout_report().case().pass(), Some(false));
}

#[test]
fn a_suite_of_another_rubric_is_run_with_a_warning() {
    let frozen = Frozen::new(CLEAR);
    let (run, _) = frozen.run(judged(0.9), &[]);
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
    let rubric = "rubric: [{ id: tone, weight: 1, description: Tone, anchors: [] }]\n";
    let template = "Score it: {{ schema }}\n<!-- case -->\n{{ nonce }} {{ output }}\n";
    let workspace = frozen.workspace.clone().config(config(OPENAI, CLEAR) + rubric);
    let workspace = workspace.file("prompts/judge/rubric.md", template);
    let frozen = Frozen { workspace, ..frozen };
    let (run, _) = frozen.run(judged(0.9), &[]);
    let other = run.stdout_report().run_id();
    let _ = run
        .stderr_contains("was frozen under another rubric")
        .stderr_contains("prompts/judge/rubric.md has changed");
    let _ = frozen
        .compare(&frozen.run_id, &other, &[])
        .exit(0)
        .stdout_contains("the rubrics differ")
        .stdout_contains("the judge prompts differ");
}

#[test]
fn repeats_are_reported_by_case() {
    let frozen = Frozen::new(&scenarios(2));
    let judge =
        |call: &crate::model_server::Call| verdict(call, if call.number == 0 { 0.5 } else { 0.9 });
    let arguments = ["--repeats=3", "--concurrency=1"];
    let (run, server) = frozen.run(ModelServer::script().judge(judge), &arguments);
    let report = run.stdout_report();
    assert_eq!(report.counts(), [6, 5, 1, 0]);
    assert_eq!(report.summary()["repeats"], 3);
    let names: Vec<(&str, u64)> =
        report.cases().iter().map(|case| (case.id(), case.0["repeat"].as_u64().unwrap())).collect();
    assert_eq!(
        names,
        [("case-0", 1), ("case-1", 1), ("case-0", 2), ("case-1", 2), ("case-0", 3), ("case-1", 3)]
    );
    let seeds: std::collections::BTreeSet<u64> =
        server.calls(Role::Sut).iter().map(|call| call.body["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds.len(), 6, "each repeat samples anew");
    let page = run.read(&format!("docs/reports/selftest/{}.md", report.run_id()));
    assert!(page.contains("| case-0 | 2 of 3 | 0.77 | 0.50 | 0.90 |"), "{page}");
    assert!(page.contains("6 trials of 2 cases"), "{page}");
    assert!(page.contains("--repeats 3 --scenarios case-0,case-1"), "{page}");
    // A suite of a run with repeats holds each case once.
    let again = ["suite", "freeze", &report.run_id(), "--output", "config/suites/again.yaml"];
    let again = frozen.workspace.clone().args(again).run().exit(0).stderr;
    assert!(again.contains("2 cases frozen"), "{again}");
    let digest = report.0["suite"]["digest"].as_str().unwrap();
    assert!(again.contains(digest), "{again}");
}

#[test]
fn two_runs_of_a_suite_are_compared_case_by_case() {
    let frozen = Frozen::new(&scenarios(8));
    let (good, _) = frozen.run(judged(0.9), &[]);
    let (bad, _) = frozen.run(judged(0.5), &["--repeats=2"]);
    let [good, bad] = [good, bad].map(|run| run.stdout_report().run_id());
    // The run that the suite is of played the same cases.
    let _ = frozen
        .compare(&frozen.run_id, &good, &["--fail-if-worse"])
        .exit(0)
        .stdout_contains("Not enough evidence: none of 8 cases differs.");
    let run = frozen.compare(&good, &bad, &[]).exit(0);
    assert_eq!(frozen.compare("previous", "latest", &[]).exit(0).stdout, run.stdout);
    let mut text = run.stdout.clone();
    // How long the server took, and which case got which prompt of what length, differs from run
    // to run.
    let digest = text.split("digest ").nth(1).and_then(|rest| rest.get(..12)).unwrap().to_owned();
    text = text.replace(&digest, "[digest]");
    let lasting: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("time:") && !line.starts_with("tokens:"))
        .collect();
    let _ = run.snapshot_of("compare_worse", &lasting.join("\n"));
    let _ = frozen.compare(&good, &bad, &["--fail-if-worse"]).exit(1);
    let path = format!("reports/selftest/{bad}.json");
    let _ = frozen
        .compare(&path, "latest", &["--fail-if-worse"])
        .exit(0)
        .stdout_contains("A and B are the same run");
    let run = frozen.compare(&bad, &good, &["--json", "--fail-if-worse"]).exit(0);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(found["conclusion"], "helps");
    assert_eq!(found["trials"]["control"], 16);
    assert_eq!(found["score"]["wins"], 8);
    let difference = found["score"]["difference"].as_f64().unwrap();
    assert!((difference - 0.4).abs() < 1e-9, "{difference}");
    assert!(found["tokens"]["difference"].is_number(), "{found}");
}

#[test]
fn a_case_without_a_verdict_is_counted_and_no_zero() {
    let frozen = Frozen::new(&scenarios(2));
    let script = ModelServer::script().judge(|call| {
        let text = call.text();
        // The judge cannot tell of one of the two.
        if text.contains(&format!("{HINT_MARK} 0")) {
            crate::model_server::Reply::from("no verdict")
        } else {
            verdict(call, 0.9).into()
        }
    });
    let (run, _) = frozen.run(script, &[]);
    let run_id = run.stdout_report().run_id();
    let run = frozen.compare(&frozen.run_id, &run_id, &["--json"]).exit(0);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(found["unscored"]["treatment"], 1);
    assert_eq!(found["score"]["cases"], 1);
    assert_eq!(found["score"]["difference"], 0.0);
    let _ = frozen
        .compare(&frozen.run_id, &run_id, &[])
        .exit(0)
        .stdout_contains("not compared")
        .stdout_contains("without a verdict, not in the averages: 0 of 2 in A, 1 of 2 in B");
}

#[test]
fn runs_of_other_cases_are_not_compared() {
    let frozen = Frozen::new(CLEAR);
    let other = ModelServer::script().generator(|call| grounded(call, "Name the licence.")).start();
    let run = frozen.workspace.clone().server(&other).args(["--format=json"]).run().exit(0);
    let run_id = run.stdout_report().run_id();
    let run = frozen.compare(&frozen.run_id, &run_id, &[]).exit(2);
    run.one_error(&["nothing to compare"]).stderr_contains("selftest suite freeze");
}

#[test]
fn a_run_that_is_not_there() {
    let workspace = Workspace::new();
    for name in ["latest", "previous", "selftest-20260206-1234-bcdfgh", "absent.json"] {
        let run = workspace.clone().args(["suite", "freeze", name]).run().exit(2);
        let _ = run.one_error(&["there is no run", name]).stderr_contains("hint:");
    }
    let workspace = workspace.file("notes.json", "{}");
    let run = workspace.args(["suite", "freeze", "notes.json"]).run().exit(2);
    run.one_error(&["cannot read notes.json"]).stderr_contains("hint:");
}

#[test]
fn a_suite_is_never_written_over() {
    let frozen = Frozen::new(CLEAR);
    let again = ["suite", "freeze", "latest", "--output", SUITE];
    let run = frozen.workspace.clone().args(again).run().exit(2);
    run.one_error(&[SUITE, "exists already"]).stderr_contains("--output");
    let run = frozen.workspace.clone().args(["suite", "freeze", "latest"]).run().exit(0);
    let path = format!("config/suites/{}.yaml", frozen.run_id);
    assert_eq!(run.stdout.trim(), path);
    assert_eq!(run.read(&path), run.read(SUITE));
}

#[test]
fn a_run_without_prompts_cannot_be_frozen() {
    let server = ModelServer::script().generator(|_| Reply::status(500)).start();
    let workspace = Workspace::simple(&server);
    let _ = workspace.run().exit(5);
    let run = workspace.args(["suite", "freeze", "latest"]).run().exit(4);
    run.stderr_contains("nothing to freeze").stderr_contains("left out");
}

#[test]
fn a_broken_suite_is_shown_with_its_lines() {
    let broken = "version: 1\ncases:\n  - scenario:\n      id: a\n      description: d\n      \
                  expected_status: DONE\n    prompt: p\n    hint: h\n";
    let server = ModelServer::start();
    let workspace = Workspace::simple(&server).file(SUITE, broken);
    for arguments in [vec!["--suite", SUITE], vec!["config", "check", "--suite", SUITE]] {
        let run = workspace.clone().args(arguments).run().exit(2);
        let _ = run
            .stderr_contains("config/suites/mine.yaml:6:24")
            .stderr_contains("one of `AWAITING_RESPONSE`, `COMPLETE`, `ERROR`")
            .stderr_contains("config/suites/mine.yaml:8:5")
            .stderr_contains("did you mean `hints`?");
    }
    assert!(server.all_calls().is_empty());
    let run = workspace.args(["--suite", "absent.yaml"]).run().exit(2);
    let _ = run.stderr_contains("absent.yaml").stderr_contains("selftest suite freeze");
}

#[test]
fn a_good_suite_is_valid() {
    let frozen = Frozen::new(CLEAR);
    let check = ["config", "check", "--suite", SUITE];
    let run = frozen.workspace.clone().args(check).run().exit(0);
    run.stdout_contains("config/suites/mine.yaml: valid, 1 case, digest");
}

#[test]
fn the_assistant_is_not_shown_the_suite() {
    let frozen = Frozen::new(CLEAR);
    // In the open, where project files are shown.
    let text = std::fs::read_to_string(frozen.workspace.path(SUITE)).unwrap();
    let workspace =
        frozen.workspace.clone().file("README.md", "A project.").file("cases.yaml", text);
    let server = ModelServer::start();
    let _ = workspace.server(&server).args(["--suite", "cases.yaml"]).run().exit(0);
    let calls = server.calls(Role::Sut);
    assert!(calls.iter().all(|call| call.text().contains("A project.")));
    assert!(calls.iter().all(|call| !call.text().contains(HINT_MARK)));
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_cannot_read_the_suite() {
    let frozen = Frozen::new(CLEAR);
    let text = std::fs::read_to_string(frozen.workspace.path(SUITE)).unwrap();
    let outside = frozen.workspace.folder().join("cases.yaml");
    std::fs::write(&outside, &text).unwrap();
    let workspace = frozen
        .workspace
        .clone()
        .file("README.md", "readable")
        .file("agent.py", include_str!("fixtures/agent.py"))
        .file("cases.yaml", &text);
    let server = ModelServer::start();
    for suite in ["cases.yaml".to_owned(), outside.display().to_string()] {
        let program = format!(
            "version: 1\njudge: {{ model: \"{OPENAI}\" }}\nsut:\n  command:\n    \
             run: [python3, agent.py, read, README.md, \"{suite}\", {SUITE}]\n    \
             readable: [\"{suite}\"]\nscenarios:\n{CLEAR}"
        );
        let run = workspace
            .clone()
            .config(program)
            .server(&server)
            .args(["--suite", &suite, "--format=json"])
            .run()
            .exit(1);
        let report = run.stdout_report();
        let case = &report.case().0;
        let denied = "denied: Permission denied";
        let expected = format!("ok: readable\n{denied}\n{denied}");
        assert_eq!(case["output"], expected.as_str(), "{suite}");
        // To try is enough.
        assert_eq!(case["status"], "isolation_violation", "{suite}: {case}");
        assert!(case["reason"].as_str().unwrap().contains("read of the answer key"), "{case}");
    }
}
