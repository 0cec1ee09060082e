//! Reads `OpenAI` Codex CLI rollouts: JSON lines of `{timestamp, type, payload}`, or bare payloads
//! in the oldest files.
//!
//! Codex writes most things twice: as a `response_item` (what the model saw and wrote) and as an
//! `event_msg` (what the user interface showed). Response items are the main source. Events add
//! only what items lack: the user's input, the real outcome of tools, tokens, interruptions and
//! rollbacks.
//!
//! There are no message ids. One model call is a run of the model's items (reasoning, messages,
//! tool calls) up to the next tool output or user message, so parallel calls belong to one model
//! call. In recorded sessions, this gives exactly one call per `token_count`.
//!
//! Some facts appear only later in a file: turns that were rolled back and, in rare orders, the
//! outcome of a tool or the presence of user message events. The file is then read a second time
//! with this knowledge (`PassFindings`).

mod output;
#[cfg(test)]
mod tests;
mod turns;

use selftest_text::wording::plural;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::SessionReadError;
use crate::content::MessageContent;
use crate::event::{Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolResult};
use crate::feed::SessionFeed;
use crate::format::{
    AgentFolders, FormatEntry, HomeRoot, IdSource, VerificationBasis, VerifiedVersion,
};
use crate::source::SessionSource;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{JsonText, LenientFlag, LenientInt, LenientObject};
use output::{CallEnding, CallEndings, CodexOutput};
use turns::{CopiedHistory, UserTurns};

/// Record types of a rollout, whose first lines may be missing.
const TYPES: [&str; 5] =
    ["session_meta", "turn_context", "response_item", "event_msg", "compacted"];

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| {
        value.has("payload") && value.has("timestamp") && TYPES.contains(&value.mark("type"))
    },
    // Before records were wrapped: a bare meta line, then bare response items.
    weak_json: |value| {
        ["instructions", "timestamp", "id"].iter().all(|key| value.has(key))
            && value.mark("type").is_empty()
    },
    ids: IdSource::FileName,
    folders: &[AgentFolders {
        agent: "codex",
        variable: Some("CODEX_HOME"),
        roots: &[HomeRoot::Home(".codex")],
        parts: &["sessions", "archived_sessions"],
    }],
    verified: Some(VerifiedVersion {
        agent: "codex",
        version: "0.146.0",
        basis: VerificationBasis::ForeignFixtures,
    }),
    ..FormatEntry::new(read)
};

/// Reads a rollout.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let known = read_pass(source, feed, PassFindings::default())?;
    if known.needs_second_pass {
        feed.restart();
        read_pass(source, feed, known)?;
    }
    Ok(())
}

/// Reads the file once and returns the findings for the next pass.
fn read_pass(
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
    known: PassFindings,
) -> Result<PassFindings, SessionReadError> {
    let mut rollout = RolloutReader::new(feed, known);
    rollout.read(source)?;
    Ok(rollout.end())
}

/// Findings of an earlier pass.
#[derive(Default)]
struct PassFindings {
    /// Set if this pass lacked a fact when it was needed.
    needs_second_pass: bool,
    /// Set if the user's input comes as `user_message` events.
    has_user_events: bool,
    turns: UserTurns,
    endings: CallEndings,
}

/// Something that Codex writes twice, as an item or record and as an event, in either order.
#[derive(PartialEq)]
enum RepeatedEvent {
    Compaction,
    UserMessage,
}

/// A rollout while it is read.
struct RolloutReader<'f, 's> {
    feed: &'f mut SessionFeed<'s>,
    known: PassFindings,
    /// Turns found in this pass.
    turns: UserTurns,
    replay: CopiedHistory,
    is_subagent: bool,
    /// Set while the model is working: its next item continues the call.
    in_call: bool,
    /// The previous event, if Codex may write it again.
    echo: Option<RepeatedEvent>,
    /// A user message that an event may repeat.
    waiting: Option<(Text<'static>, Moment)>,
    /// Set if a user message without an event was assumed to be typed by a person.
    has_guessed: bool,
    usage: UsageMeter,
}

impl<'f, 's> RolloutReader<'f, 's> {
    fn new(feed: &'f mut SessionFeed<'s>, known: PassFindings) -> Self {
        feed.head.agent = "codex".into();
        Self {
            feed,
            known,
            turns: UserTurns::default(),
            replay: CopiedHistory::default(),
            is_subagent: false,
            in_call: false,
            echo: None,
            waiting: None,
            has_guessed: false,
            usage: UsageMeter::default(),
        }
    }

