//! `/metrics`: metrics for Prometheus in its text format.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::problem::Problem;
use super::skill_queue::RecordCounts;
use super::{App, run_blocking};
use selftest_harness::outcome::{CaseStatus, RunOutcome};
use selftest_harness::sut::namespace::RunId;
use selftest_reports::document::ReportDocument;
use selftest_reports::{RunArchive, RunFile};
use selftest_service::jobs::QueueCounts;

/// Requests by method, route and status.
#[derive(Default)]
pub(super) struct RequestCounters {
    requests: Mutex<BTreeMap<(&'static str, String, u16), u64>>,
    runs: Mutex<RunStatisticsCache>,
}

/// Middleware that counts every request. Labels use route patterns, so clients cannot increase
/// their number.
pub(super) async fn count_requests(
    State(counters): State<Arc<RequestCounters>>,
    request: Request,
    next: Next,
) -> Response {
    let method = match *request.method() {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        // Other methods share a label, so that clients cannot create new ones.
        _ => "other",
    };
    // The pattern and not the path: ids in paths would make a series each.
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or_else(|| "none".to_owned(), |route| route.as_str().to_owned());
    let response = next.run(request).await;
    let key = (method, route, response.status().as_u16());
    *counters.requests.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default() += 1;
    response
}

pub(super) fn router(counters: Arc<RequestCounters>) -> Router<Arc<App>> {
    let shown = async move |State(app): State<Arc<App>>| render_metrics(&app, counters).await;
    Router::new().route("/metrics", get(shown))
}

async fn render_metrics(
    app: &Arc<App>,
    counters: Arc<RequestCounters>,
) -> Result<Response, Problem> {
    let mut text = MetricsText::default();
    let runs = {
        let (app, counters) = (Arc::clone(app), Arc::clone(&counters));
        run_blocking(move || {
            // Locked while reading, so that concurrent requests do not read the reports twice.
            let mut known = counters.runs.lock().unwrap_or_else(PoisonError::into_inner);
            known.tally(&app.runs).map_err(|error| Problem::unreadable_reports(&error))
        })
        .await?
    };
    text.runs(&runs);
    // The counters of this server are needed most while the database is away.
    let stored = tokio::time::timeout(READ_WITHIN, StoredCounts::read(app)).await;
    let stored = stored.ok().and_then(Result::ok);
    text.family("selftest_database_up", "gauge", "1 if the database answers, otherwise 0.");
    text.sample("selftest_database_up", &[], u8::from(stored.is_some()));
    if let Some(stored) = stored {
        text.stored(stored);
    }
    text.skills(&app.skills.counts());
    text.family("selftest_http_requests_total", "counter", "Requests to this server.");
    // Copied, so that no request waits to be counted while the text is written.
    let requests = counters.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for ((method, route, status), count) in requests {
        let labels = [("method", method), ("route", &route), ("status", &status.to_string())];
        text.sample("selftest_http_requests_total", &labels, count);
    }
    let media = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(CONTENT_TYPE, media)], text.0).into_response())
}

/// Time limit for the database; Prometheus itself waits for 10 s.
const READ_WITHIN: Duration = Duration::from_secs(5);

/// What the database counts.
struct StoredCounts {
    graded_sessions: u64,
    grades_by_model: Vec<(String, u64)>,
    queue: QueueCounts,
    workers: u64,
}

impl StoredCounts {
    async fn read(app: &App) -> Result<Self, Problem> {
        Ok(Self {
            graded_sessions: app.store.graded_sessions().await?,
            grades_by_model: app.store.grades_by_model().await?,
            queue: app.queue.counts().await?,
            workers: app.queue.workers().await?,
        })
    }
}

/// Metrics text under construction.
#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.0.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        // The format escapes exactly these three (exposition format 0.0.4).
        let escaped =
            |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.0.push_str(&format!("{name}{labels} {value}\n"));
    }

    fn stored(&mut self, stored: StoredCounts) {
        self.family("selftest_sessions_graded", "gauge", "Sessions with a grade by rules.");
        self.sample("selftest_sessions_graded", &[], stored.graded_sessions);
        self.family("selftest_model_grades", "gauge", "Grades of sessions by models.");
        for (model, grades) in stored.grades_by_model {
            self.sample("selftest_model_grades", &[("model", &model)], grades);
        }
        self.queue(stored.queue, stored.workers);
    }

    fn queue(&mut self, counts: QueueCounts, workers: u64) {
        self.family("selftest_jobs", "gauge", "Jobs in the queue, by kind and state.");
        let QueueCounts { waiting, running, failed, done } = counts;
        let states =
            [("waiting", waiting), ("running", running), ("failed", failed), ("done", done)];
        for (state, jobs) in states {
            let labels = [("kind", "session_grading"), ("state", state)];
            self.sample("selftest_jobs", &labels, jobs);
        }
        self.family("selftest_workers", "gauge", "Workers that take from the queue.");
        self.sample("selftest_workers", &[], workers);
    }

    fn skills(&mut self, records: &RecordCounts) {
        for (what, help, unknown, counts) in [
            ("executions", "Executions of skills", "unknown_skill", records.executions),
            ("messages", "Messages after executions of skills", "no_execution", records.messages),
        ] {
            let name = format!("selftest_skill_{what}_written_total");
            self.family(&name, "counter", &format!("{help} that were kept."));
            self.sample(&name, &[], counts.written);
            let name = format!("selftest_skill_{what}_dropped_total");
            self.family(&name, "counter", &format!("{help} that were not kept, by reason."));
            let reasons = [
                ("full", counts.full),
                ("failing", counts.failing),
                (unknown, counts.unknown),
                ("failed", counts.failed),
            ];
            for (reason, count) in reasons {
                self.sample(&name, &[("reason", reason)], count);
            }
        }
    }

    fn runs(&mut self, tally: &RunStatistics) {
        self.family("selftest_runs", "gauge", "Reports of runs, by outcome.");
        for (outcome, runs) in &tally.runs {
            self.sample("selftest_runs", &[("outcome", outcome)], runs);
        }
        self.family("selftest_cases", "gauge", "Cases of these runs, by status.");
        for (status, cases) in &tally.cases {
            self.sample("selftest_cases", &[("status", status.name())], cases);
        }
        self.family("selftest_judge_tokens", "gauge", "Tokens of the judge in these runs.");
        for (kind, tokens) in [("prompt", tally.prompt_tokens), ("reply", tally.reply_tokens)] {
            self.sample("selftest_judge_tokens", &[("kind", kind)], tokens);
        }
        let name = "selftest_judge_call_seconds";
        self.family(name, "histogram", "Calls of the judge in these runs, and how long they took.");
        for (most, calls) in tally.latencies() {
            self.sample(&format!("{name}_bucket"), &[("le", &most)], calls);
        }
        self.sample(&format!("{name}_sum"), &[], tally.seconds);
        self.sample(&format!("{name}_count"), &[], tally.calls);
    }
}

