//! The reflections page: projects, weekly trends and weak reflections
//! (docs/spec/reflections.md#dashboard).

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::{filters, links, parse_cursor, quote, render_html, svg_response};
use crate::App;
use crate::problem::Problem;
use selftest_grading::grade::reflection::{ProjectReflections, ReflectionScore, ReflectionWeek};
use selftest_grading::report::reflections::{self, proposal, trend_picture};
use selftest_store::{ReflectionQuery, ResultPage};

/// Maximum number of projects in the list.
const MAX_PROJECTS: u32 = 200;
/// Maximum number of weak reflections per page.
const MAX_WEAK: u32 = 50;

/// Raw query parameters. Forms send empty texts for missing values.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReflectionsParams {
    project: String,
    after: String,
}

#[derive(Template)]
#[template(path = "page/reflections.html")]
struct ReflectionsPage {
    section: &'static str,
    /// Selected project; empty for all.
    project: String,
    projects: Vec<ProjectReflections>,
    /// Newest first.
    weeks: Vec<ReflectionWeek>,
    /// Proposal for the project.
    proposal: Option<String>,
    weak: ResultPage<ReflectionScore>,
    /// True unless this is the first page.
    is_later: bool,
}

impl ReflectionsPage {
    /// Returns a link for this project with a pagination cursor.
    fn href(&self, path: &str, after: &str) -> String {
        links::query(path, &[("project", &self.project), ("after", after)])
    }
}

fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Query(params): Query<ReflectionsParams>,
) -> Result<Response, Problem> {
    let project = non_empty(&params.project);
    let after = parse_cursor(&params.after, |cursor| {
        cursor.value.is_none() && cursor.id.parse::<i64>().is_ok()
    })?;
    let projects = app.store.reflecting_projects(project, MAX_PROJECTS).await?.items;
    if let (Some(name), true) = (project, projects.is_empty()) {
        let message = format!("no reflection of {} has a score", quote(name));
        return Err(Problem::not_found(message));
    }
    let mut weeks = app.reflections.trend(project).await?;
    // The chart shows the oldest week first, tables the newest.
    weeks.reverse();
    let proposal = match project {
        Some(project) => {
            let found = app.reflections.proposal(project).await?;
            Some(proposal(found.as_ref(), app.reflections.settings()))
        }
        None => None,
    };
    let is_later = after.is_some();
    let project_id = project.map(ToOwned::to_owned);
    let asked = ReflectionQuery { project_id, weak: true, limit: MAX_WEAK, after };
    let weak = app.store.reflection_scores(&asked).await?;
    let (section, project) = ("reflections", params.project);
    render_html(&ReflectionsPage { section, project, projects, weeks, proposal, weak, is_later })
}

pub(super) async fn trend(
    State(app): State<Arc<App>>,
    Query(params): Query<ReflectionsParams>,
) -> Result<Response, Problem> {
    let weeks = app.reflections.trend(non_empty(&params.project)).await?;
    Ok(svg_response(trend_picture(&weeks, app.reflections.settings().weak_threshold)?))
}
