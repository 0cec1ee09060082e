//! The test of a repository's skills as a document: the effects of each skill, computed from the
//! reports of its arms, and what became of the rules. Pure.

mod html;
mod junit;
mod markdown;
#[cfg(test)]
mod tests;
mod text;
mod words;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::comparison::experiment::{TreatmentEvidence, has_answer};
use crate::comparison::trials_where;
use crate::document::{CaseDocument, ReportDocument};
use selftest_harness::experiment::{ALPHA, Arm, Conclusion, ExperimentAnalysis, analyse};
use selftest_harness::outcome::CaseStatus;
use selftest_harness::outcome::skills::LoadingRates;
use selftest_harness::skill_test::{
    RuleFinding, RuleOutcome, SkillArm, SkillDifference, SkillEffects, SkillRule,
};
use selftest_stats::holm;
use selftest_text::wording::plural;

pub use html::render as html;
pub use junit::render as junit;
pub use markdown::{comment, render as markdown};
pub use text::render as text;

/// Version of [`SkillTestReport`].
pub const SKILL_TEST_VERSION: u32 = 1;

/// A test of the skills of a repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkillTestReport {
    /// Version of this format.
    pub version: u32,
    /// Id of the test.
    pub id: String,
    /// Start time.
    pub started_at: Timestamp,
    /// Version of the program.
    pub selftest_version: String,
    /// The branch that skills are compared with.
    pub base: Option<BaseBranch>,
    /// The rules.
    pub rules: Vec<SkillRule>,
    /// The currency of all costs; absent without prices.
    pub currency: Option<String>,
    /// Number of skills in the repository.
    pub skills_found: usize,
    /// The tested skills.
    pub skills: Vec<SkillTestResult>,
    /// The skills that were not tested, and why.
    pub not_tested: Vec<UntestedSkill>,
    /// What a maintainer should know, one line each.
    pub remarks: Vec<String>,
    /// The outcome.
    pub outcome: SkillTestOutcome,
}

/// The branch that skills are compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseBranch {
    /// Its name.
    pub name: String,
    /// The last commit that both branches have.
    pub commit: String,
}

/// A skill that was not tested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntestedSkill {
    /// Its name or path.
    pub skill: String,
    /// The reason.
    pub reason: UntestedReason,
    /// The reason, for display.
    pub why: String,
}

/// Why a skill was not tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UntestedReason {
    /// It does not differ from the other branch.
    Unchanged,
    /// Another shard tests it.
    OtherShard,
    /// It has no cases.
    NoCases,
    /// Its folder or its cases cannot be used.
    Refused,
    /// The test ended before.
    NotReached,
}

/// The outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillTestOutcome {
    /// Every tested skill meets every rule.
    Passed,
    /// A skill misses a rule.
    Failed,
    /// No skill misses a rule, but one is blocked, refused, undecided or was not reached.
    Inconclusive,
    /// Only changed skills were to be tested, and none is.
    NothingChanged,
    /// No skill has cases.
    NothingToTest,
    /// A model server gave no answer.
    ModelUnavailable,
    /// The user stopped it.
    Interrupted,
}

/// The results of one skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkillTestResult {
    /// Name of the skill, unique in the repository.
    pub skill: String,
    /// Its folder.
    pub path: String,
    /// How it differs from the other branch.
    pub difference: SkillDifference,
    /// SHA-256 of everything that decides the result, for a test that is resumed.
    pub digest: String,
    /// The model of the system under test, if several are compared.
    pub model: Option<String>,
    /// The arms.
    pub arms: Vec<ArmResult>,
    /// Tasks with the skill, against those without it.
    pub lift: Option<SkillEffect>,
    /// Tasks with the skill, against those with the one of the other branch.
    pub change: Option<SkillEffect>,
    /// Loading, against that of the skill of the other branch.
    pub loading: Option<SkillEffect>,
    /// The skill against itself: a difference here is a false alarm.
    pub again: Option<SkillEffect>,
    /// The skill beside a sibling, against the skill without it.
    pub siblings: Vec<SiblingEffect>,
    /// Evidence that the skill reached the arms that have it and no other.
    pub evidence: Option<TreatmentEvidence>,
    /// The reason why the results say nothing, if there is one.
    pub blocked: Option<String>,
    /// The reason why nothing is known about loading, if only tasks have results.
    pub unknown_loading: Option<String>,
    /// What became of the rules.
    pub rules: Vec<RuleFinding>,
}

