//! The tables `skill_gaps`, one row per gap, updated when the gap is found again, and
//! `skill_proposals`: drafted skills and the decisions on them.

use jiff::Timestamp;

use super::row::{Record as _, Rows, read_from, record};
use super::statement::{ToValue as _, params, stored_as};
use super::transaction::WriteTransaction;
use super::{Store, StoreError, bound};
use selftest_grading::grade::{TaskType, Week};
use selftest_grading::improve::gap::{
    DetectedGap, GapEvidence, GapKind, GapStatus, ProposalStatus, SkillGap, SkillProposal,
    SkillTest,
};

record!(SkillGap, "skill_gaps", {
    id,
    kind,
    key as "gap_key",
    subject,
    detail,
    description [bound::TEXT],
    status,
    status_at,
    occurrences,
    sessions,
    weeks,
    first_seen,
    last_seen,
    attempts,
    last_fault [bound::TEXT],
    task_types as "task_types_json",
    evidence as "evidence_json",
});

stored_as! { Text:
    GapKind => |kind, _limit| kind.name().to_owned(),
    GapStatus => |status, _limit| status.name().to_owned(),
    Vec<TaskType> => |types, _limit| {
        serde_json::json!(types.iter().map(|one| one.name()).collect::<Vec<_>>()).to_string()
    },
    Vec<GapEvidence> => |evidence, _limit| bound::json(evidence),
}
read_from! { |row, name|
    GapKind => row.named(name, GapKind::from_name),
    GapStatus => row.named(name, GapStatus::from_name),
    Vec<TaskType> => {
        let names: Vec<String> = row.json(name)?;
        Ok(names.iter().filter_map(|name| TaskType::from_name(name)).collect())
    },
    Vec<GapEvidence> => row.json(name),
}

impl Store {
    /// Saves gaps found at that time: new ones as open, known ones with their latest numbers. The
    /// status of a known gap is unchanged, except that closed gaps in `reopened` (by id) are opened
    /// again.
    pub async fn save_gaps(
        &self,
        gaps: &[DetectedGap],
        reopened: &[String],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let mut writing = self.begin_write().await?;
        for gap in gaps {
            save(&mut writing, gap, at).await?;
        }
        for id in reopened {
            let query = "UPDATE skill_gaps SET status = 'open', status_at = $2 \
                         WHERE id = $1 AND status = 'closed'";
            writing.execute(query, params![id, at]).await?;
        }
        writing.commit().await
    }

    /// Returns up to `limit` gaps, those with the most sessions first, optionally of one status.
    pub async fn gaps(
        &self,
        status: Option<GapStatus>,
        limit: u64,
    ) -> Result<Rows<SkillGap>, StoreError> {
        let query = "WHERE (CAST($1 AS TEXT) IS NULL OR status = $1) \
                     ORDER BY sessions DESC, occurrences DESC, id LIMIT $2";
        self.find(query, params![status, limit]).await
    }

    /// Returns the open gaps in drafting order. Gaps with the fewest failed drafts come first, so
    /// that a few that always fail do not block the others.
    pub async fn open_gaps(&self) -> Result<Rows<SkillGap>, StoreError> {
        let query = "WHERE status = 'open' ORDER BY attempts, sessions DESC, occurrences DESC, id";
        self.find(query, []).await
    }

    /// Returns the gap with that id.
    pub async fn gap(&self, id: &str) -> Result<Option<SkillGap>, StoreError> {
        self.find_one(&format!("the gap {id}"), "WHERE id = $1", params![id]).await
    }

    /// Records that drafting a skill for a gap failed, with the reason.
    pub async fn record_gap_failure(&self, id: &str, fault: &str) -> Result<(), StoreError> {
        let query = "UPDATE skill_gaps SET attempts = attempts + 1, last_fault = $2 WHERE id = $1";
        self.execute(query, params![id, fault.to_value(bound::TEXT)]).await.map(drop)
    }
}

async fn save(
    writing: &mut WriteTransaction,
    gap: &DetectedGap,
    at: Timestamp,
) -> Result<(), StoreError> {
    // Each week counts once, however often it is analyzed.
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
    // A list whose JSON is too long is stored as null, so its texts are cut before.
    let mut evidence = gap.evidence.clone();
    for one in &mut evidence {
        one.session_id = bound::text(&one.session_id, bound::NAME);
        one.words = bound::text(&one.words, bound::TEXT);
    }
    let values = params![
        gap.id(),
        gap.kind,
        gap.key,
        gap.subject,
        gap.detail,
        gap.description.to_value(bound::TEXT),
        GapStatus::Open,
        at,
        gap.occurrences,
        gap.sessions,
        Week::containing(at).to_string(),
        gap.task_types,
        evidence,
    ];
    writing.execute(query, values).await.map(drop)
}

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
        // Binding cuts a text to its limit, and half a skill must not be proposed.
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
