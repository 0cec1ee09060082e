//! Response types of the API.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::Schema;

use super::super::metrics::UNFINISHED;
use super::input::enum_schema;
use selftest_grading::grade::quality::CombinedQuality;
use selftest_grading::grade::{GradeOverride, GradeRecord, QualityGrade, TokenCost};
use selftest_grading::improve::effectiveness::Effectiveness;
use selftest_grading::improve::gap::{SkillGap, SkillProposal};
use selftest_grading::improve::skill::{AuditEntry, SkillExecution, SkillVersion, WeekCount};
use selftest_harness::event::ExperimentRun;
use selftest_harness::outcome::{RunOutcome, RunSummary};
use selftest_reports::RunEntry;
use selftest_reports::document::CaseDocument;
use selftest_service::jobs::GradingState;
use selftest_stats::score::Score;
use selftest_store::{FileRecord, SessionRow};

/// A page of sessions.
#[derive(Serialize, ToSchema)]
pub(super) struct SessionPage {
    pub(super) items: Vec<SessionRow>,
    /// Cursor for the next page; null on the last one.
    pub(super) next: Option<String>,
}

/// A session with its grade by rules.
#[derive(Serialize, ToSchema)]
pub(super) struct SessionDetail {
    /// Grade by rules, with its evidence and errors.
    #[schema(value_type = Object)]
    pub(super) grade: GradeRecord,
    /// Corrections by people, oldest first.
    #[schema(value_type = Vec<Object>)]
    pub(super) overrides: Vec<GradeOverride>,
    /// File that the session was read from; null if another program wrote the grade.
    #[schema(value_type = Option<Object>)]
    pub(super) file: Option<FileRecord>,
    /// Cost of its tokens: `currency`, `amount` (null if unknown), `priced` (cost of the tokens
    /// with a price) and `unpriced` (models without one).
    #[schema(value_type = Object)]
    pub(super) cost: TokenCost,
}

/// All grades of a session.
#[derive(Serialize, ToSchema)]
pub(super) struct SessionGrades {
    pub(super) session_id: String,
    /// Unmodified grade by rules; null if missing.
    #[schema(value_type = Option<Object>)]
    pub(super) rules: Option<GradeRecord>,
    /// Corrections by people, oldest first; the newest for a field applies.
    #[schema(value_type = Vec<Object>)]
    pub(super) overrides: Vec<GradeOverride>,
    /// Grades by the current rubric, one per model.
    pub(super) models: Vec<QualityGrade>,
    /// Mean and spread of the models' scores; null without a grade by a model.
    #[schema(value_type = Option<Object>)]
    pub(super) average: Option<CombinedQuality>,
    /// State of the last request for a grade by the configured model, as created by `POST`. Null if
    /// there was none, or if it was completed long ago.
    pub(super) request: Option<GradingRequestState>,
}

/// A request for a grade.
#[derive(Serialize, ToSchema)]
pub(super) struct GradingRequestState {
    /// `queued` and `running` are in progress. With `done` the grade exists; with `failed` there
    /// will be none.
    #[schema(schema_with = request_states)]
    status: &'static str,
    /// Reason for the failure; null otherwise.
    reason: Option<String>,
}

fn request_states() -> Schema {
    enum_schema(["queued", "running", "done", "failed"])
}

impl From<GradingState> for GradingRequestState {
    fn from(request: GradingState) -> Self {
        let (status, reason) = match request {
            GradingState::Waiting => ("queued", None),
            GradingState::Running => ("running", None),
            GradingState::Done => ("done", None),
            GradingState::Failed(why) => ("failed", Some(why)),
        };
        Self { status, reason }
    }
}

/// A page of grades by models.
#[derive(Serialize, ToSchema)]
pub(super) struct GradePage {
    pub(super) items: Vec<QualityGrade>,
    /// Cursor for the next page; null on the last one.
    pub(super) next: Option<String>,
}

/// Gaps in the agent's skills.
#[derive(Serialize, ToSchema)]
pub(super) struct GapList {
    pub(super) items: Vec<SkillGap>,
}

/// Proposed skills.
#[derive(Serialize, ToSchema)]
pub(super) struct ProposalList {
    pub(super) items: Vec<SkillProposal>,
}

/// A proposed skill with its gap.
#[derive(Serialize, ToSchema)]
pub(super) struct ProposalDetail {
    pub(super) proposal: SkillProposal,
    /// The gap; null if its row is missing.
    pub(super) gap: Option<SkillGap>,
}

/// A session queued for grading by a model.
#[derive(Serialize, ToSchema)]
pub(super) struct QueuedGrading {
    pub(super) session_id: String,
    /// `queued`.
    pub(super) status: &'static str,
    /// Location of the future grade and of the request's state.
    pub(super) location: String,
}

