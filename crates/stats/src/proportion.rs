//! Proportions: confidence intervals of one and of the difference between two, exact bounds, exact
//! tests of counts; pass@k and pass^k, the chance that at least one of k trials passes, and that
//! all do; and the sequential probability ratio test of a failure rate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF as _};
use statrs::function::factorial::ln_binomial;

use crate::{TestTail, Z, mean, mean_interval};

/// Returns the smallest number of successes that is reached or exceeded with a probability of at
/// most `unlikely`, given this many trials with this chance each. If even all trials would be
/// likely enough, returns `trials + 1`.
pub fn unlikely_count(trials: usize, chance: f64, unlikely: f64) -> usize {
    let all = trials as u64;
    let (hit, missed) = (chance.ln(), (1.0 - chance).ln());
    let mut tail = 0.0;
    // Computed in logarithms, because binomials of many trials overflow.
    // Summed from the far end, so that the loop stops at the first count that is likely enough, and
    // small terms are added before large ones.
    for successes in (1..=all).rev() {
        let ways = ln_binomial(all, successes);
        tail += (ways + real(successes) * hit + real(all - successes) * missed).exp();
        // Tolerance for rounding: three of three at 0.1 have a probability of exactly 0.001.
        if tail > unlikely * (1.0 + 1e-9) {
            return usize::try_from(successes + 1).unwrap_or(usize::MAX);
        }
    }
    1
}

/// Returns the probability of at least this many successes in trials with this chance each.
pub fn binomial_tail(successes: u64, trials: u64, chance: f64) -> f64 {
    let (hit, missed) = (chance.ln(), (1.0 - chance).ln());
    let of = |count: u64| {
        (ln_binomial(trials, count) + real(count) * hit + real(trials - count) * missed).exp()
    };
    // The exponentials are rounded, so that all terms together may exceed 1 by a little.
    (successes..=trials).map(of).sum::<f64>().min(1.0)
}

/// Returns the upper bound of a share with a one-sided confidence, given this many successes.
/// Clopper and Pearson, "The use of confidence or fiducial limits" (1934). It is 1 without trials.
pub fn upper_bound(successes: u64, trials: u64, confidence: f64) -> f64 {
    // Also the case without trials, where the beta distribution below has no valid parameters.
    if successes >= trials {
        return 1.0;
    }
    // The bound is the chance at which this many successes or fewer have a probability of `1 -
    // confidence`; that tail of the binomial is a beta distribution.
    let beta = Beta::new(real(successes + 1), real(trials - successes));
    beta.map_or(1.0, |beta| beta.inverse_cdf(confidence))
}

#[expect(clippy::cast_precision_loss, reason = "counts of trials are far below 2^53")]
fn real(count: u64) -> f64 {
    count as f64
}

/// Returns the one-sided p-value of Fisher's exact test: the probability under chance of a table in
/// which the first row's share of the first column is at least as extreme. Returns `None` if a row
/// is empty.
///
/// Fisher, "The design of experiments" (1935). `TestTail::Less`: the first row's share is lower.
pub fn fisher_exact([[a, b], [c, d]]: [[u32; 2]; 2], tail: TestTail) -> Option<f64> {
    let [a, b, c, d] = [a, b, c, d].map(u64::from);
    let (first, second, column) = (a + b, c + d, a + c);
    if first == 0 || second == 0 {
        return None;
    }
    // The margins are fixed, so the first cell determines the whole table.
    let cells = match tail {
        // The second row holds at most `second` of the column, so the rest must be in the first.
        TestTail::Less => column.saturating_sub(second)..=a,
        TestTail::Greater => a..=first.min(column),
    };
    let all = ln_binomial(first + second, column);
    let chance = |cell| ln_binomial(first, cell) + ln_binomial(second, column - cell) - all;
    // Summing rounded terms can exceed 1 by a little.
    Some(cells.map(|cell| chance(cell).exp()).sum::<f64>().min(1.0))
}

