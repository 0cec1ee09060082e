//! Reads parts of recorded sessions for people and agents. The path always comes from the store,
//! never from the caller. Secrets are redacted. Stores nothing on disk, and only a few parts in
//! memory.

mod cache;
mod quote;
mod read;

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use cache::{PartCache, SessionFileVersion};
pub use quote::NormalizedQuote;
pub use read::TranscriptError;
pub(crate) use read::{find_source, read_session, read_source};
use selftest_grading::grade::spending::TokenCost;
use selftest_grading::report::session::SessionOverview;
use selftest_models::prices::ModelPrices;
use selftest_sessions::{Event, ReadNotes, SessionHead};
use selftest_text::redact::Redactor;

/// Maximum number of concurrent reads: each uses a CPU core and the memory of one part.
const MAX_READING: usize = 2;

/// Reads recorded sessions. Clones share the cache.
#[derive(Clone)]
pub struct TranscriptReader {
    redactor: Redactor,
    prices: ModelPrices,
    cache: Arc<Mutex<PartCache>>,
    reading: Arc<Semaphore>,
}

/// A part of a session with secrets redacted.
#[derive(Debug)]
pub struct TranscriptPart {
    /// Metadata of the whole session.
    pub head: SessionHead,
    /// Counts over all of its events.
    pub overview: SessionOverview,
    /// Parts of its file that could not be used.
    pub notes: ReadNotes,
    /// Cost of the session.
    pub cost: TokenCost,
    /// The requested events that exist.
    pub events: Vec<Event<'static>>,
}

impl TranscriptReader {
    /// Maximum number of events per part.
    pub const MAX_EVENTS: u64 = 1000;

    /// Creates a reader with this redactor.
    pub fn new(redactor: Redactor, prices: ModelPrices) -> Self {
        let (cache, reading) = (Arc::default(), Arc::new(Semaphore::new(MAX_READING)));
        Self { redactor, prices, cache, reading }
    }

    /// Returns the token prices.
    pub fn prices(&self) -> &ModelPrices {
        &self.prices
    }

    /// Returns events by number, at most [`Self::MAX_EVENTS`]. `file` is the path recorded in the
    /// store for this session.
    pub async fn part(
        &self,
        session_id: &str,
        file: &str,
        events: Range<u64>,
    ) -> Result<TranscriptPart, TranscriptError> {
        let end = events.end.min(events.start.saturating_add(Self::MAX_EVENTS));
        let wanted = events.start..end;
        let this = self.clone();
        let (id, file) = (session_id.to_owned(), file.to_owned());
        self.blocking(move || this.part_now(&id, &file, wanted)).await
    }

    /// Returns the number of the first event that contains a quote by a model that saw the session;
    /// `None` if there is none.
    pub async fn find_quote(
        &self,
        session_id: &str,
        file: &str,
        quote: &str,
    ) -> Result<Option<u64>, TranscriptError> {
        let Some(quoted) = NormalizedQuote::new(quote) else { return Ok(None) };
        let redactor = self.redactor.clone();
        let (id, file) = (session_id.to_owned(), file.to_owned());
        self.blocking(move || read::find_quote(&id, &file, &quoted, &redactor)).await
    }

    /// Runs blocking work on another thread, with limited concurrency.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, TranscriptError> + Send + 'static,
    ) -> Result<T, TranscriptError> {
        // Fails only if the semaphore is closed, which never happens.
        let permit = Arc::clone(&self.reading).acquire_owned().await.ok();
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.unwrap_or_else(|panic| Err(panic.into()))
    }

    fn part_now(
        &self,
        id: &str,
        file: &str,
        wanted: Range<u64>,
    ) -> Result<TranscriptPart, TranscriptError> {
        let found = find_source(file)?;
        let identity = SessionFileVersion::of(&found, id);
        let known = self.lock().get(&identity, &wanted);
        let part = if let Some(part) = known {
            part
        } else {
            let part =
                Arc::new(read::part(&found.source, id, cache::extended_range(&wanted), &wanted)?);
            self.lock().put(identity, Arc::clone(&part));
            part
        };
        // Cached parts contain the original text, so each result is redacted.
        let mut session = part.session(&wanted);
        session.rewrite(|text| self.redactor.apply(text));
        let redact = |text: String| self.redactor.apply(&text).into_owned();
        let mut head = session.head;
        head.cwd = head.cwd.take().map(redact);
        let mut overview = part.overview.clone();
        overview.request = redact(overview.request);
        Ok(TranscriptPart {
            cost: overview.cost(&head, &self.prices),
            notes: part.notes.clone(),
            events: session.events,
            overview,
            head,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, PartCache> {
        // Entries are replaced and never changed in place, so the cache is consistent after a
        // panic.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
