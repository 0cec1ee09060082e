//! Reads the output of `claude -p --output-format stream-json` (JSON lines) and
//! `--output-format json` (one result, or with `--verbose` a list of all lines). The request is not
//! in it.

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess};

use super::SessionReadError;
use super::blocks::{ContentBlocks, MessageContext};
use super::chat::is_lines;
use super::event::{Event, EventMark, EventOrigin, EventRole, TokenCounts};
use super::feed::SessionFeed;
use super::source::{DocumentReader, SessionSource, each_record};
use super::text::Text;
use super::wire::{JsonValue, LenientFlag, LenientInt, LenientNumber, LenientObject};
use crate::format::FormatEntry;
use crate::outline::JsonOutline;
use crate::wire::AnyJson;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: is_output,
    json_list: |values| values.first().is_some_and(is_output),
    ..FormatEntry::new(read)
};

fn is_output(value: &JsonOutline) -> bool {
    let has = |key: &str| value.has(key);
    match value.mark("type") {
        "system" => {
            has("subtype")
                && has("session_id")
                // Hooks may print before the line that describes the session.
                && ["uuid", "claude_code_version", "permissionMode", "mcp_servers", "apiKeySource"]
                    .iter()
                    .any(|key| has(key))
        }
        "result" => has("session_id") && (has("num_turns") || has("total_cost_usd")),
        "assistant" | "user" => has("session_id") && has("parent_tool_use_id") && !has("sessionId"),
        _ => false,
    }
}

/// Reads one session.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    if !is_lines(source)? {
        return source.read_document(&mut PrintedResult::default(), feed);
    }
    let mut run = PrintedResult::default();
    run.begin(feed);
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(line) = line.parse::<PrintedLine<'_>>(&mut scratch, &mut feed.notes) {
            run.line(line, feed);
        }
    }
    Ok(())
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct PrintedLine<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    subtype: Text<'a>,
    session_id: Text<'a>,
    cwd: Text<'a>,
    model: Text<'a>,
    claude_code_version: Text<'a>,
    parent_tool_use_id: Text<'a>,
    message: LenientObject<PrintedMessage<'a>>,
    result: Text<'a>,
    is_error: LenientFlag,
    total_cost_usd: LenientNumber,
    usage: LenientObject<PrintedTokens>,
    #[serde(rename = "modelUsage")]
    model_usage: JsonValue,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct PrintedMessage<'a> {
    id: Text<'a>,
    model: Text<'a>,
    content: ContentBlocks<'a>,
    usage: LenientObject<PrintedTokens>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the names of the format")]
struct PrintedTokens {
    input_tokens: LenientInt,
    output_tokens: LenientInt,
    cache_read_input_tokens: LenientInt,
    cache_creation_input_tokens: LenientInt,
}

impl PrintedTokens {
    fn usage(self) -> TokenCounts {
        TokenCounts {
            input: self.input_tokens.count() + self.cache_creation_input_tokens.count(),
            output: self.output_tokens.count(),
            cached: self.cache_read_input_tokens.count(),
        }
    }
}

/// State between lines.
#[derive(Default)]
struct PrintedResult {
    /// Id of the last message, which may have several lines.
    message: String,
    last_text: String,
}

impl DocumentReader for PrintedResult {
    fn begin(&mut self, feed: &mut SessionFeed<'_>) {
        // Called again if a damaged document is read a second time.
        *self = Self::default();
        "claude-code".clone_into(&mut feed.head.agent);
        feed.head.platform = Some("print".to_owned());
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut line = LenientObject::<PrintedLine<'de>>::default();
        line.object(map)?;
        self.line(line.0.unwrap_or_default(), feed);
        Ok(())
    }

    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        list: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        each_record(feed, |line: PrintedLine<'de>, feed| self.line(line, feed)).list(list)
    }
}

impl PrintedResult {
    fn line(&mut self, line: PrintedLine<'_>, feed: &mut SessionFeed<'_>) {
        if feed.head.id.is_empty() {
            line.session_id.as_str().clone_into(&mut feed.head.id);
        }
        let is_subagent = !line.parent_tool_use_id.is_empty();
        let origin = if is_subagent { EventOrigin::Subagent } else { EventOrigin::Agent };
        match line.kind.as_str() {
            "system" if line.subtype.as_str() == "compact_boundary" => {
                let mark = Some(EventMark::Compacted);
                feed.send(Event { mark, ..Event::default() });
            }
            "system" => {
                feed.head.cwd = feed.head.cwd.take().or(line.cwd.line(400));
                feed.head.add_model(&line.model);
                let version = line.claude_code_version.line(60);
                feed.head.agent_version = feed.head.agent_version.take().or(version);
            }
            "assistant" => {
                let message = line.message.0.unwrap_or_default();
                // The model of the session is that of the main agent; a subagent may use a cheaper
                // one.
                if !is_subagent {
                    feed.head.add_model(&message.model);
                }
                // A message is printed once per content block, each time with its id.
                let is_next = !message.id.is_empty() && self.message == message.id.as_str();
                message.id.as_str().clone_into(&mut self.message);
                // A message of nothing but calls must not hide the text that the result repeats.
                if message.content.has_text() {
                    message.content.first_text().clone_into(&mut self.last_text);
                }
                // Later lines of a message repeat its counts.
                let usage = message.usage.0.filter(|_| !is_next).map(PrintedTokens::usage);
                let context = MessageContext::new(origin, None);
                let speaker = MessageContext { usage, continues: is_next, ..context };
                message.content.send_answer(&speaker, feed);
            }
            "user" => {
                let message = line.message.0.unwrap_or_default();
                // With `--replay-user-messages` the request is in it.
                let is_typed = !is_subagent && !message.content.has_results();
                let origin = match (is_typed, is_subagent) {
                    (true, _) => EventOrigin::Human,
                    (false, true) => EventOrigin::Subagent,
                    (false, false) => EventOrigin::Harness,
                };
                let speaker = MessageContext::new(origin, None);
                message.content.send_input(&speaker, EventRole::User, feed);
            }
            "result" => self.result(line, feed),
            "stream_event" | "control_response" | "control_request" | "rate_limit_event" => {
                feed.notes.ignored_records += 1;
            }
            kind => {
                feed.count_unknown(kind);
                feed.notes.ignored_records += 1;
            }
        }
    }

