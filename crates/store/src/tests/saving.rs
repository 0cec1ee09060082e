//! Tests of saving: replacements, which of two files wins, and rows that other programs wrote.

use super::*;
use crate::statement::DatabaseEngine;
use crate::{DroppedGrade, KnownFile, StoreError};
use selftest_sessions::{SessionCollector, SessionSource};

on_every_engine! {
    grades_and_files_come_back_as_they_were,
    grading_again_changes_the_row_and_adds_none,
    the_file_with_more_of_a_session_counts_in_whatever_order,
    of_two_equal_files_the_first_path_counts_in_whatever_order,
    a_file_with_another_session_stays_graded,
    a_session_twice_in_one_file_is_one,
    a_session_that_left_its_file_loses_its_grade_to_whoever_else_holds_it,
    a_file_that_cannot_be_read_for_now_keeps_its_grades,
    a_file_that_was_moved_takes_its_session_along,
    different_runs_of_one_id_are_all_kept_in_whatever_order,
    a_file_that_holds_another_run_now_keeps_its_id,
    a_session_that_goes_on_counts_for_both_in_whatever_order,
    sessions_without_a_date_are_counted,
    whatever_is_too_long_is_shortened,
    paths_that_begin_alike_are_two_however_long,
    what_is_missing_may_come_first,
    many_files_are_kept_at_once_and_one_twice_as_it_was_last,
    rows_that_would_falsify_an_average_are_skipped_and_counted,
    one_grade_that_cannot_be_read_is_an_error_that_says_why,
}

/// A session of requests and answers in turn.
fn said(path: &str, session_id: &str, said: &[&str]) -> FileResult {
    let message = |(number, text): (usize, &&str)| {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        serde_json::json!({ "role": role, "content": text })
    };
    let messages: Vec<_> = said.iter().enumerate().map(message).collect();
    let json = serde_json::json!({ "id": session_id, "messages": messages }).to_string();
    let mut collector = SessionCollector::default();
    selftest_sessions::read(&SessionSource::bytes("a.json", json), &mut collector).unwrap();
    let head = collector.into_sessions().remove(0).head;
    assert_eq!(head.id, session_id);
    let mut result = session(path, session_id, said.len() as u64);
    result.grades[0].details.lineage = head.lineage;
    result
}

/// In every order of three.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Every session id and its file.
async fn stored(store: &Store) -> Vec<(String, String)> {
    let grades = store.find_grades("").await.unwrap().items;
    grades.into_iter().map(|grade| (grade.session_id, grade.session_file)).collect()
}

async fn different_runs_of_one_id_are_all_kept_in_whatever_order(on: &Databases) {
    let mut runs = [
        said("/s/1.json", "the-session", &["go", "one", "more", "ok"]),
        said("/s/2.json", "the-session", &["go", "two"]),
        said("/s/3.json", "the-session", &["stop", "three"]),
    ];
    runs[1].grades[0].session_start = Some(at("2026-11-19T08:00:00Z"));
    let mut all = Vec::new();
    for order in ORDERS {
        let store = on.store().await;
        for number in order {
            assert_eq!(store.save(&runs[number..=number]).await.unwrap(), []);
        }
        // The oldest has the bare id.
        assert_eq!(file_of(&store, "the-session").await.unwrap(), "/s/2.json");
        // Reading them again changes nothing.
        store.save(&runs).await.unwrap();
        let mut found = stored(&store).await;
        found.sort_by(|a, b| a.1.cmp(&b.1));
        assert_eq!(found.len(), 3);
        assert!(found[0].0.starts_with("the-session~") && found[2].0.starts_with("the-session~"));
        let renamed = store.renamed_sessions().await.unwrap();
        assert_eq!(renamed.len(), 2);
        assert!(renamed.iter().all(|one| runs.iter().any(|run| one.matches(&run.grades[0]))));
        // A copy of one of them is still a duplicate of that one alone.
        let copy =
            FileResult { file: file("/t/1.json", vec![]).file, grades: runs[0].grades.clone() };
        let lost = store.save(&[copy]).await.unwrap();
        assert_eq!((lost.len(), lost[0].file.as_str()), (1, "/t/1.json"));
        all.push(found);
    }
    all.dedup();
    assert_eq!(all.len(), 1, "{all:?}");
}

