//! The page of scheduled jobs with their last runs, the grading queue and its failures.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use serde_json::Value;

use super::{filters, links, render_html};
use crate::App;
use crate::problem::Problem;
use selftest_service::jobs::{JobListing, LastJobRun};
use selftest_text::wording;

#[derive(Template)]
#[template(path = "page/jobs.html")]
struct JobsPage {
    section: &'static str,
    listing: JobListing,
}

impl JobsPage {
    /// Returns the number of failed gradings that are not listed.
    fn more_failed(&self) -> u64 {
        self.listing.gradings.failed.saturating_sub(self.listing.failed.len() as u64)
    }

    /// Returns the counts of the summary, and why the run failed or was skipped.
    fn facts(run: &LastJobRun) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        if let Some(summary) = &run.summary {
            facts.extend(summary.counts.iter().map(|(name, value)| match value {
                Value::String(text) => (name.replace('_', " "), text.clone()),
                value => (name.replace('_', " "), value.to_string()),
            }));
            facts.extend(summary.reason.iter().map(|why| ("reason".to_owned(), why.clone())));
            facts.extend(summary.error.iter().map(|why| ("error".to_owned(), why.clone())));
            let took = wording::minutes(summary.elapsed_ms / 1000.0);
            facts.push(("took".to_owned(), took));
        }
        if run.attempt > 1 {
            facts.push(("attempt".to_owned(), run.attempt.to_string()));
        }
        facts
    }
}

pub(super) async fn page(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let settings = app.queue.settings();
    let listing =
        JobListing::collect(&app.store, &app.queue, settings, selftest_clock::now()).await?;
    render_html(&JobsPage { section: "jobs", listing })
}
