//! Confidence interval for the difference between two proportions.

use super::{Interval, wilson};

/// Returns the 95 % interval of `first - second`, each given as successes and trials, within -1.0
/// to 1.0. Returns `None` if a group is empty.
///
/// Newcombe, "Interval estimation for the difference between independent proportions" (1998),
/// method 10: combines the two Wilson intervals, so it stays within bounds even with few trials.
pub fn proportion_difference(first: (u32, u32), second: (u32, u32)) -> Option<Interval> {
    let share =
        |(count, of): (u32, u32)| Some((f64::from(count) / f64::from(of), wilson(count, of)?));
    let ((p, own), (q, other)) = (share(first)?, share(second)?);
    let low = (p - own.low).hypot(other.high - q);
    let high = (own.high - p).hypot(q - other.low);
    Some(Interval { low: p - q - low, high: p - q + high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
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
