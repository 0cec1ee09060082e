//! Reads parts of recorded sessions for people and agents. The path always comes from the store,
//! never from the caller. Secrets are redacted. Stores nothing on disk, and only a few parts in
//! memory.

mod kept;
mod quote;
mod read;

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use kept::{Identity, Kept};
pub use quote::Quoted;
pub use read::TranscriptError;
pub(crate) use read::{find_source, in_words, read_session};
use selftest_grading::grade::spending::Cost;
use selftest_grading::report::session::Overview;
use selftest_models::prices::Prices;
use selftest_sessions::{Event, Head, Notes};
use selftest_text::redact::Redactor;

/// Maximum number of concurrent reads: each uses a CPU core and the memory of one part.
const MAX_READING: usize = 2;

/// Reads recorded sessions. Clones share the cache.
#[derive(Clone)]
pub struct Transcripts {
    redactor: Redactor,
    prices: Prices,
    kept: Arc<Mutex<Kept>>,
    reading: Arc<Semaphore>,
}

/// A part of a session with secrets redacted.
#[derive(Debug)]
pub struct TranscriptPart {
    /// Metadata of the whole session.
    pub head: Head,
    /// Counts over all of its events.
    pub overview: Overview,
    /// Parts of its file that could not be used.
    pub notes: Notes,
    /// Cost of the session.
    pub cost: Cost,
    /// The requested events that exist.
    pub events: Vec<Event<'static>>,
}

impl Transcripts {
    /// Maximum number of events per part.
    pub const MAX_EVENTS: u64 = 1000;

    /// Creates a reader with this redactor.
    pub fn new(redactor: Redactor, prices: Prices) -> Self {
        let (kept, reading) = (Arc::default(), Arc::new(Semaphore::new(MAX_READING)));
        Self { redactor, prices, kept, reading }
    }

    /// Returns the token prices.
    pub fn prices(&self) -> &Prices {
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
        let Some(quoted) = Quoted::new(quote) else { return Ok(None) };
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
        done.await.unwrap_or_else(|panic| Err(TranscriptError::Failed { why: panic.to_string() }))
    }

    fn part_now(
        &self,
        id: &str,
        file: &str,
        wanted: Range<u64>,
    ) -> Result<TranscriptPart, TranscriptError> {
        let found = find_source(file)?;
        let identity = Identity::of(&found, id);
        let known = self.lock().get(&identity, &wanted);
        let part = if let Some(part) = known {
            part
        } else {
            let part = Arc::new(read::part(&found.source, id, kept::around(&wanted), &wanted)?);
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

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        // Entries are replaced and never changed in place, so the cache is consistent after a
        // panic.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
