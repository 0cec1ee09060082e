//! Saves the results of reading files, and decides between files that hold the same session: the one
//! with more messages counts, of equals the one whose path comes first. The order in which files are
//! read must not matter: threads read them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use sqlx::Row as _;

use super::bound::TEXT;
use super::files::MAX_PATH;
use super::row::Record as _;
use super::statement::{ToValue as _, params};
use super::transaction::Writing;
use super::{FileOutcome, FileRecord, Store, StoreError, bound, files};
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
    /// Whether the file is left without any grade.
    pub was_last: bool,
}

impl Store {
    /// Keeps the results of many files at once: all of them or, on an error, none.
    ///
    /// The grades of a file replace those that it had before; a session that it no longer holds
    /// loses its grade, unless the file is now [`FileOutcome::Unreadable`]. Where several files
    /// hold a session, the grade with more messages is kept, of equals the one whose path comes
    /// first; every grade that is not kept is returned, and a file that has no other is recorded as
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
            save(&mut writing, result, &mut lost).await?;
        }
        writing.commit().await?;
        Ok(lost)
    }

    /// Notes that files are gone. Their records and grades stay, but any other file that holds
    /// the same sessions takes these over when it is read, as a file that was moved does.
    pub async fn release_files(&self, paths: &[String]) -> Result<(), StoreError> {
        let mut writing = self.begin().await?;
        for path in paths {
            release(&mut writing, &bound::path(path)).await?;
        }
        writing.commit().await
    }
}

async fn save(
    writing: &mut Writing,
    result: &FileResult,
    lost: &mut Vec<Lost>,
) -> Result<(), StoreError> {
    let path = bound::path(&result.file.path);
    let mut before = sessions_of(writing, &path).await?;
    let (mut graded, mut winner) = (0, None);
    for (session_id, grade) in largest(&result.grades) {
        if let Some((other, messages)) = other_holder(writing, &session_id, &path).await? {
            let own = i64::try_from(grade.details.messages).unwrap_or(i64::MAX);
            let wins = (own, Reverse(&path)) > (messages, Reverse(&other));
            let (file, kept) = if wins { (&other, &path) } else { (&path, &other) };
            let why = bound::text(&format!("session {session_id} is graded from {kept}"), TEXT);
            let (file, kept) = (file.clone(), kept.clone());
            let session_id = session_id.clone();
            let was_last = wins && displace(writing, &other, &why).await?;
            lost.push(Lost { session_id, file, kept, was_last });
            if !wins {
                winner = Some(why);
                continue;
            }
        }
        let kept = GradeRecord { session_file: path.clone(), ..grade.clone() };
        writing.execute(GradeRecord::upsert("session_id"), kept.values()).await?;
        before.remove(&session_id);
        graded += 1;
    }
    let mut file = FileRecord { graded, ..result.file.clone() };
    if file.outcome == FileOutcome::Graded && graded == 0 && winner.is_some() {
        file.outcome = FileOutcome::Duplicate;
        file.reason = winner;
        if let Some(own) = lost.iter_mut().rfind(|lost| lost.file == path) {
            own.was_last = true;
        }
    }
    if file.outcome != FileOutcome::Unreadable && !before.is_empty() {
        forget(writing, &path, &before).await?;
    }
    files::write(writing, file).await
}

/// The sessions that are graded from a file.
async fn sessions_of(writing: &mut Writing, path: &str) -> Result<HashSet<String>, StoreError> {
    let query = "SELECT session_id FROM session_grades WHERE session_file = $1";
    let rows = writing.fetch(query, [path.to_value(MAX_PATH)]).await?;
    Ok(rows.iter().map(|row| row.try_get(0).unwrap_or_default()).collect())
}

/// The file other than `path` that a session is graded from, and its number of messages.
async fn other_holder(
    writing: &mut Writing,
    session_id: &str,
    path: &str,
) -> Result<Option<(String, i64)>, StoreError> {
    let query = "SELECT session_file, messages FROM session_grades \
                 WHERE session_id = $1 AND session_file <> $2";
    let rows = writing.fetch(query, params![session_id, path.to_value(MAX_PATH)]).await?;
    // A row that another program wrote without a number of messages wins against nothing.
    let read = |row: &sqlx::any::AnyRow| {
        (row.try_get(0).unwrap_or_default(), row.try_get(1).unwrap_or_default())
    };
    Ok(rows.first().map(read))
}

/// For each session the grade with most messages: a file may hold one twice.
fn largest(grades: &[GradeRecord]) -> BTreeMap<String, &GradeRecord> {
    let mut largest: BTreeMap<String, &GradeRecord> = BTreeMap::new();
    for grade in grades {
        let kept = largest.entry(bound::text(&grade.session_id, bound::NAME)).or_insert(grade);
        if kept.details.messages < grade.details.messages {
            *kept = grade;
        }
    }
    largest
}

/// Notes at a file that one of its grades gave way to that of another file. Whether it was its last.
async fn displace(writing: &mut Writing, path: &str, reason: &str) -> Result<bool, StoreError> {
    let query = "UPDATE session_files SET graded = graded - 1, \
                 outcome = CASE WHEN graded = 1 THEN 'duplicate' ELSE outcome END, \
                 reason = CASE WHEN graded = 1 THEN $2 ELSE reason END \
                 WHERE path = $1 AND graded > 0";
    let values = [path.to_value(MAX_PATH), reason.to_value(TEXT)];
    writing.execute(query, values).await?;
    let query = "SELECT 1 FROM session_files WHERE path = $1 AND graded = 0";
    Ok(!writing.fetch(query, [path.to_value(MAX_PATH)]).await?.is_empty())
}

/// Makes the grades of a file give way to any other.
async fn release(writing: &mut Writing, path: &str) -> Result<(), StoreError> {
    let path = [path.to_value(MAX_PATH)];
    let query = "UPDATE session_grades SET messages = NULL WHERE session_file = $1";
    writing.execute(query, path.clone()).await?;
    writing.execute("UPDATE session_files SET rules = NULL WHERE path = $1", path).await?;
    reread_losers(writing).await
}

/// Removes the grades of sessions that a file no longer holds.
async fn forget(
    writing: &mut Writing,
    path: &str,
    sessions: &HashSet<String>,
) -> Result<(), StoreError> {
    for session_id in sessions {
        let query = "DELETE FROM session_grades WHERE session_id = $1 AND session_file = $2";
        writing.execute(query, params![session_id, path.to_value(MAX_PATH)]).await?;
    }
    reread_losers(writing).await
}

/// Another file may hold a session that lost its grade; which one is not recorded.
async fn reread_losers(writing: &mut Writing) -> Result<(), StoreError> {
    let query = "UPDATE session_files SET rules = NULL \
                 WHERE outcome = 'duplicate' OR (outcome = 'graded' AND graded < sessions)";
    writing.execute(query, []).await.map(drop)
}
