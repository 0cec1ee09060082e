//! Statistics of order: the separation of two classes by a score, a test if one sample is shifted
//! against the other, and quantiles with intervals that hold for any distribution.

use statrs::function::erf::erfc;
use statrs::function::factorial::ln_binomial;

use super::{Interval, TestTail, Z, real};

/// Maximum number of values per sample for the exact probability.
const EXACT: usize = 20;

/// Returns the one-sided p-value of the Mann-Whitney U test of `first` against `second`; `None` if
/// a sample is empty or contains NaN.
///
/// Mann and Whitney, "On a test of whether one of two random variables is stochastically larger
/// than the other" (1947). Exact for small samples without ties; otherwise the normal approximation
/// with tie and continuity correction, like R's `wilcox.test`.
pub fn mann_whitney(first: &[f64], second: &[f64], tail: TestTail) -> Option<f64> {
    let mut values: Vec<(f64, bool)> = Vec::with_capacity(first.len() + second.len());
    values.extend(first.iter().map(|value| (*value, true)));
    values.extend(second.iter().map(|value| (*value, false)));
    if first.is_empty() || second.is_empty() || values.iter().any(|(value, _)| value.is_nan()) {
        return None;
    }
    values.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    // Pairs in which the value from `first` is higher; a tie counts half.
    let (mut pairs, mut lower, mut ties) = (0.0, 0.0, 0.0);
    for equal in values.chunk_by(|(a, _), (b, _)| a == b) {
        let from_first = real(equal.iter().filter(|(_, is_first)| *is_first).count());
        let size = real(equal.len());
        let from_second = size - from_first;
        pairs += from_first * (lower + from_second / 2.0);
        lower += from_second;
        // `size³ - size` is the usual correction for ties; it is 0 for a single value.
        ties += size * size * size - size;
    }
    let (n, m) = (real(first.len()), real(second.len()));
    // By symmetry both directions reduce to the probability of this few pairs.
    let pairs = if tail == TestTail::Less { pairs } else { n * m - pairs };
    if ties == 0.0 && first.len().max(second.len()) <= EXACT {
        return Some(exact(pairs, first.len(), second.len()));
    }
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    if variance <= 0.0 {
        // All values are equal, so every order is as likely as the observed one.
        return Some(1.0);
    }
    // Continuity correction by half a pair towards the centre.
    let z = pairs - n * m / 2.0 + 0.5;
    Some(erfc(-z / (2.0 * variance).sqrt()) / 2.0)
}

/// Returns the share of all orders of n and m values with at most this many pairs. The counts are
/// the coefficients of the Gaussian binomial, the product of (1 - q^(m+i)) / (1 - q^i).
fn exact(pairs: f64, n: usize, m: usize) -> f64 {
    let mut orders = vec![0.0; n * m + 1];
    orders[0] = 1.0;
    // Multiplies by (1 - q^(m+i)), from the highest power down so that each coefficient is read
    // before it changes, and divides by (1 - q^i), from the lowest up, which is a running sum.
    for i in 1..=n {
        for at in (m + i..orders.len()).rev() {
            orders[at] -= orders[at - m - i];
        }
        for at in i..orders.len() {
            orders[at] += orders[at - i];
        }
    }
    let at_most: f64 =
        orders.iter().enumerate().filter(|(at, _)| real(*at) <= pairs).map(|(_, ways)| ways).sum();
    at_most / orders.iter().sum::<f64>()
}

/// The area under the ROC curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Auc {
    /// Probability that a random positive scores higher than a random negative; a tie counts half.
    /// 0.5 is no better than chance.
    pub area: f64,
    /// `DeLong`'s standard error; `None` with fewer than two items in a class.
    pub standard_error: Option<f64>,
    /// 95 % confidence interval, within 0.0 to 1.0. Also `None` if the standard error is 0, which
    /// happens for perfect separation and says nothing about the uncertainty.
    pub interval: Option<Interval>,
}

