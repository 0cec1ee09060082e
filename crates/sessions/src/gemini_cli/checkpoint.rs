//! Reads checkpoints of `/chat save`: `Content`s of Gemini's API, without message ids and times.

use serde::Deserialize;

use super::message::{FunctionResponse, exit_code, is_harness};
use crate::content::Media;
use crate::event::{Event, Origin, Outcome, Role, ToolCall, ToolResult};
use crate::feed::Feed;
use crate::text::Text;
use crate::wire::{Flag, Json, List, Object};

/// The program's own answer to the context that it set up.
const CANNED: &str = "Got it. Thanks for the context!";

/// One `Content`.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Turn<'a> {
    role: Text<'a>,
    parts: List<Part<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Part<'a> {
    text: Text<'a>,
    thought: Flag,
    inline_data: Object<Media>,
    function_call: Object<FunctionCall<'a>>,
    function_response: Object<FunctionResponse<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct FunctionCall<'a> {
    id: Text<'a>,
    name: Text<'a>,
    args: Json,
}

impl Turn<'_> {
    /// Sends the events of the turn.
    pub(super) fn send(self, feed: &mut Feed<'_>) {
        let (mut text, mut reasoning) = (Text::default(), Text::default());
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for part in self.parts.0 {
            let said = if part.thought.is_set() { &mut reasoning } else { &mut text };
            said.join(&part.text);
            if let Some(media) = part.inline_data.0 {
                text.join(&media.note("media"));
            }
            if let Some(call) = part.function_call.0 {
                let FunctionCall { id, name, args } = call;
                calls.push(ToolCall { id, name, arguments: args.0 });
            }
            results.extend(part.function_response.0.map(result));
        }
        if self.role.as_str() == "model" {
            let is_canned = calls.is_empty() && text.as_str() == CANNED;
            let origin = if is_canned { Origin::Harness } else { Origin::Agent };
            let event =
                Event { role: Role::Assistant, origin, text, reasoning, ..Event::default() };
            // The canned answer did not come from a model call.
            feed.event(Event { calls, continues: is_canned, ..event });
            return;
        }
        feed.results(Origin::Agent, results, None);
        let origin = if is_harness(&text) { Origin::Harness } else { Origin::Human };
        feed.event(Event { role: Role::User, origin, text, ..Event::default() });
    }
}

fn result(function: FunctionResponse<'_>) -> ToolResult<'_> {
    let response = function.response.0.unwrap_or_default();
    let exit_code = exit_code(&response.output);
    let cancelled = response.error.starts_with("[Operation Cancelled]");
    let outcome = match exit_code {
        // A cancellation is written as an error.
        _ if cancelled => Outcome::Rejected,
        Some(code) if code != 0 => Outcome::Failed,
        _ if !response.error.is_empty() => Outcome::Failed,
        _ => Outcome::Ok,
    };
    ToolResult {
        call_id: function.id,
        tool: function.name,
        text: response.output,
        outcome,
        exit_code,
        error: response.error,
    }
}
