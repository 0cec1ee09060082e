//! The table `session_quality_grades` (docs/spec/session-quality.md#table): grades by a language
//! model.

use sqlx::{AnyConnection, AssertSqlSafe};

use super::insert::AnyQuery;
use super::page::{Cursor, Page};
use super::row::{Columns, Double, Rows, time};
use super::{Store, StoreError, bound};
use selftest_grading::grade::QualityGrade;

const COLUMNS: &str = "session_id, grader_model, rubric_version, ts, problem_solved, \
                       tests_added, code_clean, edge_cases, overall, reasoning, details_json";

fn select(rest: &str) -> AnyQuery<'static> {
    sqlx::query(AssertSqlSafe(format!("SELECT id, {COLUMNS} FROM session_quality_grades {rest}")))
}

fn read(row: &Columns<'_>) -> Result<QualityGrade, String> {
    let score = |name: &str| match row.optional_float(name) {
        Some(score) if !(0.0..=1.0).contains(&score) => Err(format!("{name} is {score}")),
        score => Ok(score),
    };
    Ok(QualityGrade {
        session_id: row.text("session_id")?,
        model: row.text("grader_model")?,
        rubric_version: row.number("rubric_version")?,
        ts: row.time("ts")?,
        problem_solved: score("problem_solved")?,
        tests_added: score("tests_added")?,
        code_clean: score("code_clean")?,
        edge_cases: score("edge_cases")?,
        overall: score("overall")?,
        reasoning: row.optional_text("reasoning"),
        details: row
            .optional_text("details_json")
            .and_then(|details| serde_json::from_str(&details).ok()),
    })
}

/// That a grade is of this version. Not for the index of versions: nearly all grades are of the
/// same one, and SQLite would prefer it to that of the sessions.
fn of_version(version: u32) -> String {
    format!("rubric_version + 0 = {version}")
}

/// Sets the average of a session, and of which version it is.
fn average(version: u32, session_id: &str) -> String {
    format!(
        "quality_rubric = {version}, quality = (SELECT AVG(overall) FROM session_quality_grades \
         AS grade WHERE grade.session_id = {session_id} AND {})",
        of_version(version)
    )
}

impl Store {
    /// The same database for a reader whose rubric has that version: grades by models of other
    /// versions are kept, and read as if they were not there. Without this, that of this binary.
    ///
    /// Averages are kept of one version only: those of another are computed here, for as many
    /// sessions as have grades of this one. Two readers at the same time with different rubrics
    /// may each miss averages of sessions that the other has graded since.
    pub async fn by_rubric(mut self, version: u32) -> Result<Self, StoreError> {
        self.rubric = version;
        let others = format!(
            "(quality_rubric < {version} OR quality_rubric > {version}) AND EXISTS \
             (SELECT 1 FROM session_quality_grades AS grade \
             WHERE grade.session_id = session_grades.session_id AND {})",
            of_version(version)
        );
        let any = format!("SELECT session_id FROM session_grades WHERE {others} LIMIT 1");
        let any = sqlx::query(AssertSqlSafe(any)).fetch_optional(&self.pool).await;
        if any.map_err(|error| self.failed(error))?.is_none() {
            return Ok(self);
        }
        let mut writing = self.begin().await?;
        let average = average(version, "session_grades.session_id");
        let query = format!("UPDATE session_grades SET {average} WHERE {others}");
        let done = sqlx::query(AssertSqlSafe(query)).execute(&mut *writing).await;
        done.map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(self)
    }

    /// Every grade by a model and the reader's version of the rubric, oldest first.
    pub async fn quality_grades(&self) -> Result<Rows<QualityGrade>, StoreError> {
        let query = format!("WHERE {} ORDER BY ts, id", of_version(self.rubric));
        self.fetch(select(&query), read).await
    }

    /// The grades of a session by the reader's version of the rubric, one for each model.
    pub async fn quality_of(&self, session_id: &str) -> Result<Rows<QualityGrade>, StoreError> {
        let version = of_version(self.rubric);
        let query = select(&format!("WHERE session_id = $1 AND {version} ORDER BY grader_model"));
        self.fetch(query.bind(bound::text(session_id, bound::NAME)), read).await
    }

