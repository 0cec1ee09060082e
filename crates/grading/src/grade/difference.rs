//! Tests two groups of tasks for significant differences, and this week for being significantly worse
//! than the weeks before it. Sends nothing.
//!
//! Tests of groups are two-sided, because owners care about improvements as well as regressions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
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
                // A task without errors has nothing to recover from, so it is not in the
                // denominator.
                let erring = tasks.iter().filter(|task| task.total_errors > 0);
                let recovered = erring.clone().filter(|task| task.errors_recovered).count();
                MeasureValues::Share(recovered as u64, erring.count() as u64)
            }
            TaskMeasure::ToolEfficiency => {
                each(|task| Some(task.tool_calls_efficient.get().into()))
            }
            TaskMeasure::AnswerQuality => each(|task| Some(task.response_quality.get().into())),
            TaskMeasure::FailedCalls => {
                // Per task, so that one session of a thousand calls does not decide for a week.
                each(|task| ratio(task.total_errors, task.details.calls_of_tools()))
            }
            TaskMeasure::Duration => each(|task| task.duration_seconds),
            // Which cause is not part of a task; `findings.rs` counts it and calls
            // `compare_shares`.
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
            // `Some` compares above `None`, but a tested pair has both values.
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
    // Twice the smaller tail is the usual two-sided p-value of an exact test; it may exceed 1.
    let smaller = p(TestTail::Less)?.min(p(TestTail::Greater)?);
    Some((2.0 * smaller).min(1.0))
}

/// Settings for raising and delivering alerts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AlertSettings {
    /// Probability of a false alarm across the tests of a report.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub alpha: f64,
    /// Minimum number of sessions on each side of a test.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_sessions: u64,
    /// Program and arguments that receive the alerts. Absent: no program is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
    /// URL that the alerts are posted to. Absent: nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub webhook: Option<String>,
}

impl Default for AlertSettings {
    fn default() -> Self {
        Self { alpha: 0.05, min_sessions: 10, command: None, webhook: None }
    }
}

/// A metric watched by alerts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertMetric {
    /// Share of tasks whose checks passed: a whole suite of tests, CI, a merge or a verifier.
    #[serde(alias = "verified")]
    ChecksPassed,
    /// Share of tasks that a check or a person found not done.
    Contradicted,
    /// Share of sessions that appear to have completed their task. Only in reports of earlier
    /// versions.
    CompletionRate,
    /// `tool_calls_efficient` of a session, 1 to 5.
    ToolEfficiency,
    /// Errors per tool call of a session. Sessions without calls are excluded.
    ErrorRate,
}

/// Comparison of a metric with its own history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// The metric.
    pub metric: AlertMetric,
    /// Value of this week: a rate of 0.0 to 1.0, or a mean over sessions. Absent without sessions.
    pub now: Option<f64>,
    /// Value of the previous four weeks, pooled.
    pub before: Option<f64>,
    /// Number of sessions counted this week.
    pub n_now: u64,
    /// Number of sessions counted in the previous four weeks.
    pub n_before: u64,
    /// Name of the statistical test.
    pub test: String,
    /// Probability of a difference at least this large if nothing had become worse. Absent if there
    /// were too few sessions for a test.
    pub p: Option<f64>,
    /// `p` after Holm's correction for the tests made together.
    pub p_corrected: Option<f64>,
    /// True if the metric is significantly worse: `p_corrected < alpha`.
    pub raised: bool,
}

/// Checks of all watched metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alerts {
    /// Accepted probability of a false alarm.
    pub alpha: f64,
    /// Minimum number of sessions on each side of a test.
    pub min_sessions: u64,
    /// One check per metric.
    pub checks: Vec<Alert>,
    /// Raised metrics already delivered, by the key of each receiver.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub delivered_to: BTreeMap<String, Vec<AlertMetric>>,
}

impl Alerts {
    /// Compares this week's records with those of the previous four weeks.
    pub fn check_all(
        now: &[&GradeRecord],
        before: &[&GradeRecord],
        settings: &AlertSettings,
    ) -> Self {
        let efficiency = |records: &[&GradeRecord]| -> Vec<f64> {
            records.iter().map(|record| record.tool_calls_efficient.get().into()).collect()
        };
        let error_rates = |records: &[&GradeRecord]| -> Vec<f64> {
            let rates = records.iter();
            // A session without calls has no rate, which is not a rate of 0.
            rates.filter_map(|one| ratio(one.total_errors, one.details.calls_of_tools())).collect()
        };
        let mut alerts = Self {
            alpha: settings.alpha,
            min_sessions: settings.min_sessions.max(1),
            checks: Vec::new(),
            delivered_to: BTreeMap::new(),
        };
        alerts.check_outcome(
            AlertMetric::ChecksPassed,
            TaskOutcome::ChecksPassed,
            TestTail::Less,
            [now, before],
        );
        let (contradicted, tail) = (TaskOutcome::Contradicted, TestTail::Greater);
        // The tails point to what is worse: an alert for good news would be switched off.
        alerts.check_outcome(AlertMetric::Contradicted, contradicted, tail, [now, before]);
        let ranks = "Mann-Whitney rank test, one-sided";
        for (metric, tail, values) in [
            (AlertMetric::ToolEfficiency, TestTail::Less, [efficiency(now), efficiency(before)]),
            (AlertMetric::ErrorRate, TestTail::Greater, [error_rates(now), error_rates(before)]),
        ] {
            let [now, before] = &values;
            let means = values.each_ref().map(|values| mean(values.iter().copied()));
            let counts = values.each_ref().map(|values| values.len() as u64);
            alerts.check(metric, means, counts, ranks, || mann_whitney(now, before, tail));
        }
        alerts.correct_and_raise();
        alerts
    }

