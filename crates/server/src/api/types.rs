//! The answers of the API.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::Schema;

use super::super::tally::UNFINISHED;
use super::input::one_of;
use selftest_grading::grade::quality::Combined;
use selftest_grading::grade::{Cost, GradeRecord, Override, QualityGrade};
use selftest_grading::improve::effectiveness::Effectiveness;
use selftest_grading::improve::gap::Gap;
use selftest_grading::improve::proposal::Proposal;
use selftest_grading::improve::skill::{AuditEntry, SkillExecution, SkillVersion};
use selftest_grading::improve::trend::WeekCount;
use selftest_harness::event::ExperimentRun;
use selftest_harness::outcome::{RunOutcome, Summary};
use selftest_reports::RunEntry;
use selftest_reports::document::CaseDocument;
use selftest_service::jobs::GradingRequest;
use selftest_stats::score::Score;
use selftest_store::{FileRecord, SessionRow};

/// A page of sessions.
#[derive(Serialize, ToSchema)]
pub(super) struct SessionPage {
    pub(super) items: Vec<SessionRow>,
    /// Hand it back as `cursor` for the next page; null on the last one.
    pub(super) next: Option<String>,
}

/// A session with its grade by rules.
#[derive(Serialize, ToSchema)]
pub(super) struct SessionDetail {
    /// The grade by rules, with its evidence and errors.
    #[schema(value_type = Object)]
    pub(super) grade: GradeRecord,
    /// Corrections by people, oldest first.
    #[schema(value_type = Vec<Object>)]
    pub(super) overrides: Vec<Override>,
    /// The file that it was read from; null where another program wrote the grade.
    #[schema(value_type = Option<Object>)]
    pub(super) file: Option<FileRecord>,
    /// Cost of its tokens: `currency`, `amount` (null where it is unknown), `priced` (of the tokens
    /// that have a price) and `unpriced` (models without one).
    #[schema(value_type = Object)]
    pub(super) cost: Cost,
}

/// Every grade of a session.
#[derive(Serialize, ToSchema)]
pub(super) struct SessionGrades {
    pub(super) session_id: String,
    /// The grade by rules as the rules gave it; null where there is none.
    #[schema(value_type = Option<Object>)]
    pub(super) rules: Option<GradeRecord>,
    /// Corrections by people, oldest first; the newest for a field counts.
    #[schema(value_type = Vec<Object>)]
    pub(super) overrides: Vec<Override>,
    /// By the rubric of now, one for each model.
    pub(super) models: Vec<QualityGrade>,
    /// Mean of the models' scores, and how far apart they lie; null without a grade by a model.
    #[schema(value_type = Option<Object>)]
    pub(super) average: Option<Combined>,
    /// The state of the last request for a grade by the configured model, as `POST` makes it;
    /// null where there was none, or where it was done long ago.
    pub(super) request: Option<Requested>,
}

/// A request for a grade.
#[derive(Serialize, ToSchema)]
pub(super) struct Requested {
    /// `queued` and `running` go on; at `done` the grade is there, at `failed` none will come.
    #[schema(schema_with = request_states)]
    status: &'static str,
    /// Why it failed; null otherwise.
    reason: Option<String>,
}

fn request_states() -> Schema {
    one_of(["queued", "running", "done", "failed"])
}

impl From<GradingRequest> for Requested {
    fn from(request: GradingRequest) -> Self {
        let (status, reason) = match request {
            GradingRequest::Waiting => ("queued", None),
            GradingRequest::Running => ("running", None),
            GradingRequest::Done => ("done", None),
            GradingRequest::Failed(why) => ("failed", Some(why)),
        };
        Self { status, reason }
    }
}

/// A page of grades by models.
#[derive(Serialize, ToSchema)]
pub(super) struct GradePage {
    pub(super) items: Vec<QualityGrade>,
    /// Hand it back as `cursor` for the next page; null on the last one.
    pub(super) next: Option<String>,
}

/// Gaps in the agent's skills.
#[derive(Serialize, ToSchema)]
pub(super) struct GapList {
    pub(super) items: Vec<Gap>,
}

/// Proposed skills.
#[derive(Serialize, ToSchema)]
pub(super) struct ProposalList {
    pub(super) items: Vec<Proposal>,
}

