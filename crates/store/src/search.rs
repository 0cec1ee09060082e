//! The tables `session_transcripts`, `session_texts` and `session_words`: a full-text index of
//! sessions.
//!
//! Callers fill it from files. Queries contain words only, never the query language of an engine
//! ([`selftest_text::search`]).

use std::collections::HashMap;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::bound::{self, MAX_PATH, TEXT};
use super::row::{Columns, Record as _, Rows, record};
use super::statement::{DatabaseEngine, SqlStatement, ToValue as _, Value, params};
use super::transaction::WriteTransaction;
use super::{Store, StoreError};
use selftest_grading::grade::{GradeRecord, SessionKind, TaskOutcome};
use selftest_text::digest;
use selftest_text::search::SearchWords;

/// Maximum number of rows per statement.
const MAX_ROWS: usize = 100;

/// Number of hits fetched at once.
const MAX_BATCH: u64 = 1000;

/// Maximum number of hits per session on a page.
const MAX_HITS: u64 = 3;

/// Row numbers reserved for each second, which limits how many texts of one second stay in order.
const IN_SECOND: i64 = 1 << 20;

/// Largest second with numbers of its own, in the year 36812.
const LAST_SECOND: i64 = 1 << 40;

/// Filters of a search besides time. Each is indexed as a separate word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Facet {
    /// Agent name.
    Agent,
    /// Project folder, or its last component.
    Project,
    /// Model that answered.
    Model,
    /// Tool that the event called or whose result it contains.
    Tool,
    /// Event in which a tool failed; the value is empty.
    Error,
}

impl Facet {
    /// Returns the index word for a value, which does not occur in any text.
    pub fn word(self, value: &str) -> String {
        let kind = match self {
            Facet::Agent => "agent",
            Facet::Project => "project",
            Facet::Model => "model",
            Facet::Tool => "tool",
            Facet::Error => "error",
        };
        let value = value.trim().to_lowercase();
        let digest = digest::sha256_hex(format!("{kind}\n{value}").as_bytes());
        // Letters only, because engines tokenize digits within a word differently.
        let letter = |c: char| match c {
            '0'..='9' => char::from_u32(u32::from(c) - u32::from('0') + u32::from('g')),
            c => Some(c),
        };
        let letters = digest.chars().take(16).filter_map(letter);
        format!("qz{}", letters.collect::<String>())
    }
}

/// A file whose sessions need indexing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileToIndex {
    /// File path.
    pub path: String,
    /// Digest of its content when it was graded.
    pub digest: String,
    /// Number of sessions graded from it.
    pub graded: u64,
}

record!(FileToIndex, "session_files", { path [MAX_PATH], digest, graded });

/// An event in the search index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedEvent {
    /// Number of the event in its session.
    pub number: u64,
    /// Start of the event's text for display; secrets redacted.
    pub text: String,
    /// Words under which it is found ([`selftest_text::search::index_text`]), including facets.
    pub words: String,
}

/// A session in the search index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedSession {
    /// Session id in the store.
    pub session_id: String,
    /// Date of the session. Undated ones are found last, and never by a time.
    pub counts_at: Option<Timestamp>,
    /// Events in the order of their numbers.
    pub events: Vec<IndexedEvent>,
}

/// Words and filters of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// Words that must all occur in one event.
    pub words: SearchWords,
    /// Facet words that the event must have.
    pub facets: Vec<String>,
    /// Only sessions counted at this time or later.
    pub since: Option<Timestamp>,
    /// Only sessions counted before this time.
    pub until: Option<Timestamp>,
    /// Number of sessions per page.
    pub limit: u32,
    /// The `next` value of the previous page.
    pub after: Option<i64>,
}

/// A session with hits.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SearchedSession {
    /// Session id.
    pub session_id: String,
    /// Name of the agent.
    pub agent: Option<String>,
    /// Model used by the agent.
    pub model: Option<String>,
    /// Start of the request.
    pub task_summary: Option<String>,
    /// Time under which the session is counted.
    pub counts_at: Option<Timestamp>,
    /// Outcome of the task.
    pub outcome: Option<TaskOutcome>,
    /// Purpose of the session.
    pub session_kind: SessionKind,
}

