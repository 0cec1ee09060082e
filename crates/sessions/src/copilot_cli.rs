//! Reads GitHub Copilot CLI sessions, `~/.copilot/session-state/<id>/events.jsonl` (formerly
//! `<id>.jsonl`): JSON lines of `{"type": …, "data": {…}, "timestamp": …}`.

use std::collections::HashSet;

use serde::Deserialize;

use super::blocks::{ContentBlock, ContentBlocks, MessageContext, ToolOutput};
use super::event::{
    Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonValue, LenientFlag, LenientInt, LenientList, LenientObject, RecordId};
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
    let mut run = CopilotRun::default();
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(record) = line.parse::<CopilotRecord<'_>>(&mut scratch, &mut feed.notes) {
            record.send(&mut run, feed);
        }
    }
    Ok(())
}

/// State between records.
#[derive(Default)]
struct CopilotRun {
    /// Calls that a message announced.
    calls: HashSet<RecordId>,
    /// Requests to subagents that have not been repeated as a message yet.
    requests: Vec<String>,
}

/// Maximum number of requests to subagents that are kept.
const MAX_REQUESTS: usize = 64;

impl CopilotRun {
    /// Returns true if a message of the user's is the request of a subagent, which is stored like
    /// one that a person typed.
    fn take_request(&mut self, text: &str) -> bool {
        let known = self.requests.iter().position(|request| request == text);
        known.map(|at| self.requests.remove(at)).is_some()
    }
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
    tool_name: Text<'a>,
    arguments: JsonValue,
    success: LenientFlag,
    result: Option<ToolOutput>,
    error: JsonValue,
    message: Text<'a>,
    reason: Text<'a>,
    /// Of what a subagent says and does.
    parent_tool_call_id: Text<'a>,
    /// Counts by model, when the program ends.
    model_metrics: JsonValue,
}

