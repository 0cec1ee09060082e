//! Options of `selftest improve skills experiment`.

use std::path::PathBuf;

use clap::Args;
use selftest_reports::ci::ReportRequest;

use super::TrialArgs;
use selftest_app::ExperimentSettings;

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
