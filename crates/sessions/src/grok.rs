//! Reads Grok: `~/.grok/sessions/<folder>/<id>/chat_history.jsonl`, one message per line. Messages
//! have no times; those of the session are in `summary.json` beside it.

use std::path::Path;

use serde::Deserialize;

use super::blocks::{ContentBlocks, MessageContext};
use super::content::MessageContent;
use super::event::{EventOrigin, EventRole, ToolCall};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonText, JsonValue, LenientList};
use super::{SessionReadError, failure};
use crate::format::{AgentFolders, FormatEntry, HomeRoot};
use selftest_text::file::read_bounded_text;

/// Name of the file.
const NAME: &str = "chat_history.jsonl";

/// Maximum bytes of the file beside the session.
const MAX_SUMMARY: u64 = 1024 * 1024;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    // Its lines are like those of other chats; the file beside them is not.
    source: |source| {
        let path = source.path();
        path.file_name().is_some_and(|name| name == NAME)
            && path.with_file_name("summary.json").is_file()
    },
    folders: &[AgentFolders {
        agent: "grok",
        variable: Some("GROK_HOME"),
        roots: &[HomeRoot::Home(".grok")],
        parts: &["sessions"],
    }],
    ..FormatEntry::new(read)
};

/// Reads one session.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    "grok".clone_into(&mut feed.head.agent);
    describe(source.path(), feed);
    let mut thought = Text::default();
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(row) = line.parse::<GrokRow<'_>>(&mut scratch, &mut feed.notes) {
            row.send(&mut thought, feed);
        }
    }
    Ok(())
}

/// Takes folder and dates from the summary. The folder has the id of the session.
fn describe(path: &Path, feed: &mut SessionFeed<'_>) {
    let name = path.parent().and_then(Path::file_name).unwrap_or_default();
    feed.head.id = selftest_text::one_line(&name.to_string_lossy(), 200);
    let file = path.with_file_name("summary.json");
    let Ok(text) = read_bounded_text(&file, MAX_SUMMARY) else { return };
    let about = JsonValue::parse(&text);
    for name in ["/created_at", "/createdAt", "/updated_at", "/updatedAt", "/lastActiveAt"] {
        feed.record_time(Moment::parse(&about.text(name)));
    }
    let folders = ["/info/cwd", "/cwd", "/gitRootDir"].map(|name| about.text(name));
    feed.head.cwd = folders.into_iter().find_map(|folder| folder.line(400));
    let parents = ["/parent_session_id", "/parentSessionId"].map(|name| about.text(name));
    feed.head.parent = parents.into_iter().find_map(|parent| parent.line(200));
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GrokRow<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    /// In older versions.
    role: Text<'a>,
    content: MessageContent<'a>,
    /// Set for what no person typed.
    synthetic_reason: Text<'a>,
    summary: Text<'a>,
    reasoning: Text<'a>,
    reasoning_content: Text<'a>,
    model_id: Text<'a>,
    tool_calls: LenientList<GrokCall<'a>>,
    tool_call_id: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GrokCall<'a> {
    id: Text<'a>,
    name: Text<'a>,
    #[serde(alias = "input")]
    arguments: JsonText,
    function: JsonValue,
}

impl<'a> GrokCall<'a> {
    fn into_call(self) -> ToolCall<'a> {
        let name = if self.name.is_empty() { self.function.text("/name") } else { self.name };
        let arguments = if self.arguments.0.is_empty() {
            self.function.text("/arguments")
        } else {
            self.arguments.0
        };
        ToolCall { id: self.id, name, arguments }
    }
}

