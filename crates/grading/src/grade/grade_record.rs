//! A grade as it is kept: the columns of `session_grades`
//! (docs/spec/session-grades.md#session_grades), and what stands behind them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::share::total;
use super::spending::ModelTokens;
use super::{
    ErrorCause, ErrorClass, Level, OutcomeEvidence, OutcomeSign, SessionKind, TaskOutcome, TaskType,
};

/// One graded session. The fields up to `had_user_clarification` are the specification's columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "they are the specification's columns")]
pub struct GradeRecord {
    /// Unique.
    pub session_id: String,
    /// Path of the file that it was read from.
    pub session_file: String,
    /// When it was graded.
    pub graded_at: Timestamp,
    /// Whether the task appears to have been completed.
    pub task_completed: bool,
    /// Efficiency of tool use.
    pub tool_calls_efficient: Level,
    /// Quality of the final response.
    pub response_quality: Level,
    /// Whether errors were recovered from; true where there were none.
    pub errors_recovered: bool,
    /// Model calls.
    pub total_api_calls: u64,
    /// The model that answered first.
    pub model: Option<String>,
    /// Where the user sat.
    pub platform: Option<String>,
    /// First time in the session.
    pub session_start: Option<Timestamp>,
    /// From the first time to the last, in seconds.
    pub duration_seconds: Option<f64>,
    /// The beginning of the first request, on one line, secrets redacted.
    pub task_summary: Option<String>,
    /// Tool calls that failed.
    pub total_errors: u64,
    /// Classes of its errors, most frequent first.
    pub error_types: Vec<ErrorClass>,
    /// Tools that failed, most frequent first.
    pub tools_with_errors: Vec<String>,
    /// 3 or more errors in a row.
    pub had_repeated_errors: bool,
    /// 5 or more errors in a row, or more than 50 calls.
    pub had_infinite_loop_risk: bool,
    /// The agent asked back before it went on.
    pub had_user_clarification: bool,
    /// The outcome of the task, by more than appearances.
    #[serde(default)]
    pub outcome: TaskOutcome,
    /// Whether it is a person's task.
    #[serde(default)]
    pub session_kind: SessionKind,
    /// The session that it was started by or goes on from, where its file says so.
    #[serde(default)]
    pub parent_session: Option<String>,
    /// Facts that the specification's columns have no room for.
    pub details: Details,
}

/// Kept as JSON in the nullable column `details_json`; `agent` and `task_type` also have columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// The agent that recorded the session.
    pub agent: String,
    /// The folder that the agent worked in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Inferred from the first request.
    pub task_type: TaskType,
    /// When the session counts for reports: its start, else its file's last change.
    pub counts_at: Timestamp,
    /// Messages: events that say something, of any role.
    pub messages: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Calls that a person or policy refused.
    pub rejected_calls: u64,
    /// Calls without a result.
    pub pending_calls: u64,
    /// Calls and errors for each tool.
    pub tools: BTreeMap<String, ToolUse>,
    /// Errors by class and tool.
    pub errors: Vec<ErrorCount>,
    /// Most errors in a row.
    pub longest_error_run: u64,
    /// Tokens: read, written, read from a cache.
    pub tokens: selftest_sessions::Usage,
    /// Why the grade is what it is.
    pub evidence: Vec<Evidence>,
    /// The events that say what became of the task: those that decide first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcome_evidence: Vec<OutcomeEvidence>,
    /// How often the person objected to what the agent had done, or stopped it.
    #[serde(default)]
    pub corrections: u64,
    /// How the session begins; in columns of its own.
    #[serde(skip)]
    pub lineage: selftest_sessions::Lineage,
    /// How often the person took the conversation back to an earlier message.
    #[serde(default, skip_serializing_if = "is_none")]
    pub rewinds: u64,
    /// Tokens by model, those of subagents in the same file among them: what the cost is made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<ModelTokens>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl GradeRecord {
    /// Whether rates count it: it is a person's task.
    pub fn is_task(&self) -> bool {
        self.session_kind == SessionKind::Task
    }

    /// Whether the task succeeded by the word of a verifier that the session's file states; `None`
    /// where it states none, or one that says neither.
    pub fn verdict(&self) -> Option<bool> {
        let signs = self.details.outcome_evidence.iter().map(|one| one.sign);
        let verdicts = signs.filter_map(OutcomeSign::verdict);
        verdicts.reduce(|one, other| one && other)
    }

    /// When the session began; `None` where nothing says so. Such a session is in no week:
    /// [`Details::counts_at`] only puts it somewhere in a list.
    pub fn dated_at(&self) -> Option<Timestamp> {
        self.session_start
    }
}

