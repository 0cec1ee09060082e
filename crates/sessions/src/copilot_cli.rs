//! Reads GitHub Copilot CLI sessions, `~/.copilot/session-state/<id>/events.jsonl` (formerly
//! `<id>.jsonl`): JSON lines of `{"type": …, "data": {…}, "timestamp": …}`.

use serde::Deserialize;

use super::blocks::{ContentBlock, ContentBlocks, MessageContext, ToolOutput};
use super::event::{Event, EventMark, EventOrigin, EventRole, ToolOutcome, ToolResult};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonValue, LenientFlag, LenientList, LenientObject};
use super::{SessionReadError, failure};
use crate::format::{AgentFolders, FormatEntry, HomeRoot, VerificationBasis, VerifiedVersion};

/// Record types that identify the format.
const TYPES: [&str; 5] = [
    "session.start",
    "session.resume",
    "user.message",
    "assistant.message",
    "tool.execution_complete",
];

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| TYPES.contains(&value.mark("type")) && value.has("data"),
    folders: &[AgentFolders {
        agent: "copilot-cli",
        variable: None,
        roots: &[HomeRoot::Home(".copilot")],
        parts: &["session-state", "history-session-state"],
    }],
    verified: Some(VerifiedVersion {
        agent: "copilot-cli",
        version: "0.0.400",
        basis: VerificationBasis::OwnFixture,
    }),
    ..FormatEntry::new(read)
};

/// Reads one session.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    "copilot-cli".clone_into(&mut feed.head.agent);
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(record) = line.parse::<CopilotRecord<'_>>(&mut scratch, &mut feed.notes) {
            record.send(feed);
        }
    }
    Ok(())
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CopilotRecord<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    timestamp: Moment,
    data: LenientObject<CopilotData<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct CopilotData<'a> {
    session_id: Text<'a>,
    copilot_version: Text<'a>,
    context: JsonValue,
    new_model: Text<'a>,
    model: Text<'a>,
    content: Text<'a>,
    reasoning_text: Text<'a>,
    tool_requests: LenientList<ContentBlock<'a>>,
    tool_call_id: Text<'a>,
    success: LenientFlag,
    result: Option<ToolOutput>,
    error: JsonValue,
    message: Text<'a>,
    reason: Text<'a>,
}

impl CopilotRecord<'_> {
    fn send(self, feed: &mut SessionFeed<'_>) {
        let time = self.timestamp.0;
        feed.record_time(self.timestamp);
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
            "session.model_change" => feed.head.add_model(&data.new_model),
            "user.message" => {
                feed.send_text(EventRole::User, EventOrigin::Human, data.content, time);
            }
            "assistant.message" => {
                feed.head.add_model(&data.model);
                let mut blocks = ContentBlocks::default();
                blocks.think(data.reasoning_text);
                blocks.say(data.content);
                for mut request in data.tool_requests.0 {
                    // Requests may have another type or none, but they are always calls.
                    request.kind = "tool_call".into();
                    blocks.add(request);
                }
                blocks.send_answer(&MessageContext::new(EventOrigin::Agent, time), feed);
            }
            "tool.execution_complete" => {
                feed.head.add_model(&data.model);
                let result = data.into_result();
                feed.send_results(EventOrigin::Agent, vec![result], time);
            }
            "session.error" => send_mark(EventMark::ApiError, data.message, time, feed),
            "abort" => send_mark(EventMark::Interrupted, data.reason, time, feed),
            "session.compaction_complete" => {
                send_mark(EventMark::Compacted, Text::default(), time, feed);
            }
            _ => feed.notes.ignored_records += 1,
        }
    }
}

fn send_mark(
    mark: EventMark,
    text: Text<'_>,
    time: Option<jiff::Timestamp>,
    feed: &mut SessionFeed<'_>,
) {
    let mark = Some(mark);
    feed.send(Event { text, time, mark, ..Event::default() });
}

impl<'a> CopilotData<'a> {
    fn into_result(self) -> ToolResult<'a> {
        let output = self.result.unwrap_or_default();
        let read = failure::result_of(output.text);
        let error = self.error.text("/message");
        let is_refused = matches!(self.error.text("/code").as_str(), "denied" | "rejected");
        let outcome = match self.success.0 {
            // A refusal also sets `success` to false, so it is checked first.
            _ if is_refused => ToolOutcome::Rejected,
            Some(false) => ToolOutcome::Failed,
            Some(true) => ToolOutcome::Ok,
            None => output.outcome.unwrap_or(read.outcome),
        };
        let error = if error.is_empty() { read.error } else { error };
        ToolResult { call_id: self.tool_call_id, outcome, error, ..read }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::survives_damage;
    use super::super::{SessionCollector, SessionFormat, read};
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
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("events.jsonl", FIXTURE), &mut collector).unwrap();
        assert_eq!((reading.format, reading.notes.ignored_records), (SessionFormat::CopilotCli, 1));
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
        assert_eq!(results, [("bash", ToolOutcome::Ok, "a.rs"), ("view", ToolOutcome::Failed, "")]);
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::CopilotCli, FIXTURE.as_bytes());
    }
}
