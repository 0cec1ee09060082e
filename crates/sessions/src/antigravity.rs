//! Reads the transcripts of Antigravity:
//! `~/.gemini/antigravity*/brain/<id>/.system_generated/logs/transcript.jsonl`, one step per line.
//!
//! Calls have no ids. Each step that follows a planner's response with calls is the outcome of the
//! next of them. `transcript_full.jsonl` beside it has the same steps in full, and is read in its
//! place. The conversations in `.pb` files are encrypted.

use std::collections::VecDeque;
use std::path::Path;

use serde::Deserialize;

use super::event::{Event, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonText, LenientInt, LenientList};
use super::{SessionReadError, failure};
use crate::format::{AgentFolders, FormatEntry, HomeRoot};

/// Steps that only steer the conversation.
const HARNESS: [&str; 4] =
    ["SYSTEM_MESSAGE", "CHECKPOINT", "CONVERSATION_HISTORY", "KNOWLEDGE_ARTIFACTS"];

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| {
        value.has("step_index")
            && !value.mark("source").is_empty()
            && !value.mark("type").is_empty()
    },
    folders: &[AgentFolders {
        agent: "antigravity",
        variable: None,
        roots: &[
            HomeRoot::Home(".gemini/antigravity"),
            HomeRoot::Home(".gemini/antigravity-cli"),
            HomeRoot::Home(".gemini/antigravity-ide"),
        ],
        parts: &["brain"],
    }],
    ..FormatEntry::new(read)
};

/// Reads one session.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    "antigravity".clone_into(&mut feed.head.agent);
    feed.head.id = id(source.path()).unwrap_or_default();
    let mut open = OpenCalls::default();
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(step) = line.parse::<AntigravityStep<'_>>(&mut scratch, &mut feed.notes) {
            step.send(&mut open, feed);
        }
    }
    Ok(())
}

/// Returns the id of the conversation, the folder below `brain`.
fn id(path: &Path) -> Option<String> {
    let mut names = path.ancestors().skip(1).filter_map(Path::file_name);
    let is_known = names.next()? == "logs" && names.next()? == ".system_generated";
    let id = names.next().filter(|_| is_known)?;
    Some(selftest_text::one_line(&id.to_string_lossy(), 200))
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct AntigravityStep<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    source: Text<'a>,
    status: Text<'a>,
    created_at: Moment,
    content: Text<'a>,
    thinking: Text<'a>,
    tool_calls: LenientList<AntigravityCall<'a>>,
    input_tokens: LenientInt,
    output_tokens: LenientInt,
    cache_read_tokens: LenientInt,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct AntigravityCall<'a> {
    #[serde(alias = "tool_name")]
    name: Text<'a>,
    #[serde(alias = "arguments")]
    args: JsonText,
}

/// Calls whose outcome is still to come.
#[derive(Default)]
struct OpenCalls {
    ids: VecDeque<String>,
    calls: u64,
}

impl OpenCalls {
    /// Adds a call and returns its id.
    fn add(&mut self) -> String {
        self.calls += 1;
        let id = format!("call {}", self.calls);
        self.ids.push_back(id.clone());
        id
    }
}

