//! Finding and listing sessions and grades.

use super::*;
use crate::statement::DatabaseEngine;
use crate::{Cursor, ScoreCount, SessionQuery, SessionRow, SessionSort};
use selftest_grading::grade::{GradeField, GradeOverride, QualityGrade, SessionKind, TaskOutcome};

on_every_engine! {
    every_order_pages_through_every_session_once_with_nulls_last,
    filters_narrow_the_list_and_its_count,
    a_cursor_of_another_order_finds_nothing,
    a_row_that_cannot_be_read_does_not_end_the_list,
    averages_are_of_the_readers_rubric,
    by_the_beginning_of_the_id,
    by_time_without_the_end,
    the_newest,
    scores_are_counted_and_what_people_corrected_is_apart,
}

pub(super) fn quality(session_id: &str, overall: Option<f64>) -> QualityGrade {
    QualityGrade {
        session_id: session_id.to_owned(),
        model: "m".to_owned(),
        rubric_version: 1,
        ts: at("2026-11-20T08:00:00Z"),
        problem_solved: overall,
        tests_added: overall,
        code_clean: None,
        edge_cases: None,
        overall,
        reasoning: None,
        details: None,
    }
}

/// 12 sessions `s00` to `s11`; values repeat and are missing.
async fn filled(on: &Databases) -> Store {
    let store = on.store().await;
    let sessions = (0_u8..12).map(|number| {
        let mut grade = grade_at(&format!("s{number:02}"), "2026-11-20T08:00:00Z");
        let later = jiff::SignedDuration::from_hours(i64::from(number / 2));
        grade.details.counts_at = grade.details.counts_at.map(|at| at + later);
        grade.details.agent = ["pi", "codex", "hermes"][usize::from(number % 3)].to_owned();
        grade.details.task_type = TaskType::ALL[usize::from(number % 4)];
        grade.task_completed = number % 2 == 0;
        grade.outcome = TaskOutcome::ALL[usize::from(number % 4)];
        grade.tool_calls_efficient = level(1 + number % 5);
        grade.total_errors = u64::from(number % 4) * 5;
        grade.total_api_calls = u64::from(number);
        grade.duration_seconds = (number % 3 != 0).then(|| f64::from(number) / 7.0);
        grade.task_summary = Some(format!("Fix 100% of É_{number}!"));
        file(&grade.session_file.clone(), vec![grade])
    });
    store.save(&sessions.collect::<Vec<_>>()).await.unwrap();
    for number in 0..6_u8 {
        let overall = (number > 0).then(|| f64::from(number / 2) / 3.0);
        store.save_quality(&quality(&format!("s{number:02}"), overall)).await.unwrap();
    }
    // A row of the original program has none of the columns added later.
    execute(
        &store,
        "UPDATE session_grades SET agent = NULL, task_type = NULL, counts_at = NULL, \
         outcome = NULL, session_kind = NULL \
         WHERE session_id IN ('s04', 's07')",
    )
    .await;
    store
}

async fn all(store: &Store, mut query: SessionQuery) -> Vec<SessionRow> {
    let mut rows = Vec::new();
    loop {
        let page = store.sessions(&query).await.unwrap();
        assert!(page.items.len() <= query.limit as usize);
        rows.extend(page.items);
        match page.next {
            // As it comes back in a URL.
            Some(next) => query.after = Some(next.to_string().parse::<Cursor>().unwrap()),
            None => return rows,
        }
    }
}

fn ids(rows: &[SessionRow]) -> Vec<&str> {
    rows.iter().map(|row| row.session_id.as_str()).collect()
}

