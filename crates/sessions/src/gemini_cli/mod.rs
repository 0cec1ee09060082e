//! Reads Gemini CLI chats in three forms: one JSON object with `messages`; JSON lines (a header,
//! messages, `$set` and `$rewindTo`), even in `.json` files; and the checkpoints of `/chat save`,
//! which are bare Gemini `Content`s.
//!
//! One `gemini` message is one model call. It contains its tool calls together with their results
//! and becomes two events.
//!
//! In JSON lines, nearly every message is written several times, first without its tokens and tool
//! results, and the last write of an id counts. A first pass therefore collects ids, and a second
//! one sends each message at its last write.

mod message;

use std::collections::HashMap;
use std::io::Read;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};
use serde_json::value::RawValue;

use crate::SessionReadError;
use crate::content::MediaInfo;
use crate::event::{Event, EventOrigin, EventRole, ToolCall, ToolOutcome, ToolResult};
use crate::feed::{ReadNotes, SessionFeed};
use crate::format::{AgentFolders, FormatEntry, HomeRoot};
use crate::lines::JsonLines;
use crate::outline::JsonOutline;
use crate::source::{DocumentReader, SessionSource};
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{JsonText, LenientFlag, LenientList, LenientObject, RecordId, each};
use message::{FunctionResponse, GeminiMessage, exit_code, is_harness};

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
    if is_lines(source)? { read_lines(source, feed) } else { read_value(source, feed) }
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
    // A document in one line has one of these; a header has none.
    let documents = ["messages", "history", "contents"];
    Ok(keys.is_some_and(|keys| !documents.iter().any(|key| keys.contains_key(*key))))
}

/// Reads a chat or a checkpoint.
fn read_value(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    source.read_document(&mut GeminiDocument, feed)
}

struct GeminiDocument;

/// An answer of the API.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ApiCandidate<'a> {
    content: LenientObject<CheckpointTurn<'a>>,
}

impl DocumentReader for GeminiDocument {
    fn begin(&mut self, feed: &mut SessionFeed<'_>) {
        feed.head.agent = "gemini-cli".into();
    }

    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        while let Some(LenientObject(turn)) =
            list.next_element::<LenientObject<CheckpointTurn<'de>>>()?
        {
            if let Some(turn) = turn {
                turn.send(feed);
            }
        }
        Ok(())
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut is_subagent = false;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "sessionId" => feed.head.id = map.next_value::<Text<'de>>()?.as_str().to_owned(),
                "kind" => is_subagent = map.next_value::<Text<'de>>()?.as_str() == "subagent",
                "startTime" | "lastUpdated" => feed.record_time(map.next_value()?),
                "messages" => {
                    map.next_value_seed(each(|message: LenientObject<GeminiMessage<'de>>| {
                        if let Some(message) = message.0 {
                            message.send(is_subagent, feed);
                        }
                    }))?;
                }
                // A request to the API, perhaps beside its response.
                "systemInstruction" | "system_instruction" => {
                    let rules = map.next_value::<LenientObject<CheckpointTurn<'de>>>()?;
                    rules.0.unwrap_or_default().send_rules(feed);
                }
                "model" => feed.head.add_model(&map.next_value::<Text<'de>>()?),
                "candidates" => {
                    map.next_value_seed(each(|answer: LenientObject<ApiCandidate<'de>>| {
                        if let Some(turn) = answer.0.and_then(|answer| answer.content.0) {
                            turn.send(feed);
                        }
                    }))?;
                }
                "history" | "contents" => {
                    map.next_value_seed(each(|turn: LenientObject<CheckpointTurn<'de>>| {
                        if let Some(turn) = turn.0 {
                            turn.send(feed);
                        }
                    }))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The program's own answer to the context that it set up.
const CANNED: &str = "Got it. Thanks for the context!";

/// One `Content`.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CheckpointTurn<'a> {
    role: Text<'a>,
    parts: LenientList<CheckpointPart<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct CheckpointPart<'a> {
    text: Text<'a>,
    thought: LenientFlag,
    inline_data: LenientObject<MediaInfo>,
    function_call: LenientObject<FunctionCall<'a>>,
    function_response: LenientObject<FunctionResponse<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct FunctionCall<'a> {
    id: Text<'a>,
    name: Text<'a>,
    args: JsonText,
}

