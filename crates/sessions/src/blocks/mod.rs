//! Reads content blocks in the formats that agents share: Anthropic's blocks, parts of `OpenAI`'s
//! Chat and Responses APIs, Gemini's parts, and blocks of the Vercel AI SDK, goose, pi and
//! `OpenTelemetry`'s `GenAI` conventions. It also reads calls written as XML into the text.
//!
//! A block of an unknown type is shown by name and counted ([`crate::UnknownBlocks`]), never
//! dropped silently. The caller knows who the speaker is.

mod block;
pub(super) mod xml;

pub(super) use block::ContentBlock;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{DeserializeSeed as _, MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::event::{Event, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult};
use crate::feed::SessionFeed;
use crate::text::Text;
use crate::wire::{AnyJson, JsonText, deserialize_any_json, each};

/// Content of a message in its original order. A tool result ends a step.
#[derive(Default)]
pub(super) struct ContentBlocks<'a> {
    steps: Vec<MessageStep<'a>>,
    /// Types of unknown blocks.
    unknown: Vec<String>,
}

/// Text, calls, and the results that followed them.
#[derive(Default)]
pub(super) struct MessageStep<'a> {
    pub(super) text: Text<'a>,
    pub(super) thinking: Text<'a>,
    pub(super) calls: Vec<ToolCall<'a>>,
    pub(super) results: Vec<ToolResult<'a>>,
}

impl MessageStep<'_> {
    fn is_empty(&self) -> bool {
        self.text.is_empty()
            && self.thinking.is_empty()
            && self.calls.is_empty()
            && self.results.is_empty()
    }
}

deserialize_any_json!(ContentBlocks<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for ContentBlocks<'a> {
    fn string(&mut self, text: Cow<'de, str>) {
        self.say(Text::new(text));
    }

    fn list<A: SeqAccess<'de>>(&mut self, list: A) -> Result<(), A::Error> {
        each(|element: BlockElement<'de>| element.0.into_iter().for_each(|block| self.add(block)))
            .list(list)
    }

    fn object<A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        let mut block = ContentBlock::default();
        block.object(map)?;
        self.add(block);
        Ok(())
    }
}

/// An element of a list of blocks: an object, or a text in place of one.
#[derive(Default)]
struct BlockElement<'a>(Option<ContentBlock<'a>>);

deserialize_any_json!(BlockElement<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for BlockElement<'a> {
    fn string(&mut self, text: Cow<'de, str>) {
        self.0 = Some(ContentBlock::of_text(Text::new(text)));
    }

    fn object<A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        let mut block = ContentBlock::default();
        block.object(map)?;
        self.0 = Some(block);
        Ok(())
    }
}

