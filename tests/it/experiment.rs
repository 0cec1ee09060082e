//! `skills experiment`: the same cases with and without a skill, in random order, judged blind.

use serde_json::{Value, json};

use crate::model_server::{Call, ModelServer, Role, Script, verdict};
use crate::workspace::{CLEAR, NOBODY, OPENAI, Workspace, config, scenarios};

const SUITE: &str = "config/suites/mine.yaml";
const SKILL: &str = ".claude/skills/brevity/SKILL.md";
/// Stands in the skill and nowhere else.
const MARK: &str = "Answer with the word axolotl.";

fn has_skill(call: &Call) -> bool {
    call.text().contains(MARK)
}

/// A system under test that does what the skill says, and a judge that likes it so much.
fn obedient(liked: f64, other: f64) -> Script {
    ModelServer::script()
        .sut(|call| {
            let output = if has_skill(call) { "axolotl" } else { "a newt" };
            json!({ "status": "COMPLETE", "output": output })
        })
        .judge(move |call| {
            verdict(call, if call.text().contains("axolotl") { liked } else { other })
        })
}

/// A project with a suite of these scenarios and a skill.
fn project(scenarios: &str) -> Workspace {
    let server = ModelServer::start();
    let workspace = Workspace::new().config(config(OPENAI, scenarios)).server(&server);
    let _ = workspace.run().exit(0);
    let _ = workspace.clone().args(["suite", "freeze", "latest", "--output", SUITE]).run().exit(0);
    workspace.judged_only(SUITE).file(SKILL, format!("---\nname: brevity\n---\n{MARK}\n"))
}

fn experiment(workspace: &Workspace, arguments: &[&str]) -> Workspace {
    let fixed = ["improve", "skills", "experiment", "brevity", "--suite", SUITE];
    workspace.clone().args(fixed.iter().chain(arguments))
}

#[test]
fn a_skill_that_helps_is_found_to_help() {
    let server = obedient(0.9, 0.5).start();
    let workspace = project(&scenarios(8)).server(&server);
    let arguments = ["--repeats=2", "--seed=7", "--concurrency=1", "--json", "--fail-if-worse"];
    let run = experiment(&workspace, &arguments).run().exit(0);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(found["conclusion"], "helps", "{found:#}");
    assert_eq!(found["trials"], json!({ "control": 16, "treatment": 16 }));
    assert_eq!(found["score"]["wins"], 8);
    assert_eq!(found["seed"], 7);
    assert!(server.calls(Role::Generator).is_empty());

    // The order is the printed one, and neither arm is always first.
    let order: Vec<bool> = found["order"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| trial["arm"] == "treatment")
        .collect();
    let played: Vec<bool> = server.calls(Role::Sut).iter().map(has_skill).collect();
    assert_eq!(played, order);
    let firsts = order.chunks(2).filter(|pair| pair[0]).count();
    assert_eq!(firsts, 8, "of 16 pairs: {order:?}");

    // The judge does not see the arm, and samples alike in both.
    for call in server.calls(Role::Judge) {
        for word in [MARK, "skill", "brevity", "treatment", "control"] {
            assert!(!call.text().contains(word), "`{word}` in {}", call.text());
        }
    }
    let seeds = |role: Role, with: bool| {
        let of_arm = |call: &&Call| match role {
            Role::Sut => has_skill(call) == with,
            _ => call.text().contains("axolotl") == with,
        };
        let calls = server.calls(role);
        let mut seeds: Vec<u64> =
            calls.iter().filter(of_arm).map(|call| call.body["seed"].as_u64().unwrap()).collect();
        seeds.sort_unstable();
        seeds
    };
    for role in [Role::Sut, Role::Judge] {
        assert_eq!(seeds(role, true), seeds(role, false), "{role:?}");
    }

    // Each arm is a run with a report, and `compare` finds the same.
    let ids = ["control", "treatment"].map(|arm| found["run_ids"][arm].as_str().unwrap());
    let compare = ["compare", ids[0], ids[1], "--json"];
    let compared = workspace.clone().args(compare).run().exit(0).stdout;
    let compared: Value = serde_json::from_str(&compared).unwrap();
    for part in ["conclusion", "score", "pass_rate", "tokens", "cases"] {
        assert_eq!(compared[part], found[part], "{part}");
    }
    let report: Value =
        serde_json::from_str(&run.read(&format!("reports/selftest/{}.json", ids[1]))).unwrap();
    assert_eq!(report["experiment"]["arm"], "treatment");
    assert_eq!(report["experiment"]["other_run_id"], ids[0]);
    assert_eq!(report["experiment"]["skill_digest"], found["skill_digest"]);
    assert_eq!(report["cases"][0]["output"], "axolotl");
    assert!(!report["cases"][0]["steps"][0]["reply"]["call"]["raw_reply"].is_null());
    let page = run.read(&format!("docs/reports/selftest/{}.md", ids[0]));
    assert!(page.contains("Experiment: without the skill brevity"), "{page}");
}