/// The content of a result as iFlow writes it, a descendant of Gemini CLI.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct WrappedResponse<'a> {
    response_parts: LenientObject<CheckpointPart<'a>>,
    function_response: LenientObject<FunctionResponse<'a>>,
}

/// Reads such a content; `None` if it has another form.
pub(crate) fn wrapped_result(json: &str) -> Option<ToolResult<'static>> {
    let LenientObject(wrapped) =
        serde_json::from_str::<LenientObject<WrappedResponse<'_>>>(json).ok()?;
    let wrapped = wrapped?;
    let inner = wrapped.response_parts.0.and_then(|part| part.function_response.0);
    inner.or(wrapped.function_response.0).map(|response| result(response).into_owned())
}

impl CheckpointTurn<'_> {
    /// Sends the rules that the model was given.
    fn send_rules(self, feed: &mut SessionFeed<'_>) {
        for part in self.parts.0 {
            feed.send_text(EventRole::System, EventOrigin::Harness, part.text, None);
        }
    }

    /// Sends the events of the turn.
    fn send(self, feed: &mut SessionFeed<'_>) {
        let (mut text, mut reasoning) = (Text::default(), Text::default());
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for part in self.parts.0 {
            let said = if part.thought.is_set() { &mut reasoning } else { &mut text };
            said.append(&part.text);
            if let Some(media) = part.inline_data.0 {
                text.append(&media.note("media"));
            }
            if let Some(call) = part.function_call.0 {
                let FunctionCall { id, name, args } = call;
                calls.push(ToolCall { id, name, arguments: args.0 });
            }
            results.extend(part.function_response.0.map(result));
        }
        if self.role.as_str() == "model" {
            let is_canned = calls.is_empty() && text.as_str() == CANNED;
            let origin = if is_canned { EventOrigin::Harness } else { EventOrigin::Agent };
            let event =
                Event { role: EventRole::Assistant, origin, text, reasoning, ..Event::default() };
            // The canned answer did not come from a model call.
            feed.send(Event { calls, continues: is_canned, ..event });
            return;
        }
        feed.send_results(EventOrigin::Agent, results, None);
        let origin = if is_harness(&text) { EventOrigin::Harness } else { EventOrigin::Human };
        feed.send(Event { role: EventRole::User, origin, text, ..Event::default() });
    }
}