record!(SearchedSession, "session_grades", {
    session_id, agent, model, task_summary [TEXT], counts_at, outcome, session_kind,
});

/// An event that matches a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SearchHit {
    /// Number of the event in its session.
    pub event: u64,
    /// Start of the event's text.
    pub text: String,
}

/// A page of search results, newest sessions first.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchPage {
    /// Sessions with their first hits, and whether there are more hits.
    pub items: Vec<SearchResultRow>,
    /// Value to pass as `after` for the next page.
    pub next: Option<i64>,
}

/// A session with the row numbers of its hits.
struct HitRows {
    /// Row number of its event 0.
    first_id: i64,
    /// Hits in the order of the events.
    hits: Vec<i64>,
    /// True if earlier hits may be missing.
    is_cut: bool,
}

/// A session with its first hits, and whether there are more.
type SearchResultRow = (SearchedSession, Vec<SearchHit>, bool);

/// Dates are later than this, so a search up to a time finds no undated session.
const EARLIEST_DATE: Timestamp = Timestamp::constant(1, 0);

/// Returns the first row number of a second.
fn first_id_of(at: Timestamp) -> i64 {
    at.as_second().clamp(0, LAST_SECOND) * IN_SECOND
}

impl Store {
    /// Returns files with graded sessions that are not indexed or have changed since.
    pub async fn files_to_index(&self, limit: u32) -> Result<Vec<FileToIndex>, StoreError> {
        let query = format!(
            "SELECT file.path, file.digest, file.graded {NOT_INDEXED} \
             ORDER BY file.modified_ns DESC, file.path LIMIT $1"
        );
        Ok(self.fetch(query, params![limit], FileToIndex::read).await?.items)
    }

    /// Counts all files that [`Store::files_to_index`] would list.
    pub async fn count_files_to_index(&self) -> Result<u64, StoreError> {
        self.count(format!("SELECT COUNT(*) AS count {NOT_INDEXED}"), []).await
    }

    /// Returns the grades that come from a file.
    pub async fn grades_of_file(&self, path: &str) -> Result<Rows<GradeRecord>, StoreError> {
        let path = bound::path(path).to_value(MAX_PATH);
        self.find("WHERE session_file = $1 ORDER BY session_id", [path]).await
    }

    /// Replaces the indexed texts of a file's sessions.
    pub async fn index_file(
        &self,
        file: &FileToIndex,
        sessions: &[IndexedSession],
    ) -> Result<(), StoreError> {
        let path = || bound::path(&file.path).to_value(MAX_PATH);
        let mut writing = self.begin_write().await?;
        // A trigger deletes the texts and words in the range of each row.
        writing.execute("DELETE FROM session_transcripts WHERE path = $1", [path()]).await?;
        for session in sessions {
            let id = session.session_id.to_value(bound::NAME);
            // The session may have been indexed from another file before.
            let query = "DELETE FROM session_transcripts WHERE session_id = $1";
            writing.execute(query, [id.clone()]).await?;
            // The session may have lost its grade since its file was read.
            let query = "SELECT session_id FROM session_grades \
                         WHERE session_id = $1 AND session_file = $2";
            let known = writing.fetch_text(query, [id.clone(), path()]).await?;
            if known.is_none() || session.events.is_empty() {
                continue;
            }
            let first = first_free_id(&mut writing, session).await?;
            // A session takes a whole range, also for events without a text, so that a hit's number
            // in its session is its row number minus the first.
            let last = first + id_span(session) - 1;
            let query = "INSERT INTO session_transcripts (session_id, path, first_id, last_id) \
                         VALUES ($1, $2, $3, $4)";
            let [first_value, last_value] = params![first, last];
            writing.execute(query, [id, path(), first_value, last_value]).await?;
            for events in session.events.chunks(MAX_ROWS) {
                self.insert_events(&mut writing, first, events).await?;
            }
        }
        write_indexed_file(&mut writing, file).await?;
        writing.commit().await
    }

    /// Marks a file as processed although it could not be read. Its indexed texts stay.
    pub async fn mark_indexed(&self, file: &FileToIndex) -> Result<(), StoreError> {
        let mut writing = self.begin_write().await?;
        write_indexed_file(&mut writing, file).await?;
        writing.commit().await
    }

