//! Reads Cursor's editor database, `User/globalStorage/state.vscdb`: SQLite with one key-value
//! table. `composerData:<id>` is a conversation and lists its messages ("bubbles") in order;
//! `bubbleId:<id>:<bubble>` is one message. Other keys hold settings and secrets and are never
//! queried. Transcripts of Cursor's CLI agent are JSON lines of messages and are read as chat.

use std::path::Path;

use futures_util::TryStreamExt as _;
use serde::Deserialize;
use sqlx::AssertSqlSafe;

use super::event::{
    Event, EventOrigin, EventRole, SessionHead, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::sqlite::{self, TableColumns, damaged_error, open, text};
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonText, JsonValue, LenientInt, LenientList, LenientObject};
use super::{SessionReadError, failure};
use crate::format::{AgentFolders, FormatEntry, HomeRoot, IdSource};

/// Maximum number of messages in a conversation.
const MAX_BUBBLES: usize = 100_000;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    table: Some(("cursorDiskKV", &["key", "value"])),
    ids: IdSource::FileName,
    folders: &[AgentFolders {
        agent: "cursor",
        variable: None,
        roots: &[HomeRoot::Editor("Cursor")],
        parts: &["state.vscdb"],
    }],
    ..FormatEntry::new(read)
};

/// Reads every conversation of a database.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let path = sqlite::file(source)?;
    sqlite::block_on(read_database(path, feed))?
}

async fn read_database(path: &Path, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut database = open(path, &mut feed.notes).await?;
    let columns = TableColumns::of(&mut database, "cursorDiskKV").await.map_err(damaged_error)?;
    // A second connection, because the first one is still streaming the conversations.
    let mut inner = open(path, &mut feed.notes).await?;
    // A key range instead of `LIKE`: `;` is the character after `:`, and the key index is used.
    let list = columns.list_of_json(&["key", "value"]);
    let query = format!(
        "SELECT {list} FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' \
         ORDER BY key"
    );
    let of_bubble =
        format!("SELECT {} FROM cursorDiskKV WHERE key = ?", columns.list_of_json(&["value"]));
    let mut rows = sqlx::query(AssertSqlSafe(query)).fetch(&mut database);
    let sent = async {
        while let Some(row) = rows.try_next().await? {
            let key = text(&row, 0).into_owned();
            let value = text(&row, 1);
            let Some(id) = key.strip_prefix("composerData:") else { continue };
            let Ok(LenientObject(composer)) =
                serde_json::from_str::<LenientObject<Composer<'_>>>(&value)
            else {
                feed.notes.bad_records += 1;
                continue;
            };
            let composer = composer.unwrap_or_default();
            composer.note(id, feed);
            // Only one of the two lists has messages, depending on the version.
            for bubble in composer.conversation.0 {
                bubble.send(feed);
            }
            for header in composer.headers.0.into_iter().take(MAX_BUBBLES) {
                let key = format!("bubbleId:{id}:{}", header.bubble_id);
                sqlite::each_row(&mut inner, of_bubble.clone(), &key, |row| {
                    match serde_json::from_str::<LenientObject<Bubble<'_>>>(&text(row, 0)) {
                        Ok(LenientObject(Some(bubble))) => bubble.send(feed),
                        Ok(LenientObject(None)) => feed.notes.ignored_records += 1,
                        Err(_) => feed.notes.bad_records += 1,
                    }
                })
                .await?;
            }
            feed.end_session();
        }
        Ok::<(), sqlx::Error>(())
    };
    let result = sent.await;
    sqlite::note_error(result, feed);
    Ok(())
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Composer<'a> {
    created_at: Moment,
    last_updated_at: Moment,
    model_config: JsonValue,
    #[serde(rename = "fullConversationHeadersOnly")]
    headers: LenientList<BubbleHeader<'a>>,
    /// Messages, in older versions.
    conversation: LenientList<Bubble<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct BubbleHeader<'a> {
    bubble_id: Text<'a>,
}

/// One message, from the user (1) or the agent (2), with at most one tool call.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Bubble<'a> {
    #[serde(rename = "type")]
    kind: LenientInt,
    text: Text<'a>,
    thinking: Text<'a>,
    created_at: Moment,
    token_count: LenientObject<CursorTokens>,
    tool_former_data: LenientObject<CursorTool<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CursorTokens {
    input_tokens: LenientInt,
    output_tokens: LenientInt,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct CursorTool<'a> {
    #[serde(rename = "toolCallId")]
    id: Text<'a>,
    name: Text<'a>,
    raw_args: JsonText,
    params: JsonText,
    result: JsonText,
    status: Text<'a>,
    error: JsonText,
    user_decision: Text<'a>,
}

impl Composer<'_> {
    fn note(&self, id: &str, feed: &mut SessionFeed<'_>) {
        feed.head =
            SessionHead { id: id.to_owned(), agent: "cursor".to_owned(), ..SessionHead::default() };
        feed.head.add_model(&self.model_config.text("/modelName"));
        feed.record_time(self.created_at);
        feed.record_time(self.last_updated_at);
    }
}

