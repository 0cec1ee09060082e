//! `selftest suite`: checks and converts suites, freezes the cases of a run.

mod check;
mod convert;
mod freeze;
mod suggest;

use std::path::PathBuf;

use check::SuiteCheckArgs;
use clap::Subcommand;
use convert::ExportTarget;
use selftest_app::AppError;

use crate::args::GlobalArgs;
use crate::exit::Exit;

/// Actions on suites.
#[derive(Debug, Subcommand)]
pub enum SuiteAction {
    /// List what each file would run, what decides each case, and what cannot be used. Runs nothing
    #[command(after_help = CHECK_EXITS)]
    Check(SuiteCheckArgs),
    /// Write a suite of another program as one of selftest
    Convert {
        /// The suite: `suite check` says which programs are known
        path: PathBuf,
        /// Write it here; it is an answer key [default: stdout]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Write a suite in the form of another program
    Export {
        /// The form
        #[arg(long, value_name = "FORM")]
        to: ExportTarget,
        /// The suite, of selftest or of another program
        path: PathBuf,
        /// Write it here; for harbor a folder [default: stdout]
        #[arg(long, value_name = "PATH")]
        output: Option<PathBuf>,
    },
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

const CHECK_EXITS: &str = "\
Exit codes:
  0  checked, whatever the warnings
  2  wrong usage, or a file cannot be read
  4  there is no file with anything to run";

pub(super) fn execute(action: &SuiteAction, global: &GlobalArgs) -> Result<Exit, AppError> {
    match action {
        SuiteAction::Check(args) => check::execute(args, global),
        SuiteAction::Convert { path, output } => convert::convert(path, output.as_deref(), global),
        SuiteAction::Export { to, path, output } => {
            convert::export_to(*to, path, output.as_deref(), global)
        }
        SuiteAction::Freeze { run, output } => freeze::execute(run, output.as_deref(), global),
    }
}