/// A confidence interval. For a proportion, both ends are within 0.0 to 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Returns the 95 % Wilson score interval of `successes` in `trials`; `None` without trials.
///
/// Wilson, "Probable inference, the law of succession, and statistical inference" (1927). Chosen
/// because the normal approximation is too narrow below a few hundred items (Bowyer et al., arXiv
/// 2503.01747).
pub fn wilson(successes: u32, trials: u32) -> Option<Interval> {
    wilson_clustered(successes, trials, 1)
}

/// Like [`wilson`], for clusters of `size` trials that belong to one case. Trials of a case
/// resemble each other, so the interval is based on the number of cases instead of trials.
///
/// This is the conservative extreme: the design effect `1 + (size - 1) · ρ` of Kish, "Survey
/// sampling" (1965), with a correlation `ρ` of 1.
pub fn wilson_clustered(successes: u32, trials: u32, size: u32) -> Option<Interval> {
    if trials == 0 || successes > trials {
        return None;
    }
    // A correlation of 1 within a case leaves as many independent trials as there are cases.
    let n = f64::from(trials) / f64::from(size.max(1));
    let p = f64::from(successes) / f64::from(trials);
    let centre = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    // At the edges the exact bounds are 0 and 1; do not let rounding blur them.
    let low = if successes == 0 { 0.0 } else { (centre - half).max(0.0) };
    let high = if successes == trials { 1.0 } else { (centre + half).min(1.0) };
    Some(Interval { low, high })
}

/// Returns the 95 % interval of `first - second`, each given as successes and trials, within -1.0
/// to 1.0. Returns `None` if a group is empty.
///
/// Newcombe, "Interval estimation for the difference between independent proportions" (1998),
/// method 10: combines the two Wilson intervals, so it stays within bounds even with few trials.
pub fn proportion_difference(first: (u32, u32), second: (u32, u32)) -> Option<Interval> {
    let share =
        |(count, of): (u32, u32)| Some((f64::from(count) / f64::from(of), wilson(count, of)?));
    let ((p, own), (q, other)) = (share(first)?, share(second)?);
    // The lowest difference needs the first share at its lower end and the second at its upper end,
    // hence the crosswise pairs.
    let low = (p - own.low).hypot(other.high - q);
    let high = (own.high - p).hypot(q - other.low);
    Some(Interval { low: p - q - low, high: p - q + high })
}

/// pass@k and pass^k over the cases with at least k trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassAtK {
    /// Number of trials considered together.
    pub k: u32,
    /// Number of cases with at least that many trials.
    pub cases: u32,
    /// pass@k: probability that at least one of k trials passes, averaged over the cases.
    pub any: MeanShare,
    /// pass^k: probability that all k trials pass.
    pub all: MeanShare,
}

/// Mean of a share over cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeanShare {
    /// The mean.
    pub mean: f64,
    /// 95 % confidence interval over similar cases, by Student's t clamped to 0 and 1. Absent with
    /// fewer than two cases, or if all cases have the same share.
    pub interval: Option<Interval>,
}

/// Computes unbiased estimates of both from each case's trials, `(passed, trials)`. Returns `None`
/// if no case has k trials or k is 0.
///
/// For a case with n trials, c of which passed: `1 - C(n - c, k) / C(n, k)` (Chen et al.,
/// "Evaluating large language models trained on code", arXiv 2107.03374) and `C(c, k) / C(n, k)`
/// (Yao et al., "τ-bench", arXiv 2406.12045). The interval is over the means of the cases (Miller,
/// "Adding error bars to evals", arXiv 2411.00640).
pub fn pass_at_k(cases: &[(u32, u32)], k: u32) -> Option<PassAtK> {
    // A case with fewer than k trials has no unbiased estimate: it would have to be extrapolated.
    let known = cases.iter().filter(|(passed, trials)| k > 0 && *trials >= k && passed <= trials);
    let (any, all): (Vec<f64>, Vec<f64>) = known
        .map(|&(passed, trials)| {
            (1.0 - all_drawn_from(trials - passed, trials, k), all_drawn_from(passed, trials, k))
        })
        .unzip();
    // Student's interval knows nothing of bounds and may leave 0 to 1 if cases differ much.
    let cut = |Interval { low, high }| Interval { low: low.max(0.0), high: high.min(1.0) };
    let share = |values: &[f64]| {
        Some(MeanShare { mean: mean(values)?, interval: mean_interval(values).map(cut) })
    };
    let cases = u32::try_from(any.len()).unwrap_or(u32::MAX);
    Some(PassAtK { k, cases, any: share(&any)?, all: share(&all)? })
}

