//! Parses a message of a recorded chat and converts it to events.

use serde::Deserialize;

use crate::content::MessageContent;
use crate::event::{
    Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use crate::feed::SessionFeed;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{JsonText, LenientInt, LenientList, LenientObject};

/// One message.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct GeminiMessage<'a> {
    pub(super) id: Text<'a>,
    #[serde(rename = "type")]
    kind: Text<'a>,
    timestamp: Moment,
    content: MessageContent<'a>,
    /// Text that the user typed, if `content` also includes the files it mentions.
    #[serde(rename = "displayContent")]
    display: MessageContent<'a>,
    model: Text<'a>,
    thoughts: LenientList<GeminiThought<'a>>,
    #[serde(rename = "toolCalls")]
    calls: LenientList<GeminiCall<'a>>,
    tokens: LenientObject<GeminiTokens>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GeminiThought<'a> {
    subject: Text<'a>,
    description: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GeminiCall<'a> {
    id: Text<'a>,
    name: Text<'a>,
    args: JsonText,
    status: Text<'a>,
    result: LenientList<ResultPart<'a>>,
    #[serde(rename = "resultDisplay")]
    display: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ResultPart<'a> {
    #[serde(rename = "functionResponse")]
    function: LenientObject<FunctionResponse<'a>>,
    text: Text<'a>,
}

/// Result of a tool, as sent to the model.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct FunctionResponse<'a> {
    pub(super) id: Text<'a>,
    pub(super) name: Text<'a>,
    pub(super) response: LenientObject<FunctionOutput<'a>>,
}

/// Either an output or an error.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct FunctionOutput<'a> {
    #[serde(alias = "content")]
    pub(super) output: Text<'a>,
    pub(super) error: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GeminiTokens {
    input: LenientInt,
    output: LenientInt,
    cached: LenientInt,
    thoughts: LenientInt,
    tool: LenientInt,
}

impl GeminiTokens {
    /// Converts the counts. The input includes cached tokens; reasoning and the results of the
    /// provider's own tools are counted separately.
    fn usage(&self) -> TokenCounts {
        let cached = self.cached.count();
        TokenCounts {
            input: self.input.count().saturating_sub(cached).saturating_add(self.tool.count()),
            output: self.output.count().saturating_add(self.thoughts.count()),
            cached,
        }
    }
}

impl GeminiMessage<'_> {
    /// Sends the events of the message.
    pub(super) fn send(self, is_subagent: bool, feed: &mut SessionFeed<'_>) {
        let time = self.timestamp.0;
        let of = |origin| if is_subagent { EventOrigin::Subagent } else { origin };
        let text = self.content.0;
        match self.kind.as_str() {
            "user" => {
                // The content includes files that the user mentioned with `@`.
                let text = if self.display.0.is_empty() { text } else { self.display.0 };
                let origin =
                    if is_harness(&text) { EventOrigin::Harness } else { EventOrigin::Human };
                let (role, origin) = (EventRole::User, of(origin));
                feed.send(Event { role, origin, text, time, ..Event::default() });
            }
            "gemini" => {
                feed.head.add_model(&self.model);
                let mut reasoning = Text::default();
                for thought in self.thoughts.0 {
                    reasoning.append(&thought.subject);
                    reasoning.append(&thought.description);
                }
                let (mut calls, mut results) = (Vec::new(), Vec::new());
                for call in self.calls.0 {
                    results.extend(call.result());
                    let GeminiCall { id, name, args, .. } = call;
                    calls.push(ToolCall { id, name, arguments: args.0 });
                }
                let usage = self.tokens.0.as_ref().map(GeminiTokens::usage);
                // The model of an event says whose tokens these are.
                let model = if usage.is_some() { self.model } else { Text::default() };
                let (role, origin) = (EventRole::Assistant, of(EventOrigin::Agent));
                let said = Event { role, origin, text, reasoning, calls, ..Event::default() };
                feed.send(Event { usage, model, time, ..said });
                feed.send_results(origin, results, time);
            }
            kind @ ("info" | "warning" | "error") => {
                let mark = match kind {
                    "error" if text.contains("API Error") => Some(EventMark::ApiError),
                    _ if text.starts_with("Request cancelled") => Some(EventMark::Interrupted),
                    _ => None,
                };
                let (role, origin) = (EventRole::System, of(EventOrigin::Harness));
                feed.send(Event { role, origin, text, time, mark, ..Event::default() });
            }
            _ => feed.notes.ignored_records += 1,
        }
    }
}

impl GeminiCall<'_> {
    /// Returns the result of the call; `None` while the call is waiting or running.
    fn result(&self) -> Option<ToolResult<'static>> {
        let mut outcome = match self.status.as_str() {
            "success" => ToolOutcome::Ok,
            "error" => ToolOutcome::Failed,
            "cancelled" => ToolOutcome::Rejected,
            "" if !self.result.0.is_empty() => ToolOutcome::Unknown,
            _ => return None,
        };
        let (mut text, mut error) = (Text::default(), Text::default());
        for part in &self.result.0 {
            text.append(&part.text);
            let response = part.function.0.as_ref().and_then(|part| part.response.0.as_ref());
            if let Some(response) = response {
                text.append(&response.output);
                error.append(&response.error);
            }
        }
        if text.is_empty() && error.is_empty() {
            // Some results have only the text for display.
            text.append(&self.display);
        }
        let exit_code = exit_code(&text);
        match (outcome, exit_code) {
            // The status of a shell call is `success` even if the program failed.
            (ToolOutcome::Ok | ToolOutcome::Unknown, Some(code)) if code != 0 => {
                outcome = ToolOutcome::Failed;
            }
            (ToolOutcome::Unknown, _) if !error.is_empty() => outcome = ToolOutcome::Failed,
            _ => {}
        }
        let call_id = self.id.clone().into_owned();
        Some(ToolResult { call_id, text, outcome, exit_code, error, ..ToolResult::default() })
    }
}

/// Parses the exit code from the shell tool's output, because the tool always reports success.
/// Older versions write `(none)` if there is no exit code.
pub(super) fn exit_code(text: &str) -> Option<i64> {
    if !text.starts_with("Command: ") && !text.starts_with("Output: ") {
        return None;
    }
    text.lines().rev().find_map(|line| line.strip_prefix("Exit Code: "))?.trim().parse().ok()
}

/// Returns true if Gemini CLI wrote this user message itself.
pub(super) fn is_harness(text: &str) -> bool {
    const BEGINNINGS: [&str; 3] = [
        "<session_context>",
        "<state_snapshot>",
        "This is the Gemini CLI. We are setting up the context",
    ];
    let text = text.trim_start();
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}
