//! `/metrics`: metrics for Prometheus in its text format.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::problem::Problem;
use super::run_statistics::RunStatistics;
use super::skill_queue::RecordCounts;
use super::{App, run_blocking};
use selftest_service::jobs::QueueCounts;

/// Requests by method, route and status.
#[derive(Default)]
pub(super) struct RequestCounters {
    requests: Mutex<BTreeMap<(&'static str, String, u16), u64>>,
    runs: Mutex<super::run_statistics::RunStatisticsCache>,
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
    text.family("selftest_sessions_graded", "gauge", "Sessions with a grade by rules.");
    text.sample("selftest_sessions_graded", &[], app.store.graded_sessions().await?);
    text.family("selftest_model_grades", "gauge", "Grades of sessions by models.");
    for (model, grades) in app.store.grades_by_model().await? {
        text.sample("selftest_model_grades", &[("model", &model)], grades);
    }
    text.queue(app.queue.counts().await?, app.queue.workers().await?);
    text.skills(&app.skills.counts());
    text.family("selftest_http_requests_total", "counter", "Requests to this server.");
    let requests = counters.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for ((method, route, status), count) in requests {
        let labels = [("method", method), ("route", &route), ("status", &status.to_string())];
        text.sample("selftest_http_requests_total", &labels, count);
    }
    let media = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(CONTENT_TYPE, media)], text.0).into_response())
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
