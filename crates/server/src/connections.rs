//! HTTP connections: accepts them, limits their number and idle time, and shuts them down
//! gracefully.
//!
//! When the limit is reached, the connection that has waited longest without a complete request is
//! closed. Clients that open connections and send half a request therefore cannot lock others out.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// Time limit for the head of a request, and for the idle time between requests.
const MAX_HEAD_TIME: Duration = Duration::from_secs(15);
/// Time after which a response may be aborted to make room for a new connection, because its reader
/// may be gone.
const MAX_ANSWER_TIME: Duration = Duration::from_mins(1);
/// Delay before accepting again if the system is out of file descriptors.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// Response to a connection over the limit.
const OVERLOADED: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: \
    application/problem+json\r\nRetry-After: 1\r\nConnection: close\r\n\r\n{\"type\":\"about:blank\",\
    \"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"too many connections are open\"}";

/// State of an open connection.
struct ConnectionSlot {
    is_busy: bool,
    /// Time at which the connection entered this state.
    since: Instant,
    close: Arc<Notify>,
}

#[derive(Default)]
struct SlotTable {
    last: u64,
    open: BTreeMap<u64, ConnectionSlot>,
}

impl SlotTable {
    /// Closes the least valuable connection. Returns false if no connection can be closed.
    fn make_room(&mut self) -> bool {
        // Idle by their own choice: between requests, or in the middle of sending a head. Those
        // wait for their client, the others for us.
        let idle = self.open.iter().filter(|(_, slot)| !slot.is_busy);
        let stuck = self
            .open
            .iter()
            .filter(|(_, slot)| slot.is_busy && slot.since.elapsed() > MAX_ANSWER_TIME);
        // Idle connections are closed before stuck ones.
        let oldest = idle.min_by_key(|(_, slot)| slot.since);
        let oldest = oldest.or_else(|| stuck.min_by_key(|(_, slot)| slot.since));
        let Some(id) = oldest.map(|(id, _)| *id) else { return false };
        if let Some(slot) = self.open.remove(&id) {
            slot.close.notify_one();
        }
        true
    }
}

/// The open connections.
struct ConnectionLimiter {
    limit: NonZeroUsize,
    slots: Mutex<SlotTable>,
}

impl ConnectionLimiter {
    fn lock(&self) -> MutexGuard<'_, SlotTable> {
        // The table stays consistent even after a panic.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a slot for a connection. Returns `None` if all connections are busy.
    fn acquire(self: &Arc<Self>) -> Option<Arc<ConnectionPermit>> {
        let mut slots = self.lock();
        if slots.open.len() >= self.limit.get() && !slots.make_room() {
            return None;
        }
        slots.last += 1;
        let (id, give_way) = (slots.last, Arc::<Notify>::default());
        let slot =
            ConnectionSlot { is_busy: false, since: Instant::now(), close: Arc::clone(&give_way) };
        slots.open.insert(id, slot);
        Some(Arc::new(ConnectionPermit { connections: Arc::clone(self), id, give_way }))
    }

    fn set_busy(&self, id: u64, is_answering: bool) {
        if let Some(slot) = self.lock().open.get_mut(&id) {
            (slot.is_busy, slot.since) = (is_answering, Instant::now());
        }
    }
}

/// A reserved slot, released when dropped.
struct ConnectionPermit {
    connections: Arc<ConnectionLimiter>,
    id: u64,
    give_way: Arc<Notify>,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connections.lock().open.remove(&self.id);
    }
}

/// Marks a connection as busy until the response is sent or aborted.
struct BusyGuard(Arc<ConnectionPermit>);

impl BusyGuard {
    fn start(entry: &Arc<ConnectionPermit>) -> Self {
        entry.connections.set_busy(entry.id, true);
        Self(Arc::clone(entry))
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.connections.set_busy(self.0.id, false);
    }
}

/// A response body that keeps its connection marked as busy until it is sent.
struct TrackedBody {
    body: Body,
    _answering: BusyGuard,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Serves at most `limit` connections at a time until `stopping` becomes true, then finishes
/// pending requests.
pub(super) async fn serve_connections(
    listener: TcpListener,
    router: Router,
    limit: NonZeroUsize,
    mut stopping: watch::Receiver<bool>,
) {
    let connections = Arc::new(ConnectionLimiter { limit, slots: Mutex::default() });
    let mut tasks = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            // Shutdown takes precedence over new connections.
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => break,
            // Finished tasks are collected while the server runs, or the set would grow with every
            // connection.
            Some(_) = tasks.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, client)) => match connections.acquire() {
                Some(entry) => {
                    tasks.spawn(serve_connection(
                        stream,
                        client,
                        router.clone(),
                        entry,
                        stopping.clone(),
                    ));
                }
                None => reject(stream),
            },
            Err(error) if is_client_error(&error) => {}
            Err(error) => {
                tracing::warn!("no connection can be accepted: {error}");
                // Closing a connection frees a file descriptor.
                connections.lock().make_room();
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
    // Pending responses are finished.
    while tasks.join_next().await.is_some() {}
}

/// Returns true if the connection was closed before it was accepted.
fn is_client_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Rejects a connection with 503, without waiting for the client to be ready.
fn reject(stream: TcpStream) {
    use std::io::Write as _;
    if let Ok(mut stream) = stream.into_std() {
        // One write without waiting: the socket's buffer is empty, and a slow client must not hold
        // up the next one.
        let _ = stream.write(OVERLOADED);
    }
}

/// Serves requests on a connection until either side closes it.
async fn serve_connection(
    stream: TcpStream,
    client: SocketAddr,
    router: Router,
    entry: Arc<ConnectionPermit>,
    mut stopping: watch::Receiver<bool>,
) {
    let router = TowerToHyperService::new(router);
    let own = Arc::clone(&entry);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(client));
        let answering = BusyGuard::start(&own);
        let answered = router.call(request);
        async move {
            let answer = answered.await?;
            Ok::<_, std::convert::Infallible>(
                answer.map(|body| Body::new(TrackedBody { body, _answering: answering })),
            )
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(MAX_HEAD_TIME);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let mut is_ending = false;
    loop {
        tokio::select! {
            // Errors are caused by the client or the network.
            _ = connection.as_mut() => return,
            // Dropping the connection closes it.
            () = entry.give_way.notified() => return,
            _ = stopping.wait_for(|stopping| *stopping), if !is_ending => {
                connection.as_mut().graceful_shutdown();
                is_ending = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(limit: usize) -> Arc<ConnectionLimiter> {
        let limit = NonZeroUsize::new(limit).unwrap();
        Arc::new(ConnectionLimiter { limit, slots: Mutex::default() })
    }

    fn is_open(entry: &ConnectionPermit) -> bool {
        entry.connections.lock().open.contains_key(&entry.id)
    }

    #[test]
    fn the_one_that_waits_longest_gives_way_and_none_that_is_answered() {
        let connections = connections(2);
        let [first, second] = [(); 2].map(|()| connections.acquire().unwrap());
        let answering = BusyGuard::start(&first);
        let third = connections.acquire().unwrap();
        assert!(is_open(&first) && !is_open(&second) && is_open(&third));
        let _also = BusyGuard::start(&third);
        assert!(connections.acquire().is_none(), "both are being answered");
        drop(answering);
        let fourth = connections.acquire().unwrap();
        assert!(!is_open(&first) && is_open(&third) && is_open(&fourth));
        drop(fourth);
        assert_eq!(connections.lock().open.len(), 1);
    }
}
