//! The flags of `selftest skills experiment`.

use std::path::PathBuf;

use clap::Args;

use super::{Format, RunArgs};

/// Which skill is tried on what, and how often.
#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// The skill: its SKILL.md, a folder that holds one, or the name of a folder in
    /// .claude/skills or skills
    pub skill: String,
    /// The cases to try it on, as `selftest freeze` writes them
    #[arg(long, value_name = "FILE", help_heading = "What to run")]
    pub suite: PathBuf,
    /// Only the first N cases of the suite, or these: a,b,c
    #[arg(long, value_name = "N|IDS", help_heading = "What to run")]
    pub scenarios: Option<String>,
    /// Run each case so many times with the skill, and as often without
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=1000),
        help_heading = "What to run"
    )]
    pub repeats: u32,
    /// Seconds that the system under test has for each case
    #[arg(long, value_name = "SECS", help_heading = "What to run")]
    pub timeout: Option<f64>,
    /// Trials in flight, and calls at once per model endpoint
    #[arg(long, value_name = "N", help_heading = "What to run")]
    pub concurrency: Option<u32>,
    /// Seed of the order of trials and of all sampling; random when absent
    #[arg(long, value_name = "NUMBER", help_heading = "What to run")]
    pub seed: Option<u64>,
    /// Exit 1 when it is worse with the skill, beyond chance
    #[arg(long, help_heading = "What passes")]
    pub fail_if_worse: bool,
    /// Model for every role, as for a run
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub model: Option<String>,
    /// Model that judges the answers
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub judge_model: Option<String>,
    /// Model of the built-in assistant (system under test `chat`)
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub sut_model: Option<String>,
}

impl ExperimentArgs {
    /// Every case of the suite, with the models of the configuration.
    pub fn of(skill: String, suite: PathBuf, repeats: u32) -> Self {
        Self {
            skill,
            suite,
            scenarios: None,
            repeats,
            timeout: None,
            concurrency: None,
            seed: None,
            fail_if_worse: false,
            model: None,
            judge_model: None,
            sut_model: None,
        }
    }

    /// The flags of a run like each of the arms.
    pub fn run(&self) -> RunArgs {
        RunArgs {
            scenarios: self.scenarios.clone(),
            suite: Some(self.suite.clone()),
            repeats: self.repeats,
            full: false,
            timeout: self.timeout,
            concurrency: self.concurrency,
            seed: self.seed,
            strictness: None,
            min_score: None,
            exit_zero: false,
            model: self.model.clone(),
            generator_model: None,
            judge_model: self.judge_model.clone(),
            sut_model: self.sut_model.clone(),
            record: None,
            format: Format::Human,
        }
    }
}
