//! Recorded sessions to be read by people and agents, a part at a time: from the file that the
//! store names, never from one that a caller names. Secrets are taken out of what is handed on.
//! Keeps nothing on disk, and in memory a few parts only.

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

/// Sessions that are read at once: each takes a processor and the memory of a part.
const MAX_READING: usize = 2;

/// Reads recorded sessions. Clones share what is kept in memory.
#[derive(Clone)]
pub struct Transcripts {
    redactor: Redactor,
    prices: Prices,
    kept: Arc<Mutex<Kept>>,
    reading: Arc<Semaphore>,
}

/// A part of a session, without secrets.
#[derive(Debug)]
pub struct TranscriptPart {
    /// Data about the session as a whole.
    pub head: Head,
    /// Counts over all of its events.
    pub overview: Overview,
    /// The parts of its file that could not be used.
    pub notes: Notes,
    /// Its cost.
    pub cost: Cost,
    /// The events that were asked for, as far as there are so many.
    pub events: Vec<Event<'static>>,
}

impl Transcripts {
    /// Most events of a part.
    pub const MAX_EVENTS: u64 = 1000;

    /// A reader that takes out these secrets.
    pub fn new(redactor: Redactor, prices: Prices) -> Self {
        let (kept, reading) = (Arc::default(), Arc::new(Semaphore::new(MAX_READING)));
        Self { redactor, prices, kept, reading }
    }

    /// Prices of tokens.
    pub fn prices(&self) -> &Prices {
        &self.prices
    }

    /// The events of these numbers, at most [`Self::MAX_EVENTS`], of a session that the store knows
    /// to be in that file.
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

    /// The number of the first event that holds a quote, as a model that was shown the session
    /// quotes it; `None` where none does.
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

    /// Works off the threads that answer others, a few readings at a time.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, TranscriptError> + Send + 'static,
    ) -> Result<T, TranscriptError> {
        // It is never closed.
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
        // What a panic elsewhere left is whole: entries are replaced, never changed.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
