//! Gaps, proposals and routing: API, pages and decisions over HTTP.

use serde_json::json;

use super::client::{Answer, send};
use super::site::{Site, field};
use crate::databases::on_each_database;
use crate::improve::{detected, four_gaps};
use crate::model_server::{ModelServer, drafted};
use crate::workspace::Workspace;

on_each_database! {
    gaps_and_proposals_are_listed,
    decisions_over_the_api,
    people_decide_by_forms,
    routing_for_a_type_of_task,
}

/// Four gaps, three of which have a proposal whose texts try to be more than text.
fn proposed(workspace: Workspace) -> (Site, Vec<String>, ModelServer) {
    let script = ModelServer::script().drafter(|call| {
        let mut draft = drafted(call);
        draft["description"] = json!("<script>alert(1)</script> \"when\"");
        draft["body"] = json!("# Look first\n\n</pre><img src=x onerror=alert(1)>\n");
        draft
    });
    let server = script.start();
    let workspace = detected(workspace, &server);
    let _ = workspace.clone().args(["improve", "gaps", "propose"]).run().exit(0);
    let site = Site::start(workspace);
    let items = site.get("/api/proposals").json()["items"].clone();
    let ids = field(items.as_array().unwrap(), "id");
    (site, ids, server)
}

fn form(site: &Site, path: &str, body: &str, origin: &str) -> Answer {
    let first = format!("POST {path} HTTP/1.1");
    let (host, length) =
        (format!("Host: {}", site.address), format!("Content-Length: {}", body.len()));
    let origin = format!("Origin: {origin}");
    let kind = "Content-Type: application/x-www-form-urlencoded";
    send(&site.address, &[&first, &host, &length, kind, &origin], body.as_bytes())
}

fn main_part(answer: Answer) -> String {
    let text = answer.status(200).text();
    let main = text.split("<main").nth(1).and_then(|rest| rest.split("</main>").next());
    let ids = regex::Regex::new("(gap|proposal)-[0-9a-f]{12}").unwrap();
    let minutes = regex::Regex::new(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}").unwrap();
    let main = main.unwrap_or_else(|| panic!("no main part: {text}"));
    minutes.replace_all(&ids.replace_all(main, "$1-[id]"), "[minute]").into_owned()
}

/// docs/spec/skills-and-signals.md#gaps-and-proposals: open gaps, and the proposals for the others.
fn gaps_and_proposals_are_listed(workspace: Workspace) {
    let (site, ids, _server) = proposed(workspace);
    assert_eq!(ids.len(), 3);
    let gaps = site.get("/api/gaps").json();
    assert_eq!(gaps["items"].as_array().unwrap().len(), 4);
    let open = site.get("/api/gaps?status=open&limit=500").json();
    assert_eq!(open["items"].as_array().unwrap().len(), 1);
    let one = site.get(&format!("/api/proposals/{}", ids[0])).json();
    assert_eq!(one["proposal"]["experiment"]["state"], "not_tested");
    assert_eq!(one["gap"]["status"], "proposed");
    assert_eq!(site.get("/api/proposals?status=accepted").json()["items"], json!([]));
    for path in ["/api/gaps?status=x", "/api/gaps?limit=0", "/api/proposals?state=proposed"] {
        site.get(path).problem(400);
    }
    site.get("/api/proposals/proposal-x").problem(404);
}

/// docs/spec/skills-and-signals.md#differences-gaps: a proposal is only put to use by a
/// person.
fn decisions_over_the_api(workspace: Workspace) {
    let (site, ids, _server) = proposed(workspace);
    let accepted = site.post(&format!("/api/proposals/{}/accept?reason=good", ids[0])).json();
    assert_eq!((&accepted["status"], &accepted["reason"]), (&json!("accepted"), &json!("good")));
    let name = accepted["skill_name"].as_str().unwrap();
    let file = site.workspace.path(&format!(".selftest/skills/{name}/SKILL.md"));
    assert_eq!(std::fs::read_to_string(file).unwrap(), accepted["skill_md"].as_str().unwrap());
    let detail = site.post(&format!("/api/proposals/{}/accept", ids[0])).problem(409);
    assert!(detail.contains("accepted already"), "{detail}");
    site.post(&format!("/api/proposals/{}/reject", ids[1])).problem(400);
    site.post(&format!("/api/proposals/{}/reject?reason=", ids[1])).problem(400);
    let rejected = site.post(&format!("/api/proposals/{}/reject?reason=no", ids[1])).json();
    assert_eq!(rejected["status"], "rejected");
    site.post("/api/proposals/proposal-x/accept").problem(404);
    let path = format!("/api/proposals/{}/accept", ids[2]);
    site.ask("POST", &path, &["Content-Length: 0", "Origin: http://evil.example"]).problem(403);
    site.get(&path).problem(405);
}

