//! Tests if this week is significantly worse than the weeks before it. Sends nothing.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::share::{mean, ratio, rounded, saturated};
use super::{GradeRecord, TaskOutcome};
use selftest_stats::{TestTail, fisher_exact, holm, mann_whitney};

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
    use crate::grade::fixture::record;
    use crate::grade::{ErrorClass, TaskType};

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
