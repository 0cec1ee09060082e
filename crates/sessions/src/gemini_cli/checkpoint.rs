//! Reads checkpoints of `/chat save`: `Content`s of Gemini's API, without message ids and times.

use serde::Deserialize;

use super::message::{FunctionResponse, exit_code, is_harness};
use crate::content::MediaInfo;
use crate::event::{Event, EventOrigin, EventRole, ToolCall, ToolOutcome, ToolResult};
use crate::feed::SessionFeed;
use crate::text::Text;
use crate::wire::{JsonText, LenientFlag, LenientList, LenientObject};

/// The program's own answer to the context that it set up.
const CANNED: &str = "Got it. Thanks for the context!";

/// One `Content`.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct CheckpointTurn<'a> {
    role: Text<'a>,
    parts: LenientList<CheckpointPart<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct CheckpointPart<'a> {
    text: Text<'a>,
    thought: LenientFlag,
    inline_data: LenientObject<MediaInfo>,
    function_call: LenientObject<FunctionCall<'a>>,
    function_response: LenientObject<FunctionResponse<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct FunctionCall<'a> {
    id: Text<'a>,
    name: Text<'a>,
    args: JsonText,
}

/// The content of a result as iFlow writes it, a descendant of Gemini CLI.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct WrappedResponse<'a> {
    response_parts: LenientObject<CheckpointPart<'a>>,
    function_response: LenientObject<FunctionResponse<'a>>,
}

/// Reads such a content; `None` if it has another form.
pub(crate) fn wrapped_result(json: &str) -> Option<ToolResult<'static>> {
    let LenientObject(wrapped) =
        serde_json::from_str::<LenientObject<WrappedResponse<'_>>>(json).ok()?;
    let wrapped = wrapped?;
    let inner = wrapped.response_parts.0.and_then(|part| part.function_response.0);
    inner.or(wrapped.function_response.0).map(|response| result(response).into_owned())
}

impl CheckpointTurn<'_> {
    /// Sends the rules that the model was given.
    pub(super) fn send_rules(self, feed: &mut SessionFeed<'_>) {
        for part in self.parts.0 {
            feed.send_text(EventRole::System, EventOrigin::Harness, part.text, None);
        }
    }

    /// Sends the events of the turn.
    pub(super) fn send(self, feed: &mut SessionFeed<'_>) {
        let (mut text, mut reasoning) = (Text::default(), Text::default());
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for part in self.parts.0 {
            let said = if part.thought.is_set() { &mut reasoning } else { &mut text };
            said.append(&part.text);
            if let Some(media) = part.inline_data.0 {
                text.append(&media.note("media"));
            }
            if let Some(call) = part.function_call.0 {
                let FunctionCall { id, name, args } = call;
                calls.push(ToolCall { id, name, arguments: args.0 });
            }
            results.extend(part.function_response.0.map(result));
        }
        if self.role.as_str() == "model" {
            let is_canned = calls.is_empty() && text.as_str() == CANNED;
            let origin = if is_canned { EventOrigin::Harness } else { EventOrigin::Agent };
            let event =
                Event { role: EventRole::Assistant, origin, text, reasoning, ..Event::default() };
            // The canned answer did not come from a model call.
            feed.send(Event { calls, continues: is_canned, ..event });
            return;
        }
        feed.send_results(EventOrigin::Agent, results, None);
        let origin = if is_harness(&text) { EventOrigin::Harness } else { EventOrigin::Human };
        feed.send(Event { role: EventRole::User, origin, text, ..Event::default() });
    }
}

fn result(function: FunctionResponse<'_>) -> ToolResult<'_> {
    let response = function.response.0.unwrap_or_default();
    let exit_code = exit_code(&response.output);
    let cancelled = response.error.starts_with("[Operation Cancelled]");
    let outcome = match exit_code {
        // A cancellation is written as an error.
        _ if cancelled => ToolOutcome::Rejected,
        Some(code) if code != 0 => ToolOutcome::Failed,
        _ if !response.error.is_empty() => ToolOutcome::Failed,
        _ => ToolOutcome::Ok,
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
