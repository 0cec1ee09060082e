//! Reads the output of `goose run --output-format stream-json`: JSON lines with a message each, of
//! which the text arrives in pieces.

use serde::Deserialize;

use super::AGENT;
use crate::SessionReadError;
use crate::blocks::ContentBlocks;
use crate::event::{Event, EventMark, EventOrigin, EventRole, TokenCounts};
use crate::feed::SessionFeed;
use crate::outline::JsonOutline;
use crate::printed_answer::PrintedAnswer;
use crate::source::SessionSource;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{JsonValue, LenientFlag, LenientInt, LenientNumber, LenientObject};

/// Returns true if this is a line of the output.
pub(super) fn is_line(value: &JsonOutline) -> bool {
    match value.mark("type") {
        // Other agents' messages have ids and times of their own beside this.
        "message" => {
            value.keys.len() == 2
                && value.inner("message").is_some_and(|message| {
                    !message.mark("role").is_empty() && message.has("content")
                })
        }
        "complete" => value.has("total_tokens"),
        _ => false,
    }
}

/// Reads one session.
pub(super) fn read(
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
) -> Result<(), SessionReadError> {
    AGENT.clone_into(&mut feed.head.agent);
    feed.head.platform = Some("print".to_owned());
    let mut run = GooseRun::default();
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(line) = line.parse::<PrintedLine<'_>>(&mut scratch, &mut feed.notes) {
            run.line(line, feed);
        }
    }
    run.answer.flush(feed);
    Ok(())
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct PrintedLine<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    message: LenientObject<PrintedMessage<'a>>,
    model: Text<'a>,
    error: Text<'a>,
    input_tokens: LenientInt,
    output_tokens: LenientInt,
    cache_read_input_tokens: LenientInt,
    cost_usd: LenientNumber,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct PrintedMessage<'a> {
    id: Text<'a>,
    role: Text<'a>,
    created: Moment,
    content: ContentBlocks<'a>,
    metadata: JsonValue,
}

/// State between lines.
#[derive(Default)]
struct GooseRun {
    answer: PrintedAnswer,
    /// Id of the message whose pieces arrive.
    message: String,
}

impl GooseRun {
    fn line(&mut self, line: PrintedLine<'_>, feed: &mut SessionFeed<'_>) {
        match line.kind.as_str() {
            "message" => match line.message.0 {
                Some(message) => self.message(message, feed),
                None => feed.notes.bad_records += 1,
            },
            "model_change" => feed.head.add_model(&line.model),
            "complete" => {
                self.answer.flush(feed);
                // The input includes cached tokens; only newer versions tell it from the output.
                let (whole, cached) =
                    (line.input_tokens.count(), line.cache_read_input_tokens.count());
                let output = line.output_tokens.count();
                let usage = TokenCounts { input: whole.saturating_sub(cached), output, cached };
                feed.head.usage = (usage != TokenCounts::default()).then_some(usage);
                feed.head.add_stated_cost(line.cost_usd.0);
            }
            "error" => {
                self.answer.flush(feed);
                let mark = Some(EventMark::ApiError);
                feed.send(Event { text: line.error, mark, ..Event::default() });
            }
            "notification" => feed.notes.ignored_records += 1,
            kind => {
                feed.count_unknown(kind);
                feed.notes.ignored_records += 1;
            }
        }
    }

    fn message(&mut self, message: PrintedMessage<'_>, feed: &mut SessionFeed<'_>) {
        let time = message.created.0;
        feed.record_time(message.created);
        feed.head.add_model(&message.metadata.text("/inference/requestedModel"));
        let mut content = message.content;
        match message.role.as_str() {
            // Results come in messages of the user's.
            "user" if content.has_results() => content.each_step(|step| {
                for result in std::mem::take(&mut step.results) {
                    self.answer.result(result);
                }
            }),
            "user" => {
                self.answer.flush(feed);
                let visible: LenientFlag = message.metadata.part("/userVisible");
                let is_hidden = visible.0 == Some(false);
                let origin = if is_hidden { EventOrigin::Harness } else { EventOrigin::Human };
                feed.send_text(EventRole::User, origin, content.take_text(), time);
            }
            "assistant" => {
                let is_next = !message.id.is_empty() && self.message != message.id.as_str();
                message.id.as_str().clone_into(&mut self.message);
                if is_next {
                    self.answer.join_pieces();
                }
                content.each_step(|step| {
                    self.answer.think_piece(&step.thinking, time, feed);
                    self.answer.say_piece(&step.text, time, feed);
                    for call in std::mem::take(&mut step.calls) {
                        self.answer.call(call, time, feed);
                    }
                    for result in std::mem::take(&mut step.results) {
                        self.answer.result(result);
                    }
                });
            }
            role => {
                feed.count_unknown(role);
                feed.notes.ignored_records += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::test_support::{only_session, survives_damage};
    use crate::{EventRole, SessionFormat, SessionSource, TokenCounts, ToolOutcome};

    /// 1 human turn, 2 model calls, 1 call that failed.
    const FIXTURE: &str = r#"{"type":"message","message":{"id":"u1","role":"user","created":1777493100,"content":[{"type":"text","text":"create a"}],"metadata":{"userVisible":true}}}
{"type":"message","message":{"id":"m1","role":"assistant","created":1777493101,"content":[{"type":"thinking","thinking":"I wri","signature":""}],"metadata":{"inference":{"provider":"p","requestedModel":"m-1"}}}}
{"type":"message","message":{"id":"m1","role":"assistant","created":1777493101,"content":[{"type":"thinking","thinking":"te.","signature":""}]}}
{"type":"message","message":{"id":"m1","role":"assistant","created":1777493101,"content":[{"type":"text","text":"I cre"}]}}
{"type":"message","message":{"id":"m1","role":"assistant","created":1777493101,"content":[{"type":"text","text":"ate it."}]}}
{"type":"message","message":{"id":"m1","role":"assistant","created":1777493101,"content":[{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"touch a"}}}}]}}
{"type":"message","message":{"id":"r1","role":"user","created":1777493102,"content":[{"type":"toolResponse","id":"c1","toolResult":{"status":"error","error":"denied by the disk"}}]}}
{"type":"notification","extension_id":"developer","log":{"message":"running"}}
{"type":"message","message":{"id":"m2","role":"assistant","created":1777493103,"content":[{"type":"text","text":"It failed."}]}}
{"type":"complete","total_tokens":120,"input_tokens":100,"output_tokens":20,"cache_read_input_tokens":40,"cost_usd":0.25}
"#;

    #[test]
    fn the_fixture_has_its_counted_totals() {
        let session =
            only_session(SessionFormat::Goose, &SessionSource::bytes("run.jsonl", FIXTURE));
        let head = &session.head;
        assert_eq!((head.agent.as_str(), head.stated_cost), ("goose", Some(0.25)));
        assert_eq!(head.models, ["m-1"]);
        assert_eq!(head.usage, Some(TokenCounts { input: 60, output: 20, cached: 40 }));
        let said: Vec<_> = session
            .events
            .iter()
            .map(|event| (event.role, event.text.as_str(), event.calls.len()))
            .collect();
        assert_eq!(
            said,
            [
                (EventRole::User, "create a", 0),
                (EventRole::Assistant, "I create it.", 1),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "It failed.", 0),
            ]
        );
        assert_eq!(session.events[1].reasoning.as_str(), "I write.");
        let result = &session.events[2].results[0];
        assert_eq!((result.tool.as_str(), result.outcome), ("shell", ToolOutcome::Failed));
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::Goose, FIXTURE.as_bytes());
    }
}
