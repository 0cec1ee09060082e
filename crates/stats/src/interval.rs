//! Confidence intervals of a proportion, and of the difference between two.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Z;

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
    fn published_values() {
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