/// The sort value as JSON, which compares like numbers and texts do.
fn value(row: &SessionRow, sort: SessionSort) -> serde_json::Value {
    if sort == SessionSort::Worst {
        let outcome = match row.outcome {
            Some(TaskOutcome::Contradicted) => 3,
            Some(TaskOutcome::Claimed) => 1,
            Some(TaskOutcome::ChecksPassed) => 0,
            Some(TaskOutcome::Unknown) | None => 2,
        };
        let is_task = row.session_kind == SessionKind::Task;
        let worst = i64::try_from(10_000 * outcome + row.total_errors).unwrap();
        return if is_task { worst } else { -1 }.into();
    }
    let row = serde_json::to_value(row).unwrap();
    row[match sort {
        SessionSort::Time => "counts_at",
        SessionSort::Quality => "quality",
        SessionSort::Outcome => "outcome",
        SessionSort::Completed => "task_completed",
        SessionSort::Efficiency => "tool_calls_efficient",
        SessionSort::Response => "response_quality",
        SessionSort::Errors => "total_errors",
        SessionSort::Calls => "total_api_calls",
        SessionSort::Duration => "duration_seconds",
        SessionSort::Agent => "agent",
        SessionSort::TaskType => "task_type",
        SessionSort::Worst => unreachable!("it is computed above"),
    }]
    .clone()
}

fn in_order(a: &serde_json::Value, b: &serde_json::Value) -> std::cmp::Ordering {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => (a.as_bool(), a.as_str()).cmp(&(b.as_bool(), b.as_str())),
    }
}

async fn every_order_pages_through_every_session_once_with_nulls_last(on: &Databases) {
    let store = filled(on).await;
    for &sort in SessionSort::ALL {
        assert_eq!(sort.name().parse(), Ok(sort));
        for descending in [true, false] {
            let query = SessionQuery { sort, descending, limit: 500, ..SessionQuery::default() };
            let whole = all(&store, query.clone()).await;
            assert_eq!(whole.len(), 12, "{sort} {descending}");
            for pair in whole.windows(2) {
                let (a, b) = (value(&pair[0], sort), value(&pair[1], sort));
                let (id_a, id_b) = (&pair[0].session_id, &pair[1].session_id);
                assert!(!a.is_null() || b.is_null(), "{sort}: {id_a} has no value, {id_b} has");
                if a.is_null() != b.is_null() {
                    continue;
                }
                let order = in_order(&a, &b).then(id_a.cmp(id_b));
                assert_eq!(order.is_gt(), descending, "{sort}: {a} {id_a}, {b} {id_b}");
            }
            for limit in [1, 5, 11, 12] {
                let paged = all(&store, SessionQuery { limit, ..query.clone() }).await;
                assert_eq!(paged, whole, "{sort} {descending} by {limit}");
            }
        }
    }
}

async fn filters_narrow_the_list_and_its_count(on: &Databases) {
    let store = filled(on).await;
    let query = || SessionQuery { descending: false, limit: 4, ..SessionQuery::default() };
    let search = |words: &str| SessionQuery { search: Some(words.to_owned()), ..query() };
    for (query, expected) in [
        (SessionQuery { agent: Some("codex".into()), ..query() }, &["s01", "s10"][..]),
        (SessionQuery { task_type: Some(TaskType::ALL[3]), ..query() }, &["s03", "s11"]),
        (SessionQuery { min_quality: Some(0.3), ..query() }, &["s02", "s03", "s05", "s04"]),
        (search("s0"), &["s00", "s01", "s02", "s03", "s05", "s06", "s08", "s09", "s04", "s07"]),
        (search("fix 100%"), &["s00"]),
        (search("É_1!"), &["s01"]),
        (search("%5"), &[]),
        (search("' OR 1=1 --"), &[]),
        (search("\0"), &["s00"]),
    ] {
        let found = all(&store, query.clone()).await;
        assert_eq!(store.count_sessions(&query).await.unwrap(), found.len() as u64);
        let found = ids(&found);
        if matches!(query.search.as_deref(), Some("fix 100%" | "\0")) {
            assert_eq!(found.len(), 12, "{query:?}");
        } else {
            assert_eq!(found, expected, "{query:?}");
        }
    }
    let both = SessionQuery { completed: Some(true), agent: Some("pi".into()), ..query() };
    assert_eq!(ids(&all(&store, both).await), ["s00", "s06"]);
    let open = SessionQuery { completed: Some(false), ..query() };
    assert_eq!(store.count_sessions(&open).await.unwrap(), 6);
    let passed = SessionQuery { outcome: Some(TaskOutcome::ChecksPassed), ..query() };
    assert_eq!(ids(&all(&store, passed).await), ["s00", "s08"], "s04 has no outcome");
    assert_eq!(store.agents().await.unwrap(), ["codex", "hermes", "pi"]);
    execute(&store, "UPDATE session_grades SET session_kind = 'subagent' WHERE session_id = 's08'")
        .await;
    let passed = SessionQuery { outcome: Some(TaskOutcome::ChecksPassed), ..query() };
    let found = all(&store, passed).await;
    assert_eq!(ids(&found), ["s00"], "a subagent's session is no task");
    assert_eq!(found[0].session_kind, SessionKind::Task);
    let waiting = store.sessions_without_quality("other", None, None).await.unwrap().items;
    assert_eq!(waiting.len(), 11, "no model is asked about a subagent");
    assert!(waiting.iter().all(|(id, _)| id != "s08"));
}

