//! The page of a recorded session with its events, each with an anchor. The file path comes from
//! the store: URLs contain only session and event, never a file.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::{filters, links, quote, render_html};
use crate::App;
use crate::problem::Problem;
use selftest_grading::grade::GradeRecord;
use selftest_grading::report::session::{ViewOptions, event_views, render_events_html};
use selftest_service::transcripts::{TranscriptError, TranscriptPart};
use selftest_store::{SessionQuery, SessionRow, SessionSort};

/// Number of events per page.
const PAGE_EVENTS: u64 = 200;

/// Maximum number of listed sessions started by this one.
const MAX_STARTED: u32 = 50;

/// Maximum length of a quote in characters.
const MAX_QUOTE: usize = 2000;

/// Query parameters: the part of a session to show.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TranscriptParams {
    from: Option<u64>,
    event: Option<u64>,
    /// Set to show a single event without shortening its texts.
    alone: Option<String>,
    /// Set after a search for a quote that no event contains.
    lost: Option<String>,
}

/// Query parameters: the event to find.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventParams {
    number: Option<u64>,
    quote: String,
}

#[derive(Template)]
#[template(path = "page/transcript.html")]
struct TranscriptPage {
    section: &'static str,
    grade: GradeRecord,
    part: TranscriptPart,
    events: String,
    /// Sessions that this one started, or that continue it.
    started: Vec<SessionRow>,
    from: u64,
    is_alone: bool,
    is_lost: bool,
}

#[derive(Template)]
#[template(path = "page/transcript_gone.html")]
struct TranscriptMissingPage {
    section: &'static str,
    grade: GradeRecord,
    why: String,
}

impl TranscriptPage {
    fn last_page(&self) -> u64 {
        self.part.overview.events.saturating_sub(1) / PAGE_EVENTS * PAGE_EVENTS
    }

    fn end(&self) -> u64 {
        self.from + self.part.events.len() as u64
    }

    fn page(&self, from: u64) -> String {
        links::transcript(&self.grade.session_id, from)
    }
}

async fn load_grade(app: &App, id: &str) -> Result<GradeRecord, Problem> {
    let grade = app.store.grade(id).await?;
    grade.ok_or_else(|| Problem::not_found(format!("no session {} has a grade", quote(id))))
}

/// Reports that the file is missing or changed, which is not a server error. The page still shows
/// the stored grade.
fn transcript_missing(grade: GradeRecord, error: &TranscriptError) -> Result<Response, Problem> {
    // The worker that reads files failed; the file itself may be fine.
    if let TranscriptError::Failed { why } = error {
        return Err(Problem::internal(why));
    }
    let page =
        render_html(&TranscriptMissingPage { section: "sessions", grade, why: error.to_string() })?;
    Ok((StatusCode::NOT_FOUND, page).into_response())
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(params): Query<TranscriptParams>,
) -> Result<Response, Problem> {
    let grade = load_grade(&app, &id).await?;
    let is_alone = params.alone.is_some() && params.event.is_some();
    // Pages have fixed borders, so that the link of an event always leads to the same page.
    let (from, count) = match (params.from, params.event) {
        (_, Some(event)) if is_alone => (event, 1),
        (Some(from), _) => (from, PAGE_EVENTS),
        (None, event) => (event.unwrap_or_default() / PAGE_EVENTS * PAGE_EVENTS, PAGE_EVENTS),
    };
    // The number comes from the URL and may be the largest there is.
    let wanted = from..from.saturating_add(count);
    let part = match app.transcripts.part(&id, &grade.session_file, wanted).await {
        Ok(part) => part,
        Err(error) => return transcript_missing(grade, &error),
    };
    let last = params.event.unwrap_or(from);
    if last >= part.overview.events {
        let events = selftest_text::wording::plural(part.overview.events, "event");
        let detail = format!("the session has {events}, and none of them is number {last}");
        return Err(Problem::not_found(detail));
    }
    let alone = |event: u64| format!("{}&alone=yes", links::transcript_event(&id, event));
    let showing = ViewOptions {
        prices: app.transcripts.prices(),
        target: params.event,
        full_event_link: if is_alone { None } else { Some(&alone) },
    };
    let events = render_events_html(&event_views(&part.events, showing))?;
    let query = SessionQuery {
        sort: SessionSort::Time,
        descending: false,
        parent: Some(id),
        limit: MAX_STARTED,
        ..SessionQuery::default()
    };
    // Shown on the first page only: the list has no place in the order of events.
    let started = if from == 0 { app.store.sessions(&query).await?.items } else { Vec::new() };
    let is_lost = params.lost.is_some();
    render_html(&TranscriptPage {
        section: "sessions",
        grade,
        part,
        events,
        started,
        from,
        is_alone,
        is_lost,
    })
}

/// Redirects to the page of an event.
pub(super) async fn event(Path((id, number)): Path<(String, u64)>) -> Redirect {
    Redirect::to(&links::shown_event(&id, number))
}

/// Redirects to the event with this number, or to the first one that contains a quote.
pub(super) async fn find_event(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(wanted): Query<EventParams>,
) -> Result<Response, Problem> {
    if let Some(number) = wanted.number {
        return Ok(Redirect::to(&links::shown_event(&id, number)).into_response());
    }
    let quote = wanted.quote.trim();
    // Searching reads the whole file, so that an endless quote must not get that far.
    if quote.is_empty() || quote.chars().count() > MAX_QUOTE {
        let expected = format!("expected a number or a quote of at most {MAX_QUOTE} characters");
        return Err(Problem::bad_request(expected));
    }
    let grade = load_grade(&app, &id).await?;
    match app.transcripts.find_quote(&id, &grade.session_file, quote).await {
        Ok(Some(number)) => Ok(Redirect::to(&links::shown_event(&id, number)).into_response()),
        Ok(None) => {
            let path = format!("{}/transcript", links::session(&id));
            Ok(Redirect::to(&links::query(&path, &[("lost", "yes")])).into_response())
        }
        Err(error) => transcript_missing(grade, &error),
    }
}
