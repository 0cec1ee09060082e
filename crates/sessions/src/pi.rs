//! Reads pi sessions: JSON lines of a header and entries, format versions 1 to 3, and the lines that
//! `pi --mode json` prints.
//!
//! From version 2, entries form a tree through `id` and `parentId`. Going back in a session and
//! typing something else starts another branch in the same file, and the branch of the last entry
//! counts. Most files have a single branch and are read once; a file with a fork is read again
//! without the other branches.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess};

use crate::content::MediaInfo;
use crate::event::{
    Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use crate::feed::SessionFeed;
use crate::format::{AgentFolders, FormatEntry, HomeRoot, IdSource};
use crate::source::SessionSource;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{
    AnyJson, JsonText, LenientFlag, LenientInt, LenientNumber, LenientObject, RecordId,
    deserialize_any_json, each,
};
use crate::{SessionReadError, failure};

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.mark("type") == "session" && value.has("id"),
    ids: IdSource::FileName,
    folders: &[AgentFolders {
        agent: "pi",
        variable: None,
        roots: &[HomeRoot::Home(".pi")],
        parts: &["agent/sessions"],
    }],
    ..FormatEntry::new(read)
};

/// Reads a session.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut tree = EntryTree::default();
    read_pass(source, feed, |_, entry| {
        tree.add(entry);
        true
    })?;
    if let Some(branch) = tree.branch() {
        feed.restart();
        read_pass(source, feed, |number, _| branch.get(number).copied().unwrap_or(true))?;
    }
    Ok(())
}

/// Reads the file once and sends the entries that `keep` accepts. It receives the number of each
/// entry, from 0 and without the header.
fn read_pass(
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
    mut keep: impl FnMut(usize, &PiEntry<'_>) -> bool,
) -> Result<(), SessionReadError> {
    feed.head.agent = "pi".into();
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    let mut number = 0;
    while let Some(line) = lines.next(&mut feed.notes)? {
        let Some(entry) = line.parse::<PiEntry<'_>>(&mut scratch, &mut feed.notes) else {
            continue;
        };
        if entry.kind.as_str() == "session" {
            read_header(&entry, feed);
            continue;
        }
        if keep(number, &entry) {
            send(entry, feed);
        } else {
            feed.notes.dropped_records += 1;
        }
        number += 1;
    }
    Ok(())
}

/// Reads a header; only the first one counts.
fn read_header(entry: &PiEntry<'_>, feed: &mut SessionFeed<'_>) {
    // A concatenated file has several headers; the first one names the session.
    if !feed.head.id.is_empty() {
        feed.notes.ignored_records += 1;
        return;
    }
    entry.id.as_str().clone_into(&mut feed.head.id);
    feed.head.cwd = entry.cwd.line(400);
    // A path to the other session's file, whose name ends with its id.
    feed.head.parent = entry.parent_session.line(400).map(|path| {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(&path);
        let stem = name.strip_suffix(".jsonl").unwrap_or(name);
        stem.rsplit_once('_').map_or(stem, |(_, id)| id).to_owned()
    });
    feed.record_time(entry.timestamp);
}

fn send(entry: PiEntry<'_>, feed: &mut SessionFeed<'_>) {
    let time = entry.timestamp.0;
    let event = match entry.kind.as_str() {
        // `message_end` is what `pi --mode json` prints.
        "message" | "message_end" => entry.message.0.and_then(|message| message.event(feed)),
        "custom_message" => {
            let text = entry.content.text;
            Some(Event {
                role: EventRole::User,
                origin: EventOrigin::Harness,
                text,
                ..Event::default()
            })
        }
        "compaction" => Some(notice(entry.summary, Some(EventMark::Compacted))),
        "branch_summary" => Some(notice(entry.summary, None)),
        _ => None,
    };
    match event {
        Some(event) => feed.send(Event { time: time.or(event.time), ..event }),
        None => feed.notes.ignored_records += 1,
    }
}

