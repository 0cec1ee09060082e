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
    assert!(report.case_of("3").reason().contains("no check can decide it"), "{report}");
    let report = report.to_string();
    assert!(!report.contains("SAW skills/greeter/evals"), "the answer key is out of reach");
    let _ = run.says("the shell line `rm -rf /` of `setup` is not run");
}

#[test]
fn an_experiment_tries_the_skill_around_the_cases() {
    let run = workspace(CASES, "copy")
        .args([
            "improve",
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
        .args([
            "improve",
            "skills",
            "experiment",
            "--suite",
            EVALS,
            "--repeats",
            "2",
            "--skill-creator",
            "it",
        ])
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
    assert_eq!(benchmark["runs"][0]["result"]["undecided"], 0);
    let notes = benchmark["notes"].to_string();
    assert!(notes.contains("eval 3, with_skill, run 1: nothing was decided"), "{notes}");
}

/// A folder with two skills of the same case ids, a broken one and one without a skill.
fn folder_of_skills() -> Workspace {
    workspace(CASES, "copy")
        .file("skills/ferry/SKILL.md", "---\nname: ferry\n---\nSay Ahoy to ferrymen.\n")
        .file(
            "skills/ferry/evals/evals.json",
            r#"{"evals": [
                {"id": 1, "prompt": "Greet me", "expectations": ["The answer contains \"Ahoy\""]},
                {"id": 2, "prompt": "Greet", "files": ["gone.txt"], "expectations": ["contains \"x\""]}
            ]}"#,
        )
        .file("skills/broken/evals/evals.json", "{")
        .file(
            "skills/bare/evals/evals.json",
            r#"[{"id": "a", "prompt": "Greet me", "expectations": ["The answer contains \"Ahoy\""]}]"#,
        )
}

#[test]
fn a_folder_of_skills_is_one_run() {
    let run = folder_of_skills().args(["--suite", "skills", "--format=json"]).run().exit(1);
    let expected = [
        ("bare/a", "failed"),
        ("ferry/1", "passed"),
        ("greeter/1", "passed"),
        ("greeter/2", "passed"),
        ("greeter/3", "unscored"),
    ];
    let expected = expected.map(|(id, status)| (id.to_owned(), status.to_owned()));
    assert_eq!(statuses(&run), expected, "each has its own skill, and none another's");
    let report = run.stdout_report();
    assert_eq!(report.case_of("ferry/1").0["skill"], "ferry");
    let skills = report.0["skills"].as_array().unwrap();
    let counted: Vec<_> =
        skills.iter().map(|one| (one["skill"].as_str().unwrap(), &one["passed"])).collect();
    assert_eq!(counted, [("bare", &0.into()), ("ferry", &1.into()), ("greeter", &2.into())]);
    // What is refused is said and written down.
    let mut run = run;
    for (file, why) in [
        ("skills/broken/evals/evals.json", "nothing of it is run"),
        ("skills/ferry/evals/evals.json", "case 2 needs the file `gone.txt`"),
        ("skills/bare/evals/evals.json", "there is no SKILL.md around it"),
    ] {
        let in_report = |line: &Value| {
            line.as_str().is_some_and(|line| line.starts_with(file) && line.contains(why))
        };
        assert!(report.0["warnings"].as_array().unwrap().iter().any(in_report), "{why}");
        run = run.says(why);
    }
    let markdown = run.markdown();
    assert!(markdown.contains("| ferry | 1 | 1 | 0 | 0 | 100 % |"), "{markdown}");
    assert!(markdown.contains("nothing of it is run"), "{markdown}");
    let text = report.to_string();
    assert!(!text.contains("SAW skills/greeter/evals"), "the answer keys are out of reach");
}

