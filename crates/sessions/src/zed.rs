//! Reads Zed's `threads/threads.db`: SQLite with one thread per row, as JSON or as JSON compressed
//! with Zstandard. Before version 0.3 of the JSON, each message names its speaker.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use futures_util::TryStreamExt as _;
use ruzstd::decoding::StreamingDecoder;
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};
use sqlx::{AssertSqlSafe, Row as _};

use super::SessionReadError;
use super::blocks::{ContentBlock, ContentBlocks, MessageContext};
use super::event::{
    EventOrigin, EventRole, SessionHead, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::sqlite::{self, TableColumns, damaged_error, open, text};
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonText, JsonValue, LenientFlag, LenientInt, LenientList, LenientObject, each};
use crate::format::{AgentFolders, FormatEntry, HomeRoot, IdSource};
use crate::wire::{AnyJson, deserialize_any_json};

/// Maximum bytes of one thread, both stored and decompressed.
const MAX_THREAD: usize = 256 * 1024 * 1024;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    table: Some(("threads", &["id", "data_type", "data"])),
    ids: IdSource::FileName,
    folders: &[AgentFolders {
        agent: "zed",
        variable: None,
        roots: &[HomeRoot::Data("zed"), HomeRoot::Support("Zed")],
        parts: &["threads"],
    }],
    ..FormatEntry::new(read)
};

/// Reads every thread of a database.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let path = sqlite::file(source)?;
    sqlite::block_on(read_database(path, feed))?
}

async fn read_database(path: &Path, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut database = open(path, &mut feed.notes).await?;
    let columns = TableColumns::of(&mut database, "threads").await.map_err(damaged_error)?;
    let list = columns.list(&["id", "parent_id", "updated_at", "created_at", "data_type"]);
    let query = format!(
        "SELECT {list}, CASE WHEN length(data) <= {MAX_THREAD} THEN data END FROM threads \
         ORDER BY rowid"
    );
    let mut rows = sqlx::query(AssertSqlSafe(query)).fetch(&mut database);
    let sent = async {
        while let Some(row) = rows.try_next().await? {
            // Unchecked, because the column stores text or bytes.
            let bytes = row.try_get_unchecked::<Option<&[u8]>, _>(5).ok().flatten();
            // NULL for a thread beyond the limit, which then counts as a bad record.
            let bytes = bytes.unwrap_or_default();
            let unpacked =
                if text(&row, 4) == "zstd" { unpack(bytes) } else { Some(bytes.to_vec()) };
            let thread = unpacked.as_deref().map(String::from_utf8_lossy);
            let thread = thread.as_deref().and_then(|json| serde_json::from_str(json).ok());
            let Some(LenientObject(Some(thread))) = thread else {
                feed.notes.bad_records += 1;
                continue;
            };
            feed.head = SessionHead {
                id: text(&row, 0).into_owned(),
                agent: "zed".to_owned(),
                parent: Text::new(text(&row, 1)).line(200),
                ..SessionHead::default()
            };
            feed.record_time(Moment::parse(&text(&row, 2)));
            feed.record_time(Moment::parse(&text(&row, 3)));
            ZedThread::send(thread, feed);
            feed.end_session();
        }
        Ok::<(), sqlx::Error>(())
    };
    let result = sent.await;
    sqlite::note_error(result, feed);
    Ok(())
}

fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut unpacked = Vec::new();
    let decoder = StreamingDecoder::new(bytes).ok()?;
    // Limits the decompressed size.
    decoder.take(MAX_THREAD as u64).read_to_end(&mut unpacked).ok()?;
    Some(unpacked)
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ZedThread<'a> {
    messages: ZedMessages<'a>,
    updated_at: Moment,
    cumulative_token_usage: LenientObject<ZedTokens>,
    model: JsonValue,
    initial_project_snapshot: JsonValue,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the names of the format")]
struct ZedTokens {
    input_tokens: LenientInt,
    output_tokens: LenientInt,
    cache_creation_input_tokens: LenientInt,
    cache_read_input_tokens: LenientInt,
}