#[test]
fn a_skill_that_harms_is_found_to_harm() {
    let server = obedient(0.3, 0.9).start();
    let workspace = project(&scenarios(7)).server(&server);
    let run = experiment(&workspace, &["--repeats=1", "--fail-if-worse"]).run().exit(1);
    let _ = run
        .stdout_contains("The system with the skill is worse than the system without it")
        .stdout_contains("skill brevity (digest")
        .stderr_contains("with: [")
        .stderr_contains("without: [");
}

#[test]
fn a_skill_that_does_nothing_is_not_enough_evidence() {
    let server = obedient(0.8, 0.8).start();
    let workspace = project(&scenarios(7)).server(&server);
    let run = experiment(&workspace, &["--repeats=2", "--fail-if-worse"]).run().exit(0);
    run.stdout_contains("Not enough evidence: none of 7 cases differs.");
}

#[test]
fn the_arm_without_the_skill_cannot_read_it() {
    // Where project files are shown to the assistant.
    let server = obedient(0.9, 0.5).start();
    let workspace =
        project(CLEAR).file("README.md", "A project.").file("house/SKILL.md", MARK).server(&server);
    let arguments = ["improve", "skills", "experiment", "house", "--suite", SUITE, "--repeats=1"];
    let _ = workspace.args(arguments).run().exit(0);
    let calls = server.calls(Role::Sut);
    assert!(calls.iter().all(|call| call.text().contains("A project.")));
    let with: Vec<&Call> = calls.iter().filter(|call| has_skill(call)).collect();
    assert_eq!((with.len(), calls.len()), (1, 2));
    assert_eq!(with[0].text().matches(MARK).count(), 1, "{}", with[0].text());
}

/// Says what it finds of a skill: by the variable, and where it lies in the project.
const PROGRAM: &str = r#"
import json, os, sys
sys.stdin.readline()
def read(path):
    try:
        return open(path).read()
    except OSError:
        return "nothing"
told = os.environ.get("SELFTEST_SKILL_FILE")
output = f"told: {read(told) if told else 'nothing'}; found: {read(sys.argv[1])}"
print(json.dumps({"type": "result", "status": "COMPLETE", "output": output}))
"#;

#[cfg(target_os = "linux")]
#[test]
fn a_program_gets_the_skill_as_a_file() {
    let server = obedient(0.9, 0.5).start();
    let yaml = format!(
        "version: 1\njudge: {{ model: \"{OPENAI}\" }}\nsut:\n  command:\n    \
         run: [python3, program.py, {SKILL}]\nscenarios:\n{CLEAR}"
    );
    let workspace = project(CLEAR).config(yaml).file("program.py", PROGRAM).server(&server);
    let run = experiment(&workspace, &["--repeats=1", "--json"]).run().exit(0);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    let output = |arm: &str| {
        let id = found["run_ids"][arm].as_str().unwrap();
        let report = run.read(&format!("reports/selftest/{id}.json"));
        let report: Value = serde_json::from_str(&report).unwrap();
        report["cases"][0]["output"].as_str().unwrap().to_owned()
    };
    let (with, without) = (output("treatment"), output("control"));
    assert!(with.starts_with("told: ---") && with.contains(MARK), "{with}");
    assert!(without.starts_with("told: nothing"), "{without}");
    if selftest_sandbox::landlock_abi() > 0 {
        assert!(with.ends_with("found: nothing"), "{with}");
        assert!(without.ends_with("found: nothing"), "{without}");
    }
}

/// An agent in a folder of its own, a skill of several files, and eight cases that need it.
fn agent_project(mode: &str, work_folder: &str) -> Workspace {
    let case = |number: u32| {
        format!(
            "  - scenario: {{ id: when-{number}, description: d, expected_status: COMPLETE }}\n    \
             prompt: When does ferry {number} leave?\n    checks: [{{ contains: \"10:40\" }}]\n"
        )
    };
    let cases: String = (1..=8).map(case).collect();
    Workspace::new()
        .config(format!(
            "version: 1\nsut:\n  acp:\n    run: [python3, acp_agent.py, {mode}]\n    \
             work_folder: {work_folder}\n"
        ))
        .file("acp_agent.py", include_str!("fixtures/acp_agent.py"))
        .file(SUITE, format!("version: 1\ncases:\n{cases}"))
        .file(SKILL, "---\nname: brevity\n---\nRead references/times.md.\n")
        .file(".claude/skills/brevity/references/times.md", "10:40 from the harbour\n")
        .file(".claude/skills/brevity/evals/evals.json", "{\"key\": \"the answer key\"}")
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("OLLAMA_HOST", NOBODY)
}

