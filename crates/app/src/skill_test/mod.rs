//! Tests the skills of a repository: finds them, compares them with another branch, plans the trials
//! and runs them skill by skill.

mod arms;
mod base;
pub(crate) mod inventory;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::anyhow;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use self::arms::{SkillArms, asks_loading, check_takes_folders};
use self::base::{BaseCommit, BaseSkill, GitRepository, SkillOnBase};
use self::inventory::SkillInventory;
use self::state::SkillTestState;
use super::setup::with_sut;
use crate::error::AppError;
use crate::experiment::to_hide;
use crate::options::{RunSettings, TrialSettings};
use crate::project::Project;
use crate::run::plan_cases;
use crate::skill_file::SKILL_FILE;
use crate::suite_file::SuiteFile;
use selftest_checks::evals::folder;
use selftest_config::ResolvedConfig;
use selftest_harness::run::runner::RunLimits;
use selftest_harness::skill_test::{
    SkillArm, SkillDifference, SkillFacts, SkillOmission, SkillTestOptions, SkillTestPlan,
    SkillTrials, plan_skill_tests,
};
use selftest_harness::sut::namespace::RunId;
use selftest_harness::sut::skill::{PERSONAL_FILES, check_hermetic, project_folders};
use selftest_reports::skill_test::{
    BaseBranch, SKILL_TEST_VERSION, SkillTestOutcome, SkillTestReport, SkillTestResult,
    TestedSkill, UntestedReason, UntestedSkill,
};
use selftest_text::one_line;
use selftest_text::wording::plural;
use state::with_model;

/// Options of a test of skills.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SkillTestSettings {
    /// Skills, or folders that hold some; all of the project if empty.
    pub paths: Vec<PathBuf>,
    /// The branch to compare with; the one that CI or git names if absent.
    pub against: Option<String>,
    /// What is tested and when it passes.
    pub options: SkillTestOptions,
    /// Models of the system under test to compare; the configured one if empty.
    pub models: Vec<String>,
    /// Options of each arm.
    pub trials: TrialSettings,
    /// Limits of the whole test.
    // Each start of a test has its own.
    #[serde(skip)]
    pub limits: RunLimits,
}

impl SkillTestSettings {
    /// Returns the options of a run like each of the arms.
    pub fn run(&self) -> RunSettings {
        RunSettings {
            // For the description of the system under test alone: the cases come from the skills.
            suite: None,
            repeats: self.options.repeats,
            trials: self.trials.clone(),
            ..RunSettings::default()
        }
    }
}

/// A test that can be run.
pub struct SkillTest<'a> {
    project: &'a Project,
    resolved: ResolvedConfig,
    settings: SkillTestSettings,
    id: String,
    started_at: Timestamp,
    inventory: SkillInventory,
    base: Option<BaseCommit>,
    /// The skills that may be tested, in the order of `facts`.
    candidates: Vec<Candidate>,
    plan: SkillTestPlan,
    not_tested: Vec<UntestedSkill>,
    remarks: Vec<String>,
    state: SkillTestState,
}

/// A skill that may be tested.
struct Candidate {
    /// Position in the inventory.
    position: usize,
    facts: SkillFacts,
    base: Option<BaseSkill>,
    /// Its cases; absent if it has none, or if they are not needed.
    suite: Option<SuiteFile>,
}

/// The runs of the arms of a skill, by skill and model.
type RunningArms = BTreeMap<String, Vec<RunId>>;

/// A finished test.
#[derive(Debug)]
pub struct FinishedSkillTest {
    /// The report.
    pub report: SkillTestReport,
    /// Reports of arms that could not be written.
    pub faults: Vec<String>,
}

