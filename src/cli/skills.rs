//! The flags of `selftest skills`.

use clap::Subcommand;

use super::ExperimentArgs;

/// What to do with skills.
#[derive(Debug, Subcommand)]
pub enum SkillsAction {
    /// Find out by an experiment whether a skill helps: the same cases with and without it, in
    /// random order, judged blind
    #[command(after_help = EXITS)]
    Experiment(Box<ExperimentArgs>),
}

const EXITS: &str = "\
Exit codes:
  0    tried, whatever the result
  1    with --fail-if-worse: worse with the skill, beyond chance
  2    wrong usage, configuration or suite
  4    nothing ran
  5    a model, the system under test or a report folder could not be used
  130  interrupted";
