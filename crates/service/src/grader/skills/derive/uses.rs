//! Finds the uses of skills in the events of a session. Memory is that of the uses.
//!
//! Claude Code: the tool `Skill` with the skill's name in its input; and `/name`, which the
//! program records as a command and then puts the skill's text into the conversation. Hermes: the
//! tool `skill_view` with the skill's name and no file; and `/name`, which it puts in front of
//! what was typed.

use std::mem;

use jiff::Timestamp;
use serde::Deserialize;

use selftest_grading::grade::ErrorClass;
use selftest_grading::improve::skill::ExecutionStatus;
use selftest_sessions::{Event, Head, Mark, Origin, Outcome, Role, Sink, ToolCall, ToolResult};
use selftest_text::{clip, one_line};

/// Bytes of a skill's name.
const MAX_NAME: usize = 200;
/// Bytes of an error's words.
const MAX_ERROR: usize = 4000;
/// Bytes of a message that are looked at.
const MAX_MESSAGE: usize = 8000;
/// Uses of a session; a foreign file must not fill the memory.
const MAX_USES: usize = 10_000;

/// One use of a skill that has ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Use {
    /// The skill.
    pub(super) skill: String,
    /// Tells it apart in its session: the id of the tool call, else the number of the event.
    pub(super) key: String,
    pub(super) status: ExecutionStatus,
    /// The error.
    pub(super) error: Option<String>,
    /// Calls of the model from the use to the person's next message.
    pub(super) turns: u32,
    pub(super) at: Option<Timestamp>,
    /// From the use to the last event before the person's next message.
    pub(super) milliseconds: Option<u32>,
    /// The person's next message, and the one before it.
    pub(super) next: Option<(String, Option<String>)>,
}

/// A use whose end is not seen yet.
struct Open {
    skill: String,
    key: String,
    /// Of the tool call that waits for its result; `None` where no tool was called.
    call_id: Option<String>,
    /// `None` until something says how it ended.
    ended: Option<(ExecutionStatus, Option<String>)>,
    /// The program has put the skill's text into the conversation, which it does once for a use.
    has_text: bool,
    turns: u32,
    at: Option<Timestamp>,
    last: Option<Timestamp>,
    /// The model's provider failed, and the model has not spoken since.
    broken: bool,
}

/// Collects the uses in the sessions of a source.
#[derive(Default)]
pub(super) struct Uses {
    sessions: Vec<(Head, Vec<Use>)>,
    open: Vec<Open>,
    done: Vec<Use>,
    /// The last message of the person.
    said: Option<String>,
    /// The command that the person typed last.
    command: Option<String>,
}

/// Input of the tools that use a skill, under the names that their versions gave it.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Input {
    skill: Option<String>,
    name: Option<String>,
    command: Option<String>,
    /// A file beside the skill: looking at it is no use of its own.
    file_path: Option<String>,
}

impl Uses {
    /// The sessions in which a skill was used.
    pub(super) fn into_sessions(self) -> Vec<(Head, Vec<Use>)> {
        self.sessions
    }

