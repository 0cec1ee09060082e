//! Reads `OpenCode` in four forms: `~/.local/share/opencode/opencode.db`, an SQLite database with
//! JSON for each message and each part; the output of `opencode export`, one JSON object with the
//! same content; that of `opencode run --format json`, one line per part; and the folders of JSON files that older versions write. The oldest of these store
//! parts inside the message, in the Vercel AI SDK's format, and the message's data in `metadata`.
//!
//! A part of type `tool` contains a call and its result. Subagents are sessions with a parent.

mod printed;
pub(crate) mod storage;

use std::mem;
use std::path::Path;

use futures_util::TryStreamExt as _;
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess};
use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteConnection;

use crate::SessionReadError;
use crate::blocks::{ContentBlocks, MessageContext};
use crate::chat::is_lines;
use crate::event::{
    Event, EventMark, EventOrigin, EventRole, SessionHead, TokenCounts, ToolCall, ToolOutcome,
    ToolResult,
};
use crate::feed::SessionFeed;
use crate::format::{
    AgentFolders, FormatEntry, HomeRoot, IdSource, VerificationBasis, VerifiedVersion,
};
use crate::outline::JsonOutline;
use crate::source::{DocumentReader, SessionSource, each_record};
use crate::sqlite::{self, TableColumns, damaged_error, open, text};
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{
    JsonText, JsonValue, LenientFlag, LenientInt, LenientList, LenientNumber, LenientObject,
};

const AGENT: &str = "opencode";

/// Prefixes of the error of a call that the user refused.
const REFUSALS: [&str; 2] = ["The user rejected permission", "The user dismissed"];

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| is_export(value) || printed::is_line(value),
    table: Some(("part", &["message_id", "data"])),
    source: storage::is_stored,
    ids: IdSource::FileName,
    folders: &[AgentFolders {
        agent: "opencode",
        variable: None,
        roots: &[HomeRoot::Data("opencode")],
        parts: &["opencode.db", "storage", "project"],
    }],
    verified: Some(VerifiedVersion {
        agent: "opencode",
        version: "1.0",
        basis: VerificationBasis::OwnFixture,
    }),
    ..FormatEntry::new(read)
};

/// Reads a database, an exported session or a printed one.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    if let SessionSource::Folder { files, .. } = source {
        return storage::read(files, feed);
    }
    if sqlite::is_database(source)? {
        let path = sqlite::file(source)?;
        sqlite::block_on(read_database(path, feed))?
    } else if is_lines(source)? {
        printed::read(source, feed)
    } else {
        source.read_document(&mut OpenCodeExport, feed)
    }
}

/// Returns true if this is an exported session.
fn is_export(value: &JsonOutline) -> bool {
    let is_message = |message: &JsonOutline| message.has("info") && message.has("parts");
    value.has("info") && value.list("messages").iter().any(is_message)
}

async fn read_database(path: &Path, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut database = open(path, &mut feed.notes).await?;
    let sessions = TableColumns::of(&mut database, "session").await.map_err(damaged_error)?;
    let messages = TableColumns::of(&mut database, "message").await.map_err(damaged_error)?;
    let parts = TableColumns::of(&mut database, "part").await.map_err(damaged_error)?;
    // Separate connections, because the outer queries are still streaming.
    let (mut inner, mut innermost) =
        (open(path, &mut feed.notes).await?, open(path, &mut feed.notes).await?);
    // Columns of newer versions; those that a database lacks are read as NULL.
    let list = sessions.list(&[
        "id",
        "parent_id",
        "directory",
        "version",
        "time_created",
        "time_updated",
        "revert",
    ]);
    let query = format!("SELECT {list} FROM session ORDER BY rowid");
    let mut rows = sqlx::query(AssertSqlSafe(query)).fetch(&mut database);
    let sent = async {
        while let Some(row) = rows.try_next().await? {
            let field = |at: usize| Text::new(text(&row, at));
            feed.head = SessionHead {
                id: field(0).as_str().to_owned(),
                agent: AGENT.to_owned(),
                agent_version: field(3).line(60),
                parent: field(1).line(200),
                cwd: field(2).line(400),
                ..SessionHead::default()
            };
            feed.record_time(Moment::parse(&field(4)));
            feed.record_time(Moment::parse(&field(5)));
            let id = text(&row, 0).into_owned();
            send_session(&mut inner, &mut innermost, &messages, &parts, &id, feed).await?;
            // `revert` is NULL or an object that names the first message taken back.
            if text(&row, 6).trim_start().starts_with('{') {
                send_undo(feed);
            }
            feed.end_session();
        }
        Ok::<(), sqlx::Error>(())
    };
    let result = sent.await;
    sqlite::note_error(result, feed);
    Ok(())
}

