//! The tables `session_transcripts`, `session_texts` and `session_words`: what was said and done in
//! sessions, to be searched. Filled from files by others; what is searched for is words, never the
//! language of a search engine ([`selftest_text::search`]).

use std::collections::HashMap;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::bound::{self, TEXT};
use super::dialect::Engine;
use super::files::MAX_PATH;
use super::row::{Columns, Record as _, Rows, record};
use super::statement::{Statement, ToValue as _, Value, params};
use super::transaction::Writing;
use super::{Store, StoreError};
use selftest_grading::grade::{GradeRecord, SessionKind, TaskOutcome};
use selftest_text::digest;
use selftest_text::search::SearchWords;

/// Rows of one statement.
const MAX_ROWS: usize = 100;

/// Hits that are looked for at once.
const MAX_BATCH: u64 = 1000;

/// Hits of one session that a page holds.
const MAX_HITS: u64 = 3;

/// The numbers of a second: as many texts can stand in their order in it.
const IN_SECOND: i64 = 1 << 20;

/// The last second that is told apart, in the year 36812.
const LAST_SECOND: i64 = 1 << 40;

/// Filters of a search, beside time: each is a word of its own in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Facet {
    /// The agent, by name.
    Agent,
    /// The folder that was worked in, or its last part.
    Project,
    /// A model that answered.
    Model,
    /// A tool that the event called or that gave back its result.
    Tool,
    /// An event in which a tool failed; the value is empty.
    Error,
}

impl Facet {
    /// The word that stands for it: one that no text has.
    pub fn word(self, value: &str) -> String {
        let kind = match self {
            Facet::Agent => "agent",
            Facet::Project => "project",
            Facet::Model => "model",
            Facet::Tool => "tool",
            Facet::Error => "error",
        };
        let value = value.trim().to_lowercase();
        let digest = digest::of_bytes(format!("{kind}\n{value}").as_bytes());
        // Letters alone: digits in a word are read in several ways.
        let letter = |c: char| match c {
            '0'..='9' => char::from_u32(u32::from(c) - u32::from('0') + u32::from('g')),
            c => Some(c),
        };
        let letters = digest.chars().take(16).filter_map(letter);
        format!("qz{}", letters.collect::<String>())
    }
}

/// A file whose sessions are to be indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileToIndex {
    /// Its path.
    pub path: String,
    /// Digest of its content when it was graded.
    pub digest: String,
    /// Sessions whose grade comes from it.
    pub graded: u64,
}

record!(FileToIndex, "session_files", { path [MAX_PATH], digest, graded });

/// An event as it is searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedEvent {
    /// Its number in the session.
    pub number: u64,
    /// The beginning of what was said and done in it, for people; secrets redacted.
    pub text: String,
    /// The words by which it is found ([`selftest_text::search::indexed`]), those of facets too.
    pub words: String,
}

/// A session as it is searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedSession {
    /// As the store names it.
    pub session_id: String,
    /// When it counts.
    pub counts_at: Timestamp,
    /// In the order of their numbers.
    pub events: Vec<IndexedEvent>,
}

/// Words and filters of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// All of them have to stand in one event.
    pub words: SearchWords,
    /// Words of facets that the event must have.
    pub facets: Vec<String>,
    /// Only sessions that count then or later.
    pub since: Option<Timestamp>,
    /// Only sessions that count before.
    pub until: Option<Timestamp>,
    /// Sessions of a page.
    pub limit: u32,
    /// `next` of the page before.
    pub after: Option<i64>,
}

/// A session with hits.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SearchedSession {
    /// The session.
    pub session_id: String,
    /// Who worked in it.
    pub agent: Option<String>,
    /// The agent's model.
    pub model: Option<String>,
    /// The beginning of the request.
    pub task_summary: Option<String>,
    /// When it counts.
    pub counts_at: Option<Timestamp>,
    /// Outcome of the task.
    pub outcome: Option<TaskOutcome>,
    /// Why the session was held.
    pub session_kind: SessionKind,
}

record!(SearchedSession, "session_grades", {
    session_id, agent, model, task_summary [TEXT], counts_at, outcome, session_kind,
});

