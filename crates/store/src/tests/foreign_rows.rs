//! Rows that other programs wrote.

use super::*;
use crate::StoreError;
use crate::dialect::DatabaseEngine;

on_every_engine! {
    rows_that_would_falsify_an_average_are_skipped_and_counted,
    one_grade_that_cannot_be_read_is_an_error_that_says_why,
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
