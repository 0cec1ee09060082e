//! `selftest suite`: checks and converts suites, freezes the cases of a run.

mod check;
mod convert;
mod suggest;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Subcommand;

use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui::{self, eprint, print};
use check::SuiteCheckArgs;
use convert::ExportTarget;
use selftest_app::{AppError, find_report};
use selftest_config as config;
use selftest_harness::experiment::power::inconclusive_reason;
use selftest_reports::freeze::{FrozenSuite, freeze};
use selftest_text::wording::plural;

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
        SuiteAction::Freeze { run, output } => freeze_run(run, output.as_deref(), global),
    }
}

/// Folder of suites, which the system under test cannot read.
const FOLDER: &str = "config/suites";

fn freeze_run(run: &str, output: Option<&Path>, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    let report = find_report(&project, &resolved, run)?;
    let FrozenSuite { suite, left_out } = freeze(&report);
    if !report.complete {
        eprint(&format!("warning: {} was not finished\n", report.run_id));
    }
    if !left_out.is_empty() {
        eprint(&format!("left out, because no prompt was generated: {}\n", left_out.join(", ")));
    }
    if suite.cases.is_empty() {
        eprint(&format!("nothing to freeze: {} has no case with a prompt\n", report.run_id));
        return Ok(Exit::NothingRan);
    }
    let text = config::suite::suite_text(&suite);
    let file = match output {
        Some(path) => path.to_owned(),
        None => Path::new(FOLDER).join(format!("{}.yaml", report.run_id)),
    };
    let shown = project.shown_path(&file);
    // What cannot be run again is not worth writing.
    config::suite::parse(&shown, text.clone())?;
    create(&shown, &text)?;
    print(&format!("{}\n", shown.display()))?;
    if let Some(why) = inconclusive_reason(suite.cases.len()) {
        eprint(&format!("warning: {why}\n"));
    }
    eprint(&format!(
        "{} frozen, digest {}\n",
        plural(suite.cases.len() as u64, "case"),
        suite.digest()
    ));
    Ok(Exit::Passed)
}

/// Writes a new file, and the folders above it.
fn create(path: &Path, text: &str) -> Result<(), AppError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let written = folder.map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(text.as_bytes())
    });
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => AppError::usage(anyhow!("{} exists already", path.display()))
            .hint(Some("name another file with --output")),
        _ => AppError::setup(anyhow!("cannot write {}: {error}", path.display())),
    })
}
