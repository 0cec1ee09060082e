//! Decides when a case that passed in the baseline and fails now counts as a regression. Pure.
//!
//! Agents are not deterministic: of 50 cases that an agent passes nine times out of ten, an
//! unchanged run fails five. A failure is therefore retried and counts only if no trial passes. If
//! more cases fail at once than such an agent would fail, they count without retries. As long as
//! each case passes at least [`RELIABLE`] of the time, both rules and the test of the agent as a
//! whole ([`super::pooled`]) together block an unchanged run less than once in a hundred, however
//! many cases there are.

use selftest_stats::unlikely_count;

/// Pass rate of a case that is reliable enough for a gate.
pub const RELIABLE: f64 = 0.9;
/// Maximum probability, without a change, of a number of simultaneous failures that counts without
/// retries.
pub const BEYOND_CHANCE: f64 = 0.001;
/// Maximum probability with which a case of an unchanged agent fails all its trials, whichever case
/// it is.
const UNCHANGED_BLOCKED: f64 = 0.005;
/// Number of trials that keep to it for up to five cases of a reliable agent. Each further factor of
/// ten adds one.
const USUAL_TRIALS: u32 = 3;
/// Maximum number of trials of a case.
const MAX_TRIALS: u32 = 12;

/// The rule for one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegressionRule {
    /// Trials without a pass after which a failure counts.
    trials_needed: u32,
    /// Minimum number of simultaneous failures that chance cannot explain.
    beyond_chance_count: usize,
}

/// The result over the trials of a case that passed in the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegressionVerdict {
    /// Every trial with a verdict passed.
    Passed,
    /// At least one trial failed and one passed.
    Flaky,
    /// The failure counts.
    Regression,
    /// It failed, and could not be retried as often as necessary.
    Unconfirmed,
    /// No trial has a verdict.
    Undecided,
}

/// Returns an upper bound of the probability that at least one of these cases fails this many times
/// in a row.
#[expect(clippy::cast_precision_loss, reason = "counts of cases are far below 2^53")]
fn unconfirmed(failing: f64, trials: u32, cases: usize) -> f64 {
    // Tolerance for rounding: five cases at 0.1 have a probability of exactly 0.005.
    let exponent = i32::try_from(trials).unwrap_or(i32::MAX);
    cases as f64 * failing.powi(exponent) * (1.0 - 1e-9)
}

impl RegressionRule {
    /// Creates the rule for `passed_before` cases that passed in the baseline. `confirm` is the
    /// number of retries per failure if there are at most five such cases and the agent is reliable.
    /// `failing` is the failure rate that is no reason to block, above that of a reliable agent if
    /// the baseline shows more.
    pub fn new(confirm: u32, passed_before: usize, failing: f64) -> Self {
        let mut needed = USUAL_TRIALS;
        // The more cases, and the less reliable, the likelier that one fails all its trials.
        while unconfirmed(failing, needed, passed_before) > UNCHANGED_BLOCKED && needed < MAX_TRIALS
        {
            needed += 1;
        }
        // Who wants no confirmation gets none, however many cases there are.
        let extra = if confirm == 0 { 0 } else { needed - USUAL_TRIALS };
        let trials_needed = confirm.saturating_add(1).saturating_add(extra);
        let beyond_chance_count = unlikely_count(passed_before, failing, BEYOND_CHANCE);
        Self { trials_needed, beyond_chance_count }
    }

    /// Returns the number of trials without a pass, including the first, after which a failure
    /// counts.
    pub const fn trials_needed(self) -> u32 {
        self.trials_needed
    }

    /// Returns true if more cases failed than a reliable agent would fail by chance.
    pub const fn is_beyond_chance(self, misses: usize) -> bool {
        misses >= self.beyond_chance_count
    }

    /// Returns true if a case needs another trial. `trials` includes those without a verdict.
    pub const fn needs_another_trial(self, passed: u32, trials: u32) -> bool {
        passed == 0 && trials < self.trials_needed
    }

