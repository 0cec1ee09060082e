//! The table `skill_gaps`: one row for each gap, brought up to date when it is found again.

use jiff::Timestamp;
use sqlx::{AnyConnection, AssertSqlSafe};

use super::insert::AnyQuery;
use super::row::{Columns, Rows, count, time};
use super::{Store, StoreError, bound};
use selftest_grading::grade::{TaskType, Week};
use selftest_grading::improve::gap::{FoundGap, Gap, GapKind, GapStatus};

const COLUMNS: &str = "id, kind, gap_key, subject, detail, description, status, status_at, \
                       occurrences, sessions, weeks, first_seen, last_seen, attempts, last_fault, \
                       task_types_json, evidence_json";

fn select(rest: &str) -> AnyQuery<'static> {
    sqlx::query(AssertSqlSafe(format!("SELECT {COLUMNS} FROM skill_gaps {rest}")))
}

fn read(row: &Columns<'_>) -> Result<Gap, String> {
    let (kind, status) = (row.text("kind")?, row.text("status")?);
    let task_types: Vec<String> = json(row, "task_types_json")?;
    Ok(Gap {
        id: row.text("id")?,
        kind: GapKind::from_name(&kind).ok_or_else(|| format!("kind is {kind:?}"))?,
        key: row.text("gap_key")?,
        subject: row.text("subject")?,
        detail: row.optional_text("detail"),
        description: row.text("description")?,
        status: GapStatus::from_name(&status).ok_or_else(|| format!("status is {status:?}"))?,
        status_at: row.time("status_at")?,
        occurrences: row.number("occurrences")?,
        sessions: row.number("sessions")?,
        weeks: row.number("weeks")?,
        first_seen: row.time("first_seen")?,
        last_seen: row.time("last_seen")?,
        attempts: row.number("attempts")?,
        last_fault: row.optional_text("last_fault"),
        task_types: task_types.iter().filter_map(|name| TaskType::from_name(name)).collect(),
        evidence: json(row, "evidence_json")?,
    })
}

fn json<T: serde::de::DeserializeOwned>(row: &Columns<'_>, name: &str) -> Result<T, String> {
    serde_json::from_str(&row.text(name)?).map_err(|error| format!("{name}: {error}"))
}

impl Store {
    /// Keeps gaps that were found at that time: new ones as open, known ones with their latest
    /// numbers. What became of a known one stays, but for closed ones of `reopened`, by id.
    pub async fn save_gaps(
        &self,
        gaps: &[FoundGap],
        reopened: &[String],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let mut writing = self.begin().await?;
        for gap in gaps {
            save(&mut writing, gap, at).await.map_err(|error| self.failed(error))?;
        }
        for id in reopened {
            let query = "UPDATE skill_gaps SET status = $2, status_at = $3 \
                         WHERE id = $1 AND status = $4";
            sqlx::query(query)
                .bind(bound::text(id, bound::NAME))
                .bind(GapStatus::Open.name())
                .bind(time(at))
                .bind(GapStatus::Closed.name())
                .execute(&mut *writing)
                .await
                .map_err(|error| self.failed(error))?;
        }
        self.commit(writing).await
    }

    /// Gaps, at most `limit`: those of most sessions first; of one status, where one is given.
    pub async fn gaps(
        &self,
        status: Option<GapStatus>,
        limit: u64,
    ) -> Result<Rows<Gap>, StoreError> {
        let query = select(
            "WHERE (CAST($1 AS TEXT) IS NULL OR status = $1) \
             ORDER BY sessions DESC, occurrences DESC, id LIMIT $2",
        );
        self.fetch(query.bind(status.map(GapStatus::name)).bind(count(limit)), read).await
    }

    /// The open gaps in the order in which skills are drafted for them: those whose drafts failed
    /// least often first, so that three that always fail do not keep all others waiting.
    pub async fn open_gaps(&self) -> Result<Rows<Gap>, StoreError> {
        let query =
            select("WHERE status = $1 ORDER BY attempts, sessions DESC, occurrences DESC, id");
        self.fetch(query.bind(GapStatus::Open.name()), read).await
    }

    /// The gap of that id.
    pub async fn gap(&self, id: &str) -> Result<Option<Gap>, StoreError> {
        let query = select("WHERE id = $1").bind(bound::text(id, bound::NAME));
        self.fetch_one(query, || format!("the gap {id}"), read).await
    }

    /// Notes that no skill could be drafted for a gap, and why.
    pub async fn gap_failed(&self, id: &str, fault: &str) -> Result<(), StoreError> {
        let query = "UPDATE skill_gaps SET attempts = attempts + 1, last_fault = $2 WHERE id = $1";
        sqlx::query(query)
            .bind(bound::text(id, bound::NAME))
            .bind(bound::text(fault, bound::TEXT))
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(|error| self.failed(error))
    }
}

async fn save(
    connection: &mut AnyConnection,
    gap: &FoundGap,
    at: Timestamp,
) -> Result<(), sqlx::Error> {
    // The numbers of a week count once, however often it is looked at.
    let query = "INSERT INTO skill_gaps (id, kind, gap_key, subject, detail, description, status, \
                 status_at, occurrences, sessions, weeks, last_week, first_seen, last_seen, \
                 task_types_json, evidence_json) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1, $11, $8, $8, $12, $13) \
                 ON CONFLICT (id) DO UPDATE SET subject = excluded.subject, \
                 description = excluded.description, occurrences = excluded.occurrences, \
                 sessions = excluded.sessions, weeks = skill_gaps.weeks + \
                 CASE WHEN skill_gaps.last_week = excluded.last_week THEN 0 ELSE 1 END, \
                 last_week = excluded.last_week, last_seen = excluded.last_seen, \
                 task_types_json = excluded.task_types_json, \
                 evidence_json = excluded.evidence_json";
    let types: Vec<&str> = gap.task_types.iter().map(|one| one.name()).collect();
    let mut evidence = gap.evidence.clone();
    for one in &mut evidence {
        one.session_id = bound::text(&one.session_id, bound::NAME);
        one.words = bound::text(&one.words, bound::TEXT);
    }
    sqlx::query(query)
        .bind(gap.id())
        .bind(gap.kind.name())
        .bind(bound::text(&gap.key, bound::NAME))
        .bind(bound::text(&gap.subject, bound::NAME))
        .bind(bound::optional(gap.detail.as_deref(), bound::NAME))
        .bind(bound::text(&gap.description, bound::TEXT))
        .bind(GapStatus::Open.name())
        .bind(time(at))
        .bind(count(gap.occurrences))
        .bind(count(gap.sessions))
        .bind(Week::of(at).to_string())
        .bind(serde_json::json!(types).to_string())
        .bind(serde_json::json!(evidence).to_string())
        .execute(connection)
        .await
        .map(drop)
}