/// One arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmResult {
    /// The arm.
    pub arm: SkillArm,
    /// Id of its run, which has a report of its own.
    pub run_id: String,
    /// Passed trials of tasks.
    pub passed: u32,
    /// Trials of tasks with a verdict.
    pub decided: u32,
    /// Trials of tasks.
    pub trials: u32,
    /// How reliably the skill was loaded. Absent if no case tests that.
    pub rates: Option<LoadingRates>,
    /// Mean time of the system under test in milliseconds.
    pub mean_ms: Option<f64>,
    /// Mean tokens of the system under test.
    pub mean_tokens: Option<f64>,
    /// Mean cost of a trial, over all models that have a price.
    pub mean_cost: Option<f64>,
    /// Tokens of all models in all trials.
    pub tokens: u64,
    /// Cost of all trials.
    pub cost: f64,
}

/// A difference between two arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkillEffect {
    /// The complete statistics.
    #[serde(flatten)]
    pub analysis: ExperimentAnalysis,
}

/// The effect of a sibling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiblingEffect {
    /// Name of the sibling.
    pub sibling: String,
    /// P-value of the exact test, corrected by Holm for all siblings.
    pub p_value: Option<f64>,
    /// True if the skill works worse beside it, beyond chance.
    pub interferes: bool,
    /// The skill beside the sibling, against the skill without it: tasks and loading together.
    pub effect: SkillEffect,
}

/// A skill whose arms have run.
#[derive(Debug, Clone)]
pub struct TestedSkill {
    /// Name of the skill, unique in the repository.
    pub name: String,
    /// Name of the folder in which it was laid.
    pub folder: String,
    /// Its folder.
    pub path: String,
    /// How it differs from the other branch.
    pub difference: SkillDifference,
    /// SHA-256 of everything that decides the result.
    pub digest: String,
    /// The model of the system under test, if several are compared.
    pub model: Option<String>,
}

impl SkillTestResult {
    /// Computes the effects from the reports of the arms, and decides the rules.
    pub fn new(
        tested: TestedSkill,
        arms: &[(SkillArm, ReportDocument)],
        rules: &[SkillRule],
    ) -> Self {
        let of =
            |arm: &SkillArm| arms.iter().find(|(other, _)| other == arm).map(|(_, report)| report);
        let (without, base, here) =
            (of(&SkillArm::Without), of(&SkillArm::Base), of(&SkillArm::Here));
        let evidence = |treatment: Option<&ReportDocument>| {
            let treatment = treatment?;
            let control =
                without.iter().flat_map(|report| &report.cases).filter(|case| is_task(case));
            let with = treatment.cases.iter().filter(|case| is_task(case));
            Some(TreatmentEvidence::of(&tested.folder, control, with))
        };
        let (of_here, of_base) = (evidence(here), evidence(base));
        let unread = of_here.as_ref().and_then(TreatmentEvidence::blocked);
        let was_read_before = of_base.as_ref().is_some_and(|evidence| evidence.used > 0);
        let has_leak = of_here.as_ref().is_some_and(|evidence| evidence.leaked > 0);
        // What is better than an arm that gave no answer is no better.
        let silent_base = of_base
            .as_ref()
            .filter(|evidence| evidence.silent.treatment > 0)
            .map(|_| "the agent gave no answer with the skill of the other branch".to_owned());
        let unknown_loading = here.and_then(loading_is_unknown);
        // A skill that the agent no longer reads, and did on the other branch, is a regression and no
        // missing treatment.
        let blocked = match &unread {
            Some(why) if has_leak || !was_read_before => Some(why.clone()),
            // Tasks have results of their own.
            _ if of_here.as_ref().is_some_and(|evidence| evidence.trials > 0) => None,
            _ => unknown_loading.clone().map(|why| format!("Blocked: {why}")),
        };
        let mut lift = effect(without, here, is_task);
        // A skill that was not read lifts nothing, also where that itself is the regression.
        if let (Some(lift), Some(_)) = (&mut lift, &unread) {
            (lift.analysis.conclusion, lift.analysis.scope) = (Conclusion::Blocked, None);
        }
        let change = effect(base, here, is_task);
        let loading = effect(base, here, |case| !is_task(case));
        let loading = loading.filter(|_| blocked.is_some() || unknown_loading.is_none());
        let again = effect(here, of(&SkillArm::Again), |_| true);
        let effects = SkillEffects {
            lift: lift.as_ref().map(|effect| &effect.analysis),
            change: change.as_ref().map(|effect| &effect.analysis),
            loading: loading.as_ref().map(|effect| &effect.analysis),
        };
        let is_short = arms
            .iter()
            .flat_map(|(_, report)| &report.cases)
            .any(|case| case.status == CaseStatus::NotRun);
        let short = is_short.then_some("not all trials were run");
        let why = blocked.as_deref().or(short);
        let decide = |rule: &SkillRule| {
            let mut finding = rule.decide(effects, why);
            // Not shown to be worse, but nothing of the skill was tested.
            let unmeasured = unread.as_ref().or(silent_base.as_ref());
            if let (RuleOutcome::Met, Some(why)) = (finding.outcome, unmeasured) {
                (finding.outcome, finding.why) = (RuleOutcome::Undecided, why.clone());
            }
            finding
        };
        let rules = rules.iter().map(decide).collect();
        // What did not reach the agent was not measured.
        let measured = |effect: Option<SkillEffect>| effect.filter(|_| blocked.is_none());
        let (change, loading, again) = (measured(change), measured(loading), measured(again));
        let TestedSkill { name, path, difference, digest, model, .. } = tested;
        Self {
            skill: name,
            path,
            difference,
            digest,
            model,
            siblings: siblings(arms, here),
            arms: arms.iter().map(|(arm, report)| ArmResult::of(arm, report)).collect(),
            lift,
            change,
            loading,
            again,
            evidence: of_here.filter(|evidence| evidence.trials > 0),
            unknown_loading: unknown_loading.filter(|_| blocked.is_none()),
            blocked,
            rules,
        }
    }

