//! Options of `selftest compare`.

use std::path::PathBuf;

use clap::Args;
use selftest_reports::ci::ReportRequest;

use super::TrialArgs;
use selftest_app::{GateSettings, RunSettings};

/// Options of a comparison. [`CompareArgs::comparison`] says which of four it is.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct CompareArgs {
    /// The first run: its id, its JSON report, or `latest`
    #[arg(required_unless_present_any = ["suite", "replay"])]
    pub a: Option<String>,
    /// The second run
    #[arg(
        required_unless_present_any = ["power", "self", "replay"],
        conflicts_with_all = ["power", "self", "replay"]
    )]
    pub b: Option<String>,
    /// Compare the odd repeats of a run with its even ones, to see how much results differ when
    /// nothing was changed; with --suite, run its cases twice first
    #[arg(id = "self", long = "self", conflicts_with_all = ["power", "replay"])]
    pub with_itself: bool,
    /// Run the cases of this run again, with its seed and the current settings, and compare both
    #[arg(long, value_name = "RUN", conflicts_with_all = ["a", "power"])]
    pub replay: Option<String>,
    /// Print which differences a comparison with another run like the first can detect, and how
    /// many cases and repeats smaller ones need
    #[arg(long)]
    pub power: bool,
    /// Exit 1 if the second run, or the replay, is worse beyond chance
    #[arg(long, conflicts_with_all = ["power", "self"])]
    pub fail_if_worse: bool,
    /// Print JSON instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print Markdown instead of text, for a comment beside a change
    #[arg(long, conflicts_with_all = ["json", "power", "self"], help_heading = "Output")]
    pub markdown: bool,
    /// With --self: run the cases of this suite twice first
    #[arg(
        long,
        value_name = "FILE",
        requires = "self",
        conflicts_with = "a",
        help_heading = "What to run"
    )]
    pub suite: Option<PathBuf>,
    /// Number of times to run each case [default: 3 in each half with --self, else that of the run]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=500),
        conflicts_with = "b",
        help_heading = "What to run"
    )]
    pub repeats: Option<u32>,
    /// Options of the run that --self or --replay starts.
    #[command(flatten)]
    pub trials: TrialArgs,
    /// Write these reports of the run too, comma-separated or repeated: junit=PATH, html=PATH,
    /// md=PATH, json=PATH, ctrf=PATH, sarif=PATH, github, otlp=URL
    #[arg(
        long,
        value_name = "KIND=PATH",
        value_delimiter = ',',
        conflicts_with = "b",
        help_heading = "What to write"
    )]
    pub report: Vec<ReportRequest>,
}

/// A comparison that was asked for.
#[derive(Debug)]
pub enum Comparison {
    /// Two runs.
    Runs([String; 2]),
    /// The differences that a comparison with a run like this one can detect.
    Power(String),
    /// A run with itself.
    Itself(AaArgs),
    /// A run with a replay of it.
    Replay(ReplayArgs),
}

impl CompareArgs {
    /// Returns true if this compares runs that have finished.
    pub fn starts_no_run(&self) -> bool {
        self.replay.is_none() && self.suite.is_none()
    }

    /// Returns the comparison that these options ask for.
    pub fn comparison(self) -> Comparison {
        match (self.a, self.b, self.replay) {
            (_, _, Some(run)) => Comparison::Replay(ReplayArgs {
                run,
                repeats: self.repeats,
                trials: self.trials,
                report: self.report,
                fail_if_worse: self.fail_if_worse,
                json: self.json,
                markdown: self.markdown,
            }),
            (Some(a), Some(b), None) => Comparison::Runs([a, b]),
            (Some(a), None, None) if self.power => Comparison::Power(a),
            (run, _, None) => Comparison::Itself(AaArgs {
                run,
                suite: self.suite,
                repeats: self.repeats.unwrap_or(3),
                report: self.report,
                json: self.json,
                trials: self.trials,
            }),
        }
    }
}

/// A comparison of a run, or of a suite that is run twice, with itself.
#[derive(Debug)]
pub struct AaArgs {
    /// A run with repeats: its id, its JSON report, or `latest`; absent with a suite.
    pub run: Option<String>,
    /// The suite to run.
    pub suite: Option<PathBuf>,
    /// Number of times to run each case in each half.
    pub repeats: u32,
    /// Reports of the run to write.
    pub report: Vec<ReportRequest>,
    /// True to print JSON.
    pub json: bool,
    /// Options of the run.
    pub trials: TrialArgs,
}

impl AaArgs {
    /// Returns the options of a run of both halves.
    pub fn settings(&self) -> RunSettings {
        RunSettings {
            suite: self.suite.clone(),
            repeats: 2 * self.repeats,
            trials: self.trials.settings(),
            report: self.report.clone(),
            gate: compared_gate(),
            ..RunSettings::default()
        }
    }
}

/// Returns the gate of a run that is compared with another one instead.
fn compared_gate() -> GateSettings {
    GateSettings { mode: Some("absolute".to_owned()), exit_zero: true, ..GateSettings::default() }
}

/// A run to repeat, and how the comparison with it is printed.
#[derive(Debug)]
pub struct ReplayArgs {
    /// The run: its id, its JSON report, or `latest`.
    pub run: String,
    /// Number of times to run each case; default: that of the run.
    pub repeats: Option<u32>,
    /// Options of the new run.
    pub trials: TrialArgs,
    /// Reports of the new run to write.
    pub report: Vec<ReportRequest>,
    /// True to exit 1 if the new run is worse beyond chance.
    pub fail_if_worse: bool,
    /// True to print JSON.
    pub json: bool,
    /// True to print Markdown.
    pub markdown: bool,
}

impl ReplayArgs {
    /// Returns the options of the new run.
    pub fn settings(&self) -> RunSettings {
        RunSettings {
            trials: self.trials.settings(),
            report: self.report.clone(),
            gate: compared_gate(),
            ..RunSettings::default()
        }
    }
}
