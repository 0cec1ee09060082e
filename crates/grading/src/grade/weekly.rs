//! The weekly report and its summary numbers (docs/spec/session-grades.md#weekly-report). A pure
//! function turns records into the document that is stored in `weekly_reports.report_json` and
//! rendered elsewhere.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::breakdown::TaskBreakdown;
use super::difference::SignificanceRule;
use super::findings::{TypeFinding, type_findings};
use super::notable::{NotableEvent, notable_events};
use super::share::{Proportion, mean, ratio, rounded, total};
use super::spending::CostSummary;
use super::{
    AlertSettings, Alerts, ErrorFindings, GradePatterns, GradeRecord, GroupDifference, SessionKind,
    StateName, SuggestionRules, Suggestions, TaskMeasure, TaskOutcome, Week, patterns,
};
use selftest_models::prices::ModelPrices;

/// Number of weeks in the charts, including this one.
const HISTORY_WEEKS: u8 = 12;
/// Number of previous weeks to compare with.
const COMPARED_WEEKS: u8 = 4;

/// Counts of the files behind a report.
///
/// With a scan, they cover the files of that scan, whatever week their sessions belong to. Without
/// a scan, they cover all files ever read. Counts are files unless stated otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScanCoverage {
    /// True if a scan was made for this report.
    pub scanned: bool,
    /// Files that could contain sessions. Without a scan, the files known to the database, some of
    /// which may no longer exist.
    pub found: u64,
    /// Files read.
    pub read: u64,
    /// Sessions graded.
    pub graded: u64,
    /// Files with too little content to grade.
    pub not_gradable: u64,
    /// Files unchanged since they were last read; 0 without a scan.
    pub unchanged: u64,
    /// Files outside the scope of this scan: too old, of another agent, or still being written.
    pub left_out: u64,
    /// Files that could not be read.
    pub unreadable: u64,
    /// Files without a session.
    pub no_session: u64,
    /// Files whose session is also in another file.
    pub duplicate: u64,
    /// Graded sessions in the database after the scan, including those of earlier scans.
    pub stored: u64,
    /// Stored sessions without a date, which belong to no week.
    #[serde(default)]
    pub undated: u64,
}

/// Numbers of one week.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WeekNumbers {
    /// The week.
    pub week: Week,
    /// Its numbers.
    #[serde(flatten)]
    pub summary: GradeSummary,
}

/// Comparison of this week with the previous four.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WeeklyTrend {
    /// The four weeks, oldest first, including those without sessions.
    pub weeks: Vec<WeekNumbers>,
    /// All their sessions together.
    pub before: GradeSummary,
    /// This week minus `before`.
    pub change: WeeklyChange,
}

/// Differences between two summaries; absent if either side is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WeeklyChange {
    /// Difference of means of 1 to 5.
    pub avg_tool_efficiency: Option<f64>,
    /// Difference of means of 1 to 5.
    pub avg_response_quality: Option<f64>,
    /// Difference of rates of 0.0 to 1.0.
    #[serde(default, alias = "verified")]
    pub checks_passed: Option<f64>,
    /// Difference of rates of 0.0 to 1.0; above 0 is worse.
    #[serde(default)]
    pub contradicted: Option<f64>,
    /// Difference of rates of 0.0 to 1.0.
    pub completion_rate: Option<f64>,
    /// Difference of rates of 0.0 to 1.0.
    pub error_recovery_rate: Option<f64>,
    /// Difference of rates of 0.0 to 1.0; above 0 is worse.
    pub error_rate: Option<f64>,
}

impl WeeklyChange {
    /// Computes the change from `before` to `now`.
    fn between(before: &GradeSummary, now: &GradeSummary) -> Self {
        let less = |number: fn(&GradeSummary) -> Option<f64>| {
            number(now).zip(number(before)).map(|(now, before)| rounded(now - before))
        };
        Self {
            avg_tool_efficiency: less(|summary| summary.avg_tool_efficiency),
            avg_response_quality: less(|summary| summary.avg_response_quality),
            checks_passed: less(|summary| summary.outcomes.checks_passed.rate),
            contradicted: less(|summary| summary.outcomes.contradicted.rate),
            completion_rate: less(|summary| summary.completion_rate.rate),
            error_recovery_rate: less(|summary| summary.error_recovery_rate.rate),
            error_rate: less(|summary| summary.error_rate),
        }
    }
}