impl AntigravityStep<'_> {
    fn send(mut self, open: &mut OpenCalls, feed: &mut SessionFeed<'_>) {
        let time = self.created_at.0;
        feed.record_time(self.created_at);
        match self.kind.as_str() {
            "USER_INPUT" => {
                // Results are matched by order: one of this turn must not go to an older call.
                open.ids.clear();
                let origin = match self.source.as_str() {
                    "USER_EXPLICIT" | "USER" => EventOrigin::Human,
                    _ => EventOrigin::Harness,
                };
                feed.send_text(EventRole::User, origin, self.content.map(request_in), time);
            }
            "PLANNER_RESPONSE" => self.answer(open, feed),
            kind if HARNESS.contains(&kind) || self.source.as_str() == "SYSTEM" => {
                feed.send_text(EventRole::System, EventOrigin::Harness, self.content, time);
            }
            _ if self.source.as_str() == "MODEL" => {
                // Without a call before it, the step is the call, and may have its arguments.
                if open.ids.is_empty() {
                    self.send_own_call(open, feed);
                }
                // The format has no ids of calls; results follow in the order of the calls.
                let call_id = open.ids.pop_front().unwrap_or_default();
                let outcome = match self.status.as_str() {
                    "ERROR" | "FAILED" => Some(ToolOutcome::Failed),
                    "CANCELED" | "CANCELLED" | "REJECTED" => Some(ToolOutcome::Rejected),
                    // Its outcome comes later as a text.
                    "RUNNING" | "PENDING" => Some(ToolOutcome::Unknown),
                    _ => None,
                };
                let code = exit_code(&self.content);
                let read = failure::result_of(self.content);
                let outcome = outcome.unwrap_or(match code {
                    Some(0) => ToolOutcome::Ok,
                    Some(_) => ToolOutcome::Failed,
                    None => read.outcome,
                });
                let exit_code = code.or(read.exit_code);
                let call_id = Text::from(call_id);
                let result = ToolResult { call_id, outcome, exit_code, ..read };
                feed.send_results(EventOrigin::Agent, vec![result], time);
            }
            kind => {
                feed.count_unknown(kind);
                feed.notes.ignored_records += 1;
            }
        }
    }

    /// Sends the call of a step that no answer of the planner's announced.
    fn send_own_call(&mut self, open: &mut OpenCalls, feed: &mut SessionFeed<'_>) {
        let named = self.tool_calls.0.drain(..).find(|call| !call.name.is_empty());
        let (name, arguments) = match named {
            Some(call) => (call.name, call.args.0),
            None => (Text::from(self.kind.to_lowercase()), Text::default()),
        };
        let id = open.add();
        let calls = vec![ToolCall { id: Text::from(id), name, arguments }];
        feed.send(Event {
            role: EventRole::Assistant,
            origin: EventOrigin::Agent,
            calls,
            time: self.created_at.0,
            ..Event::default()
        });
    }

    fn answer(self, open: &mut OpenCalls, feed: &mut SessionFeed<'_>) {
        open.ids.clear();
        let usage = TokenCounts {
            input: self.input_tokens.count(),
            output: self.output_tokens.count(),
            cached: self.cache_read_tokens.count(),
        };
        let mut calls = Vec::new();
        for call in self.tool_calls.0 {
            let id = Text::from(open.add());
            calls.push(ToolCall { id, name: call.name, arguments: call.args.0 });
        }
        feed.send(Event {
            role: EventRole::Assistant,
            origin: EventOrigin::Agent,
            text: self.content,
            reasoning: self.thinking,
            calls,
            usage: (usage != TokenCounts::default()).then_some(usage),
            time: self.created_at.0,
            ..Event::default()
        });
    }
}

/// Returns what the person typed, without what the program adds.
fn request_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<USER_REQUEST>")?;
    let request = rest.split("</USER_REQUEST>").next().unwrap_or(rest);
    Some(request.trim().to_owned())
}

