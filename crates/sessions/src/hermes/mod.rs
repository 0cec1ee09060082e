//! Reads the Hermes agent, which has three stores of the same sessions:
//!
//! - `~/.hermes/state.db`, the canonical one, in [`state`];
//! - session snapshots, `session_<id>.json`: one object, rewritten on each turn. Often, most of its
//!   bytes are the tools' schemas, which are skipped;
//! - the older gateway's transcript, `~/.hermes/sessions/<id>.jsonl`: a line of metadata, then one
//!   message per line. The session's id is the file name.

mod message;
mod prompt;
pub(super) mod state;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess};

use crate::SessionReadError;
use crate::feed::{ReadNotes, SessionFeed};
use crate::format::{FormatEntry, IdSource};
use crate::source::{DocumentReader, SessionSource, each_record};
use crate::text::Text;
use crate::wire::{JsonValue, LenientObject};
use message::{AGENT, HermesMessage};

/// Session metadata of a line. The tools' schemas are skipped.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GatewayMetadata<'a> {
    model: Text<'a>,
    platform: Text<'a>,
    cwd: Text<'a>,
    session_id: Text<'a>,
}

/// The entry in the table of formats.
pub(crate) const GATEWAY: FormatEntry = FormatEntry {
    json: |value| value.mark("role") == "session_meta",
    ids: IdSource::FileName,
    has_several_stores: true,
    ..FormatEntry::new(read_gateway)
};

/// Reads a transcript.
fn read_gateway(
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
) -> Result<(), SessionReadError> {
    let mut lines = source.lines()?;
    let (mut scratch, mut again) = (String::new(), String::new());
    AGENT.clone_into(&mut feed.head.agent);
    while let Some(line) = lines.next(&mut feed.notes)? {
        let Some(record) =
            line.parse::<LenientObject<HermesMessage<'_>>>(&mut scratch, &mut feed.notes)
        else {
            continue;
        };
        let Some(message) = record.0 else {
            feed.notes.ignored_records += 1;
            continue;
        };
        if message.role.as_str() == "session_meta"
            && let Some(about) =
                line.parse::<GatewayMetadata<'_>>(&mut again, &mut ReadNotes::default())
        {
            // The same line holds both a message and the metadata, so it is parsed a second time.
            about.note(feed);
            feed.record_time(message.timestamp);
        }
        message.send(feed);
    }
    Ok(())
}

impl GatewayMetadata<'_> {
    fn note(&self, feed: &mut SessionFeed<'_>) {
        let head = &mut feed.head;
        head.add_model(&self.model);
        head.platform = self.platform.line(400).or(head.platform.take());
        head.cwd = self.cwd.line(400).or(head.cwd.take());
        if let Some(id) = self.session_id.line(400) {
            head.id = id;
        }
    }
}

/// The entry in the table of formats.
pub(crate) const SNAPSHOT: FormatEntry = FormatEntry {
    json: |value| ["session_id", "session_start", "messages"].iter().all(|key| value.has(key)),
    ids: IdSource::FileName,
    has_several_stores: true,
    ..FormatEntry::new(read_snapshot)
};

/// Reads a snapshot.
fn read_snapshot(
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
) -> Result<(), SessionReadError> {
    source.read_document(&mut HermesSnapshotDocument, feed)
}

struct HermesSnapshotDocument;

