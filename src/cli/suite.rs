//! The flags of `selftest suite`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Actions on files of cases.
#[derive(Debug, Subcommand)]
pub enum SuiteAction {
    /// Say what each file would run, who decides it, and what in it cannot be used. Runs nothing
    #[command(after_help = CHECK_EXITS)]
    Check(SuiteCheckArgs),
}

/// Flags of `suite check`.
#[derive(Debug, Args)]
pub struct SuiteCheckArgs {
    /// A suite, an evals.json, tests of promptfoo (.yaml), samples of Inspect (.jsonl), the folder of
    /// a skill, or a tree of skills. With -v each sentence stands beside its check
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
