//! Live events of a running self-test. Watches the run's JSON report, which is rewritten after each
//! case, and sends changes rendered with the page's templates.
//!
//! The events `progress` and `case` carry HTML, `said` carries a sentence, and `end` marks the end.
//! A browser that reconnects receives everything again and replaces its contents.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use askama::Template as _;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::App;
use super::pages::{CaseRow, RunProgress, shared_causes};
use super::problem::Problem;
use selftest_reports::RunFile;
use selftest_reports::document::ReportDocument;

/// Polling interval of the file.
const CHECK_INTERVAL: Duration = Duration::from_millis(300);
/// Maximum number of streams of all clients.
const MAX_STREAMS: usize = 64;
static STREAMS: Semaphore = Semaphore::const_new(MAX_STREAMS);
/// Maximum number of reports in memory, regardless of the number of streams.
static READING: Semaphore = Semaphore::const_new(2);

/// Returns the route of live events. Streams end when `stopping` becomes true, because shutdown
/// waits for open responses.
pub(super) fn router(stopping: watch::Receiver<bool>) -> Router<Arc<App>> {
    let events =
        async move |state: State<Arc<App>>, path: Path<String>| events(state, path, stopping).await;
    Router::new().route("/live/runs/{run_id}", get(events))
}

async fn events(
    State(app): State<Arc<App>>,
    Path(run_id): Path<String>,
    stopping: watch::Receiver<bool>,
) -> Response {
    // Not awaited: a browser opens at most six connections to a server over HTTP/1.1, and pages
    // that wait for a place would block all others of the same browser.
    let Ok(place) = STREAMS.try_acquire() else {
        let words = "too many pages watch runs already; reload the page instead";
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, words).into_response();
    };
    if find_run(&app, &run_id).await.is_none() {
        return Problem::new(StatusCode::NOT_FOUND, "there is no such run").into_response();
    }
    let watch = RunWatch {
        app,
        run_id,
        seen: None,
        rows: Vec::new(),
        ready: VecDeque::new(),
        ended: false,
        stopping,
        _place: place,
    };
    let events = stream::unfold(watch, |mut watch| async move {
        let event = watch.next_event().await?;
        Some((Ok::<_, Infallible>(event), watch))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

struct RunWatch {
    app: Arc<App>,
    run_id: String,
    /// The file when it was last read.
    seen: Option<RunFile>,
    /// Rows already sent.
    rows: Vec<String>,
    ready: VecDeque<Event>,
    ended: bool,
    stopping: watch::Receiver<bool>,
    _place: SemaphorePermit<'static>,
}

impl RunWatch {
    async fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.ended || *self.stopping.borrow() {
                return None;
            }
            // The first check happens at once.
            if self.seen.is_some() {
                tokio::select! {
                    () = tokio::time::sleep(CHECK_INTERVAL) => {}
                    _ = self.stopping.changed() => return None,
                }
            }
            self.detect_changes().await?;
        }
    }

    /// Queues changes in `ready`. Returns `None` if the file is gone.
    async fn detect_changes(&mut self) -> Option<()> {
        let file = find_run(&self.app, &self.run_id).await?;
        if self.seen.as_ref() == Some(&file) {
            return Some(());
        }
        let changes = {
            // Every watcher of a run sees its report change at once; parsing it for all of them at
            // a time would take all processors.
            let _reading = READING.acquire().await.ok()?;
            let (app, reading) = (Arc::clone(&self.app), file.clone());
            let read = move || {
                // A report that cannot be read ends the stream; the browser connects again by
                // itself.
                app.runs.read(&reading).ok().and_then(|report| RunChanges::from_report(&report))
            };
            tokio::task::spawn_blocking(read).await.ok()??
        };
        self.seen = Some(file);
        self.ready.push_back(Event::default().event("progress").data(changes.progress));
        // A rewritten report repeats earlier rows.
        for row in changes.rows {
            if !self.rows.contains(&row) {
                self.ready.push_back(Event::default().event("case").data(&row));
                self.rows.push(row);
            }
        }
        self.ready.push_back(Event::default().event("said").data(changes.sentence));
        if changes.complete {
            self.ended = true;
            self.ready.push_back(Event::default().event("end").data("complete"));
        }
        Some(())
    }
}

/// A report rendered for the page.
struct RunChanges {
    progress: String,
    sentence: String,
    rows: Vec<String>,
    complete: bool,
}

impl RunChanges {
    fn from_report(report: &ReportDocument) -> Option<Self> {
        let progress = RunProgress { report };
        let causes = shared_causes(report);
        let row = |case| CaseRow { report, case, causes: &causes }.render().ok();
        Some(Self {
            sentence: progress.sentence(),
            progress: progress.render().ok()?,
            rows: report.cases.iter().filter_map(row).collect(),
            complete: report.complete,
        })
    }
}

async fn find_run(app: &Arc<App>, run_id: &str) -> Option<RunFile> {
    let (app, run_id) = (Arc::clone(app), run_id.to_owned());
    // Reading the folder must not hold up other requests.
    let found = tokio::task::spawn_blocking(move || app.runs.find(&run_id).ok().flatten());
    found.await.ok().flatten()
}
