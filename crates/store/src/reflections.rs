//! The tables `reflections` and `reflection_scores` (docs/spec/reflections.md). Weak reflections
//! have a flag on their score, not a separate table.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::page::{Cursor, ResultPage};
use super::row::{Columns, Record as _, Rows, read_from, record, unit};
use super::statement::{ToValue as _, params, stored_as};
use super::{ColumnError, Store, StoreError, bound};
use selftest_grading::grade::reflection::{
    ProjectReflections, ReflectionIssue, ReflectionScore, StoredReflection, TimedScore,
    WeakReflection,
};

/// A reflection to be saved.
#[derive(Debug, Clone, PartialEq)]
pub struct NewReflection {
    /// Project that it belongs to.
    pub project_id: String,
    /// Id, unique within its project.
    pub reflection_id: String,
    /// Agent that wrote it, if the document names one.
    pub agent: Option<String>,
    /// Loop that it describes. `None` uses the number of the project's reflections, including this
    /// one.
    pub loop_count: Option<u64>,
    /// Creation time.
    pub made_at: Timestamp,
    /// Submitted document, with secrets removed.
    pub document: Map<String, Value>,
}

/// Filters and page of a list of reflections.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReflectionQuery {
    /// Only reflections of this project.
    pub project_id: Option<String>,
    /// Only weak reflections.
    pub weak: bool,
    /// Number of rows per page.
    pub limit: u32,
    /// Position after which the page starts.
    pub after: Option<Cursor>,
}

/// Common part of the statements that read scores. `$1` is a project or null.
const SCORED: &str = "FROM reflections AS reflection \
                      JOIN reflection_scores AS grade ON grade.reflection = reflection.id \
                      WHERE (CAST($1 AS TEXT) IS NULL OR project_id = $1)";

record!(StoredReflection, "reflections", {
    number as "id",
    project_id,
    reflection_id,
    agent,
    loop_count,
    made_at,
    document as "document_json",
});

record!(ReflectionScore, "reflection_scores", {
    project_id,
    reflection_id,
    agent,
    loop_count,
    score by unit,
    threshold by unit,
    weak,
    issues as "issues_json",
    timestamp as "graded_at",
    made_at,
});

stored_as! { Text:
    Map<String, Value> => |document, _limit| bound::json(document),
    Vec<ReflectionIssue> => |issues, _limit| bound::json(issues),
}
read_from! { |row, name|
    Map<String, Value> => row.json(name),
    Vec<ReflectionIssue> => row.json(name),
}

record!(TimedScore, "reflection_scores", { made_at, score by unit, weak });

impl Store {
    /// Saves a reflection and returns it with `true` if it is new. If the project already has one
    /// with that id, nothing is written and the existing one is returned; the caller checks if the
    /// content is the same.
    pub async fn add_reflection(
        &self,
        new: &NewReflection,
    ) -> Result<(StoredReflection, bool), StoreError> {
        let json = Value::Object(new.document.clone()).to_string();
        // Binding cuts a text to its limit, and truncated JSON is invalid.
        StoreError::check_size(|| "the reflection".to_owned(), &json, bound::JSON)?;
        let mut writing = self.begin_write().await?;
        // Counting and inserting in one write transaction keeps loop counts unique.
        let query = "INSERT INTO reflections \
                     (project_id, reflection_id, agent, loop_count, made_at, document_json) \
                     SELECT $1, $2, $3, COALESCE(CAST($4 AS BIGINT), 1 + \
                     (SELECT COUNT(*) FROM reflections WHERE project_id = $1)), $5, $6 \
                     WHERE NOT EXISTS (SELECT 1 FROM reflections \
                     WHERE project_id = $1 AND reflection_id = $2)";
        let values = params![
            new.project_id,
            new.reflection_id,
            new.agent,
            new.loop_count,
            new.made_at,
            json.to_value(bound::JSON),
        ];
        let added = writing.execute(query, values).await? > 0;
        writing.commit().await?;
        let kept = self.reflection(&new.project_id, &new.reflection_id).await?;
        let kept = kept.ok_or_else(|| StoreError::Row {
            place: self.place.clone(),
            what: "a reflection".to_owned(),
            source: ColumnError::Deleted,
        })?;
        Ok((kept, added))
    }

    /// Returns the reflection of a project with this id.
    pub async fn reflection(
        &self,
        project_id: &str,
        reflection_id: &str,
    ) -> Result<Option<StoredReflection>, StoreError> {
        let query = "WHERE project_id = $1 AND reflection_id = $2";
        self.find_one("a reflection", query, params![project_id, reflection_id]).await
    }

    /// Returns the most recently submitted reflection of a project.
    pub async fn last_reflection(
        &self,
        project_id: &str,
    ) -> Result<Option<StoredReflection>, StoreError> {
        let query = "WHERE project_id = $1 ORDER BY id DESC LIMIT 1";
        self.find_one("the last reflection of a project", query, params![project_id]).await
    }

    /// Returns the score of a reflection, if it has one.
    pub async fn reflection_score(
        &self,
        number: i64,
    ) -> Result<Option<ReflectionScore>, StoreError> {
        let columns = ReflectionScore::columns().join(", ");
        let query = format!("SELECT {columns} {SCORED} AND reflection.id = $2");
        let values = params![None::<String>, number];
        self.fetch_one("the score of a reflection", query, values, ReflectionScore::read).await
    }

