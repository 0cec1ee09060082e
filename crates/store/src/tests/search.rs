//! Tests of searching sessions, on both engines.

use super::*;
use crate::{Facet, FileToIndex, IndexedEvent, IndexedSession, SearchPage, SearchQuery};
use selftest_text::search::{SearchWords, index_text};

on_every_engine![
    newest_sessions_with_all_words_in_one_event,
    facets_and_times_narrow_a_search,
    pages_hold_every_session_once,
    the_index_goes_with_the_session_and_follows_the_file,
    what_is_typed_is_no_language,
    a_session_of_many_hits_and_those_before_it,
];

fn event(number: u64, text: &str, facets: &[String]) -> IndexedEvent {
    let words = format!("{} {}", index_text(text), facets.join(" "));
    IndexedEvent { number, text: text.to_owned(), words }
}

async fn add(store: &Store, id: &str, time: &str, events: &[(u64, &str)]) {
    let file = super::file(&format!("/s/{id}.json"), vec![grade_at(id, time)]);
    store.save(&[file]).await.unwrap();
    let [file] = &store.files_to_index(10).await.unwrap()[..] else { panic!("one file") };
    let bash = Facet::Tool.word("bash");
    let events = events.iter().map(|(number, text)| {
        event(*number, text, if text.contains("cargo") { std::slice::from_ref(&bash) } else { &[] })
    });
    let session = IndexedSession {
        session_id: id.to_owned(),
        counts_at: Some(at(time)),
        events: events.collect(),
    };
    store.index_file(file, &[session]).await.unwrap();
}

fn query(typed: &str) -> SearchQuery {
    let words = SearchWords::parse(typed).unwrap();
    SearchQuery { words, facets: Vec::new(), since: None, until: None, limit: 10, after: None }
}

/// `session: event event +` of each session.
fn shown(page: &SearchPage) -> Vec<String> {
    let line = |(session, hits, more): &(crate::SearchedSession, Vec<crate::SearchHit>, bool)| {
        let hits: Vec<String> = hits.iter().map(|hit| hit.event.to_string()).collect();
        format!("{}: {}{}", session.session_id, hits.join(" "), if *more { " +" } else { "" })
    };
    page.items.iter().map(line).collect()
}

async fn found(store: &Store, query: SearchQuery) -> Vec<String> {
    shown(&store.search(&query).await.unwrap())
}

async fn filled(on: &Databases) -> Store {
    let store = on.store().await;
    let old = [(0, "Fix the login"), (3, "cargo test failed: login timed out")];
    add(&store, "old", "2026-11-01T10:00:00Z", &old).await;
    let new: Vec<(u64, &str)> = (0..6).map(|number| (number, "the login works")).collect();
    add(&store, "new", "2026-11-20T10:00:00Z", &new).await;
    add(&store, "other", "2026-11-20T10:00:00Z", &[(7, "Überprüfe die 修复 in src/main.rs")]).await;
    store
}

async fn newest_sessions_with_all_words_in_one_event(on: &Databases) {
    let store = filled(on).await;
    assert_eq!(found(&store, query("LOGIN")).await, ["new: 0 1 2 +", "old: 0 3"]);
    assert_eq!(found(&store, query("login fix")).await, ["old: 0"]);
    assert_eq!(found(&store, query("\"login timed\"")).await, ["old: 3"]);
    assert_eq!(found(&store, query("\"timed login\"")).await, Vec::<String>::new());
    assert_eq!(found(&store, query("log* wor*")).await, ["new: 0 1 2 +"]);
    for words in ["überprüfe", "修复", "main.rs", "\"src/main\"", "üb*"] {
        assert_eq!(found(&store, query(words)).await, ["other: 7"], "{words}");
    }
    let page = store.search(&query("timed")).await.unwrap();
    assert_eq!(page.items[0].1[0].text, "cargo test failed: login timed out");
    assert_eq!(page.items[0].0.task_summary.as_deref(), Some("fix the bug"));
}

async fn facets_and_times_narrow_a_search(on: &Databases) {
    let store = filled(on).await;
    let with_bash = SearchQuery { facets: vec![Facet::Tool.word("Bash")], ..query("login") };
    assert_eq!(found(&store, with_bash).await, ["old: 3"]);
    let day = || Some(at("2026-11-20T10:00:00Z"));
    let since = SearchQuery { since: day(), ..query("login") };
    assert_eq!(found(&store, since).await, ["new: 0 1 2 +"]);
    let until = SearchQuery { until: day(), ..query("login") };
    assert_eq!(found(&store, until).await, ["old: 0 3"]);
}