/// Maximum number of runs to include, newest first.
const MAX_RUNS: usize = 100;

/// Outcome of an unfinished run.
pub(super) const UNFINISHED: &str = "unfinished";

/// Upper bounds in seconds of the latency histogram.
const BOUNDS: [f64; 10] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];

/// Statistics over runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RunStatistics {
    pub(super) runs: BTreeMap<&'static str, u64>,
    pub(super) cases: BTreeMap<CaseStatus, u64>,
    pub(super) prompt_tokens: u64,
    pub(super) reply_tokens: u64,
    /// Number of judge calls.
    pub(super) calls: u64,
    /// Total duration in seconds.
    pub(super) seconds: f64,
    /// Number of calls up to each of [`BOUNDS`].
    within: [u64; BOUNDS.len()],
}

impl RunStatistics {
    fn from_report(report: &ReportDocument) -> Self {
        let mut own = Self::default();
        own.runs.insert(report.outcome.map_or(UNFINISHED, RunOutcome::name), 1);
        for (status, cases) in &report.summary.by_status {
            *own.cases.entry(*status).or_default() += u64::from(*cases);
        }
        let steps = report.cases.iter().flat_map(|case| &case.steps);
        let judgements = steps.filter_map(|step| step.judgement.as_ref());
        for call in judgements.flat_map(|judgement| &judgement.calls) {
            let seconds = std::time::Duration::from_millis(call.duration_ms).as_secs_f64();
            own.calls += 1;
            own.seconds += seconds;
            own.prompt_tokens += call.usage.prompt_tokens.unwrap_or_default();
            own.reply_tokens += call.usage.completion_tokens.unwrap_or_default();
            // Prometheus buckets are cumulative.
            for (count, bound) in own.within.iter_mut().zip(BOUNDS) {
                *count += u64::from(seconds <= bound);
            }
        }
        own
    }

    fn add(&mut self, other: &Self) {
        for (outcome, runs) in &other.runs {
            *self.runs.entry(outcome).or_default() += runs;
        }
        for (status, cases) in &other.cases {
            *self.cases.entry(*status).or_default() += cases;
        }
        self.prompt_tokens += other.prompt_tokens;
        self.reply_tokens += other.reply_tokens;
        self.calls += other.calls;
        self.seconds += other.seconds;
        for (count, more) in self.within.iter_mut().zip(other.within) {
            *count += more;
        }
    }

    /// Returns the number of calls up to each bound, formatted as text, with `+Inf` last.
    pub(super) fn latencies(&self) -> impl Iterator<Item = (String, u64)> {
        let all = ("+Inf".to_owned(), self.calls);
        BOUNDS.iter().map(ToString::to_string).zip(self.within).chain([all])
    }
}

/// Cached statistics by report.
#[derive(Default)]
pub(super) struct RunStatisticsCache(HashMap<RunId, (RunFile, RunStatistics)>);

impl RunStatisticsCache {
    /// Computes statistics over the newest runs. Files that are not reports are ignored.
    pub(super) fn tally(&mut self, runs: &RunArchive) -> io::Result<RunStatistics> {
        let mut files = runs.files()?;
        files.truncate(MAX_RUNS);
        // Entries of reports that no longer exist are not carried over.
        let mut before = std::mem::take(&mut self.0);
        let mut all = RunStatistics::default();
        for file in files {
            let known = before.remove(&file.run_id).filter(|(known, _)| *known == file);
            let tally = match known {
                Some((_, tally)) => tally,
                // An unfinished run replaces its report, which may be missing at this moment.
                None => runs
                    .read(&file)
                    .map(|report| RunStatistics::from_report(&report))
                    .unwrap_or_default(),
            };
            all.add(&tally);
            self.0.insert(file.run_id.clone(), (file, tally));
        }
        Ok(all)
    }
}
