//! Recorded sessions: lists, transcripts and search.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

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
    words_are_found_with_their_events,
    a_search_is_narrowed_and_paged,
    what_is_no_search_is_refused,
    the_page_marks_hits_and_links_to_events,
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

const AT: &str = "2026-11-16T10:00:00Z";

/// A session with that many answers.
fn long(number: u32, answers: u32) -> Recording {
    let begun = Recording::new(&id(number)).at(AT).asks("Count, please");
    (1..=answers).fold(begun, |recording, answer| recording.says(&format!("answer {answer} of it")))
}

fn graded(recordings: &[Recording]) -> Workspace {
    let workspace = recordings.iter().fold(Workspace::new(), Workspace::session);
    let _ = workspace.clone().grade(&["latest", "10"]).run().exit(0);
    workspace
}

fn path(number: u32, rest: &str) -> String {
    format!("/sessions/{}/{rest}", id(number))
}

#[test]
fn a_long_session_is_read_page_by_page() {
    let site = Site::start(graded(&[long(1, 450)]));
    let shown = |rest: &str| site.get(&path(1, rest)).status(200).text();
    let first = shown("transcript");
    assert!(first.contains("id=\"event-0\"") && first.contains("id=\"event-199\""), "{first}");
    assert!(!first.contains("id=\"event-200\""));
    assert!(first.contains(&format!("rel=\"next\" href=\"{}\"", path(1, "transcript?from=200"))));
    assert!(first.contains("Events 0 to 199 of 451"), "{first}");
    let last = shown("transcript?from=400");
    assert!(last.contains("id=\"event-450\"") && !last.contains("rel=\"next\""), "{last}");
    let around = shown("transcript?event=250");
    assert!(around.contains("id=\"event-200\"") && around.contains("answer 250 of it"));
    let alone = shown("transcript?event=250&alone=yes");
    assert!(alone.contains("id=\"event-250\"") && !alone.contains("id=\"event-251\""));
    for nothing in ["transcript?from=451", "transcript?event=9999"] {
        let page = site.ask("GET", &path(1, nothing), &["Accept: text/html"]).status(404);
        assert!(page.header("content-type").unwrap().starts_with("text/html"), "{nothing}");
        assert!(page.text().contains("the session has 451 events"), "{nothing}");
    }
    let _ = site.get("/sessions/nobody/transcript").status(404);
}

#[test]
fn an_event_has_an_address_and_so_has_a_quote() {
    let site = Site::start(graded(&[long(1, 450)]));
    let leads = |rest: &str, to: &str| {
        let answer = site.get(&path(1, rest)).status(303);
        assert_eq!(answer.header("location"), Some(&*path(1, to)), "{rest}");
    };
    leads("events/250", "transcript?event=250#event-250");
    leads("events?number=7", "transcript?event=7#event-7");
    leads("events?quote=answer++312%0Aof", "transcript?event=312#event-312");
    leads("events?quote=never+said", "transcript?lost=yes");
    let lost = site.get(&path(1, "transcript?lost=yes")).status(200).text();
    assert!(lost.contains("No event holds these words"), "{lost}");
    let _ = site.get(&path(1, "events")).status(400);
}

#[test]
fn every_finding_of_the_session_page_leads_to_its_event() {
    let site = Site::start(graded(&[Recording::on(&id(2), AT, false)]));
    let page = site.get(&format!("/sessions/{}", id(2))).status(200).text();
    let links: Vec<&str> =
        page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let events: Vec<&&str> = links.iter().filter(|link| link.contains("/events/")).collect();
    assert!(events.len() >= 4, "{links:?}");
    assert!(links.contains(&&*path(2, "transcript")), "{links:?}");
    for event in events {
        let shown = site.get(event).status(303);
        let target = shown.header("location").unwrap();
        let (page, anchor) = target.split_once('#').unwrap();
        let page = site.get(page).status(200).text();
        assert!(page.contains(&format!("id=\"{anchor}\"")), "{target}");
    }
}

#[test]
fn calls_are_folded_with_their_results_and_edits_are_diffs() {
    let edit = serde_json::json!({
        "file_path": "a.rs", "old_string": "let a = 1;\nlet b = 2;", "new_string": "let a = 1;\nlet b = 3;",
    });
    let secret = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6";
    let recording = Recording::new(&id(3))
        .at(AT)
        .asks(&format!("<script>alert(1)</script> with {secret}"))
        .calls("Edit", &edit, Ok("The file was updated"))
        .says("Done:\n```rust\nfn main() {}\n```\n\u{202e}<img src=x onerror=y>");
    let site = Site::start(graded(&[recording]));
    let page = site.get(&path(3, "transcript")).status(200).text();
    for part in [
        "<span class=\"removed\">- let b = 2;",
        "<span class=\"added\">+ let b = 3;",
        "<span class=\"kept\">  let a = 1;",
        "<details class=\"call\"><summary><strong>Edit</strong> <code>a.rs</code>",
        "The file was updated",
        "<p class=\"label\">rust</p><pre><code>fn main() {}",
        "⟨U+202E⟩",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    for hostile in ["<script>alert", "<img src=x", secret, "\u{202e}"] {
        assert!(!page.contains(hostile), "{hostile}");
    }
    // The event that is looked for is not folded away.
    let open = site.get(&path(3, "transcript?event=2")).status(200).text();
    assert!(open.contains("<details class=\"call\" open>"), "{open}");
}

#[test]
fn a_file_that_grows_is_read_anew_and_one_that_is_gone_is_said_plainly() {
    let workspace = graded(&[long(1, 3)]);
    let file = workspace.path(&format!("sessions/{}.jsonl", id(1)));
    let site = Site::start(workspace);
    let shown = || site.get(&path(1, "transcript"));
    assert!(!shown().status(200).text().contains("answer 4 of it"));
    fs::write(&file, long(1, 4).text()).unwrap();
    assert!(shown().status(200).text().contains("answer 4 of it"));
    fs::write(&file, long(2, 1).text()).unwrap();
    let other = shown().status(404).text();
    assert!(other.contains("does not hold it any more"), "{other}");
    fs::remove_file(&file).unwrap();
    let gone = shown().status(404);
    assert!(gone.header("content-type").unwrap().starts_with("text/html"));
    let gone = gone.text();
    assert!(gone.contains("The session cannot be read") && gone.contains("is not there any more"));
    assert!(gone.contains(&format!("href=\"/sessions/{}\"", id(1))), "{gone}");
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
