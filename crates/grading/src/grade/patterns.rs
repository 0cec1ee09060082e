//! Recurring problems (docs/spec/session-grades.md#patterns) by task type, tool and error class.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::share::{Proportion, TruncatedList};
use super::{ErrorCause, ErrorClass, GradeLevel, GradeRecord, OutcomeShares, TaskType};

/// Maximum number of sessions and tools listed as examples.
pub(super) const MAX_EXAMPLES: usize = 10;

/// Patterns of a set of sessions, worst first. Lists are bounded and record how much they leave
/// out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GradePatterns {
    /// Number of sessions examined.
    pub sessions: u64,
    /// Task types that occurred, lowest score first.
    pub task_types: Vec<TaskTypePattern>,
    /// Tools that were called, most errors first.
    pub tools: TruncatedList<ToolPattern>,
    /// Error classes that occurred, most frequent first.
    pub error_classes: Vec<ErrorClassPattern>,
    /// The same errors by cause, most frequent first.
    #[serde(default)]
    pub error_causes: Vec<ErrorCausePattern>,
    /// The same errors by cause, tool and message pattern, most frequent first.
    pub clusters: TruncatedList<ErrorCluster>,
}

/// Results of the sessions of one task type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskTypePattern {
    /// The task type.
    pub task_type: TaskType,
    /// Number of sessions.
    pub sessions: u64,
    /// Outcomes of the tasks.
    #[serde(default)]
    pub outcomes: OutcomeShares,
    /// Share of sessions that appear completed.
    pub completion_rate: Proportion,
    /// Mean of `tool_calls_efficient`, 1 to 5.
    pub avg_tool_efficiency: f64,
    /// Mean of `response_quality`, 1 to 5.
    pub avg_response_quality: f64,
    /// Mean of [`session_score`], 1 to 5.
    pub score: f64,
}

/// Usage of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolPattern {
    /// Name of the tool, as agents call it.
    pub tool: String,
    /// Number of calls, including results without a recorded call.
    pub calls: u64,
    /// Number of failed calls.
    pub errors: u64,
    /// `errors / calls`; absent without calls.
    pub error_rate: Option<f64>,
    /// Number of sessions that called it.
    pub sessions: u64,
    /// Number of sessions in which it failed.
    pub sessions_with_errors: u64,
}

/// Frequency of an error cause, with advice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorCausePattern {
    /// The cause.
    pub cause: ErrorCause,
    /// Number of errors.
    pub count: u64,
    /// Share of all errors.
    pub share: f64,
    /// Advice for fixing it; absent if the cause is too vague.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Example message from the newest session.
    pub example: String,
    /// IDs of the affected sessions, newest first.
    pub sessions: TruncatedList<String>,
    /// Requests of these sessions, in the same order.
    pub titles: Vec<String>,
    /// Affected tools, most frequent first.
    pub tools: TruncatedList<String>,
}

/// Frequency of an error class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorClassPattern {
    /// The class.
    pub class: ErrorClass,
    /// Number of errors.
    pub count: u64,
    /// Share of all errors.
    pub share: f64,
    /// Number of affected sessions.
    pub sessions: u64,
    /// Affected tools, most frequent first.
    pub tools: TruncatedList<String>,
}

/// Errors with the same cause and pattern from one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorCluster {
    /// Class of the errors.
    pub class: ErrorClass,
    /// Cause of the errors.
    #[serde(default)]
    pub cause: ErrorCause,
    /// Pattern of the messages.
    #[serde(default)]
    pub template: String,
    /// Name of the tool.
    pub tool: String,
    /// Number of errors.
    pub count: u64,
    /// Example message from the newest session.
    pub example: String,
    /// Requests of `sessions`, in the same order.
    #[serde(default)]
    pub titles: Vec<String>,
    /// IDs of the sessions, newest first.
    pub sessions: TruncatedList<String>,
}

/// Returns a session's score, 1.0 to 5.0, for the means of task types
/// (docs/spec/session-grades.md#patterns).
///
/// The specification gives no formula. This is the mean of efficiency, quality and completion, with
/// completed as 5 and not completed as 1.
pub fn session_score(record: &GradeRecord) -> f64 {
    compute_score(record.tool_calls_efficient, record.response_quality, record.task_completed)
}

/// Computes [`session_score`] from its parts.
pub fn compute_score(efficiency: GradeLevel, quality: GradeLevel, is_completed: bool) -> f64 {
    let completion = if is_completed { 5 } else { 1 };
    f64::from(efficiency.get() + quality.get() + completion) / 3.0
}

impl GradePatterns {
    /// Returns the tools with errors, most errors first.
    pub fn tools_with_errors(&self) -> impl Iterator<Item = &ToolPattern> {
        self.tools.items.iter().filter(|tool| tool.errors > 0)
    }
}