    async fn insert_events(
        &self,
        writing: &mut WriteTransaction,
        first: i64,
        events: &[IndexedEvent],
    ) -> Result<(), StoreError> {
        let number = |event: &IndexedEvent| first + i64::try_from(event.number).unwrap_or_default();
        let (column, made) = match self.engine {
            DatabaseEngine::Sqlite => ("rowid", ["", ""]),
            DatabaseEngine::Postgres => ("id", ["to_tsvector('simple', ", ")"]),
        };
        let mut texts = SqlStatement::default();
        let mut words = SqlStatement::default();
        texts.push("INSERT INTO session_texts (id, text) VALUES ");
        words.push(&format!("INSERT INTO session_words ({column}, words) VALUES "));
        for (place, event) in events.iter().enumerate() {
            let comma = if place == 0 { "(" } else { ", (" };
            let text = Value::Text(Some(bound::text(&event.text, TEXT)));
            texts.push(comma).bind(number(event)).push(", ").bind(text).push(")");
            let text = Value::Text(Some(bound::text(&event.words, 2 * TEXT)));
            words.push(comma).bind(number(event)).push(", ").push(made[0]).bind(text);
            words.push(made[1]).push(")");
        }
        writing.execute(texts.sql, texts.values).await?;
        writing.execute(words.sql, words.values).await.map(drop)
    }

    /// Returns a page of sessions in which single events match all words and facets.
    pub async fn search(&self, query: &SearchQuery) -> Result<SearchPage, StoreError> {
        let matching = self.engine.match_expression(query);
        // Undated sessions come before every dated one.
        let any_date = query.until.is_some().then_some(EARLIEST_DATE);
        let least = query.since.or(any_date).map_or(0, first_id_of);
        // Row numbers encode the time, so time filters become ranges of numbers.
        let mut below =
            query.until.map_or(i64::MAX, first_id_of).min(query.after.unwrap_or(i64::MAX));
        let limit = query.limit as usize;
        let (mut found, mut next) = (Vec::<HitRows>::new(), None);
        loop {
            let (batch, rest) = self.fetch_hits(&matching, least, below).await?;
            for mut one in batch {
                if found.len() >= limit {
                    next = found.last().map(|last| last.first_id);
                    break;
                }
                below = one.first_id;
                // The batch ended within this session, so its first hits may be missing.
                if one.is_cut {
                    one.hits = self.first_hits(&matching, least, &one).await?;
                }
                found.push(one);
            }
            match rest {
                Some(rest) if next.is_none() => below = below.min(rest),
                _ => break,
            }
        }
        let items = self.load_results(found).await?;
        Ok(SearchPage { items, next })
    }

