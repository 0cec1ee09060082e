//! Runs the arms of one skill, each a run with reports of its own.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use tokio::sync::watch;

use crate::error::AppError;
use crate::experiment::ArmReporting;
use crate::options::{RunPurpose, RunRequest, RunSettings};
use crate::project::Project;
use crate::run::{plan_cases, report_files};
use crate::run_start::{EarlierState, Resumption, RunStart, digests_of_settings};
use crate::setup::RunSetup;
use crate::suite_file::SuiteFile;
use selftest_config::ResolvedConfig;
use selftest_harness::event::ExperimentRun;
use selftest_harness::experiment::Arm;
use selftest_harness::journal::RunDigests;
use selftest_harness::outcome::{CaseStatus, RunOutcome};
use selftest_harness::run::arms::{ArmRun, execute_arms};
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::run::runner::RunLimits;
use selftest_harness::skill_test::{SkillArm, SkillTrials};
use selftest_harness::sut::Fixture;
use selftest_harness::sut::namespace::{RunId, TaskGroupId};
use selftest_harness::sut::skill::Skill;
use selftest_harness::sut::sut_settings::WorkFolder;
use selftest_models::journaled::{CallLog, CallSink};
use selftest_reports::document::ReportDocument;
use selftest_text::digest;

/// The test of one skill.
pub(super) struct SkillArms<'a> {
    pub project: &'a Project,
    pub resolved: &'a ResolvedConfig,
    /// Options of each arm.
    pub args: &'a RunSettings,
    /// The cases of the skill, which is in none of them yet.
    pub suite: &'a SuiteFile,
    pub trials: &'a SkillTrials,
    /// The skill as it is here.
    pub here: Arc<Skill>,
    /// The skill as it is on the other branch.
    pub base: Option<Arc<Skill>>,
    /// The other skills, by name.
    pub siblings: Vec<(String, Arc<Skill>)>,
    /// Paths that no arm reads.
    pub hidden: Vec<PathBuf>,
    pub limits: RunLimits,
    /// Id of the whole test.
    pub test_id: &'a str,
}

/// The reports of the arms.
pub(super) struct FinishedArms {
    pub reports: Vec<(SkillArm, ReportDocument)>,
    /// Reports that could not be written.
    pub faults: Vec<String>,
    pub is_interrupted: bool,
    pub lacks_model: bool,
}

impl FinishedArms {
    /// Returns true if no limit kept a trial from being run.
    pub(super) fn is_complete(&self) -> bool {
        let mut cases = self.reports.iter().flat_map(|(_, report)| &report.cases);
        cases.all(|case| case.status != CaseStatus::NotRun)
    }
}

