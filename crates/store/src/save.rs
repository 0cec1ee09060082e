//! Keeping what became of files, and deciding between files that hold the same session: the one
//! with more messages counts, of equals the one that was there first.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use super::bound::TEXT;
use super::grade_row::Graded;
use super::row::count;
use super::{FileOutcome, FileRecord, Store, StoreError, bound, files, grade_row};
use selftest_grading::grade::GradeRecord;

/// A file and the grades of its sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileResult {
    /// The file.
    pub file: FileRecord,
    /// One for each session that could be graded. They are kept as grades from `file.path`.
    pub grades: Vec<GradeRecord>,
}

/// A grade that is not kept, because another file holds more of the same session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The session.
    pub session_id: String,
    /// The file whose grade is not kept.
    pub file: String,
    /// The file whose grade is.
    pub kept: String,
}

/// Where the grade of a session comes from.
struct Holder {
    file: String,
    messages: i64,
}

/// Which file holds which session, for the files and sessions of a batch: asked once for all of
/// them, and kept up to date while the batch is written.
#[derive(Default)]
struct Held {
    by_session: HashMap<String, Holder>,
    by_file: HashMap<String, HashSet<String>>,
}

/// Rows that are still to be written, so that they go into one statement. Their keys differ.
#[derive(Default)]
struct Pending<'a> {
    grades: Vec<Graded<'a>>,
    files: Vec<FileRecord>,
}

impl Pending<'_> {
    /// Before a statement that looks at rows or changes them.
    async fn write(&mut self, connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
        grade_row::write(connection, &std::mem::take(&mut self.grades)).await?;
        files::write(connection, &std::mem::take(&mut self.files)).await
    }

    fn has(&self, file: &str) -> bool {
        self.files.iter().any(|pending| pending.path == file)
    }
}

/// Values of one question to the database.
const ASKED: usize = 200;

impl Held {
    async fn before(
        connection: &mut AnyConnection,
        batch: &[FileResult],
    ) -> Result<Self, sqlx::Error> {
        let mut held = Self::default();
        let files = batch.iter().map(|result| bound::path(&result.file.path));
        held.ask(connection, "session_file", files.collect()).await?;
        let grades = batch.iter().flat_map(|result| &result.grades);
        held.ask(connection, "session_id", grades.map(grade_row::session_id).collect()).await?;
        Ok(held)
    }

    async fn ask(
        &mut self,
        connection: &mut AnyConnection,
        column: &str,
        values: Vec<String>,
    ) -> Result<(), sqlx::Error> {
        for part in values.chunks(ASKED) {
            let places: Vec<String> = (1..=part.len()).map(|place| format!("${place}")).collect();
            let query = format!(
                "SELECT session_id, session_file, messages FROM session_grades \
                 WHERE {column} IN ({})",
                places.join(", ")
            );
            let query = sqlx::query(AssertSqlSafe(query));
            let query = part.iter().fold(query, |query, value| query.bind(value.clone()));
            for row in query.fetch_all(&mut *connection).await? {
                let session_id: String = row.try_get(0).unwrap_or_default();
                // What another program wrote without a number of messages wins against nothing.
                let messages = row.try_get(2).unwrap_or_default();
                self.note(&session_id, &row.try_get::<String, _>(1).unwrap_or_default(), messages);
            }
        }
        Ok(())
    }

    fn note(&mut self, session_id: &str, file: &str, messages: i64) {
        let holder = Holder { file: file.to_owned(), messages };
        if let Some(before) = self.by_session.insert(session_id.to_owned(), holder)
            && let Some(sessions) = self.by_file.get_mut(&before.file)
        {
            sessions.remove(session_id);
        }
        self.by_file.entry(file.to_owned()).or_default().insert(session_id.to_owned());
    }

    fn forget(&mut self, file: &str, sessions: &HashSet<String>) {
        for session_id in sessions {
            self.by_session.remove(session_id);
        }
        if let Some(kept) = self.by_file.get_mut(file) {
            kept.retain(|session_id| !sessions.contains(session_id));
        }
    }
}

impl Store {
    /// Keeps the results of many files at once: all of them or, on an error, none.
    ///
    /// The grades of a file replace those that it had before; a session that it no longer holds
    /// loses its grade, unless the file is now [`FileOutcome::Unreadable`]. Where several files
    /// hold a session, the grade with more messages is kept, of equals the one that is there;
    /// every grade that is not kept is returned, and a file that has no other is recorded as
    /// [`FileOutcome::Duplicate`], whether it came before or now. When a session loses its grade,
    /// files that had lost against it are to be read again: [`Store::known_files`] leaves them
    /// out.
    pub async fn save(&self, batch: &[FileResult]) -> Result<Vec<Lost>, StoreError> {
        let mut lost = Vec::new();
        if batch.is_empty() {
            return Ok(lost);
        }
        let mut writing = self.begin().await?;
        let held = Held::before(&mut writing, batch).await;
        let mut held = held.map_err(|error| self.failed(error))?;
        let mut pending = Pending::default();
        for result in batch {
            let saved = save(&mut writing, &mut held, &mut pending, result, &mut lost).await;
            saved.map_err(|error| self.failed(error))?;
        }
        pending.write(&mut writing).await.map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(lost)
    }

