//! Saves the results of reading files, and decides between files that hold the same run of a
//! session: the one with more messages counts, of equals the one whose path comes first. Different
//! runs that their files call by one id are all kept, the oldest under that id. Of a session that
//! goes on where another ended the longer counts. The order in which files are read must not
//! matter: threads read them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use super::bound::TEXT;
use super::files::{FileResult, MAX_PATH};
use super::lineage::{Kin, Known, Relation};
use super::statement::{ToValue as _, params};
use super::transaction::Writing;
use super::{FileOutcome, FileRecord, Store, StoreError, bound, files, lineage};
use selftest_grading::grade::GradeRecord;

/// A grade that is not kept, because another file holds more of the same session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The session, by the id in its file.
    pub session_id: String,
    /// Which run of that id ([`selftest_sessions::Lineage::beginning`]).
    pub beginning: u64,
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
    /// hold the same run of a session, the grade with more messages is kept, of equals the one
    /// whose path comes first, and of a session that goes on where another ended the longer; every
    /// grade that is not kept is returned, and a file that has no other is recorded as
    /// [`FileOutcome::Duplicate`], whether it came before or now. When a session loses its grade,
    /// files that had lost against it are to be read again: [`Store::known_files`] leaves them
    /// out.
    pub async fn save(&self, batch: &[FileResult]) -> Result<Vec<Lost>, StoreError> {
        let mut lost = Vec::new();
        if batch.is_empty() {
            return Ok(lost);
        }
        let mut writing = self.begin().await?;
        let mut known = Known::of(&mut writing, batch).await?;
        for result in batch {
            save(&mut writing, result, &mut known, &mut lost).await?;
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
    known: &mut Known,
    lost: &mut Vec<Lost>,
) -> Result<(), StoreError> {
    let path = bound::path(&result.file.path);
    let mut before = HashSet::new();
    if result.file.outcome != FileOutcome::Unreadable && known.has_file(&path) {
        // What the file held before and holds no longer leaves its id to others.
        let own: Vec<Kin> = result.grades.iter().map(|grade| Kin::of(grade, &path)).collect();
        let (kept, gone): (Vec<Kin>, Vec<Kin>) = lineage::in_file(writing, &path)
            .await?
            .into_iter()
            .partition(|kin| own.iter().any(|own| own.relation(kin) == Relation::Same));
        let ids = |all: Vec<Kin>| all.into_iter().map(|kin| kin.session_id).collect();
        forget(writing, &path, &ids(gone)).await?;
        before = ids(kept);
    }
    let (mut graded, mut winner) = (0, None);
    for grade in largest(&result.grades) {
        let own = Kin::of(grade, &path);
        match place(writing, &own, known, lost).await? {
            Place::Under(session_id) => {
                let kept = GradeRecord { session_file: path.clone(), session_id, ..grade.clone() };
                let key = bound::text(&kept.session_id, bound::NAME);
                writing.upsert("session_id", &key, &kept).await?;
                before.remove(&key);
                known.add_id(&kept.session_id);
                known.add(own);
                graded += 1;
            }
            Place::Lost(why) => winner = Some(why),
        }
    }
    let mut file = FileRecord { graded, ..result.file.clone() };
    if file.outcome == FileOutcome::Graded && graded == 0 && winner.is_some() {
        file.outcome = FileOutcome::Duplicate;
        file.reason = winner;
        if let Some(own) = lost.iter_mut().rfind(|lost| lost.file == path) {
            own.was_last = true;
        }
    }
    // Those that gave way now.
    forget(writing, &path, &before).await?;
    files::write(writing, file).await
}

/// Whether a grade is kept.
enum Place {
    /// It is kept under this id.
    Under(String),
    /// Another counts; why, for a person.
    Lost(String),
}

/// Decides between a grade and those of its kin. Nothing depends on which of them came first.
async fn place(
    writing: &mut Writing,
    own: &Kin,
    known: &mut Known,
    lost: &mut Vec<Lost>,
) -> Result<Place, StoreError> {
    if !known.has_kin(own) {
        return Ok(Place::Under(own.session_id.clone()));
    }
    let (mut id, mut namesakes) = (None, Vec::new());
    for other in lineage::find(writing, own).await? {
        let (session_id, is_here) = (other.session_id.clone(), other.file == own.file);
        match own.relation(&other) {
            Relation::Same if is_here => id = Some(session_id),
            Relation::Same => {
                let wins =
                    (own.messages, Reverse(&own.file)) > (other.messages, Reverse(&other.file));
                let kept = if wins { own } else { &other };
                let why = format!("session {} is graded from {}", own.claimed, kept.file);
                let why = give_way(writing, wins, own, &other, why, lost).await?;
                if !wins {
                    return Ok(Place::Lost(why));
                }
                id = Some(session_id);
            }
            Relation::SameName => namesakes.push(other),
            relation @ (Relation::GoesOn | Relation::Begins) => {
                let wins = relation == Relation::Begins;
                let (short, long) = if wins { (&other, own) } else { (own, &other) };
                let why = format!(
                    "session {} is the beginning of session {}, which is graded from {}",
                    short.claimed, long.claimed, long.file
                );
                let why = give_way(writing, wins, own, &other, why, lost).await?;
                if !wins {
                    return Ok(Place::Lost(why));
                }
                lineage::remove(writing, &other).await?;
            }
            Relation::Other => {}
        }
    }
    if let Some(id) = id {
        return Ok(Place::Under(id));
    }
    match namesakes.into_iter().find(|other| other.session_id == own.claimed) {
        Some(holder) if own.comes_before(&holder) => {
            lineage::rename(writing, &holder.session_id, &holder.name()).await?;
            known.add_id(&holder.name());
            Ok(Place::Under(own.session_id.clone()))
        }
        Some(_) => Ok(Place::Under(own.name())),
        None => Ok(Place::Under(own.session_id.clone())),
    }
}

/// Notes which of two grades counts, and at a file that lost one, why. The reason, bounded.
async fn give_way(
    writing: &mut Writing,
    wins: bool,
    own: &Kin,
    other: &Kin,
    why: String,
    lost: &mut Vec<Lost>,
) -> Result<String, StoreError> {
    let why = bound::text(&why, TEXT);
    let (loser, kept) = if wins { (other, own) } else { (own, other) };
    let was_last = wins && displace(writing, &other.file, &why).await?;
    lost.push(Lost {
        session_id: loser.claimed.clone(),
        beginning: loser.lineage.beginning,
        file: loser.file.clone(),
        kept: kept.file.clone(),
        was_last,
    });
    Ok(why)
}

/// For each run the grade with most messages: a file may hold one twice.
fn largest(grades: &[GradeRecord]) -> Vec<&GradeRecord> {
    let mut largest: BTreeMap<(&str, u64), &GradeRecord> = BTreeMap::new();
    for grade in grades {
        let key = (grade.session_id.as_str(), grade.details.lineage.beginning);
        let kept = largest.entry(key).or_insert(grade);
        if kept.details.messages < grade.details.messages {
            *kept = grade;
        }
    }
    largest.into_values().collect()
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
    if sessions.is_empty() {
        return Ok(());
    }
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
