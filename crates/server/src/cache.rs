//! Caches responses while the database is unchanged, and handles `ETag` and `If-None-Match`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::problem::Problem;
use selftest_store::{ChangeWatcher, Store};
use selftest_text::digest;

/// Interval between checks for database changes.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum age of a cached response, since some depend on the time of day.
const MAX_AGE: Duration = Duration::from_mins(1);
/// Maximum total size in bytes of responses and keys; when exceeded, the cache is cleared.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Maximum size in bytes of a cached response.
const MAX_CACHED_BODY: usize = 1024 * 1024;

/// A JSON body and its entity tag.
#[derive(Clone)]
struct TaggedBody {
    body: Bytes,
    tag: HeaderValue,
}

impl TaggedBody {
    /// Converts the response of a handler. Anything but a successful JSON response is returned
    /// unchanged as the error.
    async fn from_response(response: Response) -> Result<Self, Response> {
        let is_json =
            response.headers().get(CONTENT_TYPE).is_some_and(|it| it == "application/json");
        if response.status() != StatusCode::OK || !is_json {
            return Err(response);
        }
        let body = to_bytes(response.into_body(), usize::MAX).await;
        let body = body.map_err(|error| Problem::internal(&error).into_response())?;
        let digest = digest::sha256_hex(&body);
        // Weak, because the compressed form has the same tag.
        let tag = HeaderValue::try_from(format!("W/\"{}\"", &digest[..32]));
        let tag = tag.map_err(|error| Problem::internal(&error).into_response())?;
        Ok(Self { body, tag })
    }

    fn respond(self, known: Option<&HeaderValue>) -> Response {
        // `If-None-Match` uses weak comparison (RFC 9110).
        let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let own = self.tag.to_str().map(opaque).unwrap_or_default();
        let known = known.and_then(|value| value.to_str().ok()).unwrap_or_default();
        if known.split(',').any(|tag| tag.trim() == "*" || opaque(tag) == own) {
            return (StatusCode::NOT_MODIFIED, [(ETAG, self.tag)]).into_response();
        }
        let json = HeaderValue::from_static("application/json");
        ([(CONTENT_TYPE, json), (ETAG, self.tag)], Body::from(self.body)).into_response()
    }
}

/// A response with its database version and creation time.
struct CachedResponse {
    answer: TaggedBody,
    version: i64,
    at: Instant,
}

#[derive(Default)]
struct CacheEntries {
    answers: HashMap<String, CachedResponse>,
    bytes: usize,
}

/// Time and result of the last version check.
type VersionCheck = Option<(Instant, i64)>;

/// Cached responses by path and query.
pub(super) struct ResponseCache {
    store: Store,
    changes: tokio::sync::Mutex<Option<ChangeWatcher>>,
    last_check: Mutex<VersionCheck>,
    entries: Mutex<CacheEntries>,
}

impl ResponseCache {
    pub(super) fn new(store: Store) -> Self {
        Self {
            store,
            changes: tokio::sync::Mutex::default(),
            last_check: Mutex::default(),
            entries: Mutex::default(),
        }
    }

    /// Closes the connection that watches the database, so that it can be closed cleanly.
    pub(super) async fn close(&self) {
        if let Some(changes) = self.changes.lock().await.take() {
            changes.close().await;
        }
    }

    /// Returns the version of the database, at most a moment old, or `None` if unknown.
    async fn version(&self) -> Option<i64> {
        let seen = || *self.last_check.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, version)) = seen().filter(|(at, _)| at.elapsed() < CHECK_INTERVAL) {
            return Some(version);
        }
        let Ok(mut changes) = self.changes.try_lock() else {
            // Another request is checking.
            return seen()
                .filter(|(at, _)| at.elapsed() < 2 * CHECK_INTERVAL)
                .map(|(_, version)| version);
        };
        // Taken before the query, so that the age is never underestimated.
        let at = Instant::now();
        let version = self.detect_changes(&mut changes).await;
        *self.last_check.lock().unwrap_or_else(PoisonError::into_inner) =
            version.map(|version| (at, version));
        version
    }

    async fn detect_changes(&self, changes: &mut Option<ChangeWatcher>) -> Option<i64> {
        if changes.is_none() {
            *changes = self.store.watch_changes().await.ok().flatten();
            // Version numbers are only comparable within one connection.
            *self.entries.lock().unwrap_or_else(PoisonError::into_inner) = CacheEntries::default();
        }
        let version = changes.as_mut()?.version().await.ok();
        // The connection is closed, for example because the server restarted. The next check opens
        // another.
        if version.is_none() {
            *changes = None;
        }
        version
    }

    fn get(&self, key: &str, version: i64) -> Option<TaggedBody> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = entries.answers.get(key)?;
        (cached.version == version && cached.at.elapsed() < MAX_AGE).then(|| cached.answer.clone())
    }

    fn put(&self, key: &str, version: i64, answer: &TaggedBody) {
        let size = |key: &str, answer: &TaggedBody| {
            key.len() + answer.body.len() + size_of::<CachedResponse>()
        };
        let added = size(key, answer);
        // One huge list would push out everything else.
        if added > MAX_CACHED_BODY {
            return;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        // Emptied as a whole: one query fills an entry again, and no order of use has to be kept.
        if entries.bytes + added > MAX_BYTES {
            *entries = CacheEntries::default();
        }
        entries.bytes += added;
        let cached = CachedResponse { answer: answer.clone(), version, at: Instant::now() };
        if let Some(before) = entries.answers.insert(key.to_owned(), cached) {
            entries.bytes -= size(key, &before.answer);
        }
    }
}

/// Middleware that answers database reads from the cache if nothing has changed.
pub(super) async fn cache_responses(
    State(cache): State<Arc<ResponseCache>>,
    request: Request,
    next: Next,
) -> Response {
    respond(Some(&cache), request, next).await
}

/// Middleware that tags responses without caching them.
pub(super) async fn tag_responses(request: Request, next: Next) -> Response {
    respond(None, request, next).await
}

async fn respond(cache: Option<&Arc<ResponseCache>>, mut request: Request, next: Next) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    // All clients with access see the same, so that neither token nor cookie is part of the key.
    let key = request.uri().path_and_query().map_or("", |it| it.as_str()).to_owned();
    let known = request.headers().get(IF_NONE_MATCH).cloned();
    // Read before the database: a concurrent change then makes the cached response outdated, never
    // wrongly current.
    let version = match cache {
        Some(cache) => cache.version().await,
        None => None,
    };
    let cache = cache.zip(version);
    if let Some(answer) = cache.and_then(|(cache, version)| cache.get(&key, version)) {
        return answer.respond(known.as_ref());
    }
    // `HEAD` must have the same tag as the body of `GET`.
    *request.method_mut() = Method::GET;
    match TaggedBody::from_response(next.run(request).await).await {
        Ok(answer) => {
            if let Some((cache, version)) = cache {
                cache.put(&key, version, &answer);
            }
            answer.respond(known.as_ref())
        }
        Err(response) => response,
    }
}
