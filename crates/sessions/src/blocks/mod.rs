//! Reads content blocks in the formats that agents share: Anthropic's blocks, parts of `OpenAI`'s
//! Chat and Responses APIs, Gemini's parts, and blocks of the Vercel AI SDK, goose, pi and
//! `OpenTelemetry`'s `GenAI` conventions. It also reads calls written as XML into the text.
//!
//! A block of an unknown type is shown by name and counted ([`crate::UnknownBlocks`]), never dropped
//! silently. The caller knows who the speaker is.

mod block;
mod output;
#[cfg(test)]
mod tests;
pub(super) mod xml;

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{DeserializeSeed as _, MapAccess, SeqAccess};

use super::any_json::{AnyJson, deserialize_any_json};
use super::event::{Event, EventOrigin, EventRole, TokenCounts, ToolCall, ToolResult};
use super::feed::SessionFeed;
use super::text::Text;
use super::wire::each;
pub(super) use block::ContentBlock;
pub(super) use output::ToolOutput;

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
            super::thinking::add(&mut self.open_step().thinking, thought);
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
                super::thinking::add(&mut first.thinking, said);
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
