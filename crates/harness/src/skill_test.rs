//! Tests of the skills of a repository: the arms of each skill, the plan of all trials, and the rules
//! by which the results pass. Runs nothing.

use std::collections::BTreeSet;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::{ALPHA, Conclusion, ExperimentAnalysis};
use crate::run::arms::{ArmTrial, interleave};
use crate::run::plan::Shard;

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

/// Numbers of repeats that are tried to find one that is enough.
const MAX_REPEATS: u32 = 50;

/// What is known of a skill before its trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFacts {
    /// Its name, unique in the repository.
    pub name: String,
    /// How it differs from the branch that it is compared with.
    pub difference: SkillDifference,
    /// Number of cases that give the agent a task.
    pub tasks: usize,
    /// Number of prompts that ask only whether the agent loads the skill.
    pub prompts: usize,
    /// Names of the other skills.
    pub siblings: Vec<String>,
}

/// Options of a test of skills.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkillTestOptions {
    /// True to test only skills that differ from the other branch.
    pub changed: bool,
    /// Number of times to run each case in each arm.
    pub repeats: u32,
    /// True to test the skill against itself too.
    pub again: bool,
    /// True to test the skill without each of its siblings too.
    pub interference: bool,
    /// The share of the skills to test.
    pub shard: Option<Shard>,
    /// The rules that the results must meet.
    pub rules: Vec<SkillRule>,
}

/// Why a skill is not tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillOmission {
    /// It does not differ, and only those that do are tested.
    Unchanged,
    /// It has no cases.
    NoCases,
    /// It belongs to another shard.
    OtherShard,
}

/// The skills to test.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkillTestPlan {
    /// The trials of each skill, by its position among all.
    pub tests: Vec<(usize, SkillTrials)>,
    /// Positions of skills that are not tested.
    pub left_out: Vec<(usize, SkillOmission)>,
}

/// The trials of one skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillTrials {
    /// The arms.
    pub arms: Vec<SkillArm>,
    /// Number of tasks of each arm.
    pub tasks: usize,
    /// Number of prompts of each arm with the skill.
    pub prompts: usize,
    /// Number of times to run each of them.
    pub repeats: u32,
}

/// Plans the tests of these skills.
pub fn plan_skill_tests(skills: &[SkillFacts], options: &SkillTestOptions) -> SkillTestPlan {
    let mut plan = SkillTestPlan::default();
    let mut tests = Vec::new();
    for (position, skill) in skills.iter().enumerate() {
        if options.changed && !skill.difference.is_change() {
            plan.left_out.push((position, SkillOmission::Unchanged));
        } else if skill.tasks + skill.prompts == 0 {
            plan.left_out.push((position, SkillOmission::NoCases));
        } else {
            tests.push(position);
        }
    }
    // Shares are made of the skills that have trials, so that they are of equal size.
    let own: Option<BTreeSet<&str>> = options
        .shard
        .map(|shard| shard.own_ids(tests.iter().map(|&position| skills[position].name.as_str())));
    for position in tests {
        let skill = &skills[position];
        if own.as_ref().is_some_and(|own| !own.contains(skill.name.as_str())) {
            plan.left_out.push((position, SkillOmission::OtherShard));
        } else {
            plan.tests.push((position, SkillTrials::new(skill, options)));
        }
    }
    // Left out by two loops, and listed in the order of the skills.
    plan.left_out.sort_by_key(|(position, _)| *position);
    plan
}

impl SkillTestPlan {
    /// Returns the number of trials of all skills.
    pub fn trials(&self) -> usize {
        self.tests.iter().map(|(_, trials)| trials.count()).sum()
    }
}

impl SkillTrials {
    fn new(skill: &SkillFacts, options: &SkillTestOptions) -> Self {
        let mut arms = Vec::new();
        // A prompt asks whether the skill is loaded, which no agent without it can do.
        if skill.tasks > 0 {
            arms.push(SkillArm::Without);
        }
        // What does not differ would be tested twice.
        if skill.difference == SkillDifference::Changed {
            arms.push(SkillArm::Base);
        }
        arms.push(SkillArm::Here);
        if options.again {
            arms.push(SkillArm::Again);
        }
        if options.interference {
            arms.extend(skill.siblings.iter().cloned().map(SkillArm::Lacking));
        }
        let (tasks, prompts) = (skill.tasks, skill.prompts);
        Self { arms, tasks, prompts, repeats: options.repeats }
    }

