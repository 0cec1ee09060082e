//! The list of sessions, sorted, filtered and paged by the database, and the page for searching
//! them. With `?session=ID`, one session is open in a panel beside the list.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use selftest_grading::grade::{SessionKind, TaskOutcome, TaskType};
use selftest_service::search::{SearchError, SearchRequest, SearchResults, parse_time};
use selftest_store::{ResultPage, SessionQuery, SessionRow, SessionSort};
use serde::Deserialize;

use super::{filters, links, parse_cursor, quote, render_html, session};
use crate::App;
use crate::problem::Problem;

/// Maximum number of rows per page.
const MAX_ROWS: u32 = 100;

/// Raw query parameters. Forms send empty texts for missing values.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionsParams {
    sort: String,
    dir: String,
    agent: String,
    task_type: String,
    outcome: String,
    completed: String,
    min_quality: String,
    q: String,
    after: String,
    /// Session whose panel is open.
    session: String,
}

/// Sort key, heading, CSS class, and true if the first click sorts in descending order.
const COLUMNS: [(SessionSort, &str, &str, bool); 10] = [
    (SessionSort::Quality, "Quality", "num", true),
    (SessionSort::Outcome, "Outcome", "", false),
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
struct SessionsPage {
    section: &'static str,
    params: SessionsParams,
    query: SessionQuery,
    total: u64,
    agents: Vec<String>,
    page: ResultPage<SessionRow>,
    /// HTML of the open session.
    panel: Option<String>,
}

impl SessionsPage {
    /// Returns the link of a column heading. It reverses the order if the list is sorted by this
    /// column.
    fn sorted_by(&self, sort: SessionSort, first: bool) -> String {
        let descending = if sort == self.query.sort { !self.query.descending } else { first };
        self.params.link(sort.name(), if descending { "desc" } else { "asc" }, "")
    }

    fn page(&self, after: &str) -> String {
        self.params.link(&self.params.sort, &self.params.dir, after)
    }

    /// Returns the link to the same list without a panel.
    fn closed(&self) -> String {
        self.page(&self.params.after)
    }

    fn is_filtered(&self) -> bool {
        let SessionsParams { q, agent, task_type, outcome, completed, .. } = &self.params;
        [q, agent, task_type, outcome, completed].iter().any(|text| !text.is_empty())
            || self.query.min_quality.is_some()
    }
}

impl SessionsParams {
    fn query(&self) -> Result<SessionQuery, Problem> {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let sort =
            parse_parameter(&self.sort, "a valid column to sort by", |name| name.parse().ok())?;
        let sort = sort.unwrap_or(SessionSort::Time);
        let descending =
            parse_parameter(&self.dir, "a valid direction: asc or desc", |name| match name {
                "desc" => Some(true),
                "asc" => Some(false),
                _ => None,
            })?;
        // A link with only a column sorts as the first click on its heading does.
        let descending = descending.unwrap_or_else(|| first_descending(sort));
        let min_quality = parse_parameter(&self.min_quality, "a number from 0 to 1", |text| {
            text.trim().parse().ok().filter(|score| (0.0..=1.0).contains(score))
        })?;
        Ok(SessionQuery {
            sort,
            descending,
            agent: text(&self.agent),
            task_type: parse_parameter(&self.task_type, "a valid task type", TaskType::from_name)?,
            completed: parse_parameter(&self.completed, "a valid answer: yes or no", |name| {
                match name {
                    "yes" => Some(true),
                    "no" => Some(false),
                    _ => None,
                }
            })?,
            outcome: parse_parameter(&self.outcome, "a valid outcome", TaskOutcome::from_name)?,
            min_quality,
            search: text(self.q.trim()),
            parent: None,
            limit: MAX_ROWS,
            after: parse_cursor(&self.after, |cursor| sort.fits(descending, cursor))?,
        })
    }

    fn link(&self, sort: &str, dir: &str, after: &str) -> String {
        let pairs = [
            ("q", self.q.as_str()),
            ("agent", &self.agent),
            ("task_type", &self.task_type),
            ("outcome", &self.outcome),
            ("completed", &self.completed),
            ("min_quality", &self.min_quality),
            ("sort", sort),
            ("dir", dir),
            ("after", after),
        ];
        // Without `session`: a link to another order or page closes the panel, whose session may
        // not be on it.
        links::query("/sessions", &pairs)
    }
}

/// Parses a query parameter unless it is empty.
fn parse_parameter<T>(
    text: &str,
    expected: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let value = read(text).map(Some);
    value.ok_or_else(|| Problem::bad_request(format!("{} is not {expected}", quote(text))))
}

fn first_descending(sort: SessionSort) -> bool {
    COLUMNS.iter().find(|(column, ..)| *column == sort).is_none_or(|(.., descending)| *descending)
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Query(params): Query<SessionsParams>,
) -> Result<Response, Problem> {
    let query = params.query()?;
    render_html(&SessionsPage {
        section: "sessions",
        panel: match &*params.session {
            "" => None,
            id => Some(session::render_panel(&app, id).await?),
        },
        total: app.store.count_sessions(&query).await?,
        agents: app.store.agents().await?,
        page: app.store.sessions(&query).await?,
        query,
        params,
    })
}

/// Maximum number of sessions per page.
const MAX_HITS: u32 = 20;

/// Maximum length of any form field in characters.
const MAX_FIELD: usize = 500;

/// Raw query parameters. Forms send empty texts for missing values.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SearchParams {
    q: String,
    agent: String,
    project: String,
    model: String,
    tool: String,
    errors: String,
    since: String,
    until: String,
    after: String,
}

