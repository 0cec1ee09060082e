//! Reflections: the projects, how their scores go over the weeks, and what is weak
//! (docs/spec/reflections.md#dashboard).

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::{cursor, filters, html, link, quoted, svg};
use crate::App;
use crate::problem::Problem;
use selftest_grading::grade::reflection::{ProjectReflections, ReflectionScore, ReflectionWeek};
use selftest_grading::report::reflections::{self, proposal, trend_picture};
use selftest_store::{Page, ReflectionQuery};

/// Projects of the list.
const MAX_PROJECTS: u32 = 200;
/// Weak reflections of a page.
const MAX_WEAK: u32 = 50;

/// The query as it came; an empty text stands for none, as forms send it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    project: String,
    after: String,
}

#[derive(Template)]
#[template(path = "page/reflections.html")]
struct Reflections {
    section: &'static str,
    /// The one that is looked at; empty for all.
    project: String,
    projects: Vec<ProjectReflections>,
    /// Newest first.
    weeks: Vec<ReflectionWeek>,
    /// Of the project.
    proposal: Option<String>,
    weak: Page<ReflectionScore>,
    /// Whether this is another page than the first.
    is_later: bool,
}

impl Reflections {
    /// A path of this project, with the place that a page begins behind.
    fn href(&self, path: &str, after: &str) -> String {
        link::query(path, &[("project", &self.project), ("after", after)])
    }
}

fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Query(params): Query<Params>,
) -> Result<Response, Problem> {
    let project = given(&params.project);
    let after =
        cursor(&params.after, |cursor| cursor.value.is_none() && cursor.id.parse::<i64>().is_ok())?;
    let projects = app.store.reflecting_projects(project, MAX_PROJECTS).await?.items;
    if let (Some(name), true) = (project, projects.is_empty()) {
        let message = format!("no reflection of {} has a score", quoted(name));
        return Err(Problem::not_found(message));
    }
    let mut weeks = app.reflections.trend(project).await?;
    // The picture has the oldest first, tables the newest.
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
    html(&Reflections { section, project, projects, weeks, proposal, weak, is_later })
}

pub(super) async fn trend(
    State(app): State<Arc<App>>,
    Query(params): Query<Params>,
) -> Result<Response, Problem> {
    let weeks = app.reflections.trend(given(&params.project)).await?;
    Ok(svg(trend_picture(&weeks, app.reflections.settings().weak_threshold)?))
}