    /// Returns the number of trials.
    pub fn count(&self) -> usize {
        let with_skill = self.arms.iter().filter(|arm| arm.has_skill()).count();
        (self.tasks * self.arms.len() + self.prompts * with_skill) * self.repeats as usize
    }

    /// Returns the order of all trials. In the plan of an arm all rounds of its tasks come first, and
    /// then all rounds of its prompts.
    pub fn order(&self, seed: u64) -> Vec<ArmTrial> {
        let Self { arms, tasks, prompts, repeats } = self;
        let all: Vec<usize> = (0..arms.len()).collect();
        let loading: Vec<usize> =
            all.iter().copied().filter(|&arm| arms[arm].has_skill()).collect();
        let of_tasks = interleave(*tasks, *repeats, all.len(), seed);
        // Another seed: with the same one, tasks and prompts would be shuffled alike.
        let of_prompts = interleave(*prompts, *repeats, loading.len(), seed.wrapping_add(1));
        let first = tasks * *repeats as usize;
        let of_tasks =
            of_tasks.iter().map(|slot| ArmTrial { arm: slot.arm, position: slot.position(*tasks) });
        let of_prompts = of_prompts.iter().map(|slot| ArmTrial {
            arm: loading[slot.arm],
            position: first + slot.position(*prompts),
        });
        of_tasks.chain(of_prompts).collect()
    }

    /// Returns why these trials cannot meet a rule whatever comes out of them, and what it needs.
    pub fn obstacle(&self, rule: SkillRule) -> Option<String> {
        let Self { tasks, repeats, .. } = self;
        match rule {
            SkillRule::Lift if *tasks == 0 => {
                Some("lift needs a case that gives a task; prompts alone show no lift".to_owned())
            }
            SkillRule::Lift if smallest_p(*tasks, *repeats) > ALPHA => {
                let enough =
                    (*repeats..=MAX_REPEATS).find(|&more| smallest_p(*tasks, more) <= ALPHA);
                let enough = enough.unwrap_or(MAX_REPEATS);
                Some(format!(
                    "lift needs a difference beyond chance (p of at most {ALPHA}), and {tasks} x \
                     {repeats} trials of each arm cannot have one below p = {:.2}; it needs \
                     --repeats {enough}",
                    smallest_p(*tasks, *repeats)
                ))
            }
            SkillRule::Lift | SkillRule::NoRegression => None,
        }
    }

    /// Returns why a regression would not be found, however large; `None` if one can be.
    pub fn blind_spot(&self) -> Option<String> {
        let Self { tasks, prompts, repeats, .. } = self;
        // One of the two tests is enough to find a regression.
        let least = smallest_p(*tasks, *repeats).min(smallest_p(*prompts, *repeats));
        let cases = (*tasks).max(*prompts);
        let enough = (*repeats..=MAX_REPEATS).find(|&more| smallest_p(cases, more) <= ALPHA);
        (least > ALPHA).then(|| {
            format!(
                "no regression can be found, however large: {cases} x {repeats} trials of each arm \
                 cannot have one below p = {least:.2}; it takes --repeats {}",
                enough.unwrap_or(MAX_REPEATS)
            )
        })
    }
}