async fn send_session(
    database: &mut SqliteConnection,
    inner: &mut SqliteConnection,
    messages: &TableColumns,
    parts: &TableColumns,
    session: &str,
    feed: &mut SessionFeed<'_>,
) -> Result<(), sqlx::Error> {
    let query = format!(
        "SELECT {} FROM message WHERE session_id = ? ORDER BY time_created, id",
        messages.list_of_json(&["id", "data", "time_created"])
    );
    let of_message = format!(
        "SELECT {} FROM part WHERE message_id = ? ORDER BY id",
        parts.list_of_json(&["data"])
    );
    let mut rows = sqlx::query(AssertSqlSafe(query)).bind(session.to_owned()).fetch(database);
    while let Some(row) = rows.try_next().await? {
        let id = text(&row, 0).into_owned();
        let data = text(&row, 1).into_owned();
        let Ok(info) = serde_json::from_str::<MessageInfo<'_>>(&data) else {
            feed.notes.bad_records += 1;
            continue;
        };
        let mut said = MessageParts::default();
        let mut bad = 0;
        sqlite::each_row(inner, of_message.clone(), &id, |row| {
            match serde_json::from_str::<OpenCodePart<'_>>(&text(row, 0)) {
                // Owned, because the row is gone before the message is sent.
                Ok(part) => said.add(part.into_owned()),
                Err(_) => bad += 1,
            }
        })
        .await?;
        feed.notes.bad_records += bad;
        info.send(said, feed);
    }
    Ok(())
}

/// Sends that the person has undone the last messages and their changes: until the next request, the
/// session describes what `/undo` took back.
fn send_undo(feed: &mut SessionFeed<'_>) {
    let (origin, mark) = (EventOrigin::Human, Some(EventMark::EditUndone));
    feed.send(Event { origin, mark, text: Text::new("/undo"), ..Event::default() });
}

/// Returns true if the description of a session says that its last messages are undone.
fn is_undone(info: &JsonValue) -> bool {
    !info.text("/revert/messageID").is_empty()
}

/// Copies the session's metadata.
fn copy_metadata(info: &JsonValue, feed: &mut SessionFeed<'_>) {
    let head = &mut feed.head;
    info.text("/id").as_str().clone_into(&mut head.id);
    head.parent = info.text("/parentID").line(200);
    head.cwd = info.text("/directory").line(400);
    head.agent_version = info.text("/version").line(60);
    feed.record_time(info.part("/time/created"));
    feed.record_time(info.part("/time/updated"));
}

/// An exported session: `{"info": …, "messages": [{"info": …, "parts": […]}]}`.
struct OpenCodeExport;

impl DocumentReader for OpenCodeExport {
    fn begin(&mut self, feed: &mut SessionFeed<'_>) {
        AGENT.clone_into(&mut feed.head.agent);
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut was_undone = false;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "info" => {
                    let info = map.next_value::<JsonValue>()?;
                    was_undone = is_undone(&info);
                    copy_metadata(&info, feed);
                }
                "messages" => {
                    map.next_value_seed(each_record(
                        feed,
                        |message: OpenCodeMessage<'de>, feed| {
                            let mut said = MessageParts::default();
                            message.parts.0.into_iter().for_each(|part| said.add(part));
                            message.info.0.unwrap_or_default().send(said, feed);
                        },
                    ))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if was_undone {
            send_undo(feed);
        }
        Ok(())
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct OpenCodeMessage<'a> {
    info: LenientObject<MessageInfo<'a>>,
    parts: LenientList<OpenCodePart<'a>>,
}

/// Data of a message.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct MessageInfo<'a> {
    role: Text<'a>,
    #[serde(rename = "modelID")]
    model: Text<'a>,
    time: LenientObject<MessageTimes>,
    tokens: LenientObject<OpenCodeTokens>,
    /// In USD.
    cost: LenientNumber,
    error: LenientObject<MessageError<'a>>,
    path: LenientObject<MessagePaths<'a>>,
    /// In the first versions.
    parts: ContentBlocks<'a>,
    metadata: LenientObject<LegacyMetadata<'a>>,
}

