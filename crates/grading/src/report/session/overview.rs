//! Summary of a session, collected from its events without keeping them.

use crate::grade::spending::{TokenCost, TokenSpending};
use selftest_models::prices::ModelPrices;
use selftest_sessions::{Event, EventOrigin, EventRole, Session, SessionHead, ToolOutcome};
use selftest_text::escape::terminal;

/// Maximum length in bytes of a line.
const MAX_LINE: usize = 400;

/// Maximum length in bytes of the stored request.
const MAX_REQUEST: usize = 2000;

/// A fact about a session: name and value.
pub type SessionFact = (&'static str, String);

/// Counts over the events of a session.
#[derive(Debug, Clone, Default)]
pub struct SessionOverview {
    /// Total number of events.
    pub events: u64,
    /// Number of tool calls.
    pub calls: u64,
    /// Number of failed tool results.
    pub failed: u64,
    /// Start of the user's first request.
    pub request: String,
    /// Tokens spent by the events.
    pub spending: TokenSpending,
}

impl SessionOverview {
    /// Summarizes all events of a session.
    pub fn from_session(session: &Session) -> Self {
        let mut overview = Self::default();
        session.events.iter().for_each(|event| overview.add(event));
        overview
    }

    /// Adds an event.
    pub fn add(&mut self, event: &Event<'_>) {
        self.events += 1;
        self.calls += event.calls.len() as u64;
        let failed = event.results.iter().filter(|result| result.outcome == ToolOutcome::Failed);
        self.failed += failed.count() as u64;
        let is_asked = event.role == EventRole::User && event.origin == EventOrigin::Human;
        if self.request.is_empty() && is_asked {
            self.request = selftest_text::clip(&event.text, MAX_REQUEST);
        }
        self.spending.add(event);
    }

    /// Returns the cost of the session.
    pub fn cost(&self, head: &SessionHead, prices: &ModelPrices) -> TokenCost {
        TokenCost::compute(&self.spending.clone().into_model_tokens(head), prices)
            .with_stated(head.whole_stated_cost())
    }

    /// Returns the first request, or the ID if there is no request.
    pub fn title(&self, head: &SessionHead) -> String {
        terminal(if self.request.is_empty() { &head.id } else { &self.request }, 120)
    }

    /// Returns all known facts as text.
    pub fn facts(&self, head: &SessionHead) -> Vec<SessionFact> {
        let version = head.agent_version.as_ref().map(|version| format!(" {version}"));
        let usage = head.usage.map(|usage| {
            format!("{} in, {} out, {} from cache", usage.input, usage.output, usage.cached)
        });
        let all = [
            ("session", Some(head.id.clone())),
            ("agent", Some(format!("{}{}", head.agent, version.unwrap_or_default()))),
            ("models", Some(head.models.join(", "))),
            ("platform", head.platform.clone()),
            ("folder", head.cwd.clone()),
            ("parent", head.parent.clone()),
            ("start", head.start.map(|time| time.to_string())),
            ("end", head.end.map(|time| time.to_string())),
            ("tokens", usage),
            ("tool calls", Some(format!("{}, {} failed", self.calls, self.failed))),
            ("unread", head.unknown_blocks.describe()),
        ];
        let present =
            all.into_iter().filter_map(|(name, value)| Some((name, terminal(&value?, MAX_LINE))));
        present.filter(|(_, value)| !value.is_empty()).collect()
    }
}