impl<'a> SkillTest<'a> {
    /// Finds the skills and plans their trials. Nothing is run. `resumed` names a test that was
    /// interrupted: its settings count.
    pub async fn prepare(
        project: &'a Project,
        resolved: &ResolvedConfig,
        settings: SkillTestSettings,
        resumed: Option<&str>,
    ) -> Result<Self, AppError> {
        let mut resolved = resolved.clone();
        let (state, settings) = match resumed {
            None => (SkillTestState::new(project, &resolved, &settings), settings),
            Some(named) => {
                let state = SkillTestState::load(project, &resolved, named)?;
                let differ = settings.trials.given_differently(&state.settings().trials);
                if !differ.is_empty() {
                    let (id, flags) = (state.id(), differ.join(", "));
                    let error = anyhow!("--resume: the test {id} was started with another {flags}");
                    return Err(AppError::usage(error).hint(Some(
                        "leave the option out, since those of the first start count, or start a new test",
                    )));
                }
                let concurrency = settings.trials.concurrency;
                let mut earlier = SkillTestSettings { limits: settings.limits, ..state.settings() };
                earlier.trials.concurrency = concurrency.or(earlier.trials.concurrency);
                // Its options set keys of the configuration too.
                resolved = project.load(earlier.run().flags())?;
                (state, earlier)
            }
        };
        // A test of skills needs a system under test that can load one.
        let resolved = with_sut(project, &resolved, true).await.into_owned();
        check_takes_folders(&resolved)?;
        if let Some(program) = resolved.config.sut.program() {
            let (section, own) =
                (resolved.config.sut.program_section(), &project.environment.variables);
            check_hermetic(program, section, own, &project.folder)?;
        }
        if settings.limits.cost.is_some() && resolved.config.prices.models.is_empty() {
            let error = anyhow!("--max-cost needs prices, and none are configured");
            return Err(AppError::usage(error)
                .hint(Some("state what models cost in `prices.models` of the config")));
        }
        // Only tried, so that a model that cannot be passed on fails now and not after the trials
        // of the first one.
        for model in &settings.models {
            with_model(&resolved, model)?;
        }
        let paths = selected_paths(project, &settings.paths)?;
        let inventory = SkillInventory::find(&project.folder, &paths);
        let id = state.id().to_owned();
        let started_at = state.started_at();
        let mut test = Self {
            project,
            resolved,
            settings,
            id,
            started_at,
            remarks: inventory.remarks.clone(),
            inventory,
            base: None,
            candidates: Vec::new(),
            plan: SkillTestPlan::default(),
            not_tested: Vec::new(),
            state,
        };
        test.find_candidates(&paths)?;
        let facts: Vec<SkillFacts> =
            test.candidates.iter().map(|candidate| candidate.facts.clone()).collect();
        test.plan = plan_skill_tests(&facts, &test.settings.options);
        test.name_left_out();
        test.check_rules()?;
        Ok(test)
    }

    /// Compares the selected skills with the other branch, and reads the cases of those to test.
    fn find_candidates(&mut self, paths: &[PathBuf]) -> Result<(), AppError> {
        let asks_for_base = self.settings.options.changed || self.settings.against.is_some();
        let repository = match GitRepository::around(&self.project.folder) {
            Ok(repository) => Some(repository),
            Err(error) if asks_for_base => return Err(error),
            Err(_) => None,
        };
        let mut changed = BTreeSet::new();
        if let Some(repository) = &repository {
            let named = self.settings.against.as_deref();
            let found = repository.base(named, &self.project.environment);
            self.base = match found {
                Ok(base) => base,
                Err(error) if asks_for_base => return Err(error),
                Err(_) => None,
            };
            if let Some(base) = &self.base {
                changed = repository.changed_files(base)?.into_iter().collect();
            } else if asks_for_base {
                let error = anyhow!("there is no branch to compare with");
                return Err(AppError::usage(error).hint(Some("name it with --against BRANCH")));
            }
        }
        self.name_refused(paths, &changed);
        for position in self.inventory.selected(paths) {
            let candidate = self.candidate(position, repository.as_ref(), &changed)?;
            self.candidates.extend(candidate);
        }
        Ok(())
    }

