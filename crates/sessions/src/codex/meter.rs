//! Computes the token usage of a rollout from its running totals.

use crate::event::Usage;

/// Adds up the running totals of `token_count`. They restart when a session is resumed; in a fork,
/// they continue from the parent's total.
#[derive(Default)]
pub(super) struct Meter {
    before: Usage,
    base: Usage,
    last: Option<Usage>,
}

impl Meter {
    /// Sets the parent's total, which this session's counts build on.
    pub(super) fn begin(&mut self, total: Option<Usage>) {
        self.base = total.unwrap_or(self.base);
    }

    pub(super) fn observe(&mut self, total: Option<Usage>) {
        let Some(total) = total else { return };
        let sum =
            |usage: Usage| usage.input.saturating_add(usage.output).saturating_add(usage.cached);
        // A lower total than before means that the counter was reset.
        if sum(total) < sum(self.last.unwrap_or(self.base)) {
            self.before = self.total().unwrap_or_default();
            self.base = Usage::default();
        }
        self.last = Some(total);
    }

    pub(super) fn total(&self) -> Option<Usage> {
        self.last.map(|last| {
            let mut total = self.before;
            total += last.since(self.base);
            total
        })
    }
}