/// A value of this week and of the previous four weeks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WeekComparison<T> {
    /// Value of this week.
    pub now: T,
    /// Value of the previous four weeks.
    pub before: T,
}

/// Settings of a weekly report.
#[derive(Debug, Clone, Copy)]
pub struct ReportRules<'a> {
    /// Thresholds for suggestions.
    pub suggestions: &'a SuggestionRules,
    /// Settings for alerts.
    pub alerts: &'a AlertSettings,
    /// Prices of tokens.
    pub prices: &'a ModelPrices,
}

/// The report of one week. Numbers are rounded to six places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WeeklyReport {
    /// The week.
    pub week: Week,
    /// Agent to which the report is limited; absent for all sessions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<String>,
    /// Monday of the week.
    pub week_start: Date,
    /// Sunday of the week.
    pub week_end: Date,
    /// Time of the report. Before the end of the week, the report is partial.
    pub generated_at: Timestamp,
    /// Numbers of files found, read and skipped.
    pub coverage: ScanCoverage,
    /// Summary statistics.
    pub summary: GradeSummary,
    /// Tested comparisons of the week's numbers with the previous four weeks.
    #[serde(default)]
    pub differences: Vec<GroupDifference>,
    /// Causes of failed calls, each with one suggestion.
    #[serde(default)]
    pub findings: ErrorFindings,
    /// Cost of the tasks of the week and of the previous four weeks.
    #[serde(default)]
    pub cost: WeekComparison<CostSummary>,
    /// Splits by project, agent and model, and the contradicted tasks.
    #[serde(default)]
    pub breakdown: TaskBreakdown,
    /// In a week with few tasks, the events worth looking at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notable: Vec<NotableEvent>,
    /// Problem areas, worst first.
    pub problem_areas: GradePatterns,
    /// Suggestions for types of tasks, from outcomes and causes.
    #[serde(default)]
    pub type_findings: Vec<TypeFinding>,
    /// Improvement suggestions by the specification's rules.
    pub suggestions: Suggestions,
    /// Comparison with the previous four weeks.
    pub trend: WeeklyTrend,
    /// Metrics that became significantly worse.
    pub alerts: Alerts,
    /// Up to twelve weeks, oldest first, from the first with a session up to this one.
    pub history: Vec<WeekNumbers>,
}

impl WeeklyReport {
    /// Builds the report of a week.
    ///
    /// `records` contains the week and the weeks before it, in any order, with overrides applied. A
    /// session belongs to the week in which it started. Undated records and records of other weeks
    /// are ignored.
    pub fn build(
        week: Week,
        records: &[GradeRecord],
        coverage: ScanCoverage,
        rules: ReportRules<'_>,
        now: Timestamp,
    ) -> Self {
        let ReportRules { suggestions, alerts, prices } = rules;
        let mut weeks: BTreeMap<Week, Vec<&GradeRecord>> = BTreeMap::new();
        for record in records {
            if let Some(date) = record.started_at() {
                weeks.entry(Week::containing(date)).or_default().push(record);
            }
        }
        let within = |first: Week, last: Week| -> Vec<&GradeRecord> {
            weeks.range(first..=last).flat_map(|(_, records)| records).copied().collect()
        };
        let numbers = |week: Week| WeekNumbers {
            week,
            summary: GradeSummary::from_records(within(week, week)),
        };
        let mut history: Vec<WeekNumbers> =
            (0..HISTORY_WEEKS).rev().map(|weeks| numbers(week.weeks_earlier(weeks))).collect();
        // The weeks before the last, which is this one.
        let trend_weeks = history
            [usize::from(HISTORY_WEEKS - 1 - COMPARED_WEEKS)..usize::from(HISTORY_WEEKS - 1)]
            .to_vec();
        let first = history.iter().position(|week| week.summary.sessions > 0);
        // Leading weeks without sessions are dropped; the current week always stays.
        history.drain(..first.unwrap_or(history.len() - 1));

        let mut current = within(week, week);
        let mut previous = within(week.weeks_earlier(COMPARED_WEEKS), week.weeks_earlier(1));
        let summary = GradeSummary::from_records(current.iter().copied());
        let before = GradeSummary::from_records(previous.iter().copied());
        // Everything below counts only people's tasks.
        current.retain(|record| record.is_task());
        previous.retain(|record| record.is_task());
        let rule = SignificanceRule { alpha: alerts.alpha, min_tasks: alerts.min_sessions.max(1) };
        // All weeks but this one, as the base for what is unusual in it.
        let mut months = within(week.weeks_earlier(HISTORY_WEEKS - 1), week.weeks_earlier(1));
        months.retain(|record| record.is_task());
        let newest_first = patterns::newest_first(current.iter().copied());
        let findings = ErrorFindings::compare(&newest_first, &previous, rule);
        Self {
            week,
            agent: None,
            week_start: week.first_day(),
            week_end: week.last_day(),
            generated_at: now,
            coverage,
            summary,
            differences: differences(&current, &previous, rule),
            cost: WeekComparison {
                now: CostSummary::from_tasks(&current, prices),
                before: CostSummary::from_tasks(&previous, prices),
            },
            notable: notable_events(&current, &months, prices),
            breakdown: TaskBreakdown::from_tasks(&newest_first, rule, prices),
            problem_areas: GradePatterns::from_records(current.iter().copied()),
            type_findings: type_findings(&newest_first),
            suggestions: Suggestions::from_records(current.iter().copied(), suggestions)
                .mark_covered_by(&findings),
            findings,
            trend: WeeklyTrend {
                weeks: trend_weeks,
                before,
                change: WeeklyChange::between(&before, &summary),
            },
            alerts: Alerts::check_all(&current, &previous, alerts),
            history,
        }
    }