fn result(function: FunctionResponse<'_>) -> ToolResult<'_> {
    let response = function.response.0.unwrap_or_default();
    let exit_code = exit_code(&response.output);
    let cancelled = response.error.starts_with("[Operation Cancelled]");
    let outcome = match exit_code {
        // A cancellation is written as an error.
        _ if cancelled => ToolOutcome::Rejected,
        Some(code) if code != 0 => ToolOutcome::Failed,
        _ if !response.error.is_empty() => ToolOutcome::Failed,
        _ => ToolOutcome::Ok,
    };
    ToolResult {
        call_id: function.id,
        tool: function.name,
        text: response.output,
        outcome,
        exit_code,
        error: response.error,
    }
}

/// A line in the first pass, with only the fields that determine the last writes.
#[derive(Deserialize, Default)]
#[serde(default)]
struct LineSketch {
    id: RecordId,
    #[serde(rename = "$rewindTo")]
    rewind_to: RecordId,
    #[serde(rename = "$set")]
    set: LenientObject<SetSketch>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SetSketch {
    messages: LenientList<MessageId>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MessageId {
    id: RecordId,
}

/// A line in the second pass, unless it is a message.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct LineHeader<'a> {
    id: Text<'a>,
    session_id: Text<'a>,
    kind: Text<'a>,
    start_time: Moment,
    last_updated: Moment,
    #[serde(rename = "$set")]
    set: LenientObject<SetChanges<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct SetChanges<'a> {
    kind: Text<'a>,
    last_updated: Moment,
    messages: LenientList<GeminiMessage<'a>>,
}

/// Reads a chat.
fn read_lines(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let standing = FinalWrites::find(source)?;
    feed.head.rewinds = standing.rewinds;
    let mut lines = source.lines()?;
    let (mut scratch, mut again) = (String::new(), String::new());
    let mut is_subagent = false;
    while let Some(line) = lines.next(&mut feed.notes)? {
        let Some(header) = line.parse::<LineHeader<'_>>(&mut scratch, &mut feed.notes) else {
            continue;
        };
        // Only messages have an id.
        if !header.id.is_empty() {
            if standing.is_final(&header.id, line.number, feed)
                && let Some(message) = line.parse::<GeminiMessage<'_>>(&mut again, &mut feed.notes)
            {
                message.send(is_subagent, feed);
            }
            continue;
        }
        let changes = header.set.0.unwrap_or_default();
        is_subagent |= [&header.kind, &changes.kind].into_iter().any(|kind| **kind == *"subagent");
        if feed.head.id.is_empty() {
            feed.head.id = header.session_id.as_str().to_owned();
        }
        let moments = [header.start_time, header.last_updated, changes.last_updated];
        moments
            .into_iter()
            .filter_map(|moment| moment.0)
            .for_each(|time| feed.head.record_time(time));
        for message in changes.messages.0 {
            if standing.is_final(&message.id, line.number, feed) {
                message.send(is_subagent, feed);
            }
        }
    }
    Ok(())
}

/// The messages that remain at the end of the file.
#[derive(Default)]
struct FinalWrites {
    /// Line of the last write of each message.
    last: HashMap<RecordId, u64>,
    /// Messages in the order of their first write.
    order: Vec<RecordId>,
    /// Number of rewinds.
    rewinds: u64,
}

impl FinalWrites {
    fn find(source: &SessionSource) -> Result<Self, SessionReadError> {
        let mut standing = Self::default();
        // The second pass notes problems with lines.
        let mut notes = ReadNotes::default();
        let mut lines = source.lines()?;
        let mut scratch = String::new();
        while let Some(line) = lines.next(&mut notes)? {
            let Some(sketch) = line.parse::<LineSketch>(&mut scratch, &mut notes) else { continue };
            if !sketch.rewind_to.is_none() {
                standing.rewind(sketch.rewind_to);
            } else if !sketch.id.is_none() {
                standing.write(sketch.id, line.number);
            } else if let Some(set) = sketch.set.0
                && !set.messages.0.is_empty()
            {
                // `$set` replaces all messages, but past rewinds still count.
                standing = Self { rewinds: standing.rewinds, ..Self::default() };
                for message in set.messages.0 {
                    standing.write(message.id, line.number);
                }
            }
        }
        Ok(standing)
    }

    fn write(&mut self, message: RecordId, line: u64) {
        if self.last.insert(message, line).is_none() {
            self.order.push(message);
        }
    }

    /// Removes a message and all that follow it. If the message is unknown, all are removed, as
    /// Gemini CLI does.
    fn rewind(&mut self, message: RecordId) {
        self.rewinds += 1;
        let from = self.order.iter().position(|other| *other == message).unwrap_or(0);
        for gone in self.order.drain(from..) {
            self.last.remove(&gone);
        }
    }

    /// Returns true if this is the write that counts. Writes of removed messages are noted.
    fn is_final(&self, id: &str, line: u64, feed: &mut SessionFeed<'_>) -> bool {
        let last = self.last.get(&RecordId::from(id)).copied();
        feed.notes.dropped_records += u64::from(last.is_none());
        last == Some(line)
    }
}

#[cfg(test)]
mod tests {
    use crate::test_support::survives_damage;
    use crate::{
        EventMark, EventOrigin, EventRole, ReadNotes, Session, SessionCollector, SessionFormat,
        SessionSource, TokenCounts, ToolOutcome, read,
    };

    /// Counted by hand: 1 human message, 1 of the harness; 3 model calls; 5 tool calls: 1 ok, 2
    /// failed (one by its status, one by its exit code), 1 cancelled, 1 pending; 2 notices.
    const CHAT: &str = r##"{
  "sessionId": "5f0c-uuid", "projectHash": "abc", "startTime": "2026-03-01T08:00:00.000Z",
  "lastUpdated": "2026-03-01T08:05:00.000Z",
  "messages": [
    {"id":"m0","timestamp":"2026-03-01T08:00:00.000Z","type":"user","content":"<session_context>\nThis is the Gemini CLI.</session_context>"},
    {"id":"m1","timestamp":"2026-03-01T08:00:01.000Z","type":"user","content":[{"text":"what is in @a.md\n--- Content from referenced files ---\nlong"}],"displayContent":[{"text":"what is in @a.md"}]},
    {"id":"m2","timestamp":"2026-03-01T08:00:02.000Z","type":"gemini","content":"","model":"gemini-3-pro",
     "thoughts":[{"subject":"Reading","description":"I look at it.","timestamp":"2026-03-01T08:00:02.000Z"}],
     "tokens":{"input":100,"output":10,"cached":60,"thoughts":5,"tool":1,"total":116},
     "toolCalls":[
      {"id":"t1","name":"read_file","args":{"absolute_path":"/a.md"},"status":"success","result":[{"functionResponse":{"id":"t1","name":"read_file","response":{"output":"# A"}}}],"resultDisplay":""},
      {"id":"t2","name":"list_directory","args":{"path":"."},"status":"error","result":[{"functionResponse":{"id":"t2","name":"list_directory","response":{"error":"Path must be absolute: ."}}}],"resultDisplay":"Path must be absolute: ."}]},
    {"id":"m3","timestamp":"2026-03-01T08:00:03.000Z","type":"gemini","content":"Building.","model":"gemini-3-pro","thoughts":[],
     "tokens":{"input":50,"output":3,"cached":0,"thoughts":0,"tool":0,"total":53},
     "toolCalls":[
      {"id":"t3","name":"run_shell_command","args":{"command":"make"},"status":"success","result":[{"functionResponse":{"id":"t3","name":"run_shell_command","response":{"output":"Command: make\nDirectory: (root)\nOutput: no rule\nExit Code: 2\nSignal: (none)"}}}]},
      {"id":"t4","name":"run_shell_command","args":{"command":"top"},"status":"cancelled","result":[{"functionResponse":{"id":"t4","name":"run_shell_command","response":{"error":"[Operation Cancelled] Reason: User cancelled the operation."}}}]},
      {"id":"t5","name":"write_file","args":{},"status":"awaiting_approval"}]},
    {"id":"m4","timestamp":"2026-03-01T08:00:04.000Z","type":"info","content":"Request cancelled."},
    {"id":"m5","timestamp":"2026-03-01T08:00:05.000Z","type":"error","content":"[API Error: quota]"},
    {"id":"m6","timestamp":"2026-03-01T08:00:06.000Z","type":"gemini","content":"It is a list."}
  ]
}"##;

    fn session(name: &str, text: &str) -> (Session, ReadNotes) {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes(name, text), &mut collector).unwrap();
        assert_eq!(reading.format, SessionFormat::GeminiCli);
        let mut sessions = collector.into_sessions();
        assert_eq!(sessions.len(), 1);
        (sessions.remove(0), reading.notes)
    }

    fn said(session: &Session, role: EventRole) -> Vec<&str> {
        let events = session.events.iter().filter(|event| event.role == role);
        events.map(|event| event.text.as_str()).collect()
    }

    fn outcomes(session: &Session) -> Vec<(&str, ToolOutcome, Option<i64>)> {
        let results = session.events.iter().flat_map(|event| &event.results);
        results.map(|result| (result.tool.as_str(), result.outcome, result.exit_code)).collect()
    }

    fn usage(session: &Session) -> TokenCounts {
        let mut usage = TokenCounts::default();
        session.events.iter().filter_map(|event| event.usage).for_each(|more| usage += more);
        usage
    }

    #[test]
    fn the_totals_of_a_chat() {
        let (session, _) = session("session-1.json", CHAT);
        let count = |role, origin| {
            session
                .events
                .iter()
                .filter(|event| (event.role, event.origin) == (role, origin))
                .count()
        };
        assert_eq!(count(EventRole::User, EventOrigin::Human), 1);
        assert_eq!(count(EventRole::User, EventOrigin::Harness), 1);
        assert_eq!(count(EventRole::Assistant, EventOrigin::Agent), 3);
        assert_eq!(count(EventRole::System, EventOrigin::Harness), 2);
        assert_eq!(said(&session, EventRole::User)[1], "what is in @a.md");
        assert_eq!(
            outcomes(&session),
            [
                ("read_file", ToolOutcome::Ok, None),
                ("list_directory", ToolOutcome::Failed, None),
                ("run_shell_command", ToolOutcome::Failed, Some(2)),
                ("run_shell_command", ToolOutcome::Rejected, None),
                ("write_file", ToolOutcome::Pending, None),
            ]
        );
        let results = &session.events[3].results;
        assert_eq!((results[0].text.as_str(), results[1].text.as_str()), ("# A", ""));
        assert_eq!(results[1].error.as_str(), "Path must be absolute: .");
        assert_eq!(session.events[2].reasoning.as_str(), "Reading\nI look at it.");
        assert_eq!(usage(&session), TokenCounts { input: 91, output: 18, cached: 60 });
        let marks: Vec<_> = session.events.iter().filter_map(|event| event.mark).collect();
        assert_eq!(marks, [EventMark::Interrupted, EventMark::ApiError]);

        let head = &session.head;
        assert_eq!((head.id.as_str(), head.agent.as_str()), ("5f0c-uuid", "gemini-cli"));
        assert_eq!(head.models, ["gemini-3-pro"]);
        assert_eq!(head.end.unwrap().to_string(), "2026-03-01T08:05:00Z");
    }

    #[test]
    fn the_same_chat_on_one_line() {
        let one_line: serde_json::Value = serde_json::from_str(CHAT).unwrap();
        let (compact, _) = session("session-1.json", &one_line.to_string());
        assert_eq!(compact, session("session-1.json", CHAT).0);
    }

    const HEADER: &str = r#"{"sessionId":"l-1","projectHash":"abc","startTime":"2026-03-01T08:00:00Z","lastUpdated":"2026-03-01T08:00:00Z"}"#;

    fn message(id: &str, kind: &str, text: &str, more: &str) -> String {
        format!(
            r#"{{"id":"{id}","timestamp":"2026-03-01T08:00:01Z","type":"{kind}","content":"{text}"{more}}}"#
        )
    }

    #[test]
    fn of_json_lines_the_last_write_of_a_message_counts() {
        let tokens = r#","tokens":{"input":5,"output":2,"cached":1}"#;
        let call = r#","tokens":{"input":5,"output":2,"cached":1},"toolCalls":[{"id":"t","name":"f","args":{},"status":"success","result":"done"}]"#;
        let lines = [
            HEADER.to_owned(),
            message("u1", "user", "hello", ""),
            r#"{"$set":{"lastUpdated":"2026-03-01T08:01:00Z"}}"#.to_owned(),
            message("g1", "gemini", "hi", ""),
            message("g1", "gemini", "hi", tokens),
            message("g1", "gemini", "hi", call),
        ];
        for name in ["session-1.jsonl", "session-1.json"] {
            let (session, notes) = session(name, &lines.join("\n"));
            assert_eq!(said(&session, EventRole::User), ["hello"]);
            assert_eq!(said(&session, EventRole::Assistant), ["hi"]);
            assert_eq!(outcomes(&session), [("f", ToolOutcome::Ok, None)]);
            assert_eq!(usage(&session), TokenCounts { input: 4, output: 2, cached: 1 });
            assert_eq!(session.head.id, "l-1");
            assert_eq!(session.head.end.unwrap().to_string(), "2026-03-01T08:01:00Z");
            assert_eq!((notes.dropped_records, notes.bad_records), (0, 0));
        }
    }

    #[test]
    fn rewound_and_replaced_messages_are_dropped() {
        let lines = [
            HEADER.to_owned(),
            message("1", "user", "one", ""),
            message("2", "user", "two", ""),
            message("3", "user", "three", ""),
            r#"{"$rewindTo":"2"}"#.to_owned(),
            message("4", "user", "four", ""),
        ];
        let (rewound, notes) = session("s.jsonl", &lines.join("\n"));
        assert_eq!(said(&rewound, EventRole::User), ["one", "four"]);
        assert_eq!((notes.dropped_records, rewound.head.rewinds), (2, 1));

        let summary = message("s", "user", "summary", "");
        let set = format!(r#"{{"$set":{{"messages":[{summary},{}]}}}}"#, lines[5]);
        let all = [lines.join("\n"), set, message("6", "user", "six", "")];
        let (replaced, notes) = session("s.jsonl", &all.join("\n"));
        assert_eq!(said(&replaced, EventRole::User), ["summary", "four", "six"]);
        assert_eq!(notes.dropped_records, 3);

        let unknown = [lines[..3].join("\n"), r#"{"$rewindTo":"x"}"#.to_owned(), lines[5].clone()];
        let (emptied, _) = session("s.jsonl", &unknown.join("\n"));
        assert_eq!(said(&emptied, EventRole::User), ["four"]);
    }

    #[test]
    fn in_a_subagent_all_is_said_by_the_subagent() {
        let header = HEADER.replace('}', r#","kind":"subagent"}"#);
        let lines = [header, message("1", "user", "look", ""), message("2", "gemini", "seen", "")];
        let (session, _) = session("s.jsonl", &lines.join("\n"));
        assert!(session.events.iter().all(|event| event.origin == EventOrigin::Subagent));
    }

    #[test]
    fn a_checkpoint_is_bare_contents() {
        let contents = r#"[
      {"role":"user","parts":[{"text":"This is the Gemini CLI. We are setting up the context for our chat."}]},
      {"role":"model","parts":[{"text":"Got it. Thanks for the context!"}]},
      {"role":"user","parts":[{"text":"list it"}]},
      {"role":"model","parts":[{"text":"hm","thought":true},{"text":"Yes."},{"functionCall":{"id":"c1","name":"list_directory","args":{"path":"/"}}}]},
      {"role":"user","parts":[{"functionResponse":{"id":"c1","name":"list_directory","response":{"error":"no such folder"}}}]},
      {"role":"model","parts":[{"text":"It is not there."}]}]"#;
        let (bare, _) = session("checkpoint-a.json", contents);
        let wrapped = format!(r#"{{"history":{contents},"authType":"x"}}"#);
        assert_eq!(session("checkpoint-a.json", &wrapped).0, bare);
        assert_eq!(bare.head.id, "checkpoint-a-a7ab7292");
        let human = bare.events.iter().filter(|event| event.origin == EventOrigin::Human);
        assert_eq!(human.map(|event| event.text.as_str()).collect::<Vec<_>>(), ["list it"]);
        assert_eq!(outcomes(&bare), [("list_directory", ToolOutcome::Failed, None)]);
        assert_eq!(bare.events[3].reasoning.as_str(), "hm");
        let own = bare.events.iter().filter(|e| e.role == EventRole::Assistant && !e.continues);
        assert_eq!(own.count(), 2);
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::GeminiCli, CHAT.as_bytes());
        let set = format!(r#"{{"$set":{{"messages":[{}]}}}}"#, message("4", "gemini", "x", ""));
        let lines = [
            HEADER.to_owned(),
            message("1", "user", "one", ""),
            message(
                "2",
                "gemini",
                "two",
                r#","toolCalls":[{"id":"t","name":"f","status":"error"}]"#,
            ),
            r#"{"$rewindTo":"2"}"#.to_owned(),
            set,
            message("5", "user", "five", ""),
        ];
        survives_damage(SessionFormat::GeminiCli, lines.join("\n").as_bytes());
    }

    /// A request to the API beside its response: 1 rule, 1 human turn, 2 answers, 1 call that failed.
    #[test]
    fn contents_of_the_api() {
        let text = r#"{"systemInstruction":{"parts":[{"text":"rules"}]},"model":"gemini-x","contents":[
      {"role":"user","parts":[{"text":"fix it"}]},
      {"role":"model","parts":[{"functionCall":{"name":"run","args":{"command":"make"}}}]},
      {"role":"user","parts":[{"functionResponse":{"name":"run","response":{"error":"no rule"}}}]}],
      "candidates":[{"content":{"role":"model","parts":[{"text":"It has no rule."}]}}]}"#;
        for text in [text.to_owned(), text.replace('\n', " ")] {
            let (session, _) = session("request.json", &text);
            assert_eq!(session.head.models, ["gemini-x"]);
            let said: Vec<_> = session
                .events
                .iter()
                .map(|event| (event.role, event.text.as_str(), event.calls.len()))
                .collect();
            assert_eq!(
                said,
                [
                    (EventRole::System, "rules", 0),
                    (EventRole::User, "fix it", 0),
                    (EventRole::Assistant, "", 1),
                    (EventRole::Tool, "", 0),
                    (EventRole::Assistant, "It has no rule.", 0),
                ]
            );
            assert_eq!(session.events[3].results[0].outcome, ToolOutcome::Failed);
        }
    }
}