fn notice(text: Text<'_>, mark: Option<EventMark>) -> Event<'_> {
    Event { role: EventRole::System, origin: EventOrigin::Harness, text, mark, ..Event::default() }
}

impl<'a> PiMessage<'a> {
    /// Converts the message to an event; `None` for an unknown role.
    fn event(self, feed: &mut SessionFeed<'_>) -> Option<Event<'a>> {
        let time = self.timestamp.0;
        self.content.unknown.iter().for_each(|kind| feed.count_unknown(kind));
        let event = match self.role.as_str() {
            "user" => user(self.content.text),
            "assistant" => {
                feed.head.add_model(&self.model);
                feed.head.add_stated_cost(self.usage.0.as_ref().and_then(PiTokens::cost));
                self.assistant()
            }
            "toolResult" => {
                let results = vec![self.result()];
                Event {
                    role: EventRole::Tool,
                    origin: EventOrigin::Agent,
                    results,
                    ..Event::default()
                }
            }
            // Run by the user, not by the model, so not a tool call.
            "bashExecution" => {
                let mut text = Text::from(format!("$ {}", self.command));
                text.append(&self.output);
                Event {
                    role: EventRole::User,
                    origin: EventOrigin::Harness,
                    text,
                    ..Event::default()
                }
            }
            "custom" | "hookMessage" => {
                let text = self.content.text;
                Event {
                    role: EventRole::User,
                    origin: EventOrigin::Harness,
                    text,
                    ..Event::default()
                }
            }
            "compactionSummary" => notice(self.summary, Some(EventMark::Compacted)),
            "branchSummary" => notice(self.summary, None),
            _ => return None,
        };
        Some(Event { time, ..event })
    }

    fn assistant(self) -> Event<'a> {
        let mark = match self.stop_reason.as_str() {
            "aborted" => Some(EventMark::Interrupted),
            "error" => Some(EventMark::ApiError),
            _ => None,
        };
        let mut text = self.content.text;
        if mark == Some(EventMark::ApiError) {
            text.append(&self.error);
        }
        let cache_written = self.usage.0.as_ref().map_or(0, |usage| usage.cache_write.count());
        let usage = self.usage.0.map(|usage| TokenCounts {
            input: usage.input.count().saturating_add(usage.cache_write.count()),
            output: usage.output.count(),
            cached: usage.cache_read.count(),
        });
        let (reasoning, calls) = (self.content.thinking, self.content.calls);
        let (role, origin) = (EventRole::Assistant, EventOrigin::Agent);
        let said = Event { role, origin, text, reasoning, calls, ..Event::default() };
        Event { usage, cache_written, mark, ..said }
    }

    fn result(self) -> ToolResult<'a> {
        let mut result = match self.is_error.0 {
            // With an error flag, the text does not have to be interpreted.
            Some(_) => ToolResult { text: self.content.text, ..ToolResult::default() },
            None => failure::result_of(self.content.text),
        };
        match self.is_error.0 {
            Some(false) => result.outcome = ToolOutcome::Ok,
            Some(true) if is_refusal(&result.text) => result.outcome = ToolOutcome::Rejected,
            Some(true) => {
                result.outcome = ToolOutcome::Failed;
                result.exit_code = exit_code(&result.text);
            }
            None => {}
        }
        ToolResult { call_id: self.tool_call_id, tool: self.tool_name, ..result }
    }
}

/// Builds an event from the user's text. If the user called a skill by name, only the text below
/// the skill counts.
fn user(text: Text<'_>) -> Event<'_> {
    let (mut origin, mut text) = (EventOrigin::Human, text);
    if text.starts_with("<skill ")
        && let Some((_, request)) = text.split_once("</skill>")
    {
        let request = request.trim();
        if request.is_empty() {
            origin = EventOrigin::Harness;
        } else {
            text = Text::from(request.to_owned());
        }
    }
    Event { role: EventRole::User, origin, text, ..Event::default() }
}

/// Parses the exit code from the last line of a failed `bash` call.
fn exit_code(text: &str) -> Option<i64> {
    text.lines().next_back()?.strip_prefix("Command exited with code ")?.trim().parse().ok()
}

/// Returns true if the user stopped the tool or an extension refused it.
fn is_refusal(text: &str) -> bool {
    let last = text.lines().next_back().unwrap_or_default();
    ["Command aborted", "Operation aborted", "Skipped due to queued user message."].contains(&last)
        || text.starts_with("Tool execution was blocked")
        || text.starts_with("Blocked by user")
}

/// A header or an entry.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct PiEntry<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    id: Text<'a>,
    parent_id: ParentId<'a>,
    timestamp: Moment,
    cwd: Text<'a>,
    #[serde(alias = "branchedFrom")]
    parent_session: Text<'a>,
    message: LenientObject<PiMessage<'a>>,
    content: PiBlocks<'a>,
    summary: Text<'a>,
}

