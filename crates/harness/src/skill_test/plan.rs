//! Plans which skills are tested, in which arms, and in which order their trials run. Pure.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{SkillArm, SkillDifference, SkillRule};
use crate::experiment::ALPHA;
use crate::run::arms::ArmTrial;
use crate::run::arms::interleave;
use crate::run::shard::Shard;

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
    let ways: f64 = (1..=repeats).map(|at| f64::from(repeats + at) / f64::from(at)).product();
    let p = 2.0 / ways.powi(i32::try_from(cases).unwrap_or(i32::MAX));
    p.min(1.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use SkillArm::{Base, Here, Without};

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
}
