//! Reliability of predicted probabilities: Brier score and reliability bins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Interval, mean, real, wilson};

/// Returns the mean squared difference of probability and outcome: 0 is perfect, 0.25 results from
/// always predicting one half. Returns `None` if empty or if a probability is not finite.
///
/// Brier, "Verification of forecasts expressed in terms of probability" (1950).
pub fn brier_score(forecasts: &[(f64, bool)]) -> Option<f64> {
    let squares: Vec<f64> = forecasts
        .iter()
        .map(|(probability, outcome)| (probability - f64::from(u8::from(*outcome))).powi(2))
        .collect();
    mean(&squares)
}

/// Returns the Brier score of the constant predictor, whose forecast for each label is the share of
/// good ones among the other labels. A useful judge must beat it. Returns `None` with fewer than
/// two labels.
pub fn constant_brier(labels: &[bool]) -> Option<f64> {
    let n = real(labels.len());
    let good = real(labels.iter().filter(|label| **label).count());
    let forecasts: Vec<(f64, bool)> = labels
        .iter()
        // Leaving the label itself out keeps the constant from knowing its own outcome.
        .map(|label| ((good - f64::from(u8::from(*label))) / (n - 1.0), *label))
        .collect();
    brier_score(&forecasts).filter(|_| labels.len() > 1)
}

/// A bin of similar forecasts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReliabilityBin {
    /// Lowest probability in the bin; the bin extends to the next one.
    pub from: f64,
    /// Number of forecasts.
    pub count: u32,
    /// Mean of their probabilities.
    pub forecast: f64,
    /// Share of good outcomes.
    pub observed: f64,
    /// 95 % confidence interval of that share.
    pub interval: Interval,
}

/// Sorts the forecasts into `bins` bins of equal width and returns the non-empty ones. Values
/// outside 0 to 1 are ignored.
pub fn reliability(forecasts: &[(f64, bool)], bins: u32) -> Vec<ReliabilityBin> {
    let width = 1.0 / f64::from(bins.max(1));
    let of_bin = |bin: u32| {
        let (from, to) = (f64::from(bin) * width, f64::from(bin + 1) * width);
        // Bins are half-open; only the last one includes its upper end, for forecasts of exactly 1.
        let is_last = bin + 1 == bins;
        let inside: Vec<&(f64, bool)> = forecasts
            .iter()
            .filter(|(p, _)| *p >= from && (*p < to || is_last && *p <= 1.0))
            .collect();
        let count = u32::try_from(inside.len()).ok()?;
        let good = u32::try_from(inside.iter().filter(|(_, good)| *good).count()).ok()?;
        // The mean of the forecasts, not the middle of the bin: forecasts often crowd at one end.
        let probabilities: Vec<f64> = inside.iter().map(|(p, _)| *p).collect();
        Some(ReliabilityBin {
            from,
            count,
            forecast: mean(&probabilities)?,
            observed: f64::from(good) / f64::from(count),
            interval: wilson(good, count)?,
        })
    };
    (0..bins).filter_map(of_bin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // scikit-learn's help of `brier_score_loss`: 0.0375.
        let forecasts = [(0.1, false), (0.9, true), (0.8, true), (0.3, false)];
        assert!((brier_score(&forecasts).unwrap() - 0.0375).abs() < 1e-12);
        assert_eq!(brier_score(&[]), None);
        assert_eq!(brier_score(&[(f64::NAN, true)]), None);
        // Two of four: of the other three one third has the same label.
        let constant = constant_brier(&[true, true, false, false]).unwrap();
        assert!((constant - 4.0 / 9.0).abs() < 1e-12);
        assert_eq!(constant_brier(&[true]), None);
        assert_eq!(constant_brier(&[true; 9]), Some(0.0));
    }

    #[test]
    fn every_forecast_is_in_one_bin() {
        let forecasts: Vec<(f64, bool)> =
            (0..=100).map(|percent| (f64::from(percent) / 100.0, percent > 50)).collect();
        let bins = reliability(&forecasts, 5);
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u32>(), 101);
        assert_eq!(bins.len(), 5);
        assert_eq!((bins[0].observed, bins[4].observed), (0.0, 1.0));
        assert!(bins.windows(2).all(|pair| pair[0].forecast < pair[1].forecast));
        assert!(reliability(&[(0.5, true)], 10).len() == 1 && reliability(&[], 10).is_empty());
        assert!(reliability(&[(1.5, true), (f64::NAN, true)], 4).is_empty());
    }
}