impl GrokRow<'_> {
    fn send(self, thought: &mut Text<'static>, feed: &mut SessionFeed<'_>) {
        let content = self.content.0;
        let known = ["system", "user", "assistant", "reasoning", "tool_result", "tool"];
        let kind = if known.contains(&self.kind.as_str()) { &self.kind } else { &self.role };
        match kind.as_str() {
            "system" => feed.send_text(EventRole::System, EventOrigin::Harness, content, None),
            "user" => {
                let reason = self.synthetic_reason.as_str();
                let is_typed = reason.is_empty() || reason == "interjection";
                let is_injected = ["<user_info>", "<system-reminder>", "<skills"]
                    .iter()
                    .any(|start| content.trim_start().starts_with(start));
                let origin = if is_typed && !is_injected {
                    EventOrigin::Human
                } else {
                    EventOrigin::Harness
                };
                let content = content.map(|text| {
                    // The program wraps the request in other text for the model.
                    let (_, rest) = text.split_once("<user_query>")?;
                    Some(rest.split("</user_query>").next()?.trim().to_owned())
                });
                feed.send_text(EventRole::User, origin, content, None);
            }
            // A line of its own before the answer that it belongs to.
            "reasoning" => {
                for text in [content, self.summary] {
                    thought.append(&text);
                }
            }
            "assistant" => {
                feed.head.add_model(&self.model_id);
                let mut blocks = ContentBlocks::default();
                blocks.think(std::mem::take(thought));
                blocks.think(self.reasoning);
                blocks.think(self.reasoning_content);
                blocks.say(content);
                self.tool_calls.0.into_iter().for_each(|call| blocks.call(call.into_call()));
                blocks.send_answer(&MessageContext::new(EventOrigin::Agent, None), feed);
            }
            "tool_result" | "tool" => {
                let mut result = failure::result_of(content);
                result.call_id = self.tool_call_id;
                feed.send_results(EventOrigin::Agent, vec![result], None);
            }
            // Tools that run at the provider.
            "" if self.kind.as_str() == "backend_tool_call" => feed.notes.ignored_records += 1,
            kind => {
                let kind = if kind.is_empty() { self.kind.as_str() } else { kind };
                feed.count_unknown(kind);
                feed.notes.ignored_records += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SessionFormat;
    use super::super::event::ToolOutcome;
    use super::super::test_support::survives_damage;
    use super::*;
    use crate::test_support::only_session;

    /// 1 human turn, 2 model calls, 1 call that failed.
    const FIXTURE: &str = r#"{"type":"system","content":"You are Grok"}
{"type":"user","content":"<user_info>\nOS\n</user_info>","synthetic_reason":"context"}
{"type":"user","content":[{"type":"text","text":"<user_query>\nfix it\n</user_query>"}]}
{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}
{"type":"assistant","content":"I look.","model_id":"grok-x","tool_calls":[{"id":"c1","name":"bash","arguments":"{\"command\":\"make\"}"}]}
{"type":"tool_result","tool_call_id":"c1","content":"Error: no rule"}
{"type":"assistant","content":"Fixed.","model_id":"grok-x"}
"#;

    #[test]
    fn the_fixture_has_its_counted_totals() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s-1").join(NAME);
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, FIXTURE).unwrap();
        let about = r#"{"info":{"id":"s-1","cwd":"/w"},"created_at":"2026-04-29T20:05:00Z"}"#;
        std::fs::write(path.with_file_name("summary.json"), about).unwrap();
        let session = only_session(SessionFormat::Grok, &SessionSource::file(path));
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.cwd.as_deref()), ("s-1", Some("/w")));
        assert_eq!(
            (head.start.unwrap().to_string(), head.models.len()),
            ("2026-04-29T20:05:00Z".to_owned(), 1)
        );
        let said: Vec<_> = session
            .events
            .iter()
            .map(|event| (event.origin, event.text.as_str(), event.calls.len()))
            .collect();
        assert_eq!(
            said[2..],
            [
                (EventOrigin::Human, "fix it", 0),
                (EventOrigin::Agent, "I look.", 1),
                (EventOrigin::Agent, "", 0),
                (EventOrigin::Agent, "Fixed.", 0),
            ]
        );
        assert_eq!(session.events[3].reasoning.as_str(), "hm");
        let result = &session.events[4].results[0];
        assert_eq!((result.tool.as_str(), result.outcome), ("bash", ToolOutcome::Failed));
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::Grok, FIXTURE.as_bytes());
    }
}
