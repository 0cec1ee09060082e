//! Reads Crush's `.crush/crush.db`, an SQLite database in the project that stores message parts as
//! JSON.

use std::path::Path;

use futures_util::TryStreamExt as _;
use serde::Deserialize;
use sqlx::AssertSqlSafe;

use super::ReadError;
use super::blocks::{Block, Blocks, Speaker};
use super::event::{Event, Head, Mark, Origin, Role, Usage};
use super::feed::Feed;
use super::source::Source;
use super::sqlite::{self, Columns, damaged, open, text};
use super::text::Text;
use super::time::Moment;
use super::wire::{List, Object};

/// Reads every session of a database.
pub(super) fn read(source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    let path = sqlite::file(source)?;
    sqlite::block_on(read_database(path, feed))?
}

async fn read_database(path: &Path, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    let mut database = open(path, &mut feed.notes).await?;
    let sessions = Columns::of(&mut database, "sessions").await.map_err(damaged)?;
    let messages = Columns::of(&mut database, "messages").await.map_err(damaged)?;
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
            feed.head = Head {
                id: field(0).as_str().to_owned(),
                agent: "crush".to_owned(),
                parent: field(1).line(200),
                ..Head::default()
            };
            feed.saw(Moment::parse(&field(2)));
            feed.saw(Moment::parse(&field(3)));
            let usage = Usage { input: count(4), output: count(5), cached: 0 };
            feed.head.usage = (usage != Usage::default()).then_some(usage);
            let id = text(&row, 0).into_owned();
            sqlite::each_row(&mut inner, of_session.clone(), &id, |row| {
                message([&text(row, 0), &text(row, 1), &text(row, 2), &text(row, 3)], feed);
            })
            .await?;
            feed.end();
        }
        Ok::<(), sqlx::Error>(())
    };
    let result = sent.await;
    sqlite::note_end(result, feed);
    Ok(())
}

/// A message part: `{"type": "tool_call", "data": {…}}`.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Part<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    data: Object<Block<'a>>,
}

fn message([role, parts, model, time]: [&str; 4], feed: &mut Feed<'_>) {
    let Ok(List(parts)) = serde_json::from_str::<List<Part<'_>>>(parts) else {
        feed.notes.bad_records += 1;
        return;
    };
    let Moment(time) = Moment::parse(time);
    let (mut blocks, mut mark) = (Blocks::default(), None);
    for part in parts {
        let mut block = part.data.0.unwrap_or_default();
        if part.kind.as_str() == "finish" {
            mark = match block.reason.as_str() {
                "canceled" => Some(Mark::Interrupted),
                "error" => Some(Mark::ApiError),
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
            feed.head.model(model);
            blocks.send_answer(&Speaker::new(Origin::Agent, time), feed);
        }
        "user" => blocks.send_given(&Speaker::new(Origin::Human, time), Role::User, feed),
        // Any text beside the results is not the user's.
        "tool" => blocks.send_given(&Speaker::new(Origin::Harness, time), Role::User, feed),
        "system" => blocks.send_given(&Speaker::new(Origin::Harness, time), Role::System, feed),
        other => feed.unknown(other),
    }
    if mark.is_some() {
        feed.event(Event { time, mark, ..Event::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Outcome;
    use super::super::sqlite::tests::database;
    use super::super::{Collector, Format, read};
    use super::*;

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
        let mut collector = Collector::default();
        let reading = read(&Source::file(path), &mut collector).unwrap();
        assert_eq!((reading.format, reading.sessions), (Format::Crush, 1));
        let session = collector.into_sessions().remove(0);
        assert_eq!(session.head.usage, Some(Usage { input: 10, output: 5, cached: 0 }));
        let said: Vec<_> = session
            .events
            .iter()
            .map(|event| (event.role, event.text.as_str(), event.calls.len(), event.mark))
            .collect();
        assert_eq!(
            said,
            [
                (Role::User, "look", 0, None),
                (Role::Assistant, "", 1, None),
                (Role::Tool, "", 0, None),
                (Role::Assistant, "None.", 0, None),
                (Role::System, "", 0, Some(Mark::Interrupted)),
            ]
        );
        assert_eq!(session.events[1].reasoning.as_str(), "hm");
        let result = &session.events[2].results[0];
        assert_eq!((result.tool.as_str(), result.outcome), ("bash", Outcome::Failed));
        assert_eq!(session.head.models, ["m-1"]);
    }
}
