//! The embedded engine with real weights. What is asserted is that verdicts are valid, not
//! that they are wise: the default model has 135 million parameters.

mod demonstration;
#[cfg(target_os = "linux")]
mod packages;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::cassette::essence;
use crate::grade::recording::{Recording, id};
use crate::model_server::ModelServer;
use crate::report::Report;
use crate::server::site::Site;
use crate::workspace::{CLEAR, FLOW, OPENAI, Workspace, config, files, scenarios};

/// Two engines at once on two cores take many times as long as one after the other, and a
/// case has its time limit. Held by every test that computes. Where each test has a process of its
/// own, their runner takes care: all of these tests are in modules named `embedded`.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cache that outlives the tests, so that the weights are fetched once per target folder.
pub(crate) fn with_cache(workspace: Workspace) -> Workspace {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    fs::create_dir_all(&cache).unwrap();
    let workspace =
        ["PIP_CONFIG_FILE", "PIP_INDEX_URL", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy"]
            .into_iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)))
            .fold(workspace, |workspace, (name, value)| workspace.env(name, value));
    workspace.env("XDG_CACHE_HOME", cache).watchdog(Duration::from_mins(10))
}

#[test]
fn two_cases_from_end_to_end_without_any_server() {
    let _turn = turn();
    let run = with_cache(Workspace::new())
        .config(format!("version: 1\nscenarios:\n{CLEAR}{FLOW}"))
        .file("README.md", "# Zebrafish\n\nA library that counts stripes.\n")
        .args(["--exit-zero", "--seed=1"])
        .run()
        .exit(0);
    let report = run.report();
    assert_eq!(report.counts()[0], 2);
    assert!(report.to_string().contains("embedded/smollm2-135m"), "{report}");
    for case in report.cases() {
        // A small model may generate poorly; it can never judge malformed.
        assert_ne!(case.unscored_reason(), Some("malformed"), "{case}");
        assert_ne!(case.unscored_reason(), Some("truncated"), "{case}");
    }
    assert!(run.markdown().contains("embedded/smollm2-135m"));
}

/// A page that has sections, numbers and names.
const PAGE: &str = "# Zebrafish\n\nA library that counts stripes.\n\n## Limits\n\nAt most 20 fish are \
    counted at once.\nA picture may have 4000 pixels in each direction.\nThe counts are kept in \
    `stripes.csv` for a year.\nA fish without stripes is left out of the mean.\n";

#[test]
fn a_first_run_passes_and_says_what_its_judge_is_worth() {
    let _turn = turn();
    for seed in ["--seed=1", "--seed=2", "--seed=3"] {
        let workspace = with_cache(Workspace::new()).file("README.md", PAGE);
        let run = workspace.clone().args(["--scenarios=2", seed]).run().exit(0);
        assert_eq!(run.report().counts(), [2, 2, 0, 0]);
        let first = run.stdout.lines().next().unwrap();
        assert!(first.starts_with("this run tests the example agent"), "{}", run.stdout);
        assert!(run.stderr.starts_with("this run tests the example agent"), "{}", run.stderr);
        let _ = run
            .stdout_contains("clear_summary passed by its 2 checks.")
            .stdout_contains("0.74 would pass")
            .stdout_contains("known answers");
    }
}

#[test]
fn a_full_first_run_catches_a_fault_and_abstains_once() {
    let _turn = turn();
    let workspace = with_cache(Workspace::new()).file("README.md", PAGE);
    let run = workspace.args(["--full", "--seed=4"]).run().exit(1);
    let report = run.report();
    for (id, status) in [
        ("ambiguous_request", "passed"),
        ("clear_summary", "passed"),
        ("evidence_restriction", "passed"),
        ("docs_reorganization", "unscored"),
        ("contradiction_detect", "failed"),
    ] {
        assert_eq!(report.case_of(id).0["status"], status, "{}", run.stdout);
    }
    let _ = run.stdout_contains("names both sides of the contradiction");
}