#[derive(Template)]
#[template(path = "page/search.html")]
struct SearchResultsPage {
    section: &'static str,
    params: SearchParams,
    agents: Vec<String>,
    /// `None` if the query is empty.
    found: Option<SearchResults>,
    /// Reason why nothing was searched.
    fault: Option<String>,
}

impl SearchParams {
    fn request(&self) -> Result<SearchRequest, Problem> {
        let fields = [&self.q, &self.agent, &self.project, &self.model, &self.tool, &self.after];
        if fields.iter().any(|field| field.chars().count() > MAX_FIELD) {
            let expected = format!("expected at most {MAX_FIELD} characters in each field");
            return Err(Problem::bad_request(expected));
        }
        let text = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
        let time = |text: &str| {
            if text.trim().is_empty() {
                return Ok(None);
            }
            let read = parse_time(text).map(Some);
            read.ok_or_else(|| Problem::bad_request(format!("{} is not a day", quote(text))))
        };
        Ok(SearchRequest {
            words: self.q.clone(),
            agent: text(&self.agent),
            project: text(&self.project),
            model: text(&self.model),
            tool: text(&self.tool),
            errors: !self.errors.is_empty(),
            since: time(&self.since)?,
            until: time(&self.until)?,
            limit: MAX_HITS,
            cursor: text(&self.after),
        })
    }

    fn link(&self, after: &str) -> String {
        let pairs = [
            ("q", self.q.as_str()),
            ("agent", &self.agent),
            ("project", &self.project),
            ("model", &self.model),
            ("tool", &self.tool),
            ("errors", &self.errors),
            ("since", &self.since),
            ("until", &self.until),
            ("after", after),
        ];
        links::query("/search", &pairs)
    }
}

pub(super) async fn search_page(
    State(app): State<Arc<App>>,
    Query(params): Query<SearchParams>,
) -> Result<Response, Problem> {
    let request = params.request()?;
    let (found, fault) = if params.q.trim().is_empty() {
        (None, None)
    } else {
        match request.run(&app.store).await {
            Ok(found) => (Some(found), None),
            Err(SearchError::Store(error)) => return Err(error.into()),
            Err(fault @ SearchError::Cursor) => {
                return Err(Problem::bad_request(fault.to_string()));
            }
            // Shown in the form, where the user can mend the query, instead of on an error page.
            Err(fault @ SearchError::NoWords) => (None, Some(fault.to_string())),
        }
    };
    let agents = app.store.agents().await?;
    render_html(&SearchResultsPage { section: "sessions", params, agents, found, fault })
}