    /// Saves the score of a reflection, replacing an older one. The record of the recovery hook's
    /// notification is unchanged.
    pub async fn save_reflection_score(
        &self,
        number: i64,
        score: &ReflectionScore,
    ) -> Result<(), StoreError> {
        let query = "INSERT INTO reflection_scores \
                     (reflection, score, threshold, weak, issues_json, graded_at) \
                     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (reflection) DO UPDATE SET \
                     score = excluded.score, threshold = excluded.threshold, \
                     weak = excluded.weak, issues_json = excluded.issues_json, \
                     graded_at = excluded.graded_at";
        let issues = score.issues.to_value(bound::JSON);
        let values =
            params![number, score.score, score.threshold, score.weak, issues, score.timestamp];
        self.execute(query, values).await.map(drop)
    }

    /// Claims the notification of the recovery hook for a weak reflection. Returns false if another
    /// caller already has.
    pub async fn claim_recovery(
        &self,
        score: &ReflectionScore,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.set_notified(score, Some(at), "told_at IS NULL").await
    }

    /// Releases a claim after the hook could not be notified.
    pub async fn release_recovery(&self, score: &ReflectionScore) -> Result<(), StoreError> {
        self.set_notified(score, None, "told_at IS NOT NULL").await.map(drop)
    }

    async fn set_notified(
        &self,
        score: &ReflectionScore,
        at: Option<Timestamp>,
        before: &str,
    ) -> Result<bool, StoreError> {
        // The condition makes the claim atomic.
        let query = format!(
            "UPDATE reflection_scores SET told_at = $1 WHERE {before} AND reflection = \
             (SELECT id FROM reflections WHERE project_id = $2 AND reflection_id = $3)"
        );
        Ok(self.execute(query, params![at, score.project_id, score.reflection_id]).await? > 0)
    }

    /// Returns a page of scores, most recently submitted first.
    pub async fn reflection_scores(
        &self,
        asked: &ReflectionQuery,
    ) -> Result<ResultPage<ReflectionScore>, StoreError> {
        self.reflection_page(asked, ReflectionScore::read).await
    }

    /// Returns a page of scores together with the submitted documents.
    pub async fn scored_reflections(
        &self,
        asked: &ReflectionQuery,
    ) -> Result<ResultPage<WeakReflection>, StoreError> {
        let read = |row: &Columns<'_>| {
            Ok(WeakReflection {
                score: ReflectionScore::read(row)?,
                reflection: row.json("document_json")?,
            })
        };
        self.reflection_page(asked, read).await
    }

    async fn reflection_page<T>(
        &self,
        asked: &ReflectionQuery,
        read: impl Fn(&Columns<'_>) -> Result<T, ColumnError>,
    ) -> Result<ResultPage<T>, StoreError> {
        let weak = if asked.weak { "AND weak = 1" } else { "" };
        let columns = ReflectionScore::columns().join(", ");
        let query = format!(
            "SELECT id, {columns}, document_json {SCORED} {weak} AND reflection.id < $2 \
             ORDER BY reflection.id DESC LIMIT $3"
        );
        let after = asked.after.as_ref().and_then(|cursor| cursor.id.parse::<i64>().ok());
        let after = after.unwrap_or(i64::MAX);
        let values = params![asked.project_id, after, i64::from(asked.limit) + 1];
        self.fetch_page(asked.limit, query, values, Cursor::of_id, read).await
    }

    /// Returns the newest scores of a project submitted before number `before`, newest first.
    pub async fn reflection_history(
        &self,
        project_id: &str,
        before: i64,
        limit: u32,
    ) -> Result<Vec<f64>, StoreError> {
        let query = format!(
            "SELECT score {SCORED} AND reflection.id < $2 ORDER BY reflection.id DESC LIMIT $3"
        );
        let values = params![project_id, before, limit];
        Ok(self.fetch(query, values, |row| unit(row, "score")).await?.items)
    }

    /// Returns the creation times and scores of the newest reflections, at most `limit`, newest
    /// first, of one project or of all.
    pub async fn reflections_over_time(
        &self,
        project_id: Option<&str>,
        limit: u32,
    ) -> Result<Rows<TimedScore>, StoreError> {
        let query = format!(
            "SELECT made_at, score, weak {SCORED} ORDER BY made_at DESC, reflection.id LIMIT $2"
        );
        self.fetch(query, params![project_id, limit], TimedScore::read).await
    }

    /// Summarizes up to `limit` projects with scores, most recent reflections first, or only one.
    pub async fn reflecting_projects(
        &self,
        project_id: Option<&str>,
        limit: u32,
    ) -> Result<Rows<ProjectReflections>, StoreError> {
        let query = format!(
            "SELECT project_id, COUNT(*) AS scores, AVG(score) AS average, \
             CAST(SUM(weak) AS BIGINT) AS weak, MAX(made_at) AS newest {SCORED} \
             GROUP BY project_id ORDER BY newest DESC, project_id LIMIT $2"
        );
        let read = |row: &Columns<'_>| {
            Ok(ProjectReflections {
                project_id: row.get("project_id")?,
                count: row.get("scores")?,
                // Averages of decimals have binary rounding errors in the last digits.
                average_score: (unit(row, "average")? * 1e6).round() / 1e6,
                weak: row.get("weak")?,
                newest: row.get("newest")?,
            })
        };
        self.fetch(query, params![project_id, limit], read).await
    }
}
