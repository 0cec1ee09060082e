//! Files, weekly reports, overrides and grades by a model.

use super::*;
use crate::statement::DatabaseEngine;
use crate::{KnownFile, StoredReport};
use selftest_grading::grade::{GradeField, GradeOverride};

on_every_engine! {
    files_are_counted_by_outcome_and_time,
    an_unchanged_file_can_get_a_new_date,
    known_files_are_whatever_their_paths_and_however_many,
    a_mark_of_an_older_version_is_understood,
    a_week_has_one_report,
    overrides_are_added_never_replaced,
    grades_by_a_model_are_read,
}

async fn files_are_counted_by_outcome_and_time(on: &Databases) {
    let store = on.store().await;
    let (from, to) = (at("2026-11-16T00:00:00Z"), at("2026-11-23T00:00:00Z"));
    let mut files = Vec::new();
    for (number, outcome) in
        <FileOutcome as strum::VariantArray>::VARIANTS.iter().copied().cycle().take(7).enumerate()
    {
        let mut one = file(&format!("/s/{number}.json"), vec![]);
        one.file.outcome = outcome;
        one.file.modified_ns = i64::try_from(from.as_nanosecond()).unwrap();
        files.push(one);
    }
    // At the end of the range, which is exclusive.
    files[6].file.modified_ns = i64::try_from(to.as_nanosecond()).unwrap();
    store.save(&files).await.unwrap();
    execute(&store, "UPDATE session_files SET outcome = 'eaten' WHERE path = '/s/4.json'").await;
    let counts = store.files_by_outcome(from, to).await.unwrap();
    let expected = [
        (FileOutcome::Graded, 2),
        (FileOutcome::NotGradable, 1),
        (FileOutcome::NoSession, 1),
        (FileOutcome::Unreadable, 1),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
    let all = store.files_by_outcome(Timestamp::MIN, Timestamp::MAX).await.unwrap();
    assert_eq!(all.values().sum::<u64>(), 6);
}

async fn an_unchanged_file_can_get_a_new_date(on: &Databases) {
    let store = on.store().await;
    store.save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    let digest = "cd".repeat(32);
    let now = KnownFile { size: 1000, modified_ns: 7, digest, by_these_rules: true };
    store.touch_files(&[("/s/a.json".to_owned(), now.clone())]).await.unwrap();
    assert_eq!(store.known_files(RULES).await.unwrap()["/s/a.json"], now);
    let by_others = KnownFile { by_these_rules: false, ..now };
    assert_eq!(store.known_files("rules of tomorrow").await.unwrap()["/s/a.json"], by_others);
}

async fn known_files_are_whatever_their_paths_and_however_many(on: &Databases) {
    let store = on.store().await;
    let mut files: Vec<_> = (0..11).map(|number| file(&format!("/s/ü {number}"), vec![])).collect();
    store.save(&files).await.unwrap();
    // Enough to need more than one row.
    execute(
        &store,
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1500) \
         INSERT INTO session_files SELECT path || n || ' x', n, n, digest, scanned_at, outcome, \
         reason, format, sessions, graded, notes_json, rules FROM session_files, n",
    )
    .await;
    let known = store.known_files(RULES).await.unwrap();
    assert_eq!(known.len(), 11 * 1501);
    assert_eq!((known["/s/ü 31500 x"].size, known["/s/ü 31500 x"].modified_ns), (1500, 1500));
    assert_eq!(known["/s/ü 10"].digest, files[0].file.digest);
    for odd in ["/s/two\nlines", "/s/x\n1 1 y"] {
        let mut odd_file = file(odd, vec![]);
        odd_file.file.digest = "cd".repeat(32);
        files.push(odd_file);
    }
    store.save(&files).await.unwrap();
    let again = store.known_files(RULES).await.unwrap();
    assert_eq!(again.len(), known.len() + 2);
    assert_eq!(again["/s/two\nlines"].digest, "cd".repeat(32));
    assert!(again.values().all(|known| known.by_these_rules));
    assert!(store.known_files("").await.unwrap().values().all(|known| !known.by_these_rules));
    if on.engine() == DatabaseEngine::Postgres {
        // PostgreSQL rejects text that is not UTF-8.
        return;
    }
    execute(&store, "UPDATE session_files SET path = CAST(x'2fff' AS TEXT) WHERE path = '/s/ü 1'")
        .await;
    assert_eq!(store.known_files(RULES).await.unwrap().len(), again.len() - 1);
}

