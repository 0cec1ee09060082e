//! `selftest suite convert`: a suite of another program as one of ours; `selftest suite export`: a
//! suite in the form of another program.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::ValueEnum;
use selftest_app::AppError;
use selftest_checks::evals::{ShellPermission, folder};
use selftest_checks::export::{ExportForm, export};
use selftest_checks::suite::Suite;
use selftest_config as config;
use selftest_text::wording::plural;

use super::create;
use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui::{self, eprint, print};

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
    let names: Vec<String> = file.skill.iter().cloned().collect();
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

pub(super) fn convert(
    path: &Path,
    output: Option<&Path>,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
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

pub(super) fn export_to(
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
