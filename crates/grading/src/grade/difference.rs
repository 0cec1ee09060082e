//! Tests two groups of tasks for significant differences.
//!
//! Tests are two-sided, because owners care about improvements as well as regressions.

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use super::share::{mean, ratio, rounded, saturated};
use super::{GradeRecord, TaskOutcome};
use selftest_stats::{Interval, TestTail, fisher_exact, holm, mann_whitney, proportion_difference};

/// A measure in which two groups of tasks are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TaskMeasure {
    /// Share of tasks whose checks passed: a whole suite of tests, CI, a merge or a verifier.
    #[serde(alias = "verified")]
    ChecksPassed,
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
pub enum DifferenceVerdict {
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
pub struct GroupDifference {
    /// Measure compared.
    pub measure: TaskMeasure,
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
    pub verdict: DifferenceVerdict,
}

/// Criteria for a significant difference.
#[derive(Debug, Clone, Copy)]
pub(super) struct SignificanceRule {
    /// Significance level.
    pub(super) alpha: f64,
    /// Minimum number of tasks on each side.
    pub(super) min_tasks: u64,
}

/// Values of a measure.
enum MeasureValues {
    /// Number of tasks that have the property, and number of tasks counted.
    Share(u64, u64),
    /// One value per task counted.
    Each(Vec<f64>),
}

impl TaskMeasure {
    /// Returns the values for some tasks. [`TaskMeasure::MetCause`] needs more than the tasks and
    /// returns an empty share.
    fn values(self, tasks: &[&GradeRecord]) -> MeasureValues {
        let share = |has: fn(&GradeRecord) -> bool| {
            let count = tasks.iter().filter(|task| has(task)).count();
            MeasureValues::Share(count as u64, tasks.len() as u64)
        };
        let each = |value: fn(&GradeRecord) -> Option<f64>| {
            MeasureValues::Each(tasks.iter().filter_map(|task| value(task)).collect())
        };
        match self {
            TaskMeasure::ChecksPassed => share(|task| task.outcome == TaskOutcome::ChecksPassed),
            TaskMeasure::Contradicted => share(|task| task.outcome == TaskOutcome::Contradicted),
            TaskMeasure::Corrected => share(|task| task.details.corrections > 0),
            TaskMeasure::Recovered => {
                let erring = tasks.iter().filter(|task| task.total_errors > 0);
                let recovered = erring.clone().filter(|task| task.errors_recovered).count();
                MeasureValues::Share(recovered as u64, erring.count() as u64)
            }
            TaskMeasure::ToolEfficiency => {
                each(|task| Some(task.tool_calls_efficient.get().into()))
            }
            TaskMeasure::AnswerQuality => each(|task| Some(task.response_quality.get().into())),
            TaskMeasure::FailedCalls => {
                each(|task| ratio(task.total_errors, task.details.calls_of_tools()))
            }
            TaskMeasure::Duration => each(|task| task.duration_seconds),
            TaskMeasure::MetCause => MeasureValues::Share(0, 0),
        }
    }
}

impl GroupDifference {
    /// Compares a measure of two groups of tasks.
    pub(super) fn compare(
        measure: TaskMeasure,
        own: &[&GradeRecord],
        other: &[&GradeRecord],
        rule: SignificanceRule,
    ) -> Self {
        match (measure.values(own), measure.values(other)) {
            (MeasureValues::Each(own), MeasureValues::Each(other)) => {
                Self::compare_values(measure, &own, &other, rule)
            }
            (MeasureValues::Share(own, n_own), MeasureValues::Share(other, n_other)) => {
                Self::compare_shares(measure, (own, n_own), (other, n_other), rule)
            }
            _ => Self::compare_shares(measure, (0, 0), (0, 0), rule),
        }
    }

    /// Compares two shares, each given as count and total.
    pub(super) fn compare_shares(
        measure: TaskMeasure,
        own: (u64, u64),
        other: (u64, u64),
        rule: SignificanceRule,
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
            p: two_sided_p(own.1.min(other.1) >= rule.min_tasks, p),
            p_corrected: None,
            verdict: DifferenceVerdict::NotTested,
        }
    }

