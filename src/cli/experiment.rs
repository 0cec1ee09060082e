//! The flags of `selftest improve skills experiment`.

use std::path::PathBuf;

use clap::Args;
use selftest_reports::ci::ReportRequest;

use super::TrialArgs;
use selftest_app::ExperimentSettings;

/// Which skill is tried on what, and how often.
#[derive(Debug, Clone, Args)]
pub struct ExperimentArgs {
    /// The skill: its SKILL.md, a folder that holds one, or the name of a folder in
    /// .claude/skills or skills; default: the skill that an evals.json lies in
    pub skill: Option<String>,
    /// The cases to try it on, as `selftest suite freeze` writes them, or the evals.json of a skill
    #[arg(long, value_name = "FILE", help_heading = "What to run")]
    pub suite: PathBuf,
    /// Run each case so many times with the skill, and as often without
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=1000),
        help_heading = "What to run"
    )]
    pub repeats: u32,
    /// Write the results into this folder too, as skill-creator reads them: grading.json,
    /// timing.json, `eval_metadata.json`, benchmark.json
    #[arg(long, value_name = "DIR", help_heading = "What to write")]
    pub skill_creator: Option<PathBuf>,
    /// Refused: an experiment is two runs
    #[arg(long, value_name = "KIND=PATH", value_delimiter = ',', hide = true)]
    pub report: Vec<ReportRequest>,
    /// Exit 1 when it is worse with the skill, beyond chance
    #[arg(long, help_heading = "What passes")]
    pub fail_if_worse: bool,
    /// Run nothing: say what so many cases and repeats can find, and how many of them differences
    /// need. The noise is that of the latest run, where that has repeats
    #[arg(long, conflicts_with = "fail_if_worse", help_heading = "What to run")]
    pub power: bool,
    /// Those of a run
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
