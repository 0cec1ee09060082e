//! Parses a message of a recorded chat and converts it to events.

use serde::Deserialize;

use crate::content::Content;
use crate::event::{Event, Mark, Origin, Outcome, Role, ToolCall, ToolResult, Usage};
use crate::feed::Feed;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{Int, Json, List, Object};

/// One message.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Message<'a> {
    pub(super) id: Text<'a>,
    #[serde(rename = "type")]
    kind: Text<'a>,
    timestamp: Moment,
    content: Content<'a>,
    /// Text that the user typed, if `content` also includes the files it mentions.
    #[serde(rename = "displayContent")]
    display: Content<'a>,
    model: Text<'a>,
    thoughts: List<Thought<'a>>,
    #[serde(rename = "toolCalls")]
    calls: List<Call<'a>>,
    tokens: Object<Tokens>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Thought<'a> {
    subject: Text<'a>,
    description: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Call<'a> {
    id: Text<'a>,
    name: Text<'a>,
    args: Json,
    status: Text<'a>,
    result: List<ResultPart<'a>>,
    #[serde(rename = "resultDisplay")]
    display: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ResultPart<'a> {
    #[serde(rename = "functionResponse")]
    function: Object<FunctionResponse<'a>>,
    text: Text<'a>,
}

/// Result of a tool, as sent to the model.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct FunctionResponse<'a> {
    pub(super) id: Text<'a>,
    pub(super) name: Text<'a>,
    pub(super) response: Object<Response<'a>>,
}

/// Either an output or an error.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Response<'a> {
    #[serde(alias = "content")]
    pub(super) output: Text<'a>,
    pub(super) error: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens {
    input: Int,
    output: Int,
    cached: Int,
    thoughts: Int,
    tool: Int,
}

impl Tokens {
    /// Converts the counts. The input includes cached tokens; reasoning and the results of the
    /// provider's own tools are counted separately.
    fn usage(&self) -> Usage {
        let cached = self.cached.count();
        Usage {
            input: self.input.count().saturating_sub(cached).saturating_add(self.tool.count()),
            output: self.output.count().saturating_add(self.thoughts.count()),
            cached,
        }
    }
}

impl Message<'_> {
    /// Sends the events of the message.
    pub(super) fn send(self, is_subagent: bool, feed: &mut Feed<'_>) {
        let time = self.timestamp.0;
        let of = |origin| if is_subagent { Origin::Subagent } else { origin };
        let text = self.content.0;
        match self.kind.as_str() {
            "user" => {
                let text = if self.display.0.is_empty() { text } else { self.display.0 };
                let origin = if is_harness(&text) { Origin::Harness } else { Origin::Human };
                let (role, origin) = (Role::User, of(origin));
                feed.event(Event { role, origin, text, time, ..Event::default() });
            }
            "gemini" => {
                feed.head.model(&self.model);
                let mut reasoning = Text::default();
                for thought in self.thoughts.0 {
                    reasoning.join(&thought.subject);
                    reasoning.join(&thought.description);
                }
                let (mut calls, mut results) = (Vec::new(), Vec::new());
                for call in self.calls.0 {
                    results.extend(call.result());
                    let Call { id, name, args, .. } = call;
                    calls.push(ToolCall { id, name, arguments: args.0 });
                }
                let usage = self.tokens.0.as_ref().map(Tokens::usage);
                let model = if usage.is_some() { self.model } else { Text::default() };
                let (role, origin) = (Role::Assistant, of(Origin::Agent));
                let said = Event { role, origin, text, reasoning, calls, ..Event::default() };
                feed.event(Event { usage, model, time, ..said });
                feed.results(origin, results, time);
            }
            kind @ ("info" | "warning" | "error") => {
                let mark = match kind {
                    "error" if text.contains("API Error") => Some(Mark::ApiError),
                    _ if text.starts_with("Request cancelled") => Some(Mark::Interrupted),
                    _ => None,
                };
                let (role, origin) = (Role::System, of(Origin::Harness));
                feed.event(Event { role, origin, text, time, mark, ..Event::default() });
            }
            _ => feed.notes.ignored_records += 1,
        }
    }
}

impl Call<'_> {
    /// Returns the result of the call; `None` while the call is waiting or running.
    fn result(&self) -> Option<ToolResult<'static>> {
        let mut outcome = match self.status.as_str() {
            "success" => Outcome::Ok,
            "error" => Outcome::Failed,
            "cancelled" => Outcome::Rejected,
            "" if !self.result.0.is_empty() => Outcome::Unknown,
            _ => return None,
        };
        let (mut text, mut error) = (Text::default(), Text::default());
        for part in &self.result.0 {
            text.join(&part.text);
            let response = part.function.0.as_ref().and_then(|part| part.response.0.as_ref());
            if let Some(response) = response {
                text.join(&response.output);
                error.join(&response.error);
            }
        }
        if text.is_empty() && error.is_empty() {
            // Some results have only the text for display.
            text.join(&self.display);
        }
        let exit_code = exit_code(&text);
        match (outcome, exit_code) {
            // The status of a shell call is `success` even if the program failed.
            (Outcome::Ok | Outcome::Unknown, Some(code)) if code != 0 => outcome = Outcome::Failed,
            (Outcome::Unknown, _) if !error.is_empty() => outcome = Outcome::Failed,
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
