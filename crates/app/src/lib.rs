//! The application without a command line: it reads a project, runs suites, experiments and
//! replays, resumes and rejudges runs, and measures judges. It never prints; a [`Frontend`]
//! receives notices and progress.
//!
//! ```no_run
//! # async fn example() -> Result<(), selftest_app::AppError> {
//! use std::sync::Arc;
//!
//! use selftest_app::{Project, ProjectOptions, SelfTest, SilentFrontend};
//!
//! let project = Project::open(ProjectOptions::default(), Arc::new(SilentFrontend))?;
//! let run = SelfTest::builder(&project).suite("config/suites/main.yaml").repeats(3).run().await?;
//! if let Some(run) = run {
//! println!("{:?}", run.outcome());
//! }
//! # Ok(())
//! # }
//! ```

mod baseline;
mod ci_reports;
pub mod doctor;
mod drafts;
mod error;
mod experiment;
mod find_run;
mod grading;
mod greeting;
mod judges;
mod judging;
mod merge;
mod options;
mod otlp;
mod project;
mod rerun;
mod resume;
mod run;
mod run_request;
mod run_start;
mod setup;
mod skill_file;
mod skill_test;
mod suite_file;
mod unfinished_measurement;

use std::path::PathBuf;

use anyhow::anyhow;

use run_request::run_request;
use run_start::RunStart;
use selftest_config::FlagValue;

pub use baseline::read_baseline;
pub use ci_reports::{CiReports, case_sources, check_once};
pub use drafts::{Drafter, generator_on_request};
pub use error::{AppError, AppErrorKind};
pub use experiment::{
    ExperimentParts, FinishedExperiment, WITH_SKILL, WITHOUT_SKILL, find_parts, run_experiment,
    write_skill_creator,
};
pub use find_run::{LATEST, find_report, find_report_file, refuse_arm};
pub use grading::{
    GradersOnRequest, find_grade, grader_finder, quality_graders, reflection_grader, rubric_in_use,
    skill_tracker,
};
pub use greeting::{Greeting, GreetingError, HELLO, greet};
pub use judges::{FETCH_JUDGE, MeasuredJudge, QUICK_SUBSET, requirement};
pub use judging::{CALIBRATION_FILE, OWN_SCORES_FILE, calibration_path, own_scores_path};
pub use merge::merge_shards;
pub use options::{
    CasesOf, ComparisonFormat, ExperimentRequest, ExperimentSettings, GateSettings, RunPurpose,
    RunRequest, RunSettings, TrialSettings,
};
pub use project::{Frontend, Project, ProjectOptions, SilentFrontend};
pub use rerun::{Replay, rejudge_run, replay};
pub use resume::{ContinuedRun, continue_run};
pub use run::{FinishedRun, plan_cases};
pub use setup::RunSetup;
pub use skill_file::{
    SKILL_FILE, SkillFileError, SkillFolderError, SkillTextError, front_matter, read_skill,
    read_skill_text,
};
pub use skill_test::inventory::{FoundSkill, RefusedSkill, SkillInventory};
pub use skill_test::{FinishedSkillTest, SkillTest, SkillTestSettings};
pub use suite_file::{SuiteFile, skill_around};
pub use unfinished_measurement::UnfinishedMeasurement;

/// A self-test of a project. See [`SelfTest::builder`].
pub struct SelfTest;

impl SelfTest {
    /// Starts with the options of `selftest` without arguments.
    pub fn builder(project: &Project) -> SelfTestBuilder<'_> {
        SelfTestBuilder {
            project,
            settings: RunSettings::default(),
            flags: Vec::new(),
            purpose: RunPurpose::Results,
        }
    }
}

/// Builds and runs a [`SelfTest`].
#[must_use]
pub struct SelfTestBuilder<'p> {
    project: &'p Project,
    settings: RunSettings,
    flags: Vec<FlagValue>,
    purpose: RunPurpose,
}

impl SelfTestBuilder<'_> {
    /// Replaces all options.
    pub fn settings(mut self, settings: RunSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Runs the cases of this suite, relative to the project folder, instead of generated ones.
    pub fn suite(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.suite = Some(path.into());
        self
    }

    /// Judges with this model.
    pub fn judge(mut self, model: impl Into<String>) -> Self {
        self.settings.trials.judge_model = Some(model.into());
        self
    }

    /// Runs each case of the suite this many times.
    pub const fn repeats(mut self, repeats: u32) -> Self {
        self.settings.repeats = repeats;
        self
    }

    /// Sets values of the configuration beyond those that the options set.
    pub fn flags(mut self, flags: Vec<FlagValue>) -> Self {
        self.flags = flags;
        self
    }

    /// States what the run is for, which a resumed run needs to know.
    pub fn purpose(mut self, purpose: RunPurpose) -> Self {
        self.purpose = purpose;
        self
    }

    /// Runs the cases and writes the reports. Returns `None` if there is nothing to run.
    pub async fn run(self) -> Result<Option<FinishedRun>, AppError> {
        let Self { project, settings, flags, purpose } = self;
        check_once(&settings.report)?;
        let allowed = &settings.trials.allow_commands;
        if let (None, false, Some(name)) = (&settings.suite, settings.rerun_failed, allowed.first())
        {
            return Err(AppError::usage(anyhow!("--allow-commands {name} needs --suite")));
        }
        let mut all = settings.flags();
        // After the settings, so that they win where both set a key.
        all.extend(flags);
        let resolved = project.load(all)?;
        let cases_of = settings.rerun_failed.then(|| CasesOf::NotPassed(LATEST.to_owned()));
        let request = RunRequest::new(settings, resolved.flags.clone(), cases_of, purpose);
        let start = RunStart::New(Box::new(request.clone()));
        run_request(request, start, project, &resolved).await
    }
}
