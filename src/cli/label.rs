//! The flags of `selftest judge label` and `selftest judge calibrate`.

use std::path::PathBuf;

use clap::Args;

/// Which answers are labelled, and how.
#[derive(Debug, Args)]
pub struct LabelArgs {
    /// The run: its id, its JSON report, or `latest`
    pub run: String,
    /// Take labels from this JSON file instead of asking, - for stdin: a list of
    /// {"case": "…", "label": "good"}, or a label file
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Print the labels as JSON
    #[arg(long)]
    pub json: bool,
}

/// Which labels a judge is calibrated on.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Runs whose labels count, comma-separated [default: every run with labels]
    #[arg(long, value_name = "RUNS", value_delimiter = ',')]
    pub runs: Vec<String>,
    /// Print the calibration as JSON
    #[arg(long)]
    pub json: bool,
}
