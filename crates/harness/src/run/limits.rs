//! Limits of a whole run: time, tokens, money. A run that reaches one ends in an orderly way, and
//! the remaining cases are not run. Pure apart from reading the clock.

use std::time::{Duration, Instant};

use crate::outcome::CaseResult;
use crate::outcome::usage::{ModelPrices, UsageByRole};

/// Limits of a run. An absent limit does not apply.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunLimits {
    /// Maximum duration. Cases in flight are closed when it is over.
    pub duration: Option<Duration>,
    /// Maximum number of input and output tokens over all models that count them. Cases in flight
    /// finish.
    pub tokens: Option<u64>,
    /// Maximum cost by the configured prices. Cases in flight finish.
    pub cost: Option<f64>,
}

/// Resources spent by a run, with its limits.
#[derive(Debug)]
pub(super) struct RunSpending {
    limits: RunLimits,
    prices: ModelPrices,
    deadline: Option<Instant>,
    tokens: u64,
    cost: f64,
}

impl RunSpending {
    /// Starts counting now.
    pub(super) fn start(limits: RunLimits, prices: ModelPrices) -> Self {
        // A duration beyond the range of the clock is no limit.
        let deadline = limits.duration.and_then(|limit| Instant::now().checked_add(limit));
        Self { limits, prices, deadline, tokens: 0, cost: 0.0 }
    }

    /// Returns the time at which the run has to end.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Counts the usage of a trial.
    pub(super) fn add(&mut self, case: &CaseResult) {
        let used = UsageByRole::of(case, &self.prices).total;
        let tokens = used.prompt_tokens.saturating_add(used.completion_tokens);
        // Programs that state only a sum count as well: a limit that overlooks the agent's own
        // tokens would not be one.
        self.tokens = self.tokens.saturating_add(tokens).saturating_add(used.undivided_tokens);
        self.cost += used.cost.unwrap_or(0.0);
    }

    /// Returns a description of the limit that is reached.
    pub(super) fn reached_limit(&self, now: Instant) -> Option<String> {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Some(self.time_limit_message());
        }
        let RunLimits { tokens, cost, .. } = self.limits;
        if let Some(limit) = tokens.filter(|limit| self.tokens >= *limit) {
            return Some(format!("--max-tokens {limit} was reached ({} used)", self.tokens));
        }
        // Tested after each trial and not before each call, so that the cases in flight can exceed
        // it.
        let limit = cost.filter(|limit| self.cost >= *limit)?;
        let (cost, currency) = (self.cost, &self.prices.currency);
        Some(format!("--max-cost {limit} was reached ({cost:.4} {currency} used)"))
    }

    /// Returns a description of the time limit.
    pub(super) fn time_limit_message(&self) -> String {
        let seconds = self.limits.duration.unwrap_or_default().as_secs_f64();
        format!("--max-duration {seconds} s was reached")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn reached(limits: RunLimits, after: Duration) -> Option<String> {
        let cases = fixtures::rich_cases();
        let prices = fixtures::header(&cases).prices.unwrap();
        let mut spending = RunSpending::start(limits, prices);
        for case in &cases {
            spending.add(case);
        }
        spending.reached_limit(Instant::now() + after)
    }

    #[test]
    fn each_limit_is_said_by_its_flag() {
        let none = RunLimits::default();
        assert_eq!(reached(none, Duration::from_hours(1000)), None);
        let time = RunLimits { duration: Some(Duration::from_secs(90)), ..none };
        assert_eq!(reached(time, Duration::ZERO), None);
        assert_eq!(
            reached(time, Duration::from_mins(2)).unwrap(),
            "--max-duration 90 s was reached"
        );
        let tokens = |limit| reached(RunLimits { tokens: Some(limit), ..none }, Duration::ZERO);
        assert_eq!(tokens(100_000_000), None);
        assert!(tokens(1).unwrap().starts_with("--max-tokens 1 was reached ("));
        let cost = |limit| reached(RunLimits { cost: Some(limit), ..none }, Duration::ZERO);
        assert_eq!(cost(1e6), None);
        let words = cost(0.0).unwrap();
        assert!(
            words.starts_with("--max-cost 0 was reached (") && words.contains("EUR"),
            "{words}"
        );
    }
}
