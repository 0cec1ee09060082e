//! Saves the results of reading files and resolves conflicts between them.
//!
//! If several files contain the same run of a session, the one with more messages wins, then the
//! one whose path sorts first. Different runs whose files use the same id are all stored, the
//! oldest under that id. If a session continues another, the longer one wins. Threads read the
//! files, so the result must not depend on their order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use super::bound::TEXT;
use super::files::{FileResult, MAX_PATH};
use super::lineage::{LineageIndex, RelatedSession, SessionRelation};
use super::statement::{ToValue as _, params};
use super::transaction::WriteTransaction;
use super::{FileOutcome, FileRecord, Store, StoreError, bound, files, lineage};
use selftest_grading::grade::GradeRecord;

/// A grade that is not stored because another file has more of the same session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedGrade {
    /// Session id in its file.
    pub session_id: String,
    /// The run of that id ([`selftest_sessions::SessionLineage::beginning`]).
    pub beginning: u64,
    /// File whose grade was dropped.
    pub file: String,
    /// File whose grade is stored.
    pub kept: String,
    /// True if the file has no grade left.
    pub was_last: bool,
}

impl Store {
    /// Saves the results of many files in one transaction.
    ///
    /// The grades of a file replace its earlier ones. A session that the file no longer contains
    /// loses its grade, unless the file is now [`FileOutcome::Unreadable`].
    ///
    /// If several files contain the same run of a session, the grade with more messages is stored,
    /// then the one whose path sorts first. If a session continues another, the longer one is
    /// stored. Every dropped grade is returned, and a file without any other grade is recorded as
    /// [`FileOutcome::Duplicate`], whether it was saved earlier or now. When a session loses its
    /// grade, files that had lost against it must be read again: [`Store::for_each_known_file`] omits them.
    pub async fn save(&self, batch: &[FileResult]) -> Result<Vec<DroppedGrade>, StoreError> {
        let mut lost = Vec::new();
        if batch.is_empty() {
            return Ok(lost);
        }
        let mut writing = self.begin_write().await?;
        // Loaded inside of the transaction: no other process can add a relative meanwhile.
        let mut known = LineageIndex::load(&mut writing, batch).await?;
        for result in batch {
            save(&mut writing, result, &mut known, &mut lost).await?;
        }
        writing.commit().await?;
        Ok(lost)
    }

    /// Records that files are gone. Their records and grades stay, but any other file with the same
    /// sessions takes them over when it is read, as happens when a file was moved.
    pub async fn release_files(&self, paths: &[String]) -> Result<(), StoreError> {
        let mut writing = self.begin_write().await?;
        for path in paths {
            release_file(&mut writing, &bound::path(path)).await?;
        }
        writing.commit().await
    }
}

