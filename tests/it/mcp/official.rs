//! The official Python client as a real peer. It is taken from the virtual environment that
//! `SELFTEST_TEST_VENV` names; without one the test is skipped.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::world::{GRADED, graded, run_once};
use crate::require::{self, Part};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp/client.py");

/// The Python that has the client.
fn python() -> Option<PathBuf> {
    let find = || {
        let python = PathBuf::from(std::env::var_os("SELFTEST_TEST_VENV")?).join("bin/python");
        let status = Command::new(&python).args(["-c", "import mcp"]).output().ok()?.status;
        status.success().then_some(python)
    };
    let why = "no $SELFTEST_TEST_VENV/bin/python that can `import mcp`; scripts/test installs it";
    require::part(Part::Venv, find().ok_or(why))
}

#[test]
fn the_official_client_understands_every_answer() {
    let Some(python) = python() else { return };
    let (workspace, run_id) = run_once(graded(), 2);
    let calls = json!([
        ["get_session_grade", { "session_id": GRADED }],
        ["list_recent_grades", { "limit": 2, "min_overall": 0.1 }],
        ["get_selftest_report", {}],
        ["get_session_grade", { "session_id": "nobody" }],
        ["list_recent_grades", { "limit": 1000 }],
        ["get_selftest_report", { "run_id": "selftest-19990101-0000-none" }],
        ["grade_session", { "session_id": "nobody" }],
        ["get_session_grade", {}],
        ["burn_everything", {}],
    ]);
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let wrapper =
            [python.to_str().unwrap(), SCRIPT, mode, &calls.to_string()].map(String::from);
        let run = workspace.clone().args(["serve", "--mcp"]).within(wrapper).run().exit(0);
        let said: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!((&said["version"], &said["server"]), (&json!(version), &json!("selftest")));
        assert!(said["instructions"].as_str().unwrap().contains("ranking"));
        check_tools(said["tools"].as_array().unwrap());
        let answers = said["answers"].as_array().unwrap();
        let good = |number: usize| {
            assert_eq!(answers[number]["isError"], false, "{mode} {number}: {answers:#?}");
            &answers[number]["structuredContent"]
        };
        assert_eq!(good(0)["average"]["overall"]["mean"], 0.7);
        assert_eq!(good(1)["grades"].as_array().unwrap().len(), 2);
        assert_eq!(good(2)["run_id"], run_id.as_str());
        for answer in &answers[3..8] {
            assert_eq!(answer["isError"], true, "{mode}: {answer:#}");
            assert!(answer["content"][0]["text"].as_str().unwrap().len() > 20, "{answer:#}");
        }
        assert_eq!(answers[8]["code"], -32602, "{mode}: {}", answers[8]);
    }
}

/// Both schemas of each tool are schemas, and every argument is described.
fn check_tools(tools: &[Value]) {
    assert_eq!(tools.len(), 7);
    for tool in tools {
        for schema in [&tool["inputSchema"], &tool["outputSchema"]] {
            assert_eq!(schema["type"], "object", "{tool:#}");
            jsonschema::meta::validate(schema).unwrap_or_else(|error| panic!("{error}: {tool:#}"));
        }
        for (name, argument) in tool["inputSchema"]["properties"].as_object().unwrap() {
            assert!(argument["description"].is_string(), "{name} of {tool:#}");
        }
    }
}