    /// Weighs the trials of a case that passed in the baseline.
    pub const fn weigh(self, passed: u32, decided: u32, beyond_chance: bool) -> RegressionVerdict {
        match (passed, decided) {
            (_, 0) => RegressionVerdict::Undecided,
            (0, decided) if beyond_chance || decided >= self.trials_needed => {
                RegressionVerdict::Regression
            }
            (0, _) => RegressionVerdict::Unconfirmed,
            (passed, decided) if passed < decided => RegressionVerdict::Flaky,
            _ => RegressionVerdict::Passed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::mix;

    const FAILING: f64 = 1.0 - RELIABLE;

    /// Even numbers from 0 to 1, the same for the same seed.
    struct Dice(u64);

    impl Dice {
        fn falls_below(&mut self, chance: f64) -> bool {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            f64::from((mix(self.0) >> 32) as u32) / f64::from(u32::MAX) < chance
        }
    }

    /// Simulates a run with these pass rates, gated by a baseline accepted at the rates `before`.
    fn is_blocked(before: &[f64], now: &[f64], dice: &mut Dice) -> bool {
        // A baseline is accepted from one run: what failed in it is not gated.
        let gated: Vec<f64> = before
            .iter()
            .zip(now)
            .filter(|(then, _)| dice.falls_below(**then))
            .map(|(_, now)| *now)
            .collect();
        let rule = RegressionRule::new(2, gated.len(), FAILING);
        let mut missed: Vec<f64> =
            gated.into_iter().filter(|chance| !dice.falls_below(*chance)).collect();
        let beyond = rule.is_beyond_chance(missed.len());
        missed.retain(|chance| {
            let (mut passed, mut trials) = (0, 1);
            while !beyond && rule.needs_another_trial(passed, trials) {
                trials += 1;
                passed += u32::from(dice.falls_below(*chance));
            }
            rule.weigh(passed, trials, beyond) == RegressionVerdict::Regression
        });
        !missed.is_empty()
    }

    /// Returns the number of blocked runs.
    fn blocked(runs: usize, before: &[f64], now: &[f64], seed: u64) -> usize {
        let mut dice = Dice(seed);
        (0..runs).filter(|_| is_blocked(before, now, &mut dice)).count()
    }

    #[test]
    fn a_change_that_does_nothing_is_blocked_once_in_a_hundred_runs_at_most() {
        for (seed, cases) in [1, 2, 5, 10, 11, 30, 100, 101, 300].into_iter().enumerate() {
            for reliable in [0.9, 0.93, 0.97, 1.0] {
                let agent = vec![reliable; cases];
                let blocked = blocked(4_000, &agent, &agent, seed as u64 + 1);
                // One in a hundred, and what 4000 runs may be off by: two standard deviations.
                assert!(blocked <= 52, "{cases} cases at {reliable}: {blocked} of 4000");
            }
        }
        // Each case as reliable as it likes between 0.9 and 1.
        for seed in 0..10 {
            let agent: Vec<f64> = (0..40).map(|case| 0.9 + 0.1 * f64::from(case) / 39.0).collect();
            let blocked = blocked(200, &agent, &agent, seed + 700);
            assert!(blocked <= 2, "{blocked} of 200");
        }
    }

    #[test]
    fn without_reruns_it_would_be_blocked_nearly_always() {
        let mut dice = Dice(3);
        let misses = |dice: &mut Dice| (0..50).filter(|_| !dice.falls_below(0.9)).count();
        let blocked = (0..200).filter(|_| misses(&mut dice) > 0).count();
        assert!(blocked > 190, "{blocked}");
    }

    #[test]
    fn an_agent_that_is_worse_is_blocked() {
        let good = |cases| vec![0.97; cases];
        for cases in [1, 5, 10, 50, 200] {
            // One case is broken, whatever else is.
            let mut worse = good(cases);
            worse[0] = 0.0;
            let before = [vec![1.0], good(cases - 1)].concat();
            assert_eq!(blocked(200, &before, &worse, 1), 200, "{cases}");
        }
        // All cases are a good deal less reliable, each of them flaky at most.
        assert!(blocked(200, &good(10), &[0.4; 10], 2) >= 150);
        assert!(blocked(200, &good(50), &[0.6; 50], 3) >= 195);
        assert!(blocked(200, &good(200), &[0.75; 200], 4) >= 195);
    }

    #[test]
    fn reruns_and_crowds() {
        for (cases, needed) in [(0, 3), (1, 3), (5, 3), (6, 4), (50, 4), (51, 5), (500, 5)] {
            assert_eq!(RegressionRule::new(2, cases, FAILING).trials_needed(), needed, "{cases}");
        }
        assert_eq!(
            RegressionRule::new(0, 500, FAILING).trials_needed(),
            1,
            "the first miss counts"
        );
        let crowds: Vec<usize> = [1, 2, 3, 10, 50]
            .into_iter()
            .map(|cases| RegressionRule::new(2, cases, FAILING).beyond_chance_count)
            .collect();
        assert_eq!(crowds, [2, 3, 3, 6, 14]);
        let rule = RegressionRule::new(2, 5, FAILING);
        assert_eq!(rule.weigh(0, 2, false), RegressionVerdict::Unconfirmed);
        assert_eq!(rule.weigh(0, 1, true), RegressionVerdict::Regression);
        assert_eq!(rule.weigh(1, 3, false), RegressionVerdict::Flaky);
        assert_eq!(rule.weigh(2, 2, false), RegressionVerdict::Passed);
        assert_eq!(rule.weigh(0, 0, true), RegressionVerdict::Undecided);
        assert!(!rule.needs_another_trial(1, 1) && !rule.needs_another_trial(0, 3));
    }
}
