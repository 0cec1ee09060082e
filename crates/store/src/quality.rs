//! The table `session_quality_grades` (docs/spec/session-quality.md#table): grades given by
//! language models.

use super::page::{Cursor, ResultPage};
use super::row::{Columns, Record, Rows, optional_unit, read_from, record};
use super::statement::{params, stored_as};
use super::{Store, StoreError, bound};
use selftest_grading::grade::QualityGrade;

record!(QualityGrade, "session_quality_grades", {
    session_id,
    model as "grader_model",
    rubric_version,
    ts,
    problem_solved by optional_unit,
    tests_added by optional_unit,
    code_clean by optional_unit,
    edge_cases by optional_unit,
    overall by optional_unit,
    reasoning [bound::TEXT],
    details as "details_json",
});

stored_as! { Text: serde_json::Value => |json, _limit| bound::json(json) }
read_from! { |row, name| serde_json::Value => row.json(name) }

/// SQL predicate: the grade has this rubric version. `+ 0` hides the column from the index on
/// versions. Nearly all grades have the same version, and SQLite would prefer that index to the one
/// on sessions.
fn version_predicate(version: u32) -> String {
    format!("rubric_version + 0 = {version}")
}

/// SQL assignments that update a session's average and its rubric version.
fn average_assignments(version: u32, session_id: &str) -> String {
    format!(
        "quality_rubric = {version}, quality = (SELECT AVG(overall) FROM session_quality_grades \
         AS grade WHERE grade.session_id = {session_id} AND {})",
        version_predicate(version)
    )
}

impl Store {
    /// Returns the same database for a reader with that rubric version. Grades of other versions
    /// stay stored but are ignored. The default is the version of this binary.
    ///
    /// Averages are stored for one version only. This call recomputes those of another version, for
    /// all sessions that have grades of this one. Two concurrent readers with different rubrics may
    /// each miss averages of sessions that the other has graded since.
    pub async fn with_rubric(mut self, version: u32) -> Result<Self, StoreError> {
        self.rubric = version;
        let others = format!(
            "(quality_rubric < {version} OR quality_rubric > {version}) AND EXISTS \
             (SELECT 1 FROM session_quality_grades AS grade \
             WHERE grade.session_id = session_grades.session_id AND {})",
            version_predicate(version)
        );
        // Read first: usually there is nothing to recompute, and no write lock is needed.
        let any = format!("SELECT session_id FROM session_grades WHERE {others} LIMIT 1");
        if self.fetch_one("a session", any, [], |_| Ok(())).await?.is_none() {
            return Ok(self);
        }
        let mut writing = self.begin_write().await?;
        let average = average_assignments(version, "session_grades.session_id");
        let query = format!("UPDATE session_grades SET {average} WHERE {others}");
        writing.execute(query, []).await?;
        writing.commit().await?;
        Ok(self)
    }

    /// Returns all model grades with the reader's rubric version, oldest first.
    pub async fn quality_grades(&self) -> Result<Rows<QualityGrade>, StoreError> {
        let query = format!("WHERE {} ORDER BY ts, id", version_predicate(self.rubric));
        self.find(&query, []).await
    }

    /// Returns a session's grades with the reader's rubric version, one per model.
    pub async fn session_quality_grades(
        &self,
        session_id: &str,
    ) -> Result<Rows<QualityGrade>, StoreError> {
        let version = version_predicate(self.rubric);
        let query = format!("WHERE session_id = $1 AND {version} ORDER BY grader_model");
        self.find(&query, params![session_id]).await
    }

    /// Returns a page of grades with the reader's rubric version, newest first, optionally with a
    /// minimum overall score.
    pub async fn recent_quality(
        &self,
        min_overall: Option<f64>,
        limit: u32,
        after: Option<&Cursor>,
    ) -> Result<ResultPage<QualityGrade>, StoreError> {
        let query = format!(
            "SELECT id, {} FROM session_quality_grades WHERE rubric_version = {} \
             AND (CAST($1 AS DOUBLE PRECISION) IS NULL OR overall >= $1) \
             AND (CAST($2 AS TEXT) IS NULL OR ts < $2 OR (ts = $2 AND id < $3)) \
             ORDER BY ts DESC, id DESC LIMIT $4",
            QualityGrade::columns().join(", "),
            self.rubric
        );
        // Ids order grades with the same timestamp.
        let id = after.and_then(|cursor| cursor.id.parse::<i64>().ok()).unwrap_or(i64::MAX);
        let since = after.and_then(|cursor| cursor.value.as_deref());
        let values = params![min_overall, since, id, i64::from(limit) + 1];
        let place = |row: &Columns<'_>| Ok(Cursor { value: row.get("ts")?, ..Cursor::of_id(row)? });
        self.fetch_page(limit, query, values, place, QualityGrade::read).await
    }

    /// Returns id and file of the sessions, newest first, that have a rule-based grade but none by
    /// this model with the reader's rubric version. `since` and `agent` narrow the list.
    pub async fn sessions_without_quality(
        &self,
        model: &str,
        since: Option<jiff::Timestamp>,
        agent: Option<&str>,
    ) -> Result<Rows<(String, String)>, StoreError> {
        let query = "SELECT session_id, session_file FROM session_grades AS session \
                     WHERE (CAST($1 AS TEXT) IS NULL OR counts_at >= $1) \
                     AND (CAST($2 AS TEXT) IS NULL OR agent = $2) \
                     AND COALESCE(session_kind, 'task') = 'task' \
                     AND NOT EXISTS (SELECT 1 FROM session_quality_grades AS grade \
                     WHERE grade.session_id = session.session_id \
                     AND grader_model = $3 AND rubric_version = $4) \
                     ORDER BY counts_at DESC NULLS LAST, session_id";
        let values = params![since, agent, model, self.rubric];
        self.fetch(query, values, |row| Ok((row.get("session_id")?, row.get("session_file")?)))
            .await
    }

    /// Saves a model grade, replacing an older one of the same session, model and rubric version,
    /// and updates the session's average.
    pub async fn save_quality(&self, grade: &QualityGrade) -> Result<(), StoreError> {
        let mut writing = self.begin_write().await?;
        let query = QualityGrade::upsert("session_id, grader_model, rubric_version");
        writing.execute(query, grade.values()).await?;
        // Stored with the session, so that lists can sort and filter by it.
        let average = average_assignments(grade.rubric_version, "$1");
        let query = format!("UPDATE session_grades SET {average} WHERE session_id = $1");
        writing.execute(query, params![grade.session_id]).await?;
        writing.commit().await
    }
}
