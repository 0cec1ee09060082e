//! Reads Cursor's CLI agent, `~/.cursor/chats/<folder>/<id>/store.db`: SQLite with one
//! conversation. Messages are JSON blobs in the Vercel AI SDK's format, and a Protocol Buffers root
//! blob lists them in order. Unlike the transcripts of the same sessions, the database has the tool
//! results.

use std::path::Path;

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::feed::SessionFeed;
use super::source::SessionSource;
use super::sqlite::{self, damaged_error, open, text};
use super::wire::JsonValue;
use super::{SessionReadError, chat};
use crate::format::{AgentFolders, FormatEntry, HomeRoot, IdSource};

const AGENT: &str = "cursor";

/// Maximum bytes of a blob; larger ones are not read.
const MAX_BLOB: usize = 16 * 1024 * 1024;

/// Maximum number of messages in a conversation.
const MAX_MESSAGES: usize = 100_000;

/// Length of a blob id, in bytes.
const ID_LENGTH: usize = 32;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    table: Some(("blobs", &["id", "data"])),
    ids: IdSource::FileName,
    has_several_stores: true,
    folders: &[AgentFolders {
        agent: "cursor",
        variable: None,
        roots: &[HomeRoot::Home(".cursor")],
        parts: &["projects", "chats"],
    }],
    ..FormatEntry::new(read)
};

/// Reads the conversation.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let path = sqlite::file(source)?;
    sqlite::block_on(read_database(path, feed))?
}

async fn read_database(path: &Path, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut database = open(path, &mut feed.notes).await?;
    let about = read_metadata(&mut database).await.map_err(damaged_error)?;
    about.text("/agentId").as_str().clone_into(&mut feed.head.id);
    feed.record_time(about.part("/createdAt"));
    let result = send_messages(&mut database, &about, feed).await;
    sqlite::note_error(result, feed);
    AGENT.clone_into(&mut feed.head.agent);
    feed.head.add_model(&about.text("/lastUsedModel"));
    feed.end_session();
    Ok(())
}

/// Returns the conversation's metadata: JSON, hex-encoded.
async fn read_metadata(database: &mut SqliteConnection) -> Result<JsonValue, sqlx::Error> {
    let query = "SELECT CAST(value AS TEXT) FROM meta ORDER BY key LIMIT 1";
    let row = sqlx::query(query).fetch_optional(database).await?;
    let value = row.as_ref().map(|row| text(row, 0)).unwrap_or_default();
    Ok(match bytes_of_hex(&value) {
        Some(bytes) => JsonValue::parse(&String::from_utf8_lossy(&bytes)),
        None => JsonValue::parse(&value),
    })
}

async fn send_messages(
    database: &mut SqliteConnection,
    about: &JsonValue,
    feed: &mut SessionFeed<'_>,
) -> Result<(), sqlx::Error> {
    let root = about.text("/latestRootBlobId");
    let root = read_blob(database, &root).await?.unwrap_or_default();
    for id in message_ids(&root) {
        let message = read_blob(database, &id).await?;
        let message = message.as_deref().map(String::from_utf8_lossy);
        match message.as_deref() {
            // Blobs are JSON messages or binary data; the root does not tell them apart.
            Some(json) if json.trim_start().starts_with('{') => {
                feed.notes.bad_records += u64::from(chat::read_message(AGENT, json, feed).is_err());
            }
            // Not JSON: count it without guessing its type.
            Some(_) => feed.count_unknown("blob"),
            None => feed.notes.bad_records += 1,
        }
    }
    Ok(())
}

async fn read_blob(
    database: &mut SqliteConnection,
    id: &str,
) -> Result<Option<Vec<u8>>, sqlx::Error> {
    let query = format!("SELECT data FROM blobs WHERE id = ? AND length(data) <= {MAX_BLOB}");
    let row =
        sqlx::query(AssertSqlSafe(query)).bind(id.to_owned()).fetch_optional(database).await?;
    // Unchecked, because an SQLite column may hold values of any type.
    let data = row.and_then(|row| row.try_get_unchecked::<Option<Vec<u8>>, _>(0).ok()?);
    Ok(data)
}