impl<'a> ContentBlocks<'a> {
    /// Parses text with blocks as JSON, as stored in databases; `None` if it is not JSON.
    pub(super) fn parse(json: &str) -> Option<ContentBlocks<'static>> {
        let blocks: ContentBlocks<'_> = serde_json::from_str(json).ok()?;
        Some(blocks.into_owned())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.unknown.is_empty()
    }

    /// Returns true if any step has a tool result.
    pub(super) fn has_results(&self) -> bool {
        self.steps.iter().any(|step| !step.results.is_empty())
    }

    /// Returns true if any step has a call.
    pub(super) fn has_calls(&self) -> bool {
        self.steps.iter().any(|step| !step.calls.is_empty())
    }

    /// Returns true if any step has the call with this id.
    pub(super) fn has_call(&self, id: &str) -> bool {
        self.steps.iter().flat_map(|step| &step.calls).any(|call| call.id.as_str() == id)
    }

    /// Returns true if any step has text.
    pub(super) fn has_text(&self) -> bool {
        self.steps.iter().any(|step| !step.text.is_empty())
    }

    /// Returns the first text, or an empty string.
    pub(super) fn first_text(&self) -> &str {
        self.steps.iter().map(|step| step.text.as_str()).find(|text| !text.is_empty()).unwrap_or("")
    }

    /// Takes all texts, in order.
    pub(super) fn take_text(&mut self) -> Text<'a> {
        let mut all = Text::default();
        for step in &mut self.steps {
            all.add(std::mem::take(&mut step.text));
        }
        all
    }

    /// Appends the content of another message.
    pub(super) fn append(&mut self, mut other: Self) {
        self.steps.append(&mut other.steps);
        self.unknown.append(&mut other.unknown);
    }

    /// Returns the step that text or a call belongs to, starting a new one after results.
    fn open_step(&mut self) -> &mut MessageStep<'a> {
        // A result comes from outside of the model, so that what follows it is another model call.
        if self.steps.last().is_none_or(|step| !step.results.is_empty()) {
            self.steps.push(MessageStep::default());
        }
        self.last_step()
    }

    fn last_step(&mut self) -> &mut MessageStep<'a> {
        if self.steps.is_empty() {
            self.steps.push(MessageStep::default());
        }
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    pub(super) fn say(&mut self, text: Text<'a>) {
        if !text.is_empty() {
            self.open_step().text.add(text);
        }
    }

    pub(super) fn think(&mut self, thought: Text<'a>) {
        if !thought.is_empty() {
            crate::content::add_thinking(&mut self.open_step().thinking, thought);
        }
    }

    /// Sets the text of the first step.
    pub(super) fn say_first(&mut self, text: Text<'a>) {
        match self.steps.first_mut() {
            Some(first) if !text.is_empty() => first.text = text,
            Some(_) => {}
            None => self.say(text),
        }
    }

    /// Adds reasoning before that of the first step.
    pub(super) fn think_first(&mut self, thought: Text<'a>) {
        if thought.is_empty() {
            return;
        }
        match self.steps.first_mut() {
            Some(first) => {
                let said = std::mem::replace(&mut first.thinking, thought);
                crate::content::add_thinking(&mut first.thinking, said);
            }
            None => self.think(thought),
        }
    }

    pub(super) fn call(&mut self, call: ToolCall<'a>) {
        self.open_step().calls.push(call);
    }

    pub(super) fn result(&mut self, result: ToolResult<'a>) {
        self.last_step().results.push(result);
    }

    /// Adds an unknown block. It is shown by name in its place, together with its text.
    pub(super) fn unknown(&mut self, kind: &str, words: &Text<'_>) {
        let kind = selftest_text::one_line(kind, 60);
        let mut shown = Text::from(format!("[unknown block {kind:?}]"));
        shown.append(words);
        self.say(shown);
        self.unknown.push(kind);
    }

    /// Adds a block.
    pub(super) fn add(&mut self, block: ContentBlock<'a>) {
        block.put_into(self);
    }

    /// Counts the unknown blocks and returns the steps.
    fn take_steps(self, feed: &mut SessionFeed<'_>) -> Vec<MessageStep<'a>> {
        self.unknown.iter().for_each(|kind| feed.count_unknown(kind));
        self.steps
    }

    /// Sends the agent's message. Each step is one model call.
    pub(super) fn send_answer(self, speaker: &MessageContext, feed: &mut SessionFeed<'_>) {
        let (mut usage, mut continues) = (speaker.usage, speaker.continues);
        let steps = self.take_steps(feed);
        // An empty answer is still a model call.
        let steps = if steps.is_empty() { vec![MessageStep::default()] } else { steps };
        for step in steps {
            // The usage belongs to the whole message, so only the first event gets it.
            let is_result_alone =
                step.text.is_empty() && step.thinking.is_empty() && step.calls.is_empty();
            if !is_result_alone || step.results.is_empty() {
                let MessageStep { text, thinking, calls, .. } = step;
                feed.send(Event {
                    role: EventRole::Assistant,
                    origin: speaker.origin,
                    text,
                    reasoning: thinking,
                    calls,
                    usage: usage.take(),
                    time: speaker.time,
                    continues: std::mem::take(&mut continues),
                    ..Event::default()
                });
            }
            feed.send_results(speaker.origin, step.results, speaker.time);
        }
    }

    /// Sends input to the agent. In each step, results come before the text.
    pub(super) fn send_input(
        self,
        speaker: &MessageContext,
        role: EventRole,
        feed: &mut SessionFeed<'_>,
    ) {
        for step in self.take_steps(feed).into_iter().filter(|step| !step.is_empty()) {
            // Results come from the agent's tools, even in a user message.
            let agent = match speaker.origin {
                EventOrigin::Subagent => EventOrigin::Subagent,
                EventOrigin::Human | EventOrigin::Agent | EventOrigin::Harness => {
                    EventOrigin::Agent
                }
            };
            feed.send_results(agent, step.results, speaker.time);
            feed.send(Event {
                role,
                origin: speaker.origin,
                text: step.text,
                time: speaker.time,
                ..Event::default()
            });
        }
    }

    /// Applies a change to each step.
    pub(super) fn each_step(&mut self, change: impl FnMut(&mut MessageStep<'a>)) {
        self.steps.iter_mut().for_each(change);
    }

    fn into_owned(self) -> ContentBlocks<'static> {
        let owned = |step: MessageStep<'_>| MessageStep {
            text: step.text.into_owned(),
            thinking: step.thinking.into_owned(),
            calls: step.calls.into_iter().map(ToolCall::into_owned).collect(),
            results: step.results.into_iter().map(ToolResult::into_owned).collect(),
        };
        ContentBlocks { steps: self.steps.into_iter().map(owned).collect(), unknown: self.unknown }
    }
}