/// A proposed skill with its gap.
#[derive(Serialize, ToSchema)]
pub(super) struct ProposalDetail {
    pub(super) proposal: Proposal,
    /// The gap; null where its row cannot be found.
    pub(super) gap: Option<Gap>,
}

/// A session that waits to be graded by a model.
#[derive(Serialize, ToSchema)]
pub(super) struct Queued {
    pub(super) session_id: String,
    /// `queued`.
    pub(super) status: &'static str,
    /// Where the grade will be, and what becomes of the request.
    pub(super) location: String,
}

/// Whether something that was told will be kept.
#[derive(Serialize, ToSchema)]
pub(super) struct Kept {
    /// Always true: what is not taken is answered with 503.
    pub(super) accepted: bool,
}

/// A page of versions of skills.
#[derive(Serialize, ToSchema)]
pub(super) struct SkillPage {
    pub(super) items: Vec<SkillVersion>,
    /// Hand it back as `cursor` for the next page; null on the last one.
    pub(super) next: Option<String>,
}

/// A version of a skill, and what its executions say.
#[derive(Serialize, ToSchema)]
pub(super) struct SkillDetail {
    pub(super) skill: SkillVersion,
    /// By the executions of the last days: `score` and the rates that it is made of, or `reason`
    /// `insufficient_data`.
    #[schema(value_type = Object)]
    pub(super) effectiveness: Effectiveness,
    /// The last eight weeks, oldest first.
    pub(super) weeks: Vec<WeekCount>,
    /// Newest first; paged by `limit` and `cursor`.
    pub(super) executions: ExecutionPage,
    /// The history of this version, oldest first.
    pub(super) audit: Vec<AuditEntry>,
}

/// A page of executions.
#[derive(Serialize, ToSchema)]
pub(super) struct ExecutionPage {
    pub(super) items: Vec<SkillExecution>,
    /// Hand it back as `cursor` for the next page; null on the last one.
    pub(super) next: Option<String>,
}

/// A page of selftest runs.
#[derive(Serialize, ToSchema)]
pub(super) struct RunPage {
    /// Newest first.
    pub(super) items: Vec<RunItem>,
    /// Hand it back as `cursor` for the next page; null on the last one.
    pub(super) next: Option<String>,
}

/// A run in short.
#[derive(Serialize, ToSchema)]
pub(super) struct RunItem {
    pub(super) run_id: String,
    /// When it started.
    started_at: Timestamp,
    /// Such as `passed`; `unfinished` where it has not come to its end.
    outcome: &'static str,
    /// The judge's model.
    judge: String,
    /// Counts over its cases, as in the report.
    #[schema(value_type = Object)]
    summary: Summary,
    /// Of which experiment it is an arm, as in the report; null for other runs.
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

/// The cases of a run, in short, in the order of the plan.
#[derive(Serialize, ToSchema)]
pub(super) struct CaseList {
    pub(super) items: Vec<CaseEntry>,
}

/// A case in short.
#[derive(Serialize, ToSchema)]
pub(super) struct CaseEntry {
    /// Id of the scenario.
    id: String,
    /// Such as `passed`.
    status: &'static str,
    /// Null when there is no verdict.
    pass: Option<bool>,
    /// Overall score of the step that decides, 0 to 1.
    overall: Option<f64>,
    /// Why, in one line; null when passed.
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

/// The weekly reports that there are, newest first.
#[derive(Serialize, ToSchema)]
pub(super) struct WeekList {
    pub(super) items: Vec<WeekEntry>,
}

/// A weekly report in short.
#[derive(Serialize, ToSchema)]
pub(super) struct WeekEntry {
    /// ISO week, such as `2026-W47`.
    pub(super) week: String,
    /// Its Monday.
    #[schema(value_type = String, format = Date)]
    pub(super) week_start: Date,
    /// Its Sunday.
    #[schema(value_type = String, format = Date)]
    pub(super) week_end: Date,
    /// When the report was made.
    pub(super) generated_at: Timestamp,
}

/// A run as its JSON report has it; the schema is that of `selftest schema report`.
#[derive(ToSchema)]
#[schema(as = Report)]
pub(super) struct ReportSchema {}

/// A case as the JSON report of its run has it.
#[derive(ToSchema)]
#[schema(as = Case)]
pub(super) struct CaseSchema {}
