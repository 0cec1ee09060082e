//! `~/.hermes/state.db`, the canonical store: all sessions in one SQLite database.
//!
//! It is opened read-only and never changed. Columns vary by version, so only those that the
//! database has are read. Rows that a compaction archived (`active = 0`, `compacted = 1`) were
//! really said and are events; the copies of them that it put behind its summary are not, and
//! neither are rows that were rewound (`active = 0` otherwise): both are dropped and counted. A
//! session that goes on in a child (`parent_session_id`) is two sessions.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use crate::ReadError;
use crate::event::{Head, Usage};
use crate::feed::Feed;
use crate::source::Source;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::Loose;

mod columns;
mod copies;
mod rows;
#[cfg(test)]
mod tests;

use super::message::AGENT;
use columns::Columns;
use copies::Copies;

/// Columns of a session, in the order of [`note`].
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

/// Reads every session of a database.
///
/// Must not be called on a thread that runs async tasks. Bytes in memory are refused: SQLite
/// needs a file.
pub(crate) fn read(source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    let (Source::File(path) | Source::Watched(path, _)) = source else {
        return Err(foreign("a SQLite database can only be read from a file".to_owned()));
    };
    if tokio::runtime::Handle::try_current().is_ok() {
        return Err(io::Error::other("a database cannot be read inside of an async task").into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(read_file(path, feed))
}

async fn read_file(path: &Path, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    let mut database = open(path).await?;
    let sessions = Columns::of(&mut database, "sessions").await.map_err(damaged)?;
    let messages = Columns::of(&mut database, "messages").await.map_err(damaged)?;
    if let Some(reason) = columns::foreign(&sessions, &messages) {
        return Err(foreign(reason));
    }
    // A second connection, because a row is on its way while its session's messages are read.
    let mut inner = open(path).await?;
    let query = format!("SELECT {} FROM sessions ORDER BY rowid", sessions.list(&SESSION));
    let mut rows = sqlx::query(AssertSqlSafe(query)).fetch(&mut database);
    let sent = async {
        while let Some(row) = rows.try_next().await? {
            let id = columns::text(&row, 0);
            feed.head = note(&row);
            let copies = Copies::of(&mut inner, &messages, &id).await?;
            rows::send(&mut inner, &messages, &id, &copies, feed).await?;
            feed.end();
        }
        Ok::<(), sqlx::Error>(())
    };
    if let Err(error) = sent.await {
        feed.notes.torn = Some(selftest_text::one_line(&error.to_string(), 200));
    }
    Ok(())
}

/// A connection that cannot write. A database whose writer has left no log behind is opened as
/// one that never changes: else SQLite would create files beside it, or fail in a folder where
/// it may not.
async fn open(path: &Path) -> Result<SqliteConnection, ReadError> {
    // Whole, because SQLite takes a name that begins with `file:` for a URI.
    let path = path.canonicalize()?;
    let mut header = [0; 20];
    File::open(&path)?.read_exact(&mut header).map_err(|_| foreign("it is cut off".to_owned()))?;
    let is_logged = header[18] == 2;
    let mut log = path.clone().into_os_string();
    log.push("-wal");
    let is_at_rest = is_logged && !Path::new(&log).exists();
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .read_only(true)
        .busy_timeout(Duration::from_secs(5))
        .pragma("trusted_schema", "OFF")
        .disable_statement_logging();
    let live = options.clone().immutable(is_at_rest);
    match SqliteConnection::connect_with(&live).await {
        Err(_) if is_logged && !is_at_rest => {
            SqliteConnection::connect_with(&options.immutable(true)).await.map_err(damaged)
        }
        other => other.map_err(damaged),
    }
}

fn note(row: &SqliteRow) -> Head {
    let text = |at: usize| Text::new(columns::text(row, at));
    let count = |at: usize| columns::text(row, at).parse::<u64>().ok();
    let mut head = Head {
        id: columns::text(row, 0).into_owned(),
        agent: AGENT.to_owned(),
        platform: text(1).line(400),
        parent: text(3).line(400),
        cwd: text(4)
            .line(400)
            .or_else(|| Loose::parse(&columns::text(row, 5)).text("/cwd").line(400)),
        ..Head::default()
    };
    head.model(&columns::text(row, 2));
    for at in [6, 7] {
        if let Moment(Some(time)) = Moment::parse(&columns::text(row, at)) {
            head.saw(time);
        }
    }
    let (input, output, read, written) = (count(8), count(9), count(10), count(11));
    if input.is_some() || output.is_some() {
        // Hermes counts what was read from a cache and written to it apart from the input.
        head.usage = Some(Usage {
            input: input.unwrap_or_default().saturating_add(written.unwrap_or_default()),
            output: output.unwrap_or_default(),
            cached: read.unwrap_or_default(),
        })
        .filter(|usage| *usage != Usage::default());
    }
    head
}

fn foreign(reason: String) -> ReadError {
    ReadError::Unrecognised(reason)
}

/// By value for `map_err`.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn damaged(error: sqlx::Error) -> ReadError {
    let reason = selftest_text::one_line(&error.to_string(), 200);
    foreign(format!("a SQLite database that cannot be read: {reason}"))
}
