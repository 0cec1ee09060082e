//! The table `session_files`: the result for each file, so that unchanged files are not read again.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::row::{Columns, read_from, record};
use super::statement::{ToValue as _, params, stored_as};
use super::transaction::WriteTransaction;
use super::{ColumnError, Store, StoreError, bound};
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

/// Maximum bytes of a stored path: [`bound::path`] may add a digest.
pub(super) const MAX_PATH: usize = 2 * bound::PATH;

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
