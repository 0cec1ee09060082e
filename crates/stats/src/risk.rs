//! Thresholds with a promise: of the answers beyond them, at most a given share is wrong.

use serde::{Deserialize, Serialize};

use crate::proportion::upper_bound;

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
