//! A stored grade: the columns of `session_grades` (docs/spec/session-grades.md#session_grades), the
//! details behind them, its level from 1 to 5, and the kind of the session.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use super::beside::TaskResult;
use super::share::total;
use super::spending::ModelTokens;
use super::{
    ElsewhereResult, ErrorCause, ErrorClass, OutcomeEvidence, OutcomeSign, OutcomeState,
    ResultSource, TaskOutcome, TaskType,
};
use selftest_sessions::SessionHead;

/// A graded session. The fields up to `had_user_clarification` are the specification's columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "they are the specification's columns")]
pub struct GradeRecord {
    /// Unique ID of the session.
    pub session_id: String,
    /// Path of the session file.
    pub session_file: String,
    /// Time of grading.
    pub graded_at: Timestamp,
    /// True if the task appears to have been completed.
    pub task_completed: bool,
    /// Efficiency of tool use.
    pub tool_calls_efficient: GradeLevel,
    /// Quality of the final response.
    pub response_quality: GradeLevel,
    /// True if the session recovered from its errors, or had none.
    pub errors_recovered: bool,
    /// Number of model calls.
    pub total_api_calls: u64,
    /// Model that answered first.
    pub model: Option<String>,
    /// Platform on which the user worked.
    pub platform: Option<String>,
    /// First timestamp in the session.
    pub session_start: Option<Timestamp>,
    /// Seconds from the first to the last timestamp.
    pub duration_seconds: Option<f64>,
    /// Start of the first request, on one line, with secrets redacted.
    pub task_summary: Option<String>,
    /// Number of failed tool calls.
    pub total_errors: u64,
    /// Classes of the errors, most frequent first.
    pub error_types: Vec<ErrorClass>,
    /// Tools that failed, most frequent first.
    pub tools_with_errors: Vec<String>,
    /// True if there were 3 or more errors in a row.
    pub had_repeated_errors: bool,
    /// True if there were 5 or more errors in a row, or more than 50 calls.
    pub had_infinite_loop_risk: bool,
    /// True if the agent asked the user before continuing.
    pub had_user_clarification: bool,
    /// Outcome of the task according to evidence, not only appearances.
    #[serde(default)]
    pub outcome: TaskOutcome,
    /// Kind of session; only a person's task counts in rates.
    #[serde(default)]
    pub session_kind: SessionKind,
    /// Parent session that started this one or that it continues, if the file names it.
    #[serde(default)]
    pub parent_session: Option<String>,
    /// Facts without a column in the specification.
    pub details: GradeDetails,
}

/// Facts stored as JSON in the nullable column `details_json`. `agent` and `task_type` also have
/// columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GradeDetails {
    /// Agent that recorded the session.
    pub agent: String,
    /// Working folder of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Task type, inferred from the first request.
    pub task_type: TaskType,
    /// Date at which the session counts; absent if it is undated.
    #[serde(default)]
    pub counts_at: Option<Timestamp>,
    /// Number of events with text, of any role.
    pub messages: u64,
    /// Number of tool calls.
    pub tool_calls: u64,
    /// Number of calls that a person or policy refused.
    pub rejected_calls: u64,
    /// Number of calls without a result.
    pub pending_calls: u64,
    /// Calls and errors of each tool.
    pub tools: BTreeMap<String, ToolUse>,
    /// Errors by class and tool.
    pub errors: Vec<ErrorCount>,
    /// Length of the longest run of errors.
    pub longest_error_run: u64,
    /// Input, output and cached tokens.
    pub tokens: selftest_sessions::TokenCounts,
    /// Evidence behind the grades.
    pub evidence: Vec<GradeEvidence>,
    /// Evidence about the end of the task; `outcome` is its summary. Unknown in grades of earlier
    /// versions.
    #[serde(default)]
    pub state: OutcomeState,
    /// State that the session's own events show, where a result from elsewhere outranks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_state: Option<OutcomeState>,
    /// Outcome that the session's own events show, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_outcome: Option<TaskOutcome>,
    /// Evidence for the outcome of the task, the decisive evidence first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcome_evidence: Vec<OutcomeEvidence>,
    /// Results that files beside the session state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<TaskResult>,
    /// Number of times that the person objected to the agent's work or stopped it.
    #[serde(default)]
    pub corrections: u64,
    /// Identity of the session's start. Stored in separate columns.
    #[serde(skip)]
    pub lineage: selftest_sessions::SessionLineage,
    /// Number of times that a person, or a program of theirs, changed what the agent had written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub foreign_edits: u64,
    /// Number of times that the person took the conversation back to an earlier message.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rewinds: u64,
    /// Tokens by model, including subagents in the same file. The cost is computed from these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<ModelTokens>,
    /// The part of `spent` that was copied from another session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copied: Vec<ModelTokens>,
    /// Session from which they were copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_from: Option<String>,
    /// Cost in USD as the agent states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated_cost: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl GradeRecord {
    /// Returns true for a person's task, which is what rates count.
    pub fn is_task(&self) -> bool {
        self.session_kind == SessionKind::Task
    }

    /// Returns the verdict of a verifier in the session's file or beside it. Returns `None` if there is none, or
    /// if it states neither success nor failure.
    pub fn verdict(&self) -> Option<bool> {
        let signs = self.details.outcome_evidence.iter().map(|one| one.sign);
        let beside = self.details.results.iter().filter_map(|one| one.passed);
        let verdicts = signs.filter_map(OutcomeSign::verdict).chain(beside);
        // One failed verdict is enough, as it is for the outcome in `apply_results`.
        verdicts.reduce(|one, other| one && other)
    }

    /// Returns the date of the session, by which every command sorts, selects and counts it. One
    /// without a date is listed last and belongs to no day and no week.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.details.counts_at
    }

    /// Returns true if the session has a date in this period.
    pub fn is_in(&self, period: &std::ops::Range<Timestamp>) -> bool {
        self.started_at().is_some_and(|at| period.contains(&at))
    }
}