/// Author, time and token usage of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageContext {
    pub(super) origin: EventOrigin,
    pub(super) time: Option<jiff::Timestamp>,
    pub(super) usage: Option<TokenCounts>,
    /// True if the message continues the model call before it.
    pub(super) continues: bool,
}

impl MessageContext {
    pub(super) fn new(origin: EventOrigin, time: Option<jiff::Timestamp>) -> Self {
        Self { origin, time, usage: None, continues: false }
    }
}

/// A list of calls beside the content, as in Chat messages.
#[derive(Default)]
pub(super) struct ListedCalls<'a>(pub(super) Vec<ToolCall<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for ListedCalls<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut calls = Vec::new();
        each(|BlockElement(block)| calls.extend(block.and_then(ContentBlock::into_listed_call)))
            .deserialize(deserializer)?;
        Ok(Self(calls))
    }
}

/// Maximum number of nested wrappers that are removed.
const MAX_DEPTH: usize = 4;

/// An output as text, with the outcome and error that its wrapper reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ToolOutput {
    pub(super) text: Text<'static>,
    pub(super) outcome: Option<ToolOutcome>,
    pub(super) error: Text<'static>,
}

impl<'de> Deserialize<'de> for ToolOutput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::of(raw.get(), 0))
    }
}

/// A list element with a type.
#[derive(Deserialize)]
struct TypedElement {
    #[serde(rename = "type")]
    _kind: String,
}

impl ToolOutput {
    fn of(json: &str, depth: usize) -> Self {
        let plain = |json: &str| {
            serde_json::from_str::<JsonText>(json).map(|JsonText(text)| text).unwrap_or_default()
        };
        let is_blocks =
            || serde_json::from_str::<Vec<TypedElement>>(json).is_ok_and(|all| !all.is_empty());
        // A program may print a list of objects as well: without types it is the output itself.
        if json.starts_with('[') && is_blocks() {
            let mut blocks = ContentBlocks::parse(json).unwrap_or_default();
            return Self { text: blocks.take_text(), ..Self::default() };
        }
        if json.starts_with('{') && depth < MAX_DEPTH {
            let fields: Result<BTreeMap<Cow<'_, str>, &RawValue>, _> = serde_json::from_str(json);
            if let Some(output) = fields.ok().and_then(|fields| Self::unwrap_output(&fields, depth))
            {
                return output;
            }
        }
        Self { text: plain(json), ..Self::default() }
    }

