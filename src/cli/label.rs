//! Options of `selftest judge label` and `selftest judge calibrate`.

use std::path::PathBuf;

use clap::Args;

/// Options of labelling.
#[derive(Debug, Args)]
pub struct LabelArgs {
    /// The run: its id, its JSON report, or `latest`
    pub run: String,
    /// Read labels from this JSON file instead of asking, - for stdin: a list of
    /// {"case": "…", "label": "good"}, or a label file
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Print the labels as JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of a calibration.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Runs whose labels to use, comma-separated [default: all runs with labels]
    #[arg(long, value_name = "RUNS", value_delimiter = ',')]
    pub runs: Vec<String>,
    /// Print the calibration as JSON
    #[arg(long)]
    pub json: bool,
}