    /// Returns the outcome of this skill: missed if a rule is, else undecided if one is.
    pub fn outcome(&self) -> RuleOutcome {
        let has = |outcome| self.rules.iter().any(|finding| finding.outcome == outcome);
        match (has(RuleOutcome::Missed), has(RuleOutcome::Undecided)) {
            (true, _) => RuleOutcome::Missed,
            (false, true) => RuleOutcome::Undecided,
            (false, false) => RuleOutcome::Met,
        }
    }

    /// Returns the result of an arm.
    pub fn arm(&self, arm: &SkillArm) -> Option<&ArmResult> {
        self.arms.iter().find(|result| result.arm == *arm)
    }
}

/// Returns true for a case that gives a task, and false for one that only asks whether the skill is
/// loaded.
fn is_task(case: &CaseDocument) -> bool {
    case.generated().is_none_or(|generated| generated.should_load().is_none())
}

/// Compares the cases of two arms; `None` if one of them was not run or has no such case.
fn effect(
    control: Option<&ReportDocument>,
    treatment: Option<&ReportDocument>,
    keep: impl Fn(&CaseDocument) -> bool,
) -> Option<SkillEffect> {
    let mut trials = trials_where(control?, Arm::Control, &keep);
    trials.extend(trials_where(treatment?, Arm::Treatment, &keep));
    (!trials.is_empty()).then(|| SkillEffect { analysis: analyse(&trials) })
}

/// Returns why loading cannot be seen, if no prompt of the arm has a verdict.
fn loading_is_unknown(report: &ReportDocument) -> Option<String> {
    let mut prompts = report.cases.iter().filter(|case| !is_task(case) && !case.steps.is_empty());
    let first = prompts.next()?;
    let prompts: Vec<&CaseDocument> = std::iter::once(first).chain(prompts).collect();
    if !prompts.iter().any(|case| has_answer(case)) {
        return Some("the agent answered no prompt about loading".to_owned());
    }
    let is_known = prompts.iter().any(|case| has_answer(case) && case.pass.is_some());
    (!is_known).then(|| {
        "nothing shows whether the agent loads the skill, because it reports no tool calls (use \
         `sut.acp`, or `protocol: json_lines` with `tool_calls`)"
            .to_owned()
    })
}

fn siblings(
    arms: &[(SkillArm, ReportDocument)],
    here: Option<&ReportDocument>,
) -> Vec<SiblingEffect> {
    let mut found: Vec<SiblingEffect> = arms
        .iter()
        .filter_map(|(arm, report)| {
            let SkillArm::Lacking(sibling) = arm else { return None };
            let effect = effect(Some(report), here, |_| true)?;
            let p_value = effect.analysis.these_cases.pass_rate.map(|test| test.p_value);
            Some(SiblingEffect { sibling: sibling.clone(), p_value, interferes: false, effect })
        })
        .collect();
    // One test for each sibling: by chance one of twenty would look guilty.
    let corrected = holm(&found.iter().map(|one| one.p_value.unwrap_or(1.0)).collect::<Vec<_>>());
    for (sibling, p_value) in found.iter_mut().zip(corrected) {
        let test = sibling.effect.analysis.these_cases.pass_rate;
        sibling.p_value = sibling.p_value.map(|_| p_value);
        sibling.interferes = p_value <= ALPHA && test.is_some_and(|test| test.difference < 0.0);
    }
    found
}

