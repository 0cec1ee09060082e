//! Fills the full-text index of graded sessions, file by file. The store does the searching.
//!
//! Indexing is separate from grading. It reads all tool outputs and reasoning, which grading skips,
//! and writes far more than a grade. Users who never search should not pay for it.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use utoipa::ToSchema;

use crate::transcripts::{TranscriptError, find_source, read_source};
use selftest_sessions::{Event, SessionHead, SessionSink, ToolOutcome};
use selftest_store::{
    Facet, FileToIndex, IndexedEvent, IndexedSession, SearchQuery, SearchedSession, Store,
    StoreError,
};
use selftest_text::redact::Redactor;
use selftest_text::search::{SearchWords, index_text};
use selftest_text::{clip, one_line};

/// Number of file names fetched at once.
const BATCH: u32 = 50;

/// Interval at which a server looks for unindexed sessions.
const INTERVAL: Duration = Duration::from_secs(15);

/// Name of the lease for filling the index, held by one process per database.
const LEASE: &str = "search_index";

/// Time without a heartbeat after which a process counts as dead.
const DEAD_AFTER: Duration = Duration::from_mins(2);

/// Fills the index of one database.
#[derive(Clone)]
pub struct SearchIndex {
    store: Store,
    redactor: Redactor,
    holder: String,
}

/// Result of filling the index.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IndexSummary {
    /// Number of files read.
    pub files: u64,
    /// Number of sessions indexed.
    pub sessions: u64,
    /// Files that can no longer be read, as path and reason.
    pub unreadable: Vec<(String, String)>,
    /// True if another process is filling the index.
    pub is_busy: bool,
}

/// Receives progress. `()` ignores it.
pub trait IndexObserver: Send {
    /// Reports the number of files to read.
    fn files_found(&mut self, files: u64);
    /// Reports that one file was read.
    fn file_read(&mut self);
}

impl IndexObserver for () {
    fn files_found(&mut self, _: u64) {}
    fn file_read(&mut self) {}
}

impl SearchIndex {
    /// Creates an index on that database; texts are redacted first.
    pub fn new(store: Store, redactor: Redactor) -> Self {
        // Another process, perhaps on another machine, may have the same number.
        let holder = format!("{}-{:x}", std::process::id(), rand::random::<u64>());
        Self { store, redactor, holder }
    }

    /// Indexes every graded session whose index is missing or out of date, newest files first.
    pub async fn fill(&self, observer: &mut dyn IndexObserver) -> Result<IndexSummary, StoreError> {
        let mut indexing = IndexSummary::default();
        let files = self.store.count_files_to_index().await?;
        observer.files_found(files);
        if files == 0 {
            return Ok(indexing);
        }
        let filled = self.fill_batches(&mut indexing, observer).await;
        // Released also after an error, or the others would wait until the lease expires.
        self.release().await?;
        filled.map(|()| indexing)
    }

    async fn fill_batches(
        &self,
        indexing: &mut IndexSummary,
        observer: &mut dyn IndexObserver,
    ) -> Result<(), StoreError> {
        loop {
            // Asked again for each batch: other processes index and grade at the same time.
            let files = self.store.files_to_index(BATCH).await?;
            if files.is_empty() {
                return Ok(());
            }
            for file in files {
                // Taking the lease again for each file also serves as the heartbeat.
                if !self.store.take_lease(LEASE, &self.holder, DEAD_AFTER).await? {
                    indexing.is_busy = true;
                    return Ok(());
                }
                self.index(file, indexing).await?;
                observer.file_read();
            }
        }
    }

    async fn index(
        &self,
        file: FileToIndex,
        indexing: &mut IndexSummary,
    ) -> Result<(), StoreError> {
        let grades = self.store.grades_of_file(&file.path).await?.items;
        let wanted = grades.into_iter().map(|grade| {
            let counts_at = grade.details.counts_at;
            let (agent, project) = (grade.details.agent, grade.details.project);
            (grade.session_id, (counts_at, IndexFacts { agent, project }))
        });
        let wanted: HashMap<String, (Option<Timestamp>, IndexFacts)> = wanted.collect();
        let (path, redactor) = (file.path.clone(), self.redactor.clone());
        let read = tokio::task::spawn_blocking(move || read(&path, &wanted, &redactor)).await;
        indexing.files += 1;
        let read = read.unwrap_or_else(|panic| Err(panic.into()));
        let sessions = match read {
            Ok(sessions) => sessions,
            Err(error) => {
                indexing.unreadable.push((file.path.clone(), error.to_string()));
                // Entries indexed earlier stay. The file is not tried again until it changes.
                return self.store.mark_indexed(&file).await;
            }
        };
        indexing.sessions += sessions.len() as u64;
        self.store.index_file(&file, &sessions).await
    }

