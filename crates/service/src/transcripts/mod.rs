//! Reads parts of recorded sessions for people and agents, and finds quotes in them. The path always
//! comes from the store, never from the caller. Secrets are redacted. Stores nothing on disk, and
//! only a few parts in memory.

mod cache;
mod read;

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use cache::{PartCache, SessionFileVersion};
pub use read::TranscriptError;
pub(crate) use read::{find_source, read_session, read_source};
use tokio::sync::Semaphore;

use selftest_grading::grade::spending::TokenCost;
use selftest_grading::report::session::{SessionOverview, texts};
use selftest_models::prices::ModelPrices;
use selftest_sessions::{Event, ReadNotes, SessionHead};
use selftest_text::redact::{REDACTED, Redactor};

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
    /// `None` if no event does.
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
            // Moved into the closure: a blocking task runs on after its future was dropped, and
            // must count until it ends.
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

/// A shorter quote occurs in too many events to identify one.
const MIN_CHARS: usize = 4;

/// The normalized text of a quote.
#[derive(Debug)]
pub struct NormalizedQuote(String);

impl NormalizedQuote {
    /// Normalizes a quote; returns `None` if it is too short. Transcript labels that models see,
    /// such as `[13 call bash]`, are removed because they are not part of the session.
    pub fn new(quote: &str) -> Option<Self> {
        let mut words = quote.trim();
        while let Some((label, rest)) =
            words.strip_prefix('[').and_then(|rest| rest.split_once(']'))
            && label.split(' ').next().is_some_and(|number| number.parse::<u64>().is_ok())
        {
            words = rest.trim_start();
        }
        let folded = fold_whitespace(words.trim_end_matches('…'));
        (folded.chars().count() >= MIN_CHARS).then_some(Self(folded))
    }

    /// Returns true if a secret was redacted in it.
    fn has_redaction(&self) -> bool {
        self.0.contains(REDACTED)
    }

    /// Returns true if a text or the call arguments of an event contain the quote.
    fn occurs_in(&self, event: &Event<'_>) -> bool {
        texts(event).any(|text| {
            // Most texts are too short to match, and folding is expensive.
            text.len() >= self.0.len() / 2 && self.occurs_in_text(text)
        })
    }

    fn occurs_in_text(&self, text: &str) -> bool {
        let said = fold_whitespace(text);
        // JSON escapes quotes and line breaks.
        said.contains(&self.0)
            || text.contains('\\')
                && fold_whitespace(&text.replace("\\n", " ").replace("\\\"", "\""))
                    .contains(&self.0)
    }
}

/// Collapses white space to single spaces and removes control characters.
fn fold_whitespace(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if !word.is_empty() {
            if !folded.is_empty() {
                folded.push(' ');
            }
            folded.push_str(word);
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::ToolCall;

    #[test]
    fn a_quote_is_found_whatever_its_white_space_and_label() {
        let event = Event { text: "All tests\n  pass now.".into(), ..Event::default() };
        for quote in ["All tests pass", "[13 assistant] All tests\tpass now.", "tests pass now…"]
        {
            assert!(NormalizedQuote::new(quote).unwrap().occurs_in(&event), "{quote}");
        }
        assert!(!NormalizedQuote::new("All tests fail").unwrap().occurs_in(&event));
        assert!(NormalizedQuote::new(" [3 user] ok").is_none());
        let arguments = r#"{"command":"echo \"a\"\nls -l"}"#.into();
        let calls = vec![ToolCall { arguments, ..ToolCall::default() }];
        let event = Event { calls, ..Event::default() };
        assert!(NormalizedQuote::new("echo \"a\" ls -l").unwrap().occurs_in(&event));
    }
}