    /// Names the selected skills that cannot be used; with `--changed`, those that changed.
    fn name_refused(&mut self, paths: &[PathBuf], changed: &BTreeSet<PathBuf>) {
        let only_changed = self.settings.options.changed;
        for refused in &self.inventory.refused {
            let folder = self.project.folder.join(&refused.shown);
            let is_selected = paths.is_empty() || paths.iter().any(|path| folder.starts_with(path));
            let is_changed = is_touched(&folder, changed);
            if is_selected && (!only_changed || is_changed) {
                self.not_tested.push(UntestedSkill {
                    skill: refused.shown.clone(),
                    reason: UntestedReason::Refused,
                    why: refused.why.clone(),
                });
            } else {
                // It does not lie beside the tested ones either.
                self.remarks.push(format!("{} is not loaded: {}", refused.shown, refused.why));
            }
        }
    }

    fn candidate(
        &mut self,
        position: usize,
        repository: Option<&GitRepository>,
        changed: &BTreeSet<PathBuf>,
    ) -> Result<Option<Candidate>, AppError> {
        let found = &self.inventory.skills[position];
        let (mut difference, mut base) = (SkillDifference::Unknown, None);
        if let (Some(repository), Some(commit)) = (repository, &self.base) {
            difference = SkillDifference::Unchanged;
            if is_touched(&found.folder, changed) {
                difference = match repository.skill_at(commit, &found.folder)? {
                    SkillOnBase::Missing => SkillDifference::New,
                    SkillOnBase::Unusable(why) => {
                        self.remarks.push(format!("{} is not compared: {why}", found.shown));
                        SkillDifference::New
                    }
                    SkillOnBase::Usable(other) if other.skill.digest() == found.skill.digest() => {
                        SkillDifference::CasesChanged
                    }
                    SkillOnBase::Usable(other) => {
                        base = Some(other);
                        SkillDifference::Changed
                    }
                };
            }
        }
        let mut facts = SkillFacts {
            name: found.name.clone(),
            difference,
            tasks: 0,
            prompts: 0,
            siblings: Vec::new(),
        };
        // Reading the cases of every unchanged skill would take longer than the plan.
        let is_left_out = self.settings.options.changed && !difference.is_change();
        let mut suite = None;
        if !is_left_out && !folder::find(&found.folder).is_empty() {
            let allowed = &self.settings.trials.allow_commands;
            let shown = Path::new(&found.shown);
            match SuiteFile::for_skill_test(self.project, shown, allowed) {
                Ok(read) => {
                    // A branch that breaks its own cases must not pass for having fewer.
                    self.not_tested.extend(read.lost.iter().map(|why| UntestedSkill {
                        skill: found.name.clone(),
                        reason: UntestedReason::Refused,
                        why: one_line(why, 500),
                    }));
                    suite = Some(read);
                }
                Err(error) => {
                    let why = error.render(false);
                    let why = why.strip_prefix("error: ").unwrap_or(&why);
                    self.not_tested.push(UntestedSkill {
                        skill: found.name.clone(),
                        reason: UntestedReason::Refused,
                        why: one_line(why, 500),
                    });
                    return Ok(None);
                }
            }
        }
        if let Some(suite) = &suite {
            // Only for those with cases: each name beside each would be too many in a large repository.
            if self.settings.options.interference {
                let siblings = self.inventory.siblings(position);
                facts.siblings = siblings.iter().map(|sibling| sibling.name.clone()).collect();
            }
            // The plan counts cases; trials multiply them later.
            let once = RunSettings { repeats: 1, ..self.settings.run() };
            let cases = plan_cases(&once, &self.resolved.config, Some(suite))?;
            facts.prompts = cases.iter().filter(|case| asks_loading(case)).count();
            facts.tasks = cases.len() - facts.prompts;
            if facts.prompts > 0 && self.resolved.config.sut.program().is_none() {
                let prompts = plural(facts.prompts as u64, "prompt");
                self.remarks.push(format!(
                    "{}: {prompts} about loading left out: the system under test has no folder in \
                     which it could look for skills",
                    facts.name
                ));
                facts.prompts = 0;
            }
        }
        Ok(Some(Candidate { position, facts, base, suite }))
    }