impl SkillArms<'_> {
    /// Returns the digest of everything that decides the results.
    pub(super) fn digest(&self) -> Result<String, AppError> {
        let cases = plan_cases(self.args, &self.resolved.config, Some(self.suite))?;
        let settings = digests_of_settings(&self.resolved.config, &cases);
        let siblings: Vec<(&String, String)> =
            self.siblings.iter().map(|(name, skill)| (name, skill.digest())).collect();
        let base = self.base.as_ref().map(|skill| skill.digest());
        let arms = &self.trials.arms;
        let all = serde_json::json!([settings, siblings, base, self.here.digest(), arms]);
        Ok(digest::json_sha256_hex(all))
    }

    /// Returns new ids for the runs of the arms.
    pub(super) fn fresh_ids(&self) -> Vec<RunId> {
        let now = selftest_clock::now();
        self.trials.arms.iter().map(|_| RunId::fresh(now)).collect()
    }

    /// Runs all trials, or those left of runs with these ids.
    pub(super) async fn execute(
        &self,
        ids: &[RunId],
        cancel: watch::Receiver<bool>,
    ) -> Result<FinishedArms, AppError> {
        let Self { project, resolved, args, suite, .. } = *self;
        let mut cases = plan_cases(args, &resolved.config, Some(suite))?;
        let mut starts = self.starts(ids)?;
        let mut calls = starts.iter_mut().map(RunStart::take_calls);
        let log = CallLog::with_calls(calls.next().unwrap_or_default());
        let log = Arc::new(calls.fold(log, CallLog::with_run));
        let begun = starts.iter().find_map(RunStart::header);
        let earlier = EarlierState { log: Arc::clone(&log), cases: &[], header: begun };
        let setup = RunSetup {
            project,
            resolved,
            args,
            suite: Some(suite),
            hidden: &self.hidden,
            earlier: Some(&earlier),
        };
        setup.read_named_files(&mut cases)?;
        let plans: Vec<Vec<PlannedCase>> =
            self.trials.arms.iter().map(|arm| self.plan(&cases, arm)).collect();
        // Arms differ in prompts about loading, which need no judge. The longest plan needs every
        // model that any arm does.
        let longest = plans.iter().max_by_key(|plan| plan.len()).map(Vec::as_slice);
        let longest = longest.unwrap_or_default();
        let mut digests = digests_of_settings(&resolved.config, longest);
        // A resumed arm must run the same skill: results of two versions would be one arm.
        digests.insert("the skills".to_owned(), self.digest()?);
        check(&starts, &digests)?;
        let open = |(id, start): (&RunId, &RunStart)| {
            report_files(project, resolved, id, start.header().is_some())
        };
        let files = ids.iter().zip(&starts).map(open).collect::<Result<Vec<_>, _>>()?;
        let prepared = setup.prepare(longest).await?;
        digests.extend(prepared.digests(&resolved.rubric.digest()));
        check(&starts, &digests)?;
        // Fails before the first trial if the system under test takes no skills.
        prepared.runner.sut.with_skill(Arc::clone(&self.here))?;
        let order = self.trials.order(prepared.runner.seed);

        let mut headers = Vec::new();
        for (((arm, id), plan), start) in self.trials.arms.iter().zip(ids).zip(&plans).zip(&starts)
        {
            let mut header = setup.header(id.clone(), plan, &prepared);
            match start.header() {
                Some(begun) => {
                    header.started_at = begun.started_at;
                    header.task_group_id = begun.task_group_id.clone();
                }
                None => header.task_group_id = TaskGroupId::fresh(header.started_at),
            }
            header.experiment = Some(self.describe(arm, ids));
            headers.push(Arc::new(header));
        }
        let (mut arms, mut reporting) = (Vec::new(), Vec::new());
        let parts = self.trials.arms.iter().zip(headers).zip(plans).zip(files).zip(starts);
        for (number, ((((arm, header), plan), files), start)) in parts.enumerate() {
            let recalled = start.cases().to_vec();
            let journal = start.journal(project, resolved, &header, digests.clone())?;
            log.set_sink(number, Arc::clone(&journal) as Arc<dyn CallSink>);
            let (report, events) = ArmReporting::start(project, Some(label(arm)), files, journal);
            let runner = Arc::clone(&prepared.runner);
            arms.push(ArmRun { runner, header, events, recalled, plan });
            reporting.push(report);
        }
        let executed = execute_arms(&arms, &order, self.limits, cancel).await;
        // Closes the channels of events, so that the observers finish.
        drop(arms);
        let is_interrupted = executed.iter().any(|arm| arm.outcome == RunOutcome::Interrupted);
        // A case that failed hides the model that was lost in the outcome of an arm.
        let lacks_model = !is_interrupted
            && executed
                .iter()
                .flat_map(|arm| &arm.cases)
                .any(|case| case.status().0 == CaseStatus::NotRun && !case.was_stopped_by_limit());
        let (mut faults, mut reports) = (Vec::new(), Vec::new());
        for (arm, report) in self.trials.arms.iter().zip(reporting) {
            reports.push((arm.clone(), report.finish(project, &mut faults)?));
        }
        Ok(FinishedArms { reports, faults, is_interrupted, lacks_model })
    }

    /// Returns the starts of all arms: resumed where there is a journal.
    fn starts(&self, ids: &[RunId]) -> Result<Vec<RunStart>, AppError> {
        let request = || {
            let purpose = RunPurpose::SkillTest { id: self.test_id.to_owned() };
            let flags = self.resolved.flags.clone();
            RunStart::New(Box::new(RunRequest::new(self.args.clone(), flags, None, purpose)))
        };
        let start = |id: &RunId| {
            let earlier = Resumption::find(self.project, self.resolved, id)?;
            Ok(match earlier {
                Some(earlier) => RunStart::Resumption(Box::new(earlier)),
                None => request(),
            })
        };
        ids.iter().map(start).collect()
    }

    /// Returns the trials of an arm: all rounds of the tasks, then all rounds of the prompts.
    fn plan(&self, cases: &[PlannedCase], arm: &SkillArm) -> Vec<PlannedCase> {
        let skill = match arm {
            SkillArm::Without => None,
            SkillArm::Base => self.base.as_ref(),
            SkillArm::Here | SkillArm::Again | SkillArm::Lacking(_) => Some(&self.here),
        };
        let program = self.resolved.config.sut.program();
        let run = program.filter(|program| program.work_folder == WorkFolder::Copy);
        let laid = |skill: &Skill| -> Vec<Fixture> {
            run.map(|program| skill.laid_for(&program.run)).unwrap_or_default()
        };
        let beside: Vec<Fixture> = self
            .siblings
            .iter()
            .filter(|(name, _)| !matches!(arm, SkillArm::Lacking(lacking) if lacking == name))
            .flat_map(|(_, sibling)| laid(sibling))
            .collect();
        // To hand the skill over would answer the question of a prompt whether it is loaded.
        let under_test = skill.map(|skill| laid(skill)).unwrap_or_default();
        let of_prompts: Arc<[Fixture]> = beside.iter().cloned().chain(under_test).collect();
        let of_tasks: Arc<[Fixture]> = beside.into();
        let (tasks, prompts): (Vec<&PlannedCase>, Vec<&PlannedCase>) =
            cases.iter().partition(|case| !asks_loading(case));
        // Without the skill there is nothing to load.
        let prompts = prompts.into_iter().filter(|_| skill.is_some());
        let all = tasks.into_iter().chain(prompts).enumerate();
        all.map(|(index, case)| {
            let is_prompt = asks_loading(case);
            let laid = if is_prompt { &of_prompts } else { &of_tasks };
            // Most cases bring no files of their own, and share those of the skills.
            let fixtures = if case.fixtures.is_empty() {
                Arc::clone(laid)
            } else {
                laid.iter().chain(case.fixtures.iter()).cloned().collect()
            };
            let given_skill = skill.filter(|_| !is_prompt).cloned();
            PlannedCase { index, fixtures, given_skill, ..case.clone() }
        })
        .collect()
    }

    /// Describes an arm for its report, with the run that it is compared with.
    fn describe(&self, arm: &SkillArm, ids: &[RunId]) -> ExperimentRun {
        let id_of = |wanted: &SkillArm| {
            let position = self.trials.arms.iter().position(|arm| arm == wanted);
            position.and_then(|position| ids.get(position)).cloned()
        };
        let own = id_of(arm);
        let other = match arm {
            SkillArm::Here => id_of(&SkillArm::Base).or_else(|| id_of(&SkillArm::Without)),
            _ => id_of(&SkillArm::Here),
        };
        let skill = match arm {
            SkillArm::Base => self.base.as_ref().unwrap_or(&self.here),
            _ => &self.here,
        };
        ExperimentRun {
            arm: if arm.has_skill() { Arm::Treatment } else { Arm::Control },
            other_run_id: other.or(own).unwrap_or_else(|| RunId::fresh(selftest_clock::now())),
            skill: skill.name.clone(),
            skill_digest: skill.digest(),
        }
    }
}

