//! The description of the API, and the API held against it by a program of other people.

use std::path::PathBuf;
use std::process::Command;

use super::site::{Site, graded, graded_in};
use crate::databases::on_each_database;
use crate::model_server::ModelServer;
use crate::require::{self, Part};
use crate::workspace::{OPENAI, Workspace, config, scenarios};

on_each_database! {
    schemathesis_finds_no_fault,
}

/// docs/spec/reflections.md#api, and the paths for routing, gaps and skills.
#[test]
fn every_path_is_described() {
    let site = Site::start(graded());
    let api = site.get("/api/openapi.json").json();
    assert!(api["openapi"].as_str().unwrap().starts_with("3.1"));
    let scheme = &api["components"]["securitySchemes"]["token"];
    assert_eq!((&scheme["type"], &scheme["scheme"]), (&"http".into(), &"bearer".into()));
    assert!(api["security"].is_null(), "this server asks for no token");
    let (mut operations, mut ids) = (Vec::<String>::new(), Vec::<String>::new());
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            operations.push(format!("{method} {path}"));
            assert!(operation["summary"].as_str().is_some_and(|it| !it.is_empty()), "{path}");
            let responses = operation["responses"].as_object().unwrap();
            // Each error has a status and says what it means.
            let is_status = |status: &String| status.parse::<u16>().is_ok();
            assert!(responses.keys().all(is_status), "{path}: {responses:?}");
            let errors: Vec<_> =
                responses.iter().filter(|(status, _)| status.as_str() >= "400").collect();
            for (status, error) in &errors {
                let words = error["description"].as_str().unwrap();
                assert!(words.len() > 10 && words != "The answer", "{path}: {status}: {words}");
                assert!(
                    error["content"]["application/problem+json"].is_object(),
                    "{path}: {status}"
                );
            }
            let statuses: Vec<&str> = errors.iter().map(|(status, _)| status.as_str()).collect();
            let common: &[&str] = if path.starts_with("/api/") {
                &["400", "401", "421", "429", "500", "503", "507"]
            } else {
                &["400", "421"]
            };
            assert!(common.iter().all(|status| statuses.contains(status)), "{path}: {statuses:?}");
            ids.push(operation["operationId"].as_str().unwrap().to_owned());
        }
    }
    operations.sort();
    assert_eq!(
        operations,
        [
            "get /api/debug/reflection/grade/{project_id}",
            "get /api/gaps",
            "get /api/grades/recent",
            "get /api/grades/session/{id}",
            "get /api/patterns",
            "get /api/proposals",
            "get /api/proposals/{id}",
            "get /api/reflections/{project_id}/scores",
            "get /api/reflections/{project_id}/weak",
            "get /api/reports/weekly",
            "get /api/reports/weekly/{week}",
            "get /api/routing",
            "get /api/runs",
            "get /api/runs/{run_id}",
            "get /api/runs/{run_id}/cases",
            "get /api/runs/{run_id}/cases/{scenario}",
            "get /api/search",
            "get /api/sessions",
            "get /api/sessions/{id}",
            "get /api/skills",
            "get /api/skills/{id}",
            "get /healthz",
            "get /readyz",
            "post /api/grades/session/{id}",
            "post /api/proposals/{id}/accept",
            "post /api/proposals/{id}/reject",
            "post /api/reflections/{project_id}",
            "post /api/skills/executions",
            "post /api/skills/messages",
            "post /api/skills/{id}/disable",
            "post /api/skills/{id}/promote",
            "post /api/skills/{id}/rollback",
        ]
    );
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "each operation has an id of its own");
    insta::assert_snapshot!("operation_ids", ids.join("\n"));
}

/// A program where `scripts/test` puts it, or anywhere in `PATH`.
fn program(name: &str) -> Option<PathBuf> {
    let own = std::env::var_os("SELFTEST_TEST_VENV").map(|venv| PathBuf::from(venv).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = own.into_iter().chain(std::env::split_paths(&path));
    let mut files = folders.map(|folder| folder.join(name));
    let why = format!("{name} is not installed; scripts/test installs it");
    require::part(Part::Venv, files.find(|file| file.is_file()).ok_or(why))
}

/// Runs a program of other people on the document.
#[track_caller]
fn passes(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said + &*String::from_utf8_lossy(&output.stderr)
}

/// The document is valid to a validator, and enough for a generator of clients: the client that
/// it makes asks this server.
#[test]
fn a_client_is_generated_and_used() {
    let Some(validator) = program("openapi-spec-validator") else { return };
    let Some(generator) = program("openapi-python-client") else { return };
    let Some(python) = program("python") else { return };
    let site = Site::with(graded().promoted("pr", "# PR"), &["--no-worker"]);
    let document = site.workspace.path("openapi.json");
    std::fs::write(&document, site.get("/api/openapi.json").status(200).body).unwrap();
    passes(Command::new(validator).arg(&document));
    let client = site.workspace.path("client");
    // It would have another program format what it makes.
    let settings = site.workspace.path("client.yaml");
    std::fs::write(&settings, "post_hooks: []\n").unwrap();
    let said = passes(
        Command::new(generator)
            .args(["generate", "--meta", "none", "--path"])
            .arg(&document)
            .arg("--config")
            .arg(&settings)
            .arg("--output-path")
            .arg(client.join("selftest_client"))
            .current_dir(site.workspace.project()),
    );
    assert!(!said.contains("Warning") && !said.contains("Unable"), "{said}");
    let script = include_str!("../fixtures/use_client.py");
    let told = passes(
        Command::new(python)
            .args(["-c", script, &format!("http://{}", site.address)])
            .current_dir(&client),
    );
    assert_eq!(told.trim(), "4 sessions, 3 grades, 404 Not Found, kept: True, conflict: 409");
}

fn schemathesis_finds_no_fault(workspace: Workspace) {
    let Some(schemathesis) = program("schemathesis") else { return };
    let server = ModelServer::start();
    let workspace = graded_in(workspace).config(config(OPENAI, &scenarios(2))).server(&server);
    let _ = workspace.clone().args([""; 0]).run().exit(0);
    let _ = workspace.clone().grade(&["weekly", "--week", "2026-W47"]).run().exit(0);
    let _ = workspace
        .clone()
        .file("SKILL.md", "# PR")
        .args(["improve", "skills", "promote", "pr", "--file", "SKILL.md"])
        .run()
        .exit(0);
    // Without a model the API says so: that is what is described. A key that comes with another
    // body is refused however good the body is, and not every text is a time or has a word in it.
    let settings = "[[operations]]\n\
        include-name = \"POST /api/grades/session/{id}\"\n\
        checks.not_a_server_error.expected-statuses = [\"2xx\", \"4xx\", \"503\"]\n\
        [[operations]]\n\
        include-path-regex = \"^/api/skills/(executions|messages)$\"\n\
        checks.positive_data_acceptance.expected-statuses = [\"2xx\", \"422\"]\n\
        [[operations]]\n\
        include-path-regex = \"^/api/search$\"\n\
        checks.positive_data_acceptance.expected-statuses = [\"2xx\", \"400\", \"404\"]\n";
    let site = Site::start(workspace.file("schemathesis.toml", settings));
    let output = Command::new(schemathesis)
        .args(["run", "--checks", "all", "--max-examples", "25", "--seed", "1", "--no-color"])
        .args(["--suppress-health-check", "all"])
        .arg(format!("http://{}/api/openapi.json", site.address))
        .current_dir(site.workspace.project())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}