/// Returns `C(of, k) / C(total, k)`: the probability that k draws are all among the `of` items.
fn all_drawn_from(of: u32, total: u32, k: u32) -> f64 {
    // A product of ratios, because the binomials themselves overflow.
    (0..k)
        .map(|drawn| crate::real(of.saturating_sub(drawn) as usize) / f64::from(total - drawn))
        .product()
}

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
            // What one failure and one pass add to the log-likelihood ratio of the two rates.
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
    use SequentialDecision::{Continue, Excessive, Tolerated};

    use super::*;

    #[test]
    fn the_upper_bound_of_a_share() {
        // The rule of three, and a published value: 4 of 20, 95 % one-sided.
        assert!((upper_bound(0, 29, 0.95) - 0.0981).abs() < 1e-3);
        assert!((upper_bound(4, 20, 0.95) - 0.4010).abs() < 1e-3);
        assert_eq!(upper_bound(3, 3, 0.95), 1.0);
        assert_eq!(upper_bound(0, 0, 0.95), 1.0);
    }

    #[test]
    fn tails_of_the_binomial() {
        assert!((binomial_tail(6, 10, 0.1) - 0.000_147).abs() < 1e-6);
        assert!((binomial_tail(4, 8, 0.1) - 0.005_024).abs() < 1e-6);
        assert_eq!((binomial_tail(0, 8, 0.1), binomial_tail(9, 8, 0.1)), (1.0, 0.0));
        // P(X >= 6) = 0.000147, P(X >= 5) = 0.001635 for ten trials at 0.1.
        assert_eq!(unlikely_count(10, 0.1, 0.001), 6);
        assert_eq!(unlikely_count(10, 0.1, 0.002), 5);
        assert_eq!(unlikely_count(3, 0.1, 0.001), 3);
        assert_eq!(unlikely_count(2, 0.1, 0.001), 3, "nothing is unlikely enough");
        assert_eq!(unlikely_count(0, 0.1, 0.001), 1);
        assert_eq!(unlikely_count(50, 0.1, 0.001), 14);
        assert_eq!(unlikely_count(10_000, 0.1, 0.001), 1095);
    }

    #[test]
    fn published_values() {
        // Agresti (1990), p. 61, Fisher's tea drinker; R's help page of `fisher.test`: p = 0.2429.
        let p = fisher_exact([[3, 1], [1, 3]], TestTail::Greater).unwrap();
        assert!((p - 17.0 / 70.0).abs() < 1e-9, "{p}");
        // Fisher (1962, 1970), convictions of like-sex twins; the same page: p = 0.0004652.
        let p = fisher_exact([[2, 15], [10, 3]], TestTail::Less).unwrap();
        assert!((p - 0.000_465_2).abs() < 5e-8, "{p}");
    }

    #[test]
    fn edges() {
        assert_eq!(fisher_exact([[0, 0], [1, 1]], TestTail::Less), None);
        let p = fisher_exact([[5, 0], [5, 0]], TestTail::Less).unwrap();
        assert!((p - 1.0).abs() < 1e-9, "{p}");
    }

    #[test]
    fn published_values_of_interval() {
        // Newcombe (1998), Statistics in Medicine 17, table I, method 3.
        for (r, n, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let interval = wilson(r, n).unwrap();
            assert!((interval.low - low).abs() < 5e-5, "{interval:?}");
            assert!((interval.high - high).abs() < 5e-5, "{interval:?}");
        }
    }

    #[test]
    fn repeats_make_an_interval_no_narrower() {
        let once = wilson(3, 4).unwrap();
        assert_eq!(wilson_clustered(15, 20, 5), Some(once));
        assert_eq!(wilson_clustered(15, 20, 0), wilson(15, 20), "no number of trials");
        let all = wilson_clustered(2, 2, u32::MAX).unwrap();
        assert!(all.low >= 0.0 && all.high == 1.0, "{all:?}");
    }

    #[test]
    fn no_trials_no_interval() {
        assert_eq!(wilson(0, 0), None);
        assert_eq!(wilson(3, 2), None);
    }

    #[test]
    fn published_values_of_difference() {
        // Newcombe (1998), Statistics in Medicine 17, table II, method 10.
        for (first, second, low, high) in [
            ((56, 70), (48, 80), 0.0524, 0.3339),
            ((9, 10), (3, 10), 0.1705, 0.8090),
            ((5, 56), (0, 29), -0.0381, 0.1926),
            ((10, 10), (0, 10), 0.6075, 1.0),
        ] {
            let interval = proportion_difference(first, second).unwrap();
            assert!((interval.low - low).abs() < 1e-4, "{interval:?}");
            assert!((interval.high - high).abs() < 1e-4, "{interval:?}");
        }
        assert_eq!(proportion_difference((0, 0), (1, 2)), None);
        assert_eq!(proportion_difference((3, 2), (1, 2)), None);
    }

    #[test]
    fn by_hand() {
        // Five trials, two passed. Of ten pairs three have none that passed, one has both.
        let found = pass_at_k(&[(2, 5)], 2).unwrap();
        assert!((found.any.mean - 0.7).abs() < 1e-12 && (found.all.mean - 0.1).abs() < 1e-12);
        assert_eq!(found.any.interval, None, "one case");
        let one = pass_at_k(&[(2, 5), (5, 5)], 1).unwrap();
        assert_eq!(one.any.mean, one.all.mean);
        assert!((one.any.mean - 0.7).abs() < 1e-12);
        assert!(one.any.interval.unwrap().high <= 1.0);
        let all = pass_at_k(&[(2, 5), (5, 5), (0, 5)], 5).unwrap();
        assert!((all.any.mean - 2.0 / 3.0).abs() < 1e-12);
        assert!((all.all.mean - 1.0 / 3.0).abs() < 1e-12);
    }

    /// The reference code of the paper: `1 - prod(1 - k / arange(n - c + 1, n + 1))`.
    #[test]
    fn as_the_papers_program_computes_it() {
        for (passed, trials, k) in [(13, 200, 1), (13, 200, 10), (13, 200, 100), (0, 9, 3)] {
            let product: f64 =
                (trials - passed + 1..=trials).map(|n| 1.0 - f64::from(k) / f64::from(n)).product();
            let expected = if trials - passed < k { 1.0 } else { 1.0 - product };
            let found = pass_at_k(&[(passed, trials)], k).unwrap().any.mean;
            assert!((found - expected).abs() < 1e-12, "{passed} of {trials}, {k}: {found}");
        }
    }

    #[test]
    fn cases_with_fewer_trials_do_not_count() {
        let found = pass_at_k(&[(1, 1), (1, 4), (4, 4)], 3).unwrap();
        assert_eq!(found.cases, 2);
        for (cases, k) in [(&[][..], 1), (&[(1, 2)], 3), (&[(1, 2)], 0), (&[(3, 2)], 1)] {
            assert_eq!(pass_at_k(cases, k), None);
        }
    }

    #[test]
    fn published_values_of_sequential_test() {
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