    /// Returns true if the week had ended when the report was made.
    pub fn is_complete(&self) -> bool {
        // A report made in its own week changes until Sunday is over.
        Week::containing(self.generated_at) > self.week
    }
}

/// Measures of a week that are tested together.
const MEASURES: [TaskMeasure; 8] = [
    TaskMeasure::ChecksPassed,
    TaskMeasure::Contradicted,
    TaskMeasure::Corrected,
    TaskMeasure::ToolEfficiency,
    TaskMeasure::AnswerQuality,
    TaskMeasure::Recovered,
    TaskMeasure::FailedCalls,
    TaskMeasure::Duration,
];

fn differences(
    now: &[&GradeRecord],
    before: &[&GradeRecord],
    rule: SignificanceRule,
) -> Vec<GroupDifference> {
    let mut found = MEASURES.map(|measure| GroupDifference::compare(measure, now, before, rule));
    // Eight tests at 0.05 would find a difference in one of three weeks that are alike.
    GroupDifference::correct_and_decide(&mut found, rule);
    found.into()
}

/// Outcomes of tasks, each as a share of all tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutcomeShares {
    /// A whole suite of tests, CI, a verifier, or a merge passed the work.
    #[serde(alias = "verified")]
    pub checks_passed: Proportion,
    /// A check or a person found the task not done.
    pub contradicted: Proportion,
    /// Only the agent claims that the task is done.
    pub claimed: Proportion,
    /// There is no evidence either way.
    pub unknown: Proportion,
}

impl OutcomeShares {
    /// Computes the shares over some tasks.
    pub fn from_tasks(tasks: &[&GradeRecord]) -> Self {
        let count =
            |wanted: TaskOutcome| tasks.iter().filter(|task| task.outcome == wanted).count() as u64;
        Self::from_counts(count, tasks.len() as u64)
    }

    /// Computes the shares from the number of tasks with each outcome.
    pub(crate) fn from_counts(count: impl Fn(TaskOutcome) -> u64, tasks: u64) -> Self {
        let share = |outcome| Proportion::new(count(outcome), tasks);
        Self {
            checks_passed: share(TaskOutcome::ChecksPassed),
            contradicted: share(TaskOutcome::Contradicted),
            claimed: share(TaskOutcome::Claimed),
            unknown: share(TaskOutcome::Unknown),
        }
    }
}

/// Tasks that no check decided, although tests were started: how the last of them ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UndecidedTests {
    /// Tests failed, as they may have before the task.
    pub failed: u64,
    /// Tests could not run, or ran none.
    pub not_run: u64,
}

