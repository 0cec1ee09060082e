//! `selftest run --ci`: an agent that is made worse is blocked, one that is not changed is not.

use serde_json::Value;

use crate::github::{GitHub, TOKEN};
use crate::run::Run;
use crate::workspace::{NOBODY, Workspace};

pub(crate) const SUITE: &str = "config/suites/ports.yaml";
const REPORTS: &str = "reports/selftest/ci";

/// An agent that knows three ports.
pub(crate) const AGENT: &str = r#"
import json, sys
ports = {"web": 80, "mail": 25, "names": 53}
task = json.loads(sys.stdin.readline())
known = [f"{name} listens on port {port}." for name, port in ports.items() if name in task["prompt"]]
print(json.dumps({"type": "result", "status": "COMPLETE", "output": " ".join(known) or "Who knows?"}))
"#;

pub(crate) fn suite() -> String {
    let case = |(name, port): (&str, u32)| {
        format!(
            "  - scenario: {{ id: {name}, description: d, expected_status: COMPLETE }}\n    \
             prompt: On which port does {name} listen?\n    checks: [{{ contains: port {port} }}]\n"
        )
    };
    let cases: String = [("web", 80), ("mail", 25), ("names", 53)].map(case).concat();
    format!("version: 1\ncases:\n{cases}")
}

/// A project with the agent and no model anywhere.
pub(crate) fn project() -> Workspace {
    let python = std::process::Command::new("sh").args(["-c", "command -v python3"]).output();
    let python = String::from_utf8(python.unwrap().stdout).unwrap();
    let run = format!("[\"{}\", agent.py]", python.trim());
    Workspace::new()
        .config(format!("version: 1\nsut: {{ command: {{ run: {run} }} }}\n"))
        .file("agent.py", AGENT)
        .file(SUITE, suite())
        .env("OLLAMA_HOST", NOBODY)
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_REPOSITORY", "acme/agent")
        .env("GITHUB_REF", "refs/pull/7/merge")
        .env("GITHUB_SERVER_URL", "https://github.example")
        .env("GITHUB_RUN_ID", "4711")
}

fn ci(workspace: &Workspace) -> Run {
    let output = workspace.folder().join("output");
    workspace.clone().env("GITHUB_OUTPUT", output).args(["run", "--ci", "--suite", SUITE]).run()
}

fn outputs(workspace: &Workspace) -> String {
    std::fs::read_to_string(workspace.folder().join("output")).unwrap()
}

#[test]
fn a_worse_agent_is_blocked_with_a_comment_that_names_the_case() {
    let github = GitHub::start();
    let workspace = project();
    // Without a baseline every case has to pass; this run is accepted.
    let first = ci(&workspace).exit(0);
    let first = first.stderr_contains("GitHub Actions; gate absolute: no baseline config/");
    assert!(!first.stderr.contains('\u{1b}') && !first.stdout.contains('\u{1b}'));
    let _ = workspace.clone().args(["baseline", "accept"]).run().exit(0);

    // A pull request that does nothing.
    let same = ci(&workspace).exit(0).stderr_contains("gate no_regression: baseline config/");
    assert!(outputs(&workspace).ends_with(&format!("reports={REPORTS}\n")));
    assert!(outputs(&workspace).contains("pass-rate=1.0000\noutcome=passed\nrun-id=selftest-"));
    let comment = github.commenting(&workspace);
    let _ = comment.args(["report", "comment"]).run().exit(0).stderr_contains("comment written");
    assert!(github.comment(0).contains("## selftest: passed"), "{}", github.comment(0));
    assert!(github.comment(0).contains("0 regressions"));
    drop(same);

    // One that forgets a port.
    let worse = workspace.clone().file("agent.py", AGENT.replace("\"mail\": 25, ", ""));
    let run = ci(&worse).exit(1);
    let report: Value = serde_json::from_str(&run.read(&format!("{REPORTS}/report.json"))).unwrap();
    assert_eq!(report["gate"]["cases"][0]["change"], "regression");
    assert!(run.read(&format!("{REPORTS}/report.md")).contains("REGRESSION mail"));
    assert!(run.read(&format!("{REPORTS}/junit.xml")).contains("<testcase name=\"mail\""));
    assert!(run.read(&format!("{REPORTS}/report.html")).contains("<!doctype html>"));
    let run = run.stderr_contains("::error file=config/suites/ports.yaml,line=");
    let _ = github
        .commenting(&worse)
        .args(["report", "comment"])
        .run()
        .exit(0)
        .stderr_contains("updated");
    assert_eq!(github.comments(), 1, "the comment updates itself");
    let comment = github.comment(0);
    for part in ["## selftest: failed", "1 regression", "| mail | 0 of 3 |", "Who knows?"] {
        assert!(comment.contains(part), "no `{part}` in {comment}");
    }
    assert!(comment.contains("https://github.example/acme/agent/actions/runs/4711"), "{comment}");
    assert_eq!(comment, run.read(&format!("{REPORTS}/comment.md")));
    let _ = run.nowhere(TOKEN);
}