    /// Unwraps an object that only wraps an output; returns `None` if the object is the output
    /// itself.
    fn unwrap_output(fields: &BTreeMap<Cow<'_, str>, &RawValue>, depth: usize) -> Option<Self> {
        let field = |name: &str| fields.get(name).map(|raw| raw.get());
        let inner = |name: &str| field(name).map(|json| Self::of(json, depth + 1));
        // A wrapper around a wrapper keeps the inner text, but the outer one knows the outcome.
        let failed = |output: Self| Self { outcome: Some(ToolOutcome::Failed), ..output };
        // Vercel AI: `{"type": "error-text", "value": …}`.
        let kind = field("type").and_then(|json| serde_json::from_str::<String>(json).ok());
        match kind.as_deref() {
            // Only with `value`: an output may have a field `type` of its own.
            Some("text" | "json" | "content") if fields.contains_key("value") => {
                return inner("value");
            }
            Some("error-text" | "error-json") => {
                return Some(failed(inner("value").unwrap_or_default()));
            }
            Some("execution-denied") => {
                let output = inner("reason").unwrap_or_default();
                return Some(Self { outcome: Some(ToolOutcome::Rejected), ..output });
            }
            Some("text") if fields.contains_key("text") => return inner("text"),
            _ => {}
        }
        // Copilot CLI: what the model gets, and what the person sees.
        if fields.contains_key("content") && fields.contains_key("detailedContent") {
            let output = inner("content").unwrap_or_default();
            return if output.text.is_empty() { inner("detailedContent") } else { Some(output) };
        }
        // A Model Context Protocol result.
        let flag = field("isError").or_else(|| field("is_error"));
        // Beside other fields and without a flag, `content` is data, such as that of a file the
        // tool read.
        if fields.contains_key("content") && (flag.is_some() || fields.len() == 1) {
            let output = inner("content").unwrap_or_default();
            return Some(match flag {
                Some("true") => failed(output),
                Some("false") => Self { outcome: Some(ToolOutcome::Ok), ..output },
                _ => output,
            });
        }
        // Gemini's wrapper, also used by other programs.
        if fields.len() == 1 {
            if let Some(error) = inner("error").filter(|error| !error.text.is_empty()) {
                return Some(failed(Self { error: error.text, ..Self::default() }));
            }
            return ["output", "result", "text", "value"].iter().find_map(|name| inner(name));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::{EventRole, ToolOutcome};
    use super::super::test_support::survives_damage;
    use super::super::{Session, SessionCollector, SessionFormat, SessionSource, read};

    fn session(format: SessionFormat, json: &str) -> Session {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("some.json", json), &mut collector).unwrap();
        assert_eq!(reading.format, format);
        let mut sessions = collector.into_sessions();
        assert_eq!(sessions.len(), 1);
        sessions.remove(0)
    }

    /// Calls, and how each result ended, in order.
    fn calls(session: &Session) -> (Vec<&str>, Vec<(&str, ToolOutcome)>) {
        let calls = session.events.iter().flat_map(|event| &event.calls);
        let results = session.events.iter().flat_map(|event| &event.results);
        (
            calls.map(|call| call.name.as_str()).collect(),
            results.map(|result| (result.tool.as_str(), result.outcome)).collect(),
        )
    }

    fn said(session: &Session) -> Vec<(EventRole, &str)> {
        let texts = session.events.iter().map(|event| (event.role, event.text.as_str()));
        texts.filter(|(_, text)| !text.is_empty()).collect()
    }

    const ANTHROPIC: &str = r#"{"model":"claude-x","system":[{"type":"text","text":"be good"}],"messages":[
  {"role":"user","content":[{"type":"text","text":"fix it"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJDQUJD"}}]},
  {"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I look."},
    {"type":"tool_use","id":"t1","name":"bash","input":{"command":"false"}},
    {"type":"tool_use","id":"t2","name":"read","input":{"path":"a"}},
    {"type":"tool_use","id":"t3","name":"edit","input":{"path":"a"}}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"no","is_error":true},
    {"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"fn"}]},
    {"type":"tool_result","tool_use_id":"t3","is_error":true,"content":"The user doesn't want to proceed with this tool use."},
    {"type":"text","text":"go on"}]},
  {"role":"assistant","content":[{"type":"hologram","content":"shiny"},{"type":"text","text":"Done."}]}]}"#;

