//! Quantiles of a sample, with intervals that hold for any distribution.

use statrs::function::factorial::ln_binomial;

use super::{Interval, real};

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
    let chance = |below: u64| {
        let (successes, failures) = (float(below), float(n - below));
        (ln_binomial(n, below) + successes * share.ln() + failures * (1.0 - share).ln()).exp()
    };
    let mut up_to = 0.0;
    let (mut low, mut high) = (None, None);
    for rank in 1..=count {
        up_to += chance(rank as u64 - 1);
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

    #[test]
    fn published_values() {
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
