//! The table `session_files`: what became of each file, so that an unchanged one is not read
//! again.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::{AnyConnection, AssertSqlSafe};

use super::insert::{AnyQuery, Insert};
use super::row::{count, time};
use super::{Store, StoreError, bound};
use selftest_sessions::{Format, Notes};

/// Files in one row of [`Store::known_files`].
const PACKED: i64 = 10_000;

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOutcome {
    /// At least one of its sessions has a grade from it.
    Graded,
    /// Its sessions have too little in them.
    NotGradable,
    /// There is no session in it.
    NoSession,
    /// It could not be read.
    Unreadable,
    /// Its sessions are graded from other files that hold more of them.
    Duplicate,
}

impl FileOutcome {
    /// Every outcome.
    pub const ALL: [FileOutcome; 5] = [
        FileOutcome::Graded,
        FileOutcome::NotGradable,
        FileOutcome::NoSession,
        FileOutcome::Unreadable,
        FileOutcome::Duplicate,
    ];

    /// The name in the database.
    pub fn name(self) -> &'static str {
        match self {
            FileOutcome::Graded => "graded",
            FileOutcome::NotGradable => "not_gradable",
            FileOutcome::NoSession => "no_session",
            FileOutcome::Unreadable => "unreadable",
            FileOutcome::Duplicate => "duplicate",
        }
    }

    /// The outcome that the name stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}

impl fmt::Display for FileOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// One file that was looked into.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its path, as text; unique.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// When it was last changed, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Digest of its content.
    pub digest: String,
    /// When it was looked into.
    pub scanned_at: Timestamp,
    /// What came of it. Where its grades lose against other files, saving turns `graded` into
    /// `duplicate`.
    pub outcome: FileOutcome,
    /// Why, where it is not graded; secrets redacted.
    pub reason: Option<String>,
    /// The format that its content showed.
    pub format: Option<Format>,
    /// Sessions in it.
    pub sessions: u64,
    /// Sessions whose grade comes from it; counted when saving.
    pub graded: u64,
    /// What the reader could not use, as JSON ([`selftest_sessions::Notes`]).
    pub notes_json: Option<String>,
    /// Which rules graded it ([`selftest_grading::grade::Weights::rules`]).
    pub rules: Option<String>,
}

impl FileRecord {
    /// What of its conversations is lost, for a person; `None` where nothing is.
    pub fn lost(&self) -> Option<String> {
        serde_json::from_str::<Notes>(self.notes_json.as_deref()?).ok()?.lost()
    }
}

/// How a file was when it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFile {
    /// Bytes.
    pub size: u64,
    /// When it was last changed, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Digest of its content.
    pub digest: String,
    /// Whether the rules that are asked for graded it.
    pub by_these_rules: bool,
}

impl Store {
    /// Every file that was looked into, by path. Without those that are to be read again because
    /// of other files. `rules` are those that grade now.
    pub async fn known_files(&self, rules: &str) -> Result<HashMap<String, KnownFile>, StoreError> {
        match self.known_files_packed(rules).await? {
            Some(known) => Ok(known),
            None => self.known_files_row_by_row(rules).await,
        }
    }

    /// Many files in each row, because handing over a row costs more than reading it. Nothing
    /// where that does not work out: a line break in a path, a row that another program wrote.
    async fn known_files_packed(
        &self,
        rules: &str,
    ) -> Result<Option<HashMap<String, KnownFile>>, StoreError> {
        let query = "SELECT COUNT(*) AS files, MAX(path) AS last, string_agg(CAST(size AS TEXT) \
                     || ' ' || CAST(modified_ns AS TEXT) || ' ' || digest || ' ' || \
                     CASE WHEN rules = $4 THEN '1' ELSE '0' END || ' ' || path, $3) \
                     AS packed FROM (SELECT * FROM session_files WHERE path > $1 AND size >= 0 \
                     AND digest <> '' AND digest NOT LIKE '% %' ORDER BY path LIMIT $2) AS files";
        let mut known = HashMap::new();
        let mut last = String::new();
        loop {
            let query = sqlx::query(query).bind(last).bind(PACKED).bind("\n").bind(rules);
            let rows = self.fetch(query, |row| {
                Ok((row.number("files")?, row.optional_text("last"), row.optional_text("packed")))
            });
            let (files, newest, packed): (usize, _, _) = match rows.await?.items.pop() {
                Some((0, ..)) => return Ok(Some(known)),
                Some((files, Some(newest), Some(packed))) => (files, newest, packed),
                _ => return Ok(None),
            };
            let before = known.len();
            known.extend(packed.split('\n').map_while(unpacked));
            if known.len() != before + files {
                return Ok(None);
            }
            last = newest;
        }
    }