    /// Returns the newest hits below a row number, grouped by session, newest first, and the number
    /// below which there may be more. It fetches many at once because each statement expands a
    /// prefix term again.
    async fn fetch_hits(
        &self,
        matching: &str,
        least: i64,
        below: i64,
    ) -> Result<(Vec<HitRows>, Option<i64>), StoreError> {
        let (id, condition) = self.engine.match_columns();
        // The inner query reads only hits, so the engine walks down the row numbers and stops at
        // the limit.
        let query = format!(
            "SELECT hit.id AS id, (SELECT first_id FROM session_transcripts \
             WHERE first_id <= hit.id ORDER BY first_id DESC LIMIT 1) AS first_id \
             FROM (SELECT {id} AS id FROM session_words WHERE {condition} AND {id} < $2 \
             AND {id} >= $3 ORDER BY {id} DESC LIMIT $4) AS hit ORDER BY hit.id DESC"
        );
        let mut found = Vec::<HitRows>::new();
        let (mut count, mut least_hit) = (0, below);
        let read = |row: &Columns<'_>| {
            let hit = row.get("id")?;
            (count, least_hit) = (count + 1, hit);
            let first = row.get("first_id")?;
            match found.last_mut().filter(|last| last.first_id == first) {
                Some(last) => last.hits.push(hit),
                None => found.push(HitRows { first_id: first, hits: vec![hit], is_cut: false }),
            }
            Ok(())
        };
        self.fetch(query, params![matching, below, least, MAX_BATCH], read).await?;
        // Fewer hits than asked for means that there are no more below.
        let rest = (count >= MAX_BATCH).then_some(least_hit);
        if let Some(last) = found.last_mut() {
            last.is_cut = rest.is_some();
        }
        // Hits were read newest first, but a session lists them in order.
        for one in &mut found {
            one.hits.reverse();
        }
        Ok((found, rest))
    }

    /// Returns the first hits of a session, one more than a page shows.
    async fn first_hits(
        &self,
        matching: &str,
        least: i64,
        found: &HitRows,
    ) -> Result<Vec<i64>, StoreError> {
        let (id, condition) = self.engine.match_columns();
        let query = format!(
            "SELECT {id} AS id FROM session_words WHERE {condition} AND {id} >= $2 AND {id} <= $3 \
             ORDER BY {id} LIMIT $4"
        );
        let (first, last) = (found.first_id.max(least), found.hits.last().copied());
        let values = params![matching, first, last.unwrap_or(first), MAX_HITS + 1];
        Ok(self.fetch(query, values, |row| row.get("id")).await?.items)
    }

    /// Loads the sessions of a page and the texts of their hits.
    async fn load_results(&self, found: Vec<HitRows>) -> Result<Vec<SearchResultRow>, StoreError> {
        let most = usize::try_from(MAX_HITS).unwrap_or_default();
        let (mut sessions, mut texts) = (HashMap::new(), HashMap::new());
        for found in found.chunks(MAX_ROWS) {
            let mut sql = SqlStatement::default();
            let columns = SearchedSession::columns().join(", session_grades.");
            sql.push(&format!(
                "SELECT first_id, session_grades.{columns} FROM session_transcripts \
                 JOIN session_grades ON session_grades.session_id = session_transcripts.session_id \
                 WHERE first_id"
            ));
            sql.is_one_of(pad_with_nulls(found.iter().map(|one| one.first_id), MAX_ROWS));
            let read =
                |row: &Columns<'_>| Ok((row.get::<i64>("first_id")?, SearchedSession::read(row)?));
            sessions.extend(self.fetch(sql.sql, sql.values, read).await?.items);
            let mut sql = SqlStatement::default();
            let hits = found.iter().flat_map(|one| one.hits.iter().take(most));
            sql.push("SELECT id, text FROM session_texts WHERE id");
            sql.is_one_of(pad_with_nulls(hits.copied(), MAX_ROWS * most));
            let read = |row: &Columns<'_>| Ok((row.get::<i64>("id")?, row.get::<String>("text")?));
            texts.extend(self.fetch(sql.sql, sql.values, read).await?.items);
        }
        let shown = found.into_iter().filter_map(|one| {
            let hit = |id: &i64| {
                let event = u64::try_from(id - one.first_id).unwrap_or_default();
                Some(SearchHit { event, text: texts.remove(id)? })
            };
            let hits: Vec<SearchHit> = one.hits.iter().take(most).filter_map(hit).collect();
            let session = sessions.remove(&one.first_id).filter(|_| !hits.is_empty())?;
            Some((session, hits, one.hits.len() > most))
        });
        Ok(shown.collect())
    }
}

/// Records which state of a file is indexed.
async fn write_indexed_file(
    writing: &mut WriteTransaction,
    file: &FileToIndex,
) -> Result<(), StoreError> {
    let file = FileToIndex { path: bound::path(&file.path), ..file.clone() };
    let query = "INSERT INTO indexed_files (path, digest, graded) VALUES ($1, $2, $3) \
                 ON CONFLICT (path) DO UPDATE SET digest = excluded.digest, \
                 graded = excluded.graded";
    writing.execute(query, file.values()).await.map(drop)
}

/// Files with graded sessions whose index is missing or out of date.
const NOT_INDEXED: &str = "FROM session_files AS file \
     LEFT JOIN indexed_files AS indexed ON indexed.path = file.path \
     WHERE file.graded > 0 AND (indexed.path IS NULL OR indexed.digest <> file.digest \
     OR indexed.graded <> file.graded)";

