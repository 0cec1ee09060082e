//! The HTTP server: the JSON API under `/api`, the pages, live events, `/healthz`, `/readyz`,
//! `/metrics`.
//!
//! Answers from the store and from report files; asks no model itself: requests for grades go
//! into the queue, from which workers take them. Reflections are graded at once, by rules.

mod access;
mod api;
mod attempts;
mod cache;
mod connections;
mod link;
mod live;
mod login;
pub mod mcp;
mod metrics;
mod pages;
mod problem;
mod skill_queue;
mod tally;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::limit::RequestBodyLimitLayer;

use access::Guard;
use cache::Cache;
use metrics::Counters;
use problem::Problem;
use selftest_grading::improve::routing::RoutingSettings;
use selftest_reports::document::ReportDocument;
use selftest_reports::{RunArchive, RunFile};
use selftest_service::grader::reflection::ReflectionGrader;
use selftest_service::jobs::Queue;
use selftest_service::transcripts::Transcripts;
use selftest_store::Store;
pub use skill_queue::SkillQueue;

/// The sources that the server answers from.
pub struct App {
    /// Grades, files, weekly reports.
    pub store: Store,
    /// JSON reports of selftest runs.
    pub runs: RunArchive,
    /// Where sessions wait that a model is to grade.
    pub queue: Queue,
    /// Recorded sessions as they stand in their files.
    pub transcripts: Transcripts,
    /// Grades reflections.
    pub reflections: Arc<ReflectionGrader>,
    /// Records of the use of skills, on their way into the store.
    pub skills: Arc<SkillQueue>,
    /// Settings for advice and for decisions on proposals.
    pub improvement: Improvement,
}

/// Settings for advice and for decisions on proposals.
#[derive(Debug, Clone)]
pub struct Improvement {
    /// Which tier of models is suggested for a type of task.
    pub routing: RoutingSettings,
    /// Folder that accepted skills are written to.
    pub skills_folder: PathBuf,
}

/// Who may ask.
#[derive(Debug, Default)]
pub struct Access {
    /// The token that every request must carry, where there is one.
    pub token: Option<SecretString>,
    /// Host names that are answered beside the address itself.
    pub hosts: Vec<String>,
}

impl App {
    /// The report of a run, and its file. Reads files.
    fn read_run(&self, run_id: &str) -> Result<Option<(ReportDocument, RunFile)>, Problem> {
        let read = || {
            let Some(file) = self.runs.find(run_id)? else { return Ok(None) };
            Ok(Some((self.runs.read(&file)?, file)))
        };
        read().map_err(|error| Problem::unreadable(&error))
    }
}

/// Reads files, away from the threads that answer others.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Problem::internal(&error)))
}

/// Bytes of the longest body of a request.
const MAX_BODY: usize = 64 * 1024;

/// How long connections may stay open after the end: a client that reads nothing would keep the
/// server alive for ever.
const GRACE: Duration = Duration::from_secs(10);

/// Serves over at most `max_connections` at a time until `shutdown` ends; requests that are being
/// answered are answered.
pub async fn serve(
    listener: TcpListener,
    app: App,
    access: Access,
    max_connections: NonZeroUsize,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let guard = Guard::new(access, listener.local_addr()?);
    let cache = Arc::new(Cache::new(app.store.clone()));
    let (stop, stopping) = watch::channel(false);
    let router = router(app, guard, Arc::clone(&cache), stopping.clone());
    let answer = connections::answer(listener, router, max_connections, stopping.clone());
    let end = async move {
        shutdown.await;
        stop.send_replace(true);
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        () = answer => {}
        () = end => {}
    }
    cache.close().await;
    Ok(())
}

/// Everything that is answered; events end when `stopping` turns true. Of the layers, the last one
/// is the outermost.
fn router(app: App, guard: Guard, cache: Arc<Cache>, stopping: watch::Receiver<bool>) -> Router {
    let guard = Arc::new(guard);
    let counters = Arc::<Counters>::default();
    Router::new()
        .merge(pages::router())
        .merge(live::router(stopping))
        .merge(api::router(cache, guard.needs_token()))
        .merge(login::router(Arc::clone(&guard)))
        .merge(metrics::router(Arc::clone(&counters)))
        .fallback(problem::unknown_path)
        .method_not_allowed_fallback(problem::wrong_method)
        .layer(CompressionLayer::new().gzip(true))
        .layer(RequestBodyLimitLayer::new(MAX_BODY))
        .layer(from_fn(problem::time_limit))
        .layer(from_fn(problem::explain))
        .layer(from_fn_with_state(guard, access::check))
        .layer(CatchPanicLayer::custom(problem::panicked))
        .layer(from_fn_with_state(counters, metrics::count))
        .layer(from_fn(pages::show_problems))
        .layer(from_fn(access::harden))
        .with_state(Arc::new(app))
}
