//! Options that several commands share.

pub mod run;
pub mod sessions;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) use run::{GateArgs, RunArgs, TrialArgs};
pub(crate) use sessions::{DatabaseArgs, SessionArgs, StoreArgs};

/// Options of every command.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// Work in this project folder instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Read this configuration instead of config/selftest.yaml
    #[arg(long, value_name = "FILE", env = "SELFTEST_CONFIG", global = true)]
    pub config: Option<PathBuf>,
    /// Log more to stderr; twice for even more
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Never fetch model weights or anything else
    #[arg(long, global = true)]
    pub offline: bool,
}

/// How results are printed on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// A table for people
    #[default]
    Human,
    /// The JSON report
    Json,
}
