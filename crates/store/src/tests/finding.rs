//! Finding grades by id, time and agent.

use super::*;
use crate::{Cursor, ScoreCount};
use selftest_grading::grade::{GradeField, GradeOverride};

on_every_engine! {
    by_the_beginning_of_the_id,
    by_time_without_the_end,
    the_newest,
    scores_are_counted_and_what_people_corrected_is_apart,
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
        let none = store.sessions_without_quality("m\0", None, Some(nobody)).await.unwrap();
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

async fn scores_are_counted_and_what_people_corrected_is_apart(on: &Databases) {
    let store = on.store().await;
    let mut grades: Vec<GradeRecord> = (1..=9)
        .map(|day| grade_at(&format!("s{day}"), &format!("2026-11-0{day}T00:00:00Z")))
        .collect();
    grades[7].session_kind = SessionKind::Subagent;
    grades[6].task_completed = false;
    grades[5].details.agent = "codex".to_owned();
    let files = grades.iter().map(|grade| file(&grade.session_file.clone(), vec![grade.clone()]));
    store.save(&files.collect::<Vec<_>>()).await.unwrap();
    store
        .add_override(&GradeOverride {
            session_id: "s5".to_owned(),
            field: GradeField::TaskCompleted,
            rule_value: 1,
            human_value: 0,
            reason: "no".to_owned(),
            made_at: at("2026-11-10T00:00:00Z"),
        })
        .await
        .unwrap();
    let times = ["2026-11-02T00:00:00Z", "2026-11-04T00:00:00Z", "2026-11-09T00:00:00Z"].map(at);
    let counted = async |agent: Option<&str>| {
        let mut counts = store.score_counts(times, agent).await.unwrap().items;
        counts.sort_by_key(|count| count.task_completed);
        let told = |count: &ScoreCount| (count.task_completed, count.earlier, count.recent);
        counts.iter().map(told).collect::<Vec<_>>()
    };
    // The 2nd and 3rd are from before; the 4th, 6th and 7th are recent. The 5th was corrected, and
    // the 6th is of another agent.
    let all = counted(None).await;
    assert_eq!(all.iter().map(|(_, earlier, _)| earlier).sum::<u64>(), 2);
    assert_eq!(all.iter().map(|(.., recent)| recent).sum::<u64>(), 3);
    assert_eq!(all[0], (false, 0, 1));
    assert_eq!(counted(Some("codex")).await, [(true, 0, 1)]);
    let one = store.score_counts(times, None).await.unwrap().items[0];
    let parts = (one.task_type, one.efficiency, one.quality);
    assert_eq!(parts, (TaskType::Debugging, level(4), level(2)));
    let apart = store.uncountable_grades(times[0], times[2], None).await.unwrap();
    assert_eq!(ids(&apart), ["s5"]);
    assert_eq!(store.uncountable_grades(times[0], times[2], Some("codex")).await.unwrap(), []);
    assert_eq!(store.uncountable_grades(times[0], times[1], None).await.unwrap(), []);
}