/// Returns the smallest two-sided p-value of the exact test on two arms: 2 of all ways to share out
/// the trials of each case.
fn smallest_p(cases: usize, repeats: u32) -> f64 {
    // The binomial coefficient of 2 * repeats over repeats, as a product that stays finite for
    // longer than factorials do.
    let ways: f64 = (1..=repeats).map(|at| f64::from(repeats + at) / f64::from(at)).product();
    let p = 2.0 / ways.powi(i32::try_from(cases).unwrap_or(i32::MAX));
    p.min(1.0)
}

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
                    // The rule demands a proof; without enough trials there is none, and `obstacle`
                    // says so beforehand.
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
        // Only now: harm that is certain in one comparison outweighs what is missing in another.
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
    use std::collections::BTreeMap;

    use SkillArm::{Base, Here, Without};

    use super::*;
    use crate::experiment::{Arm, ExperimentTrial, analyse};

    fn skill(name: &str, difference: SkillDifference) -> SkillFacts {
        let siblings = vec!["harbour".to_owned(), "tide".to_owned()];
        SkillFacts { name: name.to_owned(), difference, tasks: 2, prompts: 3, siblings }
    }

    fn options() -> SkillTestOptions {
        SkillTestOptions {
            changed: true,
            repeats: 4,
            again: false,
            interference: false,
            shard: None,
            rules: vec![SkillRule::NoRegression],
        }
    }

    #[test]
    fn changed_skills_are_tested_in_three_arms() {
        let skills = [
            skill("a", SkillDifference::Unchanged),
            skill("b", SkillDifference::Changed),
            skill("c", SkillDifference::New),
            SkillFacts { tasks: 0, prompts: 0, ..skill("d", SkillDifference::Changed) },
            SkillFacts { tasks: 0, ..skill("e", SkillDifference::CasesChanged) },
        ];
        let plan = plan_skill_tests(&skills, &options());
        let left_out = [(0, SkillOmission::Unchanged), (3, SkillOmission::NoCases)];
        assert_eq!(plan.left_out, left_out);
        let arms: Vec<&[SkillArm]> = plan.tests.iter().map(|(_, test)| &test.arms[..]).collect();
        assert_eq!(arms, [&[Without, Base, Here][..], &[Without, Here], &[Here]]);
        // 2 tasks in three arms and 3 prompts in two, four times.
        assert_eq!(plan.tests[0].1.count(), 48);
        let all = plan_skill_tests(&skills, &SkillTestOptions { changed: false, ..options() });
        assert_eq!(all.tests.len(), 4);
        assert_eq!(all.tests[0].1.arms, [Without, Here], "it would be the same twice");
    }

    #[test]
    fn further_arms_on_request() {
        let options = SkillTestOptions { again: true, interference: true, ..options() };
        let plan = plan_skill_tests(&[skill("a", SkillDifference::New)], &options);
        let lacking = |name: &str| SkillArm::Lacking(name.to_owned());
        assert_eq!(
            plan.tests[0].1.arms,
            [
                SkillArm::Without,
                SkillArm::Here,
                SkillArm::Again,
                lacking("harbour"),
                lacking("tide")
            ]
        );
    }

    #[test]
    fn each_trial_of_each_arm_runs_once() {
        let plan = plan_skill_tests(&[skill("a", SkillDifference::Changed)], &options());
        let test = &plan.tests[0].1;
        let order = test.order(7);
        assert_eq!(order.len(), test.count());
        let mut of_arm: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for trial in &order {
            of_arm.entry(trial.arm).or_default().push(trial.position);
        }
        let positions: Vec<Vec<usize>> = of_arm
            .into_values()
            .map(|mut positions| {
                positions.sort_unstable();
                positions
            })
            .collect();
        let up_to = |count: usize| (0..count).collect::<Vec<_>>();
        assert_eq!(positions, [up_to(8), up_to(20), up_to(20)]);
        assert_eq!(test.order(7), order);
    }

    #[test]
    fn shards_share_out_the_tested_skills() {
        let names = ["a", "b", "c", "d", "e"];
        let skills = names.map(|name| skill(name, SkillDifference::Changed));
        let of = |shard: &str| {
            let options = SkillTestOptions { shard: Some(shard.parse().unwrap()), ..options() };
            plan_skill_tests(&skills, &options).tests.len()
        };
        let sizes = [of("1/2"), of("2/2")];
        assert_eq!(sizes.iter().sum::<usize>(), 5);
        assert!(sizes[0].abs_diff(sizes[1]) <= 1);
    }

    #[test]
    fn a_rule_says_what_it_needs() {
        let test = |tasks: usize, repeats: u32| SkillTrials {
            arms: vec![SkillArm::Without, SkillArm::Here],
            tasks,
            prompts: 0,
            repeats,
        };
        assert_eq!(test(8, 1).obstacle(SkillRule::Lift), None);
        assert_eq!(test(1, 4).obstacle(SkillRule::Lift), None);
        let short = test(1, 2).obstacle(SkillRule::Lift).unwrap();
        assert!(short.contains("below p = 0.33; it needs --repeats 4"), "{short}");
        assert!(test(0, 9).obstacle(SkillRule::Lift).unwrap().contains("gives a task"));
        assert_eq!(test(1, 2).obstacle(SkillRule::NoRegression), None);
        assert!(test(1, 2).blind_spot().unwrap().contains("it takes --repeats 4"));
        assert_eq!(test(3, 2).blind_spot(), None);
    }

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
