//! Reads events of the `OpenHands` SDK: JSON lines, a list, or one file each in a conversation's
//! folder, beside `base_state.json`.
//!
//! Several actions may come from one model reply (`llm_response_id`). Token counts are totals in
//! state updates and in `base_state.json`, not in the events.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use crate::SessionReadError;
use crate::content::{ApiUsage, MessageContent};
use crate::event::{
    Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use crate::feed::SessionFeed;
use crate::format::{AgentFolders, FormatEntry, HomeRoot, IdSource};
use crate::lines::JsonLines;
use crate::source::{DocumentReader, SessionSource, each_record};
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{
    AnyJson, JsonText, JsonValue, LenientFlag, LenientInt, LenientObject, deserialize_any_json,
};

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
            note_base_state(&state, feed);
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
                // Errors of the model's provider; others are the program's own.
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

/// An event of any kind.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SdkRecord<'a> {
    kind: Text<'a>,
    timestamp: Moment,
    source: Text<'a>,
    llm_response_id: Text<'a>,
    // Messages.
    llm_message: LenientObject<SdkMessage<'a>>,
    system_prompt: Text<'a>,
    summary: Text<'a>,
    // Calls.
    thought: MessageContent<'a>,
    reasoning_content: Text<'a>,
    action: JsonText,
    tool_name: Text<'a>,
    tool_call_id: Text<'a>,
    tool_call: LenientObject<SdkCall<'a>>,
    // Results.
    observation: LenientObject<SdkObservation<'a>>,
    rejection_reason: Text<'a>,
    error: Text<'a>,
    // Errors of the conversation.
    code: Text<'a>,
    detail: Text<'a>,
    // Calls of an agent driven through ACP.
    title: Text<'a>,
    status: Text<'a>,
    tool_kind: Text<'a>,
    raw_input: JsonText,
    raw_output: JsonText,
    is_error: LenientFlag,
    parent_tool_call_id: Text<'a>,
    // State updates.
    key: Text<'a>,
    value: LenientObject<SdkState>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SdkMessage<'a> {
    role: Text<'a>,
    content: MessageContent<'a>,
    reasoning_content: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SdkCall<'a> {
    name: Text<'a>,
    arguments: JsonText,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SdkObservation<'a> {
    content: MessageContent<'a>,
    /// In place of `content` in the first versions, with `error`.
    output: Text<'a>,
    error: Text<'a>,
    is_error: LenientFlag,
    exit_code: LenientInt,
    metadata: LenientObject<SdkMetadata<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SdkMetadata<'a> {
    exit_code: LenientInt,
    working_dir: Text<'a>,
}

impl SdkObservation<'_> {
    fn code(&self) -> Option<i64> {
        let of_metadata = self.metadata.0.as_ref().and_then(|metadata| metadata.exit_code.0);
        self.exit_code.0.or(of_metadata)
    }

    /// Records the working directory.
    fn note_folder(&self, feed: &mut SessionFeed<'_>) {
        if let Some(metadata) = &self.metadata.0 {
            note_folder(&metadata.working_dir, feed);
        }
    }
}

fn note_folder(folder: &Text<'_>, feed: &mut SessionFeed<'_>) {
    if feed.head.cwd.is_none() {
        feed.head.cwd = folder.line(400);
    }
}

