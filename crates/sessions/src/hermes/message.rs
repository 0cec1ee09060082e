//! Parses a message, which all three stores write the same way, and converts it to events. User
//! input while a tool is running (`/steer`) is at the end of the last tool result.

use serde::Deserialize;

use super::prompt::{self, split_steer};
use crate::content::{ApiFunction, MessageContent, add_thinking, split_thinking};
use crate::event::{Event, EventMark, EventOrigin, EventRole, ToolCall, ToolOutcome, ToolResult};
use crate::failure;
use crate::feed::SessionFeed;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{JsonText, LenientFlag, LenientList, LenientObject};

/// Agent name of every session in these stores.
pub(super) const AGENT: &str = "hermes";

/// A message with the role `user`, `assistant`, `tool` or `system`. Records with other roles are
/// not messages.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct HermesMessage<'a> {
    pub(super) role: Text<'a>,
    pub(super) content: MessageContent<'a>,
    pub(super) reasoning: Text<'a>,
    pub(super) reasoning_content: Text<'a>,
    pub(super) reasoning_details: Text<'a>,
    pub(super) finish_reason: Text<'a>,
    pub(super) tool_calls: LenientList<Call<'a>>,
    pub(super) tool_call_id: Text<'a>,
    pub(super) tool_name: Text<'a>,
    pub(super) name: Text<'a>,
    pub(super) timestamp: Moment,
    #[serde(rename = "_compressed_summary")]
    pub(super) is_summary: LenientFlag,
    /// Display mode on the agent's own pages. `hidden` and `internal_notification` mean that no
    /// person typed it.
    pub(super) display_kind: Text<'a>,
}

/// A tool call; `name` and `arguments` are in `function` or beside it.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
#[expect(clippy::struct_field_names, reason = "the names of the format")]
pub(super) struct Call<'a> {
    id: Text<'a>,
    call_id: Text<'a>,
    function: LenientObject<ApiFunction<'a>>,
    name: Text<'a>,
    arguments: JsonText,
    input: JsonText,
}

impl<'a> Call<'a> {
    fn into_call(self) -> ToolCall<'a> {
        let function = self.function.0.unwrap_or_default();
        let first = |one: Text<'a>, other: Text<'a>| if one.is_empty() { other } else { one };
        ToolCall {
            id: first(self.id, self.call_id),
            name: first(function.name, self.name),
            arguments: first(function.arguments.0, first(self.arguments.0, self.input.0)),
        }
    }
}

impl HermesMessage<'_> {
    /// Sends the message as one or two events.
    pub(super) fn send(self, feed: &mut SessionFeed<'_>) {
        match self.role.as_str() {
            "user" => self.send_prompt(feed),
            "assistant" => self.send_answer(feed),
            "tool" => self.send_result(feed),
            "system" | "developer" => {
                let (text, time) = (self.content.0, self.timestamp.0);
                let mark = prompt::is_summary(&text).then_some(EventMark::Compacted);
                feed.send(Event { text, time, mark, ..Event::default() });
            }
            _ => feed.notes.ignored_records += 1,
        }
    }

    fn send_prompt(self, feed: &mut SessionFeed<'_>) {
        let mut prompt = prompt::split_prompt(self.content.0, self.is_summary.is_set());
        // Hermes does not show these to the user, who has not typed them.
        if matches!(self.display_kind.as_str(), "hidden" | "internal_notification") {
            prompt.harness.append(&std::mem::take(&mut prompt.human));
        }
        let mark = prompt.is_summary.then_some(EventMark::Compacted);
        let (role, time) = (EventRole::User, self.timestamp.0);
        let (text, origin) = (prompt.harness, EventOrigin::Harness);
        feed.send(Event { role, origin, text, time, mark, ..Event::default() });
        let (text, origin) = (prompt.human, EventOrigin::Human);
        feed.send(Event { role, origin, text, time, ..Event::default() });
    }

    fn send_answer(self, feed: &mut SessionFeed<'_>) {
        let time = self.timestamp.0;
        let calls: Vec<_> = self.tool_calls.0.into_iter().map(Call::into_call).collect();
        let (thought, mut text) = split_thinking(self.content.0);
        if self.is_summary.is_set() || prompt::is_summary(&text) {
            let summary = prompt::split_prompt(text, self.is_summary.is_set());
            let mark = Some(EventMark::Compacted);
            // Not an assistant event, because no model was called for it.
            feed.send(Event { text: summary.harness, time, mark, ..Event::default() });
            // An answer may follow the summary.
            text = summary.human;
            if text.is_empty() && calls.is_empty() {
                return;
            }
        }
        let mut reasoning = self.reasoning;
        // The fields often repeat the same reasoning.
        add_thinking(&mut reasoning, self.reasoning_content);
        if reasoning.is_empty() {
            reasoning = self.reasoning_details;
        }
        add_thinking(&mut reasoning, thought);
        let (role, origin) = (EventRole::Assistant, EventOrigin::Agent);
        feed.send(Event { role, origin, text, reasoning, calls, time, ..Event::default() });
    }

    fn send_result(self, feed: &mut SessionFeed<'_>) {
        let MessageContent(text) = self.content;
        let time = self.timestamp.0;
        let steered = split_steer(&text).map(|(output, said)| (output.to_owned(), said.to_owned()));
        // `/steer` appends user input to a tool result; it becomes an event of its own.
        let (text, said) = match steered {
            Some((output, said)) => (output.into(), said.into()),
            None => (text, Text::default()),
        };
        let mut result = ToolResult {
            call_id: self.tool_call_id,
            tool: if self.tool_name.is_empty() { self.name } else { self.tool_name },
            ..failure::result_of(text)
        };
        if result.outcome == ToolOutcome::Unknown && self.finish_reason.as_str() == "error" {
            result.outcome = ToolOutcome::Failed;
        }
        feed.send_results(EventOrigin::Agent, vec![result], time);
        feed.send_text(EventRole::User, EventOrigin::Human, said, time);
    }
}
