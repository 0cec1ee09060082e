//! Reads goose's `~/.local/share/goose/sessions/sessions.db`: SQLite with message contents as JSON
//! (`content_json`). Older versions write one JSON Lines file per session with the same messages,
//! which is read as chat. `goose run --output-format stream-json` prints them, too.

mod printed;

use std::path::Path;

use futures_util::TryStreamExt as _;
use sqlx::AssertSqlSafe;

use super::SessionReadError;
use super::blocks::{ContentBlocks, MessageContext};
use super::event::{EventOrigin, EventRole, SessionHead, TokenCounts};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::sqlite::{self, TableColumns, damaged_error, open, text};
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonValue, LenientFlag};
use crate::format::{AgentFolders, FormatEntry, HomeRoot, IdSource};

/// Columns of a session, in the order that [`head`] expects.
const SESSION: [&str; 8] = [
    "id",
    "working_dir",
    "model_config_json",
    "session_type",
    "created_at",
    "updated_at",
    "accumulated_input_tokens",
    "accumulated_output_tokens",
];

const AGENT: &str = "goose";

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: printed::is_line,
    table: Some(("messages", &["session_id", "role", "content_json"])),
    ids: IdSource::FileName,
    folders: &[AgentFolders {
        agent: AGENT,
        variable: None,
        roots: &[HomeRoot::Data("goose")],
        parts: &["sessions"],
    }],
    ..FormatEntry::new(read)
};

/// Reads every session of a database, or a printed one.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    if !sqlite::is_database(source)? {
        return printed::read(source, feed);
    }
    let path = sqlite::file(source)?;
    sqlite::block_on(read_database(path, feed))?
}

async fn read_database(path: &Path, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut database = open(path, &mut feed.notes).await?;
    let sessions = TableColumns::of(&mut database, "sessions").await.map_err(damaged_error)?;
    let messages = TableColumns::of(&mut database, "messages").await.map_err(damaged_error)?;
    // A second connection, because the first one is still streaming the sessions.
    let mut inner = open(path, &mut feed.notes).await?;
    let query = format!("SELECT {} FROM sessions ORDER BY rowid", sessions.list(&SESSION));
    let of_session = format!(
        "SELECT {} FROM messages WHERE session_id = ? ORDER BY rowid",
        messages.list_of_json(&["role", "content_json", "created_timestamp", "metadata_json"])
    );
    let mut rows = sqlx::query(AssertSqlSafe(query)).fetch(&mut database);
    let sent = async {
        while let Some(row) = rows.try_next().await? {
            let fields: [Text<'_>; 8] = std::array::from_fn(|at| Text::new(text(&row, at)));
            head(&fields, feed);
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

fn head(fields: &[Text<'_>; 8], feed: &mut SessionFeed<'_>) {
    let [id, folder, model, platform, created, updated, input, output] = fields;
    feed.head = SessionHead {
        id: id.as_str().to_owned(),
        agent: AGENT.to_owned(),
        platform: platform.line(60),
        cwd: folder.line(400),
        ..SessionHead::default()
    };
    feed.head.add_model(&JsonValue::parse(model).text("/model_name"));
    feed.record_time(Moment::parse(created));
    feed.record_time(Moment::parse(updated));
    let count = |text: &Text<'_>| text.parse::<u64>().unwrap_or_default();
    let usage = TokenCounts { input: count(input), output: count(output), cached: 0 };
    feed.head.usage = (usage != TokenCounts::default()).then_some(usage);
}

fn send_message([role, content, time, metadata]: [&str; 4], feed: &mut SessionFeed<'_>) {
    // NULL and text that is no JSON: the row is damaged, and the next one is read.
    let Some(blocks) = ContentBlocks::parse(content) else {
        feed.notes.bad_records += 1;
        return;
    };
    let Moment(time) = Moment::parse(time);
    match role {
        "assistant" => blocks.send_answer(&MessageContext::new(EventOrigin::Agent, time), feed),
        "user" => {
            // Content that is visible only to the model was not typed by the user.
            let visible: LenientFlag = JsonValue::parse(metadata).part("/userVisible");
            let is_hidden = visible.0 == Some(false);
            let origin = if is_hidden { EventOrigin::Harness } else { EventOrigin::Human };
            blocks.send_input(&MessageContext::new(origin, time), EventRole::User, feed);
        }
        other => {
            feed.count_unknown(other);
            feed.notes.ignored_records += 1;
        }
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
        let path = folder.path().join("sessions.db");
        // 1 human turn, 2 model calls, 2 calls of which 1 failed.
        database(
            &path,
            &[
                r#"CREATE TABLE sessions (id TEXT, working_dir TEXT, created_at TEXT, updated_at TEXT,
                  accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER,
                  model_config_json TEXT);
                CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT,
                  content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);
                INSERT INTO sessions VALUES ('20260101_1', '/w', '2026-01-01 00:00:00',
                  '2026-01-01 00:01:00', 10, 5, '{"model_name":"m-1"}');
                INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES
                 ('20260101_1','user','[{"type":"text","text":"look"}]',1767225601),
                 ('20260101_1','assistant','[{"type":"thinking","thinking":"hm"},{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"ls"}}}},{"type":"toolRequest","id":"c2","toolCall":{"status":"success","value":{"name":"developer__text_editor","arguments":{}}}}]',1767225602),
                 ('20260101_1','user','[{"type":"toolResponse","id":"c1","toolResult":{"status":"success","value":[{"type":"text","text":"a.rs"}]}},{"type":"toolResponse","id":"c2","toolResult":{"status":"error","error":"no such file"}}]',1767225603),
                 ('20260101_1','assistant','[{"type":"text","text":"There."}]',1767225604);"#,
            ],
        );
        let session = only_session(SessionFormat::Goose, &SessionSource::file(path));
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.models[0].as_str()), ("20260101_1", "m-1"));
        assert_eq!(head.start.unwrap().to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(head.usage, Some(TokenCounts { input: 10, output: 5, cached: 0 }));
        assert_eq!(session.events.len(), 4);
        let calls: Vec<_> =
            session.events[1].calls.iter().map(|call| call.arguments.as_str()).collect();
        assert_eq!(calls, [r#"{"command":"ls"}"#, "{}"]);
        let results: Vec<_> = session.events[2]
            .results
            .iter()
            .map(|result| (result.tool.as_str(), result.outcome, result.text.as_str()))
            .collect();
        assert_eq!(
            results,
            [
                ("developer__shell", ToolOutcome::Ok, "a.rs"),
                ("developer__text_editor", ToolOutcome::Failed, ""),
            ]
        );
        assert!(head.unknown_blocks.is_empty());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
