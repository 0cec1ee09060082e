//! Reads Crush's `.crush/crush.db`, an SQLite database in the project that stores message parts as
//! JSON.

use std::path::Path;

use futures_util::TryStreamExt as _;
use serde::Deserialize;
use sqlx::AssertSqlSafe;

use super::SessionReadError;
use super::blocks::{ContentBlock, ContentBlocks, MessageContext};
use super::event::{Event, EventMark, EventOrigin, EventRole, SessionHead, TokenCounts};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::sqlite::{self, TableColumns, damaged_error, open, text};
use super::text::Text;
use super::time::Moment;
use super::wire::{LenientList, LenientObject};
use crate::format::{FormatEntry, IdSource};

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    table: Some(("messages", &["session_id", "role", "parts"])),
    ids: IdSource::FileName,
    ..FormatEntry::new(read)
};

/// Reads every session of a database.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let path = sqlite::file(source)?;
    sqlite::block_on(read_database(path, feed))?
}

async fn read_database(path: &Path, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut database = open(path, &mut feed.notes).await?;
    let sessions = TableColumns::of(&mut database, "sessions").await.map_err(damaged_error)?;
    let messages = TableColumns::of(&mut database, "messages").await.map_err(damaged_error)?;
    // A second connection, because the first one is still streaming the sessions.
    let mut inner = open(path, &mut feed.notes).await?;
    let list = sessions.list(&[
        "id",
        "parent_session_id",
        "created_at",
        "updated_at",
        "prompt_tokens",
        "completion_tokens",
    ]);
    let query = format!("SELECT {list} FROM sessions ORDER BY rowid");
    let of_session = format!(
        "SELECT {} FROM messages WHERE session_id = ? ORDER BY rowid",
        messages.list_of_json(&["role", "parts", "model", "created_at"])
    );
    let mut rows = sqlx::query(AssertSqlSafe(query)).fetch(&mut database);
    let sent = async {
        while let Some(row) = rows.try_next().await? {
            let field = |at: usize| Text::new(text(&row, at));
            let count = |at: usize| field(at).parse::<u64>().unwrap_or_default();
            feed.head = SessionHead {
                id: field(0).as_str().to_owned(),
                agent: "crush".to_owned(),
                parent: field(1).line(200),
                ..SessionHead::default()
            };
            feed.record_time(Moment::parse(&field(2)));
            feed.record_time(Moment::parse(&field(3)));
            let usage = TokenCounts { input: count(4), output: count(5), cached: 0 };
            feed.head.usage = (usage != TokenCounts::default()).then_some(usage);
            let id = text(&row, 0).into_owned();
            sqlite::each_row(&mut inner, of_session.clone(), &id, |row| {
                send_message([&text(row, 0), &text(row, 1), &text(row, 2), &text(row, 3)], feed);
            })
            .await?;
            feed.end_session();
        }
        Ok::<(), sqlx::Error>(())
    };
    let result = sent.await;
    sqlite::note_error(result, feed);
    Ok(())
}

/// A message part: `{"type": "tool_call", "data": {…}}`.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CrushPart<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    data: LenientObject<ContentBlock<'a>>,
}

fn send_message([role, parts, model, time]: [&str; 4], feed: &mut SessionFeed<'_>) {
    let Ok(LenientList(parts)) = serde_json::from_str::<LenientList<CrushPart<'_>>>(parts) else {
        feed.notes.bad_records += 1;
        return;
    };
    let Moment(time) = Moment::parse(time);
    let (mut blocks, mut mark) = (ContentBlocks::default(), None);
    for part in parts {
        let mut block = part.data.0.unwrap_or_default();
        if part.kind.as_str() == "finish" {
            mark = match block.reason.as_str() {
                "canceled" => Some(EventMark::Interrupted),
                "error" => Some(EventMark::ApiError),
                _ => mark,
            };
            continue;
        }
        // The type is outside the data in this format.
        block.kind = if part.kind.as_str() == "binary" { "media".into() } else { part.kind };
        blocks.add(block);
    }
    match role {
        "assistant" => {
            feed.head.add_model(model);
            blocks.send_answer(&MessageContext::new(EventOrigin::Agent, time), feed);
        }
        "user" => {
            blocks.send_input(
                &MessageContext::new(EventOrigin::Human, time),
                EventRole::User,
                feed,
            );
        }
        // Any text beside the results is not the user's.
        "tool" => blocks.send_input(
            &MessageContext::new(EventOrigin::Harness, time),
            EventRole::User,
            feed,
        ),
        "system" => blocks.send_input(
            &MessageContext::new(EventOrigin::Harness, time),
            EventRole::System,
            feed,
        ),
        other => feed.count_unknown(other),
    }
    if mark.is_some() {
        feed.send(Event { time, mark, ..Event::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::super::SessionFormat;
    use super::super::event::ToolOutcome;
    use super::super::sqlite::tests::database;
    use super::*;
    use crate::test_support::only_session;

    #[test]
    fn sessions_of_a_database() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crush.db");
        // 1 human turn, 2 model calls, 1 call that failed; then a person stopped it.
        database(
            &path,
            &[r#"CREATE TABLE sessions (id TEXT, parent_session_id TEXT, title TEXT,
                  prompt_tokens INTEGER, completion_tokens INTEGER, created_at INTEGER, updated_at INTEGER);
                CREATE TABLE messages (id TEXT, session_id TEXT, role TEXT, parts TEXT, model TEXT, created_at INTEGER);
                INSERT INTO sessions VALUES ('s1', NULL, 't', 10, 5, 1767225600, 1767225609);
                INSERT INTO messages VALUES
                 ('m1','s1','user','[{"type":"text","data":{"text":"look"}},{"type":"finish","data":{"reason":"stop","time":0}}]','',1767225601),
                 ('m2','s1','assistant','[{"type":"reasoning","data":{"thinking":"hm"}},{"type":"tool_call","data":{"id":"c1","name":"bash","input":"{\"command\":\"ls x\"}","finished":true}}]','m-1',1767225602),
                 ('m3','s1','tool','[{"type":"tool_result","data":{"tool_call_id":"c1","name":"bash","content":"no such file","is_error":true}}]','',1767225603),
                 ('m4','s1','assistant','[{"type":"text","data":{"text":"None."}},{"type":"finish","data":{"reason":"canceled"}}]','m-1',1767225604);"#],
        );
        let session = only_session(SessionFormat::Crush, &SessionSource::file(path));
        assert_eq!(session.head.usage, Some(TokenCounts { input: 10, output: 5, cached: 0 }));
        let said: Vec<_> = session
            .events
            .iter()
            .map(|event| (event.role, event.text.as_str(), event.calls.len(), event.mark))
            .collect();
        assert_eq!(
            said,
            [
                (EventRole::User, "look", 0, None),
                (EventRole::Assistant, "", 1, None),
                (EventRole::Tool, "", 0, None),
                (EventRole::Assistant, "None.", 0, None),
                (EventRole::System, "", 0, Some(EventMark::Interrupted)),
            ]
        );
        assert_eq!(session.events[1].reasoning.as_str(), "hm");
        let result = &session.events[2].results[0];
        assert_eq!((result.tool.as_str(), result.outcome), ("bash", ToolOutcome::Failed));
        assert_eq!(session.head.models, ["m-1"]);
    }
}
