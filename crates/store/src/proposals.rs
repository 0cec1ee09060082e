//! The table `skill_proposals`: drafted skills, and what people have said of them.

use jiff::Timestamp;
use sqlx::AssertSqlSafe;

use super::insert::AnyQuery;
use super::row::{Columns, Rows, count, time};
use super::{Store, StoreError, bound};
use selftest_grading::improve::gap::GapStatus;
use selftest_grading::improve::proposal::{Proposal, ProposalStatus};

/// What somebody decided about a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What becomes of the proposal.
    pub status: ProposalStatus,
    /// What becomes of its gap.
    pub gap: GapStatus,
    /// Why.
    pub reason: Option<String>,
    /// Where the skill was written.
    pub file: Option<String>,
    /// When.
    pub at: Timestamp,
}

const COLUMNS: &str = "id, gap_id, skill_name, description, skill_md, status, model, \
                       prompt_digest, experiment_json, created_at, decided_at, reason, file";

fn select(rest: &str) -> AnyQuery<'static> {
    sqlx::query(AssertSqlSafe(format!("SELECT {COLUMNS} FROM skill_proposals {rest}")))
}

fn read(row: &Columns<'_>) -> Result<Proposal, String> {
    let status = row.text("status")?;
    Ok(Proposal {
        id: row.text("id")?,
        gap_id: row.text("gap_id")?,
        skill_name: row.text("skill_name")?,
        description: row.text("description")?,
        skill_md: row.text("skill_md")?,
        status: ProposalStatus::from_name(&status)
            .ok_or_else(|| format!("status is {status:?}"))?,
        model: row.text("model")?,
        prompt_digest: row.text("prompt_digest")?,
        experiment: row
            .optional_text("experiment_json")
            .and_then(|experiment| serde_json::from_str(&experiment).ok()),
        created_at: row.time("created_at")?,
        decided_at: row.optional_time("decided_at"),
        reason: row.optional_text("reason"),
        file: row.optional_text("file"),
    })
}

impl Store {
    /// Keeps a new proposal and marks its gap. Whether the gap waited for one: where another
    /// process was faster nothing is kept.
    pub async fn add_proposal(&self, proposal: &Proposal) -> Result<bool, StoreError> {
        if proposal.skill_md.len() > bound::JSON {
            return Err(StoreError::TooLarge {
                what: format!("the skill {}", selftest_text::one_line(&proposal.skill_name, 80)),
                bytes: proposal.skill_md.len(),
                limit: bound::JSON,
            });
        }
        let mut writing = self.begin().await?;
        let query = "UPDATE skill_gaps SET status = $2, status_at = $3, last_fault = NULL \
                     WHERE id = $1 AND status <> $2";
        let marked = sqlx::query(query)
            .bind(bound::text(&proposal.gap_id, bound::NAME))
            .bind(GapStatus::Proposed.name())
            .bind(time(proposal.created_at))
            .execute(&mut *writing)
            .await
            .map_err(|error| self.failed(error))?;
        if marked.rows_affected() == 0 {
            self.roll_back(writing).await?;
            return Ok(false);
        }
        let query = "INSERT INTO skill_proposals (id, gap_id, skill_name, description, skill_md, \
                     status, model, prompt_digest, experiment_json, created_at) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        let experiment = serde_json::to_string(&proposal.experiment).ok();
        sqlx::query(query)
            .bind(bound::text(&proposal.id, bound::NAME))
            .bind(bound::text(&proposal.gap_id, bound::NAME))
            .bind(bound::text(&proposal.skill_name, bound::NAME))
            .bind(bound::text(&proposal.description, bound::TEXT))
            .bind(bound::text(&proposal.skill_md, bound::JSON))
            .bind(proposal.status.name())
            .bind(bound::text(&proposal.model, bound::NAME))
            .bind(bound::text(&proposal.prompt_digest, bound::NAME))
            .bind(bound::json(experiment.as_deref()))
            .bind(time(proposal.created_at))
            .execute(&mut *writing)
            .await
            .map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(true)
    }

    /// Proposals, at most `limit`, newest first; of one status, where one is given.
    pub async fn proposals(
        &self,
        status: Option<ProposalStatus>,
        limit: u64,
    ) -> Result<Rows<Proposal>, StoreError> {
        let query = select(
            "WHERE (CAST($1 AS TEXT) IS NULL OR status = $1) ORDER BY created_at DESC, id LIMIT $2",
        );
        self.fetch(query.bind(status.map(ProposalStatus::name)).bind(count(limit)), read).await
    }

    /// The proposal of that id.
    pub async fn proposal(&self, id: &str) -> Result<Option<Proposal>, StoreError> {
        let query = select("WHERE id = $1").bind(bound::text(id, bound::NAME));
        self.fetch_one(query, || format!("the proposal {id}"), read).await
    }

    /// Keeps a decision on a proposal and its gap. Whether the proposal waited for one: else
    /// nothing is changed.
    pub async fn decide_proposal(&self, id: &str, made: &Decision) -> Result<bool, StoreError> {
        let mut writing = self.begin().await?;
        let query = "UPDATE skill_proposals SET status = $2, decided_at = $3, reason = $4, \
                     file = $5 WHERE id = $1 AND status = $6";
        let decided = sqlx::query(query)
            .bind(bound::text(id, bound::NAME))
            .bind(made.status.name())
            .bind(time(made.at))
            .bind(bound::optional(made.reason.as_deref(), bound::TEXT))
            .bind(bound::optional(made.file.as_deref(), bound::PATH))
            .bind(ProposalStatus::Proposed.name())
            .execute(&mut *writing)
            .await
            .map_err(|error| self.failed(error))?;
        if decided.rows_affected() == 0 {
            self.roll_back(writing).await?;
            return Ok(false);
        }
        let query = "UPDATE skill_gaps SET status = $2, status_at = $3 \
                     WHERE id = (SELECT gap_id FROM skill_proposals WHERE id = $1)";
        sqlx::query(query)
            .bind(bound::text(id, bound::NAME))
            .bind(made.gap.name())
            .bind(time(made.at))
            .execute(&mut *writing)
            .await
            .map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(true)
    }
}
