//! Keeping what became of files, and deciding between files that hold the same session: the one
//! with more messages counts, of equals the one that was there first.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use sqlx::{AnyConnection, Row as _};

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
}

async fn save(
    connection: &mut AnyConnection,
    result: &FileResult,
    lost: &mut Vec<Lost>,
) -> Result<(), sqlx::Error> {
    let path = bound::text(&result.file.path, bound::PATH);
    let mut own = sessions_of(connection, &path).await?;
    let mut holders: HashMap<String, i64> = HashMap::new();
    let mut winner = None;
    for grade in &result.grades {
        let session_id = grade_row::session_id(grade);
        let messages = super::row::count(grade.details.messages);
        // The same session twice in one file.
        if holders.get(&session_id).is_some_and(|other| *other >= messages) {
            continue;
        }
        match holder(connection, &session_id).await? {
            Some(holder) if holder.file != path => {
                let kept = holder.messages < messages;
                let (loser, winning) =
                    if kept { (&holder.file, &path) } else { (&path, &holder.file) };
                lost.push(Lost {
                    session_id: session_id.clone(),
                    file: loser.clone(),
                    kept: winning.clone(),
                });
                if !kept {
                    winner.get_or_insert_with(|| reason(&session_id, &holder.file));
                    continue;
                }
                displace(connection, &holder.file, &reason(&session_id, &path)).await?;
            }
            _ => {}
        }
        grade_row::write(connection, grade, &path).await?;
        own.remove(&session_id);
        holders.insert(session_id, messages);
    }
    if result.file.outcome != FileOutcome::Unreadable {
        forget(connection, &path, &own).await?;
    }
    let mut file = FileRecord { graded: holders.len() as u64, ..result.file.clone() };
    if file.outcome == FileOutcome::Graded
        && holders.is_empty()
        && let Some(winner) = winner
    {
        file.outcome = FileOutcome::Duplicate;
        file.reason = Some(winner);
    }
    files::write(connection, &file).await
}

fn reason(session_id: &str, file: &str) -> String {
    bound::text(&format!("session {session_id} is graded from {file}"), bound::TEXT)
}

/// The sessions whose grade comes from a file.
async fn sessions_of(
    connection: &mut AnyConnection,
    path: &str,
) -> Result<HashSet<String>, sqlx::Error> {
    let query = sqlx::query("SELECT session_id FROM session_grades WHERE session_file = $1");
    let rows = query.bind(path.to_owned()).fetch_all(connection).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

async fn holder(
    connection: &mut AnyConnection,
    session_id: &str,
) -> Result<Option<Holder>, sqlx::Error> {
    let query = "SELECT session_file, messages FROM session_grades WHERE session_id = $1";
    let row = sqlx::query(query).bind(session_id.to_owned()).fetch_optional(connection).await?;
    // A number of messages that another program wrote, or did not write, wins against nothing.
    row.map(|row| {
        Ok(Holder { file: row.try_get(0)?, messages: row.try_get(1).unwrap_or_default() })
    })
    .transpose()
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
    if sessions.is_empty() {
        return Ok(());
    }
    // Another file may hold what was removed; which one is not recorded.
    let query = "UPDATE session_files SET size = -1 \
                 WHERE outcome = 'duplicate' OR (outcome = 'graded' AND graded < sessions)";
    sqlx::query(query).execute(connection).await.map(drop)
}