#[test]
fn a_folder_of_skills_is_replayed_with_its_skills() {
    let workspace = folder_of_skills();
    let first = workspace.clone().args(["--suite", "skills", "--format=json"]).run().exit(1);
    let run_id = first.stdout_report().run_id();
    let replay = || workspace.clone().args(["compare", "--replay", &run_id, "--json"]).run();
    let replayed = replay().exit(0);
    let compared: Value = serde_json::from_str(&replayed.stdout).unwrap();
    let second = compared["b"]["run_id"].as_str().unwrap();
    let second = replayed.read(&format!("reports/selftest/{second}.json"));
    let second: Value = serde_json::from_str(&second).unwrap();
    let found = second["cases"].as_array().unwrap().iter().map(|case| {
        let text = |key: &str| case[key].as_str().unwrap().to_owned();
        (text("id"), text("status"))
    });
    assert_eq!(found.collect::<Vec<_>>(), statuses(&first));
    // Another folder by that name holds other cases.
    let case = r#"[{"id": "a", "prompt": "Go", "expectations": ["The answer contains \"Ahoy\""]}]"#;
    std::fs::write(workspace.path("skills/bare/evals/evals.json"), case).unwrap();
    let _ = replay().exit(2).stderr_contains("holds other cases now");
}

#[test]
fn what_did_not_pass_is_run_again_with_its_skill_however_often() {
    let workspace = folder_of_skills();
    let _ = workspace.clone().args(["--suite", "skills"]).run().exit(1);
    for _ in 0..2 {
        let again = workspace.clone().args(["--rerun-failed", "--format=json"]).run().exit(1);
        let expected = [("bare/a", "failed"), ("greeter/3", "unscored")];
        let expected = expected.map(|(id, status)| (id.to_owned(), status.to_owned()));
        assert_eq!(statuses(&again), expected);
        assert_eq!(again.stdout_report().case_of("greeter/3").0["skill"], "greeter");
    }
}

#[test]
fn the_cases_of_a_folder_can_be_chosen_frozen_and_shown() {
    let workspace = folder_of_skills();
    let run = workspace
        .clone()
        .args(["--suite", "skills", "--scenarios", "ferry/1,greeter/1"])
        .run()
        .exit(0);
    assert!(run.stdout.contains("By skill\nferry: 1 of 1 passed\n"), "{}", run.stdout);
    let _ = workspace
        .clone()
        .args(["suite", "freeze", "latest", "--output", "frozen.yaml"])
        .run()
        .exit(0);
    let checked = workspace.args(["suite", "check", "frozen.yaml", "-v"]).run().exit(0);
    assert!(checked.stdout.contains("case ferry/1"), "{}", checked.stdout);
}

#[test]
fn a_folder_without_cases_is_refused() {
    let workspace = folder_of_skills().file("empty/README.md", "nothing");
    let run = workspace.clone().args(["--suite", "empty"]).run().exit(2);
    let _ = run
        .one_error(&["there is no evals.json below empty"])
        .stderr_contains("hint: name a folder of skills");
    let run = workspace.clone().args(["--suite", "skills/broken"]).run().exit(2);
    let _ = run.stderr_contains("there is no case that can be run");
    for arguments in [
        vec!["improve", "skills", "experiment", "--suite", "skills"],
        vec!["--suite", "skills", "--skill-creator", "it"],
    ] {
        let run = workspace.clone().args(arguments).run().exit(2);
        let _ = run.stderr_contains("evals.json");
    }
}

const TRIGGERS: &str = "skills/ferry/evals/trigger-evals.json";

/// Loads the skill where the request speaks of ferries or, by mistake, of boats; never for "quay".
const CHOOSING_AGENT: &str = r#"
import json, os, sys
task = json.loads(sys.stdin.readline())
prompt = task["prompt"]
skill = ".claude/skills/ferry"
there = sorted(os.listdir(skill)) if os.path.isdir(skill) else None
told = "SELFTEST_SKILL_FILE" in os.environ
calls = []
if "ferry" in prompt:
    calls = [{"name": "Skill", "arguments": {"skill": "ferry"}}]
