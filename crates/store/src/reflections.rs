//! The tables `reflections` and `reflection_scores` (docs/spec/reflections.md). Weak reflections
//! are those whose score is marked so, not a table of their own.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::page::{Cursor, Page};
use super::row::{Columns, Rows, count, time};
use super::{Store, StoreError, bound};
use selftest_grading::grade::reflection::{
    ProjectReflections, ReflectionScore, ScoredAt, StoredReflection, WeakReflection,
};

/// A reflection that is to be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct NewReflection {
    /// The project that it belongs to.
    pub project_id: String,
    /// Unique in its project.
    pub reflection_id: String,
    /// Who reflects, where it says so.
    pub agent: Option<String>,
    /// The loop that it speaks of. `None`: as many reflections as the project has with it.
    pub loop_count: Option<u64>,
    /// When it was made.
    pub made_at: Timestamp,
    /// What was submitted, without its secrets.
    pub document: Map<String, Value>,
}

/// Which reflections to list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReflectionQuery {
    /// Only those of this project.
    pub project_id: Option<String>,
    /// Only weak ones.
    pub weak: bool,
    /// Most of a page.
    pub limit: u32,
    /// Behind this one.
    pub after: Option<Cursor>,
}

/// What is common to the statements that read scores. `$1` is a project or null.
const SCORED: &str = "FROM reflections AS reflection \
                      JOIN reflection_scores AS grade ON grade.reflection = reflection.id \
                      WHERE (CAST($1 AS TEXT) IS NULL OR project_id = $1)";

fn document(row: &Columns<'_>) -> Result<Map<String, Value>, String> {
    serde_json::from_str(&row.text("document_json")?).map_err(|error| error.to_string())
}

fn read(row: &Columns<'_>) -> Result<StoredReflection, String> {
    Ok(StoredReflection {
        number: row.integer("id")?,
        project_id: row.text("project_id")?,
        reflection_id: row.text("reflection_id")?,
        agent: row.optional_text("agent"),
        loop_count: row.number("loop_count")?,
        made_at: row.time("made_at")?,
        document: document(row)?,
    })
}

fn unit(row: &Columns<'_>, name: &str) -> Result<f64, String> {
    let value = row.optional_float(name).ok_or_else(|| format!("{name} is no number"))?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(format!("{name} is {value}")) }
}

fn read_score(row: &Columns<'_>) -> Result<ReflectionScore, String> {
    Ok(ReflectionScore {
        project_id: row.text("project_id")?,
        reflection_id: row.text("reflection_id")?,
        agent: row.optional_text("agent"),
        loop_count: row.number("loop_count")?,
        score: unit(row, "score")?,
        threshold: unit(row, "threshold")?,
        weak: row.flag("weak")?,
        issues: serde_json::from_str(&row.text("issues_json")?)
            .map_err(|error| format!("issues_json: {error}"))?,
        timestamp: row.time("graded_at")?,
        made_at: row.time("made_at")?,
    })
}

impl Store {
    /// Keeps a reflection, and says whether it was new. Where the project has one of that id
    /// already, nothing is written and that one comes back: whether it says the same is for the
    /// caller to see.
    pub async fn add_reflection(
        &self,
        new: &NewReflection,
    ) -> Result<(StoredReflection, bool), StoreError> {
        let json = Value::Object(new.document.clone()).to_string();
        if json.len() > bound::JSON {
            return Err(StoreError::TooLarge {
                what: "the reflection".to_owned(),
                bytes: json.len(),
                limit: bound::JSON,
            });
        }
        let mut writing = self.begin().await?;
        // Counted and written while nobody else writes.
        let query = "INSERT INTO reflections \
                     (project_id, reflection_id, agent, loop_count, made_at, document_json) \
                     SELECT $1, $2, $3, COALESCE(CAST($4 AS BIGINT), 1 + \
                     (SELECT COUNT(*) FROM reflections WHERE project_id = $1)), $5, $6 \
                     WHERE NOT EXISTS (SELECT 1 FROM reflections \
                     WHERE project_id = $1 AND reflection_id = $2)";
        let done = sqlx::query(query)
            .bind(bound::text(&new.project_id, bound::NAME))
            .bind(bound::text(&new.reflection_id, bound::NAME))
            .bind(bound::optional(new.agent.as_deref(), bound::NAME))
            .bind(new.loop_count.map(count))
            .bind(time(new.made_at))
            .bind(json)
            .execute(&mut *writing)
            .await
            .map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        let kept = self.reflection(&new.project_id, &new.reflection_id).await?;
        let kept = kept.ok_or_else(|| StoreError::Row {
            place: self.place.clone(),
            what: "a reflection".to_owned(),
            why: "it is gone again".to_owned(),
        })?;
        Ok((kept, done.rows_affected() > 0))
    }

    /// The reflection of a project that has this id.
    pub async fn reflection(
        &self,
        project_id: &str,
        reflection_id: &str,
    ) -> Result<Option<StoredReflection>, StoreError> {
        let query = "SELECT * FROM reflections WHERE project_id = $1 AND reflection_id = $2";
        let query = sqlx::query(query)
            .bind(bound::text(project_id, bound::NAME))
            .bind(bound::text(reflection_id, bound::NAME));
        self.fetch_one(query, || "a reflection".to_owned(), read).await
    }

    /// The reflection of a project that was submitted last.
    pub async fn last_reflection(
        &self,
        project_id: &str,
    ) -> Result<Option<StoredReflection>, StoreError> {
        let query = "SELECT * FROM reflections WHERE project_id = $1 ORDER BY id DESC LIMIT 1";
        let query = sqlx::query(query).bind(bound::text(project_id, bound::NAME));
        self.fetch_one(query, || "the last reflection of a project".to_owned(), read).await
    }

