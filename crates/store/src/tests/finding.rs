//! Finding grades by id, time and agent.

use super::*;
use crate::Cursor;

on_every_engine! {
    by_the_beginning_of_the_id,
    by_time_without_the_end,
    the_newest,
}

async fn filled(on: &Databases) -> Store {
    let store = on.store().await;
    let mut grades = vec![
        grade_at("abc1", "2026-11-16T00:00:00Z"),
        grade_at("abc2", "2026-11-18T12:00:00.5Z"),
        grade_at("abd", "2026-11-23T00:00:00Z"),
        grade_at("ABC", "2026-11-15T23:59:59.999999999Z"),
    ];
    grades[1].details.agent = "codex".to_owned();
    let files = grades.into_iter().map(|grade| file(&grade.session_file.clone(), vec![grade]));
    store.save(&files.collect::<Vec<_>>()).await.unwrap();
    store
}

fn ids(grades: &[GradeRecord]) -> Vec<&str> {
    grades.iter().map(|grade| grade.session_id.as_str()).collect()
}

async fn by_the_beginning_of_the_id(on: &Databases) {
    let store = filled(on).await;
    for (prefix, found) in [
        ("abc", &["abc1", "abc2"][..]),
        ("abd", &["abd"]),
        ("ABC", &["ABC"]),
        ("a%", &[]),
        ("_bd", &[]),
        ("ab\0d", &["abd"]),
        ("", &["ABC", "abc1", "abc2", "abd"]),
    ] {
        assert_eq!(ids(&store.find_grades(prefix).await.unwrap().items), found, "{prefix}");
    }
}

async fn by_time_without_the_end(on: &Databases) {
    let store = filled(on).await;
    let (from, to) = (at("2026-11-16T00:00:00Z"), at("2026-11-23T00:00:00Z"));
    let week = store.grades_between(from, to, None).await.unwrap();
    assert_eq!(ids(&week.items), ["abc1", "abc2"]);
    assert_eq!(week.unreadable, 0);
    let codex = store.grades_between(from, to, Some("codex")).await.unwrap();
    assert_eq!(ids(&codex.items), ["abc2"]);
    for nobody in ["nobody", "\0"] {
        let none = store.grades_between(from, to, Some(nobody)).await.unwrap();
        assert_eq!(ids(&none.items), [""; 0]);
        assert_eq!(store.latest_grades(2, Some(nobody)).await.unwrap().items, []);
        let none = store.without_quality("m\0", None, Some(nobody)).await.unwrap();
        assert_eq!(none.items, []);
        let cursor = Cursor { value: Some(nobody.to_owned()), id: nobody.to_owned(), order: None };
        assert_eq!(store.recent_quality(None, 9, Some(&cursor)).await.unwrap().items, []);
    }
}

async fn the_newest(on: &Databases) {
    let store = filled(on).await;
    let newest = store.latest_grades(2, None).await.unwrap().items;
    assert_eq!(ids(&newest), ["abd", "abc2"]);
    assert_eq!(ids(&store.latest_grades(2, Some("codex")).await.unwrap().items), ["abc2"]);
    assert_eq!(store.latest_grades(u64::MAX, None).await.unwrap().items.len(), 4);
    assert_eq!(store.newest_counts_at().await.unwrap(), Some(at("2026-11-23T00:00:00Z")));
    assert_eq!(on.store().await.newest_counts_at().await.unwrap(), None);
}
