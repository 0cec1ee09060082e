//! Finding grades in `session_grades`.

use jiff::Timestamp;
use sqlx::AssertSqlSafe;

use super::grade_row::select;
use super::row::{Rows, count, time};
use super::{Store, StoreError, bound, grade_row};
use selftest_grading::grade::GradeRecord;

/// Most grades that an abbreviated id finds.
const FOUND: i64 = 100;

impl Store {
    /// The grade of a session.
    pub async fn grade(&self, session_id: &str) -> Result<Option<GradeRecord>, StoreError> {
        let query = sqlx::query(select("WHERE session_id = $1"));
        let query = query.bind(bound::text(session_id, bound::NAME));
        self.fetch_one(query, || format!("the grade of session {session_id}"), grade_row::read)
            .await
    }

    /// The grades of the sessions whose ids begin so, by id; at most 100.
    pub async fn find_grades(&self, prefix: &str) -> Result<Rows<GradeRecord>, StoreError> {
        let query = "WHERE substr(session_id, 1, $1) = $2 ORDER BY session_id LIMIT $3";
        let prefix = bound::text(prefix, bound::NAME);
        let characters = i32::try_from(prefix.chars().count()).unwrap_or(i32::MAX);
        let query = sqlx::query(select(query)).bind(characters).bind(prefix).bind(FOUND);
        self.fetch(query, grade_row::read).await
    }

    /// The grades of sessions in this file, or in files below this folder.
    pub async fn grades_below(&self, path: &str) -> Result<Rows<GradeRecord>, StoreError> {
        let query = "WHERE session_file = $1 OR substr(session_file, 1, $2) = $3";
        let path = bound::path(path);
        let folder = format!("{}/", path.trim_end_matches('/'));
        let characters = i32::try_from(folder.chars().count()).unwrap_or(i32::MAX);
        let query = sqlx::query(select(query)).bind(path).bind(characters).bind(folder);
        self.fetch(query, grade_row::read).await
    }

    /// How many sessions have a grade.
    pub async fn graded_sessions(&self) -> Result<u64, StoreError> {
        let query = sqlx::query("SELECT COUNT(*) AS sessions FROM session_grades");
        let what = || "the number of grades".to_owned();
        Ok(self.fetch_one(query, what, |row| row.number("sessions")).await?.unwrap_or_default())
    }

    /// The grades that count in `from..to`, oldest first; of one agent, where one is named.
    pub async fn grades_between(
        &self,
        from: Timestamp,
        to: Timestamp,
        agent: Option<&str>,
    ) -> Result<Rows<GradeRecord>, StoreError> {
        // Rows of other programs have no `counts_at`; their own times have many forms and are
        // compared when read.
        let query = "WHERE (counts_at >= $1 AND counts_at < $2 OR counts_at IS NULL) \
                     AND (CAST($3 AS TEXT) IS NULL OR agent = $3)";
        let query = sqlx::query(select(query)).bind(time(from)).bind(time(to));
        let query = query.bind(bound::optional(agent, bound::NAME));
        let mut rows = self.fetch(query, grade_row::read).await?;
        rows.items.retain(|grade| (from..to).contains(&grade.details.counts_at));
        rows.items.sort_by(by_time);
        Ok(rows)
    }

    /// The newest grades by the time at which they count, at most `limit`, newest first; of one
    /// agent, where one is named.
    pub async fn latest_grades(
        &self,
        limit: u64,
        agent: Option<&str>,
    ) -> Result<Rows<GradeRecord>, StoreError> {
        let others = select("WHERE counts_at IS NULL AND (CAST($1 AS TEXT) IS NULL OR agent = $1)");
        let ours = select(
            "WHERE counts_at IS NOT NULL AND (CAST($1 AS TEXT) IS NULL OR agent = $1) \
             ORDER BY counts_at DESC, session_id DESC LIMIT $2",
        );
        let query = format!("{} UNION ALL SELECT * FROM ({}) AS newest", others.0, ours.0);
        let query = sqlx::query(AssertSqlSafe(query));
        let query = query.bind(bound::optional(agent, bound::NAME)).bind(count(limit));
        let mut rows = self.fetch(query, grade_row::read).await?;
        rows.items.sort_by(|a, b| by_time(b, a));
        rows.items.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(rows)
    }

    /// The latest time at which a grade counts.
    pub async fn newest_counts_at(&self) -> Result<Option<Timestamp>, StoreError> {
        let newest = self.latest_grades(1, None).await?.items;
        Ok(newest.first().map(|grade| grade.details.counts_at))
    }
}

fn by_time(a: &GradeRecord, b: &GradeRecord) -> std::cmp::Ordering {
    (a.details.counts_at, &a.session_id).cmp(&(b.details.counts_at, &b.session_id))
}
