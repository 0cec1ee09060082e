//! Reads Kimi: `~/.kimi-code/sessions/<folder>/<session>/agents/<agent>/wire.jsonl` and, of Kimi
//! CLI, `~/.kimi/sessions/<folder>/<session>/wire.jsonl`. Both are the events between the agent and
//! its display. `context.jsonl` beside the latter repeats them and is not searched.

use std::path::Path;

use serde::Deserialize;

use super::blocks::{ContentBlocks, MessageContext};
use super::event::{Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonText, LenientFlag, LenientInt, LenientObject};
use super::{SessionReadError, failure};
use crate::format::{
    AgentFolders, FormatEntry, HomeRoot, IdSource, VerificationBasis, VerifiedVersion,
};

/// Types of records of Kimi Code that identify the format.
const TYPES: [&str; 4] = ["turn.prompt", "turn.steer", "context.append_loop_event", "usage.record"];

/// Types of messages of Kimi CLI that identify the format.
const MESSAGES: [&str; 5] = ["TurnBegin", "StepBegin", "ContentPart", "ToolCall", "StatusUpdate"];

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| {
        let is_wire = |message: &crate::outline::JsonOutline| {
            MESSAGES.contains(&message.mark("type")) && message.has("payload")
        };
        TYPES.contains(&value.mark("type"))
            || (value.mark("type") == "metadata" && value.has("protocol_version"))
            || value.inner("message").is_some_and(is_wire)
    },
    ids: IdSource::FolderName,
    folders: &[
        AgentFolders {
            agent: "kimi",
            variable: Some("KIMI_CODE_HOME"),
            roots: &[HomeRoot::Home(".kimi-code")],
            parts: &["sessions"],
        },
        AgentFolders {
            agent: "kimi",
            variable: Some("KIMI_SHARE_DIR"),
            roots: &[HomeRoot::Home(".kimi")],
            parts: &["sessions"],
        },
    ],
    verified: Some(VerifiedVersion {
        agent: "kimi",
        version: "0.9",
        basis: VerificationBasis::OwnFixture,
    }),
    ..FormatEntry::new(read)
};

/// Reads one session.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    "kimi".clone_into(&mut feed.head.agent);
    let (id, parent) = ids(source.path());
    feed.head.id = id;
    feed.head.parent = parent;
    let mut wire = KimiWire::default();
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(record) = line.parse::<KimiRecord<'_>>(&mut scratch, &mut feed.notes) {
            wire.record(record, feed);
        }
    }
    wire.flush(feed);
    Ok(())
}

