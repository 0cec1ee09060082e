//! Separation of two classes by a score.

use super::{Interval, Z, real};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
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
}