/// Working directory of the agent.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct MessagePaths<'a> {
    cwd: Text<'a>,
}

/// Data of a message in the first versions.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct LegacyMetadata<'a> {
    time: LenientObject<MessageTimes>,
    error: LenientObject<MessageError<'a>>,
    assistant: LenientObject<LegacyAnswer<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct LegacyAnswer<'a> {
    #[serde(rename = "modelID")]
    model: Text<'a>,
    tokens: LenientObject<OpenCodeTokens>,
    cost: LenientNumber,
    path: LenientObject<MessagePaths<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MessageTimes {
    created: Moment,
}

/// Token counts. The input excludes cached tokens, the output excludes reasoning.
#[derive(Deserialize, Default)]
#[serde(default)]
struct OpenCodeTokens {
    input: LenientInt,
    output: LenientInt,
    reasoning: LenientInt,
    cache: LenientObject<CacheTokens>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CacheTokens {
    read: LenientInt,
    write: LenientInt,
}

impl OpenCodeTokens {
    fn usage(&self) -> Option<TokenCounts> {
        let cache = self.cache.0.as_ref();
        let of =
            |count: fn(&CacheTokens) -> LenientInt| cache.map_or(0, |cache| count(cache).count());
        let usage = TokenCounts {
            input: self.input.count().saturating_add(of(|cache| cache.write)),
            output: self.output.count().saturating_add(self.reasoning.count()),
            cached: of(|cache| cache.read),
        };
        (usage != TokenCounts::default()).then_some(usage)
    }
}

/// Error of a message: `{"name": "MessageAbortedError", "data": {"message": …}}`.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct MessageError<'a> {
    name: Text<'a>,
    data: JsonValue,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct OpenCodePart<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    text: Text<'a>,
    /// Set for text that `OpenCode` added to the user's.
    synthetic: LenientFlag,
    tool: Text<'a>,
    #[serde(rename = "callID")]
    call_id: Text<'a>,
    state: LenientObject<CallState<'a>>,
    filename: Text<'a>,
    mime: Text<'a>,
    /// Of the part that ends a step.
    tokens: LenientObject<OpenCodeTokens>,
    cost: LenientNumber,
}

/// State of a call.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CallState<'a> {
    status: Text<'a>,
    input: JsonText,
    output: Text<'a>,
    error: Text<'a>,
    metadata: JsonValue,
}

impl OpenCodePart<'_> {
    fn into_owned(self) -> OpenCodePart<'static> {
        let state = self.state.0.map(|state| CallState {
            status: state.status.into_owned(),
            input: state.input,
            output: state.output.into_owned(),
            error: state.error.into_owned(),
            metadata: state.metadata,
        });
        OpenCodePart {
            kind: self.kind.into_owned(),
            text: self.text.into_owned(),
            synthetic: self.synthetic,
            tool: self.tool.into_owned(),
            call_id: self.call_id.into_owned(),
            state: LenientObject(state),
            filename: self.filename.into_owned(),
            mime: self.mime.into_owned(),
            tokens: self.tokens,
            cost: self.cost,
        }
    }
}

/// The parts of a message.
#[derive(Default)]
struct MessageParts<'a> {
    blocks: ContentBlocks<'a>,
    /// Text written by `OpenCode`.
    notes: Text<'a>,
    is_compaction: bool,
}

impl<'a> MessageParts<'a> {
    fn add(&mut self, part: OpenCodePart<'a>) {
        match part.kind.as_str() {
            "text" if part.synthetic.is_set() => self.notes.add(part.text),
            "text" => self.blocks.say(part.text),
            "reasoning" => self.blocks.think(part.text),
            "tool" => self.tool(part),
            "file" => {
                let note = format!("[file {} {}]", part.mime, part.filename);
                self.blocks.say(Text::from(selftest_text::one_line(&note, 200)));
            }
            "compaction" => self.is_compaction = true,
            "step-start" | "step-finish" | "snapshot" | "patch" | "agent" | "retry" | "subtask" => {
            }
            kind => self.blocks.unknown(kind, &part.text),
        }
    }