#[cfg(target_os = "linux")]
#[test]
fn an_agent_gets_the_whole_skill_in_one_arm_and_nothing_of_it_in_the_other() {
    let workspace = agent_project("skills", "copy");
    let run = experiment(&workspace, &["--repeats=2", "--json"]).run().exit(0);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(found["conclusion"], "helps", "{found:#}");
    assert_eq!(found["treatment"]["trials"], 16);
    assert_eq!(found["treatment"]["leaked"], 0);
    let offered = found["treatment"]["offered"].as_str().unwrap();
    assert_eq!(offered, "in .claude/skills/brevity and .agents/skills/brevity");
    let used = found["treatment"]["used"].as_u64().unwrap();
    let unknown = found["treatment"]["unknown"].as_u64().unwrap();
    assert_eq!(used + unknown, 16, "{found:#}");
    let output = |arm: &str| {
        let id = found["run_ids"][arm].as_str().unwrap();
        let report = run.read(&format!("reports/selftest/{id}.json"));
        let report: Value = serde_json::from_str(&report).unwrap();
        report["cases"][0]["output"].as_str().unwrap().to_owned()
    };
    let with = output("treatment");
    for folder in [".claude", ".agents"] {
        assert!(with.contains(&format!("{folder}/skills/brevity/SKILL.md: ---")), "{with}");
        let beside = format!("{folder}/skills/brevity/references/times.md: 10:40");
        assert!(with.contains(&beside), "{with}");
    }
    assert!(!with.contains("evals"), "its cases are an answer key: {with}");
    assert_eq!(output("control"), "no skill");
}

#[cfg(target_os = "linux")]
#[test]
fn checks_for_loading_are_no_part_of_an_experiment() {
    let case = |id: &str, checks: &str| {
        format!(
            "  - scenario: {{ id: {id}, description: d, expected_status: COMPLETE }}\n    \
             prompt: When does the ferry leave?\n    checks: [{checks}]\n"
        )
    };
    let cases = [
        case("both", "{ skill_loaded: brevity }, { contains: \"10:40\" }"),
        case("loading", "{ skill_loaded: brevity }, { not: { skill_loaded: other } }"),
    ];
    let workspace = agent_project("skills", "copy")
        .file(SUITE, format!("version: 1\ncases:\n{}", cases.concat()));
    let run = experiment(&workspace, &["--repeats=1", "--json"]).run().exit(0);
    let run = run.stderr_contains("1 prompt about loading the skill left out");
    let run = run.stderr_contains("1 check about loading the skill left out");
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(found["cases"].as_array().unwrap().len(), 1, "{found:#}");
    assert_eq!(found["pass_rate"]["wins"], 1, "{found:#}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_agent_that_reads_no_skill_is_blocked_and_not_without_effect() {
    let workspace = agent_project("done", "copy");
    let run = experiment(&workspace, &["--repeats=1"]).run().exit(3);
    // On a file system without access times the reason is that nothing shows it.
    let run = run.stdout_contains("Blocked: ");
    let _ = run.stdout_contains("(it lay in .claude/skills/brevity and .agents/skills/brevity)");
}

#[test]
fn an_agent_in_the_project_itself_can_take_no_skill() {
    let workspace = agent_project("skills", "project");
    let run = experiment(&workspace, &[]).run().exit(5);
    let _ = run.one_error(&["no skill can be laid"]).stderr_contains("sut.acp.work_folder");
}

#[test]
fn a_server_must_have_a_place_for_the_skill() {
    let server = ModelServer::start();
    let yaml = format!(
        "version: 1\njudge: {{ model: \"{OPENAI}\" }}\nsut:\n  http:\n    \
         base_url: \"http://127.0.0.1:{}\"\nscenarios:\n{CLEAR}",
        server.port()
    );
    let workspace = project(CLEAR).config(yaml).server(&server);
    let run = experiment(&workspace, &[]).run().exit(5);
    let _ = run.one_error(&["sut.http.submit has no {skill}"]).stderr_contains("hint:");
}

#[test]
fn a_skill_that_is_not_there() {
    let server = ModelServer::start();
    let workspace = project(CLEAR).file("empty/SKILL.md", "\n").server(&server);
    for (skill, error) in [("absent", "there is no skill `absent`"), ("empty", "it is empty")] {
        let arguments = ["improve", "skills", "experiment", skill, "--suite", SUITE];
        let _ = workspace.clone().args(arguments).run().exit(2).one_error(&[error]);
    }
    assert!(server.all_calls().is_empty());
}
