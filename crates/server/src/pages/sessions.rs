//! The list of sessions: sorted, filtered and paged by the database.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::{Frame, PageError, html, link, words};
use crate::App;
use selftest_grading::grade::TaskType;
use selftest_store::{Cursor, SessionQuery, SessionRow, SessionSort};

/// Rows of a page.
const ROWS: u32 = 100;

/// The query as it came; an empty text stands for none, as forms send it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    sort: String,
    dir: String,
    agent: String,
    task_type: String,
    completed: String,
    min_quality: String,
    q: String,
    after: String,
}

/// Sort, heading, class of the column, and whether the highest come first at the first click.
const COLUMNS: [(SessionSort, &str, &str, bool); 10] = [
    (SessionSort::Quality, "Quality", "num", true),
    (SessionSort::Completed, "Done", "", true),
    (SessionSort::Efficiency, "Efficiency", "num wide", true),
    (SessionSort::Response, "Response", "num wide", true),
    (SessionSort::Errors, "Errors", "num", true),
    (SessionSort::Calls, "Calls", "num wide", true),
    (SessionSort::Duration, "Duration", "num wide", true),
    (SessionSort::TaskType, "Task type", "wide", false),
    (SessionSort::Agent, "Agent", "wide", false),
    (SessionSort::Time, "Time (UTC)", "time", true),
];

#[derive(Template)]
#[template(path = "page/sessions.html")]
struct Sessions {
    frame: Frame,
    params: Params,
    total: String,
    columns: Vec<Heading>,
    agents: Vec<Choice>,
    task_types: Vec<Choice>,
    completed: [Choice; 2],
    filtered: bool,
    rows: Vec<Row>,
    older: Option<String>,
    first: Option<String>,
}

struct Heading {
    name: &'static str,
    class: &'static str,
    href: String,
    /// `aria-sort`, of the column that the list is sorted by.
    order: Option<&'static str>,
}

struct Choice {
    value: String,
    name: String,
    chosen: bool,
}

struct Row {
    href: String,
    summary: String,
    id: String,
    agent: String,
    model: String,
    task_type: String,
    done: bool,
    efficiency: u8,
    response: u8,
    errors: String,
    has_errors: bool,
    calls: String,
    duration: String,
    at: String,
    day: String,
    hour: String,
    quality: String,
    /// A model has graded it and could not tell.
    untold: bool,
    percent: String,
    grade: &'static str,
}

impl From<SessionRow> for Row {
    fn from(row: SessionRow) -> Self {
        let time = row.counts_at.map(words::minute).unwrap_or_default();
        let (day, hour) = time.split_once(' ').unwrap_or((words::ABSENT, ""));
        let summary = words::line(row.task_summary.as_deref().unwrap_or_default());
        Self {
            href: link::session(&row.session_id),
            summary: if summary.is_empty() { "(no request)".to_owned() } else { summary },
            id: words::line(&row.session_id),
            agent: words::line(row.agent.as_deref().unwrap_or_default()),
            model: words::line(row.model.as_deref().unwrap_or_default()),
            task_type: row.task_type.map(|kind| words::spaced(kind.name())).unwrap_or_default(),
            done: row.task_completed,
            efficiency: row.tool_calls_efficient,
            response: row.response_quality,
            errors: words::count(row.total_errors),
            has_errors: row.total_errors > 0,
            calls: words::count(row.total_api_calls),
            duration: words::rough(row.duration_seconds),
            at: row.counts_at.map(|at| at.to_string()).unwrap_or_default(),
            day: day.to_owned(),
            hour: hour.to_owned(),
            quality: words::score(row.quality),
            untold: row.quality_graded && row.quality.is_none(),
            percent: words::percent(row.quality),
            grade: words::grade(row.quality),
        }
    }
}