    fn tool(&mut self, part: OpenCodePart<'a>) {
        let state = part.state.0.unwrap_or_default();
        let arguments = state.input.0;
        self.blocks.call(ToolCall { id: part.call_id.clone(), name: part.tool.clone(), arguments });
        let exit_code = state.metadata.part::<LenientInt>("/exit").0;
        let is_refused = REFUSALS.iter().any(|start| state.error.starts_with(start));
        let outcome = match (state.status.as_str(), exit_code) {
            ("error", _) if is_refused => ToolOutcome::Rejected,
            ("error", _) => ToolOutcome::Failed,
            // The status only means that the tool ran; the exit code is the program's.
            ("completed", Some(code)) if code != 0 => ToolOutcome::Failed,
            // Stands for a call that could not be made: an unknown tool, or wrong arguments.
            ("completed", _) if part.tool.as_str() == "invalid" => ToolOutcome::Failed,
            ("completed", _) => ToolOutcome::Ok,
            // The call is still pending or running.
            _ => return,
        };
        self.blocks.result(ToolResult {
            call_id: part.call_id,
            tool: part.tool,
            text: state.output,
            outcome,
            exit_code,
            error: state.error,
        });
    }
}

impl<'a> MessageInfo<'a> {
    /// Moves data of the first versions to the fields of later ones.
    fn normalized(mut self) -> Self {
        if let Some(metadata) = self.metadata.0.take() {
            let answer = metadata.assistant.0.unwrap_or_default();
            self.model = answer.model;
            self.tokens = answer.tokens;
            self.cost = answer.cost;
            self.path = answer.path;
            self.time = metadata.time;
            self.error = metadata.error;
        }
        self
    }

    fn send(self, mut said: MessageParts<'a>, feed: &mut SessionFeed<'_>) {
        let mut info = self.normalized();
        said.blocks.append(mem::take(&mut info.parts));
        info.send_parts(said, feed);
    }

    fn send_parts(self, said: MessageParts<'_>, feed: &mut SessionFeed<'_>) {
        if feed.head.cwd.is_none() {
            feed.head.cwd = self.path.0.and_then(|path| path.cwd.line(400));
        }
        let time = self.time.0.and_then(|times| times.created.0);
        if said.is_compaction {
            let mark = Some(EventMark::Compacted);
            feed.send(Event { time, mark, ..Event::default() });
        }
        match self.role.as_str() {
            "user" => {
                said.blocks.send_input(
                    &MessageContext::new(EventOrigin::Human, time),
                    EventRole::User,
                    feed,
                );
                // Texts added by OpenCode follow the user's.
                feed.send_text(EventRole::User, EventOrigin::Harness, said.notes, time);
            }
            "assistant" => {
                feed.head.add_model(&self.model);
                let usage = self.tokens.0.as_ref().and_then(OpenCodeTokens::usage);
                if usage.is_some() {
                    feed.head.add_stated_cost(self.cost.0);
                }
                let speaker =
                    MessageContext { usage, ..MessageContext::new(EventOrigin::Agent, time) };
                said.blocks.send_answer(&speaker, feed);
            }
            _ => feed.notes.ignored_records += 1,
        }
        if let Some(failure) = self.error.0 {
            feed.send(error_event(failure, time));
        }
    }
}