/// Returns the records that are tasks, newest first.
pub(super) fn newest_first<'a>(
    records: impl IntoIterator<Item = &'a GradeRecord>,
) -> Vec<&'a GradeRecord> {
    let tasks = records.into_iter().filter(|record| record.is_task());
    let mut records: Vec<&GradeRecord> = tasks.collect();
    // Equal times are ordered by id, so that the same records give the same report.
    records.sort_by_key(|record| (Reverse(record.details.counts_at), &record.session_id));
    records
}

/// Lists the IDs of matching records in their order, up to the limit.
pub(super) fn matching_sessions(
    records: &[&GradeRecord],
    wanted: impl Fn(&GradeRecord) -> bool,
) -> TruncatedList<String> {
    let ids = records.iter().filter(|record| wanted(record));
    TruncatedList::new(ids.map(|record| record.session_id.clone()).collect(), MAX_EXAMPLES)
}

/// Returns the requests of the listed sessions, in the same order.
pub(super) fn session_titles(
    records: &[&GradeRecord],
    list: &TruncatedList<String>,
) -> Vec<String> {
    let title = |id: &String| {
        let record = records.iter().find(|record| record.session_id == *id);
        record.and_then(|record| record.task_summary.clone()).unwrap_or_default()
    };
    list.items.iter().map(title).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::fixture::record;

    #[test]
    fn task_types_worst_first_with_the_documented_score() {
        let records = [
            record("a", TaskType::CodeReview, true, 5, 4),
            record("b", TaskType::Debugging, false, 2, 3),
            record("c", TaskType::Debugging, true, 3, 3),
        ];
        let found = GradePatterns::from_records(&records);
        let types: Vec<_> = found
            .task_types
            .iter()
            .map(|pattern| (pattern.task_type, pattern.sessions, pattern.score))
            .collect();
        // (2 + 3 + 1) / 3 = 2, (3 + 3 + 5) / 3 = 3.67; (5 + 4 + 5) / 3 = 4.67.
        assert_eq!(
            types,
            [(TaskType::Debugging, 2, 2.833_333), (TaskType::CodeReview, 1, 4.666_667)]
        );
        assert_eq!(found.task_types[0].completion_rate, Proportion::new(1, 2));
        assert_eq!(found.task_types[0].avg_tool_efficiency, 2.5);
    }

    #[test]
    fn tools_classes_and_clusters_are_counted() {
        let records = [
            record("old", TaskType::General, true, 3, 3)
                .used("bash", 10)
                .failed("bash", ErrorClass::Timeout, 2, "old words")
                .at("2026-11-16T00:00:00Z"),
            record("new", TaskType::General, true, 3, 3)
                .used("bash", 5)
                .used("read", 5)
                .failed("bash", ErrorClass::Timeout, 1, "new words")
                .failed("read", ErrorClass::FileNotFound, 1, "no file")
                .at("2026-11-17T00:00:00Z"),
        ];
        let found = GradePatterns::from_records(&records);
        let bash = &found.tools.items[0];
        assert_eq!((bash.calls, bash.errors, bash.sessions), (18, 3, 2));
        assert_eq!(bash.error_rate, Some(0.166_667));
        let timeout = &found.error_classes[0];
        assert_eq!((timeout.class, timeout.count, timeout.sessions), (ErrorClass::Timeout, 3, 2));
        assert_eq!(
            (timeout.share, timeout.tools.items.as_slice()),
            (0.75, &["bash".to_owned()][..])
        );
        let cluster = &found.clusters.items[0];
        assert_eq!((cluster.count, cluster.example.as_str()), (3, "new words"));
        assert_eq!(cluster.sessions.items, ["new", "old"]);
        let reversed = GradePatterns::from_records(records.iter().rev());
        assert_eq!(reversed, found);
    }

    #[test]
    fn no_more_than_all_calls_of_a_tool_fail() {
        let mut old = record("a", TaskType::General, true, 3, 3).used("read", 30);
        old = old.failed("terminal", ErrorClass::CommandFailed, 10, "exit code 1");
        // What earlier versions kept of results without calls.
        old.details.tools.get_mut("terminal").unwrap().calls = 0;
        old.details.tool_calls = 30;
        let terminal = &GradePatterns::from_records([&old]).tools.items[0];
        assert_eq!((terminal.calls, terminal.error_rate), (10, Some(1.0)));
        let summary = crate::grade::GradeSummary::from_records([&old]);
        assert_eq!((summary.tool_calls, summary.error_rate), (40, Some(0.25)));
    }

    #[test]
    fn lists_are_bounded() {
        let mut one = record("a", TaskType::General, true, 3, 3);
        for number in 0..90 {
            one = one.failed(&format!("tool{number:02}"), ErrorClass::Unknown, 1, "x");
        }
        let found = GradePatterns::from_records(&[one]);
        assert_eq!((found.tools.items.len(), found.tools.left_out), (20, 70));
        assert_eq!((found.clusters.items.len(), found.clusters.left_out), (20, 70));
        assert_eq!(found.error_classes[0].tools.total(), 90);
        assert_eq!(GradePatterns::from_records(&[]), GradePatterns::default());
    }
}
