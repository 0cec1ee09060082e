//! Reads the output of `droid exec --output-format stream-json`, Factory's agent: JSON lines of
//! messages, reasoning, calls and results.

use serde::Deserialize;

use super::event::{EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome};
use super::feed::SessionFeed;
use super::printed_answer::PrintedAnswer;
use super::source::SessionSource;
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonText, LenientFlag, LenientInt, LenientObject};
use super::{SessionReadError, failure};
use crate::format::FormatEntry;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| match value.mark("type") {
        // The first line of Claude Code's output has more keys.
        "system" => {
            value.has("subtype")
                && value.has("session_id")
                // Of each of Claude Code's lines.
                && !value.has("uuid")
                && !value.has("claude_code_version")
                && !value.has("permissionMode")
                && !value.has("mcp_servers")
                && !value.has("apiKeySource")
        }
        "message" => !value.mark("role").is_empty() && value.has("text") && value.has("session_id"),
        "tool_call" | "tool_result" => value.has("toolId") && value.has("session_id"),
        "completion" => value.has("finalText"),
        _ => false,
    },
    ..FormatEntry::new(read)
};

/// Reads one session.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    "factory".clone_into(&mut feed.head.agent);
    let mut run = DroidRun::default();
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(event) = line.parse::<DroidEvent<'_>>(&mut scratch, &mut feed.notes) {
            run.event(event, feed);
        }
    }
    run.answer.flush(feed);
    Ok(())
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct DroidEvent<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    role: Text<'a>,
    id: Text<'a>,
    text: Text<'a>,
    timestamp: Moment,
    #[serde(rename = "session_id")]
    session_id: Text<'a>,
    cwd: Text<'a>,
    model: Text<'a>,
    tool_id: Text<'a>,
    tool_name: Text<'a>,
    parameters: JsonText,
    is_error: LenientFlag,
    value: JsonText,
    final_text: Text<'a>,
    usage: LenientObject<DroidTokens>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "names of the format")]
struct DroidTokens {
    input_tokens: LenientInt,
    output_tokens: LenientInt,
    cache_read_input_tokens: LenientInt,
    cache_creation_input_tokens: LenientInt,
}

/// State between lines.
#[derive(Default)]
struct DroidRun {
    answer: PrintedAnswer,
    /// Id of the last reasoning, which may be written twice.
    thought: String,
    last_text: String,
}

impl DroidRun {
    fn event(&mut self, event: DroidEvent<'_>, feed: &mut SessionFeed<'_>) {
        // Every line repeats the id of the session.
        if feed.head.id.is_empty() {
            event.session_id.as_str().clone_into(&mut feed.head.id);
        }
        feed.record_time(event.timestamp);
        let time = event.timestamp.0;
        match event.kind.as_str() {
            "system" => {
                feed.head.cwd = feed.head.cwd.take().or(event.cwd.line(400));
                feed.head.add_model(&event.model);
            }
            "message" if event.role.as_str() == "user" => {
                self.answer.flush(feed);
                feed.send_text(EventRole::User, EventOrigin::Human, event.text, time);
            }
            "message" => {
                event.text.as_str().clone_into(&mut self.last_text);
                self.answer.say(&event.text, time, feed);
            }
            "reasoning" => {
                if event.id.is_empty() || self.thought != event.id.as_str() {
                    event.id.as_str().clone_into(&mut self.thought);
                    self.answer.think(&event.text, time, feed);
                }
            }
            "tool_call" => {
                let name = if event.tool_name.is_empty() { event.tool_id } else { event.tool_name };
                let call = ToolCall { id: event.id, name, arguments: event.parameters.0 };
                self.answer.call(call, time, feed);
            }
            "tool_result" => {
                let mut result = failure::result_of(event.value.0);
                result.outcome = match event.is_error.0 {
                    Some(true) => ToolOutcome::Failed,
                    // The flag says that the tool ran; the text may still report an exit code.
                    Some(false) if result.outcome != ToolOutcome::Failed => ToolOutcome::Ok,
                    _ => result.outcome,
                };
                result.call_id = event.id;
                self.answer.result(result);
            }
            "completion" => {
                // It repeats the last message.
                if self.last_text != event.final_text.as_str() {
                    self.answer.say(&event.final_text, time, feed);
                }
                feed.head.usage = event.usage.0.map(|usage| TokenCounts {
                    input: usage.input_tokens.count() + usage.cache_creation_input_tokens.count(),
                    output: usage.output_tokens.count(),
                    cached: usage.cache_read_input_tokens.count(),
                });
            }
            kind => {
                feed.count_unknown(kind);
                feed.notes.ignored_records += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SessionFormat;
    use super::super::test_support::survives_damage;
    use super::*;
    use crate::test_support::only_session;

    /// 1 human turn, 2 model calls, 1 call that failed.
    const FIXTURE: &str = r#"{"type":"system","subtype":"init","cwd":"/w","session_id":"s-1","model":"m-1","tools":[]}
{"type":"message","role":"user","id":"u1","text":"fix it","timestamp":1777493100000,"session_id":"s-1"}
{"type":"reasoning","id":"r1","text":"hm","timestamp":1777493101000,"session_id":"s-1"}
{"type":"reasoning","id":"r1","text":"hm","timestamp":1777493101000,"session_id":"s-1"}
{"type":"message","role":"assistant","id":"a1","text":"I look.","timestamp":1777493102000,"session_id":"s-1"}
{"type":"tool_call","id":"c1","messageId":"a1","toolId":"Execute","toolName":"Execute","parameters":{"command":"make"},"timestamp":1777493102000,"session_id":"s-1"}
{"type":"tool_result","id":"c1","messageId":"m","toolId":"Execute","isError":true,"value":"no rule","timestamp":1777493103000,"session_id":"s-1"}
{"type":"message","role":"assistant","id":"a2","text":"Fixed.","timestamp":1777493104000,"session_id":"s-1"}
{"type":"completion","finalText":"Fixed.","numTurns":2,"session_id":"s-1","usage":{"input_tokens":10,"output_tokens":3,"cache_read_input_tokens":4,"cache_creation_input_tokens":2}}
"#;

    #[test]
    fn the_fixture_has_its_counted_totals() {
        let session =
            only_session(SessionFormat::FactoryStream, &SessionSource::bytes("run.jsonl", FIXTURE));
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.cwd.as_deref()), ("s-1", Some("/w")));
        assert_eq!(head.usage, Some(TokenCounts { input: 12, output: 3, cached: 4 }));
        let said: Vec<_> = session
            .events
            .iter()
            .map(|event| (event.role, event.text.as_str(), event.calls.len()))
            .collect();
        assert_eq!(
            said,
            [
                (EventRole::User, "fix it", 0),
                (EventRole::Assistant, "I look.", 1),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "Fixed.", 0),
            ]
        );
        assert_eq!(session.events[1].reasoning.as_str(), "hm");
        assert_eq!(session.events[2].results[0].outcome, ToolOutcome::Failed);
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::FactoryStream, FIXTURE.as_bytes());
    }
}
