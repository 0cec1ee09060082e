//! Parses one chat message and converts it to events. Calls and results may also stand between tags
//! in the text, the way many models are trained on them: `<tool_call>{"name": …, "arguments":
//! …}</tool_call>` and `<tool_response>{"tool_call_id": …, "name": …, "content":
//! …}</tool_response>`.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess};

use crate::blocks::{ContentBlock, ContentBlocks, ListedCalls, MessageContext, MessageStep, xml};
use crate::content::{ApiFunction, add_thinking, split_thinking};
use crate::event::{Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolResult};
use crate::failure;
use crate::feed::SessionFeed;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{AnyJson, JsonText, JsonValue, LenientInt, LenientObject, deserialize_any_json};

/// The member of a group chat that runs the others' code. Without code to run, it only comments.
const TERMINAL: &str = "Computer_terminal";

/// Position of a message, which can determine the speaker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MessagePosition {
    Anywhere,
    /// First in a `history`. In a group of agents (Who&When), this is the user's task, whichever
    /// speaker is named.
    FirstOfHistory,
    /// Later in a `history`. In a group of agents, each message names its agent.
    InHistory,
}

impl MessagePosition {
    /// Returns the position of the first message in the list of this name.
    pub(super) fn of_list(name: &str) -> Self {
        if name == "history" { MessagePosition::FirstOfHistory } else { MessagePosition::Anywhere }
    }

    /// Returns the position of the next message.
    pub(super) fn next(self) -> Self {
        if self == MessagePosition::Anywhere { self } else { MessagePosition::InHistory }
    }
}

#[derive(Default)]
pub(super) struct ChatMessage<'a> {
    pub(super) role: Text<'a>,
    /// `content`, or `parts` in formats that call it so.
    pub(super) content: ContentBlocks<'a>,
    pub(super) parts: ContentBlocks<'a>,
    /// The message as a block, for items of the Responses API.
    pub(super) item: ContentBlock<'a>,
    pub(super) model: Text<'a>,
    pub(super) tool_calls: ListedCalls<'a>,
    /// Calls that the parts contain as well (Vercel AI).
    pub(super) tool_invocations: ContentBlocks<'a>,
    pub(super) function_call: LenientObject<ApiFunction<'a>>,
    pub(super) time: Moment,
    pub(super) usage: LenientObject<ChatTokens<'a>>,
    reasoning: Text<'a>,
}

/// Token counts of one model call, under the names of several programs.
#[derive(Default)]
pub(super) struct ChatTokens<'a> {
    /// Amp stores the model here.
    model: Text<'a>,
    timestamp: Moment,
    input: LenientInt,
    output: LenientInt,
    cached: LenientInt,
    written: LenientInt,
    /// Cached tokens that the input count includes, as in `OpenAI`'s counts.
    included: LenientInt,
}

