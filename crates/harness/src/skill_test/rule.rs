//! The rules by which the test of a skill passes. Pure.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::{Conclusion, ExperimentAnalysis};

/// A rule that the results of a skill must meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillRule {
    /// The agent is better with the skill than without it, beyond chance.
    Lift,
    /// Neither tasks nor loading are worse than with the skill of the other branch, beyond chance. A
    /// new skill must not be worse than none.
    NoRegression,
}

impl SkillRule {
    /// All rules.
    pub const ALL: [Self; 2] = [Self::Lift, Self::NoRegression];

    /// Returns its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lift => "lift",
            Self::NoRegression => "no_regression",
        }
    }

    /// Returns what it demands.
    pub const fn demand(self) -> &'static str {
        match self {
            Self::Lift => {
                "better with the skill than without it, beyond chance (p of at most 0.05)"
            }
            Self::NoRegression => {
                "not worse than the other branch beyond chance, in tasks and in loading; a new skill \
                 not worse than none"
            }
        }
    }
}

/// Error for a name that no rule has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected lift or no_regression")]
pub struct SkillRuleError;

impl FromStr for SkillRule {
    type Err = SkillRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut rules = Self::ALL.into_iter();
        rules.find(|rule| rule.name() == text.trim()).ok_or(SkillRuleError)
    }
}

/// The measured effects of a skill. Absent if the two arms were not run.
#[derive(Debug, Clone, Copy, Default)]
pub struct SkillEffects<'a> {
    /// Tasks with the skill, against those without it.
    pub lift: Option<&'a ExperimentAnalysis>,
    /// Tasks with the skill, against those with the one of the other branch.
    pub change: Option<&'a ExperimentAnalysis>,
    /// Loading of the skill, against that of the other branch's.
    pub loading: Option<&'a ExperimentAnalysis>,
}

/// What became of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleOutcome {
    /// The results meet it.
    Met,
    /// They do not.
    Missed,
    /// The arms were not what they should have been, or gave no results.
    Undecided,
}

/// A rule, what became of it, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleFinding {
    /// The rule.
    pub rule: SkillRule,
    /// Whether the results meet it.
    pub outcome: RuleOutcome,
    /// The reason in a few words.
    pub why: String,
}

/// True if any case was decided in both arms.
fn has_results(analysis: &ExperimentAnalysis) -> bool {
    analysis.score.measure.cases.max(analysis.pass_rate.measure.cases) > 0
}

impl SkillRule {
    /// Decides whether the effects meet this rule. `blocked` is the reason why they say nothing, if
    /// there is one.
    pub fn decide(self, effects: SkillEffects<'_>, blocked: Option<&str>) -> RuleFinding {
        let finding = |outcome, why: &str| RuleFinding { rule: self, outcome, why: why.to_owned() };
        if let Some(why) = blocked {
            return finding(RuleOutcome::Undecided, why);
        }
        match self {
            Self::Lift => match effects.lift {
                None => finding(RuleOutcome::Undecided, "no case gives a task"),
                Some(lift) if !has_results(lift) => {
                    finding(RuleOutcome::Undecided, "no case has a verdict in both arms")
                }
                Some(lift) => match lift.conclusion {
                    Conclusion::Helps => {
                        finding(RuleOutcome::Met, "better with the skill than without it")
                    }
                    Conclusion::Harms => {
                        finding(RuleOutcome::Missed, "worse with the skill than without it")
                    }
                    Conclusion::NotEnoughEvidence => finding(
                        RuleOutcome::Missed,
                        "no lift is shown: not enough evidence for a difference",
                    ),
                    Conclusion::Blocked => finding(RuleOutcome::Undecided, "blocked"),
                },
            },
            Self::NoRegression => self.decide_regression(effects),
        }
    }

