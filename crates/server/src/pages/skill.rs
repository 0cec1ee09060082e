//! The page of one skill version: its score and components, its executions, and the history of the
//! skill.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::Response;

use super::skills::{SkillsParams, WeeksChart, parse_skills_cursor};
use super::{filters, links, quote, render_html};
use crate::App;
use crate::api::{today, weeks_of};
use crate::problem::Problem;
use selftest_grading::improve::effectiveness::{Effectiveness, MIN_EXECUTIONS};
use selftest_grading::improve::skill::{AuditEntry, ExecutionStatus, SkillExecution, SkillVersion};
use selftest_service::grader::skills::SkillChangeError;
use selftest_store::ResultPage;

/// Maximum number of rows per page.
const MAX_ROWS: u32 = 50;

#[derive(Template)]
#[template(path = "page/skill.html")]
struct SkillDetailPage {
    section: &'static str,
    skill: SkillVersion,
    effectiveness: Effectiveness,
    weeks: WeeksChart,
    executions: ResultPage<SkillExecution>,
    is_later: bool,
    versions: Vec<SkillVersion>,
    audit: Vec<AuditEntry>,
}

impl SkillDetailPage {
    /// Returns the version that a history entry is about.
    fn version(&self, entry: &AuditEntry) -> &str {
        let version = self.versions.iter().find(|version| version.id == entry.skill_version_id);
        version.map(|version| version.version.as_str()).unwrap_or_default()
    }
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(params): Query<SkillsParams>,
) -> Result<Response, Problem> {
    let after = parse_skills_cursor(&params)?;
    let tracker = app.skills.tracker();
    let skill = tracker.find_by_id(&id).await.map_err(|error| match error {
        SkillChangeError::Store(error) => error.into(),
        _ => Problem::not_found(format!("there is no skill with the id {}", quote(&id))),
    })?;
    let days = tracker.days(today()).await?;
    render_html(&SkillDetailPage {
        section: "skills",
        effectiveness: tracker.compute_effectiveness(&skill.id).await?,
        weeks: WeeksChart::of(&weeks_of(&skill, &days)),
        executions: app.store.skill_executions(&skill.id, MAX_ROWS, after.as_ref()).await?,
        is_later: after.is_some(),
        versions: app.store.skill_versions(&skill.user_id, &skill.skill_name).await?,
        audit: app.store.skill_audit(&skill.user_id, &skill.skill_name).await?.items,
        skill,
    })
}