impl DocumentReader for HermesSnapshotDocument {
    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        AGENT.clone_into(&mut feed.head.agent);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "session_id" => feed.head.id = map.next_value::<Text<'de>>()?.as_str().to_owned(),
                "model" => feed.head.add_model(&map.next_value::<Text<'de>>()?),
                "platform" => feed.head.platform = map.next_value::<Text<'de>>()?.line(400),
                "parent_session_id" => feed.head.parent = map.next_value::<Text<'de>>()?.line(400),
                "cwd" => feed.head.cwd = map.next_value::<Text<'de>>()?.line(400),
                // Some builds store the working directory in the model settings.
                "model_config" => {
                    let cwd = map.next_value::<JsonValue>()?.text("/cwd").line(400);
                    feed.head.cwd = feed.head.cwd.take().or(cwd);
                }
                "session_start" | "last_updated" => feed.record_time(map.next_value()?),
                "messages" => {
                    map.next_value_seed(each_record(feed, |message: HermesMessage<'de>, feed| {
                        message.send(feed);
                    }))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::test_support::survives_damage;
    use crate::{
        EventMark, EventOrigin, EventRole, ReadSummary, Session, SessionCollector, SessionFormat,
        SessionSource, ToolOutcome, read,
    };

    /// 2 human messages, of which one in front of a summary's end and one by `/steer`; 4 of the
    /// harness (a summary, a review, a skill, the rules); 3 model calls; 5 tool calls: ok by its
    /// meaning, failed, rejected, a file that landed, one never answered.
    const SNAPSHOT: &str = r#"{
  "session_id": "20260429_200500_ab12cd", "model": "m-1", "platform": "cli",
  "session_start": "2026-04-29T20:05:00", "last_updated": "2026-04-29T20:06:00.5",
  "model_config": {"cwd": "/work"}, "system_prompt": "rules", "message_count": 13,
  "tools": [{"type": "function", "function": {"name": "terminal"}}],
  "messages": [
    {"role": "system", "content": "rules"},
    {"role": "user", "content": "[CONTEXT COMPACTION – REFERENCE ONLY] earlier"},
    {"role": "user", "content": "[SYSTEM: The user has invoked the \"pr\" skill. The full skill content is loaded below.]\n\n# PR\n\nThe user has provided the following instruction alongside the skill invocation: open one"},
    {"role": "assistant", "content": "<think>\nlook\n</think>\nOn it.", "reasoning": "look",
     "reasoning_content": "look", "finish_reason": "tool_calls", "tool_calls": [
       {"id": "c1", "call_id": "c1", "type": "function",
        "function": {"name": "terminal", "arguments": "{\"command\": \"grep x y\"}"}},
       {"id": "c2", "name": "terminal", "arguments": {"command": "false"}},
       {"call_id": "c3", "name": "terminal", "input": {}}]},
    {"role": "tool", "tool_call_id": "c1", "tool_name": "terminal", "content": "{\"output\": \"\", \"exit_code\": 1, \"error\": null, \"exit_code_meaning\": \"No matches found (not an error)\"}\n\n[Tool loop warning: same call]"},
    {"role": "tool", "tool_call_id": "c2", "name": "terminal", "content": "{\"output\": \"\", \"exit_code\": 2, \"error\": null}\n\n[OUT-OF-BAND USER MESSAGE — direct]\nuse rg\n[/OUT-OF-BAND USER MESSAGE]"},
    {"role": "tool", "tool_call_id": "c3", "content": "{\"output\": \"\", \"exit_code\": -1, \"error\": \"BLOCKED\", \"status\": \"blocked\"}"},
    {"role": "assistant", "content": "", "tool_calls": [
       {"id": "c4", "function": {"name": "write_file", "arguments": "{}"}},
       {"id": "c5", "function": {"name": "patch", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c4", "content": "{\"bytes_written\": 3}"},
    {"role": "user", "content": "Review the conversation above and update the skill library. Be ACTIVE."},
    {"role": "assistant", "content": [{"type": "text", "text": "Nothing to save."}],
     "reasoning_details": [{"type": "reasoning.text", "text": "why"}]},
    {"role": "session_meta"}, 7
  ]
}"#;

    const GATEWAY: &str = concat!(
        r#"{"role":"session_meta","tools":[{"a":1}],"model":"m-1","platform":"slack","timestamp":"2026-04-29T20:05:00.214"}"#,
        "\n",
        r#"{"role":"user","content":"hello","timestamp":"2026-04-29T20:05:05"}"#,
        "\nnot json\n",
        r#"{"role":"assistant","content":"hi \ud83d","reasoning":"greet","timestamp":"2026-04-29T20:05:07"}"#,
        "\n",
        r#"{"role":"assistant","content":"torn"#,
    );

    fn session(name: &str, text: &str, format: SessionFormat) -> (Session, ReadSummary) {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes(name, text), &mut collector).unwrap();
        assert_eq!(reading.format, format);
        (collector.into_sessions().remove(0), reading)
    }

    #[test]
    fn a_whole_snapshot() {
        let (session, reading) = session("session_x.json", SNAPSHOT, SessionFormat::HermesSnapshot);
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.agent.as_str()), ("20260429_200500_ab12cd", "hermes"));
        assert_eq!((head.cwd.as_deref(), head.platform.as_deref()), (Some("/work"), Some("cli")));
        assert_eq!(head.start.unwrap().to_string(), "2026-04-29T20:05:00Z");
        assert_eq!(head.end.unwrap().to_string(), "2026-04-29T20:06:00.5Z");
        assert_eq!((reading.notes.ignored_records, reading.notes.bad_records), (1, 1));

        let of = |role: EventRole, origin: EventOrigin| -> Vec<&str> {
            let events = session.events.iter();
            let events = events.filter(|event| (event.role, event.origin) == (role, origin));
            events.map(|event| event.text.as_str()).collect()
        };
        assert_eq!(of(EventRole::User, EventOrigin::Human), ["open one", "use rg"]);
        assert_eq!(of(EventRole::User, EventOrigin::Harness).len(), 3);
        assert_eq!(of(EventRole::System, EventOrigin::Harness), ["rules"]);
        assert_eq!(
            of(EventRole::Assistant, EventOrigin::Agent),
            ["On it.", "", "Nothing to save."]
        );
        assert_eq!(session.events[1].mark, Some(EventMark::Compacted));
        let thoughts = session.events.iter().map(|event| event.reasoning.as_str());
        assert_eq!(
            thoughts.filter(|thought| !thought.is_empty()).collect::<Vec<_>>(),
            ["look", "why"]
        );

        let results: Vec<_> = session
            .events
            .iter()
            .flat_map(|event| &event.results)
            .map(|result| (result.call_id.as_str(), result.tool.as_str(), result.outcome))
            .collect();
        assert_eq!(
            results,
            [
                ("c1", "terminal", ToolOutcome::Ok),
                ("c2", "terminal", ToolOutcome::Failed),
                ("c3", "terminal", ToolOutcome::Rejected),
                ("c4", "write_file", ToolOutcome::Ok),
                ("c5", "patch", ToolOutcome::Pending),
            ]
        );
        let arguments = session.events.iter().flat_map(|event| &event.calls);
        let arguments: Vec<_> = arguments.map(|call| call.arguments.as_str()).collect();
        assert_eq!(
            arguments,
            [r#"{"command": "grep x y"}"#, r#"{"command": "false"}"#, "{}", "{}", "{}"]
        );
    }

    #[test]
    fn a_torn_transcript_of_the_gateway() {
        let (session, reading) = session("20260429_x.jsonl", GATEWAY, SessionFormat::HermesGateway);
        assert_eq!((reading.notes.bad_records, reading.notes.repaired_records), (1, 1));
        assert_eq!(reading.notes.torn.as_deref(), Some("line 5"));
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.platform.as_deref()), ("20260429_x", Some("slack")));
        assert_eq!(head.models, ["m-1"]);
        assert_eq!(head.start.unwrap().to_string(), "2026-04-29T20:05:00.214Z");
        assert_eq!(head.end.unwrap().to_string(), "2026-04-29T20:05:07Z");
        assert_eq!(session.events.len(), 2);
        assert_eq!(session.events[0].origin, EventOrigin::Human);
        assert_eq!(session.events[1].reasoning.as_str(), "greet");
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::HermesSnapshot, SNAPSHOT.as_bytes());
        survives_damage(SessionFormat::HermesGateway, GATEWAY.as_bytes());
    }
}