/// Computes the area under the ROC curve of scores against the truth. Returns `None` if a class is
/// empty or a score is NaN.
///
/// `DeLong`, `DeLong` and Clarke-Pearson, "Comparing the areas under two or more correlated
/// receiver operating characteristic curves" (1988).
pub fn auc(scored: &[(f64, bool)]) -> Option<Auc> {
    // NaN has no place in an order: sorted by `total_cmp` it would silently rank as the highest.
    if scored.iter().any(|(score, _)| score.is_nan()) {
        return None;
    }
    let sorted = |truth: bool| {
        let mut scores: Vec<f64> =
            scored.iter().filter(|(_, is)| *is == truth).map(|(score, _)| *score).collect();
        scores.sort_by(f64::total_cmp);
        scores
    };
    let (positives, negatives) = (sorted(true), sorted(false));
    if positives.is_empty() || negatives.is_empty() {
        return None;
    }
    // DeLong's placements need two binary searches per item instead of all pairs.
    let beaten: Vec<f64> = positives.iter().map(|score| placement(*score, &negatives)).collect();
    let lost: Vec<f64> = negatives.iter().map(|score| placement(*score, &positives)).collect();
    let area = beaten.iter().sum::<f64>() / real(beaten.len());
    let standard_error =
        error_of_mean(&beaten).zip(error_of_mean(&lost)).map(|(a, b)| (a + b).sqrt());
    let interval = standard_error.filter(|error| *error > 0.0).map(|error| Interval {
        low: (area - Z * error).max(0.0),
        high: (area + Z * error).min(1.0),
    });
    Some(Auc { area, standard_error, interval })
}

/// Returns the share of the sorted scores below this one; equal ones count half.
fn placement(score: f64, sorted: &[f64]) -> f64 {
    let below = sorted.partition_point(|other| *other < score);
    let up_to = sorted.partition_point(|other| *other <= score);
    real(below + up_to) / 2.0 / real(sorted.len())
}

/// Returns the variance of the mean; `None` with fewer than two values.
fn error_of_mean(values: &[f64]) -> Option<f64> {
    let n = real(values.len());
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| squares / (n - 1.0) / n)
}

/// A quantile of the population that a sample comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileEstimate {
    /// The sample quantile: the lowest value that at least this share of the values does not
    /// exceed.
    pub value: f64,
    /// 95 % confidence interval, exact for any distribution; both ends are values of the sample.
    pub interval: Interval,
}

/// Returns the quantile at a share between 0 and 1, with its interval. Returns `None` if the share
/// or a value is invalid, and if the sample is too small for an interval: for the 0.1 quantile,
/// below 36 values.
///
/// By order statistics: Conover, "Practical nonparametric statistics" (1999), section 3.2.
pub fn quantile(values: &[f64], share: f64) -> Option<QuantileEstimate> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let (low, high) = interval_ranks(values.len(), share)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The lowest rank whose share of the sample reaches the requested one.
    // The tolerance is for shares such as 0.07: of 100 values it is 7.000000000000001 in floating
    // point.
    let rank = (1..=sorted.len()).find(|rank| real(*rank) + 1e-9 >= share * real(sorted.len()))?;
    let at = |rank: usize| sorted[rank - 1];
    Some(QuantileEstimate { value: at(rank), interval: Interval { low: at(low), high: at(high) } })
}

/// Returns the ranks, from 1, between whose values the quantile lies in at least 95 % of samples.
/// The number of values below it is binomial, and each end is missed with at most 2.5 %.
fn interval_ranks(count: usize, share: f64) -> Option<(usize, usize)> {
    const TAIL: f64 = 0.025;
    if !(0.0..=1.0).contains(&share) || share == 0.0 || share == 1.0 {
        return None;
    }
    let n = count as u64;
    // Binomial: each of the n values is below the quantile with the probability `share`, for any
    // continuous distribution.
    let chance = |below: u64| {
        let (successes, failures) = (float(below), float(n - below));
        (ln_binomial(n, below) + successes * share.ln() + failures * (1.0 - share).ln()).exp()
    };
    let mut up_to = 0.0;
    let (mut low, mut high) = (None, None);
    for rank in 1..=count {
        up_to += chance(rank as u64 - 1);
        // The last rank that leaves at most 2.5 % below, and the first that leaves at most 2.5 %
        // above: with few values neither may exist, and then no interval has the coverage.
        if up_to <= TAIL {
            low = Some(rank);
        }
        if high.is_none() && up_to >= 1.0 - TAIL {
            high = Some(rank);
        }
    }
    low.zip(high)
}

