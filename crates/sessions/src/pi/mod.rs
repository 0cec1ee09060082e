//! Reads pi sessions: JSON lines of a header and entries, format versions 1 to 3.
//!
//! From version 2, entries form a tree through `id` and `parentId`. Going back in a session and
//! typing something else starts another branch in the same file, and the branch of the last entry
//! counts. Most files have a single branch and are read once; a file with a fork is read again
//! without the other branches.

mod record;
#[cfg(test)]
mod tests;
mod tree;

use super::SessionReadError;
use super::event::{
    Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use super::failure;
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::text::Text;
use crate::entry::{AgentFolders, FormatEntry, HomeRoot, IdSource};
use record::{PiEntry, PiMessage, PiTokens};
use tree::EntryTree;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.mark("type") == "session" && value.has("id"),
    ids: IdSource::FileName,
    folders: &[AgentFolders {
        agent: "pi",
        variable: None,
        roots: &[HomeRoot::Home(".pi")],
        parts: &["agent/sessions"],
    }],
    ..FormatEntry::new(read)
};

/// Reads a session.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut tree = EntryTree::default();
    read_pass(source, feed, |_, entry| {
        tree.add(entry);
        true
    })?;
    if let Some(branch) = tree.branch() {
        feed.restart();
        read_pass(source, feed, |number, _| branch.get(number).copied().unwrap_or(true))?;
    }
    Ok(())
}

/// Reads the file once and sends the entries that `keep` accepts. It receives the number of each
/// entry, from 0 and without the header.
fn read_pass(
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
    mut keep: impl FnMut(usize, &PiEntry<'_>) -> bool,
) -> Result<(), SessionReadError> {
    feed.head.agent = "pi".into();
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    let mut number = 0;
    while let Some(line) = lines.next(&mut feed.notes)? {
        let Some(entry) = line.parse::<PiEntry<'_>>(&mut scratch, &mut feed.notes) else {
            continue;
        };
        if entry.kind.as_str() == "session" {
            read_header(&entry, feed);
            continue;
        }
        if keep(number, &entry) {
            send(entry, feed);
        } else {
            feed.notes.dropped_records += 1;
        }
        number += 1;
    }
    Ok(())
}

/// Reads a header; only the first one counts.
fn read_header(entry: &PiEntry<'_>, feed: &mut SessionFeed<'_>) {
    if !feed.head.id.is_empty() {
        feed.notes.ignored_records += 1;
        return;
    }
    entry.id.as_str().clone_into(&mut feed.head.id);
    feed.head.cwd = entry.cwd.line(400);
    // A path to the other session's file, whose name ends with its id.
    feed.head.parent = entry.parent_session.line(400).map(|path| {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(&path);
        let stem = name.strip_suffix(".jsonl").unwrap_or(name);
        stem.rsplit_once('_').map_or(stem, |(_, id)| id).to_owned()
    });
    feed.record_time(entry.timestamp);
}

fn send(entry: PiEntry<'_>, feed: &mut SessionFeed<'_>) {
    let time = entry.timestamp.0;
    let event = match entry.kind.as_str() {
        "message" => entry.message.0.and_then(|message| message.event(feed)),
        "custom_message" => {
            let text = entry.content.text;
            Some(Event {
                role: EventRole::User,
                origin: EventOrigin::Harness,
                text,
                ..Event::default()
            })
        }
        "compaction" => Some(notice(entry.summary, Some(EventMark::Compacted))),
        "branch_summary" => Some(notice(entry.summary, None)),
        _ => None,
    };
    match event {
        Some(event) => feed.send(Event { time: time.or(event.time), ..event }),
        None => feed.notes.ignored_records += 1,
    }
}