impl UndecidedTests {
    fn from_tasks(tasks: &[&GradeRecord]) -> Self {
        let undecided = |task: &&&GradeRecord| {
            matches!(task.outcome, TaskOutcome::Claimed | TaskOutcome::Unknown)
        };
        let count = |wanted: &[StateName]| {
            let of = tasks.iter().filter(undecided);
            of.filter(|task| wanted.contains(&task.details.state.name())).count() as u64
        };
        Self {
            failed: count(&[StateName::TestsFailed]),
            not_run: count(&[StateName::CouldNotRun, StateName::NoneRan]),
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Numbers of sessions that are not a person's task, by kind. Rates exclude them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExcludedSessions {
    /// Sessions of subagents.
    pub subagents: u64,
    /// Warm-ups of the agent's program.
    pub warm_ups: u64,
    /// Sessions started by a schedule.
    pub automatic: u64,
}

impl ExcludedSessions {
    /// Returns the total.
    pub fn total(self) -> u64 {
        self.subagents + self.warm_ups + self.automatic
    }
}

/// Duration of tasks, including pauses of the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskDurations {
    /// Number of tasks with timestamps.
    pub tasks: u64,
    /// Total duration in seconds.
    pub seconds: f64,
    /// Median duration of a task in seconds; absent without tasks.
    pub median: Option<f64>,
}

impl TaskDurations {
    /// Computes the durations of these tasks.
    pub fn from_tasks(tasks: &[&GradeRecord]) -> Self {
        // Durations come from untrusted files.
        let sound = |seconds: &f64| seconds.is_finite() && *seconds >= 0.0;
        let seconds: Vec<f64> =
            tasks.iter().filter_map(|task| task.duration_seconds).filter(sound).collect();
        Self {
            tasks: seconds.len() as u64,
            seconds: rounded(seconds.iter().sum()),
            median: selftest_stats::median(&seconds).map(rounded),
        }
    }
}

/// Totals, rates and means over sessions that are a person's task. A rate or mean is absent if
/// there is nothing to count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct GradeSummary {
    /// Number of graded sessions.
    pub sessions: u64,
    /// Mean of `tool_calls_efficient`, 1 to 5.
    pub avg_tool_efficiency: Option<f64>,
    /// Mean of `response_quality`, 1 to 5.
    pub avg_response_quality: Option<f64>,
    /// Outcomes of the tasks.
    #[serde(default)]
    pub outcomes: OutcomeShares,
    /// Tests of tasks that no check decided.
    #[serde(default, skip_serializing_if = "UndecidedTests::is_empty")]
    pub undecided_tests: UndecidedTests,
    /// Sessions that are not a person's task, counted separately.
    #[serde(default)]
    pub not_tasks: ExcludedSessions,
    /// Number of times that people objected to an agent's work or stopped it.
    #[serde(default)]
    pub corrections: u64,
    /// Share of tasks in which they did.
    #[serde(default)]
    pub corrected: Proportion,
    /// Number of times that people took a conversation back to an earlier message.
    #[serde(default)]
    pub rewinds: u64,
    /// Duration from the first to the last timestamp, over tasks with both.
    #[serde(default)]
    pub time: TaskDurations,
    /// Share of tasks that appear to have been completed.
    pub completion_rate: Proportion,
    /// Share of sessions that recovered, among those with errors.
    pub error_recovery_rate: Proportion,
    /// Number of tool calls, including results without a recorded call.
    pub tool_calls: u64,
    /// Number of failed calls.
    pub errors: u64,
    /// `errors / tool_calls`, 0.0 to 1.0.
    pub error_rate: Option<f64>,
}