    fn begin(&mut self, skill: &str, event: &Event<'_>, call: Option<&ToolCall<'_>>) {
        let skill = one_line(skill.trim().trim_start_matches('/'), MAX_NAME);
        if skill.is_empty() || self.open.len() + self.done.len() >= MAX_USES {
            return;
        }
        let id = call.map(|call| call.id.as_str()).filter(|id| !id.is_empty());
        self.open.push(Open {
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
            Outcome::Ok | Outcome::Unknown => (ExecutionStatus::Success, None),
            Outcome::Failed => {
                let words = if result.error.is_empty() { &result.text } else { &result.error };
                let status = match ErrorClass::of(words, result.exit_code) {
                    ErrorClass::Timeout => ExecutionStatus::Timeout,
                    _ => ExecutionStatus::Error,
                };
                (status, Some(clip(words, MAX_ERROR)))
            }
            // A call that was refused or never came to an end is no execution.
            Outcome::Rejected | Outcome::Pending => {
                self.open.remove(at);
                return;
            }
        };
        self.open[at].ended = Some(ended);
    }

    /// A text of the program, which may be a skill that the person called by name.
    fn notice(&mut self, event: &Event<'_>) {
        let text = event.text.trim_start();
        if text.starts_with("<command-") {
            let command = element(text, "<command-name>", "</command-name>");
            self.command = command.map(|name| name.trim().trim_start_matches('/').to_owned());
        } else if let Some(rest) = text.strip_prefix("Base directory for this skill:") {
            let folder = rest.lines().next().unwrap_or_default().trim();
            let folder = folder.rsplit(['/', '\\']).next().unwrap_or_default();
            // Calls and commands may name the plugin too: `plugin:skill`.
            let is_it = |name: &str| name.rsplit(':').next() == Some(folder);
            let called = self.open.iter_mut().find(|open| !open.has_text && is_it(&open.skill));
            if let Some(called) = called {
                called.has_text = true;
                return;
            }
            let command = self.command.take().filter(|command| is_it(command));
            self.begin(command.as_deref().unwrap_or(folder), event, None);
        } else {
            for name in invoked(text) {
                self.begin(name, event, None);
            }
        }
    }

    /// Takes a message of a person. It is about the last use, once the agent has gone on after that.
    fn person(&mut self, text: &str) {
        let text = clip(text, MAX_MESSAGE);
        let previous = self.said.replace(text.clone());
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

impl Open {
    /// The use, if it came to an end.
    fn end(self, next: Option<(String, Option<String>)>) -> Option<Use> {
        let (mut status, error) = match self.ended {
            Some(ended) => ended,
            // Called by name: it has run when the agent went on.
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
        Some(Use {
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

impl Sink for Uses {
    fn event(&mut self, event: Event<'_>) {
        if event.role == Role::User && event.origin == Origin::Human && !event.text.is_empty() {
            self.person(&event.text);
            return;
        }
        for open in &mut self.open {
            open.last = event.time.max(open.last);
            if event.mark == Some(Mark::ApiError) {
                open.broken = true;
            } else if event.role == Role::Assistant {
                open.broken = false;
                open.turns += u32::from(!event.continues);
            }
        }
        for call in &event.calls {
            if let Some(name) = used(call) {
                self.begin(&name, &event, Some(call));
            }
        }
        for result in &event.results {
            self.result(result);
        }
        if event.origin == Origin::Harness && event.role == Role::User {
            self.notice(&event);
        }
    }

    fn end(&mut self, head: Head) {
        let this = mem::take(self);
        self.sessions = this.sessions;
        let open = this.open.into_iter().filter_map(|open| open.end(None));
        let uses: Vec<Use> = this.done.into_iter().chain(open).collect();
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

/// The skill that a tool call uses.
fn used(call: &ToolCall<'_>) -> Option<String> {
    let tool = call.name.as_str();
    if !matches!(tool, "Skill" | "skill" | "skill_view") {
        return None;
    }
    let input: Input = serde_json::from_str(&call.arguments).ok()?;
    if tool == "skill_view" && input.file_path.is_some_and(|path| !path.is_empty()) {
        return None;
    }
    input.skill.or(input.name).or(input.command)
}

/// The skills that Hermes was told to use, by the text that it puts into the conversation.
fn invoked(text: &str) -> Vec<&str> {
    let quoted = |beginning: &str| text.strip_prefix(beginning)?.split('"').next();
    let called =
        ["[IMPORTANT: The user has invoked the \"", "[SYSTEM: The user has invoked the \""];
    if let Some(names) = called.into_iter().find_map(quoted) {
        // Several at once stand in one pair of quotes, each as it was typed.
        return if names.starts_with('/') { names.split(' ').collect() } else { vec![names] };
    }
    let loaded = quoted("[IMPORTANT: The \"");
    let is_loaded =
        text.lines().next().is_some_and(|line| line.contains("\" skill is auto-loaded."));
    loaded.filter(|_| is_loaded).into_iter().collect()
}

/// The text between two marks.
fn element<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    Some(text.split_once(open)?.1.split_once(close)?.0)
}
