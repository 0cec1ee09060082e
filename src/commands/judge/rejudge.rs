//! `selftest judge rejudge`: judges the answers of a run again, without asking for new ones.

use crate::show::show_run;
use std::path::PathBuf;

use clap::Args;
use selftest_app::{AppError, GateSettings, RunSettings, TrialSettings, rejudge_run};
use selftest_reports::ci::ReportRequest;

use crate::args::{Format, GateArgs, GlobalArgs, RunArgs};
use crate::exit::Exit;
use crate::ui;
use crate::ui::Terminal;

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
    /// ctrf=PATH, sarif=PATH, reward=PATH, benchmark=PATH, github, otlp=URL
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

pub(super) async fn execute(args: &RejudgeArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let terminal = Terminal::new(global, false);
    let project = ui::open_with(global, terminal)?;
    let Some(run) = rejudge_run(&project, args.settings(), &args.run).await? else {
        return Ok(Exit::NothingRan);
    };
    let gate = GateArgs { exit_zero: args.exit_zero, ..GateArgs::default() };
    let shown = RunArgs { format: args.format, gate, ..RunArgs::default() };
    show_run(&run, &shown, terminal, true)
}
