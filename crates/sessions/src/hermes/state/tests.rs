//! Databases written for the tests, with totals counted by hand.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _};

use crate::{
    EventMark, EventOrigin, EventRole, ReadSummary, Session, SessionCollector, SessionFormat,
    SessionReadError, SessionSource, TokenCounts, ToolOutcome, read, read_as,
};

const SCHEMA: &str = "
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, parent_session_id TEXT,
  started_at REAL, ended_at REAL, end_reason TEXT, input_tokens INTEGER, output_tokens INTEGER,
  cache_read_tokens INTEGER, cache_write_tokens INTEGER, model_config TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT,
  content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL,
  finish_reason TEXT, reasoning TEXT, reasoning_content TEXT,
  active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0);
";

/// 's1': 1 human turn, 2 model calls, 1 tool call that failed; 1 row was rewound.
/// 's2', its child: a summary and 1 human turn with an image.
const ROWS: &str = r#"
INSERT INTO sessions VALUES ('s1', 'telegram', 'm-1', NULL, 1777493100.0, 1777493112.5,
  'compression', 1000, 200, 5000, 30, '{"cwd": "/work", "x": [1]}');
INSERT INTO sessions VALUES ('s2', 'telegram', 'm-1', 's1', 1777493112.5, NULL, NULL, 0, 0, 0, 0, NULL);
INSERT INTO sessions VALUES ('empty', 'cli', 'm-1', NULL, 1777493112.5, NULL, NULL, 0, 0, 0, 0, NULL);
INSERT INTO messages (session_id, role, content, timestamp, active) VALUES
  ('s1', 'user', 'taken back', 1777493100.0, 0),
  ('s1', 'user', 'look', 1777493101.0, 1);
INSERT INTO messages (session_id, role, content, reasoning, reasoning_content, tool_calls, timestamp)
VALUES ('s1', 'assistant', NULL, 'hm', 'hm',
  '[{"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"false\"}"}}]',
  1777493102.0);
INSERT INTO messages (session_id, role, content, tool_call_id, tool_name, timestamp) VALUES
  ('s1', 'tool', '{"output": "", "exit_code": 1, "error": null}', 'c1', 'terminal', 1777493103.0),
  ('s1', 'assistant', 'it fails', NULL, NULL, 1777493104.0),
  ('s1', 'session_meta', '{}', NULL, NULL, 1777493104.0);
INSERT INTO messages (session_id, role, content, timestamp) VALUES
  ('s2', 'assistant', '[CONTEXT COMPACTION — REFERENCE ONLY] earlier', 1777493113.0),
  ('s2', 'user', char(0) || 'json:[{"type": "text", "text": "and this?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJDQUJD"}}]', 1777493114.0);
"#;

/// Runs statements on a database, which is made where there is none.
fn database(path: &Path, statements: &[&str]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    runtime.block_on(async {
        let mut database = SqliteConnection::connect_with(&options).await.unwrap();
        for statement in statements {
            sqlx::raw_sql(AssertSqlSafe(*statement)).execute(&mut database).await.unwrap();
        }
        database.close().await.unwrap();
    });
}

fn sessions(path: &Path) -> (Vec<Session>, ReadSummary) {
    let mut collector = SessionCollector::default();
    let reading = read(&SessionSource::file(path), &mut collector).unwrap();
    assert_eq!(reading.format, SessionFormat::HermesState);
    (collector.into_sessions(), reading)
}

