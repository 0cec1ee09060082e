//! Reads the output of `cursor-agent -p --output-format stream-json`: JSON lines, of which some are
//! those of Claude Code, and others are not.

use serde::Deserialize;

use super::blocks::ContentBlocks;
use super::event::{
    Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use super::feed::SessionFeed;
use super::printed_answer::PrintedAnswer;
use super::source::SessionSource;
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonValue, LenientFlag, LenientInt, LenientObject};
use super::{SessionReadError, failure};
use crate::format::FormatEntry;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| match value.mark("type") {
        // The first line of Claude Code's output has more keys.
        "system" => {
            value.has("apiKeySource")
                && value.has("session_id")
                && !value.has("tools")
                && !value.has("mcp_servers")
                && !value.has("uuid")
        }
        "thinking" => value.has("subtype") && !value.has("message"),
        "tool_call" => value.has("subtype") && value.has("tool_call"),
        _ => false,
    },
    ..FormatEntry::new(read)
};

/// Reads one session.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    "cursor".clone_into(&mut feed.head.agent);
    feed.head.platform = Some("print".to_owned());
    let mut run = CursorRun::default();
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(event) = line.parse::<CursorEvent<'_>>(&mut scratch, &mut feed.notes) {
            run.event(event, feed);
        }
    }
    run.answer.flush(feed);
    Ok(())
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CursorEvent<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    subtype: Text<'a>,
    session_id: Text<'a>,
    cwd: Text<'a>,
    model: Text<'a>,
    #[serde(rename = "timestamp_ms")]
    time: Moment,
    text: Text<'a>,
    message: LenientObject<CursorMessage<'a>>,
    call_id: Text<'a>,
    tool_call: JsonValue,
    result: Text<'a>,
    is_error: LenientFlag,
    usage: LenientObject<CursorTokens>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CursorMessage<'a> {
    content: ContentBlocks<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "names of the format")]
struct CursorTokens {
    input_tokens: LenientInt,
    output_tokens: LenientInt,
    cache_read_tokens: LenientInt,
    cache_write_tokens: LenientInt,
}

/// State between lines.
#[derive(Default)]
struct CursorRun {
    answer: PrintedAnswer,
    last_text: String,
    /// Calls that have started and not completed: id and tool.
    open: Vec<(String, String)>,
    calls: u64,
}

impl CursorRun {
    fn event(&mut self, event: CursorEvent<'_>, feed: &mut SessionFeed<'_>) {
        // Every line repeats the id of the session.
        if feed.head.id.is_empty() {
            event.session_id.as_str().clone_into(&mut feed.head.id);
        }
        feed.record_time(event.time);
        let time = event.time.0;
        match event.kind.as_str() {
            "system" => {
                feed.head.cwd = feed.head.cwd.take().or(event.cwd.line(400));
                feed.head.add_model(&event.model);
            }
            "user" => {
                self.answer.flush(feed);
                let text = event.message.0.unwrap_or_default().content.take_text();
                feed.send_text(EventRole::User, EventOrigin::Human, text, time);
            }
            "thinking" => self.answer.think_piece(&event.text, time, feed),
            "assistant" => {
                let text = event.message.0.unwrap_or_default().content.take_text();
                self.say(&text, time, feed);
            }
            "tool_call" => self.tool(&event, feed),
            "result" => self.result(event, feed),
            kind => {
                feed.count_unknown(kind);
                feed.notes.ignored_records += 1;
            }
        }
    }

    /// Adds a text. With `--stream-partial-output`, texts with a time are pieces, and the whole
    /// follows them.
    fn say(&mut self, text: &Text<'_>, time: Option<jiff::Timestamp>, feed: &mut SessionFeed<'_>) {
        if !text.is_empty() && self.answer.pieces() == text.as_str() {
            return;
        }
        match time {
            Some(_) => self.answer.say_piece(text, time, feed),
            None => self.answer.say(text, time, feed),
        }
        self.last_text.clear();
        self.last_text.push_str(if time.is_some() { self.answer.pieces() } else { text });
    }