impl Details {
    /// Calls that shares of failed calls are of: those of the session, and results whose call the
    /// file does not hold.
    pub fn calls_of_tools(&self) -> u64 {
        self.tool_calls.max(total(self.tools.values().map(ToolUse::all_calls)))
    }
}

/// How one tool was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// Calls, and results whose call the file does not hold.
    pub calls: u64,
    /// Of them failed.
    pub errors: u64,
}

impl ToolUse {
    /// Calls, never fewer than failed: grades of earlier versions have errors without calls.
    pub fn all_calls(&self) -> u64 {
        self.calls.max(self.errors)
    }
}

/// Errors of one cause and pattern at one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// The class.
    pub class: ErrorClass,
    /// Why, finer than the class; unknown in grades of earlier versions.
    #[serde(default)]
    pub cause: ErrorCause,
    /// The message without what differs between two of a kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// The tool.
    pub tool: String,
    /// How many.
    pub count: u64,
    /// The first one: number of its event, and its words, redacted and short.
    pub first_event: u64,
    /// Its words, on one line, secrets redacted.
    pub example: String,
}

/// One point for or against, and the event that made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The kind of evidence.
    pub point: Point,
    /// Its weight in the settings.
    pub worth: f64,
    /// Number of the event in the session, from 0; `None` where the whole session counts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub event: Option<u64>,
    /// The words or numbers, on one line, secrets redacted.
    pub words: String,
}

/// A kind of evidence for or against a session (docs/spec/session-grades.md, from
/// #task-completion to #response-quality).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// The final message says that it is done.
    SaysDone,
    /// The final message refers to something made.
    NamesOutput,
    /// Few errors for the number of calls.
    FewErrors,
    /// The final message says that it failed.
    SaysFailed,
    /// Errors in more than 30 % of the calls.
    ManyErrors,
    /// No final message, or a very short one.
    ShortResponse,
    /// Longer than 500 characters.
    Over500,
    /// Longer than 1000 characters.
    Over1000,
    /// Has code blocks.
    HasCode,
    /// Has links or references.
    HasLinks,
    /// 3 or more errors in a row.
    RepeatedErrors,
    /// More than 5 errors.
    Over5Errors,
    /// 5 or more errors in a row, or more than 50 calls.
    LoopRisk,
    /// The row of the efficiency table that applied.
    Efficiency,
    /// The outcome after the errors.
    Recovery,
    /// The agent asked back.
    Clarification,
}

/// A record for tests of other files.
#[cfg(test)]
pub(crate) fn sample(session_id: &str) -> GradeRecord {
    let at: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap_or(Timestamp::UNIX_EPOCH);
    GradeRecord {
        session_id: session_id.to_owned(),
        session_file: format!("/sessions/{session_id}.jsonl"),
        graded_at: at,
        task_completed: true,
        tool_calls_efficient: Level::HIGHEST,
        response_quality: Level::nearest(3.0),
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
        details: Details {
            agent: "test".to_owned(),
            project: None,
            task_type: TaskType::General,
            counts_at: at,
            messages: 6,
            tool_calls: 2,
            rejected_calls: 0,
            pending_calls: 0,
            tools: BTreeMap::new(),
            errors: Vec::new(),
            longest_error_run: 0,
            tokens: selftest_sessions::Usage::default(),
            evidence: Vec::new(),
            outcome_evidence: Vec::new(),
            corrections: 0,
            lineage: selftest_sessions::Lineage::default(),
            rewinds: 0,
            spent: Vec::new(),
        },
    }
}