impl ZedThread<'_> {
    fn send(self, feed: &mut SessionFeed<'_>) {
        feed.record_time(self.updated_at);
        feed.head.add_model(&self.model.text("/model"));
        let folder = self.initial_project_snapshot.text("/worktree_snapshots/0/worktree_path");
        feed.head.cwd = folder.line(400);
        let tokens = self.cumulative_token_usage.0.unwrap_or_default();
        // Cache writes are part of the input in the neutral model.
        let written = tokens.cache_creation_input_tokens.count();
        let usage = TokenCounts {
            input: tokens.input_tokens.count().saturating_add(written),
            output: tokens.output_tokens.count(),
            cached: tokens.cache_read_input_tokens.count(),
        };
        feed.head.usage = (usage != TokenCounts::default()).then_some(usage);
        self.messages.0.into_iter().for_each(|turn| turn.send(feed));
    }
}

/// Messages of a thread.
#[derive(Default)]
struct ZedMessages<'a>(Vec<ZedMessage<'a>>);

deserialize_any_json!(ZedMessages<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for ZedMessages<'a> {
    fn list<A: SeqAccess<'de>>(&mut self, list: A) -> Result<(), A::Error> {
        each(|turn: ZedMessage<'de>| self.0.push(turn)).list(list)
    }
}

/// One message: `{"User": …}`, `{"Agent": …}`, `"Resume"`, or the form before 0.3.
#[derive(Default)]
struct ZedMessage<'a> {
    role: Text<'a>,
    body: MessageBody<'a>,
    unknown: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct MessageBody<'a> {
    content: ZedContent<'a>,
    tool_results: BTreeMap<String, LenientObject<ZedResult<'a>>>,
}

/// A message in the form before 0.3.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct LegacyMessage<'a> {
    segments: LenientList<ContentBlock<'a>>,
    tool_uses: LenientList<ZedCall<'a>>,
    tool_results: LenientList<ZedResult<'a>>,
}

deserialize_any_json!(ZedMessage<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for ZedMessage<'a> {
    fn string(&mut self, text: std::borrow::Cow<'de, str>) {
        // "Resume" only means that the agent was asked to continue.
        if text != "Resume" {
            self.unknown = Text::new(text);
        }
    }

    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        let mut older = LegacyMessage::default();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "User" | "Agent" => {
                    self.body =
                        map.next_value::<LenientObject<MessageBody<'de>>>()?.0.unwrap_or_default();
                    self.role = if key.as_str() == "User" { "user" } else { "assistant" }.into();
                }
                "role" => self.role = map.next_value()?,
                "segments" => older.segments = map.next_value()?,
                "tool_uses" => older.tool_uses = map.next_value()?,
                "tool_results" => older.tool_results = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    if self.unknown.is_empty() {
                        self.unknown = key;
                    }
                }
            }
        }
        let blocks = &mut self.body.content.0;
        older.segments.0.into_iter().for_each(|segment| blocks.add(segment));
        older.tool_uses.0.into_iter().for_each(|used| blocks.call(used.into_call()));
        older.tool_results.0.into_iter().for_each(|given| blocks.result(given.into_result("")));
        Ok(())
    }
}

impl ZedMessage<'_> {
    fn send(self, feed: &mut SessionFeed<'_>) {
        let MessageBody { content: ZedContent(mut blocks), tool_results } = self.body;
        // Results are in a map beside the content, so that their order is that of their ids;
        // pairing by id does not depend on it.
        for (id, LenientObject(given)) in tool_results {
            blocks.result(given.unwrap_or_default().into_result(&id));
        }
        match self.role.as_str() {
            "assistant" => blocks.send_answer(&MessageContext::new(EventOrigin::Agent, None), feed),
            "user" => blocks.send_input(
                &MessageContext::new(EventOrigin::Human, None),
                EventRole::User,
                feed,
            ),
            "system" => blocks.send_input(
                &MessageContext::new(EventOrigin::Harness, None),
                EventRole::System,
                feed,
            ),
            _ if self.unknown.is_empty() => feed.notes.ignored_records += 1,
            _ => feed.count_unknown(&self.unknown),
        }
    }
}

/// Content of a message of either speaker.
#[derive(Default)]
struct ZedContent<'a>(ContentBlocks<'a>);

deserialize_any_json!(ZedContent<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for ZedContent<'a> {
    fn list<A: SeqAccess<'de>>(&mut self, list: A) -> Result<(), A::Error> {
        each(|piece: ZedPart<'de>| piece.put_into(&mut self.0)).list(list)
    }
}

