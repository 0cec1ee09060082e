//! Tests of the skills of a repository: the arms of each skill, the plan of all trials, and the rules
//! by which the results pass. Runs nothing.

mod plan;
mod rule;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use plan::{
    SkillFacts, SkillOmission, SkillTestOptions, SkillTestPlan, SkillTrials, plan_skill_tests,
};
pub use rule::{RuleFinding, RuleOutcome, SkillEffects, SkillRule};

/// One arm of the test of a skill. The siblings of the skill are loaded in all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillArm {
    /// Without the skill.
    Without,
    /// With the skill as it is on the branch that it is compared with.
    Base,
    /// With the skill as it is here.
    Here,
    /// The same again, to see how much the results differ without any change.
    Again,
    /// With the skill as it is here, and without this sibling.
    Lacking(String),
}

impl SkillArm {
    /// Returns true if the agent has the skill.
    pub const fn has_skill(&self) -> bool {
        !matches!(self, Self::Without)
    }
}

/// How a skill differs from the branch that it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillDifference {
    /// It is compared with nothing.
    Unknown,
    /// Nothing below its folder differs.
    Unchanged,
    /// Only its cases differ, which the agent does not get.
    CasesChanged,
    /// Its files differ.
    Changed,
    /// The other branch does not have it.
    New,
}

impl SkillDifference {
    /// Returns true if anything differs.
    pub const fn is_change(self) -> bool {
        matches!(self, Self::CasesChanged | Self::Changed | Self::New)
    }

    /// Returns the word for reports; empty if it is compared with nothing.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Unchanged => "unchanged",
            Self::CasesChanged => "cases changed",
            Self::Changed => "changed",
            Self::New => "new",
        }
    }
}