deserialize_any_json!(ChatTokens<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for ChatTokens<'a> {
    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "model" => self.model = map.next_value()?,
                "timestamp" => self.timestamp = map.next_value()?,
                "inputTokens" | "input_tokens" | "promptTokens" | "prompt_tokens" => {
                    self.input = map.next_value()?;
                }
                "outputTokens" | "output_tokens" | "completionTokens" | "completion_tokens" => {
                    self.output = map.next_value()?;
                }
                "cacheReadInputTokens"
                | "cacheReadTokens"
                | "cache_read_input_tokens"
                | "input_tokens_cache_read" => self.cached = map.next_value()?,
                "cacheCreationInputTokens"
                | "cacheWriteTokens"
                | "cache_creation_input_tokens"
                | "input_tokens_cache_write" => self.written = map.next_value()?,
                // Cline wraps its counts, and counts cached tokens apart.
                "tokens" => {
                    let counts = map.next_value::<JsonValue>()?;
                    self.input = counts.part("/prompt");
                    self.output = counts.part("/completion");
                    self.cached = counts.part("/cached");
                }
                "prompt_tokens_details" | "input_tokens_details" => {
                    self.included = map.next_value::<JsonValue>()?.part("/cached_tokens");
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl ChatTokens<'_> {
    pub(super) fn usage(&self) -> Option<TokenCounts> {
        // OpenAI counts cached tokens as input, Anthropic does not.
        let included = self.included.count();
        let input = self.input.count().saturating_sub(included);
        let usage = TokenCounts {
            input: input.saturating_add(self.written.count()),
            output: self.output.count(),
            cached: self.cached.count().max(included),
        };
        (usage != TokenCounts::default()).then_some(usage)
    }
}

/// Converts a call in the old format without ids. Only one call could be open, so its name
/// identifies it.
fn legacy_call(function: ApiFunction<'_>) -> ToolCall<'_> {
    let id = function.name.clone();
    function.into_call(id)
}

impl<'a> ChatMessage<'a> {
    /// Adds reasoning from a separate field.
    pub(super) fn think(&mut self, thought: Text<'a>) {
        add_thinking(&mut self.reasoning, thought);
    }

    pub(super) fn send(mut self, feed: &mut SessionFeed<'_>, place: MessagePosition, agent: &str) {
        agent.clone_into(&mut feed.head.agent);
        let is_named = !self.item.name.is_empty() && self.item.call_id.is_empty();
        self.content.append(std::mem::take(&mut self.parts));
        if !self.role.is_empty() && !self.content.has_text() {
            // A refusal, or the text of an export, in place of content.
            self.content.say_first(std::mem::take(&mut self.item.text));
        }
        // The Vercel AI SDK repeats the calls of the parts here.
        if !self.content.has_calls() {
            self.content.append(std::mem::take(&mut self.tool_invocations));
        }
        if let Some(tokens) = &self.usage.0 {
            self.time = Moment(self.time.0.or(tokens.timestamp.0));
        }
        // LangChain stores the speaker in the type.
        if self.role.is_empty()
            && matches!(self.item.kind.as_str(), "human" | "ai" | "tool" | "system" | "developer")
        {
            self.role = self.item.kind.clone();
        }
        match (self.role.as_str(), place) {
            ("user" | "assistant", MessagePosition::FirstOfHistory) if is_named => {
                self.say(EventRole::User, EventOrigin::Human, feed);
            }
            ("user" | "assistant", MessagePosition::InHistory) if is_named => {
                self.send_member(feed);
            }
            ("assistant" | "gpt" | "model" | "ai", _) => self.send_answer(feed),
            ("user" | "human", _) => self.send_given(feed),
            ("tool" | "function" | "observation" | "toolResult", _) => self.send_results(feed),
            ("system" | "developer" | "_system_prompt", _) => {
                self.say(EventRole::System, EventOrigin::Harness, feed);
            }
            ("", _) if self.item.kind.as_str() == "turn_ended" => self.send_end(feed),
            ("", _) if !self.item.kind.is_empty() => self.send_item(feed),
            // Marks in Kimi's `context.jsonl`, and records without a kind.
            ("_checkpoint" | "_usage" | "", _) => feed.notes.ignored_records += 1,
            // A group of agents with their names in the role.
            (_, MessagePosition::FirstOfHistory) => {
                self.say(EventRole::User, EventOrigin::Human, feed);
            }
            (_, MessagePosition::InHistory) => self.send_answer(feed),
            (role, _) => {
                feed.count_unknown(role);
                feed.notes.ignored_records += 1;
            }
        }
    }

    fn say(self, role: EventRole, origin: EventOrigin, feed: &mut SessionFeed<'_>) {
        self.content.send_input(&MessageContext::new(origin, self.time.0), role, feed);
    }

    /// Sends what ended a turn of Cursor's agent, unless it ended by itself.
    fn send_end(self, feed: &mut SessionFeed<'_>) {
        if self.item.state.as_str() != "error" {
            feed.notes.ignored_records += 1;
            return;
        }
        let is_stop = self.item.error.contains("aborted");
        let mark = Some(if is_stop { EventMark::Interrupted } else { EventMark::ApiError });
        feed.send(Event { text: self.item.error, time: self.time.0, mark, ..Event::default() });
    }

    /// Sends a message to the agent, from the user, the harness or tools.
    fn send_given(mut self, feed: &mut SessionFeed<'_>) {
        let mut origin = EventOrigin::Human;
        let mut time = self.time;
        self.content.each_step(|step| {
            if let Some((stated, rest)) = take_time(&step.text) {
                (time, step.text) = (Moment(time.0.or(Some(stated))), rest.into());
            }
            if let Some(given) = xml::parse_prompt(&step.text) {
                step.text = given.text.into();
                step.results.extend(given.results);
                if given.is_harness {
                    origin = EventOrigin::Harness;
                }
            }
        });
        self.time = time;
        self.say(EventRole::User, origin, feed);
    }

    /// Sends an item of the Responses API that is not a message.
    fn send_item(mut self, feed: &mut SessionFeed<'_>) {
        if self.item.text.is_empty() {
            self.item.text = self.content.take_text();
        }
        let mut blocks = ContentBlocks::default();
        blocks.add(self.item);
        if !blocks.is_empty() {
            feed.head.add_model(&self.model);
            blocks.send_answer(&MessageContext::new(EventOrigin::Agent, self.time.0), feed);
        }
    }

    /// Sends a message in a group of agents, where only the first message was the user's.
    fn send_member(mut self, feed: &mut SessionFeed<'_>) {
        let time = self.time.0;
        if self.item.name.as_str() != TERMINAL {
            return self.send_answer(feed);
        }
        let text = self.content.take_text();
        let result = ToolResult { tool: self.item.name, ..failure::result_of(text) };
        // Without an exit code, the terminal only reports that there was no code to run.
        if result.exit_code.is_none() {
            return feed.send_text(EventRole::User, EventOrigin::Harness, result.text, time);
        }
        feed.send_results(EventOrigin::Agent, vec![result], time);
    }

    fn send_answer(mut self, feed: &mut SessionFeed<'_>) {
        feed.head.add_model(&self.model);
        if let Some(tokens) = &self.usage.0 {
            feed.head.add_model(&tokens.model);
        }
        self.content.each_step(take_from_text);
        self.content.think_first(self.reasoning);
        for call in self.tool_calls.0 {
            // Some exports write a call among the blocks as well.
            if call.id.is_empty() || !self.content.has_call(&call.id) {
                self.content.call(call);
            }
        }
        if let Some(function) = self.function_call.0 {
            self.content.call(legacy_call(function));
        }
        let usage = self.usage.0.as_ref().and_then(ChatTokens::usage);
        let speaker =
            MessageContext { usage, ..MessageContext::new(EventOrigin::Agent, self.time.0) };
        self.content.send_answer(&speaker, feed);
    }

    fn send_results(mut self, feed: &mut SessionFeed<'_>) {
        if self.content.has_results() {
            return self.say(EventRole::User, EventOrigin::Harness, feed);
        }
        let text = self.content.take_text();
        // The predecessor of `tool_calls` had one call per message and no ids; `legacy_call` uses
        // the name as the id.
        let is_old = self.role.as_str() == "function" && self.item.call_id.is_empty();
        let results = parse_tagged_results(&text).unwrap_or_else(|| {
            let name = self.item.name.clone();
            if is_old {
                self.item.call_id = name;
            }
            self.item.text = text;
            // A row number is not a call id.
            self.item.id = Text::default();
            vec![self.item.take_result()]
        });
        feed.send_results(EventOrigin::Agent, results, self.time.0);
    }
}

/// Takes the time that Cursor puts in front of a request, `<timestamp>Tuesday, Aug 4, 2026, 2:56 PM
/// (UTC-7)</timestamp>`; its transcripts have no other.
fn take_time(text: &str) -> Option<(Timestamp, String)> {
    let (time, rest) = text.trim_start().strip_prefix("<timestamp>")?.split_once("</timestamp>")?;
    let (_, time) = time.split_once(", ")?;
    let (time, zone) = time.split_once(" (UTC")?;
    let time = DateTime::strptime("%b %d, %Y, %I:%M %p", time.trim()).ok()?;
    let zone = zone.trim_end_matches(')');
    let (hours, minutes) = zone.split_once(':').unwrap_or((zone, "0"));
    let hours: i32 = if hours.is_empty() { 0 } else { hours.parse().ok()? };
    let minutes: i32 = minutes.parse().ok()?;
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let seconds = hours.checked_mul(3600)?.checked_add(sign * minutes.checked_mul(60)?)?;
    let stated = Offset::from_seconds(seconds).ok()?.to_timestamp(time).ok()?;
    Some((stated, rest.trim_start().to_owned()))
}

/// Moves reasoning and calls out of the agent's text.
fn take_from_text(step: &mut MessageStep<'_>) {
    let (thought, text) = split_thinking(std::mem::take(&mut step.text));
    add_thinking(&mut step.thinking, thought);
    let (text, tagged) = take_tagged_calls(text);
    step.calls.extend(tagged);
    step.text = match xml::take_calls(&text) {
        Some(written) => {
            step.calls.extend(written.calls);
            step.results.extend(written.results);
            written.text.into()
        }
        None => text,
    };
}

const CALL: (&str, &str) = ("<tool_call>", "</tool_call>");
const RESPONSE: (&str, &str) = ("<tool_response>", "</tool_response>");

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct TaggedResponse<'a> {
    tool_call_id: Text<'a>,
    name: Text<'a>,
    content: Option<JsonText>,
}

/// Splits an answer into its text and its calls. The calls have no ids.
fn take_tagged_calls(text: Text<'_>) -> (Text<'_>, Vec<ToolCall<'static>>) {
    let mut calls = Vec::new();
    let rest = strip_tagged(&text, CALL, |inside| {
        let function: Option<ApiFunction<'_>> = serde_json::from_str(inside).ok();
        let call = function.map(|function| function.into_call(Text::default()));
        calls.extend(call.filter(|call| !call.name.is_empty()).map(ToolCall::into_owned));
    });
    match rest {
        // Tags without a valid call stay in the text.
        Some(rest) if !calls.is_empty() => (rest.into(), calls),
        _ => (text, calls),
    }
}

/// Parses the results of a text that contains nothing else; `None` if it has no tags.
fn parse_tagged_results(text: &str) -> Option<Vec<ToolResult<'static>>> {
    let mut results = Vec::new();
    strip_tagged(text, RESPONSE, |inside| {
        let response: TaggedResponse<'_> = serde_json::from_str(inside).unwrap_or_default();
        let content = match response.content {
            Some(JsonText(content)) => content,
            None => inside.to_owned().into(),
        };
        results.push(ToolResult {
            call_id: response.tool_call_id.into_owned(),
            tool: response.name.into_owned(),
            ..failure::result_of(content)
        });
    })?;
    Some(results)
}

/// Calls `found` with the content between each pair of tags. Returns the text without them; `None`
/// if there is no pair.
fn strip_tagged(text: &str, tags: (&str, &str), mut found: impl FnMut(&str)) -> Option<String> {
    let (mut rest, mut from) = (String::new(), text);
    while let Some((before, tagged)) = from.split_once(tags.0)
        && let Some((inside, after)) = tagged.split_once(tags.1)
    {
        rest.push_str(before.trim_end());
        found(inside.trim());
        from = after;
    }
    (from.len() < text.len()).then(|| (rest + from.trim_end()).trim().to_owned())
}
