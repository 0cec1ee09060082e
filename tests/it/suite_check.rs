//! `selftest suite check`: files of cases as people meet them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::workspace::{CLEAR, OPENAI, Workspace, config, files};

/// A project with the fixtures of every dialect below `skills`.
fn project() -> Workspace {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/checks/fixtures/evals");
    let mut paths: Vec<PathBuf> = files(&fixtures);
    paths.sort();
    paths.into_iter().fold(Workspace::new(), |workspace, path| {
        let name = path.strip_prefix(&fixtures).unwrap().to_str().unwrap();
        workspace.file(&format!("skills/{name}"), fs::read(&path).unwrap())
    })
}

fn check(workspace: &Workspace, arguments: &[&str]) -> crate::run::Run {
    workspace.clone().args(["suite", "check"].iter().chain(arguments)).run()
}

fn json(workspace: &Workspace, path: &str) -> Value {
    let run = check(workspace, &[path, "--json"]).exit(0);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn a_tree_of_skills_is_summed_up() {
    let run = check(&project(), &["skills"]).exit(0);
    let _ = run.snapshot("suite_check_tree");
}

#[test]
fn sentences_stand_beside_their_checks() {
    let paths = [
        "skills/skill-creator",
        "skills/typed-assertions/evals/evals.json",
        "skills/other/promptfooconfig.yaml",
        "skills/other/samples.jsonl",
        "-v",
    ];
    let _ = check(&project(), &paths).exit(0).snapshot("suite_check_verbose");
}

#[test]
fn programs_get_every_number() {
    let workspace = project();
    let found = json(&workspace, "skills/wrapped-sentences");
    assert_eq!(found.as_array().unwrap().len(), 1);
    let file = &found[0];
    assert_eq!(file["path"], "skills/wrapped-sentences/evals/evals.json");
    assert_eq!(file["dialect"], "evals");
    assert_eq!(file["cases"], 2);
    assert_eq!(file["routing"], 0);
    assert_eq!(file["without_checks"], 0);
    assert_eq!(file["checks"], json!({"typed": 0, "rule": 2, "judge": 6, "unknown": 0}));
    assert_eq!(file["missing_files"], json!([]));
    assert_eq!(file["refused"].as_array().unwrap().len(), 3);
    assert!(file["warnings"].as_array().unwrap().len() >= 5);
    let keys: Vec<&str> = file.as_object().unwrap().keys().map(String::as_str).collect();
    let wanted = [
        "path",
        "dialect",
        "cases",
        "routing",
        "without_checks",
        "checks",
        "missing_files",
        "refused",
        "warnings",
    ];
    assert_eq!(keys, wanted);
    let all = json(&workspace, "skills");
    let sum = |key: &str| {
        all.as_array().unwrap().iter().map(|file| file[key].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((all.as_array().unwrap().len(), sum("cases"), sum("routing")), (16, 26, 10));
}

const SUITE: &str = "\
version: 1
cases:
  - scenario:
      id: port
      description: Which port
      expected_status: COMPLETE
      checks: [{ contains: port 80 }]
      files: [absent.md]
    prompt: Which port?
    hints: Names the port.
    checks: [{ lines: 3 }, { not_contains: port 80 }]
  - scenario: { id: tone, description: Tone, expected_status: COMPLETE }
    prompt: Say hello.
    hints: Is friendly.
    expectations: [It says hello., It is short.]
";

#[test]
fn a_suite_of_ours_is_read_too() {
    let workspace = Workspace::new().file("config/suites/a.yaml", SUITE);
    let file = &json(&workspace, "config/suites/a.yaml")[0];
    assert_eq!(file["dialect"], "suite");
    assert_eq!(file["cases"], 2);
    assert_eq!(file["checks"], json!({"typed": 3, "rule": 0, "judge": 3, "unknown": 0}));
    assert_eq!(file["missing_files"], json!(["absent.md"]));
    let words =
        "case port: `not_contains: \"port 80\"` and `contains: \"port 80\"` cannot both hold";
    let other =
        "case port: `contains: \"port 80\"` and `not_contains: \"port 80\"` cannot both hold";
    assert!([words, other].contains(&file["warnings"][0].as_str().unwrap()), "{file:#}");
    let broken = Workspace::new().file("a.yaml", SUITE.replace("lines: 3", "line: 3"));
    let run = check(&broken, &["a.yaml"]).exit(2);
    run.stdout_contains("unknown kind of check `line`").stdout_contains("did you mean `lines`?");
}

#[test]
fn checks_of_the_configuration_that_contradict_each_other_are_a_warning() {
    let scenario = format!("{CLEAR}    checks: [{{ lines: 3 }}, {{ not: {{ lines: 3 }} }}]\n");
    let workspace = Workspace::new().config(config(OPENAI, &scenario));
    let run = workspace.args(["config", "check"]).run().exit(0);
    run.says("`lines: 3` and `not lines: 3` cannot both hold");
}

#[test]
fn what_cannot_be_checked_has_an_exit_code_of_its_own() {
    let workspace = Workspace::new()
        .file("broken/evals.json", "{\"evals\": [")
        .file("empty/evals.json", "{\"evals\": []}")
        .file("none/SKILL.md", "x");
    let _ = check(&workspace, &["absent.json"]).exit(2).one_error(&["absent.json"]);
    let _ = check(&workspace, &[]).exit(2);
    let run = check(&workspace, &["broken", "--json"]).exit(2);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(found[0]["refused"][0].as_str().unwrap().contains("not JSON"), "{found}");
    let _ = check(&workspace, &["empty"]).exit(4).stderr_contains("nothing to run");
    let _ = check(&workspace, &["none"]).exit(4);
}

#[test]
fn a_file_that_is_named_twice_counts_once() {
    let (file, folder) = ("skills/wrapped-sentences/evals/evals.json", "skills/wrapped-sentences");
    let named = [file, "skills/other/samples.jsonl", folder, "--json"];
    let run = check(&project(), &named).exit(0);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(found.as_array().unwrap().len(), 2, "{found}");
}

#[test]
fn a_thousand_skills_are_checked() {
    let workspace = Workspace::new();
    let case = json!({"id": 1, "prompt": "Sum it up", "files": ["a.txt"],
        "expectations": ["The answer contains \"a\"", "It is clear", "Creates `out.md`", "Names the author"]});
    let text = json!({"skill_name": "x", "evals": vec![case; 5]}).to_string();
    for number in 0..1_000 {
        let folder = workspace.path(&format!("skills/skill-{number}/evals"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("evals.json"), &text).unwrap();
    }
    let found = json(&workspace, "skills");
    assert_eq!(found.as_array().unwrap().len(), 1_000);
    assert_eq!(found[999]["checks"], json!({"typed": 0, "rule": 10, "judge": 10, "unknown": 0}));
}
