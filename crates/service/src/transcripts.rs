//! Reads parts of recorded sessions for people and agents, and finds quotes in them. The path always
//! comes from the store, never from the caller. Secrets are redacted. Stores nothing on disk, and
//! only a few parts in memory.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use selftest_grading::grade::spending::TokenCost;
use selftest_grading::report::session::{OverviewCollector, SessionOverview, texts};
use selftest_models::prices::ModelPrices;
use selftest_sessions::{
    Event, ReadNotes, Session, SessionCollector, SessionFile, SessionHead, SessionSink,
    SessionSource,
};
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
        // Bounded here as well, because every caller passes what a client asked for.
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
        self.blocking(move || find_quote(&id, &file, &quoted, &redactor)).await
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
        // Taken before reading: a file that grows meanwhile is read again next time.
        let identity = SessionFileVersion::of(&found, id);
        let known = self.lock().get(&identity, &wanted);
        let part = if let Some(part) = known {
            part
        } else {
            let part = Arc::new(part(&found.source, id, extended_range(&wanted), &wanted)?);
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
            // A model may quote the number that the transcript puts before each event.
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

/// Error when reading a session that the store knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// The file is missing or not accessible.
    #[error("{why}")]
    Gone {
        /// Reason; names the file.
        why: String,
    },
    /// The file exists but cannot be read.
    #[error("{why}")]
    Unreadable {
        /// Reason; names the file.
        why: String,
    },
    /// The file no longer contains the session.
    #[error("{file} does not hold it any more")]
    Moved {
        /// File path.
        file: String,
    },
    /// Internal error.
    #[error("reading the session failed: {why}")]
    Failed {
        /// Error message.
        why: String,
    },
}

impl From<tokio::task::JoinError> for TranscriptError {
    fn from(panic: tokio::task::JoinError) -> Self {
        TranscriptError::Failed { why: panic.to_string() }
    }
}

/// Shortens a path for a message.
pub(crate) fn shorten_path(file: &str) -> String {
    selftest_text::one_line(file, 400)
}

/// Finds the source from which the sessions of a file are read.
pub(crate) fn find_source(file: &str) -> Result<SessionFile, TranscriptError> {
    let mut problem = None;
    let found = selftest_sessions::find_session_files(&[Path::new(file).to_owned()], |why| {
        problem = Some(shorten_path(why));
    });
    let gone = || match problem {
        Some(why) if Path::new(file).exists() => why,
        Some(why) => format!("{why}: it is not there any more"),
        None => format!("{} is not there any more", shorten_path(file)),
    };
    found.into_iter().next().ok_or_else(|| TranscriptError::Gone { why: gone() })
}

/// Reads a complete session from a file and redacts its secrets.
pub(crate) fn read_session(
    session_id: &str,
    file: &str,
    redactor: &Redactor,
) -> Result<Session, TranscriptError> {
    let found = find_source(file)?;
    let mut collector = SessionCollector::with_id(session_id);
    read_source(&found.source, &mut collector)?;
    let session = collector.into_sessions().into_iter().next();
    let mut session = session.ok_or_else(|| TranscriptError::Moved { file: shorten_path(file) })?;
    session.rewrite(|text| redactor.apply(text));
    Ok(session)
}

/// Reads a source; the error names its file.
pub(crate) fn read_source(
    source: &SessionSource,
    sink: &mut dyn SessionSink,
) -> Result<selftest_sessions::ReadSummary, TranscriptError> {
    selftest_sessions::read(source, sink).map_err(|error| {
        let why = format!("{}: {error}", shorten_path(&source.path().to_string_lossy()));
        TranscriptError::Unreadable { why }
    })
}

/// Reads the events in `around`, or only those in `wanted` if the larger range exceeds the size
/// limit.
fn part(
    source: &SessionSource,
    session_id: &str,
    around: Range<u64>,
    wanted: &Range<u64>,
) -> Result<CachedPart, TranscriptError> {
    let part = read_part(source, session_id, around, Some(MAX_PART))?;
    if part.session.left_out == 0 {
        return Ok(part);
    }
    // The wider range is too large to keep, so only the wanted events are read, whatever their
    // size.
    read_part(source, session_id, wanted.clone(), None)
}