/// Fails if these are not the same runs.
fn check(starts: &[RunStart], now: &RunDigests) -> Result<(), AppError> {
    starts.iter().try_for_each(|start| start.check(now))
}

/// Returns true for a case that asks only whether the skill is loaded.
pub(super) fn asks_loading(case: &PlannedCase) -> bool {
    case.frozen.as_ref().is_some_and(|case| case.should_load().is_some())
}

/// Names an arm in lines of progress.
const fn label(arm: &SkillArm) -> &'static str {
    match arm {
        SkillArm::Without => "without",
        SkillArm::Base => "base",
        SkillArm::Here => "here",
        SkillArm::Again => "again",
        SkillArm::Lacking(_) => "lacking",
    }
}

/// Refuses a system under test that cannot have the skills of a repository beside each other.
pub(super) fn check_takes_folders(resolved: &ResolvedConfig) -> Result<(), AppError> {
    let sut = &resolved.config.sut;
    let Some(program) = sut.program() else { return Ok(()) };
    if program.work_folder == WorkFolder::Copy {
        return Ok(());
    }
    let section = sut.program_section();
    let what = "the agent works in the project itself, where no skill can be laid for it";
    Err(AppError::usage(anyhow!("{what}"))
        .hint(Some(format!("set `{section}.work_folder: copy` in the config"))))
}
