//! Saves the results of reading files, resolves conflicts between them, and keeps the result for each
//! file in the table `session_files`, so that unchanged files are not read again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::bound::{MAX_PATH, TEXT};
use super::lineage::{LineageIndex, RelatedSession, SessionRelation};
use super::row::{Columns, read_from, record};
use super::statement::{ToValue as _, params, stored_as};
use super::transaction::WriteTransaction;
use super::{ColumnError, Store, StoreError, bound, lineage};
use selftest_grading::grade::GradeRecord;
use selftest_sessions::{ReadNotes, SessionFormat};

/// Result of scanning a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum FileOutcome {
    /// At least one of its sessions is graded from it.
    Graded,
    /// Its sessions have too little content.
    NotGradable,
    /// It contains no session.
    NoSession,
    /// It could not be read.
    Unreadable,
    /// Its sessions are graded from other files that contain more of them.
    Duplicate,
}

/// A scanned file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Path as text; unique.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Digest of the content.
    pub digest: String,
    /// Time of the scan.
    pub scanned_at: Timestamp,
    /// Result of the scan. If its grades lose against other files, saving changes `graded` to
    /// `duplicate`.
    pub outcome: FileOutcome,
    /// Reason it is not graded; secrets redacted.
    pub reason: Option<String>,
    /// Format detected from the content.
    pub format: Option<SessionFormat>,
    /// Number of sessions in the file.
    pub sessions: u64,
    /// Number of sessions graded from it, computed when saving.
    pub graded: u64,
    /// Parts that the reader could not use, as JSON ([`selftest_sessions::ReadNotes`]).
    pub notes_json: Option<String>,
    /// Rules that graded it ([`selftest_grading::grade::GradeWeights::rules_digest`]).
    pub rules: Option<String>,
}

impl FileRecord {
    /// Describes the lost parts of its conversations for display; `None` if nothing is lost.
    pub fn lost_parts(&self) -> Option<String> {
        serde_json::from_str::<ReadNotes>(self.notes_json.as_deref()?).ok()?.describe_losses()
    }
}

/// A file and the grades of its sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileResult {
    /// The file.
    pub file: FileRecord,
    /// Grades of the sessions that could be graded. They are saved as grades from `file.path`.
    pub grades: Vec<GradeRecord>,
}

/// State of a file when it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFile {
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Digest of the content.
    pub digest: String,
    /// True if it was graded by the requested rules.
    pub by_these_rules: bool,
}

impl Store {
    /// Calls `each` with every scanned file and its path, where `rules` are the current ones, in any
    /// order. Files that other files caused to be read again have no rules and are left out.
    pub async fn for_each_known_file(
        &self,
        rules: &str,
        mut each: impl FnMut(String, KnownFile),
    ) -> Result<(), StoreError> {
        let query = "SELECT path, size, modified_ns, digest, rules FROM session_files \
                     WHERE rules IS NOT NULL";
        let read = |row: &Columns<'_>| {
            let known = KnownFile {
                // Fails for files that an older version marked to be read again, which skips them.
                size: row.get("size")?,
                modified_ns: row.get("modified_ns")?,
                digest: row.get("digest")?,
                by_these_rules: row.get::<String>("rules")? == rules,
            };
            each(row.get("path")?, known);
            Ok(())
        };
        self.fetch(query, [], read).await.map(drop)
    }

    /// Returns the record of one file.
    pub async fn file(&self, path: &str) -> Result<Option<FileRecord>, StoreError> {
        let path = bound::path(path);
        let values = [path.to_value(MAX_PATH)];
        self.find_one(&format!("the record of {path}"), "WHERE path = $1", values).await
    }

    /// Updates the size and date of files whose content is unchanged.
    pub async fn touch_files(&self, files: &[(String, KnownFile)]) -> Result<(), StoreError> {
        // One transaction for all of them: each commit waits for the disk, and a changed clock or a
        // copied folder touches tens of thousands.
        let mut writing = self.begin_write().await?;
        for (path, known) in files {
            let query = "UPDATE session_files SET size = $2, modified_ns = $3, digest = $4 \
                         WHERE path = $1";
            let path = bound::path(path).to_value(MAX_PATH);
            let values = params![path, known.size, known.modified_ns, known.digest];
            writing.execute(query, values).await?;
        }
        writing.commit().await
    }

    /// Counts the files last changed in `from..to` by outcome.
    pub async fn files_by_outcome(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<BTreeMap<FileOutcome, u64>, StoreError> {
        let query = "SELECT outcome, COUNT(*) AS files FROM session_files \
                     WHERE modified_ns >= $1 AND modified_ns < $2 GROUP BY outcome";
        let values = params![nanoseconds(from), nanoseconds(to)];
        let read = |row: &Columns<'_>| Ok((row.get("outcome")?, row.get("files")?));
        Ok(self.fetch(query, values, read).await?.items.into_iter().collect())
    }
}

fn nanoseconds(time: Timestamp) -> i64 {
    // Times beyond the range of 64-bit nanoseconds are clamped.
    let limit = if time.as_second() < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(time.as_nanosecond()).unwrap_or(limit)
}

record!(FileRecord, "session_files", {
    path [MAX_PATH],
    size by read_size,
    modified_ns,
    digest,
    scanned_at,
    outcome,
    reason [bound::TEXT],
    format,
    sessions,
    graded,
    notes_json [bound::JSON],
    rules,
});

/// Reads a size. Older versions used -1 to mark files to be read again.
fn read_size(row: &Columns<'_>, name: &str) -> Result<u64, ColumnError> {
    Ok(row.get::<i64>(name)?.max(0).unsigned_abs())
}

stored_as! { Text:
    FileOutcome => |outcome, _limit| outcome.to_string(),
    SessionFormat => |format, _limit| format.name().to_owned(),
}
read_from! { |row, name|
    FileOutcome => row.named(name, |text| text.parse().ok()),
    SessionFormat => row.named(name, |text| text.parse().ok()),
}

/// Inserts or replaces the record of a file.
pub(super) async fn upsert_file(
    writing: &mut WriteTransaction,
    file: FileRecord,
) -> Result<(), StoreError> {
    let path = bound::path(&file.path);
    let notes_json = bound::whole(file.notes_json.as_deref()).map(str::to_owned);
    let file = FileRecord { path, notes_json, ..file };
    writing.upsert("path", &file.path, &file).await
}

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
        let mut known = LineageIndex::load(
            &mut writing,
            batch.iter().map(|result| result.file.path.as_str()),
            batch.iter().flat_map(|result| &result.grades).collect(),
        )
        .await?;
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
                // `before` has ids as they are stored, which are cut to this length.
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
    upsert_file(writing, file).await
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