fn read_part(
    source: &SessionSource,
    session_id: &str,
    range: Range<u64>,
    most: Option<usize>,
) -> Result<CachedPart, TranscriptError> {
    let collector = SessionCollector::with_id(session_id).with_events(range.clone());
    let collector = most.into_iter().fold(collector, SessionCollector::with_max_bytes);
    let mut counted = OverviewCollector::new(collector);
    let reading = read_source(source, &mut counted)?;
    let Some((session, overview)) = counted.into_sessions().next() else {
        let file = shorten_path(&source.path().to_string_lossy());
        return Err(TranscriptError::Moved { file });
    };
    Ok(CachedPart { range, session, overview, notes: reading.notes })
}

/// Returns the number of the first event of a session that contains the quote.
fn find_quote(
    session_id: &str,
    file: &str,
    quoted: &NormalizedQuote,
    redactor: &Redactor,
) -> Result<Option<u64>, TranscriptError> {
    let found = find_source(file)?;
    let collector = SessionCollector::with_id(session_id).with_events(0..0);
    let mut finder = QuoteFinder { collector, quoted, redactor, current: None, found: None };
    read_source(&found.source, &mut finder)?;
    if finder.collector.session_count() == 0 {
        return Err(TranscriptError::Moved { file: shorten_path(file) });
    }
    Ok(finder.found)
}

/// Searches the events of one session for a quote.
struct QuoteFinder<'q> {
    /// Selects the session; stores no events.
    collector: SessionCollector,
    quoted: &'q NormalizedQuote,
    redactor: &'q Redactor,
    current: Option<u64>,
    found: Option<u64>,
}

impl QuoteFinder<'_> {
    /// Also checks the redacted event, because secrets were redacted before a model saw the text.
    fn contains_quote(&self, event: &Event<'_>) -> bool {
        if self.quoted.occurs_in(event) {
            return true;
        }
        // Redacting an event is expensive, so it is skipped unless the quote was redacted.
        if !self.quoted.has_redaction() {
            return false;
        }
        let mut session =
            Session { events: vec![event.clone().into_owned()], ..Session::default() };
        session.rewrite(|text| self.redactor.apply(text));
        self.quoted.occurs_in(&session.events[0])
    }
}

impl SessionSink for QuoteFinder<'_> {
    fn event(&mut self, event: Event<'_>) {
        if self.current.is_none() && self.contains_quote(&event) {
            self.current = Some(event.number);
        }
        self.collector.event(event);
    }

    fn end(&mut self, head: SessionHead) {
        let current = self.current.take();
        let is_first = self.collector.session_count() == 0;
        self.collector.end(head);
        // Of several sessions in the file only the one with this id counts, which its head says at
        // the end.
        if is_first && self.collector.session_count() > 0 {
            self.found = current;
        }
    }

    fn restart(&mut self) {
        self.current = None;
        self.collector.restart();
    }
}

/// Maximum number of cached parts.
const MAX_PARTS: usize = 12;

/// Maximum bytes of all parts.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Maximum bytes of a part that includes events beyond the requested ones.
const MAX_PART: usize = 6 * 1024 * 1024;

/// A session in a particular version of a file. If size or time differ, the content may differ too.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SessionFileVersion {
    path: PathBuf,
    session_id: String,
    size: u64,
    modified_ns: i64,
}

impl SessionFileVersion {
    fn of(found: &SessionFile, session_id: &str) -> Self {
        let path = found.source.path().to_owned();
        // Those of a database are with its log, which contains its newest rows.
        let (size, modified_ns) = (found.size, found.modified_ns);
        Self { path, session_id: session_id.to_owned(), size, modified_ns }
    }
}

/// A part of a session as stored in its file, including secrets.
#[derive(Debug)]
struct CachedPart {
    /// Range of requested event numbers; the session may have fewer.
    range: Range<u64>,
    session: Session,
    overview: SessionOverview,
    notes: ReadNotes,
}

impl CachedPart {
    /// Returns the session with only the events in `wanted`.
    fn session(&self, wanted: &Range<u64>) -> Session {
        let events = self.session.events.iter().filter(|event| wanted.contains(&event.number));
        let head = self.session.head.clone();
        Session { head, events: events.cloned().collect(), left_out: 0 }
    }

    fn bytes(&self) -> usize {
        let texts = |event: &Event<'_>| texts(event).map(str::len).sum::<usize>();
        let event = |event: &Event<'static>| size_of::<Event<'_>>() + texts(event);
        self.session.events.iter().map(event).sum()
    }
}