#[test]
fn a_job_is_told_of_a_run_that_could_not_begin() {
    let workspace = project();
    let output = workspace.folder().join("output");
    let workspace = workspace.env("GITHUB_OUTPUT", output);
    let run = |args: &[&str]| workspace.clone().args(["run", "--ci"].iter().chain(args)).run();
    let _ = run(&["--suite=absent.yaml"]).exit(2);
    assert!(outputs(&workspace).ends_with("pass-rate=\noutcome=error\n"));
    let _ = run(&["--suite", SUITE, "--shard=4/4"]).exit(4);
    assert!(outputs(&workspace).ends_with("pass-rate=\noutcome=nothing_ran\n"));
    // A share of the cases is held against the baseline of all of them.
    let _ = run(&["--suite", SUITE]).exit(0);
    let _ = workspace.clone().args(["baseline", "accept"]).run().exit(0);
    let shard = run(&["--suite", SUITE, "--shard=1/3"]).exit(0);
    let report: Value =
        serde_json::from_str(&shard.read(&format!("{REPORTS}/report.json"))).unwrap();
    assert_eq!(report["gate"]["compared"], 1);
    assert_eq!(report["gate"]["removed"], serde_json::json!([]));
}

#[test]
fn what_anybody_set_is_the_gate() {
    let workspace = project();
    let _ = ci(&workspace).exit(0);
    let _ = workspace.clone().args(["baseline", "accept"]).run().exit(0);
    let absolute = ["run", "--ci", "--suite", SUITE, "--gate=absolute"];
    let run = workspace.clone().args(absolute).run().exit(0);
    let _ = run.stderr_contains("gate absolute: flag, --gate");
    let run = workspace
        .clone()
        .env("SELFTEST_GATE", "both")
        .args(["run", "--ci", "--suite", SUITE])
        .run();
    let _ = run.exit(0).stderr_contains("gate both: environment, SELFTEST_GATE");
    for (name, shown) in
        [("GITLAB_CI", "GitLab CI"), ("BUILDKITE", "Buildkite"), ("JENKINS_URL", "Jenkins")]
    {
        let other = workspace.clone().env_remove("GITHUB_ACTIONS").env(name, "true");
        let run = other.args(["run", "--ci", "--suite", SUITE, "--scenarios=web"]).run().exit(0);
        let _ = run.stderr_contains(&format!("{shown}; gate"));
    }
}

#[test]
fn places_that_cannot_be_written() {
    let workspace = project().file("taken", "a file");
    let run =
        workspace.clone().args(["run", "--ci", "--suite", SUITE, "--output=taken"]).run().exit(5);
    let _ = run.one_error(&["cannot write", "taken: "]).stderr_contains("hint: name a folder");
    let run =
        workspace.env("GITHUB_OUTPUT", "/absent/output").args(["run", "--ci", "--suite", SUITE]);
    let _ = run.run().exit(5).one_error(&["GITHUB_OUTPUT /absent/output"]);
}