impl GradeDetails {
    /// Returns the denominator for rates of failed calls: the session's calls, including results
    /// whose call the file does not contain.
    pub fn calls_of_tools(&self) -> u64 {
        self.tool_calls.max(total(self.tools.values().map(ToolUse::all_calls)))
    }
}

/// Usage of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// Number of calls, including results whose call the file does not contain.
    pub calls: u64,
    /// Number of failed calls.
    pub errors: u64,
}

impl ToolUse {
    /// Returns the number of calls, but at least the number of failures, since grades of earlier
    /// versions contain errors without calls.
    pub fn all_calls(&self) -> u64 {
        self.calls.max(self.errors)
    }
}

/// Errors with the same cause and pattern from one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// Class of the errors.
    pub class: ErrorClass,
    /// Cause of the errors, finer than the class. Unknown in grades of earlier versions.
    #[serde(default)]
    pub cause: ErrorCause,
    /// Message pattern, with the parts that vary masked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// Name of the tool.
    pub tool: String,
    /// Number of errors.
    pub count: u64,
    /// Number of the event with the first error.
    pub first_event: u64,
    /// Message of the first error on one line, with secrets redacted.
    pub example: String,
}

/// A point for or against a grade, and the event behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GradeEvidence {
    /// Kind of evidence.
    pub point: GradePoint,
    /// Weight of the point in the settings.
    pub worth: f64,
    /// Number of the event in the session, from 0; `None` if it is the session as a whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub event: Option<u64>,
    /// Text or numbers on one line, with secrets redacted.
    pub words: String,
}

/// A kind of evidence for or against a session (docs/spec/session-grades.md, from #task-completion
/// to #response-quality).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GradePoint {
    /// The final message says that the task is done.
    SaysDone,
    /// The final message refers to an output.
    NamesOutput,
    /// There are few errors for the number of calls.
    FewErrors,
    /// The final message says that the task failed.
    SaysFailed,
    /// More than 30 % of the calls had errors.
    ManyErrors,
    /// The final message is missing or very short.
    ShortResponse,
    /// The final message is longer than 500 characters.
    Over500,
    /// The final message is longer than 1000 characters.
    Over1000,
    /// The final message contains code blocks.
    HasCode,
    /// The final message contains links or references.
    HasLinks,
    /// There were 3 or more errors in a row.
    RepeatedErrors,
    /// There were more than 5 errors.
    Over5Errors,
    /// There were 5 or more errors in a row, or more than 50 calls.
    LoopRisk,
    /// The row of the efficiency table that applied.
    Efficiency,
    /// The outcome after the errors.
    Recovery,
    /// The agent asked the user.
    Clarification,
}