    #[test]
    fn anthropic_blocks_outside_of_claude_code() {
        let session = session(SessionFormat::Chat, ANTHROPIC);
        let (called, ended) = calls(&session);
        assert_eq!(called, ["bash", "read", "edit"]);
        assert_eq!(
            ended,
            [
                ("bash", ToolOutcome::Failed),
                ("read", ToolOutcome::Ok),
                ("edit", ToolOutcome::Rejected)
            ]
        );
        assert_eq!(
            said(&session),
            [
                (EventRole::System, "be good"),
                (EventRole::User, "fix it\n[image image/png 6 B]"),
                (EventRole::Assistant, "I look."),
                (EventRole::User, "go on"),
                (EventRole::Assistant, "[unknown block \"hologram\"]\nshiny\nDone."),
            ]
        );
        assert_eq!(session.events[2].reasoning.as_str(), "hm");
        assert_eq!(
            session.head.unknown_blocks.describe().unwrap(),
            "1 block not understood (1 hologram)"
        );
        assert_eq!(session.head.models, ["claude-x"]);
    }

    const RESPONSES: &str = r#"{"model":"gpt-x","instructions":"be brief","input":[
  {"role":"user","content":[{"type":"input_text","text":"list"}]},
  {"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},
  {"type":"function_call","id":"fc_1","call_id":"c1","name":"shell","arguments":"{\"command\":[\"ls\"]}"},
  {"type":"function_call_output","call_id":"c1","output":"{\"output\":\"\",\"exit_code\":2}"},
  {"type":"web_search_call","id":"ws_1","status":"completed","action":{"query":"x"}},
  {"type":"custom_tool_call","call_id":"c2","name":"apply_patch","input":"*** Begin"},
  {"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"ok"}]},
  {"type":"message","role":"assistant","content":[{"type":"output_text","text":"there"}]}]}"#;

    #[test]
    fn items_of_the_responses_interface() {
        let session = session(SessionFormat::Responses, RESPONSES);
        let (called, ended) = calls(&session);
        assert_eq!(called, ["shell", "web_search", "apply_patch"]);
        assert_eq!(
            ended,
            [
                ("shell", ToolOutcome::Failed),
                ("web_search", ToolOutcome::Ok),
                ("apply_patch", ToolOutcome::Unknown)
            ]
        );
        assert_eq!(
            said(&session),
            [
                (EventRole::System, "be brief"),
                (EventRole::User, "list"),
                (EventRole::Assistant, "there")
            ]
        );
        assert_eq!(session.head.agent, "responses");
    }