    fn read(&mut self, source: &SessionSource) -> Result<(), SessionReadError> {
        let mut lines = source.lines()?;
        let mut scratch = String::new();
        while let Some(line) = lines.next(&mut self.feed.notes)? {
            let number = line.number;
            let notes = &mut self.feed.notes;
            let Some(record) = line.parse::<RolloutRecord<'_>>(&mut scratch, notes) else {
                continue;
            };
            let (kind, time) = (record.kind, record.timestamp);
            if let Some(payload) = record.payload.0 {
                self.record(number, &kind, time, payload);
            } else if let Some(payload) =
                line.parse::<Box<RolloutPayload<'_>>>(&mut String::new(), notes)
            {
                // In the oldest layout, the first line is the meta record and has no type.
                let is_meta = kind.is_empty() && !payload.id.is_empty();
                let kind = if is_meta { "session_meta" } else { "response_item" };
                self.record(number, kind, time, payload);
            }
        }
        Ok(())
    }

    /// Ends the session and returns the findings for the next pass.
    fn end(mut self) -> PassFindings {
        self.flush();
        for (call_id, ending) in self.known.endings.unanswered() {
            let result = ToolResult { call_id: call_id.into(), ..ending.result(Text::default()) };
            self.result(result, Moment::default());
        }
        self.feed.head.usage = self.usage.total();
        // The last condition: a message was taken for the user's before the first event appeared.
        self.known.needs_second_pass = self.known.endings.needs_second_pass()
            || !self.turns.same_rollbacks(&self.known.turns)
            || self.has_guessed && self.known.has_user_events;
        // The next pass knows from the start which turns were rolled back.
        self.known.turns = self.turns;
        self.known.endings.reset_pass();
        self.known
    }

    fn record(&mut self, line: u64, kind: &str, time: Moment, payload: Box<RolloutPayload<'_>>) {
        if kind == "session_meta" {
            self.meta(time, &payload);
            return;
        }
        if self.replay.is_copy(kind, &payload, time) {
            self.feed.notes.dropped_records += 1;
            if payload.kind.as_str() == "token_count" {
                // The copied totals are the base that this session's counts continue from.
                self.usage.set_base(payload.total_tokens());
            }
            return;
        }
        if self.known.turns.is_dropped(line) {
            self.feed.notes.dropped_records += 1;
            if payload.kind.as_str() == "token_count" {
                // Rolled-back turns still used their tokens.
                self.usage.observe(payload.total_tokens());
            }
            // Dropped turns are tracked too, so that both passes find the same rollbacks.
            self.turns.record(line, kind, &payload);
            return;
        }
        self.turns.record(line, kind, &payload);
        match kind {
            "response_item" => self.item(time, payload),
            "event_msg" => self.message(time, payload),
            "turn_context" => {
                self.feed.head.add_model(&payload.model);
                if self.feed.head.cwd.is_none() {
                    self.feed.head.cwd = payload.cwd.line(400);
                }
            }
            "compacted" => self.compaction(payload.message.0, time),
            _ => self.feed.notes.ignored_records += 1,
        }
    }

    /// Reads a meta record. The first one describes this session; another one belongs to the copied
    /// history of the session that this one was forked from.
    fn meta(&mut self, time: Moment, payload: &RolloutPayload<'_>) {
        if self.replay.has_started() {
            // A second meta record before anything was said is the parent's, and a copy follows.
            if self.feed.is_empty() && self.waiting.is_none() {
                self.replay.read_parent(payload);
                self.feed.head.parent = self.replay.parent().map(str::to_owned);
                self.feed.notes.dropped_records += 1;
            } else {
                self.feed.notes.ignored_records += 1;
            }
            return;
        }
        self.replay.read_meta(payload, time);
        self.is_subagent = payload.is_subagent();
        let head = &mut self.feed.head;
        payload.id.as_str().clone_into(&mut head.id);
        head.agent_version = payload.cli_version.line(400);
        head.cwd = payload.cwd.line(400);
        head.parent = self.replay.parent().map(str::to_owned);
        // A paginated history continues the records of another file.
        if let Some(base) = &payload.history_base.0
            && !base.thread_id.is_empty()
            && base.end_ordinal_exclusive.count() > 0
        {
            let thread = selftest_text::one_line(&base.thread_id, 200);
            let records = plural(base.end_ordinal_exclusive.count(), "record");
            let missing = format!("its beginning ({records}) is in the rollout of {thread}");
            self.feed.notes.elsewhere = Some(missing);
            head.parent.get_or_insert(thread);
        }
        let is_name = !payload.source.0.is_empty() && !payload.source.0.starts_with('{');
        // For subagents, `source` is an object instead of a name.
        let platform = if is_name { &payload.source.0 } else { &payload.originator };
        head.platform = platform.line(400);
        if let Some(time) = payload.timestamp.0.or(time.0) {
            head.record_time(time);
        }
    }