/// Reads `The command exited with code 1.` and the like from the first lines.
fn exit_code(text: &str) -> Option<i64> {
    let line = text.lines().take(8).find_map(|line| {
        let lower = line.to_ascii_lowercase();
        let at = lower.find("exit code")?;
        Some(lower[at + "exit code".len()..].to_owned())
    });
    let line = line.or_else(|| {
        let lower = text.lines().next()?.to_ascii_lowercase();
        lower.split_once("exited with code").map(|(_, rest)| rest.to_owned())
    })?;
    let digits = line.trim_start_matches([':', ' ']);
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(digits.len());
    digits[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::SessionFormat;
    use super::super::test_support::survives_damage;
    use super::*;
    use crate::test_support::only_session;

    /// 1 human turn, 2 model calls, 2 calls of which 1 failed.
    const FIXTURE: &str = r#"{"step_index":0,"source":"USER_EXPLICIT","type":"USER_INPUT","status":"DONE","created_at":"2026-04-29T20:05:00Z","content":"<USER_REQUEST>\nfix it\n</USER_REQUEST>\n<ADDITIONAL_METADATA>\nThe time is now.\n</ADDITIONAL_METADATA>"}
{"step_index":1,"source":"SYSTEM","type":"CONVERSATION_HISTORY","status":"DONE","created_at":"2026-04-29T20:05:01Z"}
{"step_index":2,"source":"MODEL","type":"PLANNER_RESPONSE","status":"DONE","created_at":"2026-04-29T20:05:02Z","content":"I look.","thinking":"hm","tool_calls":[{"name":"run_command","args":{"CommandLine":"make"}},{"name":"view_file","args":{"AbsolutePath":"/w/a"}}]}
{"step_index":3,"source":"MODEL","type":"RUN_COMMAND","status":"DONE","created_at":"2026-04-29T20:05:03Z","content":"The command exited with code 2.\nno rule"}
{"step_index":4,"source":"MODEL","type":"VIEW_FILE","status":"DONE","created_at":"2026-04-29T20:05:03Z","content":"all:"}
{"step_index":6,"source":"MODEL","type":"PLANNER_RESPONSE","status":"DONE","created_at":"2026-04-29T20:05:04Z","content":"Fixed."}
"#;

    #[test]
    fn the_fixture_has_its_counted_totals() {
        let path = "/h/.gemini/antigravity/brain/s-1/.system_generated/logs/transcript.jsonl";
        let session =
            only_session(SessionFormat::Antigravity, &SessionSource::bytes(path, FIXTURE));
        assert_eq!((session.head.id.as_str(), session.head.agent.as_str()), ("s-1", "antigravity"));
        let said: Vec<_> = session
            .events
            .iter()
            .map(|event| (event.role, event.text.as_str(), event.calls.len()))
            .collect();
        assert_eq!(
            said,
            [
                (EventRole::User, "fix it", 0),
                (EventRole::Assistant, "I look.", 2),
                (EventRole::Tool, "", 0),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "Fixed.", 0),
            ]
        );
        let results: Vec<_> = session
            .events
            .iter()
            .flat_map(|event| &event.results)
            .map(|result| (result.tool.as_str(), result.outcome, result.exit_code))
            .collect();
        assert_eq!(
            results,
            [
                ("run_command", ToolOutcome::Failed, Some(2)),
                ("view_file", ToolOutcome::Unknown, None),
            ]
        );
    }

    #[test]
    fn a_step_that_nothing_announced_is_a_call() {
        let text = r#"{"step_index":0,"source":"USER_EXPLICIT","type":"USER_INPUT","status":"DONE","content":"<USER_REQUEST>go</USER_REQUEST>"}
{"step_index":1,"source":"MODEL","type":"PLANNER_RESPONSE","status":"DONE","content":"I look."}
{"step_index":2,"source":"MODEL","type":"VIEW_FILE","status":"DONE","content":"all:","tool_calls":null}
{"step_index":3,"source":"MODEL","type":"RUN_COMMAND","status":"DONE","content":"HI","tool_calls":[{"tool_name":"run_command","id":"x","arguments":{"command":"echo HI"}}]}
"#;
        let source = SessionSource::bytes("transcript.jsonl", text);
        let session = only_session(SessionFormat::Antigravity, &source);
        let calls: Vec<_> = session.events.iter().flat_map(|event| &event.calls).collect();
        let calls: Vec<_> =
            calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, [("view_file", ""), ("run_command", r#"{"command":"echo HI"}"#)]);
        let results = session.events.iter().flat_map(|event| &event.results);
        let tools: Vec<_> = results.map(|result| result.tool.as_str()).collect();
        assert_eq!(tools, ["view_file", "run_command"]);
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::Antigravity, FIXTURE.as_bytes());
    }
}