async fn many_files_are_kept_at_once_and_one_twice_as_it_was_last(on: &Databases) {
    for count in [1, 3, 4, 11] {
        let store = on.store().await;
        let named =
            |number: usize| (format!("/s/{number:02}.json"), format!("session-{number:02}"));
        let all: Vec<(String, String)> = (0..count).map(named).collect();
        let mut files: Vec<FileResult> =
            all.iter().map(|(path, id)| session(path, id, 3)).collect();
        // The same file once more, with more in it.
        files.push(session(&all[0].0, &all[0].1, 7));
        assert_eq!(store.save(&files).await.unwrap(), []);
        let mut found = stored(&store).await;
        found.sort();
        let expected: Vec<(String, String)> =
            all.iter().map(|(path, id)| (id.clone(), path.clone())).collect();
        assert_eq!(found, expected);
        let first = store.grade(&all[0].1).await.unwrap().unwrap();
        assert_eq!(first.details.messages, 7);
        for (path, _) in &all {
            assert_eq!(store.file(path).await.unwrap().unwrap().graded, 1, "{path}");
        }
    }
}

async fn a_file_that_holds_another_run_now_keeps_its_id(on: &Databases) {
    let store = on.store().await;
    store.save(&[said("/s/a.json", "the-session", &["go", "one"])]).await.unwrap();
    store.save(&[said("/s/a.json", "the-session", &["come", "two"])]).await.unwrap();
    assert_eq!(stored(&store).await, [("the-session".to_owned(), "/s/a.json".to_owned())]);
}

async fn a_session_that_goes_on_counts_for_both_in_whatever_order(on: &Databases) {
    let files = [
        said("/s/1.json", "the-first", &["go", "one"]),
        said("/s/2.json", "the-resumed", &["go", "one", "more", "two"]),
        said("/s/3.json", "the-forked", &["go", "one", "else", "three"]),
    ];
    for order in ORDERS {
        let store = on.store().await;
        for number in order {
            store.save(&files[number..=number]).await.unwrap();
        }
        let ids: Vec<String> = stored(&store).await.into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["the-forked", "the-resumed"], "{order:?}");
        assert_eq!(outcome(&store, "/s/1.json").await, (FileOutcome::Duplicate, 0));
        let reason = store.file("/s/1.json").await.unwrap().unwrap().reason.unwrap();
        assert!(
            reason.starts_with("session the-first is the beginning of session the-"),
            "{reason}"
        );
    }
    // The same words at another time are another session.
    let store = on.store().await;
    let mut later = files[1].clone();
    later.grades[0].session_start = Some(at("2026-11-21T08:00:00Z"));
    store.save(&[files[0].clone(), later]).await.unwrap();
    assert_eq!(stored(&store).await.len(), 2);
}

async fn sessions_without_a_date_are_counted(on: &Databases) {
    let store = on.store().await;
    let mut undated = session("/s/a.json", "a", 3);
    undated.grades[0].session_start = None;
    undated.grades[0].details.counts_at = None;
    store.save(&[undated, session("/s/b.json", "b", 3)]).await.unwrap();
    assert_eq!(store.undated_sessions().await.unwrap(), 1);
    assert_eq!(store.grade("a").await.unwrap().unwrap().started_at(), None);
}

async fn outcome(store: &Store, path: &str) -> (FileOutcome, u64) {
    let file = store.file(path).await.unwrap().unwrap();
    (file.outcome, file.graded)
}

async fn file_of(store: &Store, session_id: &str) -> Option<String> {
    store.grade(session_id).await.unwrap().map(|grade| grade.session_file)
}

fn lost(session_id: &str, file: &str, kept: &str) -> DroppedGrade {
    let (session_id, file, kept) = (session_id.to_owned(), file.to_owned(), kept.to_owned());
    DroppedGrade { session_id, beginning: 0, file, kept, was_last: true }
}

