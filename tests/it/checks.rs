//! Checks: what is demanded of an answer, of tools and of files, decided without a model.

use serde_json::Value;

use crate::model_server::{ModelServer, Role};
use crate::run::Run;
use crate::workspace::{CLEAR, NOBODY, OPENAI, Workspace, config};

const SUITE: &str = "config/suites/checks.yaml";

/// Does what its prompt says, in the folder that it works in.
const AGENT: &str = r#"
import json, os, sys
task = json.loads(sys.stdin.readline())
prompt, tools = task["prompt"], [{"name": "Read", "arguments": {"path": "README.md"}}]
output = "It listens on port 80.\nIt reads README.md.\nIt is small."
if "wrong file" in prompt:
    open("src/b.rs", "w").write("changed")
elif "right file" in prompt:
    open("src/a.rs", "w").write("fn main() { ready(); }")
elif "delete" in prompt:
    os.remove("src/b.rs")
elif "shell" in prompt:
    tools.append({"name": "Bash", "arguments": {"command": "ls"}})
elif "four lines" in prompt:
    output += "\nAnd a fourth line."
elif "silent" in prompt:
    tools = None
answer = {"type": "result", "status": "COMPLETE", "output": output, "tokens": 120}
if tools is not None:
    answer["tool_calls"] = tools
print(json.dumps(answer), flush=True)
"#;

fn case(id: &str, prompt: &str, checks: &str) -> String {
    format!(
        "  - scenario: {{ id: {id}, description: d, expected_status: COMPLETE }}\n    \
         prompt: {prompt}\n    checks:\n{checks}"
    )
}

/// Runs a suite of checks on the agent, with no model server anywhere.
fn run(cases: &str) -> Run {
    let python = std::process::Command::new("sh").args(["-c", "command -v python3"]).output();
    let python = String::from_utf8(python.unwrap().stdout).unwrap();
    let sut = format!(
        "sut: {{ command: {{ run: [\"{}\", agent.py], work_folder: copy }} }}\n",
        python.trim()
    );
    Workspace::new()
        .config(format!("version: 1\n{sut}"))
        .file("agent.py", AGENT)
        .file("src/a.rs", "fn main() {}")
        .file("src/b.rs", "// leave alone")
        .file(SUITE, format!("version: 1\ncases:\n{cases}"))
        .env("OLLAMA_HOST", NOBODY)
        .args(["--suite", SUITE, "--format=json"])
        .run()
}

#[test]
fn checks_decide_without_a_model() {
    let cases = [
        case(
            "good",
            "answer",
            "      - contains: port 80\n      - lines: 3\n      - tool_called: Read\n      - only_changes: [docs/**]\n",
        ),
        case("lines", "in four lines", "      - lines: 3\n"),
        case("tool", "use the shell", "      - tool_not_called: Bash\n"),
        case("files", "edit the wrong file", "      - file_unchanged: src/b.rs\n"),
        case("only", "edit the wrong file", "      - only_changes: [src/a.rs]\n"),
        case(
            "right",
            "edit the right file",
            "      - file_changed: src/a.rs\n      - file_contains: { path: src/a.rs, text: ready }\n      - tokens: { max: 200 }\n",
        ),
        case("gone", "delete it", "      - not: { file_deleted: src/b.rs }\n"),
        case("unknown", "be silent", "      - tool_called: Read\n"),
    ];
    let run = run(&cases.concat()).exit(1);
    let said = reasons(&run);
    let _ = run.snapshot_of("checks_reasons", &said);
}

fn reasons(run: &Run) -> String {
    let report = run.stdout_report();
    assert_eq!(report.0["models"]["judge"], "none");
    let cases = report.cases();
    let lines = cases.iter().map(|case| {
        format!("{}: {}: {}\n", case.id(), case.status(), case.0["reason"].as_str().unwrap_or("-"))
    });
    lines.collect()
}