    fn decide_regression(self, effects: SkillEffects<'_>) -> RuleFinding {
        let finding = |outcome, why: String| RuleFinding { rule: self, outcome, why };
        // A new skill has nothing else to be compared with.
        let tasks = match (effects.change, effects.loading) {
            (None, None) => effects.lift.map(|lift| (lift, "than without the skill")),
            (change, _) => change.map(|change| (change, "than on the other branch")),
        };
        let loading =
            effects.loading.map(|loading| (loading, "loaded less well than on the other branch"));
        let compared: Vec<(&ExperimentAnalysis, String)> = tasks
            .map(|(analysis, than)| (analysis, format!("tasks are worse {than}")))
            .into_iter()
            .chain(loading.map(|(analysis, words)| (analysis, words.to_owned())))
            .collect();
        if compared.is_empty() {
            return finding(
                RuleOutcome::Met,
                "there is nothing that it could be worse than".to_owned(),
            );
        }
        if let Some((_, why)) =
            compared.iter().find(|(analysis, _)| analysis.conclusion == Conclusion::Harms)
        {
            return finding(RuleOutcome::Missed, why.clone());
        }
        if compared.iter().any(|(analysis, _)| analysis.conclusion == Conclusion::Blocked) {
            return finding(RuleOutcome::Undecided, "blocked".to_owned());
        }
        if compared.iter().any(|(analysis, _)| loses_verdicts(analysis)) {
            return finding(
                RuleOutcome::Undecided,
                "a case that had verdicts before has none here".to_owned(),
            );
        }
        if compared.iter().any(|(analysis, _)| !has_results(analysis)) {
            return finding(
                RuleOutcome::Undecided,
                "no case has a verdict in both arms".to_owned(),
            );
        }
        finding(RuleOutcome::Met, "nothing is worse beyond chance".to_owned())
    }
}

/// Returns true if a case has verdicts in the control arm only: what fails without a verdict would
/// not count.
fn loses_verdicts(analysis: &ExperimentAnalysis) -> bool {
    analysis
        .cases
        .iter()
        .any(|case| case.pass_rate.control.is_some() && case.pass_rate.treatment.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Arm, ExperimentTrial, analyse};

    /// Eight cases that pass in so many trials of each arm.
    fn analysis(control: bool, treatment: bool) -> ExperimentAnalysis {
        let trial = |case: u8, arm: Arm| ExperimentTrial {
            case: format!("case-{case}"),
            arm,
            overall: None,
            pass: Some(if arm == Arm::Control { control } else { treatment }),
            duration_ms: None,
            tokens: None,
        };
        let trials: Vec<ExperimentTrial> =
            (0..8).flat_map(|case| Arm::BOTH.map(|arm| trial(case, arm))).collect();
        analyse(&trials)
    }

    #[test]
    fn lift_must_be_shown() {
        let outcome = |lift: Option<&ExperimentAnalysis>| {
            SkillRule::Lift.decide(SkillEffects { lift, ..SkillEffects::default() }, None).outcome
        };
        assert_eq!(outcome(Some(&analysis(false, true))), RuleOutcome::Met);
        assert_eq!(outcome(Some(&analysis(true, false))), RuleOutcome::Missed);
        assert_eq!(outcome(Some(&analysis(true, true))), RuleOutcome::Missed);
        assert_eq!(outcome(Some(&analyse(&[]))), RuleOutcome::Undecided);
        assert_eq!(outcome(None), RuleOutcome::Undecided);
    }

    #[test]
    fn a_regression_is_one_in_tasks_or_in_loading() {
        let (worse, same) = (analysis(true, false), analysis(true, true));
        let decide = |lift, change, loading| {
            let effects = SkillEffects { lift, change, loading };
            SkillRule::NoRegression.decide(effects, None).outcome
        };
        assert_eq!(decide(None, Some(&same), Some(&same)), RuleOutcome::Met);
        assert_eq!(decide(None, Some(&worse), None), RuleOutcome::Missed);
        assert_eq!(decide(None, Some(&same), Some(&worse)), RuleOutcome::Missed);
        // With another version to compare with, no skill at all is no baseline.
        assert_eq!(decide(Some(&worse), Some(&same), None), RuleOutcome::Met);
        assert_eq!(decide(Some(&worse), None, None), RuleOutcome::Missed);
        assert_eq!(decide(None, None, None), RuleOutcome::Met);
        let blocked = SkillRule::NoRegression.decide(SkillEffects::default(), Some("no treatment"));
        assert_eq!(blocked.outcome, RuleOutcome::Undecided);
    }

    #[test]
    fn rules_have_names() {
        assert!(SkillRule::ALL.iter().all(|rule| rule.name().parse() == Ok(*rule)));
        assert!("better".parse::<SkillRule>().is_err());
    }
}
