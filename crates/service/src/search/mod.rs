//! Fills the full-text index of graded sessions, file by file. The store does the searching.
//!
//! Indexing is separate from grading. It reads all tool outputs and reasoning, which grading skips,
//! and writes far more than a grade. Users who never search should not pay for it.

mod events;
mod request;

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::transcripts::{TranscriptError, find_source, read_source};
use events::{IndexFacts, SessionIndexer};
pub use request::{
    MatchedEvent, MatchedSession, SearchError, SearchRequest, SearchResults, SnippetPiece,
    parse_time,
};
use selftest_store::{FileToIndex, IndexedSession, Store, StoreError};
use selftest_text::redact::Redactor;

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
        self.release().await?;
        filled.map(|()| indexing)
    }

    async fn fill_batches(
        &self,
        indexing: &mut IndexSummary,
        observer: &mut dyn IndexObserver,
    ) -> Result<(), StoreError> {
        loop {
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
