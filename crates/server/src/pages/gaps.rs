//! The pages of gaps in the agent's skills, and of a proposed skill with its decision forms, which
//! work without JavaScript.

use std::sync::Arc;

use askama::Template;
use axum::Form;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::experiment::TestView;
use super::{filters, links, quote, render_html};
use crate::App;
use crate::api::MAX_REASON;
use crate::problem::Problem;
use selftest_grading::improve::gap::SkillGap;
use selftest_grading::improve::proposal::{ProposalStatus, SkillProposal};
use selftest_grading::improve::recommend::RoutingReport;
use selftest_grading::improve::routing::TrendDirection;
use selftest_service::grader::proposals::{SkillDestination, accept, reject};
use selftest_service::grader::routing;

/// Maximum number of gaps and proposals on the page.
const MAX_ROWS: u64 = 200;
/// Maximum number of linked sessions per gap.
const MAX_SESSIONS: usize = 3;

#[derive(Template)]
#[template(path = "page/gaps.html")]
struct GapsPage {
    section: &'static str,
    gaps: Vec<SkillGap>,
    unreadable: u64,
    proposals: Vec<SkillProposal>,
    routing: RoutingReport,
}

impl GapsPage {
    fn proposals<'p>(&'p self, gap: &'p SkillGap) -> impl Iterator<Item = &'p SkillProposal> {
        self.proposals.iter().filter(|proposal| proposal.gap_id == gap.id)
    }

    /// Returns the first few sessions that show a gap.
    fn sessions(gap: &SkillGap) -> Vec<&str> {
        let mut sessions = Vec::new();
        for evidence in &gap.evidence {
            let id = evidence.session_id.as_str();
            if sessions.len() < MAX_SESSIONS && !sessions.contains(&id) {
                sessions.push(id);
            }
        }
        sessions
    }

    fn more_sessions(gap: &SkillGap) -> u64 {
        gap.sessions.saturating_sub(Self::sessions(gap).len() as u64)
    }
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let gaps = app.store.gaps(None, MAX_ROWS).await?;
    let proposals = app.store.proposals(None, MAX_ROWS).await?.items;
    let settings = &app.improvement.routing;
    let routing = routing(&app.store, settings, None, None, selftest_clock::now()).await?;
    render_html(&GapsPage {
        section: "gaps",
        gaps: gaps.items,
        unreadable: gaps.unreadable,
        proposals,
        routing,
    })
}

#[derive(Template)]
#[template(path = "page/proposal.html")]
struct ProposalPage {
    section: &'static str,
    proposal: SkillProposal,
    gap: Option<SkillGap>,
    test: TestView,
    /// Folder for accepted skills.
    folder: String,
}

fn unknown_proposal(id: &str) -> Problem {
    Problem::not_found(format!("there is no proposal {}", quote(id)))
}

pub(super) async fn proposal(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let proposal = app.store.proposal(&id).await?.ok_or_else(|| unknown_proposal(&id))?;
    render_html(&ProposalPage {
        section: "gaps",
        gap: app.store.gap(&proposal.gap_id).await?,
        test: TestView::of(proposal.experiment.as_ref()),
        folder: app.improvement.skills_folder.to_string_lossy().into_owned(),
        proposal,
    })
}

/// Fields of the decision form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DecisionForm {
    reason: String,
    /// `yes` to draft another skill.
    again: Option<String>,
}

impl DecisionForm {
    /// Returns the reason, if given. Fails if it is too long.
    fn reason(&self) -> Result<Option<&str>, Problem> {
        let reason = self.reason.trim();
        if reason.chars().count() > MAX_REASON {
            let message = format!("the reason has more than {MAX_REASON} characters");
            return Err(Problem::bad_request(message));
        }
        Ok(Some(reason).filter(|reason| !reason.is_empty()))
    }
}

pub(super) async fn accept_form(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Form(form): Form<DecisionForm>,
) -> Result<Response, Problem> {
    let place = SkillDestination::Folder(&app.improvement.skills_folder);
    accept(&app.store, &id, place, form.reason()?).await?;
    Ok(Redirect::to(&links::proposal(&id)).into_response())
}

pub(super) async fn reject_form(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Form(form): Form<DecisionForm>,
) -> Result<Response, Problem> {
    let Some(reason) = form.reason()? else {
        return Err(Problem::bad_request("say why, for those who read it later"));
    };
    reject(&app.store, &id, reason, form.again.is_some()).await?;
    Ok(Redirect::to(&links::proposal(&id)).into_response())
}