fn notice(text: Text<'_>, mark: Option<EventMark>) -> Event<'_> {
    Event { role: EventRole::System, origin: EventOrigin::Harness, text, mark, ..Event::default() }
}

impl<'a> PiMessage<'a> {
    /// Converts the message to an event; `None` for an unknown role.
    fn event(self, feed: &mut SessionFeed<'_>) -> Option<Event<'a>> {
        let time = self.timestamp.0;
        self.content.unknown.iter().for_each(|kind| feed.count_unknown(kind));
        let event = match self.role.as_str() {
            "user" => user(self.content.text),
            "assistant" => {
                feed.head.add_model(&self.model);
                feed.head.add_stated_cost(self.usage.0.as_ref().and_then(PiTokens::cost));
                self.assistant()
            }
            "toolResult" => {
                let results = vec![self.result()];
                Event {
                    role: EventRole::Tool,
                    origin: EventOrigin::Agent,
                    results,
                    ..Event::default()
                }
            }
            // Run by the user, not by the model, so not a tool call.
            "bashExecution" => {
                let mut text = Text::from(format!("$ {}", self.command));
                text.append(&self.output);
                Event {
                    role: EventRole::User,
                    origin: EventOrigin::Harness,
                    text,
                    ..Event::default()
                }
            }
            "custom" | "hookMessage" => {
                let text = self.content.text;
                Event {
                    role: EventRole::User,
                    origin: EventOrigin::Harness,
                    text,
                    ..Event::default()
                }
            }
            "compactionSummary" => notice(self.summary, Some(EventMark::Compacted)),
            "branchSummary" => notice(self.summary, None),
            _ => return None,
        };
        Some(Event { time, ..event })
    }

    fn assistant(self) -> Event<'a> {
        let mark = match self.stop_reason.as_str() {
            "aborted" => Some(EventMark::Interrupted),
            "error" => Some(EventMark::ApiError),
            _ => None,
        };
        let mut text = self.content.text;
        if mark == Some(EventMark::ApiError) {
            text.append(&self.error);
        }
        let cache_written = self.usage.0.as_ref().map_or(0, |usage| usage.cache_write.count());
        let usage = self.usage.0.map(|usage| TokenCounts {
            input: usage.input.count().saturating_add(usage.cache_write.count()),
            output: usage.output.count(),
            cached: usage.cache_read.count(),
        });
        let (reasoning, calls) = (self.content.thinking, self.content.calls);
        let (role, origin) = (EventRole::Assistant, EventOrigin::Agent);
        let said = Event { role, origin, text, reasoning, calls, ..Event::default() };
        Event { usage, cache_written, mark, ..said }
    }

    fn result(self) -> ToolResult<'a> {
        let mut result = match self.is_error.0 {
            // With an error flag, the text does not have to be interpreted.
            Some(_) => ToolResult { text: self.content.text, ..ToolResult::default() },
            None => failure::result_of(self.content.text),
        };
        match self.is_error.0 {
            Some(false) => result.outcome = ToolOutcome::Ok,
            Some(true) if is_refusal(&result.text) => result.outcome = ToolOutcome::Rejected,
            Some(true) => {
                result.outcome = ToolOutcome::Failed;
                result.exit_code = exit_code(&result.text);
            }
            None => {}
        }
        ToolResult { call_id: self.tool_call_id, tool: self.tool_name, ..result }
    }
}

/// Builds an event from the user's text. If the user called a skill by name, only the text below
/// the skill counts.
fn user(text: Text<'_>) -> Event<'_> {
    let (mut origin, mut text) = (EventOrigin::Human, text);
    if text.starts_with("<skill ")
        && let Some((_, request)) = text.split_once("</skill>")
    {
        let request = request.trim();
        if request.is_empty() {
            origin = EventOrigin::Harness;
        } else {
            text = Text::from(request.to_owned());
        }
    }
    Event { role: EventRole::User, origin, text, ..Event::default() }
}

/// Parses the exit code from the last line of a failed `bash` call.
fn exit_code(text: &str) -> Option<i64> {
    text.lines().next_back()?.strip_prefix("Command exited with code ")?.trim().parse().ok()
}

/// Returns true if the user stopped the tool or an extension refused it.
fn is_refusal(text: &str) -> bool {
    let last = text.lines().next_back().unwrap_or_default();
    ["Command aborted", "Operation aborted", "Skipped due to queued user message."].contains(&last)
        || text.starts_with("Tool execution was blocked")
        || text.starts_with("Blocked by user")
}
