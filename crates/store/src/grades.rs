//! Queries of `session_grades`.

use jiff::Timestamp;

use super::files::MAX_PATH;
use super::row::{Columns, Record as _, Rows};
use super::statement::{ToValue as _, params};
use super::{Store, StoreError, bound};
use selftest_grading::grade::GradeRecord;

/// Maximum number of grades returned for an abbreviated id.
const MAX_FOUND: i64 = 100;

impl Store {
    /// Returns the grade of a session.
    pub async fn grade(&self, session_id: &str) -> Result<Option<GradeRecord>, StoreError> {
        let what = format!("the grade of session {session_id}");
        self.find_one(&what, "WHERE session_id = $1", params![session_id]).await
    }

    /// Returns the grades of sessions whose ids start with `prefix`, sorted by id, at most 100.
    pub async fn find_grades(&self, prefix: &str) -> Result<Rows<GradeRecord>, StoreError> {
        // Not `LIKE`, for which `%` and `_` in an id are wildcards.
        let query = "WHERE substr(session_id, 1, CAST($1 AS INTEGER)) = $2 \
                     ORDER BY session_id LIMIT $3";
        let prefix = bound::text(prefix, bound::NAME);
        let characters = prefix.chars().count() as u64;
        self.find(query, params![characters, prefix, MAX_FOUND]).await
    }

    /// Returns the grades of sessions in this file, or in files below this folder.
    pub async fn grades_below(&self, path: &str) -> Result<Rows<GradeRecord>, StoreError> {
        let query = "WHERE session_file = $1 \
                     OR substr(session_file, 1, CAST($2 AS INTEGER)) = $3";
        let path = bound::path(path);
        // The slash keeps `/a/b` from matching `/a/bc`.
        let folder = format!("{}/", path.trim_end_matches('/'));
        let characters = folder.chars().count() as u64;
        let values = params![path.to_value(MAX_PATH), characters, folder.to_value(MAX_PATH)];
        self.find(query, values).await
    }

    /// Counts the sessions with a grade.
    pub async fn graded_sessions(&self) -> Result<u64, StoreError> {
        self.count("SELECT COUNT(*) AS count FROM session_grades", []).await
    }

    /// Returns the grades counted in `from..to`, oldest first, optionally of one agent.
    pub async fn grades_between(
        &self,
        from: Timestamp,
        to: Timestamp,
        agent: Option<&str>,
    ) -> Result<Rows<GradeRecord>, StoreError> {
        // Rows of other programs have no `counts_at`, and undated ones neither. The times of other
        // programs come in many formats and can only be compared after parsing.
        let query = "WHERE (counts_at >= $1 AND counts_at < $2 OR counts_at IS NULL) \
                     AND (CAST($3 AS TEXT) IS NULL OR agent = $3)";
        let mut rows = self.find::<GradeRecord>(query, params![from, to, agent]).await?;
        rows.items.retain(|grade| grade.is_in(&(from..to)));
        rows.items.sort_by(compare_by_time);
        Ok(rows)
    }

    /// Returns every grade, undated ones too, optionally of one agent.
    pub async fn all_grades(&self, agent: Option<&str>) -> Result<Rows<GradeRecord>, StoreError> {
        let query = "WHERE (CAST($1 AS TEXT) IS NULL OR agent = $1)";
        let mut rows = self.find::<GradeRecord>(query, params![agent]).await?;
        rows.items.sort_by(compare_by_time);
        Ok(rows)
    }

    /// Passes each grade counted in `from..to` to `each`, newest first. A single day may have too
    /// many grades to hold in memory. Grades of other programs are not included
    /// ([`Store::foreign_grades`]).
    pub async fn for_each_grade(
        &self,
        from: Timestamp,
        to: Timestamp,
        mut each: impl FnMut(GradeRecord),
    ) -> Result<(), StoreError> {
        let query = GradeRecord::select(
            "WHERE counts_at >= $1 AND counts_at < $2 ORDER BY counts_at DESC, session_id",
        );
        let read = |row: &Columns<'_>| {
            each(GradeRecord::read(row)?);
            Ok(())
        };
        self.fetch(query, params![from, to], read).await.map(drop)
    }

    /// Returns up to `limit` grades, newest first and undated ones last, optionally of one agent.
    pub async fn latest_grades(
        &self,
        limit: u64,
        agent: Option<&str>,
    ) -> Result<Rows<GradeRecord>, StoreError> {
        let agent_is = "(CAST($1 AS TEXT) IS NULL OR agent = $1)";
        // Rows of other programs have no `counts_at`; they are sorted after reading. So are undated
        // ones.
        let others = GradeRecord::select(&format!("WHERE counts_at IS NULL AND {agent_is}"));
        let ours = GradeRecord::select(&format!(
            "WHERE counts_at IS NOT NULL AND {agent_is} \
             ORDER BY counts_at DESC, session_id DESC LIMIT $2"
        ));
        let query = format!("{others} UNION ALL SELECT * FROM ({ours}) AS newest");
        let mut rows = self.fetch(query, params![agent, limit], GradeRecord::read).await?;
        rows.items.sort_by(|a, b| compare_by_time(b, a));
        rows.items.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(rows)
    }

    /// Returns the latest time at which a grade is counted.
    pub async fn newest_counts_at(&self) -> Result<Option<Timestamp>, StoreError> {
        let newest = self.latest_grades(1, None).await?.items;
        Ok(newest.first().and_then(GradeRecord::started_at))
    }
}

fn compare_by_time(a: &GradeRecord, b: &GradeRecord) -> std::cmp::Ordering {
    (a.details.counts_at, &a.session_id).cmp(&(b.details.counts_at, &b.session_id))
}
