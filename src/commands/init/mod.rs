//! `selftest init`: looks at what a project has, asks at most three questions, and writes a
//! configuration that tests it, a first suite and a CI workflow. Starts no program of the
//! project, and replaces no file without being told to.

mod found;
mod manifest;
mod questions;
mod target;
mod task_api;
mod texts;
mod write;

use std::io::IsTerminal as _;

use anyhow::Context as _;
use clap::Args;
use found::Found;
use questions::Answers;
use selftest_app::{AppError, doctor};
use selftest_text::escape::terminal;
use write::Destination;

use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::print;

/// Options of `selftest init`.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct InitArgs {
    /// Take the likeliest answers without asking, as without a terminal
    #[arg(short, long)]
    pub yes: bool,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// Also write all prompt templates to prompts/, to edit them there
    #[arg(long)]
    pub prompts: bool,
}

/// Most bytes of a line that repeats what a project says.
const MAX_LINE: usize = 400;

pub(super) async fn execute(args: &InitArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let found = Found::look(&project.folder, &project.environment).await;
    let mut lines = String::new();
    for (word, line) in found.lines() {
        lines += &format!("{word:<6} {}\n", terminal(&line, MAX_LINE));
    }
    print(&lines)?;

    let mut answers = Answers::without_asking(&found);
    let may_ask = !args.yes
        && !project.environment.ci
        && std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal();
    if may_ask {
        let asked = questions::questions(&found);
        for question in &asked {
            print(&question.text())?;
            let mut line = String::new();
            std::io::stdin()
                .read_line(&mut line)
                .context("cannot read an answer")
                .map_err(AppError::setup)?;
            question.answered(&line, &mut answers);
        }
    }

    let folder = Destination { root: &project.folder, replace: args.force };
    let mut lines = String::new();
    for file in texts::files(&found, &answers, args.prompts) {
        let written = folder
            .write(&file.path, &file.text)
            .with_context(|| format!("cannot write {}", file.path))
            .map_err(AppError::setup)?;
        lines += &written.line(&file.path, file.about.as_deref());
    }
    let ignored = folder
        .add_lines(texts::GITIGNORE, texts::IGNORED)
        .with_context(|| format!("cannot write {}", texts::GITIGNORE))
        .map_err(AppError::setup)?;
    lines += &ignored.line(texts::GITIGNORE, None);
    for line in answers.target.needs(&project.environment) {
        lines += &format!("note   {line}\n");
    }
    print(&lines)?;

    let findings = doctor::check_without_models(&project).await;
    print(&findings.text())?;
    print(&format!("next: `{}`\n", next_command(findings.is_healthy())))?;
    Ok(Exit::Passed)
}

/// The one command that is worth typing now.
fn next_command(healthy: bool) -> &'static str {
    if healthy { "selftest --suite config/suites/first.yaml" } else { "selftest doctor" }
}
