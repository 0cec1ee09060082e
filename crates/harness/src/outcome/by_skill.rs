//! Groups the cases of a run by skill. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::loading::LoadingRates;
use super::{CaseResult, RunSummary};

/// The cases of one skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillResult {
    /// Name of the skill.
    pub skill: String,
    /// Counts over its finished cases; repeats count separately.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// How reliably the agent loaded the skill when it should. Absent if no case tests that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading: Option<LoadingRates>,
}

impl SkillResult {
    /// Groups the cases by skill, in the order of their first cases. Empty if no case belongs to a
    /// skill.
    pub fn all<'a>(cases: impl Iterator<Item = &'a CaseResult>) -> Vec<Self> {
        let mut found: Vec<(&str, Vec<&CaseResult>)> = Vec::new();
        for case in cases {
            let Some(skill) = case.skill.as_deref() else { continue };
            match found.iter_mut().find(|(name, _)| *name == skill) {
                Some((_, cases)) => cases.push(case),
                None => found.push((skill, vec![case])),
            }
        }
        found.into_iter().map(|(skill, cases)| Self::of(skill, &cases)).collect()
    }

    fn of(skill: &str, cases: &[&CaseResult]) -> Self {
        let mut summary = RunSummary::default();
        for case in cases {
            summary.add(case);
        }
        Self { skill: skill.to_owned(), summary, loading: LoadingRates::of(cases.iter().copied()) }
    }
}