#[expect(clippy::cast_precision_loss, reason = "sample sizes are far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ozone in New York in May and August 1973: R's `airquality`.
    const MAY: [f64; 26] = [
        41., 36., 12., 18., 28., 23., 19., 8., 7., 16., 11., 14., 18., 14., 34., 6., 30., 11., 1.,
        11., 4., 32., 23., 45., 115., 37.,
    ];
    const AUGUST: [f64; 26] = [
        39., 9., 16., 78., 35., 66., 122., 89., 110., 44., 28., 65., 22., 59., 23., 31., 44., 21.,
        9., 45., 168., 73., 76., 118., 84., 85.,
    ];

    #[test]
    fn published_values() {
        // Hollander and Wolfe (1973), p. 69; R's help page of `wilcox.test`: W = 35, p = 0.1272.
        let at_term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let early = [1.15, 0.88, 0.90, 0.74, 1.21];
        let p = mann_whitney(&at_term, &early, TestTail::Greater).unwrap();
        assert!((p - 0.1272).abs() < 5e-5, "{p}");
        // SciPy's manual of `mannwhitneyu`: U = 17, two-sided p = 1/9.
        let (men, women) = ([19., 22., 16., 29., 24.], [20., 11., 17., 12.]);
        let p = mann_whitney(&men, &women, TestTail::Greater).unwrap();
        assert!((2.0 * p - 1.0 / 9.0).abs() < 1e-12, "{p}");
        // Ties: the same help page of R, W = 127.5, two-sided p = 0.0001208.
        let p = mann_whitney(&MAY, &AUGUST, TestTail::Less).unwrap();
        assert!((2.0 * p - 0.000_120_8).abs() < 5e-8, "{p}");
        let p = mann_whitney(&AUGUST, &MAY, TestTail::Greater).unwrap();
        assert!((2.0 * p - 0.000_120_8).abs() < 5e-8, "{p}");
    }

    #[test]
    fn nothing_to_compare() {
        assert_eq!(mann_whitney(&[], &[1.0], TestTail::Less), None);
        assert_eq!(mann_whitney(&[f64::NAN], &[1.0], TestTail::Less), None);
        assert_eq!(mann_whitney(&[3.0; 40], &[3.0; 50], TestTail::Less), Some(1.0));
    }

    #[test]
    fn published_values_of_auc() {
        // Hanley and McNeil (1982), 109 CT images rated 1 to 5, area 0.893; standard error 0.0307
        // and interval 0.83295 to 0.95339 by DeLong: Stata manual, `roctab`, example 1.
        let ratings = [(1.0, 33, 3), (2.0, 6, 2), (3.0, 6, 2), (4.0, 11, 11), (5.0, 2, 33)];
        let mut scored = Vec::new();
        for (rating, normal, abnormal) in ratings {
            scored.extend(vec![(rating, false); normal]);
            scored.extend(vec![(rating, true); abnormal]);
        }
        let found = auc(&scored).unwrap();
        let interval = found.interval.unwrap();
        assert!((found.area - 0.8932).abs() < 5e-5, "{found:?}");
        assert!((found.standard_error.unwrap() - 0.0307).abs() < 5e-5, "{found:?}");
        assert!((interval.low - 0.83295).abs() < 5e-6, "{found:?}");
        assert!((interval.high - 0.95339).abs() < 5e-6, "{found:?}");
    }

    #[test]
    fn edges() {
        assert_eq!(auc(&[(1.0, true)]), None);
        assert_eq!(auc(&[(f64::NAN, true), (1.0, false)]), None);
        let single = auc(&[(1.0, true), (1.0, false)]).unwrap();
        assert_eq!((single.area, single.interval), (0.5, None));
        let perfect = auc(&[(2.0, true), (3.0, true), (1.0, false), (0.0, false)]).unwrap();
        assert_eq!((perfect.area, perfect.interval), (1.0, None));
    }

    #[test]
    fn published_values_of_quantile() {
        // Ranks of the 95 % interval of a median by sample size, as the tables of the sign test
        // have them: Gardner and Altman, "Statistics with confidence" (1989), table 10.1.
        for (count, ranks) in [(6, (1, 6)), (10, (2, 9)), (20, (6, 15)), (30, (10, 21))] {
            assert_eq!(interval_ranks(count, 0.5), Some(ranks), "{count}");
        }
        assert_eq!(interval_ranks(5, 0.5), None);
    }

    #[test]
    fn a_tenth_takes_thirty_six_values() {
        // 0.9^35 = 0.02503 and 0.9^36 = 0.02253: the chance that no value is below the quantile.
        let values = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        assert_eq!(quantile(&values(35), 0.1), None);
        let found = quantile(&values(36), 0.1).unwrap();
        assert_eq!((found.value, found.interval.low), (4.0, 1.0));
        let found = quantile(&values(100), 0.1).unwrap();
        assert_eq!(found.value, 10.0);
        assert!(found.interval.low < 10.0 && found.interval.high > 10.0, "{found:?}");
    }

    #[test]
    fn the_order_of_values_does_not_count_and_nonsense_has_none() {
        let mut values: Vec<f64> = (0..50).map(f64::from).collect();
        let sorted = quantile(&values, 0.25);
        values.reverse();
        assert_eq!(quantile(&values, 0.25), sorted);
        values[3] = f64::NAN;
        assert_eq!(quantile(&values, 0.25), None);
        for share in [0.0, 1.0, -1.0, f64::NAN] {
            assert_eq!(interval_ranks(50, share), None);
        }
    }
}
