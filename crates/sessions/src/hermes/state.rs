//! Reads `~/.hermes/state.db`, the canonical store: all sessions in one SQLite database.
//!
//! The database is opened read-only and never changed. Columns vary by version, so only existing
//! ones are read. Rows archived by a compaction (`active = 0`, `compacted = 1`) are part of the
//! conversation and become events. Their copies after the summary and rewound rows (`active = 0`
//! otherwise) are dropped and counted. A session that continues in a child (`parent_session_id`)
//! counts as two sessions.
//!
//! A compaction archives all rows and writes those that stay in the context again: the first few,
//! its summary, and the last few. The copies have new row ids and no marker, so they are recognised
//! by content and position.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use futures_util::TryStreamExt as _;
use sqlx::AssertSqlSafe;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::message::{AGENT, HermesMessage};
use super::prompt;
use crate::SessionReadError;
use crate::content::MessageContent;
use crate::event::{SessionHead, TokenCounts};
use crate::feed::SessionFeed;
use crate::format::{AgentFolders, FormatEntry, HomeRoot, IdSource};
use crate::source::SessionSource;
use crate::sqlite::{self, TableColumns, damaged_error, open, text, unrecognised_error};
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{JsonValue, LenientFlag, LenientList};

/// Columns of a session, in the order that [`note`] expects.
const SESSION: [&str; 12] = [
    "id",
    "source",
    "model",
    "parent_session_id",
    "cwd",
    "model_config",
    "started_at",
    "ended_at",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
];

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    ids: IdSource::FileName,
    has_several_stores: true,
    folders: &[AgentFolders {
        agent: "hermes",
        variable: Some("HERMES_HOME"),
        roots: &[HomeRoot::Home(".hermes")],
        parts: &["sessions", "state.db"],
    }],
    ..FormatEntry::new(read)
};

/// Reads every session of a database.
///
/// Must not be called on a thread that runs async tasks. Bytes in memory are rejected, because
/// SQLite needs a file.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let path = sqlite::file(source)?;
    sqlite::block_on(read_file(path, feed))?
}

async fn read_file(path: &Path, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut database = open(path, &mut feed.notes).await?;
    let sessions = TableColumns::of(&mut database, "sessions").await.map_err(damaged_error)?;
    let messages = TableColumns::of(&mut database, "messages").await.map_err(damaged_error)?;
    if let Some(reason) = describe_foreign(&sessions, &messages) {
        return Err(unrecognised_error(reason));
    }
    // A second connection, because the first one is still streaming the sessions.
    let mut inner = open(path, &mut feed.notes).await?;
    let query = format!("SELECT {} FROM sessions ORDER BY rowid", sessions.list(&SESSION));
    let mut rows = sqlx::query(AssertSqlSafe(query)).fetch(&mut database);
    let sent = async {
        while let Some(row) = rows.try_next().await? {
            let id = text(&row, 0);
            feed.head = note(&row);
            let copies = CopiedRows::of(&mut inner, &messages, &id).await?;
            send(&mut inner, &messages, &id, &copies, feed).await?;
            feed.end_session();
        }
        Ok::<(), sqlx::Error>(())
    };
    if let Err(error) = sent.await {
        feed.notes.torn = Some(selftest_text::one_line(&error.to_string(), 200));
    }
    Ok(())
}

fn note(row: &SqliteRow) -> SessionHead {
    let field = |at: usize| Text::new(text(row, at));
    let count = |at: usize| text(row, at).parse::<u64>().ok();
    let mut head = SessionHead {
        id: text(row, 0).into_owned(),
        agent: AGENT.to_owned(),
        platform: field(1).line(400),
        parent: field(3).line(400),
        cwd: field(4).line(400).or_else(|| JsonValue::parse(&text(row, 5)).text("/cwd").line(400)),
        ..SessionHead::default()
    };
    head.add_model(&text(row, 2));
    for at in [6, 7] {
        if let Moment(Some(time)) = Moment::parse(&text(row, at)) {
            head.record_time(time);
        }
    }
    let (input, output, read, written) = (count(8), count(9), count(10), count(11));
    if input.is_some() || output.is_some() {
        // Hermes counts cache reads and writes separately from the input.
        head.usage = Some(TokenCounts {
            input: input.unwrap_or_default().saturating_add(written.unwrap_or_default()),
            output: output.unwrap_or_default(),
            cached: read.unwrap_or_default(),
        })
        .filter(|usage| *usage != TokenCounts::default());
    }
    head
}

/// Describes a database that is not from Hermes; `None` if it is.
fn describe_foreign(sessions: &TableColumns, messages: &TableColumns) -> Option<String> {
    let needed = ["session_id", "role", "content", "tool_calls"];
    if sessions.has("id") && needed.iter().all(|name| messages.has(name)) {
        return None;
    }
    let whose = if messages.is_empty() && sessions.is_empty() {
        "without the tables sessions and messages"
    } else if messages.is_empty() {
        "without a table messages"
    } else {
        "whose tables sessions and messages are not those of Hermes"
    };
    Some(format!(
        "a SQLite database {whose}; expected one of Hermes, OpenCode, goose, Crush, Zed or Cursor"
    ))
}

