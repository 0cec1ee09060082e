//! The entry point: a self-test of a project, built from options.

use std::path::PathBuf;

use anyhow::anyhow;

use crate::ci_reports::check_once;
use crate::error::AppError;
use crate::find_run::LATEST;
use crate::options::RunSettings;
use crate::options::{CasesOf, RunPurpose, RunRequest};
use crate::project::Project;
use crate::resume::RunStart;
use crate::run::FinishedRun;
use crate::run::run_request;
use selftest_config::FlagValue;

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
        all.extend(flags);
        let resolved = project.load(all)?;
        let cases_of = settings.rerun_failed.then(|| CasesOf::NotPassed(LATEST.to_owned()));
        let request = RunRequest::new(settings, resolved.flags.clone(), cases_of, purpose);
        let start = RunStart::New(Box::new(request.clone()));
        run_request(request, start, project, &resolved).await
    }
}