    /// The newest grades by the reader's version of the rubric, newest first; only those with at
    /// least that overall score, where one is given.
    pub async fn recent_quality(
        &self,
        min_overall: Option<f64>,
        limit: u32,
        after: Option<&Cursor>,
    ) -> Result<Page<QualityGrade>, StoreError> {
        let query = select(&format!(
            "WHERE rubric_version = {} \
             AND (CAST($1 AS DOUBLE PRECISION) IS NULL OR overall >= $1) \
             AND (CAST($2 AS TEXT) IS NULL OR ts < $2 OR (ts = $2 AND id < $3)) \
             ORDER BY ts DESC, id DESC LIMIT $4",
            self.rubric
        ));
        let id = after.and_then(|cursor| cursor.id.parse::<i64>().ok()).unwrap_or(i64::MAX);
        let since = after.and_then(|cursor| cursor.value.as_deref());
        let query = query
            .bind(Double(min_overall))
            .bind(bound::optional(since, bound::NAME))
            .bind(id)
            .bind(i64::from(limit) + 1);
        // What is left out as unreadable is still a row that the next page begins behind.
        let rows = self
            .fetch(query, |row| {
                let (value, id) = (row.optional_text("ts"), row.integer("id")?.to_string());
                let place = Cursor { value, id, order: None };
                Ok((place, read(row).ok()))
            })
            .await?;
        let page = Page::of(rows.items, limit, |(place, _)| place.clone());
        Ok(Page {
            items: page.items.into_iter().filter_map(|(_, grade)| grade).collect(),
            next: page.next,
        })
    }

    /// The sessions, newest first, that have a grade by rules but none by this model and the
    /// reader's version of the rubric: id and file. Since a moment, where one is given.
    pub async fn without_quality(
        &self,
        model: &str,
        since: Option<jiff::Timestamp>,
        agent: Option<&str>,
    ) -> Result<Rows<(String, String)>, StoreError> {
        let query = "SELECT session_id, session_file FROM session_grades AS session \
                     WHERE (CAST($1 AS TEXT) IS NULL OR counts_at >= $1) \
                     AND (CAST($2 AS TEXT) IS NULL OR agent = $2) \
                     AND NOT EXISTS (SELECT 1 FROM session_quality_grades AS grade \
                     WHERE grade.session_id = session.session_id \
                     AND grader_model = $3 AND rubric_version = $4) \
                     ORDER BY counts_at DESC NULLS LAST, session_id";
        let query = sqlx::query(query)
            .bind(since.map(time))
            .bind(bound::optional(agent, bound::NAME))
            .bind(bound::text(model, bound::NAME))
            .bind(i64::from(self.rubric));
        self.fetch(query, |row| Ok((row.text("session_id")?, row.text("session_file")?))).await
    }

    /// Keeps a grade by a model, in place of an older one of the same session, model and version
    /// of the rubric, and brings the session's average up to date.
    pub async fn save_quality(&self, grade: &QualityGrade) -> Result<(), StoreError> {
        let mut writing = self.begin().await?;
        let saved = save(&mut writing, grade).await;
        saved.map_err(|error| self.failed(error))?;
        self.commit(writing).await
    }
}

async fn save(connection: &mut AnyConnection, grade: &QualityGrade) -> Result<(), sqlx::Error> {
    let query = format!(
        "INSERT INTO session_quality_grades ({COLUMNS}) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
         ON CONFLICT (session_id, grader_model, rubric_version) DO UPDATE SET \
         ts = excluded.ts, problem_solved = excluded.problem_solved, \
         tests_added = excluded.tests_added, code_clean = excluded.code_clean, \
         edge_cases = excluded.edge_cases, overall = excluded.overall, \
         reasoning = excluded.reasoning, details_json = excluded.details_json"
    );
    let session_id = bound::text(&grade.session_id, bound::NAME);
    let details = grade.details.as_ref().map(ToString::to_string);
    sqlx::query(AssertSqlSafe(query))
        .bind(session_id.clone())
        .bind(bound::text(&grade.model, bound::NAME))
        .bind(i64::from(grade.rubric_version))
        .bind(time(grade.ts))
        .bind(Double(grade.problem_solved))
        .bind(Double(grade.tests_added))
        .bind(Double(grade.code_clean))
        .bind(Double(grade.edge_cases))
        .bind(Double(grade.overall))
        .bind(bound::optional(grade.reasoning.as_deref(), bound::TEXT))
        .bind(bound::json(details.as_deref()))
        .execute(&mut *connection)
        .await?;
    let query = format!(
        "UPDATE session_grades SET {} WHERE session_id = $1",
        average(grade.rubric_version, "$1")
    );
    let query = sqlx::query(AssertSqlSafe(query)).bind(session_id);
    query.execute(connection).await.map(drop)
}