fn refused(path: &Path) -> String {
    match read(&SessionSource::file(path), &mut SessionCollector::default()) {
        Err(SessionReadError::Unrecognised(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

fn said(session: &Session) -> Vec<&str> {
    session.events.iter().map(|event| event.text.as_str()).collect()
}

#[test]
fn one_session_for_each_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    database(&path, &["PRAGMA journal_mode = WAL", SCHEMA, ROWS]);
    let (found, reading) = sessions(&path);
    assert_eq!((reading.sessions, reading.notes.dropped_records), (2, 1));
    assert_eq!(reading.notes.ignored_records, 1);
    let head = &found[0].head;
    assert_eq!((head.id.as_str(), head.agent.as_str()), ("s1", "hermes"));
    assert_eq!(head.platform.as_deref(), Some("telegram"));
    assert_eq!(head.cwd.as_deref(), Some("/work"));
    assert_eq!(head.start.unwrap().to_string(), "2026-04-29T20:05:00Z");
    assert_eq!(head.end.unwrap().to_string(), "2026-04-29T20:05:12.5Z");
    assert_eq!(head.usage, Some(TokenCounts { input: 1030, output: 200, cached: 5000 }));
    assert_eq!(said(&found[0]), ["look", "", "", "it fails"]);
    assert_eq!(found[0].events[1].reasoning.as_str(), "hm");
    assert_eq!(found[0].events[1].calls[0].arguments.as_str(), r#"{"command": "false"}"#);
    let result = &found[0].events[2].results[0];
    assert_eq!((result.outcome, result.exit_code), (ToolOutcome::Failed, Some(1)));

    let child = &found[1];
    assert_eq!((child.head.parent.as_deref(), child.head.usage), (Some("s1"), None));
    assert_eq!(child.events[0].mark, Some(EventMark::Compacted));
    assert_eq!(child.events[0].role, EventRole::System);
    assert_eq!(child.events[1].origin, EventOrigin::Human);
    assert_eq!(child.events[1].text.as_str(), "and this?\n[image image/png 21 B]");
    // Nothing was written beside it.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_compaction_within_a_session_keeps_what_was_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let row = |role: &str, content: &str, active: u8| {
        format!(
            "INSERT INTO messages (session_id, role, content, active, compacted) \
             VALUES ('s', '{role}', '{content}', {active}, {});",
            1 - active
        )
    };
    let mut rows = String::from("INSERT INTO sessions (id) VALUES ('s');");
    for (role, content) in [("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")] {
        rows += &row(role, content, 0);
    }
    for (role, content) in [
        ("user", "a"),
        ("user", "[CONTEXT COMPACTION - REFERENCE ONLY] x"),
        ("user", "c"),
        ("assistant", "d"),
        ("user", "c"),
    ] {
        rows += &row(role, content, 1);
    }
    database(&path, &[SCHEMA, &rows]);
    let (found, reading) = sessions(&path);
    assert_eq!(reading.notes.dropped_records, 3);
    let summary = "[CONTEXT COMPACTION - REFERENCE ONLY] x";
    assert_eq!(said(&found[0]), ["a", "b", "c", "d", summary, "c"]);
}

#[test]
fn columns_of_an_older_version_suffice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let schema = "CREATE TABLE sessions (id TEXT);
        CREATE TABLE messages (session_id TEXT, role TEXT, content TEXT, tool_calls TEXT);
        INSERT INTO sessions VALUES ('old');
        INSERT INTO messages VALUES ('old', 'user', 'hello', NULL);
        INSERT INTO messages VALUES ('old', 'assistant', CAST(x'68ff69' AS TEXT), '[broken');
        INSERT INTO messages VALUES ('old', 'user', 'x' || hex(zeroblob(2000000)), NULL);";
    database(&path, &[schema]);
    let (found, reading) = sessions(&path);
    assert_eq!(found[0].events.len(), 3);
    assert_eq!((reading.notes.bad_records, reading.notes.repaired_records), (1, 1));
    assert_eq!(reading.notes.cut_fields, 1);
}

#[test]
fn a_live_database_is_read_with_what_is_only_in_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    database(&path, &["PRAGMA journal_mode = WAL", SCHEMA, ROWS]);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let options = SqliteConnectOptions::new().filename(&path);
    let mut writer = runtime.block_on(SqliteConnection::connect_with(&options)).unwrap();
    let more = "INSERT INTO messages (session_id, role, content) VALUES ('s2', 'user', 'new')";
    runtime.block_on(sqlx::raw_sql(more).execute(&mut writer)).unwrap();
    assert_eq!(sessions(&path).0[1].events.len(), 3);
}

#[test]
fn foreign_and_broken_databases_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let open_code = "CREATE TABLE session (id TEXT); CREATE TABLE message (id TEXT);";
    let view = "CREATE TABLE sessions (id TEXT); CREATE VIEW messages AS SELECT 1 AS session_id,
                2 AS role, 3 AS content, 4 AS tool_calls;";
    for (name, schema, words) in [
        ("opencode", open_code, "without the tables sessions and messages"),
        ("view", view, "without a table messages"),
    ] {
        database(&path(name), &[schema]);
        let reason = refused(&path(name));
        assert!(reason.contains(words), "{reason}");
    }
    std::fs::write(path("torn"), b"SQLite format 3\0abc").unwrap();
    assert_eq!(refused(&path("torn")), "it is cut off");
    let bytes = SessionSource::bytes("state.db", &b"SQLite format 3\0"[..]);
    let error = read(&bytes, &mut SessionCollector::default()).unwrap_err();
    assert!(error.to_string().contains("can only be read from a file"), "{error}");
}

#[test]
fn an_async_task_reads_it_if_its_runtime_has_other_threads() {
    use tokio::runtime::Builder;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    database(&path, &[SCHEMA, ROWS]);
    let read = || {
        let mut seen = SessionCollector::default();
        read(&SessionSource::file(&path), &mut seen).map(drop).map_err(|error| error.to_string())
    };
    let one = Builder::new_current_thread().build().unwrap();
    let error = one.block_on(async { read() }).unwrap_err();
    assert!(error.contains("only thread of an async runtime"), "{error}");
    let several = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    several.block_on(async { read() }).unwrap();
}

#[test]
fn damage_does_no_harm() {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    database(&path, &[SCHEMA, ROWS]);
    let whole = std::fs::read(&path).unwrap();
    let broken = folder.path().join("broken.db");
    let config = Config { cases: 150, failure_persistence: None, ..Config::default() };
    let damages = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20);
    let result = TestRunner::new(config).run(&(damages, any::<u16>()), |(damages, left_out)| {
        let mut bytes = whole.clone();
        for (at, byte) in damages {
            bytes[at.index(whole.len())] = byte;
        }
        bytes.truncate(whole.len() - usize::from(left_out) % whole.len());
        std::fs::write(&broken, bytes).unwrap();
        let mut collector = SessionCollector::default();
        let _ = read_as(SessionFormat::HermesState, &SessionSource::file(&broken), &mut collector);
        prop_assert!(collector.into_sessions().iter().all(|found| !found.events.is_empty()));
        Ok(())
    });
    result.unwrap();
}