async fn a_cursor_of_another_order_finds_nothing(on: &Databases) {
    let store = filled(on).await;
    let text =
        Cursor { value: Some("pi".into()), id: "s01".into(), order: Some("agent.desc".into()) };
    let none = Cursor { value: None, ..text.clone() };
    assert!(SessionSort::Agent.fits(true, &text) && SessionSort::Agent.fits(true, &none));
    assert!(!SessionSort::Agent.fits(false, &text) && !SessionSort::Agent.fits(false, &none));
    assert!(!SessionSort::Agent.fits(true, &Cursor { order: None, ..text.clone() }));
    for sort in SessionSort::ALL.iter().copied().filter(|sort| *sort != SessionSort::Agent) {
        assert!(!sort.fits(true, &text) && !sort.fits(true, &none), "{sort}");
    }
    let order = |sort: SessionSort| Some(sort.order(true));
    let (quality, errors) = (SessionSort::Quality, SessionSort::Errors);
    let odd = Cursor { value: Some("NaN".into()), id: "s01".into(), order: order(quality) };
    assert!(!quality.fits(true, &odd));
    assert!(!errors.fits(true, &Cursor { value: None, order: order(errors), ..odd }));
    let query = SessionQuery { sort: SessionSort::Errors, after: Some(text), ..Default::default() };
    assert_eq!(all(&store, query).await, []);
}

async fn a_row_that_cannot_be_read_does_not_end_the_list(on: &Databases) {
    let store = filled(on).await;
    // SQLite takes text for a number.
    let errors = if on.engine() == DatabaseEngine::Sqlite { "'many'" } else { "-1" };
    let odd = format!(
        "UPDATE session_grades SET total_errors = {errors}, tool_calls_efficient = 9 \
         WHERE session_id IN ('s02', 's03')"
    );
    execute(&store, &odd).await;
    for &sort in SessionSort::ALL {
        for limit in [1, 3, 50] {
            let query = SessionQuery { sort, limit, ..SessionQuery::default() };
            if limit == 1 && sort == SessionSort::Errors {
                // The only row of a page has no cursor for the next one.
                continue;
            }
            assert_eq!(all(&store, query).await.len(), 10, "{sort} by {limit}");
        }
    }
}