/// One part: `{"Text": "…"}`, `{"Thinking": {"text": …}}`, `{"ToolUse": {…}}` and so on.
#[derive(Default)]
struct ZedPart<'a> {
    kind: Text<'a>,
    text: Text<'a>,
    used: Option<ZedCall<'a>>,
}

deserialize_any_json!(ZedPart<'a>);

/// The text inside a part.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct PartText<'a> {
    text: Text<'a>,
    content: Text<'a>,
}

impl<'de: 'a, 'a> AnyJson<'de> for ZedPart<'a> {
    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "Text" => self.text = map.next_value()?,
                "Thinking" => {
                    self.text = map
                        .next_value::<LenientObject<PartText<'de>>>()?
                        .0
                        .unwrap_or_default()
                        .text;
                }
                "Mention" => {
                    let inner =
                        map.next_value::<LenientObject<PartText<'de>>>()?.0.unwrap_or_default();
                    self.text = inner.content;
                }
                "ToolUse" => self.used = map.next_value::<LenientObject<ZedCall<'de>>>()?.0,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
            self.kind = key;
        }
        Ok(())
    }
}

impl<'a> ZedPart<'a> {
    fn put_into(self, blocks: &mut ContentBlocks<'a>) {
        match self.kind.as_str() {
            "Text" | "Mention" => blocks.say(self.text),
            "Thinking" => blocks.think(self.text),
            "ToolUse" => blocks.call(self.used.unwrap_or_default().into_call()),
            // Encrypted reasoning.
            "RedactedThinking" => {}
            "Image" => blocks.say("[image]".into()),
            kind => blocks.unknown(kind, &self.text),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ZedCall<'a> {
    id: Text<'a>,
    name: Text<'a>,
    input: JsonText,
}

impl<'a> ZedCall<'a> {
    fn into_call(self) -> ToolCall<'a> {
        ToolCall { id: self.id, name: self.name, arguments: self.input.0 }
    }
}

/// Result of a tool call.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ZedResult<'a> {
    tool_use_id: Text<'a>,
    tool_name: Text<'a>,
    is_error: LenientFlag,
    content: ZedOutput<'a>,
}

/// Tool output: a text, `{"Text": …}`, an image, or a list of them.
#[derive(Default)]
struct ZedOutput<'a>(Text<'a>);