    fn tool(&mut self, event: &CursorEvent<'_>, feed: &mut SessionFeed<'_>) {
        let about = &event.tool_call;
        let Some(key) = about.keys("").into_iter().find(|key| key.ends_with("ToolCall")) else {
            feed.count_unknown("tool_call");
            feed.notes.ignored_records += 1;
            return;
        };
        let name = key.trim_end_matches("ToolCall");
        let is_completed = event.subtype.as_str() == "completed";
        let given = selftest_text::one_line(&event.call_id, 200);
        let known = self.open.iter().position(|(id, tool)| {
            if given.is_empty() { is_completed && tool == name } else { *id == given }
        });
        // A call is printed when it starts and again when it has ended.
        let id = if let Some(at) = known {
            self.open[at].0.clone()
        } else {
            self.calls += 1;
            let id = if given.is_empty() { format!("call {}", self.calls) } else { given };
            let call = ToolCall {
                id: Text::from(id.clone()),
                name: Text::from(name.to_owned()),
                arguments: about.text(&format!("/{key}/args")),
            };
            self.answer.call(call, event.time.0, feed);
            self.open.push((id.clone(), name.to_owned()));
            id
        };
        if is_completed {
            self.open.retain(|(open, _)| *open != id);
            self.answer.result(outcome(about, &key, Text::from(id)));
        }
    }

    fn result(&mut self, event: CursorEvent<'_>, feed: &mut SessionFeed<'_>) {
        // It repeats the last message, or all of them.
        let last = self.last_text.trim();
        if last.is_empty() || !event.result.trim_end().ends_with(last) {
            self.answer.say(&event.result, None, feed);
        }
        self.answer.flush(feed);
        feed.head.usage = event.usage.0.map(|usage| TokenCounts {
            input: usage.input_tokens.count() + usage.cache_write_tokens.count(),
            output: usage.output_tokens.count(),
            cached: usage.cache_read_tokens.count(),
        });
        if event.is_error.is_set() {
            let text = Text::from(selftest_text::one_line(&event.subtype, 200));
            let mark = Some(EventMark::ApiError);
            feed.send(Event { text, mark, ..Event::default() });
        }
    }
}

