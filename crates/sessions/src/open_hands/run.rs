//! Converts the events of one `OpenHands` run to the neutral model.

use super::record::{OpenHandsRecord, ToolCallMetadata};
use crate::content::MessageContent;
use crate::event::{
    Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use crate::failure;
use crate::feed::SessionFeed;
use crate::tokens::ApiUsage;

/// Prefix of the message that the evaluation sends in place of a user.
const STAND_IN: &str = "Please continue working on the task on whatever approach you think";

/// State of a run.
#[derive(Default)]
pub(super) struct OpenHandsRun {
    is_evaluation: bool,
    has_started: bool,
    calls: u64,
    /// Id of the last call without a result, for events that name no cause.
    open: Option<String>,
    /// Id of the model's last reply.
    reply: String,
    /// Number of nested subagents at work.
    subagents: u32,
}

impl OpenHandsRun {
    /// Creates a run whose user is a program.
    pub(super) fn of_evaluation() -> Self {
        Self { is_evaluation: true, ..Self::default() }
    }

    /// Sends an event.
    pub(super) fn send(&mut self, record: OpenHandsRecord<'_>, feed: &mut SessionFeed<'_>) {
        "open-hands".clone_into(&mut feed.head.agent);
        if let Some(metrics) = &record.llm_metrics.0 {
            metrics.note(feed);
        }
        match (record.action.is_empty(), record.observation.is_empty()) {
            (false, _) => self.action(record, feed),
            (true, false) => self.observation(record, feed),
            (true, true) => feed.notes.ignored_records += 1,
        }
    }

    fn agent(&self) -> EventOrigin {
        if self.subagents > 0 { EventOrigin::Subagent } else { EventOrigin::Agent }
    }

    fn action(&mut self, record: OpenHandsRecord<'_>, feed: &mut SessionFeed<'_>) {
        let time = record.timestamp.0;
        let is_user = record.source.as_str() == "user";
        match record.action.as_str() {
            "message" => self.message(record, feed),
            "system" => {
                feed.send(Event { text: record.args.content, time, ..Event::default() });
            }
            "finish" | "reject" => self.finish(record, feed),
            "change_agent_state"
                if is_user && matches!(record.args.agent_state.as_str(), "stopped" | "paused") =>
            {
                let (role, origin) = (EventRole::User, EventOrigin::Human);
                let mark = Some(EventMark::Interrupted);
                feed.send(Event { role, origin, time, mark, ..Event::default() });
            }
            "condensation" => {
                let (text, mark) = (record.args.summary, Some(EventMark::Compacted));
                feed.send(Event { text, time, mark, ..Event::default() });
            }
            "null"
            | "change_agent_state"
            | "recall"
            | "start"
            | "pause"
            | "resume"
            | "stop"
            | "summarize"
            | "condensation_request"
            | "loop_recovery" => {
                feed.notes.ignored_records += 1;
            }
            // A command that the user ran beside the agent.
            _ if is_user => feed.notes.ignored_records += 1,
            _ => self.call(record, feed),
        }
    }

    fn message(&mut self, record: OpenHandsRecord<'_>, feed: &mut SessionFeed<'_>) {
        let text =
            if record.args.content.is_empty() { record.content.0 } else { record.args.content };
        let is_agent = match record.source.as_str() {
            // Before 2025, only this distinguished agent and user.
            "" => self.has_started && record.wait_for_response.is_set(),
            source => source == "agent",
        };
        self.has_started = true;
        let time = record.timestamp.0;
        if is_agent {
            let (continues, usage) = self.note_reply(record.tool_call_metadata.0.as_ref(), feed);
            let (role, origin) = (EventRole::Assistant, self.agent());
            feed.send(Event { role, origin, text, usage, time, continues, ..Event::default() });
            return;
        }
        let is_program = self.is_evaluation
            || record.source.as_str() == "environment"
            || text.starts_with(STAND_IN);
        let origin = if is_program { EventOrigin::Harness } else { EventOrigin::Human };
        feed.send_text(EventRole::User, origin, text, time);
    }

    /// Sends the agent's final message. It has the form of a call but never gets a result.
    fn finish(&mut self, record: OpenHandsRecord<'_>, feed: &mut SessionFeed<'_>) {
        let (continues, usage) = self.note_reply(record.tool_call_metadata.0.as_ref(), feed);
        let args = record.args;
        let said = [args.final_thought, args.thought, args.content, record.message];
        let text = said.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        let (role, origin, time) = (EventRole::Assistant, self.agent(), record.timestamp.0);
        feed.send(Event { role, origin, text, usage, time, continues, ..Event::default() });
    }

    fn call(&mut self, record: OpenHandsRecord<'_>, feed: &mut SessionFeed<'_>) {
        let metadata = record.tool_call_metadata.0;
        let (continues, usage) = self.note_reply(metadata.as_ref(), feed);
        self.calls += 1;
        let id = match record.id.0 {
            Some(id) if id >= 0 => id.to_string(),
            // Old events have no ids, but calls and results are paired by id.
            _ => format!("call {}", self.calls),
        };
        let named = metadata.map(|metadata| metadata.function_name).filter(|name| !name.is_empty());
        let beside = [record.command, record.code, record.browser_actions, record.path, record.url];
        let arguments = match record.args.of_tool {
            args if args.is_empty() => {
                beside.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
            }
            args => args.into(),
        };
        let thought = record.args.thought;
        let is_delegation = record.action.as_str() == "delegate";
        let call =
            ToolCall { id: id.as_str().into(), name: named.unwrap_or(record.action), arguments };
        feed.send(Event {
            role: EventRole::Assistant,
            origin: self.agent(),
            text: if thought.is_empty() { record.thought } else { thought },
            calls: vec![call],
            usage,
            time: record.timestamp.0,
            continues,
            ..Event::default()
        });
        // Events until the delegation's observation come from the subagent.
        self.subagents += u32::from(is_delegation);
        self.open = Some(id);
    }

    /// Returns true if an event belongs to the same model reply as an earlier one, and the tokens
    /// of a new reply.
    fn note_reply(
        &mut self,
        metadata: Option<&ToolCallMetadata<'_>>,
        feed: &mut SessionFeed<'_>,
    ) -> (bool, Option<TokenCounts>) {
        let Some(reply) = metadata.and_then(|metadata| metadata.model_response.0.as_ref()) else {
            return (false, None);
        };
        feed.head.add_model(&reply.model);
        if !reply.id.is_empty() && self.reply == reply.id.as_str() {
            return (true, None);
        }
        reply.id.as_str().clone_into(&mut self.reply);
        (false, reply.usage.0.as_ref().and_then(ApiUsage::usage))
    }

    fn observation(&mut self, record: OpenHandsRecord<'_>, feed: &mut SessionFeed<'_>) {
        let kind = record.observation.as_str();
        let time = record.timestamp.0;
        // Observations of the user's own commands have the user as source.
        let is_noise =
            matches!(kind, "agent_state_changed" | "null" | "recall" | "chat" | "message");
        if is_noise || (record.source.as_str() == "user" && kind != "user_rejected") {
            feed.notes.ignored_records += 1;
            return;
        }
        let MessageContent(text) = record.content;
        if kind == "condense" {
            let mark = Some(EventMark::Compacted);
            feed.send(Event { text, time, mark, ..Event::default() });
            return;
        }
        if kind == "delegate" {
            self.subagents = self.subagents.saturating_sub(1);
        }
        let cause = record.cause.0.filter(|cause| *cause >= 0).map(|cause| cause.to_string());
        let open = self.open.take();
        let Some(call_id) = cause.or(open) else {
            // An error of the harness itself.
            feed.send(Event { text, time, ..Event::default() });
            return;
        };
        let extras = record.extras.0.unwrap_or_default();
        let metadata = extras.metadata.0.unwrap_or_default();
        if feed.head.cwd.is_none() {
            feed.head.cwd = metadata.working_dir.line(400);
        }
        // The place of the exit code changed between versions.
        let code = metadata.exit_code.0.or(extras.exit_code.0).or(record.exit_code.0);
        // -1 means that the command has not ended yet.
        let exit_code = code.filter(|code| *code >= 0);
        let failed = kind == "error"
            || extras.error.is_set()
            || exit_code.is_some_and(|code| code != 0)
            || (code.is_none() && record.success.0 == Some(false))
            || is_traceback(&text);
        let outcome = match (kind, failed, code) {
            ("user_rejected", ..) => ToolOutcome::Rejected,
            (_, true, _) => ToolOutcome::Failed,
            (_, _, Some(0)) => ToolOutcome::Ok,
            (_, _, Some(_)) => ToolOutcome::Unknown,
            (_, _, None) if failure::is_failure_text(&text) => ToolOutcome::Failed,
            // These report failures as an `error` observation.
            ("success" | "read" | "write" | "edit" | "think" | "delegate", ..) => ToolOutcome::Ok,
            ("browse", ..) if extras.error.0 == Some(false) => ToolOutcome::Ok,
            (_, _, None) => ToolOutcome::Unknown,
        };
        let call_id = call_id.into();
        let result = ToolResult { call_id, text, outcome, exit_code, ..ToolResult::default() };
        feed.send_results(self.agent(), vec![result], time);
    }
}

/// Returns true if the text starts like an exception report of `IPython`.
fn is_traceback(text: &str) -> bool {
    let mut lines = text.trim_start().lines();
    let first = lines.next().unwrap_or_default();
    (first.starts_with("-----")
        && lines.next().is_some_and(|line| line.ends_with("Traceback (most recent call last)")))
        || first.starts_with("Cell In[")
}
