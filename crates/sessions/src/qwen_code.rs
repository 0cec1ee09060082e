//! Reads Qwen Code, `~/.qwen/projects/<folder>/chats/<session>.jsonl`: JSON lines with records like
//! Claude Code's and messages in Gemini's `QwenContent` format.
//!
//! Records form a tree through `uuid` and `parentUuid`, and going back starts a new branch. The
//! branch of the last record counts. If the file has a fork, it is read a second time without the
//! other branches. The outcome of a call is stored beside the message (`toolCallResult`).

use std::collections::HashSet;

use serde::Deserialize;

use super::SessionReadError;
use super::blocks::{ContentBlocks, MessageContext};
use super::event::{Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolOutcome};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::text::Text;
use super::time::Moment;
use super::wire::{LenientInt, LenientObject};
use crate::format::{
    AgentFolders, FormatEntry, HomeRoot, IdSource, VerificationBasis, VerifiedVersion,
};
use crate::wire::{ById, RecordId};

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| {
        let has_parts = value.inner("message").is_some_and(|message| message.has("parts"));
        value.has("sessionId") && (has_parts || value.has("systemPayload"))
    },
    ids: IdSource::FileName,
    folders: &[AgentFolders {
        agent: "qwen-code",
        variable: Some("QWEN_HOME"),
        roots: &[HomeRoot::Home(".qwen")],
        parts: &["projects"],
    }],
    verified: Some(VerifiedVersion {
        agent: "qwen-code",
        version: "0.9.0",
        basis: VerificationBasis::OwnFixture,
    }),
    ..FormatEntry::new(read)
};

/// Reads one session.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut tree = QwenTree::default();
    read_pass(source, feed, |id, parent| {
        tree.add(id, parent);
        true
    })?;
    if let Some(branch) = tree.branch() {
        feed.restart();
        read_pass(source, feed, |id, _| branch.contains(&id))?;
    }
    Ok(())
}

/// Reads the file once and sends the records that `keep` accepts. Records without an id are always
/// sent.
fn read_pass(
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
    mut keep: impl FnMut(RecordId, RecordId) -> bool,
) -> Result<(), SessionReadError> {
    "qwen-code".clone_into(&mut feed.head.agent);
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        let Some(record) = line.parse::<QwenRecord<'_>>(&mut scratch, &mut feed.notes) else {
            continue;
        };
        if record.uuid.is_none() || keep(record.uuid, record.parent_uuid) {
            record.send(feed);
        } else {
            feed.notes.dropped_records += 1;
        }
    }
    Ok(())
}

/// Parent links between records.
#[derive(Default)]
struct QwenTree {
    parents: ById<RecordId>,
    followed: HashSet<RecordId>,
    last: RecordId,
    has_fork: bool,
}

impl QwenTree {
    fn add(&mut self, id: RecordId, parent: RecordId) {
        // Parts of one message may share an id.
        if self.parents.insert(id, parent).is_none() {
            self.has_fork |= !parent.is_none() && !self.followed.insert(parent);
        }
        self.last = id;
    }

    /// Returns the records on the path to the last one; `None` if there is no fork.
    fn branch(&self) -> Option<HashSet<RecordId>> {
        if !self.has_fork {
            return None;
        }
        let mut branch = HashSet::new();
        let mut at = self.last;
        // A record seen before means a cycle.
        while !at.is_none() && branch.insert(at) {
            at = self.parents.get(&at).copied().unwrap_or_default();
        }
        Some(branch)
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct QwenRecord<'a> {
    uuid: RecordId,
    parent_uuid: RecordId,
    session_id: Text<'a>,
    timestamp: Moment,
    #[serde(rename = "type")]
    kind: Text<'a>,
    subtype: Text<'a>,
    cwd: Text<'a>,
    version: Text<'a>,
    model: Text<'a>,
    message: LenientObject<QwenContent<'a>>,
    usage_metadata: LenientObject<QwenTokens>,
    tool_call_result: LenientObject<CallStatus<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct QwenContent<'a> {
    parts: ContentBlocks<'a>,
}

/// Outcome of a call, as Qwen Code reports it.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CallStatus<'a> {
    status: Text<'a>,
}

/// Token counts. The prompt's include cached tokens, the candidates' include reasoning.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the format")]
struct QwenTokens {
    prompt_token_count: LenientInt,
    candidates_token_count: LenientInt,
    cached_content_token_count: LenientInt,
}

impl QwenTokens {
    fn usage(&self) -> TokenCounts {
        let cached = self.cached_content_token_count.count();
        TokenCounts {
            input: self.prompt_token_count.count().saturating_sub(cached),
            output: self.candidates_token_count.count(),
            cached,
        }
    }
}

/// Prefixes of user messages that the program writes.
const HARNESS: [&str; 4] =
    ["<session_context>", "<system-reminder>", "<state_snapshot>", "<task-notification>"];

/// Subtypes of `user` records that no person typed.
const AUTOMATIC: [&str; 5] =
    ["notification", "background_task_completed", "cron", "goal_runtime", "agent_bootstrap"];

