//! Lists of sessions, and one of them.

use serde_json::json;

use super::site::{Site, field, graded_in};
use crate::databases::on_each_database;
use crate::grade::recording::{Recording, id};
use crate::workspace::Workspace;

on_each_database! {
    sorted_and_filtered,
    every_order_pages_through_all,
    a_cursor_is_of_one_list,
    not_graded_and_not_told_are_two_things,
    one_session_with_its_grade_and_file,
    text_of_a_session_stays_text,
}

fn ids(site: &Site, query: &str) -> Vec<String> {
    let page = site.get(&format!("/api/sessions?{query}")).json();
    field(page["items"].as_array().unwrap(), "session_id")
}

fn sorted_and_filtered(workspace: Workspace) {
    let site = Site::start(graded_in(workspace));
    for (query, expected) in [
        ("", &[4, 3, 2, 1][..]),
        ("order=asc", &[1, 2, 3, 4]),
        ("sort=quality", &[2, 1, 4, 3]),
        ("sort=quality&order=asc", &[1, 2, 3, 4]),
        ("sort=completed&order=asc", &[2, 4, 1, 3]),
        ("completed=true", &[3, 1]),
        ("completed=false&limit=1", &[4]),
        ("min_quality=0.5", &[2, 1]),
        ("search=DEPLOY", &[4, 2]),
        ("search=deploy&agent=claude-code", &[4, 2]),
        ("agent=nobody", &[]),
        ("task_type=testing", &[4, 2]),
        ("search=%25", &[]),
        ("search=%27%3B+DROP+TABLE+session_grades", &[]),
    ] {
        let expected: Vec<String> = expected.iter().map(|&number| id(number)).collect();
        assert_eq!(ids(&site, query), expected, "{query}");
    }
    let page = site.get("/api/sessions?limit=1").json();
    let row = &page["items"][0];
    assert_eq!(row["agent"], "claude-code");
    assert_eq!(row["task_summary"], "Deploy the shop to the test server");
    assert_eq!((&row["quality"], &row["total_errors"]), (&json!(null), &json!(3)));
}

fn every_order_pages_through_all(workspace: Workspace) {
    let site = Site::start(graded_in(workspace));
    for sort in [
        "time",
        "quality",
        "completed",
        "efficiency",
        "response",
        "errors",
        "calls",
        "duration",
        "agent",
        "task_type",
    ] {
        for order in ["asc", "desc"] {
            let query = format!("/api/sessions?sort={sort}&order={order}");
            let whole = site.pages(&query);
            let paged = site.pages(&format!("{query}&limit=1"));
            assert_eq!((whole.len(), whole[0].len(), paged.len()), (1, 4, 4), "{query}");
            assert_eq!(whole[0], paged.concat(), "{query}");
        }
    }
}

fn not_graded_and_not_told_are_two_things(workspace: Workspace) {
    let workspace = graded_in(workspace);
    workspace.sql(&format!(
        "UPDATE session_grades SET quality_rubric = 1 WHERE session_id = '{}'",
        id(4)
    ));
    let site = Site::start(workspace);
    let rows = site.get("/api/sessions").json();
    let rows = rows["items"].as_array().unwrap();
    assert_eq!(field(rows, "session_id"), [4, 3, 2, 1].map(id));
    let told = rows.iter().map(|row| (row["quality"].as_f64(), row["quality_graded"].as_bool()));
    let expected = [
        (None, Some(true)),
        (None, Some(false)),
        (Some(0.875), Some(true)),
        (Some(0.5), Some(true)),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let page = site.get("/sessions").text();
    assert_eq!(page.matches("could not tell\">n/a<").count(), 1, "{page}");
    assert_eq!(page.matches("<span>–</span>").count(), 1, "{page}");
}

fn a_cursor_is_of_one_list(workspace: Workspace) {
    let site = Site::start(graded_in(workspace));
    let next = site.get("/api/sessions?sort=agent&limit=1").json()["next"].clone();
    let next = next.as_str().unwrap();
    site.get(&format!("/api/sessions?sort=errors&cursor={next}")).problem(404);
    site.get(&format!("/api/grades/recent?cursor={next}")).problem(404);
    site.get("/api/sessions?cursor=x").problem(404);
    // Values of the same kind, or none, are no reason to take it for one of another order.
    for sort in ["quality", "task_type", "duration"] {
        let next = site.get(&format!("/api/sessions?sort={sort}&limit=1")).json()["next"].clone();
        let next = next.as_str().unwrap();
        site.get(&format!("/api/sessions?sort={sort}&cursor={next}")).status(200);
        site.get(&format!("/api/sessions?sort={sort}&order=asc&cursor={next}")).problem(404);
        site.get(&format!("/api/sessions?sort=time&cursor={next}")).problem(404);
        site.get(&format!("/sessions?sort={sort}&dir=desc&after={next}")).status(200);
        site.get(&format!("/sessions?sort={sort}&dir=asc&after={next}")).status(400);
        site.get(&format!("/sessions?sort=time&after={next}")).status(400);
    }
    assert_eq!(
        site.get(&format!("/api/sessions?sort=agent&cursor={next}")).json()["items"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

fn one_session_with_its_grade_and_file(workspace: Workspace) {
    let workspace = graded_in(workspace);
    let id = "session/agent-1";
    workspace.sql(&format!(
        "UPDATE session_grades SET session_id = '{id}' WHERE session_id = '{}'",
        crate::grade::recording::id(4)
    ));
    let site = Site::start(workspace);
    let detail = site.get("/api/sessions/session%2Fagent-1").json();
    assert_eq!(detail["grade"]["session_id"], id);
    assert_eq!(detail["grade"]["total_errors"], 3);
    assert_eq!(detail["grade"]["details"]["tools"]["Bash"]["errors"], 3);
    assert_eq!(detail["file"]["outcome"], "graded");
    assert_eq!(detail["overrides"], json!([]));
    site.get("/api/sessions/nobody").problem(404);
}

fn text_of_a_session_stays_text(workspace: Workspace) {
    let said = "Fix <script>alert(1)</script> \"quoted\" \\ \u{1F980}";
    let recording = Recording::new(&id(9)).asks(said).says("Done: it is fixed now, all of it.");
    let workspace = graded_in(workspace).session(&recording);
    let _ = workspace.clone().grade(&["latest", "10"]).run().exit(0);
    let site = Site::start(workspace);
    let answer = site.get("/api/sessions?search=%3Cscript").status(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json()["items"][0]["task_summary"], said);
}