/// An event that holds what was searched for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SearchHit {
    /// Its number in the session.
    pub event: u64,
    /// The beginning of what was said and done in it.
    pub text: String,
}

/// A page of a search: the newest sessions first.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchPage {
    /// Each session with its first hits, and whether there are more.
    pub items: Vec<FoundSession>,
    /// Hand it back as `after` for the next page.
    pub next: Option<i64>,
}

/// A session with its hits, by number.
struct Found {
    /// The number of its event 0.
    first: i64,
    /// In the order of the events.
    hits: Vec<i64>,
    /// Whether hits before these may be missing.
    is_cut: bool,
}

/// A session with its first hits, and whether there are more.
type FoundSession = (SearchedSession, Vec<SearchHit>, bool);

/// The first number of a second.
fn second(at: Timestamp) -> i64 {
    at.as_second().clamp(0, LAST_SECOND) * IN_SECOND
}

impl Store {
    /// Some of the files with graded sessions that are not indexed, or have changed since.
    pub async fn files_to_index(&self, limit: u32) -> Result<Vec<FileToIndex>, StoreError> {
        let query = format!(
            "SELECT file.path, file.digest, file.graded {NOT_INDEXED} \
             ORDER BY file.modified_ns DESC, file.path LIMIT $1"
        );
        Ok(self.fetch(query, params![limit], FileToIndex::read).await?.items)
    }

    /// How many files [`Store::files_to_index`] would list in all.
    pub async fn count_files_to_index(&self) -> Result<u64, StoreError> {
        self.count(format!("SELECT COUNT(*) AS count {NOT_INDEXED}"), []).await
    }

    /// The grades that come from a file.
    pub async fn grades_of_file(&self, path: &str) -> Result<Rows<GradeRecord>, StoreError> {
        let path = bound::path(path).to_value(MAX_PATH);
        self.find("WHERE session_file = $1 ORDER BY session_id", [path]).await
    }

    /// Makes the sessions of a file to be found by these texts and no others.
    pub async fn index_file(
        &self,
        file: &FileToIndex,
        sessions: &[IndexedSession],
    ) -> Result<(), StoreError> {
        let path = || bound::path(&file.path).to_value(MAX_PATH);
        let mut writing = self.begin().await?;
        writing.execute("DELETE FROM session_transcripts WHERE path = $1", [path()]).await?;
        for session in sessions {
            let id = session.session_id.to_value(bound::NAME);
            let query = "DELETE FROM session_transcripts WHERE session_id = $1";
            writing.execute(query, [id.clone()]).await?;
            // It may have lost its grade since its file was read.
            let query = "SELECT session_id FROM session_grades \
                         WHERE session_id = $1 AND session_file = $2";
            let known = writing.fetch_text(query, [id.clone(), path()]).await?;
            if known.is_none() || session.events.is_empty() {
                continue;
            }
            let first = free(&mut writing, session).await?;
            let last = first + span(session) - 1;
            let query = "INSERT INTO session_transcripts (session_id, path, first_id, last_id) \
                         VALUES ($1, $2, $3, $4)";
            let [first_value, last_value] = params![first, last];
            writing.execute(query, [id, path(), first_value, last_value]).await?;
            for events in session.events.chunks(MAX_ROWS) {
                self.insert_events(&mut writing, first, events).await?;
            }
        }
        note(&mut writing, file).await?;
        writing.commit().await
    }

    /// Notes that a file was looked at and could not be read: what is found of it stays.
    pub async fn note_indexed(&self, file: &FileToIndex) -> Result<(), StoreError> {
        let mut writing = self.begin().await?;
        note(&mut writing, file).await?;
        writing.commit().await
    }