#[test]
fn a_recording_of_the_defaults_gives_the_same_report_again() {
    let _turn = turn();
    let project = || {
        Workspace::new()
            .config(format!("version: 1\nscenarios:\n{CLEAR}{FLOW}"))
            .file("README.md", "# Zebrafish\n\nA library that counts stripes.\n")
    };
    let workspace = with_cache(project());
    let record = ["--record=cassettes/all", "--exit-zero", "--format=json"];
    let recorded = workspace.clone().args(record).run().exit(0).stdout_report();
    // Neither the weights nor what is known of the judge on this machine is needed.
    let elsewhere = project();
    copy(&workspace.path("cassettes"), &elsewhere.path("cassettes"));
    let replay = ["--model=cassette/cassettes/all", "--offline", "--exit-zero", "--format=json"];
    let replayed = elsewhere.args(replay).run().exit(0).stdout_report();
    assert_eq!(essence(&replayed), essence(&recorded), "{replayed}");
}

/// Records a suite with the default judge, and replays it without weights. Returns both reports.
fn recorded_and_replayed(settings: &str) -> [Report; 2] {
    let case = |id: &str, reference: &str| {
        format!(
            "  - scenario: {{ id: {id}, description: d, expected_status: COMPLETE }}\n    \
             prompt: What does {id} do?\n    reference: {reference}\n    \
             expectations: [\"The answer says what {id} does\"]\n"
        )
    };
    let cases =
        [case("alpha", "It counts stripes."), case("beta", "It draws maps of rivers.")].concat();
    let sut = "sut: { command: { run: [/bin/sh, agent.sh], protocol: text } }\n";
    let project = || {
        Workspace::new()
            .config(format!("version: 1\n{sut}{settings}"))
            .file("agent.sh", "echo 'It counts the stripes of fish.'\n")
            .file("config/suites/mine.yaml", format!("version: 1\ncases:\n{cases}"))
    };
    let run = |workspace: &Workspace, more: &[&str]| {
        let fixed = ["--suite=config/suites/mine.yaml", "--repeats=2", "--exit-zero"];
        let all = fixed.iter().chain(&["--format=json"]).chain(more);
        workspace.clone().args(all).run().exit(0).stdout_report()
    };
    let workspace = with_cache(project());
    let recorded = run(&workspace, &["--record=tape"]);
    let elsewhere = project();
    copy(&workspace.path("tape"), &elsewhere.path("tape"));
    let replay = ["--judge-model=cassette/tape", "--offline", "--concurrency=4"];
    let replayed = run(&elsewhere, &replay);
    assert_eq!(essence(&replayed), essence(&recorded), "{replayed}");
    [recorded, replayed]
}

#[test]
fn what_is_known_of_the_default_judge_is_recorded() {
    let _turn = turn();
    let fitness = |report: &Report| report.0["models"]["judge_fitness"].clone();
    let [recorded, replayed] = recorded_and_replayed("");
    assert!(!fitness(&recorded).is_null(), "{recorded}");
    assert_eq!(fitness(&replayed), fitness(&recorded));
}

#[test]
fn readings_of_the_default_judge_are_recorded() {
    let _turn = turn();
    // Nothing is known of a judge by another rubric, so that it is asked everything.
    let rubric = "rubric: [{ id: tone, weight: 1, description: Tone, anchors: [] }]\n";
    let [recorded, _] = recorded_and_replayed(&format!("judge: {{ min_auc: 0 }}\n{rubric}"));
    for case in recorded.cases() {
        assert!(case.overall().is_some() && !case.judge_calls().is_empty(), "{case}");
    }
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let to = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&file, to).unwrap();
    }
}

#[test]
fn six_judgements_are_six_valid_verdicts() {
    let _turn = turn();
    let server = ModelServer::start();
    let run = with_cache(Workspace::new())
        .config(config(OPENAI, &scenarios(6)).replace("judge: {", "judge: { method: verdict,"))
        .server(&server)
        .args(["--judge-model=embedded/smollm2-135m", "--exit-zero"])
        .run()
        .exit(0);
    let report = run.report();
    for case in report.cases() {
        assert_eq!(case.judge_calls().len(), 1, "asked again: {case}");
        let reason = case.unscored_reason();
        // "Can't tell" is a valid verdict.
        assert!(matches!(reason, None | Some("cant_tell")), "{reason:?}: {case}");
        assert_eq!(case.judge_calls()[0]["structured"], "schema", "{case}");
    }
    assert_eq!(report.cases().len(), 6);
}

