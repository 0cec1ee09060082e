//! Assembles an agent's messages during one turn into an answer. Pure; independent of the
//! connection.

use std::path::PathBuf;

use agent_client_protocol::v1::schema::{
    ContentBlock, MessageId, PermissionOption, PermissionOptionKind, PromptResponse,
    RequestPermissionOutcome, RequestPermissionRequest, SelectedPermissionOutcome, SessionId,
    SessionNotification, SessionUpdate, StopReason, ToolCall, ToolCallContent, ToolCallLocation,
    ToolCallStatus, ToolCallUpdate, ToolKind,
};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::sut::answer::SeenAnswer;
use crate::sut::{SutError, SutReply, answer};
use selftest_checks::check;
use selftest_checks::scenario::TaskStatus;
use selftest_text::one_line;
use selftest_text::redact::Redactor;

/// Maximum length of an answer in bytes.
const MAX_SAID: usize = 1 << 20;
/// Maximum number of tool calls to record per turn.
const MAX_CALLS: usize = 10_000;
/// Maximum number of updates before the agent has opened its session.
const MAX_EARLY: usize = 1_000;
/// Maximum number of refusals to list individually.
const MAX_REFUSALS: usize = 50;
/// Maximum length in characters of an agent's text in a note.
const MAX_QUOTE: usize = 160;

/// The state of one turn, and the refusals in the session so far.
#[derive(Debug, Default)]
pub(super) struct AgentTurn {
    /// The agent's text, split at tool calls and by message.
    said: Vec<AgentText>,
    said_bytes: usize,
    /// Id of the latest message, if the agent assigns ids.
    message: Option<MessageId>,
    /// Names of the skills in the folder of the agent.
    skills: Vec<String>,
    /// True if a permission was rejected in this turn.
    was_refused: bool,
    calls: Vec<AcpToolCall>,
    /// Input and output tokens, if the agent reports them.
    tokens: Option<u64>,
    notes: Vec<String>,
    refusals: Vec<String>,
    left_out: usize,
    /// The reason why the connection broke.
    fault: Option<String>,
    /// The session, once the agent has named it.
    session: Option<SessionId>,
    /// Updates that came before that, with the sessions that they name.
    early: Vec<SessionNotification>,
    /// Sessions that requests named before that.
    early_sessions: Vec<SessionId>,
    /// True between the end of a turn and the begin of the next.
    is_over: bool,
    /// The rule that the agent broke, if any.
    violation: Option<String>,
}

/// Returns true for the response that ends a turn.
pub(super) fn ends_turn(line: &[u8]) -> bool {
    const REASON: &[u8] = b"\"stopReason\"";
    line.windows(REASON.len()).any(|part| part == REASON)
        && serde_json::from_slice::<Value>(line).is_ok_and(|message| {
            message.get("method").is_none() && message.pointer("/result/stopReason").is_some()
        })
}

/// A contiguous piece of the agent's text.
#[derive(Debug, Default)]
struct AgentText {
    text: String,
    /// True if it belongs to a message with an id. Agents that assign ids send notices of their
    /// own, such as warnings of Codex and Claude Code, without one.
    is_named: bool,
}

/// The end of a turn.
#[derive(Debug)]
pub(super) struct TurnEnd {
    reason: StopReason,
    /// Input and output tokens of the turn, if the agent reports them at its end.
    tokens: Option<u64>,
}

impl From<PromptResponse> for TurnEnd {
    fn from(response: PromptResponse) -> Self {
        // The format of Gemini CLI and Codex.
        let count = |meta: &Map<String, Value>| {
            let count = meta.get("quota")?.get("token_count")?;
            let part = |name: &str| count.get(name).and_then(Value::as_u64);
            let both = part("input_tokens").zip(part("output_tokens"));
            part("totalTokens").or(both.map(|(read, written)| read.saturating_add(written)))
        };
        let tokens = response.meta.as_ref().and_then(count);
        Self { reason: response.stop_reason, tokens }
    }
}

/// A tool call, as far as it is known.
#[derive(Debug)]
struct AcpToolCall {
    id: String,
    name: Option<String>,
    title: String,
    kind: ToolKind,
    locations: Vec<PathBuf>,
    input: Option<Value>,
    has_failed: bool,
}