    async fn known_files_row_by_row(
        &self,
        rules: &str,
    ) -> Result<HashMap<String, KnownFile>, StoreError> {
        let query =
            "SELECT path, size, modified_ns, digest, rules FROM session_files WHERE size >= 0";
        let rows = self.fetch(sqlx::query(query), |row| {
            let known = KnownFile {
                size: row.number("size")?,
                modified_ns: row.integer("modified_ns")?,
                digest: row.text("digest")?,
                by_these_rules: row.optional_text("rules").as_deref() == Some(rules),
            };
            Ok((row.text("path")?, known))
        });
        Ok(rows.await?.items.into_iter().collect())
    }

    /// What is known of one file.
    pub async fn file(&self, path: &str) -> Result<Option<FileRecord>, StoreError> {
        let path = bound::path(path);
        let query = format!("SELECT {} FROM session_files WHERE path = $1", COLUMNS.join(", "));
        let query = sqlx::query(AssertSqlSafe(query)).bind(path.clone());
        self.fetch_one(
            query,
            || format!("the record of {path}"),
            |row| {
                let outcome = row.text("outcome")?;
                let format = row.optional_text("format");
                Ok(FileRecord {
                    path: row.text("path")?,
                    size: row.integer("size")?.max(0).unsigned_abs(),
                    modified_ns: row.integer("modified_ns")?,
                    digest: row.text("digest")?,
                    scanned_at: row.time("scanned_at")?,
                    outcome: FileOutcome::from_name(&outcome)
                        .ok_or_else(|| format!("outcome is {outcome:?}"))?,
                    reason: row.optional_text("reason"),
                    format: format.as_deref().and_then(|name| name.parse().ok()),
                    sessions: row.number("sessions")?,
                    graded: row.number("graded")?,
                    notes_json: row.optional_text("notes_json"),
                    rules: row.optional_text("rules"),
                })
            },
        )
        .await
    }

    /// Notes that files are as they were in content, though not in date or size of the record.
    pub async fn touch_files(&self, files: &[(String, KnownFile)]) -> Result<(), StoreError> {
        let mut writing = self.begin().await?;
        for (path, known) in files {
            let query = "UPDATE session_files SET size = $2, modified_ns = $3, digest = $4 \
                         WHERE path = $1";
            let query = sqlx::query(query)
                .bind(bound::path(path))
                .bind(count(known.size))
                .bind(known.modified_ns)
                .bind(bound::text(&known.digest, bound::NAME));
            query.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
        }
        self.commit(writing).await
    }

    /// How many of the files last changed in `from..to` had each outcome.
    pub async fn files_by_outcome(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<BTreeMap<FileOutcome, u64>, StoreError> {
        let query = "SELECT outcome, COUNT(*) AS files FROM session_files \
                     WHERE modified_ns >= $1 AND modified_ns < $2 GROUP BY outcome";
        let query = sqlx::query(query).bind(nanoseconds(from)).bind(nanoseconds(to));
        let rows = self.fetch(query, |row| {
            let outcome = row.text("outcome")?;
            let outcome = FileOutcome::from_name(&outcome);
            Ok((outcome.ok_or("an unknown outcome")?, row.number("files")?))
        });
        Ok(rows.await?.items.into_iter().collect())
    }
}

/// One file: `<size> <modified_ns> <digest> <1 if by these rules> <path>`.
fn unpacked(line: &str) -> Option<(String, KnownFile)> {
    let (size, rest) = line.split_once(' ')?;
    let (modified_ns, rest) = rest.split_once(' ')?;
    let (digest, rest) = rest.split_once(' ')?;
    let (by_these_rules, path) = rest.split_once(' ')?;
    let known = KnownFile {
        size: size.parse().ok()?,
        modified_ns: modified_ns.parse().ok()?,
        digest: digest.to_owned(),
        by_these_rules: by_these_rules == "1",
    };
    Some((path.to_owned(), known))
}

fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(if time.as_second() < 0 {
        i64::MIN
    } else {
        i64::MAX
    })
}

const COLUMNS: [&str; 12] = [
    "path",
    "size",
    "modified_ns",
    "digest",
    "scanned_at",
    "outcome",
    "reason",
    "format",
    "sessions",
    "graded",
    "notes_json",
    "rules",
];

const INSERT: Insert<'_> = Insert { table: "session_files", key: "path", columns: &COLUMNS };

/// Inserts or replaces the records of different files.
pub(super) async fn write(
    connection: &mut AnyConnection,
    files: &[FileRecord],
) -> Result<(), sqlx::Error> {
    INSERT.run(connection, files, bind).await
}

fn bind<'q>(query: AnyQuery<'q>, file: &FileRecord) -> AnyQuery<'q> {
    query
        .bind(bound::path(&file.path))
        .bind(count(file.size))
        .bind(file.modified_ns)
        .bind(bound::text(&file.digest, bound::NAME))
        .bind(time(file.scanned_at))
        .bind(file.outcome.name())
        .bind(bound::optional(file.reason.as_deref(), bound::TEXT))
        .bind(file.format.map(Format::name))
        .bind(count(file.sessions))
        .bind(count(file.graded))
        .bind(bound::json(file.notes_json.as_deref()))
        .bind(bound::optional(file.rules.as_deref(), bound::NAME))
}