    const VERCEL: &str = r#"[{"id":"m1","role":"user","parts":[{"type":"text","text":"weather?"}]},
  {"id":"m2","role":"assistant","parts":[{"type":"step-start"},
    {"type":"reasoning","text":"hm"},
    {"type":"tool-weather","toolCallId":"c1","state":"output-available","input":{"city":"Rome"},"output":{"degrees":20}},
    {"type":"tool-invocation","toolInvocation":{"toolCallId":"c2","toolName":"map","args":{},"state":"result","result":"here"}},
    {"type":"dynamic-tool","toolName":"radar","toolCallId":"c3","state":"output-error","input":{},"errorText":"no radar"},
    {"type":"dynamic-tool","toolName":"late","toolCallId":"c4","state":"input-available","input":{}},
    {"type":"text","text":"20 degrees."}]}]"#;

    #[test]
    fn parts_of_the_vercel_sdk_keep_their_order_and_roles() {
        let session = session(SessionFormat::VercelAi, VERCEL);
        let (called, ended) = calls(&session);
        assert_eq!(called, ["weather", "map", "radar", "late"]);
        assert_eq!(
            ended,
            [
                ("weather", ToolOutcome::Ok),
                ("map", ToolOutcome::Ok),
                ("radar", ToolOutcome::Failed),
                ("late", ToolOutcome::Pending),
            ]
        );
        assert_eq!(
            said(&session),
            [(EventRole::User, "weather?"), (EventRole::Assistant, "20 degrees.")]
        );
        assert_eq!(session.head.agent, "vercel-ai");
        let core = r#"[{"role":"user","content":"go"},
      {"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"find","args":{"a":1}}]},
      {"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"find","output":{"type":"error-text","value":"gone"}}]}]"#;
        let session = self::session(SessionFormat::Chat, core);
        assert_eq!(calls(&session), (vec!["find"], vec![("find", ToolOutcome::Failed)]));
    }

    const CLINE: &str = r#"[{"role":"user","content":[{"type":"text","text":"<task>\nfix it\n</task>"},{"type":"text","text":"<environment_details>\n# Files\n</environment_details>"}],"ts":1767225600000},
  {"role":"assistant","content":[{"type":"text","text":"I look.\n<read_file>\n<path>a.rs</path>\n</read_file>"}],"ts":1767225601000},
  {"role":"user","content":[{"type":"text","text":"[read_file for 'a.rs'] Result:"},{"type":"text","text":"The tool execution failed with the following error:\n<error>\nFile not found\n</error>"},{"type":"text","text":"<environment_details>\nx\n</environment_details>"}]},
  {"role":"assistant","content":"<attempt_completion>\n<result>\nIt cannot be done.\n</result>\n</attempt_completion>"}]"#;

    #[test]
    fn calls_written_as_xml() {
        let session = session(SessionFormat::Cline, CLINE);
        let (called, ended) = calls(&session);
        assert_eq!(called, ["read_file", "attempt_completion"]);
        assert_eq!(
            ended,
            [("read_file", ToolOutcome::Failed), ("attempt_completion", ToolOutcome::Ok)]
        );
        assert_eq!(
            said(&session),
            [
                (EventRole::User, "fix it"),
                (EventRole::Assistant, "I look."),
                (EventRole::Assistant, "It cannot be done."),
            ]
        );
        assert_eq!(session.head.start.unwrap().to_string(), "2026-01-01T00:00:00Z");
    }

    const AMP: &str = r#"{"v":12,"id":"T-1","created":1767225600000,"title":"t","env":{"initial":{"trees":[{"uri":"file:///w","displayName":"w"}]}},"messages":[
  {"role":"user","content":[{"type":"text","text":"test it"}],"meta":{"sentAt":1767225601000}},
  {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"tool_use","id":"c1","name":"Bash","input":{"cmd":"cargo test"},"complete":true},
    {"type":"tool_use","id":"c2","name":"Read","input":{}},{"type":"tool_use","id":"c3","name":"Edit","input":{}}],"state":{"type":"complete","stopReason":"tool_use"},
    "usage":{"model":"claude-x","inputTokens":10,"outputTokens":5,"cacheReadInputTokens":100,"cacheCreationInputTokens":7,"timestamp":"2026-01-01T00:00:03Z"}},
  {"role":"user","content":[{"type":"tool_result","toolUseID":"c1","run":{"status":"done","result":{"output":"failed","exitCode":101}}},
    {"type":"tool_result","toolUseID":"c2","run":{"status":"error","error":{"message":"no file"}}},
    {"type":"tool_result","toolUseID":"c3","run":{"status":"rejected-by-user"}}]},
  {"role":"assistant","content":[{"type":"text","text":"It fails."}]}]}"#;

    #[test]
    fn threads_of_amp() {
        let session = session(SessionFormat::Amp, AMP);
        let (called, ended) = calls(&session);
        assert_eq!(called, ["Bash", "Read", "Edit"]);
        assert_eq!(
            ended,
            [
                ("Bash", ToolOutcome::Failed),
                ("Read", ToolOutcome::Failed),
                ("Edit", ToolOutcome::Rejected)
            ]
        );
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.agent.as_str()), ("T-1", "amp"));
        assert_eq!((head.cwd.as_deref(), head.models[0].as_str()), (Some("/w"), "claude-x"));
        let usage = session.events[1].usage.unwrap();
        assert_eq!((usage.input, usage.output, usage.cached), (17, 5, 100));
        assert_eq!(session.events[2].results[0].exit_code, Some(101));
        assert_eq!(session.events[2].results[1].error.as_str(), "no file");
    }

    /// 1 human turn, 2 model calls, 1 call that worked.
    const FACTORY: &str = r#"{"type":"session_start","id":"f-1","title":"t","cwd":"/w"}
{"type":"message","id":"1","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":[{"type":"text","text":"look"}]}}
{"type":"message","id":"2","timestamp":"2026-01-01T00:00:01Z","message":{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Execute","input":{"command":"ls"}}]}}
{"type":"message","id":"3","timestamp":"2026-01-01T00:00:02Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a.rs"}]}}
{"type":"message","id":"4","timestamp":"2026-01-01T00:00:03Z","message":{"role":"assistant","content":[{"type":"text","text":"There."}]}}
"#;

    /// 1 human turn, 1 model message with a call; results are not kept.
    const CLINE_CALLS: &str = r#"[{"role":"user","content":[{"type":"text","text":"<task>\nlook\n</task>"},{"type":"text","text":"\n# task_progress List\n\nfail"},{"type":"text","text":"<environment_details>\n# Mode\n</environment_details>"}],"ts":1777073160794},
{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"use_subagents","input":{"prompt_1":"Analyze"},"call_id":"t1"}],"modelInfo":{"modelId":"m-1","providerId":"p"},"metrics":{"tokens":{"prompt":10,"completion":6,"cached":4}},"ts":1777073173494},
{"role":"user","content":[{"type":"text","text":"[subagents] Result:\nTotal: 5\nFailed: 1"},{"type":"text","text":"<environment_details>\n# Mode\n</environment_details>"}],"ts":1777073273494},
{"role":"assistant","content":[{"type":"text","text":"There."}],"ts":1777073373494}]"#;

    #[test]
    fn results_of_cline_find_their_calls() {
        let session = session(SessionFormat::Cline, CLINE_CALLS);
        assert_eq!(said(&session), [(EventRole::User, "look"), (EventRole::Assistant, "There.")]);
        assert_eq!(session.head.models, ["m-1"]);
        let usage = session.events[1].usage.unwrap();
        assert_eq!((usage.input, usage.output, usage.cached), (10, 6, 4));
        let result = &session.events[2].results[0];
        assert_eq!((result.call_id.as_str(), result.tool.as_str()), ("t1", "use_subagents"));
        assert_eq!(session.events.len(), 4);
    }

    const CURSOR_TURNS: &str = r#"{"role":"user","message":{"content":[{"type":"text","text":"<timestamp>Tuesday, Aug 4, 2026, 2:56 PM (UTC-7)</timestamp>\n<user_query>\nlook\n</user_query>"}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"I look."}]}}
{"type":"turn_ended","status":"success"}
{"role":"assistant","message":{"content":[{"type":"text","text":"There is"}]}}
{"type":"turn_ended","status":"error","error":"User aborted request"}
"#;

    #[test]
    fn the_time_and_the_end_of_turns_of_cursor() {
        let session = session(SessionFormat::CursorAgent, CURSOR_TURNS);
        assert_eq!(session.head.start.unwrap().to_string(), "2026-08-04T21:56:00Z");
        assert!(session.head.unknown_blocks.is_empty());
        assert_eq!(
            said(&session)[..2],
            [(EventRole::User, "look"), (EventRole::Assistant, "I look.")]
        );
        let last = session.events.last().unwrap();
        assert_eq!(last.mark, Some(crate::EventMark::Interrupted));
    }

    const CURSOR: &str = r#"{"role":"user","message":{"content":[{"type":"text","text":"<user_query>\nlook\n</user_query>"}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"Read","input":{"path":"a"}}]}}