impl AgentTurn {
    /// Starts the next turn.
    pub(super) fn begin(&mut self) {
        self.is_over = false;
        self.said = Vec::new();
        self.said_bytes = 0;
        self.message = None;
        self.was_refused = false;
        self.calls = Vec::new();
        self.tokens = None;
    }

    /// Ends the turn. More of the answer would come too late.
    pub(super) fn finish(&mut self) {
        self.is_over = true;
    }

    /// Processes an update for whichever session it names. One for another session is no part of the
    /// answer.
    pub(super) fn receive(&mut self, notification: SessionNotification) {
        match &self.session {
            None if self.early.len() < MAX_EARLY => self.early.push(notification),
            None => {
                self.break_rule("it sent too many updates before it opened a session".to_owned());
            }
            Some(_) => {
                if self.is_own("an update", &notification.session_id) {
                    self.update(notification.update);
                }
            }
        }
    }

    /// Sets the session that the agent opened, and processes what came before.
    pub(super) fn open(&mut self, session: SessionId) {
        self.session = Some(session);
        for id in std::mem::take(&mut self.early_sessions) {
            self.is_own("a request", &id);
        }
        for notification in std::mem::take(&mut self.early) {
            self.receive(notification);
        }
    }

    /// Returns true if the agent may mean this session in `what` it sent. Naming another one breaks a
    /// rule.
    pub(super) fn is_own(&mut self, what: &str, named: &SessionId) -> bool {
        match &self.session {
            Some(own) if own == named => true,
            Some(own) => {
                let (own, named) = (one_line(&own.0, MAX_QUOTE), one_line(&named.0, MAX_QUOTE));
                self.break_rule(format!(
                    "it sent {what} for the session `{named}`, and not for its own, `{own}`"
                ));
                false
            }
            None => {
                if self.early_sessions.len() < MAX_EARLY {
                    self.early_sessions.push(named.clone());
                }
                true
            }
        }
    }

    fn break_rule(&mut self, rule: String) {
        self.violation.get_or_insert(rule);
    }

    /// Takes the rule that the agent broke, if any.
    pub(super) fn take_violation(&mut self) -> Option<String> {
        self.violation.take()
    }

    /// Returns the rule that lines after the last turn break, if any: an update for another session,
    /// or more of the answer.
    pub(super) fn violation_in_unread(&mut self, unread: &[u8]) -> Option<String> {
        self.finish();
        for line in unread.split(|&byte| byte == b'\n') {
            let Ok(message) = serde_json::from_slice::<Value>(line) else { continue };
            let is_update = message.get("method").and_then(Value::as_str) == Some("session/update");
            let params = message.get("params").filter(|_| is_update);
            let update = params.and_then(|params| SessionNotification::deserialize(params).ok());
            if let Some(update) = update {
                self.receive(update);
            }
        }
        self.take_violation()
    }

