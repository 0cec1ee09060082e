//! Proportions: confidence intervals of one and of the difference between two, exact bounds, and
//! exact tests of counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF as _};
use statrs::function::factorial::ln_binomial;

use super::{TestTail, Z};

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
    (successes..=trials).map(of).sum::<f64>().min(1.0)
}

/// Returns the upper bound of a share with a one-sided confidence, given this many successes.
/// Clopper and Pearson, "The use of confidence or fiducial limits" (1934). It is 1 without trials.
pub fn upper_bound(successes: u64, trials: u64, confidence: f64) -> f64 {
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

#[cfg(test)]
mod tests {
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
}
