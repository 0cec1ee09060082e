//! Tests two groups of tasks for significant differences.
//!
//! Tests are two-sided, because owners care about improvements as well as regressions.

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use super::share::{mean, ratio, rounded, saturated};
use super::{GradeRecord, TaskOutcome};
use selftest_stats::{Interval, Tail, fisher_exact, holm, mann_whitney, proportion_difference};

/// A measure in which two groups of tasks are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Measure {
    /// Share of tasks confirmed as done by a check, CI or a merge.
    Verified,
    /// Share of tasks that a check or a person found not done.
    Contradicted,
    /// Share of tasks in which a person corrected or stopped the agent.
    Corrected,
    /// Share of tasks with errors that recovered from them.
    Recovered,
    /// `tool_calls_efficient` of a task, 1 to 5.
    ToolEfficiency,
    /// `response_quality` of a task, 1 to 5.
    AnswerQuality,
    /// Share of failed calls in a task.
    FailedCalls,
    /// Seconds from the first to the last timestamp of a task.
    Duration,
    /// Share of tasks that had an error of a certain cause.
    MetCause,
}

/// Result of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Significantly higher than in the other group.
    Up,
    /// Significantly lower than in the other group.
    Down,
    /// No significant difference.
    WithinChance,
    /// Too few tasks in one of the groups.
    #[default]
    NotTested,
}

/// Comparison of one measure in two groups of tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Measure compared.
    pub measure: Measure,
    /// Value in the group: a share of 0.0 to 1.0, or a mean. Absent without tasks to count.
    pub own: Option<f64>,
    /// Value in the other group.
    pub other: Option<f64>,
    /// Number of tasks counted in the group.
    pub n_own: u64,
    /// Number of tasks counted in the other group.
    pub n_other: u64,
    /// 95 % interval of `own - other`, for shares (Newcombe).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Name of the statistical test.
    pub test: String,
    /// Probability of a difference at least this large if the groups were the same. Absent if no
    /// test was made.
    pub p: Option<f64>,
    /// `p` after Holm's correction for the tests made together.
    pub p_corrected: Option<f64>,
    /// Result of the comparison.
    pub verdict: Verdict,
}

/// Criteria for a significant difference.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// Significance level.
    pub(super) alpha: f64,
    /// Minimum number of tasks on each side.
    pub(super) min_tasks: u64,
}

/// Values of a measure.
enum Values {
    /// Number of tasks that have the property, and number of tasks counted.
    Share(u64, u64),
    /// One value per task counted.
    Each(Vec<f64>),
}

impl Measure {
    /// Returns the values for some tasks. [`Measure::MetCause`] needs more than the tasks and
    /// returns an empty share.
    fn values(self, tasks: &[&GradeRecord]) -> Values {
        let share = |has: fn(&GradeRecord) -> bool| {
            let count = tasks.iter().filter(|task| has(task)).count();
            Values::Share(count as u64, tasks.len() as u64)
        };
        let each = |value: fn(&GradeRecord) -> Option<f64>| {
            Values::Each(tasks.iter().filter_map(|task| value(task)).collect())
        };
        match self {
            Measure::Verified => share(|task| task.outcome == TaskOutcome::Verified),
            Measure::Contradicted => share(|task| task.outcome == TaskOutcome::Contradicted),
            Measure::Corrected => share(|task| task.details.corrections > 0),
            Measure::Recovered => {
                let erring = tasks.iter().filter(|task| task.total_errors > 0);
                let recovered = erring.clone().filter(|task| task.errors_recovered).count();
                Values::Share(recovered as u64, erring.count() as u64)
            }
            Measure::ToolEfficiency => each(|task| Some(task.tool_calls_efficient.get().into())),
            Measure::AnswerQuality => each(|task| Some(task.response_quality.get().into())),
            Measure::FailedCalls => {
                each(|task| ratio(task.total_errors, task.details.calls_of_tools()))
            }
            Measure::Duration => each(|task| task.duration_seconds),
            Measure::MetCause => Values::Share(0, 0),
        }
    }
}

impl Difference {
    /// Compares a measure of two groups of tasks.
    pub(super) fn of(
        measure: Measure,
        own: &[&GradeRecord],
        other: &[&GradeRecord],
        rule: Rule,
    ) -> Self {
        match (measure.values(own), measure.values(other)) {
            (Values::Each(own), Values::Each(other)) => {
                Self::of_values(measure, &own, &other, rule)
            }
            (Values::Share(own, n_own), Values::Share(other, n_other)) => {
                Self::of_shares(measure, (own, n_own), (other, n_other), rule)
            }
            _ => Self::of_shares(measure, (0, 0), (0, 0), rule),
        }
    }

