//! Selftest runs and their cases.

use std::time::Duration;

use serde_json::Value;

use super::site::{Site, field};
use crate::model_server::ModelServer;
use crate::workspace::{OPENAI, Workspace, config, scenarios};

#[test]
fn runs_cases_and_one_case() {
    let server = ModelServer::start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(2))).server(&server);
    for _ in 0..3 {
        let _ = workspace.run().exit(0);
    }
    let workspace = workspace
        .file("reports/selftest/selftest-20261122-0000-zzz.json", "no report")
        .file("reports/selftest/other.json", "{}");
    let site = Site::start(workspace);
    let whole = site.pages("/api/runs?limit=500").concat();
    let ids = field(&whole, "run_id");
    assert_eq!(ids.len(), 3);
    // Ids have the minute and a random end; the order is that of the starts.
    let starts = field(&whole, "started_at");
    assert!(starts.windows(2).all(|two| two[0] >= two[1]), "{starts:?}");
    let paged = site.pages("/api/runs?limit=1");
    assert_eq!((paged.len(), paged.concat()), (3, whole));

    let run = site.get(&format!("/api/runs/{}", ids[0])).json();
    let path = site.workspace.path(&format!("reports/selftest/{}.json", ids[0]));
    let stored: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(run, stored);

    let cases = site.get(&format!("/api/runs/{}/cases", ids[0])).json();
    let first = &cases["items"][0];
    assert_eq!(field(cases["items"].as_array().unwrap(), "id"), ["case-0", "case-1"]);
    assert_eq!((&first["status"], &first["pass"]), (&"passed".into(), &true.into()));
    assert_eq!(first["overall"], run["cases"][0]["scores"]["overall_score"]);

    let case = site.get(&format!("/api/runs/{}/cases/case-1", ids[0])).json();
    assert_eq!(case, run["cases"][1]);

    site.get(&format!("/api/runs/{}/cases/nothing", ids[0])).problem(404);
    for id in ["selftest-20261122-0000-bbb", "other", "..%2F..%2Fsecret", "nothing"] {
        site.get(&format!("/api/runs/{id}")).problem(404);
        site.get(&format!("/api/runs/{id}/cases")).problem(404);
        site.get(&format!("/api/runs/{id}/cases/case-0")).problem(404);
    }
    // A name that is there, but no report.
    site.get("/api/runs/selftest-20261122-0000-zzz").problem(500);
}

const KILLED: &str = "the run was probably ended from outside";

#[test]
fn a_run_that_was_killed_is_not_waited_for() {
    let server = ModelServer::start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(1))).server(&server);
    let _ = workspace.run().exit(0);
    let folder = workspace.path("reports/selftest");
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let report = files.find(|path| path.extension().is_some_and(|it| it == "json")).unwrap();
    let mut stored: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    stored["complete"] = false.into();
    std::fs::write(&report, stored.to_string()).unwrap();
    let site = Site::start(workspace);
    let page = format!("/selftests/{}", stored["run_id"].as_str().unwrap());
    assert!(!site.get(&page).text().contains(KILLED));
    // A page computes the age of a report by the clock of the file system.
    let written = report.metadata().unwrap().modified().unwrap();
    let long_ago = written - Duration::from_hours(3);
    std::fs::File::options().append(true).open(&report).unwrap().set_modified(long_ago).unwrap();
    assert!(
        site.get(&page).text().contains(&format!("Nothing was written for 3 h 00 min: {KILLED}"))
    );
}

#[test]
fn repeats_are_cases_of_their_own() {
    let server = ModelServer::start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(2))).server(&server);
    let _ = workspace.run().exit(0);
    let _ = workspace
        .clone()
        .args(["suite", "freeze", "latest", "--output", "suite.yaml"])
        .run()
        .exit(0);
    let arguments = ["--suite", "suite.yaml", "--repeats=2", "--format=json"];
    let run = workspace.clone().args(arguments).run().exit(0).stdout_report();
    let (id, site) = (run.run_id(), Site::start(workspace));
    let cases = site.get(&format!("/api/runs/{id}/cases")).json();
    let names = field(cases["items"].as_array().unwrap(), "id");
    assert_eq!(names, ["case-0 #1", "case-1 #1", "case-0 #2", "case-1 #2"]);
    let case = site.get(&format!("/api/runs/{id}/cases/case-0%20%232")).json();
    assert_eq!(case, run.0["cases"][2]);
    let page = site.get(&format!("/selftests/{id}"));
    let page = String::from_utf8(page.body).unwrap();
    let link = format!("/selftests/{id}/case-0%20%232");
    assert!(page.contains(&format!("<tr data-href=\"{link}\" ")), "{page}");
    assert!(page.contains("suite.yaml (digest "), "{page}");
    let page = String::from_utf8(site.get(&link).body).unwrap();
    assert!(page.contains("case-0 #2"), "{page}");
}

#[test]
fn where_nothing_ran_there_is_an_empty_list() {
    let site = Site::start(Workspace::new());
    assert_eq!(site.pages("/api/runs?limit=5"), [Vec::<Value>::new()]);
    assert_eq!(site.pages("/api/sessions?limit=5"), [Vec::<Value>::new()]);
    assert_eq!(site.get("/api/patterns").json()["sessions"], 0);
}