    /// Names the skills that the plan leaves out.
    fn name_left_out(&mut self) {
        for (at, omission) in &self.plan.left_out {
            let skill = self.candidates[*at].facts.name.clone();
            let (reason, why) = match omission {
                SkillOmission::Unchanged => (UntestedReason::Unchanged, "unchanged".to_owned()),
                SkillOmission::OtherShard => {
                    (UntestedReason::OtherShard, "in another shard".to_owned())
                }
                SkillOmission::NoCases => (
                    UntestedReason::NoCases,
                    format!("no cases: `selftest init` writes a first {}", "evals/evals.json"),
                ),
            };
            self.not_tested.push(UntestedSkill { skill, reason, why });
        }
    }

    /// Fails if a rule cannot be met whatever comes out.
    fn check_rules(&mut self) -> Result<(), AppError> {
        for (at, trials) in &self.plan.tests {
            let name = &self.candidates[*at].facts.name;
            for rule in &self.settings.options.rules {
                if let Some(why) = trials.obstacle(*rule) {
                    let error = anyhow!("{name}: the rule {why}");
                    return Err(AppError::usage(error)
                        .hint(Some("raise --repeats, add cases, or take --rule no_regression")));
                }
            }
            if let Some(why) = trials.blind_spot() {
                self.remarks.push(format!("{name}: {why}"));
            }
        }
        Ok(())
    }

    /// Returns the plan, one line for each skill.
    pub fn plan_lines(&self) -> Vec<String> {
        let models = self.settings.models.len().max(1);
        let line = |(at, trials): &(usize, SkillTrials)| {
            let facts = &self.candidates[*at].facts;
            let label = facts.difference.label();
            let label = if label.is_empty() { String::new() } else { format!(" ({label})") };
            let arms: Vec<&str> = trials.arms.iter().map(|arm| self.arm_name(arm)).collect();
            format!(
                "{}{label}: {}, {}, {} each, in {}: {}",
                facts.name,
                plural(trials.tasks as u64, "task"),
                plural(trials.prompts as u64, "prompt"),
                plural(u64::from(trials.repeats), "trial"),
                plural(arms.len() as u64, "arm"),
                arms.join(", ")
            )
        };
        let mut lines: Vec<String> = self.plan.tests.iter().map(line).collect();
        let skills = plural(self.plan.tests.len() as u64, "skill");
        let trials = plural((self.plan.trials() * models) as u64, "trial");
        lines.push(format!("{skills}, {trials}"));
        lines
    }

    fn arm_name<'s>(&'s self, arm: &'s SkillArm) -> &'s str {
        match arm {
            SkillArm::Without => "without",
            SkillArm::Base => self.base.as_ref().map_or("base", |base| &base.name),
            SkillArm::Here => "this branch",
            SkillArm::Again => "this branch again",
            SkillArm::Lacking(_) => "without a sibling",
        }
    }

    /// Returns what a maintainer should know before the trials.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Returns the skills that are not tested, and why.
    pub fn not_tested(&self) -> &[UntestedSkill] {
        &self.not_tested
    }

    /// Returns the id by which an interrupted test is resumed.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns true if nothing is tested.
    pub fn is_empty(&self) -> bool {
        self.plan.tests.is_empty()
    }