    /// Processes an update of its own session.
    pub(super) fn update(&mut self, update: SessionUpdate) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                // Qwen Code reports them along with an empty text.
                let used =
                    chunk.meta.as_ref().and_then(|meta| meta.get("usage")?.get("totalTokens"));
                if let Some(used) = used.and_then(Value::as_u64) {
                    self.tokens = Some(self.tokens.unwrap_or(0).saturating_add(used));
                }
                if let ContentBlock::Text(text) = chunk.content {
                    if self.is_over {
                        if !text.text.trim().is_empty() {
                            let rule = "it went on with its answer after it had ended its turn";
                            self.break_rule(rule.to_owned());
                        }
                        return;
                    }
                    if self.message != chunk.message_id {
                        self.message = chunk.message_id;
                        self.start_piece();
                    }
                    self.append(&text.text);
                }
            }
            SessionUpdate::ToolCall(call) => self.call(call),
            SessionUpdate::ToolCallUpdate(update) => self.update_call(update),
            // Thoughts are not part of the answer; plans, modes and commands are meant for display.
            _ => {}
        }
    }

    /// Starts a new piece of the agent's text.
    fn start_piece(&mut self) {
        if self.said.last().is_some_and(|part| !part.text.trim().is_empty()) {
            self.said.push(AgentText::default());
        }
    }

    fn append(&mut self, text: &str) {
        let room = MAX_SAID.saturating_sub(self.said_bytes);
        let text = &text[..text.floor_char_boundary(room)];
        self.said_bytes += text.len();
        if self.said.is_empty() {
            self.said.push(AgentText::default());
        }
        if let Some(part) = self.said.last_mut() {
            part.text.push_str(text);
            part.is_named |= self.message.is_some();
        }
    }

    fn call(&mut self, call: ToolCall) {
        let name = call.name.or_else(|| name_in_metadata(call.meta.as_ref()));
        let call = AcpToolCall {
            id: call.tool_call_id.to_string(),
            name,
            title: call.title,
            kind: call.kind,
            locations: paths(call.locations),
            input: call.raw_input,
            has_failed: call.status == ToolCallStatus::Failed,
        };
        // Text before the call must not run into the answer, which is the last piece.
        self.start_piece();
        // A repeated announcement replaces the earlier one.
        if let Some(known) = self.calls.iter_mut().find(|known| known.id == call.id) {
            *known = call;
        } else if self.calls.len() < MAX_CALLS {
            self.calls.push(call);
        }
    }

    /// Merges a later update into a call. An update for an unannounced call counts as a new one.
    fn update_call(&mut self, update: ToolCallUpdate) {
        let id = update.tool_call_id.to_string();
        let fields = update.fields;
        let name = fields.name.or_else(|| name_in_metadata(update.meta.as_ref()));
        let Some(known) = self.calls.iter_mut().find(|known| known.id == id) else {
            let mut call = ToolCall::new(update.tool_call_id, fields.title.unwrap_or_default());
            call.name = name;
            call.kind = fields.kind.unwrap_or_default();
            call.locations = fields.locations.unwrap_or_default();
            call.raw_input = fields.raw_input;
            call.status = fields.status.unwrap_or_default();
            return self.call(call);
        };
        known.name = name.or(known.name.take());
        known.kind = fields.kind.unwrap_or(known.kind);
        known.input = fields.raw_input.or(known.input.take());
        // An agent that tries again within a call completes it in the end.
        known.has_failed =
            fields.status.map_or(known.has_failed, |status| status == ToolCallStatus::Failed);
        if let Some(title) = fields.title {
            // opencode announces a call by the name of its tool, and says later what it did.
            if known.name.is_none() && title != known.title && is_tool_name(&known.title) {
                known.name = Some(std::mem::take(&mut known.title));
            }
            known.title = title;
        }
        if let Some(locations) = fields.locations {
            known.locations = paths(locations);
        }
    }

    /// Sets the names of the skills in the folder of the agent.
    pub(super) fn set_skills(&mut self, skills: Vec<String>) {
        self.skills = skills;
    }

    /// Answers a permission request and records it. Each is rejected but one: to load a skill of its own
    /// folder, which the agent could read anyway, and without which a skill is never tested.
    pub(super) fn answer_permission(
        &mut self,
        request: &RequestPermissionRequest,
    ) -> RequestPermissionOutcome {
        let skill = self.asked_skill(&request.tool_call).map(ToOwned::to_owned);
        // Not an option for always, so that every further request is seen.
        let allowing = request.options.iter().find(|it| it.kind == PermissionOptionKind::AllowOnce);
        let (Some(skill), Some(option)) = (skill, allowing) else {
            return self.reject_permission(request);
        };
        let id = request.tool_call.tool_call_id.to_string();
        self.update_call(request.tool_call.clone());
        if let Some(call) = self.calls.iter_mut().find(|known| known.id == id) {
            // Its title alone may be all that the agent says of the call.
            call.name.get_or_insert_with(|| "activate_skill".to_owned());
            if call.input.as_ref().is_none_or(is_empty_input) {
                call.input = Some(json!({ "name": skill }));
            }
        }
        let shown = one_line(&skill, MAX_QUOTE);
        let note = format!("the agent asked for, and was allowed: to load the skill {shown}");
        // Once for each skill, however often an agent asks.
        if !self.notes.contains(&note) {
            self.note(note);
        }
        RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
    }

    /// Returns the skill that a call would load and nothing else: a tool that loads skills with the name
    /// of one, or, as Gemini CLI asks, a call without input and with a title such as `"ferry": Knows the
    /// ferry`. Any other tool may do more with a name than load a skill.
    fn asked_skill(&self, call: &ToolCallUpdate) -> Option<&str> {
        let fields = &call.fields;
        let known = self.calls.iter().find(|known| known.id == call.tool_call_id.to_string());
        let kind = fields.kind.or_else(|| known.map(|known| known.kind)).unwrap_or_default();
        let mut content = fields.content.iter().flatten();
        let changes_something = content.any(|part| !matches!(part, ToolCallContent::Content(_)));
        if changes_something || !matches!(kind, ToolKind::Other | ToolKind::Read | ToolKind::Think)
        {
            return None;
        }
        let input = fields.raw_input.as_ref().or_else(|| known?.input.as_ref());
        let title = fields.title.as_deref().or_else(|| Some(known?.title.as_str()));
        let named = match input {
            Some(input) if !is_empty_input(input) => {
                let name = fields.name.clone().or_else(|| name_in_metadata(call.meta.as_ref()));
                let name = name.as_deref().or_else(|| known?.name.as_deref()).or(title)?;
                // More than a name may be more than loading.
                let input = input.as_object().filter(|input| input.len() == 1)?;
                let mut keys = ["skill", "skill_name", "name"].iter();
                keys.find_map(|key| input.get(*key)?.as_str())
                    .filter(|_| check::is_skill_tool(name))
            }
            _ => title?.strip_prefix('"')?.split_once("\": ").map(|(name, _)| name),
        };
        self.skills.iter().map(String::as_str).find(|skill| Some(*skill) == named)
    }

    /// Rejects a permission request and records it.
    fn reject_permission(
        &mut self,
        request: &RequestPermissionRequest,
    ) -> RequestPermissionOutcome {
        let call = &request.tool_call;
        let title = call.fields.title.clone().unwrap_or_default();
        // The title of opencode's requests is only the path.
        let what = match call.fields.kind.filter(|_| title.starts_with('/')).map(kind_name) {
            Some(kind) => format!("permission to {kind} {title}"),
            None => format!("permission to {title}"),
        };
        // For an announced call the request adds nothing, and some agents use a different title in
        // it.
        let id = call.tool_call_id.to_string();
        if !self.calls.iter().any(|known| known.id == id) {
            self.update_call(call.clone());
        }
        self.was_refused = true;
        self.record_refusal(&one_line(&what, MAX_QUOTE));
        rejecting_option(&request.options)
    }

    /// Records a refusal.
    pub(super) fn record_refusal(&mut self, what: &str) {
        if self.refusals.len() < MAX_REFUSALS {
            self.refusals.push(format!("the agent asked for, and was refused: {what}"));
        } else {
            self.left_out += 1;
        }
    }

    /// Records a remark on the session.
    pub(super) fn note(&mut self, what: String) {
        self.notes.push(what);
    }

    /// Records the reason why the connection broke.
    pub(super) fn set_fault(&mut self, why: String) {
        self.fault = Some(why);
    }

    /// Takes the reason why the connection broke.
    pub(super) fn take_fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    /// Returns the notes on the session and all refusals, one line each.
    pub(super) fn notes(&self) -> Vec<String> {
        let more = (self.left_out > 0).then(|| format!("{} more refusals", self.left_out));
        self.notes.iter().chain(&self.refusals).cloned().chain(more).collect()
    }

    /// Returns the answer of a finished turn: the agent's last text. A message with an id takes
    /// precedence.
    pub(super) fn reply(&self, end: &TurnEnd, redactor: &Redactor) -> Result<SutReply, SutError> {
        let said = || self.said.iter().rev().filter(|part| !part.text.trim().is_empty());
        let answer = said().find(|part| part.is_named).or_else(|| said().next());
        let seen = match answer {
            Some(part) => SeenAnswer::of(part.text.trim(), &[]),
            None => SeenAnswer::Missing("the agent ended its turn without a word".to_owned()),
        };
        let output = seen.text();
        let (status, rule) = match end.reason {
            // Codex ends this way, although the turn was not cancelled.
            StopReason::Cancelled if self.was_refused => {
                (TaskStatus::Error, "the agent broke its turn off after a permission was refused")
            }
            // Claude Code and opencode end this way.
            StopReason::EndTurn if self.was_refused && output.is_empty() => {
                let rule = "the agent ended its turn without a word after a permission was refused";
                (TaskStatus::Error, rule)
            }
            StopReason::EndTurn => {
                answer::infer_status(output).unwrap_or((TaskStatus::Complete, answer::EMPTY_ANSWER))
            }
            StopReason::MaxTokens => {
                (TaskStatus::Error, "the agent stopped at its limit of tokens")
            }
            StopReason::MaxTurnRequests => {
                (TaskStatus::Error, "the agent stopped at its limit of requests")
            }
            StopReason::Refusal => (TaskStatus::Error, "the agent refused"),
            StopReason::Cancelled => {
                return Err(SutError::failed("the agent says that its turn was cancelled"));
            }
            other => {
                let what = format!("the agent ended its turn for an unknown reason: {other:?}");
                return Err(SutError::failed(what));
            }
        };
        let calls = self.calls.iter().map(|call| call.evidence(redactor)).collect();
        Ok(SutReply {
            status_rule: Some(rule.to_owned()),
            tool_calls: Some(calls),
            tokens: self.tokens.or(end.tokens),
            ..seen.into_reply(status, redactor)?
        })
    }
}

