//! Reads Claude Code JSON lines: `~/.claude/projects/<folder>/<session>.jsonl` and the files of its
//! subagents. This module turns records into events. Its submodules parse records and decide
//! authorship, call outcomes and abandoned branches.

mod branch;
mod record_content;
mod records;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::mem;

use super::SessionReadError;
use super::event::{Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::text::Text;
use super::wire::LenientObject;
use crate::format::{
    AgentFolders, FormatEntry, HomeRoot, IdSource, VerificationBasis, VerifiedVersion,
};
use crate::wire::RecordId;
use branch::{LinkKind, RecordLink, RecordTree};
use record_content::{
    HERMES, RecordContent, UserContent, feedback, is_continuation, is_interruption, result_of,
};
use records::{ClaudeMessage, ClaudeRecord, ClaudeTokens, PrefixParser};

/// Record types that a file may start with.
const TYPES: [&str; 12] = [
    "user",
    "assistant",
    "system",
    "summary",
    "file-history-snapshot",
    "queue-operation",
    "attachment",
    "progress",
    "permission-mode",
    "last-prompt",
    "custom-title",
    "ai-title",
];

/// Name of an agent that writes the same records, with the results of Gemini CLI in them.
const IFLOW: &str = "iflow";

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| {
        TYPES.contains(&value.mark("type"))
            && ["sessionId", "message", "leafUuid", "messageId"].iter().any(|key| value.has(key))
    },
    ids: IdSource::FileName,
    // Some versions default to the XDG folder, so both are listed.
    folders: &[
        AgentFolders {
            agent: "claude-code",
            variable: Some("CLAUDE_CONFIG_DIR"),
            roots: &[HomeRoot::Home(".claude"), HomeRoot::Config("claude")],
            parts: &["projects"],
        },
        AgentFolders {
            agent: IFLOW,
            variable: None,
            roots: &[HomeRoot::Home(".iflow")],
            parts: &["projects"],
        },
    ],
    verified: Some(VerifiedVersion {
        agent: "claude-code",
        version: "2.1.220",
        basis: VerificationBasis::ForeignFixtures,
    }),
    ..FormatEntry::new(read)
};

/// Reads a session. The file is read a second time only if it has abandoned branches.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut tree = RecordTree::default();
    read_pass(source, feed, |link| tree.add(link))?;
    if let Some(mut leftovers) = tree.into_filter() {
        feed.restart();
        read_pass(source, feed, |_| leftovers.should_keep_next())?;
        feed.head.rewinds = leftovers.rewinds();
    }
    Ok(())
}

/// Reads the file once. `keep` is called for each record with an id.
fn read_pass(
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
    mut keep: impl FnMut(&RecordLink) -> bool,
) -> Result<(), SessionReadError> {
    let mut reader =
        ClaudeReader { stem: feed.naming.stem().to_owned(), ..ClaudeReader::default() };
    let mut lines = source.lines()?;
    let (prefixes, mut scratch) = (PrefixParser::default(), String::new());
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(record) = prefixes.read(&line) {
            reader.record(record, feed, &mut keep);
            continue;
        }
        match line.parse(&mut scratch, &mut feed.notes) {
            Some(LenientObject(Some(record))) => reader.record(record, feed, &mut keep),
            Some(LenientObject(None)) => feed.notes.ignored_records += 1,
            None => {}
        }
    }
    // In a renamed file, no record names the session of the file's name.
    if reader.has_copies && feed.head.id == reader.stem {
        feed.head.copied_from.clone_from(&feed.head.parent);
    }
    Ok(())
}

/// State between records.
#[derive(Default)]
struct ClaudeReader {
    /// File name without extension: the session's id, or `agent-` and the subagent's id.
    stem: String,
    /// Session id of the latest record.
    session: String,
    /// True if the whole file belongs to a subagent; `None` before the first message.
    is_subagent: Option<bool>,
    /// Tokens counted so far per call, because its lines repeat and increase them, and the part of
    /// them written to a cache.
    counted: HashMap<CallKey, (TokenCounts, u64)>,
    /// Number of messages that a person has sent.
    turn: u32,
    /// Set if answers of an older session were copied into the file.
    has_copies: bool,
    /// Set after a compaction was reported, until its summary follows.
    awaits_summary: bool,
}

/// Identifies a call to a model: the ids of message and request, and the turn of the person. Some
/// proxies number the messages of each conversation alike, and leave the request out.
type CallKey = (RecordId, RecordId, u32);

/// The conversation that a record belongs to.
///
/// A file that belongs to a subagent entirely is graded as a session of its own, with the subagent
/// as the agent. Its prompts come from another agent, so it has no human author.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConversationScope {
    Main,
    InlineSubagent,
    SubagentFile,
}

impl ConversationScope {
    fn agent_origin(self) -> EventOrigin {
        match self {
            ConversationScope::InlineSubagent => EventOrigin::Subagent,
            ConversationScope::Main | ConversationScope::SubagentFile => EventOrigin::Agent,
        }
    }

