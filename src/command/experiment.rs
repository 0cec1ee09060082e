//! Conducts an experiment with a skill: the same cases without and with it, each arm a run with
//! reports of its own. What it found is `improve::experiment`'s to say.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use tokio::sync::watch;

use super::context::Project;
use super::failure::Failure;
use super::run::planned;
use super::setup::Setup;
use super::suite_file::SuiteFile;
use crate::cli::ExperimentArgs;
use crate::config::Resolved;
use selftest_harness::event::{ExperimentRun, Observer};
use selftest_harness::experiment::{Arm, Arms};
use selftest_harness::outcome::{CaseStatus, RunOutcome};
use selftest_harness::report::comparison::experiment::{LABELS, PlannedTrial, SkillExperiment};
use selftest_harness::report::document::ReportDocument;
use selftest_harness::report::{
    ProgressObserver, ReportFiles, ReportHandle, ReportObserver, Style,
};
use selftest_harness::run::arms::{ArmRun, execute_arms};
use selftest_harness::run::observe::{self, ObserverThread};
use selftest_harness::run::order::interleaved;
use selftest_harness::sut::namespace::RunId;
use selftest_harness::sut::skill::Skill;

/// An experiment that is to be conducted.
pub(super) struct Experiment<'a> {
    pub(super) project: &'a Project,
    pub(super) resolved: &'a Resolved,
    pub(super) told: &'a ExperimentArgs,
    pub(super) suite: SuiteFile,
    pub(super) skill: Skill,
    /// Where the skill lies: neither arm reads it there.
    pub(super) hidden: Vec<PathBuf>,
    /// Whether each trial is told on stderr.
    pub(super) shows_progress: bool,
}

/// The result.
pub(super) struct Conducted {
    pub(super) found: SkillExperiment,
    /// The reports of both arms.
    pub(super) reports: Arms<ReportDocument>,
    /// Reports that could not be written.
    pub(super) faults: Vec<String>,
    pub(super) is_interrupted: bool,
    /// A model server gave no answer, so that not all trials were run.
    pub(super) lacks_model: bool,
}

impl Experiment<'_> {
    /// Runs all trials. `None` where no case was selected.
    pub(super) async fn conduct(
        &self,
        cancel: watch::Receiver<bool>,
    ) -> Result<Option<Conducted>, Failure> {
        let (project, resolved, told) = (self.project, self.resolved, self.told);
        let skill = &self.skill;
        let args = told.run();
        let suite = &self.suite;
        let mut plan = planned(&args, &resolved.config, Some(suite))?;
        if plan.is_empty() {
            return Ok(None);
        }
        // Each arm says for itself who has the skill.
        for case in &mut plan {
            case.handed = None;
        }
        let setup = Setup {
            project,
            resolved,
            args: &args,
            suite: Some(suite),
            hidden: &self.hidden,
            earlier: None,
        };
        setup.read_named_files(&mut plan)?;
        let now = selftest_clock::now();
        let ids = Arms { control: RunId::fresh(now), treatment: RunId::fresh(now) };
        let (json_folder, markdown_folder) = project.report_folders(resolved);
        let open = |id: &RunId| {
            ReportFiles::open(&json_folder, &markdown_folder, id)
                .map_err(|error| Failure::setup(anyhow!("{error}")).hint(Some(error.hint())))
        };
        let files = Arms { control: open(&ids.control)?, treatment: open(&ids.treatment)? };
        let prepared = setup.prepare(&plan).await?;
        let with = prepared.runner.sut.with_skill(Arc::new(skill.clone()))?;
        let runners = Arms {
            control: Arc::clone(&prepared.runner),
            treatment: Arc::new(prepared.runner.with_sut(with)),
        };

        let style = Style {
            terminal: false,
            colour: std::io::stderr().is_terminal() && !project.environment.no_color,
        };
        let start = |arm: Arm, files: ReportFiles| {
            let mut header = setup.header(ids.of(arm).clone(), &plan, &prepared);
            header.experiment = Some(ExperimentRun {
                arm,
                other_run_id: ids.of(arm.other()).clone(),
                skill: skill.name.clone(),
                skill_digest: skill.digest(),
            });
            let report = ReportObserver::new(files);
            let handle = report.handle();
            let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(report)];
            if self.shows_progress {
                let progress = ProgressObserver::new(style).labelled(LABELS.of(arm));
                observers.insert(0, Box::new(progress));
            }
            let (events, observer_thread) = observe::spawn_observers(observers);
            let runner = Arc::clone(runners.of(arm));
            (
                ArmRun { runner, header: Arc::new(header), events },
                Reporting { handle, observer_thread },
            )
        };
        let (control, of_control) = start(Arm::Control, files.control);
        let (treatment, of_treatment) = start(Arm::Treatment, files.treatment);
        let arms = Arms { control, treatment };
        let cases = plan.len() / told.repeats as usize;
        let order = interleaved(cases, told.repeats, prepared.runner.seed);
        let executed = execute_arms(&arms, &plan, &order, cancel).await;
        drop(arms);

        let mut faults = Vec::new();
        let control = of_control.finish(&mut faults)?;
        let treatment = of_treatment.finish(&mut faults)?;
        let trials = order.iter().filter_map(|slot| {
            let planned = plan.get(slot.position(cases))?;
            let (case, repeat, arm) = (planned.scenario.id.clone(), slot.repeat, slot.arm);
            Some(PlannedTrial { case, repeat, arm })
        });
        let found = SkillExperiment::new(&control, &treatment, trials.collect());
        let outcomes = [executed.control.outcome, executed.treatment.outcome];
        let is_interrupted = outcomes.contains(&RunOutcome::Interrupted);
        let of_models = [&executed.control.summary, &executed.treatment.summary];
        let lacks_model =
            of_models.into_iter().any(|summary| summary.count(CaseStatus::NotRun) > 0);
        let reports = Arms { control, treatment };
        Ok(Some(Conducted { found, reports, faults, is_interrupted, lacks_model }))
    }
}

/// The report of an arm in the making.
struct Reporting {
    handle: ReportHandle,
    observer_thread: ObserverThread,
}

impl Reporting {
    /// The report as `selftest compare` reads it.
    fn finish(self, faults: &mut Vec<String>) -> Result<ReportDocument, Failure> {
        faults.extend(tokio::task::block_in_place(|| self.observer_thread.finish()));
        serde_json::from_str(&self.handle.json_text().unwrap_or_default())
            .map_err(|error| Failure::setup(anyhow!("the report of an arm: {error}")))
    }
}
