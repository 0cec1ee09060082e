//! Reads events of the `OpenHands` SDK: JSON lines, a list, or one file each in a conversation's
//! folder, beside `base_state.json`.
//!
//! Several actions may come from one model reply (`llm_response_id`). Token counts are totals in
//! state updates and in `base_state.json`, not in the events.

mod record;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess};

use super::SessionReadError;
use super::any_json::AnyJson as _;
use super::event::{Event, EventMark, EventOrigin, EventRole, ToolCall, ToolOutcome, ToolResult};
use super::feed::SessionFeed;
use super::lines::JsonLines;
use super::source::{DocumentReader, SessionSource, each_record};
use super::text::Text;
use super::wire::JsonText;
use crate::entry::{AgentFolders, FormatEntry, HomeRoot, IdSource};
use record::{SdkObservation, SdkRecord};

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.mark("kind").ends_with("Event") && value.has("source"),
    in_lists: true,
    ids: IdSource::FolderName,
    folders: &[AgentFolders {
        agent: "open-hands-sdk",
        variable: None,
        roots: &[HomeRoot::Home(".openhands")],
        parts: &["conversations"],
    }],
    ..FormatEntry::new(read)
};

/// Reads a conversation.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let is_folder = matches!(source, SessionSource::Folder { .. });
    if !is_folder && is_list(source)? {
        return source.read_document(&mut SdkEventDocument, feed);
    }
    let mut lines = source.lines()?;
    let (mut scratch, mut conversation) = (String::new(), SdkConversation::default());
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(record) = line.parse(&mut scratch, &mut feed.notes) {
            conversation.send(record, feed);
        }
    }
    if let SessionSource::Folder { path, .. } = source {
        // The file may be missing or half written; the events do not depend on it.
        let (state, mut unread) = ([path.join("base_state.json")], super::ReadNotes::default());
        if let Some(line) = JsonLines::of_files(&state).next(&mut unread)?
            && let Some(state) = line.parse(&mut scratch, &mut unread)
        {
            record::note_base_state(&state, feed);
        }
    }
    Ok(())
}

/// Returns true if the source is one JSON list, or one event spread over several lines.
fn is_list(source: &SessionSource) -> Result<bool, SessionReadError> {
    let mut lines = source.lines()?;
    let mut notes = super::ReadNotes::default();
    let Some(line) = lines.next(&mut notes)? else { return Ok(false) };
    let start = line.bytes.trim_ascii();
    Ok(start.starts_with(b"[") || start == b"{")
}

struct SdkEventDocument;

impl DocumentReader for SdkEventDocument {
    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        list: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut conversation = SdkConversation::default();
        each_record(feed, |record: SdkRecord<'de>, feed| conversation.send(record, feed)).list(list)
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let record = SdkRecord::deserialize(MapAccessDeserializer::new(map))?;
        SdkConversation::default().send(record, feed);
        Ok(())
    }
}

/// State of a conversation.
#[derive(Default)]
struct SdkConversation {
    /// Id of the model's last reply.
    reply: String,
}

impl SdkConversation {
    fn send(&mut self, record: SdkRecord<'_>, feed: &mut SessionFeed<'_>) {
        "open-hands-sdk".clone_into(&mut feed.head.agent);
        let time = record.timestamp.0;
        match record.kind.as_str() {
            "MessageEvent" => self.message(record, feed),
            "ActionEvent" => self.action(record, feed),
            "ACPToolCallEvent" => acp_call(record, feed),
            "ObservationEvent" => {
                let observation = record.observation.0.unwrap_or_default();
                observation.note_folder(feed);
                let result = result_of(observation, record.tool_call_id, record.tool_name);
                send_result(result, time, feed);
            }
            "AgentErrorEvent" if !record.tool_call_id.is_empty() => {
                let result = ToolResult {
                    call_id: record.tool_call_id,
                    tool: record.tool_name,
                    text: record.error,
                    outcome: ToolOutcome::Failed,
                    ..ToolResult::default()
                };
                send_result(result, time, feed);
            }
            "UserRejectObservation" => {
                let result = ToolResult {
                    call_id: record.tool_call_id,
                    tool: record.tool_name,
                    text: record.rejection_reason,
                    outcome: ToolOutcome::Rejected,
                    ..ToolResult::default()
                };
                send_result(result, time, feed);
            }
            "SystemPromptEvent" => {
                feed.send(Event { text: record.system_prompt, time, ..Event::default() });
            }
            "PauseEvent" | "InterruptEvent" => {
                let (role, origin, mark) =
                    (EventRole::User, EventOrigin::Human, Some(EventMark::Interrupted));
                feed.send(Event { role, origin, time, mark, ..Event::default() });
            }
            "Condensation" => {
                let (text, mark) = (record.summary, Some(EventMark::Compacted));
                feed.send(Event { text, time, mark, ..Event::default() });
            }
            "AgentErrorEvent" | "ConversationErrorEvent" | "ServerErrorEvent" => {
                let parts = [record.code.as_str(), record.detail.as_str(), record.error.as_str()];
                let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                let text = parts.join(": ").into();
                let mark = record.code.starts_with("LLM").then_some(EventMark::ApiError);
                feed.send(Event { text, time, mark, ..Event::default() });
            }
            "ConversationStateUpdateEvent" => {
                feed.notes.ignored_records += 1;
                if matches!(record.key.as_str(), "stats" | "full_state")
                    && let Some(state) = record.value.0
                {
                    state.note(feed);
                }
            }
            _ => feed.notes.ignored_records += 1,
        }
    }