    fn item(&mut self, time: Moment, payload: Box<RolloutPayload<'_>>) {
        let RolloutPayload { call_id: id, name, content, summary, .. } = *payload;
        match payload.kind.as_str() {
            "message" | "" => self.chat(payload.role.as_str(), content.0, time),
            "reasoning" => {
                let mut reasoning = summary;
                reasoning.append(&content.0);
                // Encrypted reasoning is empty; the next item starts the call.
                if !reasoning.is_empty() {
                    self.assistant(Event { reasoning, ..Event::default() }, time);
                }
            }
            "function_call" => self.call(id, name, payload.arguments.0, time),
            "custom_tool_call" => self.call(id, name, payload.input, time),
            "local_shell_call" => self.call(id, "local_shell".into(), payload.action.0, time),
            "tool_search_call" => {
                self.call(id, "tool_search".into(), payload.arguments.0, time);
            }
            // Run by the provider; it has neither id nor result.
            "web_search_call" => {
                self.call(Text::default(), "web_search".into(), payload.action.0, time);
            }
            "image_generation_call" => {
                self.call(Text::default(), "image_generation".into(), payload.action.0, time);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let is_wanted = self.feed.wants_outputs() || self.known.endings.has_failed(&id);
                let output = CodexOutput::read(payload.output, is_wanted);
                let mut result = output.result();
                if let Some(ending) = self.known.endings.record_output(&id, &result) {
                    result = ending.result(result.text);
                }
                result.call_id = id;
                self.result(result, time);
            }
            "tool_search_output" => {
                let outcome = CallEnding::of_status(&payload.status).unwrap_or_default().outcome;
                let result = ToolResult { call_id: id, outcome, ..ToolResult::default() };
                self.result(result, time);
            }
            // A message from another agent.
            "agent_message" => self.user(EventOrigin::Harness, content.0, time),
            // A call or result of an unknown kind.
            kind if kind.ends_with("_call") || kind.ends_with("_output") => {
                self.feed.count_unknown(kind);
                self.feed.notes.ignored_records += 1;
            }
            _ => self.feed.notes.ignored_records += 1,
        }
    }

    fn message(&mut self, time: Moment, payload: Box<RolloutPayload<'_>>) {
        match payload.kind.as_str() {
            "user_message" => {
                // The event is the better copy, so drop the waiting item.
                self.waiting = None;
                self.known.has_user_events = true;
                let text = payload.message.0;
                let origin =
                    if is_harness(&text) { EventOrigin::Harness } else { EventOrigin::Human };
                self.user(origin, text, time);
                // The item for this message may come after the event and is then skipped.
                self.echo = Some(RepeatedEvent::UserMessage);
            }
            "token_count" => self.usage.observe(payload.total_tokens()),
            "exec_command_end"
            | "patch_apply_end"
            | "mcp_tool_call_end"
            | "dynamic_tool_call_response" => {
                if let Some(ending) = CallEnding::of_event(&payload) {
                    self.known.endings.record_ending(&payload.call_id, ending);
                }
            }
            // The end of a review is no interruption by the user.
            "turn_aborted" if payload.reason.as_str() != "review_ended" => {
                let text = Text::from(format!("turn aborted: {}", payload.reason));
                self.mark(EventMark::Interrupted, EventOrigin::Human, text, time);
            }
            "error" | "stream_error" => {
                let mut text = payload.message.0;
                text.append(&payload.error.0);
                self.mark(EventMark::ApiError, EventOrigin::Harness, text, time);
            }
            "context_compacted" => self.compaction(Text::default(), time),
            _ => self.feed.notes.ignored_records += 1,
        }
    }

