//! Defines the neutral model of a session, independent of the agent that recorded it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{SessionLineage, Text, UnknownBlocks};

/// Metadata of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SessionHead {
    /// Id, unique among the sessions of one agent. If the file has none, this is the file's name,
    /// plus a digest of the session's start unless the agent names files after sessions.
    pub id: String,
    /// The agent's own name or the name of the format, such as `claude-code`.
    pub agent: String,
    /// Version of the agent.
    pub agent_version: Option<String>,
    /// Models that answered, in order of their first answer.
    pub models: Vec<String>,
    /// User interface: cli, vscode, telegram, …
    pub platform: Option<String>,
    /// Working directory, as recorded.
    pub cwd: Option<String>,
    /// Session that this one was continued or started from.
    pub parent: Option<String>,
    /// Session from which some of the events were copied ([`Event::is_copy`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copied_from: Option<String>,
    /// Date of the session: its earliest time, else the time in the name of its file. A time
    /// without a zone is read as UTC, and one that cannot be right counts as none. A session
    /// without a date is undated and belongs to no day and no week.
    pub start: Option<Timestamp>,
    /// Latest time in the session.
    pub end: Option<Timestamp>,
    /// Token total of the session, if the file states one. Otherwise, add up the events' usage.
    pub usage: Option<TokenCounts>,
    /// Cost of the session in USD, as the agent states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated_cost: Option<f64>,
    /// True if the agent states no cost for some call.
    #[serde(skip)]
    pub has_unpriced_call: bool,
    /// Blocks that the reader does not understand, by type.
    #[serde(skip_serializing_if = "UnknownBlocks::is_empty")]
    pub unknown_blocks: UnknownBlocks,
    /// Digests of the session's start; set when the session ends.
    #[serde(skip)]
    pub lineage: SessionLineage,
    /// Number of times the user went back to an earlier message and continued from there, if the
    /// format records it.
    #[serde(skip_serializing_if = "is_zero")]
    pub rewinds: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl SessionHead {
    /// Records a model that answered.
    pub fn add_model(&mut self, name: &str) {
        const MAX_MODELS: usize = 32;
        if !name.is_empty()
            && self.models.len() < MAX_MODELS
            && !self.models.iter().any(|model| model == name)
        {
            self.models.push(selftest_text::one_line(name, 120));
        }
    }

    /// Adds the cost of a call in USD, as the agent states it. Agents write 0 if they know no price.
    pub fn add_stated_cost(&mut self, cost: Option<f64>) {
        match cost {
            Some(cost) if cost.is_finite() && cost > 0.0 => {
                self.stated_cost = Some(self.stated_cost.unwrap_or_default() + cost);
            }
            // 0 is what agents state for a model whose price they do not know.
            Some(_) => self.has_unpriced_call = true,
            None => {}
        }
    }

    /// Returns the cost that the agent states for the whole session; `None` if it knows no price for
    /// some call.
    pub fn whole_stated_cost(&self) -> Option<f64> {
        self.stated_cost.filter(|_| !self.has_unpriced_call)
    }

    /// Extends the session's time span to include this time.
    pub fn record_time(&mut self, time: Timestamp) {
        self.start = Some(self.start.map_or(time, |start| start.min(time)));
        self.end = Some(self.end.map_or(time, |end| end.max(time)));
    }
}

/// Speaker, as chat protocols define it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventRole {
    /// Rules and notices.
    #[default]
    System,
    /// Text given to the agent.
    User,
    /// The agent.
    Assistant,
    /// Tool results.
    Tool,
}

/// Author of an event. In every format, many `user` records were not typed by a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventOrigin {
    /// Typed by a person.
    Human,
    /// The agent's model, or a tool that it called.
    Agent,
    /// The program around the model: reminders, hooks, summaries, environment notes.
    #[default]
    Harness,
    /// Anything inside a subagent, regardless of the speaker.
    Subagent,
}

/// Special meaning of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventMark {
    /// The user stopped the agent.
    Interrupted,
    /// The context was summarised; the session continues from the summary.
    Compacted,
    /// The model provider failed.
    ApiError,
    /// The agent's program states that a file was changed by other hands since the agent last
    /// touched it; the text is its path.
    FileEdited,
    /// The person undid the agent's change of a file; the text is its path.
    EditUndone,
    /// An external verifier, such as a benchmark's, accepted the result.
    VerifierPassed,
    /// An external verifier rejected the result.
    VerifierFailed,
}

