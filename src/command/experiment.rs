//! Conducts an experiment with a skill: the same cases without and with it, each arm a run with
//! reports of its own. What it found is `improve::experiment`'s to say.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use tokio::sync::watch;

use super::conducted::report_files;
use super::context::Project;
use super::eprint;
use super::failure::Failure;
use super::resume::{Earlier, ExperimentRequest, Purpose, Request, Start, digests_of_settings};
use super::run::planned;
use super::setup::{Prepared, Setup};
use super::suite_file::SuiteFile;
use crate::cli::ExperimentArgs;
use selftest_config::ResolvedConfig;
use selftest_harness::event::{EventLog, ExperimentRun, Observer, RunHeader};
use selftest_harness::experiment::{Arm, Arms};
use selftest_harness::journal::{Journal, RunDigests};
use selftest_harness::outcome::{CaseStatus, RunOutcome};
use selftest_harness::run::arms::{ArmRun, execute_arms, run_number};
use selftest_harness::run::observe::{self, EventSender, ObserverThread};
use selftest_harness::run::order::interleave;
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::sut::namespace::{RunId, TaskGroupId};
use selftest_harness::sut::skill::Skill;
use selftest_models::journaled::{CallLog, CallSink};
use selftest_reports::comparison::experiment::{LABELS, PlannedTrial, SkillExperiment};
use selftest_reports::document::ReportDocument;
use selftest_reports::{
    ProgressObserver, ReportFiles, ReportHandle, ReportObserver, TerminalStyle,
};

/// An experiment that is to be conducted.
pub(super) struct Experiment<'a> {
    pub(super) project: &'a Project,
    pub(super) resolved: &'a ResolvedConfig,
    pub(super) told: &'a ExperimentArgs,
    pub(super) suite: SuiteFile,
    pub(super) skill: Skill,
    /// Where the skill lies: neither arm reads it there.
    pub(super) hidden: Vec<PathBuf>,
    /// Whether each trial is told on stderr.
    pub(super) shows_progress: bool,
    /// Whether JSON is printed at its end.
    pub(super) json: bool,
    /// Whether the skill is in no file yet.
    pub(super) is_draft: bool,
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

/// An experiment that was broken off.
pub(super) struct Broken {
    /// Its runs.
    pub(super) arms: Arms<RunId>,
    /// Starts that go on with them.
    pub(super) starts: Arms<Start>,
}

