//! Tests of daily tallies: any change to a day invalidates its tally.

use jiff::civil::{Date, date};

use super::*;
use crate::{FileOutcome, HumanDataPolicy, PatternDay};
use selftest_grading::grade::{GradeField, GradeOverride, PatternTally};

on_every_engine! {
    a_tally_counts_until_its_day_changes,
    a_session_that_moves_changes_two_days,
    a_tally_of_what_has_changed_meanwhile_does_not_count,
    grades_are_handed_over_newest_first,
}

const DAY: Date = date(2026, 11, 20);

async fn days(store: &Store) -> Vec<PatternDay> {
    store.pattern_days(date(2026, 1, 1), date(2026, 12, 31), 100).await.unwrap()
}

async fn to_tally(store: &Store) -> Vec<Date> {
    store.days_to_tally().await.unwrap().into_iter().map(|day| day.day).collect()
}

/// Tallies all days that have changed.
async fn tally(store: &Store) {
    for day in store.days_to_tally().await.unwrap() {
        store.save_tally(&day, &PatternTally::default()).await.unwrap();
    }
    assert!(to_tally(store).await.is_empty());
}

async fn with_one(on: &Databases) -> Store {
    let store = on.store().await;
    let one = file("/s/a.json", vec![grade_at("a", "2026-11-20T08:00:00Z")]);
    store.save(&[one]).await.unwrap();
    store
}

async fn a_tally_counts_until_its_day_changes(on: &Databases) {
    let store = with_one(on).await;
    assert_eq!(to_tally(&store).await, [DAY]);
    assert_eq!(days(&store).await[0].tally, None);
    let grade = grade_at("a", "2026-11-20T08:00:00Z");
    let made = PatternTally::from_records([&grade]);
    store.save_tally(&store.days_to_tally().await.unwrap()[0], &made).await.unwrap();
    assert_eq!(days(&store).await[0].tally.as_ref(), Some(&made));
    execute(&store, "UPDATE session_grades SET quality = 0.5, messages = NULL").await;
    assert!(to_tally(&store).await.is_empty(), "patterns show nothing of it");

    store.save(&[file("/s/a.json", vec![grade])]).await.unwrap();
    assert_eq!(to_tally(&store).await, [DAY], "it was graded again");
    tally(&store).await;
    let word = GradeOverride {
        session_id: "a".to_owned(),
        field: GradeField::TaskCompleted,
        rule_value: 1,
        human_value: 0,
        reason: "it is red".to_owned(),
        made_at: at("2026-11-21T10:00:00Z"),
    };
    store.add_override(&word).await.unwrap();
    assert_eq!(to_tally(&store).await, [DAY], "a person has spoken");
    tally(&store).await;
    execute(&store, "DELETE FROM grade_overrides").await;
    assert_eq!(to_tally(&store).await, [DAY], "and has taken it back");
    tally(&store).await;
    store.prune(at("2026-12-01T00:00:00Z"), HumanDataPolicy::Delete).await.unwrap();
    assert_eq!(to_tally(&store).await, [DAY], "the session is gone");
}

async fn a_session_that_moves_changes_two_days(on: &Databases) {
    let store = with_one(on).await;
    tally(&store).await;
    let moved = file("/s/a.json", vec![grade_at("a", "2026-11-22T08:00:00Z")]);
    store.save(&[moved]).await.unwrap();
    assert_eq!(to_tally(&store).await, [date(2026, 11, 22), DAY]);
    let none = FileResult { grades: Vec::new(), ..file("/s/a.json", Vec::new()) };
    tally(&store).await;
    assert_eq!(none.file.outcome, FileOutcome::NoSession);
    store.save(&[none]).await.unwrap();
    assert_eq!(to_tally(&store).await, [date(2026, 11, 22)]);
}

async fn a_tally_of_what_has_changed_meanwhile_does_not_count(on: &Databases) {
    let store = with_one(on).await;
    let seen = store.days_to_tally().await.unwrap();
    let other = file("/s/b.json", vec![grade_at("b", "2026-11-20T23:59:59.9Z")]);
    store.save(&[other]).await.unwrap();
    store.save_tally(&seen[0], &PatternTally::default()).await.unwrap();
    assert_eq!(to_tally(&store).await, [DAY]);
    tally(&store).await;
    execute(&store, "UPDATE pattern_tallies SET version = 0").await;
    assert_eq!(to_tally(&store).await, [DAY], "another version tallied it");
    tally(&store).await;
    execute(&store, "UPDATE pattern_tallies SET tally_json = '{'").await;
    assert_eq!(days(&store).await[0].tally, None, "it cannot be read");
}

async fn grades_are_handed_over_newest_first(on: &Databases) {
    let store = on.store().await;
    let times = ["2026-11-20T08:00:00Z", "2026-11-20T09:00:00Z", "2026-11-20T08:00:00Z"];
    let grades = ["c", "b", "a"].iter().zip(times).map(|(id, time)| grade_at(id, time));
    store.save(&[file("/s/all.json", grades.collect())]).await.unwrap();
    let mut seen = Vec::new();
    let (from, to) = (at("2026-11-20T08:00:00Z"), at("2026-11-20T09:00:00.000000001Z"));
    store.for_each_grade(from, to, |grade| seen.push(grade.session_id)).await.unwrap();
    assert_eq!(seen, ["b", "a", "c"]);
    seen.clear();
    store.for_each_grade(from, at(times[1]), |grade| seen.push(grade.session_id)).await.unwrap();
    assert_eq!(seen, ["a", "c"]);
}

/// The original program replaces rows: the old row is deleted without firing a delete trigger.
#[tokio::test]
async fn a_row_that_another_program_replaces_changes_its_day() {
    let store = with_one(&Databases::sqlite()).await;
    tally(&store).await;
    execute(
        &store,
        "INSERT OR REPLACE INTO session_grades (session_id, session_file, graded_at, \
         task_completed, tool_calls_efficient, response_quality, errors_recovered, \
         total_api_calls, total_errors, had_repeated_errors, had_infinite_loop_risk, \
         had_user_clarification) \
         VALUES ('a', '/s/a.json', '2026-11-20T10:00:00', 1, 3, 3, 0, 1, 0, 0, 0, 0)",
    )
    .await;
    assert_eq!(to_tally(&store).await, [DAY]);
}

#[tokio::test]
async fn the_days_of_an_old_database_are_to_be_tallied() {
    let on = Databases::sqlite();
    let store = with_one(&on).await;
    for gone in [
        "session_grades_replaced",
        "session_grades_added",
        "session_grades_changed",
        "session_grades_gone",
        "grade_overrides_added",
        "grade_overrides_changed",
        "grade_overrides_gone",
    ] {
        execute(&store, &format!("DROP TRIGGER {gone}")).await;
    }
    execute(&store, "DROP TABLE pattern_days").await;
    execute(&store, "DROP TABLE pattern_tallies").await;
    execute(&store, "DELETE FROM selftest_migrations WHERE version = 18").await;
    store.migrate().await.unwrap();
    assert_eq!(to_tally(&store).await, [DAY]);
}
