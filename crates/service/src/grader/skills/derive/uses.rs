//! Finds skill uses in the events of a session. Memory use is proportional to the uses.
//!
//! Claude Code: the tool `Skill` with the skill's name in its input; or `/name`, which the program
//! records as a command before it inserts the skill's text into the conversation. Hermes: the tool
//! `skill_view` with the skill's name and no file; or `/name`, after which it inserts a notice
//! before the user's text.

use std::mem;

use jiff::Timestamp;
use serde::Deserialize;

use selftest_grading::grade::ErrorClass;
use selftest_grading::improve::skill::ExecutionStatus;
use selftest_sessions::{
    Event, EventMark, EventOrigin, EventRole, SessionHead, SessionSink, ToolCall, ToolOutcome,
    ToolResult,
};
use selftest_text::{clip, one_line};

/// Maximum bytes of a skill name.
const MAX_NAME: usize = 200;
/// Maximum bytes of an error message.
const MAX_ERROR: usize = 4000;
/// Maximum bytes of a message that are inspected.
const MAX_MESSAGE: usize = 8000;
/// Maximum number of uses per session, so that a crafted file cannot exhaust memory.
const MAX_USES: usize = 10_000;

/// A finished skill use.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SkillUse {
    /// Name of the skill.
    pub(super) skill: String,
    /// Key that is unique in its session: the id of the tool call, else the number of the event.
    pub(super) key: String,
    pub(super) status: ExecutionStatus,
    /// Error message.
    pub(super) error: Option<String>,
    /// Number of model calls from the use to the user's next message.
    pub(super) turns: u32,
    pub(super) at: Option<Timestamp>,
    /// Milliseconds from the use to the last event before the user's next message.
    pub(super) milliseconds: Option<u32>,
    /// The user's next message, and the one before it.
    pub(super) next: Option<(String, Option<String>)>,
}

/// A use whose end has not been seen yet.
struct OpenUse {
    skill: String,
    key: String,
    /// Id of the pending tool call; `None` if no tool was called.
    call_id: Option<String>,
    /// `None` until the result is known.
    ended: Option<(ExecutionStatus, Option<String>)>,
    /// True once the program has inserted the skill's text into the conversation, which happens
    /// once per use.
    has_text: bool,
    turns: u32,
    at: Option<Timestamp>,
    last: Option<Timestamp>,
    /// True if the model's provider failed and the model has not answered since.
    broken: bool,
}

/// Collects the skill uses in the sessions of a source.
#[derive(Default)]
pub(super) struct SkillUseCollector {
    sessions: Vec<(SessionHead, Vec<SkillUse>)>,
    open: Vec<OpenUse>,
    done: Vec<SkillUse>,
    /// The user's last message.
    last_message: Option<String>,
    /// The last command that the user typed.
    command: Option<String>,
}

/// Input of the tools that use a skill, with the field names of their different versions.
#[derive(Deserialize, Default)]
#[serde(default)]
struct SkillInput {
    skill: Option<String>,
    name: Option<String>,
    command: Option<String>,
    /// File beside the skill; viewing it is not a separate use.
    file_path: Option<String>,
}

impl SkillUseCollector {
    /// Returns the sessions in which a skill was used.
    pub(super) fn into_sessions(self) -> Vec<(SessionHead, Vec<SkillUse>)> {
        self.sessions
    }

    fn start_use(&mut self, skill: &str, event: &Event<'_>, call: Option<&ToolCall<'_>>) {
        let skill = one_line(skill.trim().trim_start_matches('/'), MAX_NAME);
        if skill.is_empty() || self.open.len() + self.done.len() >= MAX_USES {
            return;
        }
        let id = call.map(|call| call.id.as_str()).filter(|id| !id.is_empty());
        self.open.push(OpenUse {
            skill,
            key: id.map_or_else(|| format!("#{}", event.number), ToOwned::to_owned),
            call_id: call.map(|call| call.id.as_str().to_owned()),
            ended: None,
            has_text: call.is_none(),
            turns: 0,
            at: event.time,
            last: event.time,
            broken: false,
        });
    }

    fn result(&mut self, result: &ToolResult<'_>) {
        let waiting = self.open.iter().position(|open| {
            open.ended.is_none() && open.call_id.as_deref() == Some(result.call_id.as_str())
        });
        let Some(at) = waiting else { return };
        let ended = match result.outcome {
            ToolOutcome::Ok | ToolOutcome::Unknown => (ExecutionStatus::Success, None),
            ToolOutcome::Failed => {
                let words = if result.error.is_empty() { &result.text } else { &result.error };
                let status = match ErrorClass::classify(words, result.exit_code) {
                    ErrorClass::Timeout => ExecutionStatus::Timeout,
                    _ => ExecutionStatus::Error,
                };
                (status, Some(clip(words, MAX_ERROR)))
            }
            // A rejected or unfinished call does not count as an execution.
            ToolOutcome::Rejected | ToolOutcome::Pending => {
                self.open.remove(at);
                return;
            }
        };
        self.open[at].ended = Some(ended);
    }

