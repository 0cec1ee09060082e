//! Reads mini-swe-agent trajectories: a bare list of messages (old), or
//! `{info, messages, trajectory_format}`.
//!
//! The only tool is a shell. Its command is in a code fence of the answer, in `tool_calls` or in
//! `extra.actions`; its result is the next message that is not the model's. Except for
//! interruptions, no message is typed by a person: the first one is a template around the task.

mod message;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::SessionReadError;
use super::event::{Event, EventMark, EventOrigin, EventRole, ToolCall, ToolOutcome, ToolResult};
use super::failure;
use super::feed::SessionFeed;
use super::function_call::ApiFunction;
use super::source::{DocumentReader, SessionSource};
use super::text::Text;
use super::wire::{LenientObject, each};
use crate::chat::formats::{has_role, is_chat};
use crate::entry::{AgentFolders, FormatEntry, HomeRoot};
use crate::verified::{VerificationBasis, VerifiedVersion};
use message::{MiniInfo, MiniMessage, command_of, split_fence, split_returncode};

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.mark("trajectory_format").starts_with("mini-swe-agent"),
    // The trajectory format is the last key, out of reach in a large file.
    weak_json: |value| value.has("info") && value.list("messages").iter().any(has_role),
    json_list: |values| {
        // A shell fence alone may occur in any chat.
        let holds = |mark| values.iter().any(|value| value.has(mark));
        is_chat(values) && holds("is:bash fence") && holds("is:shell protocol")
    },
    folders: &[AgentFolders {
        agent: "mini-swe-agent",
        variable: Some("MSWEA_GLOBAL_CONFIG_DIR"),
        roots: &[HomeRoot::Config("mini-swe-agent"), HomeRoot::Support("mini-swe-agent")],
        parts: &[""],
    }],
    verified: Some(VerifiedVersion {
        agent: "mini-swe-agent",
        version: "2.1.0",
        basis: VerificationBasis::OwnFixture,
    }),
    ..FormatEntry::new(read)
};

/// Reads a trajectory.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    source.read_document(&mut MiniTrajectory, feed)
}

struct MiniTrajectory;

impl DocumentReader for MiniTrajectory {
    fn begin(&mut self, feed: &mut SessionFeed<'_>) {
        "mini-swe-agent".clone_into(&mut feed.head.agent);
        feed.naming.name_run_by_stem();
    }

    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut run = MiniRun::default();
        while let Some(message) = list.next_element::<LenientObject<MiniMessage<'de>>>()? {
            run.send(message, feed);
        }
        Ok(())
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let (mut run, mut info) = (MiniRun::default(), MiniInfo::default());
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "info" => {
                    info = map.next_value::<LenientObject<MiniInfo<'de>>>()?.0.unwrap_or_default();
                }
                "messages" => map.next_value_seed(each(|message| run.send(message, feed)))?,
                "instance_id" => {
                    feed.naming.name_run_of(&map.next_value::<Text<'de>>()?);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        run.note(&info, feed);
        Ok(())
    }
}

/// State of a run.
#[derive(Default)]
struct MiniRun {
    calls: u64,
    /// Calls without a result, oldest first.
    open: VecDeque<String>,
    has_ended: bool,
}

impl MiniRun {
    fn send(&mut self, message: LenientObject<MiniMessage<'_>>, feed: &mut SessionFeed<'_>) {
        let Some(message) = message.0 else {
            feed.notes.bad_records += 1;
            return;
        };
        match message.role.as_str() {
            "assistant" => self.answer(message, feed),
            // Answers of the Responses API have no role.
            "" if message.object.as_str() == "response" => self.answer(message, feed),
            "" if message.kind.as_str() == "function_call_output" => self.result(message, feed),
            "tool" => self.result(message, feed),
            "user" => self.user(message, feed),
            "exit" => self.exit(message, feed),
            _ => {
                let time = message.extra.0.unwrap_or_default().timestamp.0;
                feed.send(Event { text: message.content.0, time, ..Event::default() });
            }
        }
    }

    fn answer(&mut self, message: MiniMessage<'_>, feed: &mut SessionFeed<'_>) {
        let extra = message.extra.0.unwrap_or_default();
        let response = extra.response.0.unwrap_or_default();
        for model in [&message.model, &response.model] {
            feed.head.add_model(model);
        }
        let tokens = message.usage.0.or(response.usage.0);
        let content = if message.content.0.is_empty() { message.output } else { message.content.0 };
        let (mut text, fenced) = split_fence(&content);
        let mut calls: Vec<ToolCall<'_>> = Vec::new();
        for action in extra.actions.0 {
            let (id, arguments) = (action.tool_call_id, action.command);
            calls.push(ToolCall { id, name: "bash".into(), arguments });
        }
        if calls.is_empty() {
            for call in message.tool_calls.0 {
                let ApiFunction { name, arguments } = call.function.0.unwrap_or_default();
                calls.push(ToolCall { id: call.id, name, arguments: command_of(arguments) });
            }
        }
        if calls.is_empty() {
            calls.extend(fenced.map(|command| ToolCall {
                name: "bash".into(),
                arguments: command.into(),
                ..ToolCall::default()
            }));
        }
        if calls.is_empty() {
            // Without a call, a fence is part of the answer.
            text = content.as_str();
        }
        for call in &mut calls {
            self.calls += 1;
            if call.id.is_empty() {
                // Fenced commands have no id, but calls and results are paired by id.
                call.id = format!("call {}", self.calls).into();
            }
        }
        self.open = calls.iter().map(|call| call.id.as_str().to_owned()).collect();
        feed.send(Event {
            role: EventRole::Assistant,
            origin: EventOrigin::Agent,
            text: text.into(),
            reasoning: message.reasoning_content,
            calls,
            usage: tokens.and_then(|tokens| tokens.usage()),
            time: extra.timestamp.0,
            ..Event::default()
        });
    }