/// Returns the range to read for these events, extended by some pages around them.
fn extended_range(wanted: &Range<u64>) -> Range<u64> {
    let count = wanted.end.saturating_sub(wanted.start);
    let few = TranscriptReader::MAX_EVENTS / 2;
    let half = if count <= few { few } else { TranscriptReader::MAX_EVENTS };
    // Aligned, so that neighboring pages share a cached part.
    let start = wanted.start - wanted.start % half;
    start..start.saturating_add(2 * half)
}

/// Cached parts, most recently used last.
#[derive(Debug, Default)]
struct PartCache(VecDeque<(SessionFileVersion, Arc<CachedPart>, usize)>);

impl PartCache {
    /// Returns a part of that session that contains these events.
    fn get(
        &mut self,
        identity: &SessionFileVersion,
        wanted: &Range<u64>,
    ) -> Option<Arc<CachedPart>> {
        let holds = |part: &CachedPart| {
            part.range.start <= wanted.start
                && (wanted.end <= part.range.end || part.overview.events <= part.range.end)
        };
        let at = self.0.iter().position(|(of, part, _)| of == identity && holds(part))?;
        let entry = self.0.remove(at)?;
        let part = Arc::clone(&entry.1);
        // Used entries move to the end; the front is dropped first.
        self.0.push_back(entry);
        Some(part)
    }

    fn put(&mut self, identity: SessionFileVersion, part: Arc<CachedPart>) {
        // Entries for earlier versions of the file can never match again.
        let is_older = |of: &SessionFileVersion| {
            of.path == identity.path && of.session_id == identity.session_id && *of != identity
        };
        self.0.retain(|(of, other, _)| {
            let is_same = *of == identity && other.range == part.range;
            !is_same && !is_older(of)
        });
        let bytes = part.bytes();
        self.0.push_back((identity, part, bytes));
        let all = |kept: &Self| kept.0.iter().map(|(_, _, bytes)| bytes).sum::<usize>();
        // The newest part always stays: the page that asked for it will ask for the next events of
        // it.
        while self.0.len() > MAX_PARTS || (self.0.len() > 1 && all(self) > MAX_BYTES) {
            self.0.pop_front();
        }
    }
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

    fn identity(path: &str, size: u64) -> SessionFileVersion {
        let (path, session_id) = (path.into(), "s".to_owned());
        SessionFileVersion { path, session_id, size, modified_ns: 1 }
    }

    fn part(range: Range<u64>, events: u64) -> Arc<CachedPart> {
        let overview = SessionOverview { events, ..SessionOverview::default() };
        let (session, notes) = (Session::default(), ReadNotes::default());
        Arc::new(CachedPart { range, session, overview, notes })
    }

    #[test]
    fn a_part_is_good_for_the_events_in_it_while_the_file_is_as_it_was() {
        let mut kept = PartCache::default();
        kept.put(identity("a", 1), part(0..2000, 5000));
        assert!(kept.get(&identity("a", 1), &(200..400)).is_some());
        assert!(kept.get(&identity("a", 1), &(1900..2100)).is_none());
        assert!(kept.get(&identity("a", 2), &(200..400)).is_none(), "it has grown");
        kept.put(identity("a", 2), part(0..2000, 1500));
        assert!(kept.get(&identity("a", 2), &(1400..2400)).is_some(), "there are no more");
        assert!(kept.get(&identity("a", 1), &(200..400)).is_none());
        assert_eq!(kept.0.len(), 1);
    }

    #[test]
    fn few_parts_are_kept_and_the_last_used_stay_longest() {
        let mut kept = PartCache::default();
        for number in 0..=MAX_PARTS {
            kept.put(identity(&number.to_string(), 1), part(0..2000, 10));
            let _ = kept.get(&identity("0", 1), &(0..10));
        }
        assert_eq!(kept.0.len(), MAX_PARTS);
        assert!(kept.get(&identity("0", 1), &(0..10)).is_some());
        assert!(kept.get(&identity("1", 1), &(0..10)).is_none());
    }

    #[test]
    fn what_is_read_holds_what_is_wanted() {
        for (start, end) in
            [(0, 200), (400, 600), (499, 999), (950, 1950), (1000, 2000), (49_800, 50_000)]
        {
            let part = extended_range(&(start..end));
            assert!(part.start <= start && end <= part.end, "{part:?}");
        }
    }
}