    fn user_origin(self, is_human: bool) -> EventOrigin {
        match (self, is_human) {
            (ConversationScope::InlineSubagent, _) | (ConversationScope::SubagentFile, true) => {
                EventOrigin::Subagent
            }
            (ConversationScope::Main, true) => EventOrigin::Human,
            (_, false) => EventOrigin::Harness,
        }
    }

    /// Returns the author of text typed at a tool call, which only a person does.
    fn person_origin(self) -> EventOrigin {
        match self {
            ConversationScope::InlineSubagent => EventOrigin::Subagent,
            ConversationScope::Main | ConversationScope::SubagentFile => EventOrigin::Human,
        }
    }
}

impl ClaudeReader {
    fn record(
        &mut self,
        mut record: ClaudeRecord<'_>,
        feed: &mut SessionFeed<'_>,
        keep: &mut impl FnMut(&RecordLink) -> bool,
    ) {
        self.update_head(&record, feed);
        let said = RecordContent::take(&mut record, feed.wants_outputs());
        if !record.uuid.is_none() && !keep(&self.make_link(&record, &said)) {
            feed.notes.dropped_records += 1;
            return;
        }
        let place = match (record.is_sidechain.is_set(), self.is_subagent) {
            (false, _) => ConversationScope::Main,
            (true, Some(true)) => ConversationScope::SubagentFile,
            // Older versions wrote the records of subagents into the file of their parent.
            (true, _) => ConversationScope::InlineSubagent,
        };
        match said {
            RecordContent::Assistant(message) => self.assistant(&record, message, place, feed),
            RecordContent::User(user) => self.user(&record, user, place, feed),
            RecordContent::Notice { text, mark } => {
                self.awaits_summary |= mark == Some(EventMark::Compacted);
                let (origin, time) = (place.user_origin(false), record.timestamp.0);
                feed.send(Event { origin, text, time, mark, ..Event::default() });
            }
            RecordContent::None => feed.notes.ignored_records += 1,
        }
    }