/// Columns of a message, in the order that [`message`] expects.
const MESSAGE: [&str; 14] = [
    "role",
    "content",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "finish_reason",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "timestamp",
    "_compressed_summary",
    "display_kind",
    "active",
    "compacted",
];

/// Prefixes of content that is a list of parts in JSON instead of text.
const ENCODED: [&str; 2] = ["\0json:", "\u{1}json:"];

/// Sends the messages of a session to the feed.
async fn send(
    database: &mut SqliteConnection,
    columns: &TableColumns,
    session: &str,
    copies: &CopiedRows,
    feed: &mut SessionFeed<'_>,
) -> Result<(), sqlx::Error> {
    let list = columns.list(&MESSAGE);
    let query = format!("SELECT {list} FROM messages WHERE session_id = ? ORDER BY rowid");
    let mut rows = sqlx::query(AssertSqlSafe(query)).bind(session).fetch(database);
    let mut number = 0;
    while let Some(row) = rows.try_next().await? {
        // Inactive rows were rewound, unless a compaction archived them.
        let is_rewound = text(&row, 12) == "0" && text(&row, 13) != "1";
        if is_rewound || copies.contains(number) {
            feed.notes.dropped_records += 1;
        } else {
            message(&row, feed);
        }
        number += 1;
    }
    Ok(())
}

fn message(row: &SqliteRow, feed: &mut SessionFeed<'_>) {
    let fields: [Cow<'_, str>; 12] = std::array::from_fn(|at| text(row, at));
    let [role, content, reasoning, reasoning_content, details, finish_reason, ..] = &fields;
    let [.., calls, call_id, tool_name, time, is_summary, display_kind] = &fields;
    // The database layer already replaced invalid UTF-8.
    if fields.iter().any(|field| field.contains('\u{fffd}')) {
        feed.notes.repaired_records += 1;
    }
    let tool_calls =
        if calls.is_empty() { Ok(LenientList::default()) } else { serde_json::from_str(calls) };
    if tool_calls.is_err() {
        feed.notes.bad_records += 1;
    }
    // Content that is more than a text is stored as JSON behind such a prefix.
    let encoded = ENCODED.iter().find_map(|prefix| content.strip_prefix(prefix));
    let content = encoded.and_then(|json| serde_json::from_str::<MessageContent<'_>>(json).ok());
    let message = HermesMessage {
        role: (&**role).into(),
        content: content.unwrap_or_else(|| MessageContent((&*fields[1]).into())),
        reasoning: (&**reasoning).into(),
        reasoning_content: (&**reasoning_content).into(),
        reasoning_details: serde_json::from_str(details).unwrap_or_default(),
        finish_reason: (&**finish_reason).into(),
        tool_calls: tool_calls.unwrap_or_default(),
        tool_call_id: (&**call_id).into(),
        tool_name: (&**tool_name).into(),
        name: Text::default(),
        timestamp: Moment::parse(time),
        is_summary: LenientFlag((is_summary == "1").then_some(true)),
        display_kind: (&**display_kind).into(),
    };
    message.send(feed);
}

/// Maximum number of rows compared.
const MAX_ROWS: usize = 1_000_000;

/// Indices of the copies among all rows of the session.
#[derive(Default)]
struct CopiedRows {
    rows: HashSet<usize>,
}

/// Digest of a row, and a flag for summaries.
#[derive(Clone, Copy)]
struct RowDigest {
    digest: u64,
    is_summary: bool,
}

impl CopiedRows {
    /// Finds the copies. Sessions without compaction have none and skip the comparison.
    async fn of(
        database: &mut SqliteConnection,
        columns: &TableColumns,
        session: &str,
    ) -> Result<Self, sqlx::Error> {
        if !columns.has("compacted") {
            return Ok(Self::default());
        }
        // Most sessions are never compacted, and their rows need not be hashed.
        let query = "SELECT 1 FROM messages WHERE session_id = ? AND compacted = 1 LIMIT 1";
        if sqlx::query(query).bind(session).fetch_optional(&mut *database).await?.is_none() {
            return Ok(Self::default());
        }
        let list = columns.list(&["role", "content", "tool_calls", "tool_call_id"]);
        let summary = columns.list(&["_compressed_summary"]);
        let query =
            format!("SELECT {list}, {summary} FROM messages WHERE session_id = ? ORDER BY rowid");
        let mut rows = sqlx::query(AssertSqlSafe(query)).bind(session).fetch(database);
        let mut said = Vec::new();
        while let Some(row) = rows.try_next().await?
            && said.len() < MAX_ROWS
        {
            let call_id = text(&row, 3);
            let mut hasher = DefaultHasher::new();
            text(&row, 0).hash(&mut hasher);
            // The compaction may have removed the text of a copied result.
            if call_id.is_empty() {
                (text(&row, 1), text(&row, 2)).hash(&mut hasher);
            } else {
                call_id.hash(&mut hasher);
            }
            let is_summary = text(&row, 4) == "1" || prompt::is_summary(&text(&row, 1));
            said.push(RowDigest { digest: hasher.finish(), is_summary });
        }
        Ok(Self { rows: find_copies(&said) })
    }

    fn contains(&self, row: usize) -> bool {
        self.rows.contains(&row)
    }
}

/// Returns the rows around summaries that repeat earlier ones.
fn find_copies(rows: &[RowDigest]) -> HashSet<usize> {
    let digests: Vec<u64> = rows.iter().map(|row| row.digest).collect();
    let summaries: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].is_summary).collect();
    let mut copies = HashSet::new();
    let mut begin = 0;
    for (number, &summary) in summaries.iter().enumerate() {
        let next = summaries.get(number + 1).copied().unwrap_or(rows.len());
        // First rows of the context so far, right before the summary.
        let context = &digests[begin..summary];
        // A copy and its original do not overlap, so that it is at most half of the context.
        let head = overlap(context, context, context.len().saturating_sub(1) / 2);
        let end = summary - head;
        // Last rows of the context, right after the summary.
        let tail = overlap(&digests[summary + 1..next], &digests[begin..end], usize::MAX);
        copies.extend(end..summary);
        copies.extend(summary + 1..=summary + tail);
        begin = end;
    }
    copies
}