/// `parentId`: null at the root, missing in version 1.
#[derive(Default)]
struct ParentId<'a> {
    is_present: bool,
    id: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for ParentId<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Only called if the field is present, even if it is null.
        Ok(Self { is_present: true, id: Text::deserialize(deserializer)? })
    }
}

/// `message` of an entry.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct PiMessage<'a> {
    role: Text<'a>,
    content: PiBlocks<'a>,
    timestamp: Moment,
    model: Text<'a>,
    usage: LenientObject<PiTokens>,
    stop_reason: Text<'a>,
    #[serde(rename = "errorMessage")]
    error: Text<'a>,
    tool_call_id: Text<'a>,
    tool_name: Text<'a>,
    is_error: LenientFlag,
    command: Text<'a>,
    output: Text<'a>,
    summary: Text<'a>,
}

/// Tokens of one model call. Cached tokens are counted separately.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PiTokens {
    input: LenientInt,
    output: LenientInt,
    cache_read: LenientInt,
    cache_write: LenientInt,
    cost: LenientObject<PiCost>,
}

/// Cost of one model call, in USD.
#[derive(Deserialize, Default)]
#[serde(default)]
struct PiCost {
    total: LenientNumber,
}

impl PiTokens {
    fn cost(&self) -> Option<f64> {
        self.cost.0.as_ref().and_then(|cost| cost.total.0)
    }
}

/// `content` of a message: a string or a list of blocks.
#[derive(Default)]
struct PiBlocks<'a> {
    text: Text<'a>,
    thinking: Text<'a>,
    calls: Vec<ToolCall<'a>>,
    /// Types of unknown blocks.
    unknown: Vec<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct PiBlock<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    text: Text<'a>,
    thinking: Text<'a>,
    id: Text<'a>,
    name: Text<'a>,
    arguments: JsonText,
    data: MediaInfo,
}

deserialize_any_json!(PiBlocks<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for PiBlocks<'a> {
    fn string(&mut self, text: Cow<'de, str>) {
        self.text = Text::new(text);
    }

    fn list<A: SeqAccess<'de>>(&mut self, list: A) -> Result<(), A::Error> {
        each(|LenientObject(block)| block.into_iter().for_each(|block| self.add(block))).list(list)
    }
}

impl<'a> PiBlocks<'a> {
    fn add(&mut self, block: PiBlock<'a>) {
        match block.kind.as_str() {
            "text" => self.text.add(block.text),
            "thinking" => self.thinking.add(block.thinking),
            "toolCall" => {
                let PiBlock { id, name, arguments, .. } = block;
                self.calls.push(ToolCall { id, name, arguments: arguments.0 });
            }
            "image" => self.text.add(block.data.note("image")),
            _ => self.unknown.push(block.kind),
        }
    }
}

/// Parent of an entry.
#[derive(Clone, Copy)]
enum EntryParent {
    /// None: the entry starts a conversation.
    Root,
    /// The preceding entry in the file: in version 1, or if the parent is lost.
    Previous,
    /// The entry with this number.
    Entry(usize),
}

/// All entries in file order.
#[derive(Default)]
struct EntryTree {
    parents: Vec<EntryParent>,
    numbers: HashMap<RecordId, usize>,
    has_fork: bool,
}

impl EntryTree {
    /// Adds the next entry.
    fn add(&mut self, entry: &PiEntry<'_>) {
        let number = self.parents.len();
        let parent = match &entry.parent_id {
            parent if !parent.is_present => EntryParent::Previous,
            parent if parent.id.is_empty() => EntryParent::Root,
            parent => self
                .numbers
                .get(&RecordId::from(&*parent.id))
                // An unknown parent is in a part of the file that was lost: nothing says that the
                // entry before this one was left.
                .map_or(EntryParent::Previous, |at| EntryParent::Entry(*at)),
        };
        self.has_fork |= match parent {
            // A second root starts another conversation.
            EntryParent::Root => number > 0,
            EntryParent::Previous => false,
            // Not the preceding entry, so something was left behind in between.
            EntryParent::Entry(parent) => parent + 1 != number,
        };
        self.parents.push(parent);
        if !entry.id.is_empty() {
            self.numbers.insert(RecordId::from(&*entry.id), number);
        }
    }