if "boat" in prompt:
    calls = [{"name": "Read", "arguments": {"file_path": os.path.abspath(skill + "/SKILL.md")}}]
answer = {"type": "result", "status": "AWAITING_RESPONSE" if "?" in prompt else "COMPLETE",
          "output": f"{there} {told}"}
if "silent" not in sys.argv:
    answer["tool_calls"] = calls
print(json.dumps(answer), flush=True)
"#;

fn triggers(text: &str) -> Workspace {
    workspace(CASES, "copy")
        .file("agent.py", CHOOSING_AGENT)
        .file("skills/ferry/SKILL.md", "---\nname: ferry\n---\nTimes of ferries.\n")
        .file("skills/ferry/scripts/times.py", "print(7)")
        .file(TRIGGERS, text)
}

#[test]
fn queries_measure_whether_the_skill_is_loaded() {
    let shapes = [
        r#"[{"query": "When is the ferry?", "should_trigger": true},
            {"query": "When does it leave the quay", "should_trigger": true},
            {"query": "Bake a cake", "should_trigger": false},
            {"query": "Paint a boat", "should_trigger": false}]"#,
        r#"{"queries": [{"query": "When is the ferry?", "should_trigger": true},
            {"query": "When does it leave the quay", "should_trigger": true},
            {"query": "Bake a cake", "should_trigger": false},
            {"query": "Paint a boat", "should_trigger": false}]}"#,
        r#"{"should_trigger": ["When is the ferry?", "When does it leave the quay"],
            "should_not_trigger": ["Bake a cake", "Paint a boat"]}"#,
    ];
    for shape in shapes {
        let run = triggers(shape).args(["--suite", TRIGGERS, "--format=json"]).run().exit(1);
        let expected = ["passed", "failed", "passed", "failed"].map(ToOwned::to_owned);
        let found: Vec<String> = statuses(&run).into_iter().map(|(_, status)| status).collect();
        assert_eq!(found, expected, "{}", run.stderr);
        let report = run.stdout_report();
        let loading = &report.0["loading"];
        let counts = json!({"loaded": 1, "not_loaded": 1, "unknown": 0});
        assert_eq!((&loading["should_load"], &loading["should_not_load"]), (&counts, &counts));
        assert_eq!(loading["precision"]["share"], 0.5);
        assert_eq!(loading["recall"]["count"], 1);
        assert!(loading["recall"]["interval"]["low"].as_f64().unwrap() < 0.1, "{loading}");
        assert_eq!(report.0["models"]["judge"], "none");
        let reason = report.case_of("trigger-4").reason().to_owned();
        assert!(
            reason.contains("loads the skill `ferry` with `Read`, which is forbidden"),
            "{reason}"
        );
        // The skill lies where agents look, without its cases, and the prompt does not mention it.
        let output = &report.case_of("trigger-1").0["output"];
        assert_eq!(output, "['SKILL.md', 'scripts'] False");
        assert!(
            run.markdown().contains("- Loading of skills: precision 50 % (1 of 2"),
            "{}",
            run.markdown()
        );
    }
}

#[test]
fn an_agent_that_tells_no_calls_is_never_passed() {
    let config = |extra: &str| {
        let python = std::process::Command::new("sh").args(["-c", "command -v python3"]).output();
        let python = String::from_utf8(python.unwrap().stdout).unwrap();
        let python = python.trim();
        format!(
            "version: 1\nsut: {{ command: {{ run: [\"{python}\", agent.py, silent], {extra} }} }}\n"
        )
    };
    let queries = r#"[{"query": "When is the ferry?", "should_trigger": true},
                      {"query": "Bake a cake", "should_trigger": false}]"#;
    for extra in ["work_folder: copy", "work_folder: project"] {
        let run = triggers(queries).config(config(extra)).args(["--suite", TRIGGERS]).run().exit(3);
        let run = run.says("trigger-1: undecided");
        assert!(run.stdout.contains("precision unknown (of no request)"), "{}", run.stdout);
        assert!(
            run.stdout.contains("1 request that should load: 0 loaded, 0 not loaded, 1 not known")
        );
        let warned = run.stderr.contains("sut.command.work_folder: copy");
        assert_eq!(warned, extra.ends_with("project"), "{}", run.stderr);
    }
    let run = triggers(queries)
        .args(["improve", "skills", "experiment", "--suite", TRIGGERS])
        .run()
        .exit(2);
    let _ = run.stderr_contains("only asks whether a skill is loaded");
}