/// Returns the ids of the messages in a root blob, which are the values of its field 1.
fn message_ids(root: &[u8]) -> Vec<String> {
    let (mut rest, mut names) = (root, Vec::new());
    while let Some((tag, after)) = read_varint(rest) {
        rest = after;
        // The low three bits of a tag are the wire type, the rest is the field number.
        let skipped = match tag & 7 {
            0 => read_varint(rest).map(|(_, after)| after),
            1 => rest.get(8..),
            2 => read_varint(rest).and_then(|(length, after)| {
                let length = usize::try_from(length).ok()?;
                let value = after.get(..length)?;
                if tag >> 3 == 1 && length == ID_LENGTH {
                    names.push(hex(value));
                }
                after.get(length..)
            }),
            5 => rest.get(4..),
            // Groups, which are obsolete, and damage: what follows cannot be found.
            _ => None,
        };
        match skipped {
            Some(after) if names.len() < MAX_MESSAGES => rest = after,
            _ => break,
        }
    }
    names
}

/// Decodes a varint at the start; returns it and the remaining bytes.
fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    // A 64-bit varint has at most ten bytes.
    for (at, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(at).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

fn hex(bytes: &[u8]) -> String {
    let digit = |digit: u8| char::from_digit(digit.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim().as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect::<Option<Vec<u8>>>().filter(|bytes| !bytes.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::SessionFormat;
    use super::super::event::{EventOrigin, EventRole, ToolOutcome};
    use super::super::sqlite::tests::database;
    use super::*;
    use crate::test_support::only_session;

    /// 1 human turn behind what the program says, 2 answers, 2 calls of which 1 failed; 1 blob
    /// that is no JSON.
    const MESSAGES: [&str; 6] = [
        r#"{"role":"system","content":"rules"}"#,
        r#"{"role":"user","content":[{"type":"text","text":"<user_query>\nlook\n</user_query>"}]}"#,
        r#"{"role":"assistant","id":"1","content":[{"type":"reasoning","text":"hm"},{"type":"tool-call","toolCallId":"c1","toolName":"Shell","args":{"command":"ls"}},{"type":"tool-call","toolCallId":"c2","toolName":"Read","args":{"path":"x"}}]}"#,
        r#"{"role":"tool","id":"c1","content":[{"type":"tool-result","toolCallId":"c1","toolName":"Shell","result":"a.rs"},{"type":"tool-result","toolCallId":"c2","toolName":"Read","result":"no such file","isError":true}]}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"One file."}]}"#,
        "\n\u{1}x",
    ];

    #[test]
    fn the_conversation_of_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut root = vec![0x10, 0x96, 0x01];
        let mut statements = vec![
            "CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB);
             CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);"
                .to_owned(),
        ];
        for (number, message) in MESSAGES.iter().enumerate() {
            let id = [u8::try_from(number).unwrap(); ID_LENGTH];
            root.extend([0x0a, 0x20]);
            root.extend(id);
            let (id, data) = (hex(&id), hex(message.as_bytes()));
            statements.push(format!("INSERT INTO blobs VALUES ('{id}', x'{data}')"));
        }
        let about = r#"{"agentId":"a-1","latestRootBlobId":"root","createdAt":1767225600000,"lastUsedModel":"m-1"}"#;
        statements.push(format!("INSERT INTO blobs VALUES ('root', x'{}')", hex(&root)));
        statements.push(format!("INSERT INTO meta VALUES ('0', '{}')", hex(about.as_bytes())));
        database(&path, &statements);
        let session = only_session(SessionFormat::CursorStore, &SessionSource::file(path));
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.agent.as_str()), ("a-1", "cursor"));
        assert_eq!((head.models[0].as_str(), head.unknown_blocks.total()), ("m-1", 1));
        assert_eq!(head.start.unwrap().to_string(), "2026-01-01T00:00:00Z");
        let said: Vec<_> = session
            .events
            .iter()
            .map(|event| (event.role, event.origin, event.text.as_str(), event.calls.len()))
            .collect();
        assert_eq!(
            said,
            [
                (EventRole::System, EventOrigin::Harness, "rules", 0),
                (EventRole::User, EventOrigin::Human, "look", 0),
                (EventRole::Assistant, EventOrigin::Agent, "", 2),
                (EventRole::Tool, EventOrigin::Agent, "", 0),
                (EventRole::Assistant, EventOrigin::Agent, "One file.", 0),
            ]
        );
        let results: Vec<_> = session.events[3]
            .results
            .iter()
            .map(|result| (result.tool.as_str(), result.outcome))
            .collect();
        assert_eq!(results[1], ("Read", ToolOutcome::Failed));
        assert_eq!((results[0].0, results.len()), ("Shell", 2));
    }

    #[test]
    fn a_root_of_any_bytes_does_no_harm() {
        assert!(message_ids(&[0xff; 40]).is_empty());
        assert!(message_ids(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]).is_empty());
        assert_eq!(message_ids(&[&[0x0a, 0x20][..], &[7; 32], &[0x0a]].concat()).len(), 1);
    }
}