    /// Notes that files are gone. Their records and grades stay, but any other file that holds
    /// the same sessions takes these over when it is read, as a file that was moved does.
    pub async fn release_files(&self, paths: &[String]) -> Result<(), StoreError> {
        let mut writing = self.begin().await?;
        for path in paths {
            let path = bound::path(path);
            release(&mut writing, &path).await.map_err(|error| self.failed(error))?;
        }
        self.commit(writing).await
    }
}

async fn save<'a>(
    connection: &mut AnyConnection,
    held: &mut Held,
    pending: &mut Pending<'a>,
    result: &'a FileResult,
    lost: &mut Vec<Lost>,
) -> Result<(), sqlx::Error> {
    let path = bound::path(&result.file.path);
    if pending.has(&result.file.path) {
        pending.write(connection).await?;
    }
    let mut own = held.by_file.get(&path).cloned().unwrap_or_default();
    let (mut graded, mut winner) = (0, None);
    for (session_id, grade) in largest(&result.grades) {
        let messages = count(grade.details.messages);
        let holder = held.by_session.get(&session_id).filter(|holder| holder.file != path);
        if let Some(Holder { file: other, messages: others }) = holder {
            let wins = *others < messages;
            let (file, kept) = if wins { (other, &path) } else { (&path, other) };
            let why = bound::text(&format!("session {session_id} is graded from {kept}"), TEXT);
            let (session_id, file, kept) = (session_id.clone(), file.clone(), kept.clone());
            lost.push(Lost { session_id, file, kept });
            if !wins {
                winner = Some(why);
                continue;
            }
            pending.write(connection).await?;
            displace(connection, other, &why).await?;
        }
        pending.grades.push((grade, path.clone()));
        held.note(&session_id, &path, messages);
        own.remove(&session_id);
        graded += 1;
    }
    let mut file = FileRecord { graded, ..result.file.clone() };
    if file.outcome == FileOutcome::Graded && graded == 0 && winner.is_some() {
        file.outcome = FileOutcome::Duplicate;
        file.reason = winner;
    }
    if file.outcome != FileOutcome::Unreadable && !own.is_empty() {
        pending.write(connection).await?;
        forget(connection, &path, &own).await?;
        held.forget(&path, &own);
    }
    pending.files.push(file);
    Ok(())
}

/// For each session the grade with most messages: a file may hold one twice.
fn largest(grades: &[GradeRecord]) -> BTreeMap<String, &GradeRecord> {
    let mut largest: BTreeMap<String, &GradeRecord> = BTreeMap::new();
    for grade in grades {
        let kept = largest.entry(grade_row::session_id(grade)).or_insert(grade);
        if kept.details.messages < grade.details.messages {
            *kept = grade;
        }
    }
    largest
}

/// Notes at a file that one of its grades gave way to that of another file.
async fn displace(
    connection: &mut AnyConnection,
    path: &str,
    reason: &str,
) -> Result<(), sqlx::Error> {
    let query = "UPDATE session_files SET graded = graded - 1, \
                 outcome = CASE WHEN graded = 1 THEN 'duplicate' ELSE outcome END, \
                 reason = CASE WHEN graded = 1 THEN $2 ELSE reason END \
                 WHERE path = $1 AND graded > 0";
    let query = sqlx::query(query).bind(path.to_owned()).bind(reason.to_owned());
    query.execute(connection).await.map(drop)
}

/// Makes the grades of a file give way to any other.
async fn release(connection: &mut AnyConnection, path: &str) -> Result<(), sqlx::Error> {
    let query = "UPDATE session_grades SET messages = NULL WHERE session_file = $1";
    sqlx::query(query).bind(path.to_owned()).execute(&mut *connection).await?;
    let query = "UPDATE session_files SET size = -1 WHERE path = $1";
    sqlx::query(query).bind(path.to_owned()).execute(&mut *connection).await?;
    reread_losers(connection).await
}

/// Removes the grades of sessions that a file no longer holds.
async fn forget(
    connection: &mut AnyConnection,
    path: &str,
    sessions: &HashSet<String>,
) -> Result<(), sqlx::Error> {
    for session_id in sessions {
        let query = "DELETE FROM session_grades WHERE session_id = $1 AND session_file = $2";
        let query = sqlx::query(query).bind(session_id.clone()).bind(path.to_owned());
        query.execute(&mut *connection).await?;
    }
    reread_losers(connection).await
}

/// Another file may hold a session that lost its grade; which one is not recorded.
async fn reread_losers(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    let query = "UPDATE session_files SET size = -1 \
                 WHERE outcome = 'duplicate' OR (outcome = 'graded' AND graded < sessions)";
    sqlx::query(query).execute(connection).await.map(drop)
}