    fn message(&mut self, record: SdkRecord<'_>, feed: &mut SessionFeed<'_>) {
        let message = record.llm_message.0.unwrap_or_default();
        let text = message.content.0;
        let time = record.timestamp.0;
        let (role, origin) = match (record.source.as_str(), message.role.as_str()) {
            ("agent", _) | (_, "assistant") => {
                let continues = self.continues(&record.llm_response_id);
                let (text, reasoning) = split_thought(&text, message.reasoning_content);
                feed.send(Event {
                    role: EventRole::Assistant,
                    origin: EventOrigin::Agent,
                    text: text.into(),
                    reasoning,
                    time,
                    continues,
                    ..Event::default()
                });
                return;
            }
            (_, "system") => (EventRole::System, EventOrigin::Harness),
            ("user", _) => (EventRole::User, EventOrigin::Human),
            // Feedback of hooks and the like.
            _ => (EventRole::User, EventOrigin::Harness),
        };
        feed.send(Event { role, origin, text, time, ..Event::default() });
    }

    fn action(&mut self, record: SdkRecord<'_>, feed: &mut SessionFeed<'_>) {
        let (given, arguments) = match record.tool_call.0 {
            Some(call) => (call.name, call.arguments.0),
            None => <(Text<'_>, Text<'_>)>::default(),
        };
        let name = if record.tool_name.is_empty() { given } else { record.tool_name };
        // The parsed action omits fields that only explain the call. Without one, nothing was run.
        let action = record.action.0;
        let arguments = if action.is_empty() { arguments } else { action };
        let thought = record.thought.0;
        let (text, reasoning) = split_thought(&thought, record.reasoning_content);
        let mut text = Text::from(text);
        if name.as_str() == "finish" {
            // `finish` is a call by form, but its message is the agent's answer.
            text.append(&message_in(&arguments));
        }
        let continues = self.continues(&record.llm_response_id);
        let call = ToolCall { id: record.tool_call_id, name, arguments };
        feed.send(Event {
            role: EventRole::Assistant,
            origin: EventOrigin::Agent,
            text,
            reasoning,
            calls: vec![call],
            time: record.timestamp.0,
            continues,
            ..Event::default()
        });
    }

    /// Returns true if the event comes from the same model reply as the last one.
    fn continues(&mut self, reply: &str) -> bool {
        let continues = !reply.is_empty() && self.reply == reply;
        reply.clone_into(&mut self.reply);
        continues
    }
}

/// Sends a call of an agent that `OpenHands` drives through ACP. Call and result are one event,
/// which is repeated until the call has ended.
fn acp_call(record: SdkRecord<'_>, feed: &mut SessionFeed<'_>) {
    let has_failed = record.is_error.is_set() || record.status.as_str() == "failed";
    if !has_failed && record.status.as_str() != "completed" {
        feed.notes.ignored_records += 1;
        return;
    }
    let is_subagent = !record.parent_tool_call_id.is_empty();
    let origin = if is_subagent { EventOrigin::Subagent } else { EventOrigin::Agent };
    let time = record.timestamp.0;
    let id = record.tool_call_id;
    let call = ToolCall {
        id: id.as_str().into(),
        name: if record.tool_kind.is_empty() { record.title } else { record.tool_kind },
        arguments: record.raw_input.0,
    };
    let result = ToolResult {
        call_id: id.as_str().into(),
        text: record.raw_output.0,
        outcome: if has_failed { ToolOutcome::Failed } else { ToolOutcome::Ok },
        ..ToolResult::default()
    };
    // The number of model calls behind them is unknown.
    let (role, continues, calls) = (EventRole::Assistant, true, vec![call]);
    feed.send(Event { role, origin, calls, time, continues, ..Event::default() });
    feed.send_results(origin, vec![result], time);
}

fn send_result(result: ToolResult<'_>, time: Option<jiff::Timestamp>, feed: &mut SessionFeed<'_>) {
    feed.send_results(EventOrigin::Agent, vec![result], time);
}

fn result_of<'a>(
    observation: SdkObservation<'a>,
    call_id: Text<'a>,
    tool: Text<'a>,
) -> ToolResult<'a> {
    let code = observation.code();
    // -1 means that the command has not ended yet, or never started.
    let exit_code = code.filter(|code| *code >= 0);
    let stated = observation.error.as_str();
    let has_error = !matches!(stated, "" | "false");
    let is_error = observation.is_error.is_set() || has_error;
    let outcome = match (is_error, code) {
        (true, _) => ToolOutcome::Failed,
        // Errors have a flag in this format, so a result without one is a success.
        (false, Some(0) | None) => ToolOutcome::Ok,
        (false, Some(code)) if code > 0 => ToolOutcome::Failed,
        (false, Some(_)) => ToolOutcome::Unknown,
    };
    let text =
        if observation.content.0.is_empty() { observation.output } else { observation.content.0 };
    let error = if has_error && stated != "true" { observation.error } else { Text::default() };
    ToolResult { call_id, tool, text, outcome, exit_code, error }
}

/// Splits off the reasoning that some models write before the text.
fn split_thought<'a>(text: &'a str, reasoning: Text<'a>) -> (&'a str, Text<'a>) {
    let split =
        text.trim_start().strip_prefix("<think>").and_then(|rest| rest.split_once("</think>"));
    match split {
        Some((thought, rest)) if reasoning.is_empty() => (rest.trim(), thought.trim().into()),
        Some((_, rest)) => (rest.trim(), reasoning),
        None => (text, reasoning),
    }
}

/// Returns the `message` in a call's arguments, which is the agent's text when it finishes.
fn message_in(arguments: &str) -> Text<'static> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct FinishArguments {
        message: JsonText,
    }
    serde_json::from_str::<FinishArguments>(arguments).unwrap_or_default().message.0
}
