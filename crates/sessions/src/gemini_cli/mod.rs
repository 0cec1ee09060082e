//! Reads Gemini CLI chats in three forms: one JSON object with `messages`; JSON lines (a header,
//! messages, `$set` and `$rewindTo`), even in `.json` files; and the checkpoints of `/chat save`,
//! which are bare Gemini `Content`s.
//!
//! One `gemini` message is one model call. It contains its tool calls together with their results
//! and becomes two events.

pub(crate) mod checkpoint;
mod document;
mod lines;
mod message;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::Read;

use serde_json::value::RawValue;

use super::SessionReadError;
use super::feed::{ReadNotes, SessionFeed};
use super::lines::JsonLines;
use super::source::SessionSource;
use crate::entry::{AgentFolders, FormatEntry, HomeRoot};
use crate::outline::JsonOutline;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| {
        (value.has("projectHash") && value.has("sessionId"))
            || value.list("history").iter().any(is_content)
            || value.list("contents").iter().any(is_content)
    },
    json_list: |values| values.iter().any(is_content),
    folders: &[AgentFolders {
        agent: "gemini-cli",
        variable: None,
        roots: &[HomeRoot::Home(".gemini")],
        parts: &["tmp"],
    }],
    ..FormatEntry::new(read)
};

/// Reads a chat or a checkpoint.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    feed.head.agent = "gemini-cli".into();
    if is_lines(source)? { lines::read(source, feed) } else { document::read(source, feed) }
}

/// Returns true if this is one of Gemini's `Content`, whose parts have no types.
fn is_content(value: &JsonOutline) -> bool {
    let Some(parts) = value.inner("parts") else { return false };
    let is_untyped =
        !parts.elements.is_empty() && parts.elements.iter().all(|part| !part.has("type"));
    value.mark("role") == "model" || (is_untyped && value.mark("role") == "user")
}

/// Returns true if the first line is a complete JSON object without messages, like the header of
/// the JSON Lines form. The file name is no indication.
fn is_lines(source: &SessionSource) -> Result<bool, SessionReadError> {
    // A pretty-printed or very large document has no complete first line of this size.
    const MAX_HEADER: u64 = 256 * 1024;
    let mut lines = JsonLines::new(Box::new(source.open()?.take(MAX_HEADER)));
    let (mut scratch, mut notes) = (String::new(), ReadNotes::default());
    let first = lines.next(&mut notes)?;
    let keys =
        first.and_then(|line| line.parse::<HashMap<String, &RawValue>>(&mut scratch, &mut notes));
    let documents = ["messages", "history", "contents"];
    Ok(keys.is_some_and(|keys| !documents.iter().any(|key| keys.contains_key(*key))))
}
