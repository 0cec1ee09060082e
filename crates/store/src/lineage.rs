//! Finds and names related sessions: several files with one run, several runs with one id, and runs
//! that continue others. `save` decides which of them wins.

use std::collections::HashSet;

use jiff::Timestamp;

use super::bound::{self, MAX_PATH, NAME};
use super::row::Columns;
use super::statement::{SqlStatement, ToValue as _, params};
use super::transaction::WriteTransaction;
use super::{ColumnError, Store, StoreError};
use selftest_grading::grade::GradeRecord;
use selftest_sessions::SessionLineage;

/// The part of a graded session that is needed to compare it with related ones.
#[derive(Debug, Clone)]
pub(super) struct RelatedSession {
    /// Id in the store, or the id in the file for a grade that is not saved yet.
    pub(super) session_id: String,
    pub(super) file: String,
    /// 0 for a row of another program, which loses against everything.
    pub(super) messages: i64,
    pub(super) agent: String,
    pub(super) start: Option<Timestamp>,
    /// Session id in its file.
    pub(super) claimed_id: String,
    pub(super) lineage: SessionLineage,
}

/// Relation of a session to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionRelation {
    /// The same run.
    Same,
    /// The other session continues this one.
    ContinuedBy,
    /// This session continues the other.
    Continues,
    /// A different run whose file uses the same id.
    SameName,
    /// Unrelated.
    Unrelated,
}

impl RelatedSession {
    /// Describes a grade that is about to be saved.
    pub(super) fn of(grade: &GradeRecord, path: &str) -> Self {
        Self {
            session_id: grade.session_id.clone(),
            file: path.to_owned(),
            messages: i64::try_from(grade.details.messages).unwrap_or(i64::MAX),
            agent: grade.details.agent.clone(),
            start: grade.session_start,
            claimed_id: bounded_id(&grade.session_id),
            lineage: grade.details.lineage.clone(),
        }
    }

    pub(super) fn relation(&self, other: &Self) -> SessionRelation {
        let (own, others) = (&self.lineage, &other.lineage);
        if self.claimed_id == other.claimed_id {
            return if own.is_same_run(others) {
                SessionRelation::Same
            } else {
                SessionRelation::SameName
            };
        }
        // A subagent may be given the whole conversation so far. What it does with it is not the
        // person's session, however long it gets.
        let is_apart = own.is_of_subagent() != others.is_of_subagent();
        // A copy keeps the timestamps of the original.
        if is_apart || self.agent != other.agent || self.start != other.start {
            SessionRelation::Unrelated
        } else if own.is_prefix_of(others) {
            SessionRelation::ContinuedBy
        } else if others.is_prefix_of(own) {
            SessionRelation::Continues
        } else {
            SessionRelation::Unrelated
        }
    }

    /// Returns true if this run has priority for the bare id: the older run wins.
    pub(super) fn has_priority_over(&self, other: &Self) -> bool {
        // Runs without a start time come last.
        let rank = |kin: &Self| (kin.start.is_none(), kin.start, kin.lineage.beginning);
        rank(self) < rank(other)
    }

    /// Returns the name of this run if another one has its id.
    pub(super) fn unique_name(&self) -> String {
        self.lineage.run_name(&self.claimed_id)
    }

    fn read(row: &Columns<'_>) -> Result<Self, ColumnError> {
        let session_id: String = row.get("session_id")?;
        Ok(Self {
            claimed_id: row.optional("claimed_id").unwrap_or_else(|| session_id.clone()),
            session_id,
            file: row.get("session_file")?,
            messages: row.optional("messages").unwrap_or_default(),
            agent: row.optional("agent").unwrap_or_default(),
            start: row.optional("session_start"),
            lineage: row.json("lineage").unwrap_or_default(),
        })
    }
}

/// Formats the beginning for its column.
pub(super) fn beginning(lineage: &SessionLineage) -> Option<String> {
    (!lineage.is_unknown()).then(|| format!("{:016x}", lineage.beginning))
}

/// Sessions per statement when searching for relatives.
const MAX_SESSIONS: usize = 1000;

/// Possible relatives for a batch of files, fetched at once: most sessions have none, and a query
/// per session would cost as much as saving its grade.
pub(super) struct LineageIndex {
    /// Files with graded sessions.
    files: HashSet<String>,
    /// Session ids, including those in their files.
    ids: HashSet<String>,
    beginnings: HashSet<String>,
}

impl LineageIndex {
    /// Loads the candidates for the files of a batch and the grades in them.
    pub(super) async fn load(
        writing: &mut WriteTransaction,
        paths: impl Iterator<Item = &str>,
        grades: Vec<&GradeRecord>,
    ) -> Result<Self, StoreError> {
        let paths = paths.map(bound::path);
        let mut query = SqlStatement::default();
        query.push("SELECT DISTINCT session_file FROM session_grades WHERE session_file");
        query.is_one_of(paths.map(|path| path.to_value(MAX_PATH)));
        let rows = writing.fetch(query.sql, query.values).await?;
        let files = rows.iter().filter_map(|row| Columns(row).optional("session_file")).collect();
        let mut known = Self { files, ids: HashSet::new(), beginnings: HashSet::new() };
        // The number of values per statement is limited.
        for some in grades.chunks(MAX_SESSIONS) {
            let ids = || some.iter().map(|grade| grade.session_id.to_value(NAME));
            let beginnings = some.iter().map(|grade| beginning(&grade.details.lineage));
            let mut query = SqlStatement::default();
            query.push("SELECT session_id, claimed_id, beginning FROM session_grades");
            query.push(" WHERE session_id").is_one_of(ids());
            query.push(" OR claimed_id").is_one_of(ids());
            query.push(" OR beginning").is_one_of(beginnings.map(|one| one.to_value(NAME)));
            for row in &writing.fetch(query.sql, query.values).await? {
                let text = |name| Columns(row).optional::<String>(name);
                known.ids.extend(text("session_id").into_iter().chain(text("claimed_id")));
                known.beginnings.extend(text("beginning"));
            }
        }
        Ok(known)
    }

