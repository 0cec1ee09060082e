//! The threshold below which reflections are weak, and the one that past scores propose
//! (docs/spec/reflections.md#adaptive-thresholds). Decides nothing that the configuration has not
//! allowed.

use serde::Serialize;

use super::reflection_settings::{AdaptiveThreshold, ReflectionSettings};
use selftest_stats::score::Threshold;
use selftest_stats::{Interval, quantile};

/// Most past scores of a project that a proposal looks at, the newest: what an agent did long ago
/// says little about it.
pub const HISTORY: u32 = 200;

/// The share of past reflections that a proposed threshold would call weak, at most: the lowest
/// tenth, few enough to look at each.
const SHARE: f64 = 0.1;

/// Fewest past scores that propose a threshold: of fewer, a tenth has no exact 95 % interval.
pub const MIN_SCORES: usize = 36;

/// A threshold that past scores propose.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ThresholdProposal {
    /// The 10 % quantile of the scores, itself one of them.
    pub threshold: Threshold,
    /// Its 95 % interval.
    pub interval: Interval,
    /// The scores that it comes from.
    pub scores: usize,
}

impl ThresholdProposal {
    /// Of past scores; `None` with fewer than [`MIN_SCORES`].
    pub fn of(scores: &[f64]) -> Option<Self> {
        let found = quantile(scores, SHARE)?;
        let threshold = Threshold::new(found.value).ok()?;
        Some(Self { threshold, interval: found.interval, scores: scores.len() })
    }
}

/// The threshold for the next reflection of a project with these past scores.
///
/// A proposal is applied where the configuration says so, and only upwards: a bar that sinks with
/// the agent's own scores would hide that they sink.
pub fn in_force(settings: &ReflectionSettings, past: &[f64]) -> Threshold {
    let configured = settings.weak_threshold;
    match settings.adaptive {
        AdaptiveThreshold::Propose => configured,
        AdaptiveThreshold::Apply => {
            let proposed = ThresholdProposal::of(past).map(|proposal| proposal.threshold);
            proposed.filter(|proposed| *proposed > configured).unwrap_or(configured)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(adaptive: AdaptiveThreshold) -> ReflectionSettings {
        ReflectionSettings { adaptive, ..ReflectionSettings::default() }
    }

    /// Five scores at 0.75, the others at 0.9.
    fn good(count: usize) -> Vec<f64> {
        (0..count).map(|number| if number < 5 { 0.75 } else { 0.9 }).collect()
    }

    /// docs/spec/reflections.md#adaptive-thresholds.
    #[test]
    fn section_future_enhancements_adaptive_thresholds() {
        // Proposed from history with its interval …
        let proposal = ThresholdProposal::of(&good(40)).unwrap();
        assert_eq!((proposal.threshold.get(), proposal.scores), (0.75, 40));
        assert_eq!(proposal.interval, Interval { low: 0.75, high: 0.9 });
        // … from enough of it …
        assert_eq!(ThresholdProposal::of(&good(MIN_SCORES - 1)), None);
        assert!(ThresholdProposal::of(&good(MIN_SCORES)).is_some());
        // … and applied only where the configuration says so.
        let in_force = |adaptive, past: &[f64]| in_force(&settings(adaptive), past).get();
        assert_eq!(in_force(AdaptiveThreshold::Propose, &good(40)), 0.6);
        assert_eq!(in_force(AdaptiveThreshold::Apply, &good(40)), 0.75);
        assert_eq!(in_force(AdaptiveThreshold::Apply, &good(35)), 0.6);
    }

    /// docs/spec/reflections.md#adaptive-thresholds: a proposal is applied only upwards.
    #[test]
    fn bad_reflections_do_not_lower_the_bar() {
        let bad = vec![0.3; 100];
        assert_eq!(ThresholdProposal::of(&bad).unwrap().threshold.get(), 0.3);
        assert_eq!(in_force(&settings(AdaptiveThreshold::Apply), &bad).get(), 0.6);
    }
}
