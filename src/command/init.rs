//! `selftest init`: configuration, prompts and a CI workflow, never over an existing file.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::Context as _;

use super::context::Project;
use super::failure::Failure;
use super::print;
use crate::cli::GlobalArgs;
use crate::config;
use crate::exit::Exit;
use selftest_grading::prompts::BUILT_IN as GRADING_PROMPTS;
use selftest_harness::prompts::BUILT_IN as HARNESS_PROMPTS;

const WORKFLOW: &str = include_str!("init_workflow.yml");

pub(super) fn execute(global: &GlobalArgs) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let mut files: Vec<(String, String)> = vec![
        (config::DEFAULT_PATH.to_owned(), config::TEMPLATE.to_owned()),
        ("config/schema.json".to_owned(), format!("{:#}\n", config::schema())),
        (".github/workflows/selftest.yml".to_owned(), WORKFLOW.to_owned()),
    ];
    files.extend(
        HARNESS_PROMPTS
            .iter()
            .chain(GRADING_PROMPTS)
            .map(|(name, text)| (format!("prompts/{name}"), (*text).to_owned())),
    );
    let mut lines = String::new();
    for (path, text) in &files {
        let created = create(&project.folder.join(path), text)
            .with_context(|| format!("cannot write {path}"))
            .map_err(Failure::setup)?;
        let word = if created { "wrote" } else { "kept " };
        lines += &format!("{word} {path}{}\n", if created { "" } else { " (it exists)" });
    }
    print(&lines)?;
    print("next: `selftest doctor`, then `selftest --scenarios=2`\n")?;
    Ok(Exit::Passed)
}

/// Writes a new file; `false` when there is one already.
fn create(path: &Path, text: &str) -> std::io::Result<bool> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
