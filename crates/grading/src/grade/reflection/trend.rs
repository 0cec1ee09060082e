//! What past scores of reflections say: the weekly trend (docs/spec/reflections.md#trends), and a
//! proposed threshold for weak ones (#adaptive-thresholds), which takes effect only if the
//! configuration allows it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::rules::{AdaptiveThreshold, ReflectionSettings};
use crate::grade::Week;
use crate::grade::share::{mean, rounded};
use selftest_stats::score::Threshold;
use selftest_stats::{Interval, mean_interval, quantile};

/// Maximum number of weeks in a trend; the latest are kept.
const MAX_WEEKS: u8 = 26;

/// A score and the time of its reflection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedScore {
    /// Time of the reflection.
    pub made_at: Timestamp,
    /// Score, 0.0 to 1.0.
    pub score: f64,
    /// True if it was weak by the threshold of its time.
    pub weak: bool,
}

/// The reflections of a week.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReflectionWeek {
    /// The week, in UTC.
    pub week: Week,
    /// Number of reflections.
    pub count: u64,
    /// Number of weak ones.
    pub weak: u64,
    /// Mean score, rounded to six places; `None` without reflections.
    pub mean: Option<f64>,
    /// 95 % t-interval of the mean, clamped to 0.0 to 1.0. `None` with fewer than two reflections,
    /// or if all have the same score, since the interval would be meaningless.
    pub interval: Option<Interval>,
}

/// Returns the weeks between the first and the last reflection, oldest first and at most 26. Weeks
/// without reflections in between are included.
pub fn trend(scores: &[TimedScore]) -> Vec<ReflectionWeek> {
    let mut weeks = BTreeMap::<Week, Vec<&TimedScore>>::new();
    for scored in scores {
        weeks.entry(Week::containing(scored.made_at)).or_default().push(scored);
    }
    let (Some(first), Some(last)) = (weeks.keys().next(), weeks.keys().next_back()) else {
        return Vec::new();
    };
    let mut shown: Vec<Week> = (0..MAX_WEEKS)
        .rev()
        .map(|back| last.weeks_earlier(back))
        .filter(|week| week >= first)
        .collect();
    // `Week::before` saturates at the first representable week, which could then repeat.
    shown.dedup();
    let scored = |week: &Week| weeks.get(week).map_or(&[][..], Vec::as_slice);
    shown.iter().map(|week| summarize_week(*week, scored(week))).collect()
}

fn summarize_week(week: Week, scored: &[&TimedScore]) -> ReflectionWeek {
    let scores: Vec<f64> = scored.iter().map(|scored| scored.score).collect();
    // The interval of a mean may reach beyond all scores that there can be.
    let within = |end: f64| rounded(end.clamp(0.0, 1.0));
    ReflectionWeek {
        week,
        count: scored.len() as u64,
        weak: scored.iter().filter(|scored| scored.weak).count() as u64,
        mean: mean(scores.iter().copied()),
        interval: mean_interval(&scores)
            .map(|Interval { low, high }| Interval { low: within(low), high: within(high) }),
    }
}

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

    fn at(day: &str, score: f64) -> TimedScore {
        let made_at = format!("{day}T12:00:00Z").parse().unwrap();
        TimedScore { made_at, score, weak: score < 0.6 }
    }

    /// docs/spec/reflections.md#trends.
    #[test]
    fn section_future_enhancements_trend_analysis() {
        let weeks = trend(&[
            at("2026-11-17", 0.9),
            at("2026-11-02", 0.5),
            at("2026-11-04", 0.9),
            at("2026-11-03", 0.7),
        ]);
        let names: Vec<String> = weeks.iter().map(|week| week.week.to_string()).collect();
        assert_eq!(names, ["2026-W45", "2026-W46", "2026-W47"]);
        assert_eq!((weeks[0].count, weeks[0].weak, weeks[0].mean), (3, 1, Some(0.7)));
        // 0.7 ± 4.302653 · 0.2 / √3, cut at 1.
        assert_eq!(weeks[0].interval, Some(Interval { low: 0.203_172, high: 1.0 }));
        // Nothing is made up where nothing is.
        assert_eq!((weeks[1].count, weeks[1].mean, weeks[1].interval), (0, None, None));
        assert_eq!((weeks[2].count, weeks[2].mean, weeks[2].interval), (1, Some(0.9), None));
    }

    #[test]
    fn long_histories_are_cut_and_none_has_no_week() {
        assert_eq!(trend(&[]), []);
        let weeks = trend(&[at("2020-01-01", 0.9), at("2026-11-17", 0.9)]);
        assert_eq!(weeks.len(), usize::from(MAX_WEEKS));
        assert_eq!((weeks[0].count, weeks[25].count), (0, 1));
        let ends = [Timestamp::MIN, Timestamp::MAX];
        let ends = ends.map(|made_at| TimedScore { made_at, score: 0.5, weak: true });
        assert_eq!(trend(&ends).len(), usize::from(MAX_WEEKS));
        assert_eq!(trend(&ends[..1]).len(), 1);
    }

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
