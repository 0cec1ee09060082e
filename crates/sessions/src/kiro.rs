//! Reads Kiro: `~/.kiro/sessions/cli/<id>.jsonl` with lines of `{"kind": "Prompt", "data": …}`, and
//! the messages of newer versions, `{"timestamp": …, "payload": {"type": "user", …}}`. The file of
//! the same name in JSON holds folder and dates.

use std::path::Path;

use serde::Deserialize;

use super::blocks::{ContentBlocks, MessageContext};
use super::event::{Event, EventMark, EventOrigin, EventRole, ToolCall, ToolOutcome, ToolResult};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonText, JsonValue, LenientFlag, LenientList, LenientObject};
use super::{SessionReadError, failure};
use crate::format::{AgentFolders, FormatEntry, HomeRoot, IdSource};
use selftest_text::file::read_bounded_text;

/// Kinds of lines that identify the format.
const KINDS: [&str; 3] = ["Prompt", "AssistantMessage", "ToolResults"];

/// Types of messages of newer versions.
const TYPES: [&str; 4] = ["user", "assistant", "tool_call", "tool_result"];

/// Maximum bytes of the file beside the session.
const MAX_DESCRIPTION: u64 = 4 * 1024 * 1024;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| {
        let is_message = |payload: &crate::outline::JsonOutline| {
            TYPES.contains(&payload.mark("type"))
                && (payload.has("content") || payload.has("toolCallId"))
        };
        (KINDS.contains(&value.mark("kind")) && value.has("data"))
            || (value.has("timestamp")
                && value.mark("type").is_empty()
                && value.inner("payload").is_some_and(is_message))
    },
    ids: IdSource::FileName,
    folders: &[AgentFolders {
        agent: "kiro",
        variable: None,
        roots: &[HomeRoot::Home(".kiro")],
        parts: &["sessions"],
    }],
    ..FormatEntry::new(read)
};

/// Reads one session.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    "kiro".clone_into(&mut feed.head.agent);
    describe(source.path(), feed);
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(line) = line.parse::<KiroLine<'_>>(&mut scratch, &mut feed.notes) {
            line.send(feed);
        }
    }
    Ok(())
}

