//! The HTTP server: the JSON API under `/api`, the pages, live events, `/healthz`, `/readyz`,
//! `/metrics`.
//!
//! Serves data from the store and report files. It calls no model itself: requests for grades are
//! queued for workers. Reflections are graded immediately, by rules.

mod access;
mod api;
mod cache;
mod connections;
mod links;
mod live;
mod login;
pub mod mcp;
mod metrics;
mod pages;
mod problem;
mod skill_queue;

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

use access::AccessGuard;
use cache::ResponseCache;
use metrics::RequestCounters;
use problem::Problem;
use selftest_grading::improve::routing::RoutingSettings;
use selftest_reports::document::ReportDocument;
use selftest_reports::{RunArchive, RunFile};
use selftest_service::grader::reflection::ReflectionGrader;
use selftest_service::jobs::GradingQueue;
use selftest_service::transcripts::TranscriptReader;
use selftest_store::Store;
pub use skill_queue::SkillQueue;

/// Data sources of the server.
pub struct App {
    /// Grades, files and weekly reports.
    pub store: Store,
    /// JSON reports of selftest runs.
    pub runs: RunArchive,
    /// Queue of sessions to be graded by a model.
    pub queue: GradingQueue,
    /// Recorded sessions, read from their files.
    pub transcripts: TranscriptReader,
    /// Grader of reflections.
    pub reflections: Arc<ReflectionGrader>,
    /// Queue of skill records to be stored.
    pub skills: Arc<SkillQueue>,
    /// Settings for routing and proposals.
    pub improvement: ImprovementSettings,
}

/// Settings for routing and proposals.
#[derive(Debug, Clone)]
pub struct ImprovementSettings {
    /// Model tiers suggested per task type.
    pub routing: RoutingSettings,
    /// Folder for accepted skills.
    pub skills_folder: PathBuf,
}

/// Access restrictions.
#[derive(Debug, Default)]
pub struct AccessSettings {
    /// Token required in every request, if set.
    pub token: Option<SecretString>,
    /// Allowed host names in addition to the address itself.
    pub hosts: Vec<String>,
}

impl App {
    /// Returns the report of a run and its file. Blocks on file I/O.
    fn read_run(&self, run_id: &str) -> Result<Option<(ReportDocument, RunFile)>, Problem> {
        let read = || {
            let Some(file) = self.runs.find(run_id)? else { return Ok(None) };
            Ok(Some((self.runs.read(&file)?, file)))
        };
        read().map_err(|error| Problem::unreadable_reports(&error))
    }
}

/// Runs blocking file I/O on a separate thread.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Problem::internal(&error)))
}

/// Maximum size in bytes of a request body.
const MAX_BODY: usize = 64 * 1024;

/// Maximum time that connections may stay open after shutdown. Otherwise a client that never reads
/// would keep the server alive.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// Serves at most `max_connections` connections at a time until `shutdown` completes. Pending
/// requests are finished.
pub async fn serve(
    listener: TcpListener,
    app: App,
    access: AccessSettings,
    max_connections: NonZeroUsize,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let guard = AccessGuard::new(access, listener.local_addr()?);
    let cache = Arc::new(ResponseCache::new(app.store.clone()));
    let (stop, stopping) = watch::channel(false);
    let router = router(app, guard, Arc::clone(&cache), stopping.clone());
    let answer =
        connections::serve_connections(listener, router, max_connections, stopping.clone());
    // `answer` ends by itself as soon as all connections are closed; this is the bound if one never
    // is.
    let end = async move {
        shutdown.await;
        stop.send_replace(true);
        tokio::time::sleep(SHUTDOWN_GRACE).await;
    };
    tokio::select! {
        () = answer => {}
        () = end => {}
    }
    // SQLite removes its `-wal` file only when the last connection is closed.
    cache.close().await;
    Ok(())
}

/// Builds the router. Event streams end when `stopping` becomes true. The last layer is the
/// outermost.
fn router(
    app: App,
    guard: AccessGuard,
    cache: Arc<ResponseCache>,
    stopping: watch::Receiver<bool>,
) -> Router {
    let guard = Arc::new(guard);
    let counters = Arc::<RequestCounters>::default();
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
        // Outside of the layers that answer in plain text, so that their errors are problems too.
        .layer(from_fn(problem::convert_plain_errors))
        // Before anything reads a body: a client without the token costs nothing but its head.
        .layer(from_fn_with_state(guard, access::check_access))
        .layer(CatchPanicLayer::custom(problem::handle_panic))
        // A panic counts as the 500 that the client sees.
        .layer(from_fn_with_state(counters, metrics::count_requests))
        // Problems of every layer above are shown to browsers as pages.
        .layer(from_fn(pages::show_problems))
        .layer(from_fn(access::add_security_headers))
        .with_state(Arc::new(app))
}