async fn a_week_has_one_report(on: &Databases) {
    let store = on.store().await;
    let report = |day: &str, json: &str| StoredReport {
        week_start: day.parse().unwrap(),
        week_end: day
            .parse::<jiff::civil::Date>()
            .unwrap()
            .saturating_add(jiff::Span::new().days(6)),
        generated_at: at("2026-11-22T10:00:00Z"),
        report_json: json.to_owned(),
    };
    let [first, second, again] =
        [report("2026-11-09", "{}"), report("2026-11-16", "{}"), report("2026-11-09", "[1]")];
    for one in [&first, &second, &again] {
        store.save_weekly_report(one).await.unwrap();
    }
    assert_eq!(store.weekly_report(first.week_start).await.unwrap(), Some(again.clone()));
    assert_eq!(store.weekly_report("2026-11-10".parse().unwrap()).await.unwrap(), None);
    assert_eq!(store.weekly_reports(9).await.unwrap().items, [second.clone(), again]);
    assert_eq!(store.weekly_reports(1).await.unwrap().items, [second]);
    execute(&store, "UPDATE weekly_reports SET week_end = 'Sunday'").await;
    assert_eq!(store.weekly_reports(9).await.unwrap().unreadable, 2);
    let error = store.save_weekly_report(&report("2026-11-09", &" ".repeat(1 << 25))).await;
    assert!(error.unwrap_err().to_string().starts_with("the report of 2026-11-09 is too large"));
}

async fn overrides_are_added_never_replaced(on: &Databases) {
    let store = on.store().await;
    let made = |session_id: &str, value, time| GradeOverride {
        session_id: session_id.to_owned(),
        field: GradeField::ResponseQuality,
        rule_value: 2,
        human_value: value,
        reason: "it's right".to_owned(),
        made_at: at(time),
    };
    let late = made("a", 5, "2026-11-22T10:00:00Z");
    let early = made("a", 4, "2026-11-21T10:00:00Z");
    let other = made("b", 1, "2026-11-21T11:00:00Z");
    for one in [&late, &early, &other] {
        store.add_override(one).await.unwrap();
    }
    assert_eq!(store.session_overrides("a").await.unwrap().items, [early.clone(), late.clone()]);
    assert_eq!(store.overrides().await.unwrap().items, [early, other, late]);
    execute(&store, "UPDATE grade_overrides SET field = 'mood' WHERE session_id = 'b'").await;
    execute(&store, "UPDATE grade_overrides SET human_value = 300 WHERE human_value = 4").await;
    let left = store.overrides().await.unwrap();
    assert_eq!((left.items.len(), left.unreadable), (1, 2));
}

async fn grades_by_a_model_are_read(on: &Databases) {
    let store = on.store().await;
    execute(
        &store,
        "INSERT INTO session_quality_grades (session_id, grader_model, rubric_version, ts, \
         problem_solved, tests_added, code_clean, edge_cases, overall, reasoning, details_json) \
         VALUES ('a', 'some/model', 1, '2026-11-22T10:00:00Z', 0.5, NULL, 1, 0.25, 0.6, 'fine', \
         '{\"w\": 1}'), \
         ('a', 'other/model', 1, '2026-11-22T10:00:00Z', 1.5, NULL, NULL, NULL, NULL, NULL, NULL), \
         ('a', 'old/model', 0, '2026-11-22T10:00:00Z', NULL, NULL, NULL, NULL, 0.9, NULL, NULL), \
         ('b', 'some/model', 1, '2026-11-22T11:00:00', NULL, NULL, NULL, NULL, NULL, NULL, 'none')",
    )
    .await;
    let grades = store.quality_grades().await.unwrap();
    assert_eq!(grades.unreadable, 1);
    let [first, second] = &grades.items[..] else { panic!("{grades:?}") };
    assert_eq!(
        (first.problem_solved, first.tests_added, first.code_clean),
        (Some(0.5), None, Some(1.0))
    );
    assert_eq!(first.details, Some(serde_json::json!({"w": 1})));
    assert_eq!((second.overall, &second.details), (None, &None));
    assert_eq!(second.ts, at("2026-11-22T11:00:00Z"));
}

/// Older versions used a size of -1 to mark files to be read again.
async fn a_mark_of_an_older_version_is_understood(on: &Databases) {
    let store = on.store().await;
    store.save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    execute(&store, "UPDATE session_files SET size = -1").await;
    assert!(store.known_files(RULES).await.unwrap().is_empty());
    assert_eq!(store.file("/s/a.json").await.unwrap().unwrap().size, 0);
}
