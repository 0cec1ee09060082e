//! Searching sessions by the API and the page; the server fills the index by itself.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::site::{Site, field, graded_in};
use crate::databases::on_each_database;
use crate::grade::recording::{Recording, id};
use crate::workspace::Workspace;

on_each_database! {
    words_are_found_with_their_events,
    a_search_is_narrowed_and_paged,
    what_is_no_search_is_refused,
    the_page_marks_hits_and_links_to_events,
}

/// A server that has indexed everything.
fn indexed(workspace: Workspace) -> Site {
    let site = Site::start(graded_in(workspace));
    let begun = Instant::now();
    while site.get("/api/search?q=nothing").json()["files_not_indexed"] != 0 {
        assert!(begun.elapsed() < Duration::from_mins(1), "the index is not filled");
        std::thread::sleep(Duration::from_millis(50));
    }
    site
}

fn found(site: &Site, query: &str) -> Vec<String> {
    let page = site.get(&format!("/api/search?{query}")).json();
    field(page["items"].as_array().unwrap(), "session_id")
}

fn words_are_found_with_their_events(workspace: Workspace) {
    let site = indexed(workspace);
    let page = site.get("/api/search?q=%22connection+refused%22").json();
    let items = page["items"].as_array().unwrap();
    assert_eq!(field(items, "session_id"), [id(4), id(2)]);
    let first = &items[0];
    assert_eq!(first["task_summary"], "Deploy the shop to the test server");
    assert_eq!(first["has_more"], false);
    let events: Vec<&Value> =
        first["hits"].as_array().unwrap().iter().map(|hit| &hit["event"]).collect();
    assert_eq!(events, [2, 4, 6]);
    let pieces = first["hits"][0]["snippet"].as_array().unwrap();
    let hit: Vec<&Value> = pieces.iter().filter(|piece| piece["is_hit"] == true).collect();
    assert_eq!(hit.len(), 1, "{pieces:?}");
    assert_eq!(hit[0]["text"], "connection refused");
}

fn a_search_is_narrowed_and_paged(workspace: Workspace) {
    let site = indexed(workspace);
    for (query, expected) in [
        ("q=parser", &[3, 1][..]),
        ("q=DEPLOY+shop", &[4, 2]),
        ("q=parser+shop", &[]),
        ("q=pars*", &[3, 1]),
        ("q=parser&agent=claude-code", &[3, 1]),
        ("q=parser&agent=codex", &[]),
        ("q=refused&project=app&tool=bash&errors=true&model=opus", &[4, 2]),
        ("q=refused&project=%2Fwork%2Fapp", &[4, 2]),
        ("q=refused&project=other", &[]),
        ("q=passed&errors=true", &[]),
        ("q=passed&tool=Bash", &[3, 1]),
        ("q=parser&since=2026-11-17", &[3]),
        ("q=parser&until=2026-11-17", &[1]),
        ("q=parser&since=2026-11-16T10:00:01Z", &[3]),
    ] {
        let expected: Vec<String> = expected.iter().map(|&number| id(number)).collect();
        assert_eq!(found(&site, query), expected, "{query}");
    }
    let pages = site.pages("/api/search?q=the&limit=1");
    let ids: Vec<String> = pages.iter().flat_map(|page| field(page, "session_id")).collect();
    assert_eq!(ids, [id(4), id(3), id(2), id(1)]);
}

fn what_is_no_search_is_refused(workspace: Workspace) {
    let site = indexed(workspace);
    for (query, why) in [
        ("", "q"),
        ("q=%20", "no word"),
        ("q=%22%22", "no word"),
        ("q=x&since=yesterday", "since: expected"),
        ("q=x&limit=0", "limit"),
        ("q=x&sort=time", "sort"),
    ] {
        let said = site.get(&format!("/api/search?{query}")).problem(400);
        assert!(said.contains(why), "{query}: {said}");
    }
    let said = site.get("/api/search?q=x&cursor=feed").problem(404);
    assert!(said.contains("cursor"), "{said}");
    // The language of the search engine has no meaning.
    for query in ["q=parser+OR+shop", "q=NOT+parser", "q=words%3Aparser", "q=%27%29%3B+--"] {
        let answer = site.get(&format!("/api/search?{query}"));
        assert!(matches!(answer.status, 200 | 400), "{query}");
        if answer.status == 200 {
            assert_eq!(answer.json()["items"].as_array().unwrap().len(), 0, "{query}");
        }
    }
}

fn the_page_marks_hits_and_links_to_events(workspace: Workspace) {
    let hostile = Recording::new(&id(5))
        .at("2026-11-20T10:00:00Z")
        .asks("Look at <b>needle</b>")
        .says("A <script>needle</script> and\u{202e} more");
    let site = indexed(workspace.session(&hostile));
    let page = site.get("/search?q=needle&agent=claude-code").status(200).text();
    assert!(page.contains("<mark>needle</mark>"), "{page}");
    assert!(page.contains("&#60;script&#62;") && !page.contains("<script>needle"), "{page}");
    assert!(page.contains(&format!("href=\"/sessions/{}/events/1\"", id(5))), "{page}");
    assert!(!page.contains('\u{202e}'));
    let nothing = site.get("/search?q=absent").status(200).text();
    assert!(nothing.contains("Nothing was found"), "{nothing}");
    let none = site.get("/search?q=%22%22").status(200).text();
    assert!(none.contains("there is no word to search for"), "{none}");
    assert!(site.get("/search").status(200).text().contains("name=\"q\""));
    let refused = site.ask("GET", "/search?q=x&since=soon", &["Accept: text/html"]).status(400);
    assert!(refused.header("content-type").unwrap().starts_with("text/html"));
    assert!(site.get("/sessions").status(200).text().contains("action=\"/search\""));
}
