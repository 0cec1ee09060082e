//! Reads GitHub Copilot CLI sessions, `~/.copilot/session-state/<id>/events.jsonl` (formerly
//! `<id>.jsonl`): JSON lines of `{"type": …, "data": {…}, "timestamp": …}`.

use serde::Deserialize;

use super::ReadError;
use super::blocks::{Block, Blocks, Output, Speaker};
use super::event::{Event, Mark, Origin, Outcome, Role, ToolResult};
use super::failure;
use super::feed::Feed;
use super::source::Source;
use super::text::Text;
use super::time::Moment;
use super::wire::{Flag, List, Loose, Object};

/// Reads one session.
pub(super) fn read(source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    "copilot-cli".clone_into(&mut feed.head.agent);
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(record) = line.parse::<Record<'_>>(&mut scratch, &mut feed.notes) {
            record.send(feed);
        }
    }
    Ok(())
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Record<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    timestamp: Moment,
    data: Object<Data<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Data<'a> {
    session_id: Text<'a>,
    copilot_version: Text<'a>,
    context: Loose,
    new_model: Text<'a>,
    model: Text<'a>,
    content: Text<'a>,
    reasoning_text: Text<'a>,
    tool_requests: List<Block<'a>>,
    tool_call_id: Text<'a>,
    success: Flag,
    result: Option<Output>,
    error: Loose,
    message: Text<'a>,
    reason: Text<'a>,
}

impl Record<'_> {
    fn send(self, feed: &mut Feed<'_>) {
        let time = self.timestamp.0;
        feed.saw(self.timestamp);
        let data = self.data.0.unwrap_or_default();
        match self.kind.as_str() {
            "session.start" | "session.resume" => {
                let head = &mut feed.head;
                // `session.resume` may state an id again; the first one counts.
                if head.id.is_empty() {
                    data.session_id.as_str().clone_into(&mut head.id);
                }
                head.agent_version = head.agent_version.take().or(data.copilot_version.line(60));
                head.cwd = head.cwd.take().or(data.context.text("/cwd").line(400));
            }
            "session.model_change" => feed.head.model(&data.new_model),
            "user.message" => {
                feed.say(Role::User, Origin::Human, data.content, time);
            }
            "assistant.message" => {
                feed.head.model(&data.model);
                let mut blocks = Blocks::default();
                blocks.think(data.reasoning_text);
                blocks.say(data.content);
                for mut request in data.tool_requests.0 {
                    // Requests may have another type or none, but they are always calls.
                    request.kind = "tool_call".into();
                    blocks.add(request);
                }
                blocks.send_answer(&Speaker::new(Origin::Agent, time), feed);
            }
            "tool.execution_complete" => {
                feed.head.model(&data.model);
                let result = data.ending();
                feed.results(Origin::Agent, vec![result], time);
            }
            "session.error" => mark(Mark::ApiError, data.message, time, feed),
            "abort" => mark(Mark::Interrupted, data.reason, time, feed),
            "session.compaction_complete" => {
                mark(Mark::Compacted, Text::default(), time, feed);
            }
            _ => feed.notes.ignored_records += 1,
        }
    }
}

fn mark(mark: Mark, text: Text<'_>, time: Option<jiff::Timestamp>, feed: &mut Feed<'_>) {
    let mark = Some(mark);
    feed.event(Event { text, time, mark, ..Event::default() });
}

impl<'a> Data<'a> {
    fn ending(self) -> ToolResult<'a> {
        let output = self.result.unwrap_or_default();
        let read = failure::result_of(output.text);
        let error = self.error.text("/message");
        let is_refused = matches!(self.error.text("/code").as_str(), "denied" | "rejected");
        let outcome = match self.success.0 {
            // A refusal also sets `success` to false, so it is checked first.
            _ if is_refused => Outcome::Rejected,
            Some(false) => Outcome::Failed,
            Some(true) => Outcome::Ok,
            None => output.outcome.unwrap_or(read.outcome),
        };
        let error = if error.is_empty() { read.error } else { error };
        ToolResult { call_id: self.tool_call_id, outcome, error, ..read }
    }
}

#[cfg(test)]
mod tests {
    use super::super::mutation::survives_damage;
    use super::super::{Collector, Format, read};
    use super::*;

    /// 1 human turn, 2 model calls, 2 calls of which 1 failed.
    const FIXTURE: &str = r#"{"type":"session.start","data":{"sessionId":"s-1","copilotVersion":"0.0.400","context":{"cwd":"/w"}},"id":"1","timestamp":"2026-01-01T00:00:00Z"}
{"type":"user.message","data":{"content":"look"},"id":"2","timestamp":"2026-01-01T00:00:01Z"}
{"type":"assistant.turn_start","data":{},"id":"3","timestamp":"2026-01-01T00:00:01Z"}
{"type":"assistant.message","data":{"content":"","reasoningText":"hm","toolRequests":[{"toolCallId":"c1","name":"bash","arguments":{"command":"ls"}},{"toolCallId":"c2","name":"view","arguments":{"path":"x"}}]},"id":"4","timestamp":"2026-01-01T00:00:02Z"}
{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"model":"m-1","result":{"content":"a.rs"}},"id":"5","timestamp":"2026-01-01T00:00:03Z"}
{"type":"tool.execution_complete","data":{"toolCallId":"c2","success":false,"error":{"message":"no such file","code":"failure"}},"id":"6","timestamp":"2026-01-01T00:00:04Z"}
{"type":"assistant.message","data":{"content":"One file."},"id":"7","timestamp":"2026-01-01T00:00:05Z"}
"#;

    #[test]
    fn the_fixture_has_its_counted_totals() {
        let mut collector = Collector::default();
        let reading = read(&Source::bytes("events.jsonl", FIXTURE), &mut collector).unwrap();
        assert_eq!((reading.format, reading.notes.ignored_records), (Format::CopilotCli, 1));
        let session = collector.into_sessions().remove(0);
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.cwd.as_deref()), ("s-1", Some("/w")));
        assert_eq!(head.models, ["m-1"]);
        assert_eq!(session.events.len(), 5);
        assert_eq!(session.events[1].calls[0].arguments.as_str(), r#"{"command":"ls"}"#);
        let results: Vec<_> = session
            .events
            .iter()
            .flat_map(|event| &event.results)
            .map(|result| (result.tool.as_str(), result.outcome, result.text.as_str()))
            .collect();
        assert_eq!(results, [("bash", Outcome::Ok, "a.rs"), ("view", Outcome::Failed, "")]);
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(Format::CopilotCli, FIXTURE.as_bytes());
    }
}