impl Experiment<'_> {
    /// Runs all trials; of one that was broken off those that are left. `None` where no case was
    /// selected.
    pub(super) async fn conduct(
        &self,
        broken: Option<Broken>,
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
            case.given_skill = None;
        }
        let goes_on = broken.is_some();
        let Broken { arms: ids, mut starts } = broken.unwrap_or_else(|| self.begun());
        let calls = CallLog::with_calls(starts.control.take_calls());
        let log = Arc::new(calls.with_run(starts.treatment.take_calls()));
        // What the arms share is as the one that has a journal began it.
        let begun = starts.control.header().or(starts.treatment.header());
        let earlier = Earlier { log: Arc::clone(&log), cases: &[], header: begun };
        let setup = Setup {
            project,
            resolved,
            args: &args,
            suite: Some(suite),
            hidden: &self.hidden,
            earlier: Some(&earlier),
        };
        setup.read_named_files(&mut plan)?;
        let mut digests = digests_of_settings(&resolved.config, &plan);
        digests.insert("the skill".to_owned(), skill.digest());
        check(&starts, &digests)?;
        let open = |id: &RunId| report_files(project, resolved, id, goes_on);
        let files = Arms { control: open(&ids.control)?, treatment: open(&ids.treatment)? };
        let prepared = setup.prepare(&plan).await?;
        digests.extend(prepared.digests(&resolved.rubric.digest()));
        check(&starts, &digests)?;
        let with = prepared.runner.sut.with_skill(Arc::new(skill.clone()))?;
        let runners = Arms {
            control: Arc::clone(&prepared.runner),
            treatment: Arc::new(prepared.runner.with_sut(with)),
        };
        let headers = self.headers(&setup, &plan, &prepared, &ids, &starts);
        let cases = plan.len() / told.repeats as usize;
        let order = interleave(cases, told.repeats, prepared.runner.seed);

        let start = |arm: Arm, header: Arc<RunHeader>, files: ReportFiles, start: Start| {
            let recalled = start.cases().to_vec();
            let journal = start.journal(project, resolved, &header, digests.clone())?;
            log.set_sink(run_number(arm), Arc::clone(&journal) as Arc<dyn CallSink>);
            let (reporting, events) = self.reporting(arm, files, journal);
            let runner = Arc::clone(runners.of(arm));
            Ok::<_, Failure>((ArmRun { runner, header, events, recalled }, reporting))
        };
        let (control, of_control) =
            start(Arm::Control, headers.control, files.control, starts.control)?;
        let (treatment, of_treatment) =
            start(Arm::Treatment, headers.treatment, files.treatment, starts.treatment)?;
        let arms = Arms { control, treatment };
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

    /// The headers of both arms; of one that goes on with the time and the group of its beginning.
    fn headers(
        &self,
        setup: &Setup<'_>,
        plan: &[PlannedCase],
        prepared: &Prepared,
        ids: &Arms<RunId>,
        starts: &Arms<Start>,
    ) -> Arms<Arc<RunHeader>> {
        let of = |arm: Arm| {
            let mut header = setup.header(ids.of(arm).clone(), plan, prepared);
            match starts.of(arm).header() {
                Some(begun) => {
                    header.started_at = begun.started_at;
                    header.task_group_id = begun.task_group_id.clone();
                }
                // Where only the other one goes on, that one's group is in the header.
                None => header.task_group_id = TaskGroupId::fresh(header.started_at),
            }
            header.experiment = Some(ExperimentRun {
                arm,
                other_run_id: ids.of(arm.other()).clone(),
                skill: self.skill.name.clone(),
                skill_digest: self.skill.digest(),
            });
            Arc::new(header)
        };
        Arms { control: of(Arm::Control), treatment: of(Arm::Treatment) }
    }

    /// The beginning of both arms, each with the command for its journal.
    fn begun(&self) -> Broken {
        let now = selftest_clock::now();
        let arms = Arms { control: RunId::fresh(now), treatment: RunId::fresh(now) };
        let experiment = ExperimentRequest {
            told: self.told.clone(),
            arms: arms.clone(),
            json: self.json,
            drafted: self.is_draft.then(|| self.skill.text.clone()),
        };
        let request = Request {
            args: self.told.run(),
            flags: self.resolved.flags.clone(),
            cases_of: None,
            purpose: Purpose::Experiment(Box::new(experiment)),
        };
        let start = || Start::New(Box::new(request.clone()));
        Broken { arms, starts: Arms { control: start(), treatment: start() } }
    }

    /// Those who hear of an arm, and how they are told.
    fn reporting(
        &self,
        arm: Arm,
        files: ReportFiles,
        journal: Arc<Journal>,
    ) -> (Reporting, EventSender) {
        let style = TerminalStyle {
            terminal: false,
            colour: std::io::stderr().is_terminal() && !self.project.environment.no_color,
        };
        let report = ReportObserver::new(files);
        let handle = report.handle();
        let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(report)];
        if self.shows_progress {
            let progress = ProgressObserver::new(style).labelled(LABELS.of(arm));
            observers.insert(0, Box::new(progress));
        }
        let (events, observer_thread) = observe::spawn_observers(observers);
        let events = events.with_log(Arc::clone(&journal) as Arc<dyn EventLog>);
        (Reporting { handle, observer_thread, journal }, events)
    }
}

/// Refuses to go on with what is not the same experiment.
fn check(starts: &Arms<Start>, now: &RunDigests) -> Result<(), Failure> {
    starts.control.check(now)?;
    starts.treatment.check(now)
}

/// The report of an arm in the making, and its journal.
struct Reporting {
    handle: ReportHandle,
    observer_thread: ObserverThread,
    journal: Arc<Journal>,
}

impl Reporting {
    /// The report as `selftest compare` reads it.
    fn finish(self, faults: &mut Vec<String>) -> Result<ReportDocument, Failure> {
        faults.extend(tokio::task::block_in_place(|| self.observer_thread.finish()));
        tokio::task::block_in_place(|| self.journal.close());
        if let Some(fault) = self.journal.fault() {
            eprint(&format!(
                "warning: {fault}; what finished after that is in the reports alone\n"
            ));
        }
        serde_json::from_str(&self.handle.json_text().unwrap_or_default())
            .map_err(|error| Failure::setup(anyhow!("the report of an arm: {error}")))
    }
}
