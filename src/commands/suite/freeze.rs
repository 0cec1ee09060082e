//! `selftest suite freeze`: the cases of a run as a suite file.

use std::fs;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::anyhow;
use selftest_app::{AppError, find_report};
use selftest_config as config;
use selftest_harness::experiment::power::inconclusive_reason;
use selftest_reports::freeze::{FrozenSuite, freeze};
use selftest_text::wording::plural;

use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

/// Folder of suites, which the system under test cannot read.
const FOLDER: &str = "config/suites";

pub(super) fn execute(
    run: &str,
    output: Option<&Path>,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
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
pub(super) fn create(path: &Path, text: &str) -> Result<(), AppError> {
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
