//! Reflections: the projects, how their scores go over the weeks, and what is weak
//! (docs/spec/reflections.md#dashboard).

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::{Frame, PageError, html, link, svg, words};
use crate::App;
use selftest_grading::grade::reflection::{
    Issue, ProjectReflections, ReflectionScore, ReflectionWeek,
};
use selftest_grading::report::reflections::{cost, numbers, proposal, trend_picture};
use selftest_store::{Cursor, ReflectionQuery};

/// Projects of the list.
const PROJECTS: u32 = 200;
/// Weak reflections of a page.
const WEAK: u32 = 50;

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
    frame: Frame,
    /// The one that is looked at; without it, all.
    project: Option<String>,
    picture: String,
    projects: Vec<Project>,
    weeks: Vec<[String; 5]>,
    /// Of the project.
    proposal: Option<String>,
    weak: Vec<Weak>,
    first: Option<String>,
    older: Option<String>,
}

struct Project {
    href: String,
    name: String,
    count: String,
    average: String,
    grade: &'static str,
    weak: String,
    has_weak: bool,
    at: String,
    time: String,
}

struct Weak {
    id: String,
    project: String,
    agent: String,
    loop_count: String,
    score: String,
    threshold: String,
    issues: Vec<Fault>,
    at: String,
    time: String,
}

struct Fault {
    code: &'static str,
    text: String,
    cost: String,
}

impl From<ProjectReflections> for Project {
    fn from(project: ProjectReflections) -> Self {
        Self {
            href: link::query("/reflections", &[("project", &project.project_id)]),
            name: words::line(&project.project_id),
            count: words::count(project.count),
            average: words::score(Some(project.average_score)),
            grade: words::grade(Some(project.average_score)),
            weak: words::count(project.weak),
            has_weak: project.weak > 0,
            at: project.newest.to_string(),
            time: words::minute(project.newest),
        }
    }
}

impl From<ReflectionScore> for Weak {
    fn from(score: ReflectionScore) -> Self {
        let fault = |issue: &Issue| Fault {
            code: issue.code.name(),
            text: words::line(&issue.text),
            cost: cost(issue),
        };
        Self {
            id: words::line(&score.reflection_id),
            project: words::line(&score.project_id),
            agent: score.agent.as_deref().map_or(words::ABSENT.to_owned(), words::line),
            loop_count: words::count(score.loop_count),
            score: words::score(Some(score.score)),
            threshold: words::score(Some(score.threshold)),
            issues: score.issues.iter().map(fault).collect(),
            at: score.made_at.to_string(),
            time: words::minute(score.made_at),
        }
    }
}

/// A week as a row: name, reflections, weak ones, mean, interval.
fn row(week: &ReflectionWeek) -> [String; 5] {
    let [mean, interval] = numbers(week);
    [week.week.to_string(), words::count(week.count), words::count(week.weak), mean, interval]
}

fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn cursor(text: &str) -> Result<Cursor, PageError> {
    let read = text.parse::<Cursor>().ok();
    let read = read.filter(|cursor| cursor.value.is_none() && cursor.id.parse::<i64>().is_ok());
    read.ok_or_else(|| PageError::bad_request("after is not of this list: begin at its first page"))
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Query(params): Query<Params>,
) -> Result<Response, PageError> {
    let project = given(&params.project);
    let after = given(&params.after).map(cursor).transpose()?;
    let projects = app.store.reflecting_projects(project, PROJECTS).await?.items;
    if let (Some(name), true) = (project, projects.is_empty()) {
        let shown = words::line(name);
        return Err(PageError::not_found(format!("no reflection of {shown:?} has a score")));
    }
    let mut weeks: Vec<_> = app.reflections.trend(project).await?.iter().map(row).collect();
    // The picture has the oldest first, tables the newest.
    weeks.reverse();
    let proposed = match project {
        Some(project) => {
            let found = app.reflections.proposal(project).await?;
            Some(proposal(found.as_ref(), app.reflections.settings()))
        }
        None => None,
    };
    let is_later = after.is_some();
    let project_id = project.map(ToOwned::to_owned);
    let asked = ReflectionQuery { project_id, weak: true, limit: WEAK, after };
    let weak = app.store.reflection_scores(&asked).await?;
    let page = |after: &str| {
        link::query("/reflections", &[("project", &params.project), ("after", after)])
    };
    html(&Reflections {
        frame: Frame::of("reflections"),
        project: project.map(words::line),
        picture: link::query("/reflections/trend.svg", &[("project", &params.project)]),
        projects: projects.into_iter().map(Project::from).collect(),
        weeks,
        proposal: proposed,
        weak: weak.items.into_iter().map(Weak::from).collect(),
        first: is_later.then(|| page("")),
        older: weak.next.map(|next| page(&next.to_string())),
    })
}

pub(super) async fn trend(
    State(app): State<Arc<App>>,
    Query(params): Query<Params>,
) -> Result<Response, PageError> {
    let weeks = app.reflections.trend(given(&params.project)).await?;
    Ok(svg(trend_picture(&weeks, app.reflections.settings().weak_threshold)?))
}