    async fn insert_events(
        &self,
        writing: &mut Writing,
        first: i64,
        events: &[IndexedEvent],
    ) -> Result<(), StoreError> {
        let number = |event: &IndexedEvent| first + i64::try_from(event.number).unwrap_or_default();
        let (column, made) = match self.engine {
            Engine::Sqlite => ("rowid", ["", ""]),
            Engine::Postgres => ("id", ["to_tsvector('simple', ", ")"]),
        };
        let mut texts = Statement::default();
        let mut words = Statement::default();
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

    /// A page of the sessions in which events hold all that is searched for.
    pub async fn search(&self, query: &SearchQuery) -> Result<SearchPage, StoreError> {
        let matching = self.engine.matching(query);
        let least = query.since.map_or(0, second);
        let mut below = query.until.map_or(i64::MAX, second).min(query.after.unwrap_or(i64::MAX));
        let limit = query.limit as usize;
        let (mut found, mut next) = (Vec::<Found>::new(), None);
        loop {
            let (batch, rest) = self.batch(&matching, least, below).await?;
            for mut one in batch {
                if found.len() >= limit {
                    next = found.last().map(|last| last.first);
                    break;
                }
                below = one.first;
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
        let items = self.shown(found).await?;
        Ok(SearchPage { items, next })
    }

    /// The newest hits whose numbers are below that, by session, the newest first; and below which
    /// number there may be more. Many at once: each statement looks up anew all words that begin
    /// as one that may go on.
    async fn batch(
        &self,
        matching: &str,
        least: i64,
        below: i64,
    ) -> Result<(Vec<Found>, Option<i64>), StoreError> {
        let (id, condition) = self.engine.matches();
        // First the hits alone: the engine walks down the numbers and stops when there are enough.
        let query = format!(
            "SELECT hit.id AS id, (SELECT first_id FROM session_transcripts \
             WHERE first_id <= hit.id ORDER BY first_id DESC LIMIT 1) AS first_id \
             FROM (SELECT {id} AS id FROM session_words WHERE {condition} AND {id} < $2 \
             AND {id} >= $3 ORDER BY {id} DESC LIMIT $4) AS hit ORDER BY hit.id DESC"
        );
        let mut found = Vec::<Found>::new();
        let (mut count, mut least_hit) = (0, below);
        let read = |row: &Columns<'_>| {
            let hit = row.get("id")?;
            (count, least_hit) = (count + 1, hit);
            let first = row.get("first_id")?;
            match found.last_mut().filter(|last| last.first == first) {
                Some(last) => last.hits.push(hit),
                None => found.push(Found { first, hits: vec![hit], is_cut: false }),
            }
            Ok(())
        };
        self.fetch(query, params![matching, below, least, MAX_BATCH], read).await?;
        let rest = (count >= MAX_BATCH).then_some(least_hit);
        if let Some(last) = found.last_mut() {
            last.is_cut = rest.is_some();
        }
        for one in &mut found {
            one.hits.reverse();
        }
        Ok((found, rest))
    }

    /// The first hits of a session, one more than a page holds.
    async fn first_hits(
        &self,
        matching: &str,
        least: i64,
        found: &Found,
    ) -> Result<Vec<i64>, StoreError> {
        let (id, condition) = self.engine.matches();
        let query = format!(
            "SELECT {id} AS id FROM session_words WHERE {condition} AND {id} >= $2 AND {id} <= $3 \
             ORDER BY {id} LIMIT $4"
        );
        let (first, last) = (found.first.max(least), found.hits.last().copied());
        let values = params![matching, first, last.unwrap_or(first), MAX_HITS + 1];
        Ok(self.fetch(query, values, |row| row.get("id")).await?.items)
    }

    /// The sessions of a page and the texts of their hits.
    async fn shown(&self, found: Vec<Found>) -> Result<Vec<FoundSession>, StoreError> {
        let most = usize::try_from(MAX_HITS).unwrap_or_default();
        let (mut sessions, mut texts) = (HashMap::new(), HashMap::new());
        for found in found.chunks(MAX_ROWS) {
            let mut sql = Statement::default();
            let columns = SearchedSession::columns().join(", session_grades.");
            sql.push(&format!(
                "SELECT first_id, session_grades.{columns} FROM session_transcripts \
                 JOIN session_grades ON session_grades.session_id = session_transcripts.session_id \
                 WHERE first_id"
            ));
            sql.is_one_of(filled(found.iter().map(|one| one.first), MAX_ROWS));
            let read =
                |row: &Columns<'_>| Ok((row.get::<i64>("first_id")?, SearchedSession::read(row)?));
            sessions.extend(self.fetch(sql.sql, sql.values, read).await?.items);
            let mut sql = Statement::default();
            let hits = found.iter().flat_map(|one| one.hits.iter().take(most));
            sql.push("SELECT id, text FROM session_texts WHERE id");
            sql.is_one_of(filled(hits.copied(), MAX_ROWS * most));
            let read = |row: &Columns<'_>| Ok((row.get::<i64>("id")?, row.get::<String>("text")?));
            texts.extend(self.fetch(sql.sql, sql.values, read).await?.items);
        }
        let shown = found.into_iter().filter_map(|one| {
            let hit = |id: &i64| {
                let event = u64::try_from(id - one.first).unwrap_or_default();
                Some(SearchHit { event, text: texts.remove(id)? })
            };
            let hits: Vec<SearchHit> = one.hits.iter().take(most).filter_map(hit).collect();
            let session = sessions.remove(&one.first).filter(|_| !hits.is_empty())?;
            Some((session, hits, one.hits.len() > most))
        });
        Ok(shown.collect())
    }
}

/// Notes which state of a file is indexed.
async fn note(writing: &mut Writing, file: &FileToIndex) -> Result<(), StoreError> {
    let file = FileToIndex { path: bound::path(&file.path), ..file.clone() };
    let query = "INSERT INTO indexed_files (path, digest, graded) VALUES ($1, $2, $3) \
                 ON CONFLICT (path) DO UPDATE SET digest = excluded.digest, \
                 graded = excluded.graded";
    writing.execute(query, file.values()).await.map(drop)
}

/// Files with graded sessions that cannot be searched as they are now.
const NOT_INDEXED: &str = "FROM session_files AS file \
     LEFT JOIN indexed_files AS indexed ON indexed.path = file.path \
     WHERE file.graded > 0 AND (indexed.path IS NULL OR indexed.digest <> file.digest \
     OR indexed.graded <> file.graded)";

/// So many numbers, the rest of them null, so that a statement has one text for all of them.
fn filled(numbers: impl Iterator<Item = i64>, count: usize) -> impl Iterator<Item = Value> {
    numbers.map(Some).chain(std::iter::repeat(None)).take(count).map(Value::Integer)
}

/// How many numbers the events of a session take.
fn span(session: &IndexedSession) -> i64 {
    let last = session.events.last().map_or(0, |event| event.number);
    i64::try_from(last).unwrap_or_default() + 1
}

/// The first of the numbers that the session takes: those of the second in which it counts, or the
/// next ones that no other session has.
async fn free(writing: &mut Writing, session: &IndexedSession) -> Result<i64, StoreError> {
    let (mut first, span) = (second(session.counts_at), span(session));
    let end = first + IN_SECOND;
    // The ranges never overlap: the one that begins last ends last.
    let query = "SELECT CAST(last_id AS TEXT) FROM session_transcripts WHERE first_id < $1 \
                 ORDER BY first_id DESC LIMIT 1";
    let number = |text: Option<String>| text.and_then(|text| text.parse::<i64>().ok());
    if let Some(last) = number(writing.fetch_text(query, params![end]).await?) {
        first = first.max(last + 1);
    }
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

impl Engine {
    /// The number of a row of words, and the condition that it matches `$1`.
    fn matches(self) -> (&'static str, &'static str) {
        match self {
            Engine::Sqlite => ("rowid", "session_words MATCH $1"),
            Engine::Postgres => ("id", "words @@ to_tsquery('simple', $1)"),
        }
    }

    /// The query in the engine's own language. Nothing but letters and digits comes from outside.
    fn matching(self, query: &SearchQuery) -> String {
        let terms = query.words.terms().iter();
        let facets = query.facets.iter();
        match self {
            Engine::Sqlite => {
                let terms = terms.map(|term| {
                    let star = if term.is_prefix { " *" } else { "" };
                    format!("\"{}\"{star}", term.words.join(" "))
                });
                let all: Vec<String> =
                    facets.map(|facet| format!("\"{facet}\"")).chain(terms).collect();
                all.join(" AND ")
            }
            Engine::Postgres => {
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
            Engine::Sqlite.matching(&query),
            format!(r#""{agent}" AND "a" AND "or" AND "b c" AND "d" * AND "near""#)
        );
        assert_eq!(
            Engine::Postgres.matching(&query),
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
