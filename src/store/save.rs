//! Keeping what became of files, and deciding between files that hold the same session: the one
//! with more messages counts, of equals the one that was there first.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use sqlx::{AnyConnection, Row as _};

use super::bound::TEXT;
use super::row::count;
use super::{FileOutcome, FileRecord, Store, StoreError, bound, files, grade_row};
use crate::grade::GradeRecord;

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
        for result in batch {
            let saved = save(&mut writing, result, &mut lost).await;
            saved.map_err(|error| self.failed(error))?;
        }
        self.commit(writing).await?;
        Ok(lost)
    }

    /// Notes that files are gone. Their records and grades stay, but any other file that holds
    /// the same sessions takes these over when it is read, as a file that was moved does.
    pub async fn release_files(&self, paths: &[String]) -> Result<(), StoreError> {
        let mut writing = self.begin().await?;
        for path in paths {
            let path = bound::text(path, bound::PATH);
            release(&mut writing, &path).await.map_err(|error| self.failed(error))?;
        }
        self.commit(writing).await
    }
}

async fn save(
    connection: &mut AnyConnection,
    result: &FileResult,
    lost: &mut Vec<Lost>,
) -> Result<(), sqlx::Error> {
    let path = bound::text(&result.file.path, bound::PATH);
    let mut own = sessions_of(connection, &path).await?;
    let (mut graded, mut winner) = (0, None);
    for (session_id, grade) in largest(&result.grades) {
        let holder = holder(connection, &session_id).await?.filter(|holder| holder.file != path);
        if let Some(Holder { file: other, messages }) = holder {
            let wins = messages < count(grade.details.messages);
            let (file, kept) = if wins { (&other, &path) } else { (&path, &other) };
            let why = bound::text(&format!("session {session_id} is graded from {kept}"), TEXT);
            let (session_id, file, kept) = (session_id.clone(), file.clone(), kept.clone());
            lost.push(Lost { session_id, file, kept });
            if !wins {
                winner = Some(why);
                continue;
            }
            displace(connection, &other, &why).await?;
        }
        grade_row::write(connection, grade, &path).await?;
        own.remove(&session_id);
        graded += 1;
    }
    let mut file = FileRecord { graded, ..result.file.clone() };
    if file.outcome == FileOutcome::Graded && graded == 0 && winner.is_some() {
        file.outcome = FileOutcome::Duplicate;
        file.reason = winner;
    }
    if file.outcome != FileOutcome::Unreadable && !own.is_empty() {
        forget(connection, &path, &own).await?;
    }
    files::write(connection, &file).await
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

/// The sessions whose grade comes from a file.
async fn sessions_of(
    connection: &mut AnyConnection,
    path: &str,
) -> Result<HashSet<String>, sqlx::Error> {
    let query = sqlx::query("SELECT session_id FROM session_grades WHERE session_file = $1");
    let rows = query.bind(path.to_owned()).fetch_all(connection).await?;
    Ok(rows.iter().filter_map(|row| row.try_get(0).ok()).collect())
}

async fn holder(
    connection: &mut AnyConnection,
    session_id: &str,
) -> Result<Option<Holder>, sqlx::Error> {
    let query = "SELECT session_file, messages FROM session_grades WHERE session_id = $1";
    let row = sqlx::query(query).bind(session_id.to_owned()).fetch_optional(connection).await?;
    // What another program wrote without a number of messages wins against nothing.
    Ok(row.map(|row| Holder {
        file: row.try_get(0).unwrap_or_default(),
        messages: row.try_get(1).unwrap_or_default(),
    }))
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
