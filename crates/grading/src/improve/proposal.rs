//! A proposed skill as stored, and the result of its test.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

/// Decision on a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ProposalStatus {
    /// Waiting for a decision.
    Proposed,
    /// Its SKILL.md was written to a file. The user still has to install it.
    Accepted,
    /// Declined.
    Rejected,
}

selftest_text::named!(ProposalStatus);

/// Result of an experiment with a drafted skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SkillTest {
    /// Cases were run with and without the skill.
    Tested {
        /// One-sentence result with numbers.
        conclusion: String,
        /// Full numbers.
        details: Value,
    },
    /// The skill was not tested.
    NotTested {
        /// Reason why it was not tested.
        reason: String,
    },
}

impl SkillTest {
    /// Describes the result, or why the skill was not tested. May contain untrusted text.
    pub fn describe(&self) -> String {
        match self {
            SkillTest::Tested { conclusion, .. } => conclusion.clone(),
            SkillTest::NotTested { reason } => format!("not tested: {reason}"),
        }
    }
}

/// A proposed skill.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SkillProposal {
    /// Unique ID.
    pub id: String,
    /// ID of the gap that the skill should close.
    pub gap_id: String,
    /// Name of the skill.
    pub skill_name: String,
    /// Description of when an agent should use it.
    pub description: String,
    /// Content of the whole file. Untrusted text.
    pub skill_md: String,
    /// Decision on the proposal.
    pub status: ProposalStatus,
    /// Model that drafted it.
    pub model: String,
    /// SHA-256 of the request that produced the draft.
    pub prompt_digest: String,
    /// Result of its test; null if the row does not record one.
    pub experiment: Option<SkillTest>,
    /// Time of the draft.
    pub created_at: Timestamp,
    /// Time of the decision.
    pub decided_at: Option<Timestamp>,
    /// Reason for the decision.
    pub reason: Option<String>,
    /// Path that the accepted skill was written to.
    pub file: Option<String>,
}

/// Returns the ID of a proposal drafted for a gap at the given time.
pub fn proposal_id(gap_id: &str, created_at: Timestamp) -> String {
    let text = format!("{gap_id}\0{}", created_at.as_nanosecond());
    format!("proposal-{}", &selftest_text::digest::sha256_hex(text.as_bytes())[..12])
}