#[test]
fn a_judge_by_probability_tells_what_it_read() {
    let _turn = turn();
    let server = ModelServer::start();
    let run = with_cache(Workspace::new())
        .config(config(OPENAI, CLEAR).replace("judge: {", "judge: { min_auc: 0, explain: false,"))
        .server(&server)
        .args(["--judge-model=embedded/smollm2-135m", "--exit-zero"])
        .run()
        .exit(0);
    let report = run.report();
    let case = report.case();
    let calls = case.judge_calls();
    assert!(calls.iter().all(|call| call["completion_tokens"] != 0 && call["error"].is_null()));
    let questions = case.0["steps"][0]["judgement"]["verdict"]["questions"].as_array().unwrap();
    assert!(!questions.is_empty(), "{case}");
    for question in questions {
        let probability = question["probability"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&probability), "{question}");
        assert!((0.0..=1.0).contains(&question["neither"].as_f64().unwrap()), "{question}");
    }
}

/// A small model's words on a session may be nonsense; the stored part is a grade, and the
/// page shows it.
#[test]
fn a_backfill_keeps_valid_grades_and_the_page_shows_them() {
    let _turn = turn();
    // Paths of temporary folders are part of what it reads, so that one of three may still run into
    // a limit: none of them may become a grade then.
    let mut workspace =
        with_cache(Workspace::new()).config(format!("version: 1\nscenarios:\n{CLEAR}"));
    for number in 1..=3 {
        workspace = workspace.session(&Recording::on(&id(number), "2026-11-17T10:00:00Z", true));
    }
    let model = "embedded/smollm2-135m";
    let words = ["backfill", "--limit=5", "--model", model];
    let _ = workspace.clone().grade(&words).run();
    let shown = workspace.clone().args(["grade", "recent", "--json"]).run().exit(0).stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let Some(grade) = shown.get(0) else { panic!("no grade at all: {shown}") };
    assert_eq!(grade["model"], model);
    let scores = ["problem_solved", "tests_added", "code_clean", "edge_cases"]
        .map(|dimension| grade[dimension].as_f64());
    assert!(scores.iter().flatten().all(|score| (0.0..=1.0).contains(score)), "{grade}");
    let enough = scores.iter().flatten().count() >= 2;
    assert_eq!(grade["overall"].is_number(), enough, "{grade}");
    let site = Site::start(workspace);
    let page = site.get(&format!("/sessions/{}", grade["session_id"].as_str().unwrap())).text();
    assert!(page.contains("Graded by a model") && page.contains(model), "{page}");
}

/// A file that is no model: found before the first case, in one line that names it.
fn refused(name: &str, contents: &[u8]) {
    let workspace =
        Workspace::new().config(format!("version: 1\nscenarios:\n{CLEAR}")).file(name, contents);
    let path = workspace.path(name);
    let by_name = workspace.clone().args([format!("--model=embedded:{}", path.display())]);
    by_name.run().exit(5).one_error(&[name]);
    let by_variable =
        workspace.env("SELFTEST_MODEL_FILE", &path).args(["--model=embedded/smollm2-135m"]);
    by_variable.run().exit(5).one_error(&[name]);
}

#[test]
fn a_file_that_is_no_gguf_is_refused() {
    refused("text.gguf", b"this is no model");
    refused("empty.gguf", b"");
}

#[test]
fn a_truncated_gguf_is_refused() {
    refused("magic.gguf", b"GGUF");
    // A header that promises more than there is.
    let mut header = b"GGUF".to_vec();
    header.extend(3_u32.to_le_bytes());
    header.extend(u64::MAX.to_le_bytes());
    header.extend(u64::MAX.to_le_bytes());
    refused("header.gguf", &header);
}

#[test]
fn half_of_the_real_weights_are_refused() {
    let _turn = turn();
    let _ =
        with_cache(Workspace::new()).args(["judge", "model", "pull", "smollm2-135m"]).run().exit(0);
    let run =
        with_cache(Workspace::new()).args(["judge", "model", "path", "smollm2-135m"]).run().exit(0);
    let weights = fs::read(PathBuf::from(run.stdout.trim_end())).unwrap();
    refused("half.gguf", &weights[..weights.len() / 2]);
}

#[test]
fn a_model_file_that_is_missing_is_named() {
    let run = Workspace::new()
        .config(format!("version: 1\nscenarios:\n{CLEAR}"))
        .args(["--model=embedded:/nowhere/at/all.gguf"])
        .run();
    run.exit(5).one_error(&["/nowhere/at/all.gguf"]);
}

#[test]
fn offline_without_weights_says_how_to_get_them() {
    let run = Workspace::new()
        .config(format!("version: 1\nscenarios:\n{CLEAR}"))
        .args(["--offline"])
        .run();
    run.exit(5).stderr_contains("selftest judge model pull");
}