/// Says what it finds, and what was said to it before.
const LISTENING_AGENT: &str = r#"
import json, os, sys
said = []
for line in sys.stdin:
    message = json.loads(line)
    said.append(message.get("prompt") or message.get("reply"))
    found = open("ready.txt").read().strip() if os.path.exists("ready.txt") else "nothing"
    open("answer.txt", "w").write(found)
    status = "AWAITING_RESPONSE" if said[-1].endswith("?") else "COMPLETE"
    print(json.dumps({"type": "result", "status": status, "tool_calls": [],
                      "output": f"found {found}; heard {' | '.join(said)}"}), flush=True)
    if said[-1] == "leave":
        break
"#;

const SHELL_CASES: &str = r#"{"skill_name": "greeter", "evals": [
    {"id": "made", "prompt": "Look", "setup": "echo set-up > ready.txt; mkdir -p /tmp/../etc/x 2>/dev/null; true",
     "assertions": [{"type": "contains", "value": "found set-up"},
                    {"type": "cmd", "cmd": "cat answer.txt", "expect_exit": 0, "expect_substring": "set-up"},
                    {"only_changes": ["answer.txt"]}]},
    {"id": "torn", "prompt": "Look", "setup": "exit 3", "assertions": [{"type": "contains", "value": "found"}]},
    {"id": "plain", "prompt": "Look", "assertions": [{"type": "contains", "value": "found nothing"}]}
]}"#;

#[test]
fn shell_lines_of_strangers_are_run_only_by_name() {
    let workspace = workspace(SHELL_CASES, "copy").file("agent.py", LISTENING_AGENT);
    let run = workspace.clone().args(["--suite", EVALS, "--format=json"]).run().exit(3);
    let report = run.stdout_report();
    let found = statuses(&run);
    let found: Vec<_> = found.iter().map(|(id, status)| (id.as_str(), status.as_str())).collect();
    // The set-up was not run: no check may fail the case for that.
    assert_eq!(found, [("made", "unscored"), ("torn", "unscored"), ("plain", "passed")]);
    let checks = report.case_of("made").0["checks"].to_string();
    assert!(checks.contains("\"undecided\""), "{checks}");
    let reason = report.case_of("torn").reason().to_owned();
    assert!(reason.contains("set-up `exit 3`"), "{reason}");
    assert!(reason.contains("run only with --allow-commands greeter"), "{reason}");

    let allowed = |name: &str| {
        let arguments = ["--suite", EVALS, "--allow-commands", name, "--format=json"];
        workspace.clone().args(arguments).run()
    };
    let run = allowed("greeter").exit(3);
    let found = statuses(&run);
    let found: Vec<_> = found.iter().map(|(id, status)| (id.as_str(), status.as_str())).collect();
    assert_eq!(
        found,
        [("made", "passed"), ("torn", "unscored"), ("plain", "passed")],
        "{}",
        run.stdout
    );
    let report = run.stdout_report();
    let notes = report.case_of("made").notes().join("\n");
    assert!(notes.contains("was run in the sandbox"), "{notes}");
    // What a set-up that fails leaves behind is no ground to ask an agent on.
    assert!(
        report.case_of("torn").steps().is_empty() && report.case_of("torn").reason().contains('3')
    );
    assert_eq!(report.0["suite"]["allowed_commands"], json!(["greeter"]));
    let markdown = run.read(&format!("docs/reports/selftest/{}.md", report.run_id()));
    assert!(markdown.contains("--allow-commands greeter"), "{markdown}");
    assert!(!run.stderr.contains("of `setup` is not run"), "{}", run.stderr);

    // A report allows nothing: who replays it allows the lines anew.
    let run_id = report.run_id();
    let replay = |more: &[&str]| {
        let arguments = [&["compare", "--replay", &*run_id, "--json"], more].concat();
        workspace.clone().args(arguments).run()
    };
    let _ = replay(&[]).exit(2).stderr_contains("again: --allow-commands greeter");
    let replayed = replay(&["--allow-commands", "greeter"]).exit(0);
    assert!(replayed.stdout.contains("\"made\""), "{}", replayed.stdout);

    // One case alone.
    let run = allowed("made").exit(3);
    assert_eq!(run.stdout_report().case_of("made").status(), "passed");
    let _ = run.stderr_contains("the shell line `exit 3` of `setup` is not run");
    let run = allowed("plain").exit(2);
    let _ = run
        .stderr_contains("has no skill or case of that name")
        .stderr_contains("hint: these have some: greeter, made, torn");
    let run = workspace.clone().args(["--allow-commands", "greeter"]).run().exit(2);
    let _ = run.stderr_contains("--allow-commands greeter needs --suite");
}

