//! The page for searching sessions.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::{filters, links, quote, render_html};
use crate::App;
use crate::problem::Problem;
use selftest_service::search::{SearchError, SearchRequest, SearchResults, parse_time};

/// Maximum number of sessions per page.
const MAX_ROWS: u32 = 20;

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
            limit: MAX_ROWS,
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

pub(super) async fn page(
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
            Err(fault @ SearchError::NoWords) => (None, Some(fault.to_string())),
        }
    };
    let agents = app.store.agents().await?;
    render_html(&SearchResultsPage { section: "sessions", params, agents, found, fault })
}
