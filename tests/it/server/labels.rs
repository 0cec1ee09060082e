//! The page that takes labels, without a browser: what it refuses, and that a terminal goes on where
//! it stopped.

use serde_json::{Value, json};

use super::site::Site;
use crate::model_server::ModelServer;
use crate::workspace::{OPENAI, Workspace, config, scenarios};

const FORM: &str = "application/x-www-form-urlencoded";

/// The text behind `name="…" value="` on a page.
fn hidden(page: &str, name: &str) -> String {
    let marker = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.split_once(&marker).unwrap_or_else(|| panic!("no {name} in {page}"));
    rest.split('"').next().unwrap().to_owned()
}

#[test]
fn labels_of_the_page_and_of_the_terminal_are_the_same() {
    let server = ModelServer::start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(3))).server(&server);
    let run_id = workspace.run().exit(0).report().run_id();
    let given = json!([{"case": "case-1", "label": "bad"}]).to_string();
    let workspace = workspace.file("given.json", given);
    let arguments = ["judge", "label", "latest", "--from", "given.json"];
    let _ = workspace.clone().args(arguments).run().exit(0);

    let site = Site::start(workspace.clone());
    let path = format!("/label/{run_id}");
    let page = site.get(&path).status(200).text();
    assert!(page.contains("1 of 3 labelled") && !page.contains("PASS"), "{page}");
    let (case, answer) = (hidden(&page, "case"), hidden(&page, "answer"));
    assert_ne!(case, "case-1");
    let form = |case: &str, answer: &str, said: &str| {
        format!("case={case}&answer={answer}&position=0&said={said}")
    };
    let post = |path: &str, form: &str| site.post_body(path, FORM, form.as_bytes());
    // Nothing of this is kept.
    post(&path, &form("nobody", &answer, "good")).status(404);
    post(&path, &form(&case, "another", "good")).status(409);
    post(&path, &form("case-1", &answer, "good")).status(409);
    post(&path, &form(&case, &answer, "perhaps")).status(422);
    post("/label/selftest-20261122-0000-bbb", &form(&case, &answer, "good")).status(404);
    let length = format!("Content-Length: {}", form(&case, &answer, "good").len());
    let foreign = [&*length, "Origin: http://evil.example", "Content-Type: text/plain"];
    site.ask("POST", &path, &foreign).problem(403);
    site.get(&format!("{path}?from=99999999999999999999999")).status(400);
    let file = workspace.path(&format!("reports/selftest/labels/{run_id}.json"));
    let labels =
        || -> Value { serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap() };
    assert_eq!(labels()["labels"].as_array().unwrap().len(), 1);

    let answered = post(&path, &form(&case, &answer, "good")).status(303);
    assert_eq!(answered.header("location"), Some(&*format!("{path}?from=1")));
    assert_eq!(labels()["labels"][1]["label"], "good");
    let said = workspace.clone().args(arguments).run().exit(0);
    let _ = said.stderr_contains("0 labels new, 2 of 3 answers labelled");

    std::fs::write(&file, "{").unwrap();
    let why = site.get(&path).status(409).text();
    assert!(why.contains("cannot be used"), "{why}");
}