impl GradeSummary {
    /// Summarizes some records.
    pub fn from_records<'a>(records: impl IntoIterator<Item = &'a GradeRecord>) -> Self {
        // Rates count people's tasks only: eleven warm-ups are no eleven successes.
        let (records, others): (Vec<&GradeRecord>, Vec<&GradeRecord>) =
            records.into_iter().partition(|record| record.is_task());
        let of_kind =
            |kind| others.iter().filter(|record| record.session_kind == kind).count() as u64;
        let count = |wanted: fn(&GradeRecord) -> bool| {
            records.iter().filter(|record| wanted(record)).count() as u64
        };
        let sessions = records.len() as u64;
        let tool_calls = total(records.iter().map(|record| record.details.calls_of_tools()));
        let errors = total(records.iter().map(|record| record.total_errors));
        let efficiency = records.iter().map(|record| f64::from(record.tool_calls_efficient.get()));
        let quality = records.iter().map(|record| f64::from(record.response_quality.get()));
        Self {
            sessions,
            avg_tool_efficiency: mean(efficiency),
            avg_response_quality: mean(quality),
            outcomes: OutcomeShares::from_tasks(&records),
            undecided_tests: UndecidedTests::from_tasks(&records),
            not_tasks: ExcludedSessions {
                subagents: of_kind(SessionKind::Subagent),
                warm_ups: of_kind(SessionKind::WarmUp),
                automatic: of_kind(SessionKind::Automatic),
            },
            corrections: total(records.iter().map(|record| record.details.corrections)),
            corrected: Proportion::new(count(|record| record.details.corrections > 0), sessions),
            rewinds: total(records.iter().map(|record| record.details.rewinds)),
            time: TaskDurations::from_tasks(&records),
            completion_rate: Proportion::new(count(|record| record.task_completed), sessions),
            error_recovery_rate: Proportion::new(
                count(|record| record.total_errors > 0 && record.errors_recovered),
                count(|record| record.total_errors > 0),
            ),
            tool_calls,
            errors,
            error_rate: ratio(errors, tool_calls),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::AlertMetric;
    use crate::grade::fixture::two_months;

    fn report(week: &str, records: &[GradeRecord]) -> WeeklyReport {
        WeeklyReport::build(
            week.parse().unwrap(),
            records,
            ScanCoverage::default(),
            ReportRules {
                suggestions: &SuggestionRules::default(),
                alerts: &AlertSettings::default(),
                prices: &ModelPrices::default(),
            },
            "2026-11-22T12:00:00Z".parse().unwrap(),
        )
    }

    #[test]
    fn a_week_against_the_four_before_it() {
        let report = report("2026-W47", &two_months());
        assert_eq!(report.week_start.to_string(), "2026-11-16");
        assert_eq!(report.week_end.to_string(), "2026-11-22");
        assert!(!report.is_complete());
        let sessions: Vec<u64> =
            report.trend.weeks.iter().map(|week| week.summary.sessions).collect();
        assert_eq!(sessions, [13, 14, 0, 15]);
        assert_eq!(report.trend.weeks[2].summary.completion_rate.rate, None);
        assert_eq!(report.trend.before.sessions, 42);
        assert_eq!(report.summary.completion_rate.count, 7);
        assert_eq!(report.trend.change.completion_rate, Some(-0.345_238));
        let weeks: Vec<String> = report.history.iter().map(|week| week.week.to_string()).collect();
        assert_eq!(weeks.len(), 8);
        assert_eq!((weeks[0].as_str(), weeks[7].as_str()), ("2026-W40", "2026-W47"));
        let raised: Vec<AlertMetric> = report.alerts.raised().map(|alert| alert.metric).collect();
        let all = [
            AlertMetric::ChecksPassed,
            AlertMetric::Contradicted,
            AlertMetric::ToolEfficiency,
            AlertMetric::ErrorRate,
        ];
        assert_eq!(raised, all);
    }

    #[test]
    fn what_is_stored_is_what_is_read() {
        let report = report("2026-W47", &two_months());
        let json = serde_json::to_string(&report).unwrap();
        assert!(json.starts_with(
            r#"{"week":"2026-W47","week_start":"2026-11-16","week_end":"2026-11-22""#
        ));
        assert_eq!(serde_json::from_str::<WeeklyReport>(&json).unwrap(), report);
    }

    #[test]
    fn absurd_counts_do_not_overflow() {
        let mut records = two_months();
        for record in &mut records {
            record.total_errors = u64::MAX;
            record.details.tool_calls = u64::MAX;
            record.details.tools.values_mut().for_each(|used| used.calls = u64::MAX);
            record.details.errors.iter_mut().for_each(|error| error.count = u64::MAX);
        }
        let report = report("2026-W47", &records);
        assert_eq!((report.summary.errors, report.summary.error_rate), (u64::MAX, Some(1.0)));
    }

    #[test]
    fn a_week_without_sessions_has_no_rates() {
        let report = report("2026-W45", &two_months());
        assert_eq!(report.summary, GradeSummary::default());
        assert_eq!(report.summary.completion_rate.rate, None);
        assert!(report.suggestions.too_few_sessions);
        assert_eq!(report.history.len(), 6);
        let empty = self::report("2026-W47", &[]);
        assert_eq!(empty.history.len(), 1);
        assert_eq!(empty.trend.change, WeeklyChange::default());
    }
}
