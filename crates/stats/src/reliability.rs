//! Reliability of predicted probabilities: Brier score and reliability bins; and thresholds with a
//! promise: of the answers beyond them, at most a given share is wrong.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::proportion::upper_bound;
use crate::{Interval, mean, real, wilson};

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

/// One-sided confidence of the promise. A higher one needs far more known answers, and leaves nearly
/// all answers undecided.
pub const RISK_CONFIDENCE: f64 = 0.8;

/// Thresholds between which nothing is decided. Scores from `passes_from` on are decided as good,
/// scores below `fails_below` as bad. An absent bound means that nothing keeps the promise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RiskBounds {
    /// Smallest score that is decided as good.
    pub passes_from: Option<f64>,
    /// Scores below this are decided as bad.
    pub fails_below: Option<f64>,
}

impl RiskBounds {
    /// Finds the bounds that decide most, such that the share of wrong decisions on each side is at
    /// most `max_wrong` with [`RISK_CONFIDENCE`], by the exact upper bound of a binomial share.
    ///
    /// `scored` holds scores of answers that were not used to fit the score, each with whether the
    /// answer is good. This is selection with a controlled risk as in Angelopoulos et al., "Learn
    /// then Test" (2021), with the thresholds tested on a grid of the scores themselves; the share
    /// among decisions is not monotone, so that the largest set that passes its test is taken.
    pub fn fit(scored: &[(f64, bool)], max_wrong: f64) -> Self {
        let mut sorted = scored.to_vec();
        // From the surest answer on: a threshold decides a prefix of this order.
        sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
        let passes_from = extent(&sorted, true, max_wrong).map(|last| sorted[last].0);
        sorted.reverse();
        let fails_below = extent(&sorted, false, max_wrong).map(|last| sorted[last].0);
        // Just above the last score, so that it is below.
        let fails_below = fails_below.map(|score| score + 1e-9);
        match (passes_from, fails_below) {
            // With few overlapping scores both could claim the middle; then neither has it.
            (Some(pass), Some(fail)) if fail > pass => {
                Self { passes_from: Some(fail), fails_below: Some(pass) }
            }
            (passes_from, fails_below) => Self { passes_from, fails_below },
        }
    }
}

/// Returns the index of the last score of the longest prefix whose share of the other kind is
/// small enough. Equal scores stay together.
fn extent(sorted: &[(f64, bool)], is_good: bool, max_wrong: f64) -> Option<usize> {
    let (mut wrong, mut last) = (0_u64, None);
    for (at, (score, good)) in sorted.iter().enumerate() {
        wrong += u64::from(*good != is_good);
        // A threshold cannot separate equal scores, so that a prefix ends only between different
        // ones.
        let is_end = sorted.get(at + 1).is_none_or(|(next, _)| next != score);
        let count = at as u64 + 1;
        if is_end && upper_bound(wrong, count, RISK_CONFIDENCE) <= max_wrong {
            last = Some(at);
        }
    }
    last
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

    #[test]
    fn bounds_keep_their_promise() {
        // Scores of 0.5 are a coin flip; higher ones are good, lower ones bad.
        let mut scored = Vec::new();
        for step in 0..60 {
            scored.push((0.9 + f64::from(step) * 1e-4, true));
            scored.push((0.1 - f64::from(step) * 1e-4, false));
            scored.push((0.5, step % 2 == 0));
        }
        let bounds = RiskBounds::fit(&scored, 0.1);
        assert_eq!(bounds.passes_from, Some(0.9));
        assert!(bounds.fails_below.is_some_and(|below| below > 0.1 && below < 0.11), "{bounds:?}");
    }

    #[test]
    fn scores_that_say_nothing_decide_nothing() {
        let scored: Vec<(f64, bool)> =
            (0..200).map(|step| (f64::from(step), step % 2 == 0)).collect();
        assert_eq!(RiskBounds::fit(&scored, 0.1), RiskBounds::default());
        assert_eq!(RiskBounds::fit(&[], 0.1), RiskBounds::default());
        // Too few, even if all are right.
        let few: Vec<(f64, bool)> = (0..12).map(|step| (f64::from(step), true)).collect();
        assert_eq!(RiskBounds::fit(&few, 0.1), RiskBounds::default());
    }
}