/// Returns a record for tests in other files.
#[cfg(test)]
pub(crate) fn sample(session_id: &str) -> GradeRecord {
    let at: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap_or(Timestamp::UNIX_EPOCH);
    GradeRecord {
        session_id: session_id.to_owned(),
        session_file: format!("/sessions/{session_id}.jsonl"),
        graded_at: at,
        task_completed: true,
        tool_calls_efficient: GradeLevel::HIGHEST,
        response_quality: GradeLevel::nearest(3.0),
        errors_recovered: true,
        total_api_calls: 4,
        model: Some("test-model".to_owned()),
        platform: Some("cli".to_owned()),
        session_start: Some(at),
        duration_seconds: Some(60.0),
        task_summary: Some("a task".to_owned()),
        total_errors: 0,
        error_types: Vec::new(),
        tools_with_errors: Vec::new(),
        had_repeated_errors: false,
        had_infinite_loop_risk: false,
        had_user_clarification: false,
        outcome: TaskOutcome::Unknown,
        session_kind: SessionKind::Task,
        parent_session: None,
        details: GradeDetails {
            agent: "test".to_owned(),
            project: None,
            task_type: TaskType::General,
            counts_at: Some(at),
            messages: 6,
            tool_calls: 2,
            rejected_calls: 0,
            pending_calls: 0,
            tools: BTreeMap::new(),
            errors: Vec::new(),
            longest_error_run: 0,
            tokens: selftest_sessions::TokenCounts::default(),
            evidence: Vec::new(),
            state: OutcomeState::Unknown,
            own_state: None,
            own_outcome: None,
            outcome_evidence: Vec::new(),
            results: Vec::new(),
            corrections: 0,
            lineage: selftest_sessions::SessionLineage::default(),
            foreign_edits: 0,
            rewinds: 0,
            spent: Vec::new(),
            copied: Vec::new(),
            copied_from: None,
            stated_cost: None,
        },
    }
}

/// A grade from 1 (very poor) to 5 (perfect).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct GradeLevel(u8);

impl GradeLevel {
    /// The lowest level.
    pub const LOWEST: GradeLevel = GradeLevel(1);
    /// The highest level.
    pub const HIGHEST: GradeLevel = GradeLevel(5);

    /// Creates a level, or returns `None` outside of 1 to 5.
    pub fn new(level: u8) -> Option<Self> {
        (1..=5).contains(&level).then_some(Self(level))
    }

    /// Returns the nearest level, rounding halves up and clamping to 1 to 5.
    ///
    /// docs/spec/session-grades.md#response-quality specifies the clamping but not the rounding;
    /// the column is an integer.
    pub fn nearest(points: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to 1..=5; NaN becomes 0 and then 1"
        )]
        let level = (points + 0.5).floor().clamp(1.0, 5.0) as u8;
        Self(level.max(1))
    }

    /// Returns the level as a number.
    pub fn get(self) -> u8 {
        self.0
    }
}

/// A number that is not a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not in 1 to 5")]
pub struct LevelRangeError(u8);

impl TryFrom<u8> for GradeLevel {
    type Error = LevelRangeError;

    fn try_from(level: u8) -> Result<Self, LevelRangeError> {
        Self::new(level).ok_or(LevelRangeError(level))
    }
}

impl From<GradeLevel> for u8 {
    fn from(level: GradeLevel) -> u8 {
        level.0
    }
}

impl fmt::Display for GradeLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Purpose of a session.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SessionKind {
    /// A person's task.
    #[default]
    Task,
    /// Started by another agent, as part of a task.
    Subagent,
    /// Started by the agent's program to fill a cache.
    WarmUp,
    /// Started by a schedule.
    Automatic,
}

selftest_text::named!(SessionKind);

/// The entire request that Claude Code sends to warm up a subagent.
const WARM_UP: &str = "warmup";

/// ID prefix of sessions started by a Hermes schedule.
const SCHEDULED: &str = "cron_";

impl SessionKind {
    /// Determines the kind of a session from its head, its first request, and the presence of a
    /// subagent.
    pub(super) fn classify(head: &SessionHead, is_subagent: bool, request: &str) -> Self {
        let request = request.trim().trim_end_matches(['.', '!']);
        // First, since a warm-up runs in a subagent and would otherwise count as its work.
        if request.eq_ignore_ascii_case(WARM_UP) {
            SessionKind::WarmUp
        } else if is_subagent || head.id.contains("/agent-") {
            SessionKind::Subagent
        } else if head.id.starts_with(SCHEDULED) || head.platform.as_deref() == Some("cron") {
            SessionKind::Automatic
        } else {
            SessionKind::Task
        }
    }
}