impl AcpToolCall {
    fn evidence(&self, redactor: &Redactor) -> check::ObservedToolCall {
        let kind = kind_name(self.kind);
        let title = self.title.lines().next().unwrap_or_default();
        let name = match &self.name {
            Some(name) => name.as_str(),
            None if title.is_empty() => kind.as_str(),
            None => title,
        };
        // An empty object has no information, so the title and the paths are used instead.
        let known = |input: &Value| input.as_object().is_none_or(|input| !input.is_empty());
        let mut arguments = self.input.clone().filter(known).unwrap_or_else(|| {
            let mut known = Map::from_iter([
                ("title".to_owned(), json!(self.title)),
                ("kind".to_owned(), json!(kind)),
            ]);
            let paths: Vec<_> = self.locations.iter().map(|path| path.to_string_lossy()).collect();
            if let Some(first) = paths.first() {
                known.insert("path".to_owned(), json!(first));
                known.insert("paths".to_owned(), json!(paths));
            }
            Value::Object(known)
        });
        redactor.apply_json(&mut arguments);
        check::ObservedToolCall {
            name: redactor.apply(&one_line(name, 200)).into_owned(),
            arguments,
            failed: self.has_failed,
        }
    }
}

/// Returns true for a title that is nothing but the name of a tool.
fn is_tool_name(title: &str) -> bool {
    title.starts_with(|c: char| c.is_ascii_lowercase())
        && title.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Returns true for an input that says nothing.
fn is_empty_input(input: &Value) -> bool {
    input.is_null() || input.as_object().is_some_and(Map::is_empty)
}

/// Returns the protocol's name for a tool kind.
fn kind_name(kind: ToolKind) -> String {
    let word = serde_json::to_value(kind).ok();
    word.as_ref().and_then(Value::as_str).unwrap_or("other").to_owned()
}

/// Returns a tool's name from vendor-specific metadata, such as `{"claudeCode": {"toolName":
/// "Read"}}`.
fn name_in_metadata(meta: Option<&Map<String, Value>>) -> Option<String> {
    let keys = ["toolName", "tool_name"];
    let of = |members: &Map<String, Value>| {
        keys.iter().find_map(|key| members.get(*key)?.as_str().map(str::to_owned))
    };
    let meta = meta?;
    of(meta).or_else(|| meta.values().find_map(|value| of(value.as_object()?)))
}

fn paths(locations: Vec<ToolCallLocation>) -> Vec<PathBuf> {
    locations.into_iter().map(|location| location.path).collect()
}

/// Selects the option that rejects: once, if possible, so that every further request is seen.
fn rejecting_option(options: &[PermissionOption]) -> RequestPermissionOutcome {
    let of = |kind: PermissionOptionKind| options.iter().find(move |option| option.kind == kind);
    let option =
        of(PermissionOptionKind::RejectOnce).or_else(|| of(PermissionOptionKind::RejectAlways));
    match option {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(
            option.option_id.clone(),
        )),
        None => RequestPermissionOutcome::Cancelled,
    }
}

#[cfg(test)]
mod tests;