    /// Updates the session's metadata. Copies of an older session come first, so the last session
    /// id is the file's own and the one before it is the parent.
    fn update_head(&mut self, record: &ClaudeRecord<'_>, feed: &mut SessionFeed<'_>) {
        let head = &mut feed.head;
        let line = |text: &str| selftest_text::one_line(text, 200);
        let is_news = |known: &Option<String>, said: &Text<'_>| {
            !said.is_empty() && known.as_deref() != Some(said.as_str())
        };
        let is_other_session =
            !record.session_id.is_empty() && self.session != record.session_id.as_str();
        if is_other_session {
            let earlier = mem::replace(&mut self.session, record.session_id.as_str().to_owned());
            head.parent = (!earlier.is_empty()).then(|| line(&earlier)).or(head.parent.take());
            head.id = line(&self.session);
            // The working directory of a copied session does not apply.
            head.cwd = None;
        }
        let is_message = matches!(record.kind.as_str(), "user" | "assistant");
        let is_first_message = is_message && self.is_subagent.is_none();
        if is_first_message {
            // Decided by the first message, because earlier records lack the fields.
            self.is_subagent = Some(self.is_of_subagent(record));
        }
        if self.is_subagent == Some(true) && (is_first_message || is_other_session) {
            let agent = match record.agent_id.as_str() {
                "" => self.stem.strip_prefix("agent-").unwrap_or(&self.stem),
                id => id,
            };
            head.id = format!("{}/agent-{}", line(&self.session), line(agent));
            head.parent = Some(line(&self.session));
        }
        if let LenientObject(Some(from)) = &record.forked_from
            && is_news(&head.parent, &from.session_id)
        {
            head.parent = Some(line(&from.session_id));
        }
        if record.version.as_str() == HERMES {
            // Hermes exports its sessions in this format.
            "hermes".clone_into(&mut head.agent);
        } else if head.agent.is_empty() {
            // iFlow writes the same records, and begins its ids so.
            let is_iflow = record.session_id.starts_with("session-");
            let agent = if is_iflow { IFLOW } else { "claude-code" };
            agent.clone_into(&mut head.agent);
        }
        if record.version.as_str() != HERMES && is_news(&head.agent_version, &record.version) {
            head.agent_version = Some(line(&record.version));
        }
        // The first directory counts; the agent may change it later.
        head.cwd = head.cwd.take().or_else(|| record.cwd.line(1000));
        head.platform = head.platform.take().or_else(|| record.entrypoint.line(200));
    }

    /// Returns true if the record's file belongs to a subagent. Versions that write subagents into
    /// the main file give them no id.
    fn is_of_subagent(&self, record: &ClaudeRecord<'_>) -> bool {
        let has_own_file = self.stem.starts_with("agent-")
            || (!record.agent_id.is_empty() && self.stem != record.session_id.as_str());
        record.is_sidechain.is_set() && has_own_file
    }

    /// Returns true if the record was copied from an older session: it says so, or names another
    /// session than the file.
    fn is_copy(&self, record: &ClaudeRecord<'_>) -> bool {
        let from = record.forked_from.0.as_ref();
        let is_other = !record.session_id.is_empty() && self.stem != record.session_id.as_str();
        from.is_some_and(|from| from.message_uuid == record.uuid)
            || (is_other && self.is_subagent != Some(true))
    }

    fn make_link(&self, record: &ClaudeRecord<'_>, said: &RecordContent<'_>) -> RecordLink {
        let kind = match said {
            _ if record.is_sidechain.is_set() => LinkKind::Subagent,
            RecordContent::Assistant(_) => LinkKind::Turn,
            RecordContent::User(UserContent { is_human: true, results, .. })
                if results.is_empty() && record.kind.as_str() == "user" =>
            {
                LinkKind::Turn
            }
            _ => LinkKind::Attached,
        };
        let message = match said {
            RecordContent::Assistant(message) => message.id.or(record.request_id),
            _ => RecordId::default(),
        };
        let from = record.forked_from.0.as_ref();
        RecordLink {
            uuid: record.uuid,
            // A compaction boundary has only a logical parent.
            parent: record.parent_uuid.or(record.logical_parent_uuid),
            message,
            kind,
            is_copy: from.is_some_and(|from| from.message_uuid == record.uuid),
            is_foreign: !record.session_id.is_empty() && self.stem != record.session_id.as_str(),
            time: record.timestamp.0.map(jiff::Timestamp::as_millisecond),
        }
    }

    fn assistant(
        &mut self,
        record: &ClaudeRecord<'_>,
        message: ClaudeMessage<'_>,
        place: ConversationScope,
        feed: &mut SessionFeed<'_>,
    ) {
        let mut event = Event {
            role: EventRole::Assistant,
            origin: place.agent_origin(),
            time: record.timestamp.0,
            is_copy: place == ConversationScope::Main && self.is_copy(record),
            ..Event::default()
        };
        self.has_copies |= event.is_copy;
        let written = message.usage.0.as_ref().map_or(0, ClaudeTokens::cache_written);
        let tokens = message.usage.0.map(|tokens| tokens.usage());
        let id = message.id.or(record.request_id);
        if id.is_none() {
            // Without an id, the line cannot repeat an earlier one.
            event.usage = tokens;
            event.cache_written = written;
        } else {
            let call = (id, record.request_id, self.turn);
            event.continues = self.counted.contains_key(&call);
            // Later lines of a message repeat its counts with a higher output, so only the increase
            // counts.
            let (counted, known) = self.counted.entry(call).or_default();
            let more = tokens.map(|tokens| tokens.since(*counted));
            // A line that only repeats the counts gets no usage, so that nothing is counted twice.
            event.usage = more.filter(|more| !event.continues || *more != TokenCounts::default());
            *counted += more.unwrap_or_default();
            // The same applies to cache writes.
            event.cache_written = written.saturating_sub(*known);
            *known = written.max(*known);
        }
        if !event.continues {
            feed.head.add_stated_cost(record.cost.0);
        }
        for block in message.content.0 {
            match block.kind.as_str() {
                "text" => event.text.add(block.text),
                "thinking" => {
                    event.reasoning.add(block.thinking(feed.wants_outputs()));
                }
                "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                    let arguments = block.arguments();
                    event.calls.push(ToolCall { id: block.id, name: block.name, arguments });
                }
                // From tools that the provider runs.
                kind if kind.ends_with("_tool_result") => {
                    let (is_error, text) = (block.is_error.is_set(), block.content());
                    event.results.push(result_of(block.tool_use_id, text, is_error));
                }
                // Encrypted reasoning, and a note that another model answered.
                "redacted_thinking" | "fallback" => {}
                "image" | "document" => event.text.add(block.source.note(&block.kind)),
                kind => feed.count_unknown(kind),
            }
        }
        // The head lists models of the session itself, not those of its subagents.
        if place != ConversationScope::InlineSubagent {
            feed.head.add_model(&message.model);
        }
        if event.usage.is_some() {
            event.model = message.model;
        }
        feed.send(event);
    }

    fn user(
        &mut self,
        record: &ClaudeRecord<'_>,
        user: UserContent<'_>,
        place: ConversationScope,
        feed: &mut SessionFeed<'_>,
    ) {
        // A result of a tool comes between the lines of one message, and a subagent's prompt may.
        if place != ConversationScope::InlineSubagent && user.is_human && user.results.is_empty() {
            self.turn += 1;
        }
        let time = record.timestamp.0;
        user.unknown.iter().for_each(|kind| feed.count_unknown(kind));
        let is_summary = user.is_summary || is_continuation(&user.text);
        let mark = if is_summary {
            // In newer versions, the compaction boundary before it already is an event.
            (!mem::take(&mut self.awaits_summary)).then_some(EventMark::Compacted)
        } else {
            is_interruption(&user.text).then_some(EventMark::Interrupted)
        };
        // Text typed at a refusal is user input and becomes an event of its own.
        let feedback = user.results.iter().find_map(feedback);
        feed.send_results(place.agent_origin(), user.results, time);
        let (role, origin, text) = (EventRole::User, place.user_origin(user.is_human), user.text);
        feed.send(Event { role, origin, text, time, mark, ..Event::default() });
        if let Some(text) = feedback {
            let origin = place.person_origin();
            feed.send(Event { role, origin, text, time, ..Event::default() });
        }
    }
}
