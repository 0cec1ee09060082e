//! docs/gate-in-ci.md: its commands and recipes work.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::doc_blocks::compare_outputs;
use crate::workspace::files;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The contents of the fenced blocks of a language.
fn blocks(path: &str, language: &str) -> Vec<String> {
    let page = fs::read_to_string(root().join(path)).unwrap();
    let begin = format!("```{language}\n");
    let rest = page.split(&begin).skip(1);
    rest.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// A copy of the example, with this program on the path.
fn example() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let from = root().join("examples/gate");
    for file in files(&from) {
        let to = folder.path().join("project").join(file.strip_prefix(&from).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&file, to).unwrap();
    }
    fs::create_dir(folder.path().join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_selftest"), folder.path().join("bin/selftest")).unwrap();
    folder
}

#[test]
fn the_commands_of_the_page_end_as_it_says() {
    let folder = example();
    fs::remove_file(folder.path().join("project/config/selftest-baseline.json")).unwrap();
    let path =
        format!("{}:{}", folder.path().join("bin").display(), std::env::var("PATH").unwrap());
    let mut printed = BTreeMap::new();
    for line in blocks("docs/gate-in-ci.md", "sh").concat().lines() {
        let (command, remark) = line.split_once(" # ").unwrap_or((line, "exit 0"));
        let code: i32 = remark.strip_prefix("exit ").unwrap().trim().parse().unwrap();
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", command])
            .current_dir(folder.path().join("project"))
            .env("PATH", &path)
            .env("HOME", folder.path())
            .env("OLLAMA_HOST", crate::workspace::NOBODY)
            .env_remove("CI")
            .env_remove("GITHUB_ACTIONS")
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{command}\n{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        printed.insert(command.trim().to_owned(), stdout);
    }
    assert!(printed.len() >= 7, "{:?}", printed.keys());
    let project = folder.path().join("project");
    assert_eq!(compare_outputs("docs/gate-in-ci.md", &printed, &project), 1);
}

#[test]
fn the_committed_baseline_is_that_of_the_example() {
    let folder = example();
    let output = Command::new(folder.path().join("bin/selftest"))
        .args(["run", "--ci", "--suite", "config/suites/ports.yaml"])
        .current_dir(folder.path().join("project"))
        .env("OLLAMA_HOST", crate::workspace::NOBODY)
        .env_remove("GITHUB_OUTPUT")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("gate no_regression"), "{said}");
    let report = folder.path().join("project/reports/selftest/ci/report.json");
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(report["gate"]["compared"], 4, "{:#}", report["gate"]);
    assert_eq!(report["gate"]["cases"], serde_json::json!([]));
}

#[test]
fn recipes_are_right_as_far_as_a_machine_can_tell() {
    let yaml = blocks("docs/gate-in-ci.md", "yaml");
    assert!(yaml.len() >= 4, "{}", yaml.len());
    for block in &yaml {
        let _: Value =
            serde_yaml::from_str(block).unwrap_or_else(|error| panic!("{error}: {block}"));
    }
    let action = fs::read_to_string(root().join("action.yml")).unwrap();
    let action: Value = serde_yaml::from_str(&action).unwrap();
    let page = fs::read_to_string(root().join("docs/gate-in-ci.md")).unwrap();
    for input in action["inputs"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("| `{input}` |")), "{input} is not described");
    }
    for output in action["outputs"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("`{output}`")), "{output} is not described");
    }
    // Every command can be typed.
    let mut commands = 0;
    for part in page.split("selftest run --ci").skip(1).chain(page.split("arguments: ").skip(1)) {
        let line = part.lines().next().unwrap().split(['\'', '`']).next().unwrap();
        if !line.trim_start().starts_with("--") {
            continue;
        }
        let line = line.replace("${{ matrix.shard }}", "1");
        let words = ["selftest", "run", "--ci"].into_iter().chain(line.split_whitespace());
        selftest::cli::Cli::read(words).unwrap_or_else(|error| panic!("{line}: {error}"));
        commands += 1;
    }
    assert!(commands >= 5, "{commands}");
}
