//! The numbers of many grades (docs/spec/session-grades.md#weekly-report).

use serde::{Deserialize, Serialize};

use super::GradeRecord;
use super::share::{Share, mean, ratio, total};

/// Totals, rates and means over some sessions. A rate or mean is absent where there is nothing
/// to count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct GradeSummary {
    /// Graded sessions.
    pub sessions: u64,
    /// Mean of `tool_calls_efficient`, 1 to 5.
    pub avg_tool_efficiency: Option<f64>,
    /// Mean of `response_quality`, 1 to 5.
    pub avg_response_quality: Option<f64>,
    /// Sessions that completed their task.
    pub completion_rate: Share,
    /// Sessions that recovered, among those with errors.
    pub error_recovery_rate: Share,
    /// Calls of tools, results without a recorded call among them.
    pub tool_calls: u64,
    /// Of them failed.
    pub errors: u64,
    /// `errors / tool_calls`, 0.0 to 1.0.
    pub error_rate: Option<f64>,
}

impl GradeSummary {
    /// The summary of some records.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a GradeRecord>) -> Self {
        let records: Vec<&GradeRecord> = records.into_iter().collect();
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
            completion_rate: Share::new(count(|record| record.task_completed), sessions),
            error_recovery_rate: Share::new(
                count(|record| record.total_errors > 0 && record.errors_recovered),
                count(|record| record.total_errors > 0),
            ),
            tool_calls,
            errors,
            error_rate: ratio(errors, tool_calls),
        }
    }
}
