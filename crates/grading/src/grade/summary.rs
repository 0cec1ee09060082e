//! Summary numbers over many grades (docs/spec/session-grades.md#weekly-report).

use serde::{Deserialize, Serialize};

use super::share::{Proportion, mean, ratio, rounded, total};
use super::{GradeRecord, SessionKind, TaskOutcome};

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
        let mut seconds: Vec<f64> =
            tasks.iter().filter_map(|task| task.duration_seconds).filter(sound).collect();
        seconds.sort_by(f64::total_cmp);
        let (low, high) = (seconds.len().saturating_sub(1) / 2, seconds.len() / 2);
        let median = seconds.get(low).zip(seconds.get(high)).map(|(a, b)| f64::midpoint(*a, *b));
        Self {
            tasks: seconds.len() as u64,
            seconds: rounded(seconds.iter().sum()),
            median: median.map(rounded),
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