    /// Compares two shares, each given as count and total.
    pub(super) fn of_shares(
        measure: Measure,
        own: (u64, u64),
        other: (u64, u64),
        rule: Rule,
    ) -> Self {
        let small = |(count, of): (u64, u64)| (saturated(count), saturated(of));
        let row = |(count, of): (u64, u64)| [saturated(count), saturated(of.saturating_sub(count))];
        let interval = proportion_difference(small(own), small(other));
        let interval = interval
            .map(|Interval { low, high }| Interval { low: rounded(low), high: rounded(high) });
        let p = |tail| fisher_exact([row(own), row(other)], tail);
        Self {
            measure,
            own: ratio(own.0, own.1),
            other: ratio(other.0, other.1),
            n_own: own.1,
            n_other: other.1,
            interval,
            test: "Fisher's exact test, two-sided".to_owned(),
            p: two_sided(own.1.min(other.1) >= rule.min_tasks, p),
            p_corrected: None,
            verdict: Verdict::NotTested,
        }
    }

    fn of_values(measure: Measure, own: &[f64], other: &[f64], rule: Rule) -> Self {
        let enough = own.len().min(other.len()) as u64 >= rule.min_tasks;
        Self {
            measure,
            own: mean(own.iter().copied()),
            other: mean(other.iter().copied()),
            n_own: own.len() as u64,
            n_other: other.len() as u64,
            interval: None,
            test: "Mann-Whitney rank test, two-sided".to_owned(),
            p: two_sided(enough, |tail| mann_whitney(own, other, tail)),
            p_corrected: None,
            verdict: Verdict::NotTested,
        }
    }

    /// Corrects the p-values of tests made together and sets their verdicts.
    pub(super) fn decide<'a>(together: impl IntoIterator<Item = &'a mut Difference>, rule: Rule) {
        let mut tested: Vec<&mut Difference> =
            together.into_iter().filter(|one| one.p.is_some()).collect();
        let made: Vec<f64> = tested.iter().filter_map(|one| one.p).collect();
        for (one, corrected) in tested.iter_mut().zip(holm(&made)) {
            // The test is two-sided; the direction comes from the values.
            let is_higher = one.own > one.other;
            one.verdict = match corrected < rule.alpha {
                true if is_higher => Verdict::Up,
                true => Verdict::Down,
                false => Verdict::WithinChance,
            };
            one.p_corrected = Some(rounded(corrected));
            one.p = one.p.map(rounded);
        }
    }
}

/// Returns twice the smaller one-sided p-value, at most 1.
fn two_sided(is_tested: bool, p: impl Fn(Tail) -> Option<f64>) -> Option<f64> {
    if !is_tested {
        return None;
    }
    let smaller = p(Tail::Less)?.min(p(Tail::Greater)?);
    Some((2.0 * smaller).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::TaskType;
    use crate::grade::fixture::record;

    const RULE: Rule = Rule { alpha: 0.05, min_tasks: 10 };

    fn tasks(count: usize, verified: usize, efficiency: u8) -> Vec<GradeRecord> {
        (0..count)
            .map(|id| record(&id.to_string(), TaskType::General, id < verified, efficiency, 3))
            .collect()
    }

    fn compared(own: &[GradeRecord], other: &[GradeRecord]) -> Vec<Difference> {
        let (own, other): (Vec<_>, Vec<_>) = (own.iter().collect(), other.iter().collect());
        let measures = [Measure::Verified, Measure::ToolEfficiency];
        let mut found = measures.map(|measure| Difference::of(measure, &own, &other, RULE));
        Difference::decide(&mut found, RULE);
        found.into()
    }

    #[test]
    fn both_ways_beyond_chance_and_nothing_else() {
        let verdicts = |own: &[GradeRecord], other: &[GradeRecord]| {
            compared(own, other).iter().map(|one| one.verdict).collect::<Vec<_>>()
        };
        let before = tasks(40, 20, 3);
        assert_eq!(verdicts(&tasks(20, 19, 4), &before), [Verdict::Up, Verdict::Up]);
        assert_eq!(verdicts(&tasks(20, 1, 2), &before), [Verdict::Down, Verdict::Down]);
        assert_eq!(verdicts(&tasks(20, 12, 3), &before), [Verdict::WithinChance; 2]);
        assert_eq!(verdicts(&tasks(9, 0, 1), &before), [Verdict::NotTested; 2]);
        assert_eq!(verdicts(&[], &before), [Verdict::NotTested; 2]);
    }

    #[test]
    fn a_share_has_an_interval_and_a_correction() {
        let found = compared(&tasks(20, 19, 3), &tasks(40, 20, 3));
        let share = &found[0];
        let interval = share.interval.unwrap();
        assert!(interval.low > 0.2 && interval.high < 0.63, "{interval:?}");
        assert!(share.p_corrected.unwrap() >= share.p.unwrap());
        assert_eq!(found[1].interval, None);
    }
}