/// docs/spec/session-quality.md#tests: a new version of the rubric invalidates old grades on read.
async fn averages_are_of_the_readers_rubric(on: &Databases) {
    let store = filled(on).await;
    let of = async |store: &Store| {
        let least = SessionQuery { min_quality: Some(0.3), ..SessionQuery::default() };
        let best = SessionQuery { sort: SessionSort::Quality, limit: 1, ..least.clone() };
        let best = store.sessions(&best).await.unwrap();
        let recent = store.recent_quality(None, 100, None).await.unwrap().items;
        let best = best.items.first().map(|row| (row.session_id.clone(), row.quality.unwrap()));
        (best, store.count_sessions(&least).await.unwrap(), recent.len())
    };
    let old = of(&store).await;
    assert_eq!(old, (Some(("s05".to_owned(), 2.0 / 3.0)), 4, 6));
    let newer = store.clone().with_rubric(2).await.unwrap();
    assert_eq!(of(&newer).await, (None, 0, 0));
    let again = QualityGrade { rubric_version: 2, ..quality("s05", Some(0.5)) };
    newer.save_quality(&again).await.unwrap();
    assert_eq!(of(&newer).await, (Some(("s05".to_owned(), 0.5)), 1, 1));
    assert_eq!(newer.session_quality_grades("s05").await.unwrap().items, [again]);
    assert_eq!(newer.session_quality_grades("s04").await.unwrap().items, []);
    assert_eq!(newer.quality_grades().await.unwrap().items.len(), 1);
    // Going back to the old version finds the earlier grades.
    let back = newer.with_rubric(1).await.unwrap();
    assert_eq!(of(&back).await, old);
}

async fn four_grades(on: &Databases) -> Store {
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

fn grade_ids(grades: &[GradeRecord]) -> Vec<&str> {
    grades.iter().map(|grade| grade.session_id.as_str()).collect()
}

async fn by_the_beginning_of_the_id(on: &Databases) {
    let store = four_grades(on).await;
    for (prefix, found) in [
        ("abc", &["abc1", "abc2"][..]),
        ("abd", &["abd"]),
        ("ABC", &["ABC"]),
        ("a%", &[]),
        ("_bd", &[]),
        ("ab\0d", &["abd"]),
        ("", &["ABC", "abc1", "abc2", "abd"]),
    ] {
        assert_eq!(grade_ids(&store.find_grades(prefix).await.unwrap().items), found, "{prefix}");
    }
}

async fn by_time_without_the_end(on: &Databases) {
    let store = four_grades(on).await;
    let (from, to) = (at("2026-11-16T00:00:00Z"), at("2026-11-23T00:00:00Z"));
    let week = store.grades_between(from, to, None).await.unwrap();
    assert_eq!(grade_ids(&week.items), ["abc1", "abc2"]);
    assert_eq!(week.unreadable, 0);
    let codex = store.grades_between(from, to, Some("codex")).await.unwrap();
    assert_eq!(grade_ids(&codex.items), ["abc2"]);
    for nobody in ["nobody", "\0"] {
        let none = store.grades_between(from, to, Some(nobody)).await.unwrap();
        assert_eq!(grade_ids(&none.items), [""; 0]);
        assert_eq!(store.latest_grades(2, Some(nobody)).await.unwrap().items, []);
        let none = store.sessions_without_quality("m\0", None, Some(nobody)).await.unwrap();
        assert_eq!(none.items, []);
        let cursor = Cursor { value: Some(nobody.to_owned()), id: nobody.to_owned(), order: None };
        assert_eq!(store.recent_quality(None, 9, Some(&cursor)).await.unwrap().items, []);
    }
}

async fn the_newest(on: &Databases) {
    let store = four_grades(on).await;
    let newest = store.latest_grades(2, None).await.unwrap().items;
    assert_eq!(grade_ids(&newest), ["abd", "abc2"]);
    assert_eq!(grade_ids(&store.latest_grades(2, Some("codex")).await.unwrap().items), ["abc2"]);
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
    assert_eq!(grade_ids(&apart), ["s5"]);
    assert_eq!(store.uncountable_grades(times[0], times[2], Some("codex")).await.unwrap(), []);
    assert_eq!(store.uncountable_grades(times[0], times[1], None).await.unwrap(), []);
}
