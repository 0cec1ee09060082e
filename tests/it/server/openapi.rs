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
    let mut operations: Vec<String> = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            operations.push(format!("{method} {path}"));
            assert!(operation["summary"].as_str().is_some_and(|it| !it.is_empty()), "{path}");
            assert!(operation["responses"]["4XX"].is_object(), "{path}");
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
}

/// Where `scripts/test` puts it, or anywhere in `PATH`.
fn schemathesis() -> Option<PathBuf> {
    let own = std::env::var_os("SELFTEST_TEST_VENV").map(|venv| PathBuf::from(venv).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = own.into_iter().chain(std::env::split_paths(&path));
    let mut files = folders.map(|folder| folder.join("schemathesis"));
    let why = "schemathesis is not installed; scripts/test installs it";
    require::part(Part::Venv, files.find(|file| file.is_file()).ok_or(why))
}

fn schemathesis_finds_no_fault(workspace: Workspace) {
    let Some(schemathesis) = schemathesis() else { return };
    let server = ModelServer::start();
    let workspace = graded_in(workspace).config(config(OPENAI, &scenarios(2))).server(&server);
    let _ = workspace.clone().args([""; 0]).run().exit(0);
    let _ = workspace.clone().grade(&["weekly", "--week", "2026-W47"]).run().exit(0);
    let _ = workspace
        .clone()
        .file("SKILL.md", "# PR")
        .args(["skills", "promote", "pr", "--file", "SKILL.md"])
        .run()
        .exit(0);
    // Without a model the API says so: that is what is described.
    let settings = "[[operations]]\n\
        include-name = \"POST /api/grades/session/{id}\"\n\
        checks.not_a_server_error.expected-statuses = [\"2xx\", \"4xx\", \"503\"]\n";
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