fn error_event(failure: MessageError<'_>, time: Option<jiff::Timestamp>) -> Event<'_> {
    // OpenCode reports a stop by the user as an error of the message.
    let is_stop = failure.name.as_str() == "MessageAbortedError";
    let mark = Some(if is_stop { EventMark::Interrupted } else { EventMark::ApiError });
    let mut text = failure.name;
    text.append(&failure.data.text("/message"));
    Event { text, time, mark, ..Event::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::tests::database;
    use crate::test_support::survives_damage;
    use crate::{Session, SessionCollector, SessionFormat, read};

    /// 1 human turn, 2 model calls, 3 calls: one worked, one ended with code 2, one was refused.
    const USER: &str = r#"{"id":"msg_1","role":"user","time":{"created":1767225601000}}"#;
    const ANSWER: &str = r#"{"id":"msg_2","role":"assistant","modelID":"m-1","cost":0.25,"time":{"created":1767225602000},"tokens":{"input":10,"output":5,"reasoning":1,"cache":{"read":100,"write":7}}}"#;
    const LAST: &str = r#"{"id":"msg_3","role":"assistant","modelID":"m-1","time":{"created":1767225603000},"error":{"name":"MessageAbortedError","data":{"message":"stopped"}}}"#;
    const PARTS: [(&str, &str); 8] = [
        ("msg_1", r#"{"type":"text","text":"fix it"}"#),
        ("msg_1", r#"{"type":"text","text":"the file says x","synthetic":true}"#),
        ("msg_2", r#"{"type":"reasoning","text":"hm"}"#),
        (
            "msg_2",
            r#"{"type":"tool","tool":"read","callID":"c1","state":{"status":"completed","input":{"filePath":"a"},"output":"fn"}}"#,
        ),
        (
            "msg_2",
            r#"{"type":"tool","tool":"bash","callID":"c2","state":{"status":"completed","input":{"command":"make"},"output":"no","metadata":{"exit":2}}}"#,
        ),
        (
            "msg_2",
            r#"{"type":"tool","tool":"edit","callID":"c3","state":{"status":"error","input":{},"error":"The user rejected permission to use this tool"}}"#,
        ),
        ("msg_3", r#"{"type":"text","text":"It fails."}"#),
        ("msg_3", r#"{"type":"hologram"}"#),
    ];

    fn check(session: &Session) {
        assert_eq!((session.head.id.as_str(), session.head.agent.as_str()), ("ses_1", "opencode"));
        assert_eq!(session.head.cwd.as_deref(), Some("/w"));
        assert_eq!(session.head.start.unwrap().to_string(), "2026-01-01T00:00:00Z");
        let said: Vec<_> = session
            .events
            .iter()
            .map(|event| (event.role, event.text.as_str(), event.calls.len(), event.mark))
            .collect();
        assert_eq!(
            said,
            [
                (EventRole::User, "fix it", 0, None),
                (EventRole::User, "the file says x", 0, None),
                (EventRole::Assistant, "", 1, None),
                (EventRole::Tool, "", 0, None),
                (EventRole::Assistant, "", 1, None),
                (EventRole::Tool, "", 0, None),
                (EventRole::Assistant, "", 1, None),
                (EventRole::Tool, "", 0, None),
                (EventRole::Assistant, "It fails.\n[unknown block \"hologram\"]", 0, None),
                (
                    EventRole::System,
                    "MessageAbortedError\nstopped",
                    0,
                    Some(EventMark::Interrupted)
                ),
            ]
        );
        let results: Vec<_> = session
            .events
            .iter()
            .flat_map(|event| &event.results)
            .map(|result| (result.tool.as_str(), result.outcome, result.exit_code))
            .collect();
        assert_eq!(
            results,
            [
                ("read", ToolOutcome::Ok, None),
                ("bash", ToolOutcome::Failed, Some(2)),
                ("edit", ToolOutcome::Rejected, None),
            ]
        );
        assert_eq!(
            session.events[2].usage,
            Some(TokenCounts { input: 17, output: 6, cached: 100 })
        );
        assert_eq!(session.head.unknown_blocks.total(), 1);
        assert_eq!(session.head.stated_cost, Some(0.25));
    }

    fn exported() -> String {
        let message = |info: &str, id: &str| {
            let parts: Vec<&str> =
                PARTS.iter().filter(|(own, _)| *own == id).map(|(_, part)| *part).collect();
            format!(r#"{{"info":{info},"parts":[{}]}}"#, parts.join(","))
        };
        let messages = [(USER, "msg_1"), (ANSWER, "msg_2"), (LAST, "msg_3")]
            .map(|(info, id)| message(info, id))
            .join(",");
        format!(
            r#"{{"info":{{"id":"ses_1","directory":"/w","version":"1.0","time":{{"created":1767225600000,"updated":1767225604000}}}},"messages":[{messages}]}}"#
        )
    }

    #[test]
    fn the_database_and_the_export_hold_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode.db");
        let mut statements = vec![
            "CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, version TEXT,
              time_created INTEGER, time_updated INTEGER);
             CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
             CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);
             INSERT INTO session VALUES ('ses_1', NULL, '/w', '1.0', 1767225600000, 1767225604000);"
                .to_owned(),
        ];
        for (number, data) in [USER, ANSWER, LAST].iter().enumerate() {
            let number = number + 1;
            statements.push(format!(
                "INSERT INTO message VALUES ('msg_{number}', 'ses_1', {number}, '{data}')"
            ));
        }
        for (number, (message, data)) in PARTS.iter().enumerate() {
            statements.push(format!(
                "INSERT INTO part VALUES ('prt_{number}', '{message}', 'ses_1', '{data}')"
            ));
        }
        database(&path, &statements);
        for source in [SessionSource::file(path), SessionSource::bytes("export.json", exported())] {
            let mut collector = SessionCollector::default();
            let reading = read(&source, &mut collector).unwrap();
            assert_eq!((reading.format, reading.sessions), (SessionFormat::OpenCode, 1));
            check(&collector.into_sessions()[0]);
        }
    }

    #[test]
    fn the_folders_of_older_versions_hold_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| write(&root.join("storage"), &[(name, text)]);
        write(
            "session/p1/ses_1.json",
            r#"{"id":"ses_1","projectID":"p1","directory":"/w","version":"1.0","time":{"created":1767225600000,"updated":1767225604000}}"#,
        );
        write("project/p1.json", r#"{"id":"p1","worktree":"/w"}"#);
        write("todo/ses_1.json", r#"[{"content":"fix"}]"#);
        for (number, info) in [USER, ANSWER, LAST].iter().enumerate() {
            write(&format!("message/ses_1/msg_{}.json", number + 1), info);
        }
        write("message/ses_2/msg_9.json", USER);
        for (number, (message, part)) in PARTS.iter().enumerate() {
            write(&format!("part/{message}/prt_{number}.json"), part);
        }
        // One source, wherever the search begins; files beside it are none.
        let description = root.join("storage/session/p1/ses_1.json");
        for from in [root.clone(), root.join("storage/session"), description.clone()] {
            let found = crate::find_session_files(&[from], |problem| panic!("{problem}"));
            let [found] = &found[..] else { panic!("{found:?}") };
            assert_eq!(found.source.path(), description);
            let mut collector = SessionCollector::default();
            let reading = read(&found.source, &mut collector).unwrap();
            assert_eq!((reading.format, reading.sessions), (SessionFormat::OpenCode, 1));
            assert_eq!(reading.notes.bad_records, 0);
            check(&collector.into_sessions()[0]);
        }
        // What is torn is counted, and the rest is read.
        std::fs::write(root.join("storage/part/msg_3/prt_6.json"), "{\"type\": \"te").unwrap();
        std::fs::write(&description, "").unwrap();
        let found = crate::find_session_files(&[root], |problem| panic!("{problem}"));
        let mut collector = SessionCollector::default();
        let notes = read(&found[0].source, &mut collector).unwrap().notes;
        assert_eq!((notes.bad_records, notes.torn), (1, None));
        let sessions = collector.into_sessions();
        assert_eq!(sessions[0].head.id, "ses_1", "by the name of its file");
        assert!(sessions[0].events.iter().any(|event| event.text.starts_with("[unknown block")));
    }

    /// Writes files of JSON below a folder as they are written: over several lines.
    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let json: serde_json::Value = serde_json::from_str(text).unwrap();
            std::fs::write(path, format!("{json:#}")).unwrap();
        }
    }

    #[track_caller]
    fn only_session(root: &Path) -> Session {
        let found = crate::find_session_files(&[root.to_owned()], |problem| panic!("{problem}"));
        let [found] = &found[..] else { panic!("{found:?}") };
        let mut collector = SessionCollector::default();
        let reading = read(&found.source, &mut collector).unwrap();
        assert_eq!((reading.format, reading.sessions), (SessionFormat::OpenCode, 1));
        assert_eq!(reading.notes.bad_records, 0);
        collector.into_sessions().remove(0)
    }

    #[test]
    fn a_storage_for_each_project_holds_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let info = r#"{"id":"ses_1","version":"0.4","time":{"created":1767225600000,"updated":1767225604000}}"#;
        let root = folder.path().join("project/w/storage/session");
        write(&root, &[("info/ses_1.json", info), ("message/ses_2/msg_9.json", USER)]);
        let answer = ANSWER.replace("\"modelID\"", r#""path":{"cwd":"/w","root":"/w"},"modelID""#);
        for (number, message) in [USER, &answer, LAST].iter().enumerate() {
            write(&root, &[(&format!("message/ses_1/msg_{}.json", number + 1), message)]);
        }
        for (number, (message, part)) in PARTS.iter().enumerate() {
            write(&root, &[(&format!("part/ses_1/{message}/prt_{number}.json"), part)]);
        }
        check(&only_session(folder.path()));
    }

    #[test]
    fn what_the_person_has_undone_is_said_last() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project/w/storage/session");
        let info =
            r#"{"id":"ses_1","revert":{"messageID":"msg_1"},"time":{"created":1767225600000}}"#;
        write(&root, &[("info/ses_1.json", info), ("message/ses_1/msg_1.json", USER)]);
        let session = only_session(folder.path());
        let last = session.events.last().unwrap();
        assert_eq!((last.mark, last.text.as_str()), (Some(EventMark::EditUndone), "/undo"));
    }

    /// 1 human turn, 1 model call, 2 calls: one worked, the other never ended.
    #[test]
    fn messages_of_the_first_versions_have_their_parts_in_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project/w/storage/session");
        write(
            &root,
            &[
                (
                    "info/ses_1.json",
                    r#"{"id":"ses_1","title":"t","time":{"created":1767225600000}}"#,
                ),
                (
                    "message/ses_1/msg_1.json",
                    r#"{"id":"msg_1","role":"user","parts":[{"type":"text","text":"fix it"}],
                      "metadata":{"time":{"created":1767225601000},"sessionID":"ses_1","tool":{}}}"#,
                ),
                (
                    "message/ses_1/msg_2.json",
                    r#"{"id":"msg_2","role":"assistant","parts":[{"type":"step-start"},
                      {"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c1",
                        "toolName":"read","args":{"filePath":"a"},"result":"fn"}},
                      {"type":"tool-invocation","toolInvocation":{"state":"call","toolCallId":"c2",
                        "toolName":"bash","args":{"command":"make"}}},
                      {"type":"text","text":"It works."}],
                      "metadata":{"time":{"created":1767225602000,"completed":1767225603000},
                        "error":{"name":"MessageAbortedError","data":{"message":"stopped"}},
                        "sessionID":"ses_1","tool":{},"assistant":{"system":["rules"],"modelID":"m-1",
                        "providerID":"p","path":{"cwd":"/w","root":"/"},"cost":0.1,
                        "tokens":{"input":10,"output":5,"reasoning":1,"cache":{"read":100,"write":7}}}}}"#,
                ),
            ],
        );
        let session = only_session(folder.path());
        assert_eq!(
            (session.head.cwd.as_deref(), &session.head.models[..]),
            (Some("/w"), &["m-1".to_owned()][..])
        );
        assert_eq!(session.head.end.unwrap().to_string(), "2026-01-01T00:00:02Z");
        let calls: Vec<_> = session.events.iter().flat_map(|event| &event.calls).collect();
        assert_eq!(
            calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(),
            ["read", "bash"]
        );
        let results: Vec<_> = session.events.iter().flat_map(|event| &event.results).collect();
        assert_eq!(
            (results[0].text.as_str(), results.last().unwrap().outcome),
            ("fn", ToolOutcome::Pending)
        );
        let usage: Vec<_> = session.events.iter().filter_map(|event| event.usage).collect();
        assert_eq!(usage, [TokenCounts { input: 17, output: 6, cached: 100 }]);
        let said: Vec<_> = session.events.iter().map(|event| event.text.as_str()).collect();
        assert!(said.contains(&"fix it") && said.contains(&"It works."), "{said:?}");
        assert!(session.events.iter().any(|event| event.mark == Some(EventMark::Interrupted)));
        assert_eq!(session.head.unknown_blocks.total(), 0);
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::OpenCode, exported().as_bytes());
    }
}