async fn grades_and_files_come_back_as_they_were(on: &Databases) {
    let store = on.store().await;
    let mut given = session("/s/a.json", "a", 3);
    given.grades[0].error_types.clear();
    given.grades[0].session_start = None;
    given.grades[0].details.counts_at = None;
    given.grades[0].duration_seconds = None;
    assert_eq!(store.save(std::slice::from_ref(&given)).await.unwrap(), []);
    assert_eq!(store.grade("a").await.unwrap().unwrap(), given.grades[0]);
    assert_eq!(store.file("/s/a.json").await.unwrap().unwrap(), given.file);
    assert_eq!(store.file("/s/b.json").await.unwrap(), None);
    let known = store.known_files(RULES).await.unwrap();
    let FileRecord { size, modified_ns, digest, .. } = given.file;
    assert_eq!(known["/s/a.json"], KnownFile { size, modified_ns, digest, by_these_rules: true });
}

async fn grading_again_changes_the_row_and_adds_none(on: &Databases) {
    let store = on.store().await;
    store.save(&[session("/s/a.json", "a", 5)]).await.unwrap();
    // Fewer messages than before, but from the same file.
    let mut again = session("/s/a.json", "a", 2);
    again.grades[0].task_completed = false;
    assert_eq!(store.save(&[again]).await.unwrap(), []);
    let grades = store.find_grades("").await.unwrap().items;
    assert_eq!(grades.len(), 1);
    assert_eq!((grades[0].details.messages, grades[0].task_completed), (2, false));
}

async fn the_file_with_more_of_a_session_counts_in_whatever_order(on: &Databases) {
    for in_one_batch in [true, false] {
        let store = on.store().await;
        let files = [
            session("/s/short.json", "a", 3),
            session("/s/long.json", "a", 9),
            session("/s/same.json", "a", 9),
        ];
        let mut all = Vec::new();
        for batch in files.chunks(if in_one_batch { 3 } else { 1 }) {
            all.extend(store.save(batch).await.unwrap());
        }
        assert_eq!(
            all,
            [lost("a", "/s/short.json", "/s/long.json"), lost("a", "/s/same.json", "/s/long.json")]
        );
        assert_eq!(file_of(&store, "a").await.unwrap(), "/s/long.json");
        assert_eq!(outcome(&store, "/s/short.json").await, (FileOutcome::Duplicate, 0));
        assert_eq!(outcome(&store, "/s/long.json").await, (FileOutcome::Graded, 1));
        assert_eq!(outcome(&store, "/s/same.json").await, (FileOutcome::Duplicate, 0));
        let reason = store.file("/s/short.json").await.unwrap().unwrap().reason.unwrap();
        assert_eq!(reason, "session a is graded from /s/long.json");
    }
}

async fn of_two_equal_files_the_first_path_counts_in_whatever_order(on: &Databases) {
    for turn in 0..2 {
        let store = on.store().await;
        let mut files = [session("/s/a.json", "s", 9), session("/s/b.json", "s", 9)];
        files.rotate_left(turn);
        let mut all = Vec::new();
        for one in &files {
            all.extend(store.save(std::slice::from_ref(one)).await.unwrap());
        }
        assert_eq!(all, [lost("s", "/s/b.json", "/s/a.json")]);
        assert_eq!(outcome(&store, "/s/b.json").await, (FileOutcome::Duplicate, 0));
    }
}

async fn a_file_with_another_session_stays_graded(on: &Databases) {
    let store = on.store().await;
    let two = vec![grade("a", "/s/two.json", 3), grade("b", "/s/two.json", 3)];
    store.save(&[file("/s/two.json", two), session("/s/a.json", "a", 4)]).await.unwrap();
    assert_eq!(outcome(&store, "/s/two.json").await, (FileOutcome::Graded, 1));
}

async fn a_session_twice_in_one_file_is_one(on: &Databases) {
    let store = on.store().await;
    let both = vec![grade("a", "/s/a.json", 8), grade("a", "/s/a.json", 3)];
    assert_eq!(store.save(&[file("/s/a.json", both)]).await.unwrap(), []);
    assert_eq!(store.grade("a").await.unwrap().unwrap().details.messages, 8);
    assert_eq!(outcome(&store, "/s/a.json").await, (FileOutcome::Graded, 1));
}

