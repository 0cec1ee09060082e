//! Reads the messages of a SWE-agent run, for files without steps and for the task of other files.

use serde::Deserialize;

use super::{call_of, observation};
use crate::content::MessageContent;
use crate::event::{Event, EventOrigin, EventRole, ToolResult};
use crate::feed::SessionFeed;
use crate::function_call::ApiCall;
use crate::text::Text;
use crate::wire::{LenientFlag, LenientList};

/// Maximum number of messages kept from before the first answer.
pub(super) const MAX_OPENING: usize = 8;

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct SweMessage<'a> {
    role: Text<'a>,
    pub(super) content: MessageContent<'a>,
    #[serde(rename = "message_type")]
    kind: Text<'a>,
    thought: Text<'a>,
    action: Text<'a>,
    tool_calls: LenientList<ApiCall<'a>>,
    /// A single id. Several ids become separate lines.
    tool_call_ids: Text<'a>,
    is_demo: LenientFlag,
}

impl SweMessage<'_> {
    /// Returns true if the message is an example for the model and not its own work.
    pub(super) fn is_demonstration(&self) -> bool {
        self.is_demo.is_set() || self.kind.as_str() == "demonstration"
    }

    pub(super) fn role(&self) -> EventRole {
        match self.role.as_str() {
            "assistant" => EventRole::Assistant,
            "user" => EventRole::User,
            "tool" => EventRole::Tool,
            _ => EventRole::System,
        }
    }
}

/// State of a history: the number of calls, and the call that waits for its observation.
#[derive(Default)]
pub(super) struct SweHistory {
    calls: u64,
    open: Option<String>,
}

impl SweHistory {
    /// Sends a message.
    pub(super) fn send(&mut self, message: SweMessage<'_>, feed: &mut SessionFeed<'_>) {
        if message.is_demonstration() {
            return;
        }
        let role = message.role();
        let MessageContent(text) = message.content;
        match role {
            EventRole::Assistant => {
                // `content` contains the thought together with the action.
                let text = if message.thought.is_empty() { text } else { message.thought };
                self.calls += 1;
                let id = format!("call {}", self.calls);
                let given = message.tool_calls.0.into_iter().filter_map(ApiCall::into_call);
                let mut calls: Vec<_> = given.collect();
                if calls.is_empty() {
                    calls.extend(call_of(&message.action, id.as_str().into()));
                }
                for call in calls.iter_mut().filter(|call| call.id.is_empty()) {
                    call.id = id.as_str().into();
                }
                self.open = calls.first().map(|call| call.id.as_str().to_owned());
                feed.send(Event {
                    role,
                    origin: EventOrigin::Agent,
                    text,
                    calls,
                    ..Event::default()
                });
            }
            EventRole::User | EventRole::Tool => {
                let named = message.tool_call_ids.lines().next().map(Text::from);
                let Some(call_id) = named.or_else(|| self.open.take().map(Text::from)) else {
                    let role = EventRole::User;
                    feed.send(Event { role, text, ..Event::default() });
                    return;
                };
                self.open = None;
                let result = ToolResult { call_id, ..observation::result_of(text) };
                feed.send_results(EventOrigin::Agent, vec![result], None);
            }
            EventRole::System => feed.send(Event { role, text, ..Event::default() }),
        }
    }
}
