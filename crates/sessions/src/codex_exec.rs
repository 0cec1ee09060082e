//! Reads the output of `codex exec --json`: JSON lines of `thread.started`, `turn.*` and `item.*`,
//! without times. This is not the rollout that Codex stores for the same session.

use serde::Deserialize;

use super::SessionReadError;
use super::event::{
    Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::text::Text;
use super::wire::{JsonText, LenientInt, LenientObject};
use crate::format::FormatEntry;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| {
        let kind = value.mark("type");
        kind == "thread.started" || (kind.starts_with("item.") && value.has("item"))
    },
    ..FormatEntry::new(read)
};

/// Reads one session. The prompt was on the command line and is missing from the stream.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    "codex".clone_into(&mut feed.head.agent);
    feed.head.platform = Some("exec".to_owned());
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(record) = line.parse::<ExecRecord<'_>>(&mut scratch, &mut feed.notes) {
            record.send(feed);
        }
    }
    Ok(())
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ExecRecord<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    thread_id: Text<'a>,
    item: LenientObject<ExecItem<'a>>,
    usage: LenientObject<ExecTokens>,
    error: LenientObject<ExecError<'a>>,
    message: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ExecError<'a> {
    message: Text<'a>,
}

/// Token counts; the input includes cached tokens.
#[derive(Deserialize, Default)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the names of the format")]
struct ExecTokens {
    input_tokens: LenientInt,
    cached_input_tokens: LenientInt,
    output_tokens: LenientInt,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ExecItem<'a> {
    id: Text<'a>,
    #[serde(rename = "type")]
    kind: Text<'a>,
    text: Text<'a>,
    message: Text<'a>,
    status: Text<'a>,
    command: JsonText,
    aggregated_output: Text<'a>,
    exit_code: LenientInt,
    changes: JsonText,
    tool: Text<'a>,
    arguments: JsonText,
    result: Text<'a>,
    error: LenientObject<ExecError<'a>>,
    query: Text<'a>,
}

impl ExecRecord<'_> {
    fn send(self, feed: &mut SessionFeed<'_>) {
        match self.kind.as_str() {
            "thread.started" => self.thread_id.as_str().clone_into(&mut feed.head.id),
            // `item.started` and `item.updated` repeat the item while it is running.
            "item.completed" => match self.item.0 {
                Some(item) => item.send(feed),
                None => feed.notes.bad_records += 1,
            },
            "turn.completed" => {
                if let Some(tokens) = self.usage.0 {
                    let cached = tokens.cached_input_tokens.count();
                    // The neutral model counts cached tokens separately.
                    let input = tokens.input_tokens.count().saturating_sub(cached);
                    let usage = TokenCounts { input, output: tokens.output_tokens.count(), cached };
                    // Each turn states only its own tokens.
                    let mut total = feed.head.usage.unwrap_or_default();
                    total += usage;
                    feed.head.usage = Some(total);
                }
            }
            "turn.failed" | "error" => {
                let mut text = self.message;
                text.append(&self.error.0.unwrap_or_default().message);
                let mark = Some(EventMark::ApiError);
                feed.send(Event { text, mark, ..Event::default() });
            }
            _ => feed.notes.ignored_records += 1,
        }
    }
}

impl ExecItem<'_> {
    fn send(self, feed: &mut SessionFeed<'_>) {
        let said =
            Event { role: EventRole::Assistant, origin: EventOrigin::Agent, ..Event::default() };
        let (name, arguments) = match self.kind.as_str() {
            "agent_message" | "assistant_message" => {
                return feed.send(Event { text: self.text, ..said });
            }
            "reasoning" => return feed.send(Event { reasoning: self.text, ..said }),
            "error" => {
                return feed.send_text(EventRole::System, EventOrigin::Harness, self.message, None);
            }
            "command_execution" => (Text::from("shell"), self.command.0),
            "file_change" => (Text::from("apply_patch"), self.changes.0),
            "mcp_tool_call" => (self.tool, self.arguments.0),
            "web_search" => (Text::from("web_search"), self.query),
            // The whole plan, repeated on every change.
            "todo_list" => {
                feed.notes.ignored_records += 1;
                return;
            }
            kind => {
                feed.count_unknown(kind);
                feed.notes.ignored_records += 1;
                return;
            }
        };
        let error = self.error.0.unwrap_or_default().message;
        let outcome = match (self.status.as_str(), self.exit_code.0) {
            // Before the exit code, which a declined command may have too.
            ("declined", _) => ToolOutcome::Rejected,
            (_, Some(code)) if code != 0 => ToolOutcome::Failed,
            ("failed", _) => ToolOutcome::Failed,
            _ if !error.is_empty() => ToolOutcome::Failed,
            ("completed" | "", _) => ToolOutcome::Ok,
            _ => ToolOutcome::Unknown,
        };
        let mut text = self.aggregated_output;
        text.append(&self.result);
        let result = ToolResult {
            call_id: self.id.clone(),
            tool: name.clone(),
            text,
            outcome,
            exit_code: self.exit_code.0,
            error,
        };
        feed.send(Event { calls: vec![ToolCall { id: self.id, name, arguments }], ..said });
        feed.send_results(EventOrigin::Agent, vec![result], None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::survives_damage;
    use super::super::{SessionCollector, SessionFormat, read};
    use super::*;

    /// 3 calls: one worked, one ended with code 1, one failed by its status.
    const FIXTURE: &str = r#"{"type":"thread.started","thread_id":"t-1"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"i0","type":"reasoning","text":"hm"}}
{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"ls","status":"in_progress"}}
{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"bash -lc ls","aggregated_output":"a.rs","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"i2","type":"command_execution","command":"false","aggregated_output":"","exit_code":1,"status":"failed"}}
{"type":"item.completed","item":{"id":"i3","type":"mcp_tool_call","server":"s","tool":"find","status":"failed","error":{"message":"gone"}}}
{"type":"item.completed","item":{"id":"i4","type":"agent_message","text":"There."}}
{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":30,"output_tokens":20}}
"#;

    #[test]
    fn the_fixture_has_its_counted_totals() {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("run.jsonl", FIXTURE), &mut collector).unwrap();
        assert_eq!((reading.format, reading.notes.ignored_records), (SessionFormat::CodexExec, 2));
        let session = collector.into_sessions().remove(0);
        assert_eq!(session.head.id, "t-1");
        assert_eq!(session.head.usage, Some(TokenCounts { input: 70, output: 20, cached: 30 }));
        let results: Vec<_> = session
            .events
            .iter()
            .flat_map(|event| &event.results)
            .map(|result| (result.tool.as_str(), result.outcome, result.exit_code))
            .collect();
        assert_eq!(
            results,
            [
                ("shell", ToolOutcome::Ok, Some(0)),
                ("shell", ToolOutcome::Failed, Some(1)),
                ("find", ToolOutcome::Failed, None),
            ]
        );
        assert_eq!(session.events.last().unwrap().text.as_str(), "There.");
        assert_eq!(session.head.start, None);
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::CodexExec, FIXTURE.as_bytes());
    }
}