    /// Releases the lease so that other processes can fill the index at once, after
    /// [`SearchIndex::keep_filled`] was dropped.
    pub async fn release(&self) -> Result<(), StoreError> {
        self.store.release_lease(LEASE, &self.holder).await
    }

    /// Fills the index periodically for as long as it is polled.
    pub async fn keep_filled(&self) {
        loop {
            match self.fill(&mut ()).await {
                Ok(indexing) if indexing.files > 0 => {
                    tracing::debug!(
                        "indexed {} sessions of {} files",
                        indexing.sessions,
                        indexing.files
                    );
                }
                Ok(_) => {}
                Err(error) => tracing::warn!("the search index could not be filled: {error}"),
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

/// Reads the requested sessions of a file.
fn read(
    path: &str,
    wanted: &HashMap<String, (Option<Timestamp>, IndexFacts)>,
    redactor: &Redactor,
) -> Result<Vec<IndexedSession>, TranscriptError> {
    let found = find_source(path)?;
    let mut indexer = SessionIndexer::new(wanted, redactor);
    read_source(&found.source, &mut indexer)?;
    Ok(indexer.into_sessions())
}

/// Maximum bytes of a message text.
const MAX_MESSAGE: usize = 2000;

/// Maximum bytes of reasoning, of the arguments of a call and of a tool output.
const MAX_DETAIL: usize = 600;

/// Maximum bytes of all texts of an event.
const MAX_EVENT: usize = 3000;

/// Maximum bytes of all texts of a session; further events are not indexed.
const MAX_SESSION: usize = 8 * 1024 * 1024;

/// Bytes read beyond a limit to recognize a secret that starts before it.
const MARGIN: usize = 1000;

/// Facts about a session from the store.
#[derive(Debug, Clone)]
struct IndexFacts {
    agent: String,
    project: Option<String>,
}

/// Builds index entries for the requested sessions.
struct SessionIndexer<'w> {
    wanted: &'w HashMap<String, (Option<Timestamp>, IndexFacts)>,
    redactor: &'w Redactor,
    events: Vec<IndexedEvent>,
    bytes: usize,
    sessions: Vec<IndexedSession>,
}

impl<'w> SessionIndexer<'w> {
    /// Creates an indexer for the sessions with these ids.
    fn new(
        wanted: &'w HashMap<String, (Option<Timestamp>, IndexFacts)>,
        redactor: &'w Redactor,
    ) -> Self {
        Self { wanted, redactor, events: Vec::new(), bytes: 0, sessions: Vec::new() }
    }

    fn into_sessions(self) -> Vec<IndexedSession> {
        self.sessions
    }

    /// Truncates a text and redacts its secrets.
    fn bounded(&self, text: &str, limit: usize) -> String {
        // Redact before cutting, so that a secret across the limit is still recognized.
        let margin = &text[..text.floor_char_boundary(limit + MARGIN)];
        let redacted = self.redactor.apply(margin);
        redacted[..redacted.floor_char_boundary(limit)].to_owned()
    }

    fn text(&self, event: &Event<'_>) -> String {
        let mut parts = vec![
            self.bounded(&event.text, MAX_MESSAGE),
            self.bounded(&event.reasoning, MAX_DETAIL),
        ];
        for call in &event.calls {
            let arguments = self.bounded(&call.arguments, MAX_DETAIL);
            parts.push(format!("{} {arguments}", one_line(&call.name, 80)));
        }
        for result in &event.results {
            parts.push(self.bounded(&result.text, MAX_DETAIL));
            // Most agents repeat the error in the text of the result.
            if !result.text.contains(result.error.as_str()) {
                parts.push(self.bounded(&result.error, MAX_DETAIL));
            }
        }
        parts.retain(|part| !part.trim().is_empty());
        clip(&parts.join("\n"), MAX_EVENT)
    }
}

/// Returns the facet words of an event: its tools, and if one of them failed.
fn facets(event: &Event<'_>) -> Vec<String> {
    let calls = event.calls.iter().map(|call| &call.name);
    let results = event.results.iter().map(|result| &result.tool);
    let tools = calls.chain(results).filter(|name| !name.is_empty());
    let mut words: Vec<String> = tools.map(|name| Facet::Tool.word(name)).collect();
    let has_failed = event.results.iter().any(|result| result.outcome == ToolOutcome::Failed);
    // A facet is a word of the index, so that one lookup of the engine combines it with the words.
    words.extend(has_failed.then(|| Facet::Error.word("")));
    words.sort_unstable();
    words.dedup();
    words
}

/// Returns the facet words that all events of a session share.
fn facets_of_session(head: &SessionHead, details: &IndexFacts) -> String {
    let mut words = vec![Facet::Agent.word(&details.agent)];
    words.extend(head.models.iter().map(|model| Facet::Model.word(model)));
    if let Some(project) = &details.project {
        words.push(Facet::Project.word(project));
        // The last component of the path can be searched too.
        let name = project.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
        words.extend(name.map(|name| Facet::Project.word(name)));
    }
    words.sort_unstable();
    words.dedup();
    words.join(" ")
}

impl SessionSink for SessionIndexer<'_> {
    fn event(&mut self, event: Event<'_>) {
        // The index is bounded per session; what follows is still found by reading the session.
        if self.bytes > MAX_SESSION {
            return;
        }
        let text = self.text(&event);
        if text.is_empty() {
            return;
        }
        self.bytes += text.len();
        let words = format!("{} {}", index_text(&text), facets(&event).join(" "));
        self.events.push(IndexedEvent { number: event.number, text, words });
    }

    fn end(&mut self, head: SessionHead) {
        self.bytes = 0;
        let mut events = std::mem::take(&mut self.events);
        // If several runs have the same id, each has its own name.
        let name = head.lineage.run_name(&head.id);
        let known =
            // The name of the run goes first: the bare id belongs to the oldest run that has it.
            self.wanted.get_key_value(&name).or_else(|| self.wanted.get_key_value(&head.id));
        let Some((session_id, (counts_at, details))) = known else { return };
        let session_id = session_id.clone();
        let facets = facets_of_session(&head, details);
        for event in &mut events {
            event.words = format!("{} {facets}", event.words);
        }
        // If a file contains a session twice, the reader shows the first one.
        if !self.sessions.iter().any(|session| session.session_id == session_id) {
            self.sessions.push(IndexedSession { session_id, counts_at: *counts_at, events });
        }
    }

    fn restart(&mut self) {
        self.events.clear();
        self.bytes = 0;
    }
}

/// Maximum bytes of a snippet.
const MAX_SNIPPET: usize = 220;

/// Words and filters of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchRequest {
    /// Words, `"phrases"` and `prefixes*`.
    pub words: String,
    /// Only sessions of this agent.
    pub agent: Option<String>,
    /// Only sessions in this folder; the last component is enough.
    pub project: Option<String>,
    /// Only sessions in which this model answered.
    pub model: Option<String>,
    /// Only events of this tool.
    pub tool: Option<String>,
    /// Only events in which a tool failed.
    pub errors: bool,
    /// Only sessions counted at this time or later.
    pub since: Option<Timestamp>,
    /// Only sessions counted before this time.
    pub until: Option<Timestamp>,
    /// Number of sessions per page.
    pub limit: u32,
    /// The `next` value of the previous page.
    pub cursor: Option<String>,
}

/// Error of a search.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The query contains no words.
    #[error("there is no word to search for")]
    NoWords,
    /// The cursor is invalid.
    #[error("the cursor is not the `next` of a page of a search")]
    Cursor,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A page of search results, newest sessions first.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SearchResults {
    /// Sessions with hits.
    pub items: Vec<MatchedSession>,
    /// Cursor for the next page, to be passed as `cursor`; null on the last page.
    pub next: Option<String>,
    /// Number of files with graded sessions that are not indexed yet, or have changed since.
    pub files_not_indexed: u64,
}

/// A session with hits.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MatchedSession {
    /// The session.
    #[serde(flatten)]
    pub session: SearchedSession,
    /// First events with hits.
    pub hits: Vec<MatchedEvent>,
    /// True if the session has more hits.
    pub has_more: bool,
}