    /// The score of a reflection, where it has one.
    pub async fn reflection_score(
        &self,
        number: i64,
    ) -> Result<Option<ReflectionScore>, StoreError> {
        let query = format!("SELECT * {SCORED} AND reflection.id = $2");
        let query =
            sqlx::query(sqlx::AssertSqlSafe(query)).bind(Option::<String>::None).bind(number);
        self.fetch_one(query, || "the score of a reflection".to_owned(), read_score).await
    }

    /// Keeps the score of a reflection in place of an older one. What the recovery hook was given
    /// stays known.
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
        sqlx::query(query)
            .bind(number)
            .bind(score.score)
            .bind(score.threshold)
            .bind(i16::from(score.weak))
            .bind(serde_json::to_string(&score.issues).unwrap_or_default())
            .bind(time(score.timestamp))
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(|error| self.failed(error))
    }

    /// Takes it upon the caller to tell the recovery hook of a weak reflection; `false` where
    /// somebody has done so already.
    pub async fn claim_recovery(
        &self,
        score: &ReflectionScore,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.set_told(score, Some(at), "told_at IS NULL").await
    }

    /// Gives a claim back: the hook could not be told.
    pub async fn release_recovery(&self, score: &ReflectionScore) -> Result<(), StoreError> {
        self.set_told(score, None, "told_at IS NOT NULL").await.map(drop)
    }

    async fn set_told(
        &self,
        score: &ReflectionScore,
        at: Option<Timestamp>,
        before: &str,
    ) -> Result<bool, StoreError> {
        let query = format!(
            "UPDATE reflection_scores SET told_at = $1 WHERE {before} AND reflection = \
             (SELECT id FROM reflections WHERE project_id = $2 AND reflection_id = $3)"
        );
        let done = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(at.map(time))
            .bind(bound::text(&score.project_id, bound::NAME))
            .bind(bound::text(&score.reflection_id, bound::NAME))
            .execute(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(done.rows_affected() > 0)
    }

    /// Scores, that of the reflection submitted last first.
    pub async fn reflection_scores(
        &self,
        asked: &ReflectionQuery,
    ) -> Result<Page<ReflectionScore>, StoreError> {
        self.reflection_page(asked, read_score).await
    }

    /// The same with what was submitted.
    pub async fn scored_reflections(
        &self,
        asked: &ReflectionQuery,
    ) -> Result<Page<WeakReflection>, StoreError> {
        let read = |row: &Columns<'_>| {
            Ok(WeakReflection { score: read_score(row)?, reflection: document(row)? })
        };
        self.reflection_page(asked, read).await
    }

    async fn reflection_page<T>(
        &self,
        asked: &ReflectionQuery,
        read: impl Fn(&Columns<'_>) -> Result<T, String>,
    ) -> Result<Page<T>, StoreError> {
        let weak = if asked.weak { "AND weak = 1" } else { "" };
        let query = format!(
            "SELECT * {SCORED} {weak} AND reflection.id < $2 ORDER BY reflection.id DESC LIMIT $3"
        );
        let after = asked.after.as_ref().and_then(|cursor| cursor.id.parse::<i64>().ok());
        let query = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(bound::optional(asked.project_id.as_deref(), bound::NAME))
            .bind(after.unwrap_or(i64::MAX))
            .bind(i64::from(asked.limit) + 1);
        // What is left out as unreadable is still a row that the next page begins behind.
        let rows = self
            .fetch(query, |row| {
                let id = row.integer("id")?.to_string();
                let place = Cursor { value: None, id, order: None };
                Ok((place, read(row).ok()))
            })
            .await?;
        let page = Page::of(rows.items, asked.limit, |(place, _)| place.clone());
        let items = page.items.into_iter().filter_map(|(_, item)| item).collect();
        Ok(Page { items, next: page.next })
    }

    /// The newest scores of a project that were submitted before that number, newest first.
    pub async fn reflection_history(
        &self,
        project_id: &str,
        before: i64,
        limit: u32,
    ) -> Result<Vec<f64>, StoreError> {
        let query = format!(
            "SELECT score {SCORED} AND reflection.id < $2 ORDER BY reflection.id DESC LIMIT $3"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(bound::text(project_id, bound::NAME))
            .bind(before)
            .bind(i64::from(limit));
        Ok(self.fetch(query, |row| unit(row, "score")).await?.items)
    }

    /// When reflections were made and what they scored, of one project or of all; those made last,
    /// at most `limit`, the newest first.
    pub async fn reflections_over_time(
        &self,
        project_id: Option<&str>,
        limit: u32,
    ) -> Result<Rows<ScoredAt>, StoreError> {
        let query = format!(
            "SELECT made_at, score, weak {SCORED} ORDER BY made_at DESC, reflection.id LIMIT $2"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(bound::optional(project_id, bound::NAME))
            .bind(i64::from(limit));
        let read = |row: &Columns<'_>| {
            Ok(ScoredAt {
                made_at: row.time("made_at")?,
                score: unit(row, "score")?,
                weak: row.flag("weak")?,
            })
        };
        self.fetch(query, read).await
    }

    /// The projects that have scores, summed up, those with the newest reflections first; all of
    /// them, at most `limit`, or only one.
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
        let query = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(bound::optional(project_id, bound::NAME))
            .bind(i64::from(limit));
        let read = |row: &Columns<'_>| {
            Ok(ProjectReflections {
                project_id: row.text("project_id")?,
                count: row.number("scores")?,
                // The sum of decimals in binary is off by a bit.
                average_score: (unit(row, "average")? * 1e6).round() / 1e6,
                weak: row.number("weak")?,
                newest: row.time("newest")?,
            })
        };
        self.fetch(query, read).await
    }
}