/// Pads `numbers` with nulls to `count` values, so that the text of the statement is always the
/// same and can be reused.
fn pad_with_nulls(numbers: impl Iterator<Item = i64>, count: usize) -> impl Iterator<Item = Value> {
    numbers.map(Some).chain(std::iter::repeat(None)).take(count).map(Value::Integer)
}

/// Returns how many row numbers the events of a session take.
fn id_span(session: &IndexedSession) -> i64 {
    let last = session.events.last().map_or(0, |event| event.number);
    i64::try_from(last).unwrap_or_default() + 1
}

/// Returns the first row number for a session: the first of the second in which it is counted, or
/// the next range that no other session uses.
async fn first_free_id(
    writing: &mut WriteTransaction,
    session: &IndexedSession,
) -> Result<i64, StoreError> {
    let (mut first, span) = (session.counts_at.map_or(0, first_id_of), id_span(session));
    let end = first + IN_SECOND;
    // Ranges never overlap, so the one that starts last also ends last.
    let query = "SELECT CAST(last_id AS TEXT) FROM session_transcripts WHERE first_id < $1 \
                 ORDER BY first_id DESC LIMIT 1";
    let number = |text: Option<String>| text.and_then(|text| text.parse::<i64>().ok());
    if let Some(last) = number(writing.fetch_text(query, params![end]).await?) {
        first = first.max(last + 1);
    }
    // The range may reach into that of a later session; skip past it until it fits.
    loop {
        let query = "SELECT CAST(last_id AS TEXT) FROM session_transcripts \
                     WHERE first_id >= $1 AND first_id < $2 ORDER BY first_id DESC LIMIT 1";
        let taken = writing.fetch_text(query, params![first, first + span]).await?;
        match number(taken) {
            Some(last) => first = last + 1,
            None => return Ok(first),
        }
    }
}

impl DatabaseEngine {
    /// Returns the row number column of `session_words`, and the condition for a match with `$1`.
    fn match_columns(self) -> (&'static str, &'static str) {
        match self {
            DatabaseEngine::Sqlite => ("rowid", "session_words MATCH $1"),
            DatabaseEngine::Postgres => ("id", "words @@ to_tsquery('simple', $1)"),
        }
    }

    /// Translates the query to the engine's query language. User input contributes only letters and
    /// digits.
    fn match_expression(self, query: &SearchQuery) -> String {
        let terms = query.words.terms().iter();
        let facets = query.facets.iter();
        match self {
            DatabaseEngine::Sqlite => {
                let terms = terms.map(|term| {
                    let star = if term.is_prefix { " *" } else { "" };
                    format!("\"{}\"{star}", term.words.join(" "))
                });
                let all: Vec<String> =
                    facets.map(|facet| format!("\"{facet}\"")).chain(terms).collect();
                all.join(" AND ")
            }
            DatabaseEngine::Postgres => {
                let terms = terms.map(|term| {
                    let star = if term.is_prefix { ":*" } else { "" };
                    format!("({}{star})", term.words.join(" <-> "))
                });
                let all: Vec<String> = facets.cloned().chain(terms).collect();
                all.join(" & ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_searched_for_is_quoted() {
        let words = SearchWords::parse(r#"a OR "b c" d* ") NEAR('"#).unwrap();
        let facets = vec![Facet::Agent.word("claude-code")];
        let query = SearchQuery { words, facets, since: None, until: None, limit: 1, after: None };
        let agent = &query.facets[0];
        assert_eq!(
            DatabaseEngine::Sqlite.match_expression(&query),
            format!(r#""{agent}" AND "a" AND "or" AND "b c" AND "d" * AND "near""#)
        );
        assert_eq!(
            DatabaseEngine::Postgres.match_expression(&query),
            format!("{agent} & (a) & (or) & (b <-> c) & (d:*) & (near)")
        );
    }

    #[test]
    fn a_facet_is_one_word_of_letters() {
        let word = Facet::Tool.word("Bash");
        assert!(word.len() == 18 && word.bytes().all(|byte| byte.is_ascii_lowercase()), "{word}");
        assert_eq!(word, Facet::Tool.word(" bash"));
        assert_ne!(word, Facet::Agent.word("bash"));
    }
}
