//! Computes the token usage of a rollout from its running totals.

use crate::event::TokenCounts;

/// Adds up the running totals of `token_count`. They restart when a session is resumed; in a fork,
/// they continue from the parent's total.
#[derive(Default)]
pub(super) struct UsageMeter {
    earlier: TokenCounts,
    base: TokenCounts,
    last: Option<TokenCounts>,
}

impl UsageMeter {
    /// Sets the parent's total, which this session's counts build on.
    pub(super) fn set_base(&mut self, total: Option<TokenCounts>) {
        self.base = total.unwrap_or(self.base);
    }

    pub(super) fn observe(&mut self, total: Option<TokenCounts>) {
        let Some(total) = total else { return };
        let sum = |usage: TokenCounts| {
            usage.input.saturating_add(usage.output).saturating_add(usage.cached)
        };
        // A lower total than before means that the counter was reset.
        if sum(total) < sum(self.last.unwrap_or(self.base)) {
            self.earlier = self.total().unwrap_or_default();
            self.base = TokenCounts::default();
        }
        self.last = Some(total);
    }

    pub(super) fn total(&self) -> Option<TokenCounts> {
        self.last.map(|last| {
            let mut total = self.earlier;
            total += last.since(self.base);
            total
        })
    }
}
