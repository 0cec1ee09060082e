//! How tools ended by the word of their `…_end` events, which is more reliable than their output
//! and comes before or after it.

use std::collections::HashMap;

use super::output::is_rejection;
use super::record::Payload;
use crate::event::{Outcome, ToolResult};
use crate::text::Text;

/// Calls that are remembered; a foreign file must not fill the memory.
const MAX_CALLS: usize = 100_000;

/// How one call ended.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Ending {
    pub(super) outcome: Outcome,
    pub(super) exit_code: Option<i64>,
}

impl Ending {
    /// From an event; `None` when it does not say.
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
                if is_rejection(&result.err) {
                    return Some(Self { outcome: Outcome::Rejected, exit_code: None });
                }
                result.err.is_empty() && !result.ok.0.as_ref()?.is_error.is_set()
            }
            _ => payload.success.0?,
        };
        let outcome = if worked { Outcome::Ok } else { Outcome::Failed };
        Some(Self { outcome, exit_code: None })
    }

    /// From a status word.
    pub(super) fn of_status(status: &str) -> Option<Self> {
        let outcome = match status {
            "completed" => Outcome::Ok,
            "failed" => Outcome::Failed,
            "declined" => Outcome::Rejected,
            _ => return None,
        };
        Some(Self { outcome, exit_code: None })
    }

    /// A result of this outcome.
    pub(super) fn result(self, text: Text<'_>) -> ToolResult<'_> {
        ToolResult { outcome: self.outcome, exit_code: self.exit_code, text, ..Default::default() }
    }
}

/// State of one call.
#[derive(Default)]
struct Call {
    began: bool,
    /// The ending that the sink was given.
    told: Option<Ending>,
    /// The ending that its event states.
    ending: Option<Ending>,
}

/// The calls of a rollout by id.
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

    /// Notes a call.
    pub(super) fn begin(&mut self, id: &str) {
        if let Some(call) = self.call(id) {
            call.began = true;
        }
    }

    /// Notes how a call ended.
    pub(super) fn note(&mut self, id: &str, ending: Ending) {
        let Some(call) = self.call(id) else { return };
        let differs = |told: Ending| told != ending && told.outcome != Outcome::Rejected;
        let is_news = call.told.is_some_and(differs);
        call.ending = Some(ending);
        self.is_news |= is_news;
    }

    /// Whether its event is known to say that a call failed: then its output says why.
    pub(super) fn has_failed(&self, id: &str) -> bool {
        let ending = self.calls.get(id).and_then(|call| call.ending);
        ending.is_some_and(|ending| ending.outcome == Outcome::Failed)
    }

    /// The output of a call is there, with what it says itself. Yields what its event says, if
    /// that is known already.
    pub(super) fn answer(&mut self, id: &str, result: &ToolResult<'_>) -> Option<Ending> {
        let call = self.call(id)?;
        let own = Ending { outcome: result.outcome, exit_code: result.exit_code };
        // A refusal is also reported as a failure with exit code -1.
        let ending = call.ending.filter(|_| own.outcome != Outcome::Rejected);
        call.told = Some(ending.unwrap_or(own));
        ending
    }

    /// Calls that ended by an event but have no output.
    pub(super) fn unanswered(&mut self) -> Vec<(String, Ending)> {
        let open = |id: &String| {
            let call = self.calls.get(id).filter(|call| call.began && call.told.is_none())?;
            Some((id.clone(), call.ending?))
        };
        self.order.iter().filter_map(open).collect()
    }

    /// Whether an event said something else than what had been told by then.
    pub(super) fn is_news(&self) -> bool {
        self.is_news
    }

    /// Forgets what this pass told, not what it learned.
    pub(super) fn begin_pass(&mut self) {
        self.is_news = false;
        for call in self.calls.values_mut() {
            (call.began, call.told) = (false, None);
        }
    }
}