    /// Handles a message to the model: the task, a result, or a comment of the user or harness on
    /// the last answer.
    fn user(&mut self, message: MiniMessage<'_>, feed: &mut SessionFeed<'_>) {
        let kind = message.extra.0.as_ref().map_or("", |extra| extra.interrupt_type.as_str());
        let text = message.content.0.as_str();
        let is_rejection =
            kind == "UserRejection" || text.starts_with("Command not executed. The user");
        let is_interruption = kind == "UserInterruption" || text.starts_with("Interrupted by user");
        let is_human = is_rejection || is_interruption || kind.starts_with("User");
        let is_notice = is_human || !kind.is_empty();
        // In the old format, a command's output is a plain user message.
        if !is_notice && !self.open.is_empty() {
            self.result(message, feed);
            return;
        }
        let time = message.extra.0.as_ref().and_then(|extra| extra.timestamp.0);
        if is_rejection {
            // The rejected command never ran and gets no other result.
            self.close(ToolOutcome::Rejected, time, feed);
        }
        feed.send(Event {
            role: EventRole::User,
            origin: if is_human { EventOrigin::Human } else { EventOrigin::Harness },
            text: message.content.0,
            time,
            mark: is_interruption.then_some(EventMark::Interrupted),
            ..Event::default()
        });
    }

    fn result(&mut self, message: MiniMessage<'_>, feed: &mut SessionFeed<'_>) {
        let extra = message.extra.0.unwrap_or_default();
        let content = if message.content.0.is_empty() { message.output } else { message.content.0 };
        let given = [message.tool_call_id, message.call_id];
        let call_id = match given.into_iter().find(|id| !id.is_empty()) {
            Some(id) => {
                self.open.retain(|open| *open != id.as_str());
                id
            }
            None => self.open.pop_front().map(Text::from).unwrap_or_default(),
        };
        let (stated, text) = split_returncode(&content);
        let code = extra.returncode.0.or(stated);
        let mut result = match code {
            Some(code) => ToolResult {
                text: text.into(),
                outcome: if code == 0 { ToolOutcome::Ok } else { ToolOutcome::Failed },
                exit_code: Some(code),
                ..ToolResult::default()
            },
            None => failure::result_of(text.into()),
        };
        let timed_out =
            text.starts_with("The last command <command>") && text.contains("timed out");
        if timed_out || !extra.exception_info.is_empty() {
            result.outcome = ToolOutcome::Failed;
        }
        result.error = extra.exception_info;
        let results = vec![ToolResult { call_id, ..result }];
        feed.send_results(EventOrigin::Agent, results, extra.timestamp.0);
    }

    /// Handles the end of a run. The command that submits has no result, because the run ends with
    /// it.
    fn exit(&mut self, message: MiniMessage<'_>, feed: &mut SessionFeed<'_>) {
        let extra = message.extra.0.unwrap_or_default();
        if extra.exit_status.as_str() == "Submitted" {
            self.close(ToolOutcome::Ok, extra.timestamp.0, feed);
        }
        self.end(&extra.exit_status, extra.timestamp.0, feed);
    }

    /// Sends a result for each open call.
    fn close(
        &mut self,
        outcome: ToolOutcome,
        time: Option<jiff::Timestamp>,
        feed: &mut SessionFeed<'_>,
    ) {
        let result =
            |id: String| ToolResult { call_id: id.into(), outcome, ..ToolResult::default() };
        let results = self.open.drain(..).map(result).collect();
        feed.send_results(EventOrigin::Agent, results, time);
    }

    fn end(&mut self, status: &str, time: Option<jiff::Timestamp>, feed: &mut SessionFeed<'_>) {
        // The status may be in the exit message and in `info`.
        if !status.is_empty() && !self.has_ended {
            self.has_ended = true;
            let text = format!("exit status: {}", selftest_text::one_line(status, 200)).into();
            feed.send(Event { text, time, ..Event::default() });
        }
    }

    fn note(&mut self, info: &MiniInfo<'_>, feed: &mut SessionFeed<'_>) {
        feed.head.agent_version = info.mini_version.line(60).or(feed.head.agent_version.take());
        // The configuration may spell the model differently, which would count as another model.
        if feed.head.models.is_empty() {
            feed.head.add_model(&info.config.text("/model/model_name"));
        }
        feed.head.add_stated_cost(info.model_stats.part("/instance_cost"));
        self.end(&info.exit_status, None, feed);
    }
}