async fn save(
    writing: &mut WriteTransaction,
    result: &FileResult,
    known: &mut LineageIndex,
    lost: &mut Vec<DroppedGrade>,
) -> Result<(), StoreError> {
    let path = bound::path(&result.file.path);
    let mut before = HashSet::new();
    if result.file.outcome != FileOutcome::Unreadable && known.has_file(&path) {
        // Sessions that are no longer in the file release their ids to others.
        let own: Vec<RelatedSession> =
            result.grades.iter().map(|grade| RelatedSession::of(grade, &path)).collect();
        let (kept, gone): (Vec<RelatedSession>, Vec<RelatedSession>) =
            lineage::sessions_in_file(writing, &path)
                .await?
                .into_iter()
                .partition(|kin| own.iter().any(|own| own.relation(kin) == SessionRelation::Same));
        let ids = |all: Vec<RelatedSession>| all.into_iter().map(|kin| kin.session_id).collect();
        remove_grades(writing, &path, &ids(gone)).await?;
        before = ids(kept);
    }
    let (mut graded, mut winner) = (0, None);
    for grade in longest_runs(&result.grades) {
        let own = RelatedSession::of(grade, &path);
        match place_grade(writing, &own, known, lost).await? {
            GradePlacement::Stored(session_id) => {
                let kept = GradeRecord { session_file: path.clone(), session_id, ..grade.clone() };
                let key = bound::text(&kept.session_id, bound::NAME);
                writing.upsert("session_id", &key, &kept).await?;
                before.remove(&key);
                // Later files of the batch must find this session; the index was loaded before.
                known.add_id(&kept.session_id);
                known.add(own);
                graded += 1;
            }
            GradePlacement::Dropped(why) => winner = Some(why),
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
    // Sessions that lost against another file in this batch.
    remove_grades(writing, &path, &before).await?;
    files::upsert_file(writing, file).await
}

/// Decision about one grade.
enum GradePlacement {
    /// Stored under this id.
    Stored(String),
    /// Another grade wins; the reason, for display.
    Dropped(String),
}

/// Decides between a grade and related ones. The result does not depend on which was saved first.
async fn place_grade(
    writing: &mut WriteTransaction,
    own: &RelatedSession,
    known: &mut LineageIndex,
    lost: &mut Vec<DroppedGrade>,
) -> Result<GradePlacement, StoreError> {
    // Most sessions have no relatives, and the batch lookup saves a query for each.
    if !known.may_have_relatives(own) {
        return Ok(GradePlacement::Stored(own.session_id.clone()));
    }
    let (mut id, mut namesakes) = (None, Vec::new());
    for other in lineage::find_related(writing, own).await? {
        let (session_id, is_here) = (other.session_id.clone(), other.file == own.file);
        match own.relation(&other) {
            SessionRelation::Same if is_here => id = Some(session_id),
            SessionRelation::Same => {
                let wins =
                    (own.messages, Reverse(&own.file)) > (other.messages, Reverse(&other.file));
                let kept = if wins { own } else { &other };
                let why = format!("session {} is graded from {}", own.claimed_id, kept.file);
                let why = record_loss(writing, wins, own, &other, why, lost).await?;
                if !wins {
                    return Ok(GradePlacement::Dropped(why));
                }
                id = Some(session_id);
            }
            SessionRelation::SameName => namesakes.push(other),
            relation @ (SessionRelation::ContinuedBy | SessionRelation::Continues) => {
                let wins = relation == SessionRelation::Continues;
                let (short, long) = if wins { (&other, own) } else { (own, &other) };
                let why = format!(
                    "session {} is the beginning of session {}, which is graded from {}",
                    short.claimed_id, long.claimed_id, long.file
                );
                let why = record_loss(writing, wins, own, &other, why, lost).await?;
                if !wins {
                    return Ok(GradePlacement::Dropped(why));
                }
                // The shorter session goes as a whole: kept under its own id, its beginning would
                // be counted twice.
                lineage::remove(writing, &other).await?;
            }
            SessionRelation::Unrelated => {}
        }
    }
    if let Some(id) = id {
        return Ok(GradePlacement::Stored(id));
    }
    match namesakes.into_iter().find(|other| other.session_id == own.claimed_id) {
        Some(holder) if own.has_priority_over(&holder) => {
            // The holder was stored first, but started later. Ids must not depend on which file a
            // thread read first.
            lineage::rename(writing, &holder.session_id, &holder.unique_name()).await?;
            known.add_id(&holder.unique_name());
            Ok(GradePlacement::Stored(own.session_id.clone()))
        }
        Some(_) => Ok(GradePlacement::Stored(own.unique_name())),
        None => Ok(GradePlacement::Stored(own.session_id.clone())),
    }
}

/// Records which of two grades wins, and the reason at the file that lost one. Returns the
/// truncated reason.
async fn record_loss(
    writing: &mut WriteTransaction,
    wins: bool,
    own: &RelatedSession,
    other: &RelatedSession,
    why: String,
    lost: &mut Vec<DroppedGrade>,
) -> Result<String, StoreError> {
    let why = bound::text(&why, TEXT);
    let (loser, kept) = if wins { (other, own) } else { (own, other) };
    let was_last = wins && subtract_grade(writing, &other.file, &why).await?;
    lost.push(DroppedGrade {
        session_id: loser.claimed_id.clone(),
        beginning: loser.lineage.beginning,
        file: loser.file.clone(),
        kept: kept.file.clone(),
        was_last,
    });
    Ok(why)
}

/// Returns the grade with the most messages for each run, as a file may contain a run twice.
fn longest_runs(grades: &[GradeRecord]) -> Vec<&GradeRecord> {
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

/// Records at a file that one of its grades lost to another file. Returns true if it was its last.
async fn subtract_grade(
    writing: &mut WriteTransaction,
    path: &str,
    reason: &str,
) -> Result<bool, StoreError> {
    // Done in SQL and not from a value read before: a file may lose several sessions within one
    // batch.
    let query = "UPDATE session_files SET graded = graded - 1, \
                 outcome = CASE WHEN graded = 1 THEN 'duplicate' ELSE outcome END, \
                 reason = CASE WHEN graded = 1 THEN $2 ELSE reason END \
                 WHERE path = $1 AND graded > 0";
    let values = [path.to_value(MAX_PATH), reason.to_value(TEXT)];
    writing.execute(query, values).await?;
    let query = "SELECT 1 FROM session_files WHERE path = $1 AND graded = 0";
    Ok(!writing.fetch(query, [path.to_value(MAX_PATH)]).await?.is_empty())
}

/// Makes the grades of a file lose against any other.
async fn release_file(writing: &mut WriteTransaction, path: &str) -> Result<(), StoreError> {
    let path = [path.to_value(MAX_PATH)];
    // A grade without a message count loses against every other.
    let query = "UPDATE session_grades SET messages = NULL WHERE session_file = $1";
    writing.execute(query, path.clone()).await?;
    writing.execute("UPDATE session_files SET rules = NULL WHERE path = $1", path).await?;
    mark_losers_for_rereading(writing).await
}

/// Removes the grades of sessions that a file no longer contains.
async fn remove_grades(
    writing: &mut WriteTransaction,
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
    mark_losers_for_rereading(writing).await
}

/// Marks duplicates to be read again. Another file may contain a session that lost its grade, but
/// the database does not record which one.
async fn mark_losers_for_rereading(writing: &mut WriteTransaction) -> Result<(), StoreError> {
    let query = "UPDATE session_files SET rules = NULL \
                 WHERE outcome = 'duplicate' OR (outcome = 'graded' AND graded < sessions)";
    writing.execute(query, []).await.map(drop)
}