    fn compare_values(
        measure: TaskMeasure,
        own: &[f64],
        other: &[f64],
        rule: SignificanceRule,
    ) -> Self {
        let enough = own.len().min(other.len()) as u64 >= rule.min_tasks;
        Self {
            measure,
            own: mean(own.iter().copied()),
            other: mean(other.iter().copied()),
            n_own: own.len() as u64,
            n_other: other.len() as u64,
            interval: None,
            test: "Mann-Whitney rank test, two-sided".to_owned(),
            p: two_sided_p(enough, |tail| mann_whitney(own, other, tail)),
            p_corrected: None,
            verdict: DifferenceVerdict::NotTested,
        }
    }

    /// Corrects the p-values of tests made together and sets their verdicts.
    pub(super) fn correct_and_decide<'a>(
        together: impl IntoIterator<Item = &'a mut GroupDifference>,
        rule: SignificanceRule,
    ) {
        let mut tested: Vec<&mut GroupDifference> =
            together.into_iter().filter(|one| one.p.is_some()).collect();
        let made: Vec<f64> = tested.iter().filter_map(|one| one.p).collect();
        for (one, corrected) in tested.iter_mut().zip(holm(&made)) {
            // The test is two-sided; the direction comes from the values.
            let is_higher = one.own > one.other;
            one.verdict = match corrected < rule.alpha {
                true if is_higher => DifferenceVerdict::Up,
                true => DifferenceVerdict::Down,
                false => DifferenceVerdict::WithinChance,
            };
            one.p_corrected = Some(rounded(corrected));
            one.p = one.p.map(rounded);
        }
    }
}

/// Returns twice the smaller one-sided p-value, at most 1.
fn two_sided_p(is_tested: bool, p: impl Fn(TestTail) -> Option<f64>) -> Option<f64> {
    if !is_tested {
        return None;
    }
    let smaller = p(TestTail::Less)?.min(p(TestTail::Greater)?);
    Some((2.0 * smaller).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::TaskType;
    use crate::grade::fixture::record;

    const RULE: SignificanceRule = SignificanceRule { alpha: 0.05, min_tasks: 10 };

    fn tasks(count: usize, passed: usize, efficiency: u8) -> Vec<GradeRecord> {
        (0..count)
            .map(|id| record(&id.to_string(), TaskType::General, id < passed, efficiency, 3))
            .collect()
    }

    fn compared(own: &[GradeRecord], other: &[GradeRecord]) -> Vec<GroupDifference> {
        let (own, other): (Vec<_>, Vec<_>) = (own.iter().collect(), other.iter().collect());
        let measures = [TaskMeasure::ChecksPassed, TaskMeasure::ToolEfficiency];
        let mut found =
            measures.map(|measure| GroupDifference::compare(measure, &own, &other, RULE));
        GroupDifference::correct_and_decide(&mut found, RULE);
        found.into()
    }

    #[test]
    fn both_ways_beyond_chance_and_nothing_else() {
        let verdicts = |own: &[GradeRecord], other: &[GradeRecord]| {
            compared(own, other).iter().map(|one| one.verdict).collect::<Vec<_>>()
        };
        let before = tasks(40, 20, 3);
        assert_eq!(
            verdicts(&tasks(20, 19, 4), &before),
            [DifferenceVerdict::Up, DifferenceVerdict::Up]
        );
        assert_eq!(
            verdicts(&tasks(20, 1, 2), &before),
            [DifferenceVerdict::Down, DifferenceVerdict::Down]
        );
        assert_eq!(verdicts(&tasks(20, 12, 3), &before), [DifferenceVerdict::WithinChance; 2]);
        assert_eq!(verdicts(&tasks(9, 0, 1), &before), [DifferenceVerdict::NotTested; 2]);
        assert_eq!(verdicts(&[], &before), [DifferenceVerdict::NotTested; 2]);
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
