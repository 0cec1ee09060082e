//! The neutral model: what happened in a session, whichever agent recorded it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Lineage, Text, Unknown};

/// Data about a session as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Head {
    /// Unique among the sessions of one agent. Where the file gives none, the file's name, with a
    /// digest of how the session begins unless the agent names its files by their sessions.
    pub id: String,
    /// The agent in its own words or the name of the format, such as `claude-code`.
    pub agent: String,
    /// Version of the agent.
    pub agent_version: Option<String>,
    /// Models that answered, in order of their first answer.
    pub models: Vec<String>,
    /// Where the user sat: cli, vscode, telegram, …
    pub platform: Option<String>,
    /// Working folder, as recorded.
    pub cwd: Option<String>,
    /// The session from which this one was continued or started.
    pub parent: Option<String>,
    /// First time in it. A time without zone is taken for UTC.
    pub start: Option<Timestamp>,
    /// Last time in it.
    pub end: Option<Timestamp>,
    /// Tokens of the whole session, where the file states a total. Else the events' usages count.
    pub usage: Option<Usage>,
    /// Blocks that its reader does not understand, by type.
    #[serde(skip_serializing_if = "Unknown::is_empty")]
    pub unknown_blocks: Unknown,
    /// How it begins; set when it ends.
    #[serde(skip)]
    pub lineage: Lineage,
    /// How often a person took the conversation back to an earlier message and went on from
    /// there, where the file tells.
    #[serde(skip_serializing_if = "is_none")]
    pub rewinds: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Head {
    /// Notes a model that answered.
    pub fn model(&mut self, name: &str) {
        const MAX_MODELS: usize = 32;
        if !name.is_empty()
            && self.models.len() < MAX_MODELS
            && !self.models.iter().any(|model| model == name)
        {
            self.models.push(selftest_text::one_line(name, 120));
        }
    }

    /// Notes a moment of the session.
    pub fn saw(&mut self, time: Timestamp) {
        self.start = Some(self.start.map_or(time, |start| start.min(time)));
        self.end = Some(self.end.map_or(time, |end| end.max(time)));
    }
}

/// Speaker, in the terms of chat protocols.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Rules and notices.
    #[default]
    System,
    /// Text given to the agent.
    User,
    /// The agent.
    Assistant,
    /// Results of tools.
    Tool,
}

/// Author of an event. In every agent many `user` records were not typed by a human.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A person typed it.
    Human,
    /// The agent's model or a tool that it called.
    Agent,
    /// The program around the model: reminders, hooks, summaries, environment notes.
    #[default]
    Harness,
    /// Inside a subagent, whoever speaks there.
    Subagent,
}

/// Special meaning of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// A person stopped the agent.
    Interrupted,
    /// The context was summarised; what follows goes on from a summary.
    Compacted,
    /// The model's provider failed.
    ApiError,
    /// A verifier beside the agent, such as a benchmark's, found the task done.
    VerifierPassed,
    /// A verifier found the task not done.
    VerifierFailed,
}

impl Mark {
    /// Whether it says what somebody found about the whole session after its end.
    pub fn is_verdict(self) -> bool {
        matches!(self, Mark::VerifierPassed | Mark::VerifierFailed)
    }
}

/// One thing that was said or done.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Event<'a> {
    /// Number in the session, from 0. Set by the feed, not by readers.
    pub number: u64,
    /// Who speaks.
    pub role: Role,
    /// Author.
    pub origin: Origin,
    /// The text.
    #[serde(skip_serializing_if = "Text::is_empty")]
    pub text: Text<'a>,
    /// The model's thoughts, where they were recorded.
    #[serde(skip_serializing_if = "Text::is_empty")]
    pub reasoning: Text<'a>,
    /// Tools that the agent called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall<'a>>,
    /// Results of tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ToolResult<'a>>,
    /// Tokens of this model call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Of `usage.input` those that the provider wrote into its cache, where the file says so.
    #[serde(skip_serializing_if = "is_none")]
    pub cache_written: u64,
    /// The model of a call with `usage`; empty where the file does not tell which it was.
    #[serde(skip_serializing_if = "Text::is_empty")]
    pub model: Text<'a>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// For assistants: more of the same model call as an earlier event, no call of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// Special meaning, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
}

/// A tool call as the model wrote it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolCall<'a> {
    /// Pairs it with its result; may be empty.
    pub id: Text<'a>,
    /// The tool.
    pub name: Text<'a>,
    /// JSON where the agent wrote JSON, else its text.
    pub arguments: Text<'a>,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It worked, or its failure is harmless by the agent's own word.
    Ok,
    /// The tool failed.
    Failed,
    /// A person or a policy refused it: a signal about the session, no fault of the tool.
    Rejected,
    /// No result was ever recorded.
    Pending,
    /// There is a result, and nothing says how it ended.
    #[default]
    Unknown,
}

/// Result of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolResult<'a> {
    /// Of the call.
    pub call_id: Text<'a>,
    /// The tool; the feed fills it in from the call where the result does not name it.
    pub tool: Text<'a>,
    /// Its output.
    pub text: Text<'a>,
    /// How it ended.
    pub outcome: Outcome,
    /// Exit code of a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The error in the agent's own field for it; where empty, `text` says what failed.
    #[serde(skip_serializing_if = "Text::is_empty")]
    pub error: Text<'a>,
}

/// Tokens. Each is a count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read by the model, without those served from a cache.
    pub input: u64,
    /// Written by the model, thoughts included.
    pub output: u64,
    /// Read from a cache.
    pub cached: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
    }
}

impl Usage {
    /// The increase over an earlier count of the same model call.
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
    /// A copy that owns its text.
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
            model: self.model.into_owned(),
            time: self.time,
            continues: self.continues,
            mark: self.mark,
        }
    }
}

impl ToolCall<'_> {
    /// A copy that owns its text.
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