/// Takes id, folder and dates from the file beside the session.
fn describe(path: &Path, feed: &mut SessionFeed<'_>) {
    let file = path.with_extension("json");
    // A session that was itself exported as `.json` has no file beside it.
    if file == path {
        return;
    }
    let Ok(text) = read_bounded_text(&file, MAX_DESCRIPTION) else { return };
    let about = JsonValue::parse(&text);
    about.text("/session_id").as_str().clone_into(&mut feed.head.id);
    let folders = [about.text("/cwd"), about.text("/workspacePaths/0")];
    feed.head.cwd = folders.into_iter().find_map(|folder| folder.line(400));
    for name in ["/created_at", "/updated_at", "/createdAt", "/lastModifiedAt"] {
        feed.record_time(Moment::parse(&about.text(name)));
    }
    feed.head.add_model(&about.text("/session_state/rts_model_state/model_info/model_id"));
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct KiroLine<'a> {
    kind: Text<'a>,
    data: LenientObject<KiroData<'a>>,
    timestamp: Moment,
    payload: LenientObject<KiroPayload<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct KiroData<'a> {
    content: LenientList<KiroBlock<'a>>,
    meta: LenientObject<KiroMeta>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct KiroMeta {
    timestamp: Moment,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct KiroBlock<'a> {
    kind: Text<'a>,
    data: KiroBlockData<'a>,
}

/// The data of a block: a text, or an object of its kind.
#[derive(Default)]
struct KiroBlockData<'a> {
    text: Text<'a>,
    call: LenientObject<KiroCall<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for KiroBlockData<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<serde_json::value::RawValue>::deserialize(deserializer)?;
        let json = value.get();
        Ok(Self {
            text: serde_json::from_str::<Text<'_>>(json).unwrap_or_default().into_owned(),
            call: LenientObject(KiroCall::parse(json)),
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct KiroCall<'a> {
    tool_use_id: Text<'a>,
    name: Text<'a>,
    input: JsonText,
    /// Blocks, or a text.
    content: JsonText,
    status: Text<'a>,
}

impl KiroCall<'_> {
    fn parse(json: &str) -> Option<KiroCall<'static>> {
        let LenientObject(call) = serde_json::from_str::<LenientObject<KiroCall<'_>>>(json).ok()?;
        call.map(|call| KiroCall {
            tool_use_id: call.tool_use_id.into_owned(),
            name: call.name.into_owned(),
            input: call.input,
            content: call.content,
            status: call.status.into_owned(),
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct KiroPayload<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    content: JsonText,
    reasoning_model_id: Text<'a>,
    tool_name: Text<'a>,
    tool_call_id: Text<'a>,
    args: JsonText,
    is_error: LenientFlag,
}

impl KiroLine<'_> {
    fn send(self, feed: &mut SessionFeed<'_>) {
        if let Some(payload) = self.payload.0 {
            feed.record_time(self.timestamp);
            return payload.send(self.timestamp.0, feed);
        }
        let data = self.data.0.unwrap_or_default();
        let time = data.meta.0.unwrap_or_default().timestamp;
        feed.record_time(time);
        let time = time.0;
        let mut blocks = ContentBlocks::default();
        for block in data.content.0 {
            let call = block.data.call.0;
            match (block.kind.as_str(), call) {
                ("text", _) => blocks.say(block.data.text),
                ("thinking", _) => blocks.think(block.data.text),
                ("toolUse", Some(call)) => blocks.call(ToolCall {
                    id: call.tool_use_id,
                    name: call.name,
                    arguments: call.input.0,
                }),
                ("toolResult", Some(call)) => {
                    let outcome = match call.status.as_str() {
                        "success" => Some(ToolOutcome::Ok),
                        "error" => Some(ToolOutcome::Failed),
                        "rejected" | "cancelled" => Some(ToolOutcome::Rejected),
                        _ => None,
                    };
                    blocks.result(result(call.tool_use_id, &call.content.0, outcome));
                }
                ("image", _) => blocks.say(Text::media("image", "", 0)),
                (kind, _) => blocks.unknown(kind, &Text::default()),
            }
        }
        let person = MessageContext::new(EventOrigin::Human, time);
        let agent = MessageContext::new(EventOrigin::Agent, time);
        match self.kind.as_str() {
            "Prompt" => blocks.send_input(&person, EventRole::User, feed),
            "AssistantMessage" => blocks.send_answer(&agent, feed),
            // Results come from the agent's side, although the model API calls their role `user`.
            "ToolResults" => blocks.send_input(&agent, EventRole::User, feed),
            // The agent forgets what was said, and the file continues.
            "Clear" => feed.notes.ignored_records += 1,
            "Compaction" => {
                let mark = Some(EventMark::Compacted);
                feed.send(Event { time, mark, ..Event::default() });
            }
            kind => {
                feed.count_unknown(kind);
                feed.notes.ignored_records += 1;
            }
        }
    }
}

impl KiroPayload<'_> {
    /// Sends a message of newer versions.
    fn send(self, time: Option<jiff::Timestamp>, feed: &mut SessionFeed<'_>) {
        feed.head.add_model(&self.reasoning_model_id);
        let content = self.content.0;
        match self.kind.as_str() {
            "user" => feed.send_text(EventRole::User, EventOrigin::Human, content, time),
            "assistant" => {
                feed.send_text(EventRole::Assistant, EventOrigin::Agent, content, time);
            }
            "tool_call" => {
                let calls = vec![ToolCall {
                    id: self.tool_call_id,
                    name: self.tool_name,
                    arguments: self.args.0,
                }];
                // The call belongs to the answer before it, if there is one.
                let (role, origin) = (EventRole::Assistant, EventOrigin::Agent);
                feed.send(Event { role, origin, calls, time, continues: true, ..Event::default() });
            }
            "tool_result" => {
                let outcome = self
                    .is_error
                    .0
                    .map(|is_error| if is_error { ToolOutcome::Failed } else { ToolOutcome::Ok });
                let result = result(self.tool_call_id, &content, outcome);
                feed.send_results(EventOrigin::Agent, vec![result], time);
            }
            kind => feed.count_unknown(kind),
        }
    }
}

/// Builds a result. Its content is a text, or blocks such as
/// `{"kind": "json", "data": {"stdout": …, "exit_status": …}}`.
fn result<'a>(
    call_id: Text<'a>,
    content: &Text<'static>,
    outcome: Option<ToolOutcome>,
) -> ToolResult<'a> {
    let blocks = JsonValue::parse(content);
    let (mut text, mut exit_code) = (Text::default(), None);
    // A result has one or two blocks; the bound is for hostile files.
    for number in 0..20 {
        let at = |name: &str| blocks.text(&format!("/{number}/data{name}"));
        let (out, error) = (at("/stdout"), at("/stderr"));
        let status = at("/exit_status");
        // The status is a text such as `exit status: 1`.
        exit_code = exit_code.or_else(|| status.rsplit([' ', ':']).next()?.trim().parse().ok());
        if out.is_empty() && error.is_empty() {
            text.append(&at(""));
        } else {
            text.append(&out);
            text.append(&error);
        }
    }
    if text.is_empty() {
        text = content.clone();
    }
    let read = failure::result_of(text);
    let exit_code = exit_code.or(read.exit_code);
    let failed = exit_code.is_some_and(|code| code != 0);
    // The status only means that the tool ran.
    let outcome = if failed { ToolOutcome::Failed } else { outcome.unwrap_or(read.outcome) };
    ToolResult { call_id, outcome, exit_code, ..read }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::survives_damage;
    use super::super::{Session, SessionFormat};
    use super::*;
    use crate::test_support::only_session;

    /// 1 human turn, 2 model calls, 2 calls of which 1 failed.
    const CLI: &str = r#"{"version":"v1","kind":"Prompt","data":{"message_id":"p","content":[{"kind":"text","data":"fix it"}],"meta":{"timestamp":1777493100}}}
{"version":"v1","kind":"AssistantMessage","data":{"content":[{"kind":"thinking","data":{"text":"hm","signature":null}},{"kind":"text","data":"I look."},{"kind":"toolUse","data":{"toolUseId":"c1","name":"shell","input":{"command":"make"}}},{"kind":"toolUse","data":{"toolUseId":"c2","name":"read","input":{"path":"a"}}}]}}
{"version":"v1","kind":"ToolResults","data":{"content":[{"kind":"toolResult","data":{"toolUseId":"c1","status":"success","content":[{"kind":"json","data":{"exit_status":"exit status: 2","stdout":"","stderr":"no rule"}}]}},{"kind":"toolResult","data":{"toolUseId":"c2","status":"success","content":[{"kind":"text","data":"all:"}]}}]}}
{"version":"v1","kind":"AssistantMessage","data":{"content":[{"kind":"text","data":"Fixed."}]}}
"#;

    const NEWER: &str = r#"{"timestamp":"2026-04-29T20:05:00Z","payload":{"type":"user","content":"fix it"}}
{"timestamp":"2026-04-29T20:05:01Z","payload":{"type":"assistant","content":"I look.","reasoningModelId":"m-1"}}
{"timestamp":"2026-04-29T20:05:02Z","payload":{"type":"tool_call","toolName":"shell","toolCallId":"c1","args":{"command":"make"}}}
{"timestamp":"2026-04-29T20:05:02Z","payload":{"type":"tool_call","toolName":"read","toolCallId":"c2","args":{"path":"a"}}}
{"timestamp":"2026-04-29T20:05:03Z","payload":{"type":"tool_result","toolCallId":"c1","isError":true,"content":"no rule"}}
{"timestamp":"2026-04-29T20:05:03Z","payload":{"type":"tool_result","toolCallId":"c2","isError":false,"content":"all:"}}
{"timestamp":"2026-04-29T20:05:04Z","payload":{"type":"assistant","content":"Fixed."}}
"#;

    fn session(source: &SessionSource) -> Session {
        only_session(SessionFormat::Kiro, source)
    }

    #[test]
    fn both_versions_record_the_same_session() {
        for text in [CLI, NEWER] {
            let session = session(&SessionSource::bytes("s-1.jsonl", text));
            let head = &session.head;
            assert_eq!((head.id.as_str(), head.agent.as_str()), ("s-1", "kiro"));
            assert_eq!(head.start.unwrap().to_string(), "2026-04-29T20:05:00Z");
            let said: Vec<_> = session
                .events
                .iter()
                .filter(|event| !event.text.is_empty())
                .map(|event| (event.role, event.text.as_str()))
                .collect();
            assert_eq!(
                said,
                [
                    (EventRole::User, "fix it"),
                    (EventRole::Assistant, "I look."),
                    (EventRole::Assistant, "Fixed."),
                ]
            );
            let asked = session
                .events
                .iter()
                .filter(|event| event.role == EventRole::Assistant && !event.continues);
            assert_eq!(asked.count(), 2);
            let results: Vec<_> = session
                .events
                .iter()
                .flat_map(|event| &event.results)
                .map(|result| (result.tool.as_str(), result.outcome, result.text.as_str()))
                .collect();
            assert_eq!(
                results,
                [("shell", ToolOutcome::Failed, "no rule"), ("read", ToolOutcome::Ok, "all:")]
            );
        }
    }

    #[test]
    fn the_file_beside_it_holds_folder_and_dates() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        std::fs::write(&path, CLI).unwrap();
        let about = r#"{"session_id":"s-9","cwd":"/w","created_at":"2026-04-29T20:00:00Z"}"#;
        std::fs::write(folder.path().join("x.json"), about).unwrap();
        let head = session(&SessionSource::file(path)).head;
        assert_eq!((head.id.as_str(), head.cwd.as_deref()), ("s-9", Some("/w")));
        assert_eq!(head.start.unwrap().to_string(), "2026-04-29T20:00:00Z");
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::Kiro, CLI.as_bytes());
        survives_damage(SessionFormat::Kiro, NEWER.as_bytes());
    }
}