/// An event with a hit.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MatchedEvent {
    /// Number of the event in its session.
    pub event: u64,
    /// Text around the first hit.
    pub snippet: Vec<SnippetPiece>,
}

/// A piece of a snippet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SnippetPiece {
    /// Text of the piece, on one line.
    pub text: String,
    /// True if this piece matches the query.
    pub is_hit: bool,
}

/// Parses a time, or a day in UTC.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    let day =
        |text: &str| Some(text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp());
    text.trim().parse().ok().or_else(|| day(text.trim()))
}

impl SearchRequest {
    fn query(&self, words: SearchWords) -> Result<SearchQuery, SearchError> {
        let named = [
            (Facet::Agent, &self.agent),
            (Facet::Project, &self.project),
            (Facet::Model, &self.model),
            (Facet::Tool, &self.tool),
        ];
        let mut facets: Vec<String> = named
            .into_iter()
            .filter_map(|(facet, value)| Some(facet.word(value.as_deref()?)))
            .collect();
        facets.extend(self.errors.then(|| Facet::Error.word("")));
        let after = self.cursor.as_deref().map(str::parse).transpose();
        Ok(SearchQuery {
            words,
            facets,
            since: self.since,
            until: self.until,
            limit: self.limit,
            after: after.map_err(|_| SearchError::Cursor)?,
        })
    }

