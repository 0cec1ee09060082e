//! Tracks the outcome of tool calls from their `…_end` events. These are more reliable than the
//! tools' output, and come before or after it.

use std::collections::HashMap;

use super::output::is_rejection;
use super::record::Payload;
use crate::event::{Outcome, ToolResult};
use crate::text::Text;

/// Maximum number of calls tracked, so that an untrusted file cannot exhaust memory.
const MAX_CALLS: usize = 100_000;

/// Outcome of one call.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Ending {
    pub(super) outcome: Outcome,
    pub(super) exit_code: Option<i64>,
}

impl Ending {
    /// Reads the outcome from an event; `None` if the event does not state it.
    pub(super) fn of_event(payload: &Payload<'_>) -> Option<Self> {
        let declined = payload.status.as_str() == "declined";
        if declined {
            return Some(Self { outcome: Outcome::Rejected, exit_code: None });
        }
        let worked = match payload.kind.as_str() {
            "exec_command_end" => {
                let exit_code = payload.exit_code.0?;
                let outcome = if exit_code == 0 { Outcome::Ok } else { Outcome::Failed };
                return Some(Self { outcome, exit_code: Some(exit_code) });
            }
            "mcp_tool_call_end" => {
                let result = payload.result.0.as_ref()?;
                // A refusal is reported as an error, so its text decides.
                if is_rejection(&result.err) {
                    return Some(Self { outcome: Outcome::Rejected, exit_code: None });
                }
                // A tool may report its own error in a successful MCP response.
                result.err.is_empty() && !result.ok.0.as_ref()?.is_error.is_set()
            }
            _ => payload.success.0?,
        };
        let outcome = if worked { Outcome::Ok } else { Outcome::Failed };
        Some(Self { outcome, exit_code: None })
    }

    /// Reads the outcome from a status.
    pub(super) fn of_status(status: &str) -> Option<Self> {
        let outcome = match status {
            "completed" => Outcome::Ok,
            "failed" => Outcome::Failed,
            "declined" => Outcome::Rejected,
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
struct Call {
    began: bool,
    /// Outcome that was sent to the sink.
    told: Option<Ending>,
    /// Outcome according to the call's event.
    ending: Option<Ending>,
}

/// The calls of a rollout, by id.
#[derive(Default)]
pub(super) struct Endings {
    calls: HashMap<String, Call>,
    order: Vec<String>,
    is_news: bool,
}

impl Endings {
    fn call(&mut self, id: &str) -> Option<&mut Call> {
        if !self.calls.contains_key(id) {
            if id.is_empty() || self.calls.len() >= MAX_CALLS {
                return None;
            }
            self.order.push(id.to_owned());
            self.calls.insert(id.to_owned(), Call::default());
        }
        self.calls.get_mut(id)
    }

    /// Records a call.
    pub(super) fn begin(&mut self, id: &str) {
        if let Some(call) = self.call(id) {
            call.began = true;
        }
    }

    /// Records the outcome of a call.
    pub(super) fn note(&mut self, id: &str, ending: Ending) {
        let Some(call) = self.call(id) else { return };
        // A rejection in the output is final, because its event reports a plain failure.
        let differs = |told: Ending| told != ending && told.outcome != Outcome::Rejected;
        let is_news = call.told.is_some_and(differs);
        call.ending = Some(ending);
        self.is_news |= is_news;
    }

    /// Returns true if an event already reported the call as failed. Its output then describes the
    /// failure.
    pub(super) fn has_failed(&self, id: &str) -> bool {
        let ending = self.calls.get(id).and_then(|call| call.ending);
        ending.is_some_and(|ending| ending.outcome == Outcome::Failed)
    }

    /// Records that the output of a call was sent, with the output's own outcome. Returns the
    /// outcome of the event, if it is already known.
    pub(super) fn answer(&mut self, id: &str, result: &ToolResult<'_>) -> Option<Ending> {
        let call = self.call(id)?;
        let own = Ending { outcome: result.outcome, exit_code: result.exit_code };
        // A refusal is also reported as a failure with exit code -1.
        let ending = call.ending.filter(|_| own.outcome != Outcome::Rejected);
        call.told = Some(ending.unwrap_or(own));
        ending
    }

    /// Returns calls that ended according to an event but have no output.
    pub(super) fn unanswered(&mut self) -> Vec<(String, Ending)> {
        let open = |id: &String| {
            let call = self.calls.get(id).filter(|call| call.began && call.told.is_none())?;
            Some((id.clone(), call.ending?))
        };
        self.order.iter().filter_map(open).collect()
    }

    /// Returns true if an event contradicted an outcome already sent.
    pub(super) fn is_news(&self) -> bool {
        self.is_news
    }

    /// Resets what this pass has sent, but keeps what it learned.
    pub(super) fn begin_pass(&mut self) {
        self.is_news = false;
        for call in self.calls.values_mut() {
            (call.began, call.told) = (false, None);
        }
    }
}
