//! Gaps in the agent's skills, proposals to close them, and routing.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa::openapi::schema::Schema;

use super::super::App;
use super::super::problem::Problem;
use super::input::{self, PathName, QueryParameters};
use super::types::{GapList, ProposalDetail, ProposalList};
use selftest_grading::grade::TaskType;
use selftest_grading::improve::gap::{GapStatus, ProposalStatus, SkillProposal};
use selftest_grading::improve::recommend::RoutingReport;
use selftest_service::grader::proposals::{DecisionError, SkillDestination, accept, reject};
use selftest_service::grader::routing;

/// Maximum length of a reason in characters.
pub(crate) const MAX_REASON: usize = 1000;

fn gap_statuses() -> Schema {
    input::enum_schema(GapStatus::ALL.iter().map(|status| status.name()))
}

fn proposal_statuses() -> Schema {
    input::enum_schema(ProposalStatus::ALL.iter().map(|status| status.name()))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct GapQuery {
    /// Only gaps with this status.
    #[param(schema_with = gap_statuses)]
    status: Option<GapStatus>,
    /// Maximum number of gaps.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
}

/// List gaps, those with the most sessions first
#[utoipa::path(get, path = "/api/gaps", operation_id = "list_gaps", tag = "improvement", params(GapQuery),
    responses((status = 200, body = GapList)))]
pub(super) async fn gaps(
    State(app): State<Arc<App>>,
    QueryParameters(asked): QueryParameters<GapQuery>,
) -> Result<Json<GapList>, Problem> {
    let limit = input::page_limit(asked.limit)?;
    let items = app.store.gaps(asked.status, limit.into()).await?.items;
    Ok(Json(GapList { items }))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ProposalQuery {
    /// Only proposals with this status.
    #[param(schema_with = proposal_statuses)]
    status: Option<ProposalStatus>,
    /// Maximum number of proposals.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
}

/// List proposed skills, newest first
#[utoipa::path(get, path = "/api/proposals", operation_id = "list_proposals", tag = "improvement", params(ProposalQuery),
    responses((status = 200, body = ProposalList)))]
pub(super) async fn proposals(
    State(app): State<Arc<App>>,
    QueryParameters(asked): QueryParameters<ProposalQuery>,
) -> Result<Json<ProposalList>, Problem> {
    let limit = input::page_limit(asked.limit)?;
    let items = app.store.proposals(asked.status, limit.into()).await?.items;
    Ok(Json(ProposalList { items }))
}

/// Get a proposed skill with its gap
#[utoipa::path(get, path = "/api/proposals/{id}", operation_id = "get_proposal", tag = "improvement",
    params(("id" = String, Path, description = "Id of the proposal", max_length = 512)),
    responses((status = 200, body = ProposalDetail)))]
pub(super) async fn proposal(
    State(app): State<Arc<App>>,
    PathName(id): PathName,
) -> Result<Json<ProposalDetail>, Problem> {
    let proposal = app.store.proposal(&id).await?.ok_or_else(unknown)?;
    let gap = app.store.gap(&proposal.gap_id).await?;
    Ok(Json(ProposalDetail { proposal, gap }))
}

fn unknown() -> Problem {
    Problem::not_found("there is no proposal of that id; ids are listed at /api/proposals")
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AcceptQuery {
    /// Reason for the decision.
    #[param(max_length = 1000)]
    reason: Option<String>,
}

/// Accept a proposed skill
///
/// Writes its SKILL.md to the folder `gaps.skills_folder` of the server's configuration. Does not
/// activate the skill.
#[utoipa::path(post, path = "/api/proposals/{id}/accept", operation_id = "accept_proposal", tag = "improvement",
    params(("id" = String, Path, description = "Id of the proposal", max_length = 512), AcceptQuery),
    responses((status = 200, body = SkillProposal),
        (status = 409, description = "The proposal is decided, or its file is there already")))]
pub(super) async fn accept_proposal(
    State(app): State<Arc<App>>,
    PathName(id): PathName,
    QueryParameters(why): QueryParameters<AcceptQuery>,
) -> Result<Json<SkillProposal>, Problem> {
    let reason = input::checked_text("reason", why.reason, MAX_REASON)?;
    let place = SkillDestination::Folder(&app.improvement.skills_folder);
    Ok(Json(accept(&app.store, &id, place, reason.as_deref()).await?))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RejectQuery {
    /// Reason for the decision.
    #[param(min_length = 1, max_length = 1000)]
    reason: String,
    /// True to draft another skill for the gap. By default, the gap is dismissed.
    again: Option<bool>,
}

/// Reject a proposed skill
#[utoipa::path(post, path = "/api/proposals/{id}/reject", operation_id = "reject_proposal", tag = "improvement",
    params(("id" = String, Path, description = "Id of the proposal", max_length = 512), RejectQuery),
    responses((status = 200, body = SkillProposal),
        (status = 409, description = "The proposal is decided, or its file is there already")))]
pub(super) async fn reject_proposal(
    State(app): State<Arc<App>>,
    PathName(id): PathName,
    QueryParameters(why): QueryParameters<RejectQuery>,
) -> Result<Json<SkillProposal>, Problem> {
    let reason = input::checked_text("reason", Some(why.reason), MAX_REASON)?.unwrap_or_default();
    if reason.is_empty() {
        return Err(Problem::bad_request("in the query: reason: expected words"));
    }
    Ok(Json(reject(&app.store, &id, &reason, why.again.unwrap_or_default()).await?))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RoutingQuery {
    /// Only this task type.
    #[param(schema_with = task_types)]
    task_type: Option<TaskType>,
}

fn task_types() -> Schema {
    input::enum_schema(TaskType::ALL.iter().map(|kind| kind.name()))
}

/// Get results by task type and the suggested model tiers
#[utoipa::path(get, path = "/api/routing", operation_id = "get_routing", tag = "improvement", params(RoutingQuery),
    responses((status = 200, body = RoutingReport)))]
pub(super) async fn advise(
    State(app): State<Arc<App>>,
    QueryParameters(asked): QueryParameters<RoutingQuery>,
) -> Result<Json<RoutingReport>, Problem> {
    let settings = &app.improvement.routing;
    let now = selftest_clock::now();
    Ok(Json(routing(&app.store, settings, asked.task_type, None, now).await?))
}

impl From<DecisionError> for Problem {
    fn from(fault: DecisionError) -> Self {
        match fault {
            DecisionError::Store(error) => error.into(),
            DecisionError::Unknown(_) => unknown(),
            // The path is not revealed, because deciding does not imply access to the file system.
            DecisionError::Exists(_) => {
                let detail = "another skill of that name was accepted before";
                Self::new(StatusCode::CONFLICT, detail)
            }
            DecisionError::Decided { .. } | DecisionError::Name(_) => {
                Self::new(StatusCode::CONFLICT, fault.to_string())
            }
            DecisionError::Write { .. } => Self::internal(&fault),
        }
    }
}