async fn a_session_that_left_its_file_loses_its_grade_to_whoever_else_holds_it(on: &Databases) {
    let store = on.store().await;
    let copy = session("/s/copy.json", "a", 3);
    store.save(&[session("/s/a.json", "a", 3), copy.clone()]).await.unwrap();
    store.save(&[session("/s/a.json", "b", 3)]).await.unwrap();
    assert_eq!(file_of(&store, "a").await, None);
    assert_eq!(file_of(&store, "b").await.unwrap(), "/s/a.json");
    let known = store.known_files(RULES).await.unwrap();
    assert!(known.contains_key("/s/a.json") && !known.contains_key("/s/copy.json"));
    store.save(&[copy]).await.unwrap();
    assert_eq!(file_of(&store, "a").await.unwrap(), "/s/copy.json");
    assert!(store.known_files(RULES).await.unwrap().contains_key("/s/copy.json"));
}

async fn a_file_that_cannot_be_read_for_now_keeps_its_grades(on: &Databases) {
    let store = on.store().await;
    store.save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    let mut unreadable = file("/s/a.json", vec![]);
    unreadable.file.outcome = FileOutcome::Unreadable;
    store.save(&[unreadable]).await.unwrap();
    assert_eq!(file_of(&store, "a").await.unwrap(), "/s/a.json");
    store.save(&[file("/s/a.json", vec![])]).await.unwrap();
    assert_eq!(file_of(&store, "a").await, None);
}

async fn a_file_that_was_moved_takes_its_session_along(on: &Databases) {
    let store = on.store().await;
    store.save(&[session("/s/old.json", "a", 3)]).await.unwrap();
    store.release_files(&["/s/old.json".to_owned()]).await.unwrap();
    assert_eq!(file_of(&store, "a").await.unwrap(), "/s/old.json");
    store.save(&[session("/s/new.json", "a", 3)]).await.unwrap();
    assert_eq!(file_of(&store, "a").await.unwrap(), "/s/new.json");
    assert_eq!(outcome(&store, "/s/old.json").await, (FileOutcome::Duplicate, 0));
}

async fn whatever_is_too_long_is_shortened(on: &Databases) {
    let store = on.store().await;
    let long = "é\0".repeat(2_000);
    let mut given = session("/s/a.json", "a", 3);
    let record = &mut given.grades[0];
    record.session_id.clone_from(&long);
    record.task_summary = Some(long.clone());
    record.tools_with_errors = vec![long.clone(); 200];
    let evidence = GradeEvidence { words: long.clone(), ..record.details.evidence[0].clone() };
    record.details.evidence = vec![evidence; 200];
    for number in 0..1000 {
        let tool = ToolUse { calls: number, errors: 0 };
        record.details.tools.insert(format!("{number} {long}"), tool);
    }
    store.save(&[given]).await.unwrap();
    let kept = store.grade(&long).await.unwrap().unwrap();
    assert!(kept.session_id.starts_with("éé") && kept.session_id.len() < 600);
    assert!(kept.task_summary.unwrap().len() < 5000);
    assert_eq!(kept.tools_with_errors.len(), 100);
    assert_eq!((kept.details.evidence.len(), kept.details.tools.len()), (100, 100));
    assert!(kept.details.tools.values().all(|tool| tool.calls >= 900));
    assert_eq!(kept.details.messages, 3);
}

async fn paths_that_begin_alike_are_two_however_long(on: &Databases) {
    let store = on.store().await;
    // Of different characters, so that no engine can compress them.
    let long: String = (0..3_000_u32).map(|at| char::from(b'!' + (at * at % 89) as u8)).collect();
    let paths = [format!("/{long}/a.json"), format!("/{long}/b.json")];
    store.save(&[session(&paths[0], "a", 3), session(&paths[1], "b", 3)]).await.unwrap();
    assert_eq!(store.known_files(RULES).await.unwrap().len(), 2);
    for path in &paths {
        assert_eq!(outcome(&store, path).await, (FileOutcome::Graded, 1));
    }
    let ones = file_of(&store, "a").await.unwrap();
    assert!(ones.starts_with('/') && ones.len() < 2600);
    store.release_files(&paths).await.unwrap();
    assert!(store.known_files(RULES).await.unwrap().is_empty());
}