async fn pages_hold_every_session_once(on: &Databases) {
    let store = on.store().await;
    let ids: Vec<String> = (0..9).map(|number| format!("s{number}")).collect();
    for id in &ids {
        // All of them count in the same second.
        add(&store, id, "2026-11-20T10:00:00.5Z", &[(0, "a word"), (40, "a word")]).await;
    }
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let query = SearchQuery { limit: 2, after, ..query("word") };
        let page = store.search(&query).await.unwrap();
        assert!(page.items.len() <= 2);
        all.extend(page.items.into_iter().map(|(session, ..)| session.session_id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    all.sort();
    assert_eq!(all, ids);
}

async fn the_index_goes_with_the_session_and_follows_the_file(on: &Databases) {
    let store = filled(on).await;
    assert_eq!(store.count_files_to_index().await.unwrap(), 0);
    // The file has changed and contains another session now.
    let mut changed = super::file("/s/old.json", vec![grade_at("renewed", "2026-11-02T10:00:00Z")]);
    changed.file.digest = "cd".repeat(32);
    store.save(&[changed]).await.unwrap();
    assert_eq!(found(&store, query("fix")).await, Vec::<String>::new());
    let expected =
        FileToIndex { path: "/s/old.json".to_owned(), digest: "cd".repeat(32), graded: 1 };
    assert_eq!(store.files_to_index(10).await.unwrap(), std::slice::from_ref(&expected));
    let count = async |table: &str| {
        store.count(format!("SELECT COUNT(*) AS count FROM {table}"), []).await.unwrap()
    };
    assert_eq!(count("session_texts").await, 7, "the texts of what is gone are gone");
    let session = |text: &str| IndexedSession {
        session_id: "renewed".to_owned(),
        counts_at: Some(at("2026-11-02T10:00:00Z")),
        events: vec![event(1, text, &[])],
    };
    store.index_file(&expected, &[session("first words")]).await.unwrap();
    store.index_file(&expected, &[session("second words")]).await.unwrap();
    assert_eq!(found(&store, query("first")).await, Vec::<String>::new());
    assert_eq!(found(&store, query("second")).await, ["renewed: 1"]);
    assert_eq!(count("session_texts").await, 8);
    // A session that is now graded from another file is not indexed from this one.
    let stray = IndexedSession { session_id: "new".to_owned(), ..session("stray") };
    store.index_file(&expected, &[stray]).await.unwrap();
    assert_eq!(found(&store, query("stray")).await, Vec::<String>::new());
}

async fn what_is_typed_is_no_language(on: &Databases) {
    let store = filled(on).await;
    for typed in ["login OR x", "NOT login", "login NEAR works", "words: login", "'; DROP", "a & b"]
    {
        let Some(words) = SearchWords::parse(typed) else { panic!("{typed}") };
        let query = SearchQuery { words, ..query("x") };
        assert_eq!(found(&store, query).await, Vec::<String>::new(), "{typed}");
    }
    let strange = "login \u{0} \\ : * ^ ) ( ' \" --";
    assert_eq!(found(&store, query(strange)).await.len(), 2);
}

async fn a_session_of_many_hits_and_those_before_it(on: &Databases) {
    let store = on.store().await;
    add(&store, "old", "2026-11-01T10:00:00Z", &[(0, "word"), (9, "word")]).await;
    let many: Vec<(u64, &str)> = (0..2500).map(|number| (number, "a word")).collect();
    add(&store, "long", "2026-11-20T10:00:00Z", &many).await;
    add(&store, "new", "2026-11-21T10:00:00Z", &[(4, "word")]).await;
    let all = ["new: 4", "long: 0 1 2 +", "old: 0 9"];
    assert_eq!(found(&store, query("wor*")).await, all);
    let first = store.search(&SearchQuery { limit: 2, ..query("word") }).await.unwrap();
    assert_eq!(shown(&first), all[..2]);
    let rest = SearchQuery { limit: 2, after: first.next, ..query("word") };
    assert_eq!(found(&store, rest).await, all[2..]);
}