impl Params {
    fn query(&self) -> Result<SessionQuery, PageError> {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let sort = match self.sort.as_str() {
            "" => SessionSort::Time,
            name => name
                .parse()
                .map_err(|_| PageError::bad_request(format!("{name:?} is no column to sort by")))?,
        };
        let descending = match self.dir.as_str() {
            "" => first_descending(sort),
            "desc" => true,
            "asc" => false,
            other => return Err(PageError::bad_request(format!("dir is {other:?}: asc or desc"))),
        };
        let task_type = match self.task_type.as_str() {
            "" => None,
            name => Some(
                TaskType::from_name(name)
                    .ok_or_else(|| PageError::bad_request(format!("{name:?} is no task type")))?,
            ),
        };
        let completed = match self.completed.as_str() {
            "" => None,
            "yes" => Some(true),
            "no" => Some(false),
            other => {
                return Err(PageError::bad_request(format!("completed is {other:?}: yes or no")));
            }
        };
        let min_quality = match self.min_quality.trim() {
            "" => None,
            text => match text.parse::<f64>() {
                Ok(score) if (0.0..=1.0).contains(&score) => Some(score),
                _ => {
                    let why = format!("the least quality is {text:?}: a number from 0 to 1");
                    return Err(PageError::bad_request(why));
                }
            },
        };
        let after = match self.after.as_str() {
            "" => None,
            text => Some(cursor(text, sort, descending)?),
        };
        Ok(SessionQuery {
            sort,
            descending,
            agent: given(&self.agent),
            task_type,
            completed,
            min_quality,
            search: given(self.q.trim()),
            limit: ROWS,
            after,
        })
    }

    fn link(&self, sort: &str, dir: &str, after: &str) -> String {
        let pairs = [
            ("q", self.q.as_str()),
            ("agent", &self.agent),
            ("task_type", &self.task_type),
            ("completed", &self.completed),
            ("min_quality", &self.min_quality),
            ("sort", sort),
            ("dir", dir),
            ("after", after),
        ];
        link::query("/sessions", &pairs)
    }
}

fn cursor(text: &str, sort: SessionSort, descending: bool) -> Result<Cursor, PageError> {
    let read = text.parse::<Cursor>().ok().filter(|cursor| sort.fits(descending, cursor));
    read.ok_or_else(|| PageError::bad_request("after is not of this list: begin at its first page"))
}

fn first_descending(sort: SessionSort) -> bool {
    COLUMNS.iter().find(|(column, ..)| *column == sort).is_none_or(|(.., descending)| *descending)
}

fn headings(params: &Params, query: &SessionQuery) -> Vec<Heading> {
    let heading = |(sort, name, class, first): (SessionSort, _, _, bool)| {
        let current = sort == query.sort;
        let descending = if current { !query.descending } else { first };
        Heading {
            name,
            class,
            href: params.link(sort.name(), if descending { "desc" } else { "asc" }, ""),
            order: current.then_some(if query.descending { "descending" } else { "ascending" }),
        }
    };
    COLUMNS.into_iter().map(heading).collect()
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Query(params): Query<Params>,
) -> Result<Response, PageError> {
    let query = params.query()?;
    let total = app.store.count_sessions(&query).await?;
    let agents = app.store.agents().await?;
    let page = app.store.sessions(&query).await?;
    let choice = |value: &str, name: String, chosen: &str| Choice {
        value: value.to_owned(),
        name,
        chosen: value == chosen,
    };
    let unpaged = params.link(&params.sort, &params.dir, "");
    html(&Sessions {
        frame: Frame::of("sessions"),
        total: words::count(total) + if total == 1 { " session" } else { " sessions" },
        columns: headings(&params, &query),
        agents: agents
            .iter()
            .map(|agent| choice(agent, words::line(agent), &params.agent))
            .collect(),
        task_types: TaskType::ALL
            .iter()
            .map(|kind| choice(kind.name(), words::spaced(kind.name()), &params.task_type))
            .collect(),
        completed: [("yes", "done"), ("no", "not done")]
            .map(|(value, name)| choice(value, name.to_owned(), &params.completed)),
        filtered: [&params.q, &params.agent, &params.task_type, &params.completed]
            .iter()
            .any(|text| !text.is_empty())
            || query.min_quality.is_some(),
        older: page.next.map(|next| params.link(&params.sort, &params.dir, &next.to_string())),
        first: query.after.is_some().then_some(unpaged),
        rows: page.items.into_iter().map(Row::from).collect(),
        params,
    })
}