    /// Handles a text inserted by the program, which may be a skill that the user called by name.
    fn notice(&mut self, event: &Event<'_>) {
        let text = event.text.trim_start();
        if text.starts_with("<command-") {
            let command = element(text, "<command-name>", "</command-name>");
            self.command = command.map(|name| name.trim().trim_start_matches('/').to_owned());
        } else if let Some(rest) = text.strip_prefix("Base directory for this skill:") {
            let folder = rest.lines().next().unwrap_or_default().trim();
            let folder = folder.rsplit(['/', '\\']).next().unwrap_or_default();
            // Calls and commands may include the plugin name: `plugin:skill`.
            let is_it = |name: &str| name.rsplit(':').next() == Some(folder);
            let called = self.open.iter_mut().find(|open| !open.has_text && is_it(&open.skill));
            if let Some(called) = called {
                called.has_text = true;
                return;
            }
            let command = self.command.take().filter(|command| is_it(command));
            self.start_use(command.as_deref().unwrap_or(folder), event, None);
        } else {
            for name in invoked_skills(text) {
                self.start_use(name, event, None);
            }
        }
    }

    /// Handles a user message. It refers to the last use, if the agent has continued since.
    fn user_message(&mut self, text: &str) {
        let text = clip(text, MAX_MESSAGE);
        let previous = self.last_message.replace(text.clone());
        let waiting = mem::take(&mut self.open).into_iter();
        let (answered, open): (Vec<_>, Vec<_>) = waiting.partition(|open| open.turns > 0);
        self.open = open;
        let last = answered.len().saturating_sub(1);
        for (position, open) in answered.into_iter().enumerate() {
            let next = (position == last).then(|| (text.clone(), previous.clone()));
            self.done.extend(open.end(next));
        }
    }
}

impl OpenUse {
    /// Returns the finished use, or `None` if its result is unknown.
    fn end(self, next: Option<(String, Option<String>)>) -> Option<SkillUse> {
        let (mut status, error) = match self.ended {
            Some(ended) => ended,
            // Called by name: it counts as run once the agent has continued.
            None if self.call_id.is_none() && (self.turns > 0 || self.broken) => {
                (ExecutionStatus::Success, None)
            }
            None => return None,
        };
        if self.broken && status == ExecutionStatus::Success {
            status = ExecutionStatus::Error;
        }
        let milliseconds = self
            .at
            .zip(self.last)
            .and_then(|(at, last)| u32::try_from(last.duration_since(at).as_millis()).ok());
        Some(SkillUse {
            skill: self.skill,
            key: self.key,
            status,
            error: error.or_else(|| self.broken.then(|| "the model's provider failed".to_owned())),
            turns: self.turns,
            at: self.at,
            milliseconds,
            next,
        })
    }
}

impl SessionSink for SkillUseCollector {
    fn event(&mut self, event: Event<'_>) {
        if event.role == EventRole::User
            && event.origin == EventOrigin::Human
            && !event.text.is_empty()
        {
            self.user_message(&event.text);
            return;
        }
        for open in &mut self.open {
            open.last = event.time.max(open.last);
            if event.mark == Some(EventMark::ApiError) {
                open.broken = true;
            } else if event.role == EventRole::Assistant {
                open.broken = false;
                // Several events can belong to one model call.
                open.turns += u32::from(!event.continues);
            }
        }
        for call in &event.calls {
            if let Some(name) = used_skill(call) {
                self.start_use(&name, &event, Some(call));
            }
        }
        for result in &event.results {
            self.result(result);
        }
        if event.origin == EventOrigin::Harness && event.role == EventRole::User {
            self.notice(&event);
        }
    }

    fn end(&mut self, head: SessionHead) {
        let this = mem::take(self);
        self.sessions = this.sessions;
        let open = this.open.into_iter().filter_map(|open| open.end(None));
        let uses: Vec<SkillUse> = this.done.into_iter().chain(open).collect();
        if !uses.is_empty() {
            self.sessions.push((head, uses));
        }
    }

    fn restart(&mut self) {
        *self = Self { sessions: mem::take(&mut self.sessions), ..Self::default() };
    }

    fn wants_outputs(&self) -> bool {
        false
    }
}

/// Returns the skill used by a tool call.
fn used_skill(call: &ToolCall<'_>) -> Option<String> {
    let tool = call.name.as_str();
    if !matches!(tool, "Skill" | "skill" | "skill_view") {
        return None;
    }
    let input: SkillInput = serde_json::from_str(&call.arguments).ok()?;
    if tool == "skill_view" && input.file_path.is_some_and(|path| !path.is_empty()) {
        return None;
    }
    input.skill.or(input.name).or(input.command)
}

/// Returns the skills invoked in Hermes, from the notice that it inserts into the conversation.
fn invoked_skills(text: &str) -> Vec<&str> {
    let quoted = |beginning: &str| text.strip_prefix(beginning)?.split('"').next();
    let called =
        ["[IMPORTANT: The user has invoked the \"", "[SYSTEM: The user has invoked the \""];
    if let Some(names) = called.into_iter().find_map(quoted) {
        // Several skills are in one pair of quotes, each as typed.
        return if names.starts_with('/') { names.split(' ').collect() } else { vec![names] };
    }
    let loaded = quoted("[IMPORTANT: The \"");
    let is_loaded =
        text.lines().next().is_some_and(|line| line.contains("\" skill is auto-loaded."));
    loaded.filter(|_| is_loaded).into_iter().collect()
}

/// Returns the text between two markers.
fn element<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    Some(text.split_once(open)?.1.split_once(close)?.0)
}
