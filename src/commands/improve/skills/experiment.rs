//! `selftest improve skills experiment`: the same cases with and without a skill.

use crate::show::show_experiment;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use selftest_app::{
    AppError, ExperimentSettings, LATEST, Project, SuiteFile, find_parts, find_report, plan_cases,
    run_experiment,
};
use selftest_config::ResolvedConfig;
use selftest_harness::experiment::Arm;
use selftest_harness::experiment::power::PowerPlan;
use selftest_reports::ci::ReportRequest;
use selftest_reports::comparison;

use crate::args::{GlobalArgs, TrialArgs};
use crate::exit::Exit;
use crate::show::print_plan;
use crate::ui;
use crate::ui::eprint;

/// Options of an experiment with a skill.
#[derive(Debug, Clone, Args)]
pub struct ExperimentArgs {
    /// The skill: its SKILL.md, a folder that holds one, or the name of a folder in
    /// .claude/skills or skills; default: the skill around the evals.json
    pub skill: Option<String>,
    /// The cases: a suite of `selftest suite freeze`, or the evals.json of a skill
    #[arg(long, value_name = "FILE", help_heading = "What to run")]
    pub suite: PathBuf,
    /// Number of times to run each case with the skill, and without it
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=1000),
        help_heading = "What to run"
    )]
    pub repeats: u32,
    /// Also write the results to this folder in the format of skill-creator: grading.json,
    /// timing.json, `eval_metadata.json`, benchmark.json
    #[arg(long, value_name = "DIR", help_heading = "What to write")]
    pub skill_creator: Option<PathBuf>,
    /// Refused: an experiment is two runs
    #[arg(long, value_name = "KIND=PATH", value_delimiter = ',', hide = true)]
    pub report: Vec<ReportRequest>,
    /// Exit 1 if results are worse with the skill, beyond chance
    #[arg(long, help_heading = "What passes")]
    pub fail_if_worse: bool,
    /// Run nothing: print which differences this number of cases and repeats can detect, with the noise
    /// of the latest run if it has repeats
    #[arg(long, conflicts_with = "fail_if_worse", help_heading = "What to run")]
    pub power: bool,
    /// Options of the runs
    #[command(flatten)]
    pub trials: TrialArgs,
}

impl ExperimentArgs {
    /// Returns these options as the application takes them.
    pub fn settings(&self) -> ExperimentSettings {
        ExperimentSettings {
            skill: self.skill.clone(),
            suite: self.suite.clone(),
            repeats: self.repeats,
            skill_creator: self.skill_creator.clone(),
            fail_if_worse: self.fail_if_worse,
            trials: self.trials.settings(),
        }
    }
}

pub(super) async fn execute(
    told: &ExperimentArgs,
    json: bool,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    if !told.report.is_empty() {
        let error = anyhow!("--report names one file, and an experiment is two runs");
        return Err(AppError::usage(error).hint(Some(
            "write reports of either arm afterwards: `selftest report write RUN --report junit=PATH`",
        )));
    }
    let project = ui::open(global)?;
    let settings = told.settings();
    let resolved = project.load(settings.run().flags())?;
    for warning in &resolved.warnings {
        eprint(&format!("warning: {warning}\n"));
    }
    let parts = find_parts(&project, &settings, None)?;
    if told.power {
        return plan(&project, &resolved, &settings, json);
    }
    let finished = run_experiment(&project, &resolved, &settings, parts, json, None).await?;
    finished.map_or(Ok(Exit::NothingRan), |finished| {
        show_experiment(&project, &finished, &settings, json)
    })
}

/// Says what the experiment can find, by the noise of the latest run.
fn plan(
    project: &Project,
    resolved: &ResolvedConfig,
    settings: &ExperimentSettings,
    json: bool,
) -> Result<Exit, AppError> {
    let suite =
        SuiteFile::for_experiment(project, &settings.suite, &settings.trials.allow_commands)?;
    let plan = plan_cases(&settings.run(), &resolved.config, Some(&suite))?;
    let cases = plan.len() / settings.repeats as usize;
    if cases == 0 {
        eprint("nothing to run: no case was selected\n");
        return Ok(Exit::NothingRan);
    }
    // Without any run the noise is assumed, and the plan says so.
    let latest = find_report(project, resolved, LATEST).ok();
    let trials = latest.map(|report| comparison::trials(&report, Arm::Control));
    let cases = u32::try_from(cases).unwrap_or(u32::MAX);
    print_plan(&PowerPlan::new(cases, settings.repeats, &trials.unwrap_or_default()), json)
}
