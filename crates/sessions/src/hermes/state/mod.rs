//! Reads `~/.hermes/state.db`, the canonical store: all sessions in one SQLite database.
//!
//! The database is opened read-only and never changed. Columns vary by version, so only existing
//! ones are read. Rows archived by a compaction (`active = 0`, `compacted = 1`) are part of the
//! conversation and become events. Their copies after the summary and rewound rows (`active = 0`
//! otherwise) are dropped and counted. A session that continues in a child (`parent_session_id`)
//! counts as two sessions.

use std::path::Path;

use futures_util::TryStreamExt as _;
use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteRow;

use crate::SessionReadError;
use crate::entry::{AgentFolders, FormatEntry, HomeRoot, IdSource};
use crate::event::{SessionHead, TokenCounts};
use crate::feed::SessionFeed;
use crate::source::SessionSource;
use crate::sqlite::{self, TableColumns, damaged_error, open, text, unrecognised_error};
use crate::text::Text;
use crate::time::Moment;
use crate::wire::JsonValue;

mod copies;
mod rows;
#[cfg(test)]
mod tests;

use super::message::AGENT;
use copies::CopiedRows;

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
            rows::send(&mut inner, &messages, &id, &copies, feed).await?;
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