    /// Runs the trials of all skills.
    pub async fn run(mut self) -> Result<FinishedSkillTest, AppError> {
        let cancel = self.project.frontend().cancellation();
        let started = Instant::now();
        let (mut skills, mut faults) = (Vec::<SkillTestResult>::new(), Vec::new());
        let mut ending = None;
        let answer_keys = folder::find(&self.project.folder);
        let models: Vec<Option<String>> = match self.settings.models.as_slice() {
            [] => vec![None],
            models => models.iter().cloned().map(Some).collect(),
        };
        for model in &models {
            let resolved = match model {
                Some(model) => with_model(&self.resolved, model)?,
                None => self.resolved.clone(),
            };
            // Cloned, because the loop also changes the state and the list of untested skills.
            for (at, trials) in self.plan.tests.clone() {
                let candidate = &self.candidates[at];
                let name = candidate.facts.name.clone();
                // Limits are of the whole test, so each skill gets what the earlier ones left.
                let limits = self.limits_left(&skills, started);
                let reached = limits.is_none();
                if reached || ending.is_some() || *cancel.borrow() {
                    let why = match (reached, ending) {
                        (_, Some(SkillTestOutcome::ModelUnavailable)) => "a model server was lost",
                        (true, _) => "a limit of the test was reached",
                        _ => "the test was interrupted",
                    };
                    let reason = UntestedReason::NotReached;
                    self.not_tested.push(UntestedSkill {
                        skill: name,
                        reason,
                        why: why.to_owned(),
                    });
                    if *cancel.borrow() {
                        ending = Some(SkillTestOutcome::Interrupted);
                    }
                    continue;
                }
                let Some(suite) = &candidate.suite else { continue };
                let found = &self.inventory.skills[candidate.position];
                let args = self.settings.run();
                let siblings = self.inventory.siblings(candidate.position);
                // What is laid for the arms must not lie in the copy already.
                let looked: Vec<PathBuf> =
                    project_folders().into_iter().map(|at| self.project.folder.join(at)).collect();
                let laid = self.inventory.skills.iter().map(|skill| skill.folder.clone());
                let laid = laid.filter(|folder| looked.iter().any(|at| folder.starts_with(at)));
                let hidden = self.inventory.namesakes(candidate.position).into_iter().chain(laid);
                let hidden = hidden.map(|folder| to_hide(self.project, &folder.join(SKILL_FILE)));
                let personal = PERSONAL_FILES.map(|file| self.project.folder.join(file));
                let run = SkillArms {
                    project: self.project,
                    resolved: &resolved,
                    args: &args,
                    suite,
                    trials: &trials,
                    here: Arc::clone(&found.skill),
                    base: candidate.base.as_ref().map(|base| Arc::clone(&base.skill)),
                    siblings: siblings
                        .iter()
                        .map(|sibling| (sibling.name.clone(), Arc::clone(&sibling.skill)))
                        .collect(),
                    hidden: hidden.chain(answer_keys.iter().cloned()).chain(personal).collect(),
                    limits: limits.unwrap_or_default(),
                    test_id: &self.id,
                };
                let digest = run.digest()?;
                // The digest covers the skill, its cases and the settings: after an edit it is
                // tested again.
                if let Some(finished) = self.state.finished(&name, model.as_deref(), &digest) {
                    skills.push(finished);
                    continue;
                }
                let ids = match self.state.running(&name, model.as_deref(), trials.arms.len()) {
                    Some(ids) => ids,
                    None => run.fresh_ids(),
                };
                // Stored before the first trial, so that a killed test finds the journals of its
                // arms.
                self.state.begin(&name, model.as_deref(), &ids)?;
                self.project
                    .notify(&format!("skill {name}: {}\n", plural(trials.count() as u64, "trial")));
                let mut arms = run.execute(&ids, cancel.clone()).await?;
                faults.append(&mut arms.faults);
                let tested = TestedSkill {
                    name: name.clone(),
                    folder: found.skill.name.clone(),
                    path: found.shown.clone(),
                    difference: candidate.facts.difference,
                    digest,
                    model: model.clone(),
                };
                let result =
                    SkillTestResult::new(tested, &arms.reports, &self.settings.options.rules);
                if arms.is_interrupted {
                    ending = Some(SkillTestOutcome::Interrupted);
                } else if arms.lacks_model {
                    ending = Some(SkillTestOutcome::ModelUnavailable);
                // An incomplete result is reported, but tested again when the test is resumed.
                } else if arms.is_complete() {
                    self.state.finish(&result)?;
                }
                skills.push(result);
            }
        }
        let only_changed = self.settings.options.changed;
        let outcome = SkillTestReport::outcome_of(&skills, &self.not_tested, only_changed);
        // What is known to be worse stays so, whatever ended the test.
        let outcome = match ending {
            Some(ending) if outcome != SkillTestOutcome::Failed => ending,
            _ => outcome,
        };
        let prices = &self.resolved.config.prices;
        let report = SkillTestReport {
            version: SKILL_TEST_VERSION,
            id: self.id,
            started_at: self.started_at,
            selftest_version: env!("CARGO_PKG_VERSION").to_owned(),
            base: self.base.map(|base| BaseBranch { name: base.name, commit: base.commit }),
            rules: self.settings.options.rules,
            currency: (!prices.models.is_empty()).then(|| prices.currency.clone()),
            skills_found: self.inventory.skills.len() + self.inventory.refused.len(),
            skills,
            not_tested: self.not_tested,
            remarks: self.remarks,
            outcome,
        };
        self.state.conclude(&report)?;
        Ok(FinishedSkillTest { report, faults })
    }

