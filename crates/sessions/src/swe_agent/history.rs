//! The messages of a SWE-agent run, for files that hold no steps, and for the task of the others.

use serde::Deserialize;

use super::{call_of, observation};
use crate::content::Content;
use crate::event::{Event, Origin, Role, ToolResult};
use crate::feed::Feed;
use crate::function_call::Call;
use crate::text::Text;
use crate::wire::{Flag, List};

/// Messages before the first answer that are kept.
pub(super) const MAX_OPENING: usize = 8;

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Message<'a> {
    role: Text<'a>,
    pub(super) content: Content<'a>,
    #[serde(rename = "message_type")]
    kind: Text<'a>,
    thought: Text<'a>,
    action: Text<'a>,
    tool_calls: List<Call<'a>>,
    /// One; a list of several would come as lines.
    tool_call_ids: Text<'a>,
    is_demo: Flag,
}

impl Message<'_> {
    /// Shown to the model as an example, not done by it.
    pub(super) fn is_demonstration(&self) -> bool {
        self.is_demo.is_set() || self.kind.as_str() == "demonstration"
    }

    pub(super) fn role(&self) -> Role {
        match self.role.as_str() {
            "assistant" => Role::Assistant,
            "user" => Role::User,
            "tool" => Role::Tool,
            _ => Role::System,
        }
    }
}

/// The calls that wait for the next observation.
#[derive(Default)]
pub(super) struct History {
    calls: u64,
    open: Option<String>,
}

impl History {
    /// Hands a message on.
    pub(super) fn send(&mut self, message: Message<'_>, feed: &mut Feed<'_>) {
        if message.is_demonstration() {
            return;
        }
        let role = message.role();
        let Content(text) = message.content;
        match role {
            Role::Assistant => {
                let text = if message.thought.is_empty() { text } else { message.thought };
                self.calls += 1;
                let id = format!("call {}", self.calls);
                let given = message.tool_calls.0.into_iter().filter_map(Call::into_call);
                let mut calls: Vec<_> = given.collect();
                if calls.is_empty() {
                    calls.extend(call_of(&message.action, id.as_str().into()));
                }
                for call in calls.iter_mut().filter(|call| call.id.is_empty()) {
                    call.id = id.as_str().into();
                }
                self.open = calls.first().map(|call| call.id.as_str().to_owned());
                feed.event(Event { role, origin: Origin::Agent, text, calls, ..Event::default() });
            }
            Role::User | Role::Tool => {
                let named = message.tool_call_ids.lines().next().map(Text::from);
                let Some(call_id) = named.or_else(|| self.open.take().map(Text::from)) else {
                    let role = Role::User;
                    feed.event(Event { role, text, ..Event::default() });
                    return;
                };
                self.open = None;
                let result = ToolResult { call_id, ..observation::result_of(text) };
                feed.results(Origin::Agent, vec![result], None);
            }
            Role::System => feed.event(Event { role, text, ..Event::default() }),
        }
    }
}
