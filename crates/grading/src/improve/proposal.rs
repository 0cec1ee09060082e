//! A proposed skill as it is kept, and what its test came to. Plain data.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

/// The decision of people on a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ProposalStatus {
    /// It waits for a decision.
    Proposed,
    /// Its SKILL.md was written to a file. It is in use only where somebody puts it to use.
    Accepted,
    /// It is not wanted.
    Rejected,
}

selftest_text::named!(ProposalStatus);

/// The result of an experiment with a drafted skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SkillTest {
    /// Cases were run without and with the skill.
    Tested {
        /// The result in one sentence, with its numbers.
        conclusion: String,
        /// All numbers.
        details: Value,
    },
    /// It was not tested, and why.
    NotTested {
        /// Why.
        reason: String,
    },
}

impl SkillTest {
    /// The result, or that there is none and why, in words. May hold foreign text.
    pub fn describe(&self) -> String {
        match self {
            SkillTest::Tested { conclusion, .. } => conclusion.clone(),
            SkillTest::NotTested { reason } => format!("not tested: {reason}"),
        }
    }
}

/// A proposed skill.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Proposal {
    /// Unique.
    pub id: String,
    /// The gap that it is to close.
    pub gap_id: String,
    /// Name of the skill.
    pub skill_name: String,
    /// When an agent is to use it.
    pub description: String,
    /// The whole file. Foreign text.
    pub skill_md: String,
    /// The decision of people on it.
    pub status: ProposalStatus,
    /// The model that drafted it.
    pub model: String,
    /// SHA-256 of the request that it was drafted by.
    pub prompt_digest: String,
    /// The result of its test; null where the row does not say.
    pub experiment: Option<SkillTest>,
    /// When it was drafted.
    pub created_at: Timestamp,
    /// When it was decided upon.
    pub decided_at: Option<Timestamp>,
    /// Why so.
    pub reason: Option<String>,
    /// Where the accepted skill was written.
    pub file: Option<String>,
}

/// The id of a proposal that was drafted for that gap at that time.
pub fn proposal_id(gap_id: &str, created_at: Timestamp) -> String {
    let text = format!("{gap_id}\0{}", created_at.as_nanosecond());
    format!("proposal-{}", &selftest_text::digest::of_bytes(text.as_bytes())[..12])
}
