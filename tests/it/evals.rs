//! `--suite evals.json`: the file of cases of a skill, run as it is, with and without the skill.

use serde_json::{Value, json};

use crate::run::Run;
use crate::workspace::{NOBODY, Workspace};

const EVALS: &str = "skills/greeter/evals/evals.json";

/// Greets as its skill says, where it has one, and looks at its files.
const AGENT: &str = r#"
import json, os, sys
task = json.loads(sys.stdin.readline())
skill = os.environ.get("SELFTEST_SKILL_FILE")
words = ["Hello there"]
if skill:
    words = ["Ahoy" if "Ahoy" in open(skill).read() else "Hello"]
if os.path.exists("names.txt"):
    words += open("names.txt").read().split()
for place in ["skills/greeter/SKILL.md", "skills/greeter/evals/evals.json"]:
    if os.path.exists(place):
        words.append("SAW " + place)
open("greeting.md", "w").write(" ".join(words))
answer = {"type": "result", "status": "COMPLETE", "output": " ".join(words), "tool_calls": []}
print(json.dumps(answer), flush=True)
"#;

const CASES: &str = r#"{
  "skill_name": "greeter",
  "evals": [
    {"id": 1, "prompt": "Greet me", "expectations": ["The answer contains \"Ahoy\""]},
    {"id": 2, "prompt": "Greet the crew", "files": ["names.txt"],
     "assertions": [{"type": "contains", "value": "Jim"},
                    {"type": "file_exists", "path": "greeting.md"}]},
    {"id": 3, "prompt": "Greet", "setup": "rm -rf /", "assertions": [{"type": "telepathy", "of": 3}]}
  ]
}"#;

fn workspace(evals: &str, work_folder: &str) -> Workspace {
    let python = std::process::Command::new("sh").args(["-c", "command -v python3"]).output();
    let python = String::from_utf8(python.unwrap().stdout).unwrap();
    let sut = format!(
        "sut: {{ command: {{ run: [\"{}\", agent.py], work_folder: {work_folder} }} }}\n",
        python.trim()
    );
    Workspace::new()
        .config(format!("version: 1\n{sut}"))
        .file("agent.py", AGENT)
        .file("skills/greeter/SKILL.md", "---\nname: greeter\n---\nAlways say Ahoy.\n")
        .file("skills/greeter/names.txt", "Jim Silver")
        .file(EVALS, evals)
        .env("OLLAMA_HOST", NOBODY)
}

fn statuses(run: &Run) -> Vec<(String, String)> {
    let report = run.stdout_report();
    let cases = report.cases();
    cases.iter().map(|case| (case.id().to_owned(), case.status().to_owned())).collect()
}

#[test]
fn the_cases_of_a_skill_are_run_as_they_are() {
    let run = workspace(CASES, "copy").args(["--suite", EVALS, "--format=json"]).run().exit(3);
    let expected = [("1", "passed"), ("2", "passed"), ("3", "unscored")];
    let expected = expected.map(|(id, status)| (id.to_owned(), status.to_owned()));
    assert_eq!(statuses(&run), expected, "{}", run.stderr);
    let report = run.stdout_report();
    assert_eq!(report.0["models"]["judge"], "none", "no model was needed");
    let by_rule = report.case_of("1").0["checks"][0]["check"].to_string();
    assert!(by_rule.contains("(by rule)") && by_rule.contains("Ahoy"), "{by_rule}");
    assert!(report.case_of("3").reason().contains("nobody can decide it"), "{report}");
    let report = report.to_string();
    assert!(!report.contains("SAW skills/greeter/evals"), "the answer key is out of reach");
    let _ = run.says("the shell line `rm -rf /` of `setup` is not run");
}

#[test]
fn an_experiment_tries_the_skill_around_the_cases() {
    let run = workspace(CASES, "copy")
        .args([
            "skills",
            "experiment",
            "--suite",
            EVALS,
            "--scenarios",
            "1",
            "--repeats",
            "3",
            "--json",
        ])
        .run()
        .exit(0);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    let rate = &found["pass_rate"]["mean"];
    assert_eq!((&rate["control"], &rate["treatment"]), (&0.0.into(), &1.0.into()), "{found:#}");
    assert!(!run.stdout.contains("SAW"), "{found:#}");
}

#[test]
fn files_need_a_folder() {
    let run = workspace(CASES, "project").args(["--suite", EVALS]).run().exit(2);
    let _ = run
        .one_error(&["case 2 brings 1 file", "has no folder of its own"])
        .stderr_contains("hint: set `sut.command.work_folder: copy`");
}

#[test]
fn a_file_without_cases_is_refused() {
    for text in ["{}", "[]", "not json", r#"{"evals": []}"#] {
        let run = workspace(text, "copy").args(["--suite", EVALS]).run().exit(2);
        let _ = run.one_error(&[EVALS]);
    }
    let missing = r#"{"evals": [{"id": 1, "prompt": "x", "files": ["gone.txt"], "expectations": ["contains \"x\""]}]}"#;
    let run = workspace(missing, "copy").args(["--suite", EVALS]).run().exit(2);
    let _ = run.one_error(&["case 1 needs the file `gone.txt`"]);
}

#[test]
fn results_are_what_skill_creator_reads() {
    let workspace = workspace(CASES, "copy");
    let run = workspace
        .clone()
        .args(["skills", "experiment", "--suite", EVALS, "--repeats", "2", "--skill-creator", "it"])
        .run()
        .exit(0);
    let json = |path: &str| serde_json::from_str::<Value>(&run.read(path)).unwrap();
    let grading = json("it/eval-1/with_skill/run-1/grading.json");
    let summary = json!({"passed": 1, "failed": 0, "total": 1, "pass_rate": 1.0});
    assert_eq!(grading["summary"], summary);
    assert_eq!(grading["expectations"][0]["text"], "The answer contains \"Ahoy\"");
    let metadata = json("it/eval-1/eval_metadata.json");
    assert_eq!((&metadata["eval_id"], &metadata["prompt"]), (&1.into(), &"Greet me".into()));
    assert_eq!(metadata, json("it/eval-1/without_skill/run-2/eval_metadata.json"));
    assert!(json("it/eval-2/with_skill/run-2/timing.json")["duration_ms"].is_u64());
    assert!(run.read("it/eval-1/with_skill/run-1/outputs/answer.md").contains("Ahoy"));
    // Nothing was decided of the third: no verdict in a format that has no word for it.
    assert!(!workspace.path("it/eval-3/with_skill/run-1/grading.json").exists());
    let benchmark = json("it/benchmark.json");
    assert_eq!(benchmark["metadata"]["evals_run"], json!([1, 2, 3]));
    assert_eq!(benchmark["metadata"]["runs_per_configuration"], 2);
    let summary = &benchmark["run_summary"];
    assert_eq!(summary["with_skill"]["pass_rate"]["mean"], 1.0);
    assert_eq!(summary["delta"]["pass_rate"], "+0.50", "{summary:#}");
    assert_eq!(benchmark["runs"].as_array().unwrap().len(), 8);
    let notes = benchmark["notes"].to_string();
    assert!(notes.contains("eval 3, with_skill, run 1: nothing was decided"), "{notes}");
}
