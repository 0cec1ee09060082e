//! The flags of `selftest rejudge` and `selftest replay`.

use std::path::PathBuf;

use clap::Args;
use selftest_reports::ci::ReportRequest;

use super::{Format, GateArgs, RunArgs, TrialArgs};

/// Whose answers are judged again, and by whom.
#[derive(Debug, Args)]
pub struct RejudgeArgs {
    /// The run: its id, its JSON report, or `latest`
    pub run: String,
    /// Model that judges [default: that of the configuration]
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub judge: Option<String>,
    /// Record every reply of the judge in this folder, to be replayed with --judge cassette/DIR
    #[arg(long, value_name = "DIR", help_heading = "Models")]
    pub record: Option<PathBuf>,
    /// Cases in flight, and calls at once per model endpoint
    #[arg(long, value_name = "N", help_heading = "What to run")]
    pub concurrency: Option<u32>,
    /// Seed of the judge's sampling [default: that of the run]
    #[arg(long, value_name = "NUMBER", help_heading = "What to run")]
    pub seed: Option<u64>,
    /// Write these reports too, comma-separated or repeated: junit=PATH, html=PATH, md=PATH, json=PATH,
    /// ctrf=PATH, sarif=PATH, github, otlp=URL
    #[arg(long, value_name = "KIND=PATH", value_delimiter = ',', help_heading = "What to write")]
    pub report: Vec<ReportRequest>,
    /// Exit 0 even when cases fail or have no verdict; setup errors still count
    #[arg(long, help_heading = "What passes")]
    pub exit_zero: bool,
    /// The format of stdout
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
}

impl RejudgeArgs {
    /// The flags of a run in which only the judge speaks.
    pub fn run(&self) -> RunArgs {
        RunArgs {
            trials: TrialArgs {
                judge_model: self.judge.clone(),
                concurrency: self.concurrency,
                seed: self.seed,
                ..TrialArgs::default()
            },
            record: self.record.clone(),
            report: self.report.clone(),
            gate: GateArgs { exit_zero: self.exit_zero, ..GateArgs::default() },
            format: self.format,
            ..RunArgs::default()
        }
    }
}

/// Which run is played again, and how it is compared.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The run: its id, its JSON report, or `latest`
    pub run: String,
    /// Run each case so many times [default: as often as the run did]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1000),
        help_heading = "What to run"
    )]
    pub repeats: Option<u32>,
    /// Those of a run
    #[command(flatten)]
    pub trials: TrialArgs,
    /// Write these reports too, comma-separated or repeated: junit=PATH, html=PATH, md=PATH, json=PATH,
    /// ctrf=PATH, sarif=PATH, github, otlp=URL
    #[arg(long, value_name = "KIND=PATH", value_delimiter = ',', help_heading = "What to write")]
    pub report: Vec<ReportRequest>,
    /// Exit 1 when the run is worse now, beyond chance
    #[arg(long, help_heading = "What passes")]
    pub fail_if_worse: bool,
    /// Print JSON instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print Markdown instead of text, for a comment beside a change
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub markdown: bool,
}

impl ReplayArgs {
    /// The flags of the run: those of `then` where none is given.
    pub fn run(&self, seed: u64, repeats: u32) -> RunArgs {
        RunArgs {
            trials: TrialArgs { seed: self.trials.seed.or(Some(seed)), ..self.trials.clone() },
            repeats: self.repeats.unwrap_or(repeats),
            report: self.report.clone(),
            // It is compared with the run that it repeats.
            gate: GateArgs {
                mode: Some("absolute".to_owned()),
                exit_zero: true,
                ..GateArgs::default()
            },
            ..RunArgs::default()
        }
    }
}
