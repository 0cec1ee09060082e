//! Sends the rows of one session's messages, one by one.

use std::borrow::Cow;

use futures_util::TryStreamExt as _;
use sqlx::AssertSqlSafe;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::content::MessageContent;
use crate::feed::SessionFeed;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{LenientFlag, LenientList};

use super::super::message::HermesMessage;
use super::copies::CopiedRows;
use crate::sqlite::{TableColumns, text};

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
pub(super) async fn send(
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