    /// Returns what is left of the limits; `None` if one is reached.
    fn limits_left(&self, skills: &[SkillTestResult], started: Instant) -> Option<RunLimits> {
        let limits = self.settings.limits;
        let arms = || skills.iter().flat_map(|skill| &skill.arms);
        let duration = match limits.duration {
            Some(limit) => {
                Some(limit.checked_sub(started.elapsed()).filter(|left| !left.is_zero())?)
            }
            None => None,
        };
        let spent: u64 = arms().map(|arm| arm.tokens).sum();
        let tokens = match limits.tokens {
            Some(limit) => Some(limit.checked_sub(spent).filter(|left| *left > 0)?),
            None => None,
        };
        let cost: f64 = arms().map(|arm| arm.cost).sum();
        let cost = match limits.cost {
            Some(limit) => Some(Some(limit - cost).filter(|left| *left > 0.0)?),
            None => None,
        };
        Some(RunLimits { duration, tokens, cost })
    }
}

/// Returns true if one of the changed files is below this folder, or is this folder: git names a
/// changed submodule around it as one path.
fn is_touched(folder: &Path, changed: &BTreeSet<PathBuf>) -> bool {
    let from = (Bound::Included(folder), Bound::Unbounded);
    let below = changed.range::<Path, _>(from).next().is_some_and(|file| file.starts_with(folder));
    below || folder.ancestors().any(|above| changed.contains(above))
}

/// Returns the paths of the command line without links. Each must be there.
fn selected_paths(project: &Project, paths: &[PathBuf]) -> Result<Vec<PathBuf>, AppError> {
    let real = |path: &PathBuf| {
        let shown = path.display();
        let found = project.path(path).canonicalize();
        let found =
            found.map_err(|error| AppError::usage(anyhow!("cannot use {shown}: {error}")))?;
        // A `SKILL.md` stands for its folder.
        let is_skill_file = found.file_name() == Some(SKILL_FILE.as_ref());
        let folder = found.parent().filter(|_| is_skill_file).map(Path::to_owned);
        Ok(folder.unwrap_or(found))
    };
    paths.iter().map(real).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_touched_by_files_below_it_and_by_the_submodule_around_it() {
        let changed = ["/r/skills/a.md", "/r/skills/b/SKILL.md", "/r/skills/b-2/x", "/r/vendor"];
        let changed: BTreeSet<PathBuf> = changed.into_iter().map(PathBuf::from).collect();
        let touched = |folder| is_touched(Path::new(folder), &changed);
        let are = ["/r/skills/b", "/r/skills/b-2", "/r/vendor/skills/c", "/r/vendor"];
        assert_eq!(are.map(touched), [true; 4]);
        let are_not = ["/r/skills/a", "/r/skills/b-", "/r/skills/c", "/r/vendor-2/skills/c"];
        assert_eq!(are_not.map(touched), [false; 4]);
    }
}