#[test]
fn a_set_up_needs_a_folder() {
    let workspace = workspace(SHELL_CASES, "project").file("agent.py", LISTENING_AGENT);
    let run = workspace.args(["--suite", EVALS, "--allow-commands", "greeter"]).run().exit(2);
    let _ = run
        .one_error(&["case made has a set-up", "has no folder of its own"])
        .stderr_contains("hint: set `sut.command.work_folder: copy`");
}

#[test]
fn cases_of_several_messages_are_one_session() {
    let cases = r#"{"evals": [
        {"id": "three", "query_flow": ["First?", "Second", "Third"],
         "expectations": ["The answer contains \"heard First? | Second | Third\""]},
        {"id": "asks", "query_flow": ["First", "Second?"], "expectations": ["The answer contains \"Second\""]},
        {"id": "left", "messages": [{"role": "user", "content": "leave"}, {"role": "user", "content": "Back"}],
         "expectations": ["The answer contains \"Back\""]}
    ]}"#;
    let workspace = workspace(cases, "project").file("agent.py", LISTENING_AGENT);
    let agent = LISTENING_AGENT.replace("    open(\"answer.txt\", \"w\").write(found)\n", "");
    let workspace = workspace.file("agent.py", agent);
    let run = workspace.clone().args(["--suite", EVALS, "--format=json"]).run().exit(1);
    let report = run.stdout_report();
    let three = report.case_of("three");
    assert_eq!(three.status(), "passed", "{report}");
    let inputs: Vec<&Value> = three.steps().iter().map(|step| &step["input"]).collect();
    assert_eq!(inputs, ["First?", "Second", "Third"]);
    // How the task stands counts at the end alone.
    assert_eq!(three.steps()[0]["expected_status"], "AWAITING_RESPONSE");
    let asks = report.case_of("asks");
    assert!(asks.reason().contains("expected COMPLETE, got AWAITING_RESPONSE"), "{asks}");
    let left = report.case_of("left");
    assert_eq!(left.status(), "sut_error");
    assert!(left.notes().iter().any(|note| note.contains("has to read on")), "{left}");
    // A frozen conversation is the same again.
    let _ = workspace
        .clone()
        .args(["suite", "freeze", "latest", "--output", "frozen.yaml"])
        .run()
        .exit(0);
    let again = workspace
        .args(["--suite", "frozen.yaml", "--scenarios", "three", "--format=json"])
        .run()
        .exit(0);
    assert_eq!(again.stdout_report().case_of("three").steps().len(), 3);
}