    /// Returns true if sessions may be graded from this file.
    pub(super) fn has_file(&self, path: &str) -> bool {
        self.files.contains(path)
    }

    /// Returns true if this session may have relatives.
    pub(super) fn may_have_relatives(&self, of: &RelatedSession) -> bool {
        self.ids.contains(&of.claimed_id)
            || beginning(&of.lineage).is_some_and(|beginning| self.beginnings.contains(&beginning))
    }

    /// Adds a session that was just saved.
    pub(super) fn add(&mut self, kin: RelatedSession) {
        self.beginnings.extend(beginning(&kin.lineage));
        self.ids.insert(kin.claimed_id);
        self.files.insert(kin.file);
    }

    /// Adds an id that was given to a session.
    pub(super) fn add_id(&mut self, id: &str) {
        self.ids.insert(bounded_id(id));
    }
}

/// Returns all sessions related to this one, including itself.
pub(super) async fn find_related(
    writing: &mut WriteTransaction,
    of: &RelatedSession,
) -> Result<Vec<RelatedSession>, StoreError> {
    let query =
        select("WHERE session_id = $1 OR claimed_id = $1 OR beginning = $2 ORDER BY session_id");
    let rows = writing.fetch(query, params![of.session_id, beginning(&of.lineage)]).await?;
    Ok(rows.iter().filter_map(|row| RelatedSession::read(&Columns(row)).ok()).collect())
}

/// Returns the sessions that are graded from a file.
pub(super) async fn sessions_in_file(
    writing: &mut WriteTransaction,
    path: &str,
) -> Result<Vec<RelatedSession>, StoreError> {
    let query = select("WHERE session_file = $1 ORDER BY session_id");
    let rows = writing.fetch(query, [path.to_value(MAX_PATH)]).await?;
    Ok(rows.iter().filter_map(|row| RelatedSession::read(&Columns(row)).ok()).collect())
}

fn select(condition: &str) -> String {
    format!(
        "SELECT session_id, session_file, messages, agent, session_start, claimed_id, lineage \
         FROM session_grades {condition}"
    )
}

/// Changes the id of a session in all tables.
pub(super) async fn rename(
    writing: &mut WriteTransaction,
    from: &str,
    to: &str,
) -> Result<(), StoreError> {
    // `session_transcripts` is not listed: its foreign key cascades the new id.
    for table in ["session_grades", "session_quality_grades", "grade_overrides"] {
        let query = format!("UPDATE {table} SET session_id = $2 WHERE session_id = $1");
        writing.execute(query, params![from, to]).await?;
    }
    // Labels are unique per session, so an existing label under the new id is kept.
    let label = "UPDATE session_labels SET session_id = $2 WHERE session_id = $1 \
                 AND NOT EXISTS (SELECT 1 FROM session_labels WHERE session_id = $2)";
    writing.execute(label, params![from, to]).await?;
    Ok(())
}

/// Removes a session's grade if it comes from this file.
pub(super) async fn remove(
    writing: &mut WriteTransaction,
    kin: &RelatedSession,
) -> Result<(), StoreError> {
    let query = "DELETE FROM session_grades WHERE session_id = $1 AND session_file = $2";
    writing.execute(query, params![kin.session_id, kin.file.to_value(MAX_PATH)]).await?;
    Ok(())
}

/// A session stored under another id than the one in its file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RenamedSession {
    /// File path.
    pub file: String,
    /// Session id in the file.
    pub claimed_id: String,
    /// The run of that id: [`SessionLineage::beginning`].
    pub beginning: String,
    /// Session id in the store.
    pub session_id: String,
}

impl Store {
    /// Returns the sessions that were renamed because other runs have the same id in their files.
    pub async fn renamed_sessions(&self) -> Result<Vec<RenamedSession>, StoreError> {
        let query = "SELECT session_file, claimed_id, beginning, session_id FROM session_grades \
                     WHERE claimed_id IS NOT NULL AND claimed_id <> session_id";
        let read = |row: &Columns<'_>| {
            Ok(RenamedSession {
                file: row.get("session_file")?,
                claimed_id: row.get("claimed_id")?,
                beginning: row.optional("beginning").unwrap_or_default(),
                session_id: row.get("session_id")?,
            })
        };
        Ok(self.fetch(query, [], read).await?.items)
    }

    /// Counts graded sessions without a date, which belong to no day and no week.
    pub async fn undated_sessions(&self) -> Result<u64, StoreError> {
        let query = "SELECT COUNT(*) AS count FROM session_grades WHERE session_start IS NULL";
        self.count(query, []).await
    }
}

impl RenamedSession {
    /// Returns true if `grade`, made from a file, belongs to this session.
    pub fn matches(&self, grade: &GradeRecord) -> bool {
        self.file == grade.session_file
            && self.claimed_id == grade.session_id
            && beginning(&grade.details.lineage).is_some_and(|own| own == self.beginning)
    }
}

/// Truncates an id to its stored form.
fn bounded_id(id: &str) -> String {
    bound::text(id, NAME)
}
