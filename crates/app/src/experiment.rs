//! Runs an experiment with a skill: the same cases without and with it, each arm a run with reports
//! of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use tokio::sync::watch;

use crate::error::AppError;
use crate::options::{ExperimentRequest, ExperimentSettings, RunPurpose, RunRequest};
use crate::project::Project;
use crate::run::{plan_cases, report_files};
use crate::run_start::{EarlierState, RunStart, digests_of_settings};
use crate::setup::{PreparedRun, RunSetup};
use crate::skill_file::{SKILL_FILE, read_skill};
use crate::suite_file::SuiteFile;
use selftest_config::ResolvedConfig;
use selftest_harness::event::{EventLog, ExperimentRun, Observer, RunHeader};
use selftest_harness::experiment::{Arm, Arms};
use selftest_harness::journal::{Journal, RunDigests};
use selftest_harness::outcome::{CaseStatus, RunOutcome};
use selftest_harness::run::arms::{ArmRun, ArmTrial, execute_arms, interleave};
use selftest_harness::run::delivery::{EventSender, ObserverThread, spawn_observers};
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::run::runner::RunLimits;
use selftest_harness::sut::namespace::{RunId, TaskGroupId};
use selftest_harness::sut::skill::{PERSONAL_FILES, Skill, check_hermetic};
use selftest_models::journaled::{CallLog, CallSink};
use selftest_reports::comparison::experiment::{LABELS, PlannedTrial, SkillExperiment};
use selftest_reports::document::ReportDocument;
use selftest_reports::skill_creator::ArmConfiguration;
use selftest_reports::{ReportFiles, ReportHandle, ReportObserver, skill_creator};
use selftest_text::one_line;

/// An experiment to run.
pub(crate) struct Experiment<'a> {
    pub project: &'a Project,
    pub resolved: &'a ResolvedConfig,
    pub settings: &'a ExperimentSettings,
    pub suite: SuiteFile,
    pub skill: Skill,
    /// Where the skill lies: neither arm reads it there.
    pub hidden: Vec<PathBuf>,
    /// True to report each trial to the frontend.
    pub shows_progress: bool,
    /// True if JSON was requested.
    pub json: bool,
    /// True if the skill is not in a file yet.
    pub is_draft: bool,
}

/// The result.
pub struct FinishedExperiment {
    /// The comparison of both arms.
    pub found: SkillExperiment,
    /// The reports of both arms.
    pub reports: Arms<ReportDocument>,
    /// Reports that could not be written.
    pub faults: Vec<String>,
    /// True if the user stopped it.
    pub is_interrupted: bool,
    /// A model server gave no answer, so that not all trials were run.
    pub lacks_model: bool,
}

/// An interrupted experiment.
pub struct InterruptedArms {
    /// Its runs.
    pub arms: Arms<RunId>,
    /// Starts that resume them.
    pub starts: Arms<RunStart>,
}

