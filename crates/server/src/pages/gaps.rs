//! The page of gaps in the agent's skills, with proposals and results by task type.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::{filters, links, render_html};
use crate::App;
use crate::problem::Problem;
use selftest_grading::improve::gap::SkillGap;
use selftest_grading::improve::proposal::SkillProposal;
use selftest_grading::improve::recommend::RoutingReport;
use selftest_grading::improve::routing::TrendDirection;
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