/// Reads `{"success": …}`, `{"failure": …}`, `{"error": …}` or `{"rejected": …}`.
fn outcome(about: &JsonValue, key: &str, call_id: Text<'static>) -> ToolResult<'static> {
    let at = |name: &str| format!("/{key}/result/{name}");
    let kinds = about.keys(&format!("/{key}/result"));
    let kind = kinds.first().map_or("", String::as_str);
    let exit_code = ["exitCode", "exit_code"]
        .iter()
        .find_map(|name| about.part::<LenientInt>(&at(&format!("{kind}/{name}"))).0);
    let mut text = about.text(&at(&format!("{kind}/stdout")));
    text.append(&about.text(&at(&format!("{kind}/stderr"))));
    for name in ["content", "output", "diffString"] {
        if text.is_empty() {
            text = about.text(&at(&format!("{kind}/{name}")));
        }
    }
    if text.is_empty() && exit_code.is_none() {
        text = about.text(&at(kind));
    }
    let error = match kind {
        "error" => about.text(&at("error/errorMessage")),
        _ => Text::default(),
    };
    let outcome = match (kind, exit_code) {
        ("rejected" | "permissionDenied", _) => ToolOutcome::Rejected,
        ("failure" | "error" | "timeout" | "fileNotFound" | "invalidFile", _) => {
            ToolOutcome::Failed
        }
        // The program ran; its exit code says how it ended.
        (_, Some(code)) if code != 0 => ToolOutcome::Failed,
        ("success", _) => ToolOutcome::Ok,
        // Completed, with a result of another form.
        _ => failure::result_of(text.clone()).outcome,
    };
    ToolResult { call_id, text, outcome, exit_code, error, ..ToolResult::default() }
}

#[cfg(test)]
mod tests {
    use super::super::SessionFormat;
    use super::super::test_support::survives_damage;
    use super::*;
    use crate::Session;
    use crate::test_support::only_session;

    /// 1 human turn, 4 model calls, 4 calls: two failed, one was refused.
    const FIXTURE: &str = r#"{"type":"system","subtype":"init","apiKeySource":"login","cwd":"/w","session_id":"c-1","model":"Auto","permissionMode":"default"}
{"type":"user","message":{"role":"user","content":[{"type":"text","text":"test it"}]},"session_id":"c-1"}
{"type":"thinking","subtype":"delta","text":"I should ","session_id":"c-1","timestamp_ms":1777493100000}
{"type":"thinking","subtype":"delta","text":"look.","session_id":"c-1","timestamp_ms":1777493100100}
{"type":"thinking","subtype":"completed","session_id":"c-1","timestamp_ms":1777493100200}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I lo"}]},"session_id":"c-1","timestamp_ms":1777493100300}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"ok."}]},"session_id":"c-1","timestamp_ms":1777493100400}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I look."}]},"session_id":"c-1"}
{"type":"tool_call","subtype":"started","call_id":"t1\nfc1","tool_call":{"readToolCall":{"args":{"path":"/w/a"}}},"session_id":"c-1"}
{"type":"tool_call","subtype":"completed","call_id":"t1\nfc1","tool_call":{"readToolCall":{"args":{"path":"/w/a"},"result":{"success":{"content":"fn","totalLines":1}}}},"session_id":"c-1"}
{"type":"tool_call","subtype":"completed","call_id":"t2","tool_call":{"shellToolCall":{"args":{"command":"pytest"},"result":{"failure":{"exitCode":1,"stdout":"1 failed","stderr":""}}}},"session_id":"c-1"}
{"type":"tool_call","subtype":"started","tool_call":{"readToolCall":{"args":{"path":"/etc/x"}}},"session_id":"c-1"}
{"type":"tool_call","subtype":"completed","tool_call":{"readToolCall":{"result":{"error":{"errorMessage":"EPERM"}}}},"session_id":"c-1"}
{"type":"tool_call","subtype":"completed","call_id":"t4","tool_call":{"writeToolCall":{"args":{"path":"/w/b"},"result":{"rejected":{"reason":"no"}}}},"session_id":"c-1"}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"It is red."}]},"session_id":"c-1"}
{"type":"result","subtype":"success","duration_ms":900,"is_error":false,"result":"I look.It is red.","session_id":"c-1","request_id":"r","usage":{"inputTokens":10,"outputTokens":3,"cacheReadTokens":4,"cacheWriteTokens":2}}
"#;

    fn session(text: &str) -> Session {
        only_session(SessionFormat::CursorPrint, &SessionSource::bytes("run.jsonl", text))
    }

    #[test]
    fn the_fixture_has_its_counted_totals() {
        let session = session(FIXTURE);
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.agent.as_str()), ("c-1", "cursor"));
        assert_eq!(head.usage, Some(TokenCounts { input: 12, output: 3, cached: 4 }));
        assert!(head.unknown_blocks.is_empty());
        let said: Vec<_> = session
            .events
            .iter()
            .map(|event| (event.role, event.text.as_str(), event.calls.len()))
            .collect();
        assert_eq!(
            said,
            [
                (EventRole::User, "test it", 0),
                (EventRole::Assistant, "I look.", 1),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "", 1),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "", 1),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "", 1),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "It is red.", 0),
            ]
        );
        assert_eq!(session.events[1].reasoning.as_str(), "I should look.");
        let results: Vec<_> = session
            .events
            .iter()
            .flat_map(|event| &event.results)
            .map(|result| (result.tool.as_str(), result.outcome, result.exit_code))
            .collect();
        assert_eq!(
            results,
            [
                ("read", ToolOutcome::Ok, None),
                ("shell", ToolOutcome::Failed, Some(1)),
                ("read", ToolOutcome::Failed, None),
                ("write", ToolOutcome::Rejected, None),
            ]
        );
    }

    #[test]
    fn a_result_alone_is_the_answer() {
        let lines: Vec<&str> = FIXTURE.lines().collect();
        let session = session(&[lines[0], lines[1], lines[lines.len() - 1]].join("\n"));
        assert_eq!(session.events.last().unwrap().text.as_str(), "I look.It is red.");
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::CursorPrint, FIXTURE.as_bytes());
    }
}