/// Confirmation that a record was accepted.
#[derive(Serialize, ToSchema)]
pub(super) struct RecordAccepted {
    /// Always true: rejected records give 503.
    pub(super) accepted: bool,
}

/// A page of skill versions.
#[derive(Serialize, ToSchema)]
pub(super) struct SkillPage {
    pub(super) items: Vec<SkillVersion>,
    /// Cursor for the next page; null on the last one.
    pub(super) next: Option<String>,
}

/// A skill version with its execution statistics.
#[derive(Serialize, ToSchema)]
pub(super) struct SkillDetail {
    pub(super) skill: SkillVersion,
    /// Effectiveness over recent executions: `score` and the rates that it combines, or `reason`
    /// `insufficient_data`.
    #[schema(value_type = Object)]
    pub(super) effectiveness: Effectiveness,
    /// The last eight weeks, oldest first.
    pub(super) weeks: Vec<WeekCount>,
    /// Newest first; paged by `limit` and `cursor`.
    pub(super) executions: ExecutionPage,
    /// History of this version, oldest first.
    pub(super) audit: Vec<AuditEntry>,
}

/// A page of executions.
#[derive(Serialize, ToSchema)]
pub(super) struct ExecutionPage {
    pub(super) items: Vec<SkillExecution>,
    /// Cursor for the next page; null on the last one.
    pub(super) next: Option<String>,
}

/// A page of selftest runs.
#[derive(Serialize, ToSchema)]
pub(super) struct RunPage {
    /// Newest first.
    pub(super) items: Vec<RunItem>,
    /// Cursor for the next page; null on the last one.
    pub(super) next: Option<String>,
}

/// Summary of a run.
#[derive(Serialize, ToSchema)]
pub(super) struct RunItem {
    pub(super) run_id: String,
    /// Start time.
    started_at: Timestamp,
    /// Outcome, such as `passed`; `unfinished` if the run has not finished.
    outcome: &'static str,
    /// Model of the judge.
    judge: String,
    /// Counts of its cases, as in the report.
    #[schema(value_type = Object)]
    summary: RunSummary,
    /// Experiment that the run is an arm of, as in the report; null for other runs.
    #[schema(value_type = Option<Object>)]
    experiment: Option<ExperimentRun>,
}

impl From<RunEntry> for RunItem {
    fn from(entry: RunEntry) -> Self {
        Self {
            run_id: entry.run_id.into(),
            started_at: entry.started_at,
            outcome: entry.outcome.map_or(UNFINISHED, RunOutcome::name),
            judge: entry.judge,
            summary: entry.summary,
            experiment: entry.experiment,
        }
    }
}

/// Summaries of a run's cases, in the order of the plan.
#[derive(Serialize, ToSchema)]
pub(super) struct CaseList {
    pub(super) items: Vec<CaseEntry>,
}

/// Summary of a case.
#[derive(Serialize, ToSchema)]
pub(super) struct CaseEntry {
    /// Id of the scenario.
    id: String,
    /// Status, such as `passed`.
    status: &'static str,
    /// Null without a verdict.
    pass: Option<bool>,
    /// Overall score of the decisive step, 0 to 1.
    overall: Option<f64>,
    /// Reason on one line; null if passed.
    reason: Option<String>,
    /// Wall time.
    duration_ms: u64,
}

impl From<CaseDocument> for CaseEntry {
    fn from(case: CaseDocument) -> Self {
        Self {
            status: case.status.name(),
            pass: case.pass,
            overall: case.scores.overall.map(Score::get),
            id: case.name(),
            reason: case.reason,
            duration_ms: case.duration_ms,
        }
    }
}

/// Available weekly reports, newest first.
#[derive(Serialize, ToSchema)]
pub(super) struct WeeklyReportList {
    pub(super) items: Vec<WeeklyReportEntry>,
}

/// Summary of a weekly report.
#[derive(Serialize, ToSchema)]
pub(super) struct WeeklyReportEntry {
    /// ISO week, such as `2026-W47`.
    pub(super) week: String,
    /// Monday of the week.
    #[schema(value_type = String, format = Date)]
    pub(super) week_start: Date,
    /// Sunday of the week.
    #[schema(value_type = String, format = Date)]
    pub(super) week_end: Date,
    /// Time at which the report was generated.
    pub(super) generated_at: Timestamp,
}

/// A run's JSON report; the schema is that of `selftest schema report`.
#[derive(ToSchema)]
#[schema(as = Report)]
pub(super) struct ReportSchema {}

/// A case in a run's JSON report.
#[derive(ToSchema)]
#[schema(as = Case)]
pub(super) struct CaseSchema {}
