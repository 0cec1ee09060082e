//! Tracks the outcome of tool calls from their `…_end` events. These are more reliable than the
//! tools' output, and come before or after it.

use std::collections::HashMap;

use super::output::is_rejection;
use super::record::RolloutPayload;
use crate::event::{ToolOutcome, ToolResult};
use crate::text::Text;

/// Maximum number of calls tracked, so that an untrusted file cannot exhaust memory.
const MAX_CALLS: usize = 100_000;

/// Outcome of one call.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct CallEnding {
    pub(super) outcome: ToolOutcome,
    pub(super) exit_code: Option<i64>,
}

impl CallEnding {
    /// Reads the outcome from an event; `None` if the event does not state it.
    pub(super) fn of_event(payload: &RolloutPayload<'_>) -> Option<Self> {
        let declined = payload.status.as_str() == "declined";
        if declined {
            return Some(Self { outcome: ToolOutcome::Rejected, exit_code: None });
        }
        let worked = match payload.kind.as_str() {
            "exec_command_end" => {
                let exit_code = payload.exit_code.0?;
                let outcome = if exit_code == 0 { ToolOutcome::Ok } else { ToolOutcome::Failed };
                return Some(Self { outcome, exit_code: Some(exit_code) });
            }
            "mcp_tool_call_end" => {
                let result = payload.result.0.as_ref()?;
                // A refusal is reported as an error, so its text decides.
                if is_rejection(&result.err) {
                    return Some(Self { outcome: ToolOutcome::Rejected, exit_code: None });
                }
                // A tool may report its own error in a successful MCP response.
                result.err.is_empty() && !result.ok.0.as_ref()?.is_error.is_set()
            }
            _ => payload.success.0?,
        };
        let outcome = if worked { ToolOutcome::Ok } else { ToolOutcome::Failed };
        Some(Self { outcome, exit_code: None })
    }

    /// Reads the outcome from a status.
    pub(super) fn of_status(status: &str) -> Option<Self> {
        let outcome = match status {
            "completed" => ToolOutcome::Ok,
            "failed" => ToolOutcome::Failed,
            "declined" => ToolOutcome::Rejected,
            _ => return None,
        };
        Some(Self { outcome, exit_code: None })
    }

    /// Builds a result with this outcome.
    pub(super) fn result(self, text: Text<'_>) -> ToolResult<'_> {
        ToolResult { outcome: self.outcome, exit_code: self.exit_code, text, ..Default::default() }
    }
}

/// State of one call.
#[derive(Default)]
struct TrackedCall {
    has_started: bool,
    /// Outcome that was sent to the sink.
    sent: Option<CallEnding>,
    /// Outcome according to the call's event.
    ending: Option<CallEnding>,
}

/// The calls of a rollout, by id.
#[derive(Default)]
pub(super) struct CallEndings {
    calls: HashMap<String, TrackedCall>,
    order: Vec<String>,
    needs_second_pass: bool,
}

impl CallEndings {
    fn call(&mut self, id: &str) -> Option<&mut TrackedCall> {
        if !self.calls.contains_key(id) {
            if id.is_empty() || self.calls.len() >= MAX_CALLS {
                return None;
            }
            self.order.push(id.to_owned());
            self.calls.insert(id.to_owned(), TrackedCall::default());
        }
        self.calls.get_mut(id)
    }

    /// Records a call.
    pub(super) fn record_call(&mut self, id: &str) {
        if let Some(call) = self.call(id) {
            call.has_started = true;
        }
    }

    /// Records the outcome of a call.
    pub(super) fn record_ending(&mut self, id: &str, ending: CallEnding) {
        let Some(call) = self.call(id) else { return };
        // A rejection in the output is final, because its event reports a plain failure.
        let differs = |told: CallEnding| told != ending && told.outcome != ToolOutcome::Rejected;
        let is_news = call.sent.is_some_and(differs);
        call.ending = Some(ending);
        self.needs_second_pass |= is_news;
    }

    /// Returns true if an event already reported the call as failed. Its output then describes the
    /// failure.
    pub(super) fn has_failed(&self, id: &str) -> bool {
        let ending = self.calls.get(id).and_then(|call| call.ending);
        ending.is_some_and(|ending| ending.outcome == ToolOutcome::Failed)
    }

    /// Records that the output of a call was sent, with the output's own outcome. Returns the
    /// outcome of the event, if it is already known.
    pub(super) fn record_output(
        &mut self,
        id: &str,
        result: &ToolResult<'_>,
    ) -> Option<CallEnding> {
        let call = self.call(id)?;
        let own = CallEnding { outcome: result.outcome, exit_code: result.exit_code };
        // A refusal is also reported as a failure with exit code -1.
        let ending = call.ending.filter(|_| own.outcome != ToolOutcome::Rejected);
        call.sent = Some(ending.unwrap_or(own));
        ending
    }

    /// Returns calls that ended according to an event but have no output.
    pub(super) fn unanswered(&mut self) -> Vec<(String, CallEnding)> {
        let open = |id: &String| {
            let call = self.calls.get(id).filter(|call| call.has_started && call.sent.is_none())?;
            Some((id.clone(), call.ending?))
        };
        self.order.iter().filter_map(open).collect()
    }

    /// Returns true if an event contradicted an outcome already sent.
    pub(super) fn needs_second_pass(&self) -> bool {
        self.needs_second_pass
    }

    /// Resets what this pass has sent, but keeps what it learned.
    pub(super) fn reset_pass(&mut self) {
        self.needs_second_pass = false;
        for call in self.calls.values_mut() {
            (call.has_started, call.sent) = (false, None);
        }
    }
}