#[test]
fn a_command_decides_in_the_copy_and_in_the_sandbox() {
    let cases = [
        case(
            "holds",
            "edit the right file",
            "      - command: { run: [sh, -c, \"grep -q 'port 80' && grep -q ready src/a.rs && echo fine\"], first_line: fine }\n",
        ),
        case("fails", "answer", "      - command: { run: [sh, -c, \"echo too long; exit 3\"] }\n"),
        case(
            "hangs",
            "answer",
            "      - command: { run: [sleep, \"60\"], timeout_seconds: 0.2 }\n",
        ),
        case(
            "writes",
            "answer",
            "      - command: { run: [sh, -c, \"yes\"], timeout_seconds: 60 }\n",
        ),
        case("absent", "answer", "      - command: { run: [no-such-program-here] }\n"),
        case(
            "knows",
            "answer",
            "      - command: { run: [sh, -c, \"echo $SELFTEST_CASE\"], prints: '\"id\":\"knows\"' }\n",
        ),
        case(
            "walled",
            "answer",
            "      - command: { run: [sh, -c, \"cat config/suites/checks.yaml || echo denied >&2; test ! -e config/suites/checks.yaml\"] }\n",
        ),
    ];
    let run = run(&cases.concat()).exit(1);
    let said = reasons(&run);
    let project = run.read("src/a.rs");
    assert_eq!(project, "fn main() {}", "the project itself is untouched");
    let _ = run.snapshot_of("checks_commands", &said);
}

#[test]
fn a_judge_is_not_asked_where_a_check_has_failed() {
    let server = ModelServer::start();
    let suite = |check: &str| {
        format!(
            "version: 1\ncases:\n  - scenario: {{ id: a, description: d, expected_status: COMPLETE }}\n    \
             prompt: Summarise it\n    hints: names the port\n    checks: [{check}]\n"
        )
    };
    let run = |check: &str| {
        Workspace::new()
            .config(config(OPENAI, CLEAR))
            .server(&server)
            .file(SUITE, suite(check))
            .args(["--suite", SUITE, "--format=json", "--exit-zero"])
            .run()
            .exit(0)
    };
    let failed = run("contains: no answer says this").stdout_report();
    assert_eq!(failed.case().status(), "failed");
    assert!(server.calls(Role::Judge).is_empty());
    let held = run("not_contains: no answer says this").stdout_report();
    assert_eq!(held.case().status(), "passed");
    assert!(!server.calls(Role::Judge).is_empty());
    let checks: &Value = &held.case().0["checks"];
    assert_eq!(checks[0]["outcome"], "held", "{checks}");
}

#[test]
fn a_case_that_demands_nothing_is_refused() {
    let case =
        "  - scenario: { id: a, description: d, expected_status: COMPLETE }\n    prompt: p\n";
    let run = run(case).exit(2);
    let _ = run
        .one_error(&["this case demands nothing"])
        .stderr_contains("config/suites/checks.yaml:3:5")
        .stderr_contains("hint: say in `expect`");
}

#[test]
fn the_report_for_people_shows_the_checks() {
    let run = run(&case("lines", "in four lines", "      - lines: 3\n      - contains: port 80\n"))
        .exit(1);
    let page = run.markdown();
    let start = page.find("| Outcome | Check").unwrap();
    let table: Vec<&str> = page[start..].lines().take(4).collect();
    let _ = run.snapshot_of("checks_markdown", &table.join("\n"));
}

#[test]
fn counts_that_a_request_states_are_checked() {
    let run = run(&format!(
        "{}{}",
        case("kept", "Tell me about it in exactly three lines.", "      - contains: port 80\n"),
        case(
            "missed",
            "Say four lines or so. Answer in exactly two lines.",
            "      - contains: port 80\n"
        ),
    ));
    let run = run.exit(1);
    let said = reasons(&run);
    assert!(said.starts_with("kept: passed"), "{said}");
    let why = "“the request: Answer in exactly two lines (by rule)”: 4 lines, 2 expected";
    assert!(said.contains(why), "{said}");
}
