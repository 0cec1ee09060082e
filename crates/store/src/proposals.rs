//! The table `skill_proposals`: drafted skills and the decisions on them.

use jiff::Timestamp;

use super::row::{Record as _, Rows, read_from, record};
use super::statement::{ToValue as _, params, stored_as};
use super::{Store, StoreError, bound};
use selftest_grading::improve::gap::GapStatus;
use selftest_grading::improve::proposal::{ProposalStatus, SkillProposal, SkillTest};

/// A decision on a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposalDecision {
    /// New status of the proposal.
    pub status: ProposalStatus,
    /// New status of its gap.
    pub gap: GapStatus,
    /// Reason for the decision.
    pub reason: Option<String>,
    /// File that the skill was written to.
    pub file: Option<String>,
    /// Time of the decision.
    pub at: Timestamp,
}

record!(SkillProposal, "skill_proposals", {
    id,
    gap_id,
    skill_name,
    description [bound::TEXT],
    skill_md [bound::JSON],
    status,
    model,
    prompt_digest,
    experiment as "experiment_json",
    created_at,
    decided_at,
    reason [bound::TEXT],
    file [bound::PATH],
});

stored_as! { Text:
    ProposalStatus => |status, _limit| status.name().to_owned(),
    SkillTest => |test, _limit| bound::json(test),
}
read_from! { |row, name|
    ProposalStatus => row.named(name, ProposalStatus::from_name),
    SkillTest => row.json(name),
}

impl Store {
    /// Saves a new proposal and marks its gap. Returns false, and saves nothing, if another process
    /// has already proposed a skill for the gap.
    pub async fn add_proposal(&self, proposal: &SkillProposal) -> Result<bool, StoreError> {
        let what = || format!("the skill {}", selftest_text::one_line(&proposal.skill_name, 80));
        StoreError::check_size(what, &proposal.skill_md, bound::JSON)?;
        let mut writing = self.begin_write().await?;
        // The conditional update claims the gap, so only one process can propose for it.
        let query = "UPDATE skill_gaps SET status = $2, status_at = $3, last_fault = NULL \
                     WHERE id = $1 AND status <> $2";
        let values = params![proposal.gap_id, GapStatus::Proposed, proposal.created_at];
        if writing.execute(query, values).await? == 0 {
            writing.roll_back().await?;
            return Ok(false);
        }
        writing.execute(SkillProposal::insert(), proposal.values()).await?;
        writing.commit().await?;
        Ok(true)
    }

    /// Returns up to `limit` proposals, newest first, optionally of one status.
    pub async fn proposals(
        &self,
        status: Option<ProposalStatus>,
        limit: u64,
    ) -> Result<Rows<SkillProposal>, StoreError> {
        let query = "WHERE (CAST($1 AS TEXT) IS NULL OR status = $1) \
                     ORDER BY created_at DESC, id LIMIT $2";
        self.find(query, params![status, limit]).await
    }

    /// Returns the proposal with that id.
    pub async fn proposal(&self, id: &str) -> Result<Option<SkillProposal>, StoreError> {
        self.find_one(&format!("the proposal {id}"), "WHERE id = $1", params![id]).await
    }

    /// Saves a decision on a proposal and its gap. Returns false, and changes nothing, if the
    /// proposal was already decided.
    pub async fn decide_proposal(
        &self,
        id: &str,
        made: &ProposalDecision,
    ) -> Result<bool, StoreError> {
        let mut writing = self.begin_write().await?;
        // Conditional, so that the first of two concurrent decisions wins.
        let query = "UPDATE skill_proposals SET status = $2, decided_at = $3, reason = $4, \
                     file = $5 WHERE id = $1 AND status = 'proposed'";
        let reason = made.reason.to_value(bound::TEXT);
        let file = made.file.to_value(bound::PATH);
        if writing.execute(query, params![id, made.status, made.at, reason, file]).await? == 0 {
            writing.roll_back().await?;
            return Ok(false);
        }
        let query = "UPDATE skill_gaps SET status = $2, status_at = $3 \
                     WHERE id = (SELECT gap_id FROM skill_proposals WHERE id = $1)";
        writing.execute(query, params![id, made.gap, made.at]).await?;
        writing.commit().await?;
        Ok(true)
    }
}
