//! The pages that show a session as it was recorded.

use std::fs;

use super::site::Site;
use crate::grade::recording::{Recording, id};
use crate::workspace::Workspace;

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
