//! Reads the messages of a SWE-agent run, for files without steps and for the task of other files.

use serde::Deserialize;

use super::{call_of, observation};
use crate::content::Content;
use crate::event::{Event, Origin, Role, ToolResult};
use crate::feed::Feed;
use crate::function_call::Call;
use crate::text::Text;
use crate::wire::{Flag, List};

/// Maximum number of messages kept from before the first answer.
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
    /// A single id. Several ids become separate lines.
    tool_call_ids: Text<'a>,
    is_demo: Flag,
}

impl Message<'_> {
    /// Returns true if the message is an example for the model and not its own work.
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

/// State of a history: the number of calls, and the call that waits for its observation.
#[derive(Default)]
pub(super) struct History {
    calls: u64,
    open: Option<String>,
}

impl History {
    /// Sends a message.
    pub(super) fn send(&mut self, message: Message<'_>, feed: &mut Feed<'_>) {
        if message.is_demonstration() {
            return;
        }
        let role = message.role();
        let Content(text) = message.content;
        match role {
            Role::Assistant => {
                // `content` contains the thought together with the action.
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
