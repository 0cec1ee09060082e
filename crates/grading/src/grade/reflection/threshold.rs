//! The threshold for weak reflections, and the one proposed from past scores
//! (docs/spec/reflections.md#adaptive-thresholds). A proposal takes effect only if the
//! configuration allows it.

use serde::Serialize;

use super::reflection_settings::{AdaptiveThreshold, ReflectionSettings};
use selftest_stats::score::Threshold;
use selftest_stats::{Interval, quantile};

/// Maximum number of past scores of a project that a proposal uses. Only the newest count, since
/// old behaviour says little about an agent.
pub const HISTORY: u32 = 200;

/// Maximum share of past reflections that a proposed threshold would call weak. The lowest tenth is
/// small enough to review each one.
const SHARE: f64 = 0.1;

/// Minimum number of past scores for a proposal. With fewer, the 10 % quantile has no exact 95 %
/// interval.
pub const MIN_SCORES: usize = 36;

/// A threshold proposed from past scores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ThresholdProposal {
    /// 10 % quantile of the scores, which is itself one of them.
    pub threshold: Threshold,
    /// 95 % interval of the quantile.
    pub interval: Interval,
    /// Number of scores it is based on.
    pub scores: usize,
}

impl ThresholdProposal {
    /// Computes a proposal from past scores. Returns `None` with fewer than [`MIN_SCORES`].
    pub fn from_scores(scores: &[f64]) -> Option<Self> {
        let found = quantile(scores, SHARE)?;
        let threshold = Threshold::new(found.value).ok()?;
        Some(Self { threshold, interval: found.interval, scores: scores.len() })
    }
}

/// Returns the threshold for the next reflection of a project, given its past scores.
///
/// A proposal applies only if configured, and can only raise the threshold. A threshold that sank
/// with the agent's own scores would hide their decline.
pub fn effective_threshold(settings: &ReflectionSettings, past: &[f64]) -> Threshold {
    let configured = settings.weak_threshold;
    match settings.adaptive {
        AdaptiveThreshold::Propose => configured,
        AdaptiveThreshold::Apply => {
            let proposed = ThresholdProposal::from_scores(past).map(|proposal| proposal.threshold);
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
        let proposal = ThresholdProposal::from_scores(&good(40)).unwrap();
        assert_eq!((proposal.threshold.get(), proposal.scores), (0.75, 40));
        assert_eq!(proposal.interval, Interval { low: 0.75, high: 0.9 });
        // … from enough of it …
        assert_eq!(ThresholdProposal::from_scores(&good(MIN_SCORES - 1)), None);
        assert!(ThresholdProposal::from_scores(&good(MIN_SCORES)).is_some());
        // … and applied only where the configuration says so.
        let in_force =
            |adaptive, past: &[f64]| effective_threshold(&settings(adaptive), past).get();
        assert_eq!(in_force(AdaptiveThreshold::Propose, &good(40)), 0.6);
        assert_eq!(in_force(AdaptiveThreshold::Apply, &good(40)), 0.75);
        assert_eq!(in_force(AdaptiveThreshold::Apply, &good(35)), 0.6);
    }

    /// docs/spec/reflections.md#adaptive-thresholds: a proposal is applied only upwards.
    #[test]
    fn bad_reflections_do_not_lower_the_bar() {
        let bad = vec![0.3; 100];
        assert_eq!(ThresholdProposal::from_scores(&bad).unwrap().threshold.get(), 0.3);
        assert_eq!(effective_threshold(&settings(AdaptiveThreshold::Apply), &bad).get(), 0.6);
    }
}