/// A grade that a person can override.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum GradeField {
    /// `task_completed`
    TaskCompleted,
    /// `tool_calls_efficient`
    ToolCallsEfficient,
    /// `response_quality`
    ResponseQuality,
    /// `errors_recovered`
    ErrorsRecovered,
}

selftest_text::named!(GradeField);

impl GradeField {
    /// Returns true if the values are 0 and 1 rather than 1 to 5.
    pub fn is_boolean(self) -> bool {
        matches!(self, GradeField::TaskCompleted | GradeField::ErrorsRecovered)
    }

    /// Formats a value for display: `true` or `false`, or 1 to 5.
    pub fn words(self, value: u8) -> String {
        if self.is_boolean() { (value != 0).to_string() } else { value.to_string() }
    }

    /// Returns the value in a record as a number: 0 or 1, or 1 to 5.
    pub fn value(self, record: &GradeRecord) -> u8 {
        match self {
            GradeField::TaskCompleted => record.task_completed.into(),
            GradeField::ToolCallsEfficient => record.tool_calls_efficient.get(),
            GradeField::ResponseQuality => record.response_quality.get(),
            GradeField::ErrorsRecovered => record.errors_recovered.into(),
        }
    }

    /// Sets the value. Returns `false` if it is out of range.
    #[must_use]
    pub fn set(self, record: &mut GradeRecord, value: u8) -> bool {
        fn assign<T>(place: &mut T, value: Option<T>) -> bool {
            value.map(|value| *place = value).is_some()
        }
        let flag = match value {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        match self {
            GradeField::TaskCompleted => assign(&mut record.task_completed, flag),
            GradeField::ToolCallsEfficient => {
                assign(&mut record.tool_calls_efficient, GradeLevel::new(value))
            }
            GradeField::ResponseQuality => {
                assign(&mut record.response_quality, GradeLevel::new(value))
            }
            GradeField::ErrorsRecovered => assign(&mut record.errors_recovered, flag),
        }
    }
}

/// A person's grade for one field of a session. The newest override of a field counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradeOverride {
    /// ID of the session.
    pub session_id: String,
    /// Field to override.
    pub field: GradeField,
    /// Grade by the rules at that time.
    pub rule_value: u8,
    /// Grade by the person.
    pub human_value: u8,
    /// Reason for the override.
    pub reason: String,
    /// Time of the override.
    pub made_at: Timestamp,
}

/// Applies all overrides of the record's session.
pub fn apply_overrides(mut record: GradeRecord, overrides: &[GradeOverride]) -> GradeRecord {
    let mut own: Vec<&GradeOverride> =
        overrides.iter().filter(|one| one.session_id == record.session_id).collect();
    // Oldest first, so that the newest override of a field wins.
    own.sort_by_key(|one| one.made_at);
    for one in own {
        // Only a database written by another program can contain a value out of range.
        let is_set = one.field.set(&mut record, one.human_value);
        // A person's grade also decides the outcome.
        if is_set && one.field == GradeField::TaskCompleted {
            record.outcome = if record.task_completed {
                TaskOutcome::ChecksPassed
            } else {
                TaskOutcome::Contradicted
            };
            let result = if record.task_completed {
                ElsewhereResult::Passed
            } else {
                ElsewhereResult::Failed
            };
            record.details.state =
                OutcomeState::CheckedElsewhere { by: ResultSource::Person, result };
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_and_clamping() {
        for (points, level) in [(3.5, 4), (3.49, 3), (-2.0, 1), (6.5, 5), (f64::NAN, 1)] {
            assert_eq!(GradeLevel::nearest(points).get(), level, "{points}");
        }
        assert_eq!(GradeLevel::new(0), None);
        assert!(serde_json::from_str::<GradeLevel>("6").is_err());
    }

    fn kind(id: &str, is_subagent: bool, request: &str) -> SessionKind {
        let head = SessionHead { id: id.to_owned(), ..SessionHead::default() };
        SessionKind::classify(&head, is_subagent, request)
    }

    #[test]
    fn kinds_by_id_speaker_and_request() {
        assert_eq!(kind("s", false, "fix it"), SessionKind::Task);
        assert_eq!(kind("s", true, "look for it"), SessionKind::Subagent);
        assert_eq!(kind("s/agent-1", false, "look for it"), SessionKind::Subagent);
        assert_eq!(kind("s/agent-1", true, "Warmup"), SessionKind::WarmUp);
        assert_eq!(kind("s", false, "warmup the cache at start"), SessionKind::Task);
        assert_eq!(kind("cron_daily_20260101_000000", false, "news"), SessionKind::Automatic);
    }
}