impl Bubble<'_> {
    fn send(self, feed: &mut SessionFeed<'_>) {
        let time = self.created_at.0;
        match self.kind.0 {
            Some(1) => feed.send_text(EventRole::User, EventOrigin::Human, self.text, time),
            Some(2) => {
                // Most bubbles have counts of 0, which say nothing and are filtered out below.
                let usage = self.token_count.0.map(|count| TokenCounts {
                    input: count.input_tokens.count(),
                    output: count.output_tokens.count(),
                    cached: 0,
                });
                let (call, result) = match self.tool_former_data.0.and_then(CursorTool::split) {
                    Some((call, result)) => (Some(call), result),
                    None => (None, None),
                };
                feed.send(Event {
                    role: EventRole::Assistant,
                    origin: EventOrigin::Agent,
                    text: self.text,
                    reasoning: self.thinking,
                    calls: call.into_iter().collect(),
                    usage: usage.filter(|usage| *usage != TokenCounts::default()),
                    time,
                    ..Event::default()
                });
                feed.send_results(EventOrigin::Agent, result.into_iter().collect(), time);
            }
            _ => feed.count_unknown("bubble"),
        }
    }
}

impl<'a> CursorTool<'a> {
    /// Splits the record into a call and its result, if it has one. Returns `None` if the tool has
    /// no name.
    fn split(self) -> Option<(ToolCall<'a>, Option<ToolResult<'a>>)> {
        if self.name.is_empty() {
            return None;
        }
        let arguments = if self.raw_args.0.is_empty() { self.params.0 } else { self.raw_args.0 };
        let call = ToolCall { id: self.id.clone(), name: self.name.clone(), arguments };
        let read = failure::result_of(self.result.0);
        let is_refused = self.user_decision.as_str() == "rejected";
        let outcome = match self.status.as_str() {
            _ if is_refused => ToolOutcome::Rejected,
            "cancelled" => ToolOutcome::Rejected,
            "error" => ToolOutcome::Failed,
            // The status means that the tool ran; its result may still report a failure.
            "completed" | "success" if read.outcome == ToolOutcome::Unknown => ToolOutcome::Ok,
            "completed" | "success" => read.outcome,
            // The call is still running, so it has no result.
            _ => return Some((call, None)),
        };
        let (call_id, tool, error) = (self.id, self.name, self.error.0);
        Some((call, Some(ToolResult { call_id, tool, outcome, error, ..read })))
    }
}

#[cfg(test)]
mod tests {
    use super::super::SessionFormat;
    use super::super::sqlite::tests::database;
    use super::*;
    use crate::test_support::only_session;

    #[test]
    fn conversations_of_a_database() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.vscdb");
        // 1 human turn, 4 model messages, 3 calls: one worked, one failed, one was refused.
        database(
            &path,
            &[r#"CREATE TABLE ItemTable (key TEXT, value BLOB);
                CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB);
                INSERT INTO cursorDiskKV VALUES
                 ('composerData:c1','{"composerId":"c1","createdAt":1767225600000,"modelConfig":{"modelName":"m-1"},"fullConversationHeadersOnly":[{"bubbleId":"b1","type":1},{"bubbleId":"b2","type":2},{"bubbleId":"b3","type":2},{"bubbleId":"b4","type":2},{"bubbleId":"b5","type":2}]}'),
                 ('composerData:c2','null'),
                 ('bubbleId:c1:b1','{"type":1,"text":"fix it","createdAt":"2026-01-01T00:00:01Z"}'),
                 ('bubbleId:c1:b2','{"type":2,"thinking":{"text":"hm"},"toolFormerData":{"toolCallId":"t1","name":"read_file","rawArgs":"{\"path\":\"a\"}","status":"completed","result":"{\"contents\":\"fn\"}"}}'),
                 ('bubbleId:c1:b3','{"type":2,"toolFormerData":{"toolCallId":"t2","name":"run_terminal_cmd","params":{"command":"make"},"status":"error","error":"boom"}}'),
                 ('bubbleId:c1:b4','{"type":2,"toolFormerData":{"toolCallId":"t3","name":"edit_file","status":"completed","userDecision":"rejected"}}'),
                 ('bubbleId:c1:b5','{"type":2,"text":"It fails.","tokenCount":{"inputTokens":10,"outputTokens":5}}');"#],
        );
        let session = only_session(SessionFormat::CursorState, &SessionSource::file(path));
        assert_eq!((session.head.id.as_str(), session.head.models[0].as_str()), ("c1", "m-1"));
        let results: Vec<_> = session
            .events
            .iter()
            .flat_map(|event| &event.results)
            .map(|result| (result.tool.as_str(), result.outcome))
            .collect();
        assert_eq!(
            results,
            [
                ("read_file", ToolOutcome::Ok),
                ("run_terminal_cmd", ToolOutcome::Failed),
                ("edit_file", ToolOutcome::Rejected),
            ]
        );
        assert_eq!(session.events[1].reasoning.as_str(), "hm");
        assert_eq!(session.events.last().unwrap().usage.unwrap().input, 10);
    }
}
