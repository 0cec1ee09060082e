//! `/metrics`, `/healthz` and `/readyz`.

use std::collections::BTreeMap;

use super::site::{Site, graded};
use crate::model_server::ModelServer;
use crate::workspace::{OPENAI, config, scenarios};

/// Samples by name and labels. Every line is checked.
fn samples(site: &Site) -> BTreeMap<String, f64> {
    let answer = site.get("/metrics").status(200);
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = answer.text();
    let mut samples = BTreeMap::new();
    let mut families = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            families.push(rest.split(' ').next().unwrap().to_owned());
        }
        if line.starts_with('#') {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let family = families.last().unwrap();
        assert!(name.starts_with(family.as_str()), "{name} is not of {family}");
        let before = samples.insert(name.to_owned(), value.parse().unwrap());
        assert_eq!(before, None, "{name} twice");
    }
    samples
}

#[test]
fn numbers_of_runs_grades_and_requests() {
    let server = ModelServer::start();
    let workspace = graded().config(config(OPENAI, &scenarios(2))).server(&server);
    let _ = workspace.clone().args([""; 0]).run().exit(0);
    let site = Site::start(workspace);
    site.get("/healthz").status(200);
    site.get("/api/sessions/a").problem(404);
    site.get("/api/sessions/b").problem(404);
    site.get("/elsewhere/1").problem(404);
    let before = samples(&site);
    let of = |name: &str| *before.get(name).unwrap_or_else(|| panic!("no {name} in {before:#?}"));
    assert_eq!(of("selftest_runs{outcome=\"passed\"}"), 1.0);
    assert_eq!(of("selftest_cases{status=\"passed\"}"), 2.0);
    assert_eq!(of("selftest_judge_call_seconds_count"), 2.0);
    assert_eq!(of("selftest_judge_call_seconds_bucket{le=\"+Inf\"}"), 2.0);
    assert!(of("selftest_judge_tokens{kind=\"prompt\"}") > 0.0);
    assert_eq!(of("selftest_sessions_graded"), 4.0);
    assert_eq!(of("selftest_model_grades{model=\"m-1\"}"), 2.0);
    let requests = |route: &str, status: u16| {
        format!(
            "selftest_http_requests_total{{method=\"GET\",route=\"{route}\",status=\"{status}\"}}"
        )
    };
    assert_eq!(of(&requests("/healthz", 200)), 1.0);
    assert_eq!(of(&requests("/api/sessions/{id}", 404)), 2.0);
    assert_eq!(of(&requests("none", 404)), 1.0);

    // A second run is noticed, and the first one is not counted twice.
    let _ = site.workspace.clone().args([""; 0]).run().exit(0);
    let after = samples(&site);
    assert_eq!(after["selftest_runs{outcome=\"passed\"}"], 2.0);
    assert_eq!(after["selftest_judge_call_seconds_count"], 4.0);
    assert_eq!(after[&requests("/metrics", 200)], 1.0);
}

#[test]
fn labels_are_escaped() {
    let workspace = graded();
    workspace.sql("UPDATE session_quality_grades SET grader_model = 'a\"b\\c\nd' WHERE id = 1");
    let site = Site::start(workspace);
    let samples = samples(&site);
    assert_eq!(samples[r#"selftest_model_grades{model="a\"b\\c\nd"}"#], 1.0);
}

/// That the process lives says nothing of the database.
#[test]
fn a_server_whose_database_fails_lives_and_is_not_ready() {
    let site = Site::start(graded());
    assert_eq!(site.get("/healthz").status(200).text(), "ok\n");
    assert_eq!(site.get("/readyz").status(200).text(), "ready\n");
    site.workspace.sql("ALTER TABLE selftest_migrations RENAME TO elsewhere");
    let answer = site.get("/readyz");
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert!(answer.problem(503).contains("the database fails"));
    site.get("/healthz").status(200);
    let _ = site.await_log("not ready: ");
    site.workspace.sql("ALTER TABLE elsewhere RENAME TO selftest_migrations");
    site.get("/readyz").status(200);
}