/// Returns the length of the longest prefix of one list, up to `most`, that is a suffix of the
/// other.
fn overlap(beginning: &[u64], end: &[u64], most: usize) -> usize {
    let length = beginning.len().min(end.len()).min(most);
    let (pattern, text) = (&beginning[..length], &end[end.len() - length..]);
    // Knuth-Morris-Pratt failure function: the part of the pattern that still fits after a
    // mismatch.
    let mut fallback = vec![0; length];
    let mut fits = 0;
    let advance = |mut fits: usize, value: u64, fallback: &[usize]| {
        while fits > 0 && (fits == length || pattern[fits] != value) {
            fits = fallback[fits - 1];
        }
        if fits < length && pattern[fits] == value { fits + 1 } else { fits }
    };
    for at in 1..length {
        fits = advance(fits, pattern[at], &fallback);
        fallback[at] = fits;
    }
    text.iter().fold(0, |fits, value| advance(fits, *value, &fallback))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
    use sqlx::{AssertSqlSafe, Connection as _};

    use super::*;
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
        for (role, content) in
            [("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")]
        {
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
        let view =
            "CREATE TABLE sessions (id TEXT); CREATE VIEW messages AS SELECT 1 AS session_id,
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
            read(&SessionSource::file(&path), &mut seen)
                .map(drop)
                .map_err(|error| error.to_string())
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
        let result =
            TestRunner::new(config).run(&(damages, any::<u16>()), |(damages, left_out)| {
                let mut bytes = whole.clone();
                for (at, byte) in damages {
                    bytes[at.index(whole.len())] = byte;
                }
                bytes.truncate(whole.len() - usize::from(left_out) % whole.len());
                std::fs::write(&broken, bytes).unwrap();
                let mut collector = SessionCollector::default();
                let _ = read_as(
                    SessionFormat::HermesState,
                    &SessionSource::file(&broken),
                    &mut collector,
                );
                prop_assert!(
                    collector.into_sessions().iter().all(|found| !found.events.is_empty())
                );
                Ok(())
            });
        result.unwrap();
    }

    /// A letter for each row, `#` for a summary.
    fn without_copies(rows: &str) -> String {
        let said: Vec<_> = rows
            .bytes()
            .map(|byte| RowDigest { digest: u64::from(byte), is_summary: byte == b'#' })
            .collect();
        let copies = find_copies(&said);
        rows.char_indices().filter(|(at, _)| !copies.contains(at)).map(|(_, c)| c).collect()
    }

    #[test]
    fn only_the_copies_around_a_summary_go() {
        for (rows, rest) in [
            ("abcdef", "abcdef"),
            ("abcdefab#efgh", "abcdef#gh"),
            ("abcdef#ef", "abcdef#"),
            ("abcdef#efefg", "abcdef#efg"),
            ("abcdefab#efghab#gh", "abcdef#gh#"),
            ("abcd#aaaa", "abcd#aaaa"),
            ("#abc", "#abc"),
            ("", ""),
        ] {
            assert_eq!(without_copies(rows), rest, "{rows}");
        }
    }

    #[test]
    fn overlaps() {
        let overlap = |beginning: &[u64], end: &[u64]| overlap(beginning, end, usize::MAX);
        assert_eq!(overlap(&[3, 4, 5], &[1, 2, 3, 4]), 2);
        assert_eq!(overlap(&[1, 1, 1, 2], &[1, 1, 1, 1]), 3);
        assert_eq!(overlap(&[1, 2], &[2, 1, 2]), 2);
        assert_eq!(overlap(&[], &[1]), 0);
        assert_eq!(overlap(&[9], &[1]), 0);
    }
}
