//! Options of `selftest suite`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Actions on suites.
#[derive(Debug, Subcommand)]
pub enum SuiteAction {
    /// List what each file would run, what decides each case, and what cannot be used. Runs nothing
    #[command(after_help = CHECK_EXITS)]
    Check(SuiteCheckArgs),
    /// Freeze the cases of a run in a suite file, to run them again with --suite
    Freeze {
        /// Id of the run, its JSON report, or `latest`
        run: String,
        /// Write the suite here. It is an answer key: below config/suites, the system under test
        /// cannot read it [default: config/suites/<run id>.yaml]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Options of `suite check`.
#[derive(Debug, Args)]
pub struct SuiteCheckArgs {
    /// A suite, an evals.json, tests of promptfoo (.yaml), samples of Inspect (.jsonl), the folder of
    /// a skill, or a tree of skills. With -v, each sentence is listed with its check
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Print a JSON array with one object for each file
    #[arg(long)]
    pub json: bool,
}

const CHECK_EXITS: &str = "\
Exit codes:
  0  checked, whatever the warnings
  2  wrong usage, or a file cannot be read
  4  there is no file with anything to run";
