//! Reads the output of `opencode run --format json`: JSON lines, each with one part of the agent's
//! messages. The request and the model are not in it.

use serde::Deserialize;

use super::{AGENT, MessageError, MessageParts, OpenCodePart, OpenCodeTokens, error_event};
use crate::SessionReadError;
use crate::blocks::MessageContext;
use crate::event::EventOrigin;
use crate::feed::SessionFeed;
use crate::outline::JsonOutline;
use crate::source::SessionSource;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::LenientObject;

/// Returns true if this is a line of the output.
pub(super) fn is_line(value: &JsonOutline) -> bool {
    value.has("sessionID")
        && value.has("timestamp")
        && !value.mark("type").is_empty()
        && (value.has("part") || value.has("error"))
}

/// Reads one session.
pub(super) fn read(
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
) -> Result<(), SessionReadError> {
    AGENT.clone_into(&mut feed.head.agent);
    feed.head.platform = Some("print".to_owned());
    let mut step = PrintedStep::default();
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(line) = line.parse::<PrintedPart<'_>>(&mut scratch, &mut feed.notes) {
            step.line(line, feed);
        }
    }
    step.send(None, feed);
    Ok(())
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct PrintedPart<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    timestamp: Moment,
    #[serde(rename = "sessionID")]
    session: Text<'a>,
    part: LenientObject<OpenCodePart<'a>>,
    error: LenientObject<MessageError<'a>>,
}

/// A step of the agent, which is one model call: its parts so far.
#[derive(Default)]
struct PrintedStep {
    said: MessageParts<'static>,
    time: Moment,
}

impl PrintedStep {
    fn line(&mut self, line: PrintedPart<'_>, feed: &mut SessionFeed<'_>) {
        if feed.head.id.is_empty() {
            line.session.as_str().clone_into(&mut feed.head.id);
        }
        feed.record_time(line.timestamp);
        match line.kind.as_str() {
            "step_start" => self.send(None, feed),
            "step_finish" => self.send(line.part.0, feed),
            "error" => {
                self.send(None, feed);
                feed.send(error_event(line.error.0.unwrap_or_default(), line.timestamp.0));
            }
            _ => {
                if let Some(part) = line.part.0 {
                    self.time = Moment(self.time.0.or(line.timestamp.0));
                    self.said.add(part.into_owned());
                } else {
                    feed.notes.bad_records += 1;
                }
            }
        }
    }

    /// Sends the step, with the counts of the part that ends it.
    fn send(&mut self, end: Option<OpenCodePart<'_>>, feed: &mut SessionFeed<'_>) {
        let (said, time) = (std::mem::take(&mut self.said), std::mem::take(&mut self.time));
        let end = end.unwrap_or_default();
        let usage = end.tokens.0.as_ref().and_then(OpenCodeTokens::usage);
        if usage.is_some() {
            feed.head.add_stated_cost(end.cost.0);
        }
        if !said.blocks.is_empty() || usage.is_some() {
            let speaker =
                MessageContext { usage, ..MessageContext::new(EventOrigin::Agent, time.0) };
            said.blocks.send_answer(&speaker, feed);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::test_support::{only_session, survives_damage};
    use crate::{EventMark, EventRole, SessionFormat, SessionSource, TokenCounts, ToolOutcome};

    /// 3 model calls, 2 calls: one worked, one could not be made; then an error.
    const FIXTURE: &str = r#"{"type":"step_start","timestamp":1767036059338,"sessionID":"ses_1","part":{"id":"p1","sessionID":"ses_1","messageID":"m1","type":"step-start"}}
{"type":"tool_use","timestamp":1767036061199,"sessionID":"ses_1","part":{"id":"p2","sessionID":"ses_1","messageID":"m1","type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"command":"echo hello"},"output":"hello\n","metadata":{"exit":0}}}}
{"type":"step_finish","timestamp":1767036061205,"sessionID":"ses_1","part":{"id":"p3","sessionID":"ses_1","messageID":"m1","type":"step-finish","reason":"tool-calls","cost":0.5,"tokens":{"input":100,"output":10,"reasoning":2,"cache":{"read":0,"write":7}}}}
{"type":"step_start","timestamp":1767036061300,"sessionID":"ses_1","part":{"id":"p4","sessionID":"ses_1","messageID":"m2","type":"step-start"}}
{"type":"tool_use","timestamp":1767036062199,"sessionID":"ses_1","part":{"type":"tool","tool":"invalid","callID":"c2","state":{"status":"completed","input":{},"output":"Model tried to call unavailable tool 'bash'."}}}
{"type":"step_finish","timestamp":1767036062205,"sessionID":"ses_1","part":{"type":"step-finish","reason":"tool-calls","cost":0.25,"tokens":{"input":1,"output":1}}}
{"type":"text","timestamp":1767036064268,"sessionID":"ses_1","part":{"type":"text","text":"It says hello."}}
{"type":"step_finish","timestamp":1767036064273,"sessionID":"ses_1","part":{"type":"step-finish","reason":"stop","cost":0.25,"tokens":{"input":5,"output":8,"cache":{"read":90,"write":0}}}}
{"type":"error","timestamp":1767036065000,"sessionID":"ses_1","error":{"name":"APIError","data":{"message":"Rate limit exceeded"}}}
"#;

    #[test]
    fn the_fixture_has_its_counted_totals() {
        let session =
            only_session(SessionFormat::OpenCode, &SessionSource::bytes("run.jsonl", FIXTURE));
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.agent.as_str()), ("ses_1", "opencode"));
        assert_eq!(head.stated_cost, Some(1.0));
        let said: Vec<_> = session
            .events
            .iter()
            .map(|event| (event.role, event.text.as_str(), event.calls.len(), event.mark))
            .collect();
        assert_eq!(
            said,
            [
                (EventRole::Assistant, "", 1, None),
                (EventRole::Tool, "", 0, None),
                (EventRole::Assistant, "", 1, None),
                (EventRole::Tool, "", 0, None),
                (EventRole::Assistant, "It says hello.", 0, None),
                (EventRole::System, "APIError\nRate limit exceeded", 0, Some(EventMark::ApiError)),
            ]
        );
        let usage = session.events[0].usage;
        assert_eq!(usage, Some(TokenCounts { input: 107, output: 12, cached: 0 }));
        let outcomes = session.events.iter().flat_map(|event| &event.results);
        let outcomes: Vec<_> = outcomes.map(|result| result.outcome).collect();
        assert_eq!(outcomes, [ToolOutcome::Ok, ToolOutcome::Failed]);
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::OpenCode, FIXTURE.as_bytes());
    }
}
