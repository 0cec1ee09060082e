//! The sequential probability ratio test of a failure rate.

/// What a [`SequentialTest`] concludes from the trials so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequentialDecision {
    /// The rate is the tolerated one.
    Tolerated,
    /// The rate is the excessive one.
    Excessive,
    /// More trials are needed.
    Continue,
}

/// Tests whether failures occur at a tolerated or at an excessive rate, with as few trials as
/// possible.
///
/// Wald, "Sequential tests of statistical hypotheses" (1945). If each decision is taken after a
/// whole round of trials instead of after each trial, both error probabilities only shrink in
/// practice. Trials of different rates with the same mean are less variable than trials of one rate
/// (Hoeffding, "On the distribution of the number of successes in independent trials", 1956), so
/// that the test may pool cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SequentialTest {
    per_failure: f64,
    per_pass: f64,
    accept_at: f64,
    reject_at: f64,
}

impl SequentialTest {
    /// Creates the test. `tolerated` and `excessive` are rates strictly between 0 and 1, the
    /// former lower. `false_alarm` is the probability of [`SequentialDecision::Excessive`] at the
    /// tolerated rate, `miss` that of [`SequentialDecision::Tolerated`] at the excessive one.
    pub fn new(tolerated: f64, excessive: f64, false_alarm: f64, miss: f64) -> Self {
        Self {
            per_failure: (excessive / tolerated).ln(),
            per_pass: ((1.0 - excessive) / (1.0 - tolerated)).ln(),
            // Wald's approximate bounds. The exact ones need a computation for each pair of rates,
            // and are wider by at most the overshoot of one trial.
            accept_at: (miss / (1.0 - false_alarm)).ln(),
            reject_at: ((1.0 - miss) / false_alarm).ln(),
        }
    }

    /// Decides after this many trials, of which `failures` failed.
    pub fn decide(&self, failures: u32, trials: u32) -> SequentialDecision {
        let passes = f64::from(trials.saturating_sub(failures));
        let ratio = f64::from(failures) * self.per_failure + passes * self.per_pass;
        if ratio >= self.reject_at {
            SequentialDecision::Excessive
        } else if ratio <= self.accept_at {
            SequentialDecision::Tolerated
        } else {
            SequentialDecision::Continue
        }
    }
}

/// Returns the rate whose odds are `factor` times those of `rate`.
pub fn multiplied_odds(rate: f64, factor: f64) -> f64 {
    let odds = factor * rate / (1.0 - rate);
    odds / (1.0 + odds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use SequentialDecision::{Continue, Excessive, Tolerated};

    #[test]
    fn published_values() {
        // Wald, "Sequential analysis" (1947), section 5.3: with rates of 0.1 and 0.3 and errors of
        // 0.02 and 0.03, the lines -2.58 + 0.186 n and 2.88 + 0.186 n; here with more decimals.
        let test = SequentialTest::new(0.1, 0.3, 0.02, 0.03);
        for trials in 1..200_u32 {
            let slope = 0.186_169 * f64::from(trials);
            for failures in 0..=trials {
                let expected = match f64::from(failures) {
                    count if count >= slope + 2.875_4 => Excessive,
                    count if count <= slope - 2.582_6 => Tolerated,
                    _ => Continue,
                };
                assert_eq!(test.decide(failures, trials), expected, "{failures} of {trials}");
            }
        }
        assert!((multiplied_odds(0.1, 3.0) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn errors_are_rare_in_rounds_of_eight() {
        let mut noise = crate::simulation::Noise::new(11);
        let test = SequentialTest::new(0.1, 0.25, 0.004, 0.3);
        let mut found = |rate: f64| {
            let mut excessive = 0;
            for _ in 0..4_000 {
                let (mut failures, mut trials) = (0, 0);
                while test.decide(failures, trials) == Continue {
                    failures += (0..8).map(|_| u32::from(noise.chance(rate))).sum::<u32>();
                    trials += 8;
                }
                excessive += u32::from(test.decide(failures, trials) == Excessive);
            }
            excessive
        };
        assert!(found(0.1) <= 16, "at most 4 of 1000");
        assert!(found(0.25) >= 2_800, "at least 7 of 10");
    }
}
