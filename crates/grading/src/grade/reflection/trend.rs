//! Weekly trend of reflection scores (docs/spec/reflections.md#trends).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::grade::Week;
use crate::grade::share::{mean, rounded};
use selftest_stats::{Interval, mean_interval};

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
}