"#;

    /// 1 human turn, 1 call that failed.
    const CLAUDE_AI: &str = r#"[{"uuid":"cl-1","name":"t","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:01:00Z","chat_messages":[
  {"uuid":"m1","sender":"human","text":"look","created_at":"2026-01-01T00:00:00Z","content":[{"type":"text","text":"look"}]},
  {"uuid":"m2","sender":"assistant","text":"","created_at":"2026-01-01T00:00:05Z","content":[{"type":"tool_use","name":"repl","input":{"code":"1/0"}},{"type":"tool_result","name":"repl","content":[{"type":"text","text":"boom"}],"is_error":true},{"type":"text","text":"It fails."}]}]}]"#;

    /// 2 samples, each with 1 call; that of the second failed.
    const INSPECT: &str = r#"{"version":2,"status":"success","eval":{"model":"m-1"},"samples":[
  {"id":"a","epoch":1,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":"bash","arguments":{"cmd":"ls"},"type":"function"}]},{"role":"tool","content":"a.rs","tool_call_id":"c1","function":"bash"}]},
  {"id":"b","epoch":1,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":"bash","arguments":{"cmd":"x"}}]},{"role":"tool","content":"","tool_call_id":"c1","error":{"type":"timeout","message":"too slow"}}]}]}"#;

    #[test]
    fn programs_that_keep_messages_as_they_were_sent() {
        let factory = session(SessionFormat::Factory, FACTORY);
        assert_eq!(calls(&factory), (vec!["Execute"], vec![("Execute", ToolOutcome::Ok)]));
        let head = &factory.head;
        assert_eq!(
            (head.id.as_str(), head.agent.as_str(), head.cwd.as_deref()),
            ("f-1", "factory", Some("/w"))
        );
        let cursor = session(SessionFormat::CursorAgent, CURSOR);
        assert_eq!(calls(&cursor), (vec!["Read"], vec![]));
        assert_eq!(said(&cursor), [(EventRole::User, "look"), (EventRole::Assistant, "I look.")]);
        let claude = session(SessionFormat::ClaudeAi, CLAUDE_AI);
        assert_eq!(calls(&claude), (vec!["repl"], vec![("repl", ToolOutcome::Failed)]));
        assert_eq!(said(&claude), [(EventRole::User, "look"), (EventRole::Assistant, "It fails.")]);
        assert_eq!((claude.head.id.as_str(), claude.head.agent.as_str()), ("cl-1", "claude-ai"));
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("log.json", INSPECT), &mut collector).unwrap();
        assert_eq!((reading.format, reading.sessions), (SessionFormat::Inspect, 2));
        let sessions = collector.into_sessions();
        assert_eq!(calls(&sessions[0]), (vec!["bash"], vec![("bash", ToolOutcome::Unknown)]));
        assert_eq!(calls(&sessions[1]), (vec!["bash"], vec![("bash", ToolOutcome::Failed)]));
        assert_eq!(sessions[1].head.agent, "inspect");
    }

    #[test]
    fn langchain_names_the_speaker_in_the_type() {
        let json = r#"{"messages":[{"type":"human","role":"user","content":"go"},
      {"type":"ai","content":"","tool_calls":[{"name":"find","args":{"a":1},"id":"c1","type":"tool_call"}]},
      {"type":"tool","content":"gone","tool_call_id":"c1","status":"error"}]}"#;
        let session = session(SessionFormat::Chat, json);
        assert_eq!(calls(&session), (vec!["find"], vec![("find", ToolOutcome::Failed)]));
    }

    #[test]
    fn damage_does_no_harm() {
        for (format, fixture) in [
            (SessionFormat::Chat, ANTHROPIC),
            (SessionFormat::Responses, RESPONSES),
            (SessionFormat::VercelAi, VERCEL),
            (SessionFormat::Cline, CLINE),
            (SessionFormat::Amp, AMP),
            (SessionFormat::Factory, FACTORY),
            (SessionFormat::CursorAgent, CURSOR),
            (SessionFormat::ClaudeAi, CLAUDE_AI),
            (SessionFormat::Inspect, INSPECT),
        ] {
            survives_damage(format, fixture.as_bytes());
        }
    }
}