    fn chat(&mut self, role: &str, text: Text<'_>, time: Moment) {
        match role {
            "assistant" => self.assistant(Event { text, ..Event::default() }, time),
            // Codex inserts context as user messages, which no event repeats.
            "user" if is_harness(&text) => self.user(EventOrigin::Harness, text, time),
            "user" => {
                self.flush();
                if self.echo.take() != Some(RepeatedEvent::UserMessage) {
                    // An event may follow, which is the better copy.
                    self.waiting = Some((text.into_owned(), time));
                }
            }
            _ => {
                let event = Event { role: EventRole::System, text, ..Event::default() };
                self.send(event, EventOrigin::Harness, time);
            }
        }
    }

    /// Sends the waiting user message, which no event repeated. If user input comes as events, a
    /// person did not type it.
    fn flush(&mut self) {
        if let Some((text, time)) = self.waiting.take() {
            self.has_guessed |= !self.known.has_user_events;
            let origin =
                if self.known.has_user_events { EventOrigin::Harness } else { EventOrigin::Human };
            self.user(origin, text, time);
        }
    }

    fn user(&mut self, origin: EventOrigin, text: Text<'_>, time: Moment) {
        self.flush();
        self.in_call = false;
        let text = if origin == EventOrigin::Human { extract_request(text) } else { text };
        self.send(Event { role: EventRole::User, text, ..Event::default() }, origin, time);
    }

    fn assistant(&mut self, event: Event<'_>, time: Moment) {
        self.flush();
        // The model's items up to the next output or message come from one call.
        let continues = std::mem::replace(&mut self.in_call, true);
        self.send(
            Event { role: EventRole::Assistant, continues, ..event },
            EventOrigin::Agent,
            time,
        );
    }

    fn call(&mut self, id: Text<'_>, name: Text<'_>, arguments: Text<'_>, time: Moment) {
        self.known.endings.record_call(&id);
        let calls = vec![ToolCall { id, name, arguments }];
        self.assistant(Event { calls, ..Event::default() }, time);
    }

    fn result(&mut self, result: ToolResult<'_>, time: Moment) {
        self.in_call = false;
        let results = vec![result];
        self.send(
            Event { role: EventRole::Tool, results, ..Event::default() },
            EventOrigin::Agent,
            time,
        );
    }

    fn mark(&mut self, mark: EventMark, origin: EventOrigin, text: Text<'_>, time: Moment) {
        self.in_call = false;
        let mark = Some(mark);
        self.send(Event { role: EventRole::System, text, mark, ..Event::default() }, origin, time);
    }

    /// Sends a compaction once, although it is reported as a record and as an event.
    fn compaction(&mut self, text: Text<'_>, time: Moment) {
        if self.echo != Some(RepeatedEvent::Compaction) {
            self.mark(EventMark::Compacted, EventOrigin::Harness, text, time);
            self.echo = Some(RepeatedEvent::Compaction);
        }
    }

    fn send(&mut self, event: Event<'_>, origin: EventOrigin, time: Moment) {
        self.flush();
        // Only what follows directly can be the other copy of a record.
        self.echo = None;
        let origin = if self.is_subagent { EventOrigin::Subagent } else { origin };
        self.feed.send(Event { origin, time: time.0, ..event });
    }
}