/// Value of a state update: `stats`, or the whole state including `stats`.
#[derive(Deserialize, Default)]
#[serde(default)]
struct SdkState {
    usage_to_metrics: UsageTotals,
    stats: LenientObject<SdkStats>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SdkStats {
    usage_to_metrics: UsageTotals,
}

impl SdkState {
    /// Records the running totals, replacing earlier ones.
    fn note(self, feed: &mut SessionFeed<'_>) {
        self.usage_to_metrics.note(feed);
        if let Some(stats) = self.stats.0 {
            stats.usage_to_metrics.note(feed);
        }
    }
}

/// Records data from `base_state.json` that the events lack.
fn note_base_state(state: &JsonValue, feed: &mut SessionFeed<'_>) {
    feed.head.add_model(&state.text("/agent/llm/model"));
    note_folder(&state.text("/workspace/working_dir"), feed);
    state.part::<UsageTotals>("/stats/usage_to_metrics").note(feed);
}

/// Token totals, summed over uses (the agent, the condenser, …).
#[derive(Default)]
struct UsageTotals {
    usage: TokenCounts,
    models: Vec<String>,
}

impl UsageTotals {
    fn note(self, feed: &mut SessionFeed<'_>) {
        if self.usage != TokenCounts::default() {
            // Replaced, not added: each update states the total so far.
            feed.head.usage = Some(self.usage);
        }
        self.models.iter().for_each(|model| feed.head.add_model(model));
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct UseMetrics<'a> {
    model_name: Text<'a>,
    accumulated_token_usage: LenientObject<ApiUsage>,
}

deserialize_any_json!(UsageTotals);

impl<'de> AnyJson<'de> for UsageTotals {
    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        const MAX_MODELS: usize = 32;
        while let Some((_, LenientObject(metrics))) =
            map.next_entry::<IgnoredAny, LenientObject<UseMetrics<'de>>>()?
        {
            let Some(metrics) = metrics else { continue };
            let tokens = metrics.accumulated_token_usage.0;
            let Some(usage) = tokens.as_ref().and_then(ApiUsage::usage) else { continue };
            self.usage += usage;
            if self.models.len() < MAX_MODELS {
                self.models.push(metrics.model_name.as_str().to_owned());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::test_support::survives_damage;
    use crate::{
        EventMark, EventOrigin, EventRole, ReadNotes, Session, SessionCollector, SessionFormat,
        SessionSource, TokenCounts, ToolOutcome, read,
    };

    /// 1 system prompt, 1 text of a person and 1 pause, 1 hook's feedback; 5 answers of 4 replies, 5
    /// calls; results: 1 ok by code, 1 ok without one, 1 failed by code, 1 failed by flag, 1
    /// rejected; 1 summary, 1 error of the conversation; 3 records of noise, 2 of them sums.
    const EVENTS: &str = r#"{"id":"e0","timestamp":"2026-02-05T11:24:40","source":"agent","system_prompt":{"type":"text","text":"You are OpenHands"},"tools":[{"description":"long"}],"kind":"SystemPromptEvent"}
{"id":"e1","timestamp":"2026-02-05T11:24:45.305360","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"Run pwd"}]},"extended_content":[],"kind":"MessageEvent"}
{"id":"s1","source":"environment","key":"execution_status","value":"running","kind":"ConversationStateUpdateEvent"}
{"id":"s2","source":"environment","key":"stats","value":{"usage_to_metrics":{"default":{"model_name":"m-x","accumulated_token_usage":{"prompt_tokens":50,"completion_tokens":5,"cache_read_tokens":0}}}},"kind":"ConversationStateUpdateEvent"}
{"id":"a1","source":"agent","thought":[{"type":"text","text":"<think>I plan.</think>\n\nI run it."}],"reasoning_content":"I plan.","action":{"command":"pwd","kind":"TerminalAction"},"tool_name":"terminal","tool_call_id":"c1","tool_call":{"id":"c1","name":"terminal","arguments":"{\"command\":\"pwd\",\"security_risk\":\"LOW\"}"},"llm_response_id":"r1","kind":"ActionEvent"}
{"id":"a2","source":"agent","thought":[],"action":{"command":"ls -x","kind":"TerminalAction"},"tool_name":"terminal","tool_call_id":"c2","llm_response_id":"r1","kind":"ActionEvent"}
{"id":"o2","source":"environment","tool_name":"terminal","tool_call_id":"c2","observation":{"content":[{"type":"text","text":"bad option"}],"is_error":false,"exit_code":2,"metadata":{"exit_code":2}},"action_id":"a2","kind":"ObservationEvent"}
{"id":"o1","source":"environment","tool_name":"terminal","tool_call_id":"c1","observation":{"content":[{"type":"text","text":"/w"}],"is_error":false,"exit_code":0,"metadata":{"exit_code":0,"working_dir":"/w"}},"action_id":"a1","kind":"ObservationEvent"}
{"id":"a3","source":"agent","thought":[],"action":null,"tool_name":"nope","tool_call_id":"c3","tool_call":{"id":"c3","name":"nope","arguments":"{\"x\":1}"},"llm_response_id":"r2","kind":"ActionEvent"}
{"id":"o3","source":"agent","tool_name":"nope","tool_call_id":"c3","error":"Tool 'nope' not found","kind":"AgentErrorEvent"}
{"id":"a4","source":"agent","thought":[],"action":{"command":"rm -r /"},"tool_name":"terminal","tool_call_id":"c4","llm_response_id":"r3","kind":"ActionEvent"}
{"id":"o4","source":"environment","tool_name":"terminal","tool_call_id":"c4","rejection_reason":"no","rejection_source":"user","action_id":"a4","kind":"UserRejectObservation"}
{"id":"p1","source":"user","kind":"PauseEvent"}
{"id":"h1","source":"environment","llm_message":{"role":"user","content":[{"type":"text","text":"[Stop hook feedback] go on"}]},"kind":"MessageEvent"}
{"id":"k1","source":"environment","forgotten_event_ids":["e1"],"summary":"so far: pwd","llm_response_id":"rk","kind":"Condensation"}
{"id":"x1","source":"environment","code":"LLMRateLimitError","detail":"slow down","kind":"ConversationErrorEvent"}
{"id":"t1","source":"agent","kind":"TokenEvent","prompt_token_ids":[1,2,3]}
{"id":"a5","source":"agent","thought":[{"type":"text","text":"Done."}],"action":{"message":"It is /w.","kind":"FinishAction"},"tool_name":"finish","tool_call_id":"c5","llm_response_id":"r4","kind":"ActionEvent"}
{"id":"o5","timestamp":"2026-02-05T11:30:00","source":"environment","tool_name":"finish","tool_call_id":"c5","observation":{"content":[{"type":"text","text":"It is /w."}],"is_error":false},"kind":"ObservationEvent"}
{"id":"s3","source":"environment","key":"full_state","value":{"stats":{"usage_to_metrics":{"default":{"model_name":"m-x","accumulated_token_usage":{"prompt_tokens":100,"completion_tokens":9,"cache_read_tokens":60}},"condenser":{"model_name":"m-y","accumulated_token_usage":{"prompt_tokens":10,"completion_tokens":1}}}}},"kind":"ConversationStateUpdateEvent"}
"#;

    fn session(source: &SessionSource) -> (Session, ReadNotes) {
        let mut collector = SessionCollector::default();
        let reading = read(source, &mut collector).unwrap();
        assert_eq!(reading.format, SessionFormat::OpenHandsSdk);
        let mut sessions = collector.into_sessions();
        assert_eq!(sessions.len(), 1);
        (sessions.remove(0), reading.notes)
    }

    fn check(session: &Session, notes: &ReadNotes) {
        let count = |role, origin| {
            session
                .events
                .iter()
                .filter(|event| event.role == role && event.origin == origin)
                .count()
        };
        assert_eq!(count(EventRole::System, EventOrigin::Harness), 3);
        assert_eq!(count(EventRole::User, EventOrigin::Human), 2);
        assert_eq!(count(EventRole::User, EventOrigin::Harness), 1);
        assert_eq!(count(EventRole::Assistant, EventOrigin::Agent), 5);
        let own = session.events.iter().filter(|event| event.role == EventRole::Assistant);
        assert_eq!(own.filter(|event| !event.continues).count(), 4);
        let results = session.events.iter().flat_map(|event| &event.results);
        let outcomes: Vec<_> = results
            .map(|result| (result.call_id.as_str(), result.outcome, result.exit_code))
            .collect();
        assert_eq!(
            outcomes,
            [
                ("c2", ToolOutcome::Failed, Some(2)),
                ("c1", ToolOutcome::Ok, Some(0)),
                ("c3", ToolOutcome::Failed, None),
                ("c4", ToolOutcome::Rejected, None),
                ("c5", ToolOutcome::Ok, None),
            ]
        );
        let marks: Vec<_> = session.events.iter().filter_map(|event| event.mark).collect();
        assert_eq!(marks, [EventMark::Interrupted, EventMark::Compacted, EventMark::ApiError]);
        assert_eq!(session.head.usage, Some(TokenCounts { input: 50, output: 10, cached: 60 }));
        assert_eq!(session.head.models, ["m-x", "m-y"]);
        assert_eq!(session.head.cwd.as_deref(), Some("/w"));
        assert_eq!(notes.ignored_records, 4);
        let call = &session.events[2];
        assert_eq!((call.text.as_str(), call.reasoning.as_str()), ("I run it.", "I plan."));
        let arguments: String = call.calls[0].arguments.split_whitespace().collect();
        assert_eq!(arguments, r#"{"command":"pwd","kind":"TerminalAction"}"#);
        let unknown = session
            .events
            .iter()
            .find(|event| event.calls.first().is_some_and(|call| call.name.as_str() == "nope"));
        assert_eq!(unknown.unwrap().calls[0].arguments.as_str(), r#"{"x":1}"#);
        let finish = &session.events[session.events.len() - 2];
        assert_eq!(finish.text.as_str(), "Done.\nIt is /w.");
    }

    #[test]
    fn as_lines_and_as_a_list() {
        let (whole, notes) = session(&SessionSource::bytes("events.jsonl", EVENTS));
        check(&whole, &notes);
        let list = format!("[{}]", EVENTS.trim().replace('\n', ","));
        let (whole, notes) = session(&SessionSource::bytes("events.json", list));
        check(&whole, &notes);
    }

    #[test]
    fn as_a_folder_of_files_over_several_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        for (number, line) in EVENTS.lines().enumerate() {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            let path = folder.path().join(format!("event-{number:05}-x.json"));
            fs::write(&path, serde_json::to_string_pretty(&event).unwrap()).unwrap();
            files.push(path);
        }
        let source = SessionSource::Folder { path: folder.path().to_owned(), files };
        let (whole, notes) = session(&source);
        check(&whole, &notes);

        let state = r#"{"id":"x","agent":{"llm":{"model":"m-z"}},"workspace":{"working_dir":"/other"},
        "stats":{"usage_to_metrics":{"agent":{"accumulated_token_usage":{"prompt_tokens":7}}}}}"#;
        fs::write(folder.path().join("base_state.json"), state).unwrap();
        let (whole, _) = session(&source);
        assert_eq!(whole.head.models, ["m-x", "m-y", "m-z"]);
        assert_eq!(whole.head.cwd.as_deref(), Some("/w"));
        assert_eq!(whole.head.usage, Some(TokenCounts { input: 7, output: 0, cached: 0 }));
    }

    #[test]
    fn results_whose_end_is_told_in_other_ways() {
        let event = |observation: &str| {
            format!(
                r#"{{"id":"o","source":"environment","tool_call_id":"c","observation":{observation},"kind":"ObservationEvent"}}"#
            )
        };
        for (observation, outcome, error) in [
            (
                r#"{"content":[{"type":"text","text":"x"}],"is_error":true,"exit_code":null,"metadata":{"exit_code":-1}}"#,
                ToolOutcome::Failed,
                "",
            ),
            (
                r#"{"content":[],"is_error":false,"metadata":{"exit_code":-1}}"#,
                ToolOutcome::Unknown,
                "",
            ),
            (r#"{"output":"x","error":"no such tool"}"#, ToolOutcome::Failed, "no such tool"),
            (r#"{"output":"x","error":true}"#, ToolOutcome::Failed, ""),
            (r#"{"output":"x","error":false}"#, ToolOutcome::Ok, ""),
            (r#""odd""#, ToolOutcome::Ok, ""),
        ] {
            let (session, _) = session(&SessionSource::bytes("events.jsonl", event(observation)));
            let result = &session.events[0].results[0];
            assert_eq!((result.outcome, result.error.as_str()), (outcome, error), "{observation}");
            assert_eq!(result.exit_code, None);
        }
    }

    #[test]
    fn calls_of_an_agent_driven_from_outside_count_when_they_end() {
        let lines = r#"{"id":"1","source":"agent","tool_call_id":"c1","title":"Read a","status":"in_progress","kind":"ACPToolCallEvent"}
{"id":"2","source":"agent","tool_call_id":"c1","title":"Read a","tool_kind":"read","status":"completed","raw_input":{"path":"a"},"raw_output":"text","kind":"ACPToolCallEvent"}
{"id":"3","source":"agent","tool_call_id":"c2","title":"Run","status":"failed","parent_tool_call_id":"c0","kind":"ACPToolCallEvent"}
"#;
        let (session, notes) = session(&SessionSource::bytes("events.jsonl", lines));
        assert_eq!(notes.ignored_records, 1);
        assert_eq!(session.events.len(), 4);
        assert_eq!(session.events[0].calls[0].arguments.as_str(), r#"{"path":"a"}"#);
        assert_eq!(session.events[1].results[0].outcome, ToolOutcome::Ok);
        assert_eq!(session.events[2].origin, EventOrigin::Subagent);
        assert_eq!(session.events[3].results[0].outcome, ToolOutcome::Failed);
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::OpenHandsSdk, EVENTS.as_bytes());
    }

    #[test]
    fn the_exit_code_of_a_command_with_and_without_metadata() {
        for (observation, outcome, code) in [
            (r#"{"content":[],"is_error":false,"exit_code":2}"#, ToolOutcome::Failed, 2),
            (
                r#"{"content":[],"is_error":false,"exit_code":2,"metadata":null}"#,
                ToolOutcome::Failed,
                2,
            ),
            (r#"{"content":[],"exit_code":0,"metadata":{"working_dir":"/w"}}"#, ToolOutcome::Ok, 0),
            (
                r#"{"content":[],"exit_code":null,"metadata":{"exit_code":1}}"#,
                ToolOutcome::Failed,
                1,
            ),
        ] {
            let event = format!(
                r#"{{"source":"environment","tool_call_id":"c","observation":{observation},"kind":"ObservationEvent"}}"#
            );
            let (session, _) = session(&SessionSource::bytes("events.jsonl", event));
            let result = &session.events[0].results[0];
            assert_eq!((result.outcome, result.exit_code), (outcome, Some(code)), "{observation}");
        }
    }
}
