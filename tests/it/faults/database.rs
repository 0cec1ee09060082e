//! A PostgreSQL that restarts below a server: requests meanwhile get a clear refusal, and afterwards
//! everything works without a restart of ours, with nothing lost and nothing twice.

use serde_json::{Value, json};

use super::disk::{REFUSED, WRITTEN, metric, tell, until};
use crate::databases::Server;
use crate::server::site::Site;
use crate::workspace::Workspace;

#[test]
fn a_database_that_restarts_below_a_server_loses_nothing() {
    let Some(database) = Server::new() else { return };
    // The skill has to be in this database.
    let workspace = Workspace::new().env("DATABASE_URL", &database.address);
    let site = Site::start(workspace.promoted("pr", "# PR"));
    let submit = |goal: &str| {
        let body = json!({ "goal": goal, "summary": "s" }).to_string();
        site.post_json("/api/reflections/p", &body)
    };
    assert_eq!(tell(&site), 202);
    until("a record", || metric(&site, WRITTEN) == 1);
    assert_eq!(submit("before").status, 201);
    database.stop();
    assert_eq!(site.get("/readyz").problem(503), "the database did not answer within 2 s");
    site.get("/healthz").status(200);
    assert_eq!(metric(&site, "selftest_database_up"), 0);
    // Submitted executions are retried until the database is back; other requests fail at once.
    let told = [tell(&site), tell(&site)];
    assert_eq!(told, [202, 202]);
    assert_eq!(submit("meanwhile").problem(503), "the database cannot be reached");
    database.start_again();
    until("what was accepted is written", || metric(&site, WRITTEN) == 3);
    assert_eq!(metric(&site, REFUSED), 0);
    site.get("/readyz").status(200);
    assert_eq!(metric(&site, "selftest_database_up"), 1);
    assert_eq!(tell(&site), 202);
    let after: Value = serde_json::from_str(&submit("after").status(201).text()).unwrap();
    assert_eq!(after["loop"], 2, "what was refused was not stored: {after}");
    until("the next record", || metric(&site, WRITTEN) == 4);
    let skill = site.get("/api/skills").json()["items"][0]["id"].as_str().unwrap().to_owned();
    let page = site.get(&format!("/api/skills/{skill}?limit=500")).json();
    assert_eq!(page["executions"]["items"].as_array().unwrap().len(), 4, "every record once");
}