/// A statement is prepared for the types of its first values.
async fn what_is_missing_may_come_first(on: &Databases) {
    let store = on.store().await;
    let durations = [None, Some(0.1), None, Some(1e300)];
    for (number, seconds) in durations.into_iter().cycle().take(12).enumerate() {
        let mut given = session("/s/a.json", "a", 3 + number as u64);
        given.grades[0].duration_seconds = seconds;
        given.file.reason = seconds.map(|_| "why".to_owned());
        store.save(std::slice::from_ref(&given)).await.unwrap();
        assert_eq!(store.grade("a").await.unwrap().unwrap().duration_seconds, seconds);
        let mut quality = browsing::quality("a", seconds.map(|_| 0.8));
        quality.edge_cases = Some(0.1);
        store.save_quality(&quality).await.unwrap();
        assert_eq!(store.session_quality_grades("a").await.unwrap().items, [quality]);
        let least = seconds.filter(|&seconds| seconds < 1.0);
        let found = store.recent_quality(least, 9, None).await.unwrap().items;
        assert_eq!(found.len(), 1, "{least:?}");
    }
}

/// The required columns, as the original program fills them.
const ORIGINAL_ROW: &str = "INSERT INTO session_grades (session_id, session_file, graded_at, \
    task_completed, tool_calls_efficient, response_quality, errors_recovered, total_api_calls, \
    model, platform, session_start, duration_seconds, task_summary, total_errors, error_types, \
    tools_with_errors, had_repeated_errors, had_infinite_loop_risk, had_user_clarification) \
    VALUES ('original', '/h/session_original.json', '2026-03-30T12:34:56.789012', 1, 3, 4, 0, 20, \
    'some-model', 'cli', '2026-03-29T10:00:00', 12.5, 'Refactor the parser', 3, \
    '[\"timeout\", \"new_class\"]', '[\"terminal\"]', 1, 0, 0)";

const MARCH: (&str, &str) = ("2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z");

#[tokio::test]
async fn a_database_of_the_original_program_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session_grades.db");
    let path = path.to_str().unwrap();
    let made = Store::open(path).await.unwrap();
    // Back to what that program makes.
    for sql in [
        "DROP TRIGGER session_grades_replaced",
        "DROP TRIGGER session_grades_added",
        "DROP TRIGGER session_grades_changed",
        "DROP TRIGGER session_grades_gone",
        "DROP TABLE grade_overrides",
        "DROP TABLE session_transcripts",
        "DROP TABLE session_texts",
        "DROP TABLE session_words",
        "DROP TABLE indexed_files",
        "DROP INDEX idx_session_grades_browse",
        "DROP INDEX idx_session_grades_scores",
        "DROP INDEX idx_session_grades_quality_rubric",
        "ALTER TABLE session_grades DROP COLUMN quality_rubric",
        "ALTER TABLE session_grades DROP COLUMN quality",
        "DROP INDEX idx_session_grades_parent",
        "ALTER TABLE session_grades DROP COLUMN outcome",
        "ALTER TABLE session_grades DROP COLUMN session_kind",
        "ALTER TABLE session_grades DROP COLUMN parent_session",
        "ALTER TABLE session_grades DROP COLUMN agent",
        "ALTER TABLE session_grades DROP COLUMN task_type",
        "ALTER TABLE session_grades DROP COLUMN counts_at",
        "ALTER TABLE session_grades DROP COLUMN messages",
        "ALTER TABLE session_grades DROP COLUMN details_json",
        "DROP INDEX idx_session_grades_claimed",
        "DROP INDEX idx_session_grades_beginning",
        "ALTER TABLE session_grades DROP COLUMN claimed_id",
        "ALTER TABLE session_grades DROP COLUMN beginning",
        "ALTER TABLE session_grades DROP COLUMN lineage",
        "DROP INDEX idx_session_grades_file",
        "DROP TABLE session_files",
        "DROP TABLE session_labels",
        "DROP TABLE pattern_days",
        "DROP TABLE pattern_tallies",
        "DROP TABLE session_quality_grades",
        "DROP TABLE reflection_scores",
        "DROP TABLE reflections",
        "DROP TABLE skill_proposals",
        "DROP TABLE skill_gaps",
        "DROP TABLE job_runs",
        "DROP TABLE job_leases",
        "DROP TABLE request_keys",
        "DROP TABLE skill_audit",
        "DROP TABLE skill_signals",
        "DROP TABLE skill_executions",
        "DROP TABLE skill_versions",
        "DROP TABLE selftest_migrations",
        ORIGINAL_ROW,
    ] {
        execute(&made, sql).await;
    }
    made.close().await;

    let store = Store::open(path).await.unwrap();
    let original = store.grade("original").await.unwrap().unwrap();
    assert_eq!(original.graded_at, at("2026-03-30T12:34:56.789012Z"));
    assert_eq!(original.error_types, [ErrorClass::Timeout, ErrorClass::Unknown]);
    assert_eq!((original.response_quality, original.total_api_calls), (level(4), 20));
    assert_eq!(original.details.agent, "unknown");
    assert_eq!((original.outcome, original.is_task()), (TaskOutcome::Unknown, true));
    assert_eq!(original.details.task_type, TaskType::Refactoring);
    assert_eq!(original.started_at(), Some(at("2026-03-29T10:00:00Z")));
    assert_eq!(original.details.tools["terminal"], ToolUse { calls: 1, errors: 1 });
    assert_eq!(original.details.errors[0].tool, "terminal");
    let march = store.grades_between(at(MARCH.0), at(MARCH.1), None).await.unwrap();
    assert_eq!(march.items, [original]);
    let april = store.grades_between(at(MARCH.1), at("2027-01-01T00:00:00Z"), None).await.unwrap();
    assert_eq!(april.items, []);
    assert_eq!(store.newest_counts_at().await.unwrap(), Some(at("2026-03-29T10:00:00Z")));
    // Our own grade of the same session counts.
    assert_eq!(store.save(&[session("/s/original.json", "original", 1)]).await.unwrap().len(), 1);
    assert_eq!(store.grade("original").await.unwrap().unwrap().session_file, "/s/original.json");
}

