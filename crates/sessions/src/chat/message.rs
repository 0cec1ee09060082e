//! One chat message and what it becomes in the neutral model.

use crate::content::Content;
use crate::event::{Event, Origin, Role, ToolCall, ToolResult};
use crate::feed::Feed;
use crate::function_call::{Call, Function};
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{List, Object};
use crate::{failure, thinking};

use super::tags;

/// The member of a group chat that runs the others' code and speaks when there is none to run.
const TERMINAL: &str = "Computer_terminal";

/// Where a message stands, which can decide who speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Anywhere,
    /// First in a `history`: in a group of agents (Who&When) the human's task, whoever is said
    /// to speak.
    FirstOfHistory,
    /// Later in a `history`: in a group of agents all of them are named.
    InHistory,
}

impl Place {
    /// Of the first message in the list of that name.
    pub(super) fn of_list(name: &str) -> Self {
        if name == "history" { Place::FirstOfHistory } else { Place::Anywhere }
    }

    /// Of the next message.
    pub(super) fn after(self) -> Self {
        if self == Place::Anywhere { self } else { Place::InHistory }
    }
}

#[derive(Default)]
pub(super) struct Message<'a> {
    pub(super) role: Text<'a>,
    pub(super) content: Content<'a>,
    /// The model's words in place of content.
    pub(super) refusal: Text<'a>,
    pub(super) name: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) tool_calls: List<Call<'a>>,
    pub(super) function_call: Object<Function<'a>>,
    pub(super) tool_call_id: Text<'a>,
    pub(super) time: Moment,
    reasoning: Text<'a>,
}

/// A call before there were ids: only one could be open, so its name tells it.
fn old_call(function: Function<'_>) -> ToolCall<'_> {
    let id = function.name.clone();
    function.into_call(id)
}

impl<'a> Message<'a> {
    /// Adds a thought from a field of its own.
    pub(super) fn think(&mut self, thought: Text<'a>) {
        thinking::add(&mut self.reasoning, thought);
    }

    #[expect(clippy::match_same_arms, reason = "the rows are read from top to bottom")]
    pub(super) fn send(self, feed: &mut Feed<'_>, place: Place) {
        "chat".clone_into(&mut feed.head.agent);
        let is_named = !self.name.is_empty() && self.tool_call_id.is_empty();
        match (self.role.as_str(), place) {
            ("user" | "assistant", Place::FirstOfHistory) if is_named => {
                self.say(Role::User, Origin::Human, feed);
            }
            ("user" | "assistant", Place::InHistory) if is_named => self.send_member(feed),
            ("assistant" | "gpt" | "model", _) => self.send_answer(feed),
            ("user" | "human", _) => self.say(Role::User, Origin::Human, feed),
            ("tool" | "function" | "observation", _) => self.send_results(feed),
            ("system" | "developer", _) => self.say(Role::System, Origin::Harness, feed),
            ("", _) => feed.notes.ignored_records += 1,
            // A group of agents whose names stand in the role.
            (_, Place::FirstOfHistory) => self.say(Role::User, Origin::Human, feed),
            (_, Place::InHistory) => self.send_answer(feed),
            _ => feed.notes.ignored_records += 1,
        }
    }

    fn say(self, role: Role, origin: Origin, feed: &mut Feed<'_>) {
        let (text, time) = (self.content.0, self.time.0);
        feed.event(Event { role, origin, text, time, ..Event::default() });
    }

    /// One of a group of agents: only the first message was the human's.
    fn send_member(self, feed: &mut Feed<'_>) {
        let time = self.time.0;
        if self.name.as_str() != TERMINAL {
            return self.send_answer(feed);
        }
        let result = ToolResult { tool: self.name, ..failure::result_of(self.content.0) };
        if result.exit_code.is_none() {
            return feed.say(Role::User, Origin::Harness, result.text, time);
        }
        feed.results(Origin::Agent, vec![result], time);
    }

    fn send_answer(self, feed: &mut Feed<'_>) {
        feed.head.model(&self.model);
        let (thought, text) = thinking::split(self.content.0);
        let (mut text, tagged) = tags::take_calls(text);
        if text.is_empty() {
            text = self.refusal;
        }
        let mut reasoning = self.reasoning;
        thinking::add(&mut reasoning, thought);
        let calls = self.tool_calls.0.into_iter().filter_map(Call::into_call);
        let old = self.function_call.0.map(old_call);
        let calls = calls.chain(old).chain(tagged).collect();
        let (role, origin, time) = (Role::Assistant, Origin::Agent, self.time.0);
        feed.event(Event { role, origin, text, reasoning, calls, time, ..Event::default() });
    }

    fn send_results(self, feed: &mut Feed<'_>) {
        let is_old = self.role.as_str() == "function" && self.tool_call_id.is_empty();
        let results = tags::results(&self.content.0).unwrap_or_else(|| {
            let call_id = if is_old { self.name.clone() } else { self.tool_call_id };
            vec![ToolResult { call_id, tool: self.name, ..failure::result_of(self.content.0) }]
        });
        feed.results(Origin::Agent, results, self.time.0);
    }
}