deserialize_any_json!(ZedOutput<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for ZedOutput<'a> {
    fn string(&mut self, text: std::borrow::Cow<'de, str>) {
        self.0 = Text::new(text);
    }

    fn list<A: SeqAccess<'de>>(&mut self, list: A) -> Result<(), A::Error> {
        each(|ZedOutput(text): ZedOutput<'de>| self.0.add(text)).list(list)
    }

    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.to_ascii_lowercase().as_str() {
                "text" => self.0 = map.next_value()?,
                "image" | "source" => {
                    map.next_value::<IgnoredAny>()?;
                    self.0 = "[image]".into();
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl<'a> ZedResult<'a> {
    fn into_result(self, id: &str) -> ToolResult<'a> {
        let call_id =
            if self.tool_use_id.is_empty() { Text::from(id.to_owned()) } else { self.tool_use_id };
        let text = self.content.0;
        // Zed has no flag for refusals, only fixed messages.
        let is_refused = text.starts_with("Permission to run tool denied by user")
            || text.starts_with("Tool canceled by user");
        let outcome = match self.is_error.0 {
            Some(true) if is_refused => ToolOutcome::Rejected,
            Some(true) => ToolOutcome::Failed,
            Some(false) => ToolOutcome::Ok,
            None => ToolOutcome::Unknown,
        };
        ToolResult { call_id, tool: self.tool_name, text, outcome, ..ToolResult::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sqlite::tests::database;
    use super::super::{SessionCollector, SessionFormat, read};
    use super::*;

    /// 1 human turn, 2 answers, 2 calls: one worked, one failed; 15 tokens in, 100 from a cache.
    const THREAD: &str = r#"{"version":"0.3.0","title":"t","updated_at":"2026-01-01T00:05:00Z","messages":[
      {"User":{"id":"u1","content":[{"Text":"fix it"},{"Mention":{"uri":{"File":{"abs_path":"/w/a"}},"content":"fn a"}}]}},
      {"Agent":{"content":[{"Thinking":{"text":"hm","signature":null}},{"Text":"I look."},
        {"ToolUse":{"id":"c1","name":"read_file","raw_input":"","input":{"path":"a"},"is_input_complete":true}},
        {"ToolUse":{"id":"c2","name":"terminal","raw_input":"","input":{"command":"make"},"is_input_complete":true}}],
        "tool_results":{"c1":{"tool_use_id":"c1","tool_name":"read_file","is_error":false,"content":{"Text":"fn a"},"output":null},
          "c2":{"tool_use_id":"c2","tool_name":"terminal","is_error":true,"content":"no rule","output":null}}}},
      "Resume",
      {"Agent":{"content":[{"Text":"It fails."},{"Hologram":{"x":1}}],"tool_results":{}}}],
      "cumulative_token_usage":{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":5,"cache_read_input_tokens":100},
      "initial_project_snapshot":{"worktree_snapshots":[{"worktree_path":"/w"}]},"model":{"provider":"p","model":"m-1"}}"#;

    /// The same of before 0.3, with 1 call that worked.
    const OLDER: &str = r#"{"version":"0.2.0","summary":"t","updated_at":"2026-01-02T00:00:00Z","messages":[
      {"id":0,"role":"user","segments":[{"type":"text","text":"look"}],"tool_uses":[],"tool_results":[],"context":""},
      {"id":1,"role":"assistant","segments":[{"type":"text","text":"I do."}],"tool_uses":[{"id":"c1","name":"list","input":{}}],
        "tool_results":[{"tool_use_id":"c1","is_error":false,"content":"a.rs","output":null}]}]}"#;

    #[test]
    fn threads_of_a_database() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("threads.db");
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let packed = ruzstd::encoding::compress_to_vec(THREAD.as_bytes(), level);
        let hex = |text: String, byte: &u8| text + &format!("{byte:02x}");
        let packed = packed.iter().fold(String::new(), hex);
        let older = OLDER.replace('\'', "''");
        database(
            &path,
            &[format!(
                "CREATE TABLE threads (id TEXT PRIMARY KEY, parent_id TEXT, summary TEXT,
                   updated_at TEXT, data_type TEXT, data BLOB);
                 INSERT INTO threads VALUES ('t1', NULL, 't', '2026-01-01T00:05:00Z', 'zstd', x'{packed}');
                 INSERT INTO threads VALUES ('t2', 't1', 't', '2026-01-02T00:00:00Z', 'json', '{older}');
                 INSERT INTO threads VALUES ('t3', NULL, 't', '', 'zstd', x'00');"
            )],
        );
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::file(path), &mut collector).unwrap();
        assert_eq!(
            (reading.format, reading.sessions, reading.notes.bad_records),
            (SessionFormat::Zed, 2, 1)
        );
        let sessions = collector.into_sessions();
        let head = &sessions[0].head;
        assert_eq!((head.id.as_str(), head.cwd.as_deref()), ("t1", Some("/w")));
        assert_eq!(head.usage, Some(TokenCounts { input: 15, output: 5, cached: 100 }));
        assert_eq!((head.models[0].as_str(), head.unknown_blocks.total()), ("m-1", 1));
        let said: Vec<_> = sessions[0]
            .events
            .iter()
            .map(|event| (event.role, event.text.as_str(), event.calls.len()))
            .collect();
        assert_eq!(
            said,
            [
                (EventRole::User, "fix it\nfn a", 0),
                (EventRole::Assistant, "I look.", 2),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "It fails.\n[unknown block \"Hologram\"]", 0),
            ]
        );
        let results: Vec<_> = sessions[0].events[2]
            .results
            .iter()
            .map(|result| (result.tool.as_str(), result.outcome, result.text.as_str()))
            .collect();
        let expected =
            [("read_file", ToolOutcome::Ok, "fn a"), ("terminal", ToolOutcome::Failed, "no rule")];
        assert_eq!(results, expected);
        assert_eq!(sessions[0].events[1].reasoning.as_str(), "hm");
        assert_eq!(sessions[1].head.parent.as_deref(), Some("t1"));
        assert_eq!(sessions[1].events[2].results[0].outcome, ToolOutcome::Ok);
    }
}