/// Returns the ids of a session and of its parent. Its folder has its name; that of a subagent is
/// inside of it.
fn ids(path: &Path) -> (String, Option<String>) {
    let is_wire = path.file_name().is_some_and(|name| name == "wire.jsonl");
    let mut folders = path.ancestors().skip(1).filter_map(|folder| folder.file_name());
    let mut next =
        || folders.next().map(|name| selftest_text::one_line(&name.to_string_lossy(), 120));
    let (Some(folder), above, session) = (next().filter(|_| is_wire), next(), next()) else {
        return (String::new(), None);
    };
    match (above.as_deref(), session) {
        // `<session>/agents/main/wire.jsonl` is the session itself; other folders there are
        // subagents.
        (Some("agents"), Some(session)) if folder == "main" => (session, None),
        (Some("agents" | "subagents"), Some(session)) => {
            (format!("{session}/agent-{folder}"), Some(session))
        }
        // Kimi CLI: `<session>/wire.jsonl`.
        _ => (folder, None),
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct KimiRecord<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    timestamp: Moment,
    time: Moment,
    created_at: Moment,
    app_version: Text<'a>,
    /// Kimi CLI: the event.
    message: LenientObject<WireMessage<'a>>,
    /// Kimi Code: the event of a loop.
    event: LenientObject<LoopEvent<'a>>,
    input: Text<'a>,
    model: Text<'a>,
    #[serde(rename = "modelAlias")]
    model_alias: Text<'a>,
    cwd: Text<'a>,
    usage: LenientObject<KimiTokens>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WireMessage<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    payload: LenientObject<WirePayload<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WirePayload<'a> {
    /// A text or parts.
    user_input: Text<'a>,
    #[serde(rename = "type")]
    kind: Text<'a>,
    text: Text<'a>,
    think: Text<'a>,
    id: Text<'a>,
    function: LenientObject<KimiFunction<'a>>,
    tool_call_id: Text<'a>,
    return_value: LenientObject<KimiOutput<'a>>,
    token_usage: LenientObject<KimiTokens>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct KimiFunction<'a> {
    name: Text<'a>,
    arguments: JsonText,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct LoopEvent<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    part: LenientObject<KimiPart<'a>>,
    name: Text<'a>,
    args: JsonText,
    tool_call_id: Text<'a>,
    result: LenientObject<KimiOutput<'a>>,
    usage: LenientObject<KimiTokens>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct KimiPart<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    text: Text<'a>,
    think: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct KimiOutput<'a> {
    #[serde(alias = "isError")]
    is_error: LenientFlag,
    /// A text or parts.
    output: Text<'a>,
    message: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct KimiTokens {
    #[serde(alias = "inputOther")]
    input_other: LenientInt,
    #[serde(alias = "inputCacheRead")]
    input_cache_read: LenientInt,
    #[serde(alias = "inputCacheCreation")]
    input_cache_creation: LenientInt,
    output: LenientInt,
}

impl KimiTokens {
    fn usage(&self) -> TokenCounts {
        TokenCounts {
            input: self.input_other.count() + self.input_cache_creation.count(),
            output: self.output.count(),
            cached: self.input_cache_read.count(),
        }
    }
}

/// The answer that is being assembled. Its tokens are known at its end, after its calls.
#[derive(Default)]
struct KimiWire {
    blocks: ContentBlocks<'static>,
    usage: Option<TokenCounts>,
    time: Option<jiff::Timestamp>,
    /// Tokens of the last step, which the record after it repeats.
    counted: Option<TokenCounts>,
}

impl KimiWire {
    fn record(&mut self, record: KimiRecord<'_>, feed: &mut SessionFeed<'_>) {
        let time = Moment(record.timestamp.0.or(record.time.0).or(record.created_at.0));
        feed.record_time(time);
        let time = time.0;
        feed.head.agent_version = feed.head.agent_version.take().or(record.app_version.line(60));
        feed.head.cwd = feed.head.cwd.take().or(record.cwd.line(400));
        if let Some(message) = record.message.0 {
            return self.message(message, time, feed);
        }
        match record.kind.as_str() {
            "turn.prompt" | "turn.steer" => self.ask(record.input, time, feed),
            "context.append_loop_event" => {
                if let Some(event) = record.event.0 {
                    self.event(event, time, feed);
                }
            }
            "usage.record" => {
                feed.head.add_model(&record.model);
                if let Some(usage) = record.usage.0.map(|usage| usage.usage())
                    // Kimi Code writes the tokens of a step in its end and again in the record
                    // after it; a record without such an end is a model call of its own.
                    && self.counted.take() != Some(usage)
                {
                    self.flush(feed);
                    self.usage = Some(usage);
                    self.flush(feed);
                }
            }
            "config.update" => feed.head.add_model(&record.model_alias),
            _ => feed.notes.ignored_records += 1,
        }
    }

    /// Takes an event of Kimi CLI.
    fn message(
        &mut self,
        message: WireMessage<'_>,
        time: Option<jiff::Timestamp>,
        feed: &mut SessionFeed<'_>,
    ) {
        let payload = message.payload.0.unwrap_or_default();
        match message.kind.as_str() {
            "TurnBegin" | "SteerInput" => self.ask(payload.user_input, time, feed),
            // A step is one call to the model. Its results belong to it, and what follows them is
            // the next step.
            "StepBegin" | "TurnEnd" => self.flush(feed),
            "ContentPart" => self.part(&payload.kind, payload.text, payload.think, time, feed),
            "ToolCall" => {
                let function = payload.function.0.unwrap_or_default();
                self.call(payload.id, function.name, function.arguments.0, time);
            }
            "ToolResult" => {
                self.result(payload.tool_call_id, payload.return_value.0.unwrap_or_default());
            }
            "StatusUpdate" => {
                let usage = payload.token_usage.0.map(|usage| usage.usage());
                // A later one may lack the tokens.
                self.usage = usage.or(self.usage);
            }
            "StepInterrupted" => self.mark(EventMark::Interrupted, time, feed),
            "CompactionEnd" => self.mark(EventMark::Compacted, time, feed),
            _ => feed.notes.ignored_records += 1,
        }
    }

    /// Takes an event of Kimi Code.
    fn event(
        &mut self,
        event: LoopEvent<'_>,
        time: Option<jiff::Timestamp>,
        feed: &mut SessionFeed<'_>,
    ) {
        match event.kind.as_str() {
            "step.begin" => self.flush(feed),
            "content.part" => {
                let part = event.part.0.unwrap_or_default();
                self.part(&part.kind, part.text, part.think, time, feed);
            }
            "tool.call" => self.call(event.tool_call_id, event.name, event.args.0, time),
            "tool.result" => self.result(event.tool_call_id, event.result.0.unwrap_or_default()),
            "step.end" => {
                self.usage = event.usage.0.map(|usage| usage.usage()).or(self.usage);
                self.counted = self.usage;
            }
            _ => feed.notes.ignored_records += 1,
        }
    }

    fn ask(&mut self, text: Text<'_>, time: Option<jiff::Timestamp>, feed: &mut SessionFeed<'_>) {
        self.flush(feed);
        feed.send_text(EventRole::User, EventOrigin::Human, text, time);
    }

    fn part(
        &mut self,
        kind: &str,
        text: Text<'_>,
        thought: Text<'_>,
        time: Option<jiff::Timestamp>,
        feed: &mut SessionFeed<'_>,
    ) {
        self.time = self.time.or(time);
        match kind {
            "text" => self.blocks.say(text.into_owned()),
            "think" => {
                let thought = if thought.is_empty() { text } else { thought };
                self.blocks.think(thought.into_owned());
            }
            "image_url" | "audio_url" | "video_url" => {
                let kind = kind.trim_end_matches("_url");
                self.blocks.say(Text::media(kind, "", 0));
            }
            kind => feed.count_unknown(kind),
        }
    }

    fn call(
        &mut self,
        id: Text<'_>,
        name: Text<'_>,
        arguments: Text<'static>,
        time: Option<jiff::Timestamp>,
    ) {
        self.time = self.time.or(time);
        let (id, name) = (id.into_owned(), name.into_owned());
        self.blocks.call(ToolCall { id, name, arguments });
    }

    fn result(&mut self, call_id: Text<'_>, output: KimiOutput<'_>) {
        // Without output, the message says what happened.
        let text = if output.output.is_empty() { output.message } else { output.output };
        let mut result = failure::result_of(text.into_owned());
        match output.is_error.0 {
            Some(true) => result.outcome = ToolOutcome::Failed,
            Some(false) => result.outcome = ToolOutcome::Ok,
            None => {}
        }
        result.call_id = call_id.into_owned();
        self.blocks.result(result);
    }

    fn mark(&mut self, mark: EventMark, time: Option<jiff::Timestamp>, feed: &mut SessionFeed<'_>) {
        self.flush(feed);
        feed.send(Event { time, mark: Some(mark), ..Event::default() });
    }

    /// Sends the answer so far.
    fn flush(&mut self, feed: &mut SessionFeed<'_>) {
        let Self { blocks, usage, time, .. } = std::mem::take(self);
        if !blocks.is_empty() || usage.is_some() {
            let speaker = MessageContext { usage, ..MessageContext::new(EventOrigin::Agent, time) };
            blocks.send_answer(&speaker, feed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::survives_damage;
    use super::super::{Session, SessionFormat};
    use super::*;
    use crate::test_support::only_session;

    /// 1 human turn, 2 model calls, 2 calls of which 1 failed.
    const CLI: &str = r#"{"type":"metadata","protocol_version":"1.3"}
{"timestamp":1777493100.5,"message":{"type":"TurnBegin","payload":{"user_input":[{"type":"text","text":"fix it"}]}}}
{"timestamp":1777493101.5,"message":{"type":"StepBegin","payload":{"n":1}}}
{"timestamp":1777493101.6,"message":{"type":"ContentPart","payload":{"type":"think","think":"hm"}}}
{"timestamp":1777493102.0,"message":{"type":"ContentPart","payload":{"type":"text","text":"I look."}}}
{"timestamp":1777493102.1,"message":{"type":"ToolCall","payload":{"type":"function","id":"c1","function":{"name":"Shell","arguments":"{\"command\":\"make\"}"}}}}
{"timestamp":1777493102.2,"message":{"type":"ToolCall","payload":{"type":"function","id":"c2","function":{"name":"ReadFile","arguments":"{\"path\":\"a\"}"}}}}
{"timestamp":1777493102.3,"message":{"type":"StatusUpdate","payload":{"token_usage":{"input_other":10,"output":5,"input_cache_read":100,"input_cache_creation":7}}}}
{"timestamp":1777493103.0,"message":{"type":"ToolResult","payload":{"tool_call_id":"c1","return_value":{"is_error":true,"output":"no rule","message":"Command failed with exit code: 2."}}}}
{"timestamp":1777493103.1,"message":{"type":"ToolResult","payload":{"tool_call_id":"c2","return_value":{"is_error":false,"output":[{"type":"text","text":"all:"}]}}}}
{"timestamp":1777493104.0,"message":{"type":"StepBegin","payload":{"n":2}}}
{"timestamp":1777493104.1,"message":{"type":"ContentPart","payload":{"type":"text","text":"Fixed."}}}
{"timestamp":1777493104.2,"message":{"type":"TurnEnd","payload":{}}}
"#;

    const CODE: &str = r#"{"type":"metadata","protocol_version":"2","app_version":"0.9","created_at":1777493100000}
{"type":"config.update","modelAlias":"kimi-k2","time":1777493100000}
{"type":"turn.prompt","input":[{"type":"text","text":"fix it"}],"time":1777493100500}
{"type":"context.append_loop_event","time":1777493101000,"event":{"type":"step.begin"}}
{"type":"context.append_loop_event","time":1777493101600,"event":{"type":"content.part","part":{"type":"think","think":"hm"}}}
{"type":"context.append_loop_event","time":1777493102000,"event":{"type":"content.part","part":{"type":"text","text":"I look."}}}
{"type":"context.append_loop_event","time":1777493102100,"event":{"type":"tool.call","toolCallId":"c1","name":"Shell","args":{"command":"make"}}}
{"type":"context.append_loop_event","time":1777493102200,"event":{"type":"tool.call","toolCallId":"c2","name":"ReadFile","args":{"path":"a"}}}
{"type":"context.append_loop_event","time":1777493103000,"event":{"type":"tool.result","toolCallId":"c1","result":{"isError":true,"output":"no rule"}}}
{"type":"context.append_loop_event","time":1777493103100,"event":{"type":"tool.result","toolCallId":"c2","result":{"isError":false,"output":"all:"}}}
{"type":"context.append_loop_event","time":1777493103200,"event":{"type":"step.end","usage":{"inputOther":10,"output":5,"inputCacheRead":100,"inputCacheCreation":7}}}
{"type":"usage.record","model":"kimi-k2","usage":{"inputOther":10,"output":5,"inputCacheRead":100,"inputCacheCreation":7},"time":1777493103200}
{"type":"context.append_loop_event","time":1777493104000,"event":{"type":"step.begin"}}
{"type":"context.append_loop_event","time":1777493104100,"event":{"type":"content.part","part":{"type":"text","text":"Fixed."}}}
"#;

    fn session(path: &str, text: &str) -> Session {
        only_session(SessionFormat::Kimi, &SessionSource::bytes(path, text))
    }

    #[test]
    fn both_programs_record_the_same_session() {
        for (path, text) in [
            ("/k/sessions/f/s-1/wire.jsonl", CLI),
            ("/k/sessions/wd_f_0/s-1/agents/main/wire.jsonl", CODE),
        ] {
            let session = session(path, text);
            let head = &session.head;
            assert_eq!((head.id.as_str(), head.agent.as_str()), ("s-1", "kimi"));
            assert_eq!(head.end.unwrap().as_second(), 1_777_493_104);
            let events: Vec<_> = session
                .events
                .iter()
                .map(|event| (event.role, event.text.as_str(), event.calls.len()))
                .collect();
            assert_eq!(
                events,
                [
                    (EventRole::User, "fix it", 0),
                    (EventRole::Assistant, "I look.", 2),
                    (EventRole::Tool, "", 0),
                    (EventRole::Assistant, "Fixed.", 0),
                ]
            );
            let usage: Vec<_> = session.events.iter().filter_map(|event| event.usage).collect();
            assert_eq!(usage, [TokenCounts { input: 17, output: 5, cached: 100 }]);
            let results: Vec<_> = session.events[2]
                .results
                .iter()
                .map(|result| (result.outcome, result.text.as_str()))
                .collect();
            assert_eq!(results, [(ToolOutcome::Failed, "no rule"), (ToolOutcome::Ok, "all:")]);
        }
        let subagent = session("/k/sessions/wd_f_0/s-1/agents/agent-0/wire.jsonl", CODE);
        assert_eq!(subagent.head.id, "s-1/agent-agent-0");
        assert_eq!(subagent.head.parent.as_deref(), Some("s-1"));
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::Kimi, CLI.as_bytes());
        survives_damage(SessionFormat::Kimi, CODE.as_bytes());
    }
}
