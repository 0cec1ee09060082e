//! The subcommands of `selftest baseline`.

use std::path::PathBuf;

use clap::Subcommand;

/// Actions on the baseline.
#[derive(Debug, Subcommand)]
pub enum BaselineAction {
    /// Write the results of a run to the baseline, which you commit; replaces the previous one
    Accept {
        /// The run: its id, its JSON report, or `latest`
        #[arg(default_value = "latest")]
        run: String,
        /// Write it here [default: `baseline` of the configuration, else selftest-baseline.json
        /// beside it]
        #[arg(long, value_name = "FILE")]
        baseline: Option<PathBuf>,
    },
    /// Print the baseline
    Show {
        /// Read this file
        #[arg(long, value_name = "FILE")]
        baseline: Option<PathBuf>,
    },
}