async fn rows_that_would_falsify_an_average_are_skipped_and_counted(on: &Databases) {
    // SQLite takes any value in any column.
    let anything = [
        "tool_calls_efficient = 'good'",
        "response_quality = 3.5",
        "task_completed = x'00'",
        "task_summary = CAST(x'ff' AS TEXT)",
    ];
    let anything = anything.into_iter().filter(|_| on.engine() == DatabaseEngine::Sqlite);
    let odd = ["response_quality = 9", "total_errors = -1", "graded_at = 'yesterday'"];
    for odd in odd.into_iter().chain(anything) {
        let store = on.store().await;
        execute(&store, ORIGINAL_ROW).await;
        let update = format!("UPDATE session_grades SET {odd} WHERE session_id = 'original'");
        execute(&store, &update).await;
        store
            .save(&[file("/s/a.json", vec![grade_at("a", "2026-03-05T00:00:00Z")])])
            .await
            .unwrap();
        let rows = store.grades_between(at(MARCH.0), at(MARCH.1), None).await.unwrap();
        assert_eq!((rows.items.len(), rows.unreadable), (1, 1), "{odd}");
        assert_eq!(store.latest_grades(9, None).await.unwrap().unreadable, 1, "{odd}");
        let error = store.grade("original").await.unwrap_err();
        assert!(error.to_string().contains(store.location()), "{error}");
    }
}

async fn one_grade_that_cannot_be_read_is_an_error_that_says_why(on: &Databases) {
    let store = on.store().await;
    execute(&store, ORIGINAL_ROW).await;
    execute(&store, "UPDATE session_grades SET response_quality = 9").await;
    let error = store.grade("original").await.unwrap_err();
    assert!(matches!(error, StoreError::Row { .. }));
    assert_eq!(
        error.to_string(),
        format!(
            "cannot read the grade of session original in the database {}: \
             response_quality is 9, not 1 to 5",
            store.location()
        )
    );
}

#[tokio::test]
async fn what_is_odd_elsewhere_counts_as_absent() {
    let store = Databases::sqlite().store().await;
    store.save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    execute(
        &store,
        "UPDATE session_grades SET details_json = '{\"agent\": 1', error_types = 'broken', \
         tools_with_errors = '{}', session_start = 'soon', duration_seconds = 'long', \
         task_type = 'gardening', model = 7, counts_at = 'soon', task_completed = 5",
    )
    .await;
    let kept = store.grade("a").await.unwrap().unwrap();
    assert!(kept.error_types.is_empty() && kept.tools_with_errors.is_empty());
    assert_eq!((kept.session_start, kept.duration_seconds), (None, None));
    assert!(kept.task_completed);
    assert_eq!(kept.details.agent, "pi");
    assert_eq!(kept.details.task_type, TaskType::Debugging, "from the summary");
    assert_eq!(kept.started_at(), None);
}
