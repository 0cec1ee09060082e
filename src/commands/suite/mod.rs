//! `selftest suite`: checks suites, freezes the cases of a run, and converts suites of other programs
//! to ours and ours to theirs.

mod check;
mod suggest;

use std::fs;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Subcommand, ValueEnum};

use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};
use check::SuiteCheckArgs;
use selftest_app::{AppError, find_report, skill_around};
use selftest_checks::evals::{ShellPermission, folder};
use selftest_checks::export::{ExportForm, export};
use selftest_checks::suite::Suite;
use selftest_config as config;
use selftest_harness::experiment::power::inconclusive_reason;
use selftest_reports::rerun::{FrozenSuite, freeze};
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
        SuiteAction::Convert { path, output } => convert(path, output.as_deref(), global),
        SuiteAction::Export { to, path, output } => export_to(*to, path, output.as_deref(), global),
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
        // Never over a file: a suite is edited by hand after it was written.
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(text.as_bytes())
    });
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => AppError::usage(anyhow!("{} exists already", path.display()))
            .hint(Some("name another file with --output")),
        _ => AppError::setup(anyhow!("cannot write {}: {error}", path.display())),
    })
}

/// A form to write a suite in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportTarget {
    /// A folder with a task for each case
    Harbor,
    /// The evals.json of a skill
    #[value(name = "evals.json")]
    EvalsJson,
    /// A promptfooconfig.yaml
    Promptfoo,
}

impl From<ExportTarget> for ExportForm {
    fn from(target: ExportTarget) -> Self {
        match target {
            ExportTarget::Harbor => Self::Harbor,
            ExportTarget::EvalsJson => Self::EvalsJson,
            ExportTarget::Promptfoo => Self::Promptfoo,
        }
    }
}

/// A suite, whosever it was, and the skill that it names.
fn read(path: &Path) -> Result<(Suite, Option<String>), AppError> {
    if !path.is_file() {
        let error = anyhow!("there is no file {}", path.display());
        return Err(AppError::usage(error).hint(Some("name one suite; `suite check` lists them")));
    }
    if config::suite::is_selftest_suite(path) {
        return Ok((config::suite::load(path)?, None));
    }
    let file = folder::read_file(path)
        .map_err(|error| AppError::usage(anyhow!("{}: {error}", path.display())))?;
    for line in file.warnings.iter().filter(|line| line.starts_with("not carried over")) {
        eprint(&format!("warning: {line}\n"));
    }
    for path in &file.missing_files {
        eprint(&format!("warning: the file `{path}` is nowhere\n"));
    }
    let mut names = skill_around(path);
    if names.is_empty() {
        names.extend(file.skill.clone());
    }
    let denied = |_: &str| {
        ShellPermission::Denied("shell lines of another program are not converted".to_owned())
    };
    let imported = file.suite(&names, &denied);
    for line in &imported.left_out {
        eprint(&format!("warning: left out: {line}\n"));
    }
    for (id, files) in &imported.files {
        let count = plural(files.len() as u64, "file");
        eprint(&format!("warning: case {id}: its {count} stay with the original suite\n"));
    }
    Ok((imported.suite, file.skill))
}

fn convert(path: &Path, output: Option<&Path>, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let shown = project.shown_path(path);
    let (suite, _) = read(&shown)?;
    if suite.cases.is_empty() {
        eprint(&format!("nothing to convert: {} has no case that can be run\n", shown.display()));
        return Ok(Exit::NothingRan);
    }
    let text = config::suite::suite_text(&suite);
    // What cannot be run is not worth writing.
    config::suite::parse(&shown, text.clone())?;
    match output {
        Some(output) => {
            let output = project.shown_path(output);
            create(&output, &text)?;
            print(&format!("{}\n", output.display()))?;
        }
        None => print(&text)?,
    }
    eprint(&format!("{} converted\n", plural(suite.cases.len() as u64, "case")));
    Ok(Exit::Passed)
}

fn export_to(
    target: ExportTarget,
    path: &Path,
    output: Option<&Path>,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let (suite, skill) = read(&project.shown_path(path))?;
    let exported = export(&suite, target.into(), skill.as_deref());
    for line in &exported.left_out {
        eprint(&format!("warning: left out: {line}\n"));
    }
    match (exported.files.as_slice(), output) {
        ([], _) => {
            eprint("nothing to export: no case can be said in that form\n");
            return Ok(Exit::NothingRan);
        }
        ([(_, text)], None) if target != ExportTarget::Harbor => print(text)?,
        (_, None) => {
            let error = anyhow!("--to harbor writes a folder");
            return Err(AppError::usage(error).hint(Some("name it with --output DIR")));
        }
        ([(_, text)], Some(output)) if target != ExportTarget::Harbor => {
            let output: PathBuf = project.shown_path(output);
            create(&output, text)?;
            print(&format!("{}\n", output.display()))?;
        }
        (files, Some(output)) => {
            let output = project.shown_path(output);
            // Tasks of an earlier export would be run along with the new ones.
            if fs::read_dir(&output).is_ok_and(|mut names| names.next().is_some()) {
                let error = anyhow!("{} is not empty", output.display());
                return Err(AppError::usage(error).hint(Some("name a new folder with --output")));
            }
            for (name, text) in files {
                create(&output.join(name), text)?;
            }
            print(&format!("{}\n", output.display()))?;
        }
    }
    Ok(Exit::Passed)
}