    fn result(&mut self, line: PrintedLine<'_>, feed: &mut SessionFeed<'_>) {
        // Each result of a conversation states the total so far.
        let total = line.total_cost_usd.0.filter(|cost| cost.is_finite() && *cost > 0.0);
        feed.head.stated_cost = match (total, feed.head.stated_cost) {
            (Some(total), Some(known)) => Some(total.max(known)),
            (total, known) => total.or(known),
        };
        for model in line.model_usage.keys("") {
            feed.head.add_model(&model);
        }
        feed.head.usage = line.usage.0.map(PrintedTokens::usage);
        // It repeats the last message.
        if !line.result.is_empty() && self.last_text.trim() != line.result.trim() {
            let (role, origin) = (EventRole::Assistant, EventOrigin::Agent);
            feed.send_text(role, origin, line.result, None);
        }
        if line.is_error.is_set() {
            let text = Text::from(selftest_text::one_line(&line.subtype, 200));
            let mark = Some(EventMark::ApiError);
            feed.send(Event { text, mark, ..Event::default() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::ToolOutcome;
    use super::super::test_support::survives_damage;
    use super::super::{Session, SessionFormat};
    use super::*;
    use crate::test_support::only_session;

    /// 2 model calls on 3 lines, 1 call that failed.
    const LINES: &str = r#"{"type":"system","subtype":"init","session_id":"s-1","cwd":"/w","tools":[],"mcp_servers":[],"model":"claude-x","permissionMode":"default","apiKeySource":"none","claude_code_version":"2.1.0","uuid":"1"}
{"type":"assistant","message":{"id":"m1","model":"claude-x","role":"assistant","content":[{"type":"text","text":"I look."}],"usage":{"input_tokens":10,"output_tokens":3}},"parent_tool_use_id":null,"session_id":"s-1","uuid":"2"}
{"type":"assistant","message":{"id":"m1","model":"claude-x","role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"make"}}],"usage":{"input_tokens":10,"output_tokens":3}},"parent_tool_use_id":null,"session_id":"s-1","uuid":"3"}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":"no rule"}]},"parent_tool_use_id":null,"session_id":"s-1","uuid":"4"}
{"type":"assistant","message":{"id":"m2","model":"claude-x","role":"assistant","content":[{"type":"text","text":"Fixed."}],"usage":{"input_tokens":20,"output_tokens":2}},"parent_tool_use_id":null,"session_id":"s-1","uuid":"5"}
{"type":"result","subtype":"success","is_error":false,"duration_ms":900,"num_turns":2,"result":"Fixed.","session_id":"s-1","total_cost_usd":0.25,"usage":{"input_tokens":30,"output_tokens":5,"cache_read_input_tokens":7},"modelUsage":{"claude-x":{}}}
"#;

    fn session(name: &str, text: &str) -> Session {
        only_session(SessionFormat::ClaudePrint, &SessionSource::bytes(name, text))
    }

    #[test]
    fn lines_and_a_list_of_them_hold_the_same() {
        let list = format!("[{}]", LINES.trim().replace('\n', ","));
        for session in [session("run.jsonl", LINES), session("run.json", &list)] {
            let head = &session.head;
            assert_eq!((head.id.as_str(), head.agent.as_str()), ("s-1", "claude-code"));
            assert_eq!((head.stated_cost, head.models.len()), (Some(0.25), 1));
            assert_eq!(head.usage, Some(TokenCounts { input: 30, output: 5, cached: 7 }));
            let said: Vec<_> = session
                .events
                .iter()
                .map(|event| (event.role, event.text.as_str(), event.calls.len()))
                .collect();
            assert_eq!(
                said,
                [
                    (EventRole::Assistant, "I look.", 0),
                    (EventRole::Assistant, "", 1),
                    (EventRole::Tool, "", 0),
                    (EventRole::Assistant, "Fixed.", 0),
                ]
            );
            assert_eq!(session.events[2].results[0].outcome, ToolOutcome::Failed);
        }
    }

    #[test]
    fn hooks_may_print_first() {
        let hook = r#"{"type":"system","subtype":"hook_started","hook_id":"h","hook_name":"SessionStart:startup","uuid":"0","session_id":"s-1"}"#;
        let session = session("run.jsonl", &format!("{hook}\n{LINES}"));
        assert_eq!((session.head.id.as_str(), session.events.len()), ("s-1", 4));
    }

    #[test]
    fn a_result_alone_is_the_answer() {
        let last = LINES.trim().lines().last().unwrap();
        let session = session("result.json", last);
        assert_eq!(session.events[0].text.as_str(), "Fixed.");
        assert_eq!((session.head.id.as_str(), session.head.stated_cost), ("s-1", Some(0.25)));
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::ClaudePrint, LINES.as_bytes());
    }
}
