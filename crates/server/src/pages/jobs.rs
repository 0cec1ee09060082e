//! The scheduled jobs with their last runs, the queue of gradings, and what failed in it.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;

use super::{Frame, PageError, html, link, words};
use crate::App;
use selftest_service::jobs::{FailedGrading, LastRun, Listing, ScheduledJob};

#[derive(Template)]
#[template(path = "page/jobs.html")]
struct JobsPage {
    frame: Frame,
    jobs: Vec<JobView>,
    counts: [(&'static str, String); 4],
    workers: String,
    /// Nobody is there to do what waits.
    idle: bool,
    failed: Vec<FailedView>,
    more_failed: u64,
}

struct JobView {
    name: &'static str,
    about: &'static str,
    schedule: String,
    next: String,
    last: Option<LastView>,
}

struct LastView {
    at: String,
    state: &'static str,
    class: &'static str,
    /// Counts of the summary, and why it failed or was skipped.
    facts: Vec<(String, String)>,
}

struct FailedView {
    id: String,
    session: String,
    href: String,
    model: String,
    attempts: String,
    at: String,
    why: String,
}

fn minute(at: Option<Timestamp>) -> String {
    at.map_or_else(|| words::ABSENT.to_owned(), words::minute)
}

impl From<&ScheduledJob> for JobView {
    fn from(job: &ScheduledJob) -> Self {
        Self {
            name: job.name.name(),
            about: job.about,
            schedule: words::line(&job.schedule),
            next: minute(job.next),
            last: job.last.as_ref().map(LastView::from),
        }
    }
}

impl From<&LastRun> for LastView {
    fn from(run: &LastRun) -> Self {
        let mut facts = Vec::new();
        if let Some(summary) = &run.summary {
            let value = |value: &serde_json::Value| match value {
                serde_json::Value::String(text) => words::line(text),
                value => words::line(&value.to_string()),
            };
            let counts = summary.counts.iter();
            facts.extend(counts.map(|(name, count)| (words::spaced(name), value(count))));
            facts.extend(summary.reason.iter().map(|why| ("reason".to_owned(), words::line(why))));
            facts.extend(summary.error.iter().map(|why| ("error".to_owned(), words::line(why))));
            facts.push(("took".to_owned(), words::rough(Some(summary.elapsed_ms / 1000.0))));
        }
        if run.attempt > 1 {
            facts.push(("attempt".to_owned(), run.attempt.to_string()));
        }
        let class = match run.state {
            "completed" => "good",
            "failed" => "poor",
            "interrupted" => "fair",
            _ => "none",
        };
        Self { at: words::minute(run.started_at), state: run.state, class, facts }
    }
}

impl From<&FailedGrading> for FailedView {
    fn from(failed: &FailedGrading) -> Self {
        let session = &failed.grading.session_id;
        let model = failed.grading.model.as_deref();
        Self {
            id: words::line(&failed.id),
            session: words::line(session),
            href: link::session(session),
            model: words::line(model.unwrap_or("configured")),
            attempts: words::count(failed.attempts),
            at: minute(failed.at),
            why: words::line(&failed.why),
        }
    }
}

pub(super) async fn page(State(app): State<Arc<App>>) -> Result<Response, PageError> {
    let listing =
        Listing::of(&app.store, &app.queue, app.queue.settings(), selftest_clock::now()).await?;
    let counts = &listing.gradings;
    html(&JobsPage {
        frame: Frame::of("jobs"),
        jobs: listing.scheduled.iter().map(JobView::from).collect(),
        counts: [
            ("Waiting", words::count(counts.waiting)),
            ("Running", words::count(counts.running)),
            ("Failed", words::count(counts.failed)),
            ("Done", words::count(counts.done)),
        ],
        workers: words::plural(listing.workers, "worker"),
        idle: listing.workers == 0 && counts.waiting > 0,
        more_failed: counts.failed.saturating_sub(listing.failed.len() as u64),
        failed: listing.failed.iter().map(FailedView::from).collect(),
    })
}
