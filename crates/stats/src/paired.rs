//! Paired measurements: the size of their difference, and whether chance explains it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::function::factorial::ln_binomial;

use super::Interval;
use super::mean::{mean, t_interval};

/// The mean of paired differences and its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedDifference {
    /// Mean of the differences.
    pub mean: f64,
    /// 95 % confidence interval; absent with fewer than two pairs. If all differences are equal it
    /// is a point and says nothing about chance; use [`sign_test`] then.
    pub interval: Option<Interval>,
}

/// Returns the mean of the differences `d` and its 95 % interval by the paired t-test, `mean(d) ±
/// t(0.975; n - 1) · s / √n` with `s` their standard deviation. Returns `None` without differences
/// or if one is not finite.
///
/// Student, "The probable error of a mean" (1908). The differences must be independent: average
/// those from the same source first (Miller, "Adding error bars to evals", arXiv 2411.00640, on
/// clustered questions and on paired differences).
pub fn paired_difference(differences: &[f64]) -> Option<PairedDifference> {
    let mean = mean(differences)?;
    Some(PairedDifference { mean, interval: t_interval(differences) })
}

/// Returns the two-sided p-value of the exact sign test: the probability of a result at least this
/// lopsided if wins and losses are equally likely, or 1.0 without any. Leave out ties.
///
/// Dixon and Mood, "The statistical sign test" (1946). Assumes neither a scale nor a distribution,
/// which scores of language models do not have. A p-value below 0.05 takes at least six decided
/// pairs.
pub fn sign_test(wins: u32, losses: u32) -> f64 {
    let (fewer, all) = (u64::from(wins.min(losses)), u64::from(wins) + u64::from(losses));
    let nothing_but = f64::from(wins) + f64::from(losses);
    let one_side: f64 = (0..=fewer)
        // In logarithms, because binomials of many pairs overflow.
        .map(|count| (ln_binomial(all, count) - nothing_but * std::f64::consts::LN_2).exp())
        .sum();
    // With as many wins as losses both tails contain the middle, and twice one of them exceeds 1.
    (2.0 * one_side).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn published_values() {
        // Student (1908), hours of sleep gained by two drugs in ten patients; R's help page of
        // `sleep`: mean -1.58, 95 % interval -2.4598858 to -0.7001142.
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
        let found = paired_difference(&differences).unwrap();
        assert!((found.mean + 1.58).abs() < 1e-12, "{found:?}");
        let Interval { low, high } = found.interval.unwrap();
        assert!((low + 2.459_885_8).abs() < 5e-8 && (high + 0.700_114_2).abs() < 5e-8, "{found:?}");
    }

    #[test]
    fn sign_tests_by_hand() {
        for (wins, losses, expected) in [
            (0, 0, 1.0),
            (1, 0, 1.0),
            (3, 3, 1.0),
            (5, 0, 2.0 / 32.0),
            (6, 0, 2.0 / 64.0),
            // 2 · (1 + 10 + 45) / 1024
            (8, 2, 0.109_375),
        ] {
            for p in [sign_test(wins, losses), sign_test(losses, wins)] {
                assert!((p - expected).abs() < 1e-12, "{wins} to {losses}: {p}");
            }
        }
        assert!(sign_test(u32::MAX, 0) < 1e-300);
    }

    #[test]
    fn edges() {
        assert_eq!(paired_difference(&[]), None);
        assert_eq!(paired_difference(&[0.1, f64::NAN]), None);
        assert_eq!(paired_difference(&[0.1]).unwrap().interval, None);
        let equal = paired_difference(&[0.25; 4]).unwrap().interval;
        assert_eq!(equal, Some(Interval { low: 0.25, high: 0.25 }));
    }

    proptest! {
        #[test]
        fn the_other_way_round_is_the_mirror_image(
            differences in prop::collection::vec(-1.0..1.0f64, 2..40),
        ) {
            let mirrored: Vec<f64> = differences.iter().map(|difference| -difference).collect();
            let one = paired_difference(&differences).unwrap();
            let other = paired_difference(&mirrored).unwrap();
            let (one_ends, other_ends) = (one.interval.unwrap(), other.interval.unwrap());
            prop_assert!((one.mean + other.mean).abs() < 1e-12);
            prop_assert!((one_ends.low + other_ends.high).abs() < 1e-12);
            prop_assert!(one_ends.low <= one.mean && one.mean <= one_ends.high);
        }
    }
}
