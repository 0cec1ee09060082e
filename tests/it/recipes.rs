//! Files for other people's programs, looked at by those programs: recipes for CI, the action, the
//! workflows, the image and the formula. Each linter is also shown a file that is wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::require::{self, Part};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The fenced blocks of a language below a heading of docs/gate-in-ci.md.
fn recipes(heading: &str, language: &str) -> Vec<String> {
    let page = read("docs/gate-in-ci.md");
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let begin = format!("```{language}\n");
    let rest = section.split(&begin).skip(1);
    let found: Vec<String> =
        rest.map(|rest| rest.split("```").next().unwrap().to_owned()).collect();
    assert!(!found.is_empty(), "no {language} below {heading}");
    found
}

/// A program of the tests' virtual environment.
fn of_venv(program: &str) -> Option<PathBuf> {
    let find = || {
        let path = PathBuf::from(std::env::var_os("SELFTEST_TEST_VENV")?).join("bin").join(program);
        path.is_file().then_some(path)
    };
    let why = format!("no $SELFTEST_TEST_VENV/bin/{program}; scripts/test installs it");
    require::part(Part::Venv, find().ok_or(why))
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn yaml_has_the_shape_that_each_service_wants() {
    let Some(program) = of_venv("check-jsonschema") else { return };
    let folder = tempfile::tempdir().unwrap();
    let check = |schema: &str, text: &str| {
        let path = folder.path().join("file.yml");
        fs::write(&path, text).unwrap();
        let mut command = Command::new(&program);
        command.args(["--builtin-schema", schema]).arg(&path);
        command.output().unwrap()
    };
    // A part of a workflow stands for the whole, whose first lines are those of the first recipe.
    let whole = |text: &String| {
        if text.starts_with("jobs:") { format!("on: pull_request\n{text}") } else { text.clone() }
    };
    let workflows = recipes("GitHub Actions", "yaml").iter().map(whole).collect::<Vec<_>>();
    let own = [".github/workflows/ci.yml", ".github/workflows/nightly.yml"];
    let own =
        own.into_iter().chain([".github/workflows/release.yml", "src/commands/init/workflow.yml"]);
    let workflows = workflows.into_iter().chain(own.map(read)).map(|it| ("github-workflows", it));
    let others = [
        ("github-actions", vec![read("action.yml")]),
        ("gitlab-ci", recipes("GitLab", "yaml")),
        ("buildkite", recipes("Buildkite", "yaml")),
    ];
    let others = others
        .into_iter()
        .flat_map(|(schema, texts)| texts.into_iter().map(move |it| (schema, it)));
    for (schema, text) in workflows.chain(others) {
        let output = check(&format!("vendor.{schema}"), &text);
        assert!(output.status.success(), "{schema}: {}\n{text}", said(&output));
    }
    for (schema, wrong) in [
        ("github-workflows", "on: push\njobs: { a: { runs: x } }\n"),
        ("gitlab-ci", "selftest: { script: { no: list } }\n"),
        ("buildkite", "steps: [{ label: [] }]\n"),
    ] {
        let output = check(&format!("vendor.{schema}"), wrong);
        assert!(!output.status.success(), "{schema} takes anything");
    }
}

#[test]
fn the_recipe_for_jenkins_is_groovy() {
    let find = || {
        let modules = PathBuf::from(std::env::var_os("SELFTEST_TEST_NODE")?).join("node_modules");
        let program = modules.join(".bin/npm-groovy-lint");
        let has_java = Command::new("java").arg("-version").output().is_ok();
        (program.is_file() && has_java).then_some(program)
    };
    let why =
        "no java, or no npm-groovy-lint in $SELFTEST_TEST_NODE; scripts/test installs the latter";
    let Some(program) = require::part(Part::GroovyLint, find().ok_or(why)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let recipes = recipes("Jenkins", "groovy");
    for (number, recipe) in recipes.iter().enumerate() {
        fs::write(folder.path().join(format!("good-{number}.groovy")), recipe).unwrap();
    }
    let wrong = recipes[0].replacen("steps {", "steps {{", 1);
    fs::write(folder.path().join("wrong.groovy"), wrong).unwrap();
    let output = Command::new(program)
        .args(["--noserver", "--output", "json", "--failon", "none", "--files", "*.groovy"])
        .arg("--path")
        .arg(folder.path())
        .env("HOME", folder.path())
        .output()
        .unwrap();
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    let files = report["files"].as_object().unwrap();
    assert_eq!(files.len(), recipes.len() + 1, "{report:#}");
    for (file, found) in files {
        let errors = found["errors"].as_array().unwrap().iter();
        let errors: Vec<&Value> = errors.filter(|error| error["severity"] == "error").collect();
        assert_eq!(errors.is_empty(), !file.ends_with("wrong.groovy"), "{file}: {errors:?}");
    }
}

#[test]
fn the_image_is_made_as_images_should_be() {
    let Some(program) = of_venv("hadolint") else { return };
    let lint = |path: &Path| Command::new(&program).arg(path).output().unwrap();
    let output = lint(&root().join("packaging/docker/Dockerfile"));
    assert!(output.status.success(), "{}", said(&output));
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("Dockerfile");
    fs::write(&wrong, "FROM debian\nRUN cd /tmp && sudo apt-get install curl\n").unwrap();
    assert!(!lint(&wrong).status.success());
}

/// Ruby's own parser, for node.
const PARSE_RUBY: &str = r#"
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const { loadPrism } = await import(pathToFileURL(process.argv[2]));
const parse = await loadPrism();
console.log(JSON.stringify(parse(readFileSync(0, "utf8")).errors.map((error) => error.message)));
"#;

#[cfg(unix)]
#[test]
fn the_formula_is_ruby() {
    use std::io::Write as _;
    use std::process::Stdio;

    let Some(prism) = require::node_module("@ruby/prism/src/index.js") else { return };
    let folder = tempfile::tempdir().unwrap();
    let platforms: Value = serde_json::from_str(&read("packaging/npm/platforms.json")).unwrap();
    let lines = platforms.as_object().unwrap().values().map(|what| {
        let system = if what["os"][0] == "darwin" { "apple-darwin" } else { "unknown-linux-gnu" };
        let processor = if what["cpu"][0] == "x64" { "x86_64" } else { "aarch64" };
        format!("{}  selftest-{processor}-{system}.tar.gz\n", "0".repeat(64))
    });
    let sums = lines.collect::<Vec<_>>().concat();
    let list = folder.path().join("SHA256SUMS");
    fs::write(&list, sums).unwrap();
    let made = Command::new(root().join("packaging/formula")).arg(&list).output().unwrap();
    assert!(made.status.success(), "{}", said(&made));
    let script = folder.path().join("parse.mjs");
    fs::write(&script, PARSE_RUBY).unwrap();
    let errors = |text: &[u8]| -> Vec<String> {
        let mut node = Command::new("node")
            .arg(&script)
            .arg(&prism)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        node.stdin.take().unwrap().write_all(text).unwrap();
        let output = node.wait_with_output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)))
    };
    assert_eq!(errors(&made.stdout), Vec::<String>::new());
    assert!(!errors(b"class Selftest < Formula").is_empty());
}

#[test]
fn recipes_name_the_repository_of_this_project() {
    let repository = env!("CARGO_PKG_REPOSITORY").strip_prefix("https://github.com/").unwrap();
    let page = "docs/gate-in-ci.md";
    let text = read(page);
    assert!(!text.contains("uses: OWNER"), "{page}");
    assert!(text.contains(&format!("uses: {repository}@v0")), "{page}");
}
