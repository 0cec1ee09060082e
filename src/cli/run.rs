//! The flags of a run. Holds no defaults of the configuration.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use selftest_harness::report::ci::ReportRequest;

/// How results are printed on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// A table for people
    #[default]
    Human,
    /// The JSON report
    Json,
}

/// Flags that a run has in common with each arm of an experiment.
#[derive(Debug, Clone, Default, Args)]
pub struct TrialArgs {
    /// Run the first N scenarios, or these: a,b,c
    #[arg(long, value_name = "N|IDS", help_heading = "What to run")]
    pub scenarios: Option<String>,
    /// Run the shell lines (`setup`, `cmd`) in an evals.json of this skill, or of the case with this
    /// id, in the sandbox; they are strangers' lines, so read them first
    #[arg(long, value_name = "NAME", help_heading = "What to run")]
    pub allow_commands: Vec<String>,
    /// Seconds that the system under test has for each case
    #[arg(long, value_name = "SECS", help_heading = "What to run")]
    pub timeout: Option<f64>,
    /// Trials in flight, and calls at once per model endpoint
    #[arg(long, value_name = "N", help_heading = "What to run")]
    pub concurrency: Option<u32>,
    /// Seed of all sampling, and of the order of trials; random when absent
    #[arg(long, value_name = "NUMBER", help_heading = "What to run")]
    pub seed: Option<u64>,
    /// Model for every role: auto, ollama/NAME, openai/NAME, embedded/NAME, cassette/DIR
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub model: Option<String>,
    /// Model that judges the answers
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub judge_model: Option<String>,
    /// Model of the built-in assistant (system under test `chat`)
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub sut_model: Option<String>,
}

/// Flags of a run.
#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// Those of an arm too
    #[command(flatten)]
    pub trials: TrialArgs,
    /// Run exactly the cases of this suite, as `selftest freeze` writes it, of the evals.json or the
    /// trigger-evals.json of a skill, or of all skills in a folder; no case is generated
    #[arg(long, value_name = "PATH", help_heading = "What to run")]
    pub suite: Option<PathBuf>,
    /// Write the results into this folder too, as skill-creator reads them: grading.json,
    /// timing.json, `eval_metadata.json`, benchmark.json
    #[arg(long, value_name = "DIR", requires = "suite", help_heading = "What to write")]
    pub skill_creator: Option<PathBuf>,
    /// Write these reports too, comma-separated or repeated: junit=PATH, html=PATH, md=PATH, json=PATH,
    /// ctrf=PATH, github
    #[arg(long, value_name = "KIND=PATH", value_delimiter = ',', help_heading = "What to write")]
    pub report: Vec<ReportRequest>,
    /// Run each case of the suite so many times
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1000),
        requires = "suite",
        hide_default_value = true,
        help_heading = "What to run"
    )]
    pub repeats: u32,
    /// Run all scenarios (the default; says so in scripts)
    #[arg(long, conflicts_with = "scenarios", help_heading = "What to run")]
    pub full: bool,

    /// How strict: 0.0 lenient to 1.0 strict
    #[arg(long, value_name = "0..1", help_heading = "What passes")]
    pub strictness: Option<f64>,
    /// Least overall score that passes, before strictness is added
    #[arg(long, value_name = "0..1", help_heading = "What passes")]
    pub min_score: Option<f64>,
    /// Exit 0 even when cases fail or have no verdict; setup errors still count
    #[arg(long, help_heading = "What passes")]
    pub exit_zero: bool,

    /// Model that invents the prompts
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub generator_model: Option<String>,
    /// Record every model reply in this folder, to be replayed with --model cassette/DIR
    #[arg(long, value_name = "DIR", help_heading = "Models")]
    pub record: Option<PathBuf>,

    /// The format of stdout
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
}