impl ArmResult {
    fn of(arm: &SkillArm, report: &ReportDocument) -> Self {
        let tasks = || report.cases.iter().filter(|case| is_task(case));
        let count = |keep: fn(&CaseDocument) -> bool| {
            u32::try_from(tasks().filter(|case| keep(case)).count()).unwrap_or(u32::MAX)
        };
        let usage = || report.cases.iter().filter_map(|case| case.usage.as_ref());
        let costs: Vec<f64> = usage().filter_map(|usage| usage.total.cost).collect();
        let tokens = usage().map(|usage| {
            let total = &usage.total;
            total
                .prompt_tokens
                .saturating_add(total.completion_tokens)
                .saturating_add(total.undivided_tokens)
        });
        let trials = trials_where(report, Arm::Treatment, |_| true);
        let mean = |values: Vec<u64>| {
            let values: Vec<f64> = values.into_iter().map(real).collect();
            selftest_stats::mean(&values)
        };
        let cost: f64 = costs.iter().sum();
        Self {
            arm: arm.clone(),
            run_id: report.run_id.to_string(),
            passed: count(|case| case.pass == Some(true)),
            decided: count(|case| case.pass.is_some()),
            trials: count(|_| true),
            rates: report.loading.clone(),
            mean_ms: mean(trials.iter().filter_map(|trial| trial.duration_ms).collect()),
            mean_tokens: mean(trials.iter().filter_map(|trial| trial.tokens).collect()),
            mean_cost: selftest_stats::mean(&costs),
            tokens: tokens.fold(0, u64::saturating_add),
            cost,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds and tokens are far below 2^53")]
fn real(count: u64) -> f64 {
    count as f64
}

impl SkillTestReport {
    /// Returns the outcome of these results.
    pub fn outcome_of(
        skills: &[SkillTestResult],
        not_tested: &[UntestedSkill],
        only_changed: bool,
    ) -> SkillTestOutcome {
        let has = |outcome| skills.iter().any(|skill| skill.outcome() == outcome);
        let lacks = |reason| not_tested.iter().any(|skill| skill.reason == reason);
        let is_short = lacks(UntestedReason::Refused) || lacks(UntestedReason::NotReached);
        if has(RuleOutcome::Missed) {
            SkillTestOutcome::Failed
        } else if is_short || has(RuleOutcome::Undecided) {
            SkillTestOutcome::Inconclusive
        } else if !skills.is_empty() {
            SkillTestOutcome::Passed
        } else if only_changed || lacks(UntestedReason::OtherShard) {
            SkillTestOutcome::NothingChanged
        } else {
            SkillTestOutcome::NothingToTest
        }
    }

    /// Returns the result in one sentence.
    pub fn sentence(&self) -> String {
        let tested = format!(
            "{} of {} tested",
            self.skills.len(),
            plural(self.skills_found as u64, "skill")
        );
        let named = |outcome: RuleOutcome| {
            let names: Vec<&str> = self
                .skills
                .iter()
                .filter(|skill| skill.outcome() == outcome)
                .map(|skill| &*skill.skill)
                .collect();
            names.join(", ")
        };
        let rules: Vec<&str> = self.rules.iter().map(|rule| rule.name()).collect();
        let rules = rules.join(" and ");
        match self.outcome {
            SkillTestOutcome::Passed => format!("{tested}: all meet {rules}"),
            SkillTestOutcome::Failed => {
                format!("{tested}: {} missed by {}", rules, named(RuleOutcome::Missed))
            }
            SkillTestOutcome::Inconclusive => {
                let open = named(RuleOutcome::Undecided);
                let refused = self.not_tested.iter().filter(|skill| {
                    matches!(skill.reason, UntestedReason::Refused | UntestedReason::NotReached)
                });
                let refused: Vec<&str> = refused.map(|skill| &*skill.skill).collect();
                let mut parts = Vec::new();
                if !open.is_empty() {
                    parts.push(format!("undecided: {open}"));
                }
                if !refused.is_empty() {
                    parts.push(format!("not tested: {}", refused.join(", ")));
                }
                format!("{tested}: {}", parts.join("; "))
            }
            SkillTestOutcome::NothingChanged => match &self.base {
                Some(base) => {
                    let commit: String = base.commit.chars().take(9).collect();
                    format!("no skill with cases differs from {} ({commit})", base.name)
                }
                None => "there is no skill to test".to_owned(),
            },
            SkillTestOutcome::NothingToTest => "no skill has cases to test it with".to_owned(),
            SkillTestOutcome::ModelUnavailable => {
                format!("{tested}: a model server gave no answer")
            }
            SkillTestOutcome::Interrupted => format!("{tested}: interrupted"),
        }
    }
}