impl EventMark {
    /// Returns true if this is an external verdict on the whole session, given after its end.
    pub fn is_verdict(self) -> bool {
        matches!(self, EventMark::VerifierPassed | EventMark::VerifierFailed)
    }
}

/// One message, tool call or notice of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Event<'a> {
    /// Number in the session, from 0. Set by the feed, not by readers.
    pub number: u64,
    /// Speaker.
    pub role: EventRole,
    /// Author.
    pub origin: EventOrigin,
    /// Text of the message.
    #[serde(skip_serializing_if = "Text::is_empty")]
    pub text: Text<'a>,
    /// The model's reasoning, if it was recorded.
    #[serde(skip_serializing_if = "Text::is_empty")]
    pub reasoning: Text<'a>,
    /// Tool calls by the agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall<'a>>,
    /// Tool results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ToolResult<'a>>,
    /// Tokens of this model call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenCounts>,
    /// Part of `usage.input` that the provider wrote to its cache, if the file records it.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_written: u64,
    /// True if the record was copied from the session that this one continues, which has the tokens
    /// of the call too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_copy: bool,
    /// Model of the call that `usage` belongs to; empty if unknown.
    #[serde(skip_serializing_if = "Text::is_empty")]
    pub model: Text<'a>,
    /// Time of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// For the assistant: true if this continues the model call of an earlier event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// Special meaning, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<EventMark>,
}

/// A tool call as the model wrote it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolCall<'a> {
    /// Id that links the call to its result; may be empty.
    pub id: Text<'a>,
    /// Name of the tool.
    pub name: Text<'a>,
    /// Arguments: JSON if the agent wrote JSON, plain text otherwise.
    pub arguments: Text<'a>,
}

/// Outcome of a tool call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolOutcome {
    /// It succeeded, or the agent itself marked the failure as harmless.
    Ok,
    /// The tool failed.
    Failed,
    /// A user or a policy refused the call. This is a signal about the session, not a tool failure.
    Rejected,
    /// No result was recorded.
    Pending,
    /// A result exists, but nothing shows if the call succeeded.
    #[default]
    Unknown,
}

/// Result of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolResult<'a> {
    /// Id of the call.
    pub call_id: Text<'a>,
    /// Name of the tool. If the result lacks it, the feed copies it from the call.
    pub tool: Text<'a>,
    /// Output of the tool.
    pub text: Text<'a>,
    /// Outcome of the call.
    pub outcome: ToolOutcome,
    /// Exit code of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Content of the agent's error field. If empty, `text` describes the failure.
    #[serde(skip_serializing_if = "Text::is_empty")]
    pub error: Text<'a>,
}

/// Token counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Tokens read by the model, excluding those served from a cache.
    pub input: u64,
    /// Tokens written by the model, including reasoning.
    pub output: u64,
    /// Tokens read from a cache.
    pub cached: u64,
}

impl std::ops::AddAssign for TokenCounts {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
    }
}

impl TokenCounts {
    /// Returns the increase since an earlier count of the same model call.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            input: self.input.saturating_sub(earlier.input),
            output: self.output.saturating_sub(earlier.output),
            cached: self.cached.saturating_sub(earlier.cached),
        }
    }
}

impl Event<'_> {
    /// Returns a copy that owns its text.
    pub fn into_owned(self) -> Event<'static> {
        Event {
            number: self.number,
            role: self.role,
            origin: self.origin,
            text: self.text.into_owned(),
            reasoning: self.reasoning.into_owned(),
            calls: self.calls.into_iter().map(ToolCall::into_owned).collect(),
            results: self.results.into_iter().map(ToolResult::into_owned).collect(),
            usage: self.usage,
            cache_written: self.cache_written,
            is_copy: self.is_copy,
            model: self.model.into_owned(),
            time: self.time,
            continues: self.continues,
            mark: self.mark,
        }
    }
}

impl ToolCall<'_> {
    /// Returns a copy that owns its text.
    pub fn into_owned(self) -> ToolCall<'static> {
        ToolCall {
            id: self.id.into_owned(),
            name: self.name.into_owned(),
            arguments: self.arguments.into_owned(),
        }
    }
}

impl ToolResult<'_> {
    pub(super) fn into_owned(self) -> ToolResult<'static> {
        ToolResult {
            call_id: self.call_id.into_owned(),
            tool: self.tool.into_owned(),
            text: self.text.into_owned(),
            outcome: self.outcome,
            exit_code: self.exit_code,
            error: self.error.into_owned(),
        }
    }
}