impl CopilotRecord<'_> {
    fn send(self, run: &mut CopilotRun, feed: &mut SessionFeed<'_>) {
        let time = self.timestamp.0;
        feed.record_time(self.timestamp);
        let data = self.data.0.unwrap_or_default();
        let is_own = data.parent_tool_call_id.is_empty();
        let origin = if is_own { EventOrigin::Agent } else { EventOrigin::Subagent };
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
            // `auto` stands for the models that the messages name.
            "session.model_change" if data.new_model.as_str() == "auto" => {}
            "session.model_change" => feed.head.add_model(&data.new_model),
            "session.tools_updated" => feed.head.add_model(&data.model),
            "session.shutdown" => data.count_tokens(feed),
            "user.message" => {
                let is_request = run.take_request(&data.content);
                let origin = if is_request { EventOrigin::Subagent } else { EventOrigin::Human };
                feed.send_text(EventRole::User, origin, data.content, time);
            }
            "assistant.message" => {
                feed.head.add_model(&data.model);
                let mut blocks = ContentBlocks::default();
                blocks.think(data.reasoning_text);
                blocks.say(data.content);
                for mut request in data.tool_requests.0 {
                    run.calls.insert(RecordId::from(request.given_id()));
                    // Requests may have another type or none, but they are always calls.
                    request.kind = "tool_call".into();
                    blocks.add(request);
                }
                blocks.send_answer(&MessageContext::new(origin, time), feed);
            }
            "tool.execution_start" => {
                if data.tool_name.as_str() == "task" && run.requests.len() < MAX_REQUESTS {
                    run.requests.push(data.arguments.text("/prompt").as_str().to_owned());
                }
                // Newer versions announce no calls in the message before.
                if run.calls.insert(RecordId::from(data.tool_call_id.as_str())) {
                    let arguments = data.arguments.text("");
                    let call = ToolCall { id: data.tool_call_id, name: data.tool_name, arguments };
                    let (role, calls) = (EventRole::Assistant, vec![call]);
                    let continues = true;
                    feed.send(Event { role, origin, calls, time, continues, ..Event::default() });
                }
            }
            "tool.execution_complete" => {
                feed.head.add_model(&data.model);
                let result = data.into_result();
                feed.send_results(origin, vec![result], time);
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
    /// Adds the tokens of a run. A session that is resumed has several.
    fn count_tokens(&self, feed: &mut SessionFeed<'_>) {
        let mut total = feed.head.usage.unwrap_or_default();
        for model in self.model_metrics.keys("") {
            feed.head.add_model(&model);
            let key = model.replace('~', "~0").replace('/', "~1");
            let count = |name: &str| {
                self.model_metrics.part::<LenientInt>(&format!("/{key}/usage/{name}")).count()
            };
            // The input includes tokens that were read from a cache.
            let cached = count("cacheReadTokens");
            total += TokenCounts {
                input: count("inputTokens").saturating_sub(cached),
                output: count("outputTokens"),
                cached,
            };
        }
        feed.head.usage = (total != TokenCounts::default()).then_some(total);
    }

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

    /// A subagent, whose request is stored like a person's, and calls that no message announces.
    const SUBAGENT: &str = r#"{"type":"session.start","data":{"sessionId":"s-2","copilotVersion":"1.0.82","context":{"cwd":"/w"}},"id":"0","timestamp":"2026-01-01T00:00:00Z"}
{"type":"session.model_change","data":{"newModel":"auto"},"id":"1","timestamp":"2026-01-01T00:00:00Z"}
{"type":"user.message","data":{"content":"delegate it"},"id":"2","timestamp":"2026-01-01T00:00:01Z"}
{"type":"assistant.message","data":{"model":"m-1","content":"","toolRequests":[]},"id":"3","timestamp":"2026-01-01T00:00:02Z"}
{"type":"tool.execution_start","data":{"toolCallId":"t1","toolName":"task","arguments":{"prompt":"Run git log."}},"id":"4","timestamp":"2026-01-01T00:00:03Z"}
{"type":"subagent.started","data":{"toolCallId":"t1"},"id":"5","timestamp":"2026-01-01T00:00:03Z"}
{"type":"user.message","data":{"content":"Run git log."},"id":"6","timestamp":"2026-01-01T00:00:03Z"}
{"type":"tool.execution_start","data":{"toolCallId":"b1","toolName":"bash","arguments":{"command":"git log"},"parentToolCallId":"t1"},"id":"7","timestamp":"2026-01-01T00:00:04Z"}
{"type":"tool.execution_complete","data":{"toolCallId":"b1","success":true,"result":{"content":"abc","detailedContent":"abc"},"parentToolCallId":"t1"},"id":"8","timestamp":"2026-01-01T00:00:05Z"}
{"type":"assistant.message","data":{"model":"m-1","content":"abc","parentToolCallId":"t1"},"id":"9","timestamp":"2026-01-01T00:00:06Z"}
{"type":"tool.execution_complete","data":{"toolCallId":"t1","success":true,"result":{"content":"abc"}},"id":"10","timestamp":"2026-01-01T00:00:06Z"}
{"type":"assistant.message","data":{"model":"m-1","content":"It says abc."},"id":"11","timestamp":"2026-01-01T00:00:07Z"}
{"type":"session.shutdown","data":{"modelMetrics":{"m/1":{"requests":{"count":3,"cost":2},"usage":{"inputTokens":100,"outputTokens":9,"cacheReadTokens":60,"cacheWriteTokens":30}}}},"id":"12","timestamp":"2026-01-01T00:00:08Z"}
"#;

    #[test]
    fn a_subagent_is_told_from_the_person_and_the_agent() {
        let session = crate::test_support::only_session(
            SessionFormat::CopilotCli,
            &SessionSource::bytes("events.jsonl", SUBAGENT),
        );
        assert_eq!(session.head.models, ["m-1", "m/1"]);
        assert_eq!(session.head.usage, Some(TokenCounts { input: 40, output: 9, cached: 60 }));
        let said: Vec<_> = session
            .events
            .iter()
            .map(|event| (event.origin, event.text.as_str(), event.calls.len()))
            .collect();
        assert_eq!(
            said,
            [
                (EventOrigin::Human, "delegate it", 0),
                (EventOrigin::Agent, "", 0),
                (EventOrigin::Agent, "", 1),
                (EventOrigin::Subagent, "Run git log.", 0),
                (EventOrigin::Subagent, "", 1),
                (EventOrigin::Subagent, "", 0),
                (EventOrigin::Subagent, "abc", 0),
                (EventOrigin::Agent, "", 0),
                (EventOrigin::Agent, "It says abc.", 0),
            ]
        );
        let results = session.events.iter().flat_map(|event| &event.results);
        let results: Vec<_> = results.map(|it| (it.tool.as_str(), it.text.as_str())).collect();
        assert_eq!(results, [("bash", "abc"), ("task", "abc")]);
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::CopilotCli, FIXTURE.as_bytes());
    }
}
