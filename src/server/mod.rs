//! The HTTP server: the JSON API under `/api`, the pages, live events, `/healthz`, `/metrics`.
//!
//! Answers from the store and from report files; grades nothing itself: requests for grades go
//! to a [`GradingQueue`].

mod api;
mod live;
mod pages;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::report::RunArchive;
use crate::store::Store;

/// What the server shows.
pub struct App {
    /// Grades, files, weekly reports.
    pub store: Store,
    /// JSON reports of selftest runs.
    pub runs: RunArchive,
    /// Who grades sessions on request; nobody, where no model can be reached.
    pub queue: Option<Arc<dyn GradingQueue>>,
}

/// Takes sessions that are to be graded by a model.
pub trait GradingQueue: Send + Sync {
    /// Puts a session into the queue, or says why not. Returns at once.
    fn enqueue(&self, session_id: &str) -> Result<(), QueueError>;
}

/// Why a session was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// It waits there already.
    #[error("the session waits to be graded already")]
    Waiting,
    /// There is no room.
    #[error("too many sessions wait to be graded")]
    Full,
}

/// Who may ask.
#[derive(Debug, Default)]
pub struct Access {
    /// The token that every request must carry, where there is one.
    pub token: Option<SecretString>,
    /// Host names that are answered beside the address itself.
    pub hosts: Vec<String>,
}

/// Serves until `shutdown` ends; requests that are being answered are answered.
pub async fn serve(
    listener: TcpListener,
    app: App,
    _access: Access,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (stop, stopping) = watch::channel(false);
    let shutdown = async move {
        shutdown.await;
        // Nobody may watch anything; then nobody has to be told.
        let _ = stop.send(true);
    };
    let live = live::router(stopping);
    let router = Router::new().merge(pages::router()).merge(live).merge(api::router());
    let service =
        router.with_state(Arc::new(app)).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(shutdown).await
}