/// Extracts the user's request, which Codex puts below a description of the editor.
fn extract_request(text: Text<'_>) -> Text<'_> {
    const HEADING: &str = "## My request for Codex:";
    match text.split_once(HEADING).map(|(_, request)| request.trim()) {
        Some(request) if !request.is_empty() => Text::from(request.to_owned()),
        _ => text,
    }
}

/// Returns true if Codex wrote this user message itself.
fn is_harness(text: &str) -> bool {
    const BEGINNINGS: [&str; 14] = [
        "# AGENTS.md instructions",
        "<INSTRUCTIONS>",
        "<agents_md>",
        "<apps_instructions>",
        "<collaboration_mode>",
        "<environment_context>",
        "<model_switch>",
        "<permissions instructions>",
        "<skill>",
        "<subagent_notification>",
        "<turn_aborted>",
        "<user_action>",
        "<user_instructions>",
        "<user_shell_command>",
    ];
    let text = text.trim_start();
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// One line.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct RolloutRecord<'a> {
    timestamp: Moment,
    #[serde(rename = "type")]
    kind: Text<'a>,
    // Boxed, because it has the fields of all payload types.
    payload: LenientObject<Box<RolloutPayload<'a>>>,
}

/// Any payload. All types share one struct, because their fields do not clash and each line is then
/// parsed only once.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct RolloutPayload<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    // session_meta
    id: Text<'a>,
    timestamp: Moment,
    cwd: Text<'a>,
    originator: Text<'a>,
    cli_version: Text<'a>,
    source: JsonText,
    thread_source: Text<'a>,
    forked_from_id: Text<'a>,
    parent_thread_id: Text<'a>,
    history_base: LenientObject<HistoryBase<'a>>,
    // turn_context, task_started
    model: Text<'a>,
    turn_id: Text<'a>,
    // response_item
    role: Text<'a>,
    content: MessageContent<'a>,
    summary: Text<'a>,
    name: Text<'a>,
    arguments: JsonText,
    input: Text<'a>,
    action: JsonText,
    call_id: Text<'a>,
    /// See [`output::Output`]; unparsed, because most outputs are never used.
    output: Option<&'a RawValue>,
    // event_msg
    message: MessageContent<'a>,
    error: JsonText,
    info: LenientObject<TokenTotals>,
    exit_code: LenientInt,
    success: LenientFlag,
    status: Text<'a>,
    result: LenientObject<McpResult<'a>>,
    reason: Text<'a>,
    num_turns: LenientInt,
}

impl RolloutPayload<'_> {
    /// Returns the running total of tokens. The input includes cached tokens, the output includes
    /// reasoning.
    fn total_tokens(&self) -> Option<TokenCounts> {
        let tokens = self.info.0.as_ref()?.total_token_usage.0.as_ref()?;
        let cached = tokens.cached.count();
        Some(TokenCounts {
            input: tokens.input.count().saturating_sub(cached),
            output: tokens.output.count(),
            cached,
        })
    }

    /// For a meta record: returns true if another agent started this session.
    fn is_subagent(&self) -> bool {
        self.thread_source.as_str() == "subagent" || self.source.0.contains("\"subagent\"")
    }
}

/// Rollout that holds the records before those of this one, in paginated histories.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct HistoryBase<'a> {
    thread_id: Text<'a>,
    end_ordinal_exclusive: LenientInt,
}

/// Result of an MCP call; exactly one of the fields is present.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct McpResult<'a> {
    #[serde(rename = "Ok")]
    ok: LenientObject<McpOk>,
    #[serde(rename = "Err")]
    err: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct McpOk {
    #[serde(alias = "is_error", rename = "isError")]
    is_error: LenientFlag,
}

/// `info` of a `token_count`; null while the counts are unknown.
#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenTotals {
    total_token_usage: LenientObject<CodexTokens>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CodexTokens {
    #[serde(rename = "input_tokens")]
    input: LenientInt,
    #[serde(rename = "cached_input_tokens")]
    cached: LenientInt,
    #[serde(rename = "output_tokens")]
    output: LenientInt,
}

/// Adds up the running totals of `token_count`. They restart when a session is resumed; in a fork,
/// they continue from the parent's total.
#[derive(Default)]
struct UsageMeter {
    earlier: TokenCounts,
    base: TokenCounts,
    last: Option<TokenCounts>,
}

impl UsageMeter {
    /// Sets the parent's total, which this session's counts build on.
    fn set_base(&mut self, total: Option<TokenCounts>) {
        self.base = total.unwrap_or(self.base);
    }

    fn observe(&mut self, total: Option<TokenCounts>) {
        let Some(total) = total else { return };
        let sum = |usage: TokenCounts| {
            usage.input.saturating_add(usage.output).saturating_add(usage.cached)
        };
        // A lower total than before means that the counter was reset.
        if sum(total) < sum(self.last.unwrap_or(self.base)) {
            self.earlier = self.total().unwrap_or_default();
            self.base = TokenCounts::default();
        }
        self.last = Some(total);
    }

    fn total(&self) -> Option<TokenCounts> {
        self.last.map(|last| {
            let mut total = self.earlier;
            total += last.since(self.base);
            total
        })
    }
}