    /// Returns a flag per entry that is true on the branch of the last one; `None` if there is no
    /// fork.
    fn branch(&self) -> Option<Vec<bool>> {
        if !self.has_fork {
            return None;
        }
        let mut kept = vec![false; self.parents.len()];
        let mut at = self.parents.len().checked_sub(1);
        while let Some(number) = at {
            kept[number] = true;
            // The parent is always an earlier entry, so the loop ends.
            at = match self.parents[number] {
                EntryParent::Root => None,
                EntryParent::Previous => number.checked_sub(1),
                EntryParent::Entry(parent) => Some(parent),
            };
        }
        Some(kept)
    }
}

#[cfg(test)]
mod tests {
    use crate::test_support::survives_damage;
    use crate::{
        EventMark, EventOrigin, EventRole, ReadNotes, Session, SessionCollector, SessionFormat,
        SessionSource, TokenCounts, ToolOutcome, read,
    };

    /// Counted by hand: 2 human messages; 2 of the harness (a command of the user, an extension's
    /// text); 4 model calls; 4 tool calls: 1 ok, 2 failed, 1 pending; 1 compaction, 1 API error.
    const FIXTURE: &str = r#"{"type":"session","version":3,"id":"0b6e-uuid","timestamp":"2026-02-01T09:00:00.000Z","cwd":"/work/site","parentSession":"/home/a/.pi/agent/sessions/--work--/2026-01-31T08-00-00-000Z_77aa-uuid.jsonl"}
{"type":"model_change","id":"a0","parentId":null,"timestamp":"2026-02-01T09:00:00.000Z","provider":"anthropic","modelId":"claude-x"}
{"type":"message","id":"a1","parentId":"a0","timestamp":"2026-02-01T09:00:01.000Z","message":{"role":"user","content":"fix the build","timestamp":1769936401000}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-02-01T09:00:02.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"look first","thinkingSignature":"x"},{"type":"text","text":"Looking."},{"type":"toolCall","id":"t1","name":"read","arguments":{"path":"a.ts"}},{"type":"toolCall","id":"t2","name":"bash","arguments":{"command":"make"}}],"api":"anthropic-messages","provider":"anthropic","model":"claude-x","usage":{"input":10,"output":5,"cacheRead":100,"cacheWrite":7,"totalTokens":122,"cost":{"total":0.1}},"stopReason":"toolUse","timestamp":1769936402000}}
{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-02-01T09:00:03.000Z","message":{"role":"toolResult","toolCallId":"t2","toolName":"bash","content":[{"type":"text","text":"no rule\n\nCommand exited with code 2"}],"isError":true,"timestamp":1769936403000}}
{"type":"message","id":"a4","parentId":"a3","timestamp":"2026-02-01T09:00:03.000Z","message":{"role":"toolResult","toolCallId":"t1","toolName":"read","content":[{"type":"text","text":"code"},{"type":"image","data":"QUJDRA==","mimeType":"image/png"}],"isError":false,"timestamp":1769936403000}}
{"type":"message","id":"a5","parentId":"a4","timestamp":"2026-02-01T09:00:04.000Z","message":{"role":"bashExecution","command":"ls","output":"a.ts","exitCode":0,"cancelled":false,"truncated":false,"timestamp":1769936404000}}
{"type":"custom_message","id":"a6","parentId":"a5","timestamp":"2026-02-01T09:00:05.000Z","customType":"x","content":"be careful","display":true}
{"type":"compaction","id":"a7","parentId":"a6","timestamp":"2026-02-01T09:00:06.000Z","summary":"the build is broken","firstKeptEntryId":"a3","tokensBefore":50000}
{"type":"message","id":"a8","parentId":"a7","timestamp":"2026-02-01T09:00:07.000Z","message":{"role":"assistant","content":[],"model":"claude-x","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0},"stopReason":"error","errorMessage":"overloaded","timestamp":1769936407000}}
{"type":"message","id":"a9","parentId":"a8","timestamp":"2026-02-01T09:00:08.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"t3","name":"edit","arguments":{}}],"model":"claude-y","usage":{"input":3,"output":2,"cacheRead":1,"cacheWrite":0},"stopReason":"toolUse","timestamp":1769936408000}}
{"type":"message","id":"b1","parentId":"a9","timestamp":"2026-02-01T09:00:09.000Z","message":{"role":"toolResult","toolCallId":"t3","toolName":"edit","content":[{"type":"text","text":"Could not find the exact text"}],"isError":true,"timestamp":1769936409000}}
{"type":"message","id":"b2","parentId":"b1","timestamp":"2026-02-01T09:00:10.000Z","message":{"role":"user","content":[{"type":"text","text":"and the tests"}],"timestamp":1769936410000}}
{"type":"label","id":"b3","parentId":"b2","timestamp":"2026-02-01T09:00:10.000Z","targetId":"a1","label":"start"}
{"type":"message","id":"b4","parentId":"b3","timestamp":"2026-02-01T09:00:11.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"t4","name":"bash","arguments":{}}],"model":"claude-y","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0},"stopReason":"aborted","timestamp":1769936411000}}
"#;

    fn session(lines: &str) -> (Session, ReadNotes) {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("pi.jsonl", lines), &mut collector).unwrap();
        assert_eq!(reading.format, SessionFormat::Pi);
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
        results.map(|result| (result.call_id.as_str(), result.outcome, result.exit_code)).collect()
    }

    #[test]
    fn printed_lines_are_read_once() {
        // The other lines repeat the messages in pieces.
        let printed = r#"{"type":"session","version":3,"id":"p-1","timestamp":"2026-02-01T09:00:00.000Z","cwd":"/w"}
{"type":"agent_start"}
{"type":"message_start","message":{"role":"user","content":[{"type":"text","text":"read it"}]}}
{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":"read it"}]}}
{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":"I re"}}
{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"I read."},{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}}],"model":"m-1","usage":{"input":9,"output":2,"cost":{"total":0.5}}}}
{"type":"tool_execution_end","toolCallId":"c1","toolName":"read","result":{"content":[]},"isError":false}
{"type":"message_end","message":{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"hello"}],"isError":false}}
{"type":"turn_end","message":{"role":"assistant","content":[]},"toolResults":[]}
{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"It says hello."}],"model":"m-1"}}
{"type":"agent_end","messages":[{"role":"user","content":"read it"}]}
"#;
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("run.jsonl", printed), &mut collector).unwrap();
        assert_eq!(reading.format, SessionFormat::Pi);
        let session = collector.into_sessions().remove(0);
        assert_eq!((session.head.id.as_str(), session.head.stated_cost), ("p-1", Some(0.5)));
        let said: Vec<_> =
            session.events.iter().map(|event| (event.text.as_str(), event.calls.len())).collect();
        assert_eq!(said, [("read it", 0), ("I read.", 1), ("", 0), ("It says hello.", 0)]);
    }

    #[test]
    fn the_totals_of_a_session() {
        let (session, notes) = session(FIXTURE);
        let count = |role, origin| {
            session
                .events
                .iter()
                .filter(|event| (event.role, event.origin) == (role, origin))
                .count()
        };
        assert_eq!(count(EventRole::User, EventOrigin::Human), 2);
        assert_eq!(count(EventRole::User, EventOrigin::Harness), 2);
        assert_eq!(count(EventRole::Assistant, EventOrigin::Agent), 4);
        assert!(!session.events.iter().any(|event| event.continues));
        assert_eq!(
            outcomes(&session),
            [
                ("t2", ToolOutcome::Failed, Some(2)),
                ("t1", ToolOutcome::Ok, None),
                ("t3", ToolOutcome::Failed, None),
                ("t4", ToolOutcome::Pending, None),
            ]
        );
        assert_eq!(session.events[1].reasoning.as_str(), "look first");
        assert_eq!(session.events[1].calls[0].arguments.as_str(), r#"{"path":"a.ts"}"#);
        assert_eq!(session.events[3].results[0].text.as_str(), "code\n[image 6 B]");
        let mut usage = TokenCounts::default();
        session.events.iter().filter_map(|event| event.usage).for_each(|more| usage += more);
        assert_eq!(usage, TokenCounts { input: 21, output: 8, cached: 101 });
        let marks: Vec<_> = session.events.iter().filter_map(|event| event.mark).collect();
        assert_eq!(marks, [EventMark::Compacted, EventMark::ApiError, EventMark::Interrupted]);

        let head = &session.head;
        assert_eq!((head.id.as_str(), head.agent.as_str()), ("0b6e-uuid", "pi"));
        assert_eq!(head.parent.as_deref(), Some("77aa-uuid"));
        assert_eq!(head.cwd.as_deref(), Some("/work/site"));
        assert_eq!(head.models, ["claude-x", "claude-y"]);
        assert_eq!(head.end.unwrap().to_string(), "2026-02-01T09:00:11Z");
        // The change of model and the label.
        assert_eq!((notes.ignored_records, notes.dropped_records), (2, 0));
    }

    fn entry(id: &str, parent: &str, role: &str, text: &str) -> String {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-02-01T09:00:01Z","message":{{"role":"{role}","content":"{text}"}}}}"#
        )
    }

    const HEADER: &str =
        r#"{"type":"session","version":2,"id":"s","timestamp":"2026-02-01T09:00:00Z","cwd":"/"}"#;

    #[test]
    fn the_branch_of_the_last_entry_counts() {
        let lines = [
            HEADER.to_owned(),
            entry("1", "null", "user", "start"),
            entry("2", "\"1\"", "user", "wrong way"),
            entry("3", "\"2\"", "user", "further wrong"),
            entry("4", "\"1\"", "user", "right way"),
            entry("5", "\"4\"", "user", "done"),
        ];
        let (session, notes) = session(&lines.join("\n"));
        assert_eq!(said(&session, EventRole::User), ["start", "right way", "done"]);
        assert_eq!(session.head.id, "s");
        assert_eq!((notes.dropped_records, notes.bad_records), (2, 0));
    }

    #[test]
    fn a_lost_parent_and_a_circle_lose_no_more() {
        let lines = [
            HEADER.to_owned(),
            entry("1", "null", "user", "a"),
            "{ broken".to_owned(),
            entry("3", "\"2\"", "user", "b"),
            entry("4", "\"4\"", "user", "c"),
        ];
        let (first, notes) = session(&lines.join("\n"));
        assert_eq!(said(&first, EventRole::User), ["a", "b", "c"]);
        assert_eq!(notes.bad_records, 1);
        let (restarted, _) =
            session(&[lines.join("\n"), entry("5", "null", "user", "d")].join("\n"));
        assert_eq!(said(&restarted, EventRole::User), ["d"]);
    }

    #[test]
    fn version_1_is_a_plain_sequence() {
        let (session, _) = session(
            r#"{"type":"session","id":"v1","timestamp":"2025-11-01T09:00:00Z","cwd":"/","provider":"anthropic","modelId":"m","thinkingLevel":"off"}
{"type":"message","timestamp":"2025-11-01T09:00:01Z","message":{"role":"user","content":"hello"}}
{"type":"thinking_level_change","timestamp":"2025-11-01T09:00:01Z","thinkingLevel":"high"}
{"type":"message","timestamp":"2025-11-01T09:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":"hi"}],"stopReason":"stop"}}
{"type":"message","timestamp":"2025-11-01T09:00:03Z","message":{"role":"hookMessage","content":"note"}}"#,
        );
        assert_eq!(said(&session, EventRole::User), ["hello", "note"]);
        assert_eq!(session.events.len(), 3);
    }

    #[test]
    fn refusals_are_no_failures_and_skills_are_not_typed() {
        let result = |text: &str, error: &str| {
            format!(
                r#"{{"type":"message","message":{{"role":"toolResult","toolCallId":"x","content":"{text}"{error}}}}}"#
            )
        };
        let lines = [
            HEADER.to_owned(),
            result("out\\nCommand aborted", r#","isError":true"#),
            result("Error: gone", ""),
            entry("1", "null", "user", "<skill name=x>long text</skill>\\n\\ndo it"),
        ];
        let (session, _) = session(&lines[..3].join("\n"));
        let found: Vec<_> = outcomes(&session).into_iter().map(|(_, outcome, _)| outcome).collect();
        assert_eq!(found, [ToolOutcome::Rejected, ToolOutcome::Failed]);
        let (session, _) = self::session(&[&lines[0], &lines[3]].map(String::as_str).join("\n"));
        assert_eq!(said(&session, EventRole::User), ["do it"]);
    }

    #[test]
    fn damage_does_no_harm() {
        let fork = entry("z", "\"a2\"", "user", "again");
        survives_damage(SessionFormat::Pi, format!("{FIXTURE}{fork}").as_bytes());
    }
}