    /// Returns the metrics that are significantly worse.
    pub fn raised(&self) -> impl Iterator<Item = &Alert> {
        self.checks.iter().filter(|check| check.raised)
    }

    /// Checks the share of an outcome among all tasks.
    fn check_outcome(
        &mut self,
        metric: AlertMetric,
        outcome: TaskOutcome,
        tail: TestTail,
        sides: [&[&GradeRecord]; 2],
    ) {
        let counts = sides.map(|records| {
            let of_it = records.iter().filter(|record| record.outcome == outcome).count() as u64;
            [of_it, records.len() as u64 - of_it]
        });
        let n = counts.map(|[of_it, not]| of_it + not);
        let rates = [0, 1].map(|side| ratio(counts[side][0], n[side]));
        self.check(metric, rates, n, "Fisher's exact test, one-sided", || {
            fisher_exact(counts.map(|row| row.map(saturated)), tail)
        });
    }

    fn check(
        &mut self,
        metric: AlertMetric,
        [now, before]: [Option<f64>; 2],
        [n_now, n_before]: [u64; 2],
        test: &str,
        p: impl FnOnce() -> Option<f64>,
    ) {
        let enough = n_now.min(n_before) >= self.min_sessions;
        self.checks.push(Alert {
            metric,
            now,
            before,
            n_now,
            n_before,
            test: test.to_owned(),
            p: if enough { p() } else { None },
            p_corrected: None,
            raised: false,
        });
    }

    /// Corrects the p-values for multiple tests and compares them with alpha.
    fn correct_and_raise(&mut self) {
        // Only tests that were made count in the correction.
        let made: Vec<f64> = self.checks.iter().filter_map(|check| check.p).collect();
        // `holm` returns the values in the order of `made`, so both sides of the zip agree.
        let tested = self.checks.iter_mut().filter(|check| check.p.is_some());
        for (check, corrected) in tested.zip(holm(&made)) {
            check.raised = corrected < self.alpha;
            check.p_corrected = Some(rounded(corrected));
            check.p = check.p.map(rounded);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::TaskType;
    use crate::grade::fixture::record;

    use super::super::ErrorClass;

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

    /// So many sessions, the first of them completed; errors in 10 calls of each.
    fn sessions(count: usize, completed: usize, efficiency: u8, errors: u64) -> Vec<GradeRecord> {
        (0..count)
            .map(|number| {
                record(&number.to_string(), TaskType::General, number < completed, efficiency, 3)
                    .used("bash", 10 - errors)
                    .failed("bash", ErrorClass::Unknown, errors, "")
            })
            .collect()
    }

    fn check(now: &[GradeRecord], before: &[GradeRecord]) -> Alerts {
        let (now, before): (Vec<_>, Vec<_>) = (now.iter().collect(), before.iter().collect());
        Alerts::check_all(&now, &before, &AlertSettings::default())
    }

    fn raised(alerts: &Alerts) -> Vec<AlertMetric> {
        alerts.raised().map(|alert| alert.metric).collect()
    }

    #[test]
    fn what_is_worse_is_found_and_what_is_better_is_not() {
        let before = sessions(40, 36, 4, 1);
        assert!(raised(&check(&before, &before)).is_empty());
        assert!(raised(&check(&sessions(12, 12, 5, 0), &before)).is_empty());
        let fewer_done = check(&sessions(12, 4, 4, 1), &before);
        assert_eq!(raised(&fewer_done), [AlertMetric::ChecksPassed, AlertMetric::Contradicted]);
        let alert = fewer_done.raised().next().unwrap();
        assert_eq!((alert.now, alert.before), (Some(0.333_333), Some(0.9)));
        assert_eq!((alert.n_now, alert.n_before), (12, 40));
        // Fisher's p is 0.000244, four tests were made.
        assert!(alert.p_corrected.unwrap() > 2.9 * alert.p.unwrap(), "{alert:?}");
        let worse = check(&sessions(12, 11, 3, 2), &before);
        assert_eq!(raised(&worse), [AlertMetric::ToolEfficiency, AlertMetric::ErrorRate]);
    }

    #[test]
    fn one_bad_session_more_is_chance() {
        let alerts = check(&sessions(12, 9, 4, 1), &sessions(40, 36, 4, 1));
        assert!(raised(&alerts).is_empty());
        assert!(alerts.checks.iter().all(|check| check.p.is_some()));
    }

    #[test]
    fn too_few_sessions_are_not_tested() {
        let alerts = check(&sessions(9, 0, 1, 9), &sessions(40, 40, 5, 0));
        assert!(alerts.checks.iter().all(|check| check.p.is_none() && !check.raised));
        let idle: Vec<GradeRecord> =
            (0..20).map(|id| record(&id.to_string(), TaskType::General, true, 3, 3)).collect();
        let alerts = check(&idle, &sessions(40, 40, 3, 0));
        let [_, _, efficiency, errors] = &alerts.checks[..] else { panic!("{alerts:?}") };
        assert!(efficiency.p.is_some());
        assert_eq!((errors.now, errors.n_now, errors.p), (None, 0, None));
        assert!(check(&[], &[]).raised().next().is_none());
    }
}