impl Experiment<'_> {
    /// Runs all trials, or those left of an interrupted experiment. Returns `None` if no case was
    /// selected.
    pub(crate) async fn execute(
        &self,
        broken: Option<InterruptedArms>,
        cancel: watch::Receiver<bool>,
    ) -> Result<Option<FinishedExperiment>, AppError> {
        let (project, resolved, settings) = (self.project, self.resolved, self.settings);
        let skill = &self.skill;
        let args = settings.run();
        let suite = &self.suite;
        let mut plan = plan_cases(&args, &resolved.config, Some(suite))?;
        if plan.is_empty() {
            return Ok(None);
        }
        // Each arm says for itself who has the skill.
        for case in &mut plan {
            case.given_skill = None;
        }
        let is_resumed = broken.is_some();
        let InterruptedArms { arms: ids, mut starts } = broken.unwrap_or_else(|| self.begun());
        // One log for both arms: they share the judge and may share prompts.
        let calls = CallLog::with_calls(starts.control.take_calls());
        let log = Arc::new(calls.with_run(starts.treatment.take_calls()));
        // Shared values come from the arm that has a journal.
        let begun = starts.control.header().or(starts.treatment.header());
        let earlier = EarlierState { log: Arc::clone(&log), cases: &[], header: begun };
        let setup = RunSetup {
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
        // Compared before models are found, which may take long, and again with their digests.
        check(&starts, &digests)?;
        // Opened before the first call, so that no trial is run whose report cannot be written.
        let open = |id: &RunId| report_files(project, resolved, id, is_resumed);
        let files = Arms { control: open(&ids.control)?, treatment: open(&ids.treatment)? };
        if let Some(program) = resolved.config.sut.program() {
            let (section, own) =
                (resolved.config.sut.program_section(), &project.environment.variables);
            check_hermetic(program, section, own, &project.folder)?;
        }
        let prepared = setup.prepare(&plan).await?;
        digests.extend(prepared.digests(&resolved.rubric.digest()));
        check(&starts, &digests)?;
        let with = prepared.runner.sut.with_skill(Arc::new(skill.clone()))?;
        let runners = Arms {
            control: Arc::clone(&prepared.runner),
            treatment: Arc::new(prepared.runner.with_sut(with)),
        };
        let headers = self.headers(&setup, &plan, &prepared, &ids, &starts);
        let cases = plan.len() / settings.repeats as usize;
        let arms = Arm::BOTH.len();
        // Arms alternate, so that a server that slows down over the hour slows both.
        let order = interleave(cases, settings.repeats, arms, prepared.runner.seed);

        let start = |arm: Arm, header: Arc<RunHeader>, files: ReportFiles, start: RunStart| {
            let recalled = start.cases().to_vec();
            let journal = start.journal(project, resolved, &header, digests.clone())?;
            // `execute_arms` numbers the calls of an arm by its position; the journal has to have
            // the same.
            let number = Arm::BOTH.iter().position(|other| *other == arm).unwrap_or_default();
            log.set_sink(number, Arc::clone(&journal) as Arc<dyn CallSink>);
            let label = self.shows_progress.then_some(*LABELS.of(arm));
            let (reporting, events) = ArmReporting::start(project, label, files, journal);
            let (runner, plan) = (Arc::clone(runners.of(arm)), plan.clone());
            Ok::<_, AppError>((ArmRun { runner, header, events, recalled, plan }, reporting))
        };
        let (control, of_control) =
            start(Arm::Control, headers.control, files.control, starts.control)?;
        let (treatment, of_treatment) =
            start(Arm::Treatment, headers.treatment, files.treatment, starts.treatment)?;
        let arms = [control, treatment];
        let trials: Vec<ArmTrial> = order
            .iter()
            .map(|slot| ArmTrial { arm: slot.arm, position: slot.position(cases) })
            .collect();
        let executed = execute_arms(&arms, &trials, RunLimits::default(), cancel).await;
        // Closes the channels of events, so that the observers of both arms finish.
        drop(arms);

        let mut faults = Vec::new();
        let control = of_control.finish(project, &mut faults)?;
        let treatment = of_treatment.finish(project, &mut faults)?;
        let trials = order.iter().filter_map(|slot| {
            let planned = plan.get(slot.position(cases))?;
            let (case, repeat) = (planned.scenario.id.clone(), slot.repeat);
            Some(PlannedTrial { case, repeat, arm: *Arm::BOTH.get(slot.arm)? })
        });
        let found = SkillExperiment::new(&control, &treatment, trials.collect());
        let is_interrupted = executed.iter().any(|arm| arm.outcome == RunOutcome::Interrupted);
        let lacks_model = executed.iter().any(|arm| arm.summary.count(CaseStatus::NotRun) > 0);
        let reports = Arms { control, treatment };
        Ok(Some(FinishedExperiment { found, reports, faults, is_interrupted, lacks_model }))
    }

    /// Returns the headers of both arms; a resumed one keeps its start time and task group.
    fn headers(
        &self,
        setup: &RunSetup<'_>,
        plan: &[PlannedCase],
        prepared: &PreparedRun,
        ids: &Arms<RunId>,
        starts: &Arms<RunStart>,
    ) -> Arms<Arc<RunHeader>> {
        let of = |arm: Arm| {
            let mut header = setup.header(ids.of(arm).clone(), plan, prepared);
            match starts.of(arm).header() {
                Some(begun) => {
                    header.started_at = begun.started_at;
                    header.task_group_id = begun.task_group_id.clone();
                }
                // If only the other arm is resumed, the header has that arm's group.
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

    /// Returns new starts of both arms, each with the request for its journal.
    fn begun(&self) -> InterruptedArms {
        let now = selftest_clock::now();
        let arms = Arms { control: RunId::fresh(now), treatment: RunId::fresh(now) };
        let experiment = ExperimentRequest {
            settings: self.settings.clone(),
            arms: arms.clone(),
            json: self.json,
            drafted: self.is_draft.then(|| self.skill.text.clone()),
        };
        let request = RunRequest::new(
            self.settings.run(),
            self.resolved.flags.clone(),
            None,
            RunPurpose::Experiment(Box::new(experiment)),
        );
        let start = || RunStart::New(Box::new(request.clone()));
        InterruptedArms { arms, starts: Arms { control: start(), treatment: start() } }
    }
}

/// Fails if this is not the same experiment.
fn check(starts: &Arms<RunStart>, now: &RunDigests) -> Result<(), AppError> {
    starts.control.check(now)?;
    starts.treatment.check(now)
}

/// The report of an arm in the making, and its journal.
pub(crate) struct ArmReporting {
    handle: ReportHandle,
    observer_thread: ObserverThread,
    journal: Arc<Journal>,
}

impl ArmReporting {
    /// Starts the observers of an arm; with a label they report each trial to the frontend.
    pub(crate) fn start(
        project: &Project,
        label: Option<&'static str>,
        files: ReportFiles,
        journal: Arc<Journal>,
    ) -> (Self, EventSender) {
        let report = ReportObserver::new(files);
        let handle = report.handle();
        let progress = label.and_then(|label| project.frontend().run_observer(Some(label)));
        let mut observers: Vec<Box<dyn Observer>> = progress.into_iter().collect();
        observers.push(Box::new(report));
        let (events, observer_thread) = spawn_observers(observers);
        let events = events.with_log(Arc::clone(&journal) as Arc<dyn EventLog>);
        (Self { handle, observer_thread, journal }, events)
    }

    /// The report as `selftest compare` reads it.
    pub(crate) fn finish(
        self,
        project: &Project,
        faults: &mut Vec<String>,
    ) -> Result<ReportDocument, AppError> {
        // Joining a thread blocks, so the runtime has to move its other tasks away.
        faults.extend(tokio::task::block_in_place(|| self.observer_thread.finish()));
        tokio::task::block_in_place(|| self.journal.close());
        if let Some(fault) = self.journal.fault() {
            project.notify(&format!(
                "warning: {fault}; what finished after that is in the reports alone\n"
            ));
        }
        // The report as readers get it, with the same rounding.
        serde_json::from_str(&self.handle.json_text().unwrap_or_default())
            .map_err(|error| AppError::setup(anyhow!("the report of an arm: {error}")))
    }
}

/// Folders in which skills are found by name.
const FOLDERS: [&str; 2] = [".claude/skills", "skills"];

/// The skill under trial and the suite that it is tried on.
pub struct ExperimentParts {
    suite: SuiteFile,
    skill: Skill,
    /// File of the skill; absent for a draft.
    file: Option<PathBuf>,
}

/// Finds the skill and the suite that the options name; `drafted` is the text of a skill that is in
/// no file.
pub fn find_parts(
    project: &Project,
    settings: &ExperimentSettings,
    drafted: Option<&str>,
) -> Result<ExperimentParts, AppError> {
    let mut suite =
        SuiteFile::for_experiment(project, &settings.suite, &settings.trials.allow_commands)?;
    let around = suite.skill.take();
    let (skill, file) = match (&settings.skill, drafted, around) {
        // A draft is in the journal and in no file.
        (Some(name), Some(text), _) => (Skill::of_text(name.clone(), text), None),
        (Some(named), None, _) => find(project, named).map(|(skill, file)| (skill, Some(file)))?,
        (None, _, Some((skill, file))) => (skill, Some(file)),
        (None, _, None) => {
            let error = anyhow!("{} is in no skill, and none is named", settings.suite.display());
            return Err(AppError::usage(error).hint(Some(
                "`selftest improve skills experiment SKILL --suite SKILL_FILE` names one",
            )));
        }
    };
    Ok(ExperimentParts { suite, skill, file })
}

/// The skill that the user names, and its file.
fn find(project: &Project, named: &str) -> Result<(Skill, PathBuf), AppError> {
    let by_name = FOLDERS.iter().map(|folder| Path::new(folder).join(named));
    // A path wins over a name: it cannot mean anything else.
    let places = std::iter::once(PathBuf::from(named)).chain(by_name);
    let files =
        places.flat_map(|place| [place.join(SKILL_FILE), place]).map(|file| project.path(&file));
    let shown = one_line(named, 200);
    let Some(file) = files.into_iter().find(|file| file.is_file()) else {
        return Err(AppError::usage(anyhow!("there is no skill `{shown}`")).hint(Some(format!(
            "name a {SKILL_FILE}, a folder that holds one, or a folder in {}",
            FOLDERS.join(" or ")
        ))));
    };
    Ok((read_skill(&file)?.with_name(shown), file))
}

/// The part of a skill to hide: its whole folder, which may hold more of it, unless the project lies
/// in that.
pub(crate) fn to_hide(project: &Project, file: &Path) -> PathBuf {
    let folder = file.parent().filter(|_| file.ends_with(SKILL_FILE));
    let folder = folder.and_then(|folder| folder.canonicalize().ok());
    // Hiding a folder around the project would hide the project.
    match folder.filter(|folder| !project.folder.starts_with(folder)) {
        Some(folder) => folder,
        None => file.to_owned(),
    }
}

/// Runs an experiment, or what is left of one that was interrupted, and writes its files. Returns
/// `None` if no case was selected.
pub async fn run_experiment(
    project: &Project,
    resolved: &ResolvedConfig,
    settings: &ExperimentSettings,
    parts: ExperimentParts,
    json: bool,
    interrupted: Option<InterruptedArms>,
) -> Result<Option<FinishedExperiment>, AppError> {
    let ExperimentParts { suite, skill, file } = parts;
    let experiment = Experiment {
        project,
        resolved,
        settings,
        suite,
        skill,
        // Otherwise the arm without the skill could read it.
        hidden: file
            .iter()
            .map(|file| to_hide(project, file))
            .chain(PERSONAL_FILES.map(|file| project.folder.join(file)))
            .collect(),
        shows_progress: true,
        json,
        is_draft: file.is_none(),
    };
    let cancellation = project.frontend().cancellation();
    let Some(finished) = experiment.execute(interrupted, cancellation).await? else {
        project.notify("nothing to run: no case was selected\n");
        return Ok(None);
    };
    if let Some(folder) = &settings.skill_creator {
        let Arms { control, treatment } = &finished.reports;
        let arms = [
            ArmConfiguration { name: WITH_SKILL, report: treatment },
            ArmConfiguration { name: WITHOUT_SKILL, report: control },
        ];
        write_skill_creator(project, folder, &finished.found.skill, &arms)?;
    }
    Ok(Some(finished))
}

/// The arm with the skill.
pub const WITH_SKILL: &str = "with_skill";
/// The arm without it.
pub const WITHOUT_SKILL: &str = "without_skill";

/// Writes the files of an iteration below a folder. Files of the same names are written over.
pub fn write_skill_creator(
    project: &Project,
    folder: &Path,
    skill: &str,
    configurations: &[ArmConfiguration<'_>],
) -> Result<(), AppError> {
    let folder = project.path(folder);
    for (path, text) in skill_creator::files(skill, configurations) {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(&folder);
        std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text)).map_err(
            |error| {
                AppError::setup(anyhow!("cannot write {}: {error}", path.display()))
                    .hint(Some("name another folder with --skill-creator"))
            },
        )?;
    }
    Ok(())
}