impl QwenRecord<'_> {
    fn send(self, feed: &mut SessionFeed<'_>) {
        let head = &mut feed.head;
        if head.id.is_empty() {
            self.session_id.as_str().clone_into(&mut head.id);
        }
        head.cwd = head.cwd.take().or_else(|| self.cwd.line(400));
        head.agent_version = self.version.line(60).or(head.agent_version.take());
        feed.record_time(self.timestamp);
        let time = self.timestamp.0;
        let mut parts = self.message.0.unwrap_or_default().parts;
        match self.kind.as_str() {
            "assistant" => {
                feed.head.add_model(&self.model);
                let usage = self.usage_metadata.0.as_ref().map(QwenTokens::usage);
                let speaker =
                    MessageContext { usage, ..MessageContext::new(EventOrigin::Agent, time) };
                parts.send_answer(&speaker, feed);
            }
            "user" | "tool_result" => {
                let text = parts.first_text();
                let is_harness = AUTOMATIC.contains(&self.subtype.as_str())
                    || HARNESS.iter().any(|start| text.trim_start().starts_with(start));
                let origin = if is_harness { EventOrigin::Harness } else { EventOrigin::Human };
                if let Some(outcome) = self.tool_call_result.0.and_then(|ending| ending.outcome()) {
                    // The status beside the message is more reliable than the text.
                    parts.each_step(|step| {
                        step.results.iter_mut().for_each(|result| result.outcome = outcome);
                    });
                }
                parts.send_input(&MessageContext::new(origin, time), EventRole::User, feed);
            }
            "system" if self.subtype.as_str() == "chat_compression" => {
                let mark = Some(EventMark::Compacted);
                feed.send(Event { time, mark, ..Event::default() });
            }
            "system" => feed.notes.ignored_records += 1,
            kind => {
                feed.count_unknown(kind);
                feed.notes.ignored_records += 1;
            }
        }
    }
}

impl CallStatus<'_> {
    fn outcome(&self) -> Option<ToolOutcome> {
        match self.status.as_str() {
            "success" => Some(ToolOutcome::Ok),
            "error" => Some(ToolOutcome::Failed),
            "cancelled" => Some(ToolOutcome::Rejected),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::survives_damage;
    use super::super::{SessionCollector, SessionFormat, read};
    use super::*;

    /// 1 human turn, 2 model calls, 2 tool calls of which 1 failed; the first answer was rewound.
    const FIXTURE: &str = r#"{"uuid":"u1","parentUuid":null,"sessionId":"q-1","timestamp":"2026-02-01T10:00:00.000Z","type":"user","cwd":"/w","version":"0.9.0","message":{"role":"user","parts":[{"text":"fix the build"}]}}
{"uuid":"a0","parentUuid":"u1","sessionId":"q-1","timestamp":"2026-02-01T10:00:02.000Z","type":"assistant","model":"qwen3-coder-plus","message":{"role":"model","parts":[{"text":"taken back"}]}}
{"uuid":"a1","parentUuid":"u1","sessionId":"q-1","timestamp":"2026-02-01T10:00:05.000Z","type":"assistant","model":"qwen3-coder-plus","message":{"role":"model","parts":[{"text":"I look.","thought":true},{"functionCall":{"id":"c1","name":"run_shell_command","args":{"command":"make"}}},{"functionCall":{"id":"c2","name":"read_file","args":{"path":"Makefile"}}}]},"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":20,"cachedContentTokenCount":30,"totalTokenCount":120}}
{"uuid":"r1","parentUuid":"a1","sessionId":"q-1","timestamp":"2026-02-01T10:00:07.000Z","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"run_shell_command","response":{"error":"make: *** No rule"}}}]},"toolCallResult":{"callId":"c1","status":"error"}}
{"uuid":"r2","parentUuid":"r1","sessionId":"q-1","timestamp":"2026-02-01T10:00:08.000Z","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c2","name":"read_file","response":{"output":"all:"}}}]},"toolCallResult":{"callId":"c2","status":"success"}}
{"uuid":"s1","parentUuid":"r2","sessionId":"q-1","timestamp":"2026-02-01T10:00:08.500Z","type":"system","subtype":"ui_telemetry","systemPayload":{"uiEvent":{}}}
{"uuid":"a2","parentUuid":"s1","sessionId":"q-1","timestamp":"2026-02-01T10:00:09.000Z","type":"assistant","model":"qwen3-coder-plus","message":{"role":"model","parts":[{"text":"Fixed."}]}}
"#;

    #[test]
    fn the_fixture_has_its_counted_totals() {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("q-1.jsonl", FIXTURE), &mut collector).unwrap();
        assert_eq!(reading.format, SessionFormat::QwenCode);
        assert_eq!((reading.notes.dropped_records, reading.notes.ignored_records), (1, 1));
        let session = collector.into_sessions().remove(0);
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.agent.as_str()), ("q-1", "qwen-code"));
        assert_eq!((head.cwd.as_deref(), head.models.len()), (Some("/w"), 1));
        let roles: Vec<_> = session.events.iter().map(|event| (event.role, event.origin)).collect();
        assert_eq!(
            roles,
            [
                (EventRole::User, EventOrigin::Human),
                (EventRole::Assistant, EventOrigin::Agent),
                (EventRole::Tool, EventOrigin::Agent),
                (EventRole::Tool, EventOrigin::Agent),
                (EventRole::Assistant, EventOrigin::Agent),
            ]
        );
        let answer = &session.events[1];
        assert_eq!((answer.reasoning.as_str(), answer.calls.len()), ("I look.", 2));
        assert_eq!(answer.usage, Some(TokenCounts { input: 70, output: 20, cached: 30 }));
        let failed = &session.events[2].results[0];
        assert_eq!(
            (failed.outcome, failed.error.as_str()),
            (ToolOutcome::Failed, "make: *** No rule")
        );
        let worked = &session.events[3].results[0];
        assert_eq!((worked.outcome, worked.text.as_str()), (ToolOutcome::Ok, "all:"));
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::QwenCode, FIXTURE.as_bytes());
    }
}