/// A row that another program changed cannot make a path.
#[test]
fn a_name_with_a_path_in_it_is_not_written() {
    let (site, ids, _server) = proposed(Workspace::new());
    site.workspace.sql("UPDATE skill_proposals SET skill_name = '../../evil'");
    let detail = site.post(&format!("/api/proposals/{}/accept", ids[0])).problem(409);
    assert!(detail.contains("no name of a skill"), "{detail}");
    assert!(!site.workspace.path("evil").exists());
}

#[test]
fn pages_show_gaps_and_proposals_as_text() {
    let (site, ids, _server) = proposed(Workspace::new());
    let run = site.workspace.clone().args(["--version"]).run();
    let page = main_part(site.get("/gaps"));
    let run = run.snapshot_of("page_gaps", &page);
    let page = main_part(site.get(&format!("/proposals/{}", ids[0])));
    assert!(page.contains("&lt;img src=x") || page.contains("&#60;img src=x"), "{page}");
    assert!(!page.contains("<img") && !page.contains("<script"), "{page}");
    let _ = run.snapshot_of("page_proposal", &page);
    let missing = site.ask("GET", "/proposals/%3Cb%3E", &["Accept: text/html"]);
    assert_eq!(missing.status, 404);
    assert!(!missing.text().contains("<b>"));
}

fn people_decide_by_forms(workspace: Workspace) {
    let (site, ids, _server) = proposed(workspace);
    let own = format!("http://{}", site.address);
    let address = |at: usize| format!("/proposals/{}", ids[at]);
    let path = format!("{}/reject", address(0));
    form(&site, &path, "reason=no", "http://evil.example").problem(403);
    assert_eq!(form(&site, &path, "reason=+", &own).status, 400);
    let long = format!("reason={}", "x".repeat(1001));
    assert_eq!(form(&site, &path, &long, &own).status, 400);
    let done = form(&site, &path, "reason=too+%3Cvague%3E&again=yes", &own);
    assert_eq!((done.status, done.header("location")), (303, Some(address(0).as_str())));
    let page = site.get(&address(0)).text();
    assert!(
        page.contains("too &") && page.contains("rejected") && !page.contains("<form"),
        "{page}"
    );
    let done = form(&site, &format!("{}/accept", address(1)), "reason=", &own);
    assert_eq!(done.status, 303);
    assert!(site.get(&address(1)).text().contains("SKILL.md"));
    assert_eq!(form(&site, &format!("{}/accept", address(1)), "", &own).status, 409);
    let open = site.workspace.sql("SELECT COUNT(*) FROM skill_gaps WHERE status = 'open'");
    assert_eq!(open[0][0], "2");
}

/// docs/spec/session-grades.md#routing over HTTP.
fn routing_for_a_type_of_task(workspace: Workspace) {
    let workspace = four_gaps(workspace);
    let _ = workspace.clone().grade(&["latest", "10"]).run().exit(0);
    let site = Site::start(workspace);
    let routing = site.get("/api/routing").json();
    let types = field(routing["items"].as_array().unwrap(), "task_type");
    assert_eq!(types, ["feature_impl"]);
    let routing = site.get("/api/routing?task_type=debugging").json();
    assert_eq!(routing["items"][0]["sessions"], 0);
    for path in ["/api/routing?task_type=cooking", "/api/routing?type=debugging"] {
        site.get(path).problem(400);
    }
    assert!(site.get("/gaps").text().contains("No gap was found yet"));
}
