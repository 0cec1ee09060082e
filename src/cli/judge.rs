//! Options of `selftest judge`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use selftest_reports::ci::ReportRequest;

use super::{CalibrateArgs, Format, LabelArgs, ModelAction};
use crate::exit;
use selftest_app::{GateSettings, RunSettings, TrialSettings};

/// Actions on judges.
#[derive(Debug, Subcommand)]
pub enum JudgeAction {
    /// Measure how well models separate good answers from bad ones, on answers that ship with
    /// selftest
    Bench(BenchArgs),
    /// Measure how often an answer that addresses the judge changes the verdict
    Attack(AttackArgs),
    /// Judge the answers of a run again, with the current judge or another one. The result is a run of
    /// its own; neither the generator nor the system under test is called
    #[command(after_help = exit::TABLE)]
    Rejudge(RejudgeArgs),
    /// Label answers of a run as good or bad, without seeing the judge's verdicts
    #[command(after_help = super::LABEL_KEYS)]
    Label(LabelArgs),
    /// Compare the judge with your labels: how accurate its probabilities are, and which threshold
    /// fits. Later runs report a pass rate corrected by it
    Calibrate(CalibrateArgs),
    /// List, fetch or locate model weights for the embedded engine
    Model {
        /// The action.
        #[command(subcommand)]
        action: ModelAction,
    },
}

/// Options of a measurement.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// The judge [default: every chat model of the Ollama server and every local model]
    #[arg(long, value_name = "MODEL")]
    pub judge_model: Option<String>,
    /// Also measure on held-out answers by another author
    #[arg(long)]
    pub held_out: bool,
    /// Use one good and one bad answer of every fifth request, for a quick check
    #[arg(long, conflicts_with = "held_out")]
    pub quick: bool,
    /// Print JSON with every answer instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Options of an attack.
#[derive(Debug, Clone, Args)]
pub struct AttackArgs {
    /// The judge [default: judge.model of the configuration]
    #[arg(long, value_name = "MODEL")]
    pub judge_model: Option<String>,
    /// Show the answers to the judge without fences, for comparison
    #[arg(long)]
    pub without_fence: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// The run whose answers are judged again, and the judge.
#[derive(Debug, Args)]
pub struct RejudgeArgs {
    /// The run: its id, its JSON report, or `latest`
    pub run: String,
    /// The judge [default: judge.model of the configuration]
    #[arg(long, value_name = "MODEL", help_heading = "Models")]
    pub judge_model: Option<String>,
    /// Record every reply of the judge in this folder, to be replayed with --judge-model cassette/DIR
    #[arg(long, value_name = "DIR", help_heading = "Models")]
    pub record: Option<PathBuf>,
    /// Number of cases in flight, and of concurrent calls per model endpoint
    #[arg(long, value_name = "N", help_heading = "What to run")]
    pub concurrency: Option<u32>,
    /// Seed of the judge's sampling [default: the run's]
    #[arg(long, value_name = "NUMBER", help_heading = "What to run")]
    pub seed: Option<u64>,
    /// Also write these reports, comma-separated or repeated: junit=PATH, html=PATH, md=PATH, json=PATH,
    /// ctrf=PATH, sarif=PATH, github, otlp=URL
    #[arg(long, value_name = "KIND=PATH", value_delimiter = ',', help_heading = "What to write")]
    pub report: Vec<ReportRequest>,
    /// Exit 0 even if cases fail or have no verdict; setup errors still count
    #[arg(long, help_heading = "What passes")]
    pub exit_zero: bool,
    /// Format of stdout
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
}

impl RejudgeArgs {
    /// Returns the options of a run in which only the judge is called.
    pub fn settings(&self) -> RunSettings {
        RunSettings {
            trials: TrialSettings {
                judge_model: self.judge_model.clone(),
                concurrency: self.concurrency,
                seed: self.seed,
                ..TrialSettings::default()
            },
            record: self.record.clone(),
            report: self.report.clone(),
            gate: GateSettings { exit_zero: self.exit_zero, ..GateSettings::default() },
            ..RunSettings::default()
        }
    }
}
