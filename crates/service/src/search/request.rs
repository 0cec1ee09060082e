//! Search requests from users and programs, and their results with highlighted hits.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use utoipa::ToSchema;

use selftest_store::{Facet, SearchQuery, SearchedSession, Store, StoreError};
use selftest_text::search::SearchWords;

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

    #[test]
    fn times_and_days() {
        let day: Timestamp = "2026-11-20T00:00:00Z".parse().unwrap();
        assert_eq!(parse_time(" 2026-11-20 "), Some(day));
        assert_eq!(parse_time("2026-11-20T01:00:00+01:00"), Some(day));
        assert_eq!(parse_time("yesterday"), None);
    }
}