    /// Runs the search.
    pub async fn run(&self, store: &Store) -> Result<SearchResults, SearchError> {
        let words = SearchWords::parse(&self.words).ok_or(SearchError::NoWords)?;
        let page = store.search(&self.query(words.clone())?).await?;
        let event = |hit: selftest_store::SearchHit| MatchedEvent {
            event: hit.event,
            snippet: words
                .snippet(&hit.text, MAX_SNIPPET)
                .into_iter()
                .map(|piece| SnippetPiece { text: piece.text, is_hit: piece.is_hit })
                .collect(),
        };
        let items = page.items.into_iter().map(|(session, hits, has_more)| MatchedSession {
            session,
            hits: hits.into_iter().map(event).collect(),
            has_more,
        });
        Ok(SearchResults {
            items: items.collect(),
            next: page.next.map(|next| next.to_string()),
            files_not_indexed: store.count_files_to_index().await?,
        })
    }
}

impl MatchedEvent {
    /// Returns the snippet with these marks around hits.
    pub fn marked(&self, before: &str, after: &str) -> String {
        let pieces = self.snippet.iter().map(|piece| {
            if piece.is_hit { format!("{before}{}{after}", piece.text) } else { piece.text.clone() }
        });
        pieces.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::{SessionSource, read};

    /// Gives every session the id that is wanted.
    struct Renamed<'i, 'w>(&'i mut SessionIndexer<'w>);
    impl SessionSink for Renamed<'_, '_> {
        fn event(&mut self, event: Event<'_>) {
            self.0.event(event);
        }
        fn end(&mut self, head: SessionHead) {
            self.0.end(SessionHead { id: "demo".to_owned(), ..head });
        }
        fn restart(&mut self) {
            self.0.restart();
        }
    }

    #[test]
    fn events_are_bounded_texts_without_secrets() {
        let secret = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6";
        // The secret lies across the limit.
        let long = format!("{} {secret} tail", "x ".repeat(MAX_MESSAGE / 2 - 10));
        let session = format!(
            r#"[{{"role":"user","content":"{long}"}},
            {{"role":"assistant","tool_calls":[{{"id":"c","function":{{"name":"bash",
              "arguments":"{{\"command\":\"cargo test\"}}"}}}}]}},
            {{"role":"tool","tool_call_id":"c","content":"Error: no such command"}}]"#
        );
        let details =
            IndexFacts { agent: "chat".to_owned(), project: Some("/work/shop".to_owned()) };
        let wanted = HashMap::from([("demo".to_owned(), (Some(Timestamp::UNIX_EPOCH), details))]);
        let redactor = Redactor::default();
        let mut indexer = SessionIndexer::new(&wanted, &redactor);
        read(&SessionSource::bytes("demo.json", session), &mut Renamed(&mut indexer)).unwrap();
        let sessions = indexer.into_sessions();
        let events = &sessions[0].events;
        assert_eq!(events.len(), 3);
        assert!(!events[0].text.contains("sk-proj"), "{}", events[0].text);
        assert!(events[0].text.len() <= MAX_MESSAGE);
        assert_eq!(events[1].text, r#"bash {"command":"cargo test"}"#);
        assert!(events[1].words.starts_with("bash command cargo test "), "{}", events[1].words);
        for (event, facet, value, has) in [
            (1, Facet::Tool, "bash", true),
            (2, Facet::Tool, "bash", true),
            (2, Facet::Error, "", true),
            (1, Facet::Error, "", false),
            (0, Facet::Project, "shop", true),
            (0, Facet::Project, "/work/shop", true),
            (0, Facet::Agent, "chat", true),
        ] {
            let has_it = events[event].words.contains(&facet.word(value));
            assert_eq!(has_it, has, "{event} {facet:?} {}", events[event].words);
        }
    }

    #[test]
    fn times_and_days() {
        let day: Timestamp = "2026-11-20T00:00:00Z".parse().unwrap();
        assert_eq!(parse_time(" 2026-11-20 "), Some(day));
        assert_eq!(parse_time("2026-11-20T01:00:00+01:00"), Some(day));
        assert_eq!(parse_time("yesterday"), None);
    }
}
