//! The flags of `selftest aa`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use selftest_reports::ci::ReportRequest;

use super::{GateArgs, RunArgs, TrialArgs};

/// Arguments of the comparison of a run, or a suite, with itself.
#[derive(Debug, Args)]
// Not the group of the struct itself, to which all flags would belong.
#[group(skip)]
#[command(group(ArgGroup::new("what").required(true).multiple(false)))]
pub struct AaArgs {
    /// A run with repeats, the odd of which are held against the even ones: its id, its JSON report,
    /// or `latest`
    #[arg(group = "what")]
    pub run: Option<String>,
    /// Run the cases of this suite twice first
    #[arg(long, value_name = "FILE", group = "what", help_heading = "What to run")]
    pub suite: Option<PathBuf>,
    /// Run each case so many times in each half
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..=500),
        help_heading = "What to run"
    )]
    pub repeats: u32,
    /// Write these reports of the run too, comma-separated or repeated: junit=PATH, html=PATH, md=PATH,
    /// json=PATH, ctrf=PATH, sarif=PATH, github, otlp=URL
    #[arg(long, value_name = "KIND=PATH", value_delimiter = ',', help_heading = "What to write")]
    pub report: Vec<ReportRequest>,
    /// Print JSON instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Those of a run
    #[command(flatten)]
    pub trials: TrialArgs,
}

impl AaArgs {
    /// The flags of a run of both halves.
    pub fn run(&self) -> RunArgs {
        RunArgs {
            suite: self.suite.clone(),
            repeats: 2 * self.repeats,
            trials: self.trials.clone(),
            report: self.report.clone(),
            // It is compared with itself.
            gate: GateArgs {
                mode: Some("absolute".to_owned()),
                exit_zero: true,
                ..GateArgs::default()
            },
            ..RunArgs::default()
        }
    }
}
